"""Policy servers of others on loopback, by their published wire formats, with the msgpack package."""

import asyncio
import socket
import threading
import time
from contextlib import contextmanager

import msgpack
import numpy as np
from websockets.asyncio.server import serve
from websockets.exceptions import ConnectionClosed

from proctor.core.types import DialectDefaults, EpisodeInfo
from proctor.exams.pick_place import exam as pick_place
from proctor.exams.vln import exam as vln


def soon(seconds=10.0):
    return time.monotonic() + seconds


DEFAULTS = {"vln": vln.DIALECTS, "pick_and_place": pick_place.DIALECTS}


def briefing(task="vln", instruction="go left", **more):
    dialects = DEFAULTS.get(task, DialectDefaults())
    return EpisodeInfo(
        episode_id="e1", instruction=instruction, max_steps=9, seed=7, task=task, dialects=dialects, **more
    )


@contextmanager
def serving(handler, **options):
    """Serve WebSockets; yields the address."""
    ready, loop = threading.Event(), asyncio.new_event_loop()
    found = {}

    async def run():
        found["stop"] = asyncio.Event()
        async with serve(handler, "127.0.0.1", 0, compression=None, max_size=None, **options) as server:
            found["url"] = f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}"
            ready.set()
            await found["stop"].wait()

    thread = threading.Thread(target=lambda: loop.run_until_complete(run()))
    thread.start()
    assert ready.wait(10)
    try:
        yield found["url"]
    finally:
        loop.call_soon_threadsafe(found["stop"].set)
        thread.join(10)
        loop.close()


@contextmanager
def listening(talk):
    """Serve plain TCP: `talk` is called with every connection, which stays open. Yields the address."""
    server, lines = socket.create_server(("127.0.0.1", 0)), []

    def accept():
        while True:
            try:
                line, _ = server.accept()
            except OSError:
                return
            lines.append(line)
            talk(line)

    thread = threading.Thread(target=accept)
    thread.start()
    try:
        yield f"ws://127.0.0.1:{server.getsockname()[1]}"
    finally:
        server.shutdown(socket.SHUT_RDWR)
        server.close()
        thread.join(10)
        for line in lines:
            line.close()


def page(body, name="/config", status=200):
    """Answer plain HTTP requests for a page, as a `process_request`; others get 404, WebSockets pass."""

    def process(connection, request):
        if "Upgrade" in request.headers:
            return None
        return connection.respond(status, body) if request.path == name else connection.respond(404, "")

    return process


CONFIG_PAGE = page('{"applied": {}, "config": {"max_batch_size": 1, "max_wait_time": 0.01}}\n')


def pack_openpi(value):
    if isinstance(value, np.ndarray):
        return {
            b"__ndarray__": True,
            b"data": value.tobytes(),
            b"dtype": value.dtype.str,
            b"shape": value.shape,
        }
    if isinstance(value, np.generic):
        return {b"__npgeneric__": True, b"data": value.item(), b"dtype": value.dtype.str}
    return value


def unpack_openpi(value):
    if b"__ndarray__" in value:
        return np.ndarray(buffer=value[b"data"], dtype=np.dtype(value[b"dtype"]), shape=value[b"shape"])
    return value


def openpi(infer, metadata=None):
    """Return a handler as openpi's: metadata first, a text frame and 1011 when `infer` raises."""

    async def handle(websocket):
        await websocket.send(msgpack.packb(metadata or {}, default=pack_openpi))
        while True:
            try:
                seen = msgpack.unpackb(await websocket.recv(), object_hook=unpack_openpi)
                reply = {**infer(seen), "server_timing": {"infer_ms": 1.0}}
                await websocket.send(msgpack.packb(reply, default=pack_openpi))
            except ConnectionClosed:
                break
            except Exception as error:  # noqa: BLE001  as the server has it
                text = f"Traceback (most recent call last):\n  File ...\n{type(error).__name__}: {error}\n"
                await websocket.send(text)
                await websocket.close(1011, "Internal server error. Traceback included in previous frame.")
                break

    return handle


def pack_vla_eval(value):
    if isinstance(value, np.ndarray):
        return {
            "__ndarray__": True,
            "data": value.tobytes(),
            "dtype": value.dtype.str,
            "shape": list(value.shape),
        }
    return value


def unpack_vla_eval(value):
    if "__ndarray__" not in value:
        return value
    assert np.dtype(value["dtype"]).kind in "biuf"
    return np.frombuffer(value["data"], dtype=value["dtype"]).reshape(value["shape"]).copy()


def vla_eval(predict, heard=None, *, version=1, seq_offset=0, hello_type="hello"):
    """Return a handler as vla-eval's: errors keep the connection open."""

    async def handle(websocket):
        async def send(type_, payload, seq):
            message = {"type": type_, "payload": payload, "seq": seq, "timestamp": 1.0}
            await websocket.send(msgpack.packb(message, default=pack_vla_eval, use_bin_type=True))

        async for frame in websocket:
            message = msgpack.unpackb(frame, object_hook=unpack_vla_eval, raw=False)
            assert message.keys() == {"type", "payload", "seq", "timestamp"}
            if heard is not None:
                heard.append(message)
            seq = message["seq"]
            if message["type"] == "hello":
                hello = {"harness_version": "0.4", "protocol_version": version, "model_server": "M"}
                await send(hello_type, hello, seq)
            elif message["type"] == "observation":
                try:
                    await send("action", predict(message["payload"]), seq + seq_offset)
                except Exception as error:  # noqa: BLE001  as the server has it
                    await send("error", {"error": f"observation_failed: {error}"}, seq)

    return handle
