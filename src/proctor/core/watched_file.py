"""Files as caches see them: changed when their content is, however often they are written again."""

from __future__ import annotations

import hashlib
from pathlib import Path


class WatchedFile:
    """A file that something is made of.

    Its date, size and inode say at once that nothing happened. Only if they differ, it is hashed again.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._digest: str | None = None
        self._signature = _signature(path)

    def note(self, content: bytes) -> bytes:
        """Remember the digest of the content that was just read, and return the content."""
        self._digest = hashlib.sha256(content).hexdigest()
        return content

    @property
    def digest(self) -> str:
        """The SHA-256 of the content that was read; it is read now if nobody did."""
        if self._digest is None:
            with self.path.open("rb") as stream:
                self._digest = hashlib.file_digest(stream, "sha256").hexdigest()
        return self._digest

    def has_changed(self) -> bool:
        """Tell whether the file is gone, or holds something else than what was read of it."""
        signature = _signature(self.path)
        if signature == self._signature:
            return False
        if signature is None or self._signature is None:
            return True
        if self._digest is not None and self._digest != WatchedFile(self.path).digest:
            return True
        self._signature = signature
        return False


def _signature(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except (OSError, ValueError):  # ValueError: a null byte in the name
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def watch(path: Path) -> WatchedFile:
    """Return the same object as long as the content of the file is the same: a key for caches."""
    watched = _WATCHED.get(path)
    if watched is None or watched.has_changed():
        watched = _WATCHED[path] = WatchedFile(path)
        watched.digest  # noqa: B018  (read now, since later it may be another)
    return watched


_WATCHED: dict[Path, WatchedFile] = {}
