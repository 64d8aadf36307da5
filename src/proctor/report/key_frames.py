"""What the robot saw at the moments that matter: from the run's recording, else driven and drawn again."""

from __future__ import annotations

import io
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from msgspec import UNSET
from PIL import Image

from proctor.core.errors import ProctorError
from proctor.core.geometry import distance
from proctor.core.interfaces import Env
from proctor.core.registry import build
from proctor.core.types import Vector3
from proctor.exams.fault_words import UNSCORED_CLASSES
from proctor.exams.names import AnyExam
from proctor.exams.page import Eye, JudgedEpisode, KeyFrames, Page
from proctor.report.run_record import OnProgress, RunRecord
from proctor.runs.latency import charged_cost
from proctor.runs.recordings import FRAMES, recording_folder

T = TypeVar("T")
WIDTH_PX = 320
FILM_WIDTH_PX = 240
MOST_FILM_FRAMES, MOST_FRAMES_OF_AN_EPISODE = 1000, 150
"""Of a report and of an episode in it: a frame takes some 10 kB of the page."""
JPEG_QUALITY = 78
SAME_M = 0.02  # a replay that is further than this from the recorded path went somewhere else


def choose(
    runs: Sequence[RunRecord], judged: Sequence[JudgedEpisode], *, most: int | None, most_steps: int | None
) -> list[JudgedEpisode]:
    """Choose the episodes to show in pictures, at most `most`: failures first, all classes in turn.

    Those that were not recorded must be replayed, and may have `most_steps` steps together. None: no limit.
    """
    groups: defaultdict[tuple[int, str], list[JudgedEpisode]] = defaultdict(list)
    for each in judged:
        kind = each.verdict.kind
        if kind not in UNSCORED_CLASSES:
            privileged = runs[each.run].folder.is_privileged
            groups[2 * privileged + (kind == "success"), kind].append(each)
    ranked = [
        (rank, turn, kind, each) for (rank, kind), group in groups.items() for turn, each in enumerate(group)
    ]
    ranked.sort(key=lambda item: item[:3])
    chosen, steps = [], 0
    for *_, each in ranked[:most]:
        if not _recorded_frames(runs[each.run], each.result.episode_id):
            steps += each.result.steps
        if most_steps is not None and steps > most_steps:
            break
        chosen.append(each)
    return chosen


def collect(
    runs: Sequence[RunRecord],
    chosen: Sequence[JudgedEpisode],
    page: Page,
    *,
    width_px: int = WIDTH_PX,
    film: bool = False,
    on_progress: OnProgress | None = None,
) -> dict[tuple[int, str], KeyFrames]:
    """Return the key frames of these episodes by run and id; wider pictures are shrunk to `width_px`.

    With `film`, the recorded frames between the key frames are added.
    """
    found: dict[tuple[int, str], KeyFrames] = {}
    most_in_film = min(MOST_FILM_FRAMES // max(len(chosen), 1), MOST_FRAMES_OF_AN_EPISODE) if film else 0

    def tell() -> None:
        if on_progress is not None:
            on_progress("taking pictures", len(found), len(chosen))

    by_env: defaultdict[str, list[JudgedEpisode]] = defaultdict(list)
    for each in chosen:
        run = runs[each.run]
        recorded = _recorded(run, each, page, width_px, most_in_film)
        why_not = _why_not_replayed(run, each, page)
        if recorded is not None or why_not:
            found[each.run, each.result.episode_id] = recorded or KeyFrames([], "none", why_not)
            tell()
        else:
            by_env[repr([run.identity.get("env"), run.identity.get("env_options")])].append(each)
    for group in by_env.values():
        for key, frames in _replay_all(runs, group, page, width_px):
            found[key] = frames
            tell()
    return found


def _why_not_replayed(run: RunRecord, each: JudgedEpisode, page: Page) -> str:
    """Return why an episode cannot be done again here; nothing if it can."""
    if each.episode is None:
        return "The dataset is gone, so nothing can be driven again."
    if run.scenes_changed:
        return "The scene has changed, so nothing can be driven again."
    env = run.identity.get("env")
    return "" if env in page.eyes else f"The env '{env}' cannot be driven again here."


def _recorded(
    run: RunRecord, each: JudgedEpisode, page: Page, width_px: int, most_in_film: int
) -> KeyFrames | None:
    """Return the key frames that were kept during the run; None if there are none."""
    files = _recorded_frames(run, each.result.episode_id)
    wanted = [(step, files[step]) for step in page.key_steps(each) if step in files]
    if not wanted:
        return None
    try:
        pictures = [(step, _shrunk(file, width_px)) for step, file in wanted]
        others = sorted(files.keys() - {step for step, _ in wanted})
        film = [(step, _shrunk(files[step], FILM_WIDTH_PX)) for step in spread(others, most_in_film)]
    except (OSError, Image.DecompressionBombError) as error:
        return KeyFrames([], "none", f"The recorded pictures cannot be read: {error}")
    return KeyFrames(pictures, "recorded", film=film)


def _shrunk(file: Path, width_px: int) -> bytes:
    return jpeg(Image.open(file).convert("RGB"), width_px)


def spread(steps: Sequence[T], most: int) -> list[T]:
    """Return so many of these steps, or other items, the first and the last among them."""
    if len(steps) <= most or most < 2:
        return list(steps[:most])
    return [steps[round(index * (len(steps) - 1) / (most - 1))] for index in range(most)]


def _recorded_frames(run: RunRecord, episode_id: str) -> dict[int, Path]:
    """Return the pictures of an episode's recording by the number of steps done."""
    folder = recording_folder(run.folder.path, episode_id) / FRAMES
    return {int(file.stem): file for file in folder.glob("*.jpg") if file.stem.isdigit()}


def _replay_all(
    runs: Sequence[RunRecord], group: Sequence[JudgedEpisode], page: Page, width_px: int
) -> Iterator[tuple[tuple[int, str], KeyFrames]]:
    """Do episodes again that have the same env and options."""
    identity = runs[group[0].run].identity
    eye = page.eyes[identity["env"]]
    try:
        env = build("env", identity["env"], eye.options(identity.get("env_options") or {}, width_px))
    except ProctorError as error:
        gone = KeyFrames([], "none", f"Could not be driven again: {error}")
        yield from (((each.run, each.result.episode_id), gone) for each in group)
        return
    exam = page.exam()
    with closing(env):
        for each in sorted(group, key=lambda each: each.result.scene_id):  # a scene is built once
            cost = charged_cost(runs[each.run].identity)
            keeps_command = cost is not None and cost.keeps_command
            frames = replay(
                env, exam, each, page.key_steps(each), eye=eye, width_px=width_px, keeps_command=keeps_command
            )
            yield (each.run, each.result.episode_id), frames


def replay(
    env: Env,
    exam: AnyExam,
    judged: JudgedEpisode,
    steps: Sequence[int],
    *,
    eye: Eye,
    width_px: int = WIDTH_PX,
    keeps_command: bool = False,
) -> KeyFrames:
    """Do the recorded actions again; take pictures after `steps` while the robot is where it was then.

    Where the agent's thinking was charged, `keeps_command` says what the robot did meanwhile.
    """
    pictures: list[tuple[int, bytes]] = []
    result = judged.result
    try:
        for done, recorded in enumerate(result.trajectory):
            env.looking = done in steps  # type: ignore[attr-defined]  # all that a page has eyes for have it
            if not done:
                view = env.reset(judged.episode)
            else:
                if result.thinking is not UNSET:
                    env.wait(result.thinking.charged_s[done - 1], keep=keeps_command)
                view, _, _, info = env.step(exam.parse_action(result.actions[done - 1]))
                off_m = distance(Vector3.of(info[eye.place]), recorded)
                if off_m > SAME_M:
                    away = f"the robot was {off_m:.2f} m away from where it had been after step {done}"
                    cause = "the scene or the software has changed. Pictures from there on are left out."
                    return KeyFrames(pictures, "replayed", f"Driven again, {away}: {cause}")
            if done in steps:
                pictures.append((done, jpeg(eye.picture(view), width_px)))
    except ProctorError as error:
        return KeyFrames(pictures, "replayed", f"Could not be driven again: {error}")
    return KeyFrames(pictures, "replayed")


def jpeg(rgb: Any, width_px: int = WIDTH_PX) -> bytes:
    """Return a picture as a JPEG that is small enough for a page with many."""
    image = Image.fromarray(np.asarray(rgb))
    if image.width > width_px:
        image = image.resize((width_px, max(1, round(image.height * width_px / image.width))))
    stream = io.BytesIO()
    image.save(stream, "JPEG", quality=JPEG_QUALITY, optimize=True)
    return stream.getvalue()
