"""Addresses of agents that are served elsewhere, `ws://host:port`, and the tokens that let one in there."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from proctor.core.errors import UserError

TOKEN_VARIABLE = "PROCTOR_AGENT_TOKEN"  # noqa: S105  (the name of a variable)
DEFAULT_PORT = 8080
RIGHT = "expected an address such as ws://localhost:8080 or wss://agents.example.org/mine"


def is_address(name: str) -> bool:
    """Tell whether a policy's name is an address, good or bad."""
    return "://" in name


def replicas(name: str) -> list[str]:
    """Return the addresses that a policy's name consists of, all of the same agent; none for other names."""
    return [agent_url(part) for part in name.split(",")] if is_address(name) else []


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
            f"query; give a token with the environment variable {TOKEN_VARIABLE}"
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
    if parts.scheme not in ("ws", "wss") or not parts.hostname or port == 0:
        raise UserError(f"host: {RIGHT}, {found}")
    return parts.scheme, parts.hostname, port, parts.path
