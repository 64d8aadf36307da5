"""The nouns that travel between modules.

World frame: right-handed, Z up, metres; robot forward is +X, LEFT is +yaw. Quaternions are wxyz.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Iterable, Mapping
from typing import Any, Literal, NamedTuple, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from proctor.core.record import Record

Observation: TypeAlias = dict[str, Any]
"""What a policy sees. VLN: `rgb` uint8 (H, W, 3), `depth` uint16 millimetres (H, W), 0 = no return."""

Info: TypeAlias = dict[str, Any]
"""Ground truth for the evaluator. A policy never gets it, unless it is privileged."""

Array: TypeAlias = NDArray[np.float64]


class Action(enum.IntEnum):
    """The four actions of vision-and-language navigation."""

    STOP = 0
    FORWARD = 1
    LEFT = 2
    RIGHT = 3


def checked_action(action: Any) -> Action:
    """Return the action as an `Action`; a ValueError if it is not an integer from 0 to 3."""
    if isinstance(action, int | np.integer) and not isinstance(action, bool) and 0 <= action <= 3:
        return Action(int(action))
    raise ValueError(f"expected an action from 0 to 3, found {action!r}")


STEP_M = 0.25
"""How far FORWARD goes."""
TURN_RAD = math.radians(15)
"""How far LEFT and RIGHT turn."""
SECTOR_RAD = math.radians(30)
"""Half of what lies ahead of a robot."""


class Vector3(Record, frozen=True, gc=False):
    """A point, a direction or a triple of angles. `v.x` and `v["x"]` read the same number."""

    x: float
    y: float
    z: float

    def array(self) -> Array:
        """Return the triple as a numpy array."""
        return np.array([self.x, self.y, self.z])

    @classmethod
    def of(cls, value: Any) -> Vector3:
        """Make a vector from three finite numbers, or an object or a mapping with x, y and z."""
        is_plain = isinstance(value, cls) and {type(value.x), type(value.y), type(value.z)} <= {float, int}
        if is_plain and math.isfinite(value.x + value.y + value.z):  # numbers of numpy are made plain below
            plain: Vector3 = value
            return plain
        if isinstance(value, Mapping):
            if set(value) != {"x", "y", "z"}:
                raise ValueError(f"expected the keys x, y and z, found {sorted(map(str, value))}")
            triple = [value["x"], value["y"], value["z"]]
        elif hasattr(value, "x"):
            triple = [value.x, value.y, value.z]
        else:
            triple = list(value)
        if len(triple) != 3:
            raise ValueError(f"expected three numbers, found {len(triple)}")
        numbers = [float(number) for number in triple]
        if not all(map(math.isfinite, numbers)):
            raise ValueError(f"expected finite numbers, found {numbers}")
        return cls(*numbers)


class Pose2(Record, frozen=True, forbid_unknown_fields=False):
    """Position and heading on the floor, in the world frame unless a name says otherwise.

    `pose.x` and `pose["x"]` read the same number: a served policy gets its odometry as a dict.
    """

    x: float
    y: float
    yaw: float


class Scan(NamedTuple):
    """A laser scan, or a sector of one, in sensor_msgs/LaserScan's terms."""

    ranges: Array
    """Metres, one per beam; inf or NaN where nothing came back."""
    angle_min: float
    """Direction of the first beam in the robot's frame: 0 is ahead, left is positive."""
    angle_increment: float
    range_min: float
    range_max: float


class Sensor(msgspec.Struct, frozen=True, kw_only=True):
    """What one entry of an observation is like."""

    dtype: str
    """As numpy names it: `uint8`."""
    shape: tuple[int, ...]


class SentObservation(msgspec.Struct, frozen=True, kw_only=True):
    """What the servers of one dialect are sent of an observation, unless a mapping file says otherwise."""

    entries: dict[str, str | dict[str, str | dict[str, str]]]
    """The server's key -> the observation's entry, or a map of them. `instruction` is the text."""
    resize: dict[str, tuple[int, int]] = {}
    """The observation's entry -> (height, width) that its picture is fitted into."""


class DialectDefaults(msgspec.Struct, frozen=True, kw_only=True):
    """How an exam is put to policy servers that know only numbers, such as those of openpi.

    The client reads it. It is never sent.
    """

    observations: dict[str, SentObservation] = {}
    """By dialect."""
    action_kinds: dict[str, tuple[int, ...]] = {}
    """Kind of action -> how many numbers a row of that kind has. Kinds: `agents/dialects/mapping.py`."""
    default_kind: str | None = None
    """The kind of a row, unless a mapping file names one. None: the row's length decides."""


class CameraFacts(NamedTuple):
    """What a text says of the camera behind `rgb`."""

    fov_deg: float  # vertical
    pitch_deg: float  # positive looks up
    height_m: float | None  # above the floor, if the camera is mounted on the base


class EpisodeInfo(msgspec.Struct, frozen=True, kw_only=True):
    """What a policy is told when an episode begins."""

    episode_id: str
    """The same whenever a run is resumed, another one in every run. Privileged policies get the stored id."""
    instruction: str
    max_steps: int
    seed: int
    """For the policy's own randomness. Depends on the run's seed and the episode, not on the worker."""
    language: str = "en"
    task: str = ""
    """The name of the exam."""
    sensors: dict[str, Sensor] = {}
    """The arrays that observations will hold."""
    actions: tuple[str, ...] = ()
    """The actions that count: their names, else the types of an action message."""
    details: dict[str, Any] = {}
    """What else the exam tells every agent, such as `task_goal` and `robot_config`."""
    dialects: DialectDefaults = DialectDefaults()
    """How the exam is put to policy servers of other protocols. Never sent."""
    chat: str = ""
    """How the exam is put to chat models, as `module:Class` of a `ChatTask`. Never sent."""
    camera: CameraFacts | None = None
    """For the texts of `chat`, if the env knows its camera. Never sent."""
    episode: Any = None
    """The whole episode, goal included: set for privileged policies only."""


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent has used, such as the tokens of a model."""

    decisions: int = 0
    """Replies that led to actions."""
    requests: int = 0
    repairs: int = 0
    """Requests that asked the agent to correct a reply."""
    input_tokens: int = 0
    """All of them, cached ones included."""
    cached_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = None
    """None if no price is known."""

    def __add__(self, other: Usage) -> Usage:
        return total_usage((self, other))

    @property
    def tokens(self) -> int:
        """Input and output."""
        return self.input_tokens + self.output_tokens


def total_usage(parts: Iterable[Usage]) -> Usage:
    """Return the sum. Its cost is None if that of any tokens in it is not known."""
    parts = list(parts)
    costs = [part.cost_usd for part in parts if part.cost_usd is not None]
    is_known = bool(costs) and not any(part.tokens for part in parts if part.cost_usd is None)
    counted = [name for name in Usage.__struct_fields__ if name != "cost_usd"]
    counts = {name: sum(getattr(part, name) for part in parts) for name in counted}
    return Usage(**counts, cost_usd=math.fsum(costs) if is_known else None)


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What a policy is told when an episode is over."""

    status: Literal["success", "failure", "error"]
    metrics: dict[str, float]
    num_steps: int
    expected_metrics: tuple[str, ...] = ()
    """Metrics that `episode_end` names in any case: null where they were not measured."""
