"""`proctor report`: what is read, what is written, and what is said when something is missing."""

import base64
import hashlib
import io
import json
import shutil
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest
from house_runs import edit_journal, run_in_houses
from mesh_houses import Y_UP, two_storeys, write
from PIL import Image
from running import finished

from proctor import cli
from proctor.core.registry import suite_path
from proctor.core.types import Vector3
from proctor.exams.datasets import load_dataset, save_dataset
from proctor.exams.results import Fault
from proctor.exams.vln.episode import Episode
from proctor.exams.vln.exam import VlnExam
from proctor.exams.vln.goal_distances import goal_distances
from proctor.exams.vln.page import VlnPage
from proctor.report.html import embedded_json
from proctor.report.key_frames import choose, collect, replay
from proctor.report.page_data import judge, page_of
from proctor.report.run_record import read_runs
from proctor.report.tables import score_notes
from proctor.runs.folder import find_runs
from proctor.runs.recordings import recording_folder
from proctor.runs.summary import summarise
from proctor.worlds.mujoco.wheeled.camera import RgbdCamera
from proctor.worlds.mujoco.wheeled.env import VLNEnv

EYE = VlnPage.eyes["embedded"]


def proctor(capsys, *words):
    code = cli.main([str(word) for word in words])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def data_of(page):
    text = Path(page).read_text().partition('<script type="application/json" id="data">')[2]
    return json.loads(text.partition("</script>")[0])


@pytest.fixture
def dataset(tmp_path):
    episodes = [
        Episode(
            episode_id=f"ep_{index}",
            scene_id="empty",
            goal_position=Vector3(1 + index, 0, 0),
            instruction=f"Go {index + 1} m ahead.",
            reference_path=[Vector3(0.25 * i, 0, 0) for i in range(5 + 4 * index)],
            max_steps=40,
        )
        for index in range(3)
    ]
    save_dataset(episodes, tmp_path / "episodes.json")
    return tmp_path / "episodes.json"


@pytest.fixture
def run(capsys, dataset):
    out = dataset.parent / "run"
    code, _, _ = proctor(
        capsys, "run", "--dataset", dataset, "--policy", "forward", "--env", "mock", "--out", out
    )
    assert code == 0
    return out


@pytest.fixture(scope="module")
def house_runs(tmp_path_factory):
    return run_in_houses(tmp_path_factory.mktemp("runs"), episodes=1)


def test_a_report_is_one_file_with_everything_in_it(capsys, run):
    code, out, _ = proctor(capsys, "report", run)
    assert code == 0
    assert f"Report: {run}/report.html" in out
    page = (run / "report.html").read_text()
    assert "src=" not in page.replace("src: source", "")
    assert "https://" not in page
    data = data_of(run / "report.html")
    assert [row["name"] for row in data["runs"]] == ["forward"]
    assert data["runs"][0]["metrics"]["success"][3] == 3
    assert [episode["id"] for episode in data["episodes"]] == ["ep_0", "ep_1", "ep_2"]
    assert data["episodes"][2]["ref"][-2:] == [300, 0]
    assert data["results"][0]["act"].startswith("FFF")


def test_the_same_runs_make_the_same_report(capsys, run):
    first, second = run / "a.html", run / "b.html"
    for file in (first, second):
        proctor(capsys, "report", run, "--out", file)
    assert first.read_bytes() == second.read_bytes()


def test_the_journal_and_results_are_left_as_they_were(capsys, run):
    before = {file: file.read_bytes() for file in run.rglob("*") if file.is_file()}
    proctor(capsys, "report", run)
    after = {file: file.read_bytes() for file in run.rglob("*") if file.is_file()}
    assert after.pop(run / "report.html")
    assert before == after


def test_runs_side_by_side_with_privileged_ones_last(capsys, house_runs, tmp_path):
    code, _, _ = proctor(capsys, "report", house_runs, "--frames", "none", "--out", tmp_path / "r.html")
    assert code == 0
    data = data_of(tmp_path / "r.html")
    assert [(run["name"], run["privileged"]) for run in data["runs"]] == [
        ("forward", False),
        ("oracle", True),
    ]
    assert len(data["episodes"]) == 1
    assert len(data["plans"]) == 1
    assert data["plans"][0]["image"].startswith("data:image/webp;base64,")
    assert {result["r"]: result["kind"] for result in data["results"]}[1] == "success"


def test_a_baseline_from_elsewhere_stands_beside_the_run(capsys, house_runs, tmp_path):
    words = ["report", house_runs / "forward", "--baseline", house_runs / "oracle", "--frames", "none"]
    assert proctor(capsys, *words, "--out", tmp_path / "r.html")[0] == 0
    assert len(data_of(tmp_path / "r.html")["runs"]) == 2


def test_two_runs_of_one_policy_get_different_names(capsys, run):
    shutil.copytree(run, run.parent / "again")
    _, out, _ = proctor(capsys, "report", run, "--baseline", run.parent / "again")
    assert "Report:" in out
    assert [r["name"] for r in data_of(run / "report.html")["runs"]] == ["forward", "forward (again)"]


def test_an_unfinished_run_gives_a_report_that_says_so(capsys, run):
    (run / "results.json").unlink()
    journal = run / "episodes.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(lines[:2]) + lines[2][:50])  # killed while it wrote the third
    code, out, _ = proctor(capsys, "report", run)
    assert code == 0
    assert "forward: This run is unfinished: 2 of 3 episodes are done." in out
    data = data_of(run / "report.html")
    assert len(data["results"]) == 2
    assert data["runs"][0]["expected"] == 3
    assert journal.read_bytes().endswith(lines[2][:50])


def test_an_empty_run_is_an_error_that_says_what_to_do(capsys, run):
    (run / "episodes.jsonl").write_bytes(b"")
    (run / "results.json").unlink()
    code, _, error = proctor(capsys, "report", run)
    assert code == 2
    assert f"{run} has no finished episode yet; the command that began it goes on with it" in error
    assert not (run / "report.html").exists()


def test_an_empty_run_beside_others_is_told_on_the_page(capsys, run):
    shutil.copytree(run, run.parent / "empty")
    (run.parent / "empty" / "episodes.jsonl").unlink()
    (run.parent / "empty" / "results.json").unlink()
    code, out, _ = proctor(capsys, "report", run, "--baseline", run.parent / "empty")
    assert code == 0
    assert "has no finished episode yet" in out
    assert "has no finished episode yet" in data_of(run / "report.html")["notices"][0]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nowhere"], "nowhere: no such folder"),
        (["."], "is not a run: neither it nor a folder in it has a manifest.json"),
        (["run", "--frames", "many"], "--frames: expected a number, all or none, found 'many'"),
        (["run", "--png", "ep_9"], "unknown episode 'ep_9'; did you mean 'ep_"),
        (["run", "--out", "episodes.json/x.html"], "cannot write episodes.json/x.html: "),
        (["run", "--png", "ep_1", "--out", "/proc/x.png"], "cannot write /proc/x.png: "),
    ],
)
def test_mistakes_are_named(capsys, run, monkeypatch, tmp_path, words, message):
    monkeypatch.chdir(run.parent)
    if words == ["."]:
        (tmp_path / "nothing").mkdir()
        monkeypatch.chdir(tmp_path / "nothing")
    code, _, error = proctor(capsys, "report", *words)
    assert code == 2
    assert message in error


def test_a_broken_manifest_or_record_is_named_with_its_place(capsys, run):
    journal = run / "episodes.jsonl"
    good = journal.read_bytes()
    journal.write_bytes(good + b'{"episode_id": 7}\n')
    assert "episodes.jsonl: line 4: not an episode record" in proctor(capsys, "report", run)[2]
    journal.write_bytes(good)
    (run / "manifest.json").write_text("[]")
    assert "manifest.json: not the manifest of a run" in proctor(capsys, "report", run)[2]


@pytest.mark.parametrize("what", ["gone", "changed", "unknown"])
def test_without_its_dataset_the_report_still_works_and_says_so(capsys, run, dataset, what):
    if what == "gone":
        dataset.unlink()
    elif what == "changed":
        dataset.write_text(dataset.read_text().replace("ahead", "back"))
    else:
        manifest = json.loads((run / "manifest.json").read_text())
        del manifest["source"]
        (run / "manifest.json").write_text(json.dumps(manifest))
    code, out, _ = proctor(capsys, "report", run)
    assert code == 0
    assert "no reference paths, goals or maps" in out
    data = data_of(run / "report.html")
    assert len(data["results"]) == 3
    assert "ref" not in data["episodes"][0]
    assert data["episodes"][0]["text"] == "Go 1 m ahead."


def test_runs_of_different_exams_are_not_compared_silently(capsys, run, dataset):
    other = run.parent / "other"
    shutil.copytree(run, other)
    manifest = json.loads((other / "manifest.json").read_text())
    manifest["identity"]["dataset_sha256"] = hashlib.sha256(b"another").hexdigest()
    (other / "manifest.json").write_text(json.dumps(manifest))
    proctor(capsys, "report", run, "--baseline", other)
    data = data_of(run / "report.html")
    assert "The runs are of different exams: their numbers cannot be compared." in data["notices"]
    assert len(data["episodes"]) == 6  # the same id in two exams is two episodes


def test_runs_that_did_other_episodes_are_told_apart(capsys, run):
    other = run.parent / "other"
    shutil.copytree(run, other)
    edit_journal(other, lambda result: None if result.episode_id == "ep_1" else result)
    proctor(capsys, "report", run, "--baseline", other)
    assert any("did not do the same episodes" in text for text in data_of(run / "report.html")["notices"])


def test_faults_keep_their_messages_and_bounds(capsys, run):
    fault = Fault(side="evaluator", kind="env_exception", message="the world broke")

    def broken(result):
        lost = result.episode_id == "ep_1"
        return msgspec.structs.replace(result, error=fault, status="error", metrics={}) if lost else result

    edit_journal(run, broken)
    proctor(capsys, "report", run)
    data = data_of(run / "report.html")
    assert data["runs"][0]["faults"] == {"agent": 0, "evaluator": 1}
    low, high = data["runs"][0]["bounds"]
    assert high - low == pytest.approx(1 / 3)
    assert data["results"][1]["error"]["message"] == "the world broke"


def test_hostile_texts_cannot_leave_the_data(capsys, run):
    hostile = "</script><script>alert(1)</script><!--\u2028 & <img src=x onerror=alert(1)> <!--SCRIPT-->"
    edit_journal(run, lambda result: msgspec.structs.replace(result, instruction=hostile))
    proctor(capsys, "report", run)
    page = (run / "report.html").read_text()
    assert page.count("</script>") == 2
    assert "alert(1)" in page
    assert "<img" not in page
    assert data_of(run / "report.html")["episodes"][0]["text"] == hostile


def test_embedded_json_is_still_json():
    value = {"<a>": "x & \u2028 y </script>", "n": [1, 2.5, None]}
    text = embedded_json(value)
    assert not set("<>&\u2028") & set(text)
    assert json.loads(text) == value


def test_one_picture_of_one_episode(capsys, house_runs, tmp_path):
    episode = load_dataset(suite_path("houses-v1")).episodes[0].episode_id
    file = tmp_path / "path.png"
    code, out, _ = proctor(capsys, "report", house_runs / "oracle", "--png", episode, "--out", file)
    assert code == 0
    assert f"Picture: {file}" in out
    with Image.open(file) as picture:
        assert picture.format == "PNG"
        assert len(picture.getcolors(picture.width * picture.height)) > 100
    assert not (house_runs / "oracle" / "report.html").exists()


def records(folder):
    return read_runs(find_runs([folder]))[0]


def test_key_frames_are_drawn_again_from_the_recorded_actions(capsys, house_runs, tmp_path):
    assert proctor(capsys, "report", house_runs, "--out", tmp_path / "r.html")[0] == 0
    results = data_of(tmp_path / "r.html")["results"]
    assert [result["framed"] for result in results] == ["replayed", "replayed"]
    for result in results:
        steps = [step for step, _ in result["frames"]]
        assert steps[0] == 0
        assert steps[-1] == len(result["act"])
        assert result["framing"] == ""
        assert all(picture.startswith("data:image/jpeg;base64,") for _, picture in result["frames"])


def test_pictures_that_were_kept_are_preferred(capsys, house_runs, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(house_runs / "oracle", run)
    (result,) = finished(run).values()
    frames = recording_folder(run, result.episode_id) / "frames"
    frames.mkdir(parents=True)
    for step in range(result.steps + 1):
        Image.new("RGB", (640, 480), (200, 0, 0)).save(frames / f"{step:05d}.jpg")
    proctor(capsys, "report", run)
    (row,) = data_of(run / "report.html")["results"]
    assert row["framed"] == "recorded"
    assert len(row["frames"]) == 4
    picture = Image.open(io.BytesIO(base64.b64decode(row["frames"][0][1].partition(",")[2])))
    assert picture.size == (320, 240)
    assert picture.getpixel((100, 100))[0] > 190
    (frames / "00000.jpg").write_bytes(b"nothing")
    assert proctor(capsys, "report", run)[0] == 0
    assert "cannot be read" in data_of(run / "report.html")["results"][0]["framing"]


def test_pictures_that_would_fill_the_memory_are_not_opened(house_runs, tmp_path, monkeypatch):
    run = tmp_path / "run"
    shutil.copytree(house_runs / "oracle", run)
    (record,) = records(run)
    (verdict,) = judge([record])
    frames = recording_folder(run, verdict.result.episode_id) / "frames"
    frames.mkdir(parents=True)
    Image.new("RGB", (100, 100)).save(frames / "00000.jpg")
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 100)
    (found,) = collect([record], [verdict], page_of([record], [verdict])).values()
    assert "cannot be read" in found.note


def test_a_replay_that_goes_elsewhere_is_noticed_and_not_shown(house_runs):
    (run,) = records(house_runs / "oracle")
    (judged,) = judge([run])
    result = judged.result
    shifted = [Vector3(p.x + 0.05 * (index > 10), p.y, p.z) for index, p in enumerate(result.trajectory)]
    env = VLNEnv(width=32, height=24, sensors=("rgb",))
    astray = judged._replace(result=msgspec.structs.replace(result, trajectory=shifted))
    steps = [0, 5, 20, result.steps]
    frames = replay(env, VlnExam(), astray, steps, eye=EYE)
    same = replay(env, VlnExam(), judged, steps, eye=EYE)
    env.close()
    assert [step for step, _ in frames.pictures] == [0, 5]
    assert "0.05 m away from where it had been after step 11" in frames.note
    assert [step for step, _ in same.pictures] == [0, 5, 20, result.steps]
    assert same.note == ""


def test_a_replay_draws_nothing_but_the_pictures_that_are_shown(house_runs, monkeypatch):
    (run,) = records(house_runs / "oracle")
    (judged,) = judge([run])
    drawn, render = [], RgbdCamera.render
    monkeypatch.setattr(RgbdCamera, "render", lambda camera: drawn.append(1) or render(camera))
    with closing(VLNEnv(width=32, height=24, sensors=("rgb",))) as env:
        frames = replay(env, VlnExam(), judged, [0, 5, judged.result.steps], eye=EYE)
    assert len(drawn) == len(frames.pictures) == 3


def _ended_as(judged, kind):
    return judged._replace(verdict=msgspec.structs.replace(judged.verdict, kind=kind))


def test_frames_are_spread_over_classes_failures_first(house_runs):
    runs = records(house_runs)
    (failure, success) = judge(runs)
    assert success.verdict.kind == "success"
    stuck = _ended_as(failure, "stuck")
    looped = _ended_as(failure, "looped")
    many = [success, stuck, stuck, stuck, looped]
    kinds = [each.verdict.kind for each in choose(runs, many, most=3, most_steps=None)]
    assert kinds == ["looped", "stuck", "stuck"]
    assert len(choose(runs, many, most=None, most_steps=None)) == 5
    assert len(choose(runs, many, most=None, most_steps=stuck.result.steps)) == 1
    lost = _ended_as(failure, "evaluator_fault")
    assert choose(runs, [lost], most=None, most_steps=None) == []


def test_the_mock_world_has_no_pictures_and_the_report_says_so(capsys, run):
    proctor(capsys, "report", run)
    assert data_of(run / "report.html")["results"][0]["framing"] == (
        "The env 'mock' cannot be driven again here."
    )


def test_distances_along_the_way_end_at_the_measured_one(house_runs):
    for run in records(house_runs):
        (result,) = run.results.episodes
        distances_m = goal_distances(result, run.episodes[result.episode_id])
        assert len(distances_m) == len(result.trajectory)
        assert distances_m[-1] == pytest.approx(result.metrics["navigation_error"], abs=0.1)
        if run.name == "oracle":
            assert distances_m[0] == pytest.approx(result.metrics["path_length"], rel=0.1)
            assert max(b - a for a, b in pairwise(distances_m)) < 0.1


def test_distances_on_an_upper_floor_are_those_of_its_own_map(tmp_path):
    house = write(two_storeys(), tmp_path / "house.glb", turn=Y_UP)
    start, goal = Vector3(6.0, 0.5, 2.8), Vector3(6.0, 3.5, 2.8)
    episode = Episode(scene_config_path=str(house), start_position=start, goal_position=goal)
    result = SimpleNamespace(distance="geodesic", trajectory=[start, goal], metrics={})
    assert goal_distances(result, episode)[0] > 3.2  # around the hole in it, which is 2 m wide


def test_a_damaged_run_is_left_out_and_named(capsys, run):
    runs = run.parent / "runs"
    shutil.copytree(run, runs / "good")
    shutil.copytree(run, runs / "bad")
    journal = runs / "bad" / "episodes.jsonl"
    journal.write_text(journal.read_text().replace('{"episode_id"', "{", 1))
    code, out, _ = proctor(capsys, "report", runs)
    assert code == 0
    assert "bad is left out, being damaged" in out
    assert "episodes.jsonl: line 1" in out
    data = data_of(runs / "report.html")
    assert len(data["runs"]) == 1
    assert any("line 1" in notice for notice in data["notices"])
    code, _, err = proctor(capsys, "report", runs / "bad")
    assert code == 2
    assert "line 1" in err


def test_a_scene_that_has_changed_since_the_run_is_told_and_not_drawn(capsys, tmp_path):
    scene = tmp_path / "scenes" / "s.json"
    scene.parent.mkdir()
    box = '{"name": "b", "translate": [3, 3, 0.5], "parts": [{"shape": "box", "size": [1, 1, 1]}]}'
    scene.write_text(f'{{"scene_name": "s", "objects": [{box}]}}')
    episode = Episode(episode_id="e", scene_id="s", goal_position=Vector3(1, 0, 0), instruction="Go.")
    save_dataset([episode], tmp_path / "episodes.json")
    out = tmp_path / "run"
    command = ("run", "--dataset", tmp_path / "episodes.json", "--policy", "forward", "--out", out)
    assert proctor(capsys, *command)[0] == 0
    assert proctor(capsys, "report", out, "--frames", 1)[0] == 0
    assert len(data_of(out / "report.html")["plans"]) == 1
    scene.write_text(scene.read_text().replace("[3, 3, 0.5]", "[3, 2, 0.5]"))
    code, said, _ = proctor(capsys, "report", out, "--frames", 1)
    assert code == 0
    assert "A scene has changed or is gone since this run" in said
    data = data_of(out / "report.html")
    assert data["plans"] == []
    assert data["results"][0]["frames"] == []
    _, said, _ = proctor(capsys, "report", out, "--png", "e", "--out", tmp_path / "e.png")
    assert "A scene has changed" in said


def test_words_of_an_agent_cannot_turn_the_terminal_around(run):
    (record,), _ = read_runs([run])
    fault = Fault(side="agent", kind="odd", message="\u202eevil\x1b[2J\x07")
    broken = msgspec.structs.replace(record.results.episodes[0], error=fault, failure_reason="odd")
    notes = score_notes(VlnExam, {"me": summarise(VlnExam, [broken])})
    assert "\\u202eevil\\u001b[2J\\u0007" in notes
    assert not {"\u202e", "\x1b", "\x07"} & set(notes)
