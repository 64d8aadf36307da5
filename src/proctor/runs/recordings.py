"""What a run may leave beside its results: every step of an episode, and what the agent saw.

    recordings/<episode>/steps.jsonl      one line per step
    recordings/<episode>/frames/00000.jpg the view at the start, then after each step
    recordings/<episode>/sensors/00000.npz all other sensors, without loss
    recordings/<episode>/video.mp4        what a recorder wrote, here `video`

Frame k and sensors k belong to point k of the trajectory: they are what the agent saw when it chose action
k + 1.
"""

from __future__ import annotations

import hashlib
import os
import re
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from proctor.agents.arrays import is_colour
from proctor.core.errors import InvalidFile
from proctor.core.types import Observation, Pose2, Scan
from proctor.exams.fault_words import counted

RECORDINGS, STEPS, FRAMES, SENSORS = "recordings", "steps.jsonl", "frames", "sensors"
BROKEN_ZIP = (zipfile.BadZipFile, zlib.error)
MAX_SENSOR_BYTES = 256 * 1024 * 1024  # of what one observation holds, unpacked
PLAIN_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")


def budgeted_files(run_dir: Path) -> Iterator[os.stat_result]:
    """Yield the status of each recorded file but the steps; others may remove some meanwhile."""
    for folder, _, names in os.walk(run_dir / RECORDINGS):
        for name in names:
            if name == STEPS:
                continue
            with suppress(FileNotFoundError):
                yield Path(folder, name).stat()


class StepRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One step: what was done, where it led, how long it took. What an env does not tell is null."""

    step: int  # counted from 1
    action: Any
    x: float | None
    y: float | None
    z: float | None
    yaw: float | None  # the pose after the step, in the world frame
    collision: bool | None
    distance_to_goal: float | None
    policy_ms: float  # wall-clock time that the policy took to choose the action
    env_ms: float


class Recording(NamedTuple):
    """The recording of an episode."""

    steps: list[StepRecord]
    frames: list[Path]
    """From the start on, and possibly fewer than steps: a run's budget for frames may have been spent."""
    sensors: Sequence[Path] = ()  # files for `read_sensors`, from the start on, and possibly fewer than steps

    def policy_ms(self, *percentiles: float) -> list[float]:
        """Return percentiles of the time that the policy took for an action, such as of 50 and 95."""
        times = [step.policy_ms for step in self.steps]
        return [float(value) for value in np.percentile(times, percentiles)] if times else []


class Recorded(NamedTuple):
    """How much was recorded by all recorders of a run."""

    episodes: int
    frames: int
    size_bytes: int
    sensors: int  # files of sensors
    frames_left_out: int  # frames and sensors, because the budget was spent
    episodes_lost: int
    problem: str  # why recordings were lost, if any were
    files: int = 0  # written by recorders
    episodes_cut: int = 0  # whose files end early or are missing, because the budget was spent
    files_failed: int = 0  # which recorders could not write


def recording_notes(recorded: Recorded, *, unrecorded: int, folder: Path) -> list[str]:
    """Return in sentences how much was recorded, and what was not."""
    size_mb = recorded.size_bytes / 1e6
    what = f"{counted(recorded.episodes, 'episode')} with {counted(recorded.frames, 'frame')}"
    if recorded.sensors:
        what += f" and the sensors of {counted(recorded.sensors, 'step')}"
    if recorded.files:
        what += f" and {counted(recorded.files, 'file')} of recorders"
    notes = [f"recorded {what} in {folder} ({size_mb:.1f} MB)"] if recorded.episodes else []
    if recorded.episodes_cut:
        notes.append(
            f"the files of {counted(recorded.episodes_cut, 'episode')} end early or are missing: the budget "
            "is spent (--frames-budget-mb)"
        )
    if recorded.files_failed:
        notes.append(
            f"{counted(recorded.files_failed, 'file')} could not be written by their recorders: the reasons "
            f"are in {folder}/*/*.error.txt"
        )
    if recorded.frames_left_out:
        notes.append(
            f"{recorded.frames_left_out} {'frames and sensors' if recorded.sensors else 'frames'} were left "
            "out: the budget is spent (--frames-budget-mb)"
        )
    if recorded.episodes_lost:
        notes.append(f"the recordings of {recorded.episodes_lost} episodes were lost: {recorded.problem}")
    if unrecorded:
        notes.append(
            f"{unrecorded} episodes were done before and are not recorded; give --out another folder"
        )
    return notes


def recording_folder(run_dir: Path, episode_id: str) -> Path:
    """Return where an episode is recorded."""
    return run_dir / RECORDINGS / plain_name(episode_id)


def plain_name(episode_id: str) -> str:
    """Return the name of an episode's files: its id or, if that is not a plain name, something like it.

    Ids may hold anything, such as `../../etc`, or differ only in what file systems do not tell apart.
    """
    if PLAIN_NAME.fullmatch(episode_id):
        return episode_id
    digest = hashlib.sha256(episode_id.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    return f"{re.sub('[^a-z0-9]+', '_', episode_id.lower())[:40].strip('_') or 'episode'}.{digest}"


def read_recording(run_dir: Path, episode_id: str) -> Recording | None:
    """Return what was recorded of an episode, None if nothing was.

    Of an episode that broke off there may be a part, whose last line may be torn.
    """
    folder = recording_folder(run_dir, episode_id)
    path = folder / STEPS
    if not path.is_file():
        return None
    *lines, _torn = path.read_bytes().split(b"\n")
    steps = []
    for number, line in enumerate(lines, 1):
        try:
            steps.append(msgspec.json.decode(line, type=StepRecord))
        except msgspec.MsgspecError as error:
            raise InvalidFile(path, f"not the record of a step: {error}", place=f"line {number}") from None
    return Recording(steps, _numbered(folder / FRAMES, "jpg"), _numbered(folder / SENSORS, "npz"))


def encode_sensors(observation: Observation) -> bytes:
    """Return the arrays, numbers, scans and poses of an observation as an npz file; empty if it has none.

    Colour pictures are left to the frames. The parts of a scan or pose are named `scan.ranges`, `odom.x`.
    """
    arrays: dict[str, NDArray[Any]] = {}
    for name, value in observation.items():
        if isinstance(value, Scan | Pose2):
            parts = value._asdict() if isinstance(value, Scan) else msgspec.structs.asdict(value)
            arrays |= {f"{name}.{part}": np.asarray(number) for part, number in parts.items()}
        elif isinstance(value, int | float | np.generic | np.ndarray) and not is_colour(value):
            arrays[str(name)] = np.asarray(value)
    content = BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, array in arrays.items():
            if array.dtype.kind in "biufc" and name.isprintable():
                with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                    np.lib.format.write_array(member, array, allow_pickle=False)
        is_empty = not archive.namelist()
    return b"" if is_empty else content.getvalue()


def read_sensors(path: Path) -> Observation:
    """Return what `encode_sensors` took, every bit of it; numbers are numpy's."""
    arrays: dict[str, NDArray[Any]] = {}
    try:
        with zipfile.ZipFile(path) as archive:
            size_bytes = sum(member.file_size for member in archive.infolist())
            if size_bytes > MAX_SENSOR_BYTES:
                raise InvalidFile(path, f"{size_bytes} bytes unpacked; expected at most {MAX_SENSOR_BYTES}")
            for name in archive.namelist():
                with archive.open(name) as member:
                    arrays[name.removesuffix(".npy")] = np.lib.format.read_array(member, allow_pickle=False)
    except (OSError, ValueError, EOFError, RuntimeError, MemoryError, *BROKEN_ZIP) as error:
        raise InvalidFile(path, f"not a recording of sensors: {error}") from None
    observation: Observation = {}
    for name, array in arrays.items():
        whole, _, _ = name.rpartition(".")
        if all(f"{whole}.{part}" in arrays for part in Scan._fields):
            numbers = (float(arrays[f"{whole}.{part}"]) for part in Scan._fields[1:])
            observation[whole] = Scan(arrays[f"{whole}.ranges"], *numbers)
        elif all(f"{whole}.{part}" in arrays for part in ("x", "y", "yaw")):
            observation[whole] = Pose2(*(float(arrays[f"{whole}.{part}"]) for part in ("x", "y", "yaw")))
        else:
            observation[name] = array[()]
    return observation


def _numbered(folder: Path, suffix: str) -> list[Path]:
    files = [file for file in folder.glob(f"*.{suffix}") if file.stem.isdigit()]
    return sorted(files, key=lambda file: int(file.stem))
