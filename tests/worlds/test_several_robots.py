"""Several robots in one world: each is itself, sees the others, and stays as it is when one comes or goes."""

import math

import numpy as np
import pytest

from proctor.core.types import Pose2, Vector3
from proctor.robots.robot import Twist
from proctor.robots.spec import Camera, standard_robot
from proctor.scenes.scene import Scene
from proctor.scenes.scene_config import Part, SceneConfig, SceneObject
from proctor.worlds.mujoco.wheeled.camera import RgbdCamera
from proctor.worlds.mujoco.wheeled.robot import TICK_STEP_S, LaserScanner, MujocoRobot, advance_together
from proctor.worlds.mujoco.wheeled.world import World

ROBOT = standard_robot(camera=Camera(width=64, height=48))
SCENE = SceneConfig(
    scene_name="s",
    objects=[
        SceneObject(
            name="ball",
            translate=Vector3(0, 3, 0.2),
            parts=[Part(shape="sphere", size=Vector3(0.3, 0.3, 0.3))],
            rigid_body_type="dynamic",
        )
    ],
)


def _world(*names):
    return World(Scene(SCENE), ROBOT, timestep_s=TICK_STEP_S, robots=names, is_open=True)


def _driven(world, name, ahead=0.0, turn=0.0):
    base = MujocoRobot(world, world.bodies[name])
    base.command(Twist(vx=ahead, omega=turn))
    return base


def test_each_robot_drives_on_its_own():
    world = _world("alice", "bob")
    world.reset(Pose2(0, 0, 0), Pose2(0, -2, math.pi / 2))
    bases = [_driven(world, "alice", ahead=0.5), _driven(world, "bob", turn=0.5)]
    for _ in range(60):
        advance_together(world, bases)
    alice, bob = (base.pose() for base in bases)
    assert (alice.x, alice.y, alice.yaw) == pytest.approx((0.5, 0, 0), abs=0.05)
    assert (bob.x, bob.y, bob.yaw) == pytest.approx((0, -2, math.pi / 2 + 0.5), abs=0.02)
    assert world.time_s == pytest.approx(1.0)


def test_robots_bump_into_each_other_and_say_whom_they_touch():
    world = _world("alice", "bob")
    world.reset(Pose2(0, 0, 0), Pose2(1, 0, 0))
    bases = [_driven(world, "alice", ahead=0.5), _driven(world, "bob")]
    for _ in range(120):
        advance_together(world, bases)
    assert bases[0].touched == "bob"
    assert bases[1].touched == "alice"


def test_what_goes_on_goes_on_when_a_robot_comes_and_goes():
    def poses(come_and_go):
        world = _world("alice")
        world.reset(Pose2(0, 0, 0))
        base = _driven(world, "alice", ahead=0.5, turn=0.3)
        for tick in range(60):
            if come_and_go and tick == 20:
                world.add_robot("bob", Pose2(0, -3, 1.0))
                assert world.bodies["bob"].pose() == Pose2(0, -3, 1.0)
            if come_and_go and tick == 40:
                world.remove_robot("bob")
            advance_together(world, [base])
        ball = world.data.body("ball").xpos.copy()
        return base.pose(), world.time_s, ball

    alone, disturbed = poses(False), poses(True)
    assert disturbed[:2] == alone[:2]
    assert np.array_equal(alone[2], disturbed[2])


def test_a_first_robot_can_leave():
    world = _world("alice", "bob")
    world.reset(Pose2(0, 0, 0), Pose2(1, 0, 0))
    bob = _driven(world, "bob", ahead=0.5)
    world.remove_robot("alice")
    for _ in range(60):
        advance_together(world, [bob])
    assert bob.pose().x == pytest.approx(1.5, abs=0.05)
    world.add_robot("alice", Pose2(5, 5, 0))
    with pytest.raises(ValueError, match="alice"):
        world.add_robot("alice", Pose2(6, 6, 0))


def test_each_scanner_and_camera_sees_the_other_robot_only():
    world = _world("alice", "bob")
    world.reset(Pose2(0, 0, 0), Pose2(2, 0, math.pi))
    for body in world.bodies.values():
        scan = LaserScanner(world, body).scan()
        assert scan.ranges.min() == pytest.approx(2 - ROBOT.radius_m, abs=0.01)
        assert scan.ranges.argmin() == 180
        assert np.isfinite(scan.ranges).sum() < 20
    cameras = RgbdCamera(world)
    for body in world.bodies.values():
        _, depth = cameras.render(body)
        assert depth[30, 32] == pytest.approx(1000 * (2 - ROBOT.radius_m), abs=5)
        assert depth[30, 2] != depth[30, 32]
        _, metres = cameras.render_metres(body)
        returns = depth > 0
        assert metres[returns] == pytest.approx(depth[returns] / 1000, abs=6e-4)
        assert (metres[~returns] == ROBOT.camera.far_m).all()
        assert (~returns).any()
    cameras.close()
