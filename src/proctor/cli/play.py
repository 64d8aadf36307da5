"""`proctor play`: people take an exam in a browser."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Any

from proctor.cli import exam_runs
from proctor.cli.options import add_command, add_option, find_modules_here
from proctor.cli.terminal import DONE, console

if TYPE_CHECKING:
    from proctor.exams.datasets import Dataset
    from proctor.runs.plan import RunConfig, RunPlan
    from proctor.runs.run import RunReport

PLAY_HELP = """\
take an exam yourself, in a browser
Serve a page on which people take an exam: what the robot sees, the instruction, keys and buttons.

examples:
  proctor play --suite houses-v1 --episodes 3
  proctor play --suite houses-v1-zh --name 安娜
  proctor play --suite tabletop-v1 --episodes 2            pick-and-place, with keys for the hand
  proctor play --suite houses-v1 --host 0.0.0.0            for people elsewhere; the address holds a token

Each person has a run of their own, RUNS/NAME, scored like any agent's: proctor report and proctor compare
read it. Under the same name, a person goes on after the last finished episode. Ctrl-C ends the server.
exit codes: 0 ended by Ctrl-C, 2 user error
"""


def add_play(commands: Any, *, with_exam_options: bool) -> None:
    """Add the command."""
    play = add_command(commands, "play", _play, PLAY_HELP)
    exam_runs.add_exam(play)
    add_option(play, "--name", "", "who plays (default: the page asks)")
    add_option(play, "--out RUNS", Path, "the folder of all people's runs (default: runs/play/EXAM)")
    text = (
        "address to listen at; others than this machine need a token, which is drawn, or taken from "
        "the variable PROCTOR_PLAY_TOKEN (default: 127.0.0.1)"
    )
    add_option(play, "--host", "127.0.0.1", text)
    add_option(play, "--port", 8765, "0 for any that is free (default: 8765)")
    add_option(play, "--no-browser", bool, "only print the address")
    if with_exam_options:
        exam_runs.add_exam_options(play)


def _play(arguments: argparse.Namespace) -> int:
    from proctor.contestants.play import TOKEN_VARIABLE, PlayServer, is_loopback, play
    from proctor.contestants.play_session import PlaySession
    from proctor.runs.attempts import Patience
    from proctor.runs.plan import plan_run

    find_modules_here()
    title = exam_runs.exam_title(arguments)
    out: Path = arguments.out or Path("runs") / "play" / title
    patience = Patience(max_unavailable=1, pause_s=0.0)
    job = exam_runs.run_job(arguments, "human")
    config, dataset = exam_runs.load_exam(arguments, job, patience=patience)
    token = os.environ.get(TOKEN_VARIABLE, "")

    def plan_of(name: str) -> RunPlan:
        return person_plan(name, config, out, dataset)

    plan_run(config, out / ".nobody", dataset)  # what is wrong for all is told before anybody plays
    if arguments.name:
        plan_of(arguments.name)
    session = PlaySession(dataset.exam)
    with PlayServer(session, title=title, host=arguments.host, port=arguments.port, token=token) as server:
        console.say(f"The page: {server.url}", "Ctrl-C ends it.")
        if not is_loopback(arguments.host):
            console.say("note: whoever has this address can play; it goes over the network unencrypted")
        if not arguments.no_browser and _has_display():
            webbrowser.open(server.url)
        try:
            play(session, plan_of, lambda report, plan: _say_scores(report, plan, dataset), arguments.name)
        except KeyboardInterrupt:
            console.say("ended; the same name goes on after the last finished episode")
    return DONE


def person_plan(name: str, config: RunConfig, out: Path, dataset: Dataset) -> RunPlan:
    """Return the run of one person, in a folder of its own. Tables show that it is a person's."""
    from msgspec.structs import replace

    from proctor.runs.plan import plan_run

    exam_runs.names_of(["human"], [name])
    return plan_run(replace(config, name=f"{name} (human)"), out / exam_runs.folder_label(name), dataset)


def _say_scores(report: RunReport, plan: RunPlan, dataset: Dataset) -> None:
    title = f"{plan.identity['dataset']} on {plan.config.job.env}"
    exam_runs.print_scores(dataset.exam, {plan.config.label: report.results}, title)
    console.say(f"Results: {plan.out}. To look at them: proctor report {shlex.quote(str(plan.out))}")


def _has_display() -> bool:
    """Tell whether a browser could be seen."""
    return sys.platform != "linux" or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
