"""What a run takes: wall time, CPU time and memory, measured in the process that does an episode.

Each record of the journal says what its episode took. A run's numbers are made from its records, so they are
there for any executor, for several hosts, and for runs that were interrupted.
"""

from __future__ import annotations

import os
import resource
import sys
import time
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET

from proctor.exams.results import EpisodeResult, Timing

STATUS = Path("/proc/self/status")


class Moment(NamedTuple):
    """When something began: for people, and on this process's own clock, by which durations are measured."""

    utc: datetime
    perf_s: float

    @classmethod
    def now(cls) -> Moment:
        """Read both clocks."""
        return cls(datetime.now(UTC), time.perf_counter())


class ProcessMeter:
    """Charges what this process uses to its episodes. All that happens between two is charged to the second.

    The time before the first episode, with the start of the process, is charged to the first.
    """

    def __init__(self) -> None:
        self._charged_s = 0.0

    def read(self) -> dict[str, Any]:
        """Return what the episode that is under way has used, as fields of its `Timing`."""
        cpu_s = max(0.0, _cpu_s() - self._charged_s)
        return {"cpu_s": round(cpu_s, 6), "peak_mb": round(_peak_bytes() / 1e6, 1)}

    def charge(self, timing: Timing) -> None:
        """Note what the record of an episode says, so that the next one does not say it again."""
        self._charged_s += timing.cpu_s or 0.0

    def restart(self) -> None:
        """Begin anew: the CPU time of a process that was forked counts from 0."""
        self._charged_s = 0.0


METER = ProcessMeter()
os.register_at_fork(after_in_child=METER.restart)


def _cpu_s() -> float:
    """Return the CPU time of this process and of its children that have ended and were waited for."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in used)


def _peak_bytes() -> int:
    """Return the most memory that this process has held.

    `ru_maxrss` is only the second choice: on Linux, it is at least what the process that started this one
    held at that time.
    """
    try:
        line = next(line for line in STATUS.read_text().splitlines() if line.startswith("VmHWM:"))
        return int(line.split()[1]) * 1024
    except (OSError, StopIteration, IndexError, ValueError):
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024


class RunResources(msgspec.Struct, frozen=True, kw_only=True):
    """What a run took, attempts that do not count included."""

    episodes: int
    """How many are behind these numbers: those whose records say when they began."""
    unmeasured: int = 0
    """How many others there are, of versions that did not measure this."""
    wall_s: float
    """How long at least one episode was under way, without pauses, checks and the start of processes."""
    cpu_s: float | None = None
    peak_mb: float | None = None
    """The most memory that a process which does episodes held."""
    hosts: tuple[str, ...] = ()

    @property
    def per_minute(self) -> float:
        """How many episodes were finished in a minute."""
        return 60 * self.episodes / self.wall_s if self.wall_s > 0 else 0.0

    def __str__(self) -> str:
        many = "" if self.episodes == 1 else "s"
        pace = f" ({_few_digits(self.per_minute)} a minute)" if self.episodes > 1 and self.wall_s > 0 else ""
        parts = [f"{self.episodes} episode{many} in {duration_text(self.wall_s)}{pace}"]
        if self.cpu_s is not None:
            parts.append(f"{duration_text(self.cpu_s)} of CPU")
        if self.peak_mb is not None:
            parts.append(f"at most {self.peak_mb:.0f} MB in a worker")
        if len(self.hosts) > 1:
            parts.append(f"on {len(self.hosts)} hosts")
        if self.unmeasured:
            parts.append(f"{self.unmeasured} more not measured")
        return ", ".join(parts)


def resources_of(attempts: Iterable[EpisodeResult]) -> RunResources | None:
    """Return what these attempts took together; None if none of them was measured."""
    every = list(attempts)
    measured = [(each.episode_id, each.timing) for each in every if each.timing and each.timing.began]
    if not measured:
        return None
    ids = {episode_id for episode_id, _ in measured}
    timings = [timing for _, timing in measured]
    cpu_s = [timing.cpu_s for timing in timings if timing.cpu_s is not UNSET]
    peaks_mb = [timing.peak_mb for timing in timings if timing.peak_mb is not UNSET]
    return RunResources(
        episodes=len(ids),
        unmeasured=len({each.episode_id for each in every} - ids),
        wall_s=_union_s(timings),
        cpu_s=sum(cpu_s) if cpu_s else None,
        peak_mb=max(peaks_mb, default=None),
        hosts=tuple(sorted({timing.host for timing in timings if timing.host})),
    )


def _union_s(timings: Iterable[Timing]) -> float:
    """Return how long at least one of these episodes was under way.

    Beginnings are times of the day, perhaps of several hosts: a clock that was wrong changes how much they
    overlap, never how long an episode took.
    """
    spans = sorted((timing.began.timestamp(), timing.duration_s) for timing in timings if timing.began)
    total_s, end_s = 0.0, -float("inf")
    for begin_s, duration_s in spans:
        total_s += max(0.0, begin_s + duration_s - max(begin_s, end_s))
        end_s = max(end_s, begin_s + duration_s)
    return total_s


def duration_text(seconds: float) -> str:
    """Return a duration as people say it: `0.4 s`, `19 s`, `4 min 10 s`, `3 h 20 min`."""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    hours, minutes = divmod(round(whole / 60), 60)
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"


def _few_digits(value: float) -> str:
    return f"{value:.1f}" if value < 9.95 else f"{value:.0f}"
