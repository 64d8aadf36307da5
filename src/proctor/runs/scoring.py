"""Scores without a simulator: of predictions, and of a finished run from its traces.

A predictions file is taken at its word: whether a move was possible is not checked, and collisions are not
known. An episode without a prediction earns 0 in every score.

When the scores of a run are computed again, a metric that was added after the run is measured as well, and a
score that was changed by hand is found.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import UNSET
from msgspec.structs import replace

from proctor.core.errors import UserError
from proctor.core.registry import names, suite_path
from proctor.exams.datasets import Dataset, load_dataset
from proctor.exams.foreign_files import NO_PREDICTION, PredictedRun, PredictionFiles
from proctor.exams.names import AnyExam, all_exams
from proctor.exams.results import EpisodeResult, Fault, Results
from proctor.exams.step_metrics import metrics_of
from proctor.exams.trace import AnyTrace
from proctor.runs.folder import RunFolder
from proctor.runs.grade import encode_result, grade
from proctor.runs.job import read_exam_options
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
    return replace(result, metrics=metrics, collision_count=None)


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


def source_of(run: RunFolder) -> tuple[Path | None, Path | None]:
    """Return where the dataset and its scenes were; a suite of a run from another machine is here as well."""
    source = run.manifest.get("source") or {}
    path, scenes = source.get("dataset"), source.get("scenes")
    if path and Path(path).exists():
        return Path(path), Path(scenes) if scenes else None
    suite = str(run.identity.get("dataset", ""))
    if suite in names("suite"):
        return suite_path(suite), None
    return Path(path) if path else None, None


def dataset_of(run: RunFolder) -> Dataset:
    """Read the dataset of a run; a UserError if it is gone, or has changed since."""
    path, scenes = source_of(run)
    if path is None:
        raise UserError(f"{run.path}: the manifest does not say where the episodes were")
    dataset = load_dataset(path, scenes=scenes)
    if dataset.digest != run.identity.get("dataset_sha256"):
        raise UserError(f"{path} has changed since the run in {run.path}")
    return dataset


def _trace_of(exam: AnyExam, result: EpisodeResult) -> AnyTrace | None:
    """Return as much of a trace as the record holds."""
    trace = exam.trace_of(result)
    if trace is not None and result.thinking is not UNSET:
        trace.charged_s, trace.simulated_s = result.thinking.charged_s, result.thinking.simulated_s
    return trace


class Difference(NamedTuple):
    """A score that is not what the run says."""

    episode_id: str
    metric: str
    stored: float | None  # None where the run did not measure it
    rescored: float | None  # None where it does not apply any more


class Rescored(NamedTuple):
    """A run with its scores computed again."""

    results: Results  # episodes without a trace are as the run has them
    differences: list[Difference]
    new_metrics: list[str]  # metrics that the run did not measure at all
    without_trace: list[str]  # episodes that keep their scores, because no trace was kept of them


def rescore(run: RunFolder, dataset: Dataset, out: Path | None = None) -> Rescored:
    """Compute all scores of a run from its traces; write a run with them to `out`, a new folder, if given."""
    if not run.episodes:
        raise UserError(f"{run.path} has no finished episode yet")
    if "predictions" in (run.manifest.get("source") or {}):
        raise UserError(f"{run.path} holds scored predictions; `proctor score` scores them again")
    if out is not None and out.exists():
        raise UserError(f"{out} exists already; give --out a new folder")
    options = {
        key: run.identity[key] for key in run.exam.options_type.__struct_fields__ if key in run.identity
    }
    exam = run.exam(read_exam_options(run.exam, options))
    episodes = {episode.episode_id: episode for episode in dataset.episodes}
    graded: list[EpisodeResult] = []
    traces: dict[str, bytes] = {}
    without_trace = []
    for result in run.episodes:
        trace = run.trace(result.episode_id) or _trace_of(exam, result)
        if trace is None or result.episode_id not in episodes:
            without_trace.append(result.episode_id)
            graded.append(result)
            continue
        episode = episodes[result.episode_id]
        again = grade(exam, episode, trace, seed=result.seed, fault=result.error, timing=result.timing)
        kept = {"informed": result.informed, "delivered_instruction": result.delivered_instruction}
        graded.append(replace(again, usage=result.usage, **kept))
        traces[result.episode_id] = encode_trace(exam, result.episode_id, trace)
    results = summarise(run.exam, graded, repeated=run.repeated)
    if out is not None:
        extras = {key: value for key, value in run.manifest.items() if key != "identity"}
        with Journal(out, run.identity, {**extras, "rescored_from": str(run.path.resolve())}) as journal:
            for result in [*run.repeated, *graded]:
                files = traces.get(result.episode_id, b""), run.wire_bytes(result.episode_id)
                journal.append(result.episode_id, encode_result(exam, result), *files)
            journal.save_results(results)
    measured = {name for result in run.episodes for name in result.metrics}
    new = sorted({name for result in graded for name in result.metrics} - measured)
    differences = [
        Difference(old.episode_id, name, old.metrics.get(name), now.metrics.get(name))
        for old, now in zip(run.episodes, graded, strict=True)
        for name in sorted({*old.metrics, *now.metrics} - set(new))
        if old.metrics.get(name) != now.metrics.get(name)
    ]
    return Rescored(results, differences, new, without_trace)
