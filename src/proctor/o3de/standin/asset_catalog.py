"""The assets of a project as the engine finds them, and how its importer turns mesh files."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from proctor.core.documents import read_json
from proctor.core.types import Array
from proctor.core.watched_file import WatchedFile, watch
from proctor.scenes.meshes import Y_UP_TO_Z_UP, is_turned

MODEL_SUFFIXES = (".fbx", ".stl", ".gltf", ".glb", ".obj", ".usd", ".usda", ".usdc", ".usdz")
PRIMITIVES = {
    f"objects/_primitives/_{shape}_1x1.fbx.azmodel": shape for shape in ("box", "sphere", "cylinder")
}
"""Of the engine's gem PrimitiveAssets: one metre each way, around their centres."""


class AssetCatalog:
    """Finds products by their paths, which are those of their sources in lower case with a suffix."""

    def __init__(self, project: Path) -> None:
        self.project = project

    def has(self, product: str) -> bool:
        """Return whether there is a product of this path."""
        return product in PRIMITIVES or self.source_of(product) is not None

    def source_of(self, product: str) -> Path | None:
        """Return the file in the project that a product is made of."""
        if product != product.lower():  # the catalog's paths are in lower case
            return None
        name = PurePosixPath(product.replace("\\", "/"))
        if name.suffix == ".azmodel":
            source = name.with_suffix("")
            return self._file(source) if source.suffix in MODEL_SUFFIXES else None
        if name.suffix == ".pxmesh":  # is only made where the file's settings ask for it
            source = name.with_suffix("")
            return None if self._file(PurePosixPath(f"{source}.assetinfo")) is None else self._file(source)
        if name.suffix == ".spawnable":
            return self._file(name.with_suffix(".prefab"))
        return None

    def _file(self, lower: PurePosixPath) -> Path | None:
        """Return the file whose path is this one in lower case."""
        if lower.is_absolute() or ".." in lower.parts:
            return None
        place = self.project
        for part in lower.parts:
            exact = place / part
            if exact.exists():
                place = exact
                continue
            if not place.is_dir():
                return None
            found = next((item for item in place.iterdir() if item.name.lower() == part), None)
            if found is None:
                return None
            place = found
        return place if place.is_file() else None


def engine_turn(file: Path) -> Array:
    """Return the rotation (3, 3) that makes a mesh as Proctor reads it the mesh that the engine shows.

    The engine takes the numbers of a file as they are: what is Y up lies on its back. Of glTF files it
    leaves out the transform of the root node, if there is just one.
    """
    return _engine_turn(watch(file))


@lru_cache(maxsize=4096)
def _engine_turn(watched: WatchedFile) -> Array:
    file = watched.path
    turn = np.array(Y_UP_TO_Z_UP[:3, :3], float) if is_turned(file, file.read_bytes()) else np.eye(3)
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
