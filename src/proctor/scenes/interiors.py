"""What stands in which room: groups of pieces that belong together, and the list for every kind of room."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from proctor.scenes import appliances, cabinets, decor, furniture
from proctor.scenes.pieces import Piece, Rng, pick

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

    make: Callable[[Rng], Group]
    spot: Spot = "wall"
    front_m: float = 0.6
    """Floor in front of it that nothing else may stand on."""
    chance: float = 1.0
    opposite: str = ""
    """Category that it should look at from the other side of the room."""
    unless: str = ""
    """Category that makes it superfluous if the room has one."""


def at_wall(make: Callable[[Rng], Piece]) -> Callable[[Rng], Group]:
    """Return a maker of a group of one, a finger's breadth from the wall."""

    def group(rng: Rng) -> Group:
        piece = make(rng)
        return [Slot(piece, piece.depth_m / 2 + 0.01, 0.0)]

    return group


def alone(make: Callable[[Rng], Piece]) -> Callable[[Rng], Group]:
    """Return a maker of a group of one that stands by itself in the middle of a room."""
    return lambda rng: [Slot(make(rng), 0.0, 0.0)]


def sleeping(rng: Rng) -> Group:
    """Return a double bed between two nightstands, on a rug."""
    bed, stand_seed = furniture.bed(rng), int(rng.integers(2**32))
    stands = [furniture.nightstand(np.random.default_rng(stand_seed)) for _ in range(2)]
    return [
        Slot(decor.rug(rng, 1.6, bed.width_m + 1.0), 1.6, 0.0),
        Slot(bed, 1.06, 0.0),
        Slot(stands[0], 0.22, -(bed.width_m / 2 + 0.26)),
        Slot(stands[1], 0.22, bed.width_m / 2 + 0.26),
    ]


def guest_bed(rng: Rng) -> Group:
    """Return a single bed with a nightstand."""
    bed = furniture.bed(rng, width_m=1.0)
    hand = 1 if rng.random() < 0.5 else -1
    return [Slot(bed, 1.06, 0.0), Slot(furniture.nightstand(rng), 0.22, hand * 0.78)]


def seating(rng: Rng) -> Group:
    """Return a sofa with a coffee table on a rug before it."""
    if rng.random() < 0.35:
        sofa = furniture.corner_sofa(rng)
        table = furniture.round_table(rng, "coffee table", 0.7, 0.4)
        chaise = next(part.translate.y for part in sofa.parts if part.size.x == 0.72)
        return [
            Slot(decor.rug(rng, 1.6, 2.4), 1.6, 0.0),
            Slot(sofa, 0.81, 0.0),
            Slot(table, 1.45, -0.55 if chaise > 0 else 0.55),
        ]
    sofa = furniture.sofa(rng)
    if rng.random() < 0.3:
        table = furniture.round_table(rng, "coffee table", 0.8, 0.42)
    else:
        table = furniture.table(rng, "coffee table", (0.55, 1.0, 0.42))
    return [Slot(decor.rug(rng, 1.6, 2.2), 1.5, 0.0), Slot(sofa, 0.46, 0.0), Slot(table, 1.6, 0.0)]


def dining(rng: Rng, *, large: bool = True) -> Group:
    """Return a dining table and its chairs, which all are alike."""
    chair_seed = int(rng.integers(2**32))
    if rng.random() < 0.35 or not large:
        table = furniture.round_table(rng, "dining table", 1.1 if large else 0.9, 0.75)
        reach_m = table.depth_m / 2 + 0.1
        places = [(-reach_m, 0.0, 0), (reach_m, 0.0, 180), (0.0, -reach_m, 90), (0.0, reach_m, 270)]
        places = places[: 4 if large else 2]
    else:
        width_m = 1.9 if rng.random() < 0.5 else 1.4
        table = furniture.table(rng, "dining table", (0.9, width_m, 0.75))
        columns = (-0.6, 0.0, 0.6) if width_m > 1.5 else (-0.35, 0.35)
        places = [(x, y, yaw) for x, yaw in ((-0.54, 0), (0.54, 180)) for y in columns]
    chairs = [Slot(furniture.chair(np.random.default_rng(chair_seed)), *place) for place in places]
    return [Slot(table, 0.0, 0.0), *chairs]


def kitchen_row(rng: Rng, *, fridge: bool = True) -> Group:
    """Return sink, counter, stove and fridge side by side."""
    paint = pick(rng, appliances.FRONTS)
    pieces = [appliances.sink(paint), appliances.counter(rng, paint), appliances.stove(rng)]
    pieces = [*pieces, appliances.fridge(rng)] if fridge else pieces
    if rng.random() < 0.5:
        pieces.reverse()
    y = -sum(piece.width_m for piece in pieces) / 2
    group = []
    for piece in pieces:
        group.append(Slot(piece, piece.depth_m / 2 + 0.01, y + piece.width_m / 2))
        y += piece.width_m
    return group


def island(rng: Rng) -> Group:
    """Return a kitchen island with bar stools before it."""
    stool_seed = int(rng.integers(2**32))
    stools = [furniture.bar_stool(np.random.default_rng(stool_seed)) for _ in range(2)]
    block = appliances.kitchen_island(rng, pick(rng, appliances.FRONTS))
    return [Slot(block, 0.0, 0.0), Slot(stools[0], 0.62, -0.4, 180), Slot(stools[1], 0.62, 0.4, 180)]


def working(rng: Rng) -> Group:
    """Return a desk with a chair pushed under it."""
    return [Slot(furniture.desk(rng), 0.335, 0.0), Slot(furniture.office_chair(rng), 0.85, -0.1, 180)]


def playing(rng: Rng) -> Group:
    """Return a piano and its stool."""
    return [Slot(furniture.piano(rng), 0.37, 0.0), Slot(furniture.stool(rng), 0.95, 0.0, 180)]


def reading(rng: Rng) -> Group:
    """Return an armchair beside a floor lamp."""
    hand = 1 if rng.random() < 0.5 else -1
    return [Slot(furniture.armchair(rng), 0.46, 0.0), Slot(decor.floor_lamp(rng), 0.3, hand * 0.75)]


def washing(rng: Rng) -> Group:
    """Return a washbasin under a mirror."""
    return [Slot(appliances.washbasin(rng), 0.26, 0.0), Slot(decor.mirror(), 0.02, 0.0)]


def laundry(rng: Rng) -> Group:
    """Return a washing machine with a basket beside it."""
    hand = 1 if rng.random() < 0.5 else -1
    machine, basket = appliances.washing_machine(rng), cabinets.laundry_basket(rng)
    return [Slot(machine, 0.32, 0.0), Slot(basket, 0.25, hand * 0.56)]


CEILING_LAMP = Rule(alone(decor.ceiling_lamp), "middle", 0.0)
WINDOW = Rule(at_wall(decor.window), "outer wall", 0.0)
BARE_WINDOW = Rule(at_wall(partial(decor.window, curtains=False)), "outer wall", 0.0, 0.7)
SECOND_WINDOW = WINDOW._replace(chance=0.5)
PICTURE = Rule(at_wall(decor.picture), "wall", 0.0)
SECOND_PICTURE = PICTURE._replace(chance=0.6)
WALL_CLOCK = Rule(at_wall(decor.wall_clock), "wall", 0.0, 0.5)
PLANT = Rule(at_wall(decor.plant), "corner", 0.0, 0.7)
FLOOR_LAMP = Rule(at_wall(decor.floor_lamp), "corner", 0.0, 0.6)
SIDEBOARD = Rule(at_wall(cabinets.sideboard))
BOOKSHELF = Rule(at_wall(cabinets.bookshelf))
WARDROBE = Rule(at_wall(cabinets.wardrobe), front_m=0.7)
DRESSER = Rule(at_wall(cabinets.dresser), chance=0.6)
ARMCHAIR = Rule(at_wall(furniture.armchair), "corner", 0.5, 0.7)
READING = Rule(reading, "wall", 0.5)
BENCH = Rule(at_wall(furniture.bench), "wall", 0.5, 0.5)
SHELF = Rule(at_wall(cabinets.storage_shelf))
JARS = Rule(at_wall(partial(cabinets.storage_shelf, jars=True)))
BOX = Rule(at_wall(cabinets.cardboard_box), "corner", 0.0, 0.7)
MACHINE = Rule(laundry)
CLOCK = Rule(at_wall(furniture.grandfather_clock), "wall", 0.4, 0.25)


def small_rug(depth_m: float, width_m: float) -> Rule:
    """Return the rule of a rug that lies by itself in the middle of a room."""
    return Rule(alone(partial(decor.rug, depth_m=depth_m, width_m=width_m)), "middle", 0.0, 0.8)


INTERIORS: dict[str, tuple[Rule, ...]] = {
    "hall": (
        Rule(at_wall(decor.front_door), "outer wall", 1.0),
        BARE_WINDOW._replace(chance=0.4),
        Rule(at_wall(decor.coat_rack)),
        Rule(at_wall(cabinets.shoe_cabinet), chance=0.7),
        BENCH,
        CLOCK,
        SIDEBOARD._replace(chance=0.3),
        *(PLANT, PICTURE, PICTURE),
        small_rug(0.9, 1.6),
    ),
    "corridor": (
        *(BARE_WINDOW, BENCH, CLOCK, PLANT, PICTURE, PICTURE, SECOND_PICTURE),
        small_rug(0.8, 1.8),
    ),
    "living room": (
        Rule(seating),
        Rule(at_wall(furniture.sofa), unless="sofa"),
        Rule(at_wall(cabinets.tv), front_m=0.8, opposite="sofa"),
        WINDOW,
        SECOND_WINDOW,
        Rule(at_wall(furniture.fireplace), front_m=0.8, chance=0.45),
        Rule(playing, front_m=0.4, chance=0.3),
        BOOKSHELF._replace(chance=0.6),
        ARMCHAIR,
        Rule(at_wall(cabinets.aquarium), chance=0.3),
        SIDEBOARD._replace(chance=0.5),
        PLANT,
        FLOOR_LAMP,
        PLANT._replace(chance=0.4),
        *(PICTURE, PICTURE, WALL_CLOCK),
    ),
    "dining room": (
        WINDOW,
        SECOND_WINDOW,
        Rule(dining, "middle", 0.0),
        SIDEBOARD,
        Rule(at_wall(furniture.fireplace), front_m=0.8, chance=0.2),
        *(CLOCK, PLANT, FLOOR_LAMP, PICTURE, SECOND_PICTURE, WALL_CLOCK),
    ),
    "kitchen": (
        Rule(kitchen_row, front_m=0.8),
        Rule(partial(kitchen_row, fridge=False), front_m=0.8, unless="stove"),
        Rule(at_wall(appliances.fridge), "corner", 0.8, unless="fridge"),
        WINDOW,
        Rule(island, "middle", 0.0, 0.5),
        Rule(partial(dining, large=False), "middle", 0.0, 0.6),
        PLANT,
        PICTURE,
        WALL_CLOCK._replace(chance=0.8),
    ),
    "bedroom": (
        Rule(sleeping, front_m=0.5),
        Rule(guest_bed, front_m=0.5, unless="bed"),
        *(WINDOW, SECOND_WINDOW, WARDROBE, DRESSER),
        ARMCHAIR._replace(chance=0.4),
        *(PLANT, FLOOR_LAMP, PICTURE, SECOND_PICTURE),
    ),
    "guest room": (
        Rule(guest_bed, front_m=0.5),
        WINDOW,
        WARDROBE,
        ARMCHAIR._replace(chance=0.4),
        DRESSER._replace(chance=0.3),
        *(PLANT, PICTURE, SECOND_PICTURE),
        small_rug(1.2, 1.7),
    ),
    "nursery": (
        WINDOW,
        Rule(at_wall(furniture.crib), front_m=0.6),
        Rule(at_wall(cabinets.toy_chest), front_m=0.6),
        DRESSER,
        ARMCHAIR._replace(chance=0.4),
        WARDROBE._replace(chance=0.5),
        PICTURE,
        SECOND_PICTURE,
        small_rug(1.3, 1.7),
    ),
    "study": (
        Rule(working, front_m=0.5),
        *(WINDOW, BOOKSHELF, ARMCHAIR, PLANT, FLOOR_LAMP, PICTURE, WALL_CLOCK),
        small_rug(1.2, 1.7),
    ),
    "library": (
        *(WINDOW, BOOKSHELF, BOOKSHELF, READING, BOOKSHELF),
        Rule(playing, front_m=0.4, chance=0.4),
        BOOKSHELF._replace(chance=0.5),
        CLOCK._replace(chance=0.6),
        PLANT,
        PICTURE,
        small_rug(1.4, 1.9),
    ),
    "gym": (
        BARE_WINDOW,
        Rule(at_wall(furniture.treadmill), front_m=0.5),
        Rule(at_wall(furniture.exercise_bike), front_m=0.4),
        Rule(at_wall(furniture.dumbbell_rack), front_m=0.6),
        Rule(at_wall(furniture.weight_bench), front_m=0.4),
        BENCH._replace(chance=0.3),
        PLANT._replace(chance=0.4),
        WALL_CLOCK,
    ),
    "bathroom": (
        Rule(at_wall(appliances.toilet)),
        Rule(at_wall(appliances.bathtub), chance=0.8),
        Rule(at_wall(appliances.shower), "corner", 0.6, unless="bathtub"),
        Rule(washing),
        Rule(at_wall(appliances.shower), "corner", 0.6, 0.7, unless="shower"),
        BARE_WINDOW,
        Rule(at_wall(appliances.towel_rail), "wall", 0.0, 0.8),
        MACHINE._replace(chance=0.2),
        small_rug(0.6, 0.9),
        PLANT._replace(chance=0.4),
    ),
    "laundry room": (
        BARE_WINDOW,
        MACHINE,
        Rule(at_wall(appliances.ironing_board), chance=0.8),
        SHELF._replace(chance=0.6),
        Rule(washing, chance=0.4),
    ),
    "storage room": (
        BARE_WINDOW._replace(chance=0.3),
        *(SHELF, BOX, SHELF, BOX),
        Rule(at_wall(cabinets.wardrobe), chance=0.3),
    ),
    "pantry": (
        BARE_WINDOW._replace(chance=0.3),
        JARS,
        JARS,
        Rule(at_wall(cabinets.wine_rack), chance=0.7),
        BOX,
    ),
}
