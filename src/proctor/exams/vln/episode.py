"""One vision-and-language navigation task: where the robot starts, what it is told, where it should stop."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import msgspec

from proctor.core.errors import UserError
from proctor.core.geometry import distance, quaternion_of_euler_deg, yaw_of_quaternion
from proctor.core.record import DataclassStruct
from proctor.core.types import Action, Vector3

DEFAULT_MAX_STEPS = 500
DEFAULT_SUCCESS_THRESHOLD_M = 0.2  # how near to the goal a STOP counts, where neither episode nor run says it
ORIGIN = Vector3(0.0, 0.0, 0.0)
LARGEST_COORDINATE = 1e4
"""Of metres or degrees. More is a mistake, such as millimetres."""
ROUNDING_M = 0.05  # by how much a stored geodesic distance may be less than the straight line


class Origin(DataclassStruct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """What a public dataset says of an episode beyond what an exam needs, so that it can be written back."""

    format: Literal["r2r-ce", "rxr-ce"]
    scene_id: str
    """As the dataset writes it, such as `mp3d/17DRP5sb8fy/17DRP5sb8fy.glb`."""
    trajectory_id: int | str | None = None
    instruction_id: str | None = None
    """RxR's; its prediction files go by it."""
    geodesic_distance: float | None = None
    """From start to goal by the dataset's own account, in metres. Without a map, SPL is measured by it."""
    waypoints: list[Vector3] | None = None
    """The sparse `reference_path` of VLN-CE, in our axes: too sparse for nDTW."""


class Episode(DataclassStruct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A VLN episode, as the user's documents define it.

    In code, positions and rotations may be given as `{"x", "y", "z"}` dicts or as objects with x, y and
    z, and fields have defaults; files are checked strictly (see `exams.datasets`).
    """

    task: ClassVar[str] = "vln"

    episode_id: str = "episode"
    scene_id: str = ""
    start_position: Vector3 = ORIGIN
    start_rotation: Vector3 = ORIGIN
    """Euler angles in degrees, applied Z·Y·X."""
    goal_position: Vector3 | None = ORIGIN
    """Where to stop; null where a challenge withholds it, which makes an episode that cannot be scored."""
    instruction: str = ""
    scene_config_path: str | None = None
    """The scene file. Without it, `scene_id` names a file in `scenes` beside the dataset, or a mesh there."""
    max_steps: int | None = None
    """How many actions the agent has; 500 if missing."""
    success_threshold: float | None = None
    """Metres from the goal within which a STOP counts; the run's default if missing."""
    reference_path: list[Vector3] | None = None
    """The path a person would take, dense. Without it nDTW, SDTW and CLS are not measured."""
    reference_actions: list[Action] | None = None
    language: str = "en"
    level: Literal["short", "medium", "long"] | None = None
    """How much the instruction says."""
    split: str | None = None
    origin: Origin | None = None
    """Set for episodes of public datasets."""

    def __post_init__(self) -> None:
        for name in ("start_position", "start_rotation", "goal_position"):
            if name != "goal_position" or self.goal_position is not None:
                self._set(name, _vector(name, getattr(self, name)))
        if self.reference_path is not None:
            if not self.reference_path:
                raise ValueError("reference_path: expected at least one point, found none")
            self._set("reference_path", [_vector("reference_path", p) for p in self.reference_path])
        if isinstance(self.origin, Mapping):
            try:
                self._set("origin", msgspec.convert(self.origin, Origin))
            except msgspec.ValidationError as error:
                raise ValueError(f"origin: {error}") from None
        if not self.episode_id:
            raise ValueError("episode_id: expected a name, found an empty string")
        if self.max_steps is not None and self.max_steps < 1:
            raise ValueError(f"max_steps: expected at least 1, found {self.max_steps}")
        if self.success_threshold is not None and not self.success_threshold > 0:
            raise ValueError(f"success_threshold: expected metres above 0, found {self.success_threshold}")

    def _set(self, name: str, value: Any) -> None:
        msgspec.structs.force_setattr(self, name, value)

    @property
    def goal(self) -> Vector3:
        """Where to stop. Raises UserError if it is withheld."""
        if self.goal_position is None:
            raise UserError(f"episode '{self.episode_id}' has no goal: it cannot be scored")
        return self.goal_position

    @property
    def start_yaw(self) -> float:
        """The heading at the start, in radians."""
        return yaw_of_quaternion(quaternion_of_euler_deg(self.start_rotation))

    @property
    def step_limit(self) -> int:
        """How many actions the agent has."""
        return self.max_steps if self.max_steps is not None else DEFAULT_MAX_STEPS


def stored_geodesic_m(episode: Episode) -> float | None:
    """Return the dataset's distance from start to goal; None if missing or below the straight line."""
    stored_m = episode.origin.geodesic_distance if episode.origin is not None else None
    if stored_m is None or not 0 < stored_m < math.inf:
        return None
    straight_m = distance(episode.start_position, episode.goal)
    return stored_m if stored_m >= straight_m - ROUNDING_M else None


def _vector(name: str, given: Any) -> Vector3:
    try:
        vector = Vector3.of(given)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name}: {error}") from None
    if max(abs(vector.x), abs(vector.y), abs(vector.z)) > LARGEST_COORDINATE:
        raise ValueError(f"{name}: expected numbers within ±{LARGEST_COORDINATE:.0f}, found {vector}")
    return vector
