"""How a tabletop world looks: materials, lights, a camera that was bumped; and its levels of generalisation.

Level 0 is as stored, 1 adds the materials of furniture, floor and walls, 2 the poses of the cameras, 3 lights
and mirrors. Each aspect has random numbers of its own, so that a level differs from the one below it by what
it adds and by nothing else. Nothing of a look is felt.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from proctor.core.types import Array, Vector3
from proctor.scenes.colors import oklab
from proctor.scenes.meshes import Surface
from proctor.scenes.scene_config import Light, Texture
from proctor.scenes.shapes import Triple
from proctor.scenes.shell import FLOORS, WALL_COLORS, Material
from proctor.scenes.textures import texture_image
from proctor.scenes.thing import Thing

ORIGIN: Triple = (0.0, 0.0, 0.0)
Rng = np.random.Generator
HIGHEST = 3


FLOOR_MATERIALS = tuple(dict.fromkeys(floor for floors in FLOORS.values() for floor in floors))
WALL_TEXTURES: tuple[Texture, ...] = ("plaster", "plaster", "stripes", "ornament", "brick", "tiles")
TABLE_MATERIALS = (
    Material("wood", (0.45, 0.27, 0.15)),
    Material("wood", (0.72, 0.52, 0.32)),
    Material("wood", (0.90, 0.78, 0.60)),
    Material("wood", (0.93, 0.92, 0.90)),
    Material("wood", (0.22, 0.17, 0.15)),
    Material("planks", (0.62, 0.45, 0.30)),
    Material("planks", (0.60, 0.60, 0.58)),
    Material("marble", (0.95, 0.94, 0.92)),
    Material("marble", (0.36, 0.38, 0.42)),
    Material("marble", (0.20, 0.22, 0.30)),
    Material("marble", (0.40, 0.52, 0.46)),
    Material("marble", (0.78, 0.58, 0.50)),
    Material("plaster", (0.62, 0.63, 0.64)),
    Material("plaster", (0.80, 0.70, 0.58)),
    Material("mosaic", (0.45, 0.62, 0.72)),
    Material("mosaic", (0.84, 0.82, 0.76)),
    Material("fabric", (0.24, 0.34, 0.52)),
    Material("fabric", (0.55, 0.20, 0.22)),
    Material("fabric", (0.30, 0.24, 0.40)),
    Material("fabric", (0.86, 0.80, 0.68)),
    Material("fabric", (0.35, 0.36, 0.38)),
    Material(None, (0.16, 0.17, 0.19)),
    Material(None, (0.18, 0.32, 0.36)),
    Material(None, (0.96, 0.88, 0.55)),
    Material(None, (0.50, 0.66, 0.68)),
    Material(None, (0.90, 0.90, 0.92)),
)
CONTRAST = 0.15
"""How far, in OKLab, furniture is from what must be seen on it."""
SHADES = np.array([[1.0], [0.85], [0.7], [0.55]])
"""How bright the sides of a thing are when a table top has its full brightness."""
TRIES = 64

HEAD_SHIFT_M, HEAD_TURN_RAD = 0.03, math.radians(5.0)
WRIST_SHIFT_M, WRIST_TURN_RAD = 0.005, math.radians(2.0)


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


def look_of(level: int, seed: int, episode_id: str, seen: Sequence[Triple] = ()) -> Look:
    """Return how an episode looks at a level from 0 to 3: always the same for the same arguments.

    Furniture must contrast with the colours `seen`.
    """
    look = PLAIN
    if level >= 1:
        rng = _rng(seed, episode_id, 1)
        look = look._replace(
            floor=_shaded(rng, FLOOR_MATERIALS[rng.integers(len(FLOOR_MATERIALS))]),
            walls=_walls(rng),
            furniture=_furniture(rng, seen),
        )
    if level >= 2:
        rng = _rng(seed, episode_id, 2)
        look = look._replace(
            head=_bump(rng, HEAD_SHIFT_M, HEAD_TURN_RAD), wrist=_bump(rng, WRIST_SHIFT_M, WRIST_TURN_RAD)
        )
    if level >= HIGHEST:
        rng = _rng(seed, episode_id, 3)
        # The light without a direction, and all of it: nothing is lost in the dark, nor burnt out.
        ambient, exposure = rng.uniform(0.5, 0.62), rng.uniform(0.82, 0.98)
        look = look._replace(
            lights=_lights(rng, exposure - ambient),
            ambient=_triple(ambient * np.array(_tint(rng))),
            shine=Shine(rng.uniform(0.08, 0.3), rng.uniform(0.1, 0.6), rng.uniform(0.3, 0.9)),
        )
    return look


def color_of(thing: Thing) -> Triple:
    """Return the colour that most of a thing has."""
    return _triple(_mean_color(max(thing.surfaces, key=Surface.area_m2)))


def contrast(material: Material, color: Triple) -> float:
    """Return the perceptual distance of a material from an object of this colour that stands on it.

    It is 0 if a side of the object may look the same, and 1 for black and white.
    """
    ground, sides = oklab(_appearance(material)), oklab(SHADES * color)
    return float(np.linalg.norm(sides - ground, axis=1).min())


def _rng(seed: int, episode_id: str, aspect: int) -> Rng:
    return np.random.default_rng([seed, aspect, *episode_id.encode()])


def _triple(values: Array) -> Triple:
    first, second, third = np.asarray(values).tolist()
    return first, second, third


def _shaded(rng: Rng, material: Material) -> Material:
    return material._replace(color=_triple(rng.uniform(0.8, 1.0) * np.array(material.color)))


def _walls(rng: Rng) -> Material:
    texture = WALL_TEXTURES[rng.integers(len(WALL_TEXTURES))]
    return _shaded(rng, Material(texture, WALL_COLORS[rng.integers(len(WALL_COLORS))]))


def _furniture(rng: Rng, seen: Sequence[Triple]) -> Material:
    """Return the first material drawn on which all is seen well or, if there is none, the best of many."""
    best, most = PLAIN.floor, -1.0
    for _ in range(TRIES):
        material = _shaded(rng, TABLE_MATERIALS[rng.integers(len(TABLE_MATERIALS))])
        least = min((contrast(material, color) for color in seen), default=math.inf)
        if least > most:
            best, most = material, least
        if least >= CONTRAST:
            break
    return best


def _bump(rng: Rng, shift_m: float, turn_rad: float) -> Bump:
    """Return a shift and a turn into any direction, up to these."""
    shift, turn = (most * rng.uniform() * _direction(rng) for most in (shift_m, turn_rad))
    return Bump(_triple(shift), _triple(turn))


def _direction(rng: Rng) -> Array:
    vector = rng.standard_normal(3)
    return np.asarray(vector / np.linalg.norm(vector))


def _lights(rng: Rng, total: float) -> tuple[Light, ...]:
    """Return lamps above, which share a brightness, and what the floor gives back of it."""
    count = int(rng.integers(1, 3 + 1))
    lights = []
    for share in rng.dirichlet(np.full(count, 3.0)):
        around, steep = rng.uniform(-math.pi, math.pi), rng.uniform(0.6, 1.3)
        direction = Vector3(
            math.cos(steep) * math.cos(around), math.cos(steep) * math.sin(around), -math.sin(steep)
        )
        lights.append(
            Light(type="directional", direction=direction, color=_tint(rng), intensity=float(total * share))
        )
    return (*lights, PLAIN.lights[-1])


def _tint(rng: Rng) -> Triple:
    """Return the colour of a lamp: black-body radiation of some temperature, in part balanced."""
    kelvin = rng.uniform(*(2700.0, 8000.0))
    # Planck's law at the wavelengths of the three channels, against daylight of 6500 K.
    exponents = 0.014388 / np.array([6.1e-7, 5.5e-7, 4.65e-7])
    radiation = np.expm1(exponents / 6500.0) / np.expm1(exponents / kelvin)
    # Cameras balance their white and leave a part of the colour.
    return _triple(1 - 0.25 * (1 - radiation / radiation.max()))


def _appearance(material: Material) -> Array:
    color = np.array(material.color)
    return color if material.texture is None else color * _mean_of(material.texture)


@cache
def _mean_of(texture: Texture) -> Array:
    return np.asarray(texture_image(texture).mean(axis=(0, 1)) / 255)


def _mean_color(surface: Surface) -> Array:
    color = np.array(surface.rgba[:3])
    return color if surface.image is None else np.asarray(color * surface.image.mean(axis=(0, 1))[:3] / 255)
