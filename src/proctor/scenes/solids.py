"""Solids and surfaces of objects: convex pieces to collide with, boards, turned profiles, bent rods.

All are placed by the middle of their bottom.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from proctor.core.types import Array
from proctor.scenes.meshes import Surface
from proctor.scenes.scene_config import Texture
from proctor.scenes.shapes import Triple
from proctor.scenes.textures import TILE_M, texture_image
from proctor.scenes.thing import Cavity, Solid

ROUND_SIDES = 24
CORNERS = np.array([[x, y, z] for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (-0.5, 0.5)])
SIDES = 32
Profile = Sequence[tuple[float, float]]
"""Radius and height, along the skin: outer sides upwards, inner ones downwards, tops inwards."""


def circle(sides: int = ROUND_SIDES) -> Array:
    """Return the corners (N, 2) of a polygon around the unit circle, those on the axes exact."""
    angles = np.arange(sides) * (2 * math.pi / sides)
    return np.round(np.stack([np.cos(angles), np.sin(angles)], axis=1), 15)


def box_solid(size: ArrayLike, at: Triple = (0.0, 0.0, 0.0)) -> Solid:
    """Return a box of this size whose bottom stands at `at`."""
    extents, (x, y, bottom) = np.asarray(size, dtype=np.float64), at
    return tilted_box(extents, np.array([x, y, bottom + extents[2] / 2]), np.eye(3))


def tilted_box(size: Array, centre: Array, rotation: Array) -> Solid:
    """Return a box around its centre, turned."""
    return Solid("box", size, centre, rotation, (CORNERS * size) @ rotation.T + centre)


def cylinder_solid(diameter_m: float, height_m: float, at: Triple = (0.0, 0.0, 0.0)) -> Solid:
    """Return an upright cylinder whose bottom stands at `at`."""
    ring = circle() * (diameter_m / 2)
    points = np.concatenate([np.insert(ring, 2, z, axis=1) for z in (0.0, height_m)]) + at
    centre = np.add(at, (0.0, 0.0, height_m / 2))
    return Solid("cylinder", np.array([diameter_m, diameter_m, height_m]), centre, np.eye(3), points)


def ball_solid(diameter_m: float) -> Solid:
    """Return a ball whose lowest point is the origin."""
    heights = -np.cos(np.linspace(0, math.pi, 9))[1:-1]
    rings = [np.insert(circle() * math.sqrt(1 - z * z), 2, z, axis=1) for z in heights]
    points = np.concatenate([[[0.0, 0.0, -1.0]], *rings, [[0.0, 0.0, 1.0]]])
    radius = diameter_m / 2
    centre = np.array([0.0, 0.0, radius])
    return Solid("sphere", np.full(3, diameter_m), centre, np.eye(3), points * radius + centre)


def hull_solid(points: Array) -> Solid:
    """Return the convex body around points, which all are corners of it."""
    low, high = points.min(axis=0), points.max(axis=0)
    return Solid("hull", high - low, (low + high) / 2, np.eye(3), points)


def round_wall(
    foot: tuple[float, float], rim: tuple[float, float], thick_m: float, sides: int
) -> list[Solid]:
    """Return boxes that stand in a ring, their inner faces from the foot to the rim (radius and height)."""
    (foot_r, foot_z), (rim_r, rim_z) = foot, rim
    length_m = math.hypot(rim_r - foot_r, rim_z - foot_z)
    along = np.array([rim_r - foot_r, rim_z - foot_z]) / length_m
    out = np.array([along[1], -along[0]])
    size = np.array([thick_m, 2 * max(foot_r, rim_r) * math.tan(math.pi / sides), length_m])
    middle = (np.array(foot) + rim) / 2 + out * (thick_m / 2)
    walls = []
    for cosine, sine in circle(sides):
        # Columns: outwards, along the ring, up the wall.
        rotation = np.array(
            [
                [cosine * out[0], -sine, cosine * along[0]],
                [sine * out[0], cosine, sine * along[0]],
                [out[1], 0.0, along[1]],
            ]
        )
        walls.append(
            tilted_box(size, np.array([cosine, sine, 0.0]) * middle[0] + [0, 0, middle[1]], rotation)
        )
    return walls


def square_walls(size: Triple, thick_m: float) -> tuple[list[Solid], Cavity]:
    """Return the bottom and the four walls of a box that is open above, and its inside."""
    depth, width, height = size
    x, y, wall_m = (depth - thick_m) / 2, (width - thick_m) / 2, height - thick_m
    solids = [
        box_solid((depth, width, thick_m)),
        *(box_solid((thick_m, width, wall_m), (side * x, 0.0, thick_m)) for side in (-1, 1)),
        *(box_solid((depth - 2 * thick_m, thick_m, wall_m), (0.0, side * y, thick_m)) for side in (-1, 1)),
    ]
    inside = Cavity(depth / 2 - thick_m, width / 2 - thick_m, is_round=False, floor_z=thick_m, rim_z=height)
    return solids, inside


def lathe(profile: Profile, color: Triple, sides: int = SIDES) -> Surface:
    """Return the surface that a profile sweeps around the z axis."""
    points, normals, is_joined = _with_creases(np.array(profile, dtype=np.float64))
    around = np.concatenate([circle(sides), circle(sides)[:1]])
    vertices = np.stack([_turned(r, z, around) for r, z in points])
    bent = np.stack([_turned(r, z, around) for r, z in normals])
    faces = _grid_faces(len(points), sides + 1)[np.repeat(is_joined, 2 * sides)]
    return _surface(vertices, bent, faces, color)


def tube(path: Array, radius_m: float, color: Triple) -> Surface:
    """Return a rod along a path (N, 3) in the plane y = 0."""
    sides = 8
    ahead = np.gradient(path, axis=0)
    ahead /= np.linalg.norm(ahead, axis=1, keepdims=True)
    side = np.array([0.0, 1.0, 0.0])
    around = np.concatenate([circle(sides), circle(sides)[:1]])
    across = np.cross(ahead, side)  # (N, 3)
    normals = around[None, :, :1] * side + around[None, :, 1:] * across[:, None, :]
    vertices = path[:, None, :] + radius_m * normals
    return _surface(vertices, normals, _grid_faces(len(path), sides + 1), color)


def disc(diameter_m: float, height_m: float, bottom: float = 0.0) -> Profile:
    """Return the profile of a cylinder with softened edges."""
    r, top, edge = diameter_m / 2, bottom + height_m, min(0.002, diameter_m / 8, height_m / 8)
    return [
        (0.0, bottom),
        (r - edge, bottom),
        (r, bottom + edge),
        (r, top - edge),
        (r - edge, top),
        (0.0, top),
    ]


def volume_m3(profile: Profile) -> float:
    """Return the volume that a profile encloses as it turns; of a vessel, that of its wall."""
    (r0, z0), (r1, z1) = np.array(profile[:-1]).T, np.array(profile[1:]).T
    return float(math.pi / 3 * ((r0 * r0 + r0 * r1 + r1 * r1) * (z1 - z0)).sum())


def _turned(r: float, z: float, around: Array) -> Array:
    return np.concatenate([around * r, np.full((len(around), 1), z)], axis=1)


def _with_creases(profile: Array) -> tuple[Array, Array, NDArray[np.bool_]]:
    """Return points and normals of a profile, twice where it has an edge, and which pairs are joined."""
    steps = np.diff(profile, axis=0)
    outward = np.stack([steps[:, 1], -steps[:, 0]], axis=1)
    outward /= np.linalg.norm(outward, axis=1, keepdims=True)
    points, normals, joined = [profile[0]], [outward[0]], []
    for index in range(1, len(profile) - 1):
        before, after = outward[index - 1], outward[index]
        joined.append(True)
        points.append(profile[index])
        if before @ after > math.cos(math.radians(40.0)):  # blunter edges are drawn smooth
            normals.append((before + after) / np.linalg.norm(before + after))
        else:
            normals.append(before)
            joined.append(False)
            points.append(profile[index])
            normals.append(after)
    joined.append(True)
    return (
        np.array([*points, profile[-1]]),
        np.array([*normals, outward[-1]]),
        np.array(joined, dtype=np.bool_),
    )


def _grid_faces(rows: int, columns: int) -> NDArray[np.int64]:
    """Return the triangles between rows of vertices, by row."""
    corner = (np.arange(rows - 1)[:, None] * columns + np.arange(columns - 1)).ravel()
    right, above = corner + 1, corner + columns
    quads = np.stack([corner, right, above + 1, corner, above + 1, above], axis=1)
    return np.asarray(quads.reshape(-1, 3), dtype=np.int64)


def _surface(vertices: Array, normals: Array, faces: NDArray[np.int64], color: Triple) -> Surface:
    """Return a surface without the triangles that have no area, such as those at a pole."""
    flat = vertices.reshape(-1, 3)
    corners = flat[faces]
    area = np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1)
    texcoords = np.zeros((len(flat), 2))
    return Surface(flat, normals.reshape(-1, 3), texcoords, faces[area > 1e-12], (*color, 1.0), None)


def board(
    size: ArrayLike,
    at: Triple,
    color: Triple,
    texture: Texture | None = None,
    *,
    bevel_m: float = 0.002,
) -> Surface:
    """Return a box with rounded edges whose bottom stands at `at`. Grain runs along the longer sides."""
    extents = np.asarray(size, dtype=np.float64)
    template, bevel_m = _template(), min(bevel_m, float(extents.min()) / 4)
    vertices = template.signs * (extents / 2 - bevel_m) + template.normals * bevel_m
    right, down = (template.axis + 1) % 3, (template.axis + 2) % 3
    is_tall = extents[down] > extents[right]
    right, down = np.where(is_tall, down, right), np.where(is_tall, right, down)
    every = np.arange(len(vertices))
    texcoords = np.stack([vertices[every, right], vertices[every, down]], axis=1)
    return Surface(
        vertices + at + [0.0, 0.0, extents[2] / 2],
        template.normals,
        texcoords / (TILE_M[texture] if texture else 1.0),
        template.faces,
        (*color, 1.0),
        texture_image(texture) if texture else None,
    )


def merged(surfaces: Iterable[Surface]) -> list[Surface]:
    """Return surfaces with those of the same colour and picture put together."""
    alike: dict[tuple[object, int], list[Surface]] = defaultdict(list)
    for surface in surfaces:
        alike[surface.rgba, id(surface.image)].append(surface)
    return [joined(group) for group in alike.values()]


def moved(surface: Surface, shift: ArrayLike) -> Surface:
    """Return a surface elsewhere."""
    return surface._replace(vertices=surface.vertices + np.asarray(shift))


def joined(group: list[Surface]) -> Surface:
    """Return surfaces of one material as one."""
    starts = np.cumsum([0, *(len(surface.vertices) for surface in group[:-1])])
    return group[0]._replace(
        vertices=np.concatenate([surface.vertices for surface in group]),
        normals=np.concatenate([surface.normals for surface in group]),
        texcoords=np.concatenate([surface.texcoords for surface in group]),
        faces=np.concatenate([surface.faces + start for surface, start in zip(group, starts, strict=True)]),
    )


class _Template(NamedTuple):
    signs: Array  # (24, 3): which corner of the box
    normals: Array  # (24, 3)
    axis: NDArray[np.int64]  # (24,): that the vertex's face looks along
    faces: NDArray[np.int64]  # (44, 3)


@cache
def _template() -> _Template:
    """Return a box with bevels. They share the faces' vertices and normals, and so look rounded."""
    corners = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], dtype=np.float64)
    signs, axis = np.tile(corners, (3, 1)), np.repeat(np.arange(3), 8)
    normals = np.eye(3)[axis] * signs
    at = {
        (int(face), *map(int, sign)): index
        for index, (face, sign) in enumerate(zip(axis, signs, strict=True))
    }
    rings = []
    for face in range(3):
        across, up = (face + 1) % 3, (face + 2) % 3
        rings += [[_at(at, face, {face: side, across: i, up: j}) for i, j in _ROUND] for side in (-1, 1)]
        for i, j in _ROUND:  # the edge along this axis, between the two other faces
            ends = [{face: k, across: i, up: j} for k in (-1, 1)]
            rings.append(
                [
                    _at(at, across, ends[0]),
                    _at(at, across, ends[1]),
                    _at(at, up, ends[1]),
                    _at(at, up, ends[0]),
                ]
            )
    rings += [[at[face, *map(int, corner)] for face in range(3)] for corner in corners]
    points = signs + normals
    faces = [[ring[0], *pair] for ring in rings for pair in pairwise(ring[1:])]
    triangles = points[faces]
    outward = np.cross(triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0])
    is_inside_out = (outward * triangles.mean(axis=1)).sum(axis=1) < 0
    turned = np.where(is_inside_out[:, None], np.array(faces)[:, ::-1], np.array(faces))
    return _Template(signs, normals, axis, turned)


_ROUND = ((-1, -1), (1, -1), (1, 1), (-1, 1))


def _at(at: Mapping[tuple[int, ...], int], face: int, corner: dict[int, int]) -> int:
    return at[face, corner[0], corner[1], corner[2]]
