"""Where on a way a clause is true, seen and unmistakable, by thresholds more generous than the writer's."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import cached_property, singledispatchmethod
from itertools import pairwise
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from proctor.core.geometry import wrap_angle
from proctor.core.types import Array
from proctor.instructions.clauses import (
    Clause,
    Cross,
    Direction,
    Enter,
    Forward,
    GoTo,
    Leave,
    Pass,
    SpokenObject,
    Stay,
    StopAt,
    Toward,
    Turn,
)
from proctor.instructions.reference import fits, names
from proctor.instructions.surroundings import Landmark
from proctor.instructions.vocabulary import FRONTED
from proctor.instructions.way import Crossing, Way

Mask: TypeAlias = NDArray[np.bool_]
Fault: TypeAlias = Literal["false", "invisible", "ambiguous"]
FALSE: Literal["false"] = "false"

# Neighbouring words overlap: a turn of 50° may be called a slight one or a turn. The writer keeps away from
# where a word ends.
TURNS_DEG: dict[str, tuple[float, float]] = {
    "left": (43, 125),
    "right": (43, 125),
    "slightly left": (18, 60),
    "slightly right": (18, 60),
    "sharply left": (100, 160),
    "sharply right": (100, 160),
    "around": (135, 180),
}
SIDE_DEG, TURN_DEG, AHEAD_DEG = 25.0, 45.0, 25.0
"""A door lies aside, and a turn at a door is one, from these angles on; ahead is up to the last."""
TURN_REACH_M = 0.4
DOOR_TURN_REACH_M = 1.0
PASS_REACH_M, PASS_DEG = 2.5, (50, 130)
PASS_MEMORY_M = 4.0
TOWARD_DEG, TOWARD_REACH_M = 25.0, 1.5
NEXT_TO_M, FRONT_M, FRONT_DEG, BETWEEN_M, BETWEEN_DEG = 1.0, 1.5, 50.0, 1.6, 115.0


class ClauseFinding(NamedTuple):
    """Where a clause is true, and what is wrong with it, if anything."""

    mask: Mask
    fault: Fault | None = None
    message: str = ""


class Claims:
    """Looks for the truth of clauses on one way."""

    def __init__(self, way: Way) -> None:
        self._way = way

    @singledispatchmethod
    def find(self, clause: Clause) -> ClauseFinding:
        """Return where a clause is true."""
        raise NotImplementedError(type(clause))

    def _finding(self, mask: Mask, message: str) -> ClauseFinding:
        return ClauseFinding(mask) if mask.any() else ClauseFinding(mask, FALSE, message)

    def _nowhere(self) -> Mask:
        return np.zeros(self._way.count, dtype=bool)

    def _around(self, indices: Iterable[int], before_m: float, after_m: float) -> Mask:
        mask, before, after = self._nowhere(), self._way.steps(before_m), self._way.steps(after_m)
        for index in indices:
            mask[max(0, index - before) : index + after + 1] = True
        return mask

    @find.register
    def _(self, clause: Turn) -> ClauseFinding:
        way, direction = self._way, clause.direction
        mask = self._nowhere()
        if is_turn(direction, way.start_turn):
            mask |= self._around([0], 0.0, TURN_REACH_M)
        if direction in ("left", "right"):
            bends = [i for i, angle in enumerate(way.turns) if is_turn(direction, float(angle))]
            # Nearer to a door, a bend is a turn at the door: into it, or out of it.
            bends = [i for i in bends if all(abs(i - c.at) > way.steps(0.8) for c in way.crossings)]
            mask |= self._around(bends, TURN_REACH_M, TURN_REACH_M)
            doors = [c.at for c in way.crossings if _bends(c, c.out_of, direction)]
            mask |= self._around(doors, 0.0, DOOR_TURN_REACH_M)
        return self._finding(mask, f"the way never turns {direction}")

    @find.register
    def _(self, clause: Forward) -> ClauseFinding:
        return self._finding(~self._nowhere(), "")  # depends on where one starts: seen to by the checker

    @find.register
    def _(self, clause: Leave) -> ClauseFinding:
        found = [crossing.at for crossing in self._way.crossings if crossing.left == clause.room]
        return self._finding(self._around(found, 0.0, 0.0), f"the way never leaves the {clause.room}")

    @find.register
    def _(self, clause: Enter) -> ClauseFinding:
        entered = [crossing for crossing in self._way.crossings if crossing.entered == clause.room]
        message = f"the way never enters the {clause.room}"
        if entered and clause.via:
            entered = [c for c in entered if c.door is not None and c.door.passage == clause.via]
            message = f"no {clause.via} leads the way into the {clause.room}"
        if entered and clause.side:
            angles = ", ".join(f"{math.degrees(crossing.into):.0f}°" for crossing in entered)
            entered = [crossing for crossing in entered if _lies(crossing, clause.side)]
            message = f"the way into the {clause.room} is not on the side '{clause.side}' but at {angles}"
        return self._finding(self._around([crossing.at for crossing in entered], 0.0, 0.0), message)

    @find.register
    def _(self, clause: Cross) -> ClauseFinding:
        mask, rooms = self._nowhere(), np.array(self._way.rooms)
        crossings = self._way.crossings
        for first, second in pairwise(crossings):
            if first.entered == clause.room:
                mask[first.at : second.at + 1] = True
        mask &= rooms == clause.room
        return self._finding(mask, f"the way does not lead through the {clause.room}")

    @find.register
    def _(self, clause: GoTo) -> ClauseFinding:
        there = bool(self._way.crossings) and self._way.rooms[-1] == clause.room
        message = f"the way does not lead to the {clause.room}"
        return self._finding(~self._nowhere() if there else self._nowhere(), message)

    @find.register
    def _(self, clause: Stay) -> ClauseFinding:
        stays = {*self._way.rooms} == {clause.room}
        message = f"the way is not only in the {clause.room}"
        return self._finding(~self._nowhere() if stays else self._nowhere(), message)

    @find.register
    def _(self, clause: Pass) -> ClauseFinding:
        sign = 1.0 if clause.side == "left" else -1.0

        def passed(mark: Landmark) -> Mask:
            return self._passed(mark, sign)

        return self._of_thing(clause.thing, passed, f"it is not passed on the {clause.side}")

    @find.register
    def _(self, clause: Toward) -> ClauseFinding:
        return self._of_thing(clause.thing, self._headed_for, "the way does not lead towards it")

    @find.register
    def _(self, clause: StopAt) -> ClauseFinding:
        def stopped(mark: Landmark) -> Mask:
            mask = self._nowhere()
            mask[-1] = self._is_at(mark, clause)
            return mask

        finding = self._of_thing(clause.thing, stopped, f"the goal is not {clause.relation} it")
        if finding.fault is None and clause.other is not None:
            finding = self._of_thing(clause.other, stopped, f"the goal is not {clause.relation} it")
        return finding

    def _of_thing(
        self, thing: SpokenObject, where: Callable[[Landmark], Mask], message: str
    ) -> ClauseFinding:
        """Return where a claim about a thing is true, seen and unmistakable."""
        way, name = self._way, f"{thing.color} {thing.category}".strip()
        true, seen, clear = self._nowhere(), self._nowhere(), self._nowhere()
        others: set[str] = set()
        for mark in way.surroundings.landmarks:
            if names(thing, mark):
                mask = where(mark)
                true |= mask
                for index in (int(i) for i in np.flatnonzero(mask)):
                    start, end = self._moment(index, mark)
                    if mark.number in way.seen(start, end):
                        seen[index] = True
                        rivals = {o.name for o in way.rivals(mark, start, end) if fits(thing, o)}
                        clear[index] |= not rivals
                        others |= rivals
        if not true.any():
            return ClauseFinding(true, FALSE, f"{name}: {message}")
        if not seen.any():
            return ClauseFinding(true, "invisible", f"the {name} is not seen from the way")
        if not clear.any():
            return ClauseFinding(true, "ambiguous", f"{name} may also mean {', '.join(sorted(others))}")
        return ClauseFinding(clear)

    def _moment(self, index: int, mark: Landmark) -> tuple[int, int]:
        """Return from where to where one looks out for a thing that is spoken of at a point."""
        way = self._way
        memory = way.steps(PASS_MEMORY_M)
        start = max(0, index - memory)
        entered = [crossing.at for crossing in way.crossings if start < crossing.at <= index]
        if entered and mark.room == way.rooms[index]:
            start = entered[-1]
        return start, min(way.count - 1, index + way.steps(0.5))

    @cached_property
    def _yaws(self) -> Array:
        way = self._way
        return np.array([way.direction(index - 3, index + 3) for index in range(way.count)])

    def _bearings(self, points: Array) -> Array:
        """Return where points (N, 2), one for every point of the way, lie for a walker; left is positive."""
        offset = points - self._way.points
        bearings: Array = np.arctan2(offset[:, 1], offset[:, 0]) - self._yaws
        wrapped: Array = (bearings + math.pi) % math.tau - math.pi
        return wrapped

    def _passed(self, mark: Landmark, sign: float) -> Mask:
        """Return where a thing is abeam that was ahead before and is behind later."""
        way = self._way
        nearest = mark.nearest(way.points)
        beside = np.degrees(sign * self._bearings(nearest))
        middle = np.degrees(sign * self._bearings(np.broadcast_to(mark.centre, way.points.shape)))
        near = np.linalg.norm(nearest - way.points, axis=1) <= PASS_REACH_M
        mask: Mask = near & (beside >= PASS_DEG[0]) & (beside <= PASS_DEG[1])
        mask &= np.array(way.rooms) == mark.room
        memory = way.steps(PASS_MEMORY_M)
        for index in (int(i) for i in np.flatnonzero(mask)):
            before = np.abs(middle[max(0, index - memory) : index + 1])
            after = middle[index : index + memory]
            behind = np.flatnonzero(np.abs(after) > 90)
            mask[index] = before.min() < 80 and len(behind) > 0 and after[behind[0]] > 0
        return mask

    def _headed_for(self, mark: Landmark) -> Mask:
        way, reach = self._way, self._way.steps(TOWARD_REACH_M)
        mask = self._nowhere()
        for index in range(way.count - reach):
            dx, dy = mark.centre - way.points[index]
            off = wrap_angle(math.atan2(dy, dx) - way.direction(index, index + reach))
            mask[index] = abs(math.degrees(off)) <= TOWARD_DEG and math.hypot(dx, dy) >= TOWARD_REACH_M
        return mask

    def _is_at(self, mark: Landmark, clause: StopAt) -> bool:
        """Tell whether the goal is where it is said to be, and no thing of this name is nearer."""
        way = self._way
        goal = way.points[-1:]
        distance_m = float(mark.distances_m(goal)[0])
        named = [other for other in way.surroundings.landmarks if names(clause.thing, other)]
        if clause.relation == "between":
            return distance_m <= BETWEEN_M and self._is_opposite(mark, clause)
        if any(float(other.distances_m(goal)[0]) < distance_m for other in named):
            return False
        if clause.relation == "next to":
            return distance_m <= NEXT_TO_M
        if mark.category not in FRONTED:
            return False
        dx, dy = goal[0] - mark.nearest(goal)[0]
        off = wrap_angle(math.atan2(dy, dx) - mark.front_yaw)
        return distance_m <= FRONT_M and abs(math.degrees(off)) <= FRONT_DEG

    def _is_opposite(self, mark: Landmark, clause: StopAt) -> bool:
        """Tell whether the other thing of `between` is on the other side of the goal."""
        goal = self._way.points[-1:]
        dx, dy = (mark.nearest(goal) - goal)[0]
        words = (clause.thing, clause.other)
        for other in self._way.surroundings.landmarks:
            if other is not mark and any(word is not None and names(word, other) for word in words):
                ox, oy = (other.nearest(goal) - goal)[0]
                apart = abs(math.degrees(wrap_angle(math.atan2(oy, ox) - math.atan2(dy, dx))))
                if math.hypot(ox, oy) <= BETWEEN_M and apart >= BETWEEN_DEG:
                    return True
        return False


def is_turn(direction: Direction, angle: float) -> bool:
    """Tell whether a turn may be called so."""
    low, high = TURNS_DEG[direction]
    sided = direction == "around" or direction.endswith("left" if angle > 0 else "right")
    return sided and low <= abs(math.degrees(angle)) <= high


def _bends(crossing: Crossing, angle: float, side: str) -> bool:
    """Tell whether a way turns to a side at a door, by itself or with the rest of the turn there."""
    sign = 1.0 if side == "left" else -1.0
    own, whole = (math.degrees(sign * value) for value in (angle, crossing.turn))
    return own >= SIDE_DEG and max(own, whole) >= TURN_DEG


def _lies(crossing: Crossing, side: str) -> bool:
    """Tell whether a way in lies on a side for who comes near."""
    if side == "ahead":
        return abs(math.degrees(crossing.into)) <= AHEAD_DEG
    return _bends(crossing, crossing.into, side)
