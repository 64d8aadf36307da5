"""What is said of pick-and-place episodes before the first one begins, in the real world."""

import pytest
import trimesh
from pick_place_records import BOWL, CUP, TABLE, record, write

from proctor.cli import main
from proctor.core.errors import InvalidFile
from proctor.core.registry import build
from proctor.exams.checked_dataset import examine
from proctor.exams.pick_place.env import PickPlaceEnv
from proctor.exams.pick_place.episode import PickAndPlaceEpisode
from proctor.exams.pick_place.exam import PickPlaceExam
from vln_evaluator.evaluators import PickPlaceEvaluator

OVERLAP = {"scene_objects": [TABLE, CUP, BOWL | {"position": [0.5, 0.02, 0.8]}]}
SHORT = {"sim_params": {"max_steps": 1}}


def run(capsys, folder, *records):
    file = write(folder, *records)
    out = folder / "out"
    options = ["--policy", "hold", "--out", str(out), "--env-option", "sensors=[]"]
    code = main(["run", "--dataset", str(file), *options])
    captured = capsys.readouterr()
    return code, " ".join(captured.out.split()), captured.err, out


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (OVERLAP, ["'cup_red'", "'bowl_blue'", "mm inside each other"]),
        (
            {"scene_objects": [TABLE, CUP, BOWL | {"position": [2.0, 2.0, -1.0]}]},
            ["the floor and 'bowl_blue'"],
        ),
        (
            {"scene_objects": [TABLE, CUP, BOWL | {"name": "base_link", "shape": {"kind": "bowl"}}]},
            ["call the"],
        ),
        ({"scene_objects__1__scale": [0.001] * 3}, ["scene_objects[1]", "expected 0.005 to 5.0 m"]),
    ],
)
def test_what_cannot_be_put_up_is_told_with_its_file_and_nothing_is_written(capsys, tmp_path, changes, words):
    code, _, error, out = run(capsys, tmp_path, record(**changes))
    assert code == 2
    assert error.startswith(f"error: {tmp_path}")
    assert "episode '" in error
    assert error.count("\n") == 1
    assert all(word in error for word in words)
    assert not out.exists()


def test_the_api_names_the_file_too(tmp_path):
    file = write(tmp_path, record(**OVERLAP))
    with (
        PickPlaceEvaluator(
            PickPlaceEnv(sensors=[]), build("policy", "hold", {}, PickPlaceExam.baselines)
        ) as evaluator,
        pytest.raises(InvalidFile, match=r"episodes\.json: episode 'stretch_pick_place_001': at the start"),
    ):
        evaluator.evaluate_dataset(file)


def test_all_episodes_that_cannot_start_are_told_at_once(capsys, tmp_path):
    code, _, error, _ = run(
        capsys, tmp_path, record(), *(record(episode_id=f"b{i}", **OVERLAP) for i in (0, 1))
    )
    assert code == 2
    assert "2 of 3 episodes cannot start" in error
    assert "'b0'" in error
    assert "'b1'" in error


def test_check_dataset_finds_them_too_and_drops_them(tmp_path):
    checked = examine(write(tmp_path, record(), record(episode_id="b", **OVERLAP)))
    (item,) = [item for item in checked.findings.items if item.severity == "error"]
    assert (item.kind, item.places, item.remedy) == ("cannot-start", ["episodes[1]"], "dropped")
    assert "inside each other" in item.text
    assert "episode" not in item.text


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"task_goal__target_location__position": [0.7, 0.2, 1.6]}, "its target is higher than the hand"),
        ({"task_goal__success_criteria__lift_height": 5.0}, "lifted by lift_height"),
        ({"task_goal__target_location__position": [60.0, 0.2, 0.8]}, "its target is 60.0 m away"),
    ],
)
def test_what_no_agent_can_do_is_allowed_and_told_before_the_run(capsys, tmp_path, changes, words):
    code, out, _, _ = run(capsys, tmp_path, record(**SHORT | changes))
    assert code == 0
    assert "1 of 1 episodes cannot be done" in out
    assert words in out


def test_what_was_assumed_of_things_is_told(capsys, tmp_path):
    square = [[0, 0, 0], [0.05, 0, 0], [0, 0.05, 0], [0, 0, 0.05], [0, -0.05, 0.02]]
    fan = trimesh.Trimesh(square, [[0, 1, 2], [0, 1, 3], [0, 1, 4]], process=False)
    fan.export(tmp_path / "fan.stl")
    cup = CUP | {"usd_path": "objects/cup_red.usd"}
    items = [TABLE, cup, {"name": "fan", "usd_path": "fan.stl", "position": [0.3, 0.2, 0.8]}]
    items.append({**items[2], "name": "fan2", "position": [0.3, -0.2, 0.8]})
    goal = {"task_goal__target_location": {"type": "container", "object_name": "fan"}}
    code, out, _, _ = run(capsys, tmp_path, record(scene_objects=items, **SHORT, **goal))
    assert code == 0
    assert "note: episode 'stretch_pick_place_001': 'fan.stl' is not manifold" in out
    assert "nothing is known of the inside of 'fan'" in out
    assert "there is no file 'objects/cup_red.usd'" in out


@pytest.mark.parametrize(
    ("item", "words"),
    [
        ({"position": [0.5, 0.0, 1.0]}, "'cup_red' moves 0.20 m before"),
        ({"position": [5.0, 5.0, 80.0]}, "'cup_red' is still moving when"),
        (
            {"shape": {"kind": "box", "size": [0.01, 0.01, 0.3]}, "rotation": [0.15, 0, 0, 0.9887]},
            "falls over",
        ),
    ],
)
def test_what_does_not_stay_where_it_was_put_is_told(item, words):
    goal = {"target_object": {"name": "cup_red"}}
    episode = PickAndPlaceEpisode("a", scene_objects=[TABLE, CUP | item], task_goal=goal)
    notes = PickPlaceEnv(sensors=[]).check([episode])
    assert any(words in note and note.startswith("episode 'a': ") for note in notes), notes
