"""The look of a tabletop: the room around it, its lights, the finish of furniture, the mark of the goal."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import msgspec
import mujoco
import numpy as np
from numpy.typing import NDArray

from proctor.core.types import Array, Vector3
from proctor.scenes.appliances import counter, fridge, sink
from proctor.scenes.cabinets import bookshelf, sideboard
from proctor.scenes.colors import PALETTE, Paint
from proctor.scenes.decor import picture, plant, window
from proctor.scenes.frames import Frame, frame_of_part, rotation_of
from proctor.scenes.meshes import Surface
from proctor.scenes.part_surfaces import DOWN_AXIS, RIGHT_AXIS, metric_texcoords
from proctor.scenes.pieces import WHITE, Piece
from proctor.scenes.scene_config import Part, Texture
from proctor.scenes.shapes import Triple
from proctor.scenes.shell import Material
from proctor.scenes.solids import lathe
from proctor.scenes.textures import GRAINED, TILE_M, texture_image
from proctor.scenes.thing import Solid, Thing
from proctor.worlds.mujoco.contacts import Group
from proctor.worlds.mujoco.render.meshes import Painter, add_texture
from proctor.worlds.mujoco.tabletop.look import Look, Shine

SMALLEST_M, MARGIN_M, WALL_M = 6.0, 2.2, 2.6
"""The room's sides, what is free around all things, and how high it is."""
SKIRTING_M = 0.08
PICTURES: frozenset[Texture | None] = frozenset({"landscape", "painting", "books"})
KITCHEN = Paint("grey", (0.66, 0.70, 0.70))
SEED = 226
"""Of sizes and colours: a quiet kitchen, so that the things on the table stand out."""
SHADES = (0.75, 1.25)
"""How much darker and brighter than the top other parts may be."""
MIRROR, MIRROR_M, EDGE_M, ABOVE_M = "#mirror", 0.001, 0.003, 1e-4
RINGS = ((1.0, 0.95, PALETTE["black"]), (0.95, 0.85, PALETTE["white"]), (0.85, 0.0, (0.22, 0.68, 0.32)))
"""From which share of the radius to which: of black and white, one is seen on any ground."""


class RoomBounds(NamedTuple):
    """Where the room is."""

    x: float
    y: float
    """Of its middle."""
    half_m: float
    """From there to its walls."""


def room_around(places: Array) -> RoomBounds:
    """Return a room with all these places (N, 2) in its middle."""
    low, high = places.min(axis=0), places.max(axis=0)
    x, y = (low + high) / 2
    return RoomBounds(float(x), float(y), max(SMALLEST_M / 2, float((high - low).max()) / 2 + MARGIN_M))


def add_room(spec: Any, room: RoomBounds, look: Look, *, with_floor: bool = True) -> None:
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
    # What the camera brings along: the sides that it sees are never in the dark.
    headlight.ambient, headlight.diffuse, headlight.specular = look.ambient, [0.25] * 3, [0.0] * 3
    for light in look.lights:
        shine = light.intensity * np.array(light.color)
        spec.worldbody.add_light(
            type=mujoco.mjtLightType.mjLIGHT_DIRECTIONAL,
            dir=light.direction.array(),
            diffuse=shine,
            specular=0.6 * shine,  # how bright lamps are seen in shiny things
            castshadow=False,
        )


def _shell(room: RoomBounds, look: Look) -> list[tuple[Part, Frame]]:
    x, y, half = room
    side, thick = 2 * half, 0.02
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


def _at_wall(fitting: _Fitting, room: RoomBounds) -> Frame:
    turned = rotation_of(Vector3(0.0, 0.0, fitting.yaw_deg))
    own = np.array([fitting.piece.depth_m / 2 - room.half_m, -fitting.along_m, 0.0])
    return Frame(np.ones(3), turned, turned @ own + [room.x, room.y, 0.0])


def covered(surfaces: list[Surface], material: Material) -> list[Surface]:
    """Return the surfaces of a piece of furniture in another material."""
    areas = [surface.area_m2() for surface in surfaces]
    top = max(surfaces, key=lambda surface: surface.vertices[:, 2].max())
    image = None if material.texture is None else texture_image(material.texture)
    finished = []
    for surface, area in zip(surfaces, areas, strict=True):
        # What has less of the whole area is a fitting, such as a handle, and stays as it is.
        if surface is not top and area < 0.1 * sum(areas):
            finished.append(surface)
            continue
        shade = np.clip(np.mean(surface.rgba[:3]) / max(1e-3, np.mean(top.rgba[:3])), *SHADES)
        red, green, blue = np.minimum(1.0, shade * np.array(material.color)).tolist()
        texcoords = surface.texcoords
        if material.texture is not None:
            facing = np.abs(surface.normals).argmax(axis=1)
            is_longer_down = _is_longer_down(surface)
            texcoords = metric_texcoords(surface.vertices, facing, is_longer_down, material.texture)
        finished.append(surface._replace(image=image, texcoords=texcoords, rgba=(red, green, blue, 1.0)))
    return finished


def flat_top(thing: Thing) -> Solid | None:
    """Return the board that is the top of a piece of furniture, or None if that is not a level rectangle."""
    highest = max(thing.solids, key=lambda solid: float(solid.points[:, 2].max()))
    return highest if highest.shape == "box" and highest.rotation[2, 2] > 1 - 1e-6 else None


def add_top_mirror(spec: Any, body: Any, top: Solid, material: Material, shine: Shine) -> None:
    """Lay a sheet that mirrors onto the top of a piece of furniture that was `covered`.

    MuJoCo mirrors in the upper face of a box, of one box, and in no mesh.
    """
    size, quat = top.size[:2] - 2 * EDGE_M, [1.0, 0.0, 0.0, 0.0]
    if material.texture in GRAINED and size[1] > size[0]:
        # A quarter turn: the picture's rows lie along the box's x.
        size, quat = size[::-1], [0.5**0.5, 0.0, 0.0, 0.5**0.5]
    upper = top.translation + np.array([0.0, 0.0, top.size[2] / 2 + ABOVE_M])
    _add_mirror(spec, body, material, shine, size=size, upper=upper, quat=quat)


def add_floor_mirror(spec: Any, room: RoomBounds, look: Look) -> None:
    """Draw the floor of a room as one that mirrors."""
    size, upper = np.full(2, 2 * room.half_m), np.array([room.x, room.y, 0.0])
    _add_mirror(
        spec, spec.worldbody, look.floor, look.shine, size=size, upper=upper, quat=[1.0, 0.0, 0.0, 0.0]
    )


def _add_mirror(
    spec: Any, body: Any, material: Material, shine: Shine, *, size: Array, upper: Array, quat: list[float]
) -> None:
    made = spec.add_material(name=MIRROR, rgba=(*material.color, 1.0), **shine._asdict())
    if material.texture is not None:
        add_texture(spec, texture_image(material.texture), material.texture)
        made.textures[mujoco.mjtTextureRole.mjTEXROLE_RGB] = material.texture
        made.texuniform, made.texrepeat = True, [2 / TILE_M[material.texture]] * 2
    # Light is computed at corners, so highlights are only seen on what has many.
    spec.visual.quality.numquads = 24
    body.add_geom(
        name=MIRROR,
        type=mujoco.mjtGeom.mjGEOM_BOX,
        size=[*size / 2, MIRROR_M / 2],
        pos=upper - [0.0, 0.0, MIRROR_M / 2],
        quat=quat,
        material=MIRROR,
        group=Group.DRAWN,
        contype=0,
        conaffinity=0,
        mass=0.0,
    )


def _is_longer_down(surface: Surface) -> NDArray[np.bool_]:
    """Tell for the faces that look along x, y and z whether most of their area is longer down than right."""
    corners = surface.vertices[surface.faces]
    across = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    extents = corners.max(axis=1) - corners.min(axis=1)
    lengths = np.zeros((3, 3))
    np.add.at(lengths, np.abs(across).argmax(axis=1), extents * np.linalg.norm(across, axis=1)[:, np.newaxis])
    every = np.arange(3)
    return np.asarray(lengths[every, DOWN_AXIS] > lengths[every, RIGHT_AXIS])


def add_zone(spec: Any, position: Array, radius_m: float) -> None:
    """Draw the mark, level, around a place in the world."""
    painter = Painter(spec)
    body = spec.worldbody.add_body(name="#zone", pos=position + np.array([0.0, 0.0, 0.0005]))
    for outer, inner, color in RINGS:
        painter.draw(lathe([(outer * radius_m, 0.0), (inner * radius_m, 0.0)], color, 48), body, Group.DRAWN)
