"""Lights in the units of scene files and in those of the engine."""

from __future__ import annotations

import math
from typing import Literal

LightType = Literal["point", "directional"]
SUN_EV, LAMP_LM = 4.0, 2000.0
"""What an intensity of 1 means: the engine's own sun, 40 lux, and a lamp as bright from 2 m away."""


def to_engine(type_: LightType, intensity: float) -> float:
    """Return the EV100 (illuminance) of a directional light, or the lumen of a point.

    Args:
        type_: Of the light.
        intensity: Of a scene file, above 0.
    """
    if type_ == "point":
        return LAMP_LM * intensity
    return max(SUN_EV + math.log2(intensity), 0.0)


def from_engine(type_: LightType, value: float) -> float:
    """Return the intensity that `to_engine` made a value of."""
    return value / LAMP_LM if type_ == "point" else float(2.0 ** (value - SUN_EV))
