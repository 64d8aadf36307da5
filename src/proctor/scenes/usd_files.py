"""Reads what is to be seen of a USD file: its meshes and simple solids, each in one colour."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import trimesh
from numpy.typing import NDArray

from proctor.core.errors import missing_extra
from proctor.core.types import Array
from proctor.scenes.meshes import Y_UP_TO_Z_UP

MAX_FILE_BYTES = 2**28
MAX_LAYERS, MAX_PRIMS, MAX_TRIANGLES = 256, 20_000, 2_000_000
TOLD = re.compile(r" : '(.+?)( matching | at\n|'|\n\n)", re.DOTALL)
"""What USD has to say, amid where in its code it says so."""
GREY = (0.8, 0.8, 0.8)
ALONG = {"X": np.eye(3)[[1, 2, 0]], "Y": np.eye(3)[[2, 0, 1]], "Z": np.eye(3)}
"""What turns the z axis into another one, to be multiplied from the right."""


class UsdContent(NamedTuple):
    """What a USD file holds, Z up and in metres."""

    meshes: list[Any]
    """Of trimesh, each in one colour."""
    notes: list[str]
    """What had to be assumed or left out."""


def read_usd(file: Path, folder: Path) -> UsdContent:
    """Read a USD file and the files that it is composed of, all of which must lie in the folder."""
    try:
        from pxr import Tf, Usd, UsdGeom  # noqa: PLC0415 - an extra
    except ModuleNotFoundError as error:
        missing = missing_extra("A reader for USD files", error)
        raise (missing or error) from None
    try:
        files_of_usd(file, folder)
        stage = Usd.Stage.Open(str(file))
        stage.Reload()
        return _content(stage, file, UsdGeom)
    except Tf.ErrorException as error:
        told = TOLD.search(str(error))
        reason = f": {' '.join(told[1].split())[:200]}" if told else ""
        raise ValueError(f"'{file.name}' is not a USD file{reason}") from None


def files_of_usd(file: Path, folder: Path) -> list[Path]:
    """Return the files that a USD file is composed of, itself included, by name.

    Call it before a stage is opened, which would read them wherever they lie. Raises a ValueError if one of
    them lies outside of the folder, is missing or not USD.
    """
    from pxr import Sdf  # noqa: PLC0415 - an extra

    folder = folder.resolve()
    pending, seen = [file.resolve()], {file.resolve()}
    while pending:
        path = pending.pop()
        if path.stat().st_size > MAX_FILE_BYTES:
            raise ValueError(f"'{path.name}' is larger than {MAX_FILE_BYTES >> 20} MB")
        layer = Sdf.Layer.OpenAsAnonymous(str(path))  # as it is now, not as somebody has it open
        if layer is None:
            raise ValueError(f"'{path.name}' is not a USD file")
        for asset in layer.GetCompositionAssetDependencies():
            found = _inside(path.parent, asset, folder, file)
            if found not in seen:
                seen.add(found)
                pending.append(found)
        if len(seen) > MAX_LAYERS:
            raise ValueError(f"'{file.name}' is composed of more than {MAX_LAYERS} files")
    return sorted(seen)


def _inside(start: Path, asset: str, folder: Path, file: Path) -> Path:
    found = (start / asset).resolve() if "\0" not in asset and "://" not in asset else None
    if found is None or not found.is_relative_to(folder):
        raise ValueError(f"'{file.name}' refers to '{asset[:200]}', which lies outside of {folder}")
    if not found.is_file():
        raise ValueError(f"'{file.name}' refers to '{asset[:200]}', which does not exist")
    return found


def _content(stage: Any, file: Path, geom: Any) -> UsdContent:
    notes = []
    if not geom.StageHasAuthoredMetersPerUnit(stage):
        notes.append(f"'{file.name}' does not say its unit: it is read in centimetres, USD's own")
    world = np.eye(4)
    world[:3, :3] *= geom.GetStageMetersPerUnit(stage)
    if geom.GetStageUpAxis(stage) == geom.Tokens.y:
        world = Y_UP_TO_Z_UP @ world
    places, meshes, triangles = geom.XformCache(), [], 0
    for prim in _shown(stage, file, geom):
        place = world @ np.array(places.GetLocalToWorldTransform(prim)).T  # USD multiplies from the left
        shape = _shape(prim, file, geom)
        if not len(shape.faces):
            continue
        triangles += len(shape.faces)
        if triangles > MAX_TRIANGLES:
            raise ValueError(f"'{file.name}' has more than {MAX_TRIANGLES} triangles")
        if np.linalg.det(place[:3, :3]) < 0:
            shape.invert()
        shape.vertices = shape.vertices @ place[:3, :3].T + place[:3, 3]
        colored = list(_by_color(prim, shape, geom))
        if any(is_textured for _, is_textured in colored):
            notes.append(f"'{file.name}': textures of USD files are not drawn, only colours")
        meshes += [mesh for mesh, _ in colored]
    if not meshes:
        raise ValueError(f"'{file.name}' holds no mesh, cube, sphere or cylinder that is to be seen")
    return UsdContent(meshes, list(dict.fromkeys(notes)))


def _shown(stage: Any, file: Path, geom: Any) -> Iterator[Any]:
    from pxr import Usd  # noqa: PLC0415 - an extra

    root = stage.GetDefaultPrim() or stage.GetPseudoRoot()
    for count, prim in enumerate(Usd.PrimRange(root, Usd.TraverseInstanceProxies())):
        if count > MAX_PRIMS:
            raise ValueError(f"'{file.name}' has more than {MAX_PRIMS} prims")
        if not any(prim.IsA(kind) for kind in (geom.Mesh, geom.Cube, geom.Sphere, geom.Cylinder)):
            continue
        look = geom.Imageable(prim)
        is_seen = look.ComputeVisibility() != geom.Tokens.invisible
        if is_seen and look.ComputePurpose() in (geom.Tokens.default_, geom.Tokens.render):
            yield prim


def _shape(prim: Any, file: Path, geom: Any) -> Any:
    if prim.IsA(geom.Cube):
        return trimesh.creation.box(np.full(3, geom.Cube(prim).GetSizeAttr().Get()))
    if prim.IsA(geom.Sphere):
        return trimesh.creation.icosphere(subdivisions=3, radius=geom.Sphere(prim).GetRadiusAttr().Get())
    if prim.IsA(geom.Cylinder):
        tin = geom.Cylinder(prim)
        shape = trimesh.creation.cylinder(tin.GetRadiusAttr().Get(), tin.GetHeightAttr().Get(), sections=32)
        shape.vertices = shape.vertices @ ALONG[str(tin.GetAxisAttr().Get())]
        return shape
    mesh = geom.Mesh(prim)
    points = _array(mesh.GetPointsAttr().Get(), np.float64).reshape(-1, 3)
    counts = _array(mesh.GetFaceVertexCountsAttr().Get(), np.int64)
    corners = _array(mesh.GetFaceVertexIndicesAttr().Get(), np.int64)
    if counts.min(initial=0) < 0 or counts.sum() != len(corners):
        raise ValueError(f"'{file.name}': the faces of {prim.GetPath()} have other corners than they say")
    if len(corners) and not 0 <= corners.min() <= corners.max() < len(points):
        raise ValueError(f"'{file.name}': faces of {prim.GetPath()} name points that it does not have")
    faces, owners = _triangles(counts, corners)
    if mesh.GetOrientationAttr().Get() == geom.Tokens.leftHanded:
        faces = faces[:, ::-1]
    shape = trimesh.Trimesh(points, faces, process=False)
    shape.face_attributes["owner"] = owners
    return shape


def _array(value: Any, kind: Any) -> NDArray[Any]:
    return np.zeros(0, kind) if value is None else np.asarray(value, dtype=kind)


def _triangles(counts: NDArray[np.int64], corners: NDArray[np.int64]) -> tuple[Array, NDArray[np.int64]]:
    """Return polygons as fans of triangles, and which polygon each of them is from."""
    fans = np.maximum(counts - 2, 0)
    owners = np.repeat(np.arange(len(counts)), fans)
    first = (np.cumsum(counts) - counts)[owners]
    step = np.arange(len(owners)) - (np.cumsum(fans) - fans)[owners]
    return corners[np.stack([first, first + step + 1, first + step + 2], axis=1)], owners


def _by_color(prim: Any, shape: Any, geom: Any) -> Iterator[tuple[Any, bool]]:
    """Yield the parts of a mesh that have a material of their own, and the rest, each with its colour."""
    from pxr import UsdShade  # noqa: PLC0415 - an extra

    rest = np.ones(len(shape.faces), dtype=np.bool_)
    owners = shape.face_attributes.get("owner")
    if owners is not None:
        for subset in UsdShade.MaterialBindingAPI(prim).GetMaterialBindSubsets():
            mine = rest & np.isin(owners, _array(subset.GetIndicesAttr().Get(), np.int64))
            rest &= ~mine
            if mine.any():
                yield _painted(subset.GetPrim(), prim, shape.vertices, shape.faces[mine], geom)
    if rest.any():
        yield _painted(prim, prim, shape.vertices, shape.faces[rest], geom)


def _painted(bound: Any, prim: Any, vertices: Array, faces: Array, geom: Any) -> tuple[Any, bool]:
    color, is_textured = _material_color(bound)
    if color is None:
        shown = geom.Gprim(prim).GetDisplayColorAttr().Get()
        color = np.asarray(shown, dtype=np.float64).mean(axis=0) if shown else None
    part: Any = trimesh.Trimesh(vertices, faces)  # leaves out vertices that are not needed
    # USD colours are linear, MuJoCo's are as they are shown.
    shade = GREY if color is None else np.clip(color, 0, 1) ** (1 / 2.2)
    part.visual.vertex_colors = [*(round(255 * channel) for channel in shade), 255]
    return part, is_textured


def _material_color(bound: Any) -> tuple[Array | None, bool]:
    """Return the diffuse colour of a material, if it has one, and whether it has a texture instead."""
    from pxr import UsdShade  # noqa: PLC0415 - an extra

    material, _ = UsdShade.MaterialBindingAPI(bound).ComputeBoundMaterial()
    shader = material.ComputeSurfaceSource()[0] if material else None
    diffuse = shader.GetInput("diffuseColor") if shader else None
    if not diffuse:
        return None, False
    value = diffuse.Get()
    is_textured = bool(diffuse.HasConnectedSource())
    return (None if value is None or is_textured else np.asarray(value, dtype=np.float64)), is_textured
