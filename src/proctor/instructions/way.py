"""A way through a scene, measured: bends, rooms, doors and what is seen from where."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from proctor.core.geometry import evenly_spaced, path_length, wrap_angle
from proctor.core.types import Array, Pose2
from proctor.instructions.sight import CameraSight, PictureContent
from proctor.instructions.surroundings import DoorFrame, Landmark, Surroundings

SPACING_M = 0.1
CHORD_M = 1.0
"""Directions are those of chords of this length: what is shorter is a wiggle."""
SHORTEST_CHORD_M = 0.4
LOOK_EVERY = 4
"""Points of the way between two pictures."""


class Crossing(NamedTuple):
    """Where a way leaves one room for the next."""

    at: int
    """Index of the first point in the next room."""
    left: str
    entered: str
    door: DoorFrame | None
    into: float
    """Turn from the way before it to the line through the door; left is positive."""
    out_of: float
    """Turn from the line through the door to the way after it."""

    @property
    def turn(self) -> float:
        """The turn from the way before to the way after."""
        return self.into + self.out_of


class Way:
    """A path in a scene, as points 10 cm apart. `start_yaw` is the heading before the first step.

    `margin` says by how much better than needed objects must be seen, and be hidden.
    """

    def __init__(
        self, surroundings: Surroundings, path_xy: Array, start_yaw: float, *, margin: float = 1.0
    ) -> None:
        self.surroundings, self.start_yaw, self._margin = surroundings, start_yaw, margin
        self._sight = CameraSight(surroundings)
        self._looks: dict[int, PictureContent] = {}
        self.points = evenly_spaced(np.asarray(path_xy, dtype=np.float64), SPACING_M)
        self.count = len(self.points)
        self.spacing_m = path_length(self.points) / max(1, self.count - 1)

    @property
    def length_m(self) -> float:
        """Its length."""
        return self.spacing_m * (self.count - 1)

    def steps(self, distance_m: float) -> int:
        """Return how many points make up a distance."""
        return round(distance_m / max(self.spacing_m, 1e-9))

    def direction(self, start: int, end: int) -> float:
        """Return the direction of the chord from one point to another, both moved onto the way."""
        first = min(max(0, start), self.count - 2)
        last = max(min(self.count - 1, end), first + 1)
        dx, dy = self.points[last] - self.points[first]
        return math.atan2(dy, dx)

    @property
    def start_turn(self) -> float:
        """The turn, left positive, with which the way begins."""
        return wrap_angle(self.direction(0, self.steps(CHORD_M)) - self.start_yaw)

    @cached_property
    def turns(self) -> Array:
        """For every point, the turn from the chord before it to the chord after it; 0 near the ends."""
        chord, shortest = self.steps(CHORD_M), self.steps(SHORTEST_CHORD_M)
        turns = np.zeros(self.count)
        for index in range(shortest, self.count - shortest):
            before = self.direction(index - chord, index)
            turns[index] = wrap_angle(self.direction(index, index + chord) - before)
        return turns

    @cached_property
    def rooms(self) -> list[str]:
        """The room at every point; between rooms that of the point before."""
        names = self.surroundings.rooms_at(self.points)
        for index, name in enumerate(names):
            names[index] = name or (names[index - 1] if index else "")
        return names

    @cached_property
    def crossings(self) -> list[Crossing]:
        """All changes of rooms, in order."""
        found = []
        for index, (left, entered) in enumerate(pairwise(self.rooms), start=1):
            if left != entered:
                door = self._door_at(index)
                through = self.direction(index - 3, index + 2)
                if door is not None:
                    aligned = abs(wrap_angle(door.yaw - through)) < math.pi / 2
                    through = door.yaw if aligned else wrap_angle(door.yaw + math.pi)
                gap, reach = self.steps(0.25), self.steps(1.5)
                into = wrap_angle(through - self.direction(index - 1 - reach, index - 1 - gap))
                out_of = wrap_angle(self.direction(index + gap, index + reach) - through)
                found.append(Crossing(index, left, entered, door, into, out_of))
        return found

    def _door_at(self, index: int) -> DoorFrame | None:
        x, y = (self.points[index - 1] + self.points[index]) / 2
        doors = [
            (math.hypot(door.x - x, door.y - y) - door.width_m / 2, door) for door in self.surroundings.doors
        ]
        distance_m, door = min(doors, key=lambda pair: pair[0], default=(math.inf, None))
        return door if distance_m < 0.3 else None  # beside it, too: paths have corners

    def stretch(self, index: int) -> tuple[int, int]:
        """Return the first and the last point of the stay in the room at a point."""
        edges = [0, *(crossing.at for crossing in self.crossings), self.count]
        return next((a, b - 1) for a, b in pairwise(edges) if a <= index < b)

    def is_straight(self, start: int, end: int, tolerance_rad: float) -> bool:
        """Tell whether the way between two points keeps to its chord's direction."""
        chord = self.direction(start, end)
        step = self.steps(SHORTEST_CHORD_M)
        return all(
            abs(wrap_angle(self.direction(index, min(index + step, end)) - chord)) <= tolerance_rad
            for index in range(start, max(start + 1, end - step + 1))
        )

    def seen(self, start: int, end: int) -> set[int]:
        """Return what is seen well from somewhere between two points."""
        return set().union(*(view.seen(self._margin) for view in self._views(start, end)))

    def glimpsed(self, start: int, end: int) -> set[int]:
        """Return what is in view at all from somewhere between two points."""
        return set().union(*(view.glimpsed(self._margin) for view in self._views(start, end)))

    def rivals(self, mark: Landmark, start: int, end: int) -> list[Landmark]:
        """Return what words for a thing must not fit: what is in its room, or in view between two points."""
        glimpsed = self.glimpsed(start, end)
        return [
            other
            for other in self.surroundings.landmarks
            if other is not mark and (other.number in glimpsed or other.room == mark.room)
        ]

    def _views(self, start: int, end: int) -> Iterator[PictureContent]:
        """Yield the pictures between two points; before the first step also that with the first heading."""
        if start <= 0:
            yield self._view(-1)
        first = max(0, -(-start // LOOK_EVERY) * LOOK_EVERY)
        for index in range(first, min(end, self.count - 1) + 1, LOOK_EVERY):
            yield self._view(index)

    def _view(self, index: int) -> PictureContent:
        """Return the picture at a point, looking where the way leads; -1 is the start before any turn."""
        if index not in self._looks:
            gaze = self.steps(0.4)
            ahead = min(index, self.count - 1 - gaze)
            x, y = self.points[max(0, index)]
            yaw = self.start_yaw if index < 0 else self.direction(ahead, ahead + gaze)
            self._looks[index] = self._sight.look(Pose2(float(x), float(y), yaw))
        return self._looks[index]

    @cached_property
    def _yaws(self) -> Array:
        return np.array([self.direction(index - 2, index + 3) for index in range(self.count)])

    def passing(self, mark: Landmark) -> tuple[int, float, float] | None:
        """Return where a thing is left behind, how near it is there, and the bearing of its nearest point.

        None if it stays ahead, or was behind from the beginning, or its room is not the one there.
        """
        yaws = self._yaws
        offset = mark.centre - self.points
        ahead = np.cos(yaws) * offset[:, 0] + np.sin(yaws) * offset[:, 1] > 0
        changes = np.flatnonzero(ahead[:-1] & ~ahead[1:])
        if not len(changes) or ahead[-1]:
            return None
        index = int(changes[-1])
        here = self.points[index : index + 1]
        dx, dy = (mark.nearest(here) - here)[0]
        bearing = wrap_angle(math.atan2(dy, dx) - yaws[index])
        in_room = self.rooms[index] == mark.room
        return (index, math.hypot(dx, dy), bearing) if in_room else None
