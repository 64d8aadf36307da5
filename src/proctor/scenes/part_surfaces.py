"""Looks of primitive parts, for all simulators: surfaces with texture coordinates, merged per material."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from proctor.core.array_cache import Arrays, cached_arrays
from proctor.core.types import Array
from proctor.scenes.frames import Frame
from proctor.scenes.meshes import Surface, area_m2
from proctor.scenes.scene_config import Part, Texture
from proctor.scenes.textures import GRAINED, TILE_M, texture_image

Rgba = tuple[float, float, float, float]
ROUND_SIDES = 24

# For faces that look along x, y and z: which axes run right and down in the texture.
RIGHT_AXIS = np.array([1, 0, 0])
DOWN_AXIS = np.array([2, 2, 1])


class PartSurface(NamedTuple):
    """All that some parts show of one material."""

    surface: Surface
    texture: Texture | None
    """The name of its image."""


def surfaces_of_parts(placed: Iterable[tuple[Part, Frame]]) -> list[PartSurface]:
    """Return the surfaces of parts in the frame that their own frames lead to, the smallest first."""
    pieces: dict[tuple[Texture | None, Rgba], list[tuple[Array, Array, Array]]] = defaultdict(list)
    for part, frame in placed:
        red, green, blue, *alpha = part.color
        rgba = (red, green, blue, alpha[0] if alpha else 1.0)
        pieces[part.texture, rgba].append(_triangles(part, frame))
    merged = {
        material: [np.concatenate(arrays) for arrays in zip(*own, strict=True)]
        for material, own in pieces.items()
    }
    return [
        PartSurface(
            Surface(
                vertices,
                normals,
                texcoords,
                np.arange(len(vertices)).reshape(-1, 3),
                rgba,
                None if texture is None else texture_image(texture),
            ),
            texture,
        )
        for (texture, rgba), (vertices, normals, texcoords) in sorted(
            merged.items(), key=lambda drawing: area_m2(drawing[1][0])
        )
    ]


def _triangles(part: Part, frame: Frame) -> tuple[Array, Array, Array]:
    """Return vertices, normals and texture coordinates, three for each triangle."""
    template = _template(part.shape)
    vertices = frame.points(template.corners)
    normals = template.normals @ frame.rotation.T
    texcoords = np.zeros((len(vertices), 2))
    if part.texture is not None:
        # Measured from the frame's origin, so that the pieces of one wall continue each other's pattern.
        along_axes = vertices @ frame.rotation
        is_longer_down = frame.size[DOWN_AXIS] > frame.size[RIGHT_AXIS]
        texcoords = metric_texcoords(along_axes, template.facing, is_longer_down, part.texture)
    return vertices, normals, texcoords


class _Template(NamedTuple):
    corners: Array  # (3 * faces, 3), of a shape of size 1
    normals: Array  # (3 * faces, 3)
    facing: NDArray[np.int64]  # (3 * faces,): the axis that the triangle looks along


@cache
def _template(shape: str) -> _Template:
    packages = ("numpy", "scipy", "trimesh")
    made = cached_arrays(f"drawn-{shape}", lambda: _make_template(shape), source=__file__, packages=packages)
    return _Template(**made)


def _make_template(shape: str) -> Arrays:
    import trimesh  # noqa: PLC0415  (takes 0.2 s, and not needed to read a template from the cache)

    if shape == "box":
        mesh = trimesh.creation.box()
    elif shape == "cylinder":
        mesh = trimesh.creation.cylinder(radius=0.5, height=1.0, sections=ROUND_SIDES)
    else:
        mesh = trimesh.creation.uv_sphere(radius=0.5, count=(ROUND_SIDES // 3, ROUND_SIDES * 2 // 3))
    mesh = mesh.smooth_shaded
    return {
        "corners": np.array(mesh.triangles.reshape(-1, 3)),
        "normals": mesh.vertex_normals[mesh.faces].reshape(-1, 3),
        "facing": np.repeat(np.abs(mesh.face_normals).argmax(axis=1), 3),
    }


def metric_texcoords(
    points: Array, facing: NDArray[np.int64], is_longer_down: NDArray[np.bool_], texture: Texture
) -> Array:
    """Return texture coordinates that repeat by the metre on every face.

    Grain runs along the longer side: `is_longer_down` says which that is of faces that look along x, y and z.
    """
    right, down = RIGHT_AXIS[facing], DOWN_AXIS[facing]
    if texture in GRAINED:
        turned = is_longer_down[facing]
        right, down = np.where(turned, down, right), np.where(turned, right, down)
    index = np.arange(len(points))
    return np.asarray(np.stack([points[index, right], -points[index, down]], axis=1) / TILE_M[texture])
