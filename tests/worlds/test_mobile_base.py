"""The base as navigation drives it: velocities in its own frame, contacts, and kinematic things around it."""

import math

import pytest

from proctor.core.errors import UserError
from proctor.core.types import Pose2, Vector3
from proctor.robots.dynamics import Dynamics
from proctor.robots.robot import Twist
from proctor.robots.spec import standard_robot
from proctor.scenes.scene import Scene
from proctor.scenes.scene_config import Part, SceneConfig, SceneObject
from proctor.worlds.mujoco.wheeled.robot import TICK_S, TICK_STEP_S, LaserScanner, MujocoRobot
from proctor.worlds.mujoco.wheeled.world import World

ORIGIN = Pose2(0.0, 0.0, 0.0)


def _world(start=ORIGIN, *, box_at=(2.0, 0.0), **changes):
    part = Part(shape="box", size=Vector3(0.4, 0.4, 1.0), translate=Vector3(0, 0, 0.5))
    box = SceneObject(name="box", translate=Vector3(*box_at, 0), parts=[part], rigid_body_type="kinematic")
    robot, scene = standard_robot(**changes), Scene(SceneConfig(scene_name="s", objects=[box]))
    world = World(scene, robot, timestep_s=TICK_STEP_S)
    world.reset(start)
    return world


def _drive(base, seconds, ahead=0.0, left=0.0, turn=0.0):
    for _ in range(round(seconds / TICK_S)):
        base.command(Twist(ahead, left, turn))
        base.wait(TICK_S)


def test_a_tick_is_a_sixtieth_of_a_second():
    world = _world()
    _drive(MujocoRobot(world), 1.0)
    assert world.time_s == pytest.approx(1.0)


def test_goes_ahead_in_its_own_frame():
    base = MujocoRobot(_world(Pose2(0.0, 0.0, math.pi / 2)))
    _drive(base, 2.0, ahead=0.5)
    pose = base.pose()
    assert pose.x == pytest.approx(0.0, abs=0.01)
    assert pose.y == pytest.approx(1.0, abs=0.05)
    assert base.velocity() == pytest.approx((0.5, 0.0, 0.0), abs=0.01)
    assert base.odometry()[1].x == pytest.approx(1.0, abs=0.05)


def test_only_a_holonomic_base_goes_sideways():
    differential = MujocoRobot(_world())
    _drive(differential, 1.0, left=0.5)
    assert differential.pose().y == pytest.approx(0.0, abs=1e-3)
    holonomic = MujocoRobot(_world(dynamics=Dynamics(drive="holonomic")))
    _drive(holonomic, 1.0, left=0.5)
    assert holonomic.pose().y == pytest.approx(0.5, abs=0.05)


def test_feels_what_it_runs_into():
    base = MujocoRobot(_world(box_at=(0.6, 0.0)))
    _drive(base, 0.2, ahead=0.5)
    assert not base.in_contact()
    _drive(base, 1.5, ahead=0.5)
    assert base.in_contact()
    assert base.touched == "box"
    assert base.pose().x < 0.6 - 0.2 - 0.16


def test_a_kinematic_thing_can_be_put_elsewhere_and_is_seen_there():
    world = _world()
    base, scanner = MujocoRobot(world), LaserScanner(world)
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
