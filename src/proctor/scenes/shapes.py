"""Parts as builders think of them: a box, a disc or a ball standing somewhere, in millimetre steps.

Unlike a `Part`, whose place is its centre, these are placed by the middle of their bottom.
"""

from __future__ import annotations

from typing import Any, Literal

from proctor.core.types import Vector3
from proctor.scenes.scene_config import ORIGIN, Part, Texture

Triple = tuple[float, float, float]
UPRIGHT: Triple = (0.0, 0.0, 0.0)


def box(
    size: Triple,
    at: Triple,
    color: tuple[float, ...],
    texture: Texture | None = None,
    *,
    turn: Triple = UPRIGHT,
    collision: bool = True,
) -> Part:
    """Return a box of this size whose bottom stands at `at`, turned about its middle by Euler degrees."""
    rotate = ORIGIN if turn == UPRIGHT else Vector3(*turn)  # the default itself is left out of files
    return _standing("box", size, at, rotate=rotate, color=color, texture=texture, collision=collision)


def trim(
    size: Triple,
    at: Triple,
    color: tuple[float, ...],
    texture: Texture | None = None,
    *,
    turn: Triple = UPRIGHT,
) -> Part:
    """Return a box that is only looked at: what a robot bumps into lies around or behind it."""
    return box(size, at, color, texture, turn=turn, collision=False)


def cylinder(
    diameter_m: float,
    height_m: float,
    at: Triple,
    color: Triple,
    texture: Texture | None = None,
    *,
    collision: bool = True,
) -> Part:
    """Return an upright cylinder whose bottom stands at `at`."""
    size = (diameter_m, diameter_m, height_m)
    return _standing("cylinder", size, at, color=color, texture=texture, collision=collision)


def rod(
    diameter_m: float,
    length_m: float,
    centre: Triple,
    color: Triple,
    *,
    along: Literal["x", "y"],
    collision: bool = False,
) -> Part:
    """Return a cylinder that lies along an axis: a rail, a wheel, or a dial that looks to the front."""
    rotate = Vector3(0.0, 90.0, 0.0) if along == "x" else Vector3(90.0, 0.0, 0.0)
    size, translate = _millimetres(diameter_m, diameter_m, length_m), _millimetres(*centre)
    return Part(
        shape="cylinder", size=size, translate=translate, rotate=rotate, color=color, collision=collision
    )


def sphere(
    diameter_m: float, at: Triple, color: Triple, texture: Texture | None = None, *, collision: bool = True
) -> Part:
    """Return a ball whose lowest point is at `at`."""
    size = (diameter_m, diameter_m, diameter_m)
    return _standing("sphere", size, at, color=color, texture=texture, collision=collision)


def _standing(shape: Literal["box", "cylinder", "sphere"], size: Triple, at: Triple, **look: Any) -> Part:
    x, y, bottom = at
    translate = _millimetres(x, y, bottom + size[2] / 2)
    return Part(shape=shape, size=_millimetres(*size), translate=translate, **look)


def _millimetres(x: float, y: float, z: float) -> Vector3:
    # Adding 0.0 turns -0.0 into 0.0.
    return Vector3(*(round(float(value), 3) + 0.0 for value in (x, y, z)))
