"""`proctor serve-policy`: let evaluators elsewhere examine a policy of yours."""

from __future__ import annotations

import argparse
import logging
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from proctor.cli.options import add_command, add_option, find_modules_here, read_options
from proctor.cli.terminal import DONE, INTERRUPTED, console, errors
from proctor.core.addresses import TOKEN_VARIABLE
from proctor.core.errors import UserError

if TYPE_CHECKING:
    from proctor.agents.server import PolicyServer

SERVE_POLICY_HELP = """\
serve a policy over the network, for evaluators elsewhere
Serve a policy on a WebSocket. Evaluators connect to it; each gets a policy of its own.

examples:
  proctor serve-policy my_agent:Agent                      for evaluators on this machine
  proctor serve-policy my_agent:Agent --host 0.0.0.0 --token-file token.txt
  proctor serve-policy my_agent:Agent --policy-option checkpoint=best.pt --max-batch 8
  proctor serve-policy random --port 9000                  something to try an evaluator with

The evaluator's side: proctor run --suite houses-v1 --policy ws://HOST:8080
Ctrl-C ends it after the actions that are being chosen; a second one ends it at once.
exit codes: 0 ended by Ctrl-C or SIGTERM, 2 user error, 130 ended by a second Ctrl-C
"""


def add_serve(commands: Any) -> None:
    """Add the command."""
    serve = add_command(commands, "serve-policy", _serve, SERVE_POLICY_HELP)
    text = "module:Class, looked for in this folder, too; file.py:Class; or a name (proctor list)"
    add_option(serve, "policy POLICY", str, text)
    text = "an option of the policy, e.g. checkpoint=best.pt; may be given several times"
    add_option(serve, "--policy-option KEY=VALUE", [], text)
    add_option(serve, "--host", "127.0.0.1", "address to listen at; 0.0.0.0 for all (default: 127.0.0.1)")
    add_option(serve, "--port", 8080, "0 for any that is free (default: 8080)")
    text = f"holds the token that evaluators must bring (default: the variable {TOKEN_VARIABLE})"
    add_option(serve, "--token-file FILE", Path, text)
    text = "let web pages of this origin connect, such as http://localhost:3000; * for all (default: none)"
    add_option(serve, "--allow-origin ORIGIN", [], text)
    add_option(serve, "--certificate FILE", Path, "PEM file, for wss://")
    add_option(serve, "--key FILE", Path, "PEM file of its private key")
    add_option(serve, "--max-sessions N", 64, "at a time (default: 64)")
    text = "sessions to answer with one call of the policy's act_batch (default: 1, no batches)"
    add_option(serve, "--max-batch N", 1, text)
    add_option(
        serve, "--batch-wait-ms MS", 5.0, "how long the first of a batch waits for others (default: 5)"
    )


def _serve(arguments: argparse.Namespace) -> int:
    from functools import partial

    from proctor.agents.server import serve
    from proctor.core.registry import build
    from proctor.exams.names import all_baselines

    find_modules_here()
    logging.basicConfig(format="%(asctime)s %(message)s", datefmt="%H:%M:%S")
    logging.getLogger("proctor.server").setLevel(logging.INFO)
    token = _token(arguments.token_file)
    if console.is_terminal:
        console.print(f"loading {arguments.policy} ...", markup=False)

    def announce(server: PolicyServer) -> None:
        _announce(server, arguments, has_token=token is not None)

    try:
        serve(
            partial(
                build, "policy", arguments.policy, read_options(arguments.policy_option), all_baselines()
            ),
            host=arguments.host,
            port=arguments.port,
            token=token,
            certificate=arguments.certificate,
            key=arguments.key,
            allow_origins=arguments.allow_origin,
            max_sessions=arguments.max_sessions,
            max_batch=arguments.max_batch,
            batch_wait_s=arguments.batch_wait_ms / 1000,
            name=arguments.policy.rpartition("/")[2],  # of a file, evaluators need not know the folder
            on_ready=announce,
        )
    except KeyboardInterrupt:
        errors.print("ended at once")
        return INTERRUPTED
    console.print("ended")
    return DONE


def _announce(server: PolicyServer, arguments: argparse.Namespace, *, has_token: bool) -> None:
    lines = [
        f"{arguments.policy} is served at {server.url}. Ctrl-C ends it.",
        f"The evaluator's side: {_other_side(server.url, arguments, has_token=has_token)}",
    ]
    if arguments.host not in ("127.0.0.1", "::1", "localhost"):
        if not has_token:
            lines.append("note: anybody who can reach this machine can use it; --token-file keeps others out")
        elif arguments.certificate is None:
            lines.append("note: the token goes over the network unencrypted; --certificate and --key help")
    console.say(*lines)


def _other_side(url: str, arguments: argparse.Namespace, *, has_token: bool) -> str:
    from proctor.core.registry import load
    from proctor.exams.names import all_baselines, exam_named, exams_with

    policy = load("policy", arguments.policy, all_baselines())
    exam = exam_named(next(iter(policy.tasks or exams_with("policy", policy)), ""))
    words = [f"proctor run --suite {exam.example_suite or 'NAME'} --policy", url]
    if has_token:
        words.insert(0, f"{TOKEN_VARIABLE}=...")
    if arguments.certificate is not None:
        words.append(f"--policy-option ca_file={arguments.certificate.name}")
    return " ".join(words)


def _token(file: Path | None) -> str | None:
    if file is None:
        return os.environ.get(TOKEN_VARIABLE) or None
    try:
        token = file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeError) as error:
        raise UserError(f"--token-file {file}: {getattr(error, 'strerror', None) or error}") from None
    if not token:
        raise UserError(f"--token-file {file}: expected a token, found nothing")
    return token
