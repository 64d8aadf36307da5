"""Which errors mean that an agent is unavailable at present, not that it failed."""

from __future__ import annotations

import inspect
import socket
from http import HTTPStatus
from typing import Any

from proctor.core.errors import AgentUnavailable, ProctorError

TOO_MANY_REQUESTS = 429
LONGEST_CHAIN = 10
"""Of errors that caused each other: client libraries wrap what the socket raised several times."""


def is_busy_status(status: int) -> bool:
    """Tell whether an HTTP status means that a server cannot answer at present: 429, or one from 500 up."""
    return status == TOO_MANY_REQUESTS or 500 <= status <= 599


def is_unavailability(error: BaseException) -> bool:
    """Tell whether an error means that an agent's server or API cannot be reached or is overloaded.

    That is `AgentUnavailable`, a connection that is refused or breaks, and an HTTP status of 429 or 5xx as
    the errors of urllib, requests, httpx and the clients of model APIs carry it.
    """
    if isinstance(error, ProctorError):
        return isinstance(error, AgentUnavailable)
    found: BaseException | None = error
    for _ in range(LONGEST_CHAIN):
        if found is None or not isinstance(found, Exception):
            return False
        if isinstance(found, ConnectionError | socket.gaierror | AgentUnavailable):
            return True
        if any(is_busy_status(status) for status in _statuses(found)):
            return True
        found = found.__cause__ or (None if found.__suppress_context__ else found.__context__)
    return False


def _statuses(error: Exception) -> list[int]:
    """Return the HTTP statuses of an error, without running its code: a property may raise."""
    holders: list[Any] = [error, inspect.getattr_static(error, "response", None)]
    names = ("status_code", "status", "code")
    values = [inspect.getattr_static(holder, name, None) for holder in holders for name in names]
    return [value for value in values if type(value) in (int, HTTPStatus)]
