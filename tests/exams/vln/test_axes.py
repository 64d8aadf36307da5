"""Habitat's axes and ours: nothing is lost on the way there and back, and left stays left."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.core.geometry import rotation_matrix
from proctor.core.types import Vector3
from proctor.exams.vln.axes import (
    classify_rotations,
    from_habitat,
    heading_of_yaw,
    to_habitat,
    xyzw_of_yaw_deg,
    yaw_deg_of_xyzw,
    yaw_of_heading,
)

COORDINATES = st.floats(-1e4, 1e4)
HALF_TURNS = st.floats(-math.pi, math.pi)


@given(st.tuples(COORDINATES, COORDINATES, COORDINATES))
def test_points_come_back_exactly(point):
    assert to_habitat(from_habitat(point)) == point


@given(HALF_TURNS)
def test_quaternions_come_back_with_their_sign(half_rad):
    xyzw = (0.0, math.sin(half_rad), 0.0, math.cos(half_rad))
    assert xyzw_of_yaw_deg(yaw_deg_of_xyzw(xyzw)) == pytest.approx(xyzw, abs=1e-9)


@given(HALF_TURNS)
def test_forward_there_is_forward_here(half_rad):
    x, y, z, w = 0.0, math.sin(half_rad), 0.0, math.cos(half_rad)
    ahead_habitat = rotation_matrix(np.array([w, x, y, z])) @ [0, 0, -1]
    yaw = math.radians(yaw_deg_of_xyzw((x, y, z, w)))
    ahead = from_habitat(tuple(ahead_habitat))
    assert (ahead.x, ahead.y, ahead.z) == pytest.approx((math.cos(yaw), math.sin(yaw), 0.0), abs=1e-9)


def test_up_is_up_and_minus_z_is_north():
    assert from_habitat((1.0, 2.0, 3.0)) == Vector3(1.0, -3.0, 2.0)
    assert yaw_deg_of_xyzw((0, 0, 0, 1)) == pytest.approx(90)


@given(HALF_TURNS)
def test_the_heading_is_what_vlnce_computes(half_rad):
    """Of the vector that points ahead, seen in the agent's frame: atan2(x, -z)."""
    w, x, y, z = math.cos(half_rad), 0.0, math.sin(half_rad), 0.0
    seen = rotation_matrix(np.array([w, -x, -y, -z])) @ [0, 0, -1]
    theirs = math.atan2(seen[0], -seen[2])
    ours = heading_of_yaw(math.radians(yaw_deg_of_xyzw((x, y, z, w))))
    assert math.remainder(ours - theirs, math.tau) == pytest.approx(0, abs=1e-9)
    assert math.remainder(yaw_of_heading(ours) - math.radians(90) - ours, math.tau) == pytest.approx(
        0, abs=1e-9
    )


@pytest.mark.parametrize(
    ("quaternion", "kind"),
    [
        ((0, 0, 0, 1), "about_y"),
        ((0, 1, 0, 0), "about_y"),
        ((0, 0.6, 0, -0.8), "about_y"),
        ((1, 0, 0, 0), "about_y_wxyz"),
        ((0, 0, 1, 0), "about_y_wxyz"),
        ((0.8, 0, 0.6, 0), "about_y_wxyz"),
        ((0, 0, 0.6, 0.8), "about_z"),
        ((0.8, 0, 0, 0.6), "about_z"),
        ((0.5, 0.5, 0.5, 0.5), None),
    ],
)
def test_the_order_of_a_quaternion_shows(quaternion, kind):
    seen = classify_rotations(np.array([quaternion], dtype=float))
    assert {name for name in ("about_y", "about_y_wxyz", "about_z") if getattr(seen, name)[0]} == {kind} - {
        None
    }
    assert seen.unit[0]
