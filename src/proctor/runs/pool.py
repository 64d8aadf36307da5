"""Doing episodes in several processes that build their own env and policy from names."""

from __future__ import annotations

import math
import multiprocessing
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from multiprocessing.connection import Connection, wait
from typing import Any, ClassVar

import msgspec
import numpy as np

from proctor.core.addresses import is_address
from proctor.core.errors import AgentFault, ProctorError, UserError
from proctor.core.types import Usage
from proctor.exams.results import Fault, Side
from proctor.runs.accounting import checked_usage
from proctor.runs.attempts import WORKER_KILLED, Attempts
from proctor.runs.examiner import Examiner, Finished, episode_seed, lost
from proctor.runs.executors import NoOptions, check_episodes
from proctor.runs.job import RunJob
from proctor.runs.leases import MAX_LOSSES
from proctor.runs.recorder import Recorders
from proctor.runs.resources import Moment
from proctor.runs.turns import Turn

START_DEADLINE_S = 900.0
TURN_DEADLINE_S = 900.0  # for a policy to choose one action, or for an env to do it
CLOSE_DEADLINE_S = 10.0
RECEIVE_DEADLINE_S = 60.0  # for a message to come to its end
READY = "ready"
BROKEN = "broken: "  # begins what a worker says of an error that is not a UserError
TURNS: tuple[Turn, ...] = ("evaluator", "env", "policy")
SIGNALS_FROM_OUTSIDE = (signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT)
"""Not among them are those that a process brings upon itself, such as SIGSEGV."""


NO_USAGE = (0.0,) * (1 + len(Usage.__struct_fields__))
"""In the shared memory of a worker: whether it knows what was used, and the numbers."""


class WorkerPool:
    """Does episodes in several processes. One that dies or hangs costs its episode, and is replaced.

    With `check`, each process finds out first if its agent is there. Once a run has begun, an agent that is
    not there loses episodes; it does not end the run.
    """

    options_type: ClassVar[type[msgspec.Struct]] = NoOptions
    fills_cluster: ClassVar[bool] = False

    def __init__(
        self, job: RunJob, workers: int | None, recorders: Recorders | None = None, *, check: bool = True
    ) -> None:
        self._job, self._count, self._recorders, self._check = job, workers or 1, recorders, check
        self._environ = worker_environ(self._count)
        self._workers: list[_Worker] = []
        self._problems: list[str] = []

    def check(self, episodes: Sequence[Any]) -> list[str]:
        """Let an env look at the episodes."""
        notes, problems = check_episodes(self._job, episodes)
        self._problems += problems
        return notes

    def start(self) -> None:
        """Start the processes, and wait until they have built env and policy."""
        for index in range(self._count):
            self._workers.append(self._start_worker(index, check=self._check))
        for worker in self._workers:
            worker.await_ready()

    def run(self, attempts: Attempts) -> Iterator[Finished | None]:
        """Do the episodes; results come as they are ready."""
        while True:
            for index, worker in enumerate(self._workers):
                if worker.episode is None and attempts.wait_s() == 0.0:
                    episode = attempts.take(index)
                    if episode is None:
                        yield None
                        break
                    self._give(index, episode)
            busy = [worker for worker in self._workers if worker.episode is not None]
            wait_s = attempts.wait_s()
            if not busy and wait_s is None:
                return
            if len(busy) == len(self._workers):
                wait_s = None  # nobody could take the next episode
            for worker in _heard_or_overdue(busy, wait_s):
                episode, finished = worker.episode, worker.result()
                attempts.note(episode, finished.result)
                yield finished

    def close(self) -> list[str]:
        """End all processes, the idle ones in good order, and return what policies and envs raised then."""
        deadline_s = time.monotonic() + CLOSE_DEADLINE_S
        for worker in self._workers:
            worker.ask_to_close()
        self._problems += [problem for worker in self._workers for problem in worker.end(deadline_s)]
        self._workers = []
        return list(dict.fromkeys(self._problems))

    def _start_worker(self, index: int, *, check: bool) -> _Worker:
        return _Worker(self._job, self._recorders, index, self._environ, check=check)

    def _give(self, index: int, episode: Any) -> None:
        """Give a worker an episode; a new one takes its place if it is no more."""
        for _ in range(MAX_LOSSES):
            if self._workers[index].assign(episode):
                return
            self._workers[index].end(time.monotonic())
            self._workers[index] = self._start_worker(index, check=False)
            self._workers[index].await_ready()
        if not self._workers[index].assign(episode):
            raise ProctorError(f"{MAX_LOSSES} workers died while they were built, one after the other")


class _Worker:
    """A process of ours, the connection to it, and the episode it is doing."""

    def __init__(
        self, job: RunJob, recorders: Recorders | None, index: int, environ: dict[str, str], *, check: bool
    ) -> None:
        context = worker_context([__name__, *job.exam_class.worker_modules])
        self.connection, theirs = context.Pipe()
        # Whose turn it is, since when, and what was used: the last things known of a process that dies.
        self._turn = context.RawArray("d", [0.0, time.monotonic(), *NO_USAGE])
        recorder = recorders.recorder(index) if recorders else None
        build_examiner = partial(Examiner.of, job, recorder, index=index, check=check)
        args = (build_examiner, job.exam_class.episode, theirs, self._turn, environ)
        self._process = context.Process(target=_work, args=args)
        self._process.start()
        theirs.close()
        self._job, self._exam = job, job.make_exam()
        self._is_well = False
        self.episode: Any = None
        self._begun = Moment.now()  # its present episode

    @property
    def deadline_s(self) -> float:
        """When the present turn will have taken too long."""
        return float(self._turn[1]) + TURN_DEADLINE_S

    def await_ready(self) -> None:
        """Wait until env and policy are built. One that is killed from outside is not well, and replaced."""
        complaint = None
        with suppress(EOFError, OSError):
            if self.connection.poll(START_DEADLINE_S):
                (complaint,) = (part.decode() for part in self._receive(1))
        if complaint is None and self._is_killed_from_outside():
            return
        if complaint is None or complaint.startswith(BROKEN):
            what = f"env '{self._job.env}' and policy '{self._job.policy}'"
            why = complaint.removeprefix(BROKEN) if complaint else self._how_it_ended()
            raise ProctorError(f"a worker could not build {what} ({why})")
        if complaint != READY:
            raise UserError(complaint)
        self._is_well = True

    def assign(self, episode: Any) -> bool:
        """Give it an episode to do; tell whether it lives to take it."""
        if not self._is_well:
            return False
        self._turn[:] = [0.0, time.monotonic(), *NO_USAGE]
        try:
            self.connection.send_bytes(msgspec.json.encode(episode))
        except OSError:
            return False
        self.episode, self._begun = episode, Moment.now()
        return True

    def result(self) -> Finished:
        """Return its finished episode, or the record of how it was lost."""
        episode, self.episode = self.episode, None
        with suppress(EOFError, OSError):
            if self.connection.poll(0):
                record, trace, transcript = self._receive(3)
                return self._checked(episode, record, trace, transcript)
        self._is_well = False
        return self._lost(episode, self._loss())

    def ask_to_close(self) -> None:
        """Let it close its policy and its env, if it is idle and well."""
        with suppress(OSError):
            if self._is_idle:
                self.connection.send_bytes(b"")

    def end(self, deadline_s: float) -> list[str]:
        """End it; give it until the deadline if it is idle and well. Return what went wrong in closing."""
        problems: list[str] = []
        with suppress(EOFError, OSError, msgspec.MsgspecError):
            if self._is_idle and self.connection.poll(max(0.0, deadline_s - time.monotonic())):
                problems = msgspec.json.decode(*self._receive(1), type=list[str])
        self.connection.close()
        if self._is_idle:
            self._process.join(max(0.0, deadline_s - time.monotonic()))
        self._process.terminate()
        self._process.join(1.0)
        self._process.kill()
        return problems

    def _receive(self, count: int) -> list[bytes]:
        """Read messages of which the first has begun to come; EOFError if not all of them come in time.

        A process that is stopped in the middle of one would be waited for without end.
        """
        with socket.socket(fileno=os.dup(self.connection.fileno())) as pipe:

            def give_up() -> None:
                with suppress(OSError):  # it has ended by itself
                    pipe.shutdown(socket.SHUT_RDWR)

            alarm = threading.Timer(RECEIVE_DEADLINE_S, give_up)
            alarm.start()
            try:
                return [self.connection.recv_bytes() for _ in range(count)]
            finally:
                alarm.cancel()
                alarm.join()

    @property
    def _is_idle(self) -> bool:
        return self._is_well and self.episode is None

    def _checked(self, episode: Any, record: bytes, trace: bytes, transcript: bytes) -> Finished:
        """Return a result if it is of this episode. Code of a policy could have written something else."""
        try:
            result = msgspec.json.decode(record, type=self._exam.result)
        except msgspec.MsgspecError as error:
            found = f"something else ({error})"
        else:
            if result.episode_id == episode.episode_id:
                return Finished(result, record, trace, transcript)
            found = f"the result of {result.episode_id!r:.80}"
        self._is_well = False
        self._process.kill()
        problem = f"the process was to send the result of this episode, but sent {found}"
        return self._lost(episode, Fault(side="unknown", kind="wrong_result", message=problem))

    def _loss(self) -> Fault:
        """Decide whose fault it is that the process ended: that of whose turn it was.

        A signal from others, such as the system when memory runs out, may have nothing to do with the agent.
        """
        turn = TURNS[int(self._turn[0])]
        if turn == "policy" and is_address(self._job.policy):
            turn = "evaluator"  # the agent is elsewhere, and all waiting for it has a deadline
        end = self._how_it_ended()
        if self._is_killed_from_outside():
            problem = f"the process was killed in the {turn}'s turn ({end}), perhaps for want of memory"
            side: Side = "unknown" if turn == "policy" else "evaluator"
            return Fault(side=side, kind=WORKER_KILLED, message=problem)
        return Fault(
            side="agent" if turn == "policy" else "evaluator",
            kind=f"{turn}_lost",
            message=f"the process was lost in the {turn}'s turn ({end})",
        )

    def _lost(self, episode: Any, fault: Fault) -> Finished:
        seed = episode_seed(self._job.seed, episode.episode_id)
        return lost(self._exam, episode, seed, fault, _usage_of_numbers(self._turn[2:]), self._begun)

    def _is_killed_from_outside(self) -> bool:
        self._process.join(1.0)
        return -(self._process.exitcode or 0) in SIGNALS_FROM_OUTSIDE

    def _how_it_ended(self) -> str:
        self._process.join(1.0)
        code = self._process.exitcode
        return "no answer in time" if code is None else f"exit code {code}"


def _heard_or_overdue(workers: list[_Worker], most_s: float | None) -> list[_Worker]:
    """Wait until a worker has something to say, or has had its time; no longer than `most_s`, if given."""
    until_s = math.inf if most_s is None else time.monotonic() + most_s
    while True:
        next_s = min([until_s, *(worker.deadline_s for worker in workers)])
        heard = wait([worker.connection for worker in workers], timeout=max(0.0, next_s - time.monotonic()))
        now_s = time.monotonic()
        found = [worker for worker in workers if worker.connection in heard or worker.deadline_s <= now_s]
        if found or now_s >= until_s:  # else turns have changed in the meantime, and with them the deadlines
            return found


def _work(
    build_examiner: Callable[[], Examiner],
    episode_type: type[Any],
    connection: Connection,
    known: Any,
    environ: dict[str, str],
) -> None:
    """Be a worker: build env and policy, then do episodes until the connection ends."""
    begin_worker(environ)

    def announce(turn: Turn) -> None:
        known[:2] = [float(TURNS.index(turn)), time.monotonic()]

    def announce_usage(usage: Usage) -> None:
        numbers = [math.nan if number is None else number for number in msgspec.structs.astuple(usage)]
        known[2:] = [1.0, *numbers]

    try:
        examiner = build_examiner()
    except UserError as error:
        connection.send_bytes(str(error).encode())
        return
    except Exception as error:
        connection.send_bytes(f"{BROKEN}{type(error).__name__}: {error}".encode(errors="replace"))
        raise
    connection.send_bytes(READY.encode())
    with suppress(EOFError, OSError):  # the parent is dead, or has no use for this process any more
        try:
            while message := connection.recv_bytes():
                finished = examiner.examine(
                    msgspec.json.decode(message, type=episode_type), announce, announce_usage
                )
                for part in (finished.record, finished.trace, finished.transcript):
                    connection.send_bytes(part)
        finally:
            connection.send_bytes(msgspec.json.encode(examiner.close()))


def _usage_of_numbers(numbers: Sequence[float]) -> Usage | None:
    """Return what `announce_usage` wrote; None if it wrote nothing, or something else did."""
    is_known, *counts, cost_usd = numbers
    try:
        names = Usage.__struct_fields__[:-1]
        given = dict(zip(names, map(int, counts), strict=True))
        usage = Usage(**given, cost_usd=None if math.isnan(cost_usd) else cost_usd)
        return checked_usage(usage) if is_known else None
    except (AgentFault, ValueError, OverflowError):
        return None


def worker_context(preloaded: Sequence[str]) -> Any:
    """Return how worker processes are started: on Linux, as copies of a server that has imported modules.

    Imports are most of a worker's start. A live OpenGL context does not survive a copy, so none of them may
    import MuJoCo. Elsewhere, system libraries do not survive one either: workers start from nothing.

    The process has one such server, started with the first worker. Limits and open files are those of that
    time. If the program that we are part of has started one of its own, workers are copies of that.
    """
    if sys.platform != "linux":
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(preloaded))
    return context


def worker_environ(workers: int) -> dict[str, str]:
    """Return the environment variables of worker processes: ours, and how many threads draw a picture.

    Mesa draws with as many threads as there are cores. Several workers share the cores; one thread beside the
    worker's own would be slower than none, which is what 0 means.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    threads = cores // workers
    return {"LP_NUM_THREADS": str(threads if threads > 1 else 0), **os.environ}


def begin_worker(environ: dict[str, str]) -> None:
    """Make this process a worker: with these environment variables, and no longer alive than its parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's business
    threading.Thread(target=_exit_with_parent, daemon=True).start()
    os.environ.clear()  # the server that this process is a copy of was started with other variables
    os.environ.update(environ)
    np.random.seed()  # noqa: NPY002, TID251  (of agents that use it: all copies begin with the same state)


def _exit_with_parent() -> None:
    """End this process when its parent is gone, even if an agent hangs in it."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)
