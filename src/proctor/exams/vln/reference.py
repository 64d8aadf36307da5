"""A driven path beside its reference: how far off, how far along, and where it left for good."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np

from proctor.core.geometry import distances_along, wrap_angle
from proctor.core.types import Array

Way = Literal["left", "right", "ahead", "back"]

OFF_PATH_M = 1.0
"""Further from the reference path than this is off it."""
LEAVING_M = 0.3
"""Up to here an agent that ends off the path had still been on it."""
LOOK_M = 0.75
"""Over how much of a path its direction is measured."""
TURN_RAD, BACK_RAD = math.radians(35), math.radians(150)
"""Less than the one is straight ahead, more than the other is back."""


class Departure(NamedTuple):
    """Where a robot left the reference path and did not come back."""

    step: int
    """The step of the turn that led away, or the last one on the path."""
    took: Way
    wanted: Way
    """Which way the reference goes on from there."""
    at_first_turn: bool
    """Whether it happened no later than at the first turn of the reference."""


def nearest_on_path(path: Array, points: Array) -> tuple[Array, Array, float]:
    """Return how far (N, 2) points are off a path, how far along it they are, and its length; metres."""
    starts, legs = path[:-1], np.diff(path, axis=0)
    lengths_m = np.linalg.norm(legs, axis=1)
    before_m = np.concatenate([[0.0], np.cumsum(lengths_m)])
    offsets = points[:, None] - starts  # (N, legs, 2)
    shares = (offsets * legs).sum(axis=2) / np.maximum(lengths_m**2, 1e-12)
    shares = np.clip(shares, 0.0, 1.0)
    off_m = np.linalg.norm(offsets - shares[..., None] * legs, axis=2)
    leg = off_m.argmin(axis=1)
    rows = np.arange(len(points))
    return off_m[rows, leg], before_m[leg] + shares[rows, leg] * lengths_m[leg], float(before_m[-1])


def departure_from(path: Array, positions: Array, headings: Sequence[float]) -> Departure | None:
    """Find where a robot left a path for good; None if it ended on the path or never was on it."""
    off_m, along_m, length_m = nearest_on_path(path, positions)
    on = np.flatnonzero(off_m <= OFF_PATH_M)
    if not len(on) or on[-1] == len(positions) - 1:
        return None
    close = np.flatnonzero(off_m[: on[-1] + 1] <= LEAVING_M)
    step = int(close[-1]) if len(close) else int(on[-1])
    at_m = float(along_m[step])
    start_yaw = headings[0]
    came = start_yaw if at_m < LOOK_M / 2 else _direction(path, at_m - LOOK_M, at_m)
    wanted = _way(_direction(path, at_m, at_m + LOOK_M) - came) if at_m < length_m - 0.05 else "ahead"
    gone_m = np.linalg.norm(positions[step:] - positions[step], axis=1)
    ahead = positions[step + int(np.argmax(gone_m >= min(LOOK_M, gone_m.max())))] - positions[step]
    took = _way(math.atan2(ahead[1], ahead[0]) - came)
    return Departure(
        step=step if took == "ahead" else _turn_before(step, positions, headings),
        took=took,
        wanted=wanted,
        at_first_turn=at_m <= _first_turn_m(path, length_m, start_yaw) + LOOK_M,
    )


def _turn_before(step: int, positions: Array, headings: Sequence[float]) -> int:
    """Return the first of the turns that were made about where the robot stood after this step."""
    first = step
    for index in range(min(step, len(headings) - 1), 0, -1):
        if np.linalg.norm(positions[index] - positions[step]) > 2 * LEAVING_M:
            break
        if abs(wrap_angle(headings[index] - headings[index - 1])) > 0.05:
            first = index
    return first


def _first_turn_m(path: Array, length_m: float, start_yaw: float) -> float:
    """Return how far along a path its first turn is; its length if it goes straight on."""
    if _way(_direction(path, 0.0, LOOK_M) - start_yaw) != "ahead":
        return 0.0
    for at_m in np.arange(LOOK_M, length_m - LOOK_M / 2, 0.1):
        came, goes = _direction(path, at_m - LOOK_M, at_m), _direction(path, at_m, at_m + LOOK_M)
        if _way(goes - came) != "ahead":
            return float(at_m)
    return length_m


def _direction(path: Array, from_m: float, to_m: float) -> float:
    """Return the direction of the chord between two points of a path, as an angle in the world."""
    along_m = distances_along(path)
    ends = np.clip([from_m, to_m], 0.0, along_m[-1])
    (x0, x1), (y0, y1) = (np.interp(ends, along_m, path[:, axis]) for axis in (0, 1))
    return math.atan2(y1 - y0, x1 - x0)


def _way(angle: float) -> Way:
    angle = wrap_angle(angle)
    if abs(angle) < TURN_RAD:
        return "ahead"
    if abs(angle) > BACK_RAD:
        return "back"
    return "left" if angle > 0 else "right"
