"""How alike an attempt and a reference are, whatever their timing: dynamic time warping.

A value is `exp(-c / 0.25)`, with c the mean cost over the steps of the longer one. The cost of two robot
poses is their Euclidean distance with every control measured in ranges of its own, so that a lift and an
angle can be added; docs/metrics.md says why.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Literal, TypeAlias

import numpy as np

from proctor.core.types import Array
from proctor.exams.dtw import dtw_distance
from proctor.exams.pick_place.stages import Stages, criteria_of, stages_of
from proctor.exams.pick_place.state import PickPlaceTrace
from proctor.robots.stretch import CONTROLS, controls_of_qpos

SCALE = 0.25  # the mean cost at which similarity has fallen to 1/e: a quarter of one control's range
KEYPOINTS = {
    "grasp_start": "reached",
    "lift_complete": "lifted",
    "place_start": "above_target",
    "place_complete": "released",
}
"""The documents' names for the moments in which a stage begins."""
RowName: TypeAlias = Literal["qpos", "ee_pose"]
ANGLES = ("base_theta", "wrist_yaw")
CONTROL_WEIGHTS: Array = np.array(
    [1 / math.pi if c.name in ANGLES else 1 / (c.high - c.low) for c in CONTROLS]
)
FARTHEST = 1e6  # coordinates beyond this, and NaN, count as this


def similarity(attempt: Array, reference: Array, cuts: Sequence[tuple[int, int]] = ()) -> float:
    """Return how alike (N, D) and (M, D) points are: 1 if time warping makes them the same, 0 if N is 0.

    `cuts` are pairs of rising indices that must be matched: the parts between them are warped apart.
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


def keypoints_of(stages: Stages) -> dict[str, int | None]:
    """Return the index of each keypoint in the rows of the attempt, of which every step has one."""
    steps = {name: getattr(stages, stage) for name, stage in KEYPOINTS.items()}
    return {name: None if step is None else max(step - 1, 0) for name, step in steps.items()}


def similarity_to_reference(
    name: RowName, rows: Sequence[Any], reference: Any, keypoints: Mapping[str, int | None]
) -> float:
    """Return how alike the rows of an attempt and of a reference are; NaN if it has none of this name.

    Where the reference says at which of its steps the keypoints are, the parts between them are compared.
    """
    wanted = reference.get(f"{name}_sequence") if reference else None
    if not wanted:
        return math.nan
    points = control_points if name == "qpos" else ee_points
    attempt, target = points(rows), points(wanted)
    marks = reference.get("keypoints")
    cuts: list[tuple[int, int]] = []
    if isinstance(marks, Mapping):
        cuts = matched_keypoints(keypoints, marks, steps=len(attempt), reference_steps=len(target))
    return similarity(attempt, target, cuts)


def trace_similarity(name: RowName, episode: Any, trace: PickPlaceTrace) -> float:
    """Return how alike an attempt and the episode's reference are; NaN without one."""
    if not episode.reference_trajectory:
        return math.nan
    states = trace.after_steps()
    rows = [row for state in states if (row := getattr(state, name))]
    keypoints = keypoints_of(stages_of(states, criteria_of(episode)))
    return similarity_to_reference(name, rows, episode.reference_trajectory, keypoints)


def _bounded(points: Array) -> Array:
    numbers = np.nan_to_num(points, nan=FARTHEST, posinf=FARTHEST, neginf=-FARTHEST)
    return np.asarray(np.clip(numbers, -FARTHEST, FARTHEST))
