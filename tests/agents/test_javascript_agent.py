"""The agent in JavaScript, as a reader would start it, under the evaluator's real client."""

import base64
import itertools
import json
import os
import shutil
import struct
import subprocess
import time
import urllib.request
import zlib
from pathlib import Path

import numpy as np
import pytest

from proctor.agents.codec import JsonCodec
from proctor.agents.connection import open_connection
from proctor.agents.dialects.proctor import ProctorDialect
from proctor.agents.handshake import Address, open_session
from proctor.agents.messages import Hello, WireFault
from proctor.agents.websocket_policy import WebSocketPolicy
from proctor.core.errors import AgentFault
from proctor.core.types import Action, EpisodeInfo, Outcome, Sensor
from vln_evaluator.evaluators import evaluate_vln

REPOSITORY = Path(__file__).parents[2]
WIDTH, HEIGHT = 64, 48
FAR = np.full((HEIGHT, WIDTH), 3000, np.uint16)
CLOCK = itertools.count()
OFFLINE = ("ENOTFOUND", "EAI_AGAIN", "ECONNREFUSED", "ECONNRESET", "ENETUNREACH", "ETIMEDOUT")
INSTALL_S, STOP_S, REPLY_S = 120, 30, 30


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The example with its one dependency."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        pytest.fail("the JavaScript agent is tested in Node; please run: sudo apt-get install -y nodejs npm")
    version = subprocess.run(["node", "--version"], capture_output=True, text=True, check=True).stdout.strip()
    if tuple(map(int, version.lstrip("v").split(".")))[:2] < (18, 3):
        pytest.fail(f"the JavaScript agent needs Node 18.3 or newer, found {version}")
    copied = tmp_path_factory.mktemp("javascript") / "agent"
    shutil.copytree(
        REPOSITORY / "examples" / "javascript-agent", copied, ignore=shutil.ignore_patterns("node_modules")
    )
    words = ["npm", "install", "--no-package-lock", "--no-audit", "--no-fund", "--prefer-offline"]
    words += ["--fetch-retries=1", "--fetch-retry-mintimeout=1000"]
    try:
        subprocess.run(words, cwd=copied, check=True, capture_output=True, text=True, timeout=INSTALL_S)
    except subprocess.TimeoutExpired:
        pytest.skip(f"npm did not get the package ws within {INSTALL_S} s")
    except subprocess.CalledProcessError as error:
        if codes := [code for code in OFFLINE if code in error.stderr]:
            pytest.skip(f"npm cannot get the package ws without a network ({codes[0]})")
        pytest.fail(f"npm install failed: {error.stderr}")
    return copied


class Agent:
    """A running agent."""

    def __init__(self, folder, *options, token=None):
        environment = {**os.environ, "PROCTOR_AGENT_TOKEN": token or ""}
        self.process = subprocess.Popen(
            ["node", "agent.mjs", "--port", "0", *options],
            cwd=folder,
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
        )
        line = self.process.stdout.readline()
        assert line.startswith("listening on port "), line
        self.port = int(line.split()[-1])
        self.url = f"ws://127.0.0.1:{self.port}"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()

    def stop(self):
        self.process.terminate()
        return self.process.wait(timeout=STOP_S)


@pytest.fixture(scope="module")
def agent(folder):
    with Agent(folder) as running:
        yield running
        assert running.process.poll() is None, "it is still there after all that was sent to it"


def soon():
    return time.monotonic() + REPLY_S


def briefing(**changes):
    sensors = {
        "rgb": Sensor(dtype="uint8", shape=(HEIGHT, WIDTH, 3)),
        "depth": Sensor(dtype="uint16", shape=(HEIGHT, WIDTH)),
    }
    known = {"episode_id": "e", "instruction": "Go.", "max_steps": 500, "seed": 1, "task": "vln"}
    return EpisodeInfo(**{**known, "sensors": sensors, **changes})


def view(depth):
    return {"rgb": np.zeros((*depth.shape, 3), np.uint8), "depth": depth}


def going():
    """What is seen while moving freely: no two pictures are the same."""
    return view(FAR + np.uint16(10 * next(CLOCK)))


def with_block(columns, depth_mm=600):
    depth = FAR.copy()
    depth[20:30, columns] = depth_mm
    return depth


def met_plainly(agent):
    """As by an evaluator that offers no subprotocol."""
    connection = open_connection(agent.url, soon())
    assert connection.subprotocol is None
    hello = JsonCodec().read_agent(connection.receive(soon()))
    assert isinstance(hello, Hello)
    return connection, ProctorDialect(connection, JsonCodec(hello.pictures), hello)


def met_by_subprotocol(agent):
    connection, dialect, _ = open_session(Address(url=agent.url), soon())
    assert connection.subprotocol == "proctor.v1.json"
    return connection, dialect


@pytest.fixture(params=[met_plainly, met_by_subprotocol])
def session(agent, request):
    connection, dialect = request.param(agent)
    yield dialect
    connection.close()


def test_it_drives_where_there_is_room_and_turns_to_the_freer_side(session):
    session.begin(briefing(), soon())
    left, middle, right = slice(0, 20), slice(26, 38), slice(44, 64)
    assert session.ask(going(), soon()) == Action.FORWARD
    assert session.ask(view(with_block(left)), soon()) == Action.FORWARD
    blocked_left = with_block(left, 500)
    blocked_left[20:30, middle] = 700
    assert session.ask(view(blocked_left), soon()) == Action.RIGHT
    assert session.ask(going(), soon()) == Action.FORWARD
    blocked_right = with_block(right, 500)
    blocked_right[20:30, middle] = 700
    assert session.ask(view(blocked_right), soon()) == Action.LEFT
    assert session.ask(view(blocked_left), soon()) == Action.LEFT, "it keeps to its side until it is free"
    assert session.ask(going(), soon()) == Action.FORWARD
    nothing_came_back = np.zeros_like(FAR)
    assert session.ask(view(nothing_came_back), soon()) == Action.FORWARD
    session.end(Outcome(status="failure", metrics={}, num_steps=7), soon())


def test_where_going_forward_changes_nothing_it_turns(session):
    session.begin(briefing(), soon())
    assert [session.ask(view(FAR), soon()) for _ in range(4)] == [1, Action.LEFT, 1, Action.LEFT]
    session.begin(briefing(), soon())
    assert session.ask(view(FAR), soon()) == Action.FORWARD
    session.begin(briefing(), soon())
    assert session.ask(view(FAR), soon()) == Action.FORWARD


def test_it_stops_in_time_when_boxed_in_and_forgets_at_each_reset(session):
    session.begin(briefing(max_steps=3), soon())
    assert [session.ask(going(), soon()) for _ in range(3)] == [1, 1, 0]
    session.begin(briefing(), soon())
    assert [session.ask(going(), soon()) for _ in range(60)] == [1] * 59 + [0]
    for seed, turn in [(1, Action.LEFT), (2, Action.RIGHT)]:
        session.begin(briefing(seed=seed), soon())
        turns = [session.ask(view(with_block(slice(0, WIDTH))), soon()) for _ in range(25)]
        assert turns == [turn] * 24 + [Action.STOP]


def test_sessions_at_once_do_not_disturb_each_other(agent):
    (first, a), (second, b) = met_by_subprotocol(agent), met_by_subprotocol(agent)
    a.begin(briefing(max_steps=2), soon())
    b.begin(briefing(max_steps=3), soon())
    assert [d.ask(going(), soon()) for d in (a, b, a, b, b)] == [1, 1, 0, 1, 0]
    first.drop()
    b.begin(briefing(), soon())
    assert b.ask(going(), soon()) == Action.FORWARD
    second.close()


def png(depth, filter_):
    """A PNG file all of whose rows have one filter, as libraries do not write it when asked."""
    raw = depth.astype(">u2").view(np.uint8).reshape(len(depth), -1).astype(int)
    left, above, corner = np.zeros_like(raw), np.zeros_like(raw), np.zeros_like(raw)
    left[:, 2:], above[1:], corner[1:, 2:] = raw[:, :-2], raw[:-1], raw[:-1, :-2]
    estimate = left + above - corner
    choices = np.stack([left, above, corner])
    paeth = np.take_along_axis(choices, np.abs(choices - estimate).argmin(0)[None], 0)[0]
    guesses = [np.zeros_like(raw), left, above, (left + above) // 2, paeth]
    rows = np.insert((raw - guesses[filter_]) % 256, 0, filter_, axis=1).astype(np.uint8)
    height, width = depth.shape
    header = struct.pack(">IIBBBBB", width, height, 16, 0, 0, 0, 0)
    packed = zlib.compress(rows.tobytes())
    chunks = [(b"IHDR", header), (b"tEXt", b"Comment\0x"), (b"IDAT", packed[:99]), (b"IDAT", packed[99:])]
    body = b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        for name, data in [*chunks, (b"IEND", b"")]
    )
    return b"\x89PNG\r\n\x1a\n" + body


class WithFilter(JsonCodec):
    """Writes depth with one filter of PNG."""

    def __init__(self, filter_):
        super().__init__()
        self._filter = filter_

    def _write(self, value):
        if isinstance(value, np.ndarray) and value.dtype == np.uint16:
            return base64.b64encode(png(value, self._filter)).decode()
        return super()._write(value)


@pytest.mark.parametrize("filter_", range(5), ids=["none", "sub", "up", "average", "paeth"])
def test_it_reads_every_filter_of_png(agent, filter_):
    connection = open_connection(agent.url, soon())
    hello = JsonCodec().read_agent(connection.receive(soon()))
    dialect = ProctorDialect(connection, WithFilter(filter_), hello)
    dialect.begin(briefing(), soon())
    noise = np.random.default_rng(filter_).integers(1300, 2**16, (HEIGHT, WIDTH)).astype(np.uint16)
    assert dialect.ask(view(noise), soon()) == Action.FORWARD  # one wrong byte would look like a near thing
    noise[-2, WIDTH // 2] = 1299
    assert dialect.ask(view(noise), soon()) in (Action.LEFT, Action.RIGHT)
    connection.close()


def test_what_it_cannot_do_it_says_and_goes_on_serving(agent):
    connection, dialect = met_by_subprotocol(agent)
    dialect.begin(briefing(task="pick_and_place"), soon())
    with pytest.raises(AgentFault, match="cannot do pick_and_place") as fault:
        dialect.ask(going(), soon())
    assert fault.value.kind == WireFault.AGENT_ERROR
    connection.drop()
    connection, dialect = met_plainly(agent)
    for nonsense, complaint in [
        ("no json", "JSON"),
        ("null", "null"),
        (b"\x00", "binary"),
        ('{"type": "get_action", "observation": {}}', "before reset_episode"),
        ('{"type": "reset_episode", "episode": {"task_type": "vln"}}', "depth"),
    ]:
        reply = json.loads(connection.exchange(nonsense, soon()))
        assert reply["type"] == "error"
        assert complaint in reply["message"]
    connection.send('{"type": "weather"}', soon())
    dialect.begin(briefing(), soon())
    assert dialect.ask(going(), soon()) == Action.FORWARD
    whole = png(FAR, 0)
    taller = whole[:20] + struct.pack(">I", HEIGHT + 1) + whole[24:]
    of_8_bits = whole[:24] + b"\x08" + whole[25:]
    bad = [(whole[:8], "range"), (taller, "cut off"), (of_8_bits, "no 16-bit"), (b"GIF89a", "no PNG")]
    for file, complaint in bad:
        observation = {"depth": base64.b64encode(file).decode()}
        reply = connection.exchange(json.dumps({"type": "get_action", "observation": observation}), soon())
        assert complaint in json.loads(reply)["message"]
    connection.close()


def test_it_tells_its_health_and_lets_in_only_who_knows_the_token(folder):
    with Agent(folder, "--stop-after", "2", token="secret") as guarded:
        with urllib.request.urlopen(f"http://127.0.0.1:{guarded.port}/healthz", timeout=REPLY_S) as answer:
            assert answer.status == 200
        for wrong in (None, "guess"):
            with pytest.raises(AgentFault, match="token"):
                open_session(Address(url=guarded.url, token=wrong), soon())
        connection, dialect, _ = open_session(Address(url=guarded.url, token="secret"), soon())
        dialect.begin(briefing(), soon())
        assert [dialect.ask(going(), soon()) for _ in range(2)] == [1, 0]
        connection.close()


def test_told_to_end_it_says_goodbye(folder):
    with Agent(folder) as leaving:
        _, dialect = met_by_subprotocol(leaving)
        dialect.begin(briefing(), soon())
        assert dialect.ask(going(), soon()) == Action.FORWARD
        assert leaving.stop() == 0
        with pytest.raises(AgentFault, match="1001 the agent is being stopped"):
            dialect.ask(going(), soon())


def test_it_takes_a_whole_episode(agent):
    policy = WebSocketPolicy(agent.url)
    results = evaluate_vln(REPOSITORY / "datasets" / "sample_r2r.json", env="mock", policy=policy)
    assert results.summary.error_counts == {"agent": 0, "evaluator": 0}
    assert all(episode.actions == [1] * 59 + [0] for episode in results.episodes)
