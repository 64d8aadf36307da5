"""Grasping is contact and friction: it holds, it does not creep or glue, and it lets go."""

import numpy as np
import pytest
from stretch_moves import (
    CLOSED,
    OPEN,
    TABLE_Z,
    UP,
    controls_for,
    deepest_on_pads_m,
    episode_with,
    go,
    grasp,
    in_hand,
    world_of,
)

from proctor.worlds.mujoco.tabletop.tabletop import Touch

SHAPES = {
    "cup": ({"kind": "cup", "color": "red"}, 0.05),
    "can": ({"kind": "can", "color": "green"}, 0.06),
    "bottle": ({"kind": "bottle", "color": "blue"}, 0.09),
    "block": ({"kind": "block", "color": "yellow", "size": [0.03, 0.03, 0.03]}, 0.03),
    "thin box": ({"kind": "box", "color": "orange", "size": [0.06, 0.02, 0.1]}, 0.05),
    "ball": ({"kind": "ball", "color": "red", "size": [0.06, 0.06, 0.06]}, 0.035),
}
# A cup's handle points along +x: it stays out of the fingers, which come from -x with their gap along y.
AWAY = [0.0, 0.0, 0.0, 1.0]
PENETRATION_M, CREEP_M, STILL_M = 1e-3, 0.5e-3, 1e-3


def held(shape, height_m, **item):
    """Return a world in which the hand has lifted a thing, or tried to."""
    world = world_of(episode_with({"shape": shape, "rotation": AWAY, **item}))
    at = np.array([0.5, 0.0, TABLE_Z + height_m])
    grasp(world, at)
    go(world, controls_for(at + UP, CLOSED), wait_s=0.5)
    return world, at


@pytest.mark.parametrize(
    "name", [*list(SHAPES)[:3], *(pytest.param(n, marks=pytest.mark.slow) for n in list(SHAPES)[3:])]
)
def test_a_thing_is_held_carried_and_put_down(name):
    world, at = held(*SHAPES[name])
    assert world.pose_of("thing")[0][2] > TABLE_Z + 0.1, "it was not lifted"
    assert world.toucher.touch(world.data) & (Touch.LEFT | Touch.RIGHT) == Touch.LEFT | Touch.RIGHT
    before, deepest_m = in_hand(world, "thing"), 0.0
    for _ in range(100):  # 10 s
        world.advance()
        deepest_m = max(deepest_m, deepest_on_pads_m(world, "thing"))
    assert np.linalg.norm(in_hand(world, "thing") - before) < CREEP_M
    assert 0 < deepest_m < PENETRATION_M

    there = at + np.array([0.1, 0.15, 0.003])
    go(world, controls_for(there + UP, CLOSED))
    go(world, controls_for(there, CLOSED), wait_s=0.3)
    go(world, controls_for(there, OPEN), wait_s=1.0)
    assert not world.toucher.touch(world.data) & Touch.ROBOT, "it was not let go"
    go(world, controls_for(there + UP, OPEN))
    placed = world.pose_of("thing")[0]
    for _ in range(50):  # 5 s
        world.advance()
    assert np.linalg.norm(world.pose_of("thing")[0] - placed) < STILL_M
    assert np.linalg.norm(placed - [0.6, 0.15, TABLE_Z]) < 0.01


@pytest.mark.parametrize(("mass_kg", "is_lifted"), [(2.0, True), (6.0, False)])
def test_friction_is_coulombs(mass_kg, is_lifted):
    # Two pads with a friction of 1 and 20 N each carry some 4 kg.
    world, _ = held(*SHAPES["can"], mass=mass_kg)
    assert bool(world.pose_of("thing")[0][2] > TABLE_Z + 0.1) is is_lifted


def test_a_closed_hand_beside_a_thing_holds_nothing():
    world = world_of(episode_with({"shape": SHAPES["cup"][0]}))
    beside = np.array([0.5, 0.25, TABLE_Z + 0.05])
    grasp(world, beside)
    assert not world.toucher.touch(world.data) & (Touch.LEFT | Touch.RIGHT)
    go(world, controls_for(beside + UP, CLOSED))
    assert world.pose_of("thing")[0][2] == pytest.approx(TABLE_Z, abs=1e-3)


def test_the_fingers_close_and_the_arm_stretches_evenly():
    world, _ = held(*SHAPES["cup"])
    joints = [world.data.joint(f"joint_arm_l{i}").qpos[0] for i in range(4)]
    assert max(joints) - min(joints) < 1e-4
    fingers = [world.data.joint(f"joint_gripper_finger_{side}").qpos[0] for side in ("left", "right")]
    assert abs(fingers[0] - fingers[1]) < 1e-3


@pytest.mark.parametrize(
    "shape", [{"kind": "can", "size": [0.09, 0.09, 0.12]}, {"kind": "ball", "size": [0.12, 0.12, 0.12]}]
)
def test_what_is_too_wide_does_not_wedge_the_hand_open(shape):
    world = world_of(episode_with({"shape": shape}))
    at = np.array([0.5, 0.0, TABLE_Z + 0.06])
    widest_m = 0.0
    for controls in (controls_for(at + UP, OPEN), controls_for(at, OPEN), controls_for(at + UP, OPEN)):
        world.command(controls)
        for _ in range(25):
            world.advance()
            widest_m = max(widest_m, float(world.qpos()[9]))
    assert widest_m < OPEN + 0.002
    assert world.pose_of("thing")[0][2] < TABLE_Z + 0.05
