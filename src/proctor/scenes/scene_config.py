"""A world as data: the scene file that builds in MuJoCo and in O3DE alike.

The shape is O3DE's scene config (`scene_name`, `scene_type`, `objects` with `name`, `translate`, `rotate` in
degrees, `scale`, `asset_path`, `rigid_body_type`, and `lights`), extended by objects made of primitive
parts with colour and texture, so that a scene needs no mesh files.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import msgspec

from o3de_sim.common import scene_rules
from proctor.core.documents import convert, parse_json, write_atomically
from proctor.core.errors import InvalidFile
from proctor.core.types import Vector3

Texture = scene_rules.Texture
SMALLEST_M = scene_rules.SMALLEST_M
VECTOR_KEYS = ("translate", "rotate", "scale", "size", "direction")
ORIGIN, ONE = Vector3(0.0, 0.0, 0.0), Vector3(1.0, 1.0, 1.0)


class Part(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A primitive shape, placed in its object's frame by its centre."""

    shape: scene_rules.Shape
    size: Vector3
    """Full extents in metres. Cylinders stand along z; their x and y, and a sphere's three, are equal."""
    translate: Vector3 = ORIGIN
    rotate: Vector3 = ORIGIN
    color: tuple[float, ...] = (0.8, 0.8, 0.8)
    """Red, green, blue and, if given, alpha, from 0 to 1."""
    texture: Texture | None = None
    collision: bool = True
    """Whether a robot bumps into it. Rugs and pictures say no."""

    def __post_init__(self) -> None:
        _set_vectors(self, "size", "translate", "rotate")
        scene_rules.check_part(self)


class SceneObject(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A thing in the world: a mesh file or parts, or a mesh that is seen and one, or parts, that collide."""

    name: str
    category: str = ""
    """What a person would call it: sofa, door, wall."""
    color: str = ""
    """The colour that a person would give it, in one English word; empty where none stands out."""
    room: str = ""
    translate: Vector3 = ORIGIN
    rotate: Vector3 = ORIGIN
    """Euler angles in degrees, applied Z·Y·X."""
    scale: Vector3 = ONE
    asset_path: str | None = None
    """A mesh file, relative to the scene file's folder and inside it."""
    collision_asset_path: str | None = None
    """A mesh file that is bumped into, scanned and mapped, and not seen, instead of what is seen."""
    parts: list[Part] = []
    """What it consists of. Where there is a mesh as well, that is seen, and these are only bumped into."""
    rigid_body_type: scene_rules.BodyType = "static"
    mass: float | None = None
    """Kilograms of a dynamic object; from its volume at 300 kg/m³ if missing."""
    collision: Literal["hull", "surface"] = "hull"
    """What a mesh collides as: the hulls of its pieces, or, of a house to drive in, its triangles."""

    def __post_init__(self) -> None:
        _set_vectors(self, "translate", "rotate", "scale")
        asset_paths = {"asset_path": self.asset_path, "collision_asset_path": self.collision_asset_path}
        scene_rules.check_object(self, asset_paths)
        if self.parts and self.collision_asset_path is not None:
            raise ValueError(
                "collision_asset_path: an object collides as its parts or as this mesh, not as both"
            )

    @property
    def mesh_paths(self) -> list[str]:
        """The mesh files that it names."""
        return [path for path in (self.asset_path, self.collision_asset_path) if path is not None]

    @property
    def solid_mesh_path(self) -> str | None:
        """The mesh file that it collides as; None if it collides as parts or not at all."""
        if self.parts or self.rigid_body_type == "none":
            return None
        return self.collision_asset_path or self.asset_path


class Light(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A lamp (`point`) or the sun (`directional`)."""

    name: str = "light"
    type: Literal["point", "directional"] = "point"
    translate: Vector3 = ORIGIN
    direction: Vector3 = Vector3(0.0, 0.0, -1.0)
    color: tuple[float, float, float] = (1.0, 1.0, 1.0)
    intensity: float = 1.0

    def __post_init__(self) -> None:
        _set_vectors(self, "translate", "direction")
        scene_rules.check_light(self)


class SceneConfig(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A whole scene. The floor of the world is the plane z = 0, unless a mesh brings floors of its own."""

    scene_name: str
    scene_type: str = "indoor"
    objects: list[SceneObject] = []
    lights: list[Light] = []
    notes: list[str] = []
    """What people should know, such as how a mesh was read."""

    def __post_init__(self) -> None:
        scene_rules.check_names(self.objects)


def parse_scene(content: bytes, path: Path) -> SceneConfig:
    """Read and check the content of a scene file; `path` is for the message."""
    return convert(_with_vectors(parse_json(content, path)), SceneConfig, path)


def save_scene(scene: SceneConfig, path: Path) -> None:
    """Write a scene file that `Scene.load` reads back."""
    write_atomically(path, msgspec.json.encode(scene) + b"\n")


def asset_file(scene_path: Path, asset_path: str) -> Path:
    """Return the file of a scene's asset; raise InvalidFile if a link leads out of the scene's folder."""
    folder = scene_path.parent.resolve()
    asset = (folder / asset_path).resolve()
    if not asset.is_relative_to(folder) and asset != scene_path.resolve():
        raise InvalidFile(scene_path, f"the asset '{asset_path}' lies outside of {folder}")
    return asset


def _with_vectors(value: Any, key: str = "") -> Any:
    """Write as `{x, y, z}` what files may also write as `[x, y, z]` or, for a scale, as one number."""
    if key in VECTOR_KEYS and isinstance(value, list) and len(value) == 3:
        return dict(zip("xyz", value, strict=True))
    if key == "scale" and isinstance(value, int | float):
        return dict.fromkeys("xyz", value)
    if isinstance(value, dict):
        return {name: _with_vectors(item, name) for name, item in value.items()}
    return [_with_vectors(item) for item in value] if isinstance(value, list) else value


def _set_vectors(struct: msgspec.Struct, *names: str) -> None:
    for name in names:
        try:
            given = getattr(struct, name)
            if isinstance(given, int | float):
                given = (given,) * 3
            if not isinstance(given, Vector3):  # else a default stays itself and is left out of files
                msgspec.structs.force_setattr(struct, name, Vector3.of(given))
        except (TypeError, ValueError) as error:
            raise ValueError(f"{name}: {error}") from None
