"""Things that come in mesh files."""

from __future__ import annotations

import math
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy.spatial import ConvexHull

from proctor.core.types import Array
from proctor.core.watched_file import WatchedFile, watch
from proctor.scenes.frames import Frame
from proctor.scenes.kinds import kind_and_color
from proctor.scenes.mesh_files import MESH_SUFFIXES, USD_SUFFIXES, inner_path, missing_notes
from proctor.scenes.meshes import MeshFile, Surface, convex_body, surfaces_of
from proctor.scenes.shapes import Triple
from proctor.scenes.solids import hull_solid, joined, moved
from proctor.scenes.thing import Thing

SUFFIXES = (*USD_SUFFIXES, *MESH_SUFFIXES)
SMALLEST_M, LARGEST_M = 0.005, 5.0
MAX_TRIANGLES = 200_000
MAX_HULL_POINTS = 64
MAX_LOOSE_PIECES, MAX_FIXED_PIECES = 16, 256
DENSITY_KG_M3 = 300.0
THIN_M = 0.002
"""A piece that is thinner, such as a sheet, collides as if it were this thick."""


def file_in(folder: Path | None, path: str) -> Path | None:
    """Return a file of the folder, None if it is not there; ValueError if it leads out or is not a mesh."""
    inner = inner_path("usd_path", path, "dataset")
    if folder is None:
        return None
    file = (folder / inner).resolve()
    if not file.is_relative_to(folder.resolve()):
        raise ValueError(f"usd_path: '{path}' leads out of {folder}")
    if not file.is_file():
        return None
    if file.suffix.lower() not in SUFFIXES:
        raise ValueError(f"usd_path: '{path}' is no mesh file ({', '.join(SUFFIXES)})")
    return file


def thing_of_file(file: Path, folder: Path, scale: Triple, *, is_furniture: bool) -> Thing:
    """Read an object, once for each content of its file. A ValueError says why the file cannot be used."""
    return _thing(watch(file), folder, scale, is_furniture)


@lru_cache(maxsize=64)
def _thing(watched: WatchedFile, folder: Path, scale: Triple, is_furniture: bool) -> Thing:  # noqa: FBT001
    file = watched.path
    surfaces, notes = _surfaces(file, folder)
    frame = Frame(np.array(scale), np.eye(3), np.zeros(3))
    surfaces = [frame.surface(surface) for surface in surfaces]
    whole = _welded(surfaces)
    _check_size(whole, file)
    bodies, found = _bodies(whole, file, MAX_FIXED_PIECES if is_furniture else MAX_LOOSE_PIECES, is_furniture)
    points = np.concatenate(bodies)
    low, high = points.min(axis=0), points.max(axis=0)
    origin = (low + high) / 2
    if not is_furniture:
        origin[2] = low[2]
    named = kind_and_color(file.stem)
    solids = [hull_solid(_simplified(body) - origin) for body in bodies]
    return Thing(
        kind=named[0] if named else file.stem.replace("_", " "),
        surfaces=[moved(surface, -origin) for surface in surfaces],
        solids=solids,
        mass_kg=sum(solid.volume_m3 for solid in solids) * DENSITY_KG_M3,
        is_furniture=is_furniture,
        notes=(*notes, *found),
    )


def _surfaces(file: Path, folder: Path) -> tuple[list[Surface], list[str]]:
    if file.suffix.lower() in USD_SUFFIXES:
        from proctor.scenes.usd_files import read_usd  # noqa: PLC0415  (with trimesh; see `_welded`)

        content = read_usd(file, folder)
        surfaces, notes = surfaces_of(content.meshes, file), content.notes
    else:
        surfaces, notes = MeshFile(file, folder).asset.surfaces, missing_notes(file, folder)
    triangles = sum(len(surface.faces) for surface in surfaces)
    if triangles > MAX_TRIANGLES:
        raise ValueError(
            f"'{file.name}' has {triangles} triangles; a thing may have {MAX_TRIANGLES}: simplify it"
        )
    return surfaces, notes


def _welded(surfaces: list[Surface]) -> Any:
    """Return all as one mesh whose corners are shared, whatever their shade or material."""
    import trimesh  # noqa: PLC0415  (takes 0.2 s, and most tables have no things from mesh files)

    whole = joined(surfaces)
    return trimesh.Trimesh(whole.vertices, whole.faces)


def _check_size(whole: Any, file: Path) -> None:
    largest_m = float(np.ptp(whole.vertices, axis=0).max())
    if not SMALLEST_M <= largest_m <= LARGEST_M:
        raise ValueError(
            f"'{file.name}' is {largest_m:.4g} m large, expected {SMALLEST_M} to {LARGEST_M} m: "
            "if its unit is not the metre, set scale, for millimetres to [0.001, 0.001, 0.001]"
        )


def _bodies(whole: Any, file: Path, limit: int, is_furniture: bool) -> tuple[list[Array], list[str]]:  # noqa: FBT001
    """Return the corners of the convex bodies to bump into, and what people should know about them."""
    pieces = [np.asarray(piece.vertices) for piece in whole.split(only_watertight=False, repair=False)]
    notes = [f"'{file.name}' {problem}: it collides as a convex hull" for problem in _problems(whole)]
    if len(pieces) > limit:
        if is_furniture:
            raise ValueError(f"'{file.name}' falls into {len(pieces)} pieces; furniture may have {limit}")
        notes.append(f"'{file.name}' falls into {len(pieces)} pieces: it collides as one hull around all")
        pieces = [np.asarray(whole.vertices)]
    bodies = [convex_body(piece, THIN_M) for piece in pieces]
    volume_m3 = sum(float(ConvexHull(body).volume) for body in bodies)
    if whole.is_volume and volume_m3 > 1.5 * float(whole.volume):
        notes.append(f"'{file.name}' is hollow but collides as its convex hull: nothing can be put into it")
    return bodies, notes


def _problems(whole: Any) -> list[str]:
    """Return what keeps a mesh from having an inside."""
    longest, _, shortest = np.linalg.svd(whole.vertices - whole.vertices.mean(axis=0), compute_uv=False)
    if shortest < 1e-6 * longest:
        return [f"is flat, and taken to be {THIN_M * 1000:.0f} mm thick"]
    _, uses = np.unique(whole.edges_sorted, axis=0, return_counts=True)
    if (uses > 2).any():
        return ["is not manifold (an edge has more than two faces)"]
    return [] if whole.is_watertight else ["is not closed"]


def _simplified(body: Array) -> Array:
    """Return a convex body with at most MAX_HULL_POINTS corners: those that lie farthest out."""
    if len(body) <= MAX_HULL_POINTS:
        return body
    count = MAX_HULL_POINTS - 6
    z = 1 - (2 * np.arange(count) + 1) / count
    angle = np.arange(count) * math.pi * (3 - math.sqrt(5))  # evenly spread, as seeds of a sunflower are
    ring = np.sqrt(1 - z * z)
    evenly = np.stack([ring * np.cos(angle), ring * np.sin(angle), z], axis=1)
    directions = np.concatenate([np.eye(3), -np.eye(3), evenly])  # its bounding box stays as it is
    # Of a flat thing the directions are spread as if it were as high as wide.
    shape = (body - body.min(axis=0)) / np.ptp(body, axis=0)
    return np.asarray(body[np.unique((shape @ directions.T).argmax(axis=0))])
