"""Builds tabletop exams: episodes that stand still when they begin and that the expert has done."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

import msgspec
import numpy as np

from proctor.core.documents import write_atomically
from proctor.core.errors import UserError
from proctor.core.interfaces import TRUTH
from proctor.core.types import EpisodeInfo
from proctor.exams.datasets import freeze
from proctor.exams.pick_place.env import PickPlaceEnv, things_of
from proctor.exams.pick_place.episode import TASK, PickAndPlaceEpisode
from proctor.exams.pick_place.exam import PickPlaceExam
from proctor.exams.pick_place.expert.expert import ExpertPolicy
from proctor.exams.pick_place.similarity import keypoints_of
from proctor.exams.pick_place.stages import criteria_of, stages_of
from proctor.exams.pick_place.state import PickPlaceState, read_state
from proctor.robots.stretch import controls_of_qpos
from proctor.scenes.tabletop_parts import ReferenceTrajectory
from proctor.suites.tabletop_exam import SEEN, UNSEEN, TabletopExam
from proctor.suites.tabletop_scenes import Repertoire
from proctor.worlds.mujoco.tabletop.tabletop import TabletopWorld

STILL_M, STILL_RAD = 0.005, math.radians(5.0)
"""What moves more than this while an episode settles does not stand."""
DIGITS = 4
EPISODES = "episodes.json"
HOPELESS = 20
"""So many candidates in a row that cannot be done mean that something is wrong."""


class TabletopSplit(NamedTuple):
    """A part of an exam."""

    name: str
    episodes: int
    repertoire: Repertoire


class TabletopRecipe(NamedTuple):
    """What to build. The same recipe gives the same files on the same machine."""

    splits: tuple[TabletopSplit, ...]
    seed: int


TABLETOP_RECIPES = {
    "tabletop-v1": TabletopRecipe(
        (TabletopSplit("val_seen", 64, SEEN), TabletopSplit("val_unseen", 56, UNSEEN)), seed=1
    )
}
"""How the suites that come with Proctor were made."""


def training_recipe(episodes: int, seed: int) -> TabletopRecipe:
    """Return how to make episodes with what `val_seen` is made of."""
    return TabletopRecipe((TabletopSplit("train", episodes, SEEN),), seed)


class Trial(NamedTuple):
    """A candidate and what came of it."""

    episode: PickAndPlaceEpisode
    is_still: bool
    success: bool = False
    steps: int = 0
    touches: int = 0
    """Steps in which the robot touched something other than its object."""


def build_tabletop(
    folder: Path, recipe: TabletopRecipe, progress: Callable[[int], None] | None = None
) -> list[Trial]:
    """Write `episodes.json` and `checksums.json`; return all candidates, also those that were left out.

    `progress` is called with the number of finished episodes, after each. Raises a UserError if too many
    candidates in a row cannot be done.
    """
    trials: list[Trial] = []
    for split in recipe.splits:
        for trial in trials_of(split, recipe.seed):
            trials.append(trial)
            if progress is not None:
                progress(sum(is_good(trial) for trial in trials))
    episodes = [trial.episode for trial in trials if is_good(trial)]
    folder.mkdir(parents=True, exist_ok=True)
    lines = map(msgspec.json.encode, PickPlaceExam.document(episodes, folder)["episodes"])
    write_atomically(folder / EPISODES, b'{"episodes": [\n' + b",\n".join(lines) + b"\n]}\n")
    freeze(folder, [folder / EPISODES])
    return trials


def trials_of(split: TabletopSplit, seed: int) -> Iterator[Trial]:
    """Yield tried candidates of a split until enough are good; UserError if too many in a row are not."""
    good, bad = 0, 0
    env = PickPlaceEnv(sensors=[])
    while good < split.episodes:
        if bad >= HOPELESS:
            raise UserError(f"{bad} candidates in a row for '{split.name}' cannot be done")
        rng = np.random.default_rng([seed, crc32(split.name.encode()), good, bad])
        trial = tried(TabletopExam(split.name, split.repertoire, rng).episode(good), env)
        good, bad = (good + 1, 0) if is_good(trial) else (good, bad + 1)
        yield trial
    env.close()


def is_good(trial: Trial) -> bool:
    """Tell whether a candidate stood still, and was done in good time without bumping into anything."""
    in_time = trial.steps <= 0.8 * trial.episode.step_limit
    return trial.is_still and trial.success and in_time and trial.touches == 0


def tried(episode: PickAndPlaceEpisode, env: PickPlaceEnv) -> Trial:
    """Let the expert do an episode; its path becomes the reference trajectory."""
    world = TabletopWorld(episode, things_of(episode), drawn=False)
    world.place()
    if any(motion.moved_m > STILL_M or motion.tilted_rad > STILL_RAD for motion in world.settle()):
        return Trial(episode, is_still=False)
    policy, states = ExpertPolicy(), list[PickPlaceState]()
    observation, info = env.reset(episode), env.info()
    policy.reset(
        EpisodeInfo(
            episode_id=episode.episode_id,
            instruction=episode.instruction.text,
            max_steps=episode.step_limit,
            seed=0,
            task=TASK,
            episode=episode,
        )
    )
    done = False
    while not done:
        observation, _, done, info = env.step(policy.act({**observation, TRUTH: info}))
        states.append(read_state(info))
    return Trial(
        msgspec.structs.replace(episode, reference_trajectory=_reference(episode, states)),
        is_still=True,
        success=states[-1].success,
        steps=len(states),
        touches=sum(state.collision for state in states),
    )


def _reference(episode: PickAndPlaceEpisode, states: Sequence[PickPlaceState]) -> ReferenceTrajectory:
    """Return every step of an attempt, with the moments that the metric of similarity looks for."""
    keypoints = keypoints_of(stages_of(states, criteria_of(episode)))
    return ReferenceTrajectory(
        qpos_sequence=[_rounded(controls_of_qpos(state.qpos or ())) for state in states],
        ee_pose_sequence=[_rounded(state.ee_pose or ()) for state in states],
        keypoints={name: index for name, index in keypoints.items() if index is not None},
    )


def _rounded(row: Any) -> tuple[float, ...]:
    return tuple(round(float(value), DIGITS) + 0.0 for value in row)
