"""Paths of the robot from posture to posture, checked for collisions in a kinematic copy of the world."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from scipy.spatial import ConvexHull
from scipy.spatial.transform import Rotation

from proctor.core.geometry import wrap_angle
from proctor.core.types import Array
from proctor.exams.pick_place.episode import PickAndPlaceEpisode
from proctor.maps.grid_map import GridMap
from proctor.scenes.tabletop_parts import SceneItem
from proctor.scenes.thing import Thing
from proctor.worlds.mujoco.tabletop.clearance import Clearance, Gaps, Grip
from proctor.worlds.mujoco.tabletop.set_points import SetPoints

TICK_S = 0.1
MOST_TICKS = 400
NEAR = np.array([0.02, 0.02, 0.05, 0.02, 0.02, 0.1])
"""A posture on a path is reached when all but the gripper are so near."""
EXACT = np.array([0.002, 0.002, 0.006, 0.002, 0.002, 0.01])
SLACK_M = 0.004
"""A path that begins close to something may stay as close as that, less this, until it gets away."""
LIFT, ARM, WRIST = 3, 4, 5
PLACES: dict[str, int | slice] = {"xy": slice(2), "yaw": 2, "lift": LIFT, "arm": ARM, "wrist": WRIST}
ASIDE_M = 0.3
FOLDED_RAD = (1.7, -1.7)  # the wrist, with the hand beside the arm

BASE_RADIUS_M, BASE_HEIGHT_M = 0.37, 0.2
"""What the base sweeps when it turns."""
MAST_RADIUS_M = 0.23  # what the mast and the arm's carriage sweep, above the base
CELL_M, AROUND_M = 0.05, 1.5
SLIDES_M = (0.0, 0.15, 0.3, 0.45, 0.6, 0.8, 1.0)
"""How far a base that cannot move sideways drives on until it can turn."""

PosturePath: TypeAlias = list[Array]
"""Postures one after the other: seven controls each, the base's in the world."""


class PathChecker:
    """Finds paths on which the robot touches nothing."""

    def __init__(self, clearance: Clearance, floor: DrivableFloor, *, nonholonomic: bool) -> None:
        self.clearance, self._floor, self.nonholonomic = clearance, floor, nonholonomic

    def gap_m(self, controls: Array, grip: Grip | None) -> float:
        """Return the narrowest gap that matters: with a grip the object belongs to the robot."""
        gaps: Gaps = self.clearance.gaps(controls, grip)
        return min(gaps.robot_m, gaps.grip_m if grip is None else gaps.object_m)

    def is_clear(self, start: Array, path: PosturePath, *, margin_m: float, grip: Grip | None = None) -> bool:
        """Tell whether the robot keeps away from everything on a path that it takes as fast as it can."""
        set_points = SetPoints(start, nonholonomic=self.nonholonomic)
        widest_m = self.gap_m(start, grip)
        for goal in path:
            for _ in range(MOST_TICKS):
                position = set_points.move(goal, TICK_S)
                gap_m = self.gap_m(position, grip)
                if gap_m < min(margin_m, widest_m - SLACK_M):
                    return False
                widest_m = max(widest_m, gap_m)
                if is_there(position, goal, NEAR, nonholonomic=self.nonholonomic):
                    break
            else:
                return False
        return True

    def path_to(
        self, start: Array, end: Array, *, margin_m: float, grip: Grip | None = None
    ) -> PosturePath | None:
        """Return the first candidate that is clear by `margin_m`; None if none is.

        At `end` the hand must be high enough to travel. `grip` says how the object is held, if it is.
        """
        for path in candidate_paths(start, end, self._floor, nonholonomic=self.nonholonomic):
            if self.is_clear(start, path, margin_m=margin_m, grip=grip):
                return path
        return None


def is_there(controls: Array, goal: Array, tolerances: Array, *, nonholonomic: bool) -> bool:
    """Tell whether all but the gripper are near enough; a base that cannot move sideways need not."""
    error = np.abs(controls - goal)[:6]
    if nonholonomic:
        ahead = (goal - controls)[:2] @ [math.cos(controls[2]), math.sin(controls[2])]
        error[:2] = abs(ahead), 0.0
    return bool((error <= tolerances).all())


def candidate_paths(
    start: Array, end: Array, floor: DrivableFloor, *, nonholonomic: bool
) -> Iterator[PosturePath]:
    """Yield paths from posture to posture, quick ones first, at the height of the end as soon as possible."""
    end = end.copy()
    end[2] = start[2] + wrap_angle(end[2] - start[2])
    at_once = not nonholonomic or _is_straight(start, end)
    up = changed(start, lift=end[LIFT])
    tucked = changed(up, arm=0.0, wrist=end[WRIST])
    if at_once:
        yield [end]
        yield [up, end]
        yield from ([up, tucked, *drive, end] for drive in straight_drives(tucked, end))
    beginnings = [
        [up, tucked],
        *(  # as when the hand begins below a table
            [changed(start, arm=0.0, wrist=wrist), changed(up, arm=0.0, wrist=wrist), tucked]
            for wrist in (start[WRIST], *FOLDED_RAD)
        ),
        *(
            [away, changed(away, lift=end[LIFT], arm=0.0, wrist=end[WRIST])]
            for away in _aside(start, nonholonomic=nonholonomic)
        ),
    ]
    for beginning in beginnings:
        for drive in base_paths(beginning[-1], end, floor, nonholonomic=nonholonomic):
            yield [*beginning, *drive, changed(end, yaw=drive[-1][2])]


def base_paths(
    start: Array, end: Array, floor: DrivableFloor, *, nonholonomic: bool
) -> Iterator[PosturePath]:
    """Yield paths of the base alone, around the furniture."""
    if not nonholonomic:
        corners = floor.path(start[:2], end[:2])
        if corners is not None:
            there = np.concatenate([end[:3], start[3:]])
            between = [changed(there, xy=corner) for corner in corners[2:-1]]
            # What lies between the ends is free to turn, so the turn is made there.
            off = [changed(start, xy=corners[1]), changed(there, xy=corners[1])] if len(corners) > 2 else []
            yield [*off, *between, there]
        return
    for first in floor.turning_places(start):
        for last in floor.turning_places(end):
            corners = floor.path(first, last)
            if corners is None:
                continue
            path = [changed(start, xy=first)]
            for corner in corners[1:]:
                path += _rolled(path[-1], corner)
            turn = path[-1][2]
            there = np.concatenate([end[:2], [turn + wrap_angle(end[2] - turn)], start[3:]])
            yield [*path, changed(path[-1], yaw=there[2]), there]


def _rolled(start: Array, corner: Array) -> PosturePath:
    """Return how a base that cannot move sideways gets to a corner: it turns as little as it must."""
    away = corner - start[:2]
    if np.hypot(*away) < 1e-3:
        return []
    course = math.atan2(away[1], away[0])
    turns = [start[2] + wrap_angle(course + half - start[2]) for half in (0.0, math.pi)]
    turn = min(turns, key=lambda yaw: abs(yaw - start[2]))
    return [changed(start, yaw=turn), changed(start, xy=corner, yaw=turn)]


def straight_drives(start: Array, end: Array) -> Iterator[PosturePath]:
    """Yield straight paths of the base alone, the rest as at the start."""
    there = np.concatenate([end[:3], start[3:]])
    yield [there]
    yield [changed(start, yaw=end[2]), there]
    yield [changed(there, yaw=start[2]), there]


def changed(controls: Array, **values: Any) -> Array:
    """Return a posture with some controls elsewhere: `xy` and `yaw` of the base, `lift`, `arm`, `wrist`."""
    result = controls.copy()
    for name, value in values.items():
        result[PLACES[name]] = value
    return result


def _is_straight(start: Array, end: Array) -> bool:
    """Tell whether the base need only drive forwards or backwards."""
    aside = (end - start)[:2] @ [-math.sin(start[2]), math.cos(start[2])]
    return bool(abs(aside) < 1e-3 and abs(wrap_angle(end[2] - start[2])) < 1e-3)


def _aside(controls: Array, *, nonholonomic: bool) -> Iterator[Array]:
    """Yield the same posture a little off: ahead, behind, and to the sides."""
    turns: Sequence[float] = (0.0, math.pi)
    if not nonholonomic:
        turns = tuple(np.arange(8) * math.pi / 4)
    for turn in turns:
        angle = controls[2] + turn
        yield changed(controls, xy=controls[:2] + ASIDE_M * np.array([math.cos(angle), math.sin(angle)]))


class DrivableFloor:
    """Where a Stretch with its arm drawn in can stand and turn freely, and the paths between such places."""

    def __init__(self, episode: PickAndPlaceEpisode, things: Mapping[str, Thing]) -> None:
        shapes = [shape for item in episode.scene_objects for shape in _outlines(item, things[item.name])]
        places = [points for points, _ in shapes] + [np.array([episode.robot_config.init_pose.base[:2]])]
        corners = np.concatenate(places)
        low, high = corners.min(axis=0) - AROUND_M, corners.max(axis=0) + AROUND_M
        columns, rows = np.ceil((high - low) / CELL_M).astype(int)
        x, y = low[0] + (np.arange(columns) + 0.5) * CELL_M, low[1] + (np.arange(rows) + 0.5) * CELL_M
        cells = np.stack(np.meshgrid(x, y), axis=-1)
        taken = np.zeros((rows, columns), dtype=bool)
        for points, radius_m in shapes:
            sides = ConvexHull(points).equations  # of each, the outward normal and the offset
            taken |= (cells @ sides[:, :2].T + sides[:, 2]).max(axis=-1) < radius_m
        self._map = GridMap(taken, resolution_m=CELL_M, origin_world=(float(low[0]), float(low[1])))

    def path(self, start_xy: Array, end_xy: Array) -> Array | None:
        """Return the corners (N, 2) of the shortest path, both ends included; None if there is none."""
        return self._map.shortest_path(start_xy, end_xy, radius_m=0.0)

    def turning_places(self, pose: Array) -> Iterator[Array]:
        """Yield where a robot can turn, straight ahead of a pose x, y, yaw and behind it."""
        ahead = np.array([math.cos(pose[2]), math.sin(pose[2])])
        found: set[float] = set()
        for slide_m in SLIDES_M:
            for sign in (1.0, -1.0):
                place = pose[:2] + sign * slide_m * ahead
                if sign not in found and self._map.clearance_at(*place) > 0:
                    found.add(sign)
                    yield place


def _outlines(item: SceneItem, thing: Thing) -> Iterator[tuple[Array, float]]:
    """Yield what an object's solids look like from above, with how far a base must keep from them."""
    turned = Rotation.from_quat(item.rotation)
    for solid in thing.solids:
        points = turned.apply(solid.points) + item.position
        spread = np.ptp(points[:, :2], axis=0)
        if spread.prod() > 1e-6:  # m²: else it is flat, and has no hull
            is_low = points[:, 2].min() < BASE_HEIGHT_M
            yield points[:, :2], BASE_RADIUS_M if is_low else MAST_RADIUS_M
