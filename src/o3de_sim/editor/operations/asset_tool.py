"""Assets: files of the project, and what the Asset Processor has made of them."""

from __future__ import annotations

from typing import Any

from o3de_sim.editor.operations.gltf_bounds import gltf_bounds
from o3de_sim.editor.session import Session
from o3de_sim.errors import O3DEError

MODEL = ".azmodel"
PRODUCTS = (MODEL, ".pxmesh", ".spawnable")


def product_path(path: str, suffix: str) -> str:
    """Return where the Asset Processor puts what it makes of a file. A prefab's suffix is replaced."""
    path = path.lower()
    if path.endswith(PRODUCTS):
        return path
    return path.removesuffix(".prefab") + ".spawnable" if path.endswith(".prefab") else path + suffix


def product(session: Session, path: str, suffix: str) -> Any:
    """Return the id of a product.

    Raises:
        O3DEError: not_found: It has not been made.
    """
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


def exists(session: Session, paths: list[str]) -> list[bool]:
    """Return for each file whether a model, or of a prefab a spawnable, has been made of it."""
    return [session.engine.asset_id(product_path(path, MODEL)) is not None for path in paths]


def bounds(session: Session, path: str) -> dict[str, list[float]]:
    """Return the box around a glTF file of the project.

    It is in the file's own axes: the engine takes them as they are, and does not turn y up into z up.
    """
    file = session.file(path)
    if not file.is_file():
        raise O3DEError("not_found", f"the project has no file {path}")
    low, high = gltf_bounds(file, path)
    return {"low": low, "high": high}
