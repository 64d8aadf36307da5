"""O3DE's transforms: a turn and one scale for all axes, then a shift."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from scipy.spatial.transform import Rotation

Triple = tuple[float, float, float]
Quadruple = tuple[float, float, float, float]
STRAIGHT = 1e-9


class Placement(NamedTuple):
    """Where something is, in its parent or in the world."""

    translation: Triple = (0.0, 0.0, 0.0)
    rotation_xyzw: Quadruple = (0.0, 0.0, 0.0, 1.0)
    scale: float = 1.0

    def of(self, inner: Placement) -> Placement:
        """Return what is placed in this one as seen from outside."""
        turn = self._turn
        shift = turn.apply(np.multiply(inner.translation, self.scale)) + self.translation
        return Placement(triple(shift), _quadruple(turn * inner._turn), self.scale * inner.scale)

    def inverse(self) -> Placement:
        """Return the placement that undoes this one."""
        back = self._turn.inv()
        shift = back.apply(np.negative(self.translation)) / self.scale
        return Placement(triple(shift), _quadruple(back), 1 / self.scale)

    def euler_xyz_rad(self) -> Triple:
        """Return the angles whose turns about x, y and z, multiplied in this order, are the rotation."""
        x, y, z = euler_zyx_rad(self._turn.inv())  # backwards, it is the other order
        return -x, -y, -z

    @property
    def _turn(self) -> Rotation:
        return Rotation.from_quat(self.rotation_xyzw)


def quaternion_of_euler_xyz(angles: Triple, *, degrees: bool = False) -> Quadruple:
    """Return the xyzw quaternion of angles in O3DE's order: qx·qy·qz."""
    return _quadruple(Rotation.from_euler("XYZ", angles, degrees=degrees))


def euler_zyx_rad(turn: Rotation) -> Triple:
    """Return the angles about x, y and z whose turns, that about x first, are a rotation.

    Straight up and down, where they are not unique, that about x is 0.
    """
    matrix = turn.as_matrix()
    y = math.asin(min(1.0, max(-1.0, -matrix[2, 0])))
    if math.hypot(matrix[2, 1], matrix[2, 2]) < STRAIGHT:
        return 0.0, y, math.atan2(-matrix[0, 1], matrix[1, 1])
    return math.atan2(matrix[2, 1], matrix[2, 2]), y, math.atan2(matrix[1, 0], matrix[0, 0])


def triple(values: Iterable[float]) -> Triple:
    """Return three numbers as a tuple."""
    x, y, z = (float(value) for value in values)
    return x, y, z


def _quadruple(turn: Rotation) -> Quadruple:
    x, y, z, w = (float(value) for value in turn.as_quat())
    return x, y, z, w
