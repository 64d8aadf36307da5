"""Surfaces as glTF files that O3DE, MuJoCo and other readers show alike, and their import settings in O3DE.

glTF is Y up. Vertices are kept Z up all the same, below a root node that turns them: readers of glTF apply
it, and O3DE, which does not turn glTF files and leaves out the transform of the root node, gets what it wants
without it. A project may say that root nodes count: then the engine turns glTF upright, but to face the other
way. And it makes colliders of no mesh unless an `.assetinfo` file says so, as a house that is a mesh needs
it. See `put_import_settings`.
"""

from __future__ import annotations

import hashlib
import io
import math
import uuid
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from proctor.core.documents import read_json
from proctor.core.errors import InvalidFile
from proctor.core.types import Array
from proctor.scenes.meshes import Surface

Z_UP_TO_Y_UP = [1, 0, 0, 0, 0, 0, -1, 0, 0, 1, 0, 0, 0, 0, 0, 1]  # column by column
ROOT_NODE = "z_up"
COMPONENTS = {"float32": 5126, "uint16": 5123, "uint32": 5125}
VERTICES, INDICES = 34962, 34963
ROOT_SETTING = "AssImpReadRootTransform"
SEEN, SOLID = (
    "{07B356B7-3635-40B5-878A-FAC4EFD5AD86} MeshGroup",
    "{5B03C8E6-8CEE-4DA0-A7FA-CD88689DD45B} MeshGroup",
)
TURN_BACK = {"$type": "CoordinateSystemRule", "useAdvancedData": True, "rotation": [0.0, 0.0, 1.0, 0.0]}
"""By half a turn about the vertical."""
SPACE = uuid.UUID("b6f8b2b4-6e0c-4f0e-9c3a-7d1d7f5b8f11")


class ExportFolder:
    """Writes files below a folder, which need not exist, and knows which.

    Unchanged files stay untouched: the Asset Processor handles each change.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.sizes: dict[str, int] = {}  # of all files put here, in bytes, by their path below the root
        self.changed = 0  # how many of them were new or other than what was there

    def put(self, path: str, content: bytes) -> None:
        """Write a file, unless it is there."""
        file = self.root / path
        if not file.is_file() or file.read_bytes() != content:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
            self.changed += 1
        self.sizes[path] = len(content)

    def take_back(self, path: str, content: bytes) -> None:
        """Delete a file if it is there with just this content."""
        file = self.root / path
        if file.is_file() and file.read_bytes() == content:
            file.unlink()
            self.changed += 1

    def put_image(self, path: str, image: NDArray[np.uint8]) -> None:
        """Write an image as PNG, once: a path always means the same image."""
        if path not in self.sizes:
            packed = io.BytesIO()
            Image.fromarray(image).save(packed, "PNG")
            self.put(path, packed.getvalue())


def write_gltf(
    folder: ExportFolder,
    path: str,
    surfaces: list[tuple[Surface, str | None]],
    *,
    textures: str,
    double_sided: bool = False,
) -> None:
    """Write a glTF file with its `.bin` beside it, and its images.

    Surfaces are in the object's frame, Z up, each with the name of its image if it has one. `textures` is the
    images' folder, one folder over from the file. `double_sided` triangles are seen from behind, too.
    """
    document = _Document(PurePosixPath(path), f"../{PurePosixPath(textures).name}", double_sided=double_sided)
    for surface, image_name in surfaces:
        image = None
        if surface.image is not None:
            image = f"{image_name or _digest(surface.image)}.png"
            folder.put_image(f"{textures}/{image}", surface.image)
        document.add(surface, image)
    for file, content in document.files().items():
        folder.put(file, content)


def linear(shown: float) -> float:
    """Return a channel of a colour in linear light, as glTF has it."""
    return shown / 12.92 if shown <= 0.04045 else float(((shown + 0.055) / 1.055) ** 2.4)


class _Document:
    """A glTF file in the making: one mesh, with a primitive and a material for each surface."""

    def __init__(self, path: PurePosixPath, textures: str, *, double_sided: bool) -> None:
        self._path, self._textures, self._double_sided = path, textures, double_sided
        self._buffer = bytearray()
        self._views: list[dict[str, Any]] = []
        self._accessors: list[dict[str, Any]] = []
        self._primitives: list[dict[str, Any]] = []
        self._materials: list[dict[str, Any]] = []
        self._images: list[str] = []

    def add(self, surface: Surface, image: str | None) -> None:
        """Add a surface that wears an image of this file name."""
        columns = [surface.vertices, surface.normals]
        if image is not None:
            columns.append(surface.texcoords)
        rows = np.concatenate(columns, axis=1).astype(np.float32)[surface.faces.ravel()]
        corners, index = np.unique(rows, axis=0, return_inverse=True)
        attributes = {
            "POSITION": self._accessor(corners[:, :3], VERTICES),
            "NORMAL": self._accessor(_unit(corners[:, 3:6]), VERTICES),
        }
        low, high = corners[:, :3].min(axis=0).tolist(), corners[:, :3].max(axis=0).tolist()
        self._accessors[attributes["POSITION"]] |= {"min": low, "max": high}
        if image is not None:
            attributes["TEXCOORD_0"] = self._accessor(corners[:, 6:], VERTICES)
        indices = index.ravel().astype(np.uint16 if len(corners) <= 0xFFFF else np.uint32)
        accessor = self._accessor(indices, INDICES)
        self._primitives.append(
            {"attributes": attributes, "indices": accessor, "material": len(self._materials)}
        )
        self._materials.append(self._material(surface, image))

    def _material(self, surface: Surface, image: str | None) -> dict[str, Any]:
        *shown, alpha = surface.rgba
        look: dict[str, Any] = {
            "baseColorFactor": [*(round(linear(channel), 6) for channel in shown), alpha],
            "metallicFactor": 0.0,
            "roughnessFactor": 0.9,  # nothing in our scenes shines
        }
        if image is not None:
            if image not in self._images:
                self._images.append(image)
            look["baseColorTexture"] = {"index": self._images.index(image)}
        # The engine tells the materials of a file apart by their names.
        material: dict[str, Any] = {"name": f"material{len(self._materials)}", "pbrMetallicRoughness": look}
        if alpha < 1.0:
            material["alphaMode"] = "BLEND"
        if self._double_sided:
            material["doubleSided"] = True
        return material

    def _accessor(self, rows: NDArray[Any], target: int) -> int:
        """Add numbers, or rows of them, to the buffer; return the index of what describes them."""
        data, kind = rows.tobytes(), "SCALAR" if rows.ndim == 1 else f"VEC{rows.shape[1]}"
        view = {"buffer": 0, "byteOffset": len(self._buffer), "byteLength": len(data), "target": target}
        component = {"bufferView": len(self._views), "componentType": COMPONENTS[rows.dtype.name]}
        self._buffer += data + bytes(-len(data) % 4)  # offsets are multiples of four
        self._accessors.append({**component, "count": len(rows), "type": kind})
        self._views.append(view)
        return len(self._accessors) - 1

    def files(self) -> dict[str, bytes]:
        """Return what to write where."""
        buffer = self._path.with_suffix(".bin")
        document: dict[str, Any] = {
            "asset": {"version": "2.0", "generator": "Proctor"},
            "scene": 0,
            "scenes": [{"nodes": [0]}],
            "nodes": [
                {"name": ROOT_NODE, "matrix": Z_UP_TO_Y_UP, "children": [1]},
                {"name": self._path.stem, "mesh": 0},
            ],
            "meshes": [{"name": self._path.stem, "primitives": self._primitives}],
            "materials": self._materials,
            "accessors": self._accessors,
            "bufferViews": self._views,
            "buffers": [{"uri": buffer.name, "byteLength": len(self._buffer)}],
        }
        if self._images:
            document["images"] = [{"uri": f"{self._textures}/{image}"} for image in self._images]
            document["textures"] = [{"source": index, "sampler": 0} for index in range(len(self._images))]
            document["samplers"] = [{"wrapS": 10497, "wrapT": 10497}]
        text = msgspec.json.format(msgspec.json.encode(document), indent=1) + b"\n"
        return {str(buffer): bytes(self._buffer), str(self._path): text}


def _unit(normals: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return unit vectors; upwards where there was none, which validators would refuse."""
    lengths: Array = np.linalg.norm(normals.astype(np.float64), axis=1, keepdims=True)
    unit = np.where(lengths > 0, normals / np.maximum(lengths, math.ulp(1.0)), [0.0, 0.0, 1.0])
    return unit.astype(np.float32)


def _digest(image: NDArray[np.uint8]) -> str:
    return hashlib.sha256(repr(image.shape).encode() + image.tobytes()).hexdigest()[:16]


def put_import_settings(folder: ExportFolder, path: str, *, solid: bool, turned: bool) -> None:
    """Write the settings of a glTF file of `write_gltf` if it needs any, else remove ours.

    `solid`: its triangles collide. `turned`: the project makes the engine apply root nodes.
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
                "export method": 0,  # triangles
                "PhysicsMaterialSlots": {"Slots": [{"Name": "Entire object"}]},
                **rules,
            }
        )
    return msgspec.json.format(msgspec.json.encode({"values": groups}), indent=4) + b"\n"


def _id(path: str, kind: str) -> str:
    return f"{{{str(uuid.uuid5(SPACE, f'{path} {kind}')).upper()}}}"
