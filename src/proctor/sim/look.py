"""How a tabletop world looks: materials, lights, a camera that was bumped. Nothing of it is felt."""

from __future__ import annotations

from typing import NamedTuple

from proctor.core.types import Vector3
from proctor.scenes.scene_config import Light, Texture
from proctor.scenes.shapes import Triple

ORIGIN: Triple = (0.0, 0.0, 0.0)


class Material(NamedTuple):
    """What a surface is made of."""

    texture: Texture | None
    color: Triple


class Bump(NamedTuple):
    """How a camera is off its place, in the frame of what it is mounted on."""

    shift_m: Triple = ORIGIN
    turn_rad: Triple = ORIGIN
    """A rotation vector."""


class Shine(NamedTuple):
    """What a surface does with light, from 0 (mat) to 1."""

    reflectance: float = 0.0
    """The share of the mirror image. One surface of a world can mirror: a flat table top, else the floor."""
    specular: float = 0.0
    """How bright lamps are seen in it."""
    shininess: float = 0.0
    """How small lamps are seen in it."""


# From the window's side, from the lamp over the robot's shoulder, and from the floor that both shine on.
ROOM_LIGHTS = (
    Light(type="directional", direction=Vector3(0.35, -0.75, -0.9), intensity=0.25),
    Light(type="directional", direction=Vector3(0.6, 0.45, -0.8), intensity=0.13),
    Light(type="directional", direction=Vector3(-0.3, 0.1, 1.0), intensity=0.1),
)


class Look(NamedTuple):
    """All that can be different without anything being elsewhere."""

    floor: Material = Material("planks", (0.75, 0.62, 0.48))
    walls: Material = Material("plaster", (0.86, 0.85, 0.8))
    furniture: Material | None = None
    """None: as it is made."""
    head: Bump = Bump()
    """In the base frame."""
    wrist: Bump = Bump()
    """In the hand frame."""
    lights: tuple[Light, ...] = ROOM_LIGHTS
    ambient: Triple = (0.57, 0.57, 0.57)
    shine: Shine = Shine()
    """Of the surface that mirrors."""


PLAIN = Look()
