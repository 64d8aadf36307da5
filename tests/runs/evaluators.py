"""Evaluators for the tests of policy servers: they send what they are told and read what comes."""

import contextlib

import numpy as np
from websockets.sync.client import connect

from proctor.agents.codec import JsonCodec, MsgpackCodec
from proctor.agents.messages import MSGPACK, SUBPROTOCOLS, GetAction, Hello, ResetEpisode

CODECS = {"json": JsonCodec, "msgpack": MsgpackCodec}


class Caller:
    """An evaluator's end of a session."""

    def __init__(self, socket, session_id="s"):
        self.socket, self.session_id, self.requests = socket, session_id, 0
        self.codec = MsgpackCodec() if socket.subprotocol == MSGPACK else JsonCodec()
        self.hello = self.read() if socket.subprotocol else None

    def send(self, message):
        self.socket.send(self.codec.encode(message))

    def read(self):
        return self.codec.read_agent(self.socket.recv(timeout=30))

    def greet(self, **changes):
        words = {"protocol": "proctor", "version": 1, "session_id": self.session_id, "actions": ["STOP"]}
        self.send(Hello(**(words | changes)))

    def reset(self, *, sensors=None, **changes):
        episode = {
            "episode_id": "ep",
            "task_type": "vln",
            "instruction": {"text": "Go ahead.", "language": "en"},
            "max_steps": 40,
            "seed": 7,
        }
        formats = self.codec.formats(sensors or {})
        self.send(
            ResetEpisode(session_id=self.session_id, episode=episode | changes, observation_format=formats)
        )

    def ask(self, **observation):
        self.requests += 1
        message = GetAction(
            session_id=self.session_id, request_id=self.requests, observation=observation or {"x": 0}
        )
        self.send(message)

    def act(self, **observation):
        self.ask(**observation)
        return self.read()


@contextlib.contextmanager
def call(server, *, session_id="s", codec=None, token=None, **options):
    """Open a session; `codec` narrows what is offered to one, None offers what evaluators offer."""
    offered = list(SUBPROTOCOLS) if codec is None else [CODECS[codec].subprotocol]
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    with connect(
        server.url,
        subprotocols=offered,
        additional_headers=headers,
        compression=None,
        max_size=None,
        **options,
    ) as socket:
        yield Caller(socket, session_id)


def picture(height=4, width=5, seed=0):
    return np.random.default_rng(seed).integers(0, 255, (height, width, 3), dtype=np.uint8)
