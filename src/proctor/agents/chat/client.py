"""One HTTP exchange with a model's API: a deadline for the whole reply, a limit of its size, plain errors."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from email.utils import parsedate_to_datetime
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any, NamedTuple

import httpx

from proctor.agents.chat.faults import ChatFault, Unusable

MAX_REPLY_BYTES = 4 * 2**20
CONNECT_TIMEOUT_S = 10.0
TRANSIENT_STATUSES = (408, 409, 425, 429)
"""And all from 500 up."""


class Answer(NamedTuple):
    """What a server has sent."""

    status: int
    content: bytes
    retry_after_s: float | None
    is_html: bool


class NoAnswer(Exception):
    """Nothing came back: no connection, a broken one, or silence."""


class HttpClient:
    """Sends requests over one connection, which is kept."""

    def __init__(self) -> None:
        self._socket: socket.socket | None = None
        self._client = httpx.Client(
            limits=httpx.Limits(max_connections=1),
            follow_redirects=False,  # a key must not go elsewhere
            headers={"accept-encoding": "identity", "user-agent": "proctor"},
            # Each request stands alone. A cookie that is not ASCII would break the next one.
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
        )

    def send(
        self, method: str, url: str, headers: dict[str, str], content: bytes | None, timeout_s: float
    ) -> Answer:
        """Send a request and read the whole answer.

        Raises:
            NoAnswer: Nothing came, or the connection broke.
            Unusable: An answer with a good status began, but did not end in time, or is too large.
        """
        timeout = httpx.Timeout(timeout_s, connect=min(CONNECT_TIMEOUT_S, timeout_s))
        request = self._client.build_request(
            method,
            url,
            headers={**headers, "content-type": "application/json"},
            content=content,
            timeout=timeout,
            extensions={"trace": self._trace},
        )
        response: httpx.Response | None = None
        received = b""
        with self._deadline(timeout_s) as is_over:
            try:
                response = self._client.send(request, stream=True)
                received = self._read(response)
            except httpx.InvalidURL as error:  # httpx reads where a redirect leads, though it does not follow
                raise NoAnswer(f"a redirect to an address that is not valid ({error})") from None
            except httpx.HTTPError as error:
                is_late = is_over.is_set() or isinstance(error, httpx.TimeoutException)
                if not is_late or response is None:
                    raise NoAnswer(_described(error, timeout_s, is_late=is_late)) from None
                is_over.set()
            finally:
                if response is not None:
                    response.close()
        if is_over.is_set() and response.is_success:  # a cut connection may look like the end of the reply
            problem = f"the reply did not end within {timeout_s:g} s"
            raise Unusable(ChatFault.TIMEOUT, problem, "(a reply without an end)")
        return Answer(
            response.status_code,
            received,
            retry_after_s(response.headers.get("retry-after")),
            "html" in response.headers.get("content-type", ""),
        )

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def _read(self, response: httpx.Response) -> bytes:
        content = bytearray()
        for piece in response.iter_raw():
            content += piece
            if len(content) > MAX_REPLY_BYTES:
                if not response.is_success:
                    break  # the status says enough: no model has said this
                problem = f"the reply is larger than {MAX_REPLY_BYTES // 2**20} MiB"
                raise Unusable(ChatFault.TOO_LARGE, problem, "(a reply that was too large)")
        return bytes(content)

    def _trace(self, event: str, info: dict[str, Any]) -> None:
        """Remember the socket, by which the deadline ends a read."""
        if event in ("connection.connect_tcp.complete", "connection.start_tls.complete"):
            self._socket = info["return_value"].get_extra_info("socket")

    @contextmanager
    def _deadline(self, timeout_s: float) -> Iterator[threading.Event]:
        """Cut the connection when the time for a whole exchange is over: httpx only limits single reads."""
        is_over = threading.Event()

        def cut() -> None:
            is_over.set()
            if self._socket is not None:
                with suppress(OSError):  # it is closed
                    # Of the base class: an SSLSocket would wait for the other side.
                    socket.socket.shutdown(self._socket, socket.SHUT_RDWR)

        timer = threading.Timer(timeout_s, cut)
        timer.daemon = True
        timer.start()
        try:
            yield is_over
        finally:
            timer.cancel()


def _described(error: httpx.HTTPError, timeout_s: float, *, is_late: bool) -> str:
    if isinstance(error, httpx.ConnectTimeout):
        return "no connection within the time for it"
    if is_late:
        return f"no reply within {timeout_s:g} s"
    if isinstance(error, httpx.ConnectError):
        return f"no connection ({error})"
    return f"the connection broke ({error or type(error).__name__})"


def retry_after_s(header: str | None) -> float | None:
    """Return how long a server asks to wait: seconds, or an HTTP date; None if it does not say."""
    if not header:
        return None
    try:
        return max(0.0, float(header))
    except ValueError:
        pass
    try:
        until = parsedate_to_datetime(header).timestamp()
    except (ValueError, OverflowError):
        return None
    return max(0.0, until - time.time())  # noqa: TID251  (the header is a wall-clock time)
