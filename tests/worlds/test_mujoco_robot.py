import math

import pytest

from proctor.core.types import Pose2
from proctor.robots.robot import STILL, Twist
from proctor.robots.spec import standard_robot
from proctor.scenes.scene import Scene
from proctor.scenes.scene_config import Part, SceneConfig, SceneObject
from proctor.worlds.mujoco.wheeled.robot import MujocoRobot
from proctor.worlds.mujoco.wheeled.world import World


def drive_in(*objects, pose=(0.0, 0.0, 0.0)):
    world = World(Scene(SceneConfig(scene_name="test", objects=list(objects))), standard_robot())
    world.reset(Pose2(*pose))
    return world, MujocoRobot(world, scan_reach_m=0.5)


def post_at(x, y):
    return SceneObject(name="post", parts=[Part(shape="box", size=(0.1, 0.1, 1.0), translate=(x, y, 0.5))])


def test_a_speed_is_reached_and_held():
    world, base = drive_in()
    base.command(Twist(0.2))
    base.wait(0.1)
    before = world.pose().x
    base.wait(1.0)
    assert world.pose().x - before == pytest.approx(0.2, abs=1e-4)


def test_the_robot_stands_within_a_control_period_after_a_stop():
    world, base = drive_in()
    base.command(Twist(0.1, 0.0, 0.3))
    base.wait(0.5)
    base.command(STILL)
    base.wait(0.05)
    there = world.pose()
    base.wait(1.0)
    assert math.hypot(world.pose().x - there.x, world.pose().y - there.y) < 1e-5
    assert world.pose().yaw == pytest.approx(there.yaw, abs=1e-5)


def test_driving_and_turning_at_once_makes_an_arc():
    world, base = drive_in()
    base.command(Twist(0.2, 0.0, 0.5))
    base.wait(math.floor(100 * math.pi / 2 / 0.5) / 100)
    assert world.pose().x == pytest.approx(0.4, abs=0.01)
    assert world.pose().y == pytest.approx(0.4, abs=0.01)


@pytest.mark.parametrize("yaw", [0.0, 2.0, -3.0])
def test_odometry_begins_at_the_reset_and_looks_along_the_start(yaw):
    world, base = drive_in(pose=(3.0, -1.0, yaw))
    assert base.odometry()[1] == Pose2(0.0, 0.0, 0.0)
    base.command(Twist(0.5))
    base.wait(1.0)
    pose = base.odometry()[1]
    assert pose.x == pytest.approx(math.hypot(world.pose().x - 3.0, world.pose().y + 1.0))
    assert pose.x > 0.4
    assert pose.y == pytest.approx(0.0, abs=1e-9)
    base.reset()
    assert base.odometry()[1] == Pose2(0.0, 0.0, 0.0)


def test_a_contact_is_remembered_until_the_next_command():
    _, base = drive_in(post_at(0.4, 0.0))
    base.command(Twist(0.5))
    base.wait(0.1)
    assert not base.in_contact()
    base.wait(1.0)
    assert base.in_contact()
    base.command(Twist(-0.5))
    assert not base.in_contact()
    base.wait(0.5)
    base.command(STILL)
    base.wait(0.1)
    assert not base.in_contact()


def test_a_touch_that_is_over_before_the_wait_is_noticed():
    world, base = drive_in(post_at(0.55, 0.21))
    base.command(Twist(1.0))
    base.wait(1.5)
    assert world.pose().x > 1.0
    assert world.touched() is None
    assert base.in_contact()


def test_time_is_simulated_and_a_wait_must_fit_the_physics():
    _, base = drive_in()
    base.wait(0.05)
    assert base.now_s() == pytest.approx(0.05)
    for bad in (0.055, 0.0, -0.05):
        with pytest.raises(ValueError, match="multiple of the physics step"):
            base.wait(bad)


def test_the_scan_looks_ahead():
    _, base = drive_in(post_at(0.4, 0.0), pose=(0.0, 0.0, 0.0))
    assert base.scan().ranges.min() == pytest.approx(0.35)
