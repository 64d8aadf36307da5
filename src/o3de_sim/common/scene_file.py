"""Reading a scene file, strictly: what JSON leaves open is refused."""

from __future__ import annotations

import gzip
import json
import math
import re
import zlib
from pathlib import Path
from typing import Any

from o3de_sim.common.scene_node import InvalidScene

MAX_BYTES = 256 * 1024 * 1024
"""Of a scene, unpacked."""
MAX_DEPTH = 64
GZIP_MAGIC = b"\x1f\x8b"
SURROGATE = re.compile("[\ud800-\udfff]")


def read_scene_file(path: Path) -> Any:
    """Return what a JSON file holds, packed with gzip or not.

    Raises:
        InvalidScene: It is missing, too large, or no JSON document.
    """
    file = str(path)
    try:
        value = json.loads(_read(path).decode("utf-8-sig"), object_pairs_hook=_unique_keys)
    except UnicodeDecodeError as error:
        raise InvalidScene(file, f"not UTF-8 text (byte {error.start})") from None
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise InvalidScene(file, f"invalid JSON: {error.msg}", place) from None
    except RecursionError:
        raise InvalidScene(file, f"nested deeper than {MAX_DEPTH} levels") from None
    except ValueError as error:  # a key that stands twice, or a number with thousands of digits
        raise InvalidScene(file, f"cannot be read: {error}") from None
    _check(value, file, "", 0)
    return value


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as stream:
            is_packed = stream.read(2) == GZIP_MAGIC
            stream.seek(0)
            if path.suffix == ".gz" and not is_packed:
                raise InvalidScene(str(path), "not a gzip file, though its name ends with .gz")
            content = (gzip.GzipFile(fileobj=stream) if is_packed else stream).read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise InvalidScene(str(path), "no such file") from None
    except (OSError, EOFError, zlib.error) as error:
        problem = getattr(error, "strerror", None) or error
        raise InvalidScene(str(path), f"cannot be read: {problem}") from None
    if len(content) > MAX_BYTES:
        raise InvalidScene(str(path), f"has more than {MAX_BYTES // 2**20} MiB")
    return content


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"the key '{twice}' stands twice in one object")
    return result


def _check(value: Any, file: str, place: str, depth: int) -> None:
    if depth > MAX_DEPTH:
        raise InvalidScene(file, f"nested deeper than {MAX_DEPTH} levels", place[:120])
    if isinstance(value, float) and not math.isfinite(value):
        raise InvalidScene(file, f"{value} is not allowed, expected a finite number", place)
    if isinstance(value, str) and not value.isprintable() and SURROGATE.search(value):
        raise InvalidScene(file, "half of a surrogate pair is not allowed, expected text", place)
    if isinstance(value, dict):
        for key, item in value.items():
            _check(item, file, f"{place}.{key}" if place else key, depth + 1)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            _check(item, file, f"{place}[{index}]", depth + 1)
