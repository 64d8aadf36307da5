"""How long an agent took for an action: the wall-clock times of a run in three numbers."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import numpy as np

from proctor.exams.results import EpisodeResult

SCRIPT_MS = 1.0
"""An agent that nearly always takes less than this is a script."""


class Latency(msgspec.Struct, frozen=True, kw_only=True):
    """Percentiles over all actions, between two of them as by `numpy.percentile`. Differ from run to run."""

    p50_ms: float
    p95_ms: float
    p99_ms: float
    worst_ms: float
    n: int
    """How many actions were measured. One that never came is not among them: it is a fault."""

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
    times_s = [time_s for episode in episodes if episode.timing for time_s in episode.timing.act_s]
    if not times_s:
        return None
    p50_ms, p95_ms, p99_ms, worst_ms = np.percentile(np.array(times_s) * 1000, (50, 95, 99, 100)).tolist()
    return Latency(p50_ms=p50_ms, p95_ms=p95_ms, p99_ms=p99_ms, worst_ms=worst_ms, n=len(times_s))


def _told(ms: float) -> str:
    if ms >= 10_000:
        return f"{ms / 1000:.1f} s"
    return f"{ms:.0f} ms" if ms >= 10 else f"{ms:.2g} ms"
