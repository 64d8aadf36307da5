"""One small page from the HTTP side of a WebSocket server."""

from __future__ import annotations

import socket
import ssl
import time

from websockets.uri import parse_uri

MAX_BYTES = 16 << 10


def get_page(
    url: str, page: str, deadline_s: float, *, headers: dict[str, str], tls: ssl.SSLContext | None
) -> bytes | None:
    """Return the body of a page next to a WebSocket address; None if there is none in time.

    Redirections are not followed, and no more is read than `MAX_BYTES`.

    Args:
        url: The `ws://` or `wss://` address.
        page: The page's name.
        deadline_s: A point of `time.monotonic()`.
        headers: Of the request.
        tls: For `wss://`; None for the system's own.
    """
    uri = parse_uri(url)
    host = f"[{uri.host}]" if ":" in uri.host else uri.host
    lines = [
        f"GET {uri.path.rstrip('/')}/{page} HTTP/1.1",
        f"Host: {host}:{uri.port}",
        "Connection: close",
        *(f"{name}: {value}" for name, value in headers.items()),
    ]
    try:
        with socket.create_connection((uri.host, uri.port), _left_s(deadline_s)) as line:
            if not uri.secure:
                answer = _exchange(line, lines, deadline_s)
            else:
                context = tls or ssl.create_default_context()
                with context.wrap_socket(line, server_hostname=uri.host) as secured:
                    answer = _exchange(secured, lines, deadline_s)
    except OSError:
        return None
    head, _, body = answer.partition(b"\r\n\r\n")
    return body if head.startswith((b"HTTP/1.1 200 ", b"HTTP/1.0 200 ")) else None


def _exchange(line: socket.socket, lines: list[str], deadline_s: float) -> bytes:
    """Send a request and return what comes until the end, the deadline, or enough."""
    line.settimeout(_left_s(deadline_s))
    line.sendall("".join(f"{text}\r\n" for text in [*lines, ""]).encode())
    answer = b""
    try:
        while len(answer) < MAX_BYTES:
            line.settimeout(_left_s(deadline_s))
            part = line.recv(MAX_BYTES - len(answer))
            if not part:
                break
            answer += part
    except TimeoutError:
        pass  # a server that does not hang up may have said all there is
    return answer


def _left_s(deadline_s: float) -> float:
    left_s = deadline_s - time.monotonic()
    if left_s <= 0:
        raise TimeoutError
    return left_s
