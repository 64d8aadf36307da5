"""What the arrays of an observation are like."""

from __future__ import annotations

import numpy as np

from proctor.core.types import Observation, Sensor


def sensors_of(observation: Observation) -> dict[str, Sensor]:
    """Return what agents are told of the arrays that they will see."""
    return {
        name: Sensor(dtype=str(value.dtype), shape=value.shape)
        for name, value in observation.items()
        if isinstance(value, np.ndarray)
    }
