"""What the agent can be asked to do: every operation with its arguments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from o3de_sim.editor.arguments import (
    COLLIDER,
    COLOR,
    EDITED_ENTITY,
    ENTITY,
    ENTITY_TEXT_ONLY,
    FLAG,
    LEVEL,
    NAME,
    PATH,
    POSITION,
    ROTATION,
    SCALE,
    Argument,
    choice,
    integer,
    list_of,
    number,
    optional,
    text_up_to,
)
from o3de_sim.editor.operations import asset_tool, bodies, entities, levels
from o3de_sim.editor.operations.selftest import selftest
from o3de_sim.editor.session import EditorSession


@dataclass(frozen=True)
class Operation:
    """An operation that clients can call.

    The function gets the session and the checked arguments; it is a generator if it needs frames. `edits`: it
    changes the level, which is not possible in game mode.
    """

    name: str
    function: Callable[..., Any]
    arguments: tuple[Argument, ...] = ()
    edits: bool = False


def _asks(name: str, function: Callable[..., Any], *arguments: Argument) -> Operation:
    return Operation(name, function, arguments)


def _edits(name: str, function: Callable[..., Any], *arguments: Argument) -> Operation:
    return Operation(name, function, arguments, edits=True)


ORIGIN = (0.0, 0.0, 0.0)
ANY = Argument("entity", ENTITY)
EDITED = Argument("entity", EDITED_ENTITY)
PARENT = optional("parent", EDITED_ENTITY)
WHERE = Argument("position", POSITION)
LEVEL_NAME = Argument("name", LEVEL)
NAMED = Argument("name", NAME)
FILE = Argument("path", PATH)

OPERATIONS = (
    Operation("hello", levels.greeting, (optional("token", text_up_to(1024)),)),
    _asks("ping", levels.ping),
    Operation("selftest", selftest, edits=True),
    _edits("entity_tool.create", entities.create, NAMED, optional("position", POSITION, ORIGIN), PARENT),
    _asks("entity_tool.find", entities.find, NAMED),
    _asks("entity_tool.find_game", entities.find_game, NAMED),
    _edits("entity_tool.delete", entities.delete, EDITED),
    _asks("entity_tool.exists", entities.exists, Argument("entity", ENTITY_TEXT_ONLY)),
    _asks("entity_tool.get_name", entities.get_name, EDITED),
    _edits("entity_tool.set_name", entities.set_name, EDITED, NAMED),
    _edits("entity_tool.set_parent", entities.set_parent, EDITED, Argument("parent", EDITED_ENTITY)),
    _asks("entity_tool.children", entities.children, EDITED),
    _asks("entity_tool.components", entities.has_components, EDITED, Argument("names", list_of(NAME))),
    _edits(
        "editor_tool.create_new_entity_at_position", entities.create_new_entity_at_position, WHERE, PARENT
    ),
    _edits("editor_tool.create_level", levels.create_level, LEVEL_NAME),
    _edits("editor_tool.open_level", levels.open_level, LEVEL_NAME),
    _edits("editor_tool.save_level", levels.save_level),
    _asks("editor_tool.level_exists", levels.level_exists, LEVEL_NAME),
    _asks("editor_tool.current_level", EditorSession.level),
    _asks("tc.get_position", entities.get_position, ANY),
    _edits("tc.set_position", entities.set_pose, EDITED, WHERE),
    _asks("tc.get_rotation", entities.get_rotation, ANY),
    _edits("tc.set_rotation", entities.set_pose, EDITED, Argument("rotation", ROTATION)),
    _edits("tc.set_pose", entities.set_pose, EDITED, WHERE, Argument("rotation", ROTATION)),
    _edits("tc.set_scale", entities.set_scale, EDITED, Argument("scale", SCALE)),
    _edits(
        "pc.add_rigid_body",
        bodies.add_rigid_body,
        EDITED,
        Argument("type", choice("static", "dynamic", "kinematic")),
        optional("mass", number(1e-6, 1e6)),
    ),
    _edits("pc.add_colliders", bodies.add_colliders, EDITED, Argument("colliders", list_of(COLLIDER))),
    _edits("pc.add_mesh_collider", bodies.add_mesh_collider, EDITED, Argument("asset_path", PATH)),
    _asks("pc.has_physics", bodies.has_physics, EDITED),
    _edits(
        "render_tool.add_mesh",
        bodies.add_mesh,
        EDITED,
        optional("asset_path", PATH),
        optional("primitive", choice(*bodies.PRIMITIVES)),
    ),
    _edits(
        "render_tool.add_light",
        bodies.add_light,
        EDITED,
        Argument("type", choice(*bodies.LIGHTS)),
        optional("color", COLOR, (1.0, 1.0, 1.0)),
        optional("intensity", number(0.0, 1e9)),
    ),
    _asks("render_tool.screenshot", bodies.screenshot, FILE),
    _asks("asset_tool.exists", asset_tool.exists, Argument("paths", list_of(PATH))),
    _asks("asset_tool.bounds", asset_tool.bounds, FILE),
    _edits(
        "prefab_tool.instantiate",
        entities.instantiate,
        FILE,
        optional("position", POSITION, ORIGIN),
        optional("rotation", ROTATION, (0.0, 0.0, 0.0, 1.0)),
        optional("name", NAME),
    ),
    _edits("prefab_tool.create", entities.create_prefab, Argument("entities", list_of(EDITED_ENTITY)), FILE),
    _asks(
        "general.wait_for_propagation",
        levels.wait_for_propagation,
        optional("frames", integer(1, 10_000), 1),
    ),
    _asks("simulation_tool.enter_game_mode", levels.enter_game_mode),
    _asks("simulation_tool.exit_game_mode", levels.exit_game_mode),
    _asks("simulation_tool.is_in_game_mode", EditorSession.is_in_game_mode),
    _asks("simulation_tool.toggle_physics", levels.toggle_physics, Argument("enabled", FLAG)),
    _asks("ros2_tool.is_available", bodies.is_available),
    _asks("ros2_tool.missing_components", bodies.missing_components, EDITED),
)
TABLE = {operation.name: operation for operation in OPERATIONS}
