"""The mark that shows where the object should go: a disc with a light and a dark rim."""

from __future__ import annotations

from typing import Any

import numpy as np

from proctor.core.types import Array
from proctor.scenes.colors import PALETTE
from proctor.scenes.lathe import lathe
from proctor.scenes.shapes import Triple
from proctor.sim.contacts import Group
from proctor.sim.meshes import Painter

ZONE_COLOR: Triple = (0.22, 0.68, 0.32)
ZONE_M = 0.0005
"""Above the place that it marks."""
RINGS = ((1.0, 0.95, PALETTE["black"]), (0.95, 0.85, PALETTE["white"]), (0.85, 0.0, ZONE_COLOR))
"""From which share of the radius to which: of black and white, one is seen on any ground."""
SIDES = 48


def add_zone(spec: Any, position: Array, radius_m: float) -> None:
    """Draw the mark, level, around a place in the world."""
    painter = Painter(spec)
    body = spec.worldbody.add_body(name="#zone", pos=position + np.array([0.0, 0.0, ZONE_M]))
    for outer, inner, color in RINGS:
        painter.draw(
            lathe([(outer * radius_m, 0.0), (inner * radius_m, 0.0)], color, SIDES), body, Group.DRAWN
        )
