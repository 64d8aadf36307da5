"""The parts of a pick-and-place episode."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, Literal, Protocol, Self

import msgspec

from proctor.core.errors import did_you_mean
from proctor.core.record import Record
from proctor.robots.stretch import CAMERAS, CONTROLS, JOINT_LIMITS, STRETCH, CameraConfig

DEFAULT_JOINT_POSITIONS = (0.0, 0.0, 0.0, 0.5, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
LARGEST_SET_POINT_S = 0.01
"""Set points that jump more seldom, but further, fling what the robot touches."""
LARGEST_COORDINATE_M = 100.0
LIGHTEST_KG, HEAVIEST_KG = 0.01, 1000.0
"""Of a thing. What is lighter is pressed centimetres deep into a table by a hand that leans on it."""
SAME_PLACE_M = 1e-3
ROUNDING = 1e-6
"""By which written joint positions may exceed their limits: 0.1300001."""
MOST_OBJECTS, MOST_ROWS, MOST_TOKENS = 200, 100_000, 10_000
LocationType = Literal["position", "container", "surface"]
SuccessType = Literal["grasp_and_lift", "place_at_location"]
Name = Annotated[str, msgspec.Meta(max_length=200)]
Text = Annotated[str, msgspec.Meta(max_length=10_000)]
Triple = tuple[float, float, float]
Quaternion = tuple[float, float, float, float]


def _check_numbers(name: str, values: tuple[float, ...]) -> None:
    if not all(abs(value) <= LARGEST_COORDINATE_M for value in values):  # nor is NaN
        raise ValueError(f"{name}: expected numbers within ±{LARGEST_COORDINATE_M:.0f}, found {list(values)}")


def _check_unit(name: str, quaternion: Quaternion) -> None:
    if not 0.99 < math.hypot(*quaternion) < 1.01:
        raise ValueError(f"{name}: expected a unit quaternion x, y, z, w, found {list(quaternion)}")


def _check_rows(name: str, rows: Sequence[tuple[float, ...]], widths: tuple[int, ...]) -> None:
    """Refuse a sequence of vectors that has no rows, or rows of several widths, or not only numbers."""
    if not rows:
        raise ValueError(f"{name}: expected at least one row, found none")
    for index, row in enumerate(rows):
        if len(row) not in widths or len(row) != len(rows[0]):
            expected = f"{len(rows[0])}, as the first row has" if index else " or ".join(map(str, widths))
            raise ValueError(f"{name}: row {index}: expected numbers: {expected}; found {len(row)}")
        if not all(map(math.isfinite, row)):
            raise ValueError(f"{name}: row {index}: expected finite numbers, found {list(row)}")


class InitPose(Record, frozen=True, kw_only=True):
    """How the robot stands at the start."""

    base: Triple = (0.0, 0.0, 0.0)
    """x, y and heading in the world, metres and radians."""
    joint_positions: tuple[float, ...] = DEFAULT_JOINT_POSITIONS
    """10 numbers by joint, or 7 by control. The first three are relative to `base`."""

    def __post_init__(self) -> None:
        _check_numbers("base", self.base)
        if abs(self.base[2]) > 2 * math.pi:
            raise ValueError(f"base: expected a heading in radians, within ±2π, found {self.base[2]}")
        limits = {
            len(CONTROLS): {control.name: (control.low, control.high) for control in CONTROLS},
            len(JOINT_LIMITS): JOINT_LIMITS,
        }.get(len(self.joint_positions))
        if limits is None:
            raise ValueError(f"joint_positions: expected 10 or 7 numbers, found {len(self.joint_positions)}")
        for (joint, (low, high)), value in zip(limits.items(), self.joint_positions, strict=True):
            if not low - ROUNDING <= value <= high + ROUNDING:  # nor is NaN
                raise ValueError(f"joint_positions: {joint}: expected {low:g} to {high:g}, found {value:g}")


class RobotSetup(Record, frozen=True, kw_only=True):
    """Which robot, and how it stands."""

    robot_type: str = STRETCH.robot_type
    dof: int = STRETCH.total_dof
    init_pose: InitPose = InitPose()
    nonholonomic: bool = False
    """Whether the base cannot move sideways, as the real one cannot."""
    camera_config: dict[str, CameraConfig] | None = None
    """Cameras that differ from the robot's own: `head`, `wrist`."""

    def __post_init__(self) -> None:
        if self.robot_type != STRETCH.robot_type:
            hint = did_you_mean(self.robot_type, [STRETCH.robot_type])
            raise ValueError(
                f"robot_type: expected '{STRETCH.robot_type}', found '{self.robot_type[:40]}'{hint}"
            )
        if self.dof != STRETCH.total_dof:
            raise ValueError(f"dof: expected {STRETCH.total_dof}, found {self.dof}")
        cameras = list(CAMERAS)
        for name in (self.camera_config or {}).keys() - set(cameras):
            hint = did_you_mean(name, cameras)
            raise ValueError(f"camera_config: expected {' or '.join(cameras)}, found '{name[:40]}'{hint}")


class TargetObject(Record, frozen=True, kw_only=True):
    """What to pick up: one of the scene's objects."""

    name: Name
    usd_path: Name | None = None
    initial_position: Triple | None = None
    """As in the scene's objects; an episode takes it from them if it is missing."""
    initial_rotation: Quaternion | None = None
    """x, y, z, w. As in the scene's objects, or left to them."""

    def __post_init__(self) -> None:
        if self.initial_position is not None:
            _check_numbers("initial_position", self.initial_position)
        if self.initial_rotation is not None:
            _check_unit("initial_rotation", self.initial_rotation)


class TargetLocation(Record, frozen=True, kw_only=True):
    """Where to put it."""

    type: LocationType = "position"
    position: Triple | None = None
    """In the world, metres. Needed by the type position."""
    radius: float = 0.1
    """Of the zone that is shown. What counts is `place_tolerance`."""
    object_name: Name | None = None
    """The container or surface; without it the one that is nearest to `position`, see `support_name`."""

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

    type: SuccessType = "grasp_and_lift"
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

    kind: Name
    """Such as `cup`; see `proctor.scenes.things`."""
    color: Name = ""
    size: Triple | None = None
    """Full extents in metres; the kind's own if missing."""


class SceneItem(Record, frozen=True, kw_only=True):
    """An object in the scene. Its origin is the middle of its bottom if graspable, its centre if not."""

    name: Name
    position: Triple
    rotation: Quaternion = (0.0, 0.0, 0.0, 1.0)
    """x, y, z, w."""
    scale: Triple = (1.0, 1.0, 1.0)
    static: bool = False
    graspable: bool = False
    usd_path: Name | None = None
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
        if not self.name.isprintable() or self.name.strip() != self.name or self.name[:1] in ("", "#"):
            expected = "a name in printable characters that begins with neither a blank nor #"
            raise ValueError(f"name: expected {expected}, found {self.name[:40]!r}")
        _check_numbers("position", self.position)
        _check_numbers("scale", self.scale)
        if min(self.scale) <= 0:
            raise ValueError(f"scale: expected factors above 0, found {list(self.scale)}")
        _check_unit("rotation", self.rotation)
        if self.mass is not None and not LIGHTEST_KG <= self.mass <= HEAVIEST_KG:
            expected = f"{LIGHTEST_KG} to {HEAVIEST_KG:.0f} kilograms"
            raise ValueError(f"mass: expected {expected}, found {self.mass}")
        if not 0 <= self.friction <= 10:
            raise ValueError(f"friction: expected a coefficient from 0 to 10, found {self.friction}")
        if self.static and self.graspable:
            raise ValueError("graspable: expected false for a thing that is static, found true")


class Instruction(Record, frozen=True, kw_only=True):
    """What the robot is told."""

    text: Text = ""
    tokens: Annotated[list[Name], msgspec.Meta(max_length=MOST_TOKENS)] | None = None


class ReferenceTrajectory(Record, frozen=True, kw_only=True):
    """How somebody did it, one entry per control step."""

    qpos_sequence: Annotated[list[tuple[float, ...]], msgspec.Meta(max_length=MOST_ROWS)]
    """7 or 10 numbers each."""
    ee_pose_sequence: Annotated[list[tuple[float, ...]], msgspec.Meta(max_length=MOST_ROWS)] | None = None
    """7 numbers each, in `base_link`: x, y, z, qw, qx, qy, qz."""
    keypoints: list[Name] | dict[Name, int] = msgspec.field(default_factory=list)
    """Names of moments, or their names with the index of their step."""

    def __post_init__(self) -> None:
        _check_rows("qpos_sequence", self.qpos_sequence, (7, 10))
        rows = len(self.qpos_sequence)
        if self.ee_pose_sequence is not None:
            _check_rows("ee_pose_sequence", self.ee_pose_sequence, (7,))
            if len(self.ee_pose_sequence) != rows:
                found = len(self.ee_pose_sequence)
                raise ValueError(
                    f"ee_pose_sequence: expected {rows} rows, as in qpos_sequence, found {found}"
                )
        for name, index in dict(self.keypoints).items() if isinstance(self.keypoints, dict) else ():
            if not 0 <= index < rows:
                raise ValueError(f"keypoints: {name[:40]}: expected 0 to {rows - 1}, found {index}")


class SimParams(Record, frozen=True, kw_only=True):
    """Time and gravity."""

    max_steps: int = 500
    """How many control steps the agent has."""
    time_step: float = 0.01
    """Seconds between set points, of which there is one every 10 ms at least; cut into physics steps of at
    most 2 ms."""
    control_period: float = 0.1
    """Seconds between actions."""
    physics_engine: Name | None = None
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
        parts = self.control_period / self.time_step
        if abs(parts - round(parts)) > 1e-6:
            raise ValueError(
                f"time_step: expected a part of the control period of {self.control_period} s, "
                f"found {self.time_step}"
            )
        _check_numbers("gravity", self.gravity)

    @property
    def set_points_per_action(self) -> int:
        """How often the set points move during one action."""
        pieces = math.ceil(self.time_step / LARGEST_SET_POINT_S - 1e-9)
        return round(self.control_period / self.time_step) * pieces

    @property
    def set_point_s(self) -> float:
        """Seconds from one set point to the next."""
        return self.time_step / math.ceil(self.time_step / LARGEST_SET_POINT_S - 1e-9)

    @property
    def physics_steps_per_set_point(self) -> int:
        """How many physics steps there are from one set point to the next."""
        return math.ceil(self.set_point_s / 0.002 - 1e-9)  # up to which contacts are trustworthy


class TabletopSetup(Protocol):
    """What stands where at the start of an episode: all that a world is made of."""

    @property
    def episode_id(self) -> str:
        """For messages."""

    @property
    def robot_config(self) -> RobotSetup:
        """Where the robot is, and its cameras."""

    @property
    def task_goal(self) -> TaskGoal:
        """What to pick up, and where to put it."""

    @property
    def scene_objects(self) -> list[SceneItem]:
        """Furniture and what stands on it."""

    @property
    def sim_params(self) -> SimParams:
        """Time and gravity."""

    @property
    def target_name(self) -> str:
        """Which of the scene's objects is to be picked up; raises UserError where it does not say."""

    def item(self, name: str) -> SceneItem:
        """Return the scene's object of this name."""

    def without_movables(self) -> Self:
        """Return the same with static objects only, and nothing to pick up."""


def cameras_of(episode: TabletopSetup) -> tuple[CameraConfig, CameraConfig]:
    """Return the head's and the wrist's camera: the episode's own, else the robot's."""
    own = episode.robot_config.camera_config or {}
    return own.get("head", CAMERAS["head"]), own.get("wrist", CAMERAS["wrist"])
