"""Surfaces that are turned or bent: a profile around the z axis, a rod along a curve."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from proctor.core.types import Array
from proctor.scenes.meshes import Surface
from proctor.scenes.shapes import Triple
from proctor.scenes.solids import circle

SIDES = 32
CREASE_DEG = 40.0
"""Blunter edges are drawn smooth."""
Profile = Sequence[tuple[float, float]]
"""Radius and height, along the skin: outer sides upwards, inner ones downwards, tops inwards."""


def lathe(profile: Profile, color: Triple, sides: int = SIDES) -> Surface:
    """Return the surface that a profile sweeps around the z axis."""
    points, normals, is_joined = _with_creases(np.array(profile, dtype=np.float64))
    around = np.concatenate([circle(sides), circle(sides)[:1]])
    vertices = np.stack([_turned(r, z, around) for r, z in points])
    bent = np.stack([_turned(r, z, around) for r, z in normals])
    texcoords = np.zeros((vertices.shape[0] * vertices.shape[1], 2))
    faces = _grid_faces(len(points), sides + 1)[np.repeat(is_joined, 2 * sides)]
    return _surface(vertices, bent, texcoords, faces, color)


def tube(path: Array, radius_m: float, color: Triple, sides: int = 8) -> Surface:
    """Return a rod along a path (N, 3) in the plane y = 0."""
    ahead = np.gradient(path, axis=0)
    ahead /= np.linalg.norm(ahead, axis=1, keepdims=True)
    side = np.array([0.0, 1.0, 0.0])
    around = np.concatenate([circle(sides), circle(sides)[:1]])
    across = np.cross(ahead, side)  # (N, 3)
    normals = around[None, :, :1] * side + around[None, :, 1:] * across[:, None, :]
    vertices = path[:, None, :] + radius_m * normals
    texcoords = np.zeros((vertices.shape[0] * vertices.shape[1], 2))
    return _surface(vertices, normals, texcoords, _grid_faces(len(path), sides + 1), color)


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
        if before @ after > math.cos(math.radians(CREASE_DEG)):
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


def _surface(
    vertices: Array, normals: Array, texcoords: Array, faces: NDArray[np.int64], color: Triple
) -> Surface:
    """Return a surface without the triangles that have no area, such as those at a pole."""
    flat = vertices.reshape(-1, 3)
    corners = flat[faces]
    area = np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1)
    return Surface(flat, normals.reshape(-1, 3), texcoords, faces[area > 1e-12], (*color, 1.0), None)
