"""Doing many episodes: in this process, or in several that build their own env and policy from names."""

from __future__ import annotations

import hashlib
import multiprocessing
import signal
import time
from collections import deque
from collections.abc import Iterator, Sequence
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

DEADLINE_S = 3600.0
"""For a worker to start and finish an episode."""
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


def run_here(job: Job, episodes: Sequence[Episode]) -> Iterator[EpisodeResult]:
    """Do the episodes in this process, in their order."""
    examiner = Examiner.of(job)
    try:
        for episode in episodes:
            yield examiner.examine(episode)
    finally:
        examiner.close()


class _Worker:
    """A process of ours, its line to us, and the episode it is doing."""

    def __init__(self, job: Job) -> None:
        context = multiprocessing.get_context("spawn")
        self.line, theirs = context.Pipe()
        self.process = context.Process(target=_work, args=(job, theirs), daemon=True)
        self.process.start()
        theirs.close()
        self.is_ready = False
        self.episode = Episode()
        self.deadline_s = 0.0

    def assign(self, episode: Episode) -> None:
        """Give it an episode. The line holds it until the worker is ready."""
        self.line.send_bytes(msgspec.json.encode(episode))
        self.episode = episode
        self.deadline_s = time.monotonic() + DEADLINE_S

    def receive(self) -> EpisodeResult | str | None:
        """Return what it says, or None if it has died or has been silent for too long."""
        try:
            if self.line.poll(0):
                return msgspec.json.decode(self.line.recv_bytes(), type=EpisodeResult | str)
        except (EOFError, OSError):
            pass
        return None

    def dismiss(self) -> None:
        """End it, whatever it is doing."""
        self.line.close()
        self.process.terminate()
        self.process.join(5.0)
        if self.process.exitcode is None:
            self.process.kill()


def run_in_workers(job: Job, episodes: Sequence[Episode], workers: int) -> Iterator[EpisodeResult]:
    """Do the episodes in several processes; results come as they are ready.

    A process that dies or hangs costs the evaluator its episode, and is replaced.

    Raises:
        ProctorError: Env or policy could not be built.
    """
    waiting = deque(episodes)
    busy: dict[Connection, _Worker] = {}
    try:
        while waiting or busy:
            while waiting and len(busy) < workers:
                worker = _Worker(job)
                worker.assign(waiting.popleft())
                busy[worker.line] = worker
            for worker in _heard_or_overdue(list(busy.values())):
                message = worker.receive()
                if message == READY:
                    worker.is_ready = True
                elif isinstance(message, EpisodeResult):
                    yield message
                    if waiting:
                        worker.assign(waiting.popleft())
                    else:
                        busy.pop(worker.line).dismiss()
                elif isinstance(message, str):
                    raise UserError(message)
                else:
                    busy.pop(worker.line).dismiss()
                    yield _lost(job, worker)
    finally:
        for worker in busy.values():
            worker.dismiss()


def _heard_or_overdue(workers: list[_Worker]) -> list[_Worker]:
    """Wait until a worker has something to say, or has had its time."""
    patience_s = min(worker.deadline_s for worker in workers) - time.monotonic()
    heard = wait([worker.line for worker in workers], timeout=max(0.0, patience_s))
    now_s = time.monotonic()
    return [worker for worker in workers if worker.line in heard or worker.deadline_s <= now_s]


def _lost(job: Job, worker: _Worker) -> EpisodeResult:
    """Return the record of an episode whose worker died or hung."""
    how = f"the worker process ended with exit code {worker.process.exitcode}"
    if not worker.is_ready:
        raise ProctorError(f"{how} while it was building env '{job.env}' and policy '{job.policy}'")
    log = EpisodeLog(episode_seed(job.seed, worker.episode.episode_id))
    log.fault = Fault(side="evaluator", kind="worker_lost", message=how)
    task = VLNTask()
    task.begin(worker.episode)
    return task.result(worker.episode, log)


def _work(job: Job, line: Connection) -> None:
    """Be a worker: build env and policy, then do episodes until the line goes dead."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's business
    try:
        examiner = Examiner.of(job)
    except UserError as error:
        line.send_bytes(msgspec.json.encode(str(error)))
        return
    line.send_bytes(msgspec.json.encode(READY))
    try:
        while True:
            episode = msgspec.json.decode(line.recv_bytes(), type=Episode)
            line.send_bytes(msgspec.json.encode(examiner.examine(episode)))
    except (EOFError, OSError):  # the parent is done, or dead
        return
    finally:
        examiner.close()
