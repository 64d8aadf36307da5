import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from proctor.core.geometry import (
    distance,
    pose_after,
    pose_into,
    pose_out_of,
    quaternion_of_euler_deg,
    rotation_matrix,
    wrap_angle,
    yaw_of_quaternion,
)
from proctor.core.types import Action, Pose2, Vector3

degrees = st.floats(-360, 360)


@given(degrees, degrees, degrees)
def test_euler_angles_are_applied_z_y_x_as_scipy_does(x, y, z):
    ours = rotation_matrix(quaternion_of_euler_deg(Vector3(x, y, z)))
    theirs = Rotation.from_euler("ZYX", [z, y, x], degrees=True).as_matrix()
    np.testing.assert_allclose(ours, theirs, atol=1e-12)


@given(st.floats(-179.9, 179.9))
def test_yaw_survives_the_way_through_a_quaternion(z):
    assert math.degrees(yaw_of_quaternion(quaternion_of_euler_deg(Vector3(0, 0, z)))) == pytest.approx(z)


def test_actions_lead_a_quarter_metre_ahead_and_15_degrees_around():
    pose = Pose2(1.0, 2.0, math.pi / 2)
    ahead = pose_after(Action.FORWARD, pose)
    assert (ahead.x, ahead.y, ahead.yaw) == pytest.approx((1.0, 2.25, math.pi / 2))
    assert pose_after(Action.LEFT, pose).yaw == pytest.approx(math.radians(105))
    assert pose_after(Action.RIGHT, pose).yaw == pytest.approx(math.radians(75))
    assert pose_after(Action.STOP, pose) == pose


@given(st.floats(-1e3, 1e3))
def test_a_wrapped_angle_is_the_same_direction_within_half_a_turn(angle):
    wrapped = wrap_angle(angle)
    assert -math.pi < wrapped <= math.pi
    assert math.cos(wrapped) == pytest.approx(math.cos(angle), abs=1e-9)
    assert math.sin(wrapped) == pytest.approx(math.sin(angle), abs=1e-9)


def test_distance_is_three_dimensional():
    assert distance(Vector3(0, 0, 0), Vector3(2, 3, 6)) == 7.0


def test_poses_go_into_a_frame_and_out_again():
    frame, pose = Pose2(1.0, 2.0, math.pi / 2), Pose2(0.5, 0.1, 0.2)
    out = pose_out_of(frame, pose)
    assert (out.x, out.y, out.yaw) == pytest.approx((0.9, 2.5, math.pi / 2 + 0.2))
    back = pose_into(frame, out)
    assert (back.x, back.y, back.yaw) == pytest.approx((0.5, 0.1, 0.2))


def test_a_pose_reads_as_the_dict_that_served_policies_get():
    pose = Pose2(1.0, 2.0, 3.0)
    assert {name: pose[name] for name in ("x", "y", "yaw")} == {"x": 1.0, "y": 2.0, "yaw": 3.0}
    with pytest.raises(KeyError, match="z"):
        pose["z"]
