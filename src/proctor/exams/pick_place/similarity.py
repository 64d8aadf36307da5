"""How alike two ways of doing a task are: dynamic time warping between an attempt and a reference.

A value is `exp(-c / 0.25)`, with c the mean cost over the steps of the longer one. The cost of two robot
poses is their Euclidean distance with every control measured in ranges of its own, so that a lift and an
angle can be added; docs/metrics.md says why.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from proctor.core.interfaces import Metric, MetricTask
from proctor.core.types import Array, Info
from proctor.exams.dtw import dtw_distance
from proctor.exams.pick_place.stages import PickPlaceSuccess, has_reached, is_in_target
from proctor.robots.stretch import CONTROLS, controls_of_qpos

SCALE = 0.25
"""The mean cost at which similarity has fallen to 1/e: a quarter of one control's range."""
KEYPOINTS = ("grasp_start", "lift_complete", "place_start", "place_complete")
ANGLES = ("base_theta", "wrist_yaw")
CONTROL_WEIGHTS: Array = np.array(
    [1 / math.pi if c.name in ANGLES else 1 / (c.high - c.low) for c in CONTROLS]
)
FARTHEST = 1e6
"""Coordinates beyond this, and those that are no number, count as this."""


def similarity(attempt: Array, reference: Array, cuts: Sequence[tuple[int, int]] = ()) -> float:
    """Return how alike two sequences of points are: 1 if time warping makes them the same, towards 0 if not.

    Args:
        attempt: (N, D); 0 is returned if N is 0.
        reference: (M, D), M at least 1.
        cuts: Pairs of indices that must be matched: both rise. The parts between them are warped apart.
    """
    if not len(attempt):
        return 0.0
    marks = [(0, 0), *cuts, (len(attempt) - 1, len(reference) - 1)]
    cost, steps = 0.0, 0
    for (start, reference_start), (end, reference_end) in pairwise(marks):
        part = attempt[start : end + 1]
        reference_part = reference[reference_start : reference_end + 1]
        cost += dtw_distance(part, reference_part)
        # Every warping path is at least as long, and no alignment of theirs changes it.
        steps += max(len(part), len(reference_part))
    return math.exp(-cost / steps / SCALE)


def control_points(rows: Sequence[Any]) -> Array:
    """Return rows of 7 or 10 joint positions as (N, 7): the controls, each in ranges of its own."""
    controls = [controls_of_qpos(tuple(map(float, row))) for row in rows]
    points: Array = _bounded(np.array(controls).reshape(-1, len(CONTROLS))) * CONTROL_WEIGHTS
    return points


def ee_points(rows: Sequence[Any]) -> Array:
    """Return poses x, y, z, qw, qx, qy, qz as (N, 12): distances are metres and the sine of half the angle.

    The latter by the rotation's matrix, which does not care about the sign of the quaternion.
    """
    poses = _bounded(np.array(rows, dtype=float).reshape(-1, 7))
    norms = np.linalg.norm(poses[:, 3:], axis=1, keepdims=True)
    w, x, y, z = (poses[:, 3:] / np.where(norms > 0, norms, 1.0)).T
    matrices = np.array(
        [
            *(1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)),
            *(2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)),
            *(2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)),
        ]
    )
    return np.concatenate([poses[:, :3], matrices.T / math.sqrt(8)], axis=1)


def matched_keypoints(
    attempt: Mapping[str, int | None], reference: Mapping[str, int], *, steps: int, reference_steps: int
) -> list[tuple[int, int]]:
    """Return the steps of the keypoints that both have. What came in another order is left out."""
    cuts: list[tuple[int, int]] = []
    for name, mark in sorted(reference.items(), key=lambda item: item[1]):
        index = attempt.get(name)
        if index is None or not (index < steps and 0 <= mark < reference_steps):
            continue
        if not cuts or index >= cuts[-1][0]:
            cuts.append((index, mark))
    return cuts


class PickPlaceTrajectorySimilarity(Metric):
    """How alike the joint positions of the attempt and of the reference are, whatever the timing."""

    sequence: ClassVar[str] = "qpos"

    def __init__(self) -> None:
        self.trajectory: dict[str, list[Any]] = {"qpos": [], "ee_pose": []}
        self.reference: Any = None
        self.keypoints: dict[str, int | None] = dict.fromkeys(KEYPOINTS)
        """The index in the trajectory at which each was first seen."""
        self._stages = PickPlaceSuccess()

    def reset(self, episode: Any, task: MetricTask) -> None:
        """Begin with an empty trajectory."""
        self.trajectory = {"qpos": [], "ee_pose": []}
        self.reference = episode.reference_trajectory or None
        names = self.reference.get("keypoints") if self.reference else None
        self.keypoints = dict.fromkeys(names or KEYPOINTS)
        self._stages.reset(episode, task)

    def update(self, state: Info) -> None:
        """Take in the state after a step."""
        for name, rows in self.trajectory.items():
            row = state.get(name)
            if row is not None and len(row):
                rows.append(np.array(row))  # not what somebody might still write into
        self._stages.update(state)
        index = len(self.trajectory[self.sequence]) - 1
        for name, is_now in self._moments(state).items():
            if is_now and index >= 0 and self.keypoints.get(name, index) is None:
                self.keypoints[name] = index

    def get_metric(self) -> float:
        """Return a value from 0 to 1, NaN without a reference."""
        rows = self.reference.get(f"{self.sequence}_sequence") if self.reference else None
        if not rows:
            return math.nan
        attempt, reference = self._points(self.trajectory[self.sequence]), self._points(rows)
        marks = self.reference.get("keypoints")
        cuts = []
        if isinstance(marks, Mapping):
            cuts = matched_keypoints(
                self.keypoints, marks, steps=len(attempt), reference_steps=len(reference)
            )
        return similarity(attempt, reference, cuts)

    def _points(self, rows: Sequence[Any]) -> Array:
        return control_points(rows)

    def _moments(self, state: Info) -> dict[str, bool]:
        """Return which keypoints hold in a state that the stages have already seen."""
        stages = self._stages
        target = state.get("target_position")
        target = stages.target_location if target is None else target
        at_target = stages.object_lifted and (
            is_in_target(state, target=target, tolerance_m=stages.place_tolerance)
            or _is_above(state.get("object_position"), target, within_m=stages.place_tolerance)
        )
        let_go = state.get("object_released", not state.get("object_grasped", False))
        return {
            "grasp_start": has_reached(state),
            "lift_complete": stages.object_lifted,
            "place_start": at_target,
            "place_complete": stages.object_placed and bool(let_go),
        }


class EePoseSimilarity(PickPlaceTrajectorySimilarity):
    """How alike the hand's poses in the frame of the base are, whatever the timing."""

    sequence = "ee_pose"

    def _points(self, rows: Sequence[Any]) -> Array:
        return ee_points(rows)


def _is_above(position: Any, target: Any, *, within_m: float) -> bool:
    if position is None or target is None:
        return False
    return math.dist(position[:2], target[:2]) < within_m


def _bounded(points: Array) -> Array:
    numbers = np.nan_to_num(points, nan=FARTHEST, posinf=FARTHEST, neginf=-FARTHEST)
    return np.asarray(np.clip(numbers, -FARTHEST, FARTHEST))
