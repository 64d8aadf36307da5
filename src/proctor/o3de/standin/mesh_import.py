"""How the engine's importer turns mesh files, as compared to Proctor's."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from proctor.core.documents import read_json
from proctor.core.types import Array
from proctor.scenes.meshes import Y_UP_TO_Z_UP, is_turned


def engine_turn(file: Path) -> Array:
    """Return the rotation (3, 3) that makes a mesh as Proctor reads it the mesh that the engine shows.

    The engine takes the numbers of a file as they are: what is Y up lies on its back. Of glTF files it
    leaves out the transform of the root node, if there is just one.
    """
    return _engine_turn(file, file.stat().st_mtime_ns)


@lru_cache(maxsize=4096)
def _engine_turn(file: Path, version: int) -> Array:
    del version
    turn = np.array(Y_UP_TO_Z_UP[:3, :3], float) if is_turned(file) else np.eye(3)
    if file.suffix.lower() == ".gltf":
        turn = turn @ _root_turn(read_json(file))
    back: Array = np.linalg.inv(turn)
    return back


def _root_turn(document: dict[str, Any]) -> Array:
    roots = document.get("scenes", [{}])[document.get("scene", 0)].get("nodes", [])
    if len(roots) != 1:
        return np.eye(3)
    node = document["nodes"][roots[0]]
    return np.reshape(node.get("matrix", np.eye(4).ravel().tolist()), (4, 4)).T[:3, :3]
