"""The policy that knows where everything is: the upper bound of pick-and-place."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from proctor.core.geometry import pose_into, pose_out_of
from proctor.core.interfaces import TRUTH, Policy
from proctor.core.types import Array, EpisodeInfo, Info, Observation, Pose2
from proctor.exams.pick_place.episode import PickAndPlaceEpisode
from proctor.exams.pick_place.expert.paths import EXACT, LIFT, NEAR, changed, is_there
from proctor.exams.pick_place.expert.plans import Planner, PosturePlan, base_of, controls_of, turned
from proctor.robots.stretch import CONTROLS, GRIPPER_OPEN_M
from proctor.robots.stretch_kinematics import hand_in_world, reach_by_driving
from proctor.scenes.things import make_thing

Script = Generator[Array, None, bool]
"""Yields what to command, controls in the world, once a step; returns whether it worked."""
GRIPPER = len(CONTROLS) - 1
FARTHEST_M = 0.45  # a base is not sent farther than this at a time
PUSHED_M = 0.01
CLOSING_STEPS, FIRM_STEPS, OPENING_STEPS, PATIENCE_STEPS = 20, 3, 15, 60
STEADY_M = 2e-4  # fingers that have moved less than this in a step have closed
LOST_STEPS, FOREVER = 3, 1_000_000


class ExpertPolicy(Policy):
    """Reaches, grasps, lifts, carries and places, by what it knows of the world.

    It plans a path on the true geometry, follows it, and checks at every step whether the object is where it
    should be: one that was pushed, missed or dropped is picked up again.
    """

    privileged: ClassVar[bool] = True

    _planner: Planner
    _script: Script

    def __init__(self) -> None:
        self._truth: Info = {}
        self._start = Pose2(0.0, 0.0, 0.0)
        self._failed: list[float] = []

    def reset(self, episode_info: EpisodeInfo) -> None:
        """Look at the scene."""
        episode: PickAndPlaceEpisode = episode_info.episode
        folder = Path(episode.assets_path) if episode.assets_path else None
        things = {item.name: make_thing(item, folder) for item in episode.scene_objects}
        self._planner = Planner(episode, things)
        self._start = Pose2(*episode.robot_config.init_pose.base)
        self._failed = []
        self._script = self._work()

    def act(self, observation: Observation) -> dict[str, Any]:
        """Do the next step."""
        self._truth = observation[TRUTH]
        return {"type": "joint_position", "qpos": self._relative(next(self._script)).tolist()}

    def _work(self) -> Script:
        """Pick the object up and put it down, again and again until the episode ends."""
        while True:
            if self._truth["phase"] == "place" and self._truth["object_in_target"]:
                present = self._controls()
                yield from self._wait(present, lambda: not self._truth["object_in_target"], PATIENCE_STEPS)
            if not (yield from self._pick()):
                yield self._controls()  # at least one step passes
            elif self._truth["target_position"] is None:
                yield from self._hold()
            else:
                yield from self._place()

    def _pick(self) -> Script:
        """Get the hand around the object, close it and lift; return whether the object came along."""
        planner = self._planner
        stood = self._truth["object_position"].copy()
        plan = planner.pick(self._controls(), self._truth, self._failed)
        if plan is None:
            yield from self._wait(self._controls(), lambda: self._is_pushed(stood), FOREVER)
            return False
        if not (yield from self._approach(plan, GRIPPER_OPEN_M, lambda: self._is_pushed(stood))):
            return False
        down = self._aimed(plan, plan.down.hand()[0])
        down[GRIPPER] = GRIPPER_OPEN_M
        yield from self._go(down, EXACT)
        down[GRIPPER] = 0.0
        if not (yield from self._close(down)):
            self._failed.append(plan.goal.heading)
            down[GRIPPER] = GRIPPER_OPEN_M
            yield from self._wait(down, lambda: self._truth["object_released"], OPENING_STEPS)
            yield from self._go(changed(down, lift=plan.path[-1][LIFT]), NEAR)
            return False
        up = changed(down, lift=planner.lifted_m(self._controls(), self._truth))
        lifted = yield from self._go(up, NEAR, self._is_lost())
        if not lifted:
            self._failed.append(plan.goal.heading)
        return lifted

    def _place(self) -> Script:
        """Carry the object to its place and let it go; return whether it was not lost in between."""
        planner, present = self._planner, self._controls()
        present[GRIPPER] = self._truth["gripper_state"]
        plan = planner.place(present, self._truth)
        is_lost = self._is_lost()
        if plan is None:
            yield from self._wait(self._command(), is_lost, FOREVER)
            return False
        if not (yield from self._approach(plan, 0.0, is_lost)):
            return False
        down = self._aimed(plan, plan.down.hand()[0] - self._slip(plan))
        down[GRIPPER] = 0.0
        yield from self._go(down, EXACT)
        down[GRIPPER] = plan.opening_m
        yield from self._wait(down, lambda: self._is_let_go(plan.opening_m), OPENING_STEPS)
        yield from self._go(changed(down, lift=plan.path[-1][LIFT]), NEAR)
        return True

    def _hold(self) -> Script:
        present = self._command()
        is_lost = self._is_lost()
        while not is_lost():
            yield present
        return False

    def _approach(self, plan: PosturePlan, opening_m: float, alarm: Callable[[], bool]) -> Script:
        for index, posture in enumerate(plan.path):
            goal = posture.copy()
            goal[GRIPPER] = opening_m
            is_last = index == len(plan.path) - 1
            if not (yield from self._go(goal, EXACT if is_last else NEAR, alarm)):
                return False
        return True

    def _aimed(self, plan: PosturePlan, hand: Array) -> Array:
        """Return the posture with the hand above a point, from where the base really is."""
        present = self._controls()
        posture = reach_by_driving(hand, plan.goal.heading, base_of(present)).clamped()
        aimed = controls_of(posture, 0.0)
        aimed[2] = plan.path[-1][2]
        return aimed

    def _slip(self, plan: PosturePlan) -> Array:
        """Return how far the object has moved in the hand since the plan was made."""
        present = self._controls()
        hand, heading = hand_in_world(base_of(present), *present[LIFT:GRIPPER])
        if plan.offset is None:
            return np.zeros(3)
        return np.asarray(
            self._truth["object_position"] - hand - turned(plan.offset, heading - plan.goal.heading)
        )

    def _go(self, goal: Array, tolerances: Array, alarm: Callable[[], bool] | None = None) -> Script:
        """Go to a posture; return whether there was no alarm. What cannot be reached is left at that."""
        planner, best, patience = self._planner, math.inf, PATIENCE_STEPS
        while patience > 0:
            present = self._controls()
            if is_there(present, goal, tolerances, nonholonomic=planner.nonholonomic):
                return True
            if alarm is not None and alarm():
                return False
            left = float(np.abs(goal - present)[:GRIPPER].sum())
            patience = PATIENCE_STEPS if left < best - 0.01 else patience - 1
            best = min(best, left)
            yield goal
        return alarm is None or not alarm()

    def _close(self, goal: Array) -> Script:
        """Close the fingers until they hold; return whether they do."""
        firm, opening_m = 0, math.inf
        for _ in range(CLOSING_STEPS):
            yield goal
            is_steady = abs(self._truth["gripper_state"] - opening_m) < STEADY_M
            opening_m = self._truth["gripper_state"]
            firm = firm + 1 if self._truth["object_grasped"] and is_steady else 0
            if firm >= FIRM_STEPS:
                return True
        return bool(self._truth["object_grasped"])

    def _wait(self, goal: Array, until: Callable[[], bool], steps: int) -> Script:
        for _ in range(steps):
            yield goal
            if until():
                return True
        return False

    def _is_pushed(self, stood: Array) -> bool:
        return bool(np.linalg.norm(self._truth["object_position"] - stood) > PUSHED_M)

    def _is_lost(self) -> Callable[[], bool]:
        """Return what tells whether the object has not been held for a while."""
        steps = 0

        def is_lost() -> bool:
            nonlocal steps
            steps = 0 if self._truth["object_grasped"] else steps + 1
            return steps >= LOST_STEPS

        return is_lost

    def _is_let_go(self, opening_m: float) -> bool:
        return bool(self._truth["object_released"] and self._truth["gripper_state"] > opening_m - 0.002)

    def _controls(self) -> Array:
        """Return where the controls are, the base's in the world."""
        qpos = self._truth["qpos"]
        base = pose_out_of(self._start, Pose2(*qpos[:3].tolist()))
        return np.array([base.x, base.y, base.yaw, qpos[3], qpos[4:8].sum(), *qpos[8:]])

    def _command(self) -> Array:
        """Return the command to stay and hold."""
        present = self._controls()
        present[GRIPPER] = 0.0
        return present

    def _relative(self, goal: Array) -> Array:
        """Return a command as actions have it: the base's part relative to its start, and not too far."""
        command, present = goal.copy(), self._controls()
        away = goal[:2] - present[:2]
        far_m = float(np.hypot(*away))
        if far_m > FARTHEST_M:
            command[:2] = present[:2] + away * (FARTHEST_M / far_m)
        base = pose_into(self._start, base_of(command))
        return np.array([base.x, base.y, base.yaw, *command[3:]])
