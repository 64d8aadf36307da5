"""`check-dataset` on pick-and-place: everything that is odd at once, and a copy without it."""

import json

import pytest
from pick_place_records import BOWL, CUP, EXAMPLE, TABLE, record, write

from proctor.cli import main
from proctor.core.errors import UserError
from proctor.exams.checked_dataset import examine, write_fixed
from proctor.exams.datasets import load_dataset


def findings(checked):
    return {item.kind: item for item in checked.findings.items}


def found(checked, kind):
    return [place.partition("]")[0] + "]" for place in findings(checked)[kind].places]


def in_bowl(**changes):
    location = {"type": "container", "object_name": "bowl_blue"}
    things = {"scene_objects": [TABLE, CUP, BOWL], "task_goal__target_location": location}
    return record(**(things | changes))


def test_the_documents_own_example_is_sound():
    checked = examine(EXAMPLE)
    assert (checked.exam.name, checked.format, len(checked.episodes)) == ("pick_and_place", "native", 1)
    told = {kind: item.severity for kind, item in findings(checked).items()}
    assert told == {"no-reference": "note", "put-up": "note"}  # its files are not there: made things stand in


def test_every_mistake_is_told_not_only_the_first(tmp_path):
    twice_wrong = record(
        episode_id="b",
        scene_objects__1__graspable=False,
        task_goal__target_object__initial_position=[0, 0, 0],
    )
    checked = examine(write(tmp_path, record(), twice_wrong, {"episode_id": "c", "task_goal": {}}))
    texts = {item.text: item.places for item in checked.findings.items if item.severity == "error"}
    assert sorted(place for places in texts.values() for place in places) == [
        "episodes[1].scene_objects[1].graspable",
        "episodes[1].task_goal.target_object.initial_position",
        "episodes[2]",
    ]
    assert list(checked.episodes) == [0]


def test_a_nan_is_told_with_its_place(tmp_path):
    path = write(tmp_path, record(), record(episode_id="b"))
    first, _, second = path.read_text().rpartition("0.05")
    path.write_text(f"{first}NaN{second}")
    (item,) = [item for item in examine(path).findings.items if item.severity == "error"]
    assert item.places == ["episodes[1].task_goal.success_criteria.place_tolerance"]
    assert item.text == "NaN is not allowed, expected a finite number"


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        ("empty-instruction", {"instruction": {"text": " \u200b"}}),
        ("empty-instruction", {"instruction": ...}),
        ("start-at-goal", {"task_goal__target_location__position": [0.5, 0.04, 0.8]}),
        ("out-of-reach", {"task_goal__target_location__position": [0.7, 0.2, 1.2]}),
        ("physics", {"sim_params__physics_engine": "physx"}),
    ],
)
def test_what_is_odd_is_told(tmp_path, kind, changes):
    checked = examine(write(tmp_path, record(), record(episode_id="b", **changes)))
    assert found(checked, kind) == ["episodes[1]"]
    assert kind not in findings(examine(write(tmp_path, record())))


def test_an_object_on_a_high_shelf_is_out_of_reach(tmp_path):
    high = {"scene_objects__1__position": [0.5, 0, 1.2], "task_goal__target_object__initial_position": ...}
    assert found(examine(write(tmp_path, record(**high))), "out-of-reach") == ["episodes[0]"]


def test_a_container_that_is_elsewhere_is_odd(tmp_path):
    near, far = {"position": [0.75, 0.2, 0.8]}, {"position": [0.85, 0.2, 0.8]}
    location = {"type": "container", "object_name": "bowl_blue"}
    records = [
        in_bowl(episode_id="near", task_goal__target_location=location | near),
        in_bowl(episode_id="far", task_goal__target_location=location | far),
    ]
    assert found(examine(write(tmp_path, *records)), "container-elsewhere") == ["episodes[1]"]


def test_the_same_words_for_other_goals_are_odd_only_in_the_same_scene(tmp_path):
    moved = CUP | {"position": [0.4, 0.0, 0.8]}
    records = [
        in_bowl(episode_id="a"),
        in_bowl(episode_id="b", task_goal__success_criteria__lift_height=0.2),
        in_bowl(
            episode_id="other scene",
            scene_objects=[TABLE, moved, BOWL],
            task_goal__target_object__initial_position=...,
            task_goal__success_criteria__lift_height=0.3,
        ),
        in_bowl(episode_id="other words", instruction={"text": "Lift the cup."}),
    ]
    checked = examine(write(tmp_path, *records))
    assert found(checked, "equal-instruction") == ["episodes[0]", "episodes[1]"]
    assert "duplicate" not in findings(checked)
    checked = examine(write(tmp_path, *records, in_bowl(episode_id="twin", split="val")))
    assert found(checked, "duplicate") == ["episodes[4]"]
    assert "equal-instruction" not in findings(
        examine(write(tmp_path, records[0], in_bowl(episode_id="twin")))
    )


@pytest.mark.parametrize("shape", [lambda e: e, lambda e: [e], lambda e: {"episodes": [e], "extra": 1}])
def test_a_corrected_copy_loads_whatever_the_shape(tmp_path, shape):
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(shape(record(episode_id=7))))
    fixed = write_fixed(examine(path), tmp_path / "out" / "fixed.json")
    (episode,) = load_dataset(fixed.file).episodes
    assert episode.episode_id == "7"
    assert episode.assets_path == str(tmp_path)


def test_a_corrected_copy_has_no_broken_episodes_nor_ids_twice(tmp_path):
    records = [record(), record(), record(episode_id="broken", robot_config__dof=3), in_bowl(episode_id="d")]
    checked = examine(write(tmp_path, *records))
    fixed = write_fixed(checked, tmp_path / "fixed.json", drop=["duplicate"])
    ids = [episode.episode_id for episode in load_dataset(fixed.file).episodes]
    assert ids == ["stretch_pick_place_001", "d"]
    kept_twin = write_fixed(checked, tmp_path / "all.json").file
    assert load_dataset(kept_twin).episodes[1].episode_id == "stretch_pick_place_001_2"


def test_nothing_is_left_of_a_file_of_broken_episodes(tmp_path):
    checked = examine(write(tmp_path, record(robot_config__dof=3)))
    assert (checked.exam.name, checked.episodes) == ("pick_and_place", {})
    with pytest.raises(UserError, match="no episode would be left"):
        write_fixed(checked, tmp_path / "fixed.json")


def test_the_command_counts_what_there_is(tmp_path, capsys):
    records = [
        record(split="val"),
        in_bowl(episode_id="b"),
        record(episode_id="c", task_goal__target_location=...),
    ]
    assert main(["check-dataset", str(write(tmp_path, *records))]) == 0
    out = capsys.readouterr().out
    assert "splits: none 2, val 1" in out
    assert "success: grasp_and_lift 3" in out
    assert "targets: container 1, none 1, position 1" in out
    assert main(["check-dataset", str(write(tmp_path, record(robot_config__dof=3)))]) == 1
    assert "dof" in capsys.readouterr().out


def test_other_commands_take_it_or_say_why_not(tmp_path, capsys):
    source = str(write(tmp_path, record()))
    assert main(["convert", source, str(tmp_path / "deep" / "copy.json")]) == 0
    assert load_dataset(tmp_path / "deep" / "copy.json").episodes == load_dataset(tmp_path).episodes
    assert main(["convert", source, str(tmp_path / "out.json.gz"), "--to", "r2r-ce"]) == 2
    assert not (tmp_path / "out.json.gz").exists()
    predictions = tmp_path / "predictions.json"
    predictions.write_text("{}")
    assert main(["score", str(predictions), "--dataset", source]) == 2
    err = capsys.readouterr().err
    assert err.count("expected episodes of the task vln, found pick_and_place") == 2
