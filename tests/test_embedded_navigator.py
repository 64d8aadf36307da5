"""navigate_to in physics: arrives, goes around what is not on the map, and does the same each time."""

import math

import msgspec
import numpy as np
import pytest
from msgspec.structs import replace

from proctor.core.types import Pose2, Vector3
from proctor.robots.dynamics import Dynamics
from proctor.scenes.scene_config import Part, SceneConfig, SceneObject
from proctor.skills.embedded import EmbeddedNavigator
from proctor.skills.params import NavigationParams

START = Pose2(1.0, 1.0, 0.0)
GOAL = [5.0, 3.0, 0.0]


def _box(name, x, y, size, kind="static"):
    part = Part(shape="box", size=Vector3(*size), translate=Vector3(0, 0, size[2] / 2))
    return SceneObject(name=name, translate=Vector3(x, y, 0), parts=[part], rigid_body_type=kind)


def _room():
    walls = [
        _box("south", 3, 0, (6, 0.1, 2)),
        _box("north", 3, 4, (6, 0.1, 2)),
        _box("west", 0, 2, (0.1, 4, 2)),
        _box("east", 6, 2, (0.1, 4, 2)),
        _box("table", 3, 2, (0.8, 1.2, 0.7)),
    ]
    return SceneConfig(scene_name="room", objects=walls)


@pytest.fixture(scope="module")
def scene_path(tmp_path_factory):
    path = tmp_path_factory.mktemp("scene") / "room.json"
    path.write_bytes(msgspec.json.encode(_room()))
    return path


def _quat(yaw):
    return [0.0, 0.0, math.sin(yaw / 2), math.cos(yaw / 2)]


def test_arrives_exactly_and_touches_nothing(client, scene_path):
    with EmbeddedNavigator(scene_path, START, client=client) as navigator:
        touched = []
        drive = navigator.navigate(
            GOAL, _quat(2.0), on_tick=lambda _: touched.append(navigator.robot.touched)
        )
    assert drive.arrived
    assert not any(touched)
    assert drive.result["final_distance"] < 0.02
    assert drive.result["final_yaw_error"] < math.radians(1.0)
    beside = drive.log.cross_track_m[np.isfinite(drive.log.cross_track_m)]
    assert math.sqrt((beside**2).mean()) < 0.02
    speeds = np.hypot(drive.log.velocities[:, 0], drive.log.velocities[:, 1])
    assert 0.6 < speeds.max() < 1.02
    assert abs(drive.log.velocities[:, 2]).max() < 1.02
    assert set(drive.timings_s) >= {"trajectory_generation"}
    assert drive.path.clearance_m > 0.17


def test_the_same_goal_gives_the_same_drive_bit_for_bit(client, scene_path):
    logs = []
    for _ in range(2):
        with EmbeddedNavigator(scene_path, START, client=client) as navigator:
            logs.append(navigator.navigate(GOAL).log)
    assert np.array_equal(logs[0].poses, logs[1].poses)
    assert np.array_equal(logs[0].commands, logs[1].commands)


def test_a_holonomic_base_goes_sideways(client, scene_path):
    dynamics = Dynamics(drive="holonomic")
    with EmbeddedNavigator(scene_path, START, dynamics=dynamics, client=client) as navigator:
        drive = navigator.navigate(GOAL, _quat(0.0))
    assert drive.arrived
    assert drive.result["final_distance"] < 0.02
    assert abs(drive.log.velocities[:, 1]).max() > 0.1


def test_goes_around_a_box_that_appears(client, scene_path):
    scene = replace(_room(), objects=[*_room().objects, _box("box", 50, 50, (0.4, 0.4, 0.8), "kinematic")])
    with EmbeddedNavigator(scene_path, START, scene=scene, client=client) as navigator:
        touched = []

        def watch(result):
            touched.append(navigator.robot.touched)
            if result["state"] == "EXECUTING" and result["progress"] >= 10:
                navigator.world.place("box", 3.6, 1.05)

        drive = navigator.navigate([5.2, 1.0, 0.0], on_tick=watch)
    assert drive.arrived
    assert drive.result["replans"] >= 1
    assert not any(touched)
    assert len(drive.seen)
    assert min(np.hypot(drive.seen[:, 0] - 3.6, drive.seen[:, 1] - 1.05)) < 0.3


def test_backs_out_from_what_it_bumps_into_unseen(client, scene_path):
    low = _box("a low box", 3.0, 0.95, (0.3, 0.3, 0.12))  # too low for the laser, too high for the wheels
    scene = replace(_room(), objects=[*_room().objects, low])
    with EmbeddedNavigator(scene_path, START, scene=scene, client=client) as navigator:
        touched = []
        drive = navigator.navigate([5.2, 1.0, 0.0], on_tick=lambda _: touched.append(navigator.robot.touched))
    assert any(touched)
    assert drive.arrived
    assert drive.result["replans"] >= 1


def test_a_depth_camera_sees_what_is_too_low_for_the_laser(client, scene_path):
    low = _box("a low box", 3.2, 0.95, (0.3, 0.3, 0.12))
    scene = replace(_room(), objects=[*_room().objects, low])
    with EmbeddedNavigator(scene_path, START, scene=scene, client=client, depth=True) as navigator:
        touched = []
        drive = navigator.navigate([5.2, 1.0, 0.0], on_tick=lambda _: touched.append(navigator.robot.touched))
    assert drive.arrived
    assert not any(touched)


def test_planners_by_name(client, scene_path):
    for planner in ("rrt", "rrt_star", "prm"):
        params = NavigationParams(planner=planner, planning_timeout_s=2.0)
        with EmbeddedNavigator(scene_path, START, params=params, client=client) as navigator:
            drive = navigator.navigate(GOAL)
        assert drive.arrived, (planner, drive.result)
        assert drive.path.planner == planner
