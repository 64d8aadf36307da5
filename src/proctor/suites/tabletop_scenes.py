"""Tabletop scenes drawn at random: furniture, and things on it that can be told apart."""

from __future__ import annotations

import math
from typing import NamedTuple

import msgspec
import numpy as np

from proctor.core.types import Array
from proctor.scenes.kinds import KINDS
from proctor.scenes.tabletop_parts import SceneItem, Shape
from proctor.scenes.thing import Thing
from proctor.scenes.things import make_thing

COLORS = ("red", "orange", "yellow", "green", "turquoise", "blue", "purple", "pink", "white", "black")
LOOK_ALIKE = ({"cup", "mug"}, {"box", "block"}, {"can", "cylinder"}, {"tray", "basket"}, {"bowl", "plate"})
"""Kinds that some would call by each other's name: two of the same colour would be mistaken."""
EDGE_M, GAP_M = 0.03, 0.045
"""From a thing to the edge of what it stands on, and to the next thing."""
TRIES, NEAR_TRIES = 60, 8
HEIGHTS_M = {"counter": (0.82, 0.95), "stand": (0.55, 0.75)}
Size = tuple[float, float, float]


class Repertoire(NamedTuple):
    """What a part of the exam is made of."""

    furniture: tuple[str, ...]
    objects: tuple[str, ...]
    containers: tuple[str, ...]


class PlacedItem(NamedTuple):
    """A thing in a scene."""

    item: SceneItem
    kind: str
    color: str
    radius_m: float
    """Around its origin, seen from above."""


class SceneDraft:
    """A scene in the making."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        self.placed: list[PlacedItem] = []

    @property
    def items(self) -> list[SceneItem]:
        """What it consists of."""
        return [placed.item for placed in self.placed]

    def add_furniture(self, kind: str, center: Array, yaw: float) -> PlacedItem:
        """Put a piece of furniture of some size on the floor."""
        size = self._furniture_size(kind)
        color = str(self.rng.choice(["brown", "beige", "white", "grey", "black"]))
        position = (float(center[0]), float(center[1]), size[2] / 2)
        return self._put(_item(kind, color, size, position, yaw, static=True), kind, color)

    def add_furniture_beside(
        self, other: PlacedItem, kind: str, *, bearing: float, gap_m: float, yaw: float
    ) -> PlacedItem:
        """Put another piece of furniture on the floor, clear of the first whichever way they are turned."""
        added = self.add_furniture(kind, np.zeros(2), yaw)
        away_m = other.radius_m + added.radius_m + gap_m
        x, y, z = other.item.position[0], other.item.position[1], added.item.position[2]
        position = (
            round(x + away_m * math.cos(bearing), 3),
            round(y + away_m * math.sin(bearing), 3),
            z,
        )
        self.placed[-1] = added._replace(item=msgspec.structs.replace(added.item, position=position))
        return self.placed[-1]

    def add_thing(
        self, kind: str, support: PlacedItem, *, near: Array | None = None, graspable: bool = True
    ) -> PlacedItem | None:
        """Put an object on a piece of furniture, clear of the others; None if there is no room.

        It goes as near to `near`, in the world, as possible.
        """
        color = self._color_for(kind)
        if color is None:
            return None
        size = self._size_of(kind)
        radius_m = _radius_m(make_thing(_item(kind, color, size, (0.0, 0.0, 0.0), 0.0), None))
        tries = 1 if near is None else NEAR_TRIES
        spots = [spot for _ in range(tries) if (spot := self.free_spot(support, radius_m)) is not None]
        if not spots:
            return None
        spot = spots[0] if near is None else min(spots, key=lambda xyz: math.dist(xyz[:2], near[:2]))
        yaw = math.radians(15.0 * int(self.rng.integers(24)))
        return self._put(_item(kind, color, size, spot, yaw, graspable=graspable), kind, color)

    def free_spot(self, support: PlacedItem, radius_m: float) -> tuple[float, float, float] | None:
        """Return a place on a piece of furniture for something as large as this; None if none was found."""
        shape = support.item.shape
        size = shape.size if shape and shape.size else (0.0, 0.0, 0.0)
        x, y, z = support.item.position
        yaw = 2 * math.atan2(support.item.rotation[2], support.item.rotation[3])
        half = np.array(size[:2]) / 2 - radius_m - EDGE_M
        if half.min() <= 0:
            return None
        for _ in range(TRIES):
            along, aside = self.rng.uniform(-half, half)
            if KINDS[support.kind].is_round and math.hypot(along, aside) > half[0]:
                continue
            spot = (
                round(x + math.cos(yaw) * along - math.sin(yaw) * aside, 3),
                round(y + math.sin(yaw) * along + math.cos(yaw) * aside, 3),
            )
            if all(
                math.dist(spot, other.item.position[:2]) > radius_m + other.radius_m + GAP_M
                for other in self.placed
                if not other.item.static
            ):
                return (*spot, round(z + size[2] / 2, 3))
        return None

    def _put(self, item: SceneItem, kind: str, color: str) -> PlacedItem:
        self.placed.append(PlacedItem(item, kind, color, _radius_m(make_thing(item, None))))
        return self.placed[-1]

    def _color_for(self, kind: str) -> str | None:
        """Return a colour that tells a thing from all others of its kind, and of kinds that look like it."""
        alike = next((kinds for kinds in LOOK_ALIKE if kind in kinds), {kind})
        taken = {placed.color for placed in self.placed if placed.kind in alike}
        free = [color for color in COLORS if color not in taken]
        return str(self.rng.choice(free)) if free else None

    def _furniture_size(self, kind: str) -> Size:
        rng = self.rng
        height = round(float(rng.uniform(*HEIGHTS_M.get(kind, (0.6, 0.9)))), 2)
        if kind == "stand":
            wide = round(float(rng.uniform(0.5, 0.66)), 2)
            return wide, wide, height
        deep = round(float(rng.uniform(*((0.35, 0.42) if kind == "shelf" else (0.5, 0.7)))), 2)
        return deep, round(float(rng.uniform(0.9, 1.5)), 2), height

    def _size_of(self, kind: str) -> Size:
        """Return a size like that of the kind, that a hand can hold if it is to be held."""
        rng, (depth, width, height) = self.rng, KINDS[kind].size_m
        scale = rng.uniform(0.85, 1.12, 3)
        if kind == "box":
            sizes = rng.uniform(0.03, 0.066), rng.uniform(0.04, 0.12), rng.uniform(0.05, 0.16)
        elif kind == "block":
            sizes = rng.uniform(0.03, 0.06), rng.uniform(0.03, 0.06), rng.uniform(0.025, 0.06)
        elif kind == "ball":
            sizes = (scale[0] * depth,) * 3
        elif KINDS[kind].is_round:
            widest = 0.068 if KINDS[kind].is_graspable else 1.0
            sizes = (min(scale[0] * depth, widest),) * 2 + (scale[2] * height,)
        else:
            sizes = scale[0] * depth, scale[1] * width, scale[2] * height
        depth, width, height = (round(float(size), 3) for size in sizes)
        return depth, width, height


def _item(
    kind: str,
    color: str,
    size: Size,
    position: Size,
    yaw: float,
    *,
    static: bool = False,
    graspable: bool = False,
) -> SceneItem:
    x, y, z = (round(value, 3) for value in position)
    return SceneItem(
        name=f"{kind}_{color}",
        position=(x, y, z),
        rotation=(0.0, 0.0, round(math.sin(yaw / 2), 6), round(math.cos(yaw / 2), 6)),
        static=static,
        graspable=graspable,
        shape=Shape(kind=kind, color=color, size=size),
    )


def _radius_m(thing: Thing) -> float:
    """Return how far a thing reaches from its origin, seen from above."""
    return float(np.hypot(thing.points[:, 0], thing.points[:, 1]).max())
