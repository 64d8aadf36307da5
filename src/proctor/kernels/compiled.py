"""The decorator of functions that are compiled to machine code and run without Python's global lock.

Compiling takes half a minute, so the machine code is kept on disk. Numba would reuse it until that one file
changes, but it also contains functions and constants of other files. All of them are in this package, so the
name of the cache folder is a digest of the package.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

import numba

from proctor.core.array_cache import user_cache_folder

config: Any = numba.config
Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(function: Function) -> Function:
    """Compile a function of numbers and arrays, once per machine."""
    elsewhere = config.CACHE_DIR
    folder = cache_folder(elsewhere)
    config.CACHE_DIR = str(folder)  # Read when the function is declared, not when it is compiled.
    try:
        is_cached = os.access(folder, os.W_OK)
        machine_code: Any = numba.njit(cache=is_cached, nogil=True, error_model="numpy")(function)
    finally:
        config.CACHE_DIR = elsewhere
    return cast(Function, machine_code)


@cache
def cache_folder(numba_folder: str, package: Path = Path(__file__).parent) -> Path:
    """Make the folder for the machine code of a package, if that is possible, and return it."""
    sources = b"".join(file.read_bytes() for file in sorted(package.glob("*.py")))
    root = Path(numba_folder or user_cache_folder()) / "proctor" / "kernels"
    folder = root / hashlib.sha256(sources).hexdigest()[:16]
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
    return folder
