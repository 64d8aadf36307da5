"""Files of scenes and meshes: where a scene is found, and the buffers, materials and textures of a mesh."""

from __future__ import annotations

import io
import re
import struct
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import BinaryIO, Literal, NamedTuple
from urllib.parse import unquote

import msgspec
from PIL import Image

from o3de_sim.common import scene_rules

MESH_SUFFIXES = scene_rules.MESH_SUFFIXES
inner_path = scene_rules.inner_path
USD_SUFFIXES = (".usd", ".usda", ".usdc")
IMAGE_FOLDERS = ("", "textures", "materials/textures", "../textures", "../materials/textures")
"""Where a mesh's images lie by custom, as seen from its folder: Gazebo's models have the last one."""

MTLLIB = re.compile(rb"^[ \t]*mtllib[ \t]+(.+?)[ \t\r]*$", re.MULTILINE)
MTL_IMAGE = re.compile(rb"^[ \t]*(map_\w+|bump|disp|decal)[ \t]+(.+?)[ \t\r]*$", re.MULTILINE)
DAE_IMAGE = re.compile(rb"<image\b[^>]*>.*?</image>", re.DOTALL)
DAE_FILE = re.compile(rb"<init_from>\s*(?:<ref>)?([^<]+)")
PLY_IMAGE = re.compile(rb"^comment[ \t]+TextureFile[ \t]+(.+?)[ \t\r]*$", re.MULTILINE)
MAX_NODES = 10_000
"""Each is read, drawn and divided into pieces on its own, at a millisecond or so."""
MAX_FACE_CORNERS = 10_000
OBJ_MATERIAL = re.compile(rb"^[ \t]*usemtl[ \t]+(.+?)[ \t\r]*$", re.MULTILINE)
OBJ_CONTINUED = re.compile(rb"\\\r?\n")
OBJ_LARGE_FACE = re.compile(rb"^[ \t]*f(?:[ \t]+[^ \t\r\n]++){%d}" % (MAX_FACE_CORNERS + 1), re.MULTILINE)
LONGEST_NAME = 1024
SHOWN_NAMES, SHOWN_CHARACTERS = 5, 80
Role = Literal["image", "material", "other"]
"""What a named file is for. A mesh without its images and materials is read, but looks otherwise."""
SCENE_SUFFIXES = (".json", *MESH_SUFFIXES)
"""Of scene files, the preferred ones first: who writes a scene file beside a mesh wants it to be used."""


class RefusedMesh(ValueError):
    """A mesh file that can be read, but not used; the message is a sentence with its name."""


class NamedFile(NamedTuple):
    """A file that a mesh file names."""

    name: str
    """As it is written there."""
    file: Path | None
    """Where it is; None if it is not there, or lies where the mesh may not reach."""
    role: Role


def folder_of_scene(scene_path: Path) -> Path:
    """Return the folder in which the files of a scene are looked for: that of the scene file.

    For a mesh that is a whole scene, in a folder called `meshes`, it is the folder above, which holds
    `materials` or `textures` as well.
    """
    folder = scene_path.resolve().parent
    # Meshes of a model of Gazebo or a package of ROS lie in `meshes`.
    is_model = scene_path.suffix.lower() in MESH_SUFFIXES and folder.name == "meshes"
    return folder.parent if is_model else scene_path.parent.resolve()


def may_name(folder: Path, file: Path, root: Path | None = None) -> bool:
    """Tell whether a mesh in a folder may name a file: inside of its scene's folder, or near.

    Near is beside or below the mesh, and images one folder over, since many meshes share their images in
    `../textures`. Nothing else may be read. All paths must be resolved.
    """
    is_near = file.parent.parent == folder.parent and file.suffix.lower() in (".png", ".jpg", ".jpeg")
    return is_near or file.is_relative_to(folder) or (root is not None and file.is_relative_to(root))


def find_named_file(name: str, folder: Path, root: Path | None = None) -> Path | None:
    """Return the file that a mesh in `folder` names, None if it is not there or may not be named.

    The name is a path or a `file:`, `model:` or `package:` address; `%20` is a blank.
    """
    if not name.strip() or "\0" in name or len(name) > LONGEST_NAME:
        return None
    folder, root = folder.resolve(), root.resolve() if root is not None else None
    for candidate in _candidates(name, folder):
        try:
            file = candidate.resolve()
            if may_name(folder, file, root) and file.is_file():
                return file
        except (OSError, ValueError):  # such as a name that is too long
            continue
    return None


def _candidates(name: str, folder: Path) -> list[Path]:
    written = name.strip().replace("\\", "/")
    if written.startswith("-"):  # options of a map in an MTL file
        written = written.split()[-1]
    scheme, _, rest = written.partition("://")
    found = []
    if rest and scheme in ("model", "package"):
        model, _, inner = rest.partition("/")
        found += [parent / inner for parent in (folder, *folder.parents) if parent.name == model]
    for path in dict.fromkeys((written, unquote(rest or written))):
        base = PurePosixPath(path).name
        found += [folder / path, folder / path.lstrip("/")]
        found += [folder / place / base for place in IMAGE_FOLDERS]
    return found


def named_files(file: Path, root: Path | None = None) -> list[NamedFile]:
    """Return the files that a mesh file names, each name once."""
    read_names = _NAMES.get(file.suffix.lower())
    names = read_names(file, root) if read_names is not None else {}
    return [NamedFile(name, find_named_file(name, file.parent, root), role) for name, role in names.items()]


def files_of_mesh(file: Path, root: Path | None = None) -> list[Path]:
    """Return the files that a mesh file names and may name, as far as they exist, by name."""
    return sorted({found.file for found in named_files(file, root) if found.file is not None})


def missing_files(file: Path, root: Path | None = None) -> list[str]:
    """Return the images and materials that a mesh file names and that are missing or cannot be read."""
    return [
        found.name
        for found in named_files(file, root)
        if found.role != "other"
        and (found.file is None or (found.role == "image" and not _is_image(found.file)))
    ]


def missing_notes(file: Path, root: Path) -> list[str]:
    """Say without which files a mesh is drawn, if any."""
    missing = missing_files(file, root)
    if not missing:
        return []
    some = ", ".join(f"'{name[:SHOWN_CHARACTERS]}'" for name in missing[:SHOWN_NAMES])
    rest = f" and {len(missing) - SHOWN_NAMES} more" if len(missing) > SHOWN_NAMES else ""
    return [
        f"{file.name} is drawn without {some}{rest}: no readable file of this name in {root}, where "
        "images and materials of its meshes are looked for"
    ]


def _is_image(file: Path) -> bool:
    try:
        with Image.open(file):
            return True
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
        return False


def check_work(file: Path, content: bytes) -> None:
    """Raise a ValueError for a mesh file that would take very long to parse, before it is parsed."""
    suffix = file.suffix.lower()
    if suffix in (".gltf", ".glb"):
        _check_count(file, len(read_gltf(file, io.BytesIO(content)).nodes), "nodes", MAX_NODES)
    elif suffix == ".dae":
        if b"<!DOCTYPE" in content or b"<!ENTITY" in content:  # a few lines can stand for gigabytes
            raise ValueError(f"'{file.name}' holds <!DOCTYPE or <!ENTITY, which are not read")
        if b"\0" in content[:200]:  # UTF-16, where these would not be found
            raise ValueError(f"'{file.name}' is not text in UTF-8")
        _check_count(file, content.count(b"<node") + content.count(b"<instance_"), "nodes", MAX_NODES)
    elif suffix == ".obj":
        _check_count(file, len(set(OBJ_MATERIAL.findall(content))), "materials", MAX_NODES)
        if b"\\" in content:  # a line goes on in the next one
            content = OBJ_CONTINUED.sub(b" ", content)
        if OBJ_LARGE_FACE.search(content):
            raise ValueError(f"'{file.name}' has a face with more than {MAX_FACE_CORNERS} corners")


def check_part(part: str, known: set[str], file: Path) -> None:
    """Raise RefusedMesh if a file has no part of this name."""
    if part not in known:
        names = ", ".join(sorted(known)[:10]) + (", ..." if len(known) > 10 else "")
        raise RefusedMesh(f"'{file.name}' has no part '{part}', but {names or 'no parts with names'}")


def _check_count(file: Path, count: int, things: str, most: int) -> None:
    if count > most:
        raise ValueError(f"'{file.name}' has {count} {things}, more than {most}")


def _names_of_gltf(file: Path, _root: Path | None) -> dict[str, Role]:
    with file.open("rb") as stream:
        document = read_gltf(file, stream)
    names: dict[str | None, Role] = {entry.uri: "other" for entry in document.buffers}
    names |= {entry.uri: "image" for entry in document.images}
    return {uri: role for uri, role in names.items() if uri is not None and not uri.startswith("data:")}


def _names_of_obj(file: Path, root: Path | None) -> dict[str, Role]:
    libraries = [_text(name) for name in MTLLIB.findall(file.read_bytes())]
    names: dict[str, Role] = dict.fromkeys(libraries, "material")
    for library in libraries:
        material = find_named_file(library, file.parent, root)
        for kind, name in MTL_IMAGE.findall(material.read_bytes()) if material is not None else ():
            if kind.lower() == b"map_kd":
                names[_text(name)] = "image"
            else:
                names.setdefault(_text(name), "other")
    return names


def _names_of_dae(file: Path, _root: Path | None) -> dict[str, Role]:
    images = DAE_IMAGE.findall(file.read_bytes())
    return {_text(name): "image" for image in images for name in DAE_FILE.findall(image)}


def _names_of_ply(file: Path, _root: Path | None) -> dict[str, Role]:
    with file.open("rb") as content:
        header = content.read(2**16).partition(b"end_header")[0]
    return {_text(name): "image" for name in PLY_IMAGE.findall(header)}


_NAMES: dict[str, Callable[[Path, Path | None], dict[str, Role]]] = {
    ".gltf": _names_of_gltf,
    ".glb": _names_of_gltf,
    ".obj": _names_of_obj,
    ".dae": _names_of_dae,
    ".ply": _names_of_ply,
}


class GltfFile(msgspec.Struct, frozen=True):
    """A buffer or an image of a glTF file."""

    uri: str | None = None


class GltfDocument(msgspec.Struct, frozen=True):
    """What of a glTF file must be known before it is read."""

    buffers: list[GltfFile] = []
    images: list[GltfFile] = []
    nodes: list[msgspec.Raw] = []
    """They are only counted."""


def read_gltf(file: Path, stream: BinaryIO) -> GltfDocument:
    """Read the JSON of a glTF file. A broken one is an empty document: whoever reads the mesh will say so."""
    try:
        return msgspec.json.decode(_gltf_json(file, stream), type=GltfDocument)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, struct.error):
        return GltfDocument()


def _gltf_json(file: Path, stream: BinaryIO) -> bytes:
    """Return the JSON text of a glTF file: all of a .gltf, the first chunk of a .glb."""
    if file.suffix.lower() != ".glb":
        return stream.read()
    _, _, _, length, kind = struct.unpack("<4sIII4s", stream.read(20))
    return stream.read(length) if kind == b"JSON" else b""


def _text(name: bytes) -> str:
    return name.decode("utf-8", "replace").strip()


def find_scene(folder: Path, scene_id: str, *, suffixes: tuple[str, ...] = SCENE_SUFFIXES) -> Path | None:
    """Return the file of a scene inside of the folder, by the customs of the public datasets, or None.

    The id may be a bare name (`17DRP5sb8fy`) or a path (`mp3d/17DRP5sb8fy/17DRP5sb8fy.glb`, also with
    `.basis.glb`). Below the folder that path is tried, then its ends (`17DRP5sb8fy/17DRP5sb8fy.glb`), then
    `<name>/<name>.*` and `<name>.*`.
    """
    path = PurePosixPath(scene_id.replace("\\", "/"))
    if not path.name or ".." in path.parts or "\0" in scene_id or len(scene_id) > 255:
        return None
    root = folder.resolve()
    name = _without_suffixes(path.name)
    parts = path.relative_to("/").parts if path.is_absolute() else path.parts
    stems = [PurePosixPath(*parts[first:]).with_name(name) for first in range(len(parts))]
    stems.insert(-1, PurePosixPath(name, name))
    for stem in dict.fromkeys(stems):
        # What the id itself says comes after a scene file only.
        for suffix in dict.fromkeys((".json", path.name.removeprefix(name), *suffixes)):
            file = root / f"{stem}{suffix}"
            if suffix.lower().endswith(suffixes) and file.is_file() and file.resolve().is_relative_to(root):
                return file
    return None


def _without_suffixes(file_name: str) -> str:
    """Return `x` of `x.basis.glb`, but all of a name that has a dot and is no scene file's."""
    name = PurePosixPath(file_name)
    if name.suffix.lower() not in SCENE_SUFFIXES:
        return file_name
    return name.stem.removesuffix(".basis")
