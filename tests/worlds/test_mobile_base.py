"""The base as navigation drives it: velocities in its own frame, contacts, and kinematic things around it."""

import math

import numpy as np
import pytest

from proctor.core.errors import UserError
from proctor.core.types import Pose2, Vector3
from proctor.robots.dynamics import Dynamics
from proctor.robots.wheeled import WheeledRobot
from proctor.scenes.scene_config import Part, SceneConfig, SceneObject
from proctor.worlds.mujoco.wheeled.lidar import LaserScanner
from proctor.worlds.mujoco.wheeled.mobile_base import TICK_S, TIMESTEP_S, MobileBase
from proctor.worlds.mujoco.wheeled.world import World

ORIGIN = Pose2(0.0, 0.0, 0.0)


def _world(start=ORIGIN, *, box_at=(2.0, 0.0)):
    part = Part(shape="box", size=Vector3(0.4, 0.4, 1.0), translate=Vector3(0, 0, 0.5))
    box = SceneObject(name="box", translate=Vector3(*box_at, 0), parts=[part], rigid_body_type="kinematic")
    world = World(SceneConfig(scene_name="s", objects=[box]), None, WheeledRobot(), timestep_s=TIMESTEP_S)
    world.reset(start)
    return world


def _drive(base, seconds, ahead=0.0, left=0.0, turn=0.0):
    base.target_linear_velocity = np.array([ahead, left, 0.0])
    base.target_angular_velocity = np.array([0.0, 0.0, turn])
    for _ in range(round(seconds / TICK_S)):
        base.advance()


def test_a_tick_is_a_sixtieth_of_a_second():
    world = _world()
    _drive(MobileBase(world), 1.0)
    assert world.time_s == pytest.approx(1.0)


def test_goes_ahead_in_its_own_frame():
    base = MobileBase(_world(Pose2(0.0, 0.0, math.pi / 2)))
    _drive(base, 2.0, ahead=0.5)
    pose = base.pose()
    assert pose.x == pytest.approx(0.0, abs=0.01)
    assert pose.y == pytest.approx(1.0, abs=0.05)
    assert base.get_velocity() == pytest.approx([0.5, 0.0, 0.0], abs=0.01)
    position, quaternion = base.get_world_pose()
    assert position == pytest.approx([pose.x, pose.y, 0.0])
    assert quaternion == pytest.approx([0, 0, math.sin(pose.yaw / 2), math.cos(pose.yaw / 2)])


def test_only_a_holonomic_base_goes_sideways():
    differential = MobileBase(_world())
    _drive(differential, 1.0, left=0.5)
    assert differential.pose().y == pytest.approx(0.0, abs=1e-3)
    holonomic = MobileBase(_world(), Dynamics(drive="holonomic"))
    _drive(holonomic, 1.0, left=0.5)
    assert holonomic.pose().y == pytest.approx(0.5, abs=0.05)


def test_limits_are_told_by_name():
    base = MobileBase(_world(), Dynamics(v_max=0.7))
    assert base.get_dynamics_constraints() == {
        "v_max": 0.7,
        "omega_max": 1.0,
        "a_max": 0.5,
        "alpha_max": 0.5,
        "drive": "differential",
    }


def test_feels_what_it_runs_into():
    base = MobileBase(_world(box_at=(0.6, 0.0)))
    _drive(base, 0.2, ahead=0.5)
    assert not base.is_collision_detected()
    _drive(base, 1.5, ahead=0.5)
    assert base.is_collision_detected()
    assert base.touched == "box"
    assert base.pose().x < 0.6 - 0.2 - 0.16


def test_a_kinematic_thing_can_be_put_elsewhere_and_is_seen_there():
    world = _world()
    base, scanner = MobileBase(world), LaserScanner(world)
    ahead = len(scanner.scan().ranges) // 2
    assert scanner.scan().ranges[ahead] == pytest.approx(1.8, abs=0.02)
    world.place("box", 5.0, 0.0)
    _drive(base, TICK_S)
    assert scanner.scan().ranges[ahead] == pytest.approx(4.8, abs=0.02)
    with pytest.raises(KeyError):
        world.place("nothing", 1.0, 1.0)


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        ({"vmax": 1.0}, "unknown limit 'vmax'; did you mean 'v_max'"),
        ({"v_max": 0}, "v_max"),
        ({"a_max": math.nan}, "a_max"),
        ({"drive": "legs"}, "drive"),
        ({"v_max": "fast"}, "v_max"),
    ],
)
def test_limits_that_are_none(limits, words):
    with pytest.raises(UserError, match=words):
        Dynamics.of(limits)
