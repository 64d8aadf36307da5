"""`proctor play`: people take an exam in a browser."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Any

from proctor.cli.exam_options import add_exam_options, exam_options
from proctor.cli.exam_runs import add_exam, exam_title, folder_label, names_of, run_config
from proctor.cli.options import add_command, find_modules_here, read_options
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
    add_exam(play)
    play.add_argument("--name", default="", help="who plays (default: the page asks)")
    play.add_argument(
        "--out", type=Path, metavar="RUNS", help="the folder of all people's runs (default: runs/play/EXAM)"
    )
    play.add_argument(
        "--host",
        default="127.0.0.1",
        help="address to listen at; others than this machine need a token, which is drawn, or taken from "
        "the variable PROCTOR_PLAY_TOKEN (default: 127.0.0.1)",
    )
    play.add_argument("--port", type=int, default=8765, help="0 for any that is free (default: 8765)")
    play.add_argument("--no-browser", action="store_true", help="only print the address")
    if with_exam_options:
        add_exam_options(play)


def _play(arguments: argparse.Namespace) -> int:
    from msgspec.structs import replace

    from proctor.contestants.play import TOKEN_VARIABLE, PlayServer, is_loopback, play
    from proctor.contestants.play_session import PlaySession
    from proctor.runs.attempts import Patience
    from proctor.runs.job import RunJob
    from proctor.runs.plan import load_run_dataset, plan_run

    find_modules_here()
    title = exam_title(arguments)
    out: Path = arguments.out or Path("runs") / "play" / title
    job = RunJob(
        policy="human",
        env=arguments.env,
        env_options=read_options(arguments.env_option),
        seed=arguments.seed,
    )
    config = run_config(arguments, job, patience=Patience(max_unavailable=1, pause_s=0.0))
    dataset = load_run_dataset(config)
    config = replace(config, job=replace(config.job, exam_options=exam_options(arguments, dataset.exam)))
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

    names_of(["human"], [name])
    return plan_run(replace(config, name=f"{name} (human)"), out / folder_label(name), dataset)


def _say_scores(report: RunReport, plan: RunPlan, dataset: Dataset) -> None:
    from proctor.report.tables import score_notes, score_table

    label = plan.config.label
    results = {label: report.results}
    console.print(
        score_table(dataset.exam, results, title=f"{plan.identity['dataset']} on {plan.config.job.env}")
    )
    console.say(score_notes(dataset.exam, results))
    console.say(f"Results: {plan.out}. To look at them: proctor report {shlex.quote(str(plan.out))}")


def _has_display() -> bool:
    """Tell whether a browser could be seen."""
    return sys.platform != "linux" or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
