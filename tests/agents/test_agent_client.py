"""The client of `examples/agent_client.py`, which users copy: it works, is small, and needs no Proctor."""

import ast
import importlib.util
import subprocess
import sys
import threading
import time
from contextlib import closing
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from served_agents import Agent, accept_upgrade, listening, served

from proctor.agents.server import PolicyServer
from proctor.core.interfaces import Policy

FILE = Path(__file__).parents[2] / "examples" / "agent_client.py"
PAGE = FILE.parents[1] / "docs" / "protocol.md"
RGB = np.random.default_rng(3).integers(0, 256, (6, 8, 3), np.uint8)
DEPTH = np.arange(48, dtype=np.uint16).reshape(6, 8) * 100
QUICK_S, PATIENT_S = 0.4, 20.0


@pytest.fixture(scope="module")
def copied(tmp_path_factory):
    """The module as a user has it: a copy elsewhere."""
    path = tmp_path_factory.mktemp("robot") / "my_client.py"
    path.write_text(FILE.read_text())
    spec = importlib.util.spec_from_file_location("my_client", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Watcher(Policy):
    """Keeps all that it is told, and answers with the number of the step."""

    calls: ClassVar[list] = []

    def reset(self, episode_info):
        self.calls.append(episode_info)
        self.step = 0

    def act(self, observation):
        self.calls.append(observation)
        self.step += 1
        return self.step

    def episode_end(self, outcome):
        self.calls.append(outcome)


@pytest.fixture
def server():
    Watcher.calls = []
    with PolicyServer(Watcher, port=0, token="sesame") as server:
        yield server


def test_a_served_policy_gets_the_whole_episode(server, copied):
    view = {"rgb": RGB, "depth": DEPTH, "qpos": np.arange(3.0), "gripper": 0.5}
    with closing(copied.AgentClient(server.url, token="sesame")) as client:
        client.reset("Go.", view, max_steps=7, seed=5, task_goal={"radius": 0.1})
        assert [client.act(view) for _ in range(3)] == [1, 2, 3]
        client.end("success", 3, {"spl": 0.5})
        client.reset("Go back.", view)
        assert client.act(view) == 1
    info, first, _, _, outcome, second, *_ = Watcher.calls
    assert (info.instruction, info.task, info.max_steps, info.seed) == ("Go.", "vln", 7, 5)
    assert info.details == {"task_goal": {"radius": 0.1}}
    np.testing.assert_array_equal(first["rgb"], RGB)
    np.testing.assert_array_equal(first["depth"], DEPTH)
    np.testing.assert_array_equal(first["qpos"], [0.0, 1.0, 2.0])
    assert (first["gripper"], first["instruction"]["text"]) == (0.5, "Go.")
    assert (outcome.status, outcome.num_steps, outcome.metrics) == ("success", 3, {"spl": 0.5})
    assert (second.instruction, second.max_steps) == ("Go back.", 500)


def test_it_runs_as_a_script(tmp_path):
    with PolicyServer(Watcher, port=0) as server:
        done = subprocess.run(
            [sys.executable, "-I", FILE, server.url, "--steps", "3"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == ["step 1: 1", "step 2: 2", "step 3: 3"]


def test_an_agent_of_the_specification_alone_works_too(copied, monkeypatch):
    monkeypatch.setattr(copied, "HELLO_TIMEOUT_S", 0.05)

    def answer(talk):
        talk.send({"type": "action", "session_id": talk.message["session_id"], "action": "FORWARD"})

    agent = Agent(answer, hello=None)
    with served(agent) as port, closing(copied.AgentClient(f"ws://127.0.0.1:{port}")) as client:
        client.reset("Go.", {"rgb": RGB})
        assert client.act({"rgb": RGB}) == "FORWARD"
    assert [message["type"] for message in agent.messages] == ["reset_episode", "get_action"]


WRONG = {
    "says that it failed": lambda talk: talk.send({"type": "error", "message": "no GPU"}),
    "answers an earlier request": lambda talk: talk.reply(1, request_id=7),
    "sends no JSON": lambda talk: talk.connection.send("{oops"),
    "sends a list": lambda talk: talk.connection.send("[1]"),
    "sends deep lists": lambda talk: talk.connection.send("[" * 100_000),
    "hangs up": lambda talk: talk.connection.close(),
}


@pytest.mark.parametrize("name", WRONG)
def test_an_agent_that_is_wrong_is_an_error(name, copied):
    with served(Agent(WRONG[name])) as port:
        client = copied.AgentClient(f"ws://127.0.0.1:{port}", action_timeout_s=PATIENT_S)
        client.reset("Go.", {"rgb": RGB})
        with pytest.raises(copied.AgentError) as caught:
            client.act({"rgb": RGB})
        client.close()
    assert len(str(caught.value)) < 400
    if name == "says that it failed":
        assert "no GPU" in str(caught.value)


def test_another_version_is_refused(copied):
    agent = Agent(hello={"type": "hello", "protocol": "proctor", "version": 2})
    with served(agent) as port, pytest.raises(copied.AgentError, match="protocol version 1, found"):
        copied.AgentClient(f"ws://127.0.0.1:{port}")


def test_a_late_agent_is_given_up_and_its_reply_is_not_used(copied):
    def late(talk):
        threading.Event().wait(2 * QUICK_S)
        talk.reply(1)

    with served(Agent(late)) as port:
        client = copied.AgentClient(f"ws://127.0.0.1:{port}", action_timeout_s=QUICK_S)
        client.reset("Go.", {"rgb": RGB})
        begun_s = time.monotonic()
        with pytest.raises(TimeoutError, match=r"more than 0\.4 s"):
            client.act({"rgb": RGB})
        assert QUICK_S <= time.monotonic() - begun_s < PATIENT_S
        with pytest.raises((copied.AgentError, TimeoutError)):
            client.act({"rgb": RGB})


def test_an_agent_that_does_not_read_cannot_stop_the_robot(copied, monkeypatch):
    stay = threading.Event()

    def never_read(client):
        accept_upgrade(client)
        stay.wait(PATIENT_S)

    monkeypatch.setattr(copied, "HELLO_TIMEOUT_S", 0.05)
    with listening(never_read) as port:
        client = copied.AgentClient(f"ws://127.0.0.1:{port}", action_timeout_s=1.0)
        with pytest.raises(TimeoutError):
            client.act({"text": "x" * (64 << 20)})
        stay.set()


def test_it_is_small_and_imports_nothing_of_ours():
    text = FILE.read_text()
    assert len(text.splitlines()) <= 150
    modules = [
        name
        for node in ast.walk(ast.parse(text))
        for name in (
            [node.module]
            if isinstance(node, ast.ImportFrom)
            else [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else []
        )
    ]
    packages = {name.partition(".")[0] for name in modules} - sys.stdlib_module_names
    assert packages == {"numpy", "PIL", "websockets"}
    assert "examples/agent_client.py" in PAGE.read_text()
