"""From episode records to the numbers of a run."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Literal

from msgspec import UNSET, UnsetType

from proctor.exams.results import Bounds, EpisodeResult, Results, Summary
from proctor.runs.tasks import EXAMS
from proctor.runs.aggregate import aggregate_metrics
from proctor.core.registry import load, names


def summarise(episodes: Sequence[EpisodeResult]) -> Results:
    """Summarise a run of one task. What is not scored is counted, and left out of every rate and mean."""
    exam = EXAMS[episodes[0].task if episodes else "vln"]
    scored = [episode for episode in episodes if episode.is_scored]
    lost = len(episodes) - len(scored)
    successes = sum(episode.success for episode in scored)
    kinds = {episode.distance for episode in scored or episodes}
    final_m = [episode.final_distance_to_goal for episode in scored]
    bumps = [float(e.collision_count) for e in scored if e.collision_count is not None]
    reasons = Counter(e.failure_reason for e in episodes if e.failure_reason is not None)
    sides = Counter(episode.error.side for episode in episodes if episode.error is not None)
    summary = Summary(
        total_episodes=len(episodes),
        success_count=successes,
        success_rate=_mean([float(episode.success) for episode in scored]),
        success_rate_bounds=Bounds(
            successes / max(len(episodes), 1), (successes + lost) / max(len(episodes), 1)
        ),
        avg_distance_error=_mean(final_m),
        avg_steps=_mean([float(episode.steps) for episode in scored]),
        avg_collision_count=_mean(bumps) if bumps or not scored else None,
        timeout_count=reasons["timeout"],
        error_counts={"agent": 0, "evaluator": 0} | dict(sorted(sides.items())),
        failure_reasons=dict(sorted(reasons.items())),
        definition=exam.definition,
        distance=kinds.pop() if len(kinds) == 1 else "mixed",
        shortest_path=_shortest_path(scored),
        metrics=aggregate_metrics(
            [episode.metrics for episode in scored],
            [episode.scene_id for episode in scored],
            rates={name for name in names(exam.metrics) if load(exam.metrics, name).is_rate},
        ),
    )
    return Results(summary, list(episodes))


def _shortest_path(scored: Sequence[EpisodeResult]) -> Literal["dataset", "mixed"] | UnsetType:
    """Tell where the lengths that SPL compares with are from, if not all are measured here."""
    stored = sum(episode.shortest_path == "dataset" for episode in scored)
    if not stored:
        return UNSET
    return "dataset" if stored == len(scored) else "mixed"


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values) if values else 0.0
