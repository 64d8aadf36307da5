"""Another wording of an instruction: the same path in other words, checked clause by clause."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from functools import lru_cache

import msgspec
import numpy as np

from proctor.core.errors import UserError
from proctor.exams.path_distance import scene_of
from proctor.exams.vln.episode import Episode
from proctor.exams.vln.instruction_checker import check_instruction
from proctor.instructions.phrasebook import LANGUAGES, Unreadable, read, say
from proctor.instructions.surroundings import Surroundings
from proctor.instructions.writer import Level, describe
from proctor.scenes.scene import Scene

TRIES = 20
"""For each of the two ways: the same clauses in other words, and other clauses."""


def reworded(episode: Episode, seed: int) -> str:
    """Return another wording that the checker accepts; a UserError if there is none."""
    problem, scene = _problem(episode), scene_of(episode)
    if problem is None and scene is None:
        problem = "it has no scene file, which the instruction writer needs"
    elif problem is None and scene is not None:
        surroundings = _surroundings(scene)
        if surroundings.has_meshes:
            problem = "its scene has meshes, which the instruction writer cannot describe"
        else:
            for text in _wordings(episode, surroundings, seed):
                asked = msgspec.structs.replace(episode, instruction=text)
                if text != episode.instruction and not check_instruction(surroundings, asked):
                    return text
            problem = "the instruction writer finds no other words for its path"
    raise UserError(f"episode '{episode.episode_id}': {problem}")


def _problem(episode: Episode) -> str | None:
    """Return what the instruction writer lacks."""
    if episode.language not in LANGUAGES:
        return f"its language is {episode.language}; the instruction writer knows {' and '.join(LANGUAGES)}"
    if episode.reference_path is None or len(episode.reference_path) < 2:
        return "it has no reference path, which the instruction writer needs"
    return None


def _wordings(episode: Episode, surroundings: Surroundings, seed: int) -> Iterator[str]:
    """Yield the same clauses in other words, then other clauses about the same path."""
    digest = hashlib.sha256(f"{seed}/{episode.episode_id}".encode()).digest()
    rng = np.random.default_rng(int.from_bytes(digest[:8], "big"))
    try:
        clauses = read(episode.instruction, episode.language)
        yield from (say(clauses, episode.language, rng) for _ in range(TRIES))
    except Unreadable:
        pass
    level: Level = episode.level or "medium"
    path_xy = np.array([(point.x, point.y) for point in episode.reference_path or ()])
    for _ in range(TRIES):
        described = describe(surroundings, path_xy, episode.start_yaw, level=level, rng=rng)
        if described is not None:
            yield say(described, episode.language, rng)


@lru_cache(maxsize=8)
def _surroundings(scene: Scene) -> Surroundings:
    return Surroundings.of(scene.config)
