"""Doing episodes in the jobs of a SLURM cluster.

The jobs are an array of workers that share the run's folder (`proctor work FOLDER`), and each takes what is
left. So a lost node costs the episodes it was doing, and not its part of the exam. This process only submits,
watches and cancels them; if it is killed, they go on.
"""

from __future__ import annotations

import math
import shlex
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import Meta

from proctor.core.documents import write_atomically
from proctor.core.errors import UserError
from proctor.runs import slurm
from proctor.runs.attempts import Attempts
from proctor.runs.examiner import Finished
from proctor.runs.executors import check_episodes
from proctor.runs.job import RunJob
from proctor.runs.journal import disk_errors
from proctor.runs.recorder import Recorders
from proctor.runs.slurm import SlurmUnreachable, Task

LOOK_INTERVAL_S = 1.0  # between two looks at the folder
SHORTEST_POLL_S, LONGEST_POLL_S = 1.0, 15.0  # between two calls of squeue: often at first, then rarely
PENDING_NOTE_S = 30.0  # after so long without a task that runs, the reason is told
SETTLE_S = 60.0
"""How long to wait, after the last task, for SLURM to say how it ended and for the folder to show what it
wrote: NFS may show the files of other hosts a minute late."""
END_DEADLINE_S = 10.0  # for tasks to end by themselves, and once more when they are cancelled
LOG_LINES = 12  # so many are shown of the log of a task that failed
FOLDER, SCRIPT = "slurm", "worker.sh"
REASONS = {
    "PartitionTimeLimit": "the option time is longer than the partition allows",
    "PartitionDown": "the partition takes jobs, but starts none at present",
    "PartitionInactive": "the partition is closed",
    "ReqNodeNotAvail": "nodes that it asks for are down or reserved",
    "BadConstraints": "no node has what the options ask for",
    "JobHeldUser": "it is held; scontrol release lets it go on",
    "JobHeldAdmin": "the administrator holds it",
    "job requeued in held state": "scontrol release lets it go on",
    "SPECIAL_EXIT": "it is held; scontrol release lets it go on",
    "SUSPENDED": "somebody has suspended it; scontrol resume lets it go on",
    "BeginTime": "SLURM lets it wait before it starts again",
}
"""What some of SLURM's reasons mean to the user; the others say it well enough."""
PASSED_ON = ("partition", "time", "mem", "account", "qos", "gres", "constraint")
Word = str | int  # such as 30 or 4:00:00
Count = Annotated[int, Meta(ge=1)]


class SlurmOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of the executor. Those that are not given are left to SLURM."""

    partition: Word | None = None
    time: Word | None = None  # the limit of a task, as SLURM writes it: minutes, or 4:00:00
    cpus_per_task: Count | None = None  # as many as workers_per_task if not given
    mem: Word | None = None  # of a task, e.g. 4G
    account: Word | None = None
    qos: Word | None = None
    gres: str | None = None  # e.g. gpu:1
    constraint: str | None = None
    job_name: str = "proctor"
    parallel: Count | None = None  # how many tasks may run at once
    workers_per_task: Count = 1
    setup: tuple[str, ...] = ()  # lines of shell before the worker starts
    command: str = ""  # how `proctor` is called on a node; this Python if empty
    extra: tuple[str, ...] = ()  # further flags of sbatch
    max_resubmits: Annotated[int, Meta(ge=0)] = 3  # in a row, without a finished episode between them
    max_unreachable_s: Annotated[float, Meta(ge=0)] = 600.0  # of the controller, if no episode ends meanwhile


class SlurmExecutor:
    """Does the episodes in an array of jobs. `workers` is the number of processes in all tasks; 1 if None."""

    options_type: ClassVar[type[msgspec.Struct]] = SlurmOptions
    fills_cluster: ClassVar[bool] = False

    def __init__(
        self,
        job: RunJob,
        workers: int | None,
        recorders: Recorders | None = None,
        *,
        check: bool = True,
        **options: Any,
    ) -> None:
        del recorders, check  # the workers record, and look for the agent
        self._job, self._options = job, SlurmOptions(**options)
        self.tasks = math.ceil((workers or 1) / self._options.workers_per_task)
        _flags(Path(), self.tasks, self._options)  # a bad one is refused before anything is written
        self._array: JobArray | None = None
        self._problems: list[str] = []

    def check(self, episodes: Sequence[Any]) -> list[str]:
        """Let an env look at the episodes, here."""
        notes, self._problems = check_episodes(self._job, episodes)
        return notes

    def start(self) -> None:
        """Find out whether there is a cluster that answers."""
        slurm.require_commands()
        try:
            slurm.jobs_of_script(Path(SCRIPT))
        except SlurmUnreachable as error:
            raise UserError(
                f"SLURM's controller does not answer: {error}. When squeue works again, give the same command"
            ) from None

    def run(self, attempts: Attempts) -> Iterator[Finished | None]:
        """Let the jobs do the episodes; the caller collects what they publish."""
        if not attempts.is_left:  # workers of an earlier call have done the rest by now
            return
        run = attempts.shared_folder
        if run is None:
            raise UserError(
                "the executor slurm needs a run that can be shared: one without a budget, and a disk that "
                "has hard links"
            )
        with disk_errors(run):
            script = write_script(run, self.tasks, self._options)
        self._array = JobArray(script.parent, self._options)
        while attempts.is_left:
            attempts.news = self._array.watch(attempts.ended_elsewhere, attempts.problem) or attempts.news
            if self._array.has_given_up:
                attempts.stop()
                break
            yield None
            time.sleep(LOOK_INTERVAL_S)
        self._array.is_done = True

    def close(self) -> list[str]:
        """Cancel what is left of the array."""
        array, self._array = self._array, None
        return [*self._problems, *(array.end() if array is not None else [])]


class JobArray:
    """The jobs of a run: submitted, watched, and submitted again as long as that helps."""

    def __init__(self, folder: Path, options: SlurmOptions) -> None:
        self._folder, self._options = folder, options
        self._job_ids: list[str] = []  # of the array that is watched
        self._all_job_ids: list[str] = []  # also of former ones: SLURM may requeue a task that it is ending
        self._is_unclear = False  # whether SLURM may have taken a job whose id is not known
        self._submitted_at_s = self._progress_at_s = time.monotonic()
        self._poll_at_s = -math.inf
        self._pending_since_s = self._over_since_s = self._silent_since_s = math.inf
        self._finished = 0  # how many episodes were, when one was last
        self._fruitless = 0  # submissions in a row without a finished episode
        self._agent_problem = ""
        self.has_given_up = False  # whether the workers have ended because the agent is unavailable
        self.is_done = False  # whether nothing is left to do

    @property
    def _name(self) -> str:
        return _name_of(self._job_ids)

    def watch(self, finished: int, agent_problem: str) -> str:
        """Look after the jobs. Return what the user should know, if anything.

        `finished` episodes are; `agent_problem` says why the agent is unavailable, if it is.
        """
        now_s = time.monotonic()
        self._agent_problem = agent_problem
        if finished > self._finished:
            self._finished, self._progress_at_s, self._fruitless = finished, now_s, 0
        if now_s < self._poll_at_s:
            return ""
        interval_s = max(SHORTEST_POLL_S, (now_s - self._submitted_at_s) / 10)
        self._poll_at_s = now_s + min(LONGEST_POLL_S, interval_s)
        try:
            note = self._poll(now_s) if self._job_ids else self._begin(now_s)
        except SlurmUnreachable as error:
            return self._note_silence(now_s, error)
        self._silent_since_s = math.inf
        return note

    def _note_silence(self, now_s: float, error: SlurmUnreachable) -> str:
        """Bear with a controller that restarts: workers need it no more than this process does."""
        self._silent_since_s = min(self._silent_since_s, now_s)
        silent_s = now_s - max(self._silent_since_s, self._progress_at_s)
        if silent_s > self._options.max_unreachable_s:
            raise UserError(
                f"SLURM's controller has not answered for {silent_s:.0f} s, and no episode has ended since: "
                f"{error}. What is done is kept; when squeue works again, the same command goes on"
            )
        return f"SLURM's controller does not answer at present ({error}); jobs that run go on"

    def _begin(self, now_s: float) -> str:
        """Submit the array, unless one of an earlier call is still there."""
        script = self._folder / SCRIPT
        self._watch_jobs(slurm.jobs_of_script(script))
        if self._job_ids and self._is_unclear:
            self._is_unclear = False
            return f"{self._name} is submitted after all"
        if self._job_ids:
            return f"{self._name} of an earlier call is still there: no other is submitted"
        was_unclear, self._is_unclear = self._is_unclear, True
        try:
            self._watch_jobs([slurm.submit(script)])
        except UserError:  # it is refused
            self._is_unclear = was_unclear
            raise
        self._is_unclear = was_unclear
        self._submitted_at_s = now_s
        self._fruitless += 1
        return f"{self._name} is submitted; the logs of its tasks are in {self._folder}"

    def _watch_jobs(self, job_ids: list[str]) -> None:
        self._job_ids = job_ids
        self._all_job_ids = list(dict.fromkeys([*self._all_job_ids, *job_ids]))

    def _poll(self, now_s: float) -> str:
        tasks = slurm.tasks_of(self._job_ids)
        present = [task for task in tasks if not task.is_over]
        if present:
            self._over_since_s = math.inf
            return self._note_pending(now_s, present)
        self._pending_since_s = math.inf
        self._over_since_s = min(self._over_since_s, now_s)
        states = Counter(task.state for task in tasks)
        is_settled = bool(states) and not states.keys() & {slurm.COMPLETING, "COMPLETED"}
        if now_s - self._over_since_s < (2 * LOOK_INTERVAL_S if is_settled else SETTLE_S):
            return ""
        if self._agent_problem and states["FAILED"]:
            self.has_given_up = True
            return ""
        self._check_worth(states)
        before, how = self._name, _counts(states)
        self._over_since_s = math.inf
        self._job_ids = []
        return f"{before} has ended ({how}) and episodes are left. {self._begin(now_s)}"

    def _note_pending(self, now_s: float, tasks: Sequence[Task]) -> str:
        """Say why nothing runs, if nothing has run for a while."""
        if not all(task.is_waiting for task in tasks):
            self._pending_since_s = math.inf
            return ""
        self._pending_since_s = min(self._pending_since_s, now_s)
        if now_s - self._pending_since_s < PENDING_NOTE_S:
            return ""
        states = {task.state for task in tasks if task.state != "PENDING"}
        reasons = sorted(states | {task.reason for task in tasks} - {"None", "JobArrayTaskLimit"})
        told = [f"{reason}: {REASONS[reason]}" if reason in REASONS else reason for reason in reasons]
        return f"{self._name} is waiting for SLURM to start it ({'; '.join(told) or 'no reason given'})"

    def _check_worth(self, states: Counter[str]) -> None:
        """Raise a UserError if to submit the array again would not help."""
        if states["CANCELLED"] and states.keys() <= {"CANCELLED", "COMPLETED", "FAILED", slurm.COMPLETING}:
            raise UserError(f"{self._name} was cancelled. What is done is kept, and the same command goes on")
        is_bound_to_fail = bool(states) and states.keys() <= {"FAILED", "OUT_OF_MEMORY"}
        if self._fruitless and (is_bound_to_fail or self._fruitless > self._options.max_resubmits):
            times = f", {self._fruitless} times in a row" if self._fruitless > 1 else ""
            how = f"{self._name} has ended ({_counts(states)}) without finishing an episode{times}"
            raise UserError(f"{how}. {self._log_end()}")

    def _log_end(self) -> str:
        """Return the end of the log that was written last."""
        logs = [log for job_id in self._job_ids for log in self._folder.glob(f"{job_id}_*.log")]
        if not logs:
            return (
                f"It wrote no log in {self._folder}: perhaps the nodes do not have this folder. "
                "A run must be in a folder that all of them share"
            )
        last = max(logs, key=lambda log: log.stat().st_mtime)
        lines = last.read_text(encoding="utf-8", errors="replace").rstrip().splitlines()[-LOG_LINES:]
        shown = [f"    {line:.300}" for line in lines or ["(it is empty)"]]
        return "\n".join([f"The end of {last}:", *shown])

    def end(self) -> list[str]:
        """Cancel what is left, at the end those only that did not end by themselves; return what failed."""
        script = self._folder / SCRIPT
        try:
            if self._is_unclear:
                self._find_unclear()
            if not self._all_job_ids:
                problem = f"sbatch did not say whether SLURM took {script}, and squeue does not show it yet"
                return [problem] if self._is_unclear else []
            if self.is_done:
                slurm.cancel(self._all_job_ids, only_pending=True)
            if not (self.is_done and self._last_states() <= slurm.ENDED):
                slurm.cancel(self._all_job_ids)
                if not self._last_states() <= {*slurm.ENDED, slurm.COMPLETING}:
                    name = _name_of(self._all_job_ids)
                    return [f"{name} is cancelled, and SLURM has not ended it yet; squeue shows it"]
        except SlurmUnreachable as error:
            ids = " ".join(self._all_job_ids)
            if not (ids or self._is_unclear):
                return []
            name = _name_of(self._all_job_ids) if ids else f"a SLURM job of {script}"
            remedy = f"when it does, end it with: scancel {ids or '(the id that squeue shows)'}"
            return [f"{name} may go on: SLURM's controller does not answer ({error}); {remedy}"]
        return []

    def _find_unclear(self) -> None:
        """Look for a job whose id sbatch did not say: SLURM may take it a little later."""
        until_s = time.monotonic() + END_DEADLINE_S
        while True:
            self._watch_jobs(slurm.jobs_of_script(self._folder / SCRIPT))
            if self._all_job_ids or time.monotonic() >= until_s:
                return
            time.sleep(0.5)

    def _last_states(self) -> set[str]:
        """Return the states of all tasks when they have ended, or after a while."""
        until_s = time.monotonic() + END_DEADLINE_S
        while True:
            states = {task.state for task in slurm.tasks_of(self._all_job_ids)}
            if states <= slurm.ENDED or time.monotonic() >= until_s:
                return states
            time.sleep(0.5)


def write_script(run: Path, tasks: int, options: SlurmOptions) -> Path:
    """Write the batch script of a run into its folder; it can also be submitted by hand.

    Only the user may read it: `setup` may have keys in it.
    """
    flags = _flags(run, tasks, options)
    path = run / FOLDER / SCRIPT
    command = options.command or shlex.join([sys.executable, "-m", "proctor.cli"])
    lines = [
        "#!/bin/bash",
        "# The workers of a run of Proctor. To add some: sbatch " + shlex.quote(str(path)),
        *(f"#SBATCH {flag}" for flag in flags),
        'echo "task $SLURM_ARRAY_TASK_ID on $SLURMD_NODENAME, restarted ${SLURM_RESTART_COUNT:-0} times"',
        *options.setup,
        f"exec {command} work {shlex.quote(str(run))} --workers {options.workers_per_task}",
    ]
    path.parent.mkdir(exist_ok=True)
    write_atomically(path, "\n".join([*lines, ""]).encode(errors="surrogateescape"), mode=0o600)
    return path


def _flags(run: Path, tasks: int, options: SlurmOptions) -> list[str]:
    """Return what sbatch is given; a UserError for what is not a flag, or has more than one line."""
    parallel = f"%{options.parallel}" if options.parallel else ""
    given = {
        "job-name": options.job_name,
        "array": f"1-{tasks}{parallel}",
        "nodes": 1,
        "ntasks": 1,
        "cpus-per-task": options.cpus_per_task or options.workers_per_task,
        "chdir": Path.cwd(),
        "output": f"{run / FOLDER}/".replace("%", "%%") + "%A_%a.log",
        "open-mode": "append",
        **{name: getattr(options, name) for name in PASSED_ON},
    }
    own = [f"--{name}={shlex.quote(str(value))}" for name, value in given.items() if value is not None]
    flags = [*own, "--requeue", *options.extra]
    for flag in flags:
        if not flag.startswith("-"):
            raise UserError(
                f"option extra: expected flags of sbatch, such as --exclude=n7, found {flag!r:.200}"
            )
        if "\n" in flag or "\r" in flag:
            raise UserError(f"a flag of sbatch cannot have a line break: {flag!r:.200}")
    return flags


def _name_of(job_ids: Sequence[str]) -> str:
    return f"SLURM job {' and '.join(job_ids)}"


def _counts(states: Counter[str]) -> str:
    """Return `2 FAILED, 1 TIMEOUT`."""
    told = ", ".join(f"{count} {state}" for state, count in sorted(states.items()))
    return told or "SLURM does not remember how"
