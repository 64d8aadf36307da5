"""Assets: files of the project, and what the Asset Processor has made of them."""

from __future__ import annotations

import itertools
import json
import math
import struct
from pathlib import Path
from typing import Any

from o3de_sim.editor import arguments as args
from o3de_sim.editor.session import EditorSession
from o3de_sim.errors import O3DEError

MODEL = ".azmodel"
MAX_FILE_BYTES = 64 * 1024 * 1024
MAX_NODES = 20_000
GLB_HEAD = struct.Struct("<4sIIII")
"""Magic, version, length; length and kind of the first chunk, which is JSON."""
Matrix = tuple[float, ...]  # 4 x 4, column after column, as the format has it
IDENTITY: Matrix = (1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0)


def product_path(path: str, suffix: str) -> str:
    """Return where the Asset Processor puts what it makes of a file. A prefab's suffix is replaced."""
    path = path.lower()
    if path.endswith((MODEL, ".pxmesh", ".spawnable")):
        return path
    return path.removesuffix(".prefab") + ".spawnable" if path.endswith(".prefab") else path + suffix


def product(session: EditorSession, path: str, suffix: str) -> Any:
    """Return the id of a product; O3DEError not_found if it has not been made."""
    wanted = product_path(path, suffix)
    found = session.engine.asset_id(wanted)
    if found is None:
        why = "the Asset Processor has not finished, or it failed on the file"
        if not session.file(path).is_file():
            why = "the project has no such file, and no enabled Gem has it"
        elif suffix == ".pxmesh":
            why = (
                "only files with a PhysX group in their scene settings have one; pc.add_colliders needs none"
            )
        raise O3DEError("not_found", f"no asset {wanted} of {path}: {why}")
    return found


def exists(session: EditorSession, paths: args.ProjectPaths) -> list[bool]:
    """Return for each file whether a model, or of a prefab a spawnable, has been made of it."""
    return [session.engine.asset_id(product_path(path, MODEL)) is not None for path in paths]


def bounds(session: EditorSession, path: args.ProjectPath) -> dict[str, list[float]]:
    """Return the box around a glTF file of the project.

    It is in the file's own axes: the engine takes them as they are, and does not turn y up into z up.
    """
    file = session.file(path)
    if not file.is_file():
        raise O3DEError("not_found", f"the project has no file {path}")
    low, high = gltf_bounds(file, path)
    return {"low": low, "high": high}


def gltf_bounds(file: Path, path: str) -> tuple[list[float], list[float]]:
    """Return the lowest and highest coordinates, in the axes and metres of a .gltf or .glb file.

    Errors name the file by `path`.
    """
    try:
        corners = list(_corners(_document(file)))
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError, struct.error) as error:
        raise O3DEError(
            "bad_request", f"{path} is no sound .gltf or .glb file: {error or type(error)}"
        ) from None
    except OSError as error:
        raise O3DEError("bad_request", f"{path} cannot be read: {error.strerror}") from None
    if not corners:
        raise O3DEError("bad_request", f"{path} shows no mesh")
    axes = list(zip(*corners, strict=True))
    return [min(axis) for axis in axes], [max(axis) for axis in axes]


def _document(file: Path) -> dict[str, Any]:
    size = file.stat().st_size
    if size > MAX_FILE_BYTES:
        raise ValueError(f"{size} bytes are more than {MAX_FILE_BYTES}")
    data = file.read_bytes()
    if data[:4] == b"glTF":
        _, _, _, length, _ = GLB_HEAD.unpack_from(data)
        data = data[GLB_HEAD.size : GLB_HEAD.size + length]
    document = json.loads(data)
    if not isinstance(document, dict):
        raise TypeError("not an object")
    return document


def _corners(document: dict[str, Any]) -> Any:
    nodes = document.get("nodes", [])
    scene = document["scenes"][_index(document.get("scene", 0))]
    waiting: list[tuple[int, Matrix]] = [(_index(root), IDENTITY) for root in scene.get("nodes", [])]
    seen: set[int] = set()
    while waiting:
        number, above = waiting.pop()
        if number in seen or len(seen) == MAX_NODES:
            raise ValueError(f"a node is below two others, or there are more than {MAX_NODES}")
        seen.add(number)
        node = nodes[number]
        place = _product(above, _local(node))
        waiting += [(_index(child), place) for child in node.get("children", [])]
        if "mesh" in node:
            for primitive in document["meshes"][_index(node["mesh"])]["primitives"]:
                accessor = document["accessors"][_index(primitive["attributes"]["POSITION"])]
                box = (_numbers(accessor["min"], 3), _numbers(accessor["max"], 3))
                for which in itertools.product((0, 1), repeat=3):
                    yield _moved(place, [box[side][axis] for axis, side in enumerate(which)])


def _local(node: dict[str, Any]) -> Matrix:
    if "matrix" in node:
        return _numbers(node["matrix"], 16)
    x, y, z, w = _numbers(node.get("rotation", (0, 0, 0, 1)), 4)
    sx, sy, sz = _numbers(node.get("scale", (1, 1, 1)), 3)
    tx, ty, tz = _numbers(node.get("translation", (0, 0, 0)), 3)
    return (
        (1 - 2 * (y * y + z * z)) * sx, 2 * (x * y + z * w) * sx, 2 * (x * z - y * w) * sx, 0.0,
        2 * (x * y - z * w) * sy, (1 - 2 * (x * x + z * z)) * sy, 2 * (y * z + x * w) * sy, 0.0,
        2 * (x * z + y * w) * sz, 2 * (y * z - x * w) * sz, (1 - 2 * (x * x + y * y)) * sz, 0.0,
        tx, ty, tz, 1.0,
    )  # fmt: skip


def _product(a: Matrix, b: Matrix) -> Matrix:
    return tuple(
        math.fsum(a[4 * k + row] * b[4 * column + k] for k in range(4))
        for column in range(4)
        for row in range(4)
    )


def _moved(matrix: Matrix, point: list[float]) -> list[float]:
    return [math.fsum(matrix[4 * k + row] * (*point, 1.0)[k] for k in range(4)) for row in range(3)]


def _numbers(found: Any, count: int) -> tuple[float, ...]:
    values = tuple(float(part) for part in found)
    if len(values) != count or not all(map(math.isfinite, values)):
        raise ValueError(f"expected {count} finite numbers")
    return values


def _index(found: Any) -> int:
    if not isinstance(found, int) or found < 0:
        raise ValueError(f"{found!r} is no index")
    return found
