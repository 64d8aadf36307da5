"""The moments of a pick-and-place episode that tell its story, the same in the page and in pictures."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

from proctor.exams.results import EpisodeResult, PickPlaceRecord

STAGES = {"reached": "reach", "grasped": "grasp", "lifted": "lift", "placed": "place"}
"""What is said of the step in which a stage was first there."""
PICTURES = 6


class Moment(NamedTuple):
    """A step, as the number of steps done, and what happened there."""

    step: int
    label: str


def moments_of(result: EpisodeResult, record: PickPlaceRecord, wrong: int) -> list[Moment]:
    """Return as many moments as there are pictures, or all steps of an episode that has fewer.

    Args:
        result: The episode.
        record: Its own.
        wrong: Where it went wrong.
    """
    last = max(len(result.trajectory) - 1, 0)
    told: dict[int, list[str]] = {0: ["start"]}
    for stage, label in STAGES.items():
        step = record.stages.get(stage)
        if step is not None and 0 <= step <= last:
            told.setdefault(step, []).append(label)
    told.setdefault(last, []).append("end")
    if not result.success and 0 < wrong < last and (wrong in told or len(told) < PICTURES):
        told.setdefault(wrong, []).append("went wrong")
    while len(told) < min(PICTURES, last + 1):
        steps = sorted(told)
        gap, before = max((after - before, before) for before, after in pairwise(steps))
        told[before + gap // 2] = []
    return [Moment(step, ", ".join(told[step])) for step in sorted(told)]
