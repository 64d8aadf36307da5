"""Read mesh files with trimesh, and refuse those that are broken, too large or need a missing package.

Only this module imports trimesh, so import it when the first mesh file is read.
"""

from __future__ import annotations

import importlib
import importlib.util
import io
import logging
import re
import struct
from pathlib import Path
from typing import Any

import numpy as np
import trimesh

from proctor.core.errors import MissingDependency
from proctor.core.types import Array
from proctor.scenes.dae_file import prepare_dae
from proctor.scenes.mesh_files import OBJ_CONTINUED, RefusedMesh, check_part, check_work, find_named_file
from proctor.scenes.meshes import Y_UP_TO_Z_UP, is_turned

# trimesh logs a traceback for each image that is missing; `mesh_files.missing_notes` says it in a sentence.
logging.getLogger("trimesh").setLevel(logging.CRITICAL)

MAX_PIECES = 5000
FARTHEST = 1e9
"""Of a vertex, in the file's own unit; farther out, numbers are too coarse for hulls."""
MAX_TRIANGLES = 8_000_000

BROKEN_FILE = (
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
    OSError,
    RuntimeError,
    MemoryError,
    ImportError,
    NameError,  # of a reader that is surprised by a count without data
    struct.error,
    SyntaxError,  # of XML
)


def read_meshes(
    file: Path, content: bytes, root: Path | None, *, with_normals: bool = False, part: str | None = None
) -> list[Any]:
    """Return the meshes (Trimesh) of a file where its nodes put them, Z up, and in metres if it names a unit.

    It may name other files in `root`, the scene's folder (by default its own). With `with_normals`, normals
    are those of the file; with `part`, only nodes or geometries of this name are read. Raises a ValueError if
    it is not a mesh, or has no such part.
    """
    _check_content(file, content)
    check_work(file, content)
    try:
        with np.errstate(all="ignore"):  # numbers that are too large are refused below
            scene = _load_scene(file, content, root, part)
            found = _placed_meshes(scene) if with_normals else scene.dump()
        meshes = [mesh for mesh in found if isinstance(mesh, trimesh.Trimesh) and len(mesh.faces)]
    except RefusedMesh:
        raise
    except _reader_errors() as error:
        # trimesh blames optional packages where a text file is no text.
        reason = "" if isinstance(error, ImportError) else f": {_in_words(error)}"
        raise ValueError(f"'{file.name}' is not a {file.suffix} mesh{reason}") from None
    turn = Y_UP_TO_Z_UP if is_turned(file, content) else np.eye(4)
    for mesh in meshes:
        if file.suffix.lower() == ".dae" and mesh.units is not None:  # the one format that says its unit
            metres = trimesh.units.unit_conversion(mesh.units, "meters")
            mesh.apply_transform(np.diag([metres, metres, metres, 1.0]))
        mesh.apply_transform(turn)
    check_meshes(meshes, file)
    return meshes


def _load_scene(file: Path, content: bytes, root: Path | None, part: str | None) -> Any:
    """Return the scene (of trimesh) of a file, or of a part of it; a broken one raises any of its errors."""
    file_type = file.suffix.lower()[1:]
    options = {}
    if file_type == "dae":
        content, options = prepare_dae(file, content, part), {"ignore_broken": False}
    elif file_type == "obj" and part is not None:
        content = _part_of_obj(content, part, file)
    loader: Any = trimesh.exchange.load.mesh_loaders[file_type]
    loaded = loader(io.BytesIO(content), file_type=file_type, resolver=_Neighbours(file, root), **options)
    # trimesh would leave out triangles with such corners without a word.
    for geometry in loaded.get("geometry", {"": loaded}).values():
        _check_vertices(geometry.get("vertices", ()), file)
    scene = trimesh.load_scene(loaded)
    if part is not None and file_type not in ("dae", "obj"):
        _keep_part(scene, part, file)
    return scene


def _part_of_obj(content: bytes, part: str, file: Path) -> bytes:
    """Return an OBJ file with only the faces of the objects (`o`) and groups (`g`) of this name."""
    kept: list[bytes] = []
    known: set[str] = set()
    item = groups = ""
    for line in OBJ_CONTINUED.sub(b" ", content).splitlines():
        keyword, _, rest = line.strip().partition(b" ")
        if keyword == b"o":
            item, groups = rest.decode("utf-8", "replace").strip(), ""
        elif keyword == b"g":
            groups = rest.decode("utf-8", "replace").strip()
        elif keyword != b"f":
            kept.append(line)
        else:
            names = {item, groups, *groups.split()} - {""}
            known |= names
            if part in names:
                kept.append(line)
    check_part(part, known, file)
    return b"\n".join(kept)


def _placed_meshes(scene: Any) -> list[Any]:
    """Return a scene's meshes where their nodes put them, as `dump` does, but with the file's own normals."""
    found = []
    for node in scene.graph.nodes_geometry:
        transform, name = scene.graph[node]
        geometry = scene.geometry[name]
        placed = geometry.copy(include_cache=True) if isinstance(geometry, trimesh.Trimesh) else geometry
        found.append(placed.apply_transform(transform))
    return found


def _keep_part(scene: Any, part: str, file: Path) -> None:
    """Leave only the geometries that have this name, or whose node has it."""
    names = {
        # trimesh numbers what has the same name.
        geometry: {re.sub(r"[._]\d+$", "", name) for name in (geometry, str(node))} | {geometry, str(node)}
        for node in scene.graph.nodes_geometry
        for geometry in (scene.graph[node][1],)
    }
    check_part(part, set().union(*names.values()), file)
    scene.delete_geometry({geometry for geometry, known in names.items() if part not in known})


class _Neighbours(trimesh.resolvers.FilePathResolver):
    """Finds the files that a mesh may name."""

    def __init__(self, file: Path, root: Path | None) -> None:
        super().__init__(str(file))
        self._folder, self._root = file.parent, root

    def get(self, name: str) -> bytes:
        found = find_named_file(name, self._folder, self._root)
        if found is None:
            raise FileNotFoundError(name)
        return found.read_bytes()


def check_meshes(meshes: list[Any], file: Path) -> None:
    """Raise a ValueError for meshes (Trimesh) of a file that are too large or broken."""
    if not meshes:
        raise ValueError(f"'{file.name}' holds no triangles")
    triangles = sum(len(mesh.faces) for mesh in meshes)
    if triangles > MAX_TRIANGLES:
        raise ValueError(f"'{file.name}' has {triangles} triangles, more than {MAX_TRIANGLES}")
    for mesh in meshes:
        lowest, highest = int(mesh.faces.min()), int(mesh.faces.max())
        if lowest < 0 or highest >= len(mesh.vertices):
            index = lowest if lowest < 0 else highest
            have = f"{len(mesh.vertices)} vertices, numbered from 0"
            raise ValueError(f"'{file.name}' has a triangle with the vertex {index}, but only {have}")
        _check_vertices(mesh.vertices, file)


def _check_vertices(vertices: Any, file: Path) -> None:
    farthest = np.abs(vertices).max(initial=0)
    if not np.isfinite(farthest):
        raise RefusedMesh(f"'{file.name}' has vertices that are not finite numbers")
    if farthest > FARTHEST:
        raise RefusedMesh(f"'{file.name}' has a vertex at {farthest:.3g}, farther than {FARTHEST:g}")


def _in_words(error: Exception) -> str:
    """Return what a reader complains about; some only name a file, a key or an index."""
    if isinstance(error, FileNotFoundError):
        return f"{error.filename or error}, which it needs, is missing, or outside of the scene's folder"
    return "it is damaged or cut off" if isinstance(error, LookupError) else getattr(error, "msg", str(error))


def _check_content(file: Path, content: bytes) -> None:
    """Refuse what is empty, or needs a package that is not there."""
    suffix, is_here = file.suffix.lower(), importlib.util.find_spec
    if suffix == ".dae" and is_here("collada") is None:
        raise MissingDependency("A reader for .dae files", "pip install pycollada")
    if (
        suffix in (".glb", ".gltf")
        and is_here("DracoPy") is None
        and b"KHR_draco_mesh_compression" in content
    ):
        raise MissingDependency("A reader for glTF compressed with Draco", "pip install DracoPy")
    if not content:
        raise ValueError(f"'{file.name}' is empty")


def pieces_of(meshes: list[Any], file: Path) -> list[Array]:
    """Return the vertices of each connected piece of a file's meshes (Trimesh); ValueError if too many."""
    if len(meshes) > MAX_PIECES:
        raise ValueError(f"'{file.name}' falls into more than {MAX_PIECES} unconnected pieces")
    pieces: list[Array] = []
    graph: Any = trimesh.graph
    for mesh in meshes:
        welded = trimesh.Trimesh(mesh.vertices, mesh.faces)  # merges corners that only differ in shading
        # Repairs would need networkx, and only add faces.
        # They are counted first, since to split a mesh takes a millisecond for each.
        labels = graph.connected_component_labels(welded.face_adjacency, len(welded.faces))
        if len(pieces) + int(labels.max(initial=-1)) + 1 > MAX_PIECES:
            raise ValueError(f"'{file.name}' falls into more than {MAX_PIECES} unconnected pieces")
        split = welded.split(only_watertight=False, repair=False)
        pieces += [np.asarray(piece.vertices) for piece in split]
    return pieces


def _reader_errors() -> tuple[type[Exception], ...]:
    """Return what trimesh's readers raise on files that are not what their name says."""
    try:
        return (*BROKEN_FILE, importlib.import_module("collada.common").DaeError)
    except ImportError:
        return BROKEN_FILE
