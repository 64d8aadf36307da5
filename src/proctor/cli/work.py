"""`proctor work`: help with a run by its folder alone."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from proctor.cli import exam_runs
from proctor.cli.options import add_command, add_option, find_modules_here
from proctor.cli.terminal import DONE, TOO_MANY_FAULTS, UNAVAILABLE, USER_ERROR, console, errors, say_error
from proctor.core.errors import ProctorError, UserError

if TYPE_CHECKING:
    from proctor.runs.plan import RunPlan

WORK_HELP = """\
help with a run that is going on or has stopped
Do episodes of a run by its folder alone, together with any number of other processes and hosts.

examples:
  proctor work runs/first                     one worker, until nothing is left
  proctor work /shared/runs/first --workers 8
  srun -n 20 proctor work /shared/runs/first  on 20 nodes of a cluster

A folder that all hosts can see is all that they need. Each episode is taken by a lease: a process that dies
loses its episodes, and others do them. `proctor run ... --join` does the same with the run's own command.
If the agent wants a token, put it into the environment variable PROCTOR_AGENT_TOKEN.

exit codes: 0 nothing is left to do, 1 episodes have no result, 2 user error, 3 the agent is unavailable,
130 interrupted
"""


def add_work(commands: Any) -> None:
    """Add the command."""
    work = add_command(commands, "work", _work, WORK_HELP)
    work.add_argument("folder", type=Path, metavar="FOLDER", help="of a run, or of several runs")
    add_option(work, "--workers N", 1, "processes on this host (default: 1)")
    work.set_defaults(goes_on=True)


def _work(arguments: argparse.Namespace) -> int:
    from proctor.runs.folder import find_runs

    if arguments.workers < 1:
        raise UserError(f"--workers: expected at least 1, found {arguments.workers}")
    codes = [DONE]
    for out in find_runs([arguments.folder.resolve()]):  # to help with a run changes the working directory
        try:
            codes.append(_help_with(out, arguments.workers))
        except ProctorError as error:  # the other runs may be well
            say_error(error)
            codes.append(USER_ERROR if isinstance(error, UserError) else TOO_MANY_FAULTS)
    return max(codes)


def _help_with(out: Path, workers: int) -> int:
    """Do episodes of a run until none is left; return the exit code."""
    plan = _plan(out, workers)
    if plan is None:
        console.say(f"{out}: all episodes are done; nothing to do")
        return DONE
    report = exam_runs.run_plan(plan, set(), join=True)
    console.say(f"{out}: did {report.done_here} episodes here")
    exam_runs.print_scores(plan.dataset.exam, {plan.config.label: report.results}, out.name)
    if report.stopped:
        errors.say(f"stopped: the agent is unavailable: {report.stopped}")
        return UNAVAILABLE
    return DONE if report.results.total_episodes == report.total else TOO_MANY_FAULTS


def _plan(out: Path, workers: int) -> RunPlan | None:
    """Return the plan of a run to help with; None if it has ended, perhaps only just now."""
    from proctor.runs.folder import RESULTS
    from proctor.runs.joining import read_run_file
    from proctor.runs.plan import plan_run
    from proctor.runs.sharing import RUN_FILE, WORK

    try:
        config = read_run_file(out)
    except UserError:
        if not (out / WORK / RUN_FILE).exists() and (out / RESULTS).exists():
            return None
        raise
    find_modules_here()
    return plan_run(replace(config, workers=workers), out)
