"""What is true of a pick-and-place episode: phase, grasp, where the object is, and whether it is done."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from proctor.core.types import Array, Info, Vector3
from proctor.exams.pick_place.episode import PickAndPlaceEpisode
from proctor.exams.pick_place.placing import goal_of
from proctor.robots.stretch import GRIPPER_OPEN_M
from proctor.sim.tabletop import TabletopWorld
from proctor.sim.touching import Touch

Phase = Literal["reach", "grasp", "lift", "place"]
REACHED_M = 0.05
REST_MPS, REST_RADPS = 0.01, 0.2
SUCCESS_S = 1.0
"""A success counts once it has lasted this long."""
CLOSED_SLACK_M, CLOSED_AT_MOST_M = 0.005, GRIPPER_OPEN_M - 0.002
"""Above half the object's width a gripper is closed up to this; one that is open never is."""
BUMPS = {"furniture": Touch.FURNITURE, "objects": Touch.OBJECTS, "self": Touch.SELF}


class PickPlaceState:
    """The bookkeeping of one episode.

    Args:
        episode: The episode.
        world: Its world, settled.
    """

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
            "initial_object_position": self._initial,
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
        """Return what is true of the object."""
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
