"""Joint commands that bring the hand to a pose.

A pose that is near and free is reached in closed form. Otherwise the hand moves towards its goal in short
steps, each a small quadratic program: come nearer, within the limits, not into furniture, and rather with the
arm than with the base. The command is the end of that path, or as far along it as the robot can go at once.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import mink
import mujoco
import numpy as np
from qpsolvers.exceptions import ProblemError, SolverError

from proctor.core.geometry import pose_into, pose_out_of, wrap_angle
from proctor.core.types import Array, Pose2
from proctor.robots.stretch import CONTROLS, GRIPPER_OPEN_M
from proctor.robots.stretch_kinematics import (
    HAND_HEIGHT_M,
    HEADING_AT_ZERO,
    hand_quaternion,
    heading_of,
    reach_by_driving,
    wrist_for,
)
from proctor.worlds.mujoco.tabletop.look import PLAIN
from proctor.worlds.mujoco.tabletop.reach_limits import SIGHT_M, Avoidance, Ranges, Tied
from proctor.worlds.mujoco.tabletop.set_points import SetPoints
from proctor.worlds.mujoco.tabletop.stretch_model import (
    ARM_JOINTS,
    BASE,
    BASE_JOINTS,
    FINGERS,
    HAND_SITE,
    finger_angle,
)
from proctor.worlds.mujoco.tabletop.tabletop import HIGH, LOW, TabletopWorld
from proctor.worlds.mujoco.tabletop.tabletop_model import build_tabletop

NEAR_M, NEAR_RAD = 2e-5, 2e-4
"""Nearer than this, no further step is taken."""
STRIDE_M, STRIDE_RAD = 0.12, 0.5
MOST_STEPS, MOST_VAIN_STEPS = 40, 3
FURTHEST_M = 1e6
"""What lies beyond is as far as this."""
STILL_M = 1e-6
WORTH_M = 0.01
"""A way that leads nearer by less is not worth while."""
SHORT = 0.05
"""Joints that are no further than this from where they should be, metres or radians, go straight there."""
WAY_CLEARANCE_M = 0.015
"""From furniture, on the way: the joints lag behind their set points. At its ends it may be less."""
MOVE_S, MOST_MOVES = 0.1, 100
HEADING_WEIGHT = 3.0
"""Metres for a radian: what is out of reach is approached with the heading that was asked for."""
EFFORTS = {
    **dict(zip(BASE_JOINTS, (0.003, 0.1, 0.1), strict=True)),
    "joint_lift": 3e-4,
    **dict.fromkeys(ARM_JOINTS, 3e-4),
    "joint_wrist_yaw": 3e-4,
}
"""What moving a joint costs: arm and wrist little, driving more, turning and sliding sideways much."""
REACHED_M, REACHED_RAD = 1e-3, 1e-2
"""A pose is reached when the command brings the hand as near as this."""
SAME_POSE = 1e-3
"""Two poses are the same if no number differs by more: what learned agents send is never quite the same."""
HELD = np.array([0.005, 0.005, 0.01])
"""The base stays where it was told to be, not where a push has taken it, if that is so near."""


class Goal(NamedTuple):
    """Where the hand should be in the world."""

    position: Array
    heading: float


def goal_in_world(hand_in_base: Array, base: Pose2) -> Goal:
    """Return what a pose in `base_link`, x, y, z and a quaternion w, x, y, z, means in the world."""
    x, y, z = np.clip(hand_in_base[:3], -FURTHEST_M, FURTHEST_M).tolist()
    hand = pose_out_of(base, Pose2(x, y, heading_of(hand_in_base[3:])))
    return Goal(np.array([hand.x, hand.y, z]), wrap_angle(hand.yaw))


def _cost_m(left: tuple[float, float]) -> float:
    """Return what is left of a way, with what a turn is worth."""
    return left[0] + HEADING_WEIGHT * left[1]


def _at_height(goal: Goal, z: float) -> Goal:
    return goal._replace(position=np.array([*goal.position[:2], z]))


class Walk:
    """The robot among the furniture of an episode. Base joints are relative to the walk's start, x ahead."""

    def __init__(self, world: TabletopWorld) -> None:
        setup = world.episode.robot_config
        self._origin = Pose2(*setup.init_pose.base)
        bare = world.episode.without_movables()
        self._model = model = build_tabletop(bare, world.things, PLAIN, drawn=False)
        model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT  # there are no forces here
        self._robot = mink.Configuration(model)
        self._base, self._site = model.body(BASE).id, model.site(HAND_SITE).id
        self._lift, self._wrist = (self._at(name) for name in ("joint_lift", "joint_wrist_yaw"))
        self._arm, self._fingers = ([self._at(name) for name in names] for names in (ARM_JOINTS, FINGERS))
        efforts = np.zeros(model.nv)
        for name, effort in EFFORTS.items():
            efforts[self._at(name)] = effort
        self._hand = mink.FrameTask(HAND_SITE, "site", position_cost=1.0, orientation_cost=HEADING_WEIGHT)
        self._tasks = [self._hand, mink.DampingTask(model, efforts)]
        self._nonholonomic = setup.nonholonomic
        frozen = (*FINGERS, BASE_JOINTS[1]) if setup.nonholonomic else FINGERS
        self._ties = [Tied(model, ARM_JOINTS, frozen)]
        furniture = [item.name for item in bare.scene_objects]
        self._ranges, self._avoidance = Ranges(model), Avoidance(model, furniture)
        self._limits = [self._ranges, self._avoidance]
        self._from = np.zeros(3)
        self.arrives = False
        """Whether the last command leads to the end of the way, rather than to somewhere on it."""

    def start(self, base: Array, present: Array) -> None:
        """Stand where the base is, relative to the start of the episode, with the arm as it is."""
        self._from = base.copy()
        pose, model = self._pose(), self._model
        model.body_pos[self._base, :2] = pose.x, pose.y
        model.body_quat[self._base] = math.cos(pose.yaw / 2), 0.0, 0.0, math.sin(pose.yaw / 2)
        q = np.zeros(model.nq)
        q[self._lift], q[self._arm], q[self._wrist] = present[3], present[4] / 4, present[5]
        self._robot.data.qpos[:] = q

    def limit(self, present: Array, opening_m: float) -> None:
        """Let the base go as far from where it is as a command may, and open the fingers."""
        moved = present[:3] - self._from
        self._ranges.set_base(LOW[:3] + moved, HIGH[:3] + moved, self._from[2])
        q = self._robot.q
        q[self._fingers] = finger_angle(opening_m)
        self._robot.update(self._ranges.clipped(q))

    def lead(self, goal: Goal) -> tuple[float, float]:
        """Find a way for the hand to a goal, straight or over what stands in between.

        Returns how much is left at its end: metres, and radians. What to command is then in `controls`.
        """
        start, hand = self._robot.q, Goal(self._robot.data.site_xpos[self._site].copy(), self._heading())
        way = self._go(goal)
        left = self._left(goal)
        if _cost_m(left) > WORTH_M:
            top = max(goal.position[2], hand.position[2]) + 0.1
            self._robot.update(start)
            legs = (_at_height(hand, top), _at_height(goal, top), goal)
            over = [step for leg in legs for step in self._go(leg)]
            left_over = self._left(goal)
            if _cost_m(left_over) < _cost_m(left) - WORTH_M:
                way, left = over, left_over
        end = self._furthest(start, way)
        self.arrives = not way or end is way[-1]
        self._robot.update(end)
        return left

    def _furthest(self, start: Array, way: list[Array]) -> Array:
        """Return how far along a path the robot can be sent at once: its joints move each at its own pace."""
        while way:
            if self._is_clear(start, way[-1]) or len(way) == 1:
                return way[-1]
            way = way[: len(way) // 2]
        return start

    def _is_clear(self, start: Array, end: Array) -> bool:
        """Return whether the robot touches nothing while its joints go from here to there."""
        if np.abs(end - start).max() < SHORT:
            return True
        margin_m = min(self._least_m(start), self._least_m(end))
        points, target = SetPoints(self._seven(start), nonholonomic=self._nonholonomic), self._seven(end)
        q = end.copy()
        for _ in range(MOST_MOVES):
            seven = points.move(target, MOVE_S)
            q[:3], q[self._lift], q[self._arm], q[self._wrist] = seven[:3], seven[3], seven[4] / 4, seven[5]
            if self._least_m(q) < margin_m - STILL_M:
                return False
            if np.abs(seven - target).max() < SHORT:
                break
        return True

    def _put(self, q: Array) -> mink.Configuration:
        self._robot.update(q)
        return self._robot

    def _least_m(self, q: Array) -> float:
        """Return how near the robot is to what it should not touch, at most `WAY_CLEARANCE_M`."""
        return self._avoidance.least_m(self._put(q), WAY_CLEARANCE_M)

    def _seven(self, q: Array) -> Array:
        """Return the seven controls, the base's relative to where the walk starts. The gripper stays."""
        return np.array([*q[:3], q[self._lift], q[self._arm].sum(), q[self._wrist], 0.0])

    def _go(self, goal: Goal) -> list[Array]:
        """Step towards a goal until it is there or comes no nearer; return the joint positions on the way."""
        low, high = (HAND_HEIGHT_M + limit for limit in (CONTROLS[3].low, CONTROLS[3].high))
        goal = _at_height(goal, min(max(goal.position[2], low), high))  # what the lift cannot do, nothing can
        driven, start, left = self._driven(goal), self._robot.q, self._left(goal)
        if driven is not None and left[0] < STRIDE_M and left[1] < STRIDE_RAD:
            if self._is_clear(start, driven) and self._avoidance.is_kept(self._put(driven)):
                return [driven]  # nearby, and nothing in the way: no need to feel one's way
            self._robot.update(start)
        way: list[Array] = []
        self._avoidance.pushes = True
        before_m, vain = math.inf, 0
        while len(way) < MOST_STEPS:
            left = self._left(goal)
            if left[0] < NEAR_M and left[1] < NEAR_RAD:
                return [*way[:-1], self._straightened(self._robot.q, driven)]
            vain = vain + 1 if _cost_m(left) > before_m - 1e-4 else 0
            if vain >= MOST_VAIN_STEPS:
                break
            before_m = min(before_m, _cost_m(left))
            self._hand.set_target(self._next(goal))
            self._avoidance.sight_m = min(SIGHT_M, 0.05 + 2 * left[0] + left[1])
            try:
                step = mink.solve_ik(
                    self._robot, self._tasks, 1.0, "daqp", limits=self._limits, constraints=self._ties
                )
            except (mink.NoSolutionFound, ProblemError, SolverError):
                if not self._avoidance.pushes:
                    break
                # It is wedged in between things. To come no nearer to any of them is always possible.
                self._avoidance.pushes = False
                continue
            self._robot.update(self._ranges.clipped(self._robot.q + step))
            way.append(self._robot.q)
        return way

    def _straightened(self, q: Array, driven: Array | None) -> Array:
        """Take back what the base has turned and slid on the way, where the goal does not need it."""
        if driven is None or self._least_m(driven) < self._least_m(q) - STILL_M:
            return q
        self._robot.update(driven)
        return driven

    def _left(self, goal: Goal) -> tuple[float, float]:
        """Return how far the hand is from a goal, and by how much it is turned away from it."""
        position = self._robot.data.site_xpos[self._site]
        return math.dist(goal.position, position), abs(wrap_angle(goal.heading - self._heading()))

    def controls(self) -> Array:
        """Return what to command, save for the gripper; the base's relative to the start of the episode."""
        x, y, turn, *arm, _ = self._seven(self._robot.data.qpos).tolist()
        base = pose_out_of(Pose2(*self._from.tolist()), Pose2(x, y, turn))
        return np.array([base.x, base.y, base.yaw, *arm])

    def _next(self, goal: Goal) -> Any:
        """Return a pose on the way that is near enough to be stepped to."""
        position, heading = self._robot.data.site_xpos[self._site], self._heading()
        way = goal.position - position
        way[:2] *= min(1.0, STRIDE_M / max(math.hypot(*way[:2]), STILL_M))
        way[2] = min(max(way[2], -STRIDE_M), STRIDE_M)
        turn = wrap_angle(goal.heading - heading)
        wrist = float(self._robot.data.qpos[self._wrist])
        wanted = wrist_for(goal.heading, heading - wrist - HEADING_AT_ZERO)
        if CONTROLS[5].low <= wanted <= CONTROLS[5].high:
            turn = wanted - wrist  # the shorter way may lead beyond the wrist's limits
        turn = min(max(turn, -STRIDE_RAD), STRIDE_RAD)
        return mink.SE3(np.concatenate([hand_quaternion(heading + turn), position + way]))

    def _driven(self, goal: Goal) -> Array | None:
        """Return the joint positions that reach a goal while the base drives straight, if there are any."""
        pose = self._pose()
        posture = reach_by_driving(goal.position, goal.heading, pose)
        q = self._robot.q
        q[:3] = pose_into(pose, posture.base).x, 0.0, 0.0
        q[self._lift], q[self._arm], q[self._wrist] = posture.lift_m, posture.arm_m / 4, posture.wrist_yaw
        is_possible = np.abs(self._ranges.clipped(q) - q).max() < STILL_M
        return q if is_possible else None

    def _pose(self) -> Pose2:
        return pose_out_of(self._origin, Pose2(*self._from.tolist()))

    def _at(self, joint: str) -> int:
        return int(self._model.joint(joint).qposadr[0])

    def _heading(self) -> float:
        x, _, _, y, *_ = self._robot.data.site_xmat[self._site].tolist()
        return math.atan2(y, x)


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

    Only the heading of the fingers counts of the orientation: their pitch is fixed, and they have no roll. A
    pose that is asked for again, within SAME_POSE and after no other command, means the same place in the
    world, even though the base has moved meanwhile.
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
        """Return whether the robot, which cannot stop at once, still moves to its command or has arrived."""
        is_moving = np.abs(self._world.qvel()[:9]).max() > 0.01
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
