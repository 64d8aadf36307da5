"""Mesh files as surfaces to draw and convex pieces to collide with, in metres with Z up.

`MeshFile` is one file; `find_frame` finds out up axis and unit of a house where its file does not tell.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import ConvexHull

from proctor.core.types import Array
from proctor.core.watched_file import WatchedFile

Y_UP_TO_Z_UP = np.array([[1, 0, 0, 0], [0, 0, -1, 0], [0, 1, 0, 0], [0, 0, 0, 1]])
FLAT_M = 0.01
"""A piece without a volume, such as a sheet, collides as if it were this thick."""
MAX_IMAGE_SIDE = 2048
MAX_FILE_BYTES = 2**30
SHADES = 64
"""Of each channel of colours that are given by vertex."""
LEVEL = 0.95
"""How much of a normal must point along an axis for its triangle to be level across it."""
# How much better the other axis must look than the one that the file or its format names, or that is usual.
AGAINST_THE_FILE, AGAINST_CUSTOM = 4.0, 1.25
LOWEST_ROOM_M, SHEET_M = 1.9, 0.5
"""A corridor that lies on its side is lower than a room, but higher than a mere floor."""
LEAST_SHARE, FLAT_SHARE = 0.05, 0.75
"""Lying on its side, a house still has this share of its area level; of a mere floor, it is this and more."""
UNITS = (("millimetres", 0.001, 1300.0), ("centimetres", 0.01, 180.0))
"""Houses of at least this height, in metres, do not exist; in this unit they do."""

Paint = tuple[tuple[float, float, float, float], NDArray[np.uint8] | None]
"""A colour, and an image if there is one."""


class Surface(NamedTuple):
    """Triangles of one material."""

    vertices: Array  # (N, 3)
    normals: Array  # (N, 3), unit
    texcoords: Array  # (N, 2), v grows downwards in the image
    faces: NDArray[np.int64]  # (M, 3)
    rgba: tuple[float, float, float, float]
    image: NDArray[np.uint8] | None  # (rows, columns, 3)

    def area_m2(self) -> float:
        """Return the area of its triangles."""
        return area_m2(self.vertices[self.faces].reshape(-1, 3))


def area_m2(corners: Array) -> float:
    """Return the area of triangles whose corners (3 N, 3) follow each other."""
    a, b, c = corners[::3], corners[1::3], corners[2::3]
    (ab_x, ab_y, ab_z), (ac_x, ac_y, ac_z) = (b - a).T, (c - a).T
    # By hand, since the overhead of np.cross would be most of the time for the few triangles of a part.
    x, y, z = ab_y * ac_z - ab_z * ac_y, ab_z * ac_x - ab_x * ac_z, ab_x * ac_y - ab_y * ac_x
    return float(np.sqrt(x * x + y * y + z * z).sum() / 2)


class MeshAsset(NamedTuple):
    """An object that a mesh file holds."""

    drawn: list[Surface]
    """To look at: those of glTF have the normals of the file. Equal images are one array."""
    surfaces: list[Surface]
    """Smoothed where edges are blunt. Of what is not solid, those to look at."""
    pieces: list[Array]
    """The vertices of each connected piece. What objects bump into is the `convex_body` of each."""


class MeshFile(WatchedFile):
    """A mesh file that is read and parsed once, whatever is asked of it. What is Y up is turned to Z up.

    It may name other files in `root`, the scene's folder (by default its own). An object that is `solid`
    is going to be asked for its pieces. With `part`, only that part of the file is read. `invalid` makes
    the error of a file that is not a mesh; one whose format needs a reader that is not installed raises
    MissingDependency.
    """

    def __init__(
        self,
        path: Path,
        root: Path | None = None,
        *,
        solid: bool = True,
        part: str | None = None,
        invalid: Callable[[str], Exception] = ValueError,
    ) -> None:
        super().__init__(path)
        self.root = path.parent if root is None else root
        self._is_solid, self._part, self._invalid = solid, part, invalid
        self.is_turned = False
        """Whether it was read as Y up."""
        self.has_basis_textures = False

    @cached_property
    def asset(self) -> MeshAsset:
        """The object that it holds. It has no pieces if it is not solid."""
        from proctor.scenes.mesh_reader import pieces_of  # noqa: PLC0415  (see `_read`)

        with self._located():
            is_own = is_gltf(self.path)
            meshes = self._read(with_normals=is_own)
            painted = [(mesh, _shared(_paint(mesh, linear=is_own))) for mesh in meshes]
            drawn = [_surface(mesh, paint, smooth=not is_own) for mesh, paint in painted]
            if not self._is_solid:
                return MeshAsset(drawn, drawn, [])
            # Once more, without the normals of the file.
            surfaces = [_surface(mesh.copy(), paint) for mesh, paint in painted] if is_own else drawn
            return MeshAsset(drawn, surfaces, pieces_of(meshes, self.path))

    @cached_property
    def surfaces(self) -> list[Surface]:
        """The surfaces of a house, which may have millions of triangles."""
        with self._located():
            surfaces = [_plain_surface(mesh, linear=is_gltf(self.path)) for mesh in self._read()]
        return [surface for surface in surfaces if len(surface.faces)]

    def triangles(self) -> Array:
        """Return the corners (N, 3, 3) of the triangles of a house."""
        corners = [surface.vertices[surface.faces] for surface in self.surfaces]
        return np.concatenate(corners) if corners else np.zeros((0, 3, 3))

    def size_bytes(self) -> int:
        """Return how much memory it takes."""
        asset = self.__dict__.get("asset", MeshAsset([], [], []))
        surfaces = (*asset.drawn, *asset.surfaces, *self.__dict__.get("surfaces", ()))
        arrays = {id(array): array for surface in surfaces for array in (*surface[:4], surface.image)}
        found = [*(array for array in arrays.values() if array is not None), *asset.pieces]
        return sum(int(array.nbytes) for array in found)

    def release(self) -> None:
        """Free its memory. It is read again if it is asked for once more."""
        for name in ("asset", "surfaces"):
            self.__dict__.pop(name, None)

    def _read(self, *, with_normals: bool = False) -> list[Any]:
        # Importing trimesh takes 0.2 s, and most scenes have no mesh files.
        from proctor.scenes.mesh_reader import read_meshes  # noqa: PLC0415

        if self.path.stat().st_size > MAX_FILE_BYTES:
            raise ValueError(f"'{self.path.name}' is larger than {MAX_FILE_BYTES >> 20} MB")
        content = self.note(self.path.read_bytes())
        self.is_turned = is_turned(self.path, content)
        self.has_basis_textures = is_gltf(self.path) and b"KHR_texture_basisu" in content
        return read_meshes(self.path, content, self.root, with_normals=with_normals, part=self._part)

    @contextmanager
    def _located(self) -> Iterator[None]:
        try:
            yield
        except ValueError as error:
            raise self._invalid(str(error)) from None


def surfaces_of(meshes: list[Any], file: Path) -> list[Surface]:
    """Return the surfaces of meshes (Trimesh, Z up, in metres) that another reader has read."""
    from proctor.scenes.mesh_reader import check_meshes  # noqa: PLC0415  (see `_read`)

    check_meshes(meshes, file)
    return [_surface(mesh, _paint(mesh, linear=False)) for mesh in meshes]


def is_turned(file: Path, content: bytes) -> bool:
    """Tell whether this file is Y up by its format or by what it says, and so is turned on reading."""
    if file.suffix.lower() == ".dae":
        return b"Z_UP" not in content
    return is_gltf(file)


def is_gltf(file: Path) -> bool:
    """Tell whether this file is glTF by its name."""
    return file.suffix.lower() in (".glb", ".gltf")


_IMAGES: WeakValueDictionary[bytes, NDArray[np.uint8]] = WeakValueDictionary()


def _shared(paint: Paint) -> Paint:
    """Return a paint whose image is the array that holds the same one already, if there is any."""
    rgba, image = paint
    if image is None:
        return paint
    digest = hashlib.sha256(repr(image.shape).encode() + image.tobytes()).digest()
    return rgba, _IMAGES.setdefault(digest, image)


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


def _surface(mesh: Any, paint: Paint, *, smooth: bool = True) -> Surface:
    """Return an object's surface, its edges smoothed where they are blunt."""
    rgba, image = paint
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


def _paint(mesh: Any, *, linear: bool) -> Paint:
    """Return a Trimesh's colour, and its texture if any. glTF has its colours in linear light."""
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


class MeshFrame(NamedTuple):
    """How a mesh, as read, is brought into the world, and what to tell people about it."""

    rotate_x_deg: float
    scale: float
    notes: list[str]


def find_frame(mesh: MeshFile) -> MeshFrame:
    """Find out the frame of a house's mesh.

    Floors and ceilings are the largest level surfaces of a house, and walls divide among two directions:
    that tells Y up from Z up. Its height tells the unit.
    """
    triangles, file, turned = mesh.triangles(), mesh.path, mesh.is_turned
    if not len(triangles):
        raise ValueError(f"'{file.name}' holds no triangles with an area")
    defined = file.suffix.lower() in (".glb", ".gltf", ".dae")
    # As read, z is up. The other way to read it is the file's z where it was turned, its y where not.
    other = 1
    as_read, otherwise = _evidence(triangles, 2), _evidence(triangles, other)
    ratio = otherwise.weight / max(as_read.weight, 1e-12)
    # Walls alone would lie down to be a floor.
    is_house = as_read.share >= LEAST_SHARE or otherwise.share >= FLAT_SHARE
    is_other = is_house and ratio > (AGAINST_THE_FILE if defined else AGAINST_CUSTOM)
    size = np.ptp(triangles.reshape(-1, 3), axis=0)
    other_m = float(size[other]) * _unit(float(size[other]), float(size.max()))[1]
    is_other = is_other and not (defined and SHEET_M < other_m < LOWEST_ROOM_M)
    axis = "Z" if turned == is_other else "Y"
    if is_other:
        named = "though its format is" if defined else "not"
        reason = f"{named} {'Y' if axis == 'Z' else 'Z'} up: its largest level surfaces lie that way"
    else:
        reason = "as its format is" if defined else "as its level surfaces lie"
    notes = [f"{file.name} is read as {axis} up, {reason}"]
    height = float(size[other if is_other else 2])
    unit, scale = _unit(height, float(size.max()))
    if scale != 1.0:
        notes.append(f"{file.name} is read as {unit}: it is {height:.0f} high and {size.max():.0f} long")
    if mesh.has_basis_textures:
        notes.append(f"{file.name} has its textures in Basis, which cannot be read: it is seen without them")
    return MeshFrame(0.0 if not is_other else (-90.0 if turned else 90.0), scale, notes)


class _Evidence(NamedTuple):
    """How much an axis looks like up."""

    weight: float
    """The area across it, times that at its fullest height."""
    share: float
    """Of all area that which lies across it."""


def _evidence(triangles: Array, axis: int) -> _Evidence:
    across = np.cross(triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0]) / 2
    areas = np.linalg.norm(across, axis=1)
    level = np.abs(across[:, axis]) > LEVEL * areas
    if not level.any():
        return _Evidence(0.0, 0.0)
    heights = triangles[level, :, axis].mean(axis=1)
    # The same bins for both axes, else the longer one would gather more in each.
    bin_size = np.ptp(triangles[..., 1:].reshape(-1, 2), axis=0).min() / 50 or 1.0
    # Only the bins that hold something: a stray triangle far away would make billions of them.
    _, bins = np.unique(np.floor((heights - heights.min()) / bin_size), return_inverse=True)
    fullest, across_it = np.bincount(bins, areas[level]).max(), areas[level].sum()
    return _Evidence(float(fullest * across_it), float(across_it / areas.sum()))


def _unit(height: float, length: float) -> tuple[str, float]:
    for unit, scale, impossible in UNITS:
        if height >= impossible:
            return unit, scale
    return ("millimetres", 0.001) if length >= 1000.0 else ("metres", 1.0)
