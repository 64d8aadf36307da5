"""The agent in a made-up Editor, and clients that speak to it by the byte."""

import select
import socket
from contextlib import contextmanager
from time import monotonic

from o3de_sim.editor.azlmbr_calls import Engine
from o3de_sim.editor.operation_table import Dispatcher
from o3de_sim.editor.server import AgentServer
from o3de_sim.o3de_api.wire import FrameReader, encode
from proctor.o3de.standin.fake_editor import FakeEditor

TOKEN = "the token of the tests"
PATIENCE_S = 20.0


class EditorAgent:
    """A made-up Editor with the dispatcher in it."""

    def __init__(self, project, **editor):
        self.editor = FakeEditor(project, **editor)
        self.asked = []

    @contextmanager
    def running(self):
        """The engine must have known everything that it was asked."""
        with self.editor.installed():
            self.engine = Engine()
            self.dispatcher = Dispatcher(self.engine)
            yield self
            self.engine.close()
        assert self.editor.unknown_calls == []
        assert not self.editor.corrupted

    def call(self, op, **args):
        """Run an operation, with a frame between its steps."""
        self.asked.append(op)
        steps = self.dispatcher.start(op, args)
        for _ in range(20_000):
            try:
                next(steps)
            except StopIteration as done:
                return done.value
            self.editor.frame()
        raise AssertionError(f"{op} does not end")

    def level(self, name="lab"):
        """Open a new level."""
        self.call("editor_tool.create_level", name=name)
        return self

    def serve(self, **options):
        return AgentServer(self.dispatcher, port=0, **{"token": TOKEN, **options})


class Client:
    """A client in the same thread: while it waits, the server is pumped and the Editor, if any, runs."""

    def __init__(self, server, editor=None):
        self.server, self.editor = server, editor
        self.socket = socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE_S)
        self.socket.setblocking(False)
        self.reader = FrameReader()
        self.messages = []
        self.raw = b""
        self.is_closed = False
        self.number = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send_bytes(self, data):
        self.socket.setblocking(True)
        self.socket.sendall(data)
        self.socket.setblocking(False)

    def send(self, op, **args):
        """Send a request; return its number."""
        timeout_s = args.pop("timeout_s", 30)
        self.number += 1
        request = {"v": 1, "id": self.number, "op": op, "args": args, "timeout_s": timeout_s}
        self.send_bytes(encode(request))
        return self.number

    def turn(self):
        """Let everybody do a step, and take what has come."""
        self.server.pump()
        if self.editor is not None:
            self.editor.frame()
        if self.is_closed or not select.select([self.socket], [], [], 0)[0]:
            return
        try:
            data = self.socket.recv(1 << 20)
        except ConnectionResetError:
            data = b""
        self.is_closed = not data
        self.raw += data
        if not self.raw.startswith(b"HTTP"):
            self.messages += self.reader.feed(data)

    def until(self, is_so):
        end = monotonic() + PATIENCE_S
        while not is_so():
            assert monotonic() < end, "it takes too long"
            self.turn()

    def answer(self):
        """Return the next message."""
        self.until(lambda: self.messages or self.is_closed)
        assert self.messages, "the server has closed without a word"
        return self.messages.pop(0)

    def ask(self, op, **args):
        """Return the answer to a request."""
        number = self.send(op, **args)
        answer = self.answer()
        assert answer["id"] == number
        return answer

    def hello(self):
        assert self.ask("hello", token=TOKEN)["ok"]
        return self

    def result(self, op, **args):
        answer = self.ask(op, **args)
        assert answer["ok"], answer
        return answer["result"]

    def ends(self):
        """Wait until the server has closed; return the last message, if there is one."""
        self.until(lambda: self.is_closed)
        return self.messages[-1] if self.messages else None
