"""Clients and servers on loopback, each in a process of its own: Proctor's, and one written as openpi's.

A client asks its server once whenever it is told to, and says how long that took: from the arrays of an
observation to the action. The server makes arrays again of what it got. All processes end with the
benchmark, however that ends.
"""

import asyncio
import functools
import multiprocessing
import os
import threading
import time
from multiprocessing.connection import Connection as Pipe

import msgpack
import numpy as np
import websockets.asyncio.server
import websockets.sync.client

from proctor.agents.codec import Codec, JsonCodec, MsgpackCodec
from proctor.agents.connection import open_connection
from proctor.agents.dialects.proctor import ProctorDialect
from proctor.agents.server import PolicyServer
from proctor.core.interfaces import Policy
from proctor.core.types import EpisodeInfo, Observation, Sensor

DEADLINE_S = 30.0
INSTRUCTION = "Walk through the door and stop in front of the sofa."
SENSORS = {
    "rgb": Sensor(dtype="uint8", shape=(480, 640, 3)),
    "depth": Sensor(dtype="uint16", shape=(480, 640)),
}
PROCESSES = multiprocessing.get_context("spawn")


class ListCodec(JsonCodec):
    """JSON in which every array is a nested list."""

    def _encoding(self, dtype, shape):
        return "list"


CODECS = {"msgpack": MsgpackCodec, "png": JsonCodec, "jpeg": lambda: JsonCodec("jpeg"), "list": ListCodec}


class Pair:
    """A client and its server. `kind` is one of `CODECS`, or `openpi`."""

    def __init__(self, kind: str, observations: list[Observation]) -> None:
        self.processes = []
        self.server = self.start(_serve, kind)
        self.client = self.start(_ask, kind, self.answer_of(self.server), observations)

    def start(self, target, *args) -> Pipe:
        ours, theirs = PROCESSES.Pipe()
        process = PROCESSES.Process(target=_until_orphaned, args=(target, theirs, *args), daemon=True)
        process.start()
        theirs.close()
        self.processes.append(process)
        return ours

    def step_s(self, index: int) -> float:
        """Let the client send an observation, and return the time until it had the action."""
        self.client.send(index)
        return self.answer_of(self.client)

    def answer_of(self, pipe: Pipe):
        if not pipe.poll(DEADLINE_S):
            raise TimeoutError(f"no answer within {DEADLINE_S} s")
        return pipe.recv()

    def close(self) -> None:
        for process in self.processes:
            process.kill()
            process.join()


def _until_orphaned(target, pipe: Pipe, *args) -> None:
    """Run a target that ends with the process that started it, even if that is killed."""
    parent = multiprocessing.parent_process()
    threading.Thread(target=lambda: (parent.join(), os._exit(1)), daemon=True).start()
    target(pipe, *args)


def _serve(pipe: Pipe, kind: str) -> None:
    if kind == "openpi":
        asyncio.run(_serve_openpi(pipe))
    else:
        _serve_proctor(pipe)


def _ask(pipe: Pipe, kind: str, port: int, observations: list[Observation]) -> None:
    url = f"ws://127.0.0.1:{port}"
    ask = _openpi_client(url) if kind == "openpi" else _proctor_client(url, CODECS[kind]())
    while True:
        observation = observations[pipe.recv() % len(observations)]
        start_s = time.perf_counter()
        ask(observation)
        pipe.send(time.perf_counter() - start_s)


def _check(observation: Observation) -> None:
    for name, due in SENSORS.items():
        found = Sensor(dtype=observation[name].dtype.name, shape=observation[name].shape)
        if found != due:
            raise ValueError(f"{name}: expected {due}, found {found}")


# Proctor's


def _proctor_client(url: str, codec: Codec):
    connection = open_connection(url, time.monotonic() + DEADLINE_S, subprotocols=(codec.subprotocol,))
    hello = codec.read_agent(connection.receive(time.monotonic() + DEADLINE_S))
    dialect = ProctorDialect(connection, codec, hello)
    info = EpisodeInfo(episode_id="0", instruction=INSTRUCTION, max_steps=500, seed=0, sensors=SENSORS)
    dialect.begin(info, time.monotonic() + DEADLINE_S)
    return lambda observation: dialect.ask(observation, time.monotonic() + DEADLINE_S)


class _Looks(Policy):
    """Looks at what it is shown, and goes on."""

    def act(self, observation: Observation) -> str:
        _check(observation)
        return "FORWARD"


def _serve_proctor(pipe: Pipe) -> None:
    with PolicyServer(_Looks, port=0) as server:
        pipe.send(server.port)
        server.wait()


# openpi's, from its published wire format: msgpack maps with binary keys for arrays, the server speaks
# first with its metadata, and answers each observation with a chunk of actions.


def _pack_array(value):
    if isinstance(value, np.ndarray):
        return {
            b"__ndarray__": True,
            b"data": value.tobytes(),
            b"dtype": value.dtype.str,
            b"shape": value.shape,
        }
    return value


def _unpack_array(value):
    if b"__ndarray__" in value:
        return np.ndarray(buffer=value[b"data"], dtype=np.dtype(value[b"dtype"]), shape=value[b"shape"])
    return value


_packer = functools.partial(msgpack.Packer, default=_pack_array)
_unpack = functools.partial(msgpack.unpackb, object_hook=_unpack_array)


def _openpi_client(url: str):
    packer, context = _packer(), websockets.sync.client.connect(url, compression=None, max_size=None)
    connection = context.__enter__()  # for as long as this process lives
    _unpack(connection.recv(timeout=DEADLINE_S))

    def ask(observation: Observation):
        connection.send(packer.pack({**observation, "prompt": INSTRUCTION}))
        return _unpack(connection.recv(timeout=DEADLINE_S))["actions"]

    return ask


async def _serve_openpi(pipe: Pipe) -> None:
    async def handle(connection) -> None:
        packer = _packer()
        await connection.send(packer.pack({}))
        async for frame in connection:
            start_s = time.monotonic()
            _check(_unpack(frame))
            timing = {"infer_ms": 1e3 * (time.monotonic() - start_s)}
            await connection.send(packer.pack({"actions": np.zeros((1, 1)), "server_timing": timing}))

    async with websockets.asyncio.server.serve(
        handle, "127.0.0.1", 0, compression=None, max_size=None
    ) as server:
        pipe.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()
