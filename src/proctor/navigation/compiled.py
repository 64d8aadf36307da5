"""Functions that are compiled to machine code and run without Python's global lock.

The machine code is kept on disk, for compiling all of it takes half a minute. Numba would keep it beside
the source and use it until that file changes; but it also holds what the file imports, functions and
constants. So it is kept in a folder whose name is a digest of the file and of all that it imports of ours.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

import numba

config: Any = numba.config
Function = TypeVar("Function", bound=Callable[..., Any])
OURS = re.compile(r"^from (proctor[\w.]*) import (\w+)", re.MULTILINE)


def compiled(function: Function) -> Function:
    """Compile a function of numbers and arrays, once per machine."""
    folder = _cache_root() / _digest(function.__module__)
    elsewhere = config.CACHE_DIR
    config.CACHE_DIR = str(folder)  # Read when the function is declared, not when it is compiled.
    try:
        machine_code: Any = numba.njit(cache=_is_writable(), nogil=True, error_model="numpy")(function)
    finally:
        config.CACHE_DIR = elsewhere
    return cast(Function, machine_code)


def _cache_root() -> Path:
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(config.CACHE_DIR or home) / "proctor" / "kernels"


@cache
def _is_writable() -> bool:
    try:
        _cache_root().mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(_cache_root(), os.W_OK)


@cache
def _digest(module: str) -> str:
    """Return a digest of a module's source and of what it imports of ours, all of it loaded by now."""
    source = Path(str(sys.modules[module].__file__)).read_bytes()
    names = {name for place, first in OURS.findall(source.decode()) for name in (place, f"{place}.{first}")}
    parts = [source, *(_digest(name).encode() for name in sorted(names & sys.modules.keys()))]
    return hashlib.sha256(b"".join(parts)).hexdigest()[:16]
