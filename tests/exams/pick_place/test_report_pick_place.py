"""Reports on pick-and-place: how episodes ended, what the page is told, pictures, and what is refused."""

import io
import json
from pathlib import Path

import msgspec
import numpy as np
import pytest
from house_runs import edit_journal
from PIL import Image, ImageColor
from running import finished
from tabletop_drive import cup_episode, drive
from tabletop_runs import (
    CUP,
    ENDINGS,
    GOAL,
    GRASPED,
    LAST,
    LIFTED,
    PLACED,
    REACHED,
    episode_of,
    result_of,
    write_run,
)

from proctor import cli
from proctor.core.types import Vector3
from proctor.exams.datasets import save_dataset
from proctor.exams.page import JudgedEpisode, KeyFrames
from proctor.exams.pick_place.env import PickPlaceEnv
from proctor.exams.pick_place.exam import PickPlaceExam
from proctor.exams.pick_place.hand_views import PHASE_COLORS, Paths, draw_view, moments_of, shapes_of, side_of
from proctor.exams.pick_place.page import PickPlacePage, film_strip
from proctor.exams.pick_place.verdict import spoken, verdict_of
from proctor.plots.figure import image_of, new_figure
from proctor.report.key_frames import replay
from proctor.runs.recordings import recording_folder

EYE = PickPlacePage.eyes["tabletop"]


def proctor(capsys, *words):
    code = cli.main([str(word) for word in words])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def data_of(page):
    text = Path(page).read_text().partition('<script type="application/json" id="data">')[2]
    return json.loads(text.partition("</script>")[0])


@pytest.fixture(scope="module")
def driven():
    episode = cup_episode()
    return episode, drive(episode)


@pytest.mark.parametrize("ending", ENDINGS)
def test_every_way_to_end_is_found(ending):
    episode = episode_of("e")
    verdict = verdict_of(episode, result_of(episode, ending))
    assert verdict.kind == ending
    assert 0 <= verdict.step <= LAST


def test_the_sentence_says_what_where_and_when():
    episode = episode_of("e")

    def said(ending):
        verdict = verdict_of(episode, result_of(episode, ending))
        return verdict.step, verdict.sentence

    assert said("success") == (LAST, "Put the red cup down in the target and let go of it.")
    assert said("dropped") == (
        85,
        "Let go of the red cup at step 85, 11 cm from the target, and it fell 80 cm.",
    )
    assert said("not_grasped") == (
        47,
        "Closed the gripper at step 47 without getting hold of the red cup.",
    )
    assert said("not_lifted")[1].startswith(
        "Had hold of the red cup at step 52, raised it 6.8 cm of 10 cm, and lost"
    )
    assert said("not_placed")[1].startswith("Still held the red cup at the end, ")
    assert said("never_reached")[1].startswith("The hand never came to the red cup: ")
    assert said("knocked_down") == (30, "Knocked the red cup down at step 30: it fell 80 cm.")
    assert said("left_target")[1].startswith("The red cup was in the target at step 105, but ended ")
    assert (
        said("not_released")[1]
        == "The red cup was in the target at step 105, but the gripper never let go of it."
    )
    assert said("agent_fault")[1] == "The agent failed at step 61 (the agent raised an error): It broke."


@pytest.mark.parametrize(("target", "kind"), [("container", "left_target"), ("position", "not_released")])
def test_beside_a_bowl_is_not_in_it_though_it_would_be_near_enough_to_a_mark(target, kind):
    episode = episode_of("e", target=target)
    result = msgspec.structs.replace(result_of(episode, "left_target"), final_distance_to_goal=0.03)
    assert verdict_of(episode, result).kind == kind


def test_without_a_target_a_thing_is_held_aloft():
    episode = episode_of("e", target=None)
    held = result_of(episode, "success")
    assert verdict_of(episode, held).sentence == "Lifted the red cup and held it aloft."
    lost = result_of(episode, "dropped")
    verdict = verdict_of(episode, lost)
    assert (verdict.kind, verdict.step) == ("dropped", 85)
    assert "the object" in verdict_of(None, lost).sentence


def test_things_are_called_as_people_do():
    assert [spoken(name) for name in ("cup_red", "bowl", "my_thing_7")] == ["red cup", "bowl", "my thing 7"]


def test_there_are_six_moments_and_stages_have_their_names():
    episode = episode_of("e")
    whole = result_of(episode, "success")
    moments = moments_of(whole, whole.pick_place, LAST)
    assert [m.step for m in moments] == [0, REACHED, GRASPED, LIFTED, PLACED, LAST]
    assert [m.label for m in moments] == ["start", "reach", "grasp", "lift", "place", "end"]
    far = result_of(episode, "never_reached")
    moments = moments_of(far, far.pick_place, 20)
    assert [m.step for m in moments] == [0, 20, 46, 72, 98, LAST]
    assert {m.label for m in moments} == {"start", "went wrong", "", "end"}
    short = msgspec.structs.replace(far, trajectory=far.trajectory[:3])
    assert [m.step for m in moments_of(short, short.pick_place, 1)] == [0, 1, 2]


def test_one_looks_so_that_the_object_is_carried_to_the_right():
    record = result_of(episode_of("e"), "success").pick_place
    side = side_of(record)
    start, end = side.flat(np.array([CUP, GOAL]))
    assert start == pytest.approx([0.0, CUP[2]])
    assert end == pytest.approx([np.linalg.norm(GOAL - CUP), GOAL[2]])
    nowhere = side_of(msgspec.structs.replace(record, target=None))
    assert nowhere.flat(CUP[None])[0, 0] == pytest.approx(np.hypot(*CUP[:2]))


def test_tables_have_legs_from_the_side_and_what_moves_is_left_out():
    episode = episode_of("e")
    shapes, problems = shapes_of(episode, side_of(result_of(episode, "success").pick_place))
    assert problems == []
    table = [shape for shape in shapes if shape.name == "table"]
    assert len(table) >= 5
    assert all(shape.is_furniture for shape in table)
    assert max(shape.side[:, 1].max() for shape in table) == pytest.approx(0.8, abs=1e-3)
    top = max(table, key=lambda shape: np.ptp(shape.top[:, 0]))
    assert np.ptp(top.top, axis=0) == pytest.approx([1.2, 0.8], abs=0.01)
    assert {shape.name for shape in shapes} == {"table", "bowl_blue", "can"}


def test_a_thing_that_cannot_be_made_is_told_and_left_out(capsys, tmp_path):
    episode = episode_of("e")
    odd = msgspec.structs.replace(episode.scene_objects[3], name="gizmo", shape=None, usd_path="gizmo.usd")
    episode = msgspec.structs.replace(episode, scene_objects=[*episode.scene_objects[:3], odd])
    shapes, (problem,) = shapes_of(episode, side_of(result_of(episode, "success").pick_place))
    assert "gizmo" in problem
    assert "gizmo" not in {shape.name for shape in shapes}


def test_the_page_is_told_stages_paths_and_target(capsys, tmp_path):
    run = write_run(tmp_path / "run", ["success", "dropped", "never_reached", "evaluator_fault"])
    code, out, _ = proctor(capsys, "report", run, "--frames", "none")
    assert code == 0, out
    data = data_of(run / "report.html")
    assert data["task"] == "pick_and_place"
    assert [row["got"] for row in data["results"]] == [5, 3, 0, 0]
    assert [row["kind"] for row in data["results"]] == [
        "success",
        "dropped",
        "never_reached",
        "evaluator_fault",
    ]
    first, episode = data["results"][0], data["episodes"][0]
    hand = np.cumsum(np.array(first["hand"]).reshape(-1, 3), axis=0) / 1000
    recorded = finished(run)["pick_000"]
    assert hand == pytest.approx(np.array([(p.x, p.y, p.z) for p in recorded.trajectory]), abs=0.00051)
    cup = np.cumsum(np.array(first["thing"]).reshape(-1, 3), axis=0) / 1000
    assert cup == pytest.approx(np.array(recorded.pick_place.object_path), abs=0.00051)
    assert first["phase"] == "".join(phase[0] for phase in recorded.pick_place.phases)
    assert first["held"].count("1") == sum(recorded.pick_place.held)
    assert max(first["grip"]) == 400
    assert episode["goal"] == [850, -850, 800]
    assert (episode["object"], episode["target"], episode["near"], episode["period"]) == (
        "cup_red",
        "position",
        0.05,
        0.1,
    )
    assert data["episodes"][1]["into"] == "bowl_blue"
    assert data["runs"][0]["metrics"]["completion_rate"][3] == 3


def test_runs_of_several_tasks_are_refused(capsys, tmp_path):
    runs = tmp_path / "runs"
    write_run(runs / "picks", ["success"], policy="a")
    write_run(runs / "walks", ["success"], policy="b", task="vln")
    code, _, err = proctor(capsys, "report", runs, "--frames", "none")
    assert code == 2
    assert "a report is about runs of one task, found several" in err
    assert "picks (pick_and_place)" in err.replace("\n", "")
    assert not (runs / "report.html").exists()
    odd = write_run(tmp_path / "odd", ["success"], task="juggling")
    code, _, err = proctor(capsys, "report", odd)
    assert code == 2
    said = err.replace("\n", " ")
    assert "manifest.json: identity.task: unknown exam 'juggling'; available: pick_and_place, vln" in said
    assert "is its package installed?" in said


def test_runs_of_different_levels_are_told_apart(capsys, tmp_path):
    runs, dataset = tmp_path / "runs", tmp_path / "episodes.json"
    write_run(runs / "plain", ["success"], dataset=dataset)
    write_run(runs / "hard", ["success"], dataset=dataset, env_options={"level": 3})
    assert proctor(capsys, "report", runs, "--frames", "none")[0] == 0
    (notice,) = data_of(runs / "report.html")["notices"]
    assert notice.startswith("The runs are of different levels of generalisation: ")
    assert "L0" in notice
    assert "L3" in notice


def test_without_the_dataset_scores_and_paths_remain(capsys, tmp_path):
    run = write_run(tmp_path / "run", ["success", "not_lifted"])
    (tmp_path / "run_episodes.json").unlink()
    code, out, _ = proctor(capsys, "report", run)
    assert code == 0
    data = data_of(run / "report.html")
    assert "shapes" not in data["episodes"][0]
    assert data["results"][0]["hand"]
    assert data["results"][0]["framing"] == "The dataset is gone, so nothing can be driven again."
    code, out, _ = proctor(capsys, "report", run, "--png", "pick_001", "--out", tmp_path / "e.png")
    assert code == 0, out


def test_an_episode_that_never_began_is_in_the_report_and_has_no_picture(capsys, tmp_path):
    run = write_run(tmp_path / "run", ["evaluator_fault", "success"])
    empty = {"object_path": [], "base_path": [], "gripper": [], "phases": [], "held": []}
    edit_journal(
        run,
        lambda r: (
            r
            if r.error is None
            else msgspec.structs.replace(
                r, trajectory=[], pick_place=msgspec.structs.replace(r.pick_place, **empty)
            )
        ),
    )
    assert proctor(capsys, "report", run, "--frames", "none")[0] == 0
    assert "hand" not in data_of(run / "report.html")["results"][0]
    code, _, err = proctor(capsys, "report", run, "--png", "pick_000", "--out", tmp_path / "e.png")
    assert code == 2
    assert "never began" in err


def test_what_was_done_is_done_again_for_its_pictures(driven):
    episode, result = driven
    assert result.success
    steps = [moment.step for moment in moments_of(result, result.pick_place, result.steps)]
    env = PickPlaceEnv(sensors=("rgb_head", "rgb_wrist"))
    judged = JudgedEpisode(0, result, episode, verdict_of(episode, result))
    frames = replay(env, PickPlaceExam(), judged, steps, eye=EYE)
    moved = [Vector3(p.x, p.y, p.z + 0.03 * (index > 60)) for index, p in enumerate(result.trajectory)]
    other = judged._replace(result=msgspec.structs.replace(result, trajectory=moved))
    broken = replay(env, PickPlaceExam(), other, steps, eye=EYE)
    env.close()
    assert [step for step, _ in frames.pictures] == steps
    assert (frames.note, frames.source) == ("", "replayed")
    assert "0.03 m away from where it had been after step 61" in broken.note
    assert [step for step, _ in broken.pictures] == [step for step in steps if step <= 60]
    first, lifted = (
        np.asarray(Image.open(io.BytesIO(frames.pictures[index][1]))).astype(int) for index in (0, 3)
    )
    assert first.shape == (240, 320, 3)
    assert np.abs(first - lifted).mean() > 5  # the robot has moved, and so has what it sees


def test_frames_of_the_run_are_preferred(capsys, tmp_path):
    run = write_run(tmp_path / "run", ["success"])
    frames = recording_folder(run, "pick_000") / "frames"
    frames.mkdir(parents=True)
    for step in range(LAST + 1):
        Image.new("RGB", (640, 480), (200, 0, 0)).save(frames / f"{step:05d}.jpg")
    assert proctor(capsys, "report", run)[0] == 0
    (row,) = data_of(run / "report.html")["results"]
    assert row["framed"] == "recorded"
    assert [step for step, _ in row["frames"]] == [0, REACHED, GRASPED, LIFTED, PLACED, LAST]
    assert proctor(capsys, "report", run, "--png", "pick_000", "--out", tmp_path / "e.png")[0] == 0
    with Image.open(tmp_path / "e.png") as picture:
        assert (picture.format, picture.width) == ("PNG", 1800)
        red = np.all(np.abs(np.asarray(picture.convert("RGB")).astype(int) - (200, 0, 0)) < 6, axis=2)
    assert red.mean() > 0.35  # six large frames


@pytest.mark.parametrize("view", ["top", "side"])
def test_the_hand_is_drawn_in_the_colours_of_its_phases(driven, view):
    episode, result = driven
    side = side_of(result.pick_place)
    paths = Paths(result, result.pick_place, episode, side, shapes_of(episode, side)[0], [])
    axes = new_figure(800, 600).add_axes((0, 0, 1, 1))
    draw_view(axes, paths, view)
    pixels = np.asarray(image_of(axes)).reshape(-1, 3)
    colors = {phase: ImageColor.getrgb(color) for phase, color in PHASE_COLORS.items()}
    seen = {phase for phase, color in colors.items() if (pixels == color).all(axis=1).sum() > 40}
    assert seen == {"reach", "grasp", "lift", "place"} - ({"lift"} if view == "top" else set())  # it goes up


def test_the_film_strip_needs_neither_pictures_nor_the_episode(driven):
    episode, result = driven
    strip = film_strip(result, episode, KeyFrames([], "none", "No pictures."), policy="script")
    bare = film_strip(result, None, KeyFrames([], "none"))
    assert strip.width == bare.width
    assert strip.height > bare.height  # by the note


def test_a_real_run_gets_its_report_and_picture(capsys, tmp_path, driven):
    episode, result = driven
    dataset = tmp_path / "episodes.json"
    save_dataset([episode], dataset)
    run = write_run(tmp_path / "run", ["success"], dataset=dataset, policy="script")
    (run / "episodes.jsonl").write_bytes(msgspec.json.encode(result) + b"\n")
    assert proctor(capsys, "report", run)[0] == 0
    (row,) = data_of(run / "report.html")["results"]
    assert (row["framed"], row["framing"], len(row["frames"])) == ("replayed", "", 6)
    file = tmp_path / "film.png"
    code, out, _ = proctor(capsys, "report", run, "--png", "pick_real", "--out", file)
    assert code == 0
    assert f"Picture: {file}" in out.replace("\n", "")
    with Image.open(file) as picture:
        assert len(picture.convert("RGB").getcolors(picture.width * picture.height)) > 2000
