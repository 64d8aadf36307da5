"""Connect to an agent and find out which dialect it speaks.

Detection asks all registered dialects, in this order of evidence:

1. the WebSocket subprotocol that the server chose,
2. the first frame of a server that speaks first,
3. a page of its HTTP side. Nothing is sent over the WebSocket to find out: a server that expects JSON might
   not survive it.

Servers that no dialect recognises get the fallback: Proctor's JSON as the specification writes it.
"""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import cached_property
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

import msgspec
from websockets.uri import parse_uri

from proctor.agents.connection import Connection, open_connection
from proctor.agents.dialects.dialect import Dialect
from proctor.agents.messages import AgentGone, WireFault
from proctor.agents.zmtp_connection import open_zmtp_connection
from proctor.core.addresses import DEFAULT_PORTS
from proctor.core.errors import AgentFault, AgentUnavailable, UserError
from proctor.core.plain_text import plain
from proctor.core.registry import load, names

if TYPE_CHECKING:
    from proctor.agents.dialects.mapping import Mapping

AUTO = "auto"
LISTEN_S = 1.0  # how long to wait for the first frame of an agent that may not send one
PAGE_S = 1.0
MAX_PAGE_BYTES = 16 << 10
MAX_FIRST_FRAME_BYTES = 256 << 10  # a hello or metadata take far less
WRAP = (
    "load the model in a class with `reset` and `act`, and serve that with "
    "`proctor serve-policy my_agent:Agent` (docs/dialects.md has an example)"
)


class Address(msgspec.Struct, frozen=True, kw_only=True):
    """Where an agent is, and what lets us in."""

    url: str
    token: str | None = None
    tls: ssl.SSLContext | None = None

    def headers(self, scheme: str = Dialect.authorization_scheme) -> dict[str, str]:
        """Return the headers of a request."""
        return {"Authorization": f"{scheme} {self.token}"} if self.token else {}


class Handshake:
    """What a server showed of itself before the first episode."""

    def __init__(
        self, address: Address, subprotocol: str | None, first_frame: str | bytes | None, deadline_s: float
    ) -> None:
        self.address, self.subprotocol, self.first_frame = address, subprotocol, first_frame
        self._deadline_s = deadline_s

    @cached_property
    def fields(self) -> dict[str, msgspec.Raw] | None:
        """The map in the first frame (JSON or msgpack), its values still encoded; None if it has none."""
        decode: Any = msgspec.json.decode if isinstance(self.first_frame, str) else msgspec.msgpack.decode
        try:
            return decode(self.first_frame or b"", type=dict[str, msgspec.Raw])  # type: ignore[no-any-return]
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            return None

    def has_field(self, name: str, text: str) -> bool:
        """Return whether the first frame has a field with this text."""
        found = (self.fields or {}).get(name)
        return found is not None and bytes(found) in (msgspec.json.encode(text), msgspec.msgpack.encode(text))

    def page(self, name: str) -> bytes | None:
        """Return a page of the server's HTTP side; None if there is none in time."""
        return get_page(self.address, name, min(self._deadline_s, time.monotonic() + PAGE_S))

    @property
    def known_protocol(self) -> str | None:
        """The name of a protocol whose first frame is like no other's, whether a dialect speaks it or not."""
        if self.has_field("type", "server_hello"):
            return "vln-ce-docker"
        keys = (self.fields or {}).keys()
        if "status" in keys:
            return "Positronic"
        return "roboarena" if keys & {"needs_session_id", "action_space"} else None

    def describe(self) -> str:
        """Return in one line what the first frame is and what to do about it."""
        frame, remedy = self.first_frame, f"serve the model with one of: {', '.join(names('dialect'))}"
        if (protocol := self.known_protocol) is not None:
            is_spoken = protocol in names("dialect")
            hint = f"give dialect={protocol}, or auto" if is_spoken else f"Proctor does not; {remedy}"
            return f"the agent speaks the protocol of {protocol}; {hint}"
        if isinstance(frame, str) and "Traceback" in frame:
            return f"the agent failed before it was asked anything: {last_line(frame)}"
        if isinstance(frame, str):
            return f"the agent's first frame is the text '{one_line(frame)}'; {remedy}"
        if frame is None:
            return f"the agent sent no first frame; {remedy}"
        if self.fields is not None:
            keys = one_line(", ".join(sorted(self.fields)) or "no keys")
            return f"the agent's first frame is a msgpack map ({keys}); the dialect auto may recognise it"
        start = frame[:8].hex(" ")
        return f"the agent's first frame is {len(frame)} bytes ({start} …), not a msgpack map; {remedy}"


class AgentSession(NamedTuple):
    """An open connection to an agent, and how to speak on it."""

    connection: Connection
    dialect: Dialect
    handshake: Handshake


def load_dialects(name: str = AUTO) -> tuple[type[Dialect], ...]:
    """Return the dialect of a name, or for `auto` all of them, in the order in which they are asked."""
    if not isinstance(name, str):
        raise UserError(f"dialect: expected a name, found {type(name).__name__}")
    wanted = names("dialect") if name == AUTO else (name,)
    dialects: list[type[Dialect]] = [load("dialect", one) for one in wanted]
    return tuple(sorted(dialects, key=lambda dialect: dialect.is_fallback))


def open_session(
    address: Address,
    deadline_s: float,
    listen_s: float = LISTEN_S,
    *,
    dialects: Sequence[type[Dialect]] | None = None,
    mapping: Mapping | None = None,
) -> AgentSession:
    """Connect to an agent and find out what it speaks, by `deadline_s`, a point of `time.monotonic()`.

    Waits `listen_s` for a first frame; 0 for an agent that is known to send none. If there is only one
    dialect, it is not tested for. Raises AgentUnavailable if nothing answers, AgentFault if it speaks nothing
    that we know.
    """
    dialects = _spoken_at(address.url, dialects or load_dialects())
    connection = _connect(address, deadline_s, dialects)
    try:
        first_frame = _first_frame(connection, deadline_s, listen_s, dialects)
        handshake = Handshake(address, connection.subprotocol, first_frame, deadline_s)
        dialect = _chosen(dialects, handshake).open(connection, handshake, mapping, deadline_s)
    except AgentGone as fault:
        connection.drop()
        problem = f"{address.url}: {fault}, before any episode began"
        raise AgentUnavailable(problem, kind=WireFault.UNAVAILABLE) from None
    except AgentFault as fault:
        connection.drop()
        if fault.kind not in (WireFault.ACTION_TIMEOUT, WireFault.SLOW_REPLY):
            raise
        problem = f"{address.url} did not say in time what it speaks: {fault}"
        raise AgentFault(WireFault.MISMATCH, problem) from None
    except BaseException:
        connection.drop()
        raise
    return AgentSession(connection, dialect, handshake)


def _spoken_at(url: str, dialects: Sequence[type[Dialect]]) -> Sequence[type[Dialect]]:
    scheme = url.partition("://")[0]
    found = [dialect for dialect in dialects if scheme in dialect.schemes]
    if not found:
        wanted = " or ".join(f"{scheme}://" for scheme in dialects[0].schemes)
        raise UserError(f"dialect '{dialects[0].name}' is for addresses of {wanted}, found {url}")
    return found


def _chosen(dialects: Sequence[type[Dialect]], handshake: Handshake) -> type[Dialect]:
    if len(dialects) == 1:
        return dialects[0]
    for dialect in dialects:
        if dialect.recognises(handshake):
            return dialect
    raise AgentFault(WireFault.MISMATCH, handshake.describe())


def _connect(address: Address, deadline_s: float, dialects: Sequence[type[Dialect]]) -> Connection:
    # Those of the fallback first: some servers choose the first one without looking.
    offered = [name for dialect in reversed(dialects) for name in dialect.subprotocols]
    scheme = dialects[0].authorization_scheme if len(dialects) == 1 else Dialect.authorization_scheme
    if "ws" not in dialects[0].schemes:
        return open_zmtp_connection(address.url, deadline_s)
    try:
        return open_connection(
            address.url,
            deadline_s,
            subprotocols=tuple(dict.fromkeys(offered)),
            headers=address.headers(scheme),
            tls=address.tls,
        )
    except AgentFault as fault:
        found = _describe_other_server(address.url) or _describe_chat_api(address, fault)
        if found is not None:
            raise AgentFault(WireFault.MISMATCH, found) from None
        if fault.kind != WireFault.UNREACHABLE or time.monotonic() < deadline_s:
            raise
        hint = "if no WebSocket server listens there but, say, an O3DE agent, choose another port"
        raise AgentUnavailable(f"{fault}; {hint}", kind=fault.kind) from None


def _describe_other_server(url: str) -> str | None:
    """Return what a server without WebSockets is and what to do, None if it shows nothing of itself.

    It is connected to once more: both ZeroMQ and the gRPC of Python speak first.
    """
    parts = urlsplit(url)
    if parts.scheme == "wss":  # neither GR00T's server nor LeRobot's has TLS
        return None
    host, port = parts.hostname, parts.port or DEFAULT_PORTS[parts.scheme]
    with suppress(OSError), socket.create_connection((host, port), timeout=LISTEN_S) as line:
        found = _heard(line, time.monotonic() + LISTEN_S)
        if found[:1] == b"\xff" and found[9:10] == b"\x7f":
            remedy = f"if it is GR00T's, write gr00t+tcp://{host}:{port}; for another one {WRAP}"
            return f"{host}:{port} is a ZeroMQ server: {remedy}"
        if found[3:4] == b"\x04" and found[5:9] == bytes(4):  # a frame of settings, on stream 0
            why = "which Proctor does not unpickle, as that runs code"
            kind = f"a gRPC server, as LeRobot's policy server is. That one exchanges pickled objects, {why}"
            return f"{host}:{port} is {kind}: {WRAP}"
    return None


def _heard(line: socket.socket, until_s: float) -> bytes:
    """Return the first bytes that a server sends; none if it waits."""
    found = b""
    with suppress(TimeoutError, ConnectionError):
        while len(found) < 10 and (left_s := until_s - time.monotonic()) > 0:
            line.settimeout(left_s)
            more = line.recv(64)
            if not more:
                break
            found += more
    return found


def _describe_chat_api(address: Address, fault: AgentFault) -> str | None:
    """Return what to do about the API of a chat model; None if the server is another."""
    if fault.kind != WireFault.MISMATCH:
        return None
    page = get_page(address, "v1/models", time.monotonic() + PAGE_S) or b""
    if not (page.startswith(b"{") and b'"data"' in page):
        return None
    api = address.url.replace("ws", "chat+http", 1)
    return f"{address.url} serves models by OpenAI's API: write {api}/v1 and the option model=NAME"


def _first_frame(
    connection: Connection, deadline_s: float, listen_s: float, dialects: Sequence[type[Dialect]]
) -> str | bytes | None:
    """Return what the agent sends before it was sent anything; None if it waits for us."""
    first_speaker = dialects[0].first_speaker if len(dialects) == 1 else "either"
    if first_speaker == "evaluator":
        return None
    until_s = deadline_s if first_speaker == "agent" else min(deadline_s, time.monotonic() + listen_s)
    try:
        frame = connection.receive(until_s)
    except AgentFault as fault:
        if fault.kind == WireFault.ACTION_TIMEOUT:
            return None
        if fault.kind in (WireFault.TOO_BIG, WireFault.MALFORMED):
            raise AgentFault(WireFault.MISMATCH, f"the agent's first frame is {fault}") from None
        if fault.kind != WireFault.SLOW_REPLY:
            raise
        frame = connection.receive(deadline_s)  # it has begun to arrive
    if len(frame) > MAX_FIRST_FRAME_BYTES:
        problem = f"expected a first frame of less than {MAX_FIRST_FRAME_BYTES} bytes, found {len(frame)}"
        raise AgentFault(WireFault.MISMATCH, problem)
    return frame


def get_page(address: Address, page: str, deadline_s: float) -> bytes | None:
    """Return the body of a page beside a WebSocket address; None if there is none in time."""
    uri = parse_uri(address.url)
    left_s = max(0.01, deadline_s - time.monotonic())
    request = HTTPConnection(uri.host, uri.port, timeout=left_s)
    if uri.secure:
        request = HTTPSConnection(uri.host, uri.port, timeout=left_s, context=address.tls)
    # Timeouts of sockets begin anew with every byte: a server that sends one now and then is cut off.
    watchdog = threading.Timer(left_s, _shut_down, [request])
    watchdog.start()
    try:
        request.request("GET", f"{uri.path.rstrip('/')}/{page}", headers=address.headers())
        response = request.getresponse()
        return response.read(MAX_PAGE_BYTES) if response.status == HTTPStatus.OK else None
    except (OSError, HTTPException):
        return None
    finally:
        watchdog.cancel()
        request.close()


def _shut_down(request: HTTPConnection) -> None:
    with suppress(OSError, AttributeError):  # it may have ended, or have no socket yet
        request.sock.shutdown(socket.SHUT_RDWR)


def last_line(text: str) -> str:
    """Return the last line of a text, such as a traceback: it says what went wrong."""
    lines = [line for line in text[-4000:].splitlines() if line.strip()]
    return one_line(lines[-1]) if lines else "it did not say why"


def one_line(text: str) -> str:
    """Return a text from outside in at most 200 characters that are harmless for a terminal."""
    return plain(" ".join(text[:400].split()))[:200]
