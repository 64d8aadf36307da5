"""Run folders that were edited by hand: every reader shows the same numbers and says what does not match."""

import json

import pytest

from proctor import cli
from proctor.core.types import Vector3
from proctor.exams.datasets import save_dataset
from proctor.exams.results import EpisodeResult
from proctor.exams.vln.episode import Episode
from proctor.exams.vln.verdict import goal_distance
from proctor.plots import trajectory


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A finished run of three episodes as its files, since tests change them."""
    folder = tmp_path_factory.mktemp("exam")
    episodes = [
        Episode(
            episode_id=f"ep_{i}",
            scene_id="s",
            goal_position=Vector3(1 + i, 0, 0),
            reference_path=[Vector3(0, 0, 0), Vector3(1 + i, 0, 0)],
            max_steps=6,
        )
        for i in range(3)
    ]
    save_dataset(episodes, folder / "episodes.json")
    words = ["run", "--dataset", folder / "episodes.json", "--policy", "forward", "--env", "mock"]
    assert cli.main([*map(str, words), "--out", str(folder / "run")]) == 0
    return folder / "run"


@pytest.fixture
def run(finished, tmp_path):
    (tmp_path / "run").mkdir()
    for name in ("manifest.json", "episodes.jsonl", "results.json"):
        (tmp_path / "run" / name).write_bytes((finished / name).read_bytes())
    return tmp_path / "run"


def edit_line(run, number, change):
    journal = run / "episodes.jsonl"
    lines = journal.read_text().splitlines()
    record = json.loads(lines[number])
    change(record)
    lines[number] = json.dumps(record)
    journal.write_text("\n".join(lines) + "\n")


def edit_results(run, change):
    results = json.loads((run / "results.json").read_text())
    change(results)
    (run / "results.json").write_text(json.dumps(results))


READERS = (
    lambda run: ("results", run),
    lambda run: ("report", run, "--frames", "none"),
    lambda run: ("compare", run, run),
    lambda run: ("results", run / "results.json"),
    lambda run: ("compare", run / "results.json", run),
)


def test_files_that_agree_are_shown_without_a_warning(proctor, run):
    for words in READERS:
        code, out, _ = proctor(*words(run))
        assert code == 0
        assert "episodes.jsonl" not in out


@pytest.mark.parametrize("file", ["episodes.jsonl", "results.json"])
def test_every_reader_names_the_file_the_episode_and_the_field_that_differ(proctor, run, file):
    if file == "episodes.jsonl":
        edit_line(run, 1, lambda record: record["metrics"].update(ndtw=0.123))
        said = "and 0.123 in episodes.jsonl"
    else:
        edit_results(run, lambda results: results["episodes"][1]["metrics"].update(ndtw=0.123))
        said = "episode 'ep_1': metrics.ndtw is 0.123 in results.json and"
    for words in READERS:
        code, out, _ = proctor(*words(run))
        assert code == 0
        assert "results.json and episodes.jsonl differ, so one of them was changed after the run" in out
        assert "episode 'ep_1': metrics.ndtw is" in out
        assert said in out
        assert "The numbers shown are those of episodes.jsonl" in out
    assert "episodes.jsonl differ" in (run / "report.html").read_text()


def test_readers_show_the_same_numbers_of_an_edited_folder(proctor, run):
    def lie(results):
        results["summary"]["metrics"]["ndtw"]["mean"] = 0.987
        results["summary"]["success_rate"] = 1.0

    edit_results(run, lie)
    _, table, _ = proctor("results", run)
    _, comparison, _ = proctor("compare", run, run)
    proctor("report", run, "--frames", "none")
    text = (run / "report.html").read_text()
    shown = json.loads(text.partition('id="data">')[2].partition("</script>")[0])["runs"][0]
    mean = shown["metrics"]["ndtw"][0]
    assert f"{mean:.2f}" in table
    assert "0.99" not in table
    assert f"{mean:.3f}" in comparison
    for out in (table, comparison):
        assert "summary.success_rate of results.json is 1, the episodes of episodes.jsonl give" in out


def test_predictions_are_written_from_what_all_readers_show_with_the_same_warning(proctor, run, tmp_path):
    edit_results(run, lambda results: results["episodes"][1]["metrics"].update(ndtw=0.123))
    code, out, _ = proctor("predictions", run, "--out", tmp_path / "p.json")
    assert code == 0
    assert "episode 'ep_1': metrics.ndtw is 0.123 in results.json and" in out
    (run / "episodes.jsonl").unlink()
    code, out, _ = proctor("predictions", run, "--out", tmp_path / "same.json")
    assert (code, "episodes.jsonl is missing or empty" in out) == (0, True)
    assert (tmp_path / "same.json").read_bytes() == (tmp_path / "p.json").read_bytes()


def test_an_episode_that_is_in_one_file_only_is_named(proctor, run):
    edit_results(run, lambda results: results["episodes"].pop())
    assert "episode 'ep_2' is only in episodes.jsonl" in proctor("results", run)[1]


def test_a_broken_or_missing_file_beside_a_good_one_is_a_warning(proctor, run):
    results = (run / "results.json").read_bytes()
    (run / "results.json").write_text("{")
    for words in READERS:
        code, out, _ = proctor(*words(run))
        assert code == 0
        assert "results.json: " in out
        assert "the numbers shown are those of episodes.jsonl" in out
    (run / "results.json").write_bytes(results)
    (run / "episodes.jsonl").unlink()
    for words in READERS[:3]:
        code, out, _ = proctor(*words(run))
        assert code == 0
        assert "episodes.jsonl is missing or empty; the numbers shown are those of results.json" in out


def test_episodes_done_again_since_results_were_written_are_told_and_not_called_edited(proctor, run):
    fault = {"side": "evaluator", "kind": "env_exception", "message": "lost"}

    def lose(results):
        results["episodes"][0] |= {"status": "error", "success": False, "error": fault, "metrics": {}}

    edit_results(run, lose)
    _, out, _ = proctor("results", run)
    assert "1 episodes were done again after results.json was written, first 'ep_0'" in out
    assert "was changed after the run" not in out


def huge_position(record):
    record["trajectory"][1]["x"] = 1e308


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda r: r["metrics"].update(spl=1e308), "metrics.spl: expected a number"),
        (lambda r: r["metrics"].update(spl=-3.0), "metrics.spl: expected a number from 0 to 1, found -3"),
        (lambda r: r["metrics"].update(steps=-1e300), "metrics.steps: expected a number within"),
        (lambda r: r.update(trajectory=[]), "trajectory: expected at least the start, found no point"),
        (lambda r: r.update(trajectory=r["trajectory"] * 2), "trajectory: expected 7 points"),
        (huge_position, "trajectory[1].x: expected a number within"),
        (lambda r: r.update(headings=[0.0]), "headings: expected 7, one for each point"),
        (lambda r: r.update(actions=[]), "actions: expected 6, the number of steps, found 0"),
        (lambda r: r.update(collision_steps=[99]), "collision_steps: expected steps from 1 to 6, found 99"),
        (lambda r: r.update(steps=-5), "steps: expected a number from 0 up, found -5"),
        (lambda r: r.update(final_distance_to_goal=1e308), "final_distance_to_goal: expected a number"),
        (lambda r: r.update(success=True), "success: expected what the status 'failure' says, found true"),
        (lambda r: r["timing"].update(act_s=[1e300]), "timing.act_s[0]: expected a number within"),
    ],
)
def test_what_no_exam_could_have_written_is_refused_with_its_place(proctor, run, change, complaint):
    edit_line(run, 0, change)
    for words in (*READERS[:3], lambda run: ("report", run, "--png", "ep_0")):
        code, _, err = proctor(*words(run))
        assert code == 2
        assert "episodes.jsonl: line 1: episode 'ep_0', " in err
        assert complaint in err


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"source": {"dataset": 5}}, "$.source.dataset"),
        ({"identity": {"env_options": []}}, "$.identity.env_options"),
        ({"identity": {"dataset_sha256": {}}}, "$.identity.dataset_sha256"),
        ({"identity": {"episodes": "3"}}, "$.identity.episodes"),
        ({"identity": {"privileged": "no"}}, "$.identity.privileged"),
        ({"identity": []}, "$.identity"),
    ],
)
def test_a_manifest_that_no_run_could_have_written_is_refused_with_its_place(proctor, run, change, place):
    manifest = json.loads((run / "manifest.json").read_text())
    (run / "manifest.json").write_text(json.dumps(manifest | change))
    for words in (*READERS[:3], lambda run: ("predictions", run, "--out", run / "p.json")):
        code, out, err = proctor(*words(run))
        said = " ".join((out + err).split())
        assert code == 2
        assert "manifest.json: not the manifest of a run: Expected" in said
        assert f"`{place}`" in said


def test_results_take_folders_of_runs_and_whatever_a_shell_expands_to(proctor, run):
    (run.parent / "report.html").write_text("<html>")
    (run.parent / "notes").mkdir()
    code, out, _ = proctor("results", run.parent)
    assert code == 0
    assert "forward" in out
    code, out, _ = proctor("results", *sorted(run.parent.iterdir()))
    assert code == 0
    assert "forward" in out
    assert f"left out: {run.parent / 'report.html'}: expected a run's folder or a .json file" in out
    assert f"left out: {run.parent / 'notes'} is not a run" in out
    assert proctor("results", run.parent / "notes")[0] == 2
    assert "no such file or folder" in proctor("results", run, run.parent / "nowhere")[2]


def test_results_follow_links_and_leave_out_a_damaged_run_among_others(proctor, run, tmp_path):
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / "one").symlink_to(run)
    damaged = tmp_path / "linked" / "two"
    damaged.mkdir()
    (damaged / "manifest.json").write_bytes((run / "manifest.json").read_bytes())
    (damaged / "episodes.jsonl").write_text("{}\n")
    code, out, _ = proctor("results", tmp_path / "linked")
    assert (code, "forward " in out) == (0, True)
    assert f"note: left out: {damaged / 'episodes.jsonl'}: line 1: not an episode record" in out
    code, _, err = proctor("results", damaged)
    assert (code, err.startswith(f"error: {damaged / 'episodes.jsonl'}: line 1")) == (2, True)


def test_results_say_what_is_not_scored_and_by_which_distance_it_would_be(proctor, run):
    error = {"side": "unavailable", "kind": "agent_unavailable", "message": "the API is down"}
    lost = {"error": error, "status": "error", "success": False, "failure_reason": "agent_unavailable"}
    for number in range(3):
        edit_line(run, number, lambda record: record.update(lost, metrics={}))
    (run / "results.json").unlink()
    code, out, _ = proctor("results", run)
    assert code == 0
    assert f"note: {run}: vln-ce, straight-line distance" in out
    assert f"note: {run}: 3 of 3 episodes lost because the agent was unavailable and left out\n" in out


def test_privileged_runs_have_a_star_in_results(proctor, run):
    manifest = json.loads((run / "manifest.json").read_text())
    manifest["identity"]["privileged"] = True
    (run / "manifest.json").write_text(json.dumps(manifest))
    _, out, _ = proctor("results", run)
    assert "forward*" in out
    assert "* knows the goal and its own position" in out


def test_a_rate_of_collisions_is_no_count_and_the_number_of_episodes_is_read(proctor, tmp_path):
    stats = tmp_path / "stats_ckpt_7_val_unseen.json"
    stats.write_text('{"success": 0.5, "distance_to_goal": 4.2, "collisions": 0.125, "num_episodes": 1839}')
    code, out, _ = proctor("results", stats)
    assert code == 0
    assert out.splitlines()[3].split()[1:] == ["1839", "50", "-", "-", "-", "-", "4.2", "-"]
    assert "0.125 bumps per step (its 'collisions' is a rate, not a count)" in out
    stats.write_text('{"1": {"success": 1, "collisions": {"count": 3, "is_collision": true}}}')
    assert proctor("results", stats)[1].splitlines()[3].split()[1:] == [
        "1",
        "100",
        "-",
        "-",
        "-",
        "-",
        "-",
        "3.0",
    ]


def test_everywhere_a_person_reads_a_distance_it_says_which(proctor, run, monkeypatch):
    """A path distance of 7.1 m: in the page, the picture and the tables."""

    def edit(record):
        record["distance"] = "geodesic"
        record["metrics"]["navigation_error"] = 7.1
        del record["verdict"]  # found again from the record

    for number in range(3):
        edit_line(run, number, edit)
    (run / "results.json").unlink()
    proctor("report", run, "--frames", "none")
    text = (run / "report.html").read_text()
    data = json.loads(text.partition('id="data">')[2].partition("</script>")[0])
    assert data["results"][0]["say"].endswith("7.1 m from the goal (path distance).")
    assert data["results"][0]["by"] == data["runs"][0]["distance"] == "path distance"
    titles = []
    monkeypatch.setattr(trajectory, "write_above", lambda _, lines, *a, **k: titles.extend(lines))
    assert proctor("report", run, "--png", "ep_0", "--out", run / "ep_0.png")[0] == 0
    assert titles == [("ep_0 · failed: timeout, 7.1 m from the goal (path distance)", 20)]
    assert "NE: path distance to the goal at the end." in proctor("compare", run, run)[1]
    assert "path distance" in proctor("results", run)[1]


def test_the_table_of_a_run_says_by_which_distance(finished, proctor):
    words = ["run", "--dataset", finished.parent / "episodes.json", "--policy", "forward", "--env", "mock"]
    _, out, _ = proctor(*words, "--out", finished)
    assert "NE: straight-line distance to the goal at the end" in out
    assert "euclidean" not in out


def test_a_navigation_error_that_is_the_straight_line_is_called_so():
    result = read_journal_record(distance="geodesic", final=5.75, error=5.75)
    assert str(goal_distance(result)) == "5.8 m from the goal (straight-line distance)"
    result = read_journal_record(distance="geodesic", final=5.75, error=7.1)
    assert str(goal_distance(result)) == "7.1 m from the goal (path distance)"


def read_journal_record(*, distance, final, error):
    return EpisodeResult(
        episode_id="e",
        scene_id="s",
        instruction="",
        status="failure",
        success=False,
        failure_reason="stopped_far",
        error=None,
        final_distance_to_goal=final,
        steps=0,
        collision_count=0,
        trajectory=[Vector3(0, 0, 0)],
        actions=[],
        metrics={"navigation_error": error},
        distance=distance,
        seed=0,
    )
