"""Predictions as a run: score where an agent says it went, without a world.

A predictions file is taken at its word: whether a move was possible is not checked, collisions are not known,
and actions are inferred from the states. An episode without a prediction earns 0 in every score.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from proctor import __version__
from proctor.exams.distance_labels import distance_label
from proctor.core.errors import InvalidFile, UserError
from proctor.core.geometry import distance, wrap_angle
from proctor.exams.record_check import SCORES
from proctor.exams.results import EpisodeResult, Fault, Results
from proctor.core.types import Action
from proctor.exams.datasets import Dataset
from proctor.exams.vln.gt import HEADING_TOLERANCE_DEG, TOLERATED_SHARE, version_of
from proctor.exams.vln.predictions import Prediction, Predictions, read_predictions
from proctor.exams.scenes_digest import scenes_digest
from proctor.exams.vln.episode import DEFAULT_SUCCESS_THRESHOLD_M, Episode
from proctor.runs.episode_log import EpisodeLog
from proctor.runs.journal import Journal, read_finished
from proctor.runs.preflight import unreachable_notes
from proctor.runs.summary import summarise
from proctor.exams.vln.exam import VLNTask

ENV = "predictions"
"""What the manifest says in the place of an env's name."""
NO_PREDICTION = "no_prediction"
SAME_PLACE_M = 0.1
TURNED_RAD = math.radians(1)
SHIFTED_M = 0.05
LONGEST_STEP_M = 0.5
"""A FORWARD is 0.25 m."""
SHORTEST_SHARE = 0.9
"""The map is a little too careful: a path may be so much shorter than the way on it."""
SPL_NOTE = "SPL is measured by the path distances that the dataset stores, for want of its scenes"
UNKNOWN = {"r2r": ("collisions", "collision_rate"), "rxr": ("collisions", "collision_rate", "steps")}
"""Metrics that a file of each format cannot tell."""


class Score(NamedTuple):
    """A scored predictions file, and what a reader must know of it."""

    results: Results
    notes: list[str]


def score_predictions(file: Path, dataset: Dataset, out: Path | None = None) -> Score:
    """Score a predictions file, by geodesic distance where an episode's scene was found, else by Euclidean.

    Args:
        file: The predictions.
        dataset: The episodes they are of.
        out: A run directory to write, for reports and comparisons.

    Raises:
        InvalidFile: The predictions are broken, or not of these episodes.
        UserError: The dataset withholds its goals, or `out` holds a different run.
    """
    episodes = dataset.of(Episode)
    withheld = [episode.episode_id for episode in episodes if episode.goal_position is None]
    if withheld:
        problem = f"{len(withheld)} of {len(episodes)} episodes have no goal, first '{withheld[0]}'"
        raise UserError(f"{dataset.path}: {problem}: they cannot be scored here")
    predictions = read_predictions(file)
    keys = {episode.episode_id: _key(episode, predictions) for episode in episodes}
    _check_match(predictions, keys, file, dataset)
    identity = _identity(file, dataset)
    if out is not None:
        read_finished(out, identity)  # refuses the folder of another run before the work is done
    task = VLNTask()
    scored = [
        _score(task, episode, predictions.by_id.get(keys[episode.episode_id]), predictions, file)
        for episode in episodes
    ]
    results = summarise([result for result, _ in scored])
    odd = [
        *_heading_notes(predictions, keys, dataset),
        *_odd_paths(scored),
        *([SPL_NOTE] if results.summary.shortest_path else []),
    ]
    if out is not None:
        source = {
            "dataset": str(dataset.path.resolve()),
            "scenes": str(dataset.scenes.resolve()) if dataset.scenes else None,
            "predictions": str(file.resolve()),
        }
        _write(out, identity, {"source": source, "actions": "inferred", "notes": odd}, results)
    notes = [*dataset.notes, *unreachable_notes(episodes)]
    return Score(results, [*notes, *_notes(predictions, set(keys.values()), results), *odd])


def _key(episode: Episode, predictions: Predictions) -> str:
    """Return what a predictions file calls an episode."""
    if predictions.format == "rxr" and episode.origin is not None and episode.origin.instruction_id:
        return episode.origin.instruction_id
    return episode.episode_id


def _check_match(predictions: Predictions, keys: dict[str, str], file: Path, dataset: Dataset) -> None:
    """Refuse predictions that are of other episodes, or in other axes: no score would mean anything."""
    if not predictions.by_id.keys() & set(keys.values()):
        known, given = next(iter(keys.values())), next(iter(predictions.by_id), "none at all")
        problem = (
            f"no prediction is of an episode of {dataset.path}: found '{given}', expected such as '{known}'"
        )
        raise InvalidFile(file, problem)
    for episode in dataset.of(Episode):
        prediction = predictions.by_id.get(keys[episode.episode_id])
        if prediction and distance(prediction.positions[0], episode.start_position) > SAME_PLACE_M:
            there, here = prediction.positions[0], episode.start_position
            problem = (
                f"begins {distance(there, here):.1f} m from the episode's start; expected the start state "
                "first, in Habitat's axes (y up), and of the same version of the dataset"
            )
            raise InvalidFile(file, problem, place=keys[episode.episode_id])


def _score(
    task: VLNTask, episode: Episode, prediction: Prediction | None, predictions: Predictions, file: Path
) -> tuple[EpisodeResult, float]:
    """Return the episode's record, and how far its end is from its start by the task's distance."""
    log = EpisodeLog(seed=0)
    task.begin(episode)
    if prediction is None:
        message = f"{file.name} holds no prediction for this episode"
        log.fault = Fault(side="agent", kind=NO_PREDICTION, message=message)
    else:
        log.actions = _actions(prediction, None if predictions.format == "rxr" else episode.step_limit)
        for index, action in enumerate(log.actions, 1):
            info: dict[str, Any] = {"position": prediction.positions[index], "collision": False}
            if prediction.yaws is not None:
                info["yaw"] = prediction.yaws[index]
            task.update(action, info)
    unknown = UNKNOWN[predictions.format]
    log.metrics = {name: value for name, value in task.measure().items() if name not in unknown}
    if prediction is None:
        log.metrics |= dict.fromkeys(SCORES & log.metrics.keys(), 0.0)
    result = msgspec.structs.replace(task.result(episode, log), collision_count=None)
    if prediction is not None and prediction.yaws is None:  # else headings would be invented
        result = msgspec.structs.replace(result, headings=[])
    return result, task.distance_m(result.trajectory[0], result.trajectory[-1])


def _heading_notes(predictions: Predictions, keys: dict[str, str], dataset: Dataset) -> list[str]:
    """Tell whether predictions begin with another heading than their episodes: of another version, mostly."""
    off_rad, theirs, ours = {}, [], []
    for episode in dataset.of(Episode):
        prediction = predictions.by_id.get(keys[episode.episode_id])
        if prediction is not None and prediction.yaws is not None:
            off_rad[keys[episode.episode_id]] = abs(wrap_angle(prediction.yaws[0] - episode.start_yaw))
            theirs.append(prediction.yaws[0])
            ours.append(episode.start_yaw)
    wrong = [key for key, angle in off_rad.items() if angle > math.radians(HEADING_TOLERANCE_DEG)]
    if not wrong:
        return []
    note = (
        f"{len(wrong)} of {len(off_rad)} predictions begin with another heading than their episodes, "
        f"first that of '{wrong[0]}', by {math.degrees(off_rad[wrong[0]]):.0f} degrees"
    )
    if len(wrong) <= TOLERATED_SHARE * len(off_rad):
        return [note]
    versions = version_of(ours), version_of(theirs)
    if dataset.format != "r2r-ce" or versions[0] == versions[1]:
        return [f"{note}: predictions for another version of the dataset, or by another convention?"]
    return [f"{note}: the episodes look like R2R-CE {versions[0]}, the predictions like {versions[1]}"]


def _odd_paths(scored: Sequence[tuple[EpisodeResult, float]]) -> list[str]:
    """Return what no robot could have driven. It is scored nevertheless, as the definitions say."""
    jumps_m = {
        result.episode_id: max(distance(a, b) for a, b in pairwise(result.trajectory))
        for result, _ in scored
        if len(result.trajectory) > 1
    }
    notes = []
    far = [key for key, jump_m in jumps_m.items() if jump_m > LONGEST_STEP_M]
    if far:
        text = f"{len(far)} predictions have steps longer than {LONGEST_STEP_M} m"
        notes.append(f"{text} (first: {far[0]}, {jumps_m[far[0]]:.1f} m)")
    short = [
        f"{result.episode_id}, {result.metrics['path_length']:.1f} m instead of {way_m:.1f} m"
        for result, way_m in scored
        if result.distance == "geodesic"
        and result.metrics.get("path_length", math.inf) < SHORTEST_SHARE * way_m - LONGEST_STEP_M
    ]
    if short:
        text = f"{len(short)} paths are shorter than the shortest way: they pass through walls"
        notes.append(f"{text} (first: {short[0]})")
    return notes


def _actions(prediction: Prediction, limit: int | None) -> list[Action]:
    """Return what the agent must have done to get from state to state, up to its STOP or the step limit."""
    last = len(prediction.positions) - 1 if prediction.stop_at is None else prediction.stop_at
    last = last if limit is None else min(last, limit)
    actions = []
    for index in range(1, last + 1):
        moved_m = distance(prediction.positions[index - 1], prediction.positions[index])
        yaws = prediction.yaws
        turned_rad = wrap_angle(yaws[index] - yaws[index - 1]) if yaws is not None else 0.0
        if index == prediction.stop_at:
            actions.append(Action.STOP)
        elif abs(turned_rad) > TURNED_RAD and moved_m < SHIFTED_M:
            actions.append(Action.LEFT if turned_rad > 0 else Action.RIGHT)
        else:
            actions.append(Action.FORWARD)
    return actions


def _notes(predictions: Predictions, keys: set[str], results: Results) -> list[str]:
    notes = []
    extra = sorted(predictions.by_id.keys() - keys)
    missing = results.summary.failure_reasons.get(NO_PREDICTION, 0)
    if missing:
        first = next(e.episode_id for e in results.episodes if e.failure_reason == NO_PREDICTION)
        notes.append(
            f"{missing} of {results.total_episodes} episodes have no prediction, first '{first}': "
            "they are failures and earn 0 in every score"
        )
    if extra:
        notes.append(
            f"{len(extra)} predictions are of no episode of this dataset and ignored: {_some(extra)}"
        )
    if predictions.format == "rxr":
        notes.append("RxR predictions hold no STOP: the end of each path counts as one")
    if results.summary.distance != "geodesic":
        spl = "" if results.summary.shortest_path else "SPL, "
        notes.append(
            f"measured by {distance_label(results.summary.distance)}: success, {spl}navigation error and "
            "oracle success are not comparable with those by path distance; give --scenes for these"
        )
    return notes


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")


def _identity(file: Path, dataset: Dataset) -> dict[str, Any]:
    """Return what defines the run, in the terms of a driven one."""
    ids = "\n".join(episode.episode_id for episode in dataset.episodes)
    return {
        "proctor": __version__,
        "task": "vln",
        "dataset": dataset.path.name,
        "scenes_sha256": scenes_digest(dataset.episodes),
        "episodes": len(dataset.episodes),
        "dataset_sha256": dataset.digest,
        "episode_ids_sha256": hashlib.sha256(ids.encode()).hexdigest(),
        "privileged": False,
        "policy": file.name,
        "policy_sha256": hashlib.sha256(file.read_bytes()).hexdigest(),
        "env": ENV,
        "env_options": {},
        "policy_options": {},
        "seed": 0,
        "success_threshold_m": DEFAULT_SUCCESS_THRESHOLD_M,
    }


def _write(out: Path, identity: dict[str, Any], record: dict[str, Any], results: Results) -> None:
    with Journal(out, identity, record) as journal:
        known = read_finished(out, identity)
        for result in results.episodes:
            if result.episode_id not in known:
                journal.append(result)
        journal.save_results(results)
