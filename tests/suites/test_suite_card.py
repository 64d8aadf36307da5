"""The suite card says what is in the suite."""

import math
import re
from collections import Counter
from itertools import pairwise
from pathlib import Path
from statistics import mean

import pytest

from proctor.core.registry import suite_path
from proctor.exams.datasets import load_dataset
from proctor.instructions.clauses import StopAt
from proctor.instructions.phrasebook import read
from proctor.scenes.scene import Scene

CARD = Path(__file__).parents[2] / "docs" / "houses-v1.md"
SPLITS = ("val_seen", "val_unseen")


def rows():
    """Return the card's table of numbers: name -> a cell per split."""
    table = re.search(r"\| \| val_seen \| val_unseen \|\n\|.*\n((?:\|.*\n)+)", CARD.read_text())[1]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]
    return {name: values for name, *values in cells}


def spread(values):
    digits = 0 if all(isinstance(value, int) for value in values) else 1
    return f"{mean(values):.1f} ({min(values):.{digits}f} to {max(values):.{digits}f})"


def length_m(episode):
    return sum(math.dist((a.x, a.y), (b.x, b.y)) for a, b in pairwise(episode.reference_path))


def rooms_of(scene_path):
    return len([item for item in Scene.load(Path(scene_path)).objects if item.category == "floor"])


def facts(split):
    episodes = [e for e in load_dataset(suite_path("houses-v1")).episodes if e.split == split]
    chinese = [e for e in load_dataset(suite_path("houses-v1-zh")).episodes if e.split == split]
    scenes = {episode.scene_config_path for episode in episodes}
    found = {
        "houses": str(len(scenes)),
        "episodes": str(len(episodes)),
        "rooms in a house": spread([rooms_of(scene) for scene in scenes]),
        "geodesic length, m": spread([length_m(episode) for episode in episodes]),
        "expert's actions": spread([len(episode.reference_actions) for episode in episodes]),
    }
    for level in ("short", "medium", "long"):
        told = [e for e in episodes if e.level == level]
        found[f"words, {level}"] = spread([len(e.instruction.split()) for e in told])
        found[f"characters in Chinese, {level}"] = spread(
            [len(e.instruction) for e in chinese if e.level == level]
        )
    return found


@pytest.mark.parametrize("column", [0, 1], ids=SPLITS)
def test_the_numbers_are_those_of_the_suite(column):
    assert {name: cells[column] for name, cells in rows().items()} == facts(SPLITS[column])


def test_the_commonest_places_to_stop_are_named():
    stops = Counter()
    for episode in load_dataset(suite_path("houses-v1")).episodes:
        stop = read(episode.instruction, "en")[-1]
        assert isinstance(stop, StopAt)
        stops[stop.thing.category] += 1
    commonest = ", ".join(f"{name} ({count})" for name, count in stops.most_common(8))
    assert f"{len(stops)} kinds of things to stop at; the commonest are {commonest}" in " ".join(
        CARD.read_text().split()
    )
