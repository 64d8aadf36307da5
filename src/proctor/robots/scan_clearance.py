"""How much room a scan shows ahead of a robot."""

from __future__ import annotations

import math

import numpy as np

from proctor.core.types import SECTOR_RAD, Scan


def clearance_ahead_m(scan: Scan) -> float:
    """Return the shortest valid range within 30° of straight ahead, by angles; infinity if there is none."""
    ranges = np.asarray(scan.ranges)
    if not len(ranges):
        return math.inf
    angles = scan.angle_min + scan.angle_increment * np.arange(len(ranges))
    # Wrapped, so that scans that begin straight ahead or behind are right, too.
    ahead = np.abs((angles + np.pi) % (2 * np.pi) - np.pi) <= SECTOR_RAD + 1e-6
    valid = (ranges > scan.range_min) & (ranges < scan.range_max)  # False for NaN and inf
    return float(ranges[ahead & valid].min(initial=math.inf))
