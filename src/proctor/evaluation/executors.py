"""Doing many episodes: in this process, or in several that build their own env and policy from names.

An executor builds env and policy when it is made, so that what cannot be built is known before a run
begins; `run` then yields results as they are ready.
"""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, nullcontext, suppress
from functools import partial
from multiprocessing.connection import Connection, wait
from typing import Any

import msgspec

from proctor.core.addresses import is_address, replicas
from proctor.core.errors import ProctorError, UserError
from proctor.core.interfaces import Env, Policy
from proctor.core.results import EpisodeResult, Fault
from proctor.evaluation.episode_log import EpisodeLog, Turn
from proctor.evaluation.job import Job
from proctor.evaluation.recorder import Recorder, Recorders
from proctor.evaluation.rollout import Task, rollout
from proctor.evaluation.tasks import EXAMS, make_task
from proctor.registry import build

START_DEADLINE_S = 900.0
TURN_DEADLINE_S = 900.0
"""For a policy to choose one action, or for an env to do it."""
CLOSE_DEADLINE_S = 10.0
READY = "ready"
TURNS: tuple[Turn, ...] = ("evaluator", "env", "policy")


class Examiner:
    """An env, a policy and a task, ready to do one episode after the other."""

    def __init__(
        self, env: Env, policy: Policy, task: Task, *, seed: int, recorder: Recorder | None = None
    ) -> None:
        self.env, self.policy = env, policy
        self._task, self._seed, self._recorder = task, seed, recorder

    @classmethod
    def of(
        cls, job: Job, recorder: Recorder | None = None, *, index: int = 0, check: bool = True
    ) -> Examiner:
        """Build env and policy by name.

        Args:
            job: What to build.
            recorder: Watches the episodes.
            index: Of the worker.
            check: Whether to find out if the agent is there.
        """
        policy = policy_of(job, index)
        with ExitStack() as on_failure:
            on_failure.callback(policy.close)
            if check:
                policy.check()
            env = build("env", job.env, job.env_options)
            on_failure.pop_all()
        return cls(env, policy, make_task(job), seed=job.seed, recorder=recorder)

    def examine(self, episode: Any, announce: Callable[[Turn], None] | None = None) -> EpisodeResult:
        """Do one episode. Its seed depends on the run's seed and its id, not on what came before."""
        seed = episode_seed(self._seed, episode.episode_id)
        with self._recorder.episode(episode.episode_id) if self._recorder else nullcontext() as witness:
            return rollout(
                self.env, self.policy, episode, self._task, seed=seed, announce=announce, witness=witness
            )

    def close(self) -> None:
        """Close policy and env, the env even if the policy cannot be closed."""
        with closing(self.env):
            self.policy.close()


def policy_of(job: Job, index: int) -> Policy:
    """Build a worker's policy. Of several addresses of one agent, each worker begins with another."""
    addresses = deque(replicas(job.policy) or [job.policy])
    addresses.rotate(-index)
    policy: Policy = build("policy", ",".join(addresses), job.policy_options)
    return policy


def episode_seed(run_seed: int, episode_id: str) -> int:
    """Return a seed of 48 bits that is the same for any number of workers and any order."""
    digest = hashlib.sha256(f"{run_seed}/{episode_id}".encode()).digest()
    return int.from_bytes(digest[:6], "big")


class InProcess:
    """Does episodes here, one after the other.

    Args:
        job: What to build.
        recorders: Watch the episodes.
        check: Whether to find out first if the agent is there.

    Raises:
        UserError: Env or policy cannot be built as asked.
    """

    def __init__(self, job: Job, recorders: Recorders | None = None, *, check: bool = True) -> None:
        self._examiner = Examiner.of(job, recorders.recorder(0) if recorders else None, check=check)

    def run(self, episodes: Sequence[Any]) -> Iterator[EpisodeResult]:
        """Do the episodes in their order."""
        return map(self._examiner.examine, episodes)

    def close(self) -> None:
        """Close policy and env."""
        self._examiner.close()


class WorkerPool:
    """Does episodes in several processes. One that dies or hangs costs its episode, and is replaced.

    Args:
        job: What to build.
        workers: How many processes.
        recorders: Watch the episodes.
        check: Whether each process finds out first if its agent is there. Once a run has begun, an agent
            that is not there loses episodes; it does not end the run.

    Raises:
        UserError: Env or policy cannot be built as asked.
        ProctorError: A process died while it was building them.
    """

    def __init__(
        self, job: Job, workers: int, recorders: Recorders | None = None, *, check: bool = True
    ) -> None:
        self._job, self._recorders = job, recorders
        self._workers: list[_Worker] = []
        with ExitStack() as undo:  # whatever interrupts the building, no process is left behind
            undo.callback(self.close)
            self._workers += [_Worker(job, recorders, index, check=check) for index in range(workers)]
            for worker in self._workers:
                worker.await_ready()
            undo.pop_all()

    def run(self, episodes: Sequence[Any]) -> Iterator[EpisodeResult]:
        """Do the episodes; results come as they are ready."""
        waiting = deque(episodes)
        while True:
            for index, worker in enumerate(self._workers):
                if worker.episode is None and waiting:
                    self._give(index, waiting.popleft())
            busy = [worker for worker in self._workers if worker.episode is not None]
            if not busy:
                return
            for worker in _heard_or_overdue(busy):
                yield worker.result()

    def close(self) -> None:
        """End all processes: the idle ones in good order, the others at once."""
        deadline_s = time.monotonic() + CLOSE_DEADLINE_S
        for worker in self._workers:
            worker.line.close()  # which tells an idle worker to close its policy and leave
        for worker in self._workers:
            worker.dismiss(deadline_s)

    def _give(self, index: int, episode: Any) -> None:
        """Give a worker an episode; a new one takes its place if it is no more."""
        if self._workers[index].assign(episode):
            return
        self._workers[index].dismiss(time.monotonic())
        self._workers[index] = _Worker(self._job, self._recorders, index, check=False)
        self._workers[index].await_ready()
        if not self._workers[index].assign(episode):
            raise ProctorError("a worker died right after it had been built")


class _Worker:
    """A process of ours, its line to us, and the episode it is doing."""

    def __init__(self, job: Job, recorders: Recorders | None, index: int, *, check: bool) -> None:
        context = multiprocessing.get_context("spawn")
        self.line, theirs = context.Pipe()
        # Whose turn it is and since when: the last thing that can be known of a process that dies.
        self._turn = context.RawArray("d", [0.0, time.monotonic()])
        build_examiner = partial(_examiner, job, recorders, index, check=check)
        self._process = context.Process(target=_work, args=(build_examiner, job.task, theirs, self._turn))
        self._process.start()
        theirs.close()
        self._job = job
        self._is_well = False
        self.episode: Any = None

    @property
    def deadline_s(self) -> float:
        """When the present turn will have taken too long."""
        return float(self._turn[1]) + TURN_DEADLINE_S

    def await_ready(self) -> None:
        """Wait until env and policy are built."""
        complaint = None
        with suppress(EOFError, OSError):
            if self.line.poll(START_DEADLINE_S):
                complaint = self.line.recv_bytes().decode()
        if complaint is None:
            what = f"env '{self._job.env}' and policy '{self._job.policy}'"
            raise ProctorError(f"a worker could not build {what} ({self._end()})")
        if complaint != READY:
            raise UserError(complaint)
        self._is_well = True

    def assign(self, episode: Any) -> bool:
        """Give it an episode to do; tell whether it lives to take it."""
        if not self._is_well:
            return False
        self._turn[:] = [0.0, time.monotonic()]
        try:
            self.line.send_bytes(msgspec.json.encode(episode))
        except OSError:
            return False
        self.episode = episode
        return True

    def result(self) -> EpisodeResult:
        """Return the result of its episode, or the record of how it was lost."""
        episode, self.episode = self.episode, None
        with suppress(EOFError, OSError):
            if self.line.poll(0):
                return msgspec.json.decode(self.line.recv_bytes(), type=EpisodeResult)
        self._is_well = False
        return self._lost(episode)

    def dismiss(self, deadline_s: float) -> None:
        """End it; give it until the deadline if it is idle and well."""
        self.line.close()
        if self._is_well and self.episode is None:
            self._process.join(max(0.0, deadline_s - time.monotonic()))
        self._process.terminate()
        self._process.join(1.0)
        self._process.kill()

    def _lost(self, episode: Any) -> EpisodeResult:
        """Lay the loss at the door of whose turn it was; an agent is judged by where it started."""
        turn = TURNS[int(self._turn[0])]
        if turn == "policy" and is_address(self._job.policy):
            turn = "evaluator"  # the agent is elsewhere, and all waiting for it has a deadline
        log = EpisodeLog(episode_seed(self._job.seed, episode.episode_id))
        log.fault = Fault(
            side="agent" if turn == "policy" else "evaluator",
            kind=f"{turn}_lost",
            message=f"the process was lost in the {turn}'s turn ({self._end()})",
        )
        task = make_task(self._job)
        task.begin(episode)
        log.metrics = task.measure() if turn == "policy" else {}
        return task.result(episode, log)

    def _end(self) -> str:
        self._process.join(1.0)
        code = self._process.exitcode
        return "no answer in time" if code is None else f"exit code {code}"


def _heard_or_overdue(workers: list[_Worker]) -> list[_Worker]:
    """Wait until a worker has something to say, or has had its time."""
    while True:
        patience_s = min(worker.deadline_s for worker in workers) - time.monotonic()
        heard = wait([worker.line for worker in workers], timeout=max(0.0, patience_s))
        now_s = time.monotonic()
        found = [worker for worker in workers if worker.line in heard or worker.deadline_s <= now_s]
        if found:  # else turns have changed in the meantime, and with them the deadlines
            return found


def _examiner(job: Job, recorders: Recorders | None, index: int, *, check: bool) -> Examiner:
    return Examiner.of(job, recorders.recorder(index) if recorders else None, index=index, check=check)


def _work(build_examiner: Callable[[], Examiner], task: str, line: Connection, turn_and_since: Any) -> None:
    """Be a worker: build env and policy, then do episodes until the line goes dead."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's business
    threading.Thread(target=_outlive_no_parent, daemon=True).start()

    def announce(turn: Turn) -> None:
        turn_and_since[:] = [float(TURNS.index(turn)), time.monotonic()]

    try:
        examiner = build_examiner()
    except UserError as error:
        line.send_bytes(str(error).encode())
        return
    line.send_bytes(READY.encode())
    try:
        while True:
            episode = msgspec.json.decode(line.recv_bytes(), type=EXAMS[task].episode)
            line.send_bytes(msgspec.json.encode(examiner.examine(episode, announce)))
    except (EOFError, OSError):  # the parent is done, or dead
        return
    finally:
        examiner.close()


def _outlive_no_parent() -> None:
    """End this process when its parent is gone, even if an agent hangs in it."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)
