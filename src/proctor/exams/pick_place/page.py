"""What the report's page shows of pick-and-place only: stages, the paths of hand and object, the tabletop."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from proctor.core.types import Array
from proctor.exams.pick_place.episode import PickAndPlaceEpisode
from proctor.exams.pick_place.moments import moments_of
from proctor.exams.pick_place.tabletop_views import shapes_of, side_of
from proctor.exams.pick_place.verdict import diagnose_pick_place
from proctor.report.progress import OnProgress, tracked
from proctor.report.run_record import RunRecord
from proctor.report.verdict import Verdict, record_of

STAGES = ("reached", "grasped", "lifted", "placed")
NOWHERE = "none: lift only"
"""The target type of an episode that asks for no more than lifting."""


def judge_pick_place(runs: Sequence[RunRecord], on_progress: OnProgress | None = None) -> list[Verdict]:
    """Diagnose every episode of every run, in the order of runs and episodes."""
    verdicts = []
    done = [(index, result) for index, run in enumerate(runs) for result in run.results.episodes]
    for index, result in tracked(done, "diagnosing", on_progress):
        episode = runs[index].episodes.get(result.episode_id)
        verdicts.append(Verdict(index, result, episode, diagnose_pick_place(result, episode)))
    return verdicts


class PickPlacePage:
    """The parts of the page's data that only pick-and-place has."""

    def __init__(self, verdicts: Sequence[Verdict]) -> None:
        del verdicts  # nothing is shared between them
        self.problems: list[str] = []

    @property
    def extras(self) -> dict[str, Any]:
        """What belongs to no single episode: nothing."""
        return {}

    def episode(self, verdict: Verdict, run: RunRecord) -> dict[str, Any]:
        """Return what was asked."""
        del run
        record, episode = record_of(verdict), verdict.episode
        said: dict[str, Any] = _asked(episode) if episode is not None else {}
        if record is None:
            return said
        side = side_of(record)
        said["side"] = [round(value, 4) for value in (*side.origin_xy, *side.along_xy)]
        said["sideways"] = side.label
        if record.target is not None:
            said["goal"] = [_mm(value) for value in record.target]
        if episode is not None:
            shapes, problems = shapes_of(episode, side)
            said["shapes"] = [
                {
                    "name": shape.name,
                    "big": shape.is_furniture,
                    "top": _flat_mm(shape.top),
                    "side": _flat_mm(shape.side),
                    "rgb": [round(255 * value) for value in shape.rgb],
                }
                for shape in shapes
            ]
            self.problems += [text for text in problems if text not in self.problems]
        return said

    def result(self, verdict: Verdict) -> dict[str, Any]:
        """Return what was done."""
        result, record = verdict.result, record_of(verdict)
        said: dict[str, Any] = {"end": round(result.final_distance_to_goal, 4), "steps": result.steps}
        if record is None:
            return said
        moments = moments_of(result, record, verdict.diagnosis.step)
        return said | {
            "hand": _steps_mm((point.x, point.y, point.z) for point in result.trajectory),
            "thing": _steps_mm(record.object_path),
            "base": _steps_mm((x, y) for x, y, _ in record.base_path),
            "yaw": [round(math.degrees(yaw)) for _, _, yaw in record.base_path],
            "grip": [round(10_000 * value) for value in record.gripper],
            "phase": "".join(phase[0] for phase in record.phases),
            "held": "".join(str(int(held)) for held in record.held),
            "moments": [[moment.step, moment.label] for moment in moments],
            # A success has been through all stages, also where there is nowhere to place a thing.
            "got": 5 if result.success else sum(record.stages.get(name) is not None for name in STAGES),
            "stages": {name: step for name, step in record.stages.items() if step is not None},
        }


def _asked(episode: PickAndPlaceEpisode) -> dict[str, Any]:
    goal, location = episode.task_goal, episode.task_goal.target_location
    said: dict[str, Any] = {
        "object": goal.target_object.name if goal.target_object is not None else None,
        "target": location.type if location is not None else NOWHERE,
        "lift": goal.success_criteria.lift_height,
        "near": goal.success_criteria.place_tolerance,
        "period": episode.sim_params.control_period,
    }
    if location is not None:
        said["zone"] = location.radius
        said["into"] = location.object_name
    return said


def _mm(metres: float) -> int:
    return round(1000 * metres)


def _flat_mm(points: Array) -> list[int]:
    return [_mm(value) for point in points.tolist() for value in point]


def _steps_mm(points: Iterable[tuple[float, ...]]) -> list[int]:
    """Return the first point, then from each point to the next: short numbers make a small file."""
    grid = np.rint(1000 * np.array(list(points))).astype(int)
    return [int(value) for value in np.diff(grid, axis=0, prepend=0 * grid[:1]).ravel()]
