"""Where an object should go, and whether it is there: at a position, inside of something, on top of it."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from proctor.core.types import Array
from proctor.exams.pick_place.episode import PickAndPlaceEpisode, TargetLocation
from proctor.scenes.thing import Thing
from proctor.sim.tabletop import TabletopWorld

ON_TOP_M = 0.02
"""So far from the height of a surface an object may be and still lie on it."""
BELOW_FLOOR_M = 0.01
ROUND_OFF_M = 1e-9
UPRIGHT = 0.5
"""Of the height of a thing's upward axis: tipped over by more than 60 degrees, nothing is in or on it."""


class Goal(Protocol):
    """A place for an object."""

    def position(self) -> Array:
        """Return the middle of the place in the world, as it is now."""

    def distance_m(self, point: Array) -> float:
        """Return how far an object's origin is from the place."""

    def contains(self, point: Array) -> bool:
        """Tell whether an object with this origin is in its place."""


def goal_of(episode: PickAndPlaceEpisode, world: TabletopWorld) -> Goal | None:
    """Return where the episode's object should go; None if it need only be lifted."""
    location = episode.task_goal.target_location
    if location is None:
        return None
    name = episode.support_name()
    if name is None:
        return _Spot(location, episode.task_goal.success_criteria.place_tolerance)
    thing = world.things[name]
    if location.type == "container":
        low, high, is_round = _cavity(thing)
        return _Inside(world, name, low, high, is_round=is_round)
    return _OnTop(world, name, thing)


class _Spot:
    def __init__(self, location: TargetLocation, tolerance_m: float) -> None:
        self._position, self._tolerance_m = np.array(location.position, float), tolerance_m

    def position(self) -> Array:
        return self._position.copy()

    def distance_m(self, point: Array) -> float:
        return float(np.linalg.norm(point - self._position))

    def contains(self, point: Array) -> bool:
        return self.distance_m(point) < self._tolerance_m


class _Inside:
    """The inside of a thing, wherever the thing is now: a box or an upright cylinder in its frame."""

    def __init__(
        self, world: TabletopWorld, name: str, low: Array, high: Array, *, is_round: bool = False
    ) -> None:
        self._world, self._name = world, name
        self._low, self._high, self._is_round = low, high, is_round

    def position(self) -> Array:
        at, turned = self._world.pose_of(self._name)
        middle = (self._low + self._high) / 2
        return np.asarray(at + turned @ [*middle[:2], self._low[2]])

    def distance_m(self, point: Array) -> float:
        at, turned = self._world.pose_of(self._name)
        local = (point - at) @ turned
        middle, half = (self._low + self._high) / 2, (self._high - self._low) / 2
        beyond = np.maximum(np.abs(local - middle) - half, 0.0)
        if self._is_round:
            share = np.hypot(*((local - middle)[:2] / half[:2]))
            radial = np.hypot(*(local - middle)[:2])
            beyond[:2] = radial * max(0.0, 1 - 1 / max(share, 1e-9)), 0.0
        return float(np.linalg.norm(beyond))

    def contains(self, point: Array) -> bool:
        _, turned = self._world.pose_of(self._name)
        return bool(turned[2, 2] > UPRIGHT) and self.distance_m(point) <= ROUND_OFF_M


class _OnTop(_Inside):
    def __init__(self, world: TabletopWorld, name: str, thing: Thing) -> None:
        low, high = thing.low, thing.high.copy()
        if thing.cavity is not None:  # a plate's or tray's surface is its floor, not its rim
            high[2] = thing.cavity.floor_z
        at = np.array([*low[:2], high[2] - ON_TOP_M]), np.array([*high[:2], high[2] + ON_TOP_M])
        super().__init__(world, name, *at)

    def position(self) -> Array:
        return np.add(super().position(), [0.0, 0.0, ON_TOP_M])


def _cavity(thing: Thing) -> tuple[Array, Array, bool]:
    """Return the inside of a container; of a thing that has none, its whole box."""
    cavity = thing.cavity
    if cavity is None:
        return thing.low, thing.high, False
    half = np.array([cavity.half_x_m, cavity.half_y_m])
    low, high = np.array([*-half, cavity.floor_z - BELOW_FLOOR_M]), np.array([*half, cavity.rim_z])
    return low, high, cavity.is_round
