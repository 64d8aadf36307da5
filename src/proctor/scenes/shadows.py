"""Soft dark patches under furniture, without which it seems to float: real shadows cost too much time."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

from proctor.scenes.placement import RUG_HEIGHT_M, Furnishing
from proctor.scenes.scene_config import SceneObject
from proctor.scenes.shapes import trim

MARGIN_M = 0.05
DARKNESS = 0.24
HEIGHT_M = 0.02
"""Above rugs."""
STANDING_M = 0.3
"""What is lower throws no shadow that one would miss."""


def shadows(furniture: Iterable[Furnishing]) -> list[SceneObject]:
    """Return one object for each room with the shadows of all that stands in it."""
    objects = []
    for room, items in groupby(furniture, key=lambda item: item.object.room):
        parts = []
        for item in items:
            rect, bottom_m, top_m = item.volume
            if bottom_m > 0.0 or top_m < max(STANDING_M, RUG_HEIGHT_M):
                continue
            size = (rect.width_m + 2 * MARGIN_M, rect.depth_m + 2 * MARGIN_M, 0.001)
            parts.append(trim(size, (*rect.centre, HEIGHT_M), (0.0, 0.0, 0.0, DARKNESS)))
        if parts:
            name = f"{room} shadows"
            objects.append(
                SceneObject(name=name, category="shadow", room=room, parts=parts, rigid_body_type="none")
            )
    return objects
