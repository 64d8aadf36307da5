"""Parts as builders think of them: a box, a disc or a ball standing somewhere, in millimetre steps.

Unlike a `Part`, whose place is its centre, these are placed by the middle of their bottom.
"""

from __future__ import annotations

from proctor.core.types import Vector3
from proctor.scenes.scene_config import Part, Texture

Triple = tuple[float, float, float]


def box(
    size: Triple, at: Triple, color: Triple, texture: Texture | None = None, *, collision: bool = True
) -> Part:
    """Return a box of this size whose bottom stands at `at`."""
    x, y, bottom = at
    return Part(
        shape="box",
        size=_millimetres(*size),
        translate=_millimetres(x, y, bottom + size[2] / 2),
        color=color,
        texture=texture,
        collision=collision,
    )


def cylinder(
    diameter_m: float, height_m: float, at: Triple, color: Triple, texture: Texture | None = None
) -> Part:
    """Return an upright cylinder whose bottom stands at `at`."""
    x, y, bottom = at
    return Part(
        shape="cylinder",
        size=_millimetres(diameter_m, diameter_m, height_m),
        translate=_millimetres(x, y, bottom + height_m / 2),
        color=color,
        texture=texture,
    )


def sphere(diameter_m: float, at: Triple, color: Triple, texture: Texture | None = None) -> Part:
    """Return a ball whose lowest point is at `at`."""
    x, y, bottom = at
    return Part(
        shape="sphere",
        size=_millimetres(diameter_m, diameter_m, diameter_m),
        translate=_millimetres(x, y, bottom + diameter_m / 2),
        color=color,
        texture=texture,
    )


def _millimetres(x: float, y: float, z: float) -> Vector3:
    # Adding 0.0 turns -0.0 into 0.0.
    return Vector3(round(x, 3) + 0.0, round(y, 3) + 0.0, round(z, 3) + 0.0)
