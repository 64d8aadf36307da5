"""Checks of simulation_interfaces requests, which anybody on the network may send, and simulators' rules."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from simulation_interfaces.msg import Bounds, Result
from simulation_interfaces.srv import LoadWorld, SpawnEntity

from proctor.core.errors import ProctorError
from proctor.core.plain_text import plain
from proctor.core.types import Pose2, Vector3
from proctor.scenes.mesh_files import MESH_SUFFIXES
from proctor.worlds.ros2.node.convert import yaw_of

MAX_NAME = 64
WORLD_M = 1e4  # no coordinate is larger
NAME = re.compile("[a-zA-Z0-9_]+")
NAMESPACE = re.compile("/?[a-zA-Z_][a-zA-Z0-9_]*(/[a-zA-Z_][a-zA-Z0-9_]*)*")
UNSAFE_IN_FILTER = re.compile(r"[(){}\\]|([*+?].*){3}|\[[^\]]*(\[|--|&&|~~|\|\|)")
"""Of regular expressions, what takes time out of proportion to their length, and sets within sets."""
ROBOT_URI = "proctor://robots/wheeled"
SPAWNABLES = {ROBOT_URI: "a round differential drive with an RGB-D camera and a 2D lidar"}


class Refusal(ProctorError):
    """A request that is not granted. The code is the result, as the service's type numbers it."""

    def __init__(self, code: int, reason: str) -> None:
        self.code = code
        super().__init__(reason)


def shown(text: str) -> str:
    """Return a text of a client's as it may stand in a message."""
    return f"'{plain(text[:MAX_NAME])}{'…' if len(text) > MAX_NAME else ''}'"


def check_name(name: str) -> None:
    """Refuse what cannot be an entity's name."""
    if len(name) > MAX_NAME or not NAME.fullmatch(name):
        raise Refusal(
            SpawnEntity.Response.NAME_INVALID,
            f"expected a name of 1 to {MAX_NAME} letters, digits and underscores, found {shown(name)}",
        )


def check_namespace(namespace: str) -> None:
    """Refuse what cannot be a namespace. None is one."""
    if namespace and (len(namespace) > MAX_NAME or not NAMESPACE.fullmatch(namespace)):
        raise Refusal(
            SpawnEntity.Response.NAMESPACE_INVALID,
            f"expected a namespace such as robot_0, of up to {MAX_NAME} characters, found {shown(namespace)}",
        )


def check_frame(frame_id: str) -> None:
    """Refuse poses in a frame that is not the world's."""
    if frame_id not in ("", "world", "map"):  # all are the same here
        raise Refusal(
            Result.RESULT_OPERATION_FAILED, f"expected the frame world, map or none, found {shown(frame_id)}"
        )


def standing_pose(pose: Any, invalid: int) -> Pose2:
    """Return where a pose in the world puts a robot that stands on the floor, or refuse with `invalid`."""
    p, q = pose.position, pose.orientation
    if not all(abs(value) <= WORLD_M for value in (p.x, p.y, p.z)):  # also false for NaN
        raise Refusal(invalid, f"position: expected up to {WORLD_M:g} m, found {p.x}, {p.y}, {p.z}")
    length = math.hypot(q.x, q.y, q.z, q.w)
    if not abs(length - 1) < 1e-3:
        raise Refusal(invalid, f"orientation: expected a quaternion of length 1, found {length:g}")
    if math.hypot(q.x, q.y) > 0.005:  # a tilt of 0.01 rad
        raise Refusal(invalid, "orientation: a robot stands upright, expected a rotation about z only")
    return Pose2(p.x, p.y, yaw_of(q))


def name_filter(pattern: str) -> Callable[[str], bool]:
    """Return a predicate: whether a regular expression matches somewhere in a name.

    Groups, counts, escapes, and more than two of `*`, `+` and `?` are refused: such expressions can take
    hours.
    """
    if len(pattern) > MAX_NAME or UNSAFE_IN_FILTER.search(pattern):
        raise Refusal(
            Result.RESULT_FEATURE_UNSUPPORTED,
            f"filter: expected up to {MAX_NAME} characters without groups, counts and escapes, with at most "
            f"two of * + ?, found {shown(pattern)}",
        )
    try:
        expression = re.compile(pattern)
    except re.error as error:
        raise Refusal(Result.RESULT_OPERATION_FAILED, f"filter: {shown(pattern)}: {error}") from None
    return lambda name: expression.search(name) is not None


def overlap(bounds: Any, radius_m: float, height_m: float) -> Callable[[Vector3], bool]:
    """Return what tells whether an upright cylinder at a position overlaps with bounds."""
    kind, points = bounds.type, [(point.x, point.y, point.z) for point in bounds.points[:2]]
    if kind == Bounds.TYPE_EMPTY:
        return lambda _: True
    if kind not in (Bounds.TYPE_BOX, Bounds.TYPE_SPHERE):
        raise Refusal(Result.RESULT_FEATURE_UNSUPPORTED, "bounds: expected a box or a sphere")
    if len(bounds.points) != 2 or not all(math.isfinite(value) for point in points for value in point):
        raise Refusal(Result.RESULT_OPERATION_FAILED, "bounds: expected two points of finite numbers")
    if kind == Bounds.TYPE_BOX:
        low, high, reach_m = tuple(map(min, *points)), tuple(map(max, *points)), 0.0
    else:
        low, high, reach_m = points[0], points[0], points[1][0]

    def overlaps(position: Vector3) -> bool:
        # How far the box, or the centre of the sphere, is from the axis, and from there from the cylinder.
        x = max(low[0] - position.x, position.x - high[0], 0.0)
        y = max(low[1] - position.y, position.y - high[1], 0.0)
        z = max(low[2] - position.z - height_m, position.z - high[2], 0.0)
        return math.hypot(max(math.hypot(x, y) - radius_m, 0.0), z) <= reach_m

    return overlaps


def no_world(uri: str, expected: str) -> Refusal:
    """Return the refusal of an address at which there is no world."""
    return Refusal(LoadWorld.Response.NO_RESOURCE, f"uri: expected {expected}, found {shown(uri)}")


def missing_world(uri: str, expected: str) -> Refusal:
    """Return the refusal of a world that O3DE does not have."""
    return Refusal(LoadWorld.Response.MISSING_ASSETS, f"uri: expected {expected}, found {shown(uri)}")


def scene_file(uri: str) -> Path:
    """Return the file of a world: a path, or a file:// address."""
    if len(uri) > 4096 or "\0" in uri:
        raise no_world(uri, "a path")
    try:
        address = urlsplit(uri)
    except ValueError:
        raise no_world(uri, "a path") from None
    if "://" in uri and (address.scheme != "file" or address.netloc not in ("", "localhost")):
        raise Refusal(
            LoadWorld.Response.UNSUPPORTED_FORMAT, f"uri: expected a path or file:///…, found {shown(uri)}"
        )
    path = Path(unquote(address.path)) if "://" in uri else Path(uri)
    if path.suffix.lower() not in {".json", *MESH_SUFFIXES}:
        raise Refusal(
            LoadWorld.Response.UNSUPPORTED_FORMAT,
            f"uri: expected a scene file (.json) or a mesh ({', '.join(sorted(MESH_SUFFIXES))}), "
            f"found {shown(uri)}",
        )
    try:
        found = path.is_file()
    except (OSError, ValueError):  # a name too long for a file, or with a NUL written as %00
        found = False
    if not found:
        raise Refusal(LoadWorld.Response.NO_RESOURCE, f"uri: there is no file {shown(uri)}")
    return path


@dataclass(frozen=True)
class SimulationRules:
    """What a simulator allows. These are those of `proctor sim-host`, which allows most."""

    name: str = "Proctor's sim-host"
    spawnables: Mapping[str, str] = field(default_factory=lambda: SPAWNABLES)
    """The addresses of what can be spawned, with descriptions. All are the same robot."""
    world_file: Callable[[str], Path] | None = scene_file
    """Returns the scene file of a world's address, or raises Refusal; None if worlds cannot be loaded."""
    can_stop: bool = True  # whether the simulation may be STOPPED, and reset as a whole, once it has begun
    adds_scopes: bool = True  # whether a reset may name several scopes at once
