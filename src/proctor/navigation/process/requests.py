"""The requests and replies of the planning process, its messages, and their bytes.

A message is its length in four bytes and then msgpack, which can hold data only. A map is too large for that:
its array travels as the descriptor of a file in memory, beside the first byte of its message.
"""

from __future__ import annotations

import math
import struct
from typing import Any, Literal, NamedTuple, TypeAlias

import msgspec
import numpy as np

from proctor.core.errors import UserError
from proctor.maps.failure import NavigationFailure, Reason
from proctor.navigation.path import Path
from proctor.navigation.planner import MARGIN_M
from proctor.navigation.timing.trajectory import Trajectory
from proctor.robots.dynamics import Dynamics
from proctor.robots.wheeled import WheeledRobot

TimingMethod: TypeAlias = Literal["fast", "toppra"]  # compiled here, or by the package toppra
LARGEST_MESSAGE = 1 << 24  # bytes: a path of some hundred thousand points
LENGTH = struct.Struct("<I")


class Motion(msgspec.Struct, frozen=True):
    """Where the robot is in the world, and how it moves there."""

    x: float
    y: float
    yaw: float
    v: float = 0.0  # metres per second; negative if backwards
    omega: float = 0.0  # radians per second to the left
    curvature: float = 0.0  # of its path, 1 / metres to the left; with `v`, how a new path must begin
    sideways: float = 0.0  # radians from its heading to its motion, left; for holonomic bases

    @property
    def direction(self) -> float:
        """Where its path leads, in the world; backwards along it if `v` is negative."""
        return self.yaw + self.sideways


class PathRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Ask for a path; UserError if a number is not finite or out of range."""

    start: Motion
    goal_xy: tuple[float, float]
    planner: str = "grid"
    radius_m: float = WheeledRobot().radius_m
    margin_m: float = MARGIN_M  # what the path keeps beyond the radius, where there is room
    dynamics: Dynamics = Dynamics()
    timeout_s: float = 5.0
    seed: int = 0

    def __post_init__(self) -> None:
        _check_finite("start", *msgspec.structs.astuple(self.start))
        _check_finite("goal", *self.goal_xy)
        _check_finite("radius, margin and timeout", self.radius_m, self.margin_m, self.timeout_s)
        if self.radius_m < 0 or self.margin_m < 0 or self.timeout_s <= 0:
            found = f"{self.radius_m}, {self.margin_m} and {self.timeout_s}"
            raise UserError(f"expected radius and margin of 0 or more and a timeout above 0, found {found}")


class TrajectoryRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Ask when to be where along a path; UserError if a number is not finite."""

    path: Path
    start: Motion
    goal_yaw: float | None = None
    dynamics: Dynamics = Dynamics()
    timing: TimingMethod = "fast"

    def __post_init__(self) -> None:
        _check_finite("start", *msgspec.structs.astuple(self.start))
        _check_finite("goal", self.goal_yaw or 0.0)


class Reply(NamedTuple):
    """The answer to one request."""

    id: int
    result: Path | Trajectory | NavigationFailure
    took_s: float = 0.0  # wall time that a trajectory took; a path has its own times


def _check_finite(what: str, *numbers: float) -> None:
    if not all(map(math.isfinite, numbers)):
        raise UserError(f"expected finite numbers for {what}, found {list(numbers)}")


class MapLayout(msgspec.Struct, frozen=True):
    """Which map a request is about."""

    serial: int  # differs for every map that is sent; the array comes with the first message that names it
    rows: int
    columns: int
    resolution_m: float
    origin_x: float
    origin_y: float


class PathCall(msgspec.Struct, frozen=True, tag=True):
    """Plan a path."""

    id: int
    map: MapLayout
    request: PathRequest


class TrajectoryCall(msgspec.Struct, frozen=True, tag=True):
    """Give a path its times."""

    id: int
    request: TrajectoryRequest


class CancelCall(msgspec.Struct, frozen=True, tag=True):
    """Give up what is being worked on."""

    id: int


class Ready(msgspec.Struct, frozen=True, tag=True):
    """Everything is compiled."""


class PathAnswer(msgspec.Struct, frozen=True, tag=True):
    """A path was found."""

    id: int
    path: Path


class TrajectoryAnswer(msgspec.Struct, frozen=True, tag=True):
    """A trajectory was made."""

    id: int
    trajectory: Trajectory
    took_s: float  # wall time that making it took


class FailureAnswer(msgspec.Struct, frozen=True, tag=True):
    """It cannot be done."""

    id: int
    reason: Reason
    message: str


Call: TypeAlias = PathCall | TrajectoryCall | CancelCall
Result: TypeAlias = PathAnswer | TrajectoryAnswer | FailureAnswer
Answer: TypeAlias = Ready | Result


def frame(message: Call | Answer) -> bytes:
    """Return a message as it is sent; UserError if it is too long."""
    body = msgspec.msgpack.encode(message, enc_hook=_plain)
    if len(body) > LARGEST_MESSAGE:
        raise UserError(f"a path or trajectory of {len(body)} bytes is too long to plan with")
    return LENGTH.pack(len(body)) + body


class Frames:
    """Cuts a stream of bytes into the bodies of messages."""

    def __init__(self) -> None:
        self._bytes = bytearray()

    def add(self, data: bytes) -> list[bytes]:
        """Add received bytes and return the messages that are complete now; ValueError if one is too long."""
        self._bytes += data
        bodies = []
        while len(self._bytes) >= LENGTH.size:
            (length,) = LENGTH.unpack_from(self._bytes)
            if length > LARGEST_MESSAGE:
                raise ValueError(f"a message of {length} bytes, expected at most {LARGEST_MESSAGE}")
            end = LENGTH.size + length
            if len(self._bytes) < end:
                break
            bodies.append(bytes(self._bytes[LENGTH.size : end]))
            del self._bytes[:end]
        return bodies


def _plain(value: Any) -> Any:
    """Return what msgpack has for an array, a trajectory or a numpy number."""
    if isinstance(value, np.ndarray):
        return value.shape, np.ascontiguousarray(value, dtype=float).tobytes()
    if isinstance(value, Trajectory):
        return value.times_s, value.poses, value.velocities
    if isinstance(value, np.generic):
        return value.item()
    raise NotImplementedError(f"a message cannot hold a {type(value).__name__}")


def _restored(kind: Any, value: Any) -> Any:
    """Return the array or trajectory that `_plain` took apart."""
    if kind is Trajectory:
        return Trajectory(*(_restored(np.ndarray, part) for part in value))
    shape, data = value
    # a copy, since compiled functions take arrays that can be written to.
    return np.frombuffer(data).reshape(shape).copy()


decode_call = msgspec.msgpack.Decoder(Call, dec_hook=_restored).decode
decode_answer = msgspec.msgpack.Decoder(Answer, dec_hook=_restored).decode
