"""Policy servers of others on loopback, by their published wire formats, with the msgpack package."""

import asyncio
import io
import json
import socket
import threading
import time
from contextlib import contextmanager

import msgpack
import msgpack_numpy
import numpy as np
import zmq
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


def roboarena(infer, resets=None, **config):
    """Return a handler as RoboArena's: its configuration first, a text as the reply to a reset."""
    defaults = {
        "image_resolution": (224, 224),
        "needs_wrist_camera": True,
        "n_external_cameras": 1,
        "needs_stereo_camera": False,
        "needs_session_id": False,
        "action_space": "joint_position",
    }

    async def handle(websocket):
        await websocket.send(msgpack.packb({**defaults, **config}, default=pack_openpi))
        async for frame in websocket:
            seen = msgpack.unpackb(frame, object_hook=unpack_openpi)
            try:
                if seen.pop("endpoint") == "reset":
                    if resets is not None:
                        resets.append(seen)
                    await websocket.send("reset successful")
                else:
                    await websocket.send(msgpack.packb(infer(seen), default=pack_openpi))
            except Exception as error:  # noqa: BLE001  as the server has it
                await websocket.send(f"Traceback (most recent call last):\n{type(error).__name__}: {error}\n")
                await websocket.close(1011, "Internal server error. Traceback included in previous frame.")

    return handle


def xpolicylab(infer, heard=None, **reply_changes):
    """Return a handler as XPolicyLab's: what cannot be read is ignored, errors keep the connection open."""
    fields = "message_type message_id evaluation_id action_case_id trial_id repeat_index step sent_at payload"
    replies = {"hello": "hello_ack", "reset": "reset_result", "trial_end": "trial_end_ack"}

    async def handle(websocket):
        async for frame in websocket:
            if isinstance(frame, str):
                continue
            message = msgpack.unpackb(frame, raw=False, object_hook=msgpack_numpy.decode)
            assert message.keys() == set(fields.split())
            assert isinstance(message["evaluation_id"], str)
            if heard is not None:
                heard.append(message)
            type_, payload = replies.get(message["message_type"], "infer_result"), {"ok": True}
            if type_ == "infer_result":
                try:
                    payload = {"actions": infer(message["payload"]["observation"]), "latency_ms": 1.0}
                except Exception as error:  # noqa: BLE001  as the server has it
                    type_, payload = "error", {"code": "infer_failed", "message": str(error), "details": {}}
            reply = {**message, "message_type": type_, "payload": payload, **reply_changes}
            await websocket.send(msgpack.packb(reply, default=msgpack_numpy.encode, use_bin_type=True))

    return handle


CAPABILITIES = {
    "observation_mode": "egocentric",
    "action_type": "discrete",
    "num_panos": None,
    "rgb_shape": [224, 224, 3],
    "depth_shape": [256, 256, 1],
    "action_space": {"type": "discrete", "num_actions": 4, "actions": ["STOP"]},
}


def vln_ce_docker(act, heard=None, **capabilities):
    """Return a handler as VLN-CE-Docker's: the handshake, then an action for all but the last observation."""

    async def handle(websocket):
        async def send(message):
            await websocket.send(msgpack.packb(message, use_bin_type=True))

        hello = {"type": "server_hello", "protocol_version": "1.1", "server_type": "cma"}
        await send({**hello, "capabilities": {**CAPABILITIES, **capabilities}})
        is_agreed = False
        async for frame in websocket:
            message = msgpack.unpackb(frame, raw=False, object_hook=msgpack_numpy.decode)
            if heard is not None:
                heard.append(message)
            if message["type"] == "client_hello":
                is_agreed = message["compatible"] and message["configuration"]["observation_mode"]
                status = "ok" if is_agreed == "egocentric" else "error"
                await send({"type": "handshake_complete", "status": status, "message": None})
                continue
            if not is_agreed:
                raise ValueError("Handshake required before sending messages")
            if message["type"] == "observation" and not message["done"]:
                await send({"type": "action", "action": act(message)})

    return handle


def unpack_gr00t(value):
    if "__ndarray_class__" in value:
        return np.load(io.BytesIO(value["as_npy"]), allow_pickle=False)
    return msgpack_numpy.decode(value)


def modality(keys, deltas=(0,), *, as_text=False):
    content = {"delta_indices": list(deltas), "modality_keys": list(keys)}
    if as_text:  # as older versions have it
        return {"__ModalityConfig_class__": True, "as_json": json.dumps(content)}
    return {"__ModalityConfig__": True, "as_json": content}


class Gr00t:
    """The endpoints of GR00T's inference server: one method each, or bytes to be sent as they are."""

    def __init__(self, act=None, *, token=None, **modalities):
        self.act, self.token, self.heard = act, token, []
        self.modalities = {"language": modality(["task"]), "action": modality(["a"], range(16)), **modalities}

    def reply(self, frame):
        request = msgpack.unpackb(frame, raw=False, object_hook=unpack_gr00t)
        self.heard.append(request)
        if self.token is not None and request.get("api_token") != self.token:
            return {"error": "Unauthorized: Invalid API token"}
        try:
            return getattr(self, request["endpoint"])(**request.get("data", {}))
        except Exception as error:  # noqa: BLE001  as the server has it
            return {"error": str(error)}

    def get_modality_config(self):
        return self.modalities

    def reset(self, options):
        assert options is None
        return {}

    def get_action(self, observation, options):
        assert options is None
        return [self.act(observation), {}]


@contextmanager
def serving_zmq(reply):
    """Serve a ZeroMQ REP socket: `reply` is called with every request; yields the address."""
    context, stop = zmq.Context(), threading.Event()
    socket_ = context.socket(zmq.REP)
    socket_.linger = 0
    socket_.rcvtimeo = 20  # poll() may announce a message that recv() then drops as malformed, and waits on
    port = socket_.bind_to_random_port("tcp://127.0.0.1")

    def run():
        while not stop.is_set():
            try:
                frame = socket_.recv()
            except zmq.Again:
                continue
            found = reply(frame)
            if found is None:  # a server that is gone
                break
            packed = found if isinstance(found, bytes) else msgpack.packb(found, default=msgpack_numpy.encode)
            socket_.send(packed)
        socket_.close()
        context.term()  # the port is free only after this

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield f"gr00t+tcp://127.0.0.1:{port}"
    finally:
        stop.set()
        thread.join(10)
