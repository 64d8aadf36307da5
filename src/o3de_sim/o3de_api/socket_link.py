"""The engine from another process: one connection to the agent in the Editor, one request at a time."""

from __future__ import annotations

import os
import select
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, get_args

from o3de_sim.constants import DEFAULT_HOST, PORT_VARIABLE, PROTOCOL, TOKEN_FOLDER, TOKEN_VARIABLE, agent_port
from o3de_sim.errors import Code, O3DEError
from o3de_sim.o3de_api.wire import FrameReader, Message, WireError, encode

CHUNK_BYTES = 65536
MARGIN_S = 5.0  # how much longer than the agent this end waits: the agent's own word of a timeout says more
PATIENCE_S = 2.0  # after this long without a greeting it is asked whether a web server listens there
BUSY_S, BUSY_PAUSE_S = 1.0, 0.03
"""How long a busy agent is asked again, and how often: it may not have noticed yet that its client left."""
HOW_TO_START = (
    "Start the O3DE Editor with its agent (`Editor --project-path PROJECT --runpython "
    f".../o3de_sim/editor/start_agent.py --runpythonargs PORT`); {PORT_VARIABLE} says which port both use"
)
STALLED = (
    "It may still be doing it. Likely causes: a dialog is open in the Editor, it is loading or processing "
    "assets, or it lost the focus and stands still (its console: ed_keepEditorActive 1)"
)
WEB_SERVER = (
    "a web server answers there, perhaps that of a policy: 8080 is a busy default. Give the agent another "
    f"port ({PORT_VARIABLE}, or socket_port)"
)


class WebServerFound(Exception):
    """What answered speaks HTTP."""


class SocketConnection:
    """A connection that has been made. All waiting is up to a moment of `time.monotonic`."""

    def __init__(self, connected: socket.socket) -> None:
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket = connected
        self._reader = FrameReader()
        self._waiting: list[Message] = []
        self._has_heard = False

    def is_stale(self) -> bool:
        """Return whether the other end has closed, or said something that nobody asked for."""
        return (
            bool(self._waiting)
            or self._reader.is_amid_frame
            or bool(select.select([self._socket], [], [], 0)[0])
        )

    def send(self, message: Message, ends: float) -> None:
        """Send a message. After a WireError nothing was sent; OSError: broken, or the time is over."""
        frame = encode(message)
        self._wait_until(ends)
        self._socket.sendall(frame)

    def receive(self, ends: float) -> Message:
        """Wait for a message.

        WebServerFound: what came is HTTP. WireError: it is not a frame. OSError: the connection broke or
        ended, or the time is over (TimeoutError).
        """
        while not self._waiting:
            self._wait_until(ends)
            data = self._socket.recv(CHUNK_BYTES)
            if not data:
                raise ConnectionResetError("the other end closed the connection")
            if not self._has_heard and data.startswith(b"HTTP"[: len(data)]):
                raise WebServerFound
            self._has_heard = True
            self._waiting += self._reader.feed(data)
        return self._waiting.pop(0)

    def close(self) -> None:
        """End it."""
        self._socket.close()

    def _wait_until(self, ends: float) -> None:
        remaining_s = ends - time.monotonic()
        if remaining_s <= 0:
            raise TimeoutError
        self._socket.settimeout(remaining_s)


def speaks_http(address: tuple[str, int], timeout_s: float) -> bool:
    """Return whether a request for a page is answered as web servers do. The agent answers otherwise."""
    try:
        with socket.create_connection(address, timeout_s) as probe:
            probe.sendall(b"GET / HTTP/1.1\r\nHost: o3de\r\nConnection: close\r\n\r\n")
            answer = probe.recv(CHUNK_BYTES)
    except OSError:
        return False
    return answer.startswith(b"HTTP") and b"O3DE" not in answer


class SocketLink:
    """A connection that is made when it is needed, and again after it broke. Defaults: see `O3DEAgent`."""

    def __init__(self, host: str | None = None, port: int | None = None, token: str | None = None) -> None:
        self.host = host or DEFAULT_HOST
        self.port = agent_port(port)
        self._token = token
        self._connection: SocketConnection | None = None
        self._info: dict[str, Any] = {}
        self._last_id = 0

    @property
    def is_connected(self) -> bool:
        """Whether there is a connection, as far as is known."""
        return self._connection is not None

    def greet(self, timeout_s: float) -> dict[str, Any]:
        """Return the agent's answer to the handshake, after connecting if need be."""
        self._connected(timeout_s)
        return self._info

    def call(self, op: str, args: dict[str, Any], timeout_s: float) -> Any:
        """Do an operation and return its result.

        A request is never sent twice: where the connection breaks or the time is over, the operation may have
        been done, or may still be running. The next call makes a new connection.
        """
        connection = self._connected(timeout_s)
        with self._closing(op, timeout_s):
            ends = time.monotonic() + timeout_s + MARGIN_S
            self._send(connection, op, args, timeout_s, ends)
            reply = self._receive(connection, ends)
        return self._result(reply)

    def close(self) -> None:
        """End the connection, if there is one."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _connected(self, timeout_s: float) -> SocketConnection:
        """Return the connection, a new one if there is none that can be used."""
        if self._connection is not None and self._connection.is_stale():
            self.close()
        return self._connection or self._connect(timeout_s)

    def _connect(self, timeout_s: float) -> SocketConnection:
        """Connect; if the agent is busy, again for a moment."""
        ends = time.monotonic() + BUSY_S
        while True:
            try:
                return self._connect_once(timeout_s)
            except O3DEError as error:  # noqa: PERF203 - rare
                if error.code != "busy" or time.monotonic() > ends:
                    raise
                time.sleep(BUSY_PAUSE_S)  # it looks once in a frame

    def _connect_once(self, timeout_s: float) -> SocketConnection:
        try:
            connected = socket.create_connection((self.host, self.port), min(5.0, timeout_s))
        except ConnectionRefusedError:
            raise O3DEError("connection", f"nothing listens on {self._place}. {HOW_TO_START}") from None
        except OSError as error:
            problem = error.strerror or "no answer"
            raise O3DEError("connection", f"{self._place} cannot be reached: {problem}") from None
        connection = self._connection = SocketConnection(connected)
        with self._closing("hello", timeout_s):
            token, origin = self._find_token()
            reply = self._hello(connection, token, timeout_s)
        try:
            self._info = self._checked(self._result(reply))
        except O3DEError as error:
            self.close()
            if error.code == "busy":
                problem = "another client is connected; an agent serves one at a time"
                raise O3DEError("busy", f"{self._place}: {problem}") from None
            if error.code != "unauthorised":
                raise
            hint = f"the token from {origin} was refused; perhaps it is that of an Editor that has ended"
            raise O3DEError("unauthorised", f"{self._place}: {hint} ({error.message})") from None
        return connection

    def _hello(self, connection: SocketConnection, token: str, timeout_s: float) -> Message:
        """Introduce ourselves; where no answer comes, find out whether it ever will."""
        ends = time.monotonic() + timeout_s + MARGIN_S
        self._send(connection, "hello", {"token": token}, timeout_s, ends)
        try:
            return self._receive(connection, min(ends, time.monotonic() + PATIENCE_S))
        except TimeoutError:
            if speaks_http((self.host, self.port), PATIENCE_S):
                raise WebServerFound from None
            return self._receive(connection, ends)

    def _checked(self, info: Any) -> dict[str, Any]:
        found = info.get("protocol") if isinstance(info, dict) else info
        if not isinstance(info, dict) or found != PROTOCOL:
            raise O3DEError(
                "connection",
                f"{self._place}: expected an agent of protocol {PROTOCOL}, found {found!r}; both ends must "
                "have the same o3de_sim",
            )
        return info

    def _send(
        self, connection: SocketConnection, op: str, args: dict[str, Any], timeout_s: float, ends: float
    ) -> None:
        self._last_id += 1
        request = {"v": PROTOCOL, "id": self._last_id, "op": op, "args": args, "timeout_s": timeout_s}
        try:
            connection.send(request, ends)
        except WireError as error:
            raise O3DEError("bad_request", f"{op}: {error}") from None

    def _receive(self, connection: SocketConnection, ends: float) -> Message:
        """Wait for the answer to the last request, past late ones to those before it."""
        while True:
            reply = connection.receive(ends)
            answered = reply.get("id")
            if answered == self._last_id or (answered is None and reply.get("ok") is False):
                return reply
            if not isinstance(answered, int) or answered > self._last_id:
                raise WireError(f"an answer to request {answered!r}, which nobody made")

    def _result(self, reply: Message) -> Any:
        if reply.get("ok") is True:
            return reply.get("result")
        error = reply.get("error")
        fault = error if isinstance(error, dict) else {}
        code: Code = fault["code"] if fault.get("code") in get_args(Code) else "internal"
        if code in ("unauthorised", "busy"):  # after which the agent closes
            self.close()
        raise O3DEError(code, str(fault.get("message", reply)))

    @contextmanager
    def _closing(self, op: str, timeout_s: float) -> Iterator[None]:
        """Say what went wrong; end the connection unless its next message is sure to be the next answer."""
        try:
            yield
        except BaseException as error:
            self.close()
            if isinstance(error, TimeoutError):
                problem = f"the Editor did not answer '{op}' within {timeout_s:g} s. {STALLED}"
                raise O3DEError("timeout", f"{self._place}: {problem}") from None
            if isinstance(error, WebServerFound):
                raise O3DEError("connection", f"{self._place}: {WEB_SERVER}") from None
            if isinstance(error, WireError):
                raise O3DEError("connection", f"{self._place}: no talk with an agent: {error}") from None
            if isinstance(error, OSError):
                problem = f"the connection broke at '{op}': {error.strerror or error}. Did the Editor end?"
                raise O3DEError("connection", f"{self._place}: {problem}") from None
            raise

    def _find_token(self) -> tuple[str, str]:
        """Return the token and where it is from."""
        if self._token is not None:
            return self._token, "the arguments"
        if os.environ.get(TOKEN_VARIABLE):
            return os.environ[TOKEN_VARIABLE], TOKEN_VARIABLE
        path = Path.home() / TOKEN_FOLDER / f"token-{self.port}"
        try:
            with path.open("rb") as stream:
                token = stream.read(4096).decode().strip()
        except (OSError, UnicodeDecodeError) as error:
            problem = error.strerror if isinstance(error, OSError) else "not text"
            raise O3DEError(
                "unauthorised",
                f"{self._place}: no token. {TOKEN_VARIABLE} is not set, and {path} cannot be read: {problem}."
                " The agent leaves it there for programs of the same user on the same machine; for others,"
                f" start it with {TOKEN_VARIABLE} set and set it here, too",
            ) from None
        return token, str(path)

    @property
    def _place(self) -> str:
        return f"{self.host}:{self.port}"
