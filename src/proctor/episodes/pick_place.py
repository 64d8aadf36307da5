"""One pick-and-place task: what stands where, what the robot is told, when it has succeeded."""

from __future__ import annotations

import math
from typing import Any, ClassVar, Literal, TypeVar

import msgspec

from proctor.core.errors import did_you_mean
from proctor.robots.stretch import STRETCH, CameraConfig

TASK: Literal["pick_and_place"] = "pick_and_place"
DEFAULT_JOINT_POSITIONS = (0.0, 0.0, 0.0, 0.5, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
LARGEST_SUBSTEP_S = 0.002
"""Contacts are trustworthy up to this."""
LARGEST_COORDINATE_M = 100.0
SAME_PLACE_M = 1e-3
Triple = tuple[float, float, float]
Quaternion = tuple[float, float, float, float]
T = TypeVar("T", bound=msgspec.Struct)


def _check_numbers(name: str, values: tuple[float, ...]) -> None:
    if not all(abs(value) <= LARGEST_COORDINATE_M for value in values):  # nor is NaN
        raise ValueError(f"{name}: expected numbers within ±{LARGEST_COORDINATE_M:.0f}, found {list(values)}")


class Record(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A part of an episode. `record.name`, `record["name"]` and `record.get("name")` read the same value."""

    def __getitem__(self, key: str) -> Any:
        if key not in self.__struct_fields__:
            raise KeyError(key)
        return getattr(self, key)

    def get(self, key: str, default: Any = None) -> Any:
        """Return a value, or the default where there is none."""
        value = getattr(self, key, None) if key in self.__struct_fields__ else None
        return default if value is None else value


class InitPose(Record, frozen=True, kw_only=True):
    """How the robot stands at the start."""

    base: Triple = (0.0, 0.0, 0.0)
    """x, y and heading in the world, metres and radians."""
    joint_positions: tuple[float, ...] = DEFAULT_JOINT_POSITIONS
    """10 numbers by joint, or 7 by control. The first three are relative to `base`."""

    def __post_init__(self) -> None:
        _check_numbers("base", self.base)
        if len(self.joint_positions) not in (7, 10):
            raise ValueError(f"joint_positions: expected 10 or 7 numbers, found {len(self.joint_positions)}")
        _check_numbers("joint_positions", self.joint_positions)


class RobotSetup(Record, frozen=True, kw_only=True):
    """Which robot, and how it stands."""

    robot_type: str = STRETCH.robot_type
    dof: int = STRETCH.total_dof
    init_pose: InitPose = InitPose()
    nonholonomic: bool = False
    """Whether the base cannot move sideways, as the real one cannot."""
    camera_config: dict[Literal["head", "wrist"], CameraConfig] | None = None
    """Cameras that differ from the robot's own."""

    def __post_init__(self) -> None:
        if self.robot_type != STRETCH.robot_type:
            hint = did_you_mean(self.robot_type, [STRETCH.robot_type])
            raise ValueError(
                f"robot_type: expected '{STRETCH.robot_type}', found '{self.robot_type[:40]}'{hint}"
            )
        if self.dof != STRETCH.total_dof:
            raise ValueError(f"dof: expected {STRETCH.total_dof}, found {self.dof}")


class TargetObject(Record, frozen=True, kw_only=True):
    """What to pick up: one of the scene's objects."""

    name: str
    usd_path: str | None = None
    initial_position: Triple | None = None
    """As in the scene's objects, or left to them."""
    initial_rotation: Quaternion | None = None
    """x, y, z, w."""


class TargetLocation(Record, frozen=True, kw_only=True):
    """Where to put it."""

    type: Literal["position", "container", "surface"] = "position"
    position: Triple | None = None
    """In the world, metres. Needed by the type position."""
    radius: float = 0.1
    """Of the zone that is shown. What counts is `place_tolerance`."""
    object_name: str | None = None
    """The container or surface; without it the one that is nearest to `position`."""

    def __post_init__(self) -> None:
        if not 0 < self.radius <= LARGEST_COORDINATE_M:
            raise ValueError(f"radius: expected metres above 0, found {self.radius}")
        if self.position is not None:
            _check_numbers("position", self.position)
        elif self.type == "position" or self.object_name is None:
            needs = "a position" if self.type == "position" else "an object_name or a position"
            raise ValueError(f"a {self.type} needs {needs}")


class SuccessCriteria(Record, frozen=True, kw_only=True):
    """When it is done. Grasping and lifting always count; placing whenever there is a target location."""

    type: Literal["grasp_and_lift", "place_at_location"] = "grasp_and_lift"
    lift_height: float = 0.1
    """Metres above where the object stood."""
    place_tolerance: float = 0.05
    """Metres from the target position."""

    def __post_init__(self) -> None:
        for name in ("lift_height", "place_tolerance"):
            value = getattr(self, name)
            if not 0 < value <= LARGEST_COORDINATE_M:
                raise ValueError(f"{name}: expected metres above 0, found {value}")


class TaskGoal(Record, frozen=True, kw_only=True):
    """What to do. In code it may be empty; files must name an object."""

    target_object: TargetObject | None = None
    target_location: TargetLocation | None = None
    success_criteria: SuccessCriteria = SuccessCriteria()


class Shape(Record, frozen=True, kw_only=True):
    """A thing that is made rather than read from a file."""

    kind: str
    """Such as `cup`; see `proctor.scenes.things`."""
    color: str = ""
    size: Triple | None = None
    """Full extents in metres; the kind's own if missing."""


class SceneItem(Record, frozen=True, kw_only=True):
    """A thing in the scene.

    Graspable things have their origin at the middle of their bottom, furniture at its centre.
    """

    name: str
    position: Triple
    rotation: Quaternion = (0.0, 0.0, 0.0, 1.0)
    """x, y, z, w."""
    scale: Triple = (1.0, 1.0, 1.0)
    static: bool = False
    graspable: bool = False
    usd_path: str | None = None
    """A mesh file beside the dataset (.usd, .glb, .gltf, .obj, .stl), or the name of a thing that is made."""
    shape: Shape | None = None
    """What to make, instead of a file."""
    fallback: Shape | None = None
    """What to make if the file is missing. Without it a missing file is an error."""
    mass: float | None = None
    """Kilograms; what such a thing weighs, if missing."""
    friction: float = 0.8
    """Against everything but the gripper's pads."""

    def __post_init__(self) -> None:
        if not self.name:
            raise ValueError("name: expected a name, found an empty string")
        _check_numbers("position", self.position)
        _check_numbers("scale", self.scale)
        if min(self.scale) <= 0:
            raise ValueError(f"scale: expected factors above 0, found {list(self.scale)}")
        if not 0.99 < math.hypot(*self.rotation) < 1.01:
            raise ValueError(f"rotation: expected a unit quaternion x, y, z, w, found {list(self.rotation)}")
        if self.mass is not None and not 0 < self.mass <= 1000:
            raise ValueError(f"mass: expected kilograms above 0, found {self.mass}")
        if not 0 <= self.friction <= 10:
            raise ValueError(f"friction: expected a coefficient from 0 to 10, found {self.friction}")


class Instruction(Record, frozen=True, kw_only=True):
    """What the robot is told."""

    text: str = ""
    tokens: list[str] | None = None


class ReferenceTrajectory(Record, frozen=True, kw_only=True):
    """How somebody did it, one entry per control step."""

    qpos_sequence: list[tuple[float, ...]]
    """7 or 10 numbers each."""
    ee_pose_sequence: list[tuple[float, ...]] | None = None
    """7 numbers each, in `base_link`."""
    keypoints: list[str] | dict[str, int] = []
    """Names of moments, or their names with the index of their step."""


class SimParams(Record, frozen=True, kw_only=True):
    """Time and gravity."""

    max_steps: int = 500
    """How many control steps the agent has."""
    time_step: float = 0.01
    """Seconds between set points; cut into physics steps of at most 2 ms."""
    control_period: float = 0.1
    """Seconds between actions."""
    physics_engine: str | None = None
    """Recorded, not obeyed: physics is MuJoCo's."""
    gravity: Triple = (0.0, 0.0, -9.81)

    def __post_init__(self) -> None:
        if not 1 <= self.max_steps <= 100_000:
            raise ValueError(f"max_steps: expected 1 to 100000, found {self.max_steps}")
        if not 1e-4 <= self.time_step <= 0.1:
            raise ValueError(f"time_step: expected 0.0001 to 0.1 s, found {self.time_step}")
        if not self.time_step <= self.control_period <= 10:
            raise ValueError(
                f"control_period: expected time_step ({self.time_step}) to 10 s, found {self.control_period}"
            )
        if abs(self.control_period / self.time_step - self.set_points_per_action) > 1e-6:
            raise ValueError(
                f"time_step: expected a part of the control period of {self.control_period} s, "
                f"found {self.time_step}"
            )
        _check_numbers("gravity", self.gravity)

    @property
    def set_points_per_action(self) -> int:
        """How often the set points move during one action."""
        return round(self.control_period / self.time_step)

    @property
    def physics_steps_per_set_point(self) -> int:
        """How many physics steps there are from one set point to the next."""
        return math.ceil(self.time_step / LARGEST_SUBSTEP_S - 1e-9)


class PickAndPlaceEpisode(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A pick-and-place episode, as the design documents define it.

    In code the parts may be given as dicts; files are checked strictly (see `episodes.datasets`).
    """

    task: ClassVar[str] = TASK

    episode_id: str
    task_type: Literal["pick_and_place"] = TASK
    scene_id: str = "table_setup_001"
    robot_config: RobotSetup = RobotSetup()
    task_goal: TaskGoal = TaskGoal()
    scene_objects: list[SceneItem] = []
    instruction: Instruction = Instruction()
    reference_trajectory: ReferenceTrajectory | None = None
    sim_params: SimParams = SimParams()
    language: str = "en"
    split: str | None = None
    assets_path: str | None = None
    """The folder of the things' files; the dataset's own if missing."""

    def __post_init__(self) -> None:
        for name, kind in PARTS.items():
            given = getattr(self, name)
            if given is None and name != "reference_trajectory":
                given = {}
            if isinstance(given, dict):
                msgspec.structs.force_setattr(self, name, _converted(name, given, kind))
        items = [
            _converted(f"scene_objects[{index}]", item, SceneItem) if isinstance(item, dict) else item
            for index, item in enumerate(self.scene_objects or ())
        ]
        msgspec.structs.force_setattr(self, "scene_objects", items)
        if not self.episode_id:
            raise ValueError("episode_id: expected a name, found an empty string")

    @property
    def step_limit(self) -> int:
        """How many actions the agent has."""
        return self.sim_params.max_steps

    def item(self, name: str) -> SceneItem:
        """Return the scene's object of this name.

        Raises:
            KeyError: There is none.
        """
        for item in self.scene_objects:
            if item.name == name:
                return item
        raise KeyError(name)


PARTS: dict[str, type[msgspec.Struct]] = {
    "robot_config": RobotSetup,
    "task_goal": TaskGoal,
    "instruction": Instruction,
    "reference_trajectory": ReferenceTrajectory,
    "sim_params": SimParams,
}


def _converted(name: str, given: Any, kind: type[T]) -> T:
    try:
        return msgspec.convert(given, kind)
    except msgspec.ValidationError as error:
        raise ValueError(str(error).replace("`$", f"`{name}")) from None
