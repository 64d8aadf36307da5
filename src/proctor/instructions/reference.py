"""Which objects words fit, whether they fit only one, and where to stop, told by such a landmark."""

from __future__ import annotations

import math
from collections.abc import Collection
from itertools import combinations

import numpy as np

from proctor.core.geometry import wrap_angle
from proctor.instructions.clauses import Relation, SpokenObject, StopAt
from proctor.instructions.surroundings import Landmark
from proctor.instructions.vocabulary import COLORS, FRONTED, HUNG, THINGS
from proctor.instructions.way import Way

UNNAMED = frozenset({"ceiling", "ceiling lamp", "door", "floor", "rug", "shadow", "wall", "window"})
"""Not spoken of: they are everywhere, or underfoot."""
TWINS: tuple[frozenset[str], ...] = (
    frozenset({"armchair", "office chair", "chair"}),
    frozenset({"bar stool", "stool"}),
    frozenset({"bed", "crib"}),
    frozenset({"bench", "weight bench"}),
    frozenset({"bookshelf", "shelf"}),
    frozenset({"clock", "grandfather clock"}),
    frozenset({"coffee table", "dining table", "table"}),
    frozenset({"counter", "kitchen island"}),
    frozenset({"dresser", "shoe cabinet", "sideboard"}),
)
"""Things that one word may mean."""
WITHIN: dict[str, frozenset[str]] = {"counter": frozenset({"sink", "stove"})}
"""Things that may be taken for a part of another."""
SHADES: tuple[frozenset[str], ...] = (
    frozenset({"white", "beige"}),
    frozenset({"white", "grey"}),
    frozenset({"brown", "beige"}),
    frozenset({"orange", "yellow"}),
    frozenset({"orange", "red"}),
    frozenset({"blue", "turquoise"}),
    frozenset({"blue", "purple"}),
    frozenset({"green", "turquoise"}),
)
"""Colours that somebody may call by each other's name."""
NEXT_TO_M = 0.8
LARGEST_M = 2.4
FRONT_M = (0.2, 1.2)
BETWEEN_M = 1.3


def names(thing: SpokenObject, mark: Landmark) -> bool:
    """Tell whether the words are right for a landmark."""
    return thing.category == mark.category and thing.color in ("", mark.color)


def fits(thing: SpokenObject, mark: Landmark) -> bool:
    """Tell whether somebody might think that the words mean a landmark."""
    both = {thing.category, mark.category}
    part = mark.category in WITHIN.get(thing.category, ())
    kind = part or len(both) == 1 or any(both <= twins for twins in TWINS)
    color = (
        not thing.color
        or mark.color in ("", thing.color)
        or any({thing.color, mark.color} <= shades for shades in SHADES)
    )
    return kind and color


def is_named(mark: Landmark) -> bool:
    """Tell whether there are words for a landmark, and people use them to tell the way."""
    return mark.category in THINGS and mark.category not in UNNAMED


def words_for(mark: Landmark, rivals: Collection[Landmark], rng: np.random.Generator) -> SpokenObject | None:
    """Return words that mean this landmark and none of its rivals; with the colour if needed, or at will."""
    options = [SpokenObject(mark.category)]
    if mark.color in COLORS:
        options.append(SpokenObject(mark.category, mark.color))
    good = [thing for thing in options if not any(fits(thing, other) for other in rivals)]
    return good[int(rng.integers(len(good)))] if good else None


def find_stop(way: Way, rng: np.random.Generator) -> tuple[StopAt, list[Landmark]] | None:
    """Return how to tell the end of a way, and by which landmarks; None if nothing there is unmistakable."""
    goal = way.points[-1]
    named = [m for m in way.surroundings.landmarks if is_named(m) and m.room == way.rooms[-1]]
    away_m = {mark.number: float(mark.distances_m(goal[None])[0]) for mark in named}
    marks = [mark for mark in named if away_m[mark.number] <= BETWEEN_M]
    marks.sort(key=lambda mark: away_m[mark.number])
    options: list[tuple[Relation, list[Landmark]]] = []
    for mark in marks:
        if mark.category in FRONTED and is_in_front(mark, goal):
            options.append(("in front of", [mark]))
        elif mark.category not in HUNG and is_next_to(mark, way):
            options.append(("next to", [mark]))
    standing = [mark for mark in marks if mark.category not in HUNG]
    for mark, other in combinations(standing, 2):
        if mark.category != other.category and is_between(mark, other, goal):
            options.append(("between", [mark, other]))
    # The nearest things rather than others, and these only if the words for them are clear.
    order = sorted(range(len(options)), key=lambda number: number + 3 * rng.random())
    for relation, used in (options[number] for number in order):
        things = [thing for mark in used if (thing := _words(mark, way, rng)) is not None]
        if len(things) == len(used):
            return StopAt(relation, *things), used
    return None


def _words(mark: Landmark, way: Way, rng: np.random.Generator) -> SpokenObject | None:
    # One looks out for the goal when one enters its room, or nearer.
    start = max(way.stretch(way.count - 1)[0], way.count - 1 - way.steps(4.0))
    if mark.number not in way.seen(start, way.count - 1):
        return None
    return words_for(mark, way.rivals(mark, start, way.count - 1), rng)


def is_next_to(mark: Landmark, way: Way) -> bool:
    """Tell whether the way ends next to a thing, and has only just come there."""
    distances = mark.distances_m(way.points)
    extent_m = float(np.ptp(mark.outline, axis=0).max())
    # Whoever stops next to an object must not have been as near to it further than this before the goal.
    before = distances[: max(0, way.count - 1 - way.steps(1.2))]
    arrives = not len(before) or float(before.min()) > NEXT_TO_M
    return float(distances[-1]) <= NEXT_TO_M and arrives and extent_m <= LARGEST_M


def is_in_front(mark: Landmark, point: np.ndarray) -> bool:
    """Tell whether a point lies before the middle of a thing's front."""
    dx, dy = point - mark.centre
    cos, sin = math.cos(mark.front_yaw), math.sin(mark.front_yaw)
    ahead, aside = cos * dx + sin * dy, abs(cos * dy - sin * dx)
    depth_m = float(np.ptp(mark.outline @ np.array([cos, sin]))) / 2
    half_width_m = float(np.ptp(mark.outline @ np.array([-sin, cos]))) / 2
    low_m, high_m = FRONT_M
    near_enough = low_m <= ahead - depth_m <= high_m
    return bool(near_enough) and aside <= min(max(half_width_m, 0.3), 0.5)


def is_between(mark: Landmark, other: Landmark, point: np.ndarray) -> bool:
    """Tell whether two things lie on opposite sides of a point and near it."""
    here = point[None]
    offsets = [(item.nearest(here) - here)[0] for item in (mark, other)]
    near = all(math.hypot(dx, dy) <= BETWEEN_M for dx, dy in offsets)
    first, second = (math.atan2(dy, dx) for dx, dy in offsets)
    return near and abs(wrap_angle(first - second)) >= math.radians(130)
