"""How the agent gets into the Editor, and who calls it there."""

import json
import runpy
import socket
import sys
from pathlib import Path
from types import ModuleType
from typing import ClassVar

import pytest
from editor_agents import TOKEN, Client

import o3de_sim.editor
from o3de_sim.constants import agent_port
from o3de_sim.editor import start_agent
from o3de_sim.editor.azlmbr_calls import PERIOD_MS, start_pump
from o3de_sim.editor.selftest import LEVEL, RECORD, run
from o3de_sim.errors import O3DEError
from proctor.o3de.standin.fake_editor import FakeEditor

SCRIPTS = Path(o3de_sim.editor.__file__).parent


@pytest.fixture(autouse=True)
def port(monkeypatch):
    """A free port, named by the environment."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        number = found.getsockname()[1]
    monkeypatch.setenv("O3DE_AGENT_PORT", str(number))
    monkeypatch.setenv("O3DE_AGENT_TOKEN", TOKEN)
    for name in ("PySide6", "PySide6.QtCore", "PySide2", "PySide2.QtCore"):
        monkeypatch.setitem(sys.modules, name, None)  # as if they were not there
    yield number
    start_agent.stop()


@pytest.fixture
def editor(tmp_path):
    made = FakeEditor(tmp_path)
    with made.installed():
        yield made
        start_agent.stop()
    assert made.unknown_calls == []


class Timer:
    """A timer of Qt, as far as it is used."""

    made: ClassVar[list] = []

    def __init__(self, parent):
        self.parent, self.is_running, self.period, self.callbacks = parent, False, None, []
        self.timeout = self
        Timer.made.append(self)

    def setInterval(self, period):  # noqa: N802
        self.period = period

    def connect(self, callback):
        self.callbacks.append(callback)

    def start(self):
        self.is_running = True

    def stop(self):
        self.is_running = False


def qt(monkeypatch, name, application):
    core = ModuleType(f"{name}.QtCore")
    core.QTimer = Timer
    core.QCoreApplication = type("QCoreApplication", (), {"instance": staticmethod(lambda: application)})
    monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setitem(sys.modules, f"{name}.QtCore", core)


@pytest.mark.parametrize("name", ["PySide6", "PySide2"])
def test_a_timer_of_qt_is_the_first_choice(monkeypatch, editor, name):
    qt(monkeypatch, name, "the application")
    called = []
    stop = start_pump(lambda: called.append(1))
    timer = Timer.made[-1]
    assert (timer.parent, timer.period, timer.is_running) == ("the application", PERIOD_MS, True)
    timer.callbacks[0]()
    assert called == [1]
    stop()
    assert not timer.is_running


def test_qt_without_an_application_is_of_no_use(monkeypatch, editor):
    qt(monkeypatch, "PySide6", None)
    called = []
    start_pump(lambda: called.append(1))
    editor.frame()
    assert called == [1]


def test_without_qt_for_python_the_frames_tick(editor):
    called = []
    stop = start_pump(lambda: called.append(1))
    editor.frame()
    editor.has_focus = False
    editor.frame()
    assert called == [1]
    editor.has_focus = True
    stop()
    editor.frame()
    assert called == [1]


def test_the_loop_callback_is_taken_if_it_is_free(tmp_path):
    editor = FakeEditor(tmp_path, qt_helpers=True)
    with editor.installed():
        first, second = [], []
        stop = start_pump(lambda: first.append(1))
        start_pump(lambda: second.append(1))  # does not take it away
        editor.has_focus = False
        editor.frame()
        assert (first, second) == ([1], [])
        editor.has_focus = True
        editor.frame()
        assert (first, second) == ([1, 1], [1])
        stop()
        assert editor.loop_callback is None
    assert editor.unknown_calls == []


def test_the_agent_starts_once_and_leaves_the_editor_as_it_was(editor, port, capsys):
    editor.cvars["ed_keepEditorActive"] = "0"
    server = start_agent.start()
    assert start_agent.start() is server
    assert server.port == port
    assert editor.cvars["ed_keepEditorActive"] == "1"
    editor.has_focus = False  # which stops nothing now
    with Client(server, editor) as client:
        assert client.hello().result("ping")["frame"] > 0
    said = capsys.readouterr().out
    assert str(port) in said
    assert TOKEN not in said
    start_agent.stop()
    assert editor.cvars["ed_keepEditorActive"] == "0"
    assert editor.handlers == []


def test_an_agent_that_cannot_listen_leaves_nothing_behind(editor, port):
    with socket.socket() as other:
        other.bind(("127.0.0.1", port))
        other.listen()
        with pytest.raises(O3DEError, match="cannot listen"):
            start_agent.start()
    assert editor.handlers == []
    assert editor.cvars == {}
    start_agent.start()


@pytest.mark.parametrize("text", ["0", "65536", "-1", "http", "８０８０", "", "8" * 5000])
def test_a_port_that_is_none_is_refused(text):
    with pytest.raises(O3DEError, match="1 to 65535"):
        agent_port(text)


def test_the_script_starts_the_agent(editor, port, monkeypatch, capsys):
    monkeypatch.delenv("O3DE_AGENT_PORT")
    monkeypatch.setattr(sys, "argv", ["start_agent.py", str(port)])
    monkeypatch.setattr(sys, "path", list(sys.path))
    for _ in range(2):
        runpy.run_path(str(SCRIPTS / "start_agent.py"), run_name="__main__")
    assert capsys.readouterr().out.count("O3DE agent on") == 1
    with Client(start_agent.start(), editor) as client:
        client.hello()


def test_the_bootstrap_waits_for_the_editor(tmp_path, port):
    editor = FakeEditor(tmp_path, is_starting=True)
    with editor.installed():
        runpy.run_path(str(SCRIPTS / "bootstrap.py"))
        assert start_agent._running == []
        editor.frame()
        assert start_agent._running[0].server.port == port
        assert editor.cvars["ed_keepEditorActive"] == "1"
        start_agent.stop()
    assert editor.unknown_calls == []


def test_in_other_tools_the_bootstrap_does_nothing(capsys):
    runpy.run_path(str(SCRIPTS / "bootstrap.py"))
    assert start_agent._running == []
    assert capsys.readouterr().out == ""


def test_what_goes_wrong_in_the_bootstrap_is_said_and_not_raised(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("O3DE_AGENT_PORT", "seventy")
    editor = FakeEditor(tmp_path, is_starting=True)
    with editor.installed():
        runpy.run_path(str(SCRIPTS / "bootstrap.py"))
        editor.frame()
    assert "the O3DE agent does not run: O3DE_AGENT_PORT" in capsys.readouterr().out
    monkeypatch.setitem(sys.modules, "o3de_sim.editor.start_agent", None)
    monkeypatch.delattr("o3de_sim.editor.start_agent")
    runpy.run_path(str(SCRIPTS / "bootstrap.py"))
    assert "the O3DE agent does not run: " in capsys.readouterr().out


def test_the_selftest_script_writes_its_record(editor, capsys):
    for again in range(2):  # in a level of its own, which exists the second time
        run()
        for _ in range(200):
            editor.frame()
        record = json.loads((editor.project / RECORD).read_text())
        assert record["ok"], record
        assert len(record["checks"]) > 10
        assert editor.level.name == LEVEL
        assert editor.handlers == []
        assert '"ok": true' in capsys.readouterr().out, again


def test_the_selftest_script_gives_up_when_no_frame_comes(editor, monkeypatch):
    now = [0.0]
    monkeypatch.setattr("o3de_sim.editor.selftest.monotonic", lambda: now[0])
    steps = []
    monkeypatch.setattr(
        "o3de_sim.editor.selftest.start_pump", lambda step: steps.append(step) or (lambda: None)
    )
    run()
    steps[0]()
    now[0] = 1e6
    steps[0]()
    record = json.loads((editor.project / RECORD).read_text())
    assert not record["ok"]
    assert "no frame has passed" in record["checks"][0]["detail"]
