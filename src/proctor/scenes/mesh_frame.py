"""Which way is up in a house's mesh, and in which unit it is: found out where the file does not tell."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from proctor.core.types import Array
from proctor.scenes.meshes import is_turned, load_surfaces

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
FLAT_MM = 1000.0
BASIS = b"KHR_texture_basisu"
DEFINED = (".glb", ".gltf", ".dae")


class MeshFrame(NamedTuple):
    """How a mesh, as read, is brought into the world, and what to tell people about it."""

    rotate_x_deg: float
    scale: float
    notes: list[str]


def triangles_of(file: Path, root: Path | None = None) -> Array:
    """Return the corners (N, 3, 3) of a mesh file's triangles. `root` is the scene's folder.

    Raises:
        ValueError: It is not a mesh.
        MissingDependency: The reader for this format is not installed.
    """
    corners = [surface.vertices[surface.faces] for surface in load_surfaces(file, root)]
    return np.concatenate(corners) if corners else np.zeros((0, 3, 3))


def find_frame(file: Path, root: Path | None = None) -> MeshFrame:
    """Find out the frame of a house's mesh. `root` is the scene's folder.

    Floors and ceilings are the largest level surfaces of a house, and walls divide among two directions:
    that tells Y up from Z up. Its height tells the unit.

    Raises:
        ValueError: It is not a mesh.
        MissingDependency: The reader for this format is not installed.
    """
    triangles = triangles_of(file, root)
    if not len(triangles):
        raise ValueError(f"'{file.name}' holds no triangles with an area")
    turned, defined = is_turned(file), file.suffix.lower() in DEFINED
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
    if file.suffix.lower() in (".glb", ".gltf") and BASIS in file.read_bytes():
        notes.append(f"{file.name} has its textures in Basis, which cannot be read: it is seen without them")
    turn_deg = 0.0 if not is_other else (-90.0 if turned else 90.0)
    return MeshFrame(turn_deg, scale, notes)


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
    return ("millimetres", 0.001) if length >= FLAT_MM else ("metres", 1.0)
