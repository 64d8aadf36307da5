"""The room around a tabletop: floor, walls, what stands along them, and its lights. Only looked at."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import msgspec
import mujoco
import numpy as np

from proctor.core.types import Array, Vector3
from proctor.scenes.appliances import counter, fridge, sink
from proctor.scenes.cabinets import bookshelf, sideboard
from proctor.scenes.colors import Paint
from proctor.scenes.decor import picture, plant, window
from proctor.scenes.frames import Frame, frame_of_part, rotation_of
from proctor.scenes.pieces import WHITE, Piece
from proctor.scenes.scene_config import Part, Texture
from proctor.scenes.shapes import Triple
from proctor.sim.contacts import Group
from proctor.sim.look import Look, Material
from proctor.sim.meshes import Painter

SMALLEST_M, MARGIN_M, WALL_M = 6.0, 2.2, 2.6
"""The room's sides, what is free around all things, and how high it is."""
SKIRTING_M = 0.08
THICK_M = 0.02
PICTURES: frozenset[Texture | None] = frozenset({"landscape", "painting", "books"})
KITCHEN = Paint("grey", (0.66, 0.70, 0.70))
SEED = 226
"""Of sizes and colours: a quiet kitchen, so that the things on the table stand out."""
HEADLIGHT = 0.25
"""What the camera brings along: the sides that it sees are never in the dark."""
HIGHLIGHT = 0.6
"""How bright lamps are seen in shiny things, as a share of how bright they shine."""


class Room(NamedTuple):
    """Where the room is."""

    x: float
    y: float
    """Of its middle."""
    half_m: float
    """From there to its walls."""


def room_around(places: Array) -> Room:
    """Return a room with all these places (N, 2) in its middle."""
    low, high = places.min(axis=0), places.max(axis=0)
    x, y = (low + high) / 2
    return Room(float(x), float(y), max(SMALLEST_M / 2, float((high - low).max()) / 2 + MARGIN_M))


def add_room(spec: Any, room: Room, look: Look, *, with_floor: bool = True) -> None:
    """Draw a room. Without its floor, that must be drawn by somebody else."""
    painter = Painter(spec)
    for part, frame in _shell(room, look):
        if with_floor or frame.translation[2] >= 0:
            painter.add_part(part, frame)
    for fitting in _fittings():
        frame = _at_wall(fitting, room)
        for part in fitting.piece.parts:
            painter.add_part(_simple(part), frame_of_part(part, frame))
    painter.draw_parts(spec.worldbody, Group.DRAWN)


def add_lights(spec: Any, look: Look) -> None:
    """Light the room."""
    headlight = spec.visual.headlight
    headlight.ambient, headlight.diffuse, headlight.specular = look.ambient, [HEADLIGHT] * 3, [0.0] * 3
    for light in look.lights:
        shine = light.intensity * np.array(light.color)
        spec.worldbody.add_light(
            type=mujoco.mjtLightType.mjLIGHT_DIRECTIONAL,
            dir=light.direction.array(),
            diffuse=shine,
            specular=HIGHLIGHT * shine,
            castshadow=False,
        )


def _shell(room: Room, look: Look) -> list[tuple[Part, Frame]]:
    """Return floor, ceiling, walls and skirting boards."""
    x, y, half = room
    side, thick = 2 * half, THICK_M
    pieces = [
        _board((side, side, thick), (x, y, -thick / 2), look.floor),
        _board((side, side, thick), (x, y, WALL_M + thick / 2), Material(None, WHITE)),
    ]
    for hand in (-1, 1):
        for size, at, material in (
            (WALL_M, half + thick / 2, look.walls),
            (SKIRTING_M, half - thick / 4, Material(None, WHITE)),
        ):
            pieces += [
                _board((thick, side, size), (x + hand * at, y, size / 2), material),
                _board((side, thick, size), (x, y + hand * at, size / 2), material),
            ]
    return pieces


def _simple(part: Part) -> Part:
    """Return a part without its texture, unless that is a picture: far away it would only cost time."""
    return part if part.texture in PICTURES else msgspec.structs.replace(part, texture=None)


def _board(size: Triple, at: Triple, material: Material) -> tuple[Part, Frame]:
    part = Part(shape="box", size=Vector3(*size), color=material.color, texture=material.texture)
    return part, Frame(np.array(size), np.eye(3), np.array(at))


class _Fitting(NamedTuple):
    piece: Piece
    yaw_deg: float
    """Where its front looks: 180 stands at the wall of +x."""
    along_m: float
    """Of its middle from the middle of the wall, to the left of somebody who looks at it."""


@cache
def _fittings() -> tuple[_Fitting, ...]:
    """Return a kitchen on one side, a window, books and a sideboard on the others: always the same."""
    rng = np.random.default_rng(SEED)
    row = [fridge(rng), counter(rng, KITCHEN), sink(KITCHEN), counter(rng, KITCHEN)]
    ends = np.cumsum([piece.width_m for piece in row])
    middles = [end - piece.width_m / 2 - ends[-1] / 2 for end, piece in zip(ends, row, strict=True)]
    return (
        *(_Fitting(piece, 180.0, -middle) for piece, middle in zip(row, middles, strict=True)),
        _Fitting(window(rng), -90.0, 0.4),
        _Fitting(sideboard(rng), 90.0, 0.5),
        _Fitting(picture(rng), 90.0, 0.5),
        _Fitting(bookshelf(rng), 0.0, -0.2),
        _Fitting(picture(rng), 0.0, 1.2),
        _Fitting(plant(rng), 90.0, -1.3),
    )


def _at_wall(fitting: _Fitting, room: Room) -> Frame:
    turned = rotation_of(Vector3(0.0, 0.0, fitting.yaw_deg))
    own = np.array([fitting.piece.depth_m / 2 - room.half_m, -fitting.along_m, 0.0])
    return Frame(np.ones(3), turned, turned @ own + [room.x, room.y, 0.0])
