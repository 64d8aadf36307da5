"""Doing many episodes: in this process, or in several that build their own env and policy from names.

An executor builds env and policy when it is made, so that what cannot be built is known before a run
begins; `run` then yields results as they are ready.
"""

from __future__ import annotations

import hashlib
import math
import multiprocessing
import signal
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from typing import Any

import msgspec

from proctor.core.errors import ProctorError, UserError
from proctor.core.interfaces import Env, Policy
from proctor.core.results import EpisodeResult, Fault
from proctor.episodes.vln import Episode
from proctor.evaluation.rollout import EpisodeLog, rollout
from proctor.evaluation.vln_task import DEFAULT_SUCCESS_THRESHOLD_M, VLNTask
from proctor.registry import build

START_DEADLINE_S = 600.0
EPISODE_DEADLINE_S = 3600.0
READY = "ready"


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """All that a process needs to know to do episodes: names and options, no objects."""

    env: str
    policy: str
    env_options: dict[str, Any] = {}
    policy_options: dict[str, Any] = {}
    seed: int = 0
    success_threshold_m: float = DEFAULT_SUCCESS_THRESHOLD_M


class Examiner:
    """An env, a policy and a task, ready to do one episode after the other."""

    def __init__(self, env: Env, policy: Policy, task: VLNTask, *, seed: int) -> None:
        self.env, self.policy = env, policy
        self._task, self._seed = task, seed

    @classmethod
    def of(cls, job: Job) -> Examiner:
        """Build env and policy by name."""
        policy = build("policy", job.policy, job.policy_options)
        env = build("env", job.env, job.env_options)
        return cls(env, policy, VLNTask(success_threshold_m=job.success_threshold_m), seed=job.seed)

    def examine(self, episode: Episode) -> EpisodeResult:
        """Do one episode. Its seed depends on the run's seed and its id, not on what came before."""
        seed = episode_seed(self._seed, episode.episode_id)
        return rollout(self.env, self.policy, episode, self._task, seed=seed)

    def close(self) -> None:
        """Close policy and env."""
        self.policy.close()
        self.env.close()


def episode_seed(run_seed: int, episode_id: str) -> int:
    """Return a seed of 48 bits that is the same for any number of workers and any order."""
    digest = hashlib.sha256(f"{run_seed}/{episode_id}".encode()).digest()
    return int.from_bytes(digest[:6], "big")


class InProcess:
    """Does episodes here, one after the other.

    Raises:
        UserError: Env or policy cannot be built as asked.
    """

    def __init__(self, job: Job) -> None:
        self._examiner = Examiner.of(job)

    def run(self, episodes: Sequence[Episode]) -> Iterator[EpisodeResult]:
        """Do the episodes in their order."""
        return map(self._examiner.examine, episodes)

    def close(self) -> None:
        """Close policy and env."""
        self._examiner.close()


class WorkerPool:
    """Does episodes in several processes. One that dies or hangs costs its episode, and is replaced.

    Raises:
        UserError: Env or policy cannot be built as asked.
        ProctorError: A process died while it was building them.
    """

    def __init__(self, job: Job, workers: int) -> None:
        self._job = job
        self._workers = [_Worker(job) for _ in range(workers)]
        try:
            for worker in self._workers:
                worker.await_ready()
        except ProctorError:
            self.close()
            raise

    def run(self, episodes: Sequence[Episode]) -> Iterator[EpisodeResult]:
        """Do the episodes; results come as they are ready."""
        waiting = deque(episodes)
        for worker in self._workers:
            if waiting:
                worker.assign(waiting.popleft())
        while busy := [worker for worker in self._workers if worker.episode is not None]:
            for worker in _heard_or_overdue(busy):
                result = worker.receive()
                if result is None:
                    result = worker.lost_episode()
                    self._replace(worker)
                worker.episode = None
                yield result
            for worker in self._workers:
                if worker.episode is None and waiting:
                    worker.assign(waiting.popleft())

    def close(self) -> None:
        """End all processes, whatever they are doing."""
        for worker in self._workers:
            worker.dismiss()

    def _replace(self, worker: _Worker) -> None:
        worker.dismiss()
        fresh = _Worker(self._job)
        self._workers[self._workers.index(worker)] = fresh
        fresh.await_ready()


class _Worker:
    """A process of ours, its line to us, and the episode it is doing."""

    def __init__(self, job: Job) -> None:
        context = multiprocessing.get_context("spawn")
        self._line, theirs = context.Pipe()
        self._process = context.Process(target=_work, args=(job, theirs), daemon=True)
        self._process.start()
        theirs.close()
        self._job = job
        self.episode: Episode | None = None
        self.deadline_s = math.inf

    @property
    def line(self) -> Connection:
        """Readable when the worker has something to say."""
        return self._line

    def await_ready(self) -> None:
        """Wait until env and policy are built."""
        complaint = None
        with suppress(EOFError, OSError):
            if self._line.poll(START_DEADLINE_S):
                complaint = self._line.recv_bytes().decode()
        if complaint is None:
            what = f"env '{self._job.env}' and policy '{self._job.policy}'"
            raise ProctorError(f"a worker could not build {what} ({self._end()})")
        if complaint != READY:
            raise UserError(complaint)

    def assign(self, episode: Episode) -> None:
        """Give it an episode to do."""
        self._line.send_bytes(msgspec.json.encode(episode))
        self.episode = episode
        self.deadline_s = time.monotonic() + EPISODE_DEADLINE_S

    def receive(self) -> EpisodeResult | None:
        """Return the result of its episode, or None if it has died or is overdue."""
        with suppress(EOFError, OSError):
            if self._line.poll(0):
                return msgspec.json.decode(self._line.recv_bytes(), type=EpisodeResult)
        return None

    def lost_episode(self) -> EpisodeResult:
        """Return the record of the episode that it could not finish."""
        episode = self.episode or Episode()
        log = EpisodeLog(episode_seed(self._job.seed, episode.episode_id))
        log.fault = Fault(
            side="evaluator", kind="worker_lost", message=f"the worker was lost ({self._end()})"
        )
        task = VLNTask()
        task.begin(episode)
        return task.result(episode, log)

    def dismiss(self) -> None:
        """End it."""
        self._line.close()
        self._process.terminate()
        self._process.join(5.0)
        if self._process.exitcode is None:
            self._process.kill()

    def _end(self) -> str:
        self._process.join(1.0)
        code = self._process.exitcode
        return "no answer in time" if code is None else f"exit code {code}"


def _heard_or_overdue(workers: list[_Worker]) -> list[_Worker]:
    """Wait until a worker has something to say, or has had its time."""
    patience_s = min(worker.deadline_s for worker in workers) - time.monotonic()
    heard = wait([worker.line for worker in workers], timeout=max(0.0, patience_s))
    now_s = time.monotonic()
    return [worker for worker in workers if worker.line in heard or worker.deadline_s <= now_s]


def _work(job: Job, line: Connection) -> None:
    """Be a worker: build env and policy, then do episodes until the line goes dead."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's business
    try:
        examiner = Examiner.of(job)
    except UserError as error:
        line.send_bytes(str(error).encode())
        return
    line.send_bytes(READY.encode())
    try:
        while True:
            episode = msgspec.json.decode(line.recv_bytes(), type=Episode)
            line.send_bytes(msgspec.json.encode(examiner.examine(episode)))
    except (EOFError, OSError):  # the parent is done, or dead
        return
    finally:
        examiner.close()
