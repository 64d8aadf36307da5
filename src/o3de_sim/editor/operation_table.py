"""What the agent can be asked to do: every operation by its name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from inspect import Parameter, signature
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from o3de_sim.editor.arguments import Argument
from o3de_sim.editor.operations import asset_tool, bodies, entities, levels
from o3de_sim.editor.operations.selftest import selftest
from o3de_sim.editor.session import EditorSession


@dataclass(frozen=True)
class Operation:
    """An operation that clients can call.

    The function gets the session and the checked arguments, which its parameters declare; it is a generator
    if it needs frames. `edits`: it changes the level, which is not possible in game mode.
    """

    name: str
    function: Callable[..., Any]
    edits: bool = False
    arguments: tuple[Argument, ...] = field(init=False)

    def __post_init__(self) -> None:
        hints = get_type_hints(self.function, include_extras=True)
        _session, *parameters = signature(self.function).parameters.values()
        arguments = tuple(_argument(each, hints[each.name]) for each in parameters)
        object.__setattr__(self, "arguments", arguments)


def _argument(parameter: Parameter, hint: Any) -> Argument:
    """Return the argument of a parameter whose type is one of `arguments`, or may be None as well."""
    annotated = hint if get_origin(hint) is Annotated else get_args(hint)[0]
    (kind,) = annotated.__metadata__
    if parameter.default is Parameter.empty:
        return Argument(parameter.name, kind)
    return Argument(parameter.name, kind, is_needed=False, default=parameter.default)


OPERATIONS = (
    Operation("hello", levels.greeting),
    Operation("ping", levels.ping),
    Operation("selftest", selftest, edits=True),
    Operation("entity_tool.create", entities.create, edits=True),
    Operation("entity_tool.find", entities.find),
    Operation("entity_tool.find_game", entities.find_game),
    Operation("entity_tool.delete", entities.delete, edits=True),
    Operation("entity_tool.exists", entities.exists),
    Operation("entity_tool.get_name", entities.get_name),
    Operation("entity_tool.set_name", entities.set_name, edits=True),
    Operation("entity_tool.set_parent", entities.set_parent, edits=True),
    Operation("entity_tool.children", entities.children),
    Operation("entity_tool.components", entities.has_components),
    Operation(
        "editor_tool.create_new_entity_at_position", entities.create_new_entity_at_position, edits=True
    ),
    Operation("editor_tool.create_level", levels.create_level, edits=True),
    Operation("editor_tool.open_level", levels.open_level, edits=True),
    Operation("editor_tool.save_level", levels.save_level, edits=True),
    Operation("editor_tool.level_exists", levels.level_exists),
    Operation("editor_tool.current_level", EditorSession.level),
    Operation("tc.get_position", entities.get_position),
    Operation("tc.set_position", entities.set_position, edits=True),
    Operation("tc.get_rotation", entities.get_rotation),
    Operation("tc.set_rotation", entities.set_rotation, edits=True),
    Operation("tc.set_pose", entities.set_pose, edits=True),
    Operation("tc.set_scale", entities.set_scale, edits=True),
    Operation("pc.add_rigid_body", bodies.add_rigid_body, edits=True),
    Operation("pc.add_colliders", bodies.add_colliders, edits=True),
    Operation("pc.add_mesh_collider", bodies.add_mesh_collider, edits=True),
    Operation("pc.has_physics", bodies.has_physics),
    Operation("render_tool.add_mesh", bodies.add_mesh, edits=True),
    Operation("render_tool.add_light", bodies.add_light, edits=True),
    Operation("render_tool.screenshot", bodies.screenshot),
    Operation("asset_tool.exists", asset_tool.exists),
    Operation("asset_tool.bounds", asset_tool.bounds),
    Operation("prefab_tool.instantiate", entities.instantiate, edits=True),
    Operation("prefab_tool.create", entities.create_prefab, edits=True),
    Operation("general.wait_for_propagation", levels.wait_for_propagation),
    Operation("simulation_tool.enter_game_mode", levels.enter_game_mode),
    Operation("simulation_tool.exit_game_mode", levels.exit_game_mode),
    Operation("simulation_tool.is_in_game_mode", EditorSession.is_in_game_mode),
    Operation("simulation_tool.toggle_physics", levels.toggle_physics),
    Operation("ros2_tool.is_available", bodies.is_available),
    Operation("ros2_tool.missing_components", bodies.missing_components),
)
TABLE = {operation.name: operation for operation in OPERATIONS}
