"""The scene file, checked: what is accepted here builds in the engine as it does in MuJoCo.

Keys: `scene_name`, `scene_type`, `objects`, `lights`, `notes`. Every complaint names the file, the place in
it, what was found and what would be right.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Literal, cast

from o3de_sim.common.scene_file import InvalidScene, Node, read_scene_file
from o3de_sim.o3de_api.interface.math import ORIGIN, Vector3

Shape = Literal["box", "cylinder", "sphere"]
TEXTURES = (
    *("plaster", "stripes", "ornament", "brick", "tiles", "mosaic", "checks", "marble", "wood", "planks"),
    *("parquet", "carpet", "pattern", "fabric", "leaves", "books", "painting", "landscape"),
)
MESH_SUFFIXES = (".glb", ".gltf", ".obj", ".stl", ".dae", ".ply")
SMALLEST_M = 0.0005
ONE = Vector3(1.0, 1.0, 1.0)

OBJECT_KEYS = (
    *("name", "category", "color", "room", "translate", "rotate", "scale", "asset_path", "parts"),
    *("rigid_body_type", "mass", "collision"),
)


@dataclass(frozen=True)
class CheckedPart:
    """A primitive shape, placed in its object's frame by its centre."""

    shape: Shape
    size: Vector3  # full extents in metres. Cylinders stand along z.
    translate: Vector3
    rotate: Vector3  # degrees, Z·Y·X
    color: tuple[float, ...]
    texture: str | None
    collision: bool


@dataclass(frozen=True)
class CheckedObject:
    """A thing in the world: a mesh, parts, or a mesh that collides as parts."""

    name: str
    translate: Vector3
    rotate: Vector3  # degrees, Z·Y·X
    scale: Vector3
    asset_path: str | None  # relative to the scene file's folder
    parts: tuple[CheckedPart, ...]
    rigid_body_type: Literal["static", "dynamic", "kinematic", "none"]
    mass: float | None  # kilograms
    collision: Literal["hull", "surface"]


@dataclass(frozen=True)
class CheckedLight:
    """A lamp (`point`) or the sun (`directional`)."""

    name: str
    type: Literal["point", "directional"]
    translate: Vector3
    direction: Vector3
    color: tuple[float, ...]
    intensity: float


@dataclass(frozen=True)
class CheckedScene:
    """A scene that is right."""

    scene_name: str
    objects: tuple[CheckedObject, ...]
    lights: tuple[CheckedLight, ...]
    notes: tuple[str, ...]


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
    node = Node(value, file)
    fields = node.fields(("scene_name", "scene_type", "objects", "lights", "notes"), ["scene_name"])
    name = fields["scene_name"].text()
    _text(fields, "scene_type", "indoor")
    objects = tuple(map(_object, _items(fields, "objects")))
    seen: set[str] = set()
    for index, item in enumerate(objects):
        if item.name in seen:
            raise node.error(f"two objects have the name '{item.name}'", f"objects[{index}].name")
        seen.add(item.name)
    lights = tuple(map(_light, _items(fields, "lights")))
    return CheckedScene(name, objects, lights, tuple(note.text() for note in _items(fields, "notes")))


def _object(node: Node) -> CheckedObject:
    fields = node.fields(OBJECT_KEYS, ["name"])
    for key in ("category", "color", "room"):
        _text(fields, key, "")
    asset_path, mass = _given(fields, "asset_path"), _given(fields, "mass")
    body = "static"
    if "rigid_body_type" in fields:
        body = fields["rigid_body_type"].choice(("static", "dynamic", "kinematic", "none"))
    collision = fields["collision"].choice(("hull", "surface")) if "collision" in fields else "hull"
    item = CheckedObject(
        name=fields["name"].text(),
        translate=_vector(fields, "translate"),
        rotate=_vector(fields, "rotate"),
        scale=_scale(fields),
        asset_path=None if asset_path is None else _asset_path(asset_path),
        parts=tuple(map(_part, _items(fields, "parts"))),
        rigid_body_type=cast("Literal['static', 'dynamic', 'kinematic', 'none']", body),
        mass=None if mass is None else mass.number(),
        collision=cast("Literal['hull', 'surface']", collision),
    )
    _check_object(node, item)
    return item


def _check_object(node: Node, item: CheckedObject) -> None:
    scale = item.scale.to_list()
    if min(scale) <= 0:
        raise node.error(f"expected factors above 0, found {scale}", "scale")
    if item.asset_path is None and not item.parts:
        raise node.error("expected asset_path, parts, or both (the mesh is seen, the parts collide)")
    if len(set(scale)) > 1:
        for part in item.parts:
            oval = part.shape == "cylinder" and scale[0] != scale[1]
            if oval or part.shape == "sphere" or any(angle % 180 for angle in part.rotate):
                problem = f"{scale} would bend a {part.shape}; scale it evenly, or the part itself"
                raise node.error(problem, "scale")
    if item.mass is not None and item.mass <= 0:
        raise node.error(f"expected kilograms above 0, found {item.mass}", "mass")
    if item.collision == "surface" and (item.asset_path is None or item.rigid_body_type != "static"):
        raise node.error("only a static mesh collides as its surface", "collision")
    if item.collision == "surface" and item.parts:
        raise node.error("a mesh collides as its surface or as its parts, not as both", "collision")


def _part(node: Node) -> CheckedPart:
    fields = node.fields(
        ("shape", "size", "translate", "rotate", "color", "texture", "collision"), ["shape", "size"]
    )
    shape, size = fields["shape"].choice(("box", "cylinder", "sphere")), fields["size"].vector()
    if min(size) < SMALLEST_M:
        raise node.error(f"expected at least {SMALLEST_M} m, found {size.to_list()}", "size")
    if (shape != "box" and size.x != size.y) or (shape == "sphere" and size.x != size.z):
        raise node.error(f"a {shape} is round, found {size.to_list()}", "size")
    texture = _given(fields, "texture")
    return CheckedPart(
        shape=cast("Shape", shape),
        size=size,
        translate=_vector(fields, "translate"),
        rotate=_vector(fields, "rotate"),
        color=fields["color"].channels((3, 4)) if "color" in fields else (0.8, 0.8, 0.8),
        texture=None if texture is None else texture.choice(TEXTURES),
        collision=fields["collision"].flag() if "collision" in fields else True,
    )


def _light(node: Node) -> CheckedLight:
    fields = node.fields(("name", "type", "translate", "direction", "color", "intensity"), [])
    kind = fields["type"].choice(("point", "directional")) if "type" in fields else "point"
    direction = _vector(fields, "direction", Vector3(0.0, 0.0, -1.0))
    if direction == ORIGIN:
        raise node.error("expected one that is not zero", "direction")
    intensity = fields["intensity"].number() if "intensity" in fields else 1.0
    if intensity < 0:
        raise node.error(f"expected one from 0 up, found {intensity}", "intensity")
    return CheckedLight(
        name=_text(fields, "name", "light"),
        type=cast("Literal['point', 'directional']", kind),
        translate=_vector(fields, "translate"),
        direction=direction,
        color=fields["color"].channels((3,)) if "color" in fields else (1.0, 1.0, 1.0),
        intensity=intensity,
    )


def _asset_path(node: Node) -> str:
    given = node.text()
    path = PurePosixPath(given.replace("\\", "/"))
    if not path.parts or "\0" in given or len(given) > 255:
        raise node.error(f"expected the name of a mesh file, found {given[:40]!r}")
    if path.is_absolute() or ".." in path.parts or ":" in path.parts[0]:
        raise node.error(f"'{given}' must stay inside the scene's folder")
    if path.suffix.lower() not in MESH_SUFFIXES:
        raise node.error(f"'{given}' is no mesh file ({', '.join(MESH_SUFFIXES)})")
    return given


def _scale(fields: dict[str, Node]) -> Vector3:
    node = fields.get("scale")
    if node is None:
        return ONE
    return ONE * node.number() if isinstance(node.value, (int, float)) else node.vector()


def _vector(fields: dict[str, Node], key: str, default: Vector3 = ORIGIN) -> Vector3:
    return fields[key].vector() if key in fields else default


def _text(fields: dict[str, Node], key: str, default: str) -> str:
    return fields[key].text() if key in fields else default


def _items(fields: dict[str, Node], key: str) -> list[Node]:
    return fields[key].items() if key in fields else []


def _given(fields: dict[str, Node], key: str) -> Node | None:
    """Return what may be null."""
    node = fields.get(key)
    return None if node is None or node.value is None else node
