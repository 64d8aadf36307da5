"""Meeting an agent: connect, find out which language it speaks."""

from __future__ import annotations

import ssl
import time

import msgspec

from proctor.core.errors import AgentFault
from proctor.protocol.codec import JsonCodec, MsgpackCodec
from proctor.protocol.connection import Connection, open_connection
from proctor.protocol.dialects.dialect import Dialect
from proctor.protocol.dialects.proctor import ProctorDialect, check_version
from proctor.protocol.faults import BadFrame, WireFault
from proctor.protocol.messages import MSGPACK, SUBPROTOCOLS, Hello

FIRST_WORD_S = 1.0
"""How long to listen for the first word of an agent that may have none."""


class Address(msgspec.Struct, frozen=True, kw_only=True):
    """Where an agent is, and how to be let in."""

    url: str
    token: str | None = None
    tls: ssl.SSLContext | None = None


def meet(
    address: Address, deadline_s: float, first_word_s: float = FIRST_WORD_S
) -> tuple[Connection, Dialect]:
    """Connect to an agent and find out what it speaks.

    Args:
        address: Where it is.
        deadline_s: For all of it.
        first_word_s: How long to listen for its first word; an agent may have none.

    Raises:
        AgentFault: Nobody is there, or it speaks nothing that we know.
    """
    headers = {"Authorization": f"Bearer {address.token}"} if address.token else {}
    connection = open_connection(
        address.url, deadline_s, subprotocols=SUBPROTOCOLS, headers=headers, tls=address.tls
    )
    codec = MsgpackCodec() if connection.subprotocol == MSGPACK else JsonCodec()
    try:
        first = connection.receive(min(deadline_s, time.monotonic() + first_word_s))
    except AgentFault as fault:
        if fault.kind != WireFault.ACTION_TIMEOUT:
            raise
        return connection, ProctorDialect(connection, codec, None)
    try:
        hello = codec.read_agent(first)
    except BadFrame as error:
        raise AgentFault(WireFault.MISMATCH, f"the agent's first word is no hello: {error}") from None
    if not isinstance(hello, Hello):
        raise AgentFault(WireFault.MISMATCH, "the agent spoke first, but did not say hello")
    check_version(hello)
    if isinstance(codec, JsonCodec):
        codec = JsonCodec(hello.pictures)
    return connection, ProctorDialect(connection, codec, hello)
