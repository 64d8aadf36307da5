"""One pick-and-place task: what stands where, what the robot is told, when it has succeeded."""

from __future__ import annotations

import math
from typing import Annotated, Any, ClassVar, Literal, TypeVar

import msgspec

from proctor.core.errors import UserError, did_you_mean
from proctor.core.record import DataclassStruct
from proctor.scenes.tabletop_parts import (
    MOST_OBJECTS,
    Instruction,
    Name,
    ReferenceTrajectory,
    RobotSetup,
    SceneItem,
    SimParams,
    TaskGoal,
)

TASK: Literal["pick_and_place"] = "pick_and_place"
T = TypeVar("T")


class PickAndPlaceEpisode(DataclassStruct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A pick-and-place episode, as the design documents define it.

    In code the parts may be given as dicts; files are checked strictly (see `exams.datasets`).
    """

    task: ClassVar[str] = TASK

    episode_id: Name
    task_type: Literal["pick_and_place"] = TASK
    scene_id: Name = "table_setup_001"
    robot_config: RobotSetup = RobotSetup()
    task_goal: TaskGoal = TaskGoal()
    scene_objects: Annotated[list[SceneItem], msgspec.Meta(max_length=MOST_OBJECTS)] = msgspec.field(
        default_factory=list
    )
    instruction: Instruction = Instruction()
    reference_trajectory: ReferenceTrajectory | None = None
    sim_params: SimParams = SimParams()
    language: Name = "en"
    split: Name | None = None
    assets_path: str | None = None
    """The folder of the things' files; the dataset's own if missing."""

    def __post_init__(self) -> None:
        for name, text in TEXTS.items():
            _checked(name, getattr(self, name), text)
        if self.task_type != TASK:
            hint = did_you_mean(self.task_type, [TASK])
            raise ValueError(f"task_type: expected '{TASK}', found '{self.task_type[:40]}'{hint}")
        for name, kind in PARTS.items():
            given = getattr(self, name)
            if name == "reference_trajectory" and (given is None or isinstance(given, kind)):
                continue  # it may be long, and a typed one has no parts that could be dicts
            self._set(name, _converted(name, {} if given is None else given, kind))
        items = enumerate(self.scene_objects or ())
        self._set("scene_objects", [_converted(f"scene_objects[{i}]", item, SceneItem) for i, item in items])
        if not self.episode_id:
            raise ValueError("episode_id: expected a name, found an empty string")
        if not (self.assets_path or "").isprintable():
            raise ValueError(f"assets_path: expected a folder, found {self.assets_path!r:.60}")
        target = self.task_goal.target_object
        if target is not None and target.initial_position is None and target.name in self.object_names:
            stands = msgspec.structs.replace(target, initial_position=self.item(target.name).position)
            self._set("task_goal", msgspec.structs.replace(self.task_goal, target_object=stands))

    def _set(self, name: str, value: Any) -> None:
        msgspec.structs.force_setattr(self, name, value)

    @property
    def step_limit(self) -> int:
        """How many actions the agent has."""
        return self.sim_params.max_steps

    @property
    def target_name(self) -> str:
        """Which of the scene's objects is to be picked up. Raises UserError if the episode does not say."""
        target = self.task_goal.target_object
        if target is None:
            raise UserError(f"episode '{self.episode_id}' names no object to pick up")
        return target.name

    @property
    def object_names(self) -> list[str]:
        """What the scene's objects are called."""
        return [item.name for item in self.scene_objects]

    def item(self, name: str) -> SceneItem:
        """Return the scene's object of this name."""
        for item in self.scene_objects:
            if item.name == name:
                return item
        raise KeyError(name)

    def without_movables(self) -> PickAndPlaceEpisode:
        """Return the episode with static objects only, and nothing to pick up."""
        standing = [item for item in self.scene_objects if item.static]
        return msgspec.structs.replace(self, scene_objects=standing, task_goal=TaskGoal())

    def support_name(self) -> str | None:
        """Return the container or surface that the object shall go into or onto; None for a mere position.

        Where the target location does not name it, it is, by the horizontal distance of their origins from
        the position, the nearest other object within `radius` for a container (one that can move before one
        that cannot, since a table may be centred below a bowl), and the nearest static object for a surface.
        Raises UserError if there is none.
        """
        goal, location = self.task_goal, self.task_goal.target_location
        if location is None or location.type == "position":
            return None
        target = goal.target_object.name if goal.target_object else None
        others = [item for item in self.scene_objects if item.name != target]
        if location.object_name is not None:
            if location.object_name not in [item.name for item in others]:
                raise UserError(f"episode '{self.episode_id}': no object '{location.object_name}' to aim at")
            return location.object_name
        x, y, z = location.position or (math.nan,) * 3
        away = {item.name: math.hypot(item.position[0] - x, item.position[1] - y) for item in others}
        if location.type == "container":
            fitting = [item for item in others if away[item.name] <= location.radius]
        else:
            fitting = [item for item in others if item.static]
        if not fitting:
            where = f"within {location.radius} m of" if location.type == "container" else "static, to have"
            raise UserError(f"episode '{self.episode_id}': no other object is {where} the position")

        def key(item: SceneItem) -> tuple[bool, float, float]:
            is_last_resort = location.type == "container" and item.static
            return is_last_resort, away[item.name], abs(item.position[2] - z)

        return min(fitting, key=key).name


PARTS: dict[str, type[msgspec.Struct]] = {
    "robot_config": RobotSetup,
    "task_goal": TaskGoal,
    "instruction": Instruction,
    "reference_trajectory": ReferenceTrajectory,
    "sim_params": SimParams,
}


TEXTS: dict[str, Any] = {
    "episode_id": Name,
    "task_type": str,
    "scene_id": Name,
    "language": Name,
    "split": Name | None,
    "assets_path": str | None,
}
"""Fields that have the same types in code as in files."""


def _converted(name: str, given: Any, kind: type[T]) -> T:
    """Check a part that was given as a dict, or as a typed part that may have dicts in it."""
    return _checked(name, msgspec.to_builtins(given, enc_hook=_listed), kind)


def _checked(name: str, given: Any, kind: type[T]) -> T:
    """Return a value as the type that it has in files."""
    try:
        return msgspec.convert(given, kind)
    except msgspec.ValidationError as error:
        text = str(error) if "`$" in str(error) else f"{error} - at `$`"
        raise ValueError(text.replace("`$", f"`{name}")) from None


def _listed(given: Any) -> Any:
    if not hasattr(given, "tolist"):
        raise TypeError(f"expected JSON values or arrays, found {type(given).__name__}")
    return given.tolist()
