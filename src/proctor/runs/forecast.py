"""What a run will take, told from a few of its episodes in a temporary folder: `proctor run --dry-run`.

All that a run checks before it begins is checked here as well, by the same functions. Nothing is written into
the run's folder.
"""

from __future__ import annotations

import math
import os
import shutil
import signal
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from proctor.core.addresses import is_address, is_chat
from proctor.core.errors import UserError
from proctor.core.registry import load
from proctor.exams.datasets import spread
from proctor.exams.results import EpisodeResult, as_in_results
from proctor.runs.attempts import Patience
from proctor.runs.budget import RunBudget
from proctor.runs.folder import JOURNAL, TRACES, WIRE
from proctor.runs.joining import check_folder
from proctor.runs.ledger import Progress
from proctor.runs.plan import RunPlan
from proctor.runs.recordings import RECORDINGS, budgeted_files
from proctor.runs.rollout import rollout
from proctor.runs.run import check_run, run

SAMPLE_EPISODES = 3  # or one for each worker
SAMPLE_S = 20.0  # after that, no further episode is waited for
FIRST_EPISODE_S = 120.0  # but the first one is, for so long
STAND_IN = "random"
"""The policy that is measured in the place of one that costs money."""
LOCAL_EXECUTORS = ("", "in-process", "workers")
Z_90 = 1.645  # the 95 % point of the normal distribution
LEAST_FACTOR, ALONE_FACTOR, MOST_FACTOR = 1.25, 2.0, 4.0
"""By which a time may be wrong: however equal the episodes were, from a single one, and at most."""


class Range(NamedTuple):
    """An estimate and its likely range."""

    low: float
    middle: float
    high: float


class DiskUse(msgspec.Struct, frozen=True, kw_only=True):
    """What an episode takes on the disk on average, in bytes."""

    journal: float  # its records in the journal and in the results
    traces: float
    wire: float
    steps: float  # of recordings
    pictures: float  # of recordings: frames and sensors, which have a budget

    @property
    def total(self) -> float:
        """All of it."""
        return self.journal + self.traces + self.wire + self.steps + self.pictures


class Measurement(msgspec.Struct, frozen=True, kw_only=True):
    """What was measured with a few episodes of a run."""

    results: Sequence[EpisodeResult]  # those that came to their end in time
    asked: int  # how many were begun, or would have been
    start_s: float  # from the beginning to the first episode
    waited_s: float  # from then on
    disk: DiskUse
    policy: str  # which policy it was: that of the run, or `STAND_IN`
    unavailable: str = ""  # what an agent said that is unavailable

    @property
    def episode_s(self) -> Range:
        """How long an episode takes. If none was finished in time, all that is known is the lower bound."""
        times_s = [max(result.timing.duration_s, 1e-6) for result in self.results if result.timing]
        if not times_s:
            return Range(self.waited_s, math.inf, math.inf)
        middle = statistics.fmean(times_s)
        factor = ALONE_FACTOR
        if len(times_s) > 1:
            spread_of_logs = statistics.stdev(map(math.log, times_s))
            factor = math.exp(Z_90 * spread_of_logs / math.sqrt(len(times_s)))
        factor = min(max(factor, LEAST_FACTOR), MOST_FACTOR)
        return Range(middle / factor, middle, middle * factor)


class Forecast(msgspec.Struct, frozen=True, kw_only=True):
    """What a run consists of, and what it will take."""

    label: str
    left: int  # episodes to do
    scenes: int  # of these
    done_before: int
    notes: Sequence[str]  # what the run would tell at its beginning
    workers: int | None
    """Among which the time is divided; None if the executor decides it."""
    is_local: bool  # whether it was measured where the run will be
    frames_budget_bytes: float = math.inf  # what is left of it
    measured: Measurement | None = None
    unmeasured_because: str = ""

    @property
    def time_s(self) -> Range | None:
        """How long the run will take; None if nothing was measured."""
        if self.measured is None:
            return None
        rounds = max(1.0, self.left / (self.workers or 1))
        start_s, episode_s = self.measured.start_s, self.measured.episode_s
        return Range(*(start_s + rounds * seconds for seconds in episode_s))

    @property
    def disk_bytes(self) -> float:
        """How much the run will write; 0 if nothing was measured."""
        if self.measured is None:
            return 0.0
        disk = self.measured.disk
        pictures = min(self.left * disk.pictures, self.frames_budget_bytes)
        return self.left * (disk.total - disk.pictures) + pictures


def forecast(plan: RunPlan, *, join: bool = False) -> Forecast:
    """Check a run as it would be checked at its beginning, do a few of its episodes, and tell the rest.

    With `join`, others may be doing the run. Raises the UserErrors that the run would raise.
    """
    config = plan.config
    is_local = config.executor in LOCAL_EXECUTORS
    fills_cluster = not is_local and load("executor", config.executor).fills_cluster
    notes = check_run(plan, start=not is_local)
    check_folder(plan, join=join)
    facts = Forecast(
        label=config.label,
        left=len(plan.left),
        scenes=len({episode.scene_id for episode in plan.left}),
        done_before=len(plan.kept),
        notes=notes,
        workers=None if config.workers is None and fills_cluster else plan.workers,
        is_local=is_local,
    )
    if not plan.left:
        return facts
    if config.job.env_options.get("attach"):
        return replace(facts, unmeasured_because="the robot is not driven for a forecast")
    if config.recording is not None:
        spent_bytes = sum(found.st_size for found in budgeted_files(plan.out))
        budget_bytes = max(0, config.recording.frames_budget_bytes - spent_bytes)
        facts = replace(facts, frames_budget_bytes=budget_bytes)
    try:
        return replace(facts, measured=_measure(_sample_plan(plan)))
    except UserError as error:
        if not _costs_money(plan):
            raise
        # The exam may have nothing that a policy by chance could do: no reason to refuse the run.
        problem = f"the policy {STAND_IN} was to take its place, and cannot: {error}"
        return replace(facts, unmeasured_because=problem)


def free_bytes(folder: Path) -> int:
    """Return how much room there is on the disk of a folder that may not exist yet."""
    return shutil.disk_usage(next(path for path in (folder, *folder.parents) if path.exists())).free


def _costs_money(plan: RunPlan) -> bool:
    """Tell whether an episode may cost money: a chat model's, or one that has a budget."""
    return is_chat(plan.config.job.policy) or plan.config.budget.has_limit


def _sample_plan(plan: RunPlan) -> RunPlan:
    """Return a plan of a few episodes of different scenes, to be done here."""
    config = plan.config
    if config.executor not in LOCAL_EXECUTORS:
        config = replace(config, executor="", executor_options={}, workers=1)
    if _costs_money(plan):
        job = replace(config.job, policy=STAND_IN, policy_options={}, privileged=False)
        config = replace(config, job=job)
    patience = Patience(
        max_unavailable=config.patience.max_unavailable, pause_s=min(config.patience.pause_s, 1.0)
    )
    config = replace(config, patience=patience, budget=RunBudget())
    here = plan._replace(config=config, kept={}, thrown_away=())
    episodes = spread(list(plan.left), max(SAMPLE_EPISODES, here.workers))
    return here._replace(episodes=episodes, left=episodes)


class _TimeUpError(KeyboardInterrupt):
    """Ends a measurement; as a KeyboardInterrupt, it is taken for nobody's fault."""


class _Watch:
    """Ends a measurement when it has taken long enough."""

    def __init__(self) -> None:
        self.begun_s = time.perf_counter()
        self.started_s = self.ended_s = self.begun_s
        self.finished: list[EpisodeResult] = []
        self._is_started = self._has_rung = False

    def note(self, progress: Progress) -> None:
        """Take in how far it is; called when the first episode begins and after each."""
        now_s = time.perf_counter()
        if not self._is_started:
            self._is_started, self.started_s = True, now_s
            self._set_alarm(SAMPLE_S)
        self.finished, self.ended_s = list(progress.finished), now_s
        if len(self.finished) == progress.total:
            self._set_alarm(0.0)
        elif self.finished and now_s - self.started_s > SAMPLE_S:
            raise _TimeUpError

    @contextmanager
    def until_time_is_up(self) -> Iterator[None]:
        """Let a `with` block end early, without an error."""
        before = signal.signal(signal.SIGALRM, self._ring) if _is_main_thread() else None
        try:
            yield
        except _TimeUpError:
            self.ended_s = time.perf_counter()
        finally:
            self._set_alarm(0.0)
            if before is not None:
                signal.signal(signal.SIGALRM, before)

    def _ring(self, number: int, frame: FrameType | None) -> None:
        waited_s = time.perf_counter() - self.started_s
        if not self.finished and waited_s < FIRST_EPISODE_S:
            self._set_alarm(min(1.0, FIRST_EPISODE_S - waited_s + 0.01))
            return
        is_again, self._has_rung = self._has_rung, True
        self._set_alarm(1.0)  # once more: an agent may catch whatever is raised
        if not is_again or _is_in_episode(frame):
            raise _TimeUpError

    @staticmethod
    def _set_alarm(seconds: float) -> None:
        """Ask for a signal, or for none; only the main thread can."""
        if _is_main_thread():
            signal.setitimer(signal.ITIMER_REAL, seconds)


def _is_in_episode(frame: FrameType | None) -> bool:
    """Tell whether an episode is being done, and not the run being ended."""
    while frame is not None and frame.f_code is not rollout.__code__:
        frame = frame.f_back
    return frame is not None


def _is_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


def _measure(plan: RunPlan) -> Measurement:
    """Do the episodes of a plan in a temporary folder, as long as there is time."""
    with tempfile.TemporaryDirectory(prefix="proctor-dry-run-", ignore_cleanup_errors=True) as folder:
        plan = plan._replace(out=Path(folder).resolve() / "run")
        watch, unavailable = _Watch(), ""
        with watch.until_time_is_up():
            report = run(plan, watch.note, check_policy=not is_address(plan.config.job.policy))
            unavailable = report.stopped
        return Measurement(
            results=watch.finished,
            asked=len(plan.left),
            start_s=watch.started_s - watch.begun_s,
            waited_s=watch.ended_s - watch.started_s,
            disk=_disk_use(plan.out, watch.finished),
            policy=plan.config.job.policy,
            unavailable=unavailable,
        )


def _disk_use(folder: Path, results: Sequence[EpisodeResult]) -> DiskUse:
    count = max(1, len(results))
    pictures_bytes = sum(map(_room_bytes, budgeted_files(folder)))
    in_results = sum(
        len(msgspec.json.format(msgspec.json.encode(as_in_results(result)), indent=1)) for result in results
    )
    return DiskUse(
        journal=((folder / JOURNAL).stat().st_size + in_results) / count if results else 0.0,
        traces=_size_bytes(folder / TRACES) / count,
        wire=_size_bytes(folder / WIRE) / count,
        steps=(_size_bytes(folder / RECORDINGS) - pictures_bytes) / count,
        pictures=pictures_bytes / count,
    )


def _size_bytes(folder: Path) -> int:
    return sum(_room_bytes(path.stat()) for path in folder.rglob("*") if path.is_file())


def _room_bytes(found: os.stat_result) -> int:
    """Return the room that a file takes, which is more than its size if it is small."""
    return max(found.st_size, 512 * found.st_blocks)
