"""Thousands of wrong frames over real sockets, to either side: no crash, no hang, no growth of memory."""

import gc
import logging
import resource
import threading
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect
from websockets.sync.server import serve
from wire_frames import FuzzedFrame, frames

from proctor.agents.codec import JsonCodec, MsgpackCodec
from proctor.agents.messages import JSON, MSGPACK, VERSION, Hello
from proctor.agents.server import PolicyServer
from proctor.agents.websocket_policy import WebSocketPolicy
from proctor.core.errors import AgentFault
from proctor.core.types import EpisodeInfo, Sensor
from proctor.exams.baselines import MockPolicy
from proctor.exams.driving import parse_driving_action

FRAMES_PER_EXAMPLE = 20
FEW, SOME, ROUNDS = 9, 125, 10
"""Examples for each of two sides and two codecs: 720 frames in all, or ten rounds that make 100,000."""
GROWTH_MIB, MORE_OBJECTS = 60, 20_000
PICTURE = np.zeros((4, 6, 3), np.uint8)
EPISODE = EpisodeInfo(
    episode_id="e",
    instruction="go",
    max_steps=9,
    seed=0,
    task="vln",
    sensors={"rgb": Sensor(dtype="uint8", shape=(4, 6, 3))},
)
fuzzed = st.lists(frames(), min_size=FRAMES_PER_EXAMPLE, max_size=FRAMES_PER_EXAMPLE)


def fuzz(examples, round_):
    """Draw the same frames in each run; do not keep or shrink them, sockets make that slow."""
    how = settings(
        max_examples=examples,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    return lambda test: seed(round_)(how(test))


def put(socket, frame: FuzzedFrame) -> None:
    if frame.kind == "raw":
        socket.socket.sendall(frame.data)
    else:
        socket.send(frame.data, text=frame.kind == "text")


def rss_mib() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 2**20


def check_growth(bother, subprotocol) -> None:
    """Bother one side for ten rounds. Hypothesis itself keeps what it drew, but only until a round ends.

    Objects must not become more. The process as a whole may grow a little: its heap gets holes.
    """
    objects, whole_mib = [], []
    for round_ in range(ROUNDS):
        bother(subprotocol, SOME, round_)
        gc.collect()
        objects.append(len(gc.get_objects()))
        whole_mib.append(rss_mib())
    assert objects[-1] - objects[1] < MORE_OBJECTS, objects
    assert whole_mib[-1] - whole_mib[1] < GROWTH_MIB, whole_mib


class FuzzingAgent:
    """Says hello properly, then answers every question with the next frame of a list."""

    def __init__(self, subprotocol):
        self.frames: list[FuzzedFrame] = []
        codec = JsonCodec() if subprotocol == JSON else MsgpackCodec()
        self.hello = codec.encode(Hello(protocol="proctor", version=VERSION))
        self.server = serve(self.answer, "127.0.0.1", 0, subprotocols=[subprotocol], close_timeout=0.02)
        self.url = f"ws://127.0.0.1:{self.server.socket.getsockname()[1]}"

    def answer(self, socket):
        with suppress(ConnectionClosed, OSError):
            socket.send(self.hello)
            for question in socket:
                name = "get_action" if isinstance(question, str) else b"get_action"
                if name in question and self.frames:
                    put(socket, self.frames.pop())

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()


def bother_evaluator(subprotocol, examples, round_=0, *, patience_s=0.02):
    """Return what the evaluator made of the frames: actions and kinds of faults."""
    made = set()
    with FuzzingAgent(subprotocol) as agent:
        policy = WebSocketPolicy(agent.url, action_timeout_s=patience_s, dialect="proctor")

        @fuzz(examples, round_)
        @given(fuzzed)
        def run(drawn):
            agent.frames[:] = drawn
            while agent.frames:
                try:
                    policy.reset(EPISODE)
                    while agent.frames:
                        made.add(parse_driving_action(policy.act({"rgb": PICTURE})).name)
                except AgentFault as fault:
                    made.add(fault.kind)

        run()
        policy.close()
    return made


def bother_agent(subprotocol, examples, round_=0):
    """Send frames to a policy's server, which must still be well afterwards."""
    with PolicyServer(MockPolicy, port=0) as server:

        @fuzz(examples, round_)
        @given(fuzzed)
        def run(drawn):
            left = list(drawn)
            while left:
                with (
                    suppress(ConnectionClosed, OSError),
                    connect(server.url, subprotocols=[subprotocol], close_timeout=0.02) as line,
                ):
                    while left:
                        put(line, left.pop())
                        with suppress(TimeoutError):
                            line.recv(timeout=0)

        run()
        policy = WebSocketPolicy(server.url)
        policy.reset(EPISODE)
        assert 0 <= policy.act({"rgb": PICTURE}) <= 3
        policy.close()


SUBPROTOCOLS = pytest.mark.parametrize("subprotocol", [JSON, MSGPACK])


@SUBPROTOCOLS
def test_frames_to_the_evaluator(subprotocol):
    made = bother_evaluator(subprotocol, FEW, patience_s=0.2)  # a busy machine must not make them all late
    assert {"wrong_message", "malformed_frame", "nested_too_deep", "wrong_frame_kind"} <= made


@SUBPROTOCOLS
def test_frames_to_the_agent(subprotocol):
    bother_agent(subprotocol, FEW)


@pytest.mark.slow
@SUBPROTOCOLS
@pytest.mark.parametrize("bother", [bother_evaluator, bother_agent])
def test_many_frames(bother, subprotocol, caplog):
    caplog.set_level(logging.CRITICAL, "proctor.server")  # pytest would keep thousands of complaints
    check_growth(bother, subprotocol)
