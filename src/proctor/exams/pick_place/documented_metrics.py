"""The metrics as the design documents write them: classes that are given the state after each step.

They use the functions that the exam's own metrics are made of.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from proctor.core.interfaces import MetricTask, StepMetric
from proctor.core.types import Info
from proctor.exams.pick_place.similarity import KEYPOINTS, keypoints_of, similarity_to_reference
from proctor.exams.pick_place.stages import (
    OBJECT_Z_M,
    REACHED_M,
    Stages,
    TaskCriteria,
    completion_of,
    criteria_of,
    hand_distance_m,
    initial_position,
    is_complete,
    next_stages,
    phase_progress,
)
from proctor.exams.pick_place.state import PHASES, PickPlaceState, Point, read_optional

UNKNOWN: Point = (math.nan, math.nan, math.nan)
"""No distance to here is below any other, so nothing is reached, lifted or placed."""


class PickPlaceSuccess(StepMetric):
    """Whether the object was grasped, lifted and then, at any step, at its target, if it has one.

    Height and tolerance are in metres, for episodes that do not say them.
    """

    is_rate = True

    def __init__(self, lift_height: float = 0.1, place_tolerance: float = 0.05) -> None:
        self._usual = TaskCriteria(lift_height, place_tolerance)
        self._stages = Stages()
        self.initial_object_pos: Any = None
        self._restart(self._usual)

    def reset(self, episode: Any, task: MetricTask) -> None:
        """Begin with the object where it stands at first."""
        self.initial_object_pos = initial_position(episode)
        self._restart(criteria_of(episode, self._usual))

    def update(self, state: Info) -> None:
        """Take in the state after a step."""
        initial = self.initial_object_pos
        criteria = TaskCriteria(
            lift_height_m=self.lift_height,
            place_tolerance_m=self.place_tolerance,
            initial_z_m=OBJECT_Z_M if initial is None else float(initial[2]),
            target=self.target_location,
            needs_place=self._needs_place,
        )
        self._stages = next_stages(self._stages, 1, documented_state(state), criteria)
        self.object_grasped = self._stages.grasped is not None
        self.object_lifted = self._stages.lifted is not None
        self.object_placed = self._stages.placed is not None
        self.success = is_complete(self._stages, criteria)

    def get_metric(self) -> float:
        """Return 1 or 0."""
        return float(self.success)

    def _restart(self, criteria: TaskCriteria) -> None:
        self.lift_height, self.place_tolerance = criteria.lift_height_m, criteria.place_tolerance_m
        self.target_location, self._needs_place = criteria.target, criteria.needs_place
        self._stages = Stages()
        self.object_grasped = self.object_lifted = self.object_placed = self.success = False


class PickPlaceCompletionRate(StepMetric):
    """How far the present phase has come, from 0 to 1; `completion_rate` is how far the whole task has."""

    def __init__(self) -> None:
        self.completion_rate = 0.0
        """The largest so far; 1 after a success."""
        self._restart(TaskCriteria())

    def reset(self, episode: Any, task: MetricTask) -> None:
        """Begin at nothing."""
        self._restart(criteria_of(episode))

    def update(self, state: Info) -> None:
        """Take in the state after a step. A phase that is not known changes nothing."""
        phase = state.get("phase", PHASES[0])
        if phase not in PHASES:
            return
        known = documented_state({**state, "phase": phase})
        self.phase = phase
        self.progress = phase_progress(known, self._criteria)
        self.completion_rate = max(self.completion_rate, completion_of(known, self._criteria))

    def get_metric(self) -> float:
        """Return the progress in the present phase."""
        return self.progress

    def _restart(self, criteria: TaskCriteria) -> None:
        self._criteria = criteria
        self.phase = PHASES[0]
        self.progress = 0.0
        self.completion_rate = 0.0


class PickPlaceTrajectorySimilarity(StepMetric):
    """How alike the joint positions of the attempt and of the reference are, whatever the timing."""

    def __init__(self) -> None:
        self._stages = Stages()
        self.keypoints: dict[str, int | None] = {}
        """The index in the trajectory at which each was first seen."""
        self._restart(TaskCriteria(), None)

    def reset(self, episode: Any, task: MetricTask) -> None:
        """Begin with an empty trajectory."""
        self._restart(criteria_of(episode), episode.reference_trajectory or None)

    def update(self, state: Info) -> None:
        """Take in the state after a step."""
        for name, rows in self.trajectory.items():
            row = state.get(name)
            if row is not None and len(row):
                rows.append(np.array(row))  # a copy: the caller may still write into it
        steps = len(self.trajectory["qpos"])
        self._stages = next_stages(self._stages, steps, documented_state(state), self._criteria)
        if steps:
            found = keypoints_of(self._stages)
            self.keypoints = {name: found.get(name) for name in self.keypoints}

    def get_metric(self) -> float:
        """Return a value from 0 to 1, NaN without a reference."""
        return similarity_to_reference("qpos", self.trajectory["qpos"], self.reference, self.keypoints)

    def _restart(self, criteria: TaskCriteria, reference: Any) -> None:
        self._criteria, self._stages = criteria, Stages()
        self.trajectory: dict[str, list[Any]] = {"qpos": [], "ee_pose": []}
        self.reference = reference
        names = reference.get("keypoints") if reference else None
        self.keypoints = dict.fromkeys(names or KEYPOINTS)


def documented_state(info: Info) -> PickPlaceState:
    """Return a state of the documents' kind. Where it tells no phase, distance says what was reached."""
    known: dict[str, Any] = {
        "position": UNKNOWN,
        "yaw": math.nan,
        "ee_position": _point(info.get("ee_position")) or UNKNOWN,
        "object_position": _point(info.get("object_position")) or UNKNOWN,
        "gripper_state": float(info.get("gripper_state", math.nan)),
        "object_grasped": bool(info.get("object_grasped", False)),
        "collision": False,
        "target_distance": info.get("target_distance"),
        "target_position": _point(info.get("target_position")),
        **read_optional({key: value for key, value in info.items() if key not in ("qpos", "ee_pose")}),
    }
    state = PickPlaceState(**known, phase=info.get("phase", PHASES[0]))
    if "phase" in info or not (state.object_grasped or hand_distance_m(state) < REACHED_M):
        return state
    return PickPlaceState(**known, phase=PHASES[1])


def _point(value: Any) -> Point | None:
    return None if value is None else (float(value[0]), float(value[1]), float(value[2]))
