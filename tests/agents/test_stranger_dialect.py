"""A dialect of others is added by an entry point or `module:Class`: no file of agents/ changes."""

import asyncio
import importlib.metadata
import json
import sys

import pytest
from policy_servers import serving
from served_agents import RIGHT, Agent, episode, served

from proctor.agents.dialects.dialect import Dialect, encoding
from proctor.agents.messages import WireFault
from proctor.agents.websocket_policy import WebSocketPolicy
from proctor.cli import main
from proctor.core import registry
from proctor.core.errors import AgentFault, UserError
from proctor.worlds.mock import MockEnv
from vln_evaluator import VLNEvaluator

SECRET = "sesame-0123456789"


class LinesDialect(Dialect):
    """Plain text lines: the server says `LINES 1`, is sent `go TEXT` and `see`, and answers with a number."""

    name = "lines"
    subprotocols = ("lines.v1",)
    authorization_scheme = "Lines"

    @classmethod
    def recognises(cls, handshake):
        return handshake.first_frame == "LINES 1"

    def begin(self, info, deadline_s):
        with encoding():
            frame = f"go {json.dumps(info.instruction)} {json.dumps(info.details)}"
        self.connection.send(frame, deadline_s)

    def ask(self, observation, deadline_s):
        with encoding():
            frame = f"see {observation['rgb'].shape[0] + observation.get('odd', 0)}"
        reply = self.connection.exchange(frame, deadline_s)
        if not isinstance(reply, str) or not reply.startswith("do "):
            raise AgentFault(WireFault.WRONG_MESSAGE, f"expected a line 'do NUMBER', found {reply!r:.40}")
        return json.loads(reply[3:])

    def end(self, outcome, deadline_s):
        self.connection.send(f"end {outcome.status}", deadline_s)


class NoEndDialect(LinesDialect):
    """Lacks a method."""

    end = Dialect.end


class NotADialect:
    """Does not inherit the contract."""


class LinesServer:
    """Serves `LinesDialect` and keeps what it hears."""

    def __init__(self, answers=tuple(f"do {action}" for action in RIGHT)):
        self.answers, self.heard, self.headers, self.offered = answers, [], [], []

    async def __call__(self, websocket):
        self.headers.append(websocket.request.headers.get("Authorization"))
        self.offered.append(websocket.request.headers.get("Sec-WebSocket-Protocol"))
        await websocket.send("LINES 1")
        step = 0
        async for line in websocket:
            self.heard.append(line)
            step = 0 if line.startswith("go") else step
            if line.startswith("see"):
                await websocket.send(self.answers[step % len(self.answers)])
                step += 1


@pytest.fixture
def installed(monkeypatch):
    """Install dialects as packages do, by entry points: `installed(name="module:Class")`."""

    def install(**targets):
        points = [
            importlib.metadata.EntryPoint(name, target, "proctor.dialects")
            for name, target in targets.items()
        ]
        known = importlib.metadata.entry_points

        def found(*, group):
            return importlib.metadata.EntryPoints(
                points if group == "proctor.dialects" else known(group=group)
            )

        monkeypatch.setattr(registry, "entry_points", found)

    return install


HERE = f"{__name__}:LinesDialect"


def evaluated(url, env=None, **options):
    with VLNEvaluator(env or MockEnv(), WebSocketPolicy(url, **options)) as evaluator:
        return evaluator.evaluate_episode(episode())


def test_an_installed_dialect_is_recognised_and_takes_a_whole_episode(installed):
    installed(lines=HERE)
    server = LinesServer()
    with serving(server) as url:
        result = evaluated(url)
    assert (result.success, result.actions) == (True, RIGHT)
    assert [line.split()[0] for line in server.heard] == ["go", *["see"] * 5, "end"]
    assert server.heard[-1] == "end success"
    assert server.offered == ["proctor.v1.json, proctor.v1.msgpack, lines.v1"]


def test_without_it_the_same_server_speaks_nothing_that_we_know():
    with serving(LinesServer()) as url:
        result = evaluated(url)
    assert result.error.kind == "protocol_mismatch"
    assert "the text 'LINES 1'" in result.error.message


def test_an_installed_dialect_does_not_take_the_agents_of_others(installed):
    installed(lines=HERE)
    with served(Agent()) as port, served(Agent(hello=None)) as silent:
        for address in (port, silent):
            assert evaluated(f"ws://127.0.0.1:{address}").success


def test_a_dialect_may_be_named_and_has_its_own_headers(installed):
    installed(lines=HERE)
    server = LinesServer()
    with serving(server) as url:
        assert evaluated(url, dialect="lines", token=SECRET).success
    assert (server.headers, server.offered) == ([f"Lines {SECRET}"], ["lines.v1"])


def test_a_dialect_of_the_users_own_needs_no_installation():
    with serving(LinesServer()) as url:
        assert evaluated(url, dialect=HERE).success


def test_proctor_list_names_installed_dialects(installed, capsys):
    installed(lines=HERE)
    assert main(["list"]) == 0
    printed = capsys.readouterr().out
    assert "dialects" in printed
    assert all(name in printed for name in ("lines", "openpi", "proctor", "vla-eval"))


@pytest.mark.parametrize(
    ("target", "problem"),
    [
        (f"{__name__}:NoEndDialect", r"dialect 'broken' lacks end$"),
        (f"{__name__}:NotADialect", r"dialect 'broken' must be a class that inherits .*dialect\.Dialect$"),
        (f"{__name__}:Missing", r"dialect 'broken': the module .* has no 'Missing'"),
        ("no_such_package:Dialect", "there is no module 'no_such_package'"),
        (
            "explodes_on_import:Dialect",
            r"dialect 'broken': its import failed \(explodes_on_import.py, line 1\): ZeroDivisionError",
        ),
    ],
)
def test_a_broken_dialect_is_refused_before_anything_starts(
    installed, target, problem, tmp_path, monkeypatch
):
    (tmp_path / "explodes_on_import.py").write_text("1 / 0\n")
    monkeypatch.syspath_prepend(tmp_path)
    installed(broken=target)
    for dialect in ("auto", "broken"):
        with pytest.raises(UserError, match=problem) as caught:
            WebSocketPolicy("127.0.0.1", 1, dialect=dialect)
        assert "\n" not in str(caught.value)
    WebSocketPolicy("127.0.0.1", 1, dialect="proctor")  # not all that is installed is needed
    sys.modules.pop("explodes_on_import", None)


@pytest.mark.parametrize("dialect", ["lins", "AUTO", "", 7])
def test_an_unknown_dialect_is_refused(installed, dialect):
    installed(lines=HERE)
    with pytest.raises(UserError, match="dialect") as caught:
        WebSocketPolicy("127.0.0.1", 1, dialect=dialect)
    if dialect == "lins":
        assert "did you mean 'lines'" in str(caught.value)


def test_what_it_cannot_encode_is_the_evaluators_fault_and_nothing_is_sent():
    class Odd(MockEnv):
        def reset(self, episode):
            return super().reset(episode) | {"odd": "text"}

    server = LinesServer()
    with serving(server) as url:
        result = evaluated(url, Odd(), dialect=HERE)
    assert (result.error.side, result.error.kind) == ("evaluator", "evaluator_exception")
    assert "cannot be written: TypeError" in result.error.message
    assert [line.split()[0] for line in server.heard] == ["go"]


@pytest.mark.parametrize(
    ("answer", "kind"), [("jump", "wrong_message"), ("do 7", "invalid_action"), ('do "x"', "invalid_action")]
)
def test_what_its_agent_answers_wrongly_is_the_agents_fault(answer, kind):
    with serving(LinesServer([answer])) as url:
        result = evaluated(url, dialect=HERE)
    assert (result.error.side, result.error.kind) == ("agent", kind)


def test_a_late_reply_is_not_used_for_a_later_step():
    class Slow(LinesServer):
        async def __call__(self, websocket):
            await websocket.send("LINES 1")
            async for line in websocket:
                if line.startswith("see"):
                    await asyncio.sleep(0.6)
                    await websocket.send("do 1")

    with serving(Slow()) as url:
        result = evaluated(url, dialect=HERE, action_timeout_s=0.2)
    assert (result.error.kind, result.steps) == ("action_timeout", 0)


def test_no_file_of_agents_names_a_dialect_outside_of_its_own(pytestconfig):
    folder = pytestconfig.rootpath / "src" / "proctor" / "agents"
    for file in folder.rglob("*.py"):
        if file.parent.name != "dialects":
            text = file.read_text()
            assert "openpi" not in text.lower(), file
            assert "vla-eval" not in text, file
        assert not any(word in file.read_text() for word in ('"vln"', "pick_and_place", "pick_place")), file
