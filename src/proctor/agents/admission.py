"""Which connections an agent's server admits, and its answers to plain HTTP."""

from __future__ import annotations

import hmac
import logging
import re
import threading
from collections.abc import Sequence
from http import HTTPStatus
from typing import Any, Literal

import msgspec
from websockets.http11 import Request, Response
from websockets.sync.server import ServerConnection

from proctor.agents.messages import VERSION
from proctor.core.errors import UserError
from proctor.core.plain_text import plain

MAX_OPENING = 128  # connections beyond those of sessions: opening handshakes, and requests for /healthz
ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://[^\s/?#@]+|null", re.IGNORECASE)
ANY_ORIGIN = "*"
log = logging.getLogger("proctor.server")


class Admission:
    """Admits evaluators, at most `max_sessions`, one session per thread, and answers plain HTTP.

    A token of None admits everybody. `allow_origins` are web pages that may connect, such as
    `https://app.example.org`; `*` for all. Browsers send the page's origin; other programs send none and are
    admitted.
    """

    def __init__(
        self, *, name: str, token: str | None, max_sessions: int, allow_origins: Sequence[str] = ()
    ) -> None:
        self.state: Literal["loading", "ok", "closing"] = "loading"
        self._origins = _checked_origins(allow_origins)
        self._name, self._token, self._max_sessions = name, token, max_sessions
        self._lock = threading.Lock()
        self._connected: set[threading.Thread] = set()
        self._admitted: set[threading.Thread] = set()

    def sessions(self) -> int:
        """Return how many evaluators are connected."""
        with self._lock:
            self._admitted = {thread for thread in self._admitted if thread.is_alive()}
            return len(self._admitted)

    def connect(self, *arguments: Any, **options: Any) -> ServerConnection:
        """Make a connection, in its own thread; if there are too many, websockets closes the socket."""
        with self._lock:
            self._connected = {thread for thread in self._connected if thread.is_alive()}
            if len(self._connected) >= self._max_sessions + MAX_OPENING:
                raise ConnectionRefusedError("too many connections")
            self._connected.add(threading.current_thread())
        return ServerConnection(*arguments, **options)

    def admit(self, connection: ServerConnection, request: Request) -> Response | None:
        """Return an HTTP answer for connections that are not admitted."""
        path = request.path.partition("?")[0]
        if "websocket" not in ",".join(request.headers.get_all("Upgrade")).lower():
            return self._http_answer(connection, path)
        if not self._may_come_from(request.headers.get_all("Origin")):
            return self._refuse_page(connection, request.headers.get_all("Origin"))
        if self._token is not None and not self._is_token_right(request.headers.get_all("Authorization")):
            answer = connection.respond(
                HTTPStatus.UNAUTHORIZED, "This agent wants a token: Authorization: Bearer TOKEN\n"
            )
            answer.headers["WWW-Authenticate"] = "Bearer"
            return answer
        if self.state != "ok":
            return connection.respond(HTTPStatus.SERVICE_UNAVAILABLE, f"This agent is {self.state}.\n")
        if not self._is_place_free():
            problem = f"All {self._max_sessions} sessions of this agent are taken. Try again later.\n"
            return connection.respond(HTTPStatus.SERVICE_UNAVAILABLE, problem)
        return None

    def _may_come_from(self, origins: list[str]) -> bool:
        return ANY_ORIGIN in self._origins or all(origin.lower() in self._origins for origin in origins)

    def _refuse_page(self, connection: ServerConnection, origins: list[str]) -> Response:
        origin = plain(", ".join(origins)[:200])
        log.warning("refused a connection from a web page of %s; --allow-origin lets it in", origin)
        problem = "Web pages may not use this agent, unless it is served with --allow-origin ORIGIN.\n"
        return connection.respond(HTTPStatus.FORBIDDEN, problem)

    def _is_place_free(self) -> bool:
        """Count this thread as a session for as long as it lives."""
        with self._lock:
            self._admitted = {thread for thread in self._admitted if thread.is_alive()}
            if len(self._admitted) >= self._max_sessions:
                return False
            self._admitted.add(threading.current_thread())
            return True

    def _is_token_right(self, found: list[str]) -> bool:
        expected = f"Bearer {self._token}".encode()
        return len(found) == 1 and hmac.compare_digest(found[0].encode("utf-8", "surrogateescape"), expected)

    def _http_answer(self, connection: ServerConnection, path: str) -> Response:
        if path == "/healthz":
            health = {
                "status": self.state,
                "protocol": "proctor",
                "version": VERSION,
                "name": self._name,
                "sessions": self.sessions(),
                "max_sessions": self._max_sessions,
            }
            status = HTTPStatus.OK if self.state == "ok" else HTTPStatus.SERVICE_UNAVAILABLE
            answer = connection.respond(status, msgspec.json.encode(health).decode())
            del answer.headers["Content-Type"]
            answer.headers["Content-Type"] = "application/json"
            return answer
        if path == "/":
            problem = "This is an agent for Proctor. It speaks WebSocket only; its health is at /healthz.\n"
            answer = connection.respond(HTTPStatus.UPGRADE_REQUIRED, problem)
            answer.headers["Upgrade"] = "websocket"
            return answer
        return connection.respond(
            HTTPStatus.NOT_FOUND, "There is nothing here but /healthz and a WebSocket.\n"
        )


def _checked_origins(origins: Sequence[str]) -> frozenset[str]:
    if isinstance(origins, str):
        raise UserError(f"allow_origins: expected a list of origins, found the text '{origins:.40}'")
    for origin in origins:
        if origin != ANY_ORIGIN and not ORIGIN.fullmatch(origin):
            example = "https://app.example.org or http://localhost:3000, without a path"
            raise UserError(f"allow_origins: expected an origin such as {example}, found '{origin:.80}'")
    return frozenset(origin.lower() for origin in origins)
