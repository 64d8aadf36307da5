"""Predictions as a run: score what an agent says that it did, without a world.

A predictions file is taken at its word: whether a move was possible is not checked, and collisions are not
known. An episode without a prediction earns 0 in every score.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from proctor.core.errors import UserError
from proctor.exams.datasets import Dataset
from proctor.exams.foreign_files import NO_PREDICTION, PredictedRun, PredictionFiles
from proctor.exams.names import AnyExam, all_exams
from proctor.exams.results import EpisodeResult, Fault, Results
from proctor.exams.step_metrics import metrics_of
from proctor.runs.grade import encode_result, grade
from proctor.runs.journal import Journal, read_finished
from proctor.runs.plan import identity_of
from proctor.runs.summary import summarise
from proctor.runs.traces import encode_trace


class Score(NamedTuple):
    """A scored predictions file, and what a reader must know of it."""

    results: Results
    notes: list[str]


def prediction_files(exam: type[AnyExam], path: Path) -> PredictionFiles:
    """Return how predictions of an exam are read and written; the UserError if it has none names `path`."""
    if exam.predictions is None:
        others = " or ".join(other.name for other in all_exams() if other.predictions is not None)
        raise UserError(f"{path}: expected episodes of the task {others}, found {exam.name}")
    return exam.predictions


def score_predictions(file: Path, dataset: Dataset, out: Path | None = None) -> Score:
    """Score a predictions file; write a run directory to `out`, for reports and comparisons, if given."""
    predicted = prediction_files(dataset.exam, dataset.path).read(file, dataset)
    exam = dataset.exam()
    identity = _identity(file, dataset, exam)
    if out is not None:
        read_finished(
            out, identity, dataset.exam
        )  # refuses the folder of another run before the work is done
    results = summarise(
        dataset.exam, [_grade(exam, episode, predicted, file) for episode in dataset.episodes]
    )
    notes = predicted.notes(results)
    if out is not None:
        source = {
            "dataset": str(dataset.path.resolve()),
            "scenes": str(dataset.scenes.resolve()) if dataset.scenes else None,
            "predictions": str(file.resolve()),
        }
        with Journal(out, identity, {"source": source, "actions": "inferred", "notes": notes}) as journal:
            _write(journal, identity, exam, predicted, results)
    told = [*dataset.notes, *_counts(predicted, results), *predicted.remarks(results)]
    return Score(results, [*told, *notes])


def _grade(exam: AnyExam, episode: Any, predicted: PredictedRun, file: Path) -> EpisodeResult:
    trace = predicted.traces.get(episode.episode_id)
    fault = None
    if trace is None:
        trace, message = exam.first_trace(episode), f"{file.name} holds no prediction for this episode"
        fault = Fault(side="agent", kind=NO_PREDICTION, message=message)
    result = grade(exam, episode, trace, fault=fault, leave_out=predicted.unknown_metrics)
    metrics = dict(result.metrics)
    if fault is not None:
        scores = {metric.name for metric in metrics_of(type(exam)) if metric.is_score}
        metrics |= dict.fromkeys(scores & metrics.keys(), 0.0)
    return msgspec.structs.replace(result, metrics=metrics, collision_count=None)


def _write(
    journal: Journal, identity: dict[str, Any], exam: AnyExam, predicted: PredictedRun, results: Results
) -> None:
    known = read_finished(journal.folder, identity, type(exam))
    for result in results.episodes:
        if result.episode_id not in known:
            trace = predicted.traces.get(result.episode_id)
            content = b"" if trace is None else encode_trace(exam, result.episode_id, trace)
            journal.append(result.episode_id, encode_result(exam, result), content)
    journal.save_results(results)


def _counts(predicted: PredictedRun, results: Results) -> list[str]:
    """Say how many episodes have no prediction, and how many predictions have no episode."""
    notes = []
    missing = [e.episode_id for e in results.episodes if e.failure_reason == NO_PREDICTION]
    if missing:
        notes.append(
            f"{len(missing)} of {results.total_episodes} episodes have no prediction, first '{missing[0]}': "
            "they are failures and earn 0 in every score"
        )
    if predicted.ignored:
        count = f"{len(predicted.ignored)} predictions are of no episode of this dataset and ignored"
        more = ", ..." if len(predicted.ignored) > 5 else ""
        notes.append(f"{count}: {', '.join(predicted.ignored[:5])}{more}")
    return notes


def _identity(file: Path, dataset: Dataset, exam: AnyExam) -> dict[str, Any]:
    """Return what defines the run, in the terms of a driven one."""
    return {
        **identity_of(dataset, dataset.episodes, dataset.path.name),
        "task": exam.name,
        "privileged": False,
        "policy": file.name,
        "policy_sha256": hashlib.sha256(file.read_bytes()).hexdigest(),
        "env": "predictions",
        "env_options": {},
        "policy_options": {},
        "seed": 0,
        **exam.identity(exam.options),
    }
