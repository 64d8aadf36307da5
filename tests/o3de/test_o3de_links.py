"""The connection to the agent, on real sockets: what breaks, what is told, and what the next call does."""

import http.server
import math
import socket
import threading
from contextlib import contextmanager, suppress
from unittest.mock import Mock

import pytest
from o3de_editors import TOKEN, running_agent
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect
from websockets.sync.server import serve

from o3de_sim.errors import O3DEError
from o3de_sim.o3de_api import socket_link
from o3de_sim.o3de_api.o3de_agent import O3DEAgent
from o3de_sim.o3de_api.socket_link import speaks_http
from o3de_sim.o3de_api.wire import FrameReader, encode
from proctor.agents.connection import no_handshake

INFO = {"protocol": 1, "engine": "", "project": "", "level": "", "in_game_mode": False, "operations": []}


@pytest.fixture(autouse=True)
def impatience(monkeypatch, tmp_path):
    """Wait no longer than tests can; and never see the user's own token."""
    monkeypatch.setattr(socket_link, "PATIENCE_S", 0.1)
    monkeypatch.setattr(socket_link, "MARGIN_S", 0.1)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("O3DE_AGENT_TOKEN", raising=False)
    monkeypatch.delenv("O3DE_AGENT_PORT", raising=False)


class ScriptedAgent:
    """A server that answers each connection by a script, and remembers what it was asked."""

    def __init__(self, *scripts):
        self.requests, self._scripts = [], list(scripts)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self):
        for script in self._scripts:
            try:
                connected, _ = self._listener.accept()
            except OSError:
                return
            with connected, suppress(ConnectionError):  # who was interrupted may leave without a word
                connected.settimeout(5)
                script(self, connected, FrameReader())

    def read(self, connected, reader):
        while data := connected.recv(65536):
            for message in reader.feed(data):
                self.requests.append(message)
                return message
        return None

    def welcome(self, connected, reader):
        reply(connected, self.read(connected, reader), INFO)

    def close(self):
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()


def reply(connected, request, result, **changes):
    answer = {"v": 1, "id": request["id"], "ok": True, "result": result, "frames": 0}
    connected.sendall(encode(answer | changes))


@contextmanager
def scripted(*scripts):
    server = ScriptedAgent(*scripts)
    try:
        with O3DEAgent(port=server.port, token=TOKEN, timeout_s=1) as agent:
            yield agent, server
    finally:
        server.close()


def answering(agent, connected, reader):
    """Answer whatever is asked by the name of the operation."""
    agent.welcome(connected, reader)
    while request := agent.read(connected, reader):
        reply(connected, request, request["op"])


def failure(call, *words):
    with pytest.raises(O3DEError) as caught:
        call()
    for word in words:
        assert word in caught.value.message, caught.value.message
    assert TOKEN not in caught.value.message
    return caught.value.code


def test_nothing_listens():
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    words = (f"nothing listens on 127.0.0.1:{port}", "--runpython", "O3DE_AGENT_PORT")
    assert failure(O3DEAgent(port=port).ping, *words) == "connection"


def test_a_host_that_is_not_there():
    agent = O3DEAgent(host="no-such-host.invalid", timeout_s=2)
    assert failure(agent.ping, "no-such-host.invalid:8080 cannot be reached") == "connection"


@contextmanager
def web_server():
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler) as server:
        server.RequestHandlerClass.log_message = lambda *_: None
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server.server_address[1]
        server.shutdown()
        thread.join()


@contextmanager
def policy_server():
    with serve(lambda connection: None, "127.0.0.1", 0) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.socket.getsockname()[1]
        server.shutdown()
        thread.join()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize("server", [web_server, policy_server])
def test_a_web_server_or_a_policy_is_recognised(server):
    with server() as port:
        agent = O3DEAgent(port=port, token=TOKEN, timeout_s=5)
        assert failure(agent.ping, "a web server answers there", "O3DE_AGENT_PORT") == "connection"


def test_an_agent_is_not_taken_for_a_web_server(tmp_path):
    with web_server() as port:
        assert speaks_http(("127.0.0.1", port), 5)
    with running_agent(tmp_path) as pumped:
        assert not speaks_http(("127.0.0.1", pumped.server.port), 5)


def test_who_takes_an_agent_for_a_policy_is_told(tmp_path):
    with running_agent(tmp_path) as pumped:
        url = f"ws://127.0.0.1:{pumped.server.port}"
        with pytest.raises(InvalidStatus) as refused, connect(url):
            pass
    assert "This is the agent of an O3DE Editor" in str(no_handshake(url, refused.value))


def test_who_answers_in_http_at_once_is_recognised():
    def script(agent, connected, reader):
        connected.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    with scripted(script) as (agent, _):
        assert failure(agent.ping, "a web server answers there") == "connection"


def test_the_token_is_looked_for(tmp_path, monkeypatch):
    with running_agent(tmp_path / "project") as pumped:
        port = pumped.server.port
        words = ("no token", f"token-{port}", "O3DE_AGENT_TOKEN")
        assert failure(O3DEAgent(port=port).ping, *words) == "unauthorised"
        (tmp_path / ".o3de_sim").mkdir()
        (tmp_path / ".o3de_sim" / f"token-{port}").write_text(f"{TOKEN}\n")
        with O3DEAgent(port=port) as agent:
            agent.ping()
        monkeypatch.setenv("O3DE_AGENT_TOKEN", "another")
        words = ("the token from O3DE_AGENT_TOKEN was refused", str(port))
        assert failure(O3DEAgent(port=port).ping, *words) == "unauthorised"
        with O3DEAgent(port=port, token=TOKEN) as agent:
            agent.ping()


def test_an_agent_leaves_its_token_where_clients_find_it(tmp_path, monkeypatch):
    with running_agent(tmp_path / "project", token=None) as pumped:
        monkeypatch.setenv("O3DE_AGENT_PORT", str(pumped.server.port))
        with O3DEAgent() as agent:
            assert agent.info["project"]


def test_one_client_is_served(tmp_path, monkeypatch):
    monkeypatch.setattr(socket_link, "BUSY_S", 0.05)
    with running_agent(tmp_path) as pumped:
        first = O3DEAgent(port=pumped.server.port, token=TOKEN)
        second = O3DEAgent(port=pumped.server.port, token=TOKEN)
        first.ping()
        assert failure(second.ping, "another client is connected") == "busy"
        first.ping()
        first.close()
        second.ping()
        second.close()


def test_who_comes_right_after_another_is_served(tmp_path):
    with running_agent(tmp_path) as pumped:
        for number in range(20):
            with O3DEAgent(port=pumped.server.port, token=TOKEN) as agent:
                made = agent.entity_tool.create(f"thing {number}")
                assert agent.entity_tool.get_name(made) == f"thing {number}"


def test_an_editor_that_stands_still(tmp_path):
    with running_agent(tmp_path) as pumped, O3DEAgent(port=pumped.server.port, token=TOKEN) as agent:
        entity = agent.entity_tool.create("thing", [1, 2, 3])
        pumped.is_stalled = True
        words = ("did not answer 'tc.get_position' within 0.1 s", "dialog", "focus")
        asking = lambda: agent.call("tc.get_position", {"entity": entity}, timeout_s=0.1)  # noqa: E731
        assert failure(asking, *words) == "timeout"
        assert failure(asking, "did not answer 'hello'") == "timeout"
        pumped.is_stalled = False
        assert agent.tc.get_position(entity).to_list() == [1, 2, 3]


def test_the_agents_own_word_of_a_timeout_comes_first(tmp_path, monkeypatch):
    monkeypatch.setattr(socket_link, "MARGIN_S", 5)
    with running_agent(tmp_path) as pumped, O3DEAgent(port=pumped.server.port, token=TOKEN) as agent:
        waiting = lambda: agent.general.wait_for_propagation(10_000, timeout_s=0.05)  # noqa: E731
        assert failure(waiting, "frames") == "timeout"
        agent.ping()  # on the same connection


def test_late_answers_are_nobody_elses():
    def script(agent, connected, reader):
        agent.welcome(connected, reader)
        request = agent.read(connected, reader)
        reply(connected, request, "late", id=request["id"] - 1)
        reply(connected, request, "right")
        connected.recv(1)

    with scripted(script) as (agent, _):
        assert agent.call("a", {}) == "right"


@pytest.mark.parametrize("number", [99, "2", None])
def test_answers_to_what_nobody_asked_end_the_connection(number):
    def script(agent, connected, reader):
        agent.welcome(connected, reader)
        reply(connected, agent.read(connected, reader), "whose?", id=number)

    with scripted(script, answering) as (agent, _):
        assert failure(lambda: agent.call("a", {}), "which nobody made") == "connection"
        assert agent.call("b", {}) == "b"


def test_a_request_is_not_sent_twice_when_the_connection_breaks():
    def script(agent, connected, reader):
        agent.welcome(connected, reader)
        agent.read(connected, reader)

    with scripted(script, answering) as (agent, server):
        assert failure(lambda: agent.call("a", {}), "the connection broke at 'a'") == "connection"
        assert agent.call("b", {}) == "b"
        assert [request["op"] for request in server.requests] == ["hello", "a", "hello", "b"]
        ids = [request["id"] for request in server.requests]
        assert ids == sorted(set(ids))


def test_an_editor_that_was_started_anew_is_not_noticed():
    gone = threading.Event()

    def script(agent, connected, reader):
        agent.welcome(connected, reader)
        reply(connected, agent.read(connected, reader), 1)
        connected.close()
        gone.set()

    with scripted(script, answering) as (agent, _):
        assert agent.call("a", {}) == 1
        assert gone.wait(5)
        assert agent.call("b", {}) == "b"


def test_answers_may_come_in_pieces():
    def script(agent, connected, reader):
        agent.welcome(connected, reader)
        request = agent.read(connected, reader)
        for byte in encode({"v": 1, "id": request["id"], "ok": True, "result": "ä" * 10}):
            connected.sendall(bytes([byte]))
        connected.recv(1)

    with scripted(script) as (agent, _):
        assert agent.call("a", {}) == "ä" * 10


@pytest.mark.parametrize("answer", [b"\xff\xff\xff\xff", b"\0\0\0\2[]", b"\0\0\0\2\xff{", b"\0\0\0\1"])
def test_what_is_no_frame_ends_the_connection(answer):
    def script(agent, connected, reader):
        agent.welcome(connected, reader)
        agent.read(connected, reader)
        connected.sendall(answer)

    with scripted(script, answering) as (agent, _):
        assert failure(lambda: agent.call("a", {})) == "connection"
        assert agent.call("b", {}) == "b"


def test_what_cannot_be_sent_is_told_and_not_sent():
    with scripted(answering, answering) as (agent, server):
        agent.call("a", {})
        asking = lambda: agent.call("b", {"x": math.nan})  # noqa: E731
        assert failure(asking, "b: cannot be written as JSON") == "bad_request"
        assert agent.call("c", {}) == "c"
        assert "b" not in [request["op"] for request in server.requests]


def test_another_protocol_is_told():
    def script(agent, connected, reader):
        reply(connected, agent.read(connected, reader), INFO | {"protocol": 2})

    with scripted(script) as (agent, _):
        assert failure(agent.ping, "expected an agent of protocol 1, found 2") == "connection"


def test_requests_are_as_the_wire_wants_them():
    with scripted(answering) as (agent, server):
        agent.call("tc.get_position", {"entity": "[1]"}, timeout_s=0.5)
        expected = {"v": 1, "id": 2, "op": "tc.get_position", "args": {"entity": "[1]"}, "timeout_s": 0.5}
        assert server.requests[1] == expected


def test_who_interrupts_a_call_gets_a_new_connection(monkeypatch):
    with scripted(answering, answering) as (agent, _):
        agent.call("a", {})
        with monkeypatch.context() as patch:
            patch.setattr(socket_link.SocketLink, "_receive", Mock(side_effect=KeyboardInterrupt))
            with pytest.raises(KeyboardInterrupt):
                agent.call("b", {})
        assert agent.call("c", {}) == "c"
