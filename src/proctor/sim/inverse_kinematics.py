"""Joint commands that bring the hand to a pose."""

from __future__ import annotations

from typing import Any, NamedTuple

from proctor.core.types import Array
from proctor.sim.tabletop import TabletopWorld


class Solution(NamedTuple):
    """What to command, and how near it brings the hand."""

    controls: Array
    """The seven, the base's relative to its start."""
    reached: bool
    position_error_m: float
    angle_error_rad: float

    def report(self) -> dict[str, Any]:
        """Return what `info` says of it."""
        return {
            "reached": self.reached,
            "position_error_m": self.position_error_m,
            "angle_error_rad": self.angle_error_rad,
        }


class HandSolver:
    """Finds commands for poses of the hand.

    Args:
        world: Whose robot.
    """

    def __init__(self, world: TabletopWorld) -> None:
        self._world = world

    def solve(self, hand_in_base: Array, opening_m: float) -> Solution:
        """Return the commands for a pose of the hand in `base_link`: x, y, z and a quaternion w, x, y, z."""
        raise NotImplementedError
