"""Prediction files: written for others, read from others, scored as a run."""

import json
import math

import msgspec
import pytest
import vlnce_files
from running import finished

from proctor.core.errors import InvalidFile, UserError
from proctor.core.types import Action, Vector3
from proctor.exams.datasets import load_dataset, save_dataset
from proctor.exams.vln.episode import Episode, Origin
from proctor.exams.vln.exam import VlnExam
from proctor.exams.vln.foreign_results import read_vlnce_results
from proctor.exams.vln.predictions import read_predictions, write_predictions
from proctor.report.tables import score_notes
from proctor.runs.folder import RunFolder
from proctor.runs.scoring import score_predictions
from vln_evaluator.evaluators import evaluate_vln


def expert(document, gt):
    """Return the predictions of an agent that drives along the gt."""
    predictions = {}
    for record in document["episodes"]:
        truth = gt[str(record["episode_id"])]
        _, y, _, w = record["start_rotation"]
        heading, moves = 2 * math.atan2(y, w), 0
        states = [{"position": truth["locations"][0], "heading": heading, "stop": False}]
        for action in truth["actions"]:
            heading += math.radians(15) * ((action == 2) - (action == 3))
            moves += action == 1
            states.append({"position": truth["locations"][moves], "heading": heading, "stop": action == 0})
        predictions[str(record["episode_id"])] = states
    return predictions


@pytest.fixture
def r2r(tmp_path):
    document, gt = vlnce_files.r2r()
    return load_dataset(vlnce_files.write_split(tmp_path, document, gt)), expert(document, gt)


def score(tmp_path, dataset, predictions, out=None):
    return score_predictions(vlnce_files.write(tmp_path / "predictions.json", predictions), dataset, out)


def test_the_expert_scores_as_an_expert(tmp_path, r2r):
    dataset, predictions = r2r
    results, notes = score(tmp_path, dataset, predictions)
    metrics = results.summary.metrics
    assert metrics["success"].mean == metrics["ndtw"].mean == metrics["sdtw"].mean == 1.0
    assert metrics["cls"].mean == pytest.approx(1.0)
    assert results.summary.distance == "euclidean"
    assert any("measured by straight-line distance" in note for note in notes)
    episode = dataset.episodes[0]
    assert results.episodes[0].actions == [int(action) for action in episode.reference_actions]
    assert results.episodes[0].metrics["steps"] == len(episode.reference_actions)


def test_what_a_file_cannot_tell_is_not_measured(tmp_path, r2r):
    results, _ = score(tmp_path, *r2r)
    assert not {"collisions", "collision_rate"} & results.summary.metrics.keys()


def test_missing_predictions_are_failures_and_extra_ones_are_named(tmp_path, r2r):
    dataset, predictions = r2r
    del predictions["2"]
    predictions["99"] = predictions["1"]
    results, notes = score(tmp_path, dataset, predictions)
    assert results.summary.success_rate == pytest.approx(8 / 9)
    assert results.summary.failure_reasons == {"no_prediction": 1}
    assert results.summary.error_counts == {"agent": 1, "evaluator": 0}
    assert results.episodes[1].metrics["success"] == 0.0
    assert any("1 of 9 episodes have no prediction, first '2'" in note for note in notes)
    assert any("of no episode of this dataset and ignored: 99" in note for note in notes)


def test_an_episode_without_a_prediction_earns_nothing_even_if_it_starts_at_its_goal(tmp_path):
    document, gt = vlnce_files.r2r()
    near = document["episodes"][1]
    x, y, z = near["start_position"]
    near["goals"][0]["position"] = [x + 1.0, y, z]
    near["info"]["geodesic_distance"] = 1.0
    dataset = load_dataset(vlnce_files.write_split(tmp_path, document, gt))
    predictions = expert(document, gt)
    del predictions["2"]
    results, notes = score(tmp_path, dataset, predictions)
    metrics = results.episodes[1].metrics
    names = ("success", "success_at_0.2m", "oracle_success", "spl", "ndtw", "sdtw", "cls")
    assert {name: metrics[name] for name in names} == dict.fromkeys(names, 0.0)
    assert metrics["navigation_error"] == pytest.approx(1.0)  # how far the start is, not 0: less is better
    assert results.summary.metrics["ndtw"].mean == pytest.approx(8 / 9)
    assert any("earn 0 in every score" in note for note in notes)


def around_a_corner(tmp_path, stored_m):
    """Return episodes around a corner, 3 m and 3 m, and the predictions of their expert."""
    document, gt = vlnce_files.r2r(3)
    actions = [1] * 12 + [2] * 6 + [1] * 12 + [0]
    for record in document["episodes"]:
        _, y, _, w = record["start_rotation"]
        heading_deg = math.degrees(2 * math.atan2(y, w))
        locations = vlnce_files.drive(record["start_position"], heading_deg, actions, turn_deg=15)
        record["goals"][0]["position"] = locations[-1]
        record["info"] = {} if stored_m is None else {"geodesic_distance": stored_m}
        gt[str(record["episode_id"])] = {"locations": locations, "actions": actions, "forward_steps": 24}
    return load_dataset(vlnce_files.write_split(tmp_path, document, gt)), expert(document, gt)


def test_without_scenes_spl_goes_by_the_distance_that_the_dataset_stores(tmp_path):
    dataset, predictions = around_a_corner(tmp_path, 5.7)
    results, notes = score(tmp_path, dataset, predictions, tmp_path / "run")
    for result in results.episodes:
        assert result.metrics["spl"] == pytest.approx(5.7 / 6.0)
        assert result.shortest_path == "dataset"
    assert any(note.startswith("SPL is measured by the path distances") for note in notes)
    assert not any("SPL, navigation error" in note for note in notes)
    written = json.loads((tmp_path / "run" / "results.json").read_text())
    assert (written["summary"]["distance"], written["summary"]["shortest_path"]) == ("euclidean", "dataset")
    assert "SPL by the path distances that the dataset stores" in score_notes(VlnExam, {"mine": results})


@pytest.mark.parametrize("stored_m", [None, 0.0, -3.0, 4.1])
def test_a_stored_distance_that_cannot_be_is_not_used(tmp_path, stored_m):
    results, _ = score(tmp_path, *around_a_corner(tmp_path, stored_m))
    result = results.episodes[0]
    assert result.metrics["spl"] == pytest.approx(math.hypot(3, 3) / 6.0)
    assert (result.shortest_path, results.summary.shortest_path) == (msgspec.UNSET, msgspec.UNSET)


def test_a_count_of_collisions_is_not_made_up(tmp_path, r2r):
    results, _ = score(tmp_path, *r2r, tmp_path / "run")
    assert results.avg_collision_count is None
    lines = (tmp_path / "run" / "episodes.jsonl").read_text().splitlines()
    assert all(json.loads(line)["collision_count"] is None for line in lines)
    assert finished(tmp_path / "run").keys() == {e.episode_id for e in r2r[0].episodes}


def test_predictions_for_another_version_of_the_dataset_are_noticed(tmp_path, r2r):
    dataset, predictions = r2r
    _, notes = score(tmp_path, dataset, predictions)
    assert not any("heading" in note for note in notes)
    for turned, states in enumerate(predictions.values()):
        for state in states:
            state["heading"] += math.radians(12 + turned)
    _, notes = score(tmp_path, dataset, predictions, tmp_path / "run")
    (told,) = [note for note in notes if "heading" in note]
    assert told.startswith(
        "9 of 9 predictions begin with another heading than their episodes, first that of '1'"
    )
    assert "by 12 degrees: the episodes look like R2R-CE v1-3, the predictions like v1-2" in told
    assert told in json.loads((tmp_path / "run" / "manifest.json").read_text())["notes"]


def test_without_stop_it_is_a_failure_and_nothing_counts_after_stop(tmp_path, r2r):
    dataset, predictions = r2r
    for state in predictions["1"]:
        state["stop"] = False
    predictions["2"].append({"position": [900.0, 0.0, 0.0], "heading": 0.0, "stop": False})
    results, _ = score(tmp_path, dataset, predictions)
    assert (results.episodes[0].success, results.episodes[0].failure_reason) == (False, "no_stop")
    assert results.episodes[1].success
    assert results.episodes[1].metrics["path_length"] < 100


def test_a_stop_in_the_first_state_is_one_at_the_start(tmp_path, r2r):
    dataset, predictions = r2r
    predictions["1"] = [{**predictions["1"][0], "stop": True}, *predictions["1"][1:]]
    predictions["2"] = [{**predictions["2"][0], "stop": True}]
    results, _ = score(tmp_path, dataset, predictions)
    for result in results.episodes[:2]:
        assert (result.actions, result.failure_reason) == ([Action.STOP], "stopped_far")
        assert result.trajectory[0] == result.trajectory[-1]


def test_states_beyond_the_step_limit_do_not_count(tmp_path, r2r):
    dataset, predictions = r2r
    first = predictions["1"][0]
    predictions["1"] = [first] * 500 + predictions["1"]
    results, _ = score(tmp_path, dataset, predictions)
    assert results.episodes[0].steps == 500
    assert results.episodes[0].failure_reason == "timeout"


def test_a_run_folder_is_written_once_and_not_over_another(tmp_path, r2r):
    dataset, predictions = r2r
    for _ in range(2):
        results, _ = score(tmp_path, dataset, predictions, tmp_path / "run")
    assert len((tmp_path / "run" / "episodes.jsonl").read_text().splitlines()) == 9
    assert finished(tmp_path / "run").keys() == {e.episode_id for e in results.episodes}
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    assert manifest["identity"]["env"] == "predictions"
    assert manifest["source"]["dataset"] == str(dataset.path)
    del predictions["1"]
    with pytest.raises(UserError, match="holds a different run"):
        score(tmp_path, dataset, predictions, tmp_path / "run")


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda p: p["1"][0].update(position=[0.0, 50.0, 0.0]), r"1: begins .* m from the episode's start"),
        (lambda p: p["1"][2].update(position=[0.0, 1.0]), r"1\[2\]\.position: Expected `array` of length 3"),
        (lambda p: p["1"][2].update(position=[0, 1e300, 0]), r"1\[2\]\.position: expected numbers within"),
        (lambda p: p["1"][2].pop("position"), r"1\[2\]: .*missing.*`position`"),
        (lambda p: p["1"].clear(), r"1: expected at least the start state"),
        (lambda p: p.update({"1": {}}), "not a predictions file"),
    ],
)
def test_broken_predictions_are_refused_with_their_place(tmp_path, r2r, change, complaint):
    dataset, predictions = r2r
    change(predictions)
    with pytest.raises(InvalidFile, match=complaint):
        score(tmp_path, dataset, predictions)


def test_predictions_of_another_dataset_and_withheld_goals_are_refused(tmp_path, r2r):
    dataset, predictions = r2r
    with pytest.raises(InvalidFile, match="no prediction is of an episode"):
        score(tmp_path, dataset, {f"x{key}": states for key, states in predictions.items()})
    hidden = vlnce_files.without_goals(vlnce_files.r2r()[0])
    test = load_dataset(vlnce_files.write_split(tmp_path, hidden, split="test"))
    with pytest.raises(UserError, match="9 of 9 episodes have no goal"):
        score(tmp_path, test, predictions)


def test_rxr_lines_are_scored_by_instruction_id_and_end_with_a_stop(tmp_path):
    document, gt = vlnce_files.rxr()
    dataset = load_dataset(vlnce_files.write_split(tmp_path, document, gt, role="guide"))
    lines = [
        {"instruction_id": int(r["instruction"]["instruction_id"]), "path": gt[r["episode_id"]]["locations"]}
        for r in document["episodes"]
    ]
    file = tmp_path / "rxr.jsonl"
    file.write_text("\n".join(map(json.dumps, lines)))
    results, notes = score_predictions(file, dataset)
    assert results.summary.metrics["success"].mean == results.summary.metrics["ndtw"].mean == 1.0
    assert "steps" not in results.summary.metrics
    assert any("hold no STOP" in note for note in notes)
    file.write_text("\n".join(map(json.dumps, [*lines, lines[0]])))
    with pytest.raises(InvalidFile, match=r"line 9: the instruction id \d+ stands twice"):
        read_predictions(file)
    file.write_text(json.dumps(lines[0]) + "\n{}")
    with pytest.raises(InvalidFile, match="line 2: expected"):
        read_predictions(file)


@pytest.fixture
def driven(tmp_path):
    origin = Origin(format="rxr-ce", scene_id="mp3d/s/s.glb", instruction_id="70")
    episode = Episode(
        episode_id="a",
        scene_id="s",
        start_position=Vector3(1, 2, 0.5),
        start_rotation=Vector3(0, 0, 90),
        goal_position=Vector3(1, 3, 0.5),
        reference_actions=[Action.FORWARD, Action.LEFT, Action.FORWARD, Action.STOP],
        origin=origin,
    )
    second = msgspec.structs.replace(
        episode, episode_id="b", origin=msgspec.structs.replace(origin, instruction_id="8")
    )
    save_dataset([episode, second], tmp_path / "episodes.json")
    return evaluate_vln(tmp_path / "episodes.json", env="mock", policy="replay").episodes


def test_a_run_is_written_in_habitats_axes_from_the_start_to_the_stop(tmp_path, driven):
    write_predictions(driven, tmp_path / "p.json", format_="r2r", instruction_ids={})
    states = json.loads((tmp_path / "p.json").read_text())["a"]
    assert states[0] == {"position": [1.0, 0.5, -2.0], "heading": pytest.approx(0, abs=1e-5), "stop": False}
    assert states[1]["position"] == pytest.approx([1.0, 0.5, -2.25])
    assert states[2]["heading"] == pytest.approx(math.radians(15), abs=1e-5)
    assert [state["stop"] for state in states] == [False] * 4 + [True]
    prediction = read_predictions(tmp_path / "p.json").by_id["a"]
    assert prediction.positions == driven[0].trajectory
    assert prediction.yaws == pytest.approx(driven[0].headings)
    assert prediction.stop_at == 4


def test_a_run_without_headings_cannot_be_written_for_r2r(tmp_path, driven):
    old = [msgspec.structs.replace(result, headings=[]) for result in driven]
    with pytest.raises(UserError, match="'a': no headings are recorded"):
        write_predictions(old, tmp_path / "p.json", format_="r2r", instruction_ids={})


def test_rxr_lines_hold_changed_positions_sorted_by_number(tmp_path, driven):
    write_predictions(driven, tmp_path / "p.jsonl", format_="rxr", instruction_ids={"a": "70", "b": "8"})
    lines = [json.loads(line) for line in (tmp_path / "p.jsonl").read_text().splitlines()]
    assert [line["instruction_id"] for line in lines] == [8, 70]
    assert len(lines[0]["path"]) == 3
    with pytest.raises(UserError, match="'b': expected a number as its instruction id, found none"):
        write_predictions(driven, tmp_path / "p.jsonl", format_="rxr", instruction_ids={"a": "70"})


def test_result_files_of_vlnce_keep_what_is_missing_missing(tmp_path):
    path = tmp_path / "stats_ckpt_3_val_unseen.json"
    path.write_text('{"success": 0.25, "distance_to_goal": NaN, "spl": 0.2, "steps_taken": 71.5}')
    means = read_vlnce_results(path)
    assert means.means == {"success": 0.25, "spl": 0.2, "steps": 71.5}
    assert (means.episodes, means.ignored) == ({}, ["navigation_error"])
    records = {
        "7": {"success": 1.0, "distance_to_goal": 2.0, "collisions": {"count": 3, "is_collision": False}},
        "8": {"success": 0.0, "distance_to_goal": 4.0, "ndtw": 0.5, "note": "x"},
    }
    path.write_text(json.dumps(records))
    results = read_vlnce_results(path)
    assert results.means == {"success": 0.5, "navigation_error": 3.0, "collisions": 3.0, "ndtw": 0.5}
    assert results.episodes["8"] == {"success": 0.0, "navigation_error": 4.0, "ndtw": 0.5}
    assert results.ignored == ["note"]
    many = "1" + 400 * "0"
    for odd in ("NaN", "Infinity", "1e999", many):
        path.write_text(f'{{"success": 0.25, "num_episodes": {odd}, "spl": {odd}}}')
        assert (read_vlnce_results(path).n, read_vlnce_results(path).means) == (None, {"success": 0.25})
    path.write_text('{"1": {"success": 1, "spl": 1e308}, "2": {"success": 0, "spl": 1e308}}')
    assert read_vlnce_results(path).means == {"success": 0.5}
    for content in ("[]", "{}", '{"loss": 3}', "{"):
        path.write_text(content)
        with pytest.raises(InvalidFile, match="stats_ckpt_3"):
            read_vlnce_results(path)


def test_jumps_and_ways_through_walls_are_told_and_kept(tmp_path):
    wall = {"name": "wall", "translate": [2, 0, 1], "parts": [{"shape": "box", "size": [0.1, 8, 2]}]}
    vlnce_files.write(tmp_path / "scenes" / "s.json", {"scene_name": "s", "objects": [wall]})
    episodes = [
        Episode(episode_id=name, scene_id="s", goal_position=Vector3(4, 0, 0), instruction="Go.")
        for name in "ab"
    ]
    save_dataset(episodes, tmp_path / "episodes.json")
    through = [[0.25 * i, 0.0, 0.0] for i in range(17)]
    around = [[0.0, 0.0, 0.0], [0.0, 0.0, 5.0], [4.0, 0.0, 5.0], [4.0, 0.0, 0.0]]
    paths = {"a": through, "b": around}
    predictions = {
        key: [{"position": p, "stop": index == len(path) - 1} for index, p in enumerate(path)]
        for key, path in paths.items()
    }
    _, notes = score(tmp_path, load_dataset(tmp_path / "episodes.json"), predictions, tmp_path / "run")
    odd = [note for note in notes if "first: " in note]
    assert odd[0] == "1 predictions have steps longer than 0.5 m (first: b, 5.0 m)"
    assert odd[1].startswith(
        "1 paths are shorter than the shortest way: they pass through walls (first: a, 4.0 m"
    )
    assert json.loads((tmp_path / "run" / "manifest.json").read_text())["notes"] == odd
    assert RunFolder.open(tmp_path / "run").notes == odd
