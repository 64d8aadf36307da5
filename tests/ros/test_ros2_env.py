"""The exam on a robot behind ROS 2: the same as in the embedded world, and honest about what is silent."""

import math
import os
import signal

import numpy as np
import pytest
from kinematic_robot import KinematicRobot
from mesh_houses import Y_UP, two_storeys, write
from served_world import save_yard, yard_episode

from proctor.cli import main
from proctor.core.errors import SimulationError, UserError
from proctor.core.registry import load
from proctor.core.types import Action, Vector3
from proctor.exams.vln.episode import Episode
from proctor.robots.spec import standard_robot
from proctor.worlds.mujoco.wheeled.env import VLNEnv
from proctor.worlds.ros2.env import Ros2Env
from proctor.worlds.ros2.host.hosted_robot import SimHostOptions
from proctor.worlds.ros2.host.sim_host_process import SimHostProcess

SMALL = {"width": 64, "height": 48}
FORWARD, LEFT, RIGHT, STOP = Action.FORWARD, Action.LEFT, Action.RIGHT, Action.STOP


@pytest.fixture(scope="module")
def scene(tmp_path_factory):
    return save_yard(tmp_path_factory.mktemp("yard") / "yard.json")


@pytest.fixture(scope="module")
def env():
    env = Ros2Env(**SMALL, sensors=["rgb", "depth", "scan", "odom"], real_time_factor=4.0)
    yield env
    env.close()


@pytest.mark.parametrize(
    ("start", "actions"),
    [
        ((0.0, 0.0, 30.0), [FORWARD, RIGHT, FORWARD, STOP]),
        ((2.3, 0.0, 0.0), [FORWARD, FORWARD, FORWARD, LEFT]),  # into the post
    ],
)
def test_a_robot_on_ros_2_does_what_the_embedded_one_does(env, scene, start, actions):
    x, y, yaw_deg = start
    episode = yard_episode(scene, x, y, yaw_deg)
    embedded = VLNEnv(**SMALL, sensors=["odom"])
    seen, expected = env.reset(episode), embedded.reset(episode)
    assert seen["rgb"].shape == (48, 64, 3)
    assert seen["depth"].shape == (48, 64)
    assert len(seen["scan"].ranges) == 360
    assert env.info()["step"] == 0
    for action in actions:
        seen, reward, done, info = env.step(action)
        expected, _, expected_done, truth = embedded.step(action)
        where, right = info["position"], truth["position"]
        # What is in the way is seen as late as messages are, and on a busy machine they are.
        near_m = 0.03 if info["collision_count"] else 0.01
        assert math.dist((where.x, where.y, where.z), (right.x, right.y, right.z)) < near_m
        assert info["yaw"] == pytest.approx(truth["yaw"], abs=math.radians(0.5))
        assert (seen["odom"].x, seen["odom"].y) == pytest.approx(
            (expected["odom"].x, expected["odom"].y), abs=near_m
        )
        assert info["collision"] == truth["collision"]
        assert info["collision_count"] == truth["collision_count"]
        assert (reward, done) == (0.0, expected_done)
    assert len(info["trajectory"]) == len(actions) + 1


def test_each_episode_begins_in_its_scene_at_its_start(env, scene, tmp_path):
    other = save_yard(tmp_path / "other.json", "other")
    for episode in (yard_episode(other, -1.0, 2.0, 90.0), yard_episode(scene, 1.0, -1.0, -45.0)):
        seen = env.reset(episode)
        info = env.info()
        assert info["position"] == Vector3(episode.start_position.x, episode.start_position.y, 0.0)
        assert info["yaw"] == pytest.approx(episode.start_yaw)
        assert math.hypot(seen["odom"].x, seen["odom"].y) < 1e-6
        assert info["collision_count"] == 0


def test_an_episode_upstairs_is_upstairs(env, tmp_path):
    house = write(two_storeys(), tmp_path / "house.glb", turn=Y_UP)
    at_door = Vector3(2.0, 2.0, 2.8)
    for start in (Vector3(2.0, 2.0, 0.0), at_door):
        env.reset(Episode(scene_config_path=str(house), start_position=start, goal_position=at_door))
        assert env.info()["position"] == start


def test_an_episode_that_is_over_takes_no_action(env, scene):
    env.reset(yard_episode(scene, max_steps=1))
    *_, done, _ = env.step(LEFT)
    assert done
    with pytest.raises(SimulationError, match="was done"):
        env.step(LEFT)


def test_a_simulator_that_dies_is_an_error_in_time_and_the_next_episode_has_another(env, scene):
    env.reset(yard_episode(scene))
    env._robot._timeout_s = env._robot._executor._robot._timeout_s = 2.0
    os.kill(env._host.pid, signal.SIGKILL)
    with pytest.raises(SimulationError, match=r"nobody|silent|gone|left"):
        env.step(FORWARD)
    env._robot._simulation._timeout_s = 0.5
    env._robot._simulation.is_available = lambda *_: False  # as it is when its lease is over
    with pytest.raises(SimulationError, match="/get_entity_state"):
        env._robot.pose()  # and not what odometry last said
    seen = env.reset(yard_episode(scene, 0.5, 0.5))
    assert env.info()["position"].x == pytest.approx(0.5)
    assert seen["rgb"].any()


def test_where_the_depth_camera_of_a_robot_sees_nothing_is_0(scene):
    robot = standard_robot().with_camera(width=64, height=48)
    options = SimHostOptions(robot=robot, real_time_factor=4.0, depth_encoding="32FC1", camera_hz=10)
    with SimHostProcess(options, scene):
        env = Ros2Env(attach=True, sensors=["depth"], depth_far_m=20.0)
        try:
            depth = env.reset(yard_episode(scene))["depth"]
        finally:
            env.close()
    assert depth[0, 0] == 0
    assert depth.max() > 2000
    assert depth.max() < 20000


def test_another_robot_does_what_it_does_in_the_embedded_world(scene):
    options = {"robot": "turtlebot3-burger", "sensors": ["scan", "odom"]}
    env, embedded, episode = Ros2Env(**options), VLNEnv(**options), yard_episode(scene)
    try:
        seen, expected = env.reset(episode), embedded.reset(episode)
        assert seen["scan"].range_max == pytest.approx(3.5)
        assert np.isfinite(seen["scan"].ranges).any()
        assert seen["scan"].ranges == pytest.approx(expected["scan"].ranges, abs=0.01)
        *_, info = env.step(FORWARD)
        *_, truth = embedded.step(FORWARD)
        assert info["position"].x == pytest.approx(truth["position"].x, abs=0.01)
        assert env._robot.actions.executor.LINEAR_SPEED == 0.2
    finally:
        env.close()
        embedded.close()


def test_a_robot_without_a_simulator_is_put_at_the_start_by_hand(scene):
    options = {"attach": True, "sensors": ["scan", "odom"], "timeout_s": 2.0}
    with KinematicRobot(real_time_factor=4.0):
        env = Ros2Env(**options)
        try:
            with pytest.raises(UserError, match="run one episode at a time with --episode"):
                env.check([yard_episode(scene), yard_episode(scene)])
            env.check([yard_episode(scene, 1.0, 1.0, 90.0)])
            env.reset(yard_episode(scene, 1.0, 1.0, 90.0))
            seen, *_, info = env.step(FORWARD)
        finally:
            env.close()
        where = info["position"]
        assert (where.x, where.y) == pytest.approx((1.0, 1.25), abs=0.01)
        assert seen["odom"].x == pytest.approx(0.25, abs=0.01)


def test_a_robot_without_a_scanner_takes_an_exam_by_odometry(scene):
    with KinematicRobot(real_time_factor=4.0, has_scanner=False):
        env = Ros2Env(attach=True, sensors=["odom"])
        try:
            assert list(env.reset(yard_episode(scene, 1.0, 1.0, 90.0))) == ["odom"]
            seen, *_, info = env.step(FORWARD)
        finally:
            env.close()
    assert seen["odom"].x == pytest.approx(0.25, abs=0.01)
    assert info["position"].y == pytest.approx(1.25, abs=0.01)


def test_a_robot_that_is_not_there_is_told_within_the_deadline(scene):
    env = Ros2Env(attach=True, timeout_s=0.5)
    with pytest.raises(SimulationError, match="nobody publishes /odom"):
        env.reset(yard_episode(scene))
    env.close()
    env.close()


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"attach": True, "width": 64}, "width: the robot that is attached to has its own"),
        ({"real_time_factor": 0}, "real_time_factor"),
        ({"sensors": ["sonar"]}, "sensors"),
        ({"collision_threshold_m": 0}, "collision_threshold_m"),
        ({"timeout_s": math.nan}, "timeout_s"),
    ],
)
def test_options_that_make_no_sense_are_refused(options, problem):
    with pytest.raises(UserError, match=problem):
        Ros2Env(**options)


def test_the_registry_knows_it():
    assert load("env", "ros2") is Ros2Env


def test_the_command_line_says_what_attach_is_for(capsys):
    assert main(["run", "--suite", "houses-v1", "--policy", "oracle", "--attach"]) == 2
    assert "--attach is for --env ros2" in capsys.readouterr().err
