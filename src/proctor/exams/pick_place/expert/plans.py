"""Plans for the expert: how to get to an object and around it, and how to get it to its place."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from scipy.spatial.transform import Rotation

from proctor.core.geometry import wrap_angle
from proctor.core.types import Array, Info, Pose2
from proctor.exams.pick_place.episode import PickAndPlaceEpisode
from proctor.exams.pick_place.expert.grasps_and_spots import Spot, grasps_of, spots_of
from proctor.exams.pick_place.expert.paths import LIFT, DrivableFloor, PathChecker, PosturePath, changed
from proctor.robots.stretch import CONTROLS, GRIPPER_OPEN_M
from proctor.robots.stretch_kinematics import (
    HAND_HEIGHT_M,
    Posture,
    hand_in_world,
    hand_quaternion,
    reach_by_driving,
    reach_from,
)
from proctor.scenes.tabletop_parts import SceneItem
from proctor.scenes.thing import Thing
from proctor.worlds.mujoco.tabletop.clearance import Clearance, Grip

MARGINS_M = (0.025, 0.012, 0.005)  # how far to keep away from objects: the first with which there is a path
ABOVE_M = 0.055  # pads travel so far above everything; their corners are 25 mm lower
CARRIED_ABOVE_M = 0.03
LIFTED_M = 0.02  # above the height that counts as lifted
DROP_M = 0.004  # an object is let go so far above its place
DROPS_M = (0.0, 0.01, 0.02, 0.03, 0.045, 0.06, 0.08)  # into containers, from where hands fit
LETTING_GO_M = 0.012  # how far each finger moves away from what it let go
LAST_GAP_M, STRADDLE_M = 0.0025, 0.001
STEP_DOWN_M = 0.03
MOST_STANCES, MOST_ROUTES = 400, 12
HEADINGS = 12
ALIKE_M, ALIKE_RAD = 0.12, 0.3
FAILED_S, WIDE_S_PER_M = 4.0, 30.0
NO_PATH_S = 6.0
SPOT_S_PER_M = 6.0
UP = np.array([0.0, 0.0, 1.0])
HIGHEST = CONTROLS[LIFT].high

ARM_STEPS_M = (0.02, 0.1, 0.2, 0.3, 0.4, 0.5)
BASE_YAWS = 24
SPEEDS = tuple(control.speed for control in CONTROLS)
ACCELERATIONS = tuple(control.acceleration for control in CONTROLS)
BENT_S = 0.4
"""What a radian of the wrist is thought to cost: an arm that reaches straight is clear of more objects."""
STOP_S = 2.0  # what it costs that a base which cannot move sideways must turn, drive and turn
LOOKED_AT = 400  # so many stances are looked at more closely


class PosturePlan(NamedTuple):
    """A path to above a place, and down."""

    path: PosturePath
    down: Posture
    opening_m: float  # of the gripper, once down
    goal: HandGoal
    offset: Array | None = None
    """Of an object that is held from the hand, in the world, once the hand has the goal's heading."""


class Planner:
    """Makes plans for one episode, which must have a target object."""

    def __init__(self, episode: PickAndPlaceEpisode, things: Mapping[str, Thing]) -> None:
        target = episode.target_name
        self._episode, self._things, self._thing = episode, things, things[target]
        self.nonholonomic = episode.robot_config.nonholonomic
        self._checker = PathChecker(
            Clearance(episode, things), DrivableFloor(episode, things), nonholonomic=self.nonholonomic
        )
        self._others_top_z = max(
            (_top_z(things[item.name], item) for item in episode.scene_objects if item.name != target),
            default=0.0,
        )

    def pick(self, controls: Array, truth: Info, failed: Sequence[float]) -> PosturePlan | None:
        """Return how to get the open hand around the object.

        The base's controls are in the world. `failed` are headings of the fingers that have not worked.
        """
        position, quaternion = truth["object_position"], truth["object_rotation"]
        self._checker.clearance.move_object(position, quaternion)
        rotation = Rotation.from_quat(quaternion, scalar_first=True).as_matrix()
        grasps = grasps_of(self._thing, position, rotation)
        if not grasps:
            return None
        goals = []
        for grasp in grasps:
            for heading in (grasp.closing_yaw - math.pi / 2, grasp.closing_yaw + math.pi / 2):
                again = sum(abs(wrap_angle(heading - other)) < 0.3 for other in failed)
                wider_m = grasp.width_m - grasps[0].width_m
                goals.append(HandGoal(grasp.point, heading, WIDE_S_PER_M * wider_m + FAILED_S * again))
        top_z = max(self._others_top_z, float((self._thing.points @ rotation.T)[:, 2].max() + position[2]))
        lift_m = min(top_z + ABOVE_M - HAND_HEIGHT_M, HIGHEST)
        spots = self.spots(truth)[:2]
        stances = stances_for(
            goals,
            base_of(controls),
            nonholonomic=self.nonholonomic,
            more_s=lambda posture: _carrying_s(posture, spots) if spots else 0.0,
        )
        start = controls.copy()
        start[6] = GRIPPER_OPEN_M
        return self._first(start, stances, GRIPPER_OPEN_M, lift_m)

    def place(self, controls: Array, truth: Info) -> PosturePlan | None:
        """Return how to get the object that is held to its place."""
        base = base_of(controls)
        hand, heading = hand_in_world(base, *controls[LIFT:6])
        offset = truth["object_position"] - hand
        grip = grip_of(hand, heading, truth)
        lying = Rotation.from_quat(truth["object_rotation"], scalar_first=True).apply(self._thing.points)
        rise_m = -float(lying[:, 2].min())  # of its origin above its lowest point, 0 as long as it is upright
        hang_m = rise_m - float(offset[2])
        lift_m = min(self._others_top_z + CARRIED_ABOVE_M + hang_m - HAND_HEIGHT_M, HIGHEST)
        lift_m = max(lift_m, min(self.lifted_m(controls, truth), HIGHEST))
        spots = self.spots(truth)
        for some in (spots[:3], spots[3:12], spots[12:]):
            goals = [
                HandGoal(
                    spot.point + UP * (rise_m + DROP_M) - turned(offset, turn),
                    heading + turn,
                    SPOT_S_PER_M * math.dist(spot.point, spots[0].point),
                )
                for spot in some
                for turn in np.arange(HEADINGS) * (2 * math.pi / HEADINGS)
            ]
            stances = stances_for(goals, base, nonholonomic=self.nonholonomic)
            opening_m = min(controls[6] + LETTING_GO_M, GRIPPER_OPEN_M)
            drops = DROPS_M if some and some[0].is_inside else DROPS_M[:1]
            plan = self._first(controls, stances, opening_m, lift_m, grip, drops)
            if plan is not None:
                return plan._replace(offset=turned(offset, plan.goal.heading - heading))
        return None

    def lifted_m(self, controls: Array, truth: Info) -> float:
        """Return the lift with which an object that is held has been lifted enough."""
        wanted_z = truth["initial_object_z"] + truth["target_lift_height"] + LIFTED_M
        return float(min(controls[LIFT] + wanted_z - truth["object_position"][2], HIGHEST))

    def spots(self, truth: Info) -> list[Spot]:
        """Return where the object may go; nothing if it need only be lifted."""
        if truth["target_position"] is None:
            return []
        low, high = self._thing.low, self._thing.high
        return spots_of(
            self._episode,
            self._things,
            target_position=truth["target_position"],
            near=truth["object_position"],
            radius_m=float(np.hypot(*(high - low)[:2])) / 2,
        )

    def _first(
        self,
        start: Array,
        stances: Iterable[Stance],
        opening_m: float,
        lift_m: float,
        grip: Grip | None = None,
        drops: Sequence[float] = (0.0,),
    ) -> PosturePlan | None:
        """Return a plan for the first stance that can be taken, with as much room as there is.

        `opening_m` is the gripper's once down, `lift_m` for travelling; `drops` are by how much the hand may
        stay higher.
        """
        possible = self._possible(stances, opening_m, grip, drops)
        for margin_m in MARGINS_M:
            vain: list[Array] = []
            for stance, down in possible:
                if any(_is_alike(down, other) for other in vain):
                    continue
                above = controls_of(down, start[6])
                above[LIFT] = max(lift_m, down.lift_m)
                if not self._can_come_down(above, down, margin_m, grip):
                    continue
                path = self._checker.path_to(start, above, margin_m=margin_m, grip=grip)
                if path is not None:
                    return PosturePlan(path, down, opening_m, stance.goal)
                vain.append(above)
                if len(vain) >= MOST_ROUTES:
                    break
        return None

    def _possible(
        self, stances: Iterable[Stance], opening_m: float, grip: Grip | None, drops: Sequence[float]
    ) -> list[tuple[Stance, Posture]]:
        """Return the stances in which open hand and object have room, each with its lowest such posture."""
        found = []
        for stance in stances:
            for drop_m in drops:
                down = stance.posture._replace(lift_m=stance.posture.lift_m + drop_m)
                gaps = self._checker.clearance.gaps(controls_of(down, opening_m), grip)
                fits = grip is None or gaps.object_m >= LAST_GAP_M / 2
                if fits and gaps.robot_m >= LAST_GAP_M and down.is_possible():
                    found.append((stance, down))
                    break
            if len(found) >= MOST_STANCES:
                break
        return found

    def _can_come_down(self, above: Array, down: Posture, margin_m: float, grip: Grip | None) -> bool:
        """Tell whether the hand gets down, and up again, clear of everything."""
        for lift_m in np.arange(down.lift_m, above[LIFT] + STEP_DOWN_M, STEP_DOWN_M):
            posture = changed(above, lift=min(float(lift_m), above[LIFT]))
            gaps = self._checker.clearance.gaps(posture, grip)
            needed_m = min(margin_m, LAST_GAP_M / 2 + (lift_m - down.lift_m) / 2)
            if gaps.robot_m < needed_m:
                return False
            # Fingers that straddle a wide object are close to it all along.
            if gaps.grip_m < STRADDLE_M if grip is None else gaps.object_m < needed_m:
                return False
        return True


def base_of(controls: Array) -> Pose2:
    """Return where the base is."""
    x, y, yaw = controls[:3].tolist()
    return Pose2(x, y, yaw)


def controls_of(posture: Posture, opening_m: float) -> Array:
    """Return the seven controls of a posture, the base's in the world."""
    base = posture.base
    return np.array([base.x, base.y, base.yaw, posture.lift_m, posture.arm_m, posture.wrist_yaw, opening_m])


def grip_of(hand: Array, heading: float, truth: Info) -> Grip:
    """Return how the hand holds the object."""
    held = Rotation.from_quat(hand_quaternion(heading), scalar_first=True)
    translation = held.inv().apply(truth["object_position"] - hand)
    rotation = held.inv() * Rotation.from_quat(truth["object_rotation"], scalar_first=True)
    return Grip(translation, rotation.as_matrix())


def _carrying_s(posture: Posture, spots: Sequence[Spot]) -> float:
    """Return about how long it takes from a posture to the place, if driving straight is enough."""
    _, heading = posture.hand()
    best_s = NO_PATH_S
    for spot in spots:
        for turn in (0.0, 0.6, -0.6, 1.2, -1.2):
            there = reach_by_driving(spot.point, heading + turn, posture.base)
            if there._replace(lift_m=0.5).is_possible():
                away_m = math.hypot(there.base.x - posture.base.x, there.base.y - posture.base.y)
                best_s = min(best_s, duration_s(away_m, 0) + 0.5 * abs(turn))
    return best_s


def _is_alike(posture: Posture, other: Array) -> bool:
    """Tell whether a posture stands so near to another that the one cannot be got to either."""
    base = posture.base
    near = math.dist((base.x, base.y), other[:2]) < ALIKE_M
    return near and abs(wrap_angle(base.yaw - float(other[2]))) < ALIKE_RAD


def turned(vector: Array, angle: float) -> Array:
    """Return a vector turned about the vertical."""
    cos, sin = math.cos(angle), math.sin(angle)
    return np.array([cos * vector[0] - sin * vector[1], sin * vector[0] + cos * vector[1], vector[2]])


def _top_z(thing: Thing, item: SceneItem) -> float:
    points = Rotation.from_quat(item.rotation).apply(thing.points)
    return float(points[:, 2].max() + item.position[2])


class HandGoal(NamedTuple):
    """Where the hand should be."""

    point: Array
    heading: float  # of the fingers, in the world
    cost_s: float = 0.0  # by how much other goals are better


class Stance(NamedTuple):
    """A posture that brings the hand to its goal."""

    posture: Posture
    goal: HandGoal
    cost_s: float


def stances_for(
    goals: Iterable[HandGoal],
    base: Pose2,
    *,
    nonholonomic: bool,
    more_s: Callable[[Posture], float] | None = None,
) -> list[Stance]:
    """Return the stances that reach any goal, the quickest first; `more_s` is what else one costs."""
    found = []
    for goal in goals:
        for posture in _postures(goal, base):
            cost_s = goal.cost_s + travel_s(base, posture.base, nonholonomic=nonholonomic)
            cost_s += posture.arm_m / SPEEDS[4] / 2 + BENT_S * abs(posture.wrist_yaw)
            found.append(Stance(posture, goal, cost_s))
    found.sort(key=lambda stance: stance.cost_s)
    if more_s is None:
        return found
    best, rest = found[:LOOKED_AT], found[LOOKED_AT:]  # the rest is for when there is nothing better
    best = [stance._replace(cost_s=stance.cost_s + more_s(stance.posture)) for stance in best]
    return [*sorted(best, key=lambda stance: stance.cost_s), *rest]


def _postures(goal: HandGoal, base: Pose2) -> Iterator[Posture]:
    """Yield postures from where the robot stands by driving straight, and from all around."""
    straight = reach_by_driving(goal.point, goal.heading, base)
    if straight.is_possible():
        yield straight
    for yaw in base.yaw + np.arange(BASE_YAWS) * (2 * math.pi / BASE_YAWS):
        for arm_m in ARM_STEPS_M:
            posture = reach_from(goal.point, goal.heading, wrap_angle(float(yaw)), arm_m)
            if not posture.is_possible():
                break
            yield posture


def travel_s(start: Pose2, end: Pose2, *, nonholonomic: bool) -> float:
    """Return about how long the base takes."""
    away_m = math.hypot(end.x - start.x, end.y - start.y)
    turn = abs(wrap_angle(end.yaw - start.yaw))
    if not nonholonomic:
        return max(duration_s(away_m, 0), duration_s(turn, 2))
    if away_m < 1e-3:
        return duration_s(turn, 2)
    course = math.atan2(end.y - start.y, end.x - start.x)
    turns_s = min(
        duration_s(abs(wrap_angle(yaw - start.yaw)), 2) + duration_s(abs(wrap_angle(end.yaw - yaw)), 2)
        for yaw in (course, course + math.pi)
    )
    return duration_s(away_m, 0) + turns_s + (STOP_S if turns_s > 0.1 else 0.0)


def duration_s(distance: float, control: int) -> float:
    """Return how long one of the controls takes for a distance, from rest to rest."""
    speed, acceleration = SPEEDS[control], ACCELERATIONS[control]
    if distance < speed**2 / acceleration:
        return 2 * math.sqrt(distance / acceleration)
    return distance / speed + speed / acceleration
