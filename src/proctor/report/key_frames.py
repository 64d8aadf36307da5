"""What the robot saw at the moments that matter: from the run's recording, else driven and drawn again."""

from __future__ import annotations

import io
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from operator import itemgetter
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from PIL import Image

from proctor.core.actions import parse_manipulation_action
from proctor.core.errors import ProctorError
from proctor.core.geometry import distance
from proctor.core.interfaces import Env
from proctor.core.registry import build
from proctor.core.types import Array, Observation, Vector3
from proctor.exams.fault_words import UNSCORED_CLASSES
from proctor.exams.pick_place.moments import moments_of
from proctor.exams.results import EpisodeResult
from proctor.report.progress import OnProgress
from proctor.report.run_record import RunRecord
from proctor.report.verdict import Verdict, record_of
from proctor.runs.recordings import FRAMES, recording_folder

WIDTH_PX = 320
FILM_WIDTH_PX = 240
MOST_FILM_FRAMES, MOST_FRAMES_OF_AN_EPISODE = 1000, 150
"""Of a report and of an episode in it: a frame takes some 10 kB of the page."""
JPEG_QUALITY = 78
SAME_M = 0.02
"""A replay that is further than this from the recorded path went somewhere else."""
INSET_SHARE = 0.36


class Eye(NamedTuple):
    """How a world is looked at again."""

    picture: Callable[[Observation], Array]
    """What of an observation is shown."""
    place: str
    """What of the ground truth must be where the trajectory says."""
    options: Callable[[Mapping[str, Any], int], dict[str, Any]]
    """Turns the options of a run, and a width in pixels, into those of a world that has no other sensor."""
    action: Callable[[Any], Any] = lambda recorded: recorded
    """Turns what was recorded into an action."""


class KeyFrames(NamedTuple):
    """Pictures of one episode."""

    pictures: list[tuple[int, bytes]]
    """Number of steps done, and the JPEG."""
    source: Literal["recorded", "replayed", "none"]
    note: str = ""
    """What a reader must know about them."""
    film: Sequence[tuple[int, bytes]] = ()
    """The same of as many other recorded steps as there is room for, smaller, to be played with them."""


def key_steps(verdict: Verdict) -> list[int]:
    """Return the moments that tell an episode's story: start, where it went wrong, end, and between."""
    record = record_of(verdict)
    if record is not None:
        return [moment.step for moment in moments_of(verdict.result, record, verdict.diagnosis.step)]
    last, wrong = len(verdict.result.trajectory) - 1, verdict.diagnosis.step
    if wrong >= last or wrong <= 0:
        return sorted({0, last // 3, 2 * last // 3, last})
    if wrong <= 3:
        return sorted({0, wrong, (wrong + last) // 2, last})
    return sorted({0, wrong // 2, wrong, last})


def choose(
    runs: Sequence[RunRecord], verdicts: Sequence[Verdict], *, most: int | None, most_steps: int | None
) -> list[Verdict]:
    """Choose the episodes to show in pictures: failures first, all classes in turn.

    Args:
        runs: All runs.
        verdicts: All episodes.
        most: How many at most; None for all.
        most_steps: How many steps those of them may have together that were not recorded; None for any.
    """
    groups: defaultdict[tuple[int, str], list[Verdict]] = defaultdict(list)
    for verdict in verdicts:
        kind = verdict.diagnosis.kind
        if kind not in UNSCORED_CLASSES:
            privileged = bool(runs[verdict.run].identity.get("privileged"))
            groups[2 * privileged + (kind == "success"), kind].append(verdict)
    ranked = [
        (rank, turn, kind, verdict)
        for (rank, kind), group in groups.items()
        for turn, verdict in enumerate(group)
    ]
    ranked.sort(key=lambda item: item[:3])
    chosen, steps = [], 0
    for *_, verdict in ranked[:most]:
        if not _recorded_frames(runs[verdict.run], verdict.result.episode_id):
            steps += verdict.result.steps
        if most_steps is not None and steps > most_steps:
            break
        chosen.append(verdict)
    return chosen


def collect(
    runs: Sequence[RunRecord],
    chosen: Sequence[Verdict],
    *,
    width_px: int = WIDTH_PX,
    film: bool = False,
    on_progress: OnProgress | None = None,
) -> dict[tuple[int, str], KeyFrames]:
    """Return the key frames of these episodes by run and id.

    Args:
        runs: All runs.
        chosen: The episodes.
        width_px: Wider pictures are shrunk to this.
        film: Whether to add the recorded frames between the key frames.
        on_progress: Called after each episode.
    """
    found: dict[tuple[int, str], KeyFrames] = {}
    most_in_film = min(MOST_FILM_FRAMES // max(len(chosen), 1), MOST_FRAMES_OF_AN_EPISODE) if film else 0

    def tell() -> None:
        if on_progress is not None:
            on_progress("taking pictures", len(found), len(chosen))

    by_env: defaultdict[str, list[Verdict]] = defaultdict(list)
    for verdict in chosen:
        key = (verdict.run, verdict.result.episode_id)
        identity = runs[verdict.run].identity
        recorded = _recorded(runs[verdict.run], verdict, width_px, most_in_film)
        if recorded is not None:
            found[key] = recorded
        elif verdict.episode is None:
            found[key] = KeyFrames([], "none", "The dataset is gone, so nothing can be driven again.")
        elif runs[verdict.run].scenes_changed and record_of(verdict) is not None:
            found[key] = KeyFrames([], "none", "The scene has changed, so nothing can be done again.")
        elif identity.get("env") not in REPLAYABLE:
            found[key] = KeyFrames(
                [], "none", f"The env '{identity.get('env')}' cannot be driven again here."
            )
        else:
            by_env[repr(identity.get("env_options"))].append(verdict)
        tell()
    for group in by_env.values():
        for key, frames in _replay_all(runs, group, width_px):
            found[key] = frames
            tell()
    return found


def _recorded(run: RunRecord, verdict: Verdict, width_px: int, most_in_film: int) -> KeyFrames | None:
    """Return the key frames that were kept during the run; None if there are none."""
    files = _recorded_frames(run, verdict.result.episode_id)
    wanted = [(step, files[step]) for step in key_steps(verdict) if step in files]
    if not wanted:
        return None
    try:
        pictures = [(step, _shrunk(file, width_px)) for step, file in wanted]
        others = sorted(files.keys() - {step for step, _ in wanted})
        film = [(step, _shrunk(files[step], FILM_WIDTH_PX)) for step in _spread(others, most_in_film)]
    except (OSError, Image.DecompressionBombError) as error:
        return KeyFrames([], "none", f"The recorded pictures cannot be read: {error}")
    return KeyFrames(pictures, "recorded", film=film)


def _shrunk(file: Path, width_px: int) -> bytes:
    return jpeg(Image.open(file).convert("RGB"), width_px)


def _spread(steps: Sequence[int], most: int) -> list[int]:
    """Return so many of these steps, the first and the last among them."""
    if len(steps) <= most or most < 2:
        return list(steps[:most])
    return [steps[round(index * (len(steps) - 1) / (most - 1))] for index in range(most)]


def _recorded_frames(run: RunRecord, episode_id: str) -> dict[int, Path]:
    """Return the pictures of an episode's recording by the number of steps done."""
    folder = recording_folder(run.folder, episode_id) / FRAMES
    return {int(file.stem): file for file in folder.glob("*.jpg") if file.stem.isdigit()}


def _replay_all(
    runs: Sequence[RunRecord], group: Sequence[Verdict], width_px: int
) -> Iterator[tuple[tuple[int, str], KeyFrames]]:
    """Drive episodes again that have the same env and options."""
    identity = runs[group[0].run].identity
    eye = REPLAYABLE[identity["env"]]
    try:
        env = build("env", identity["env"], eye.options(identity.get("env_options") or {}, width_px))
    except ProctorError as error:
        gone = KeyFrames([], "none", f"Could not be driven again: {error}")
        yield from (((v.run, v.result.episode_id), gone) for v in group)
        return
    with closing(env):
        for verdict in sorted(group, key=lambda v: v.result.scene_id):  # a scene is built once
            if verdict.episode is not None:
                frames = replay(
                    env, verdict.episode, verdict.result, key_steps(verdict), eye=eye, width_px=width_px
                )
                yield (verdict.run, verdict.result.episode_id), frames


def replay(
    env: Env,
    episode: Any,
    result: EpisodeResult,
    steps: Sequence[int],
    *,
    eye: Eye | None = None,
    width_px: int = WIDTH_PX,
) -> KeyFrames:
    """Do the recorded actions again and take pictures, as long as the robot is where it was then.

    Args:
        env: The world, with a camera.
        episode: What was asked.
        result: What was done.
        steps: After which steps to take a picture.
        eye: How to look; as in the embedded world if missing.
        width_px: Wider pictures are shrunk to this.
    """
    eye = eye or REPLAYABLE["embedded"]
    pictures: list[tuple[int, bytes]] = []
    try:
        for done, recorded in enumerate(result.trajectory):
            env.looking = done in steps  # type: ignore[attr-defined]  # all that are REPLAYABLE have it
            if not done:
                view = env.reset(episode)
            else:
                view, _, _, info = env.step(eye.action(result.actions[done - 1]))
                off_m = distance(Vector3.of(info[eye.place]), recorded)
                if off_m > SAME_M:
                    return KeyFrames(pictures, "replayed", _astray(off_m, done))
            if done in steps:
                pictures.append((done, jpeg(eye.picture(view), width_px)))
    except ProctorError as error:
        return KeyFrames(pictures, "replayed", f"Could not be driven again: {error}")
    return KeyFrames(pictures, "replayed")


def _astray(off_m: float, step: int) -> str:
    return (
        f"Driven again, the robot was {off_m:.2f} m away from where it had been after step {step}: "
        "the scene or the software has changed. Pictures from there on are left out."
    )


def jpeg(rgb: Any, width_px: int = WIDTH_PX) -> bytes:
    """Return a picture as a JPEG that is small enough for a page with many."""
    image = Image.fromarray(np.asarray(rgb))
    if image.width > width_px:
        image = image.resize((width_px, max(1, round(image.height * width_px / image.width))))
    stream = io.BytesIO()
    image.save(stream, "JPEG", quality=JPEG_QUALITY, optimize=True)
    return stream.getvalue()


def _small(options: Mapping[str, Any], width_px: int) -> dict[str, Any]:
    """Return the options of the run with a small camera and nothing else to look with."""
    width, height = options.get("width", 640), options.get("height", 480)
    scale = min(1.0, width_px / width)
    return {
        **options,
        "width": round(width * scale),
        "height": max(1, round(height * scale)),
        "sensors": ["rgb"],
    }


def _head_and_wrist(options: Mapping[str, Any], width_px: int) -> dict[str, Any]:
    """Return the options of the run with colour only. How large these pictures are, the episode says."""
    del width_px
    return {**options, "sensors": ["rgb_head", "rgb_wrist"]}


def _with_inset(view: Observation) -> Array:
    """Return what the head sees, and in a corner what the wrist sees: how the fingers hold a thing."""
    head, wrist = Image.fromarray(view["rgb_head"]), Image.fromarray(view["rgb_wrist"])
    width = round(INSET_SHARE * head.width)
    size = width, round(width * wrist.height / wrist.width)
    edge = max(1, head.width // 200)
    at = edge, head.height - size[1] - edge
    head.paste((255, 255, 255), (0, at[1] - edge, size[0] + 2 * edge, head.height))
    head.paste(wrist.resize(size, Image.Resampling.LANCZOS), at)
    return np.asarray(head)


REPLAYABLE = {
    "embedded": Eye(itemgetter("rgb"), "position", _small),
    "tabletop": Eye(_with_inset, "ee_position", _head_and_wrist, parse_manipulation_action),
}
"""By the name of the env."""
