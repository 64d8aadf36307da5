"""Strict reading and safe writing of JSON documents, packed with gzip or not.

Every complaint names the file and the place in it: line and column where the JSON is broken,
`episodes[3].goal_position.x` where a value is.
"""

from __future__ import annotations

import gzip
import io
import json
import math
import os
import re
import stat
import zlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from proctor.core.errors import InvalidFile, did_you_mean

T = TypeVar("T")

MAX_BYTES = 256 * 1024 * 1024  # of a document, unpacked: a gzip file of a megabyte can hold a gigabyte
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
MAX_DEPTH = 64
SURROGATE = re.compile("[\ud800-\udfff]")
PLACE_STEP = re.compile(r"\.[^.\[]+|\[[^\]]*\]")


class NotFinite(str):
    """NaN or an infinity that was let through as text, to be complained of later."""


NESTED_OR_NOT_FINITE = {dict, list, NotFinite}
"""The types that `refuse_nan` looks at. Datasets hold millions of numbers: a call for each is slow."""


def read_bytes(path: Path) -> bytes:
    """Read a file whole, unpacked if it is gzip."""
    return unpack(read_packed(path), path)


def read_packed(path: Path) -> bytes:
    """Read a file whole, as it is stored."""
    try:
        mode = path.stat().st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):  # a pipe without a writer would be read for ever
            raise InvalidFile(path, "not a regular file: expected one that can be read whole")
        with path.open("rb") as stream:
            content = stream.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise InvalidFile(path, "no such file") from None
    except OSError as error:
        raise InvalidFile(path, f"cannot be read: {error.strerror}") from None
    except ValueError as error:  # a null byte in the name
        raise InvalidFile(path, f"cannot be read: {error}") from None
    return _refuse_large(content, path)


def unpack(packed: bytes, path: Path) -> bytes:
    """Return what `read_packed` returned, unpacked if it is gzip."""
    if not packed.startswith(b"\x1f\x8b"):
        if path.suffix == ".gz":
            raise InvalidFile(path, "not a gzip file, though its name ends with .gz")
        return packed
    try:
        content = gzip.GzipFile(fileobj=io.BytesIO(packed)).read(MAX_BYTES + 1)
    except EOFError:
        raise InvalidFile(path, "the gzip file ends too early: it was cut off") from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise InvalidFile(path, f"a broken gzip file: {error}") from None
    return _refuse_large(content, path)


def _refuse_large(content: bytes, path: Path) -> bytes:
    if len(content) > MAX_BYTES:
        raise InvalidFile(path, f"has more than {MAX_BYTES // 2**20} MiB")
    return content


def read_json(path: Path) -> Any:
    """Read a JSON file, refusing what JSON leaves open: duplicate keys, NaN, endless nesting."""
    return parse_json(read_bytes(path), path)


def parse_json(raw: bytes, path: Path, *, nan_as_text: bool = False) -> Any:
    """Parse what `read_bytes` returned.

    `nan_as_text` turns NaN and Infinity into text, for callers that go on and complain later (`refuse_nan`).
    """
    constant = NotFinite if nan_as_text else None
    try:
        text = raw.decode("utf-8-sig")
        value = json.loads(text, object_pairs_hook=_unique_keys, parse_constant=constant)
        _check(value, "", 0)
    except UnicodeDecodeError as error:
        raise InvalidFile(path, f"not UTF-8 text (byte {error.start})") from None
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        problem = "empty file, expected a JSON document" if not raw.strip() else f"invalid JSON: {error.msg}"
        raise InvalidFile(path, problem, place=place) from None
    except RecursionError:
        raise InvalidFile(path, f"nested deeper than {MAX_DEPTH} levels") from None
    except ValueError as error:  # a number with thousands of digits
        raise InvalidFile(path, f"cannot be read: {error}") from None
    except _Problem as error:
        raise InvalidFile(path, error.problem, place=error.place) from None
    return value


def decode(raw: bytes, type_: type[T], path: Path) -> T:
    """Decode large JSON straight into a typed value, many times faster than `read_json` and `convert`.

    What JSON leaves open is not refused, except NaN. Keys that the type does not know are skipped, if it
    does not forbid them.
    """
    try:
        return msgspec.json.decode(raw.removeprefix(BYTE_ORDER_MARK), type=type_)
    except msgspec.ValidationError as error:
        value = None
        with suppress(msgspec.DecodeError, RecursionError):  # of what comes after the error
            value = msgspec.json.decode(raw.removeprefix(BYTE_ORDER_MARK))
        raise _invalid(error, value, type_, path, "") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        parse_json(raw, path)  # says more precisely what is wrong
        raise InvalidFile(path, f"cannot be read: {error}") from None


def convert(value: Any, type_: type[T], path: Path, *, place: str = "") -> T:
    """Turn parsed JSON into a typed value, strictly; `path` and `place` are for the message."""
    try:
        return msgspec.convert(value, type_)
    except msgspec.ValidationError as error:
        raise _invalid(error, value, type_, path, place) from None


def refuse_nan(value: Any, path: Path, *, place: str) -> None:
    """Complain of the first NaN or infinity that `parse_json` let through as text."""
    if isinstance(value, NotFinite):
        raise InvalidFile(path, f"{value} is not allowed, expected a finite number", place=place)
    if isinstance(value, dict):
        for key, item in value.items():
            if type(item) in NESTED_OR_NOT_FINITE:
                refuse_nan(item, path, place=f"{place}.{key}")
    elif isinstance(value, list):
        for index, item in enumerate(value):
            if type(item) in NESTED_OR_NOT_FINITE:
                refuse_nan(item, path, place=f"{place}[{index}]")


def write_atomically(path: Path, content: bytes, *, mode: int = 0o666) -> None:
    """Write a file so that a reader, or a crash, sees the old content or the new, never half of it.

    `mode` is who may read and write it, less what the umask takes away.
    """
    temporary = path.with_name(f".{path.name}.{os.urandom(8).hex()}.tmp")
    try:
        with open(temporary, "wb", opener=lambda name, flags: os.open(name, flags, mode)) as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
        sync_folder(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


def write_json(path: Path, value: Any) -> None:
    """Write a JSON document, packed if the name ends with `.gz`: the same bytes for the same value."""
    content = (
        msgspec.json.format(msgspec.json.encode(value), indent=-1 if path.suffix == ".gz" else 1) + b"\n"
    )
    write_atomically(path, gzip.compress(content, mtime=0) if path.suffix == ".gz" else content)


def sync_folder(folder: Path) -> None:
    """Make sure that new names in a folder outlive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _invalid(error: msgspec.ValidationError, value: Any, type_: Any, path: Path, place: str) -> InvalidFile:
    inner, problem = explain(error, value, type_)
    return InvalidFile(path, problem, place=f"{place}{inner}" if place else inner.lstrip("."))


def explain(error: msgspec.ValidationError, value: Any, type_: Any) -> tuple[str, str]:
    """Return where a value is not of a type, such as `.poses[2].x`, and what is found and allowed there."""
    problem, _, place = str(error).partition(" - at `$")
    place = place.rstrip("`")
    unknown = re.search(r"unknown field `(.*)`", problem)
    if unknown:
        problem = f"unknown key '{unknown[1]}'" + did_you_mean(unknown[1], _field_names(type_))
    elif problem.startswith("Invalid enum value") and (choices := _choices(type_, place)):
        problem += f", expected {' or '.join(map(repr, choices))}"
    elif place and problem.startswith("Expected") and ", got" not in problem:
        problem += _found(value, place)
    field, colon, rest = problem.partition(": ")
    if colon and re.fullmatch(r"[a-z_]+", field):  # a struct's own check names the field first
        place, problem = f"{place}.{field}", rest
    return place, problem


def _found(value: Any, place: str) -> str:
    """Say which number or text stands at a place of a document; nothing if it is neither."""
    for step in PLACE_STEP.findall(place):
        try:
            value = value[int(step[1:-1]) if step.startswith("[") else step[1:]]
        except (LookupError, TypeError, ValueError):  # such as [...], any key of an object
            return ""
    return f", found {value!r:.80}" if isinstance(value, int | float | str) else ""


def _choices(type_: Any, place: str) -> list[Any]:
    """Return the values that a type allows at a place of a document."""
    infos = _alternatives(msgspec.inspect.type_info(type_))
    for step in PLACE_STEP.findall(place):
        inner = [each for info in infos for key, each in _members(info) if key in (None, step[1:])]
        infos = [each for info in inner for each in _alternatives(info)]
    enums = [
        [each.value for each in info.cls] for info in infos if isinstance(info, msgspec.inspect.EnumType)
    ]
    values = [info.values for info in infos if isinstance(info, msgspec.inspect.LiteralType)]
    return [value for group in (*enums, *values) for value in group]


class _Problem(Exception):
    def __init__(self, problem: str, place: str) -> None:
        self.problem, self.place = problem, place
        super().__init__(problem)


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise _Problem(f"the key '{twice}' stands twice in one object", "")
    return result


def _check(value: Any, place: str, depth: int) -> None:
    if depth > MAX_DEPTH:
        raise _Problem(f"nested deeper than {MAX_DEPTH} levels", place[:120])
    if isinstance(value, float) and not math.isfinite(value):
        raise _Problem(f"{value} is not allowed, expected a finite number", place)
    if isinstance(value, str) and not value.isprintable() and SURROGATE.search(value):
        raise _Problem("half of a surrogate pair is not allowed, expected text", place)
    inner: Iterable[tuple[Any, Any]] = ()
    if isinstance(value, dict):
        inner = value.items()
    elif isinstance(value, list):
        inner = enumerate(value)
    for key, item in inner:
        is_number = type(item) is int or (type(item) is float and math.isfinite(item))
        if is_number and depth < MAX_DEPTH:
            continue  # datasets hold millions of numbers: a call for each is slow
        step = f"[{key}]" if isinstance(key, int) else f".{key}" if place else key
        _check(item, place + step, depth + 1)


def _field_names(type_: Any) -> set[str]:
    """Return all key names that may stand somewhere in a document of this type."""
    names: set[str] = set()
    waiting = [msgspec.inspect.type_info(type_)]
    while waiting:
        members = [*_members(waiting.pop())]
        keys = {key for key, _ in members if key is not None}
        if not keys or not names.issuperset(keys):  # a type may hold itself
            names |= keys
            waiting += [info for _, info in members]
    return names


def _members(info: Any) -> Iterator[tuple[str | None, Any]]:
    """Yield the types inside of a type, each with its key if only that one may stand there."""
    yield from ((field.encode_name, field.type) for field in getattr(info, "fields", ()))
    for attribute in ("item_type", "value_type"):
        if hasattr(info, attribute):
            yield None, getattr(info, attribute)
    for attribute in ("types", "item_types"):
        yield from ((None, inner) for inner in getattr(info, attribute, ()))


def _alternatives(info: Any) -> list[Any]:
    if not isinstance(info, msgspec.inspect.UnionType):
        return [info]
    return [each for inner in info.types for each in _alternatives(inner)]
