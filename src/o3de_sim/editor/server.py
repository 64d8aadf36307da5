"""The agent's server, inside the Editor.

Threads starve there, and nothing may wait: `pump` is called often on the main thread, and returns at once.
"""

from __future__ import annotations

import hmac
import ipaddress
import os
import secrets
import socket
from collections import deque
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

from o3de_sim.constants import (
    DEFAULT_HOST,
    DEFAULT_PORT,
    DEFAULT_TIMEOUT_S,
    MAX_TIMEOUT_S,
    PORT_VARIABLE,
    PROTOCOL,
    TOKEN_FOLDER,
    TOKEN_VARIABLE,
)
from o3de_sim.editor.arguments import shown
from o3de_sim.editor.client import Client
from o3de_sim.errors import Code, O3DEError
from o3de_sim.o3de_api.wire import Message, WireError

if TYPE_CHECKING:
    from o3de_sim.editor.operation_table import Dispatcher

MAX_CONNECTIONS = 8
MAX_QUEUE = 64
REQUEST = {"v", "id", "op", "args", "timeout_s"}


class TokenFile:
    """A new token, in a file that only this user can read. The agent's port is in its name."""

    def __init__(self, port: int) -> None:
        self.token = secrets.token_urlsafe(32)
        folder = Path.home() / TOKEN_FOLDER
        folder.mkdir(mode=0o700, exist_ok=True)
        folder.chmod(0o700)
        self.path = folder / f"token-{port}"
        new = folder / f".token-{port}-{secrets.token_hex(8)}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
        with os.fdopen(os.open(new, flags, 0o600), "w", encoding="ascii") as file:
            file.write(self.token)
        new.replace(self.path)

    def remove(self) -> None:
        """Remove the file, if it is still this one."""
        try:
            if self.path.read_text(encoding="ascii") == self.token:
                self.path.unlink()
        except (OSError, ValueError):  # another agent's, or gone
            return


@dataclass(frozen=True)
class _Request:
    client: Client
    id: int
    op: str
    args: dict[str, Any]
    timeout_s: float


@dataclass(frozen=True)
class _Job:
    request: _Request
    steps: Generator[None, None, Any]
    deadline: float
    first_frame: int


class AgentServer:
    """Serves one client on this machine.

    The host must be a loopback address; port 0 is any free one. Without a token it takes that of the
    environment, else it writes a new one to a file of this user. O3DEError bad_state: the port is taken.
    """

    def __init__(
        self,
        dispatcher: Dispatcher,
        host: str = DEFAULT_HOST,
        port: int = DEFAULT_PORT,
        token: str | None = None,
    ) -> None:
        self._dispatcher = dispatcher
        self._listener = _listen(host, port)
        self.port: int = self._listener.getsockname()[1]
        self._token = token or os.environ.get(TOKEN_VARIABLE) or None
        self._token_file: TokenFile | None = None
        if self._token is None:
            try:
                self._token_file = TokenFile(self.port)
            except OSError:
                self._listener.close()
                raise O3DEError("bad_state", f"no token file can be written below {Path.home()}") from None
            self._token = self._token_file.token
        self._connections: list[Client] = []
        self._queue: deque[_Request] = deque()
        self._job: _Job | None = None
        self._is_pumping = False

    @property
    def token_path(self) -> Path | None:
        """Where clients of this user find the token; None if it was given."""
        return self._token_file.path if self._token_file else None

    @property
    def is_busy(self) -> bool:
        """Whether an operation runs or waits: then it is time to `pump`, though no socket may be ready."""
        return self._job is not None or bool(self._queue)

    def sockets(self) -> list[socket.socket]:
        """Return what becomes readable when there is something to do."""
        return [self._listener, *(client.socket for client in self._connections)]

    def pump(self) -> None:
        """Accept, read, run the operation by at most one step, and write. Within itself it does nothing.

        What goes wrong in an operation beyond its own errors is answered as `internal`, and raised.
        """
        if self._is_pumping:
            return
        self._is_pumping = True
        try:
            for client in self._connections:  # before others are let in: one that has left is not busy
                self._read(client)
            self._accept()
            self._step()
        finally:
            for client in self._connections:
                client.flush()
            self._connections = [client for client in self._connections if client.is_open]
            self._is_pumping = False

    def close(self) -> None:
        """Stop: end the running operation, let the client go, remove the token's file."""
        if self._job is not None:
            self._job.steps.close()
            self._job = None
        for client in self._connections:
            client.close()
        self._connections.clear()
        self._listener.close()
        if self._token_file is not None:
            self._token_file.remove()

    def _accept(self) -> None:
        while True:
            try:
                accepted, _ = self._listener.accept()
            except OSError:  # nobody is there, or is gone already
                return
            client = Client(accepted)
            if len(self._connections) >= MAX_CONNECTIONS:
                client.close()
                continue
            self._connections.append(client)
            if self._is_busy():
                client.leave(_failure(None, "busy", "the agent serves another client"))

    def _is_busy(self) -> bool:
        return any(client.is_known and client.is_open for client in self._connections)

    def _read(self, client: Client) -> None:
        try:
            messages = client.receive()
        except WireError as error:
            client.refuse_bytes(error)
            return
        for message in messages:
            self._take(client, message)

    def _take(self, client: Client, message: Message) -> None:
        found = message.get("id")
        number = (
            found if isinstance(found, int) and not isinstance(found, bool) and abs(found) < 2**53 else None
        )
        if not client.is_known and not self._is_welcome(client, message, number):
            return
        try:
            request = _request(client, message, number)
        except O3DEError as error:
            client.send(_failure(number, error.code, error.message))
            return
        if len(self._queue) >= MAX_QUEUE:
            problem = f"{MAX_QUEUE} requests wait; a client must read its answers before it asks more"
            client.leave(_failure(number, "bad_request", problem))
            return
        self._queue.append(request)

    def _is_welcome(self, client: Client, message: Message, number: int | None) -> bool:
        """Return whether a client's first message is hello with the token; let it go otherwise."""
        args = message.get("args")
        token = args.get("token") if message.get("op") == "hello" and isinstance(args, dict) else None
        expected = str(self._token).encode()
        if not isinstance(token, str) or not hmac.compare_digest(token.encode("utf-8", "replace"), expected):
            problem = "the first request must be hello with the agent's token"
            client.leave(_failure(number, "unauthorised", problem))
            return False
        if self._is_busy():
            client.leave(_failure(number, "busy", "the agent serves another client"))
            return False
        client.know()
        for other in self._connections:
            if other is not client:
                other.leave(_failure(None, "busy", "the agent serves another client"))
        return True

    def _step(self) -> None:
        if self._job is None and not self._start_next():
            return
        job = self._job
        if job is None:
            return
        reply: Message | None = None
        frames = self._dispatcher.frame_count - job.first_frame
        try:
            next(job.steps)
            if monotonic() > job.deadline:
                reply = self._give_up(job, frames)
        except StopIteration as done:
            reply = {"v": PROTOCOL, "id": job.request.id, "ok": True, "result": done.value, "frames": frames}
        except O3DEError as error:
            reply = _failure(job.request.id, error.code, error.message)
        except BaseException:  # is answered first, then raised for the Editor's log
            self._job = None
            _answer(job.request, _internal(job.request))
            raise
        if reply is not None:
            self._job = None
            _answer(job.request, reply)

    def _start_next(self) -> bool:
        while self._queue:
            request = self._queue.popleft()
            if not request.client.is_open:
                continue
            try:
                steps = self._dispatcher.start(request.op, request.args)
            except O3DEError as error:
                _answer(request, _failure(request.id, error.code, error.message))
                return False
            except BaseException:
                _answer(request, _internal(request))
                raise
            self._job = _Job(request, steps, monotonic() + request.timeout_s, self._dispatcher.frame_count)
            return True
        return False

    def _give_up(self, job: _Job, frames: int) -> Message:
        job.steps.close()
        why = self._dispatcher.why_late(frames)
        problem = f"{job.request.op} took longer than {job.request.timeout_s:g} s: it {why}"
        return _failure(job.request.id, "timeout", problem)


def _listen(host: str, port: int) -> socket.socket:
    try:
        address = ipaddress.ip_address("127.0.0.1" if host == "localhost" else host)
    except ValueError:
        raise O3DEError("bad_request", f"{host} is no address; the agent listens on 127.0.0.1") from None
    if not address.is_loopback:
        raise O3DEError("bad_request", f"{host} can be reached from other machines; use 127.0.0.1")
    listener = socket.socket(socket.AF_INET6 if address.version == 6 else socket.AF_INET, socket.SOCK_STREAM)
    try:
        if os.name == "posix":  # elsewhere it lets two listen on one port
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.settimeout(0)
        listener.bind((str(address), port))
        listener.listen(MAX_CONNECTIONS)
    except (OSError, OverflowError) as error:
        listener.close()
        raise O3DEError(
            "bad_state",
            f"cannot listen on {address} port {port}: {error}. Another agent, or a policy's server? "
            f"{PORT_VARIABLE} or the script's argument names another port",
        ) from None
    return listener


def _request(client: Client, message: Message, number: int | None) -> _Request:
    if number is None or message.get("v") != PROTOCOL:
        problem = f'a request has "v": {PROTOCOL} and a whole number as "id"'
        raise O3DEError(
            "bad_request",
            f'{problem}; found "v": {shown(message.get("v"))}, "id": {shown(message.get("id"))}',
        )
    unknown = set(message) - REQUEST
    if unknown:
        raise O3DEError(
            "bad_request", f"a request has no {shown(min(unknown))}; it has {', '.join(sorted(REQUEST))}"
        )
    op, args = message.get("op"), message.get("args", {})
    if not isinstance(op, str) or not isinstance(args, dict):
        problem = f'"op" must be a text and "args" an object; found {shown(op)} and {shown(args)}'
        raise O3DEError("bad_request", problem)
    timeout_s = message.get("timeout_s", DEFAULT_TIMEOUT_S)
    if (
        isinstance(timeout_s, bool)
        or not isinstance(timeout_s, (int, float))
        or not 0 < timeout_s <= MAX_TIMEOUT_S
    ):
        problem = (
            f'"timeout_s" must be a number above 0 and up to {MAX_TIMEOUT_S:g}; found {shown(timeout_s)}'
        )
        raise O3DEError("bad_request", problem)
    return _Request(client, number, op, args, float(timeout_s))


def _failure(number: int | None, code: Code, message: str) -> Message:
    return {"v": PROTOCOL, "id": number, "ok": False, "error": {"code": code, "message": message}}


def _internal(request: _Request) -> Message:
    return _failure(
        request.id,
        "internal",
        f"{shown(request.op)} broke inside the agent; the Editor's log has the traceback",
    )


def _answer(request: _Request, reply: Message) -> None:
    """Send an answer. That of a client that is gone is dropped: what was done stays done."""
    try:
        request.client.send(reply)
    except WireError as error:
        request.client.send(
            _failure(request.id, "az_call_failed", f"the engine's answer cannot be sent: {error}")
        )
