"""Writes instructions: only what is true, seen and unmistakable, with a margin on every threshold."""

from __future__ import annotations

import math
from itertools import pairwise
from operator import attrgetter
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from proctor.core.geometry import wrap_angle
from proctor.core.types import Array
from proctor.instructions.clauses import (
    Clause,
    Cross,
    Direction,
    DoorSide,
    Enter,
    Forward,
    GoTo,
    Hand,
    Leave,
    Pass,
    Passage,
    SpokenObject,
    Stay,
    StopAt,
    Toward,
    Turn,
)
from proctor.instructions.reference import find_stop, fits, is_named, words_for
from proctor.instructions.surroundings import Landmark, Surroundings
from proctor.instructions.vocabulary import ROOMS
from proctor.instructions.way import Crossing, Way
from proctor.scenes.scene_config import SceneConfig

Level: TypeAlias = Literal["short", "medium", "long"]
LEVELS: tuple[Level, ...] = ("short", "medium", "long")

SHORTEST_M = 1.0
BEND_RAD, STRAIGHT_RAD = math.radians(55), math.radians(15)
PASS_REACH_M = 2.0
FORWARD_M = (1.6, 8.4)
FORWARD_MISS_M = 0.35
FORWARD_RAD = math.radians(14)
TOWARD_M = 2.0


class ClauseEvent(NamedTuple):
    """A clause and where on the way it happens."""

    at: int
    """Index of a point of the way."""
    clause: Clause


def describe(
    scene: SceneConfig | Surroundings,
    path_xy: Array,
    start_yaw: float,
    *,
    level: Level,
    rng: np.random.Generator,
) -> list[Clause] | None:
    """Return what to say about a path (N, 2); None if the goal or the turns cannot be told without mistake.

    The surroundings instead of the scene save time if there are many paths. Level `short` tells the goal
    alone, `medium` rooms, turns and some landmarks, `long` every step.
    """
    surroundings = scene if isinstance(scene, Surroundings) else Surroundings.of(scene)
    way = Way(surroundings, path_xy, start_yaw, margin=1.3)
    if surroundings.has_meshes or way.length_m < SHORTEST_M or not _rooms_are_clear(way):
        return None
    found = find_stop(way, rng)
    if found is None:
        return None
    stop, marks = found
    if level == "short":
        rooms = way.rooms
        return [GoTo(rooms[-1]) if way.crossings else Stay(rooms[-1]), stop]
    clauses = _Teller(way, level, rng, marks).tell(stop)
    # Told to turn and turn again, one would do both on the spot.
    spins = any(isinstance(a, Turn) and isinstance(b, Turn) for a, b in pairwise(clauses))
    return None if spins else clauses


def _rooms_are_clear(way: Way) -> bool:
    """Tell whether every room has a name and is crossed for long enough to notice it."""
    edges = [0, *(crossing.at for crossing in way.crossings), way.count - 1]
    stays_m = [(b - a) * way.spacing_m for a, b in pairwise(edges)]
    return all(name in ROOMS for name in way.rooms) and min(stays_m) >= 0.6


class _Teller:
    def __init__(self, way: Way, level: Level, rng: np.random.Generator, used: list[Landmark]) -> None:
        self._way, self._long, self._rng = way, level == "long", rng
        self._used = used
        self._most_passed = {"medium": 1, "long": 6}[level]

    def tell(self, stop: StopAt) -> list[Clause]:
        """Return all clauses in order."""
        events = [*self._start(), *self._doors()]
        if self._long:
            events += self._bends()
        place = attrgetter("at")
        events = sorted([*sorted(events, key=place), *self._passed()], key=place)
        events.append(ClauseEvent(self._way.count - 1, stop))
        if self._long:
            events = self._with_distances(events)
        return [event.clause for event in events]

    def _chance(self, share: float) -> bool:
        return bool(self._rng.random() < share)

    def _start(self) -> list[ClauseEvent]:
        way, events = self._way, []
        direction = turn_word(way.start_turn)
        turns = direction is not None and (self._long or not direction.startswith("slightly"))
        if not way.crossings and (self._chance(0.5) or not turns):
            events.append(ClauseEvent(0, Stay(way.rooms[0])))
        if direction is not None and turns:
            events.append(ClauseEvent(0, Turn(direction)))
        return events

    def _doors(self) -> list[ClauseEvent]:
        """Say every room in order, and the turns at the doors."""
        events: list[ClauseEvent] = []
        crossings = self._way.crossings
        for number, crossing in enumerate(crossings):
            following = crossings[number + 1] if number + 1 < len(crossings) else None
            side, turn = self._turns_at(crossing, following)
            turn = turn if self._long else None
            via: Passage = crossing.door.passage if crossing.door and self._chance(0.6) else ""
            if number == 0 and self._chance(0.8 if self._long else 0.3):
                events.append(ClauseEvent(crossing.at, Leave(crossing.left)))
            if following is not None and not self._long and not side and turn is None:
                events.append(ClauseEvent(crossing.at, Cross(crossing.entered)))
            else:
                events.append(ClauseEvent(crossing.at, Enter(crossing.entered, side, via)))
            if turn is not None:
                events.append(ClauseEvent(crossing.at, turn))
        return events

    def _turns_at(self, crossing: Crossing, following: Crossing | None) -> tuple[DoorSide, Turn | None]:
        """Return on which side a door lies for who comes near, and how to turn behind it."""
        into, out_of, total = crossing.into, crossing.out_of, crossing.turn
        side: DoorSide = ""
        if abs(into) >= BEND_RAD or (
            abs(total) >= BEND_RAD and into * total > 0 and abs(into) >= abs(out_of)
        ):
            side = hand(into)
        elif abs(into) <= STRAIGHT_RAD and self._long and self._chance(0.3):
            side = "ahead"
        turn = None
        strong = BEND_RAD <= abs(out_of) <= math.radians(115)
        if strong or (abs(total) >= BEND_RAD and out_of * total > 0 and abs(out_of) > abs(into)):
            turn = Turn(hand(out_of))
        if turn is not None and following is not None:
            stay_m = (following.at - crossing.at) * self._way.spacing_m
            if stay_m < 2.2 and out_of * following.into > 0:
                turn = None  # one bend, which the next door tells
        left_m = (self._way.count - 1 - crossing.at) * self._way.spacing_m
        return side, turn if left_m > 1.2 else None

    def _bends(self) -> list[ClauseEvent]:
        """Say the turns in the middle of rooms."""
        way, events = self._way, []
        turns = np.abs(way.turns)
        apart = way.steps(1.0)
        taken = [crossing.at for crossing in way.crossings]
        order = np.argsort(-turns, kind="stable")
        for index in (int(number) for number in order):
            if turns[index] < BEND_RAD:
                break
            inside = way.steps(0.8) <= index <= way.count - 1 - way.steps(0.8)
            if inside and turns[index] <= math.radians(115) and all(abs(index - o) > apart for o in taken):
                taken.append(index)
                events.append(ClauseEvent(index, Turn(hand(float(way.turns[index])))))
        return events

    def _passed(self) -> list[ClauseEvent]:
        """Say some of the things that are passed, at most one per room but in long stays."""
        found = [event for mark in self._way.surroundings.landmarks if (event := self._passing(mark))]
        self._rng.shuffle(found)
        chosen: list[ClauseEvent] = []
        for event in found:
            near = [other for other in chosen if abs(other.at - event.at) * self._way.spacing_m < 1.0]
            if not near and len(chosen) < self._most_passed:
                chosen.append(event)
        return chosen

    def _passing(self, mark: Landmark) -> ClauseEvent | None:
        way = self._way
        if not is_named(mark) or mark in self._used:
            return None
        found = way.passing(mark)
        if found is None:
            return None
        index, distance_m, bearing = found
        if distance_m > PASS_REACH_M or not math.radians(60) <= abs(bearing) <= math.radians(120):
            return None
        margin = way.steps(0.6)
        if not margin <= index < way.count - margin or abs(way.turns[index]) > math.radians(30):
            return None
        side = hand(bearing)
        first = way.stretch(index)[0]
        if mark.number not in way.seen(first, index - 1) or not _is_beside(way, mark, index, side):
            return None
        thing = self._words(mark, first - way.steps(1.0), index)
        return None if thing is None else ClauseEvent(index, Pass(thing, side))

    def _words(self, mark: Landmark, start: int, end: int) -> SpokenObject | None:
        """Return words for a landmark that fit nothing else in its room or in view between two points."""
        thing = words_for(mark, self._way.rivals(mark, start, end), self._rng)
        clash = thing is None or any(fits(thing, used) for used in self._used)
        return None if clash else thing

    def _with_distances(self, events: list[ClauseEvent]) -> list[ClauseEvent]:
        """Say now and then how far, or where to, a straight stretch leads."""
        told = events[:1]
        for before, after in pairwise(events):
            length_m = (after.at - before.at) * self._way.spacing_m
            extra: Clause | None = None
            if length_m >= FORWARD_M[0] and not isinstance(before.clause, Stay | Pass):
                extra = self._toward(before.at) if self._chance(0.4) else None
                extra = extra or self._forward(before.at, after.at, length_m)
            if extra is not None and not isinstance(told[-1].clause, Forward | Toward):
                told.append(ClauseEvent(before.at, extra))
            told.append(after)
        return told

    def _forward(self, start: int, end: int, length_m: float) -> Forward | None:
        straight = self._way.is_straight(start, end, FORWARD_RAD)
        rough_m = round(length_m)
        clear = FORWARD_M[0] <= length_m <= FORWARD_M[1] and abs(length_m - rough_m) <= FORWARD_MISS_M
        return Forward(rough_m) if straight and clear and self._chance(0.8) else None

    def _toward(self, index: int) -> Toward | None:
        way = self._way
        end = index + way.steps(TOWARD_M)
        if end >= way.count or not way.is_straight(index, end, FORWARD_RAD):
            return None
        here, yaw = way.points[index], way.direction(index, end)
        seen = way.seen(index, index + way.steps(0.5))
        for mark in way.surroundings.landmarks:
            dx, dy = mark.centre - here
            off = abs(wrap_angle(math.atan2(dy, dx) - yaw))
            named = is_named(mark) and mark not in self._used
            if (
                named
                and mark.number in seen
                and off <= math.radians(12)
                and math.hypot(dx, dy) > TOWARD_M + 0.5
            ):
                thing = self._words(mark, index, end)
                if thing is not None:
                    return Toward(thing)
        return None


def hand(angle: float) -> Hand:
    """Return the side of an angle."""
    return "left" if angle > 0 else "right"


def turn_word(angle: float) -> Direction | None:
    """Return the word for a turn, well inside of what may be called so; None for what is nearly straight."""
    degrees, left = math.degrees(abs(angle)), angle > 0
    if degrees >= 148:
        return "around"
    if degrees >= 112:
        return "sharply left" if left else "sharply right"
    if degrees >= 52:
        return hand(angle)
    return None if degrees < 25 else "slightly left" if left else "slightly right"


def _is_beside(way: Way, mark: Landmark, index: int, side: Hand) -> bool:
    """Tell whether all of a thing lies on one side of somebody at a point of the way."""
    yaw = way.direction(index - 2, index + 3)
    offset = mark.outline - way.points[index]
    lateral = math.cos(yaw) * offset[:, 1] - math.sin(yaw) * offset[:, 0]
    return bool(((lateral if side == "left" else -lateral) > 0.1).all())
