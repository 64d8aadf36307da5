"""What the Editor does at calls of `azlmbr.legacy.general` and `azlmbr.qt_helpers`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from o3de_sim.constants import ENVIRONMENT
from proctor.core.errors import InvalidFile
from proctor.o3de.standin.az_values import EntityId, Vector3
from proctor.o3de.standin.component_table import component_kinds
from proctor.o3de.standin.level import Component, Entities, Entity
from proctor.o3de.standin.prefab_files import save_entities

if TYPE_CHECKING:
    from proctor.o3de.standin.fake_editor import FakeEditor

LEVEL_MADE, LEVEL_EXISTS, NO_FOLDER, PATH_TOO_LONG = range(4)
MAX_PATH = 255
TEMPLATES = ("Prefabs/Basic.prefab", "Prefabs/Default_Level.prefab")
"""The entity under which a new level has its sky and its sun."""


def _find_editor_entity(editor: FakeEditor, name: str) -> EntityId:
    return _named(editor.level.live if editor.level is not None else {}, name)


def _find_game_entity(editor: FakeEditor, name: str) -> EntityId:
    return _named(editor.game, name)


def _named(entities: Entities, name: str) -> EntityId:
    return EntityId.of_(next((entity.number for entity in entities.values() if entity.name == name), None))


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
    if len(str(path)) > MAX_PATH:
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


def _save_level(editor: FakeEditor) -> bool:
    return editor.save()


def _level_name(editor: FakeEditor) -> str:
    return "" if editor.level is None else editor.level.name


def _level_path(editor: FakeEditor) -> str:
    return "" if editor.level is None else str(editor.levels / editor.level.name)


def _enter_game_mode(editor: FakeEditor) -> None:
    editor.want_game_mode(is_on=True)


def _exit_game_mode(editor: FakeEditor) -> None:
    editor.want_game_mode(is_on=False)


def _is_in_game_mode(editor: FakeEditor) -> bool:
    return editor.is_in_game_mode


def _enter_simulation_mode(editor: FakeEditor) -> None:
    editor.switch_simulation_mode(is_on=not editor.is_in_game_mode)


def _exit_simulation_mode(editor: FakeEditor) -> None:
    editor.switch_simulation_mode(is_on=False)


def _is_in_simulation_mode(editor: FakeEditor) -> bool:
    return editor.is_in_simulation_mode


def _idle_enable(editor: FakeEditor, is_on: bool) -> None:  # noqa: FBT001  (the engine calls it so)
    editor.is_idle_enabled = is_on


def _idle_wait_frames(editor: FakeEditor, count: int) -> None:
    editor.wait_frames(count)


def _idle_wait(editor: FakeEditor, seconds: float) -> None:
    del seconds  # which are no seconds of the wall's clock in the Editor either
    editor.wait_frames(1)


def _view_position(editor: FakeEditor) -> Vector3:
    return Vector3(*editor.view.translation)


def _view_rotation(editor: FakeEditor) -> Vector3:
    return Vector3(*editor.view_rotation_deg)


def _set_view_position(editor: FakeEditor, x: float, y: float, z: float) -> None:
    editor.view = editor.view._replace(translation=(x, y, z))


def _set_view_rotation(editor: FakeEditor, x: float, y: float, z: float) -> None:
    editor.view_rotation_deg = (x, y, z)


def _get_cvar(editor: FakeEditor, name: str) -> str:
    return editor.cvars.get(name, "")


def _set_cvar(editor: FakeEditor, name: str, value: Any) -> None:
    editor.cvars[name] = str(value)


def _run_console(editor: FakeEditor, line: str) -> None:
    name, _, value = line.partition(" ")
    if value:
        editor.cvars[name] = value.strip()


def _quit(editor: FakeEditor) -> None:
    editor.wants_to_quit = True


def _set_loop_callback(editor: FakeEditor, callback: Callable[[], Any]) -> None:
    editor.loop_callback = callback


def _clear_loop_callback(editor: FakeEditor) -> None:
    editor.loop_callback = None


def _loop_is_running(editor: FakeEditor) -> bool:
    return editor.loop_callback is not None


GENERAL, QT = "azlmbr.legacy.general", "azlmbr.qt_helpers"
DEEDS: dict[tuple[str, str], Callable[..., Any]] = {
    (GENERAL, "find_editor_entity"): _find_editor_entity,
    (GENERAL, "find_game_entity"): _find_game_entity,
    (GENERAL, "open_level_no_prompt"): _open_level,
    (GENERAL, "create_level_no_prompt"): _create_level,
    (GENERAL, "save_level"): _save_level,
    (GENERAL, "get_current_level_name"): _level_name,
    (GENERAL, "get_current_level_path"): _level_path,
    (GENERAL, "enter_game_mode"): _enter_game_mode,
    (GENERAL, "exit_game_mode"): _exit_game_mode,
    (GENERAL, "is_in_game_mode"): _is_in_game_mode,
    (GENERAL, "enter_simulation_mode"): _enter_simulation_mode,
    (GENERAL, "exit_simulation_mode"): _exit_simulation_mode,
    (GENERAL, "is_in_simulation_mode"): _is_in_simulation_mode,
    (GENERAL, "idle_enable"): _idle_enable,
    (GENERAL, "idle_wait_frames"): _idle_wait_frames,
    (GENERAL, "idle_wait"): _idle_wait,
    (GENERAL, "get_current_view_position"): _view_position,
    (GENERAL, "get_current_view_rotation"): _view_rotation,
    (GENERAL, "set_current_view_position"): _set_view_position,
    (GENERAL, "set_current_view_rotation"): _set_view_rotation,
    (GENERAL, "get_cvar"): _get_cvar,
    (GENERAL, "set_cvar_integer"): _set_cvar,
    (GENERAL, "set_cvar_float"): _set_cvar,
    (GENERAL, "set_cvar_string"): _set_cvar,
    (GENERAL, "run_console"): _run_console,
    (GENERAL, "exit_no_prompt"): _quit,
    (QT, "set_loop_callback"): _set_loop_callback,
    (QT, "clear_loop_callback"): _clear_loop_callback,
    (QT, "loop_is_running"): _loop_is_running,
}
