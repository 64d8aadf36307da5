"""Point clouds and depth images: which cells of a floor they show to be free, and which not.

A point within the robot's height is an obstacle, one about as high as the floor shows floor, and any other
says nothing. The work is done in compiled functions, which let other threads run.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Generic, Literal, NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from proctor.core.errors import UnknownName, UserError
from proctor.core.types import Array, Pose2
from proctor.kernels.clearance import Mask
from proctor.kernels.sensing import Slice, back_projected, count_points, extent_of
from proctor.robots.spec import Camera, standard_robot

Unknown: TypeAlias = Literal["free", "occupied"]  # what cells count as that nobody has seen
Bounds: TypeAlias = tuple[float, float, float, float]  # least x and y, largest x and y

FLOOR_DEPTH_M = 0.1  # points may lie so far below the floor and still show it; lower ones show a hole
MOST_CELLS = 1 << 24  # of a map that is made from what others send
Result = TypeVar("Result")


def slice_above(floor_z: float, height_band_m: tuple[float, float] | None = None) -> Slice:
    """Return the heights that matter to a robot that stands on a floor."""
    low_m, high_m = map(float, height_band_m or standard_robot().height_band_m)
    if not (math.isfinite(floor_z + low_m + high_m) and -FLOOR_DEPTH_M < low_m < high_m):
        raise UserError(
            f"expected a height band (low, high) above a floor, with {-FLOOR_DEPTH_M:g} < low < high, "
            f"found ({low_m:g}, {high_m:g}) above {floor_z:g}"
        )
    return Slice(floor_z - FLOOR_DEPTH_M, floor_z + low_m, floor_z + high_m)


class Floor(NamedTuple):
    """What a cloud shows of a floor; rows along y, columns along x."""

    occupied: Mask
    unknown: Mask
    origin_world: tuple[float, float]


def counts_as_occupied(unknown: Unknown) -> bool:
    """Tell whether a policy counts unseen cells as occupied."""
    if unknown not in ("free", "occupied"):
        raise UnknownName("policy for unknown space", str(unknown), ("free", "occupied"))
    return unknown == "occupied"


def checked_points(points: ArrayLike) -> NDArray[Any]:
    """Return points as an array; UserError if they are not (N, 3) numbers."""
    array = np.asarray(points)
    if array.ndim != 2 or array.shape[1] != 3:
        raise UserError(f"expected points of shape (N, 3), found {array.shape}")
    if array.dtype.kind not in "fiu":
        raise UserError(f"expected points of float32 or float64, found {array.dtype}")
    return array


def compiled_points(array: NDArray[Any]) -> NDArray[Any]:
    """Return points as compiled functions take them, copied only if they must be."""
    return np.require(array, np.float32 if array.dtype == np.float32 else np.float64, ["C", "W"])


def floor_of_points(
    points: ArrayLike,
    resolution_m: float,
    heights: Slice,
    *,
    min_points: int = 1,
    bounds: Bounds | None = None,
) -> Floor:
    """Draw a cloud on a grid whose lines go through the world's origin; UserError if empty or huge."""
    cloud = compiled_points(checked_points(points))
    if not (math.isfinite(resolution_m) and resolution_m > 0):
        raise UserError(f"expected a resolution of more than 0 m, found {resolution_m:g}")
    if min_points < 1:
        raise UserError(f"expected at least 1 point in an occupied cell, found {min_points}")
    reach = _extent(cloud, heights, bounds)
    with np.errstate(over="ignore"):
        low = np.floor(reach[:2] / resolution_m)
        low -= low * resolution_m > reach[:2]
        size = np.maximum(np.floor((reach[2:] - low * resolution_m) / resolution_m) + 1, 2)
        cells, (width_m, depth_m) = size.prod(), reach[2:] - reach[:2]
    if not cells <= MOST_CELLS:
        raise UserError(
            f"the points reach over {width_m:.6g} m x {depth_m:.6g} m, too much for a map of "
            f"{resolution_m:g} m cells; `bounds_world` keeps strays out"
        )
    origin_x, origin_y = map(float, low * resolution_m)
    shape = (int(size[1]), int(size[0]))
    hits, floor = count_points(cloud, heights, (resolution_m, origin_x, origin_y), shape)
    occupied = hits >= min_points
    return Floor(occupied, (floor == 0) & ~occupied, (origin_x, origin_y))


def _extent(cloud: NDArray[Any], heights: Slice, bounds: Bounds | None) -> Array:
    """Return least x and y and largest x and y, of what is asked for or of the points that matter."""
    finite, counted, least_x, least_y, most_x, most_y = extent_of(cloud, heights)
    if not finite:
        raise UserError(
            f"none of the cloud's {len(cloud)} points is finite" if len(cloud) else "a cloud without points"
        )
    if not counted:
        raise UserError(
            f"none of the cloud's {finite} finite points is as high as the floor or the robot: expected "
            f"{heights.floor_z:g} <= z <= {heights.high_z:g}"
        )
    box = np.array([least_x, least_y, most_x, most_y] if bounds is None else bounds, dtype=float)
    if box.shape != (4,) or not np.isfinite(box).all() or (box[:2] > box[2:]).any():
        raise UserError(f"expected bounds (least x, least y, largest x, largest y), found {bounds}")
    return box


class Pinhole(NamedTuple):
    """A camera's intrinsics in pixels, as in sensor_msgs/CameraInfo: the first pixel's centre is (0, 0)."""

    fx: float
    fy: float
    cx: float
    cy: float

    @classmethod
    def of(cls, camera: Camera) -> Pinhole:
        """Return those of the robot's camera."""
        focal = camera.height / 2 / math.tan(math.radians(camera.fov_deg) / 2)
        return cls(focal, focal, (camera.width - 1) / 2, (camera.height - 1) / 2)


def camera_frame(camera: Camera, pose: Pose2, floor_z: float = 0.0) -> Array:
    """Return the (4, 4) pose in the world of the robot's camera: x to the right, y down, z ahead."""
    pitch = math.radians(camera.pitch_deg)
    ahead = np.array(
        [math.cos(pose.yaw) * math.cos(pitch), math.sin(pose.yaw) * math.cos(pitch), math.sin(pitch)]
    )
    right = np.array([math.sin(pose.yaw), -math.cos(pose.yaw), 0.0])
    frame = np.eye(4)
    frame[:3, 0], frame[:3, 1], frame[:3, 2] = right, np.cross(ahead, right), ahead
    frame[:3, 3] = pose.x, pose.y, floor_z + camera.height_m
    return frame


def points_of_depth(
    depth_mm: NDArray[np.uint16], pinhole: Pinhole, camera_world: ArrayLike, *, stride: int = 1
) -> Array:
    """Return the (N, 3) points in the world that a depth image shows.

    `depth_mm` (H, W) is along the camera's axis, 0 where nothing came back. `camera_world` is the (4, 4) pose
    of the camera: x to the right, y down, z ahead. Only every `stride`-th pixel of both sides is taken.
    """
    image = np.asarray(depth_mm)
    if image.ndim != 2 or image.dtype != np.uint16:
        raise UserError(f"expected depth as uint16 (H, W), found {image.dtype} {image.shape}")
    frame = np.ascontiguousarray(camera_world, dtype=float)
    if frame.shape != (4, 4) or not np.isfinite(frame).all() or not np.isfinite(pinhole).all():
        raise UserError("expected a camera pose of (4, 4) and intrinsics, all finite")
    if pinhole.fx <= 0 or pinhole.fy <= 0 or stride < 1:
        raise UserError(f"expected fx, fy and a stride of more than 0, found {pinhole} and {stride}")
    lens = (float(pinhole.fx), float(pinhole.fy), float(pinhole.cx), float(pinhole.cy))
    return back_projected(np.require(image, np.uint16, ["C", "W"]), lens, frame, stride)


class CloudThread(Generic[Result]):
    """Applies a function to clouds in a thread; of those that come meanwhile, only the newest is kept.

    All methods are for one thread, the owner's. The function should run without Python's global lock.
    """

    def __init__(self, function: Callable[[NDArray[Any]], Result]) -> None:
        self._function = function
        self._executor = ThreadPoolExecutor(1, "clouds")
        self._running: tuple[Future[Result], float] | None = None
        self._waiting: tuple[NDArray[Any], float] | None = None  # points, and when they were seen
        self._closed = False

    def submit(self, points: NDArray[Any], time_s: float) -> None:
        """Hand a cloud over; do not write to it any more."""
        if self._closed:
            raise ValueError("the thread for point clouds is closed")
        self._waiting = (points, time_s)
        self._begin()

    def poll(self) -> tuple[Result, float] | None:
        """Return a result that is ready and its cloud's time, or raise its error; never waits."""
        if self._running is None or not self._running[0].done():
            return None
        (future, time_s), self._running = self._running, None
        self._begin()
        return future.result(), time_s

    def wait(self) -> tuple[Result, float] | None:
        """Return the next result when it is ready, or None if there is no cloud."""
        if self._running is not None:
            self._running[0].exception()
        return self.poll()

    def discard(self) -> None:
        """Forget the clouds that were handed over."""
        self._waiting = None
        if self._running is not None:
            self._running[0].cancel()
            self._running = None

    def close(self) -> None:
        """End the thread. May be called twice."""
        self._closed = True
        self.discard()
        self._executor.shutdown()

    def _begin(self) -> None:
        if self._running is None and self._waiting is not None:
            (points, time_s), self._waiting = self._waiting, None
            self._running = self._executor.submit(self._function, points), time_s
