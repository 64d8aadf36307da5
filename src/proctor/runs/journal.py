"""Writing a run folder, so that a run is safe to kill and able to go on.

`episodes.jsonl` gets one line per finished episode, flushed to the disk before the next episode begins; the
episode's trace and transcript are on the disk before that. A torn last line is what a killed run may leave;
it is cut off and its episode done again.
"""

from __future__ import annotations

import fcntl
import os
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec

from proctor.core.documents import sync_folder, write_atomically
from proctor.core.errors import EvaluatorError, UserError
from proctor.exams.names import AnyExam
from proctor.exams.results import EpisodeResult, Results
from proctor.runs.folder import (
    JOURNAL,
    MANIFEST,
    RESULTS,
    read_attempts,
    read_manifest,
    trace_file,
    wire_file,
)
from proctor.runs.sharing import PARTS, WORK, SharedRun

LOCK_PATIENCE_S = 2.0
"""A helper that completes the run has the lock for a moment, when the run's own command comes back."""


def read_finished(folder: Path, identity: dict[str, Any], exam: type[AnyExam]) -> dict[str, EpisodeResult]:
    """Return the finished episodes of a run directory by id; a UserError if it is another run's."""
    return {result.episode_id: result for result in read_earlier_attempts(folder, identity, exam)}


def read_earlier_attempts(folder: Path, identity: dict[str, Any], exam: type[AnyExam]) -> list[EpisodeResult]:
    """Return all attempts that a run directory holds, in order; a UserError if it is another run's."""
    with disk_errors(folder):
        if not folder.exists() or all(_is_nothing(item) for item in folder.iterdir()):
            return []
        if not (folder / MANIFEST).exists():
            raise UserError(f"{folder} is not empty and not a run; give --out another folder")
        _check_identity(folder / MANIFEST, identity)
        return read_attempts(folder / JOURNAL, exam)


class JournalInUse(UserError):
    """Another process writes the journal of the run."""

    def __init__(self, folder: Path, holder: str) -> None:
        super().__init__(f"{folder} is in use by {holder}; to help with that run, add --join")


class JournalTakenOver(UserError):
    """Another process has begun to write the journal, because this one gave no sign of life for too long."""

    def __init__(self, folder: Path) -> None:
        super().__init__(
            f"{folder}: this process slept for so long that another one has taken the run over; "
            "nothing is lost; to help with it, give the same command with --join"
        )


class Journal:
    """A run directory, made if missing, open for writing by one process. Use as a context manager.

    `identity` defines the run; `record` is what else the manifest says: versions, host. If the run is shared,
    its lease says who may write; with `on_wait`, wait for one whose holder may be dead. The lock is taken
    first where there are locks: it tells at once that a process on the same disk is alive, even if it is
    stopped, so that nobody takes the lease from it.
    """

    def __init__(
        self,
        folder: Path,
        identity: dict[str, Any],
        record: dict[str, Any],
        *,
        shared: SharedRun | None = None,
        on_wait: Callable[[str], None] | None = None,
    ) -> None:
        self.folder, self._shared = folder, shared
        with disk_errors(folder):
            folder.mkdir(parents=True, exist_ok=True)
            self._file: int | None = os.open(folder / JOURNAL, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
            try:
                self._lock(on_wait)
                self._begin(identity, record)
            except BaseException:
                os.close(self._file)
                raise
        _OPEN.add(self)

    def _lock(self, on_wait: Callable[[str], None] | None) -> None:
        """Become the only one who writes; JournalInUse if another does."""
        shared = self._shared
        deadline_s = time.monotonic() + (LOCK_PATIENCE_S if shared and on_wait else 0.0)
        while True:
            try:
                fcntl.flock(self._file or 0, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= deadline_s:
                    holder = shared.journal_holder if shared else None
                    raise JournalInUse(self.folder, str(holder or "another run")) from None
                time.sleep(0.05)
            except OSError:  # no such locks here, as on some shared disks: a lease has to do, if there is one
                break
        if shared is not None and (holder := shared.take_journal(on_wait)) is not None:
            raise JournalInUse(self.folder, str(holder))

    def _begin(self, identity: dict[str, Any], record: dict[str, Any]) -> None:
        """Make the folder this run's, and cut off a torn last line."""
        folder, file = self.folder, self._file or 0
        if (folder / MANIFEST).exists():  # perhaps only now: another run may have been faster
            _check_identity(folder / MANIFEST, identity)
        else:
            content = msgspec.json.encode({"identity": identity, **record})
            write_atomically(folder / MANIFEST, msgspec.json.format(content, indent=1) + b"\n")
        sync_folder(folder)
        written = (folder / JOURNAL).read_bytes()
        if os.fstat(file).st_size == len(written):  # else a host that slept has just added a line
            os.ftruncate(file, written.rfind(b"\n") + 1)

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def _close(self) -> None:
        _OPEN.discard(self)
        if self._file is not None:
            os.close(self._file)
        self._file = None

    def append(self, episode_id: str, record: bytes, trace: bytes = b"", transcript: bytes = b"") -> None:
        """Add a finished episode: its result as JSON, and its files. After this no crash can lose it."""
        if self._file is None:
            raise EvaluatorError(f"{self.folder}: the journal is closed, or of the process that was forked")
        line = record + b"\n"
        with disk_errors(self.folder):
            self.check_ours()
            _write_file(trace_file(self.folder, episode_id), trace)
            _write_file(wire_file(self.folder, episode_id), transcript)
            end = os.fstat(self._file).st_size
            try:
                while line:  # a disk that fills up takes a part of it, then raises
                    line = line[os.write(self._file, line) :]
            except OSError:
                with suppress(OSError):  # a torn line would be cut off on resume anyway
                    os.ftruncate(self._file, end)
                raise
            os.fsync(self._file)
            self.check_ours()  # else whoever took over meanwhile may have read the journal before this line

    def check_ours(self) -> None:
        """Raise JournalTakenOver if another process has begun to write, or ended the run."""
        if self._shared is not None and not self._shared.holds_journal:
            raise JournalTakenOver(self.folder)

    def save_results(self, results: Results) -> None:
        """Write `results.json`."""
        with disk_errors(self.folder):
            self.check_ours()
            results.save(self.folder / RESULTS)


def check_unlocked(folder: Path) -> None:
    """Raise a UserError if another process of this host writes the journal; nothing is written."""
    if (folder / JOURNAL).is_file():
        with (folder / JOURNAL).open("rb") as stream:
            try:
                fcntl.flock(stream, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                raise JournalInUse(folder, "another run") from None
            except OSError:
                pass  # no such locks here, as on some shared disks


def _write_file(path: Path, content: bytes) -> None:
    """Write a file of an episode; without content, remove that of an attempt before."""
    if content:
        path.parent.mkdir(exist_ok=True)
        write_atomically(path, content)
    else:
        path.unlink(missing_ok=True)


_OPEN: weakref.WeakSet[Journal] = weakref.WeakSet()


def _close_in_child() -> None:
    """Leave the journals to the process that opened them; a policy may fork. They stay locked by it."""
    for journal in list(_OPEN):
        journal._close()  # noqa: SLF001  (of this module)


os.register_at_fork(after_in_child=_close_in_child)


def _is_nothing(item: Path) -> bool:
    """Tell whether a file is only what a run leaves that was killed before it had begun."""
    if item.name == WORK and item.is_dir():
        return {part.name for part in item.iterdir()} <= set(PARTS)
    return item.suffix == ".tmp" or (item.name == JOURNAL and item.stat().st_size == 0)


def _check_identity(manifest: Path, identity: dict[str, Any]) -> None:
    theirs = read_manifest(manifest)["identity"]
    ours = msgspec.to_builtins(identity)
    for key in dict.fromkeys([*ours, *theirs]):
        if ours.get(key) != theirs.get(key):
            raise UserError(
                f"{manifest.parent} holds a different run: its {key} is {theirs.get(key)!r}, "
                f"yours is {ours.get(key)!r}; give --out another folder"
            )


@contextmanager
def disk_errors(folder: Path) -> Iterator[None]:
    """Report errors of the disk to the user."""
    try:
        yield
    except OSError as error:
        raise UserError(
            f"cannot write to {folder}: {error.strerror}; finished episodes are kept, "
            "and the same command goes on from there"
        ) from error
