"""Doing many episodes: in this process, or in several that build their own env and policy from names.

An executor builds env and policy when it is made, so that what cannot be built is known before a run
begins; `run` then yields results as they are ready.
"""

from __future__ import annotations

import hashlib
import math
import signal
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack, nullcontext, suppress
from functools import partial
from multiprocessing.connection import Connection, wait
from typing import Any

import msgspec

from proctor.core.addresses import is_address, replicas
from proctor.core.errors import ProctorError, UserError
from proctor.core.interfaces import Env, Policy
from proctor.exams.results import EpisodeResult, Fault
from proctor.runs.attempts import Attempts
from proctor.runs.closing import close_problems
from proctor.runs.episode_log import EpisodeLog, Turn
from proctor.runs.forks import no_forks
from proctor.runs.job import Job
from proctor.runs.recorder import Recorder, Recorders
from proctor.runs.rollout import Task, rollout
from proctor.runs.tasks import EXAMS, make_task
from proctor.runs.worker_start import begin_worker, worker_context, worker_environ
from proctor.core.registry import build, load

START_DEADLINE_S = 900.0
TURN_DEADLINE_S = 900.0
"""For a policy to choose one action, or for an env to do it."""
CLOSE_DEADLINE_S = 10.0
READY = "ready"
TURNS: tuple[Turn, ...] = ("evaluator", "env", "policy")
SIGNALS_FROM_OUTSIDE = (signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT)
"""Not among them are those that a process brings upon itself, such as SIGSEGV."""


class Examiner:
    """An env, a policy and a task, ready to do one episode after the other."""

    def __init__(
        self,
        env: Env,
        policy: Policy,
        task: Task,
        *,
        seed: int,
        privileged: bool,
        recorder: Recorder | None = None,
    ) -> None:
        self.env, self.policy = env, policy
        self._task, self._seed, self._privileged, self._recorder = task, seed, privileged, recorder

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
        privileged = bool(load("policy", job.policy).privileged) if job.privileged is None else job.privileged
        with ExitStack() as on_failure, no_forks():
            policy = policy_of(job, index)
            on_failure.callback(close_problems, policy)
            if check:
                policy.check()
            env = build("env", job.env, job.env_options)
            on_failure.pop_all()
        return cls(env, policy, make_task(job), seed=job.seed, privileged=privileged, recorder=recorder)

    def examine(self, episode: Any, announce: Callable[[Turn], None] | None = None) -> EpisodeResult:
        """Do one episode. Its seed depends on the run's seed and its id, not on what came before."""
        seed = episode_seed(self._seed, episode.episode_id)
        with self._recorder.episode(episode.episode_id) if self._recorder else nullcontext() as witness:
            return rollout(
                self.env,
                self.policy,
                episode,
                self._task,
                seed=seed,
                privileged=self._privileged,
                announce=announce,
                witness=witness,
            )

    def examine_all(self, attempts: Attempts) -> Iterator[EpisodeResult]:
        """Do all episodes, waiting for an agent that is unavailable."""
        while (wait_s := attempts.wait_s()) is not None:
            time.sleep(wait_s)
            episode = attempts.take()
            result = self.examine(episode)
            attempts.note(episode, result)
            yield result

    def close(self) -> list[str]:
        """Close policy and env, and return what went wrong with that."""
        return close_problems(self.policy, self.env)


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

    def run(self, attempts: Attempts) -> Iterator[EpisodeResult]:
        """Do the episodes one after the other."""
        return self._examiner.examine_all(attempts)

    def close(self) -> list[str]:
        """Close policy and env, and return what went wrong with that."""
        return self._examiner.close()


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
        self._job, self._recorders, self._environ = job, recorders, worker_environ(workers)
        self._workers: list[_Worker] = []
        with ExitStack() as undo:  # whatever interrupts the building, no process is left behind
            undo.callback(self.close)
            for index in range(workers):
                self._workers.append(self._start_worker(index, check=check))
            for worker in self._workers:
                worker.await_ready()
            undo.pop_all()

    def run(self, attempts: Attempts) -> Iterator[EpisodeResult]:
        """Do the episodes; results come as they are ready."""
        while True:
            for index, worker in enumerate(self._workers):
                if worker.episode is None and attempts.wait_s() == 0.0:
                    self._give(index, attempts.take(index))
            busy = [worker for worker in self._workers if worker.episode is not None]
            wait_s = attempts.wait_s()
            if not busy and wait_s is None:
                return
            if len(busy) == len(self._workers):
                wait_s = None  # nobody could take the next episode
            for worker in _heard_or_overdue(busy, wait_s):
                episode, result = worker.episode, worker.result()
                attempts.note(episode, result)
                yield result

    def close(self) -> list[str]:
        """End all processes, the idle ones in good order, and return what policies and envs raised then."""
        deadline_s = time.monotonic() + CLOSE_DEADLINE_S
        for worker in self._workers:
            worker.ask_to_leave()
        problems = [problem for worker in self._workers for problem in worker.dismiss(deadline_s)]
        return list(dict.fromkeys(problems))

    def _start_worker(self, index: int, *, check: bool) -> _Worker:
        return _Worker(self._job, self._recorders, index, self._environ, check=check)

    def _give(self, index: int, episode: Any) -> None:
        """Give a worker an episode; a new one takes its place if it is no more."""
        if self._workers[index].assign(episode):
            return
        self._workers[index].dismiss(time.monotonic())
        self._workers[index] = self._start_worker(index, check=False)
        self._workers[index].await_ready()
        if not self._workers[index].assign(episode):
            raise ProctorError("a worker died right after it had been built")


class _Worker:
    """A process of ours, its line to us, and the episode it is doing."""

    def __init__(
        self, job: Job, recorders: Recorders | None, index: int, environ: dict[str, str], *, check: bool
    ) -> None:
        context = worker_context(__name__)
        self.line, theirs = context.Pipe()
        # Whose turn it is and since when: the last thing that can be known of a process that dies.
        self._turn = context.RawArray("d", [0.0, time.monotonic()])
        build_examiner = partial(_examiner, job, recorders, index, check=check)
        args = (build_examiner, job.task, theirs, self._turn, environ)
        self._process = context.Process(target=_work, args=args)
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
                return self._checked(episode, self.line.recv_bytes())
        self._is_well = False
        return self._record(episode, self._loss())

    def ask_to_leave(self) -> None:
        """Let it close its policy and its env, if it is idle and well."""
        with suppress(OSError):
            if self._is_idle:
                self.line.send_bytes(b"")

    def dismiss(self, deadline_s: float) -> list[str]:
        """End it; give it until the deadline if it is idle and well. Return what went wrong in closing."""
        problems: list[str] = []
        with suppress(EOFError, OSError, msgspec.MsgspecError):
            if self._is_idle and self.line.poll(max(0.0, deadline_s - time.monotonic())):
                problems = msgspec.json.decode(self.line.recv_bytes(), type=list[str])
        self.line.close()
        if self._is_idle:
            self._process.join(max(0.0, deadline_s - time.monotonic()))
        self._process.terminate()
        self._process.join(1.0)
        self._process.kill()
        return problems

    @property
    def _is_idle(self) -> bool:
        return self._is_well and self.episode is None

    def _checked(self, episode: Any, message: bytes) -> EpisodeResult:
        """Return a result if it is of this episode. Code of a policy could have written something else."""
        try:
            result = msgspec.json.decode(message, type=EpisodeResult)
        except msgspec.MsgspecError as error:
            found = f"something else ({error})"
        else:
            if result.episode_id == episode.episode_id:
                return result
            found = f"the result of {result.episode_id!r:.80}"
        self._is_well = False
        self._process.kill()
        problem = f"the process was to send the result of this episode, but sent {found}"
        return self._record(episode, Fault(side="unknown", kind="wrong_result", message=problem))

    def _loss(self) -> Fault:
        """Decide whose fault it is that the process ended: that of whose turn it was.

        A signal that others send, the system among them when it runs out of memory, may have nothing to do
        with the agent.
        """
        turn = TURNS[int(self._turn[0])]
        if turn == "policy" and is_address(self._job.policy):
            turn = "evaluator"  # the agent is elsewhere, and all waiting for it has a deadline
        end = self._end()
        if turn == "policy" and -(self._process.exitcode or 0) in SIGNALS_FROM_OUTSIDE:
            problem = f"the process was killed in the policy's turn ({end}), perhaps for want of memory"
            return Fault(side="unknown", kind="worker_killed", message=problem)
        return Fault(
            side="agent" if turn == "policy" else "evaluator",
            kind=f"{turn}_lost",
            message=f"the process was lost in the {turn}'s turn ({end})",
        )

    def _record(self, episode: Any, fault: Fault) -> EpisodeResult:
        """Write the record of an episode of which nothing is known: an agent is judged by the start."""
        log = EpisodeLog(episode_seed(self._job.seed, episode.episode_id))
        log.fault = fault
        task = make_task(self._job)
        task.begin(episode)
        log.metrics = task.measure() if fault.side == "agent" else {}
        return task.result(episode, log)

    def _end(self) -> str:
        self._process.join(1.0)
        code = self._process.exitcode
        return "no answer in time" if code is None else f"exit code {code}"


def _heard_or_overdue(workers: list[_Worker], most_s: float | None) -> list[_Worker]:
    """Wait until a worker has something to say, or has had its time; no longer than `most_s`, if given."""
    until_s = math.inf if most_s is None else time.monotonic() + most_s
    while True:
        next_s = min([until_s, *(worker.deadline_s for worker in workers)])
        heard = wait([worker.line for worker in workers], timeout=max(0.0, next_s - time.monotonic()))
        now_s = time.monotonic()
        found = [worker for worker in workers if worker.line in heard or worker.deadline_s <= now_s]
        if found or now_s >= until_s:  # else turns have changed in the meantime, and with them the deadlines
            return found


def _examiner(job: Job, recorders: Recorders | None, index: int, *, check: bool) -> Examiner:
    return Examiner.of(job, recorders.recorder(index) if recorders else None, index=index, check=check)


def _work(
    build_examiner: Callable[[], Examiner],
    task: str,
    line: Connection,
    turn_and_since: Any,
    environ: dict[str, str],
) -> None:
    """Be a worker: build env and policy, then do episodes until the line goes dead."""
    begin_worker(environ)

    def announce(turn: Turn) -> None:
        turn_and_since[:] = [float(TURNS.index(turn)), time.monotonic()]

    try:
        examiner = build_examiner()
    except UserError as error:
        line.send_bytes(str(error).encode())
        return
    line.send_bytes(READY.encode())
    with suppress(EOFError, OSError):  # the parent is dead, or has no use for this process any more
        try:
            while message := line.recv_bytes():
                episode = msgspec.json.decode(message, type=EXAMS[task].episode)
                line.send_bytes(msgspec.json.encode(examiner.examine(episode, announce)))
        finally:
            line.send_bytes(msgspec.json.encode(examiner.close()))
