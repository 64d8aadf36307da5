"""navigate_to in physics: arrives, goes around what is not on the map, and does the same each time."""

import math

import msgspec
import numpy as np
import pytest
from msgspec.structs import replace

from proctor.core.errors import UserError
from proctor.core.types import Pose2, Vector3
from proctor.navigation.skill import goal as goals
from proctor.navigation.skill.drive import DriveLog, view_of
from proctor.navigation.skill.params import NavigationParams
from proctor.report.drive_plot import save_plot
from proctor.report.drive_video import frames_of
from proctor.robots.dynamics import Dynamics
from proctor.robots.spec import standard_robot
from proctor.scenes.scene_config import Part, SceneConfig, SceneObject
from proctor.worlds.mujoco.wheeled.navigator import EmbeddedNavigator

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


def test_a_goal_is_read_once_for_all_ticks(client, scene_path, monkeypatch):
    read, reads = goals.read_goal, []
    monkeypatch.setattr(goals, "read_goal", lambda *asked: reads.append(asked) or read(*asked))
    with EmbeddedNavigator(scene_path, START, client=client) as navigator:
        drive = navigator.navigate([1.5, 1.0, 0.0], _quat(0.3))
        assert drive.arrived
        assert drive.goal_yaw == pytest.approx(0.3)
        assert len(reads) == 1
        again = navigator.navigate(goals.NavigationGoal((1.0, 1.0, 0.0), 0.2))
    assert again.arrived
    assert (again.goal, again.goal_yaw) == ((1.0, 1.0), 0.2)
    assert len(reads) == 1


def test_the_same_goal_gives_the_same_drive_bit_for_bit(client, scene_path):
    logs = []
    for _ in range(2):
        with EmbeddedNavigator(scene_path, START, client=client) as navigator:
            logs.append(navigator.navigate(GOAL).log)
    assert np.array_equal(logs[0].poses, logs[1].poses)
    assert np.array_equal(logs[0].commands, logs[1].commands)


def test_a_holonomic_base_goes_sideways(client, scene_path):
    robot = standard_robot(dynamics=Dynamics(drive="holonomic"))
    with EmbeddedNavigator(scene_path, START, robot=robot, client=client) as navigator:
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
        params = NavigationParams(planner=planner, planning_timeout_s=60.0)
        with EmbeddedNavigator(scene_path, START, params=params, client=client) as navigator:
            drive = navigator.navigate(GOAL)
        assert drive.arrived, (planner, drive.result)
        assert drive.path.planner == planner


@pytest.mark.parametrize(
    ("goal_pos", "goal_quat"),
    [(None, None), ([1.0], None), ("ab", None), ({"x": 1}, None), (GOAL, [0, 0, 0, 0]), (GOAL, [0, 0, 1])],
)
def test_a_goal_that_is_none_is_a_failed_drive(client, scene_path, tmp_path, goal_pos, goal_quat):
    with EmbeddedNavigator(scene_path, START, client=client) as navigator:
        drive = navigator.navigate(goal_pos, goal_quat)
    assert drive.result["reason"] == "invalid_goal"
    assert math.isnan(drive.goal[0])
    save_plot(drive, tmp_path / "drive.png")
    assert next(frames_of(drive)).shape[1] == 960


def test_the_result_of_an_earlier_goal_is_not_that_of_the_next(client, scene_path):
    with EmbeddedNavigator(scene_path, START, client=client) as navigator:
        for _ in range(40):
            navigator.skills.execute_skill("navigate_to", goal_pos=GOAL)
            navigator.step()
        navigator.skills.cancel("navigate_to")
        assert navigator.navigate([1.5, 1.0, 0.0]).arrived


def test_open_floor_reaches_as_far_as_the_goals(client, tmp_path):
    path = tmp_path / "box.json"
    path.write_bytes(
        msgspec.json.encode(SceneConfig(scene_name="a box", objects=[_box("b", 0, 0, (1, 1, 1))]))
    )
    with EmbeddedNavigator(path, Pose2(-1.5, 0.0, 0.0), client=client, goals=[(1.5, 0.0)]) as navigator:
        assert navigator.navigate([1.5, 0.0, 0.0]).arrived


def test_a_start_that_is_none(client, scene_path):
    with pytest.raises(UserError, match="expected a start of finite numbers"):
        EmbeddedNavigator(scene_path, Pose2(math.nan, 0.0, 0.0), client=client)


@pytest.mark.parametrize(
    ("x", "y", "touched"), [(3.0, 2.0, "table"), (3.0, 1.25, "table"), (0.2, 3.0, "west"), (3.0, 1.22, None)]
)
def test_a_start_that_touches_something_is_refused(client, scene_path, x, y, touched):
    if touched is None:
        EmbeddedNavigator(scene_path, Pose2(x, y, 0.0), client=client).close()
        return
    with pytest.raises(UserError, match=f"the robot starts inside of '{touched}' at x={x}, y={y}"):
        EmbeddedNavigator(scene_path, Pose2(x, y, 0.0), client=client)


def test_a_start_far_beyond_the_map_is_filmed_and_plotted_too(client, scene_path, tmp_path):
    with EmbeddedNavigator(scene_path, START, client=client) as navigator:
        drive = navigator.navigate([1.2, 1.0, 0.0])
    for x, y in ((-9.0, 0.0), (2.0, 11.0), (50.0, -40.0)):
        moved = replace(drive, start=Pose2(x, y, 0.0), goal=(x, y), path=None, log=DriveLog.of([]))
        view = view_of(moved, flattest=0.4, tallest=0.85)
        assert view.low[0] < x - 0.3 < x + 0.3 < view.high[0]
        assert view.low[1] < y - 0.3 < y + 0.3 < view.high[1]
        assert next(frames_of(moved)).shape[1] == 960


@pytest.mark.parametrize(("y", "arrives"), [(0.2, False), (0.215, False), (0.225, True)])
def test_a_goal_beside_a_wall_is_reached_only_if_the_robot_fits(client, scene_path, y, arrives):
    touched = []
    with EmbeddedNavigator(scene_path, START, client=client) as navigator:
        drive = navigator.navigate([3.0, y, 0.0], on_tick=lambda _: touched.append(navigator.robot.touched))
    assert not any(touched)
    assert drive.arrived == arrives
    assert drive.result.get("reason") == (None if arrives else "goal_occupied")
