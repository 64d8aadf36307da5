"""Rotations of o3de_sim, against scipy's."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from o3de_sim.o3de_api.interface.math import (
    IDENTITY,
    Quaternion,
    Vector3,
    euler_to_quaternion,
    from_o3de_euler_degrees,
    quaternion_to_euler,
    to_o3de_euler_degrees,
    turn_from_y,
)

coordinates = st.floats(-1e3, 1e3)
vectors = st.builds(Vector3, coordinates, coordinates, coordinates)
angles = st.tuples(*[st.one_of(st.floats(-720, 720), st.sampled_from([-180, -90, 0, 90, 180, 270]))] * 3)
quaternions = angles.map(euler_to_quaternion)


def scipy_of(rotation):
    return Rotation.from_quat(rotation.to_xyzw())


def assert_same(rotation, reference, tolerance=1e-9):
    assert (scipy_of(rotation) * reference.inv()).magnitude() < tolerance


@given(angles)
def test_files_turn_by_z_y_x(degrees):
    assert_same(euler_to_quaternion(degrees), Rotation.from_euler("ZYX", degrees[::-1], degrees=True))


@given(angles)
def test_the_engine_turns_by_x_y_z(degrees):
    assert_same(from_o3de_euler_degrees(degrees), Rotation.from_euler("XYZ", degrees, degrees=True))
    halves = np.radians(degrees) / 2
    x, y, z = (
        Quaternion(math.cos(half), *math.sin(half) * axis)
        for half, axis in zip(halves, np.eye(3), strict=True)
    )
    assert_same(x * y * z, scipy_of(from_o3de_euler_degrees(degrees)))


def test_the_orders_differ_unless_one_axis_is_turned_about():
    assert euler_to_quaternion([0, 0, 37]) == pytest.approx(from_o3de_euler_degrees([0, 0, 37]))
    assert euler_to_quaternion([30, 0, 37]) != pytest.approx(from_o3de_euler_degrees([30, 0, 37]), abs=0.01)


@given(angles)
def test_angles_there_and_back_are_the_same_rotation(degrees):
    for there, back in (
        (euler_to_quaternion, quaternion_to_euler),
        (from_o3de_euler_degrees, to_o3de_euler_degrees),
    ):
        rotation = there(degrees)
        found = back(rotation)
        assert abs(found.x) <= 180 + 1e-9
        assert abs(found.y) <= 90 + 1e-9
        assert abs(found.z) <= 180 + 1e-9
        assert_same(there(found), scipy_of(rotation), 1e-6)


@given(st.floats(-179.9, 179.9), st.floats(-89, 89), st.floats(-179.9, 179.9))
def test_away_from_gimbal_lock_the_angles_come_back(x, y, z):
    assert quaternion_to_euler(euler_to_quaternion([x, y, z])).to_list() == pytest.approx([x, y, z], abs=1e-6)


@pytest.mark.parametrize("y", [90, -90])
def test_in_gimbal_lock_x_is_zero(y):
    found = quaternion_to_euler(euler_to_quaternion([25, y, 40]))
    assert found.to_list() == pytest.approx([0, y, 40 - math.copysign(25, y)], abs=1e-6)


@given(quaternions, quaternions, vectors)
def test_products_and_turns_are_those_of_scipy(a, b, vector):
    assert_same(a * b, scipy_of(a) * scipy_of(b))
    assert_same(a.conjugate(), scipy_of(a).inv())
    expected = scipy_of(a).apply(vector.to_list())
    assert a.rotate(vector).to_list() == pytest.approx(expected, abs=1e-9 * (1 + vector.length()))


@given(vectors, vectors, st.floats(-10, 10))
def test_vectors_are_those_of_numpy(a, b, factor):
    first, second = np.array(a.to_list()), np.array(b.to_list())
    assert (a + b).to_list() == list(first + second)
    assert (a - b).to_list() == list(first - second)
    assert (a * factor).to_list() == (factor * a).to_list() == list(first * factor)
    assert a.scaled(b).to_list() == list(first * second)
    assert a.length() == pytest.approx(np.linalg.norm(first))
    assert a.distance(b) == a.distance(b.to_list()) == pytest.approx(np.linalg.norm(first - second))


@given(vectors.filter(lambda vector: vector.length() > 1e-3))
def test_a_light_shines_where_it_is_told(direction):
    shone = turn_from_y(direction).rotate([0, 1, 0])
    assert (shone * direction.length()).distance(direction) < 1e-9 * direction.length()


@pytest.mark.parametrize(
    "value",
    [{"x": 1, "y": 2, "z": 3}, (1, 2, 3), [1.0, 2, 3.0], np.array([1, 2, 3]), SimpleNamespace(x=1, y=2, z=3)],
)
def test_vectors_are_made_of_whatever_has_three_numbers(value):
    vector = Vector3.of(value)
    assert vector == Vector3(1, 2, 3)
    assert {type(number) for number in vector} == {float}
    assert euler_to_quaternion(value) == euler_to_quaternion(vector)


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ({"x": 1, "y": 2}, "expected the keys x, y, z"),
        ({"x": 1, "y": 2, "z": 3, "w": 0}, "expected the keys"),
        ([1, 2], "expected 3 numbers, found 2"),
        ("abc", "found 'abc'"),
        (5, "found 5"),
        ([1, 2, "3"], "z: expected a number, found '3'"),
        ([1, True, 3], "y: expected a number"),
        ([math.nan, 0, 0], "x: expected a finite number"),
        ([0, math.inf, 0], "y: expected a finite number"),
        ([None, 0, 0], "x: expected a number"),
    ],
)
def test_what_is_no_vector_is_refused(value, problem):
    with pytest.raises(ValueError, match=problem):
        Vector3.of(value)


def test_quaternions_have_length_one():
    with pytest.raises(ValueError, match="of length 0"):
        Quaternion(0, 0, 0, 0)
    with pytest.raises(ValueError, match="of length 2"):
        Quaternion.of([1, 1, 1, 1])
    assert math.hypot(*Quaternion(1.0004, 0, 0, 0)) == 1  # rounding is put right


def test_the_wire_has_w_last():
    rotation = euler_to_quaternion([10, 20, 30])
    assert rotation.to_xyzw() == [rotation.x, rotation.y, rotation.z, rotation.w]
    assert Quaternion.from_xyzw(rotation.to_xyzw()) == pytest.approx(rotation)
    assert Quaternion.of([1, 0, 0, 0]) == Quaternion.of({"w": 1, "x": 0, "y": 0, "z": 0}) == IDENTITY
    assert Quaternion.from_xyzw([0, 0, 0, 1]) == IDENTITY
