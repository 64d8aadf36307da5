"""Mesh files as surfaces to draw and convex pieces to bump into, in metres with Z up.

A thing is read by `load_mesh_asset`; a whole house, which may have millions of triangles, by `load_surfaces`.
"""

from __future__ import annotations

import hashlib
import math
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import ConvexHull

from proctor.core.sized_cache import sized_cache
from proctor.core.types import Array

Y_UP_TO_Z_UP = np.array([[1, 0, 0, 0], [0, 0, -1, 0], [0, 1, 0, 0], [0, 0, 0, 1]])
FLAT_M = 0.01
"""A piece without a volume, such as a sheet, collides as if it were this thick."""
MAX_IMAGE_SIDE = 2048
MAX_CACHED_BYTES = 2**28
"""Of houses, and of things: every file of a house is needed twice, for its map and for its world."""
SHADES = 64
"""Of each channel of colours that are given by vertex."""


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


def load_mesh_asset(file: Path, root: Path | None = None) -> MeshAsset:
    """Read a mesh file, once for each version of it. Formats that are Y up by definition are turned to Z up.

    Args:
        file: The mesh.
        root: The scene's folder, in which it may name other files; its own if missing.

    Raises:
        ValueError: It is not a mesh.
        MissingDependency: The reader for this format is not installed.
    """
    return _asset_of_version(file, root, file.stat().st_mtime_ns)


def load_drawn_surfaces(file: Path, root: Path | None = None) -> list[Surface]:
    """Read what is to be seen of a mesh file of a thing that collides as something else.

    Of glTF, normals are those of the file. Equal images are one array.

    Args:
        file: The mesh.
        root: The scene's folder, in which it may name other files; its own if missing.

    Raises:
        ValueError: It is not a mesh.
        MissingDependency: The reader for this format is not installed.
    """
    return _drawn_surfaces_of_version(file, root, file.stat().st_mtime_ns)


def load_surfaces(file: Path, root: Path | None = None) -> list[Surface]:
    """Read what is to be seen of a mesh file, turned to Z up like a thing, once for each version of it.

    Args:
        file: The mesh.
        root: The scene's folder, in which it may name other files; its own if missing.

    Raises:
        ValueError: It is not a mesh, or too large.
        MissingDependency: The reader for this format is not installed.
    """
    return _surfaces_of_version(file, root, file.stat().st_mtime_ns)


def surfaces_of(meshes: list[Any], file: Path) -> list[Surface]:
    """Return the surfaces of a thing whose meshes (Trimesh, Z up, in metres) another reader has read.

    Raises:
        ValueError: They are none, too many or broken.
    """
    from proctor.scenes.mesh_reader import check_meshes  # noqa: PLC0415  (see `_read`)

    check_meshes(meshes, file)
    return [_surface(mesh) for mesh in meshes]


def is_turned(file: Path) -> bool:
    """Tell whether this file is Y up by its format or by what it says, and so is turned on reading."""
    if file.suffix.lower() == ".dae":
        return b"Z_UP" not in file.read_bytes()
    return is_gltf(file)


def is_gltf(file: Path) -> bool:
    """Tell whether this file is glTF by its name."""
    return file.suffix.lower() in (".glb", ".gltf")


def _surface_bytes(surfaces: list[Surface]) -> int:
    arrays = (array for surface in surfaces for array in (*surface[:4], surface.image) if array is not None)
    return sum(array.nbytes for array in arrays)


def _asset_bytes(asset: MeshAsset) -> int:
    return _surface_bytes(asset.surfaces) + sum(piece.nbytes for piece in asset.pieces)


@sized_cache(MAX_CACHED_BYTES, _asset_bytes)
def _asset_of_version(file: Path, root: Path | None, version: int) -> MeshAsset:
    del version  # only there to tell versions apart
    from proctor.scenes.mesh_reader import pieces_of  # noqa: PLC0415  (see `_read`)

    meshes = _read(file, root)
    pieces = pieces_of(meshes, file)
    return MeshAsset([_surface(mesh, linear=is_gltf(file)) for mesh in meshes], pieces)


@lru_cache(maxsize=512)  # a house full of things
def _drawn_surfaces_of_version(file: Path, root: Path | None, version: int) -> list[Surface]:
    del version
    own = is_gltf(file)
    surfaces = [_surface(mesh, smooth=not own, linear=own) for mesh in _read(file, root, with_normals=own)]
    return [surface._replace(image=_shared(surface.image)) for surface in surfaces]


_IMAGES: WeakValueDictionary[bytes, NDArray[np.uint8]] = WeakValueDictionary()


def _shared(image: NDArray[np.uint8] | None) -> NDArray[np.uint8] | None:
    """Return the array that holds this image already, if there is one: many things are of the same wood."""
    if image is None:
        return None
    digest = hashlib.sha256(repr(image.shape).encode() + image.tobytes()).digest()
    return _IMAGES.setdefault(digest, image)


@sized_cache(MAX_CACHED_BYTES, _surface_bytes)
def _surfaces_of_version(file: Path, root: Path | None, version: int) -> list[Surface]:
    del version
    surfaces = [_plain_surface(mesh, linear=is_gltf(file)) for mesh in _read(file, root)]
    return [surface for surface in surfaces if len(surface.faces)]


def _read(file: Path, root: Path | None, *, with_normals: bool = False) -> list[Any]:
    # Importing trimesh takes 0.2 s, and most scenes have no mesh files.
    from proctor.scenes.mesh_reader import read_meshes  # noqa: PLC0415

    return read_meshes(file, root, with_normals=with_normals)


def convex_body(points: Array, flat_m: float = FLAT_M) -> Array:
    """Return the corners of the convex body around points (N, 3), at least `flat_m` thick every way."""
    middle = points.mean(axis=0)
    offsets = points - middle
    axes = np.linalg.eigh(offsets.T @ offsets)[1].T
    local = offsets @ axes.T
    thin = np.flatnonzero(np.ptp(local, axis=0) < flat_m)
    if not len(thin):
        return np.asarray(points[ConvexHull(points).vertices])
    for axis in thin:  # a sheet, a rod or a point has no hull of its own
        shift = np.zeros(3)
        shift[axis] = flat_m / 2
        local = np.concatenate([local - shift, local + shift])
    corners = local[ConvexHull(local).vertices]
    return np.asarray(corners @ axes + middle)


def _surface(mesh: Any, *, smooth: bool = True, linear: bool = False) -> Surface:
    """Return a thing's surface, its edges smoothed where they are blunt."""
    rgba, image = _paint(mesh, linear=linear)
    texcoords = _texcoords(mesh) if image is not None else None
    if image is None and smooth:
        mesh = mesh.smooth_shaded
    return Surface(
        np.asarray(mesh.vertices),
        np.asarray(mesh.vertex_normals),
        np.zeros((len(mesh.vertices), 2)) if texcoords is None else texcoords,
        np.asarray(mesh.faces),
        rgba,
        image,
    )


def _plain_surface(mesh: Any, *, linear: bool) -> Surface:
    """Return a house's surface as it is, which is quick however many triangles it has."""
    triangles = np.asarray(mesh.triangles)
    across = np.cross(triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0])
    doubled_area = np.linalg.norm(across, axis=1)
    whole = doubled_area > 0
    rgba, image = _paint(mesh, linear=linear)
    if image is not None:
        vertices, normals = np.asarray(mesh.vertices), np.asarray(mesh.vertex_normals)
        return Surface(vertices, normals, _texcoords(mesh), np.asarray(mesh.faces)[whole], rgba, image)
    # Triangles that share no corners can have an own normal and an own colour.
    corners = triangles[whole].reshape(-1, 3)
    normals = np.repeat(across[whole] / doubled_area[whole, None], 3, axis=0)
    faces = np.arange(len(corners)).reshape(-1, 3)
    texcoords = np.zeros((len(corners), 2))
    if mesh.visual.kind in ("vertex", "face"):
        image, at = _palette(np.asarray(mesh.visual.face_colors)[whole, :3])
        rgba, texcoords = (1.0, 1.0, 1.0, rgba[3]), np.repeat(at, 3, axis=0)
    return Surface(corners, normals, texcoords, faces, rgba, image)


def _paint(mesh: Any, *, linear: bool) -> tuple[tuple[float, float, float, float], NDArray[np.uint8] | None]:
    """Return a mesh's colour, and its texture if it has one.

    Args:
        mesh: A Trimesh.
        linear: Whether colours of materials are in linear light, as glTF has them.
    """
    image, is_linear = None, False
    if mesh.visual.kind == "texture":
        material = mesh.visual.material
        picture = getattr(material, "baseColorTexture", None) or getattr(material, "image", None)
        if picture is not None and mesh.visual.uv is not None:
            picture = picture.convert("RGB")
            picture.thumbnail((MAX_IMAGE_SIDE, MAX_IMAGE_SIDE))
            image = np.asarray(picture)
        color = material.main_color
        is_linear = linear and getattr(material, "baseColorFactor", None) is not None
        if image is not None and getattr(material, "baseColorFactor", None) is None:
            color = (255, 255, 255, 255)  # main_color would be a grey that nobody asked for
    else:
        color = mesh.visual.vertex_colors.mean(axis=0) if mesh.visual.defined else (204, 204, 204, 255)
    red, green, blue, alpha = (float(channel) / 255 for channel in color)
    if is_linear:
        red, green, blue = map(_shown, (red, green, blue))
    return (red, green, blue, alpha), image


def _shown(linear: float) -> float:
    """Return a channel in linear light as it is shown."""
    return 12.92 * linear if linear <= 0.0031308 else 1.055 * linear ** (1 / 2.4) - 0.055


def _texcoords(mesh: Any) -> Array:
    return np.asarray(np.array([0, 1]) + np.asarray(mesh.visual.uv) * [1, -1])


def _palette(colors: NDArray[np.uint8]) -> tuple[NDArray[np.uint8], Array]:
    """Return colours (N, 3) as an image with one pixel for each shade, and where in it (N, 2) they are.

    MuJoCo knows no colours of vertices; this gives each triangle of a scan its own.
    """
    step = 256 // SHADES
    red, green, blue = (colors // step).astype(np.int64).T
    shades, index = np.unique((red * SHADES + green) * SHADES + blue, return_inverse=True)
    side = math.ceil(math.sqrt(len(shades)))
    image = np.zeros((side * side, 3), np.uint8)
    channels = np.stack([shades // SHADES**2, shades // SHADES % SHADES, shades % SHADES], axis=1)
    image[: len(shades)] = channels * step + step // 2
    at = np.stack([index % side, index // side], axis=1)
    return image.reshape(side, side, 3), (at + 0.5) / side
