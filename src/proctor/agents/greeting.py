"""Meeting an agent: connect, find out which language it speaks.

Nobody has to be asked what they speak:

1. A server that chose one of our subprotocols speaks Proctor.
2. A server that speaks first says by its first word what it is: Proctor's hello, or openpi's metadata.
3. Of those that wait for us, vla-eval's are known by their page `/config`. Nothing is sent over the
   WebSocket to find that out: a server that expects JSON might not survive it.
4. All others speak Proctor's JSON as the specification writes it.
"""

from __future__ import annotations

import contextlib
import ssl
import time
from typing import Any, Literal, TypeAlias

import msgspec

from proctor.agents.codec import Codec, JsonCodec, MsgpackCodec
from proctor.agents.connection import Connection, open_connection
from proctor.agents.dialects.dialect import Dialect
from proctor.agents.dialects.mapping import Mapping
from proctor.agents.dialects.openpi import OpenPiDialect
from proctor.agents.dialects.proctor import ProctorDialect, check_version
from proctor.agents.dialects.vla_eval import VlaEvalDialect
from proctor.agents.faults import BadFrame, Departed, WireFault
from proctor.agents.handshake import MAX_BYTES, diagnose, foreign_protocol, is_hello, read_fields
from proctor.agents.http_page import get_page
from proctor.agents.messages import MSGPACK, SUBPROTOCOLS, Hello
from proctor.core.errors import AgentFault, AgentUnavailable

DialectName: TypeAlias = Literal["auto", "proctor", "openpi", "vla-eval"]
FIRST_WORD_S = 1.0
"""How long to listen for the first word of an agent that may have none."""
PAGE_S = 1.0
"""How long a server may take to answer a plain HTTP request."""


class Address(msgspec.Struct, frozen=True, kw_only=True):
    """Where an agent is, and how to be let in."""

    url: str
    token: str | None = None
    tls: ssl.SSLContext | None = None


def meet(
    address: Address,
    deadline_s: float,
    first_word_s: float = FIRST_WORD_S,
    *,
    dialect: DialectName = "auto",
    mapping: Mapping | None = None,
) -> tuple[Connection, Dialect]:
    """Connect to an agent and find out what it speaks.

    Args:
        address: Where it is.
        deadline_s: A point of `time.monotonic()`, for all of it.
        first_word_s: How long to listen for a first word. 0 for an agent that is known to have none.
        dialect: What it speaks, if that is known.
        mapping: For a dialect that is not Proctor's own.

    Raises:
        AgentUnavailable: Nobody is there, or it takes nobody at present.
        AgentFault: It speaks nothing that we know.
    """
    connection = _connect(address, deadline_s, dialect)
    with contextlib.ExitStack() as on_failure:
        on_failure.callback(connection.drop)
        try:
            found = _acquaint(connection, address, deadline_s, dialect, mapping, first_word_s)
        except AgentFault as fault:
            if isinstance(fault, Departed):
                problem = f"{address.url}: {fault}, before any episode began"
                raise AgentUnavailable(problem, kind=WireFault.UNAVAILABLE) from None
            if fault.kind not in (WireFault.ACTION_TIMEOUT, WireFault.SLOW_REPLY):
                raise
            problem = f"{address.url} did not say in time what it speaks: {fault}"
            raise AgentFault(WireFault.MISMATCH, problem) from None
        on_failure.pop_all()
    return connection, found


def _connect(address: Address, deadline_s: float, dialect: DialectName) -> Connection:
    try:
        return open_connection(
            address.url,
            deadline_s,
            subprotocols=SUBPROTOCOLS if dialect in ("auto", "proctor") else (),
            headers=_headers(address, dialect),
            tls=address.tls,
        )
    except AgentFault as fault:
        if fault.kind != WireFault.UNREACHABLE or time.monotonic() < deadline_s:
            raise
        hint = "if no WebSocket server listens there but, say, an O3DE agent, choose another port"
        raise AgentUnavailable(f"{fault}; {hint}", kind=fault.kind) from None


def _acquaint(
    connection: Connection,
    address: Address,
    deadline_s: float,
    dialect: DialectName,
    mapping: Mapping | None,
    first_word_s: float,
) -> Dialect:
    if dialect == "vla-eval":
        return _vla_eval(connection, mapping, deadline_s)
    listen_s = deadline_s if dialect == "openpi" else min(deadline_s, time.monotonic() + first_word_s)
    first = _first_word(connection, listen_s, deadline_s)
    if first is not None:
        return _by_first_word(connection, first, dialect, mapping)
    if dialect == "openpi":
        problem = f"{address.url} sent no metadata in time: an openpi server speaks first"
        raise AgentFault(WireFault.MISMATCH, problem)
    if dialect == "auto" and connection.subprotocol is None and _has_config(address, deadline_s):
        return _vla_eval(connection, mapping, deadline_s)
    return ProctorDialect(connection, _codec(connection), None)


def _headers(address: Address, dialect: DialectName) -> dict[str, str]:
    scheme = "Api-Key" if dialect == "openpi" else "Bearer"  # as openpi's own client has it
    return {"Authorization": f"{scheme} {address.token}"} if address.token else {}


def _codec(connection: Connection) -> Codec:
    return MsgpackCodec() if connection.subprotocol == MSGPACK else JsonCodec()


def _first_word(connection: Connection, listen_s: float, deadline_s: float) -> str | bytes | None:
    try:
        first = connection.receive(listen_s)
    except AgentFault as fault:
        if fault.kind == WireFault.ACTION_TIMEOUT:
            return None
        if fault.kind in (WireFault.TOO_BIG, WireFault.MALFORMED):
            raise AgentFault(WireFault.MISMATCH, f"the agent's first word is {fault}") from None
        if fault.kind != WireFault.SLOW_REPLY:
            raise
        first = connection.receive(deadline_s)  # it has begun to speak
    if len(first) > MAX_BYTES:
        problem = f"the agent's first word has {len(first)} bytes, a hello has less than {MAX_BYTES}"
        raise AgentFault(WireFault.MISMATCH, problem)
    return first


def _by_first_word(
    connection: Connection, first: str | bytes, dialect: DialectName, mapping: Mapping | None
) -> Dialect:
    if isinstance(first, bytes) and connection.subprotocol != MSGPACK and dialect != "proctor":
        is_metadata = read_fields(first) is not None and not foreign_protocol(first) and not is_hello(first)
        if is_metadata:
            return OpenPiDialect(connection, mapping)
    codec = _codec(connection)
    try:
        hello = codec.read_agent(first)
    except BadFrame as error:
        raise AgentFault(WireFault.MISMATCH, diagnose(first, str(error))) from None
    if not isinstance(hello, Hello):
        raise AgentFault(WireFault.MISMATCH, "the agent spoke first, but did not say hello")
    check_version(hello)
    if dialect == "openpi":
        raise AgentFault(WireFault.MISMATCH, "the agent speaks Proctor, not openpi; choose the dialect auto")
    return ProctorDialect(connection, JsonCodec(hello.pictures) if isinstance(first, str) else codec, hello)


def _vla_eval(connection: Connection, mapping: Mapping | None, deadline_s: float) -> Dialect:
    dialect = VlaEvalDialect(connection, mapping)
    try:
        dialect.greet(deadline_s)
    except AgentFault as fault:
        if fault.kind in (WireFault.WRONG_FRAME, WireFault.WRONG_MESSAGE, WireFault.MALFORMED):
            problem = f"the agent does not answer as a vla-eval server does: {fault}"
            raise AgentFault(WireFault.MISMATCH, problem) from None
        raise
    return dialect


def _has_config(address: Address, deadline_s: float) -> bool:
    """Tell whether a server has vla-eval's page `/config`."""
    until_s = min(deadline_s, time.monotonic() + PAGE_S)
    page = get_page(address.url, "config", until_s, headers=_headers(address, "vla-eval"), tls=address.tls)
    try:
        config = msgspec.json.decode(page or b"", type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return False
    return isinstance(config.get("config"), dict) and isinstance(config.get("applied"), dict)
