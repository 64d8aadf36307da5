"""Surfaces of boxes: boards with a texture by the metre, blocks with rounded edges."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
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
    return [_joined(group) for group in alike.values()]


def moved(surface: Surface, shift: ArrayLike) -> Surface:
    """Return a surface elsewhere."""
    return surface._replace(vertices=surface.vertices + np.asarray(shift))


def _joined(group: list[Surface]) -> Surface:
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
