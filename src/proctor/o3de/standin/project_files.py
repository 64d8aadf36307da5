"""A project's files: prefabs of levels and robots, and assets, as the engine finds and turns them."""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from o3de_sim.constants import GROUND
from o3de_sim.o3de_api.interface.math import (
    ORIGIN,
    Quaternion,
    Vector3,
    from_o3de_euler_degrees,
    to_o3de_euler_degrees,
)
from proctor.core.documents import read_json, write_atomically
from proctor.core.errors import InvalidFile
from proctor.core.types import Array
from proctor.core.watched_file import WatchedFile, watch
from proctor.o3de.robot_prefab import ROBOT_PREFAB, robot_prefab
from proctor.o3de.standin.az_values import AzAssetId, AzVector3, Placement, as_json, from_json
from proctor.o3de.standin.level import (
    Component,
    ComponentKind,
    Entities,
    Entity,
    component_kinds,
    kinds_by_type,
)
from proctor.robots.spec import standard_robot
from proctor.scenes.meshes import Y_UP_TO_Z_UP, is_turned

MODEL_SUFFIXES = (".fbx", ".stl", ".gltf", ".glb", ".obj", ".usd", ".usda", ".usdc", ".usdz")
PRIMITIVES = {
    f"objects/_primitives/_{shape}_1x1.fbx.azmodel": shape for shape in ("box", "sphere", "cylinder")
}
"""Of the engine's gem PrimitiveAssets: one metre each way, around their centres."""
WRAPPER, TRANSFORM = "GenericComponentWrapper", "TransformComponent"
ROBOT_PRODUCT = str(PurePosixPath(ROBOT_PREFAB.lower()).with_suffix(".spawnable"))
FIRST_LEVEL = "scene_001"


def save_entities(path: Path, name: str, entities: Entities) -> None:
    """Write a prefab file."""
    document = {
        "ContainerEntity": {"Id": "ContainerEntity", "Name": name},
        "Entities": {f"Entity_[{entity.number}]": _entity_json(entity) for entity in entities.values()},
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, json.dumps(document, indent=1).encode() + b"\n")


def load_entities(path: Path) -> Entities:
    """Read a prefab file. All entities get new numbers, as in an Editor.

    Of components that the Editor wrote itself only the kinds are read, and of entities their places.
    """
    document = read_json(path)
    found = document.get("Entities", {}) if isinstance(document, dict) else None
    if not isinstance(found, dict):
        raise InvalidFile(path, "expected a prefab: an object with 'Entities'")
    try:
        read = {key: _entity_of(item) for key, item in found.items()}
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise InvalidFile(path, f"no prefab as the Editor writes it: {error!r}") from None
    for entity, parent_key in read.values():
        parent = read.get(parent_key)
        entity.parent = None if parent is None else parent[0].number
    return {entity.number: entity for entity, _ in read.values()}


def _entity_json(entity: Entity) -> dict[str, Any]:
    shift, turn, scale = entity.placement
    turn_deg = to_o3de_euler_degrees(Quaternion.from_xyzw(turn)).to_list()
    components: dict[str, Any] = {
        TRANSFORM: {
            "$type": TRANSFORM,
            "Parent Entity": "ContainerEntity" if entity.parent is None else f"Entity_[{entity.parent}]",
            "Transform Data": {"Translate": shift, "Rotate": turn_deg, "UniformScale": scale},
        }
    }
    for component in entity.components:
        components[f"Component_[{component.number}]"] = {
            "$type": component.kind.type,
            "Properties": {path: as_json(value) for path, value in component.properties.items()},
        }
    source = {} if entity.prefab is None else {"Source": entity.prefab}
    return {"Id": f"Entity_[{entity.number}]", "Name": entity.name, **source, "Components": components}


def _entity_of(item: dict[str, Any]) -> tuple[Entity, str]:
    """Return an entity and the key of its parent."""
    entity, parent = Entity(str(item["Name"]), prefab=item.get("Source")), ""
    for written in item["Components"].values():
        inner = written["m_template"] if written["$type"] == WRAPPER else written
        type_ = str(inner["$type"]).split(" ")[-1]  # a number may come before the name
        if type_ == TRANSFORM:
            parent = str(written.get("Parent Entity", ""))
            entity.placement = _placement_of(written.get("Transform Data", {}))
        elif type_ in kinds_by_type():
            entity.components.append(_component_of(inner, kinds_by_type()[type_]))
    return entity, parent


def _placement_of(data: dict[str, Any]) -> Placement:
    shift = Vector3.of(data.get("Translate", ORIGIN))
    turn = from_o3de_euler_degrees(data.get("Rotate", ORIGIN))
    return Placement(tuple(shift), tuple(turn.to_xyzw()), float(data.get("UniformScale", 1.0)))


def _component_of(written: dict[str, Any], kind: ComponentKind) -> Component:
    component = Component.new(kind)
    for path, value in written.get("Properties", {}).items():
        component.properties[path] = from_json(value, kind.properties[path])
    return component


def prepare_project(project: Path) -> None:
    """Write what is missing. What is there stays."""
    robot = project / ROBOT_PREFAB
    if not robot.exists():
        robot.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(robot, robot_prefab(standard_robot()))
    level = project / "Levels" / FIRST_LEVEL / f"{FIRST_LEVEL}.prefab"
    if not level.exists():
        ground = _ground()
        save_entities(level, FIRST_LEVEL, {ground.number: ground})


def _ground() -> Entity:
    body, collider, mesh, scale = (
        Component.new(component_kinds()[name])
        for name in ("PhysX Static Rigid Body", "PhysX Primitive Collider", "Mesh", "Non-uniform Scale")
    )
    box = AzAssetId(product="objects/_primitives/_box_1x1.fbx.azmodel")
    mesh.properties["Controller|Configuration|Model Asset"] = box
    scale.properties["Non-uniform Scale"] = AzVector3(100.0, 100.0, 1.0)
    ground = Entity(GROUND, components=[body, collider, mesh, scale])
    ground.placement = ground.placement._replace(translation=(0.0, 0.0, -0.5))
    return ground


class AssetCatalog:
    """Finds products by their paths, which are those of their sources in lower case with a suffix."""

    def __init__(self, project: Path) -> None:
        self.project = project

    def has(self, product: str) -> bool:
        """Return whether there is a product of this path."""
        return product in PRIMITIVES or self.source_of(product) is not None

    def source_of(self, product: str) -> Path | None:
        """Return the file in the project that a product is made of."""
        if product != product.lower():  # the catalog's paths are in lower case
            return None
        name = PurePosixPath(product.replace("\\", "/"))
        if name.suffix == ".azmodel":
            source = name.with_suffix("")
            return self._file(source) if source.suffix in MODEL_SUFFIXES else None
        if name.suffix == ".pxmesh":  # is only made where the file's settings ask for it
            source = name.with_suffix("")
            return None if self._file(PurePosixPath(f"{source}.assetinfo")) is None else self._file(source)
        if name.suffix == ".spawnable":
            return self._file(name.with_suffix(".prefab"))
        return None

    def _file(self, lower: PurePosixPath) -> Path | None:
        """Return the file whose path is this one in lower case."""
        if lower.is_absolute() or ".." in lower.parts:
            return None
        place = self.project
        for part in lower.parts:
            exact = place / part
            if exact.exists():
                place = exact
                continue
            if not place.is_dir():
                return None
            found = next((item for item in place.iterdir() if item.name.lower() == part), None)
            if found is None:
                return None
            place = found
        return place if place.is_file() else None


def engine_turn(file: Path) -> Array:
    """Return the rotation (3, 3) that makes a mesh as Proctor reads it the mesh that the engine shows.

    The engine takes the numbers of a file as they are: what is Y up lies on its back. Of glTF files it
    leaves out the transform of the root node, if there is just one.
    """
    return _engine_turn(watch(file))


@lru_cache(maxsize=4096)
def _engine_turn(watched: WatchedFile) -> Array:
    file = watched.path
    turn = np.array(Y_UP_TO_Z_UP[:3, :3], float) if is_turned(file, file.read_bytes()) else np.eye(3)
    if file.suffix.lower() == ".gltf":
        turn = turn @ _root_turn(read_json(file))
    back: Array = np.linalg.inv(turn)
    return back


def _root_turn(document: dict[str, Any]) -> Array:
    roots = document.get("scenes", [{}])[document.get("scene", 0)].get("nodes", [])
    if len(roots) != 1:
        return np.eye(3)
    node = document["nodes"][roots[0]]
    return np.reshape(node.get("matrix", np.eye(4).ravel().tolist()), (4, 4)).T[:3, :3]
