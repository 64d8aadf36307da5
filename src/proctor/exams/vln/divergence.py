"""Where two runs of one agent through one episode part."""

from __future__ import annotations

import math
from itertools import zip_longest

import msgspec

from proctor.core.types import STEP_M, Vector3
from proctor.exams.results import EpisodeResult

PARTED_M = STEP_M / 2
"""Robots further apart than this are no longer at the same place: half of what FORWARD goes."""


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
