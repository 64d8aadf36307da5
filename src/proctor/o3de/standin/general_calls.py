"""What the Editor does at calls about levels, modes, assets, prefabs and pictures."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from o3de_sim.constants import ENVIRONMENT
from proctor.core.errors import InvalidFile
from proctor.o3de.standin.az_values import AzAssetId, AzEntityId, AzOutcome, AzUuid, AzVector3, Placement
from proctor.o3de.standin.level import (
    Component,
    Entities,
    Entity,
    component_kinds,
    descendants,
    new_number,
    place_below,
    world_placement,
)
from proctor.o3de.standin.project_files import load_entities, save_entities

if TYPE_CHECKING:
    from proctor.o3de.standin.fake_editor import FakeEditor


LEVEL_MADE, LEVEL_EXISTS, NO_FOLDER, PATH_TOO_LONG = range(4)
TEMPLATES = ("Prefabs/Basic.prefab", "Prefabs/Default_Level.prefab")


def _asset_id(editor: FakeEditor, product: str, _type: AzUuid, _generate: bool) -> AzAssetId:  # noqa: FBT001
    return AzAssetId(product=product if editor.assets.has(product) else None)


def _instantiate(editor: FakeEditor, path: str, parent: AzEntityId, position: AzVector3) -> AzOutcome:
    level, file = editor.editable(), editor.project / path
    if level is None:
        return AzOutcome(error="Could not instantiate prefab - no level can be edited")
    if file.suffix != ".prefab" or not file.is_relative_to(editor.project):
        return AzOutcome(error=f"Could not instantiate prefab - no prefab of this project: {path}")
    try:
        inside = load_entities(file)
    except InvalidFile as error:
        return AzOutcome(error=f"Could not instantiate prefab - {error.problem}")
    source = str(file.relative_to(editor.project))
    container = Entity(file.stem, prefab=source)
    container.parent = parent.number_ if parent.number_ in level.live else None
    place_below(level.live, container, Placement(position.numbers_()))
    for entity in inside.values():
        if entity.parent is None:
            entity.parent = container.number
    level.live |= {container.number: container, **inside}
    level.record(container.number, *inside)
    return AzOutcome(AzEntityId.of_(container.number))


def _create_prefab(editor: FakeEditor, entities: list[AzEntityId], path: str) -> AzOutcome:
    level, file = editor.editable(), Path(editor.project / path)
    if level is None or not entities or any(entity.number_ not in level.live for entity in entities):
        return AzOutcome(error="CreatePrefab - the entities cannot be edited")
    if file.suffix != ".prefab" or not file.is_relative_to(editor.project):
        return AzOutcome(error=f"CreatePrefab - no place for a prefab of this project: {path}")
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
    return AzOutcome(AzEntityId.of_(container.number))


def _named(entities: Entities, name: str) -> AzEntityId:
    return AzEntityId.of_(next((entity.number for entity in entities.values() if entity.name == name), None))


def _open_level(editor: FakeEditor, name: str) -> bool:
    if editor.is_in_game_mode:
        return False
    path = Path(name)
    if not path.is_absolute():
        path = editor.levels / name / f"{path.name}.prefab"
    if not path.is_file():
        return False
    try:
        editor.open(path.stem, path)
    except InvalidFile:
        return False
    return True


def _create_level(editor: FakeEditor, template: str, name: str, *_terrain: Any) -> int:
    path = editor.levels / name / f"{Path(name).name}.prefab"
    if len(str(path)) > 255:
        return PATH_TOO_LONG
    if path.exists():
        return LEVEL_EXISTS
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError:
        return NO_FOLDER
    level = _new_level() if template in TEMPLATES else {}
    if template == TEMPLATES[1]:
        level |= _exhibits(level)
    save_entities(path, path.stem, level)
    editor.open(path.stem, path)
    return LEVEL_MADE


def _new_level() -> Entities:
    """Return what the default level has in it."""
    environment = Entity(ENVIRONMENT)
    sun, sky, camera = (
        Entity(name, environment.number, components=[Component.new(component_kinds()[kind])])
        for name, kind in (
            ("Sun", "Directional Light"),
            ("Global Sky", "Global Skylight (IBL)"),
            ("Camera", "Camera"),
        )
    )
    return {entity.number: entity for entity in (environment, sun, sky, camera)}


def _exhibits(level: Entities) -> Entities:
    """Return what the default level shows besides, which stands in the way of others."""
    environment = next(iter(level))
    shown = [Entity(name, environment) for name in ("Ground", "Grid", "Shader Ball")]
    return {entity.number: entity for entity in shown}


GENERAL, QT = "azlmbr.legacy.general", "azlmbr.qt_helpers"
CATALOG, PREFABS = "AssetCatalogRequestBus", "PrefabPublicRequestBus"
CALL_HANDLERS: dict[tuple[str, str], Callable[..., Any]] = {
    (GENERAL, "find_game_entity"): lambda editor, name: _named(editor.game, name),
    (GENERAL, "open_level_no_prompt"): _open_level,
    (GENERAL, "create_level_no_prompt"): _create_level,
    (GENERAL, "save_level"): lambda editor: editor.save(),
    (GENERAL, "get_current_level_name"): lambda editor: "" if editor.level is None else editor.level.name,
    (GENERAL, "enter_game_mode"): lambda editor: editor.want_game_mode(is_on=True),
    (GENERAL, "exit_game_mode"): lambda editor: editor.want_game_mode(is_on=False),
    (GENERAL, "is_in_game_mode"): lambda editor: editor.is_in_game_mode,
    (GENERAL, "enter_simulation_mode"): lambda editor: editor.switch_simulation_mode(
        is_on=not editor.is_in_game_mode
    ),
    (GENERAL, "exit_simulation_mode"): lambda editor: editor.switch_simulation_mode(is_on=False),
    (GENERAL, "is_in_simulation_mode"): lambda editor: editor.is_in_simulation_mode,
    (GENERAL, "idle_enable"): lambda editor, is_on: setattr(editor, "is_idle_enabled", is_on),
    (GENERAL, "idle_wait_frames"): lambda editor, count: editor.wait_frames(count),
    (GENERAL, "get_cvar"): lambda editor, name: editor.cvars.get(name, ""),
    (GENERAL, "set_cvar_integer"): lambda editor, name, value: editor.cvars.update({name: str(value)}),
    (QT, "set_loop_callback"): lambda editor, callback: setattr(editor, "loop_callback", callback),
    (QT, "clear_loop_callback"): lambda editor: setattr(editor, "loop_callback", None),
    (QT, "loop_is_running"): lambda editor: editor.loop_callback is not None,
    (CATALOG, "GetAssetIdByPath"): _asset_id,
    (PREFABS, "InstantiatePrefab"): _instantiate,
    (PREFABS, "CreatePrefabInMemory"): _create_prefab,
    ("FrameCaptureRequestBus", "CaptureScreenshot"): lambda editor, path: editor.captures.take(path),
    ("azlmbr.paths", "projectroot"): lambda editor: str(editor.project),
    ("azlmbr.paths", "engroot"): lambda editor: str(editor.project / "Cache" / "engine"),
}
