"""The maker's Stretch made ready for MuJoCo: meshes that can be drawn in time, inertias that are physical.

The files come from the package `hello-robot-stretch-urdf`. Preparing them takes a while and is done once per
user and version.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import tempfile
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from proctor.core.array_cache import user_cache_folder
from proctor.core.errors import MissingDependency, UserError, install_command

PACKAGE, MODULE = "hello-robot-stretch-urdf", "stretch_urdf"
URDF = Path("RE2V0") / "stretch_description_RE2V0_tool_stretch_gripper.urdf"
PREPARED = "stretch.urdf"
MOST_FACES = 1500
"""Of a link that is drawn. The maker's base has 200,000."""
CELLS, CLUSTERED_FACES = 100, 5000
"""Across a mesh that must be clustered, and of what comes out; with fewer the base is full of holes."""
LEAST_INERTIA_KGM2 = 1e-7
TINY_INERTIA_KGM2 = 1e-5
"""Of links whose inertia in the URDF is not positive definite; all of them are small parts."""


@cache
def prepared_urdf() -> Path:
    """Return the URDF with its meshes beside it, prepared by this process, an earlier one or another."""
    source = _maker_urdf()
    told = f"{version(PACKAGE)} {MOST_FACES} {hashlib.sha256(Path(__file__).read_bytes()).hexdigest()}"
    name = f"stretch-{hashlib.sha256(told.encode()).hexdigest()[:16]}"
    for root in _cache_roots():
        ready = root / name
        if (ready / PREPARED).is_file():
            return ready / PREPARED
        try:
            root.mkdir(parents=True, exist_ok=True)
            building = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=root))
        except OSError:
            continue
        try:
            _prepare(source, building)
            _publish(building, ready)
        finally:
            shutil.rmtree(building, ignore_errors=True)
        return ready / PREPARED
    roots = ", ".join(map(str, _cache_roots()))
    raise UserError(f"cannot write the robot's prepared meshes to any of {roots}; set XDG_CACHE_HOME")


def _maker_urdf() -> Path:
    found = importlib.util.find_spec(MODULE)
    if found is None or found.origin is None:
        remedy = f"Install it with: {install_command('sim')}"
        raise MissingDependency(f"the Stretch robot (package {PACKAGE})", remedy)
    return Path(found.origin).parent / URDF


def _cache_roots() -> Iterator[Path]:
    yield user_cache_folder() / "proctor"
    yield Path(tempfile.gettempdir()) / f"proctor-{os.getuid() if hasattr(os, 'getuid') else 'user'}"


def _publish(building: Path, ready: Path) -> None:
    """Give a finished folder its name. Who comes second finds it there, complete, and is content."""
    try:
        building.rename(ready)
    except OSError:
        if not (ready / PREPARED).is_file():
            raise


def _prepare(source: Path, folder: Path) -> None:
    """Write the URDF and its meshes, those that are drawn with few faces."""
    robot = ET.fromstring(source.read_text("utf-8"))  # noqa: S314  (the maker's file, as installed)
    names: dict[str, str] = {}
    for mesh in robot.iter("mesh"):
        file = mesh.get("filename", "")
        if file not in names:
            names[file] = f"{Path(file).stem}.stl"
            _simplified(source.parent / file).export(folder / names[file])
        mesh.set("filename", names[file])
    for inertia in robot.iter("inertia"):
        _mend(inertia)
    options = ET.SubElement(robot, "mujoco")
    compiler = {"discardvisual": "false", "strippath": "false", "fusestatic": "false"}
    ET.SubElement(options, "compiler", compiler | {"balanceinertia": "true"})
    (folder / PREPARED).write_text(ET.tostring(robot, encoding="unicode"), encoding="utf-8")


def _simplified(file: Path) -> Any:
    import trimesh  # noqa: PLC0415  (takes 0.2 s, and not needed when the files are prepared)

    mesh: Any = trimesh.load(file, force="mesh")
    if len(mesh.faces) <= MOST_FACES:
        return mesh
    simple = mesh.simplify_quadric_decimation(face_count=MOST_FACES)
    if len(simple.faces) > 2 * MOST_FACES:  # hundreds of screws, none of which can be simplified further
        simple = _clustered(mesh).simplify_quadric_decimation(face_count=CLUSTERED_FACES)
    return simple


def _clustered(mesh: Any) -> Any:
    """Return the mesh with all vertices of a small cell made one."""
    import trimesh  # noqa: PLC0415  (see `_simplified`)

    cells = np.round(mesh.vertices * (CELLS / mesh.extents.max()))
    _, index = np.unique(cells, axis=0, return_inverse=True)
    index = index.ravel()
    counts = np.bincount(index)
    middles = np.stack([np.bincount(index, axis) / counts for axis in mesh.vertices.T], axis=1)
    faces = index[mesh.faces]
    faces = faces[(faces != np.roll(faces, 1, axis=1)).all(axis=1)]
    first = np.unique(np.sort(faces, axis=1), axis=0, return_index=True)[1]
    return trimesh.Trimesh(middles, faces[first])


def _mend(inertia: ET.Element) -> None:
    """Replace an inertia that no body can have."""
    xx, xy, xz, yy, yz, zz = (
        float(inertia.get(key, 0)) for key in ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
    )
    if np.linalg.eigvalsh([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]).min() < LEAST_INERTIA_KGM2:
        for key in list(inertia.attrib):
            inertia.set(key, str(TINY_INERTIA_KGM2) if key in ("ixx", "iyy", "izz") else "0")
