"""The names of the design document, as it uses them."""

import dataclasses
import json
import math
from pathlib import Path

import vln_evaluator.pick_place as documented
from vln_evaluator.pick_place import (
    PickAndPlaceEpisode,
    PickPlaceCompletionRate,
    PickPlaceSuccess,
    PickPlaceTrajectorySimilarity,
    StretchRobotConfig,
    StretchSensorSuite,
    evaluate_pick_place,
)

EPISODE = Path(__file__).parents[2] / "data" / "stretch_pick_place_001.json"


def test_all_names_are_there():
    assert all(hasattr(documented, name) for name in documented.__all__)


def test_the_robot_is_the_documents():
    config = StretchRobotConfig()
    assert (config.base_dof, config.arm_dof, config.total_dof) == (2, 5, 7)
    assert config.joint_names[0] == "translate_x"
    assert len(config.joint_names) == len(config.joint_limits) == 10
    assert config.joint_limits["joint_gripper_finger_left"] == (0.0, 0.04)
    assert config.end_effector == "parallel_gripper"
    assert config.camera_config["head"]["width"] == 640
    assert StretchSensorSuite().ee_pose["frame"] == "base_link"


def test_they_are_the_documents_dataclasses():
    robot = StretchRobotConfig("stretch", 2, 5, 7)
    told = dataclasses.asdict(robot)
    assert told["joint_names"] == list(told["joint_limits"])
    assert told["camera_config"]["wrist"]["fov"] == 90
    sensors = dataclasses.asdict(StretchSensorSuite({"width": 1}))
    assert sensors["rgb_head"] == {"width": 1}
    assert json.loads(json.dumps(sensors)) == sensors
    cup = {"name": "cup_red", "position": [0.5, 0.0, 0.8], "shape": {"kind": "cup"}}
    goal = {"target_object": {"name": "cup_red"}}
    episode = PickAndPlaceEpisode(
        "e", "pick_and_place", "table_setup_001", None, goal, [cup], {"text": "Go."}
    )
    told = dataclasses.asdict(episode)
    assert told["task_goal"]["target_object"]["initial_position"] == (0.5, 0.0, 0.8)
    assert told["scene_objects"][0]["shape"]["kind"] == "cup"
    assert PickAndPlaceEpisode(**told) == episode


def test_the_metrics_take_the_documents_states():
    goal = {
        "target_object": {"name": "cup_red", "initial_position": [0.5, 0.0, 0.8]},
        "target_location": {"type": "position", "position": [0.7, 0.2, 0.8], "radius": 0.1},
    }
    cup = {"name": "cup_red", "position": [0.5, 0.0, 0.8], "graspable": True}
    episode = PickAndPlaceEpisode("e", task_goal=goal, scene_objects=[cup])
    metric = PickPlaceSuccess()
    metric.reset(episode, None)
    for position in ([0.5, 0.0, 0.8], [0.5, 0.0, 0.95], [0.7, 0.2, 0.81]):
        metric.update({"gripper_state": 0.005, "object_grasped": True, "object_position": position})
    assert metric.get_metric() == 1.0
    rate = PickPlaceCompletionRate()
    rate.reset(episode, None)
    rate.update({"phase": "reach", "ee_position": [0.5, 0.0, 0.55], "object_position": [0.5, 0.0, 0.8]})
    assert math.isclose(rate.get_metric(), 0.5)
    similarity = PickPlaceTrajectorySimilarity()
    similarity.reset(episode, None)
    assert math.isnan(similarity.get_metric())


def test_the_documents_episode_is_evaluated_in_one_call():
    results = evaluate_pick_place(EPISODE, policy="expert")
    assert results.success_rate == 1.0
