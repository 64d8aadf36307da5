"""How a tabletop world looks: materials, lights, a camera that was bumped. Nothing of it is felt."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from proctor.core.types import Array
from proctor.scenes.scene_config import Light, Texture
from proctor.sim.model import DAYLIGHT

Rgb = tuple[float, float, float]


class Material(NamedTuple):
    """What a surface is made of."""

    texture: Texture | None
    color: Rgb


class Look(NamedTuple):
    """All that can be different without anything being elsewhere."""

    floor: Material = Material("planks", (0.75, 0.62, 0.48))
    walls: Material = Material("plaster", (0.86, 0.85, 0.8))
    furniture: Material | None = None
    """None: as it is made."""
    lights: tuple[Light, ...] = DAYLIGHT
    ambient: float = 0.62
    reflectance: float = 0.0
    """Of the furniture's tops."""
    camera_shift_m: Array = np.zeros(3)
    """Of the head's camera, in the base frame."""
    camera_turn_rad: Array = np.zeros(3)
    """A rotation vector, in the base frame."""


PLAIN = Look()
