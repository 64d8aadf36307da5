"""The agent's server on real sockets."""

import select
import stat
import struct

import pytest
from editor_agents import TOKEN, Client, EditorAgent

from o3de_sim.constants import MAX_FRAME_BYTES
from o3de_sim.editor.client import FAREWELL_S, FRAME_S, HELLO_S
from o3de_sim.editor.server import MAX_QUEUE, AgentServer
from o3de_sim.errors import O3DEError
from o3de_sim.o3de_api.wire import encode


class Toy:
    """A dispatcher whose operations say how they go."""

    def __init__(self):
        self.frame_count = 0
        self.done = []
        self.on_step = lambda: None

    def start(self, op, args):
        if op == "refuse":
            raise O3DEError("bad_state", "not now")
        if op == "break at once":
            raise ZeroDivisionError
        return self._run(op, args)

    def _run(self, op, args):
        for _ in range(args.get("steps", 0)):
            self.on_step()
            yield
        if op == "break":
            raise ZeroDivisionError
        if op == "big":
            return "x" * args["size"]
        if op == "nan":
            return float("nan")
        self.done.append(op)
        return {"operations": []} if op == "hello" else args

    def why_late(self, frames):
        return f"saw {frames} frames"


@pytest.fixture
def toy():
    return Toy()


@pytest.fixture
def server(toy):
    server = AgentServer(toy, port=0, token=TOKEN)
    yield server
    server.close()


@pytest.fixture
def clock(monkeypatch):
    """Time that passes when it is told to, and not while a busy machine stands still."""

    class Clock:
        now = 1000.0

        def __call__(self):
            return self.now

    clock = Clock()
    monkeypatch.setattr("o3de_sim.editor.client.monotonic", clock)
    monkeypatch.setattr("o3de_sim.editor.server.monotonic", clock)
    return clock


def code_of(answer):
    assert not answer["ok"]
    return answer["error"]["code"]


def test_requests_are_answered(server):
    with Client(server) as client:
        client.hello()
        answer = client.ask("echo", steps=3)
        assert answer == {"v": 1, "id": 2, "ok": True, "result": {"steps": 3}, "frames": 0}
        assert code_of(client.ask("refuse")) == "bad_state"


def test_bytes_may_come_one_by_one(server):
    with Client(server) as client:
        for part in encode({"v": 1, "id": 1, "op": "hello", "args": {"token": TOKEN}}):
            client.send_bytes(bytes([part]))
            client.turn()
        assert client.answer()["ok"]


def test_two_frames_may_come_in_one_packet(server):
    with Client(server) as client:
        client.hello()
        frames = [encode({"v": 1, "id": number, "op": "echo", "args": {}}) for number in (7, 8)]
        client.send_bytes(b"".join(frames) + frames[0][:5])
        assert [client.answer()["id"], client.answer()["id"]] == [7, 8]
        client.send_bytes(frames[0][5:])
        assert client.answer()["id"] == 7


@pytest.mark.parametrize(
    "data",
    [
        struct.pack(">I", MAX_FRAME_BYTES + 1),
        b"\xff" * 64,
        struct.pack(">I", 3) + b"{]}",
        struct.pack(">I", 2) + b"[]",
        struct.pack(">I", 0),
        struct.pack(">I", 9) + b'{"a":NaN}',
        struct.pack(">I", 2) + b"\xff\xfe",
        struct.pack(">I", 200_000) + b"[" * 200_000,
    ],
    ids=["oversize", "noise", "no JSON", "no object", "empty", "NaN", "no UTF-8", "deep"],
)
@pytest.mark.parametrize("is_known", [False, True])
def test_what_is_no_frame_is_said_and_ends_the_connection(server, data, is_known):
    with Client(server) as client:
        if is_known:
            client.hello()
        client.send_bytes(data)
        assert code_of(client.ends()) == "bad_request"
    with Client(server) as client:
        client.hello()


def test_a_web_client_is_told_what_this_is(server):
    with Client(server) as client:
        client.send_bytes(b"GET / HTTP/1.1\r\nUpgrade: websocket\r\n\r\n")
        client.ends()
        assert client.raw.startswith(b"HTTP/1.1 400 ")
        assert b"O3DE" in client.raw


@pytest.mark.parametrize(
    "message",
    [
        {"v": 1, "id": 1, "op": "echo", "args": {}},
        {"v": 1, "id": 1, "op": "hello", "args": {"token": TOKEN + "x"}},
        {"v": 1, "id": 1, "op": "hello", "args": {"token": "\ud800"}},
        {"v": 1, "id": 1, "op": "hello", "args": {"token": None}},
        {"v": 1, "id": 1, "op": "hello", "args": TOKEN},
        {"v": 1, "id": 1, "op": "hello"},
        {},
    ],
)
def test_without_the_token_nothing_is_done(server, toy, message):
    with Client(server) as client:
        client.send_bytes(encode(message) + encode({"v": 1, "id": 2, "op": "echo", "args": {}}))
        answer = client.ends()
        assert code_of(answer) == "unauthorised"
        assert TOKEN not in answer["error"]["message"]
    assert toy.done == []


@pytest.mark.parametrize(
    "change",
    [
        {"v": 2},
        {"id": "one"},
        {"id": None},
        {"id": True},
        {"op": None},
        {"op": ["echo"]},
        {"args": []},
        {"timeout_s": 0},
        {"timeout_s": "10"},
        {"timeout_s": 1e9},
        {"extra": 1},
    ],
    ids=str,
)
def test_a_wrong_request_is_answered_and_the_next_is_served(server, change):
    with Client(server) as client:
        client.hello()
        client.send_bytes(encode({"v": 1, "id": 5, "op": "echo", "args": {}} | change))
        assert code_of(client.answer()) == "bad_request"
        assert client.result("echo") == {}


def test_a_second_client_is_told_that_another_is_served(server):
    with Client(server) as first:
        first.hello()
        with Client(server) as second:
            second.send("hello", token=TOKEN)
            assert code_of(second.ends()) == "busy"
        assert first.result("echo") == {}
    with Client(server) as third:
        third.hello()


def test_of_two_that_come_at_once_the_first_to_say_hello_is_served(server):
    with Client(server) as silent, Client(server) as eager:
        eager.hello()
        assert code_of(silent.ends()) == "busy"
        assert eager.result("echo") == {}


def test_many_silent_clients_do_not_keep_others_out_for_long(server, clock):
    crowd = []
    for _ in range(20):
        crowd.append(Client(server))
        server.pump()
    clock.now += HELLO_S + 0.1
    server.pump()
    clock.now += FAREWELL_S + 0.1
    server.pump()
    with Client(server) as client:
        assert client.hello().result("echo") == {}
    for one in crowd:
        one.socket.close()


def test_a_client_that_says_nothing_is_let_go(server, clock):
    with Client(server) as client:
        client.turn()
        clock.now += HELLO_S + 0.1
        answer = client.ends()
        assert "hello" in answer["error"]["message"]


def test_a_frame_that_dribbles_in_is_not_waited_for(server, clock):
    with Client(server) as client:
        client.hello()
        data = encode({"v": 1, "id": 2, "op": "echo", "args": {"text": "x" * 100}})
        for part in data[:50]:
            client.send_bytes(bytes([part]))
            client.turn()
            clock.now += FRAME_S / 40
            if client.is_closed:
                break
        assert client.ends()["ok"] is False


def test_a_client_may_be_silent_once_it_is_known(server, clock):
    with Client(server) as client:
        client.hello()
        clock.now += 3600
        assert client.result("echo") == {}


def test_a_hello_that_came_while_the_engine_stood_still_is_taken(server, clock):
    with Client(server) as client:
        client.turn()  # is accepted
        client.send("hello", token=TOKEN)
        clock.now += 60
        assert client.answer()["ok"]


def test_a_client_that_does_not_read_is_let_go_when_too_much_waits(server):
    with Client(server) as client:
        client.hello()
        for _ in range(5):
            client.send("big", size=MAX_FRAME_BYTES - 100)
        for _ in range(20):
            server.pump()
        assert len(server.sockets()) == 1
    with Client(server) as client:
        client.hello()


def test_a_client_that_does_not_read_is_let_go_after_a_while(server, clock):
    with Client(server) as client:
        client.hello()
        client.send("big", size=MAX_FRAME_BYTES - 100)
        for _ in range(20):
            server.pump()
        assert len(server.sockets()) == 2
        clock.now += FRAME_S + 0.1
        for _ in range(20):
            server.pump()
        assert len(server.sockets()) == 1


def test_a_client_that_asks_without_end_is_let_go(server):
    with Client(server) as client:
        client.hello()
        request = encode({"v": 1, "id": 1, "op": "echo", "args": {"steps": 10_000}})
        client.send_bytes(request * (MAX_QUEUE + 10))
        assert "read its answers" in client.ends()["error"]["message"]


def test_large_answers_come_whole(server):
    with Client(server) as client:
        client.hello()
        assert client.result("big", size=5_000_000) == "x" * 5_000_000
        assert code_of(client.ask("big", size=MAX_FRAME_BYTES)) == "az_call_failed"
        assert code_of(client.ask("nan")) == "az_call_failed"


@pytest.mark.parametrize("op", ["break", "break at once"])
def test_a_fault_is_answered_and_goes_to_the_log(server, op):
    with Client(server) as client:
        client.hello()
        client.send(op)
        with pytest.raises(ZeroDivisionError):
            client.answer()
        assert code_of(client.answer()) == "internal"
        assert client.result("echo") == {}


def test_pumping_within_a_step_does_nothing(server, toy):
    toy.on_step = server.pump  # as a nested event loop does
    with Client(server) as client:
        client.hello()
        assert client.result("echo", steps=3) == {"steps": 3}


def test_an_operation_makes_one_step_per_pump(server, toy):
    steps = []
    toy.on_step = lambda: steps.append(None)
    with Client(server) as client:
        client.hello()
        client.send("echo", steps=50)
        client.until(lambda: steps)
        before = len(steps)
        for _ in range(10):
            server.pump()
        assert len(steps) == before + 10


def test_an_operation_has_a_deadline(server, clock):
    with Client(server) as client:
        client.hello()
        client.send("echo", steps=10**9, timeout_s=5)
        client.turn()
        clock.now += 5.1
        answer = client.answer()
        assert code_of(answer) == "timeout"
        assert answer["error"]["message"] == "echo took longer than 5 s: it saw 0 frames"
        assert client.result("echo") == {}


def test_what_is_done_when_the_engine_comes_back_is_answered_late(server, clock, toy):
    with Client(server) as client:
        client.hello()
        client.send("echo", timeout_s=5)
        clock.now += 60  # nobody pumps for longer than the client waits
        assert client.answer()["ok"]
        client.send("echo", steps=1, timeout_s=5)
        client.turn()
        assert client.answer()["ok"]


def test_the_loss_of_its_client_does_not_end_an_operation(server, toy):
    with Client(server) as client:
        client.hello()
        client.send("first", steps=20)
        client.send("second")
        client.turn()
        client.turn()
    with Client(server) as client:
        client.hello()  # waits for its turn
        assert toy.done == ["hello", "first", "hello"]  # and nothing that had not begun
        assert client.result("echo") == {}


def test_only_this_machine_is_listened_to(toy):
    for host in ("0.0.0.0", "192.168.0.1", "::", "example.org"):
        with pytest.raises(O3DEError) as caught:
            AgentServer(toy, host=host, port=0, token=TOKEN)
        assert caught.value.code == "bad_request"
    AgentServer(toy, host="localhost", port=0, token=TOKEN).close()


def test_a_port_that_is_taken_is_said(server, toy):
    with pytest.raises(O3DEError, match="O3DE_AGENT_PORT") as caught:
        AgentServer(toy, port=server.port, token=TOKEN)
    assert caught.value.code == "bad_state"


def test_the_token_is_left_for_this_user_alone(toy, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("O3DE_AGENT_TOKEN", raising=False)
    server = AgentServer(toy, port=0)
    path = server.token_path
    assert path == tmp_path / ".o3de_sim" / f"token-{server.port}"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert [item.name for item in path.parent.iterdir()] == [path.name]
    with Client(server) as client:
        assert client.ask("hello", token=path.read_text())["ok"]
    server.close()
    assert not path.exists()


def test_the_token_of_another_agent_is_not_removed(toy, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("O3DE_AGENT_TOKEN", raising=False)
    server = AgentServer(toy, port=0)
    server.token_path.write_text("another's")
    server.close()
    assert server.token_path.read_text() == "another's"


def test_the_token_of_the_environment_is_written_nowhere(toy, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("O3DE_AGENT_TOKEN", TOKEN)
    server = AgentServer(toy, port=0)
    assert server.token_path is None
    with Client(server) as client:
        client.hello()
    server.close()
    assert list(tmp_path.iterdir()) == []


def test_without_a_home_folder_there_is_no_agent(toy, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "missing"))
    monkeypatch.delenv("O3DE_AGENT_TOKEN", raising=False)
    with pytest.raises(O3DEError, match="no token file"):
        AgentServer(toy, port=0)


def test_sockets_become_readable_when_there_is_something_to_do(server):
    assert select.select(server.sockets(), [], [], 0)[0] == []
    with Client(server) as client:
        assert select.select(server.sockets(), [], [], 5)[0]
        client.turn()
        client.send("hello", token=TOKEN)
        assert select.select(server.sockets(), [], [], 5)[0]
        assert client.answer()["ok"]


# With the real dispatcher


@pytest.fixture
def agent(tmp_path):
    with EditorAgent(tmp_path).running() as running:
        running.level()
        yield running


def test_the_next_client_sees_what_a_lost_one_has_done(agent):
    server = agent.serve()
    with Client(server, agent.editor) as client:
        client.hello()
        client.send("entity_tool.create", name="orphan")
        server.pump()
    with Client(server, agent.editor) as client:
        client.hello()
        (entity,) = client.result("entity_tool.find", name="orphan")
        client.result("tc.set_position", entity=entity, position=[1, 2, 3])
        answer = client.ask("editor_tool.create_level", name="next")
        assert answer["ok"]
        assert answer["frames"] >= 1
        assert code_of(client.ask("tc.get_position", entity=entity)) == "not_found"
    server.close()


def test_frames_that_do_not_come_are_named_as_the_cause(agent, clock):
    server = agent.serve()
    with Client(server, agent.editor) as client:
        client.hello()
        agent.editor.has_focus = False
        client.send("simulation_tool.enter_game_mode", timeout_s=2)
        client.turn()
        clock.now += 2.1
        answer = client.answer()
        assert code_of(answer) == "timeout"
        for cause in ("game mode to begin", "no frame has passed", "ed_keepEditorActive", "dialog"):
            assert cause in answer["error"]["message"]
        agent.editor.has_focus = True
        agent.editor.frame()
        client.result("simulation_tool.enter_game_mode")
        agent.editor.want_game_mode = lambda is_on: None  # the engine stays in it, whatever is asked
        client.send("simulation_tool.exit_game_mode", timeout_s=2)
        for _ in range(5):
            client.turn()
        clock.now += 2.1
        answer = client.answer()
        assert "through" in answer["error"]["message"]
        assert "in game mode" in answer["error"]["message"]
    server.close()


def test_a_screenshot_that_is_given_up_leaves_no_handler(agent, clock):
    server = agent.serve()
    agent.editor.captures.finish = list
    handlers = len(agent.editor.handlers)
    with Client(server, agent.editor) as client:
        client.hello()
        client.send("render_tool.screenshot", path="x.png", timeout_s=1)
        for _ in range(5):
            client.turn()
        assert len(agent.editor.handlers) == handlers + 1
        clock.now += 1.1
        assert code_of(client.answer()) == "timeout"
        assert len(agent.editor.handlers) == handlers
    server.close()
