"""`proctor serve-policy` as a user meets it: where it listens, who gets in, how it ends."""

import os
import re
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager
from types import SimpleNamespace

import pytest
from evaluators import call
from websockets.exceptions import ConnectionClosed, InvalidStatus

from proctor import cli
from proctor.agents.server import PolicyServer
from proctor.exams.vln.baselines import ForwardPolicy

AGENT = """
import pathlib
from proctor.core.interfaces import Policy

class Agent(Policy):
    def __init__(self, answer=1):
        self.answer = answer

    def act(self, observation):
        if observation.get("wait"):
            with open(observation["wait"]) as pipe:  # until somebody writes into it
                pipe.read()
        if observation.get("fail"):
            raise ValueError("cannot see")
        return self.answer

    def close(self):
        pathlib.Path("closed").touch()
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "my_agent.py").write_text(AGENT)
    return tmp_path


@contextmanager
def served(folder, *words, **variables):
    """Run the command in a folder that is in nobody's path but its own."""
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "proctor.cli", "serve-policy", *words, "--port", "0"],
            cwd=folder,
            env=os.environ | variables,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
    first = process.stdout.readline()
    try:
        url = re.search(r"ws://\S+:\d+", first)[0]
        yield SimpleNamespace(url=url, process=process, first=first, log=folder / "log")
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def ended(server, number=None):
    """Send a signal and return how it ended and what it had said."""
    if number is not None:
        server.process.send_signal(number)
    rest = server.process.stdout.read()
    return server.process.wait(30), server.first + rest, server.log.read_text()


def test_an_agent_of_this_folder_is_served_with_its_options(folder):
    with served(folder, "my_agent:Agent", "--policy-option", "answer=3") as server:
        with call(server) as caller:
            assert caller.hello.name == "my_agent:Agent"
            caller.reset()
            assert caller.act().action == 3
        code, out, err = ended(server, signal.SIGTERM)
    assert code == 0
    assert f"my_agent:Agent is served at {server.url}" in out
    assert f"proctor run --suite houses-v1 --policy {server.url}" in out
    assert out.endswith("ended\n")
    assert "session 1: begins, from 127.0.0.1" in err
    assert "Traceback" not in err
    assert (folder / "closed").exists()


def test_an_agent_of_one_task_is_sent_to_its_exam(folder):
    with served(folder, "proctor.exams.pick_place.baselines:HoldPolicy") as server:
        _, out, _ = ended(server, signal.SIGTERM)
    assert f"proctor run --suite tabletop-v1 --policy {server.url}" in out


def test_a_failing_policy_is_logged_with_its_traceback(folder):
    with served(folder, "my_agent:Agent") as server:
        with call(server) as caller:
            caller.reset()
            assert caller.act(fail=True).message == "ValueError: cannot see"
        with call(server) as caller:
            caller.reset()
            assert caller.act().action == 1
        code, _, err = ended(server, signal.SIGINT)
    assert code == 0
    assert 'my_agent.py", line' in err
    assert "ValueError: cannot see" in err


def test_ctrl_c_lets_an_action_be_finished(folder):
    os.mkfifo(folder / "pipe")
    with served(folder, "my_agent:Agent") as server, call(server) as busy, call(server) as idle:
        busy.reset()
        busy.ask(wait=str(folder / "pipe"))
        pipe = (folder / "pipe").open("w")  # opens when the policy reads
        server.process.send_signal(signal.SIGINT)
        with pytest.raises(ConnectionClosed, match="1001"):
            idle.socket.recv(timeout=30)
        pipe.close()
        assert busy.read().action == 1
        assert ended(server)[0] == 0


def test_a_second_ctrl_c_ends_it_at_once(folder):
    os.mkfifo(folder / "pipe")
    with served(folder, "my_agent:Agent") as server, call(server) as busy, call(server) as idle:
        busy.reset()
        busy.ask(wait=str(folder / "pipe"))
        with (folder / "pipe").open("w"):
            server.process.send_signal(signal.SIGINT)
            with pytest.raises(ConnectionClosed, match="1001"):
                idle.socket.recv(timeout=30)
            code, _, err = ended(server, signal.SIGINT)
    assert code == 130
    assert "ended at once" in err
    assert "Traceback" not in err


@pytest.mark.parametrize("way", ["file", "variable"])
def test_a_token_can_be_given_in_a_file_or_a_variable(folder, way):
    (folder / "token.txt").write_text("secret\n")
    words = ["--token-file", "token.txt"] if way == "file" else []
    variables = {"PROCTOR_AGENT_TOKEN": "other" if way == "file" else "secret"}
    with served(folder, "random", *words, **variables) as server:
        with pytest.raises(InvalidStatus), call(server, token="other"):
            pass
        with call(server, token="secret") as caller:
            caller.reset()
            assert caller.act().action in (0, 1, 2, 3)
        _, out, err = ended(server, signal.SIGINT)
    assert "PROCTOR_AGENT_TOKEN=... proctor run" in out
    assert "secret" not in out + err


def test_a_server_for_everybody_advises_a_token(folder):
    with served(folder, "random", "--host", "0.0.0.0", PROCTOR_AGENT_TOKEN="") as server:
        code, out, _ = ended(server, signal.SIGINT)
    assert code == 0
    assert socket.gethostname() in out
    assert "anybody who can reach this machine can use it; --token-file" in out


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["oracle"], "OraclePolicy is privileged: it needs the truth, which is never sent over the network"),
        (["replay"], "ReplayPolicy is privileged"),
        (["randm"], "unknown policy 'randm'; did you mean 'random'?"),
        (["nobody_has_this:Agent"], "there is no module 'nobody_has_this'"),
        (["forward", "--policy-option", "step=3"], "did you mean 'steps'?"),
        (["forward", "--policy-option", "steps=-3"], "expected a whole number from 0 up, found -3"),
        (["random", "--token-file", "nothing.txt"], "--token-file nothing.txt: No such file"),
        (["random", "--token-file", "empty.txt"], "--token-file empty.txt: expected a token, found nothing"),
        (["random", "--allow-origin", "a.org"], "expected an origin such as https://app.example.org"),
        (["random", "--certificate", "cert.pem"], "both a certificate and its key"),
        (["random", "--max-batch", "4"], "max_batch above 1 needs a classmethod or staticmethod act_batch"),
        (["random", "--batch-wait-ms", "nan"], "expected seconds from 0 to 60, found nan"),
    ],
)
def test_what_cannot_be_served_ends_with_one_line_and_code_2(capsys, monkeypatch, tmp_path, words, complaint):
    (tmp_path / "empty.txt").write_text("\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    assert cli.main(["serve-policy", *words, "--port", "0"]) == 2
    err = capsys.readouterr().err
    assert complaint in err
    assert len(err.splitlines()) == 1


def test_a_port_that_is_taken_ends_with_one_line_and_code_2(capsys, monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    with PolicyServer(ForwardPolicy, port=0) as server:
        assert cli.main(["serve-policy", "random", "--port", str(server.port)]) == 2
    err = capsys.readouterr().err
    assert f"port {server.port} on 127.0.0.1 is taken" in err
    assert "choose another port" in err
    assert len(err.splitlines()) == 1


def test_help_teaches_by_example(capsys):
    with pytest.raises(SystemExit) as ended:
        cli.main(["serve-policy", "--help"])
    assert ended.value.code == 0
    text = capsys.readouterr().out
    assert "proctor serve-policy my_agent:Agent" in text
    assert "exit codes" in text
