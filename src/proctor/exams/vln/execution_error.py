"""How far the actions of a robot went beyond, or fell short of, what they are by definition."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from proctor.core.geometry import pose_after, pose_into, wrap_angle
from proctor.core.types import Action, Pose2
from proctor.exams.results import EpisodeResult

MM, DEG = 1000.0, math.degrees(1.0)
SIDES = {Action.LEFT: 1.0, Action.RIGHT: -1.0}
"""Which way turns go: with it, a positive error is a turn too far, whichever it is."""


class Spread(msgspec.Struct, frozen=True, kw_only=True):
    """Errors of many moves."""

    bias: float | None
    """Their mean with its sign; of a distance, which has none, null."""
    median: float
    p95: float
    worst: float
    """These three are of their sizes, without sign."""


class ActionError(msgspec.Struct, frozen=True, kw_only=True):
    """How exactly one of the four actions was done."""

    moves: int
    """How many are in the numbers."""
    collided: int
    """How many ended in a collision and are not: what stopped them was the world."""
    errors: dict[str, Spread]
    """FORWARD: `along_mm` (+ is too far), `across_mm` (+ is left), `heading_deg` (+ is left). LEFT and RIGHT:
    `turn_deg` (+ is too far), `drift_mm`. STOP: `drift_mm`, `heading_deg`."""


class Move(NamedTuple):
    """One action, and the pose after it as seen from the one to which it would have led exactly."""

    action: Action
    off: Pose2
    collided: bool


def why_unmeasurable(result: EpisodeResult) -> str | None:
    """Tell why nothing can be said about the moves of an episode, None if something can."""
    if not result.headings:
        return "no headings are recorded"
    if not len(result.headings) == len(result.trajectory) == len(result.actions) + 1:
        return "poses and actions do not belong together"
    if not all(action in tuple(Action) for action in result.actions):
        return "other actions than the four"
    if result.collision_count and not result.collision_steps:
        return "the steps of its collisions are not recorded"
    turns = [step for step, action in enumerate(result.actions, 1) if action in SIDES]
    if set(turns) - set(result.collision_steps) and len(set(result.headings)) == 1:
        return "headings never change, not even in turns"
    return None


def moves_of(result: EpisodeResult) -> Iterator[Move]:
    """Yield the moves of an episode that can be measured.

    Each begins where the one before it ended, so that errors do not add up; the first at the episode's start.
    """
    poses = [Pose2(p.x, p.y, yaw) for p, yaw in zip(result.trajectory, result.headings, strict=True)]
    collisions = set(result.collision_steps)
    for step, number in enumerate(result.actions, 1):
        action = Action(number)
        off = pose_into(pose_after(action, poses[step - 1]), poses[step])
        yield Move(action, Pose2(off.x, off.y, wrap_angle(off.yaw)), step in collisions)


def execution_errors(episodes: Iterable[EpisodeResult]) -> dict[str, ActionError]:
    """Return the errors of each action that occurs in episodes that can be measured, by its name."""
    free: defaultdict[Action, list[Pose2]] = defaultdict(list)
    collided: defaultdict[Action, int] = defaultdict(int)
    for episode in episodes:
        for move in moves_of(episode):
            if move.collided:
                collided[move.action] += 1
            else:
                free[move.action].append(move.off)
    return {
        action.name: ActionError(
            moves=len(free[action]),
            collided=collided[action],
            errors=_errors(action, free[action]) if free[action] else {},
        )
        for action in (Action.FORWARD, Action.LEFT, Action.RIGHT, Action.STOP)
        if free[action] or collided[action]
    }


def _errors(action: Action, offs: Sequence[Pose2]) -> dict[str, Spread]:
    heading_deg = [DEG * off.yaw for off in offs]
    if action is Action.FORWARD:
        return {
            "along_mm": _spread([MM * off.x for off in offs]),
            "across_mm": _spread([MM * off.y for off in offs]),
            "heading_deg": _spread(heading_deg),
        }
    drift_mm = _spread([MM * math.hypot(off.x, off.y) for off in offs], has_sign=False)
    if action is Action.STOP:
        return {"drift_mm": drift_mm, "heading_deg": _spread(heading_deg)}
    return {"turn_deg": _spread([SIDES[action] * angle for angle in heading_deg]), "drift_mm": drift_mm}


def _spread(errors: Sequence[float], *, has_sign: bool = True) -> Spread:
    median, p95, worst = np.percentile(np.abs(errors), (50, 95, 100)).tolist()
    return Spread(
        bias=math.fsum(errors) / len(errors) if has_sign else None, median=median, p95=p95, worst=worst
    )
