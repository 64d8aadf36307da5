"""A table without physics: the hand follows, the object sticks to a gripper that closes around it.

It shows and tells what the real env shows and tells, at a speed that lets tests do many episodes.
"""

import math
import os

import numpy as np

from proctor.core.interfaces import Env, Policy
from proctor.core.types import Vector3
from proctor.exams.pick_place.actions import EePoseTarget
from proctor.exams.pick_place.episode import PickAndPlaceEpisode
from proctor.robots.stretch import CONTROLS, controls_of_qpos, qpos_of_controls

REACH_M = 0.35
"""From the base to the hand of an arm that is drawn in."""
TABLE_Z, OBJECT_HEIGHT_M = 0.8, 0.1
HOLD_STEPS = 3


def record(index=0, **changes):
    """Return an episode as files have it."""
    start = [0.1 + 0.05 * index, -0.6, TABLE_Z]
    return {
        "episode_id": f"pick_{index}",
        "task_type": "pick_and_place",
        "scene_id": f"table_{index % 2}",
        "robot_config": {"robot_type": "stretch", "dof": 7},
        "task_goal": {
            "target_object": {"name": "cup_red", "initial_position": start},
            "target_location": {"type": "position", "position": [-0.15, -0.62, TABLE_Z], "radius": 0.1},
            "success_criteria": {"type": "place_at_location", "lift_height": 0.1, "place_tolerance": 0.05},
        },
        "scene_objects": [
            {"name": "table", "usd_path": "furniture/table.usd", "position": [0, -0.9, 0.4], "static": True},
            {"name": "cup_red", "usd_path": "objects/cup_red.usd", "position": start, "graspable": True},
        ],
        "instruction": {"text": "Pick up the red cup and place it at the target location"},
        "sim_params": {"max_steps": 200, "time_step": 0.01},
        **changes,
    }


def episode(index=0, **changes):
    return PickAndPlaceEpisode(**record(index, **changes))


class FakeTabletop(Env):
    """Takes the options of the real one, but for the pictures' size."""

    def __init__(self, *, object_info=False, level=0, level_seed=0, scale=0.05):
        self._object_info, self._scale = object_info, scale
        self.options = {"level": level, "level_seed": level_seed}

    def reset(self, episode):
        goal = episode.task_goal
        self._episode, self._step = episode, 0
        self._controls = np.array(controls_of_qpos(episode.robot_config.init_pose.joint_positions))
        self._speeds = np.zeros(7)
        self._object = np.array(
            goal.target_object.initial_position or episode.item(goal.target_object.name).position
        )
        self._start_z = self._object[2]
        self._location = goal.target_location
        self._held = self._lifted = self._collided = False
        self._collisions, self._done_steps, self._clamped, self._phase = 0, 0, [], "reach"
        return self._observation()

    def step(self, action):
        target = self._target(action)
        low, high, speed = (np.array([getattr(c, key) for c in CONTROLS]) for key in ("low", "high", "speed"))
        self._clamped = [c.name for c, t in zip(CONTROLS, target, strict=True) if not c.low <= t <= c.high]
        before = self._controls
        move = np.clip(np.clip(target, low, high) - before, -0.1 * speed, 0.1 * speed)
        self._controls, self._speeds = before + move, move / 0.1
        self._grip()
        hand = self._hand()
        self._collided = bool(hand[2] < TABLE_Z - 0.02 and hand[1] < -0.5)
        self._collisions += self._collided
        self._lifted |= self._held and self._object[2] > self._start_z + self._criteria.lift_height
        self._phase = self._next_phase()
        self._done_steps = self._done_steps + 1 if self._is_done_now() else 0
        self._step += 1
        info = self.info()
        return self._observation(), 0.0, info["success"] or self._step >= self._episode.step_limit, info

    def info(self):
        hand, base = self._hand(), self._controls
        return {
            **{"step": self._step, "time_s": 0.1 * self._step, "phase": self._phase},
            "gripper_state": float(self._controls[6]),
            "gripper_closed_below": 0.035,
            "object_grasped": self._held,
            "object_position": self._object.tolist(),
            "object_center": self._center().tolist(),
            "object_rotation": [1.0, 0.0, 0.0, 0.0],
            **{"object_speed": 0.0, "object_released": not self._held, "object_supported": not self._held},
            "object_at_rest": not self._held,
            "object_in_target": self._in_target(),
            "target_distance": self._target_m(),
            "initial_object_z": self._start_z,
            "target_lift_height": self._criteria.lift_height,
            "place_tolerance": self._criteria.place_tolerance,
            "target_position": None if self._location is None else list(self._location.position),
            "ee_position": hand.tolist(),
            **{"ee_pose": self._ee_pose(), "qpos": self._qpos(), "qvel": self._qvel()},
            **{"position": Vector3(base[0], base[1], 0.0), "yaw": float(base[2])},
            "distance_to_goal": self._target_m() or 0.0,
            **{"collision": self._collided, "collision_count": self._collisions},
            "touched": {"furniture": self._collided, "objects": False, "self": False},
            **{"clamped": self._clamped, "ik": None},
            "success": self._done_steps >= HOLD_STEPS,
        }

    def close(self):
        pass

    @property
    def _criteria(self):
        return self._episode.task_goal.success_criteria

    def _target(self, action):
        if not isinstance(action, EePoseTarget):
            return np.array(controls_of_qpos(action.qpos))
        x, y, z = action.ee_pose_target[:3]
        base_x, base_y, theta = self._controls[:3]
        return np.array([base_x + x, base_y, theta, z, -y - REACH_M, 0.0, action.gripper_action])

    def _hand(self):
        x, y, yaw, lift, arm = self._controls[:5]
        out = REACH_M + arm  # along -y of the base
        return np.array([x + out * math.sin(yaw), y - out * math.cos(yaw), lift])

    def _center(self):
        return self._object + np.array([0.0, 0.0, OBJECT_HEIGHT_M / 2])

    def _grip(self):
        near, gripper = np.linalg.norm(self._hand() - self._center()) < 0.03, self._controls[6]
        if self._held and gripper > 0.03:
            self._held, self._object = False, np.array([*self._object[:2], self._start_z])
        self._held |= bool(near and gripper < 0.03)
        if self._held:
            self._object = self._hand() - [0.0, 0.0, OBJECT_HEIGHT_M / 2]

    def _next_phase(self):
        if self._lifted and (self._held or self._in_target()):
            return "place"
        if self._held:
            return "lift"
        return "grasp" if np.linalg.norm(self._hand() - self._center()) < 0.05 else "reach"

    def _target_m(self):
        return None if self._location is None else math.dist(self._object, self._location.position)

    def _in_target(self):
        return None if self._location is None else self._target_m() < self._criteria.place_tolerance

    def _is_done_now(self):
        if self._location is None:
            return self._lifted and self._held
        return self._lifted and not self._held and self._in_target()

    def _qpos(self):
        return np.array(qpos_of_controls(tuple(self._controls)))

    def _qvel(self):
        return np.array(qpos_of_controls(tuple(self._speeds)))

    def _ee_pose(self):
        _, _, _, lift, arm = self._controls[:5]
        return np.array([0.0, -(REACH_M + arm), lift, 1.0, 0.0, 0.0, 0.0])

    def _observation(self):
        tall, wide = round(480 * self._scale), round(640 * self._scale)
        seen = {
            "rgb_head": np.full((tall, wide, 3), self._step % 256, np.uint8),
            "rgb_wrist": np.full((tall // 2, wide // 2, 3), 255 - self._step % 256, np.uint8),
            "depth_head": np.full((tall, wide), 1000 + self._step, np.uint16),
            **{"qpos": self._qpos(), "qvel": self._qvel(), "ee_pose": self._ee_pose()},
            "gripper_state": float(self._controls[6]),
            "instruction": {"text": self._episode.instruction.text},
        }
        if self._object_info:
            place = self._location and list(self._location.position)
            positions = {"target_object_position": self._object.tolist(), "target_location_position": place}
            seen["object_info"] = positions
        return seen


class Picker(Policy):
    """Picks and places by what everybody is told; the hand waits at each place until it is there."""

    def reset(self, episode_info):
        goal = episode_info.details["task_goal"]
        x, y, z = goal["target_object"]["initial_position"]
        to_x, to_y, to_z = goal["target_location"]["position"]
        z, to_z, high = z + OBJECT_HEIGHT_M / 2, to_z + OBJECT_HEIGHT_M / 2, z + 0.25
        wide, shut = 0.04, 0.02
        self._places = [
            *((0.0, -REACH_M, high, wide), (x, y, high, wide), (x, y, z, wide), (x, y, z, shut)),
            *((x, y, high, shut), (to_x, to_y, high, shut), (to_x, to_y, to_z, shut)),
            *((to_x, to_y, to_z, wide), (to_x, to_y, high, wide)),
        ]

    def act(self, observation):
        qpos = observation["qpos"]
        if (
            np.abs(np.array(self._command()["qpos"]) - qpos[: len(qpos)]).max() < 1e-6
            and len(self._places) > 1
        ):
            self._places.pop(0)
        return self._command()

    def _command(self):
        x, y, z, gripper = self._places[0]
        return {
            "type": "joint_position",
            "qpos": list(qpos_of_controls((x, 0.0, 0.0, z, -y - REACH_M, 0.0, gripper))),
        }


class Deadly(Picker):
    """Takes its whole process down in one episode."""

    def reset(self, episode_info):
        super().reset(episode_info)
        target = episode_info.details["task_goal"]["target_object"]
        self._is_last = target == record(1)["task_goal"]["target_object"]

    def act(self, observation):
        if self._is_last:
            os._exit(3)
        return super().act(observation)


class BrokenWorld(FakeTabletop):
    """Cannot set the table of one episode."""

    def reset(self, episode):
        if episode.episode_id == "pick_1":
            raise RuntimeError("the table fell over")
        return super().reset(episode)


class Untold(FakeTabletop):
    """Does not tell how it is at the start."""

    def info(self):
        return Env.info(self)
