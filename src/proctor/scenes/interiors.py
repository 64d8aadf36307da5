"""What stands in which room: groups of pieces that belong together, and the list for every kind of room."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from proctor.scenes import fixtures, furniture
from proctor.scenes.furniture import Piece

Generator: TypeAlias = np.random.Generator
Spot: TypeAlias = Literal["wall", "outer wall", "corner", "middle"]


class Slot(NamedTuple):
    """A piece and where it stands in its group."""

    piece: Piece
    x: float
    y: float
    yaw_deg: int = 0


Group: TypeAlias = list[Slot]
"""Pieces placed as one. Its frame has x = 0 at the wall and +x into the room, or its origin in the middle."""


class Rule(NamedTuple):
    """A group to place in a room, the more important ones first."""

    make: Callable[[Generator], Group]
    spot: Spot = "wall"
    front_m: float = 0.6
    """Floor in front of it that nothing else may stand on."""
    chance: float = 1.0
    opposite: str = ""
    """Category that it should look at from the other side of the room."""


def at_wall(make: Callable[[Generator], Piece]) -> Callable[[Generator], Group]:
    """Return a maker of a group of one, a finger's breadth from the wall."""

    def group(rng: Generator) -> Group:
        piece = make(rng)
        return [Slot(piece, piece.depth_m / 2 + 0.01, 0.0)]

    return group


def loose_rug(depth_m: float, width_m: float) -> Callable[[Generator], Group]:
    """Return a maker of a rug that lies by itself in the middle of a room."""
    return lambda rng: [Slot(furniture.rug(rng, depth_m, width_m), 0.0, 0.0)]


def sleeping(rng: Generator) -> Group:
    """Return a double bed between two nightstands, on a rug."""
    bed, stand_seed = furniture.bed(rng), int(rng.integers(2**32))
    stands = [furniture.nightstand(np.random.default_rng(stand_seed)) for _ in range(2)]
    return [
        Slot(furniture.rug(rng, 1.6, bed.width_m + 1.0), 1.6, 0.0),
        Slot(bed, 1.06, 0.0),
        Slot(stands[0], 0.22, -(bed.width_m / 2 + 0.26)),
        Slot(stands[1], 0.22, bed.width_m / 2 + 0.26),
    ]


def guest_bed(rng: Generator) -> Group:
    """Return a single bed with a nightstand."""
    bed = furniture.bed(rng, width_m=1.0)
    hand = 1 if rng.random() < 0.5 else -1
    return [Slot(bed, 1.06, 0.0), Slot(furniture.nightstand(rng), 0.22, hand * 0.78)]


def seating(rng: Generator) -> Group:
    """Return a sofa with a coffee table on a rug before it."""
    sofa = furniture.sofa(rng)
    table = furniture.table(rng, "coffee table", (0.55, 1.0, 0.42))
    return [Slot(furniture.rug(rng, 1.5, 2.0), 1.5, 0.0), Slot(sofa, 0.46, 0.0), Slot(table, 1.6, 0.0)]


def dining(rng: Generator) -> Group:
    """Return a dining table and its chairs."""
    width_m = 1.8 if rng.random() < 0.4 else 1.3
    table = furniture.table(rng, "dining table", (0.85, width_m, 0.75))
    chair_seed = int(rng.integers(2**32))
    places = [(x, y, yaw) for x, yaw in ((-0.52, 0), (0.52, 180)) for y in (-width_m / 4, width_m / 4)]
    chairs = [Slot(furniture.chair(np.random.default_rng(chair_seed)), *place) for place in places]
    return [Slot(table, 0.0, 0.0), *chairs]


def kitchen_row(rng: Generator) -> Group:
    """Return sink, counter and stove side by side."""
    front = furniture.pick(rng, fixtures.FRONTS)
    pieces = [fixtures.kitchen_sink(front.rgb), fixtures.kitchen_counter(rng, front), fixtures.stove()]
    y = -sum(piece.width_m for piece in pieces) / 2
    group = []
    for piece in pieces:
        group.append(Slot(piece, piece.depth_m / 2 + 0.01, y + piece.width_m / 2))
        y += piece.width_m
    return group


def working(rng: Generator) -> Group:
    """Return a desk with a chair pushed under it."""
    return [Slot(furniture.desk(rng), 0.335, 0.0), Slot(furniture.office_chair(rng), 0.85, -0.1, 180)]


def washing(rng: Generator) -> Group:
    """Return a washbasin under a mirror."""
    return [Slot(fixtures.washbasin(rng), 0.25, 0.0), Slot(fixtures.mirror(), 0.02, 0.0)]


def ceiling_lamp(_: Generator) -> Group:
    """Return a lamp for the middle of the ceiling."""
    return [Slot(fixtures.ceiling_lamp(), 0.0, 0.0)]


CEILING_LAMP = Rule(ceiling_lamp, "middle", 0.0)
WINDOW = Rule(at_wall(fixtures.window), "outer wall", 0.0)
SECOND_WINDOW = Rule(at_wall(fixtures.window), "outer wall", 0.0, 0.5)
PICTURE = Rule(at_wall(fixtures.picture), "wall", 0.0)
SECOND_PICTURE = Rule(at_wall(fixtures.picture), "wall", 0.0, 0.4)
PLANT = Rule(at_wall(furniture.plant), "corner", 0.0, 0.6)
FLOOR_LAMP = Rule(at_wall(furniture.floor_lamp), "corner", 0.0, 0.6)
SIDEBOARD = Rule(at_wall(furniture.sideboard))
BOOKSHELF = Rule(at_wall(furniture.bookshelf))
WARDROBE = Rule(at_wall(furniture.wardrobe), front_m=0.7)
DINING = Rule(dining, "middle", 0.0)

INTERIORS: dict[str, tuple[Rule, ...]] = {
    "hall": (
        Rule(at_wall(fixtures.front_door), "outer wall", 1.0),
        WINDOW._replace(chance=0.4),
        Rule(at_wall(fixtures.coat_rack)),
        SIDEBOARD._replace(chance=0.7),
        PLANT,
        PICTURE,
        SECOND_PICTURE,
        Rule(loose_rug(1.0, 1.8), "middle", 0.0, 0.8),
    ),
    "living room": (
        WINDOW,
        SECOND_WINDOW,
        Rule(seating),
        Rule(at_wall(furniture.tv), front_m=0.8, opposite="sofa"),
        BOOKSHELF._replace(chance=0.6),
        Rule(at_wall(furniture.armchair), front_m=0.5, chance=0.7),
        PLANT,
        FLOOR_LAMP,
        PICTURE,
        SECOND_PICTURE,
    ),
    "dining room": (WINDOW, SECOND_WINDOW, DINING, SIDEBOARD, PLANT, FLOOR_LAMP, PICTURE, SECOND_PICTURE),
    "kitchen": (
        WINDOW,
        Rule(kitchen_row, front_m=0.8),
        Rule(at_wall(fixtures.fridge), "corner", 0.8),
        DINING._replace(chance=0.4),
        PLANT,
        PICTURE,
    ),
    "bedroom": (
        WINDOW,
        SECOND_WINDOW,
        Rule(sleeping, front_m=0.5),
        WARDROBE,
        PLANT,
        FLOOR_LAMP,
        PICTURE,
        SECOND_PICTURE,
    ),
    "guest room": (
        WINDOW,
        Rule(guest_bed, front_m=0.5),
        WARDROBE,
        PLANT,
        PICTURE,
        Rule(loose_rug(1.2, 1.7), "middle", 0.0),
    ),
    "study": (
        WINDOW,
        Rule(working, front_m=0.5),
        BOOKSHELF,
        BOOKSHELF._replace(chance=0.2),
        Rule(at_wall(furniture.armchair), front_m=0.5, chance=0.7),
        PLANT,
        FLOOR_LAMP,
        PICTURE,
        Rule(loose_rug(1.2, 1.7), "middle", 0.0),
    ),
    "bathroom": (
        WINDOW._replace(chance=0.6),
        Rule(lambda _: [Slot(fixtures.bathtub(), 0.39, 0.0)]),
        Rule(washing),
        Rule(lambda _: [Slot(fixtures.toilet(), 0.34, 0.0)]),
        Rule(loose_rug(0.6, 0.9), "middle", 0.0),
        PLANT,
    ),
}
