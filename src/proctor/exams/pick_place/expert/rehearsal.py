"""Ways of the robot from posture to posture, tried out on a world without physics before they are gone."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from proctor.core.geometry import wrap_angle
from proctor.core.types import Array
from proctor.exams.pick_place.expert.floor import Floor
from proctor.sim.clearance import Clearance, Gaps, Grip
from proctor.sim.set_points import SetPoints

TICK_S = 0.1
MOST_TICKS = 400
NEAR = np.array([0.02, 0.02, 0.05, 0.02, 0.02, 0.1])
"""A posture on the way is reached when all but the gripper are so near."""
EXACT = np.array([0.002, 0.002, 0.006, 0.002, 0.002, 0.01])
SLACK_M = 0.004
"""A way that begins close to something may stay as close as that, less this, until it gets away."""
LIFT, ARM, WRIST = 3, 4, 5
ASIDE_M = 0.3
FOLDED_RAD = (1.7, -1.7)
"""The wrist, with the hand beside the arm."""

Way = list[Array]
"""Postures one after the other: seven controls each, the base's in the world."""


class Rehearsal:
    """Tries out ways.

    Args:
        clearance: The geometry of the episode.
        floor: Where the base can go.
        nonholonomic: Whether the base cannot move sideways.
    """

    def __init__(self, clearance: Clearance, floor: Floor, *, nonholonomic: bool) -> None:
        self.clearance, self._floor, self.nonholonomic = clearance, floor, nonholonomic

    def gap_m(self, controls: Array, grip: Grip | None) -> float:
        """Return the narrowest gap that matters: with a grip the object belongs to the robot."""
        gaps: Gaps = self.clearance.gaps(controls, grip)
        return min(gaps.robot_m, gaps.grip_m if grip is None else gaps.object_m)

    def is_clear(self, start: Array, way: Way, *, margin_m: float, grip: Grip | None = None) -> bool:
        """Tell whether the robot keeps away from everything when it goes this way, as fast as it can."""
        set_points = SetPoints(start, nonholonomic=self.nonholonomic)
        widest_m = self.gap_m(start, grip)
        for goal in way:
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

    def way_to(self, start: Array, end: Array, *, margin_m: float, grip: Grip | None = None) -> Way | None:
        """Return the first way that is clear, of those that people would try; None if none is.

        Args:
            start: Where the robot is.
            end: Where it should be, the hand high enough to travel.
            margin_m: How far to keep away from everything.
            grip: How the object is held, if it is.
        """
        for way in ways(start, end, self._floor, nonholonomic=self.nonholonomic):
            if self.is_clear(start, way, margin_m=margin_m, grip=grip):
                return way
        return None


def is_there(controls: Array, goal: Array, tolerances: Array, *, nonholonomic: bool) -> bool:
    """Tell whether all but the gripper are near enough; what a base cannot mend, it need not."""
    error = np.abs(controls - goal)[:6]
    if nonholonomic:
        ahead = (goal - controls)[:2] @ [math.cos(controls[2]), math.sin(controls[2])]
        error[:2] = abs(ahead), 0.0
    return bool((error <= tolerances).all())


def ways(start: Array, end: Array, floor: Floor, *, nonholonomic: bool) -> Iterator[Way]:
    """Yield ways from posture to posture, quick ones first, at the height of the end as soon as possible."""
    end = end.copy()
    end[2] = start[2] + wrap_angle(end[2] - start[2])
    at_once = not nonholonomic or _is_straight(start, end)
    up = changed(start, lift=end[LIFT])
    tucked = changed(up, arm=0.0, wrist=end[WRIST])
    if at_once:
        yield [end]
        yield [up, end]
        yield from ([up, tucked, *drive, end] for drive in drives(tucked, end))
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
        for drive in tours(beginning[-1], end, floor, nonholonomic=nonholonomic):
            yield [*beginning, *drive, _turned(end, drive[-1][2])]


def tours(start: Array, end: Array, floor: Floor, *, nonholonomic: bool) -> Iterator[Way]:
    """Yield ways of the base alone, around the furniture."""
    if not nonholonomic:
        path = floor.path(start[:2], end[:2])
        if path is not None:
            there = np.concatenate([end[:3], start[3:]])
            corners = [_moved(there, corner) for corner in path[2:-1]]
            # What lies between the ends is free to turn, so the turn is made there.
            off = [_moved(start, path[1]), _moved(there, path[1])] if len(path) > 2 else []
            yield [*off, *corners, there]
        return
    for first in floor.turning_places(start):
        for last in floor.turning_places(end):
            path = floor.path(first, last)
            if path is None:
                continue
            way = [_moved(start, first)]
            for corner in path[1:]:
                way += _rolled(way[-1], corner)
            turn = way[-1][2]
            there = np.concatenate([end[:2], [turn + wrap_angle(end[2] - turn)], start[3:]])
            yield [*way, _turned(way[-1], there[2]), there]


def _rolled(start: Array, corner: Array) -> Way:
    """Return how a base that cannot move sideways gets to a corner: it turns as little as it must."""
    away = corner - start[:2]
    if np.hypot(*away) < 1e-3:
        return []
    course = math.atan2(away[1], away[0])
    turns = [start[2] + wrap_angle(course + half - start[2]) for half in (0.0, math.pi)]
    turn = min(turns, key=lambda yaw: abs(yaw - start[2]))
    return [_turned(start, turn), _moved(_turned(start, turn), corner)]


def drives(start: Array, end: Array) -> Iterator[Way]:
    """Yield straight ways of the base alone, the rest as at the start."""
    there = np.concatenate([end[:3], start[3:]])
    yield [there]
    yield [_turned(start, end[2]), there]
    yield [_turned(there, start[2]), there]


def changed(
    controls: Array, *, lift: float | None = None, arm: float | None = None, wrist: float | None = None
) -> Array:
    """Return a posture with some of the controls elsewhere."""
    result = controls.copy()
    for index, value in ((LIFT, lift), (ARM, arm), (WRIST, wrist)):
        if value is not None:
            result[index] = value
    return result


def _moved(controls: Array, xy: Array) -> Array:
    result = controls.copy()
    result[:2] = xy
    return result


def _turned(controls: Array, yaw: float) -> Array:
    result = controls.copy()
    result[2] = yaw
    return result


def _is_straight(start: Array, end: Array) -> bool:
    """Tell whether the base need only drive forwards or backwards."""
    aside = (end - start)[:2] @ [-math.sin(start[2]), math.cos(start[2])]
    return bool(abs(aside) < 1e-3 and abs(wrap_angle(end[2] - start[2])) < 1e-3)


def _aside(controls: Array, *, nonholonomic: bool) -> Iterator[Array]:
    """Yield the same posture some way off: ahead, behind, and to the sides."""
    turns: Sequence[float] = (0.0, math.pi)
    if not nonholonomic:
        turns = tuple(np.arange(8) * math.pi / 4)
    for turn in turns:
        angle = controls[2] + turn
        result = controls.copy()
        result[:2] += ASIDE_M * np.array([math.cos(angle), math.sin(angle)])
        yield result
