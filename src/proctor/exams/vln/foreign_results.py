"""Result files of VLN-CE runs, to be put beside ours: `stats_ckpt_*.json` and its relatives.

They hold means over a split, or one record per episode id. Nothing is made up: what a file does not say stays
missing, and its means have no interval.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from proctor.core.documents import read_bytes
from proctor.core.errors import InvalidFile
from proctor.exams.foreign_files import ForeignResults
from proctor.exams.record_check import LARGEST_NUMBER

OUR_NAMES = {
    "distance_to_goal": "navigation_error",
    "steps_taken": "steps",
    "collisions": "collision_rate",
    "collisions.count": "collisions",
}
"""Metrics that VLN-CE calls otherwise. Those not in here keep their name. A number under `collisions` is the
number of collisions divided by that of steps; Habitat's own measure is an object with a `count`."""
EPISODE_COUNTS = ("num_episodes", "total_episodes", "n_episodes", "episode_count", "episodes")
"""Keys of files that hold means under which the number of episodes stands."""


def read_vlnce_results(path: Path) -> ForeignResults:
    """Read a result file of a VLN-CE run.

    A value that is NaN or infinite, as distances are off the navigation mesh, or too large to be measured is
    missing; a mean over episodes is over those that have the value.
    """
    try:
        value = json.loads(read_bytes(path))
    except (ValueError, RecursionError) as error:
        raise InvalidFile(path, f"invalid JSON: {error}") from None
    expected = 'expected {"success": 0.31, "spl": ...}, or such a record per episode id'
    if not isinstance(value, dict) or not value:
        raise InvalidFile(path, f"not a result file: {expected}")
    ignored: set[str] = set()
    n: int | None
    if all(isinstance(record, dict) for record in value.values()):
        episodes = {key: _metrics(record, ignored) for key, record in value.items()}
        names = dict.fromkeys(name for record in episodes.values() for name in record)
        means = {name: _mean([r[name] for r in episodes.values() if name in r]) for name in names}
        n = len(episodes)
    else:
        n = next((count for key in EPISODE_COUNTS if (count := _count(value.pop(key, None)))), None)
        episodes, means = {}, _metrics(value, ignored)
    if "success" not in means and "navigation_error" not in means:
        raise InvalidFile(
            path, f"not a result file: neither success nor distance_to_goal is in it; {expected}"
        )
    rate = means.get("collision_rate")
    words = f"{rate:.3f} bumps per step (its 'collisions' is a rate, not a count)" if rate is not None else ""
    return ForeignResults(
        path=path,
        means=means,
        episodes=episodes,
        n=n,
        ignored=sorted(ignored - means.keys()),
        notes=[words] if words else [],
    )


def _metrics(record: dict[str, Any], ignored: set[str]) -> dict[str, float]:
    metrics = {}
    for name, given in record.items():
        is_count = name == "collisions" and isinstance(given, dict)
        key, value = ("collisions.count", given.get("count")) if is_count else (name, given)
        if isinstance(value, int | float) and abs(value) <= LARGEST_NUMBER:  # a success may be true
            metrics[OUR_NAMES.get(key, key)] = float(value)
        else:
            ignored.add(OUR_NAMES.get(key, key))
    return metrics


def _count(value: Any) -> int | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return int(value) if is_number and 1 <= value <= LARGEST_NUMBER and value == int(value) else None


def _mean(values: list[float]) -> float:
    return math.fsum(values) / len(values)
