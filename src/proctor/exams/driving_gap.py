"""The gap between two backends for exams that drive: one agent on the same episodes in two worlds.

It says how exactly actions were done, and where the paths through an episode part.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import NamedTuple

import msgspec
import numpy as np

from proctor.core.geometry import pose_after, pose_into, wrap_angle
from proctor.core.types import STEP_M, Action, Pose2, Vector3
from proctor.exams.results import EpisodeResult

MM, DEG = 1000.0, math.degrees(1.0)
SIDES = {Action.LEFT: 1.0, Action.RIGHT: -1.0}
"""The sign of a turn: with it, a positive error is a turn too far, whichever it is."""
PARTED_M = STEP_M / 2
"""Robots further apart than this are no longer at the same place: half of what FORWARD goes."""


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


class Divergence(msgspec.Struct, frozen=True, kw_only=True):
    """How two records of one episode differ. Distances are on the floor; steps are counted from 1."""

    episode_id: str
    other_action_step: int | None
    """The first in which the actions differ, or one has stopped; null if they are the same."""
    apart_then_m: float | None
    """How far apart the robots were when these actions were chosen."""
    parted_step: int | None
    """The first after which the robots were more than half a FORWARD apart; null if they never were."""
    final_apart_m: float
    same_success: bool


class Gap(msgspec.Struct, frozen=True, kw_only=True):
    """What the backend alone makes of an agent."""

    agent: str
    a_backend: str
    b_backend: str
    """The env, and those of its options that differ."""
    a_execution: dict[str, ActionError]
    b_execution: dict[str, ActionError]
    """How exactly actions were done, by their names, over the paired episodes; empty if nobody can tell."""
    unmeasured: list[str]
    """In how many episodes of a run that could not be told, and why."""
    divergences: list[Divergence]
    """Of each pair of episodes."""


def gap_of(
    agent: str, backends: tuple[str, str], pairs: Sequence[tuple[EpisodeResult, EpisodeResult]]
) -> Gap:
    """Return the gap between the backends of two runs A and B of one agent, by their common episodes."""
    executions, unmeasured = [], []
    for letter, episodes in (("A", [x for x, _ in pairs]), ("B", [y for _, y in pairs])):
        reasons = [why_unmeasurable(episode) for episode in episodes]
        told = [episode for episode, reason in zip(episodes, reasons, strict=True) if reason is None]
        executions.append(execution_errors(told))
        for reason, count in Counter(filter(None, reasons)).items():
            unmeasured.append(f"{letter}: {reason} in {count} of {len(episodes)} episodes")
    return Gap(
        agent=agent,
        a_backend=backends[0],
        b_backend=backends[1],
        a_execution=executions[0],
        b_execution=executions[1],
        unmeasured=unmeasured,
        divergences=[divergence(x, y) for x, y in pairs if x.trajectory and y.trajectory],
    )


class DrivenMove(NamedTuple):
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


def moves_of(result: EpisodeResult) -> Iterator[DrivenMove]:
    """Yield the moves of an episode. Each begins where the one before ended: errors do not add up."""
    poses = [Pose2(p.x, p.y, yaw) for p, yaw in zip(result.trajectory, result.headings, strict=True)]
    collisions = set(result.collision_steps)
    for step, number in enumerate(result.actions, 1):
        action = Action(number)
        off = pose_into(pose_after(action, poses[step - 1]), poses[step])
        yield DrivenMove(action, Pose2(off.x, off.y, wrap_angle(off.yaw)), step in collisions)


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


def divergence(a: EpisodeResult, b: EpisodeResult) -> Divergence:
    """Return where two records of one episode part, and how far apart they end."""
    other = next((step for step, (x, y) in enumerate(zip_longest(a.actions, b.actions), 1) if x != y), None)
    apart_m = [_apart_m(p, q) for p, q in zip(a.trajectory, b.trajectory, strict=False)]
    return Divergence(
        episode_id=a.episode_id,
        other_action_step=other,
        apart_then_m=apart_m[other - 1] if other and other <= len(apart_m) else None,
        parted_step=next((step for step, gap_m in enumerate(apart_m) if gap_m > PARTED_M), None),
        final_apart_m=_apart_m(a.trajectory[-1], b.trajectory[-1]),
        same_success=a.success == b.success,
    )


def _apart_m(p: Vector3, q: Vector3) -> float:
    # Engines differ in what point of a robot they call its position, which shows in the height.
    return math.hypot(p.x - q.x, p.y - q.y)
