"""Where to stand and how far to reach, so that the hand is somewhere: the candidates, the quickest first."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np

from proctor.core.geometry import wrap_angle
from proctor.core.types import Array, Pose2
from proctor.robots.stretch import CONTROLS
from proctor.robots.stretch_kinematics import Posture, reach_by_driving, reach_from

ARM_STEPS_M = (0.02, 0.1, 0.2, 0.3, 0.4, 0.5)
BASE_YAWS = 24
SPEEDS = tuple(control.speed for control in CONTROLS)
ACCELERATIONS = tuple(control.acceleration for control in CONTROLS)
BENT_S = 0.4
"""What a radian of the wrist is thought to cost: an arm that reaches straight is clear of more things."""
STOP_S = 2.0
"""What it costs that a base which cannot move sideways must turn, drive and turn."""
LOOKED_AT = 400
"""So many stances are looked at more closely."""


class HandGoal(NamedTuple):
    """Where the hand should be."""

    point: Array
    heading: float
    """Of the fingers, in the world."""
    cost_s: float = 0.0
    """By how much other goals are better."""


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
    """Return the ways to reach one of some goals, the quickest first.

    Args:
        goals: Any of them will do.
        base: Where the robot stands.
        nonholonomic: Whether it cannot move sideways.
        more_s: What else a posture costs.
    """
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
    both_ways = (
        duration_s(abs(wrap_angle(way - start.yaw)), 2) + duration_s(abs(wrap_angle(end.yaw - way)), 2)
        for way in (course, course + math.pi)
    )
    turns_s = min(both_ways)
    return duration_s(away_m, 0) + turns_s + (STOP_S if turns_s > 0.1 else 0.0)


def duration_s(distance: float, control: int) -> float:
    """Return how long one of the controls takes for a distance, from rest to rest."""
    speed, acceleration = SPEEDS[control], ACCELERATIONS[control]
    if distance < speed**2 / acceleration:
        return 2 * math.sqrt(distance / acceleration)
    return distance / speed + speed / acceleration
