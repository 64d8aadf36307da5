"""The tools of the agent: each method is one operation of the table, with its name, arguments and docstring.

A method also takes `timeout_s`, if not the agent's own. It raises O3DEError where the engine did not do what
it was asked.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from inspect import Parameter, Signature
from types import MethodType
from typing import Any, ClassVar, Generic, TypeVar

from o3de_sim.editor.operation_table import TABLE
from o3de_sim.o3de_api.interface.math import Quaternion, Vector3

T = TypeVar("T")
Call = Callable[..., Any]
"""`O3DEAgent.call`: takes the operation, its arguments and, if not the agent's own, a timeout."""


class EntityId(str):
    """An entity of the open level, in the engine's own words: `[1234]`. It ends with the level."""

    __slots__ = ()


@dataclass(frozen=True)
class Bounds:
    """The box around a mesh, in the file's own axes and units, which an entity that shows it has, too."""

    low: Vector3
    high: Vector3


class Tool:
    """Some operations of the table, by one name."""

    NAME: ClassVar[str]

    def __init__(self, call: Call) -> None:
        self._call = call


class _Method(Generic[T]):
    """A method of a tool: sends the arguments of the operation of its name, and converts the result."""

    def __init__(self, convert: Callable[[Any], T]) -> None:
        self._convert = convert

    def __set_name__(self, owner: type[Tool], name: str) -> None:
        operation = TABLE[f"{owner.NAME}.{name}"]
        keyword = partial(Parameter, kind=Parameter.POSITIONAL_OR_KEYWORD)
        signature = Signature(
            [
                keyword("self"),
                *(
                    keyword(each.name, default=Parameter.empty if each.is_needed else each.default)
                    for each in operation.arguments
                ),
                keyword("timeout_s", default=None),
            ]
        )

        def method(*positional: Any, **named: Any) -> T:
            given = signature.bind(*positional, **named).arguments
            call, timeout_s = given.pop("self")._call, given.pop("timeout_s", None)  # noqa: SLF001
            here = [each for each in operation.arguments if each.name in given]
            args = {each.name: each.encode(given[each.name]) for each in here}
            return self._convert(call(operation.name, args, timeout_s))

        method.__name__, method.__qualname__ = name, f"{owner.__name__}.{name}"
        method.__doc__ = operation.function.__doc__
        method.__signature__ = signature  # type: ignore[attr-defined]
        self._method = method

    def __get__(self, tool: Tool | None, owner: type[Tool]) -> Callable[..., T]:
        return self._method if tool is None else MethodType(self._method, tool)


def _nothing(_: Any) -> None:
    return None


def _entities(found: list[str]) -> list[EntityId]:
    return [EntityId(text) for text in found]


def _entity_or_none(found: str | None) -> EntityId | None:
    return None if found is None else EntityId(found)


def _bounds(found: dict[str, list[float]]) -> Bounds:
    return Bounds(Vector3.of(found["low"]), Vector3.of(found["high"]))


class EntityTool(Tool):
    """Entities: made, found, named, ordered, deleted."""

    NAME = "entity_tool"
    create = _Method(EntityId)
    find = _Method(_entities)
    find_game = _Method(_entity_or_none)
    delete = _Method(_nothing)
    exists = _Method(bool)
    get_name = _Method(str)
    set_name = _Method(_nothing)
    set_parent = _Method(_nothing)
    children = _Method(_entities)
    components = _Method(list[bool])


class EditorTool(Tool):
    """Levels. Opening and making them takes seconds to minutes: give them time."""

    NAME = "editor_tool"
    create_new_entity_at_position = _Method(EntityId)
    create_level = _Method(_nothing)
    open_level = _Method(_nothing)
    save_level = _Method(_nothing)
    level_exists = _Method(bool)
    current_level = _Method(str)


class TransformTool(Tool):
    """Where entities are. Positions are metres and, as rotations, in the world frame.

    A rotation is a `Quaternion`, or four numbers w, x, y, z.
    """

    NAME = "tc"
    get_position = _Method(Vector3.of)
    set_position = _Method(_nothing)
    get_rotation = _Method(Quaternion.from_xyzw)
    set_rotation = _Method(_nothing)
    set_pose = _Method(_nothing)
    set_scale = _Method(_nothing)


class PhysicsTool(Tool):
    """Rigid bodies and colliders."""

    NAME = "pc"
    add_rigid_body = _Method(_nothing)
    add_colliders = _Method(_nothing)
    add_mesh_collider = _Method(_nothing)
    has_physics = _Method(bool)


class RenderTool(Tool):
    """Meshes, lights and screenshots."""

    NAME = "render_tool"
    add_mesh = _Method(_nothing)
    add_light = _Method(_nothing)
    screenshot = _Method(str)


class AssetTool(Tool):
    """What the Asset Processor has made of the project's files."""

    NAME = "asset_tool"
    exists = _Method(list[bool])
    bounds = _Method(_bounds)


class PrefabTool(Tool):
    """Prefabs. Paths are relative to the project's folder."""

    NAME = "prefab_tool"
    instantiate = _Method(EntityId)
    create = _Method(EntityId)


class GeneralTool(Tool):
    """Frames."""

    NAME = "general"
    wait_for_propagation = _Method(_nothing)


class SimulationTool(Tool):
    """Game mode, and the Editor's own physics."""

    NAME = "simulation_tool"
    enter_game_mode = _Method(_nothing)
    exit_game_mode = _Method(_nothing)
    is_in_game_mode = _Method(bool)
    toggle_physics = _Method(_nothing)


class Ros2Tool(Tool):
    """The ROS 2 Gems of the project."""

    NAME = "ros2_tool"
    is_available = _Method(bool)
    missing_components = _Method(list[str])
