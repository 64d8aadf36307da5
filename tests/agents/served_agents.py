"""Agents behind a real WebSocket on this machine, good ones and bad ones."""

import itertools
import json
import logging
import os
import re
import socket
import threading
from contextlib import contextmanager, suppress

import msgspec
from websockets.sync.server import serve
from websockets.utils import accept_key

from proctor.core.types import Vector3
from proctor.exams.vln.episode import Episode

HELLO = {"type": "hello", "protocol": "proctor", "version": 1, "name": "test", "request_ids": True}
RIGHT = [1, 1, 1, 1, 0]
"""The actions that solve `episode`."""
JSON, MSGPACK = "proctor.v1.json", "proctor.v1.msgpack"


QUIET = logging.getLogger("served_agents")
QUIET.setLevel(logging.CRITICAL + 1)  # what a bad agent's server has to say is of no interest


def episode(name="ep"):
    return Episode(
        episode_id=name,
        goal_position=Vector3(1, 0, 0),
        instruction="Walk one metre.",
        max_steps=10,
        reference_path=[Vector3(0.25 * i, 0, 0) for i in range(5)],
    )


class Conversation:
    """The agent's side of one connection."""

    def __init__(self, connection):
        self.connection = connection
        self.step = 0
        self.message = {}

    def send(self, message):
        binary = self.connection.subprotocol == MSGPACK
        self.connection.send(msgspec.msgpack.encode(message) if binary else json.dumps(message))

    def reply(self, action, **changes):
        ids = {key: self.message[key] for key in ("session_id", "request_id")}
        self.send({"type": "action", **ids, "action": action, **changes})

    def raw(self, data):
        """Send bytes past the WebSocket library."""
        self.connection.socket.sendall(data)


def right(conversation):
    conversation.reply(RIGHT[conversation.step])


class Agent:
    """Answers every `get_action` with `answer(conversation)`, which a test may exchange at any time."""

    def __init__(self, answer=right, hello=HELLO):
        self.answer, self.hello = answer, hello
        self.messages = []
        self.connections = 0

    def __call__(self, connection):
        self.connections += 1
        conversation = Conversation(connection)
        if self.hello is not None:
            conversation.send(self.hello)
        for frame in connection:
            message = msgspec.msgpack.decode(frame) if isinstance(frame, bytes) else json.loads(frame)
            self.messages.append(message)
            if message["type"] == "reset_episode":
                conversation.step = 0
            elif message["type"] == "get_action":
                conversation.message = message
                self.answer(conversation)
                conversation.step += 1

    def told(self, kind):
        return [message for message in self.messages if message["type"] == kind]


@contextmanager
def served(handler, *, port=0, subprotocol=JSON, **options):
    """Serve an agent and yield its port."""
    listener = socket.create_server(("127.0.0.1", port))
    port = listener.getsockname()[1]
    with serve(handler, sock=listener, subprotocols=[subprotocol], logger=QUIET, **options) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield port
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def listening(handle, *, port=0):
    """Accept TCP connections and give each to `handle(socket)` in a thread; yield the port."""
    with socket.create_server(("127.0.0.1", port)) as listener:
        handlers, sockets = [], []

        def accept():
            while True:
                try:
                    client, _ = listener.accept()
                except OSError:
                    return
                sockets.append(client)
                handlers.append(threading.Thread(target=_until_gone, args=(handle, client)))
                handlers[-1].start()

        thread = threading.Thread(target=accept)
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()
            for client in sockets:
                try:
                    client.shutdown(socket.SHUT_RDWR)
                except OSError:
                    client.close()
            for handler in handlers:
                handler.join()


def _until_gone(handle, client):
    with client:
        try:
            handle(client)
        except OSError:
            return


def accept_upgrade(client):
    """Do the opening handshake of a WebSocket by hand."""
    request = b""
    while not request.endswith(b"\r\n\r\n"):
        request += client.recv(4096)
    key = re.search(rb"Sec-WebSocket-Key: (\S+)", request, re.IGNORECASE)[1].decode()
    answer = f"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {accept_key(key)}"
    client.sendall(f"HTTP/1.1 101 Switching Protocols\r\n{answer}\r\n\r\n".encode())


PORTS = itertools.count(12_000 + os.getpid() % 1000 * 20)
"""Below those that the system gives away, and others in each process: tests run side by side."""


def free_port():
    for port in PORTS:
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
    raise AssertionError("there are more ports than that")
