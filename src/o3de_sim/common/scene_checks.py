"""The scene file, checked: what is accepted here builds in the engine as it does in MuJoCo.

Every complaint names the file, the place in it, what was found and what would be right.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

from o3de_sim.common.scene_file import InvalidScene, Node, read_scene_file
from o3de_sim.common.scene_rules import (
    MESH_SUFFIXES,
    BodyType,
    BrokenRule,
    Shape,
    Texture,
    check_light,
    check_names,
    check_object,
    check_part,
)
from o3de_sim.o3de_api.interface.math import ORIGIN, Vector3

ONE, DOWN = Vector3(1.0, 1.0, 1.0), Vector3(0.0, 0.0, -1.0)


@dataclass(frozen=True)
class CheckedPart:
    """A primitive shape, placed in its object's frame by its centre."""

    shape: Shape
    size: Vector3  # full extents in metres. Cylinders stand along z.
    translate: Vector3 = ORIGIN
    rotate: Vector3 = ORIGIN  # degrees, Z·Y·X
    color: tuple[float, ...] = (0.8, 0.8, 0.8)
    texture: Texture | None = None
    collision: bool = True

    def __post_init__(self) -> None:
        check_part(self)


@dataclass(frozen=True)
class CheckedObject:
    """An object in the world: a mesh, parts, or a mesh that collides as parts."""

    name: str
    category: str = ""
    color: str = ""
    room: str = ""
    translate: Vector3 = ORIGIN
    rotate: Vector3 = ORIGIN  # degrees, Z·Y·X
    scale: Vector3 = ONE
    asset_path: str | None = None  # relative to the scene file's folder
    parts: tuple[CheckedPart, ...] = ()
    rigid_body_type: BodyType = "static"
    mass: float | None = None  # kilograms
    collision: Literal["hull", "surface"] = "hull"

    def __post_init__(self) -> None:
        check_object(self, {"asset_path": self.asset_path})


@dataclass(frozen=True)
class CheckedLight:
    """A lamp (`point`) or the sun (`directional`)."""

    name: str = "light"
    type: Literal["point", "directional"] = "point"
    translate: Vector3 = ORIGIN
    direction: Vector3 = DOWN
    color: tuple[float, ...] = (1.0, 1.0, 1.0)
    intensity: float = 1.0

    def __post_init__(self) -> None:
        check_light(self)


@dataclass(frozen=True)
class CheckedScene:
    """A scene that is right."""

    scene_name: str
    scene_type: str = "indoor"
    objects: tuple[CheckedObject, ...] = ()
    lights: tuple[CheckedLight, ...] = ()
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_names(self.objects)


def load_scene(config: Mapping[str, Any] | str | Path) -> CheckedScene:
    """Check a scene, given as the content of its file, or as the path."""
    if isinstance(config, Mapping):
        return check_scene(config)
    path = Path(config)
    if path.suffix.lower() in MESH_SUFFIXES:
        problem = (
            "a mesh, no scene file. Run `proctor export-o3de --scene` and build the scene.json it writes"
        )
        raise InvalidScene(str(path), problem)
    return check_scene(read_scene_file(path), str(path))


def check_scene(value: Any, file: str = "the scene") -> CheckedScene:
    """Check the content of a scene file; `file` is its name in messages."""
    scene: CheckedScene = _convert(Node(value, file), CheckedScene)
    return scene


READERS = {str: Node.text, float: Node.number, bool: Node.flag, Vector3: Node.vector}
_type_hints = lru_cache(get_type_hints)


def _convert(node: Node, kind: Any) -> Any:
    """Return the value of a node as a field of this type has it."""
    options = get_args(kind)
    if kind in READERS:
        return READERS[kind](node)
    if is_dataclass(kind):
        return _dataclass(node, kind)
    if get_origin(kind) is Literal:
        return node.choice(options)
    if get_origin(kind) is tuple:
        return tuple(_convert(item, options[0]) for item in node.items())
    return None if node.value is None else _convert(node, options[0])  # of a type that may be null


def _dataclass(node: Node, kind: Any) -> Any:
    hints = _type_hints(kind)
    found = node.fields(hints, [each.name for each in fields(kind) if each.default is MISSING])
    values = {key: _convert(value, hints[key]) for key, value in found.items() if key != "scale"}
    if "scale" in found:
        scale = found["scale"]
        values["scale"] = ONE * scale.number() if isinstance(scale.value, (int, float)) else scale.vector()
    try:
        return kind(**values)
    except BrokenRule as rule:
        raise node.error(rule.problem, rule.key) from None
