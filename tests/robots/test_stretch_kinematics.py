"""The closed form against the model that MuJoCo moves."""

import math

import mujoco
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from proctor.core.geometry import wrap_angle
from proctor.core.types import Pose2
from proctor.robots import stretch_kinematics as kinematics
from proctor.robots.stretch import CONTROLS
from proctor.worlds.mujoco.tabletop.stretch_model import ARM_JOINTS, BASE_JOINTS, HAND_SITE, stretch_spec

SAME_M, SAME_RAD = 1e-4, 1e-4


@pytest.fixture(scope="module")
def robot():
    model = stretch_spec(drawn=False).compile()
    return model, mujoco.MjData(model)


def measured(robot, posture):
    """Return where MuJoCo says the hand is, and how it is turned."""
    model, data = robot
    names = (*BASE_JOINTS, "joint_lift", *ARM_JOINTS, "joint_wrist_yaw")
    base = posture.base
    values = (base.x, base.y, base.yaw, posture.lift_m, *[posture.arm_m / 4] * 4, posture.wrist_yaw)
    for name, value in zip(names, values, strict=True):
        data.joint(name).qpos[0] = value
    mujoco.mj_kinematics(model, data)
    hand = data.site(HAND_SITE)
    return hand.xpos.copy(), Rotation.from_matrix(hand.xmat.reshape(3, 3))


def random_posture(rng):
    lift, arm, wrist = (rng.uniform(control.low, control.high) for control in CONTROLS[3:6])
    return kinematics.Posture(Pose2(*rng.uniform(-3, 3, 3).tolist()), lift, arm, wrist)


@pytest.mark.parametrize("seed", range(4))
def test_forward_agrees_with_mujoco(robot, seed):
    rng = np.random.default_rng(seed)
    for _ in range(100):
        posture = random_posture(rng)
        position, turned = measured(robot, posture)
        said, heading = posture.hand()
        assert np.linalg.norm(said - position) < SAME_M
        of_heading = Rotation.from_quat(kinematics.hand_quaternion(heading), scalar_first=True)
        assert (of_heading.inv() * turned).magnitude() < SAME_RAD


def test_in_base_is_in_the_world_of_a_base_at_the_origin(robot):
    position, heading = kinematics.hand_in_base(0.5, 0.2, 0.3)
    there, turned = measured(robot, kinematics.Posture(Pose2(0, 0, 0), 0.5, 0.2, 0.3))
    assert np.linalg.norm(position - there) < SAME_M
    assert kinematics.heading_of(turned.as_quat(scalar_first=True)) == pytest.approx(heading, abs=SAME_RAD)


@pytest.mark.parametrize("seed", range(4))
def test_inverses_bring_the_hand_there(robot, seed):
    rng = np.random.default_rng(seed)
    for _ in range(100):
        wanted, heading = random_posture(rng).hand()
        base = Pose2(*rng.uniform(-3, 3, 3).tolist())
        driven = kinematics.reach_by_driving(wanted, heading, base)
        stood = kinematics.reach_from(wanted, heading, base.yaw, rng.uniform(0, 0.5))
        for posture in (driven, stood):
            position, turned = measured(robot, posture)
            assert np.linalg.norm(position - wanted) < SAME_M
            found = kinematics.heading_of(turned.as_quat(scalar_first=True))
            assert abs(wrap_angle(found - heading)) < SAME_RAD
            assert posture.base.yaw == base.yaw
        across = (-math.sin(base.yaw), math.cos(base.yaw))
        moved = (driven.base.x - base.x, driven.base.y - base.y)
        assert abs(np.dot(moved, across)) < 1e-9, "driving is straight"


def test_a_posture_is_found_again():
    rng = np.random.default_rng(5)
    for _ in range(100):
        posture = random_posture(rng)
        found = kinematics.reach_by_driving(*posture.hand(), posture.base)
        assert found.is_possible()
        assert np.allclose(found[1:], posture[1:], atol=1e-9)
        assert np.allclose((found.base.x, found.base.y), (posture.base.x, posture.base.y), atol=1e-9)


@pytest.mark.parametrize(
    ("lift", "arm", "wrist", "possible"),
    [(0.5, 0.2, 0.0, True), (1.2, 0.2, 0.0, False), (0.5, -0.1, 0.0, False), (0.5, 0.2, 2.0, False)],
)
def test_what_is_possible(lift, arm, wrist, possible):
    posture = kinematics.Posture(Pose2(0, 0, 0), lift, arm, wrist)
    assert posture.is_possible() is possible
    assert posture.clamped().is_possible()
    assert (posture.clamped() == posture) is possible


@pytest.mark.parametrize("heading", [-3.0, -math.pi / 2, 0.0, 0.7, 3.1])
@pytest.mark.parametrize("pitch", [-math.pi / 2, -0.5, 0.0, math.pi / 6, math.pi / 2])
def test_heading_is_what_pitch_leaves(heading, pitch):
    turned = Rotation.from_euler("ZY", [heading, pitch])
    found = kinematics.heading_of(3.0 * turned.as_quat(scalar_first=True))
    assert wrap_angle(found - heading) == pytest.approx(0.0, abs=1e-6)


def test_identity_is_along_x():
    assert kinematics.heading_of(np.array([1.0, 0.0, 0.0, 0.0])) == 0.0
    assert kinematics.heading_of(kinematics.hand_quaternion(-1.2)) == pytest.approx(-1.2)
