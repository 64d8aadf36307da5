"""What a run may leave beside its results: every step of an episode, and what the agent saw.

    recordings/<episode>/steps.jsonl      one line per step
    recordings/<episode>/frames/00000.jpg the view at the start, then after each step

Frame k belongs to point k of the trajectory: it is what the agent saw when it chose action k + 1.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from proctor.core.errors import InvalidFile

RECORDINGS, STEPS, FRAMES = "recordings", "steps.jsonl", "frames"
PLAIN_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")


class StepRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One step: what was done, where it led, how long it took. What an env does not tell is null."""

    step: int
    """Counted from 1."""
    action: Any
    x: float | None
    y: float | None
    z: float | None
    yaw: float | None
    """The pose after the step, in the world frame."""
    collision: bool | None
    distance_to_goal: float | None
    policy_ms: float
    """Wall-clock time that the policy took to choose the action."""
    env_ms: float


class Recording(NamedTuple):
    """The recording of an episode."""

    steps: list[StepRecord]
    frames: list[Path]
    """From the start on, and possibly fewer than steps: a run's budget for frames may have been spent."""

    def policy_ms(self, *percentiles: float) -> list[float]:
        """Return percentiles of the time that the policy took for an action, such as of 50 and 95."""
        times = [step.policy_ms for step in self.steps]
        return [float(value) for value in np.percentile(times, percentiles)] if times else []


def recording_folder(run_dir: Path, episode_id: str) -> Path:
    """Return where an episode is recorded: under its id or, if that is no plain name, something like it.

    Ids may hold anything, such as `../../etc`, or differ only in what file systems do not tell apart.
    """
    name = episode_id
    if not PLAIN_NAME.fullmatch(episode_id):
        digest = hashlib.sha256(episode_id.encode("utf-8", "surrogatepass")).hexdigest()[:12]
        name = f"{re.sub('[^a-z0-9]+', '_', episode_id.lower())[:40].strip('_') or 'episode'}.{digest}"
    return run_dir / RECORDINGS / name


def read_recording(run_dir: Path, episode_id: str) -> Recording | None:
    """Return what was recorded of an episode, None if nothing was.

    Of an episode that broke off there may be a part, whose last line may be torn.

    Raises:
        InvalidFile: A line is no record of a step.
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
    frames = [file for file in (folder / FRAMES).glob("*.jpg") if file.stem.isdigit()]
    return Recording(steps, sorted(frames, key=lambda file: int(file.stem)))
