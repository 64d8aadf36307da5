"""From episode records to the numbers of a run: means with their 95 % intervals, and the agent's latency.

Results do not depend on the order of the episodes: sums are exact (fsum) and scenes are sorted.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Literal

import msgspec
import numpy as np
from msgspec import UNSET, UnsetType

from proctor.core.types import Usage, total_usage
from proctor.exams.names import AnyExam
from proctor.exams.results import EpisodeResult, Interval, Results, SuccessBounds, Summary
from proctor.exams.step_metrics import metrics_of

Z_95 = 1.959963984540054  # the 97.5 % point of the normal distribution
SCRIPT_MS = 1.0  # an agent that nearly always takes less than this is a script


def summarise(
    exam: type[AnyExam], episodes: Sequence[EpisodeResult], *, repeated: Sequence[EpisodeResult] = ()
) -> Results:
    """Summarise a run of an exam. What is not scored is counted, and left out of every rate and mean.

    `repeated` are attempts whose episodes were done again: of them only counts what the agent used.
    """
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
        success_rate=mean([float(episode.success) for episode in scored]),
        success_rate_bounds=SuccessBounds(
            successes / max(len(episodes), 1), (successes + lost) / max(len(episodes), 1)
        ),
        avg_distance_error=mean(final_m),
        avg_steps=mean([float(episode.steps) for episode in scored]),
        avg_collision_count=mean(bumps) if bumps or not scored else None,
        timeout_count=reasons["timeout"],
        error_counts={"agent": 0, "evaluator": 0} | dict(sorted(sides.items())),
        failure_reasons=dict(sorted(reasons.items())),
        definition=exam.definition,
        distance=kinds.pop() if len(kinds) == 1 else "mixed",
        shortest_path=_shortest_path(scored),
        metrics=aggregate_metrics(
            [episode.metrics for episode in scored],
            [episode.scene_id for episode in scored],
            rates={metric.name for metric in metrics_of(exam) if metric.is_rate},
        ),
        task=exam.name,
        informed=next((e.informed for e in episodes if e.informed is not UNSET), UNSET),
        usage=usage_of(scored),
        usage_unscored=usage_of([*repeated, *(e for e in episodes if not e.is_scored)]),
    )
    return Results(summary, list(episodes))


def usage_of(episodes: Iterable[EpisodeResult]) -> Usage | UnsetType:
    """Return what the agent used in these episodes; UNSET if the policy counted nothing in any of them."""
    parts = [episode.usage for episode in episodes if episode.usage is not UNSET]
    return total_usage(parts) if parts else UNSET


def _shortest_path(scored: Sequence[EpisodeResult]) -> Literal["dataset", "mixed"] | UnsetType:
    """Tell where the lengths that SPL compares with are from, if not all are measured here."""
    stored = sum(episode.shortest_path == "dataset" for episode in scored)
    if not stored:
        return UNSET
    return "dataset" if stored == len(scored) else "mixed"


def mean(values: Sequence[float]) -> float:
    """Return the mean, with an exact sum; 0 for no values."""
    return math.fsum(values) / len(values) if values else 0.0


def wilson(successes: float, n: int) -> Interval:
    """Return a success rate with Wilson's score interval; `n` must not be 0."""
    if n < 1:
        raise ValueError(f"expected at least one episode, found {n}")
    rate = successes / n
    spread = Z_95**2 / n
    centre = (rate + spread / 2) / (1 + spread)
    half_width = math.sqrt(spread * (rate * (1 - rate) + spread / 4)) / (1 + spread)
    # At a rate of 1 the upper bound is 1 but for rounding; at 0 the lower one is exactly 0.
    high = max(rate, min(1.0, centre + half_width))
    return Interval(rate, centre - half_width, high, n)


def clustered_bootstrap(
    values: Sequence[float], clusters: Sequence[str], *, seed: int, resamples: int = 5000
) -> Interval:
    """Return a mean with a percentile bootstrap interval that resamples whole clusters.

    Episodes of one scene resemble each other, so resampling them one by one would give too narrow
    an interval. With a single cluster there is no choice: its episodes are resampled.
    """
    if not values:
        raise ValueError("expected at least one value, found none")
    members: defaultdict[str, list[float]] = defaultdict(list)
    for value, cluster in zip(values, clusters, strict=True):
        members[cluster].append(value)
    groups = [members[name] for name in sorted(members)]
    if len(groups) == 1:
        groups = [[value] for value in sorted(groups[0])]
    sums = np.array([math.fsum(group) for group in groups])
    sizes = np.array([len(group) for group in groups])
    drawn = np.random.default_rng(seed).integers(len(groups), size=(resamples, len(groups)))
    means = sums[drawn].sum(axis=1) / sizes[drawn].sum(axis=1)
    low, high = np.percentile(means, [2.5, 97.5])
    middle = mean(values)
    return Interval(middle, min(middle, float(low)), max(middle, float(high)), len(values))


def aggregate_metrics(
    rows: Sequence[Mapping[str, float]],
    scenes: Sequence[str],
    *,
    rates: AbstractSet[str],
    seed: int = 0,
) -> dict[str, Interval]:
    """Return the mean and interval of every metric that applied to at least one episode.

    Values that are missing or not finite are left out; `n` says how many remained. Metrics in `rates` are 0
    or 1 and get Wilson's interval, others the bootstrap over scenes.
    """
    result = {}
    for name in sorted({name for row in rows for name in row}):
        pairs = [(row.get(name, math.nan), scene) for row, scene in zip(rows, scenes, strict=True)]
        values = [value for value, _ in pairs if math.isfinite(value)]
        if not values:
            continue
        if name in rates:
            result[name] = wilson(math.fsum(values), len(values))
        else:
            clusters = [scene for value, scene in pairs if math.isfinite(value)]
            result[name] = clustered_bootstrap(values, clusters, seed=seed)
    return result


class Latency(msgspec.Struct, frozen=True, kw_only=True):
    """Percentiles over all actions, between two of them as by `numpy.percentile`. Differ from run to run."""

    p50_ms: float
    p95_ms: float
    p99_ms: float
    worst_ms: float
    n: int  # how many actions were measured. One that never came is not among them: it is a fault.

    @property
    def is_of_a_script(self) -> bool:
        """Whether the agent does not think, so that its times are noise."""
        return self.p95_ms < SCRIPT_MS

    def __str__(self) -> str:
        parts = f"{_told(self.p50_ms)} (median), {_told(self.p95_ms)} (p95), {_told(self.p99_ms)} (p99)"
        return f"an action took {parts}"


def latency_of(episodes: Iterable[EpisodeResult]) -> Latency | None:
    """Return how long the actions of these episodes took, each counted once, whatever became of its episode.

    None where no times were kept: in `results.json`, in journals of older versions, in scored predictions.
    """
    return _latency([time_s for episode in episodes if episode.timing for time_s in episode.timing.act_s])


def decision_latency_of(episodes: Iterable[EpisodeResult]) -> Latency | None:
    """Return how long the decisions of these episodes took; None where the policy does not count them."""
    timings = [episode.timing for episode in episodes if episode.timing and episode.timing.decision_s]
    return _latency([time_s for timing in timings for time_s in timing.decision_s or ()])


def _latency(times_s: Sequence[float]) -> Latency | None:
    if not times_s:
        return None
    p50_ms, p95_ms, p99_ms, worst_ms = np.percentile(np.array(times_s) * 1000, (50, 95, 99, 100)).tolist()
    return Latency(p50_ms=p50_ms, p95_ms=p95_ms, p99_ms=p99_ms, worst_ms=worst_ms, n=len(times_s))


def seconds_text(ms: float) -> str:
    """Return a time of people and models: `1.4 s`; a shorter one in milliseconds."""
    return f"{ms / 1000:.1f} s" if ms >= 950 else _told(ms)


def _told(ms: float) -> str:
    if ms >= 10_000:
        return f"{ms / 1000:.1f} s"
    return f"{ms:.0f} ms" if ms >= 10 else f"{ms:.2g} ms"
