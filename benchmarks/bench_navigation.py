"""navigate_to in physics: does it arrive, how exactly, and does it touch anything?

500 random goals in the houses of the suite, then 200 with a box that appears on the path and a person who
walks about. Run it with `python -m benchmarks.bench_navigation`; it takes a quarter of an hour.
"""

from __future__ import annotations

import math

import numpy as np

from benchmarks.drives import Trial, drives
from benchmarks.rows import Row

GOALS, CROWDED_GOALS = 500, 200
SEED = 6


def bench() -> list[Row]:
    alone = drives(GOALS, seed=SEED, crowded=False)
    crowded = drives(CROWDED_GOALS, seed=SEED, crowded=True)
    for trial in (*alone, *crowded):
        if not trial.arrived or trial.contacts_moving:
            print(f"  {trial.name}: {trial.reason or 'arrived'}, {trial.contacts_moving} ticks of contact")
    return [*exactness(alone), *safety(alone, crowded)]


def exactness(trials: list[Trial]) -> list[Row]:
    """How well the trajectories are followed, and how exactly they end."""
    off_m = np.concatenate([trial.cross_track_m for trial in trials])
    ends_m = np.array([trial.distance_m for trial in trials])
    yaws_deg = np.degrees([trial.yaw_error_rad for trial in trials])
    return [
        Row("navigate: cross-track RMS (vs 2 cm)", 100 * math.sqrt((off_m**2).mean()), 2.0, 1.0, "cm"),
        Row("navigate: arrival error, median (vs 1 cm)", 100 * float(np.median(ends_m)), 1.0, 1.0, "cm"),
        Row("navigate: arrival error, worst (vs 2 cm)", 100 * float(ends_m.max()), 2.0, 1.0, "cm"),
        Row("navigate: heading at arrival, worst (vs 1°)", float(yaws_deg.max()), 1.0, 1.0, "°"),
    ]


def safety(alone: list[Trial], crowded: list[Trial]) -> list[Row]:
    """How many did not arrive, and how many touched something."""

    def count(name: str, trials: list[Trial], bad: list[bool], bar: float) -> Row:
        return Row(f"navigate: {name}", sum(bad), len(trials), bar, "drives")

    return [
        count("did not arrive", alone, [not trial.arrived for trial in alone], 0.0),
        count("touched anything", alone, [trial.contacts > 0 for trial in alone], 0.0),
        count("did not arrive, box and walker", crowded, [not t.arrived for t in crowded], 0.02),
        count("touched in motion, box and walker", crowded, [t.contacts_moving > 0 for t in crowded], 0.0),
    ]


if __name__ == "__main__":
    for row in bench():
        print(f"{row.name:<50}{row.ours:>10.3f} {row.unit} of {row.theirs:g}")
