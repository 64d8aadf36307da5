"""What the first word of an agent tells about the language that it speaks."""

from __future__ import annotations

from typing import Any

import msgspec

from proctor.core.plain_text import plain

MAX_BYTES = 256 << 10
"""Of a first word: a hello or metadata take far less."""
ALTERNATIVES = "serve the model with proctor, openpi or vla-eval"


def read_fields(frame: str | bytes) -> dict[str, msgspec.Raw] | None:
    """Return the map that a frame holds, its values as they are on the wire; None if it holds none."""
    decode: Any = msgspec.json.decode if isinstance(frame, str) else msgspec.msgpack.decode
    try:
        fields: dict[str, msgspec.Raw] = decode(frame, type=dict[str, msgspec.Raw])
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None
    return fields


def foreign_protocol(frame: str | bytes) -> str | None:
    """Name the protocol of a first word that is known, but not spoken here."""
    fields = read_fields(frame)
    if fields is None:
        return None
    if _is_word(fields.get("type"), "server_hello"):
        return "VLN-CE-Docker"
    if "status" in fields:
        return "Positronic"
    if fields.keys() & {"needs_session_id", "action_space"}:
        return "RoboArena"
    return None


def is_hello(frame: str | bytes) -> bool:
    """Tell whether a first word means to be Proctor's."""
    fields = read_fields(frame)
    return fields is not None and _is_word(fields.get("type"), "hello")


def diagnose(frame: str | bytes, problem: str) -> str:
    """Say in one line what was found where a hello was due, and what to do.

    Args:
        frame: The first word.
        problem: Why it is no hello.
    """
    name = foreign_protocol(frame)
    if name is not None:
        return f"the agent speaks the protocol of {name}, which Proctor does not; {ALTERNATIVES}"
    if is_hello(frame):
        if isinstance(frame, bytes):
            problem = "it is binary, for which the server must choose the subprotocol proctor.v1.msgpack"
        return f"the agent's hello cannot be read: {problem}"
    if isinstance(frame, str) and "Traceback" in frame:
        return f"the agent failed before it was asked anything: {last_line(frame)}"
    if isinstance(frame, str):
        return f"the agent's first word is no hello but the text '{one_line(frame)}'; {ALTERNATIVES}"
    if read_fields(frame) is not None:
        return "the agent's first word is a msgpack map, as of an openpi server; choose the dialect openpi"
    start = frame[:8].hex(" ")
    return f"the agent's first word is {len(frame)} bytes ({start} …) that are no msgpack map; {ALTERNATIVES}"


def last_line(text: str) -> str:
    """Return the last line of a text, such as a traceback: it says what went wrong."""
    lines = [line for line in text[-4000:].splitlines() if line.strip()]
    return one_line(lines[-1]) if lines else "it did not say why"


def one_line(text: str) -> str:
    """Return a text of others cut to what fits on a line, harmless for a terminal."""
    return plain(" ".join(text[:400].split()))[:200]


def _is_word(value: msgspec.Raw | None, word: str) -> bool:
    return value is not None and bytes(value) in (msgspec.json.encode(word), msgspec.msgpack.encode(word))
