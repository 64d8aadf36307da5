"""Addresses of agents that are served elsewhere, and the tokens that let one in there.

`ws://host:port` is an agent behind a WebSocket, `gr00t+tcp://host:port` a GR00T server behind ZeroMQ,
`chat+http://host:port/v1` the API of a chat model.
"""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from proctor.core.errors import UserError

TOKEN_VARIABLE = "PROCTOR_AGENT_TOKEN"  # noqa: S105  (the name of a variable)
KEY_VARIABLE = "PROCTOR_CHAT_KEY"
DEFAULT_PORT = 8080
DEFAULT_PORTS = {"ws": 80, "wss": 443, "gr00t+tcp": 5555}
"""Of agents behind a socket, by the scheme of their address."""
CHAT_PREFIX = "chat+"
CHAT_SCHEMES = tuple(
    f"{CHAT_PREFIX}{wire}{scheme}"
    for wire in ("", "responses+", "anthropic+")
    for scheme in ("http", "https")
)
RIGHT = (
    "expected an address such as ws://localhost:8080 or wss://agents.example.org/mine, "
    "of a GR00T server: gr00t+tcp://localhost:5555, or of a chat model: chat+http://localhost:8000/v1"
)


def is_address(name: str) -> bool:
    """Tell whether a policy's name is an address, good or bad."""
    return "://" in name


def replicas(name: str) -> list[str]:
    """Return the addresses that a policy's name consists of, all of the same agent; none for other names."""
    if not is_address(name):
        return []
    urls = [agent_url(part) for part in name.split(",")]
    schemes = sorted({re.sub("(ws|http)s$", r"\1", url.partition("://")[0]) for url in urls})
    if len(schemes) > 1:
        raise UserError(f"host: expected addresses of one agent, found {' and '.join(schemes)} among them")
    return urls


def is_chat(name: str) -> bool:
    """Tell whether a policy's name is the address of a chat model, good or bad."""
    return is_address(name) and name.startswith(CHAT_PREFIX)


def address_label(name: str) -> str:
    """Return a name for files and folders: `localhost-8080`, `a-80-and-2-more`."""
    first, *others = replicas(name)
    label = re.sub(r"[^\w.]+", "-", first.partition("://")[2]).strip("-.") or "agent"
    return f"{label}-and-{len(others)}-more" if others else label


def short_address(name: str) -> str:
    """Return a name for tables: `localhost:8080`, `a:80 and 2 more`."""
    first, *others = name.split(",")
    label = first.partition("://")[2]
    return f"{label} and {len(others)} more" if others else label


def checked_token(name: str, token: object) -> str:
    """Return a token if it can go into a header as it is. Messages call it `name`, and never quote it."""
    if not isinstance(token, str):
        raise UserError(
            f"{name}: expected text, found {type(token).__name__}; {TOKEN_VARIABLE} can hold any token"
        )
    if not re.fullmatch(r"[\x21-\x7e]+", token):
        raise UserError(f"{name}: expected letters, digits and signs of ASCII without spaces, found others")
    return token


def agent_url(host: str, port: int | str | None = None) -> str:
    """Return the URL of an agent, from a URL or a host with or without a port; secrets in it are refused."""
    if not isinstance(host, str):
        raise UserError(f"host: {RIGHT}, found {type(host).__name__}")
    if "@" in host or "?" in host or "#" in host:  # not quoted: it may be a secret
        raise UserError(
            "host: an address is written into the run's files, so it must not hold a user, a password or a "
            f"query; give a token with the environment variable {TOKEN_VARIABLE}, or the key of a chat model "
            f"with {KEY_VARIABLE}"
        )
    if not is_address(host):
        return _of_host(host, port)
    if port is not None:
        raise UserError(
            f"port: the address {host:.100} has its own place for it, found {port!r:.40} beside it"
        )
    scheme, name, own_port, path = _parts(host)
    place = f"[{name}]" if ":" in name else name
    return f"{scheme}://{place}{'' if own_port is None else f':{own_port}'}{path.rstrip('/')}"


def _of_host(host: str, port: int | str | None) -> str:
    if host.count(":") > 1 and not host.startswith("["):
        host = f"[{host}]"  # IPv6
    if re.search(r":\d+$", host):
        return agent_url(f"ws://{host}", port)
    text = str(DEFAULT_PORT if port is None else port)
    if isinstance(port, bool) or not (text.isascii() and text.isdigit() and 0 < int(text[:9]) < 65536):
        raise UserError(f"port: expected a number from 1 to 65535, found {port!r:.40}")
    return agent_url(f"ws://{host}:{text}")


def _parts(url: str) -> tuple[str, str, int | None, str]:
    found = f"found {url!r:.100}"
    if re.search(r"[\s,\\]|[^\x20-\x7e]", url):
        raise UserError(f"host: {RIGHT}, {found}")
    try:
        parts = urlsplit(url)
        port = parts.port
        (parts.hostname or "").encode("idna")  # as the resolver will, which would not say whose name it is
    except ValueError as error:  # a UnicodeError is one, too
        raise UserError(f"host: {RIGHT}, {found}: {error}") from None
    if parts.scheme not in (*DEFAULT_PORTS, *CHAT_SCHEMES) or not parts.hostname or port == 0:
        raise UserError(f"host: {RIGHT}, {found}")
    return parts.scheme, parts.hostname, port, parts.path
