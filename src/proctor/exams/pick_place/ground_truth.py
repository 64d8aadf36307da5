"""What is true of a pick-and-place episode: phase, grasp, where the object is, and whether it is done."""

from __future__ import annotations

from typing import Any

import numpy as np

from proctor.core.types import Array, Info, Vector3
from proctor.exams.pick_place.episode import PickAndPlaceEpisode
from proctor.exams.pick_place.stages import REACHED_M
from proctor.exams.pick_place.state import Phase
from proctor.robots.stretch import GRIPPER_OPEN_M
from proctor.scenes.tabletop_parts import TargetLocation
from proctor.scenes.thing import Thing
from proctor.worlds.mujoco.tabletop.tabletop import TabletopWorld, Touch

REST_MPS, REST_RADPS = 0.01, 0.2
SUCCESS_S = 1.0  # a success counts once it has lasted this long
CLOSED_SLACK_M, CLOSED_AT_MOST_M = 0.005, GRIPPER_OPEN_M - 0.002
"""Above half the object's width a gripper is closed up to this; one that is open never is."""
BUMPS = {"furniture": Touch.FURNITURE, "objects": Touch.OBJECTS, "self": Touch.SELF}

ON_TOP_M = 0.02  # so far from the height of a surface an object may be and still lie on it
BELOW_FLOOR_M = 0.01
UPRIGHT = 0.5
"""Of the height of a thing's upward axis: tipped over by more than 60 degrees, nothing is in or on it."""


class GroundTruth:
    """What the env reports of one episode as its info."""

    def __init__(self, episode: PickAndPlaceEpisode, world: TabletopWorld) -> None:
        self._episode, self._world, self._name = episode, world, episode.target_name
        self._criteria = episode.task_goal.success_criteria
        self._goal = goal_of(episode, world)
        self._points = world.things[self._name].points
        self._middle = (self._points.min(axis=0) + self._points.max(axis=0)) / 2
        self._initial = world.pose_of(self._name)[0]
        self._initial_z = float(self._initial[2])
        self._phase: Phase = "reach"
        self._was_lifted = self._is_carried = False
        self._good_steps = 0
        self._collisions = 0
        self.step = 0
        self.done = False
        self._info: Info = {}
        self.record(touched=0, clamped=[], ik=None)

    def record(self, *, touched: int, clamped: list[str], ik: dict[str, Any] | None) -> None:
        """Take in the state after an action, or before the first."""
        world = self._world
        thing = self._object()
        hand = world.hand_position()
        aloft = bool(thing["object_position"][2] > self._initial_z + self._criteria.lift_height)
        near = bool(np.linalg.norm(hand - thing["object_center"]) < REACHED_M)
        if thing["object_grasped"] and aloft:
            self._was_lifted = self._is_carried = True
        elif not (thing["object_grasped"] or thing["object_in_target"]):
            self._is_carried = False  # what was lost has to be lifted once more
        self._phase = self._next_phase(thing, near=near)
        self._good_steps = self._good_steps + 1 if self._is_good(thing, aloft=aloft) else 0
        success = self._good_steps * self._episode.sim_params.control_period >= SUCCESS_S - 1e-9
        bumped = {name: bool(touched & flag) for name, flag in BUMPS.items()}
        self._collisions += any(bumped.values())
        base, qpos = world.base_pose(), world.qpos()
        self._info = {
            "step": self.step,
            "time_s": world.time_s,
            "phase": self._phase,
            "gripper_state": min(max(float(qpos[-1]), 0.0), GRIPPER_OPEN_M),
            **thing,
            "initial_object_position": self._initial.copy(),
            "initial_object_z": self._initial_z,
            "target_lift_height": self._criteria.lift_height,
            "place_tolerance": self._criteria.place_tolerance,
            "target_position": None if self._goal is None else self._goal.position(),
            "ee_position": hand,
            "ee_pose": world.hand_pose_in_base(),
            "qpos": qpos,
            "qvel": world.qvel(),
            "position": Vector3(base.x, base.y, 0.0),
            "yaw": base.yaw,
            "distance_to_goal": thing["target_distance"] or 0.0,
            "collision": any(bumped.values()),
            "collision_count": self._collisions,
            "touched": bumped,
            "clamped": clamped,
            "ik": ik,
            "success": success,
        }
        self.done = success or self.step >= self._episode.step_limit

    def info(self) -> Info:
        """Return the ground truth of the present state."""
        return dict(self._info)

    def _object(self) -> Info:
        world, goal = self._world, self._goal
        position, turned = world.pose_of(self._name)
        speed_mps, spin_radps = world.speed_of(self._name)
        touch = world.toucher.touch(world.data)
        return {
            "gripper_closed_below": min(self._half_width_m(turned) + CLOSED_SLACK_M, CLOSED_AT_MOST_M),
            "object_grasped": bool(touch & Touch.LEFT) and bool(touch & Touch.RIGHT),
            "object_position": position,
            "object_center": position + turned @ self._middle,
            "object_rotation": world.quaternion_of(self._name),
            "object_speed": speed_mps,
            "object_released": not touch & Touch.ROBOT,
            "object_supported": bool(touch & Touch.SUPPORT),
            "object_at_rest": speed_mps < REST_MPS and spin_radps < REST_RADPS,
            "object_in_target": None if goal is None else goal.contains(position),
            "target_distance": None if goal is None else goal.distance_m(position),
        }

    def _next_phase(self, thing: Info, *, near: bool) -> Phase:
        if self._is_carried:
            return "place"
        if thing["object_grasped"]:
            return "lift"
        return "grasp" if near else "reach"

    def _is_good(self, thing: Info, *, aloft: bool) -> bool:
        """Tell whether the task is done, if it stays like this."""
        if self._goal is None:
            return bool(thing["object_grasped"] and aloft)
        needed = ("object_in_target", "object_at_rest", "object_released")
        return self._was_lifted and all(thing[name] for name in needed)

    def _half_width_m(self, turned: Array) -> float:
        """Return half of what the object measures between the fingers."""
        closing = self._world.closing_direction()
        along = self._points @ (turned.T @ closing)
        return float(along.max() - along.min()) / 2


def goal_of(episode: PickAndPlaceEpisode, world: TabletopWorld) -> _Spot | _Inside | None:
    """Return where the episode's object should go; None if it need only be lifted.

    Its `position` is the middle of the place in the world, as it is now; `distance_m` and `contains` take
    the object's origin.
    """
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
        return bool(turned[2, 2] > UPRIGHT) and self.distance_m(point) <= 1e-9  # rounding


class _OnTop(_Inside):
    def __init__(self, world: TabletopWorld, name: str, thing: Thing) -> None:
        # A plate's or tray's surface is its floor, not its rim.
        top_z = thing.high[2] if thing.cavity is None else thing.cavity.floor_z
        low, high = [*thing.low[:2], top_z - ON_TOP_M], [*thing.high[:2], top_z + ON_TOP_M]
        super().__init__(world, name, np.array(low), np.array(high))

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
