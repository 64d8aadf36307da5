"""A laser scan on the wire: a map with a name for each of its parts."""

from __future__ import annotations

from typing import Any

import numpy as np

from proctor.agents.faults import BadFrame, WireFault
from proctor.core.types import Observation, Scan


def named_scans(observation: Observation) -> Observation:
    """Return an observation in which scans are maps. A named tuple would be sent as a list."""
    return {
        name: value._asdict() if isinstance(value, Scan) else value for name, value in observation.items()
    }


def read_scan(fields: Any) -> Scan:
    """Return the scan that was sent; beams without a return are NaN if it came as JSON.

    Raises:
        BadFrame: It is no scan.
    """
    try:
        ranges = np.asarray(fields["ranges"], np.float64)
        return Scan(ranges, *(float(fields[name]) for name in Scan._fields[1:]))
    except (KeyError, TypeError, ValueError) as error:
        raise BadFrame(WireFault.MALFORMED, f"observation.scan: {type(error).__name__} {error}") from None
