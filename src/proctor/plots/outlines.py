"""What a scene looks like from above, as shapes: the outline of every part on the floor."""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import numpy as np
from scipy.spatial import ConvexHull

from proctor.core.types import Array
from proctor.scenes.frames import Frame, placed_parts
from proctor.scenes.scene_config import Part, SceneConfig, SceneObject

CUT_M = 1.9  # above the floor. What begins higher is left out: ceilings, lamps, and the wall above a door.
HANGING_M = 1.2  # objects that hang this high are pictures and cupboards: nothing of them stands in the way
FLAT_M = 0.05  # what is lower than this lies on the floor
BELOW_M = 0.3  # what ends this far below the floor belongs to another storey
SIDES = 32
CORNERS = np.array([[x, y, z] for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (-0.5, 0.5)])
BOX_OUTLINE = [0, 4, 6, 2]
"""Which of the CORNERS go around a box that stands upright: most parts do, and their hull takes long."""
ANGLES = np.arange(SIDES) * math.tau / SIDES
RING = np.stack([np.cos(ANGLES), np.sin(ANGLES), 0 * ANGLES], axis=1) / 2
UP = np.array([0.0, 0.0, 1.0])

Kind = Literal["floor", "rug", "thing", "wall"]


class Outline(NamedTuple):
    """A part, seen from above."""

    kind: Kind
    corners: Array  # (N, 2), in the world frame
    top_m: float
    color: tuple[float, float, float]
    room: str


def outlines_of_scene(scene: SceneConfig, *, floor_z: float = 0.0) -> list[Outline]:
    """Return the parts of one storey in the order in which they are drawn: lower ones first, walls last."""
    found = [outline for item in scene.objects for outline in _outlines(item, floor_z)]
    return sorted(found, key=lambda shape: (("floor", "rug", "thing", "wall").index(shape.kind), shape.top_m))


def _outlines(item: SceneObject, floor_z: float) -> list[Outline]:
    bodies = [_corners(part, frame) for part, frame in placed_parts(item)]
    lowest_m = min((float(body[:, 2].min()) for body in bodies), default=0.0) - floor_z
    if lowest_m > HANGING_M:
        return []
    found = []
    for part, body in zip(item.parts, bodies, strict=True):
        bottom_m, top_m = float(body[:, 2].min()) - floor_z, float(body[:, 2].max()) - floor_z
        glass = len(part.color) == 4 and part.color[3] < 1
        if bottom_m > CUT_M or top_m < -BELOW_M or glass:
            continue
        flat = body[:, :2]
        is_upright_box = part.shape == "box" and np.array_equal(flat[::2], flat[1::2])
        corners = flat[BOX_OUTLINE if is_upright_box else ConvexHull(flat).vertices]
        red, green, blue = part.color[:3]
        kind = _kind(item, part, bottom_m, top_m)
        found.append(Outline(kind, corners, top_m, (red, green, blue), item.room))
    return found


def _kind(item: SceneObject, part: Part, bottom_m: float, top_m: float) -> Kind:
    if top_m < FLAT_M:
        return "floor" if item.category in ("floor", "") else "rug"
    if item.category:
        return "wall" if item.category == "wall" else "thing"
    # Scenes of others may say nothing. A wall is what is high and thin, and stands on the floor.
    sides = sorted((part.size.x * item.scale.x, part.size.y * item.scale.y))
    is_wall = part.shape == "box" and bottom_m < FLAT_M and top_m > CUT_M and 4 * sides[0] < sides[1]
    return "wall" if is_wall else "thing"


def _corners(part: Part, frame: Frame) -> Array:
    """Return points in the world frame, whose hull is the part."""
    if part.shape == "box":
        unit = CORNERS
    elif part.shape == "cylinder":
        unit = np.concatenate([RING - UP / 2, RING + UP / 2])
    else:
        unit = np.concatenate([RING, RING[:, [0, 2, 1]], RING[:, [2, 0, 1]]])
    return frame.points(unit)
