"""`proctor mcp`: let an agent that calls tools take an exam."""

from __future__ import annotations

import argparse
import logging
import os
import secrets
import shlex
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from proctor.cli import exam_runs
from proctor.cli.options import add_command, add_option, find_modules_here
from proctor.cli.terminal import DONE, TOO_MANY_FAULTS, UNAVAILABLE, command_text, errors
from proctor.core.errors import UserError

if TYPE_CHECKING:
    from proctor.contestants.mcp_server import HttpTransport, Transport
    from proctor.contestants.mcp_tools import ExamTools
    from proctor.contestants.seat import McpSeat
    from proctor.runs.ledger import Progress
    from proctor.runs.plan import RunPlan
    from proctor.runs.run import RunReport

TOKEN_VARIABLE = "PROCTOR_MCP_TOKEN"  # noqa: S105  (its name)
LEAST_TOKEN_LETTERS = 16
MCP_HELP = """\
let a coding agent or an LLM runtime take an exam, over MCP
Serve an exam as tools of the Model Context Protocol, and score the agent that calls them.

examples:
  proctor mcp --suite houses-v1 --episodes 5                  HTTP on this machine, with a token
  proctor mcp --suite houses-v1 --name claude --check-pictures
  proctor mcp --suite tabletop-v1 --hide-goal --episodes 3
  proctor mcp --suite houses-v1 --host 0.0.0.0 --allow-host exam.example.org
  proctor mcp --suite houses-v1 --stdio                       started by the client itself

Tools: begin_episode, observe, act, stop. One agent at a time, one episode at a time. Over stdio the agent
runs as the same user and could read the exam's files; the results say so.
The token is taken from PROCTOR_MCP_TOKEN, else drawn and printed with what the client must be told.

The same command on the same folder goes on where it stopped.
exit codes: 0 done, 1 some episodes are not scored (evaluator faults), 2 user error,
  3 stopped because the agent is gone (the same command goes on), 130 interrupted
"""


class _ClientLeft(Exception):
    """The client of stdio has closed its end before the last episode."""


def add_mcp(commands: Any, *, with_exam_options: bool) -> None:
    """Add the command."""
    mcp = add_command(commands, "mcp", _mcp, MCP_HELP)
    exam_runs.add_exam(mcp)
    add_option(mcp, "--name", "mcp", "what to call the agent in tables and its folder")
    add_option(mcp, "--out DIR", Path, "the run's folder (default: runs/EXAM/NAME)")
    text = "seconds per episode; then it is over, as the agent's fault (default: 1800)"
    add_option(mcp, "--episode-timeout S", 1800.0, text)
    text = "the agent must read a code word from a picture first: not all clients show pictures to it"
    add_option(mcp, "--check-pictures", bool, text)
    add_option(mcp, "--depth", bool, "show depth, too, as grey pictures")
    text = "repeat texts as structured content; some clients then drop the pictures"
    add_option(mcp, "--structured", bool, text)
    how = mcp.add_argument_group("how the agent connects")
    add_option(how, "--stdio", bool, "over stdin and stdout, not over HTTP")
    add_option(how, "--host", "127.0.0.1", "address to listen at (default: 127.0.0.1)")
    add_option(how, "--port", 8077, "0 for any that is free (default: 8077)")
    add_option(how, "--allow-host NAME", [], "a name by which clients may call this machine")
    add_option(how, "--allow-origin ORIGIN", [], "let web pages of this origin call (default: none)")
    exam_runs.add_conditions(mcp)
    if with_exam_options:
        exam_runs.add_exam_options(mcp)
    mcp.set_defaults(goes_on=True)


def _mcp(arguments: argparse.Namespace) -> int:
    from proctor.contestants.mcp_server import StdioTransport, mcp_server
    from proctor.contestants.mcp_tools import ExamTools
    from proctor.contestants.seat import McpSeat

    logging.basicConfig(format="%(message)s", level=logging.WARNING)  # to stderr, as all else here
    find_modules_here()
    plan = _plan(arguments)
    seat = McpSeat(**plan.config.job.policy_options)
    tools = ExamTools(seat, plan.config.job.make_exam())
    server = mcp_server(tools, is_structured=arguments.structured)
    transport: Transport
    hints: list[str] = []
    if arguments.stdio:
        transport = StdioTransport(server, seat.close)
    else:
        transport, hints = _http(server, tools, arguments)
    try:
        with closing(transport), closing(seat):
            report = _take_exam(plan, seat, tools, transport, hints)
            _tell_results(plan, report, exam_runs.exam_title(arguments))
            seat.close()
            if arguments.stdio or report.done_before < report.total:
                transport.finish()
    except _ClientLeft:
        again = command_text(arguments.words)
        errors.say(f"the client has closed the connection; the same command goes on: {again}")
        return UNAVAILABLE
    if report.stopped:
        errors.say(f"stopped: {report.stopped}; the same command goes on")
        return UNAVAILABLE
    return TOO_MANY_FAULTS if sum(report.results.summary.unscored.values()) else DONE


def _plan(arguments: argparse.Namespace) -> RunPlan:
    from proctor.runs.attempts import Patience
    from proctor.runs.plan import plan_run

    exam_runs.names_of(["mcp"], [arguments.name])  # refuses what cannot be one
    transport = "stdio" if arguments.stdio else "http"
    options = {"transport": transport, "episode_timeout_s": arguments.episode_timeout}
    if arguments.check_pictures:
        options["check_pictures"] = True
    if arguments.depth:
        options["show_depth"] = True
    conditions = exam_runs.read_conditions(arguments)
    job = exam_runs.run_job(arguments, "mcp", policy_options=options, conditions=conditions)
    patience = Patience(pause_s=0.0)  # the seat itself waits for the agent
    config, dataset = exam_runs.load_exam(arguments, job, name=arguments.name, patience=patience)
    folder = exam_runs.folder_of("mcp", arguments.name)
    out = arguments.out or Path("runs") / exam_runs.exam_title(arguments) / folder
    return plan_run(config, out, dataset)


def _take_exam(
    plan: RunPlan, seat: McpSeat, tools: ExamTools, transport: Transport, hints: list[str]
) -> RunReport:
    """Do the run while the server, in another thread, passes on what the agent wants to do."""
    from proctor.runs.run import run

    told: set[str] = set()

    def show(state: Progress) -> None:
        tools.note_progress(state.total, len(state.finished))
        errors.say(*(f"note: {note}" for note in state.notes if note not in told))
        if not told:
            errors.say(*hints)
        told.update(["", *state.notes])
        errors.say(f"{plan.config.label}: {len(state.finished)} of {state.total} episodes")
        if seat.is_closed and len(state.finished) < state.total:
            raise _ClientLeft

    transport.start()
    return run(plan, show, policy=seat)


def _http(server: Any, tools: ExamTools, arguments: argparse.Namespace) -> tuple[HttpTransport, list[str]]:
    """Return the transport, and what people must tell their client."""
    from proctor.contestants.mcp_server import HttpTransport

    token = os.environ.get(TOKEN_VARIABLE, "").strip()
    is_drawn = not token
    if is_drawn:
        token = secrets.token_urlsafe(24)
    elif len(token) < LEAST_TOKEN_LETTERS or not token.isascii() or not token.isprintable():
        raise UserError(
            f"{TOKEN_VARIABLE}: expected at least {LEAST_TOKEN_LETTERS} printable ASCII characters, "
            f"found {len(token)}; without the variable a token is drawn"
        )
    transport = HttpTransport(
        server,
        tools,
        token=token,
        address=(arguments.host, arguments.port),
        allow_hosts=arguments.allow_host,
        allow_origins=arguments.allow_origin,
    )
    return transport, [
        f"Serving at {transport.url}, for clients that call it {' or '.join(transport.allowed_hosts)}.",
        *([f"For the client: export {TOKEN_VARIABLE}={token}"] if is_drawn else []),
        f"Claude Code: claude mcp add --transport http proctor {transport.url} "
        f'--header "Authorization: Bearer ${TOKEN_VARIABLE}"',
        f"Codex: codex -c mcp_servers.proctor.url={transport.url} "
        f"-c mcp_servers.proctor.bearer_token_env_var={TOKEN_VARIABLE} "
        "-c mcp_servers.proctor.tool_timeout_sec=120",
        'Then tell the agent: "Take the exam of the MCP server proctor."',
    ]


def _tell_results(plan: RunPlan, report: RunReport, title: str) -> None:
    scores = {plan.config.label: report.results}
    exam_runs.print_scores(plan.dataset.exam, scores, f"{title} on {plan.config.job.env}", to=errors)
    errors.say(*(f"warning: {warning}" for warning in report.warnings))
    errors.say(f"Results: {plan.out}. To look at them: proctor report {shlex.quote(str(plan.out))}")
