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


IMAGE_SUFFIXES = (".png", ".jpg", ".jpeg")


def may_name(folder: Path, file: Path) -> bool:
    """Tell whether a mesh in a folder may name a file: one beside or below it, or an image one folder over.

    Files of many meshes share their images in `../textures`; nothing else outside is anybody's business.
    Both paths must be resolved.
    """
    is_near = file.parent.parent == folder.parent and file.suffix.lower() in IMAGE_SUFFIXES
    return is_near or file.is_relative_to(folder)


def files_of_mesh(file: Path) -> list[Path]:
    """Return the files that a mesh file names and may name, as far as they exist, by name."""
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
    return sorted(file for file in files if may_name(root, file) and file.is_file())
