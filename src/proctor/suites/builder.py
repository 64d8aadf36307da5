"""Builds an exam: generated houses, episodes in them, and the checksums that freeze both."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

import msgspec
import numpy as np

from proctor.core.errors import UserError
from proctor.exams.datasets import freeze, save_dataset
from proctor.instructions.phrasebook import LANGUAGES
from proctor.scenes.houses import House, check_rooms, generate_house
from proctor.scenes.scene import Scene
from proctor.scenes.scene_config import SceneConfig, SceneObject, save_scene
from proctor.suites.house_exam import HouseExam, Question, rooms_are_reachable

GUESSABLE_SEEDS = range(2**64)
"""Exams of these seeds can be found by trying: their houses are among those that anybody may train on."""
TRAINING_SEEDS = range(100_000)
"""Of the houses that anybody may train on."""
HELD_OUT_SEEDS = range(1_000_000, 1_100_000)
"""Of the houses of `unseen` splits. `proctor generate` never makes them."""
MOST_EPISODES = 100
"""Per house: no house has that much to say."""
HOPELESS = 10
"""So many houses in a row without enough episodes mean that none has enough."""


class Split(NamedTuple):
    """A part of an exam."""

    name: str
    houses: int
    seeds: range | None = TRAINING_SEEDS
    """Of its houses; None for seeds of 128 bits, made from that of the exam, so that nobody else has them."""


class Recipe(NamedTuple):
    """What to build. The same recipe gives the same files, byte by byte."""

    splits: tuple[Split, ...]
    episodes_per_house: int
    seed: int
    rooms: int | None = None
    """Of each house, halls included; different from house to house if not given."""
    names_carry_seeds: bool = False
    """Whether scenes and episodes are named by the seed of their house, from which it can be made again."""


RECIPES = {
    "houses-v1": Recipe(
        (Split("val_seen", 10), Split("val_unseen", 15, HELD_OUT_SEEDS)),
        episodes_per_house=12,
        seed=1,
        names_carry_seeds=True,
    )
}
"""How the suites that come with Proctor were made."""


def recipe_of(houses: int, episodes_per_house: int, seed: int, rooms: int | None = None) -> Recipe:
    """Return how to make an exam of one's own: of public houses, unless its seed cannot be guessed."""
    seeds = TRAINING_SEEDS if seed in GUESSABLE_SEEDS else None
    return Recipe((Split("train", houses, seeds),), episodes_per_house, seed, rooms)


def build_suite(folder: Path, recipe: Recipe, progress: Callable[[int], None] | None = None) -> None:
    """Write the episodes in every language, `scenes/` and `checksums.json`.

    `progress` is called with the number of finished houses, after each.
    """
    check_recipe(recipe)
    scenes = folder / "scenes"
    scenes.mkdir(parents=True, exist_ok=True)
    files: list[Path] = []
    questions: list[Question] = []
    for split in recipe.splits:
        for house, found in _houses(split, recipe):
            files.append(scenes / f"{house.scene.scene_name}.json")
            save_scene(house.scene, files[-1])
            questions += found
            if progress is not None:
                progress(len(files))
    for language in LANGUAGES:
        files.append(folder / episodes_file(language))
        save_dataset([question.asked_in(language) for question in questions], files[-1])
    freeze(folder, sorted(files))


def check_recipe(recipe: Recipe) -> None:
    """Raise a UserError for a recipe that cannot be built."""
    count, houses = recipe.episodes_per_house, min(split.houses for split in recipe.splits)
    if houses < 1 or count < 1:
        raise UserError(f"expected at least 1 house and 1 episode, found {houses} and {count}")
    if count > MOST_EPISODES:
        raise UserError(
            f"expected at most {MOST_EPISODES} episodes per house, found {count}; make more houses"
        )
    for split in recipe.splits:
        if split.seeds is not None and split.houses > len(split.seeds):
            raise UserError(f"expected at most {len(split.seeds)} houses, found {split.houses}")
    if recipe.seed < 0:
        raise UserError(f"expected a seed from 0 up, found {recipe.seed}")
    check_rooms(recipe.rooms)


def episodes_file(language: str) -> str:
    """Return the name of the file with the episodes in a language."""
    return "episodes.json" if language == LANGUAGES[0] else f"episodes.{language}.json"


def name_of(scene: SceneConfig) -> str:
    """Return a name for a scene by what is in it, which says nothing about how it was made."""
    # Read back first, which makes 0 and 0.0 the same: a stored scene has the name of a new one.
    objects = msgspec.json.decode(msgspec.json.encode(scene.objects), type=list[SceneObject])
    return f"house_{hashlib.sha256(msgspec.json.encode(objects)).hexdigest()[:10]}"


def _house_seeds(split: Split, seed: int) -> Iterator[int]:
    """Yield the seeds of houses to try, in the order of the exam's own seed."""
    if split.seeds is not None:
        for index in np.random.default_rng(seed).permutation(len(split.seeds)):
            yield split.seeds.start + int(index)
        return
    for index in itertools.count():
        # A hash, so that nobody who finds the seed of one house can work out those of the others.
        yield int.from_bytes(hashlib.sha256(f"{seed}/{split.name}/{index}".encode()).digest()[:16], "big")


def _houses(split: Split, recipe: Recipe) -> Iterator[tuple[House, list[Question]]]:
    """Yield a split's houses with their episodes, leaving out those where a room cannot be entered."""
    count, seed = recipe.episodes_per_house, recipe.seed
    left, misses = split.houses, 0
    for house_seed in _house_seeds(split, seed):
        if left == 0:
            return
        if misses > HOPELESS:
            raise UserError(f"{count} different episodes are too many for one house")
        misses += 1
        house = generate_house(house_seed, recipe.rooms)
        if not recipe.names_carry_seeds:
            named = msgspec.structs.replace(house.scene, scene_name=name_of(house.scene))
            house = house._replace(scene=named)
        grid = Scene(house.scene).map()
        if not rooms_are_reachable(house, grid):
            continue
        # The split is in it, so that a training set has other episodes than an exam in the same house.
        rng = np.random.default_rng([seed, house_seed, crc32(split.name.encode())])
        questions = HouseExam(house, grid, split.name, rng).questions(count)
        if len(questions) == count:
            left, misses = left - 1, 0
            yield house, questions
    raise UserError(f"{split.houses} houses were asked for, but only {split.houses - left} can be made")
