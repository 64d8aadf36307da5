"""Recording episodes while they run, within a budget, without any influence on them.

A recording that fails, as on a full disk, is given up and counted; the episode goes on.
"""

from __future__ import annotations

import enum
import errno
import multiprocessing
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext, suppress
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from proctor.agents.arrays import is_colour
from proctor.core.registry import load
from proctor.core.types import Info, Observation, Vector3
from proctor.exams.results import EpisodeResult
from proctor.records.episode_file import EpisodeFile, Subject
from proctor.runs.leases import GONE
from proctor.runs.recorder_thread import RecorderThread
from proctor.runs.recordings import (
    FRAMES,
    RECORDINGS,
    SENSORS,
    STEPS,
    Recorded,
    StepRecord,
    budgeted_files,
    encode_sensors,
    recording_folder,
)
from proctor.runs.sharing import SharedRun

DIGITS = 6
LARGEST = 1e300  # an env may tell numbers that no float can hold
PICTURES = ("rgb", "rgb_head")  # what the agent sees: the first of these that an observation holds
LONGEST_PX = 1024  # frames are shrunk to this; a camera of 640 x 480 is kept as it is


class RecordingConfig(msgspec.Struct, frozen=True, kw_only=True):
    """What to record of a run. It is no part of what defines the run."""

    frames: bool = False  # whether to save what the agent saw, too
    sensors: bool = False  # whether to save all that the other sensors said, too
    recorders: tuple[str, ...] = ()
    """Registry names of what writes a file about each episode."""
    frames_budget_bytes: int = 1_000_000_000
    """For all but the steps of the run. When it is spent, steps are still recorded."""


class Count(enum.IntEnum):
    """What recorders count; each has a row of these numbers, which the others can read."""

    EPISODES = 0
    FRAMES = 1
    FRAME_BYTES = 2
    STEP_BYTES = 3
    FRAMES_LEFT_OUT = 4
    EPISODES_LOST = 5
    ERRNO = 6
    BYTES_BEFORE = 7
    SENSORS = 8
    FILES = 9
    FILES_CUT = 10
    FILES_FAILED = 11


UNCOUNTED = (Count.FRAMES, Count.SENSORS, Count.FILES, Count.FRAME_BYTES, Count.STEP_BYTES)
"""What does not count if the recording of an episode is lost."""


def discard_recordings(run_dir: Path, episode_ids: Iterable[str], shared: SharedRun | None) -> None:
    """Remove what was recorded of episodes that are to be done again, but for those that others do now."""
    for episode_id in episode_ids if (run_dir / RECORDINGS).is_dir() else ():
        folder = recording_folder(run_dir, episode_id)
        if not folder.exists():
            continue
        with shared.holding(episode_id) if shared else nullcontext(enter_result=True) as is_ours:
            if is_ours:
                shutil.rmtree(folder, ignore_errors=True)


class Recorders:
    """The recorders of a run, one for each process, and the numbers that they share."""

    def __init__(self, run_dir: Path, config: RecordingConfig, processes: int) -> None:
        self._run_dir, self._config = run_dir, config
        self._counts = multiprocessing.get_context("spawn").RawArray("q", len(Count) * processes)

    def count_what_is_there(self) -> None:
        """Take the frames and sensors that an earlier call has left off the budget."""
        self._counts[Count.BYTES_BEFORE] = sum(found.st_size for found in budgeted_files(self._run_dir))

    @property
    def run_dir(self) -> Path:
        """The folder of the run."""
        return self._run_dir

    @property
    def config(self) -> RecordingConfig:
        """What to record."""
        return self._config

    def bytes_left(self) -> int:
        """Return what is left of the budget for frames and sensors."""
        spent_bytes = sum(self._counts[Count.FRAME_BYTES :: len(Count)]) + self._counts[Count.BYTES_BEFORE]
        return max(0, self._config.frames_budget_bytes - int(spent_bytes))

    def begin_share(self, budget_bytes: int) -> None:
        """Count anew, with so much of the budget for what is recorded from now on: the rest is of others."""
        self._counts[:] = [0] * len(self._counts)
        self._counts[Count.BYTES_BEFORE] = self._config.frames_budget_bytes - budget_bytes

    def share(self) -> list[int]:
        """Return what the first recorder counted of its share, for `add_share` of the run's recorders."""
        counted = list(self._counts[: len(Count)])
        counted[Count.BYTES_BEFORE] = 0
        return counted

    def add_share(self, counted: Sequence[int]) -> None:
        """Add what was recorded on another machine."""
        for what, number in zip(Count, counted, strict=True):
            if what == Count.ERRNO:
                self._counts[what] = number or self._counts[what]
            else:
                self._counts[what] += number

    def recorder(self, index: int) -> Recorder:
        """Return the recorder of a process."""
        return Recorder(self._run_dir, self._config, self._counts, index)

    def total(self) -> Recorded:
        """Return how much all of them have recorded so far."""
        rows = np.array(self._counts, dtype=np.int64).reshape(-1, len(Count))
        sums, error = rows.sum(axis=0).tolist(), int(rows[:, Count.ERRNO].max())
        return Recorded(
            episodes=sums[Count.EPISODES],
            frames=sums[Count.FRAMES],
            sensors=sums[Count.SENSORS],
            size_bytes=sums[Count.FRAME_BYTES] + sums[Count.STEP_BYTES],
            frames_left_out=sums[Count.FRAMES_LEFT_OUT],
            episodes_lost=sums[Count.EPISODES_LOST],
            problem=os.strerror(error) if error else "",
            files=sums[Count.FILES],
            episodes_cut=sums[Count.FILES_CUT],
            files_failed=sums[Count.FILES_FAILED],
        )


class Recorder:
    """Records episodes of one process.

    `counts` are the numbers of all recorders of the run. Each writes only its own row, so that no lock is
    needed, which a process that dies could keep. The budget may be exceeded by a frame per process.
    """

    def __init__(self, run_dir: Path, config: RecordingConfig, counts: Any, row: int) -> None:
        self._run_dir, self.config, self._counts, self._row = run_dir, config, counts, row
        self._recorders = {name: load("recorder", name) for name in config.recorders}

    def episode(
        self, episode_id: str, subject: Subject | None = None
    ) -> AbstractContextManager[EpisodeRecorder]:
        """Record an episode, over what an earlier attempt may have left. Recorders need a subject."""
        recorder = EpisodeRecorder(recording_folder(self._run_dir, episode_id), self)
        if self._recorders and subject is not None:
            recorder.begin_files(self._recorders, subject)
        return closing(recorder)

    def count(self, what: Count, number: int = 1) -> None:
        """Add to one of our numbers."""
        self._counts[self._row * len(Count) + what] += number

    def uncount(self, written: Mapping[Count, int]) -> None:
        """Subtract from our numbers what was written and is gone."""
        for what, number in written.items():
            self.count(what, -number)

    def lose(self, problem: OSError, written: Mapping[Count, int]) -> None:
        """Count an episode as lost, and what was written of it as not written."""
        self.count(Count.EPISODES_LOST)
        self.uncount(written)
        self._counts[self._row * len(Count) + Count.ERRNO] = problem.errno or errno.EIO

    def has_room_for(self, frame_bytes: int) -> bool:
        """Tell whether a frame fits into what is left of the budget. The first that does not ends it."""
        if sum(self._counts[Count.FRAMES_LEFT_OUT :: len(Count)]):
            return False
        spent_bytes = sum(self._counts[Count.FRAME_BYTES :: len(Count)]) + self._counts[Count.BYTES_BEFORE]
        return bool(spent_bytes + frame_bytes <= self.config.frames_budget_bytes)


class EpisodeRecorder:
    """Writes the recording of one episode."""

    def __init__(self, folder: Path, recorder: Recorder) -> None:
        self._folder, self._recorder = folder, recorder
        self._seen = self._steps = 0
        self._written = dict.fromkeys(UNCOUNTED, 0)
        self._file: BinaryIO | None = None
        self._thread: RecorderThread | None = None
        with self._giving_up():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            self._file = (folder / STEPS).open("wb")

    def begin_files(self, recorders: Mapping[str, type[EpisodeFile]], subject: Subject) -> None:
        """Let recorders write files beside the steps."""
        if self._file is not None:
            self._thread = RecorderThread(self._folder, recorders, subject, self._recorder.has_room_for)

    def see(self, observation: Observation, state: Any = None) -> None:
        """Save the picture that an observation holds, and what else it holds, as far as that is wanted."""
        point, self._seen = self._seen, self._seen + 1  # of the trajectory
        if not isinstance(observation, Mapping):
            return
        self._tell_recorders(lambda thread: thread.see(observation, state))
        rgb = next(filter(is_colour, map(observation.get, PICTURES)), None)
        if self._recorder.config.frames and rgb is not None:
            self._keep(Count.FRAMES, f"{FRAMES}/{point:05}.jpg", lambda: _jpeg(rgb))
        if self._recorder.config.sensors:
            self._keep(Count.SENSORS, f"{SENSORS}/{point:05}.npz", lambda: encode_sensors(observation))

    def _keep(self, what: Count, name: str, encode: Callable[[], bytes]) -> None:
        """Write a file whole or not at all, if the budget has room for it."""
        if self._open_file() is None:
            return
        has_room = self._recorder.has_room_for(0)
        content = encode() if has_room else b""
        if has_room and not content:
            return
        if not has_room or not self._recorder.has_room_for(len(content)):
            self._recorder.count(Count.FRAMES_LEFT_OUT)
            return
        with self._giving_up():
            path = self._folder / name
            path.parent.mkdir(exist_ok=True)
            unfinished = path.with_name(f".{path.name}.tmp")
            unfinished.write_bytes(content)
            unfinished.replace(path)
            self._count(what, 1)
            self._count(Count.FRAME_BYTES, len(content))

    def step(self, action: Any, info: Info, *, policy_s: float, env_s: float) -> None:
        """Add a line."""
        file = self._open_file()
        if file is None:
            return
        self._steps += 1
        x, y, z = _coordinates(info.get("position"))
        collision = info.get("collision")
        record = StepRecord(
            step=self._steps,
            action=action,
            x=x,
            y=y,
            z=z,
            yaw=_number(info.get("yaw")),
            collision=None if collision is None else bool(collision),
            distance_to_goal=_number(info.get("distance_to_goal")),
            policy_ms=round(1000 * policy_s, 3),
            env_ms=round(1000 * env_s, 3),
        )
        self._tell_recorders(lambda thread: thread.step(action, policy_s=policy_s))
        line = msgspec.json.encode(record) + b"\n"
        with self._giving_up():
            file.write(line)
            file.flush()  # the last steps before a crash are the ones to see
            self._count(Count.STEP_BYTES, len(line))

    def end(self, result: EpisodeResult) -> None:
        """Take in how the episode ended."""
        self._tell_recorders(lambda thread: thread.end(result))

    def close(self) -> None:
        """End the recording."""
        thread = self._thread
        if thread is not None:
            thread.close()
        file = self._open_file()
        if file is None:
            return
        with self._giving_up():
            if thread is not None:
                self._count_files(thread)
                self._count(Count.FILES, thread.written)
                self._recorder.count(Count.FILES_CUT, int(thread.is_cut))
                self._recorder.count(Count.FILES_FAILED, thread.lost)
            file.close()
            self._file = self._thread = None
            self._recorder.count(Count.EPISODES)

    def _tell_recorders(self, show: Callable[[RecorderThread], None]) -> None:
        if self._thread is None or self._open_file() is None:
            return
        with self._giving_up():
            self._count_files(self._thread)
            show(self._thread)

    def _count_files(self, thread: RecorderThread) -> None:
        """Count what recorders have written so far, here: two threads must not write one number."""
        if thread.problem is not None:
            raise thread.problem
        self._count(Count.FRAME_BYTES, thread.count())

    def _open_file(self) -> BinaryIO | None:
        """Return the file of the steps, as long as this recording goes on.

        Another process may have taken the episode over while this one slept: it has removed our folder, and
        what is there now is its recording.
        """
        if self._file is None:
            return None
        try:
            is_removed = os.fstat(self._file.fileno()).st_nlink == 0
        except OSError as error:
            is_removed = error.errno in GONE
        if is_removed:
            self._end_writing()
            self._recorder.uncount(self._written)
        return self._file

    def _count(self, what: Count, number: int) -> None:
        self._written[what] += number
        self._recorder.count(what, number)

    @contextmanager
    def _giving_up(self) -> Iterator[None]:
        """Let a disk error end the recording and free its place, which the run's results may need."""
        try:
            yield
        except OSError as error:
            self._end_writing()
            shutil.rmtree(self._folder, ignore_errors=True)
            self._recorder.lose(error, self._written)

    def _end_writing(self) -> None:
        if self._thread is not None:
            self._thread.close()
        if self._file is not None:
            with suppress(OSError):
                self._file.close()
        self._file = self._thread = None


def _jpeg(rgb: NDArray[np.uint8]) -> bytes:
    image = Image.fromarray(rgb)
    image.thumbnail((LONGEST_PX, LONGEST_PX))
    content = BytesIO()
    image.save(content, format="JPEG", quality=80)
    return content.getvalue()


def _coordinates(position: Any) -> tuple[float | None, float | None, float | None]:
    try:
        point = Vector3.of(position)
    except (TypeError, ValueError, AttributeError):
        return None, None, None
    # A vector may hold numbers of numpy, which no JSON writer takes.
    return round(float(point.x), DIGITS), round(float(point.y), DIGITS), round(float(point.z), DIGITS)


def _number(value: Any) -> float | None:
    is_number = isinstance(value, int | float | np.number) and -LARGEST < value < LARGEST  # nor is NaN
    return round(float(value), DIGITS) if is_number else None
