"""An episode of a run with what was found out about it, whatever its task."""

from __future__ import annotations

from typing import Any, NamedTuple

from msgspec import UNSET

from proctor.core.types import Array
from proctor.exams.pick_place.verdict import PickPlaceDiagnosis
from proctor.exams.results import EpisodeResult, PickPlaceRecord
from proctor.exams.vln.verdict import Diagnosis


class Verdict(NamedTuple):
    """An episode of a run with what was found out about it."""

    run: int
    """Index of the run."""
    result: EpisodeResult
    episode: Any
    """What was asked, of the task's own kind; None if the dataset is gone."""
    diagnosis: Diagnosis | PickPlaceDiagnosis
    goal_distances_m: Array | None = None
    """At each point of the trajectory, where the task is to drive."""


def record_of(verdict: Verdict) -> PickPlaceRecord | None:
    """Return what a pick-and-place episode kept; None of another task, or if it never began."""
    record = verdict.result.pick_place
    return None if record is UNSET or not record.object_path or not verdict.result.trajectory else record
