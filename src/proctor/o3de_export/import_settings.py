"""How the engine is to import a mesh where it would not do so right by itself: its `.assetinfo` file.

It makes colliders of no mesh unless it is told to, as a house that is a mesh needs it. And a project may say
that the root nodes of files count: then the engine turns glTF upright, but to face the other way.
"""

from __future__ import annotations

import uuid
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec

from proctor.core.documents import read_json
from proctor.core.errors import InvalidFile
from proctor.o3de_export.folder import ExportFolder
from proctor.o3de_export.gltf import ROOT_NODE

ROOT_SETTING = "AssImpReadRootTransform"
SEEN, SOLID = (
    "{07B356B7-3635-40B5-878A-FAC4EFD5AD86} MeshGroup",
    "{5B03C8E6-8CEE-4DA0-A7FA-CD88689DD45B} MeshGroup",
)
TRIANGLES = 0
TURN_BACK = {"$type": "CoordinateSystemRule", "useAdvancedData": True, "rotation": [0.0, 0.0, 1.0, 0.0]}
"""By half a turn about the vertical."""
SPACE = uuid.UUID("b6f8b2b4-6e0c-4f0e-9c3a-7d1d7f5b8f11")


def put_import_settings(folder: ExportFolder, path: str, *, solid: bool, turned: bool) -> None:
    """Write the settings of a glTF file if it needs any; take away ours if it no longer does.

    Args:
        folder: The project's.
        path: The glTF file, which is one that `write_gltf` wrote.
        solid: Whether its triangles are bumped into.
        turned: Whether the project makes the engine mind root nodes.
    """
    file = f"{path}.assetinfo"
    if solid or turned:
        folder.put(file, _settings(path, solid=solid, turned=turned))
    else:
        folder.take_back(file, _settings(path, solid=False, turned=True))


def files_that_turn(project: Path) -> list[Path]:
    """Return the project's settings files that make the engine mind root nodes."""
    return [file for file in sorted(project.glob("Registry/*.setreg")) if _turns(file)]


def _turns(file: Path) -> bool:
    try:
        value = read_json(file)
    except InvalidFile:  # the engine's settings may hold comments
        return ROOT_SETTING.encode() in file.read_bytes()
    for key in ("O3DE", "Preferences", "SceneAPI", ROOT_SETTING):
        value = value.get(key) if isinstance(value, dict) else None
    return value is True


def _settings(path: str, *, solid: bool, turned: bool) -> bytes:
    name = PurePosixPath(path).stem
    nodes = {"selectedNodes": [ROOT_NODE, f"{ROOT_NODE}.{name}"]}
    rules = {"rules": {"rules": [TURN_BACK]}} if turned else {}
    groups: list[dict[str, Any]] = [
        {"$type": SEEN, "name": name, "nodeSelectionList": nodes, **rules, "id": _id(path, SEEN)}
    ]
    if solid:
        groups.append(
            {
                "$type": SOLID,
                "id": _id(path, SOLID),
                "name": name,
                "NodeSelectionList": nodes,
                "export method": TRIANGLES,
                "PhysicsMaterialSlots": {"Slots": [{"Name": "Entire object"}]},
                **rules,
            }
        )
    return msgspec.json.format(msgspec.json.encode({"values": groups}), indent=4) + b"\n"


def _id(path: str, kind: str) -> str:
    return f"{{{str(uuid.uuid5(SPACE, f'{path} {kind}')).upper()}}}"
