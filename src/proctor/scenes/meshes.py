"""Mesh files as surfaces to draw and convex pieces to bump into, in metres with Z up."""

from __future__ import annotations

import importlib
import importlib.util
import struct
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import trimesh
from numpy.typing import NDArray
from scipy.spatial import ConvexHull

from proctor.core.errors import MissingDependency
from proctor.core.types import Array

Y_UP_TO_Z_UP = np.array([[1, 0, 0, 0], [0, 0, -1, 0], [0, 1, 0, 0], [0, 0, 0, 1]])
FLAT_M = 0.01
"""A piece without a volume, such as a sheet, collides as if it were this thick."""
MAX_PIECES = 5000

BROKEN_FILE = (
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
    OSError,
    RuntimeError,
    ImportError,
    struct.error,
)


class Surface(NamedTuple):
    """Triangles of one material."""

    vertices: Array  # (N, 3)
    normals: Array  # (N, 3), unit
    texcoords: Array  # (N, 2), v grows downwards in the image
    faces: NDArray[np.int64]  # (M, 3)
    rgba: tuple[float, float, float, float]
    image: NDArray[np.uint8] | None  # (rows, columns, 3)


class MeshAsset(NamedTuple):
    """What a mesh file holds."""

    surfaces: list[Surface]
    pieces: list[Array]
    """The vertices of each connected piece. What things bump into is the `convex_body` of each."""


def load_mesh_asset(file: Path) -> MeshAsset:
    """Read a mesh file, once for each version of it. Formats that are Y up by definition are turned to Z up.

    Raises:
        ValueError: It is not a mesh.
        MissingDependency: The reader for this format is not installed.
    """
    return _load_version(file, file.stat().st_mtime_ns)


@lru_cache(maxsize=32)
def _load_version(file: Path, version: int) -> MeshAsset:
    del version  # only there to tell versions apart
    if file.suffix.lower() == ".dae" and importlib.util.find_spec("collada") is None:
        raise MissingDependency("A reader for .dae files", "pip install pycollada")
    try:
        scene = trimesh.load_scene(file)
        meshes = [mesh for mesh in scene.dump() if isinstance(mesh, trimesh.Trimesh) and len(mesh.faces)]
    except _reader_errors() as error:
        # trimesh blames optional packages where a text file is no text.
        reason = "" if isinstance(error, ImportError) else f": {error}"
        raise ValueError(f"'{file.name}' is not a {file.suffix} mesh{reason}") from None
    if not meshes:
        raise ValueError(f"'{file.name}' holds no triangles")
    if _is_y_up(file):
        for mesh in meshes:
            mesh.apply_transform(Y_UP_TO_Z_UP)
    if not all(np.isfinite(mesh.vertices).all() for mesh in meshes):
        raise ValueError(f"'{file.name}' has vertices that are not finite numbers")
    return MeshAsset([_surface(mesh) for mesh in meshes], _pieces(meshes, file))


def _pieces(meshes: list[Any], file: Path) -> list[Array]:
    pieces = []
    for mesh in meshes:
        welded = trimesh.Trimesh(
            mesh.vertices, mesh.faces
        )  # merges corners that only differ in their shading
        pieces += [np.asarray(piece.vertices) for piece in welded.split(only_watertight=False)]
        if len(pieces) > MAX_PIECES:
            raise ValueError(f"'{file.name}' falls into more than {MAX_PIECES} unconnected pieces")
    return pieces


def _reader_errors() -> tuple[type[Exception], ...]:
    """Return what trimesh's readers raise on files that are not what their name says."""
    try:
        return (*BROKEN_FILE, importlib.import_module("collada.common").DaeError)
    except ImportError:
        return BROKEN_FILE


def _is_y_up(file: Path) -> bool:
    if file.suffix.lower() == ".dae":
        return b"Z_UP" not in file.read_bytes()
    return file.suffix.lower() in (".glb", ".gltf")


def convex_body(points: Array) -> Array:
    """Return the corners of the convex body around points (N, 3), at least FLAT_M thick every way."""
    middle = points.mean(axis=0)
    offsets = points - middle
    axes = np.linalg.eigh(offsets.T @ offsets)[1].T
    local = offsets @ axes.T
    thin = np.flatnonzero(np.ptp(local, axis=0) < FLAT_M)
    if not len(thin):
        return np.asarray(points[ConvexHull(points).vertices])
    for axis in thin:  # a sheet, a rod or a point has no hull of its own
        shift = np.zeros(3)
        shift[axis] = FLAT_M / 2
        local = np.concatenate([local - shift, local + shift])
    corners = local[ConvexHull(local).vertices]
    return np.asarray(corners @ axes + middle)


def _surface(mesh: Any) -> Surface:
    image, texcoords = None, np.zeros((len(mesh.vertices), 2))
    if mesh.visual.kind == "texture":
        material = mesh.visual.material
        picture = getattr(material, "baseColorTexture", None) or getattr(material, "image", None)
        if picture is not None and mesh.visual.uv is not None:
            image = np.asarray(picture.convert("RGB"))
            texcoords = np.array([0, 1]) + np.asarray(mesh.visual.uv) * [1, -1]
        color = material.main_color
        if image is not None and getattr(material, "baseColorFactor", None) is None:
            color = (255, 255, 255, 255)  # main_color would be a grey that nobody asked for
    else:
        color = mesh.visual.vertex_colors.mean(axis=0) if mesh.visual.defined else (204, 204, 204, 255)
    if image is None:
        mesh = mesh.smooth_shaded
        texcoords = np.zeros((len(mesh.vertices), 2))
    red, green, blue, alpha = (float(channel) / 255 for channel in color)
    return Surface(
        np.asarray(mesh.vertices),
        np.asarray(mesh.vertex_normals),
        texcoords,
        np.asarray(mesh.faces),
        (red, green, blue, alpha),
        image,
    )
