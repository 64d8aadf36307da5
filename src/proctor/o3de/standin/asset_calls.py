"""What the Editor does at calls about assets, prefabs, pictures and mathematics."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from proctor.core.errors import InvalidFile
from proctor.o3de.standin.az_transform import Placement, quaternion_of_euler_xyz
from proctor.o3de.standin.az_values import AssetId, EntityId, Outcome, Quaternion, Transform, Uuid, Vector3
from proctor.o3de.standin.level import Entity, descendants, new_number, world_placement
from proctor.o3de.standin.prefab_files import load_entities

if TYPE_CHECKING:
    from proctor.o3de.standin.fake_editor import FakeEditor


def _asset_id(editor: FakeEditor, product: str, type_: Uuid, generate: bool) -> AssetId:  # noqa: FBT001
    del type_, generate
    return AssetId(product=product if editor.assets.has(product) else None)


def _asset_path(editor: FakeEditor, asset: AssetId) -> str:
    del editor
    return asset.product_ or ""


def _instantiate(editor: FakeEditor, path: str, parent: EntityId, position: Vector3) -> Outcome:
    level, file = editor.editable(), editor.project / path
    if level is None:
        return Outcome(error="Could not instantiate prefab - no level can be edited")
    if file.suffix != ".prefab" or not file.is_relative_to(editor.project):
        return Outcome(error=f"Could not instantiate prefab - no prefab of this project: {path}")
    try:
        inside = load_entities(file)
    except InvalidFile as error:
        return Outcome(error=f"Could not instantiate prefab - {error.problem}")
    source = str(file.relative_to(editor.project))
    container = Entity(file.stem, placement=Placement(position.triple_()), prefab=source)
    if parent.number_ in level.live:
        outer = world_placement(level.live, level.live[parent.number_])
        container.parent = parent.number_
        container.placement = outer.inverse().of(container.placement)
    for entity in inside.values():
        if entity.parent is None:
            entity.parent = container.number
    level.live |= {container.number: container, **inside}
    level.record(container.number, *inside)
    return Outcome(EntityId.of_(container.number))


def _create_prefab(editor: FakeEditor, entities: list[EntityId], path: str) -> Outcome:
    level, file = editor.editable(), Path(editor.project / path)
    if level is None or not entities or any(entity.number_ not in level.live for entity in entities):
        return Outcome(error="CreatePrefab - the entities cannot be edited")
    if file.suffix != ".prefab" or not file.is_relative_to(editor.project):
        return Outcome(error=f"CreatePrefab - no place for a prefab of this project: {path}")
    container = Entity(file.stem, prefab=str(file.relative_to(editor.project)))
    moved = {entity.number_: level.live[entity.number_] for entity in entities}
    for number in list(moved):
        moved |= {below.number: below for below in descendants(level.live, number)}
    placements = {entity.number_: world_placement(level.live, moved[entity.number_]) for entity in entities}
    renumbered = {number: new_number() for number in moved}  # as in the Editor, they are others now
    for number, entity in moved.items():
        del level.live[number]
        entity.number = renumbered[number]
        is_top = number in placements
        entity.placement = placements[number] if is_top else entity.placement
        entity.parent = container.number if is_top else renumbered[entity.parent or 0]
    level.live |= {container.number: container, **{entity.number: entity for entity in moved.values()}}
    level.record(*renumbered, *level.live)
    saved = {entity.number: entity.copied() for entity in moved.values()}
    for entity in saved.values():
        entity.parent = None if entity.parent == container.number else entity.parent
    editor.prefabs_to_save[file] = saved
    return Outcome(EntityId.of_(container.number))


def _screenshot(editor: FakeEditor, path: str) -> Outcome:
    return editor.captures.take(path)


def _quaternion(editor: FakeEditor, angles_deg: Vector3) -> Quaternion:
    del editor
    return Quaternion(*quaternion_of_euler_xyz(angles_deg.triple_(), degrees=True))


def _transform(editor: FakeEditor, turn: Quaternion, shift: Vector3) -> Transform:
    del editor
    return Transform(Placement(shift.triple_(), turn.quadruple_()))


def _project(editor: FakeEditor) -> str:
    return str(editor.project)


def _engine(editor: FakeEditor) -> str:
    return str(editor.project / "Cache" / "engine")


def _products(editor: FakeEditor) -> str:
    return str(editor.project / "Cache" / "linux")


def _gem(editor: FakeEditor, name: str) -> str:
    return str(Path(_engine(editor)) / "Gems" / name)


CATALOG, PREFABS = "AssetCatalogRequestBus", "PrefabPublicRequestBus"
DEEDS: dict[tuple[str, str], Callable[..., Any]] = {
    (CATALOG, "GetAssetIdByPath"): _asset_id,
    (CATALOG, "GetAssetPathById"): _asset_path,
    (PREFABS, "InstantiatePrefab"): _instantiate,
    (PREFABS, "CreatePrefabInMemory"): _create_prefab,
    ("FrameCaptureRequestBus", "CaptureScreenshot"): _screenshot,
    ("azlmbr.math", "Quaternion_CreateFromEulerDegreesXYZ"): _quaternion,
    ("azlmbr.math", "Transform_CreateFromQuaternionAndTranslation"): _transform,
    ("azlmbr.paths", "projectroot"): _project,
    ("azlmbr.paths", "engroot"): _engine,
    ("azlmbr.paths", "products"): _products,
    ("azlmbr.paths", "gemroot"): _gem,
}
