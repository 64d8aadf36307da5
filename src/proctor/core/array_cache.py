"""Arrays that take long to compute and always come out the same, kept as files in the user's cache folder."""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
from collections.abc import Callable
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proctor.core.documents import write_atomically

Arrays = dict[str, NDArray[Any]]
CHECKSUM_BYTES = 32


def user_cache_folder() -> Path:
    """Return the folder for what can be made again; a RuntimeError if the user has no home folder."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


def cached_arrays(name: str, make: Callable[[], Arrays], *, source: str, packages: tuple[str, ...]) -> Arrays:
    """Return what `make` returns, read from a file if this or another process has called it before.

    A file that is missing, damaged or cannot be written costs time, nothing else. The arrays are made again
    if `source`, the file that holds the code behind `make`, or the version of one of the packages changes.
    """
    try:
        file = user_cache_folder() / "proctor" / "arrays" / f"{name}-{_digest(source, packages)}"
    except (RuntimeError, OSError, PackageNotFoundError):  # no home, or code that is not in files of its own
        return make()
    with contextlib.suppress(OSError):
        content = file.read_bytes()
        # By a checksum of its own: not every damage of a zip file is noticed, and others raise many errors.
        if content[:CHECKSUM_BYTES] == _checksum(content[CHECKSUM_BYTES:]):
            with np.load(io.BytesIO(content[CHECKSUM_BYTES:])) as stored:
                return dict(stored)
    arrays = make()
    written = io.BytesIO()
    np.savez(written, allow_pickle=False, **arrays)
    with contextlib.suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(file, _checksum(written.getvalue()) + written.getvalue())
    return arrays


def _checksum(content: bytes) -> bytes:
    return hashlib.sha256(content).digest()


@cache
def _digest(source: str, packages: tuple[str, ...]) -> str:
    versions = "".join(f"{package} {version(package)}\n" for package in packages)
    return hashlib.sha256(Path(source).read_bytes() + versions.encode()).hexdigest()[:16]
