"""What is true of a pick-and-place episode: phase, grasp, where the object is, and whether it is done."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from proctor.core.types import Array, Info, Vector3
from proctor.envs.placing import goal_of
from proctor.episodes.pick_place import PickAndPlaceEpisode
from proctor.sim.tabletop import TabletopWorld
from proctor.sim.touching import Touch

Phase = Literal["reach", "grasp", "lift", "place"]
REACHED_M = 0.05
REST_MPS, REST_RADPS = 0.01, 0.2
SUCCESS_S = 1.0
"""A success counts once it has lasted this long."""
CLOSED_SLACK_M = 0.005
BUMPS = {"furniture": Touch.FURNITURE, "objects": Touch.OBJECTS, "self": Touch.SELF}


class PickPlaceState:
    """The bookkeeping of one episode.

    Args:
        episode: The episode, which has a target object.
        world: Its world, settled.
    """

    def __init__(self, episode: PickAndPlaceEpisode, world: TabletopWorld) -> None:
        target, criteria = episode.task_goal.target_object, episode.task_goal.success_criteria
        assert target is not None  # noqa: S101  (the env has refused episodes without one)
        self._episode, self._world, self._name, self._criteria = episode, world, target.name, criteria
        self._goal = goal_of(episode, world)
        self._points = world.things[target.name].points
        self._middle = (self._points.min(axis=0) + self._points.max(axis=0)) / 2
        self._initial_z = float(world.pose_of(target.name)[0][2])
        self._phase: Phase = "reach"
        self._was_lifted = False
        self._good_steps = 0
        self._collisions = 0
        self.step = 0
        self.done = False
        self._info: Info = {}
        self.record(touched=0, clamped=[], ik=None)

    def record(self, *, touched: int, clamped: list[str], ik: dict[str, Any] | None) -> None:
        """Take in the state after an action, or before the first."""
        world = self._world
        position, turned = world.pose_of(self._name)
        speed_mps, spin_radps = world.speed_of(self._name)
        touch = world.toucher.touch(world.data)
        hand = world.hand_position()
        grasped = bool(touch & Touch.LEFT) and bool(touch & Touch.RIGHT)
        released = not touch & Touch.ROBOT
        aloft = bool(position[2] > self._initial_z + self._criteria.lift_height)
        self._was_lifted |= grasped and aloft
        inside = None if self._goal is None else self._goal.contains(position)
        center = position + turned @ self._middle
        near = bool(np.linalg.norm(hand - center) < REACHED_M)
        self._phase = self._next_phase(near=near, grasped=grasped, aloft=aloft, inside=bool(inside))
        at_rest = speed_mps < REST_MPS and spin_radps < REST_RADPS
        if self._goal is None:
            good = grasped and aloft
        else:
            good = bool(self._was_lifted and inside and at_rest and released)
        self._good_steps = self._good_steps + 1 if good else 0
        bumped = {name: bool(touched & flag) for name, flag in BUMPS.items()}
        self._collisions += any(bumped.values())
        params = self._episode.sim_params
        success = self._good_steps * params.control_period >= SUCCESS_S - 1e-9
        base, qpos = world.base_pose(), world.qpos()
        distance_m = None if self._goal is None else self._goal.distance_m(position)
        self._info = {
            "step": self.step,
            "time_s": world.time_s,
            "phase": self._phase,
            "gripper_state": float(qpos[-1]),
            "gripper_closed_below": self._half_width_m(turned) + CLOSED_SLACK_M,
            "object_grasped": grasped,
            "object_position": position,
            "object_center": center,
            "object_rotation": world.quaternion_of(self._name),
            "object_speed": speed_mps,
            "object_released": released,
            "object_supported": bool(touch & Touch.SUPPORT),
            "object_at_rest": at_rest,
            "object_in_target": inside,
            "target_distance": distance_m,
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
            "distance_to_goal": distance_m or 0.0,
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

    def _next_phase(self, *, near: bool, grasped: bool, aloft: bool, inside: bool) -> Phase:
        if self._was_lifted and (grasped or inside):
            return "place"
        if grasped:
            return "place" if aloft else "lift"
        return "grasp" if near else "reach"

    def _half_width_m(self, turned: Array) -> float:
        """Return half of what the object measures between the fingers."""
        closing = self._world.closing_direction()
        along = self._points @ (turned.T @ closing)
        return float(along.max() - along.min()) / 2
