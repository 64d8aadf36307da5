"""The files that recorders write about one episode, on a thread beside the loop.

The loop only hands over copies of what it shows. A recorder that fails loses its own file, never the episode.
"""

from __future__ import annotations

import errno
import os
import queue
import re
import sys
import threading
import traceback
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from proctor.core.types import Observation
from proctor.exams.results import EpisodeResult
from proctor.records.episode_file import EpisodeFile, Subject

MAX_WAITING = 8  # calls that were not done yet; the loop waits when there are more
PATIENCE_S = 120.0  # for a recorder that does not return; then the loop goes on without the files
DISK_IS_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
LOWEST_PRIORITY = 19
"""Recorders take what the renderer leaves: it waits for the slowest of its own threads."""


class RecorderThread:
    """Lets recorders write about one episode. `has_room` tells if so many more bytes fit into the budget."""

    def __init__(
        self,
        folder: Path,
        recorders: Mapping[str, type[EpisodeFile]],
        subject: Subject,
        has_room: Callable[[int], bool],
    ) -> None:
        self._folder, self._recorders, self._subject = folder, recorders, subject
        self._has_room = has_room
        self._files: dict[str, EpisodeFile] = {}
        self._paths: dict[str, Path] = {}
        self._calls: queue.Queue[Callable[[EpisodeFile], None] | None] = queue.Queue(MAX_WAITING)
        self._is_stuck = False
        self.is_cut = False
        """Whether the files end before the episode did, or there are none, because the budget was spent."""
        self.size_bytes = self._counted_bytes = 0
        """How large the files are so far, and how much of it has been counted."""
        self.written = 0
        """How many files are complete."""
        self.lost = 0
        """How many files a recorder has failed to write."""
        self.problem: OSError | None = None
        """Why the disk took no more, if that happened."""
        self._thread = threading.Thread(target=self._work, name="proctor-recorders", daemon=True)
        self._thread.start()

    def see(self, observation: Observation, state: Any) -> None:
        """Show what the agent sees. Arrays are copied: an env may write the next picture into the same."""
        copied = {
            key: np.copy(value) if isinstance(value, np.ndarray) else value
            for key, value in observation.items()
        }
        self._hand_over(lambda file: file.see(copied, state))

    def step(self, action: Any, *, policy_s: float) -> None:
        """Tell an action."""
        self._hand_over(lambda file: file.step(action, policy_s=policy_s))

    def end(self, result: EpisodeResult) -> None:
        """Tell how the episode ended."""
        self._hand_over(lambda file: file.end(result))

    def _hand_over(self, call: Callable[[EpisodeFile], None] | None) -> None:
        if not self._is_stuck:
            try:
                self._calls.put(call, timeout=PATIENCE_S)
            except queue.Full:
                self._give_up()

    def _give_up(self) -> None:
        """Leave the thread alone for good: it may never return from what it is doing."""
        self._is_stuck = True
        self.lost += len(self._recorders)
        for name in self._recorders:
            self._write_error(name, f"A recorder of this episode did not return for {PATIENCE_S:g} s.\n")

    def count(self) -> int:
        """Return by how much the files have grown since this was last called."""
        before, self._counted_bytes = self._counted_bytes, self.size_bytes
        return self._counted_bytes - before

    def close(self) -> None:
        """Complete the files. May be called twice."""
        if self._thread.is_alive() and not self._is_stuck:
            self._hand_over(None)
            self._thread.join(PATIENCE_S)
            if self._thread.is_alive() and not self._is_stuck:
                self._give_up()

    def _work(self) -> None:
        if sys.platform == "linux":  # only there threads have a priority of their own
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), LOWEST_PRIORITY)
        self.is_cut = not self._has_room(1)
        for name in () if self.is_cut else self._recorders:
            # Nobody else has this name: a process that slept must not complete what another one writes.
            self._paths[name] = self._folder / f".{_file_name(name)}.{uuid.uuid4().hex}.tmp"
            self._try(name, self._open)
        while (call := self._calls.get()) is not None:
            if self.problem is not None or self.is_cut:
                continue
            for name in list(self._files):
                self._try(name, lambda name: call(self._files[name]))
            self._measure()
            self.is_cut = not self._has_room(self.size_bytes - self._counted_bytes)
        for name in list(self._files):
            self._try(name, self._complete)
        self._measure()

    def _open(self, name: str) -> None:
        self._files[name] = self._recorders[name](self._paths[name], self._subject)

    def _complete(self, name: str) -> None:
        file = self._files[name]
        file.close()
        if self._paths[name].exists() and not self._is_stuck:
            whole = self._folder / f"{_file_name(name)}{file.suffix}"
            self._paths[name] = self._paths[name].replace(whole)
            self.written += 1

    def _measure(self) -> None:
        self.size_bytes = sum(path.stat().st_size for path in self._paths.values() if path.exists())

    def _try(self, name: str, call: Callable[[str], None]) -> None:
        try:
            call(name)
        except Exception as error:  # noqa: BLE001  whoever wrote the recorder: its failure must not become the episode's
            if isinstance(error, OSError) and error.errno in DISK_IS_FULL:
                self.problem = error
            else:
                self._lose(name)

    def _lose(self, name: str) -> None:
        self.lost += 1
        file = self._files.pop(name, None)
        if file is not None:
            with suppress(Exception):
                file.close()
        with suppress(OSError):
            self._paths.pop(name).unlink(missing_ok=True)
        self._write_error(name, traceback.format_exc())

    def _write_error(self, name: str, text: str) -> None:
        with suppress(OSError):
            (self._folder / f"{_file_name(name)}.error.txt").write_text(text)


def _file_name(name: str) -> str:
    """Return a name for the file of a recorder, which may be given as `folder/file.py:Class`."""
    return re.sub(r"[^\w.-]+", "_", name.rpartition("/")[2]).strip("._-")[-80:]
