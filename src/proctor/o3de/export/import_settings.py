"""How the engine is to import a house that is a mesh: to be seen, and to be bumped into as its triangles.

Without a word, the engine makes colliders of no mesh. What it is told lies beside the file, as `.assetinfo`.
"""

from __future__ import annotations

import uuid
from typing import Any

import msgspec

SEEN, SOLID = (
    "{07B356B7-3635-40B5-878A-FAC4EFD5AD86} MeshGroup",
    "{5B03C8E6-8CEE-4DA0-A7FA-CD88689DD45B} MeshGroup",
)
TRIANGLES = 0
SPACE = uuid.UUID("b6f8b2b4-6e0c-4f0e-9c3a-7d1d7f5b8f11")


def surface_settings(path: str, name: str, root: str) -> bytes:
    """Return the content of the file `<path>.assetinfo`.

    Args:
        path: The mesh file, by which ids are made.
        name: Of the file without its suffix, and of the node that holds the mesh.
        root: Of the node above it.
    """
    nodes = {"selectedNodes": [root, f"{root}.{name}"]}
    groups: list[dict[str, Any]] = [
        {"$type": SEEN, "name": name, "nodeSelectionList": nodes, "id": _id(path, SEEN)},
        {
            "$type": SOLID,
            "id": _id(path, SOLID),
            "name": name,
            "NodeSelectionList": nodes,
            "export method": TRIANGLES,
            "PhysicsMaterialSlots": {"Slots": [{"Name": "Entire object"}]},
        },
    ]
    return msgspec.json.format(msgspec.json.encode({"values": groups}), indent=4) + b"\n"


def _id(path: str, kind: str) -> str:
    return f"{{{str(uuid.uuid5(SPACE, f'{path} {kind}')).upper()}}}"
