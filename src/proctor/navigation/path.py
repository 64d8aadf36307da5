"""A path on the floor: where to go, not yet when."""

from __future__ import annotations

import msgspec
import numpy as np

from proctor.core.geometry import distances_along
from proctor.core.types import Array


class Leg(msgspec.Struct, frozen=True):
    """A part of a path that is driven without a stop: dense points, a few centimetres apart."""

    points: Array  # (N, 2), N at least 2
    yaw: Array  # (N,) directions of the path, unwrapped and continuous
    curvature: Array  # (N,) 1 / metres, positive to the left; continuous

    @property
    def arc_m(self) -> Array:
        """The way from the first point to each."""
        return distances_along(self.points)


class Path(msgspec.Struct, frozen=True, kw_only=True):
    """A path that was found, and what it was made smooth to."""

    raw: Array  # (N, 2) corners as the planner gave them
    legs: tuple[Leg, ...]
    """What is driven. One leg if the path could be made smooth, else one for each straight part, with a stop
    and a turn between."""
    planner: str
    margin_m: float  # what was kept beyond the robot's radius when planning, 0 where only the bare robot fits
    clearance_m: float  # the least clearance along the legs

    @property
    def points(self) -> Array:
        """(N, 2) all points of all legs."""
        return np.concatenate([leg.points for leg in self.legs])

    @property
    def length_m(self) -> float:
        """The way along all legs."""
        return float(sum(leg.arc_m[-1] for leg in self.legs))
