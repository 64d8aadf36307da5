"""What the agent can be asked to do: every operation by its name, and what starts it."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from difflib import get_close_matches
from inspect import Parameter, signature
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from o3de_sim.editor.arguments import Argument, shown
from o3de_sim.editor.azlmbr_calls import Engine
from o3de_sim.editor.operations import asset_tool, bodies, entities, levels
from o3de_sim.editor.operations.selftest import selftest
from o3de_sim.editor.session import EditorSession, GivenEntity
from o3de_sim.errors import O3DEError


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


class Dispatcher:
    """Starts operations, from their names and arguments: the same for both ways to reach the engine."""

    def __init__(self, engine: Engine) -> None:
        self._session = EditorSession(engine, list(TABLE))

    @property
    def frame_count(self) -> int:
        """How many frames have passed."""
        return self._session.engine.frame_count

    def start(self, op: str, args: dict[str, Any]) -> Generator[None, None, Any]:
        """Check everything, and return the operation, ready to run: resume it once in each frame.

        It returns the result, which is JSON. O3DEError comes now or when it runs.
        """
        operation = TABLE.get(op)
        if operation is None:
            raise O3DEError("unknown_op", f"no operation {shown(op)}{_like(op, list(TABLE))}")
        values = _checked(operation, args)
        self._session.notice_changes()
        end = self._session.what_ends_play() if operation.edits else None
        if end is not None:
            raise O3DEError(
                "bad_state",
                f"{op} changes the level, which cannot be done while the game runs: {end} ends it",
            )
        for argument in operation.arguments:
            found = values[argument.name]
            if argument.kind.is_entity and isinstance(found, list):
                values[argument.name] = [self._entity(operation, argument, text) for text in found]
            elif argument.kind.is_entity and found is not None:
                values[argument.name] = self._entity(operation, argument, found)
        self._session.waiting_for = ""
        return _run(self._session, operation, values)

    def why_late(self, frames: int) -> str:
        """Return what probably keeps an operation from its end, `frames` frames after it began."""
        waited = self._session.waiting_for or "its end"
        if frames == 0:
            return (
                f"waited for {waited}, but no frame has passed: the Editor has no focus and "
                "ed_keepEditorActive is 0, a dialog waits for an answer, or a level is being loaded"
            )
        state = "in game mode" if self._session.is_in_game_mode() else "not in game mode"
        return f"waited for {waited} through {frames} frames; the Editor is {state}, and its log may say more"

    def _entity(self, operation: Operation, argument: Argument, text: str) -> GivenEntity:
        entity = self._session.entity(text)
        if entity.is_in_game and argument.kind.must_be_edited:
            raise O3DEError(
                "bad_state",
                f'{operation.name}: "{argument.name}" is {text}, which belongs to the running game; '
                "only tc.get_position and tc.get_rotation take such an entity",
            )
        return entity


def _checked(operation: Operation, args: dict[str, Any]) -> dict[str, Any]:
    known = [argument.name for argument in operation.arguments]
    for name in args:
        if name not in known:
            takes = ", ".join(known) or "none"
            raise O3DEError(
                "bad_request",
                f"{operation.name} has no argument {shown(name)}{_like(name, known)}; it takes {takes}",
            )
    return {argument.name: argument.value(operation.name, args) for argument in operation.arguments}


def _like(word: str, words: list[str]) -> str:
    close = get_close_matches(word[:80], words, n=3)
    return f"; did you mean {' or '.join(close)}?" if close else ""


def _run(session: EditorSession, operation: Operation, values: dict[str, Any]) -> Generator[None, None, Any]:
    result = operation.function(session, **values)
    if isinstance(result, Generator):
        result = yield from result
    return result
