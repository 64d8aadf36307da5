"""The other files that a mesh file consists of: buffers, materials, textures."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote

from proctor.core.documents import read_json
from proctor.core.errors import InvalidFile

MESH_SUFFIXES = (".glb", ".gltf", ".obj", ".stl", ".dae", ".ply")

MTLLIB = re.compile(rb"^[ \t]*mtllib[ \t]+(.+?)[ \t\r]*$", re.MULTILINE)
MTL_IMAGE = re.compile(rb"^[ \t]*(?:map_\w+|bump|disp|decal)[ \t]+(?:.*[ \t])?(\S+)[ \t\r]*$", re.MULTILINE)
DAE_IMAGE = re.compile(rb"<init_from>([^<]+)</init_from>")


def files_of_mesh(file: Path) -> list[Path]:
    """Return the files beside or below a mesh file that it names, as far as they exist, by name."""
    suffix = file.suffix.lower()
    names: list[str] = []
    if suffix == ".gltf":
        names = _uris(file)
    elif suffix == ".obj":
        names = _found(MTLLIB, file)
        for material in _inside(names, file.parent):
            names += _found(MTL_IMAGE, material)
    elif suffix == ".dae":
        names = _found(DAE_IMAGE, file)
    return _inside(names, file.parent)


def _uris(file: Path) -> list[str]:
    try:
        content = read_json(file)
    except InvalidFile:  # whoever reads the mesh will say so
        return []
    parts = [content.get(key) for key in ("buffers", "images")] if isinstance(content, dict) else []
    entries = [entry for part in parts if isinstance(part, list) for entry in part]
    uris = [entry.get("uri") for entry in entries if isinstance(entry, dict)]
    return [uri for uri in uris if isinstance(uri, str) and not uri.startswith("data:")]


def _found(pattern: re.Pattern[bytes], file: Path) -> list[str]:
    return [name.decode("utf-8", "replace").strip() for name in pattern.findall(file.read_bytes())]


def _inside(names: list[str], folder: Path) -> list[Path]:
    root = folder.resolve()
    files = {(root / unquote(name)).resolve() for name in names if len(name) < 256 and "\0" not in name}
    return sorted(file for file in files if file.is_relative_to(root) and file.is_file())
