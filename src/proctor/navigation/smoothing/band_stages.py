"""A band laid along a path, and what becomes of it while it gives way."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from proctor.core.geometry import path_length
from proctor.core.types import Array
from proctor.navigation.maps.clearance import clearance_at
from proctor.navigation.maps.clearance_field import ClearanceField
from proctor.navigation.smoothing.bspline import AT_KNOT, BEND_AT_KNOT, SLOPE_AT_KNOT, controls_along
from proctor.navigation.smoothing.elastic_band import End, cap_to_room, relax
from proctor.navigation.smoothing.path_worth import ROOM_GROWS

Heading = tuple[float, float]
"""Yaw and curvature."""
FEWEST_SPANS = 4
STEPS_M = (0.25, 0.4, 0.5, 0.5, 0.5, 0.5, 0.6, 0.6, 0.6, 0.6, 0.6, 0.6)
"""How far along the band each step of relaxing evens it out."""
MOVING_STEPS_M = (0.8, 0.8, 1.2, 1.2, 1.6, 1.6)
"""Further steps for a robot that is moving: at its speed it needs a long way to change direction."""
LOOKED_AT = (0, 1, 3, 5, 8, 11, 13, 15, 17)
"""The steps after which the band is taken for a path."""
STIFFER = 200.0
"""How much stiffer a band is where the robot is still fast; down to 1 where it could have stopped."""
LOOSEST = 1e-7
"""The least that a band is held where it is, so that what it is to do is never undetermined."""
SPARE_M = 0.01
"""What the band is asked to keep beyond the clearance that is wanted, since it gives way a little."""


def band_stages(
    field: ClearanceField, guide: Array, span_m: float, wanted_m: float, start: Heading | None, stop_m: float
) -> Iterator[Array]:
    """Lay a band along a path and let it give way; return its control points at several stages.

    The later the stage, the gentler the turns, and the longer the way, mostly.

    Args:
        field: The map.
        guide: (N, 2) the path's corners.
        span_m: About how long a span of the curve is.
        wanted_m: Clearance that the band tries to keep.
        start: How it must begin, if that matters.
        stop_m: How far the robot goes until it could stand.
    """
    length_m = path_length(guide)
    spans = max(FEWEST_SPANS, math.ceil(length_m / span_m))
    span_m = length_m / spans
    controls = controls_along(guide, spans)
    wanted = _wanted(field, guide, np.linspace(0.0, length_m, 2 * spans + 1), wanted_m + SPARE_M)
    cap_to_room(controls, field, wanted)
    first, last = _first_end(guide[0], span_m, start), End.of(AT_KNOT[None], guide[-1:])
    stiffness = STIFFER ** np.maximum(0.0, 1.0 - np.arange(spans + 2) * span_m / max(stop_m, 1e-9))
    for step, reach_m in enumerate(STEPS_M if start is None else STEPS_M + MOVING_STEPS_M):
        stay = max((span_m / reach_m) ** 6, LOOSEST)
        relax(controls, stay, stiffness, field, wanted, first, last)
        if step in LOOKED_AT:
            yield controls.copy()


def _wanted(field: ClearanceField, guide: Array, way_m: Array, wanted_m: float) -> Array:
    """Return the clearances wanted along the way: less near an end that has less."""
    at_first, at_last = (clearance_at(field, *guide[end])[0] for end in (0, -1))
    from_first, from_last = at_first + ROOM_GROWS * way_m, at_last + ROOM_GROWS * way_m[::-1]
    return np.minimum(wanted_m, np.minimum(from_first, from_last))


def _first_end(place: Array, span_m: float, start: Heading | None) -> End:
    """Return the conditions at the start: the place, and yaw and curvature if they are given."""
    if start is None:
        return End.of(AT_KNOT[None], place[None])
    yaw, curvature = start
    ahead, left = np.array([math.cos(yaw), math.sin(yaw)]), np.array([-math.sin(yaw), math.cos(yaw)])
    wants = np.stack([place, span_m * ahead, span_m * span_m * curvature * left])
    return End.of(np.stack([AT_KNOT, SLOPE_AT_KNOT, BEND_AT_KNOT]), wants)
