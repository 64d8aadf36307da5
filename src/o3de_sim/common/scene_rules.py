"""What scene files may hold beyond the types of their fields: one set of rules for MuJoCo and for O3DE.

The functions take scenes, objects, parts and lights of any class that has the fields of the file.
"""

from __future__ import annotations

import math
from pathlib import PurePosixPath
from typing import Any, Literal

Shape = Literal["box", "cylinder", "sphere"]
Texture = Literal[
    "plaster",
    "stripes",
    "ornament",
    "brick",
    "tiles",
    "mosaic",
    "checks",
    "marble",
    "wood",
    "planks",
    "parquet",
    "carpet",
    "pattern",
    "fabric",
    "leaves",
    "books",
    "painting",
    "landscape",
]
BodyType = Literal["static", "dynamic", "kinematic", "none"]
MESH_SUFFIXES = (".glb", ".gltf", ".obj", ".stl", ".dae", ".ply")
SMALLEST_M = 0.0005


class BrokenRule(ValueError):
    """What is wrong, and at which key."""

    def __init__(self, key: str, problem: str) -> None:
        super().__init__(f"{key}: {problem}" if key else problem)
        self.key, self.problem = key, problem


def check_names(objects: Any) -> None:
    """Raise BrokenRule if two objects have one name."""
    seen: set[str] = set()
    for index, item in enumerate(objects):
        if item.name in seen:
            raise BrokenRule(f"objects[{index}].name", f"two objects have the name '{item.name}'")
        seen.add(item.name)


def check_object(item: Any, asset_paths: dict[str, str | None]) -> None:
    """Raise BrokenRule if an object is not right. `asset_paths`: its mesh files by their keys."""
    scale = _xyz(item.scale)
    if min(scale) <= 0:
        raise BrokenRule("scale", f"expected factors above 0, found {scale}")
    if len(set(scale)) > 1:
        _check_uneven_scale(scale, item.parts)
    meshes = {key: path for key, path in asset_paths.items() if path is not None}
    if not meshes and not item.parts:
        raise BrokenRule("", "expected asset_path, parts, or both (the mesh is seen, the parts collide)")
    for key, path in meshes.items():
        if inner_path(key, path, "scene").suffix.lower() not in MESH_SUFFIXES:
            raise BrokenRule(key, f"'{path}' is no mesh file ({', '.join(MESH_SUFFIXES)})")
    if item.mass is not None and item.mass <= 0:
        raise BrokenRule("mass", f"expected kilograms above 0, found {item.mass}")
    if item.collision == "surface" and (not meshes or item.rigid_body_type != "static"):
        raise BrokenRule("collision", "only a static mesh collides as its surface")
    if item.collision == "surface" and item.parts:
        raise BrokenRule("collision", "a mesh collides as its surface or as its parts, not as both")


def check_part(part: Any) -> None:
    """Raise BrokenRule if a part is too thin, not as round as its shape, or of no colour."""
    size = _xyz(part.size)
    if not min(size) >= SMALLEST_M:
        raise BrokenRule("size", f"expected at least {SMALLEST_M} m, found {size}")
    if (part.shape != "box" and size[0] != size[1]) or (part.shape == "sphere" and size[0] != size[2]):
        raise BrokenRule("size", f"a {part.shape} is round, found {size}")
    _check_color(part.color, (3, 4))


def check_light(light: Any) -> None:
    """Raise BrokenRule if a light shines nowhere, or in no colour."""
    if not any(_xyz(light.direction)):
        raise BrokenRule("direction", "expected one that is not zero")
    if not 0 <= light.intensity < math.inf:
        raise BrokenRule("intensity", f"expected one from 0 up, found {light.intensity}")
    _check_color(light.color, (3,))


def _check_color(color: tuple[float, ...], counts: tuple[int, ...]) -> None:
    if len(color) not in counts or not all(0 <= channel <= 1 for channel in color):
        expected = " or ".join(map(str, counts))
        raise BrokenRule("color", f"expected {expected} channels from 0 to 1, found {list(color)}")


def _check_uneven_scale(scale: list[float], parts: Any) -> None:
    """Refuse a scale that would make a part something else than its shape."""
    for part in parts:
        turned = any(angle % 180 for angle in _xyz(part.rotate))
        oval = part.shape == "cylinder" and scale[0] != scale[1]
        if turned or oval or part.shape == "sphere":
            problem = f"{scale} would bend a {part.shape}; scale it evenly, or the part itself"
            raise BrokenRule("scale", problem)


def inner_path(key: str, path: str, owner: str) -> PurePosixPath:
    """Return the path of a mesh file below the folder of a scene or dataset (`owner`).

    Raises BrokenRule, in which `key` says what holds the path, if it is not one or leads out of the folder.
    """
    inner = PurePosixPath(path.replace("\\", "/"))
    if not inner.parts or "\0" in path or len(path) > 255:
        raise BrokenRule(key, f"expected the name of a mesh file, found {path[:40]!r}")
    if inner.is_absolute() or ".." in inner.parts or ":" in inner.parts[0]:
        raise BrokenRule(key, f"'{path}' must stay inside the {owner}'s folder")
    return inner


def _xyz(vector: Any) -> list[float]:
    return [vector.x, vector.y, vector.z]
