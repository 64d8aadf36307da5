"""Episodes of pick-and-place: what is read from files, what is refused, and what code may give."""

import gzip
import hashlib
import json
import math
from pathlib import Path

import numpy as np
import pytest
from pick_place_records import BOWL, CUP, EXAMPLE, TABLE, load, record, write

from proctor.core.errors import InvalidFile, UserError
from proctor.exams.datasets import load_dataset
from proctor.exams.pick_place.episode import PickAndPlaceEpisode
from proctor.scenes.tabletop_parts import InitPose, ReferenceTrajectory, SceneItem, TargetLocation, TaskGoal

CAMERA = {"position": [0, 0, 1], "width": 64, "height": 48, "fov": 60}
LOCATION = "task_goal.target_location"


def test_the_documents_own_example_loads():
    dataset = load_dataset(EXAMPLE)
    (episode,) = dataset.episodes
    assert (dataset.task, dataset.format, episode.task) == ("pick_and_place", "native", "pick_and_place")
    assert episode.episode_id == "stretch_pick_place_001"
    assert episode.item("cup_red").position == (0.5, 0.0, 0.8)
    assert episode.task_goal.target_location.position == (0.7, 0.2, 0.8)
    assert (episode.step_limit, episode.sim_params.physics_steps_per_set_point) == (500, 5)
    assert episode.assets_path == str(EXAMPLE.parent)
    assert dataset.digest == hashlib.sha256(EXAMPLE.read_bytes()).hexdigest()


@pytest.mark.parametrize("shape", [lambda e: {"episodes": [e]}, lambda e: [e], lambda e: e])
def test_a_file_may_be_a_document_a_list_or_one_episode(tmp_path, shape):
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(shape(record())))
    assert load_dataset(path).select() == load(tmp_path, record()).episodes
    path.write_text(json.dumps(shape(record(scene_objects__1__mass=-1))))
    with pytest.raises(
        InvalidFile, match=r"json: (episodes\[0\]\.|\[0\]\.)?scene_objects\[1\]\.mass: expect"
    ):
        load_dataset(path)


def test_a_packed_file_and_a_folder_are_datasets_too(tmp_path):
    write(tmp_path, record())
    assert len(load_dataset(tmp_path).episodes) == 1
    packed = tmp_path / "packed.json.gz"
    packed.write_bytes(gzip.compress(EXAMPLE.read_bytes()))
    assert load_dataset(packed).task == "pick_and_place"


def test_only_ids_goal_and_objects_are_needed(tmp_path):
    goal = {"target_object": {"name": "cup_red"}}
    (episode,) = load(tmp_path, {"episode_id": "a", "task_goal": goal, "scene_objects": [CUP]}).episodes
    assert episode.task_type == "pick_and_place"
    assert episode.scene_id == "table_setup_001"
    assert episode.robot_config.init_pose.joint_positions[3] == 0.5
    assert (episode.sim_params.max_steps, episode.sim_params.time_step) == (500, 0.01)
    assert episode.task_goal["target_object"]["initial_position"] == (0.5, 0.0, 0.8)


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"scene_objects": ...}, r"episodes\[1\]: the key 'scene_objects' is missing"),
        ({"task_goal__target_object": ...}, r"episodes\[1\]\.task_goal: the key 'target_object' is missing"),
        ({"scene_objets": []}, r"episodes\[1\]: unknown key 'scene_objets'; did you mean 'scene_objects'"),
        ({"task_goal__target_locatoin": {}}, r"task_goal: unknown key 'target_locatoin'; did you mean 'targ"),
        ({"task_type": "pick_and_plac"}, r"task_type: expected 'pick_and_place', found 'pick_and_plac'; did"),
        ({"episode_id": ""}, r"episodes\[1\]\.episode_id: expected a name"),
        ({"episode_id": 7}, r"episodes\[1\]\.episode_id: Expected `str`, got `int`"),
        ({"robot_config": None}, r"episodes\[1\]\.robot_config: Expected `object`, got `null`"),
        ({"robot_config__robot_type": "strech"}, r"robot_type: expected 'stretch', found 'strech'; did you"),
        ({"robot_config__dof": 10}, r"robot_config\.dof: expected 7, found 10"),
        (
            {"robot_config__camera_config": {"hed": CAMERA}},
            r"camera_config: expected head or wrist, found 'hed'",
        ),
        ({"robot_config__camera_config": {"head": CAMERA | {"fov": 0}}}, r"\.fov: expected 1 to 170 degrees"),
        (
            {"robot_config__camera_config": {"head": CAMERA | {"position": [0, 0, 1e9]}}},
            r"\.position: expected metres within ±10 of its mount",
        ),
        (
            {"sim_params__time_step": 0.03},
            r"time_step: expected a part of the control period of 0.1 s, found 0",
        ),
        ({"sim_params__max_steps": 0}, r"sim_params\.max_steps: expected 1 to 100000, found 0"),
        ({"instruction__text": "x" * 10_001}, r"instruction\.text: Expected `str` of length <= 10000"),
        ({"assets_path": "a\0b"}, r"episodes\[1\]\.assets_path: expected a folder"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(tmp_path, changes, complaint):
    with pytest.raises(InvalidFile, match=complaint):
        load(tmp_path, record(), record(**({"episode_id": "b"} | changes)))


@pytest.mark.parametrize(
    ("positions", "complaint"),
    [
        ([0.0] * 9, "expected 10 or 7 numbers, found 9"),
        ([0, 0, 0, 1.2, 0, 0, 0, 0, 0, 0], "joint_lift: expected 0 to 1.1, found 1.2"),
        ([0, 0, 0, 0.5, 0, -0.5, 0, 0, 0, 0], "joint_arm_l1: expected 0 to 0.13, found -0.5"),
        ([0, 0, 0, 0.5, 0.6, 0, 0], "arm: expected 0 to 0.52, found 0.6"),
        ([0, 0, 0, 0.5, 0, 1.9, 0], "wrist_yaw: expected -1.75 to 1.8, found 1.9"),
        ([0.6, 0, 0, 0.5, 0, 0, 0], "base_x: expected -0.5 to 0.5, found 0.6"),
    ],
)
def test_joints_start_within_their_limits(tmp_path, positions, complaint):
    place = r"episodes\[0\]\.robot_config\.init_pose\.joint_positions: "
    with pytest.raises(InvalidFile, match=place + complaint):
        load(tmp_path, record(robot_config__init_pose__joint_positions=positions))


def test_not_a_number_is_none_in_files_and_in_code(tmp_path):
    path = tmp_path / "nan.json"
    path.write_text(EXAMPLE.read_text().replace("0.0, 0.5, 0.0", "0.0, NaN, 0.0"))
    with pytest.raises(InvalidFile, match=r"joint_positions\[3\]: nan is not allowed"):
        load_dataset(path)
    with pytest.raises(ValueError, match=r"joint_lift: expected 0 to 1\.1, found nan"):
        InitPose(joint_positions=(0, 0, 0, math.nan, 0, 0, 0, 0, 0, 0))
    with pytest.raises(ValueError, match="position: expected numbers"):
        SceneItem(name="cup", position=(math.nan, 0, 0))


def test_a_heading_in_degrees_is_noticed(tmp_path):
    with pytest.raises(InvalidFile, match=r"init_pose\.base: expected a heading in radians.*found 90"):
        load(tmp_path, record(robot_config__init_pose__base=[0, 0, 90]))


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"scene_objects": []}, r"target_object\.name: 'cup_red' is not among the scene_objects"),
        ({"scene_objects__1__name": "cup_rde"}, r"\(table, cup_rde\); did you mean 'cup_rde'"),
        (
            {"scene_objects__1__graspable": ...},
            r"scene_objects\[1\]\.graspable: 'cup_red': expected graspabl",
        ),
        ({"scene_objects__1__static": True}, r"scene_objects\[1\]\.graspable: expected false for a thing th"),
        (
            {"scene_objects__1__static": True, "scene_objects__1__graspable": False},
            r"scene_objects\[1\]\.graspable: .* found graspable: false, static: true",
        ),
        (
            {"task_goal__target_object__initial_position": [0.5, 0.01, 0.8]},
            r"target_object\.initial_position: expected \[0\.5, 0\.0, 0\.8\] as in scene_obj",
        ),
        (
            {"task_goal__target_object__initial_rotation": [0, 0, 1, 0]},
            r"target_object\.initial_rotation: expected \[0\.0, 0\.0, 0\.0, 1\.0\] as in scene_objects\[1\]",
        ),
        (
            {"task_goal__target_object__initial_rotation": [0, 0, 0, 2]},
            r"initial_rotation: expected a unit q",
        ),
        ({"task_goal__target_object__usd_path": "x.usd"}, r"usd_path: expected 'objects/cup_red\.usd' as in"),
        (
            {"task_goal__success_criteria__place_tolerance": 0},
            r"place_tolerance: expected metres above 0, fo",
        ),
        ({"task_goal__success_criteria__place_tolerance": -0.1}, r"place_tolerance: expected metres above 0"),
        ({"task_goal__success_criteria__lift_height": 0}, r"lift_height: expected metres above 0"),
        (
            {"task_goal__success_criteria__type": "place"},
            r"expected 'grasp_and_lift' or 'place_at_location', ",
        ),
        ({"task_goal__target_location__radius": 0}, r"radius: expected metres above 0"),
    ],
)
def test_the_goal_must_fit_the_scene(tmp_path, changes, complaint):
    with pytest.raises(InvalidFile, match=complaint):
        load(tmp_path, record(**changes))


def test_the_same_rotation_may_be_written_in_two_ways(tmp_path):
    half = math.sqrt(0.5)
    turned = {
        "scene_objects__1__rotation": [0, 0, half, half],
        "task_goal__target_object__initial_rotation": [0, 0, -half, -half],
    }
    assert load(tmp_path, record(**turned)).task == "pick_and_place"


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"name": ""}, "found ''"),
        ({"name": "#3"}, "found '#3'"),
        ({"name": "cup\n"}, r"found 'cup\\n'"),
        ({"name": " cup"}, "found ' cup'"),
        ({"name": "c\x07up"}, r"found 'c\\x07up'"),
        ({"name": "x" * 201}, "of length <= 200"),
        ({"name": "cup_red"}, r"\.name: the name 'cup_red' is taken by scene_objects\[1\]"),
        ({"scale": [1, 0, 1]}, "scale: expected factors above 0"),
        ({"rotation": [0, 0, 0, 0]}, "rotation: expected a unit quaternion x, y, z, w"),
        ({"position": [0, 1]}, "of length 3"),
        ({"position": [0, 0, 1e3]}, "position: expected numbers within ±100"),
        ({"mass": 0}, "mass: expected 0.01 to 1000 kilograms"),
        ({"mass": 1e-6}, "mass: expected 0.01 to 1000 kilograms"),
        ({"usd_path": "../cup.usd"}, "usd_path: expected a file inside of the assets' folder"),
        ({"usd_path": ""}, "usd_path: expected a file inside of the assets' folder"),
        ({"usd_path": "..\\cup.usd"}, "usd_path: expected a file inside of the assets' folder"),
        ({"usd_path": "/cup.usd"}, "usd_path: expected a file inside of the assets' folder"),
        ({"usd_path": "a\0b"}, "usd_path: expected a file inside of the assets' folder"),
        ({"shape": {"kind": "cup", "size": [1, 1, 0]}}, r"shape\.size: expected metres from 0 to 100"),
        (
            {"fallback": {"kind": "cup", "size": [1, 1, 1e3]}},
            r"fallback\.size: expected metres from 0 to 100",
        ),
        ({"shape": {"knid": "cup"}}, "unknown key 'knid'; did you mean 'kind'"),
    ],
)
def test_things_must_make_sense(tmp_path, changes, complaint):
    with pytest.raises(InvalidFile, match=rf"episodes\[0\]\.scene_objects\[2\].*{complaint}"):
        load(tmp_path, record(scene_objects=[TABLE, CUP, BOWL | changes]))


def test_a_scene_has_at_most_200_things(tmp_path):
    crowd = [BOWL | {"name": f"bowl_{index}"} for index in range(199)]
    assert len(load(tmp_path, record(scene_objects=[CUP, *crowd])).episodes[0].scene_objects) == 200
    with pytest.raises(InvalidFile, match=r"scene_objects: Expected `array` of length <= 200"):
        load(tmp_path, record(scene_objects=[TABLE, CUP, *crowd]))


def test_placing_needs_a_place(tmp_path):
    aloft = record(task_goal__target_location=...)
    assert load(tmp_path, aloft).episodes[0].task_goal.target_location is None
    aloft["task_goal"]["success_criteria"]["type"] = "place_at_location"
    with pytest.raises(InvalidFile, match=r"task_goal: the key 'target_location' is missing: 'place_at_loc"):
        load(tmp_path, aloft)


def goal_in(location, *things):
    goal = {"target_object": {"name": "cup_red"}, "target_location": location}
    return record(task_goal=goal, scene_objects=[TABLE, CUP, BOWL, *things])


@pytest.mark.parametrize(
    ("location", "place", "complaint"),
    [
        ({"type": "position"}, LOCATION, "a position needs a position"),
        ({"type": "container"}, LOCATION, "a container needs an object_name or a position"),
        (
            {"type": "bowl"},
            f"{LOCATION}.type",
            "expected 'position' or 'container' or 'surface', found 'bowl'",
        ),
        (
            {"type": "container", "object_name": "bowl_bleu"},
            f"{LOCATION}.object_name",
            r"'bowl_bleu' is not among the scene_objects .*did you mean 'bowl_blue'",
        ),
        (
            {"type": "surface", "object_name": "cup_red"},
            f"{LOCATION}.object_name",
            "expected another object than the target_object, found 'cup_red'",
        ),
        (
            {"type": "position", "position": [0, 0, 0], "object_name": "bowl_blue"},
            f"{LOCATION}.object_name",
            "expected no key, since the type is 'position'",
        ),
        (
            {"type": "container", "position": [0.9, 0.2, 0.8], "radius": 0.1},
            LOCATION,
            r"expected an object, beside the target, within 0\.1 m of the position to be the container",
        ),
    ],
)
def test_a_target_location_must_be_one(tmp_path, location, place, complaint):
    with pytest.raises(InvalidFile, match=f"episodes.0..{place}: {complaint}"):
        load(tmp_path, goal_in(location))


def test_a_surface_must_be_there(tmp_path):
    goal = {
        "target_object": {"name": "cup_red"},
        "target_location": {"type": "surface", "position": [0, 0, 0]},
    }
    with pytest.raises(InvalidFile, match=r"expected a static object to be the surface, or an object_name"):
        load(tmp_path, record(task_goal=goal, scene_objects=[CUP, BOWL]))


def test_containers_and_surfaces_without_a_name_are_the_nearest(tmp_path):
    far_bowl = BOWL | {"name": "bowl_red", "position": [0.75, 0.2, 0.8]}
    shelf = TABLE | {"name": "shelf", "position": [0.5, 1.0, 0.4]}

    def support(**location):
        (episode,) = load(tmp_path, goal_in(location, far_bowl, shelf)).episodes
        return episode.support_name()

    assert support(type="position", position=[0.7, 0.2, 0.8]) is None
    assert support(type="container", position=[0.71, 0.2, 0.8]) == "bowl_blue"
    assert support(type="container", position=[0.73, 0.2, 0.8]) == "bowl_red"
    assert support(type="container", object_name="table") == "table"
    assert support(type="surface", position=[0.5, 0.3, 0.8]) == "table"
    assert support(type="surface", position=[0.5, 0.7, 0.8]) == "shelf"
    assert support(type="surface", object_name="bowl_blue") == "bowl_blue"


def test_a_table_is_a_container_only_if_nothing_else_is(tmp_path):
    location = {"type": "container", "position": [0.5, 0.05, 0.8]}
    (episode,) = load(tmp_path, goal_in(location)).episodes
    assert episode.support_name() == "table"
    nearby = BOWL | {"name": "near", "position": [0.5, 0.14, 0.8]}
    (episode,) = load(tmp_path, goal_in(location, nearby)).episodes
    assert episode.support_name() == "near"


def test_without_a_support_code_is_told_so():
    episode = PickAndPlaceEpisode(
        "a", task_goal={"target_location": {"type": "surface", "position": [0, 0, 0]}}, scene_objects=[BOWL]
    )
    with pytest.raises(UserError, match="episode 'a': no other object is static"):
        episode.support_name()


@pytest.mark.parametrize(
    ("reference", "complaint"),
    [
        ({"qpos_sequence": []}, r"qpos_sequence: expected at least one row"),
        ({"qpos_sequence": [[0] * 8]}, r"qpos_sequence: row 0: expected numbers: 7 or 10; found 8"),
        (
            {"qpos_sequence": [[0] * 7, [0] * 10]},
            r"row 1: expected numbers: 7, as the first row has; found 10",
        ),
        ({"ee_pose_sequence": []}, r"missing required field `qpos_sequence`"),
        ({"qpos_sequence": [[0] * 10], "ee_pose_sequence": [[0] * 6]}, r"ee_pose_sequence: row 0: expected"),
        (
            {"qpos_sequence": [[0] * 10] * 2, "ee_pose_sequence": [[0, 0, 0, 1, 0, 0, 0]]},
            r"ee_pose_sequence: expected 2 rows, as in qpos_sequence, found 1",
        ),
        (
            {"qpos_sequence": [[0] * 10], "ee_pose_sequence": [[0, 0, 0, 1, 1, 0, 0]]},
            r"ee_pose_sequence\[0\]: expected a unit quaternion qw, qx, qy, qz",
        ),
        (
            {"qpos_sequence": [[0] * 10] * 3, "keypoints": {"grasp_start": 3}},
            r"keypoints: grasp_start: expected 0 to 2, found 3",
        ),
        ({"qpos_sequence": [[0] * 10], "keypoints": {"grasp_start": -1}}, r"grasp_start: expected 0 to 0"),
    ],
)
def test_a_reference_must_be_whole(tmp_path, reference, complaint):
    with pytest.raises(InvalidFile, match=rf"episodes\[0\]\.reference_trajectory.*{complaint}"):
        load(tmp_path, record(reference_trajectory=reference))


def test_references_of_either_kind_are_read(tmp_path):
    reference = {
        "qpos_sequence": [[0.0] * 10] * 3,
        "ee_pose_sequence": [[0, 0, 0, 1, 0, 0, 0]] * 3,
        "keypoints": {"grasp_start": 0, "place_complete": 2},
    }
    (episode,) = load(tmp_path, record(reference_trajectory=reference)).episodes
    assert episode.reference_trajectory.keypoints["place_complete"] == 2
    names = {"qpos_sequence": [[0.0] * 7], "keypoints": ["grasp_start"]}
    (episode,) = load(tmp_path, record(reference_trajectory=names)).episodes
    assert episode.reference_trajectory.get("keypoints", []) == ["grasp_start"]
    with pytest.raises(ValueError, match="row 0: expected finite numbers"):
        ReferenceTrajectory(qpos_sequence=[(math.inf,) * 7])


def test_in_code_parts_may_be_dicts_typed_mixed_or_missing():
    nothing = PickAndPlaceEpisode(
        "a", robot_config=None, task_goal=None, scene_objects=None, instruction=None, sim_params=None
    )
    assert nothing == PickAndPlaceEpisode("a")
    assert nothing.robot_config["robot_type"] == "stretch"
    assert nothing.sim_params["max_steps"] == 500
    assert nothing.task_goal["success_criteria"].get("lift_height", 0.1) == 0.1
    assert nothing.task_goal.get("target_location") is None
    assert nothing.task_goal.get("no such key", 7) == 7
    with pytest.raises(KeyError):
        nothing.task_goal["no such key"]
    dicts = PickAndPlaceEpisode(**record())
    mixed = PickAndPlaceEpisode(
        **record(
            task_goal=TaskGoal(
                target_object={"name": "cup_red"},
                target_location=TargetLocation(position=np.array([0.7, 0.2, 0.8])),
            ),
            scene_objects__1=SceneItem(
                name="cup_red",
                usd_path="objects/cup_red.usd",
                position=np.array([0.5, 0, 0.8]),
                graspable=True,
            ),
        )
    )
    assert mixed == dicts
    assert mixed.task_goal["target_object"]["initial_position"][2] == 0.8


@pytest.mark.parametrize(
    ("parts", "complaint"),
    [
        ({"task_type": "stacking"}, "task_type: expected 'pick_and_place', found 'stacking'"),
        ({"task_type": "pick_and_plac"}, "task_type: .*; did you mean 'pick_and_place'"),
        ({"task_type": 7}, "Expected `str`, got `int` - at `task_type`"),
        ({"scene_id": None}, "Expected `str`, got `null` - at `scene_id`"),
        ({"language": "x" * 300}, "length <= 200 - at `language`"),
        ({"split": b"val"}, "Expected `str \\| null`, got `bytes` - at `split`"),
        ({"assets_path": Path("things")}, "got `PosixPath` - at `assets_path`"),
        (
            {"task_goal": {"target_object": {"name": "x", "colour": 1}}},
            r"unknown field `colour`.*task_goal\.tar",
        ),
        ({"scene_objects": [CUP, {"name": "x"}]}, r"required field `position` - at `scene_objects\[1\]`"),
        ({"sim_params": {"time_step": 0.03}}, "time_step: expected a part of the control period"),
        ({"robot_config": {"dof": 6}}, "dof: expected 7, found 6"),
    ],
)
def test_in_code_too_the_place_is_said(parts, complaint):
    with pytest.raises(ValueError, match=complaint):
        PickAndPlaceEpisode("a", **parts)
