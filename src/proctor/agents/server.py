"""Serve a policy over the network: one WebSocket connection is one session with a policy of its own.

    from proctor.agents.server import serve

    serve(MyPolicy, port=8080)

`docs/protocol.md` shows what goes over the wire.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import itertools
import logging
import queue
import signal
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Self

from websockets.sync.server import Server, ServerConnection
from websockets.sync.server import serve as serve_websockets
from websockets.typing import Subprotocol

from proctor.agents.admission import Admission
from proctor.agents.codec import Pictures
from proctor.agents.messages import JSON, MSGPACK, VERSION, Hello
from proctor.agents.policy_source import Batcher, PolicySource, Source, act_batch_of
from proctor.agents.session import Session, log
from proctor.core.addresses import checked_token
from proctor.core.errors import UserError
from proctor.core.interfaces import Policy

MAX_FRAME_BYTES = 64 << 20
OPEN_TIMEOUT_S = 10.0
CLOSE_TIMEOUT_S = 1.0
SEND_TIMEOUT_S = 60.0  # how long an evaluator may take to read an answer
PING_INTERVAL_S, PING_TIMEOUT_S = 20.0, 60.0
LONGEST_BATCH_WAIT_S = 60.0
GRACE_S = 5.0  # how long a policy may go on with an action when the server ends
EVERYWHERE = ("", "0.0.0.0", "::")  # noqa: S104  (these are what to look out for)


class PolicyServer:
    """A policy's server that runs beside you, for tests and notebooks.

        with PolicyServer(MyPolicy, port=0) as server:
            print(server.url)

    Sessions run in threads, each with a policy of its own, so that state in `self` is never shared. What
    all of them share (a model's weights) belongs to the class or to a function around it. The first policy
    is made when the server starts, so that it fails early; meanwhile, evaluators are told to wait.

    A model that is faster in batches gets them if the class has an `act_batch` and `max_batch` is above 1:

        class MyPolicy(Policy):
            model = load_model()

            def reset(self, episode_info):
                self.instruction = episode_info.instruction

            def act(self, observation):
                return self.act_batch([self], [observation])[0]

            @classmethod
            def act_batch(cls, policies, observations):
                images = np.stack([observation["rgb"] for observation in observations])
                return cls.model(images, [policy.instruction for policy in policies])

    Args:
        policy: The policy's class, or a function that makes one; or a policy, for one session at a time.
            Those of sessions are closed with them, a single one when the server ends.
        host: The address to listen at: "127.0.0.1" is for this machine only, "0.0.0.0" for all others.
        port: 0 for any that is free.
        token: What an evaluator must send.
        certificate: A PEM file, for `wss://`.
        key: Its private key, a PEM file.
        max_sessions: How many evaluators' workers at a time; others are told to come back later.
        max_batch: How many sessions are answered by one call of `act_batch`.
        batch_wait_s: How long the first of a batch waits for others.
        name: What the agent calls itself; its class's name if missing.
        pictures: How evaluators that speak JSON should send colour: "png" is lossless, "jpeg" smaller.
        allow_origins: Web pages that may connect, such as "https://app.example.org"; "*" for all. Without it
            none may: else any page in a browser on this machine could use the policy.
    """

    def __init__(  # noqa: PLR0913  (all but the first by keyword)
        self,
        policy: Source,
        *,
        host: str = "127.0.0.1",
        port: int = 8080,
        token: str | None = None,
        certificate: Path | str | None = None,
        key: Path | str | None = None,
        max_sessions: int = 64,
        max_batch: int = 1,
        batch_wait_s: float = 0.005,
        name: str = "",
        pictures: Pictures = "png",
        allow_origins: Sequence[str] = (),
    ) -> None:
        if not 0 <= port <= 65535:
            raise UserError(f"port: expected a number from 0 to 65535, found {port}")
        _check_number("max_sessions", max_sessions, 1)
        _check_number("max_batch", max_batch, 1)
        if not 0 <= batch_wait_s <= LONGEST_BATCH_WAIT_S:
            most = f"{LONGEST_BATCH_WAIT_S:g}"
            raise UserError(f"batch_wait_s: expected seconds from 0 to {most}, found {batch_wait_s}")
        if token is not None:
            checked_token("token", token)
        self._host, self._port = host, port
        self._tls = _tls(certificate, key)
        self._max_batch, self._batch_wait_s = max_batch, batch_wait_s
        self._policies = PolicySource(policy)
        self._name = name or self._policies.name
        self._hello = Hello(
            protocol="proctor", version=VERSION, name=self._name, pictures=pictures, request_ids=True
        )
        self._admission = Admission(
            name=self._name,
            token=token,
            max_sessions=1 if isinstance(policy, Policy) else max_sessions,
            allow_origins=allow_origins,
        )
        self._server: Server | None = None
        self._batcher: Batcher | None = None
        self._sessions: set[Session] = set()
        self._numbers = itertools.count(1)
        self._changed = threading.Condition()
        self._ends: queue.SimpleQueue[None] = queue.SimpleQueue()  # a signal's handler may put into it

    @property
    def url(self) -> str:
        """The address for evaluators."""
        return f"{'ws' if self._tls is None else 'wss'}://{host_of_url(self._host)}:{self.port}"

    @property
    def port(self) -> int:
        """The port it listens at."""
        return self._port

    def start(self) -> None:
        """Listen, and make the first policy."""
        try:
            self._server = server = listen(
                self._handle,
                (self._host, self._port),
                self._admission.connect,
                ssl=self._tls,
                process_request=self._admission.admit,
                select_subprotocol=_best_subprotocol,
                ping_timeout=PING_TIMEOUT_S,
                max_size=MAX_FRAME_BYTES,
                max_queue=1,  # one frame is asked at a time
            )
            self._port = server.socket.getsockname()[1]
            _in_background(server.serve_forever)  # its threads are daemons then, too
            first = self._policies.prepare()
            if self._max_batch > 1:
                self._batcher = Batcher(
                    act_batch_of(first),
                    max_batch=self._max_batch,
                    wait_s=self._batch_wait_s,
                    sessions=self._admission.sessions,
                )
        except BaseException:
            self.shutdown()
            raise
        self._admission.state = "ok"

    def wait(self) -> None:
        """Return after a call of `stop` or `shutdown`."""
        self._ends.get()

    def stop(self) -> None:
        """Let `wait` return. May be called from a signal's handler."""
        self._ends.put(None)

    def shutdown(self, grace_s: float = GRACE_S) -> None:
        """End all sessions and close the policies. May be called twice.

        For `grace_s` policies may finish an action, which is still sent, and close.
        """
        with self._changed:
            self._admission.state = "closing"
            sessions = list(self._sessions)
            server, self._server = self._server, None
        for session in sessions:
            _in_background(session.end)
        with self._changed:
            self._changed.wait_for(lambda: not self._sessions, grace_s)
            stuck = list(self._sessions)
        for session in stuck:
            log.warning("%s: its policy did not finish within %g s", session.label, grace_s)
        last = [_in_background(session.close_connection) for session in stuck]
        if server is not None:
            closing = _in_background(server.shutdown)
            last += [] if stuck else [closing]  # it would wait for the sessions that are stuck
        for thread in last:
            thread.join(CLOSE_TIMEOUT_S + 1)
        if self._batcher is not None:
            self._batcher.close()
        if not stuck:
            closing = _in_background(self._policies.close)
            closing.join(grace_s)
            if closing.is_alive():
                log.warning("the policy could not be closed within %g s", grace_s)
        self.stop()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()

    def _handle(self, connection: ServerConnection) -> None:
        """Hold one session, in its own thread."""
        try:
            peer = connection.remote_address[0]
            connection.socket.settimeout(SEND_TIMEOUT_S)
        except OSError:  # it has gone again
            return
        session = Session(
            connection,
            hello=self._hello,
            lend=self._policies.lend,
            act=self._batcher.act if self._batcher else lambda policy, observation: policy.act(observation),
            label=f"session {next(self._numbers)}",
        )
        with self._registered(session):
            log.info("%s: begins, from %s", session.label, peer)
            session.run()

    @contextlib.contextmanager
    def _registered(self, session: Session) -> Iterator[None]:
        with self._changed:
            self._sessions.add(session)
            is_too_late = self._admission.state != "ok"
        try:
            if is_too_late:
                session.end()
            yield
        finally:
            log.info("%s: ends", session.label)
            with self._changed:
                self._sessions.discard(session)
                self._changed.notify_all()


def serve(policy: Source, *, on_ready: Callable[[PolicyServer], None] | None = None, **options: Any) -> None:
    """Serve a policy until SIGINT, SIGTERM or `shutdown`; the options are those of `PolicyServer`.

    Actions that are being chosen are still sent; a second signal does not wait for them. `on_ready` is called
    when the server can be reached.
    """
    server = PolicyServer(policy, **options)
    with server, _stopped_by_signals(server):
        if on_ready is not None:
            on_ready(server)
        server.wait()


def _best_subprotocol(connection: ServerConnection, offered: Sequence[Subprotocol]) -> Subprotocol | None:
    del connection
    return next((Subprotocol(known) for known in (MSGPACK, JSON) if known in offered), None)


def _tls(certificate: Path | str | None, key: Path | str | None) -> ssl.SSLContext | None:
    if certificate is None and key is None:
        return None
    if certificate is None or key is None:
        raise UserError("TLS needs both a certificate and its key")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(certificate, key)
    except OSError as error:  # ssl.SSLError is one, too
        problem = f"{error.strerror or error}; expected two PEM files that belong together"
        raise UserError(f"certificate {certificate} and key {key}: {problem}") from None
    return context


def host_of_url(host: str) -> str:
    """Return the host of the address by which others reach a server that listens at `host`."""
    name = socket.gethostname() if host in EVERYWHERE else host
    return f"[{name}]" if ":" in name else name


def listen(
    handle: Callable[[ServerConnection], None],
    address: tuple[str, int],
    connect: Callable[..., ServerConnection],
    **options: Any,
) -> Server:
    """Listen for WebSockets at a host and port, or raise UserError."""
    host, port = address
    try:
        return serve_websockets(
            handle,
            host,
            port,
            family=socket.AF_INET6 if ":" in host else socket.AF_INET,
            create_connection=connect,  # type: ignore[arg-type] # any callable will do
            compression=None,  # the network is faster than deflate, and pictures are compressed already
            open_timeout=OPEN_TIMEOUT_S,
            close_timeout=CLOSE_TIMEOUT_S,
            ping_interval=PING_INTERVAL_S,
            logger=_websockets_log(),
            **options,
        )
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            problem = f"port {port} on {host} is taken"
            remedy = "end the program that listens there, or choose another port"
            raise UserError(f"{problem}: {remedy}") from None
        problem = f"cannot listen on {host}, port {port}: {error.strerror or error}"
        raise UserError(problem) from None


def _check_number(name: str, value: float, least: int) -> None:
    if not value >= least:
        raise UserError(f"{name}: expected a number from {least} up, found {value}")


@functools.cache
def _websockets_log() -> logging.Logger:
    """Return a log for errors of handlers. Failed handshakes are left out: port scanners make many."""
    found = log.getChild("websockets")
    found.setLevel(logging.ERROR)
    found.addFilter(lambda record: record.msg != "opening handshake failed")
    return found


def _in_background(job: Callable[[], None]) -> threading.Thread:
    thread = threading.Thread(target=job, daemon=True)
    thread.start()
    return thread


@contextlib.contextmanager
def _stopped_by_signals(server: PolicyServer) -> Iterator[None]:
    """Stop the server on the first signal; restore the previous handlers for the next one."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def on_signal(number: int, frame: object) -> None:
        del number, frame
        server.stop()

    before = {number: signal.signal(number, on_signal) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
