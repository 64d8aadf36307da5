"""Joint commands that bring the hand to a pose.

What lies near and free is reached in closed form. Otherwise the hand is led towards its goal in short steps,
each a small quadratic program: come nearer, within the limits, not into furniture, and rather with the arm
than with the base. The command is the end of that way, or how far along it the robot can be sent at once.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from proctor.core.types import Array
from proctor.robots.stretch import GRIPPER_OPEN_M
from proctor.sim.hand_walk import Goal, Walk, goal_in_world
from proctor.sim.tabletop import HIGH, LOW, TabletopWorld

REACHED_M, REACHED_RAD = 1e-3, 1e-2
"""A pose is reached when the command brings the hand as near as this."""
SAME_POSE = 1e-3
"""Two poses are the same if no number differs by more: what learned agents send is never quite the same."""
HELD = np.array([0.005, 0.005, 0.01])
"""The base stays where it was told to be, not where a push has taken it, if that is so near."""

STILL_PER_S = 0.01
"""Metres or radians."""


class Solution(NamedTuple):
    """What to command, and how near that will bring the hand, if it is asked for until the hand is there."""

    controls: Array
    """The seven, the base's relative to its start."""
    reached: bool
    position_error_m: float
    angle_error_rad: float
    """Of the heading alone."""

    def report(self) -> dict[str, Any]:
        """Return what `info` says of it."""
        return {
            "reached": self.reached,
            "position_error_m": self.position_error_m,
            "angle_error_rad": self.angle_error_rad,
        }


class HandSolver:
    """Finds commands for poses of the hand.

    Of the orientation that is asked for, the heading of the fingers counts: their pitch is fixed, and they
    have no roll. A pose that is asked for again, within SAME_POSE and after no other command, means the same
    place in the world, even though the base has moved meanwhile.

    Args:
        world: Whose robot.
    """

    def __init__(self, world: TabletopWorld) -> None:
        self._world = world
        # Without sliding it cannot come back from the side: it has to know where it really is.
        self._held = 0.0 * HELD if world.episode.robot_config.nonholonomic else HELD
        self._walk: Walk | None = None
        self._goal: Goal | None = None
        self._asked: list[float] = []
        self._last: Solution | None = None

    def solve(self, hand_in_base: Array, opening_m: float) -> Solution:
        """Return the commands for a pose of the hand in `base_link`: x, y, z and a quaternion w, x, y, z."""
        if self._walk is None:  # only who commands the hand pays for it
            self._walk = Walk(self._world)
        asked = np.asarray(hand_in_base, float).tolist()
        opening_m = min(max(opening_m, 0.0), GRIPPER_OPEN_M)
        last, target = self._last, self._world.target
        is_near = len(self._asked) > 0 and np.allclose(asked, self._asked, rtol=0.0, atol=SAME_POSE)
        is_same = last is not None and is_near and np.array_equal(target, last.controls)
        if not is_same or self._goal is None:
            self._goal, self._asked = goal_in_world(np.array(asked), self._world.base_pose()), asked
        if last is not None and is_same and self._walk.arrives and self._is_on_its_way(last):
            solution = last._replace(controls=np.array([*last.controls[:-1], opening_m]))
        else:
            solution = self._solution(self._walk, self._goal, opening_m)
        self._last = solution
        return solution

    def _is_on_its_way(self, solution: Solution) -> bool:
        """Return whether the robot still moves to where it was told, or has come to its goal there.

        Then it should not be told otherwise: it cannot stop at once.
        """
        is_moving = np.abs(self._world.qvel()[:9]).max() > STILL_PER_S
        lag = np.abs(self._world.controls() - solution.controls)
        return bool(is_moving or (solution.reached and lag[:6].max() < REACHED_M))

    def _solution(self, walk: Walk, goal: Goal, opening_m: float) -> Solution:
        present, target = self._world.controls(), self._world.target
        is_near = np.abs(target[:3] - present[:3]) < self._held
        walk.start(np.where(is_near, target[:3], present[:3]), present)
        walk.limit(present, max(opening_m, float(present[-1])))
        position_m, angle_rad = walk.lead(goal)
        around = np.array([*present[:3], 0.0, 0.0, 0.0, 0.0])  # as the world will clamp it
        controls = np.clip([*walk.controls(), opening_m], LOW + around, HIGH + around)
        reached = position_m < REACHED_M and angle_rad < REACHED_RAD
        return Solution(controls, reached, position_m, angle_rad)
