"""SLURM by its own commands: submit an array of jobs, look at its tasks, cancel it.

Only `sbatch`, `squeue` and `scancel` are called. `sacct` needs a database that many clusters do not have.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from proctor.core.errors import MissingDependency, ProctorError, UserError

COMMANDS = ("sbatch", "squeue", "scancel")
COMMAND_DEADLINE_S = 60.0
ENDED = {
    *("BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY"),
    *("PREEMPTED", "REVOKED", "TIMEOUT"),
}
WAITING = {"PENDING", "SPECIAL_EXIT", "SUSPENDED"}
COMPLETING = "COMPLETING"  # it has ended, and SLURM is ending what is left of its processes
FLAG = re.compile(r"(?:^|\s)(?:--([a-z][a-z-]*)|-([A-Za-z]))", re.ASCII)
LONG_FLAGS = {
    **{"A": "account", "C": "constraint", "G": "gpus", "J": "job-name", "a": "array", "e": "error"},
    **{"i": "input", "o": "output", "p": "partition", "q": "qos", "t": "time"},
}
MEMORY = ("SBATCH_MEM_PER_NODE", "SBATCH_MEM_PER_CPU", "SBATCH_MEM_PER_GPU")
VARIABLES = {
    "array": ("SBATCH_ARRAY_INX",),
    **dict.fromkeys(("mem", "mem-per-cpu", "mem-per-gpu"), MEMORY),
    "output": ("SBATCH_OUTPUT", "SBATCH_ERROR"),
    **dict.fromkeys(("requeue", "no-requeue"), ("SBATCH_REQUEUE", "SBATCH_NO_REQUEUE")),
    "time": ("SBATCH_TIMELIMIT",),
}
"""The variables that override a flag of a batch script, if they are not named like it."""
MISLEADING = ("SBATCH_CLUSTERS", "SBATCH_WAIT")
"""Variables by which squeue would not see the job, or sbatch would not return before its end."""


class SlurmUnreachable(ProctorError):
    """The controller of the cluster does not answer at present."""


class Task(NamedTuple):
    """A task of a job array, as `squeue` shows it."""

    state: str  # such as PENDING
    reason: str = ""  # why it is pending

    @property
    def is_waiting(self) -> bool:
        """Whether it waits for SLURM, or for somebody, to start it."""
        return self.state in WAITING

    @property
    def is_over(self) -> bool:
        """Whether it does no work any more, and never will."""
        return self.state in ENDED or self.state == COMPLETING


def require_commands() -> None:
    """Raise a UserError if SLURM's commands are not on the PATH."""
    missing = [name for name in COMMANDS if shutil.which(name) is None]
    if missing:
        raise MissingDependency(
            "SLURM",
            f"Its command {missing[0]} is not on the PATH. Give this command on a login node of the cluster, "
            "or put `proctor work FOLDER` into a job script of your own",
        )


def submit(script: Path) -> str:
    """Submit a batch script and return the id of its job; a UserError with sbatch's own words if refused."""
    code, out, error = _call("sbatch", "--parsable", str(script))
    if code:
        if _is_unreachable(error):
            raise SlurmUnreachable(_words(error))
        raise UserError(f"sbatch refused the job: {_words(error)}; what it was given is in {script}")
    # Its last line is the id, perhaps with the cluster's name; a site's own `sbatch` may write more.
    found = re.search(r"^(\d+)(;.*)?\s*\Z", out, re.MULTILINE)
    job_ids = [found[1]] if found else jobs_of_script(script)
    if not job_ids:
        raise ProctorError(f"sbatch was to write the id of a job, but wrote {out!r:.200}")
    return job_ids[-1]


def tasks_of(job_ids: Sequence[str]) -> list[Task]:
    """Return the tasks of arrays, also those that have ended as long as SLURM remembers them."""
    code, out, error = _call("squeue", "-h", "-r", "-t", "all", "-j", ",".join(job_ids), "-o", "%T|%r")
    if code:
        if "Invalid job id" in error:  # all have ended, and are forgotten
            return []
        raise SlurmUnreachable(_words(error))
    return [Task(*line.split("|", 1)) for line in out.splitlines() if line]


def jobs_of_script(script: Path) -> list[str]:
    """Return the ids of this user's jobs that were submitted from a script and are not over.

    Also those in partitions that are hidden from the user (`-a`).
    """
    code, out, error = _call("squeue", "-h", "-a", "-r", "-u", str(os.getuid()), "-o", "%F|%T|%o")
    if code:
        raise SlurmUnreachable(_words(error))
    fields = [line.split("|", 2) for line in out.splitlines() if line.count("|") > 1]
    found = [job for job, state, command in fields if command == str(script) and not Task(state).is_over]
    return list(dict.fromkeys(found))


def cancel(job_ids: Sequence[str], *, only_pending: bool = False) -> None:
    """Cancel all tasks of arrays, or those that have not begun. One that has ended is not an error."""
    code, _, error = _call("scancel", *(["--state=PENDING"] if only_pending else []), *job_ids)
    if code and not any(words in error for words in ("Invalid job id", "already completing")):
        raise SlurmUnreachable(_words(error))


def _call(*words: str) -> tuple[int, str, str]:
    """Call a command of SLURM; return its exit code and what it wrote.

    It runs in a session of its own: Ctrl-C must not end an `sbatch` whose job may be submitted already.
    """
    script = Path(words[-1]) if words[0] == "sbatch" else None
    try:
        process = subprocess.Popen(  # noqa: S603  (a command of SLURM with our own words)
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            env=_environ(script),
            start_new_session=True,
        )
    except OSError as error:
        raise UserError(f"{words[0]} cannot be run: {error.strerror}") from None
    with process:
        try:
            out, err = process.communicate(timeout=COMMAND_DEADLINE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            problem = f"{words[0]} did not answer in {COMMAND_DEADLINE_S:.0f} s"
            raise SlurmUnreachable(problem) from None
        except BaseException:
            if script:  # when sbatch has ended, jobs_of_script finds what it has submitted
                with suppress(subprocess.TimeoutExpired):
                    process.communicate(timeout=COMMAND_DEADLINE_S)
            if words[0] != "scancel":  # which may finish: a second Ctrl-C must not leave jobs
                process.kill()
            raise
    return process.returncode, out, err


def _environ(script: Path | None) -> dict[str, str]:
    """Return the environment of a command without variables that change what it is asked for.

    SQUEUE_* and SCANCEL_* would hide jobs. For sbatch, SBATCH_* would override the flags in its script.
    """
    if script is None:
        return {
            name: value for name, value in os.environ.items() if not name.startswith(("SQUEUE_", "SCANCEL_"))
        }
    overriding = set(MISLEADING)
    with suppress(OSError):  # sbatch says why it cannot read the script
        lines = re.findall(r"^#SBATCH(.*)", script.read_text(errors="replace"), re.MULTILINE)
        for long, short in FLAG.findall("\n".join(lines)):
            flag = long or LONG_FLAGS.get(short, "")
            overriding.update(VARIABLES.get(flag, (f"SBATCH_{flag.upper().replace('-', '_')}",)))
    return {name: value for name, value in os.environ.items() if name not in overriding}


def _is_unreachable(error: str) -> bool:
    words = (
        *("unable to contact slurm controller", "socket timed out"),
        *("temporarily unable", "connection refused"),
    )
    return any(each in error.lower() for each in words)


def _words(error: str) -> str:
    """Return what a command wrote to stderr as one line."""
    lines = [re.sub(r"^\w+: (error: |fatal: )?", "", line).strip() for line in error.splitlines()]
    return "; ".join(line for line in lines if line) or "it did not say why"
