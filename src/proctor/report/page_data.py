"""What the report's page shows, as one JSON document: small enough for thousands of episodes.

Scores, faults, times and notices are the same for all tasks. What only one task has, such as plans or the
path of a hand, is added by that task's own module.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from proctor import __version__
from proctor.exams.distance_labels import distance_label
from proctor.exams.fault_words import fault_line, fault_words, loss_text
from proctor.exams.pick_place.page import PickPlacePage, judge_pick_place
from proctor.exams.vln.page import VlnPage, judge_vln
from proctor.plots.data_uri import data_uri
from proctor.report.key_frames import KeyFrames
from proctor.report.progress import OnProgress, tracked
from proctor.report.run_record import RunRecord, task_of
from proctor.report.verdict import Verdict
from proctor.runs.latency import latency_of

DIGITS = 4


class TaskPage(Protocol):
    """The parts of the page's data that only one task has."""

    problems: list[str]
    """What a reader should know, complete after all episodes."""

    @property
    def extras(self) -> dict[str, Any]:
        """What belongs to no single episode, complete after all episodes."""

    def episode(self, verdict: Verdict, run: RunRecord) -> dict[str, Any]:
        """Return what was asked."""

    def result(self, verdict: Verdict) -> dict[str, Any]:
        """Return what was done."""


class _Task(NamedTuple):
    judge: Callable[[Sequence[RunRecord], OnProgress | None], list[Verdict]]
    page: Callable[[Sequence[Verdict]], TaskPage]


TASKS = {"vln": _Task(judge_vln, VlnPage), "pick_and_place": _Task(judge_pick_place, PickPlacePage)}


def judge(runs: Sequence[RunRecord], on_progress: OnProgress | None = None) -> list[Verdict]:
    """Diagnose every episode of every run, in the order of runs and episodes.

    Raises:
        UserError: The runs are of several tasks.
    """
    return TASKS[task_of(runs)].judge(runs, on_progress)


def page_data(
    runs: Sequence[RunRecord],
    verdicts: Sequence[Verdict],
    frames: Mapping[tuple[int, str], KeyFrames],
    notices: Sequence[str],
    on_progress: OnProgress | None = None,
) -> dict[str, Any]:
    """Return the document that the page draws."""
    task = task_of(runs)
    page = TASKS[task].page(verdicts)
    episodes: dict[tuple[str, str], int] = {}
    asked: list[dict[str, Any]] = []
    results = []
    for verdict in tracked(verdicts, "drawing", on_progress):
        run = runs[verdict.run]
        key = (str(run.identity.get("dataset_sha256", "")), verdict.result.episode_id)
        if key not in episodes:
            episodes[key] = len(asked)
            asked.append(_episode(verdict) | page.episode(verdict, run))
        shown = frames.get((verdict.run, verdict.result.episode_id))
        results.append(_result(verdict, episodes[key], shown) | page.result(verdict))
    return {
        "proctor": __version__,
        "task": task,
        "definition": ", ".join(dict.fromkeys(run.results.summary.definition for run in runs)),
        "exam": ", ".join(dict.fromkeys(str(run.identity.get("dataset", "?")) for run in runs)),
        "notices": [*notices, *_comparability(runs), *page.problems],
        "runs": [_run(run) for run in runs],
        **page.extras,
        "episodes": asked,
        "results": results,
    }


def _comparability(runs: Sequence[RunRecord]) -> list[str]:
    """Return what speaks against comparing the runs with each other."""
    said = []
    if len({run.identity.get("dataset_sha256") for run in runs}) > 1:
        said.append("The runs are of different exams: their numbers cannot be compared.")
    elif len({frozenset(result.episode_id for result in run.results.episodes) for run in runs}) > 1:
        said.append("The runs did not do the same episodes: compare their numbers with care.")
    if len({run.success_threshold_m for run in runs}) > 1:
        said.append("The runs have different success thresholds.")
    levels = [(run.identity.get("env_options") or {}).get("level", 0) for run in runs]
    if len(set(levels)) > 1:
        told = ", ".join(f"{run.name} L{level}" for run, level in zip(runs, levels, strict=True))
        said.append(f"The runs are of different levels of generalisation: {told}.")
    return said


def _run(run: RunRecord) -> dict[str, Any]:
    summary, identity = run.results.summary, run.identity
    latency = latency_of(run.results.episodes)
    return {
        "name": run.name,
        "folder": str(run.folder),
        "privileged": bool(identity.get("privileged")),
        "env": str(identity.get("env", "?")),
        "seed": identity.get("seed"),
        "version": str(identity.get("proctor", "?")),
        "options": {key: identity.get(key) for key in ("env_options", "policy_options") if identity.get(key)},
        "packages": run.manifest.get("packages", {}),
        "expected": run.expected,
        "distance": distance_label(summary.distance),
        "bounds": [summary.success_rate_bounds.low, summary.success_rate_bounds.high],
        "faults": {"agent": 0, "evaluator": 0} | summary.error_counts,
        "lost": loss_text(summary.unscored, summary.total_episodes),
        "metrics": {
            name: [round(x, DIGITS) for x in (value.mean, value.low, value.high)] + [value.n]
            for name, value in summary.metrics.items()
        },
        "latency": latency and [_ms(latency.p50_ms), _ms(latency.p95_ms), _ms(latency.p99_ms), latency.n],
        "notices": run.notices,
    }


def _episode(verdict: Verdict) -> dict[str, Any]:
    result, episode = verdict.result, verdict.episode
    said = {"id": result.episode_id, "scene": result.scene_id, "text": result.instruction}
    if episode is not None:
        said |= {"language": episode.language, "split": episode.split, "limit": episode.step_limit}
    return said


def _result(verdict: Verdict, episode: int, frames: KeyFrames | None) -> dict[str, Any]:
    result, diagnosis = verdict.result, verdict.diagnosis
    said: dict[str, Any] = {
        "e": episode,
        "r": verdict.run,
        "kind": diagnosis.kind,
        "step": diagnosis.step,
        "say": diagnosis.sentence,
        "end": round(result.final_distance_to_goal, 2),
        "bump": result.collision_steps,
        "m": {name: round(value, DIGITS) for name, value in result.metrics.items()},
        "by": distance_label(result.distance),
        "endBy": result.goal_distance.label,
    }
    latency = latency_of([result])
    if latency is not None:
        said["ms"] = [_ms(latency.p50_ms), _ms(latency.worst_ms)]
    if result.error is not None:
        said["error"] = {
            "side": result.error.side,
            "kind": result.error.kind,
            "words": fault_words(result.error.kind),
            "line": fault_line(result.error),
            "message": result.error.message,
            "trace": result.error.traceback,
        }
    if frames is not None:
        said["frames"] = [[step, data_uri("jpeg", picture)] for step, picture in frames.pictures]
        said["framed"] = frames.source
        said["framing"] = frames.note
        if frames.film:
            said["film"] = [[step, data_uri("jpeg", picture)] for step, picture in frames.film]
    return said


def _ms(value: float) -> float:
    return round(value, 2)
