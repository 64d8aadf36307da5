"""What the report's page shows, as one JSON document: small enough for thousands of episodes.

Scores, faults, times and notices are the same for all exams. What only one exam has, such as plans or the
path of a hand, is added by the exam's own `Page`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pkgutil import resolve_name
from typing import Any

from msgspec import UNSET, UnsetType

from proctor import __version__
from proctor.core.types import Usage
from proctor.exams.fault_words import fault_line, fault_words, loss_text
from proctor.exams.page import JudgedEpisode, KeyFrames, Page
from proctor.exams.results import EpisodeResult, distance_label
from proctor.exams.step_metrics import metric_named, metrics_of
from proctor.plots.figure import data_uri
from proctor.report.latency_curves import latency_curves
from proctor.report.run_record import OnProgress, RunRecord, exam_of, tracked
from proctor.runs.accounting import cached_text, count_text, dollars, usage_text
from proctor.runs.summary import decision_latency_of, latency_of, seconds_text

DIGITS = 4


def judge(runs: Sequence[RunRecord], on_progress: OnProgress | None = None) -> list[JudgedEpisode]:
    """Return every episode of every run with its verdict, in the order of runs and episodes."""
    exam = exam_of(runs)()
    done = [(index, result) for index, run in enumerate(runs) for result in run.results.episodes]
    found: dict[int, JudgedEpisode] = {}
    for place in tracked(_by_scene([result for _, result in done]), "diagnosing", on_progress):
        index, result = done[place]
        episode = runs[index].episodes.get(result.episode_id)
        # Runs of versions before this one kept no verdict.
        verdict = exam.verdict(episode, result) if result.verdict is UNSET else result.verdict
        found[place] = JudgedEpisode(index, result, episode, verdict)
    return [found[place] for place in range(len(done))]


def page_of(runs: Sequence[RunRecord], judged: Sequence[JudgedEpisode]) -> Page:
    """Return the page of the exam of these runs."""
    exam = exam_of(runs)
    page: Page = resolve_name(exam.page)(exam, judged, runs)
    return page


def page_data(
    runs: Sequence[RunRecord],
    judged: Sequence[JudgedEpisode],
    page: Page,
    frames: Mapping[tuple[int, str], KeyFrames],
    notices: Sequence[str],
    on_progress: OnProgress | None = None,
) -> dict[str, Any]:
    """Return the document that the page draws."""
    numbers: dict[tuple[str, str], int] = {}
    keys = [(str(runs[j.run].identity.get("dataset_sha256", "")), j.result.episode_id) for j in judged]
    for key in keys:
        numbers.setdefault(key, len(numbers))
    asked: list[dict[str, Any]] = [{} for _ in numbers]
    results: list[dict[str, Any]] = [{} for _ in judged]
    for place in tracked(_by_scene([each.result for each in judged]), "drawing", on_progress):
        each, number = judged[place], numbers[keys[place]]
        if not asked[number]:
            asked[number] = _episode(each) | page.episode(each)
        shown = frames.get((each.run, each.result.episode_id))
        results[place] = _result(each, number, shown) | page.result(each)
    return {
        "proctor": __version__,
        "task": page.exam.name,
        "definition": ", ".join(dict.fromkeys(run.results.summary.definition for run in runs)),
        "exam": ", ".join(dict.fromkeys(str(run.identity.get("dataset", "?")) for run in runs)),
        "notices": [*notices, *_comparability(runs), *page.problems],
        "metrics": _metrics(runs, page),
        "runs": [_run(run) for run in runs],
        **({"latencyCurves": curves} if (curves := _latency_curves(runs)) else {}),
        **page.extras(),
        "episodes": asked,
        "results": results,
    }


def _by_scene(results: Sequence[EpisodeResult]) -> list[int]:
    """Return places in an order in which each scene's map, and the paths to each goal, are found once."""
    return sorted(range(len(results)), key=lambda i: (results[i].scene_id, results[i].episode_id))


def _metrics(runs: Sequence[RunRecord], page: Page) -> list[dict[str, Any]]:
    """Return what people must know of each metric: the exam's own first, those with a card before them."""
    known = metrics_of(page.exam)
    cards = page.scores or tuple(metric.name for metric in known if metric.in_table)
    measured = {name for run in runs for name in run.results.summary.metrics}
    names = dict.fromkeys([*cards, *(metric.name for metric in known), *sorted(measured)])
    found = [metric_named(page.exam, name) for name in names]
    return [
        {
            "name": metric.name,
            "label": metric.label,
            "title": page.titles.get(metric.name, metric.label),
            "heading": metric.heading,
            "about": metric.definition,
            "unit": metric.unit,
            "scale": metric.scale,
            "digits": metric.digits,
            "better": metric.better,
            "isRate": metric.is_rate,
            "hasCard": metric.name in cards,
        }
        for metric in found
        if metric.name in measured
    ]


def _comparability(runs: Sequence[RunRecord]) -> list[str]:
    """Return what speaks against comparing the runs with each other."""
    said = []
    if len({run.identity.get("dataset_sha256") for run in runs}) > 1:
        said.append("The runs are of different exams: their numbers cannot be compared.")
    elif len({frozenset(result.episode_id for result in run.results.episodes) for run in runs}) > 1:
        said.append("The runs did not do the same episodes: compare their numbers with care.")
    exam = exam_of(runs)
    defaults = exam.options_type()
    for key, words in exam.compared_options.items():
        values = [run.identity.get(key, getattr(defaults, key, None)) for run in runs]
        if any(value != values[0] for value in values):
            said.append(f"The runs differ in {words}.")
    conditions = [run.identity.get("conditions") for run in runs]
    if any(other != conditions[0] for other in conditions):
        said.append("The runs differ in what agents are told and shown.")
    levels = [(run.identity.get("env_options") or {}).get("level", 0) for run in runs]
    if len(set(levels)) > 1:
        told = ", ".join(f"{run.name} L{level}" for run, level in zip(runs, levels, strict=True))
        said.append(f"The runs are of different levels of generalisation: {told}.")
    return said


def _latency_curves(runs: Sequence[RunRecord]) -> list[dict[str, Any]]:
    return [
        {
            "name": curve.name,
            "whileThinking": curve.while_thinking,
            "points": [
                {
                    "seconds": point.seconds,
                    "run": point.run,
                    "success": [
                        round(x, DIGITS) for x in (point.success.mean, point.success.low, point.success.high)
                    ],
                }
                for point in curve.points
            ],
        }
        for curve in latency_curves(runs)
    ]


def _run(run: RunRecord) -> dict[str, Any]:
    summary, identity = run.results.summary, run.identity
    decided = decision_latency_of(run.results.episodes)
    latency = decided or latency_of(run.results.episodes)
    return {
        "name": run.name,
        "folder": str(run.folder.path),
        "privileged": run.folder.is_privileged,
        "env": str(identity.get("env", "?")),
        "seed": identity.get("seed"),
        "version": str(identity.get("proctor", "?")),
        "options": {key: identity.get(key) for key in ("env_options", "policy_options") if identity.get(key)},
        "packages": run.folder.manifest.get("packages", {}),
        "expected": run.folder.expected,
        "distance": distance_label(summary.distance),
        "bounds": [summary.success_rate_bounds.low, summary.success_rate_bounds.high],
        "faults": {"agent": 0, "evaluator": 0} | summary.error_counts,
        "lost": loss_text(summary.unscored, summary.total_episodes),
        "metrics": {
            name: [round(x, DIGITS) for x in (value.mean, value.low, value.high)] + [value.n]
            for name, value in summary.metrics.items()
        },
        "latency": latency and [_ms(latency.p50_ms), _ms(latency.p95_ms), _ms(latency.p99_ms), latency.n],
        "timed": "decision" if decided else "action",
        "notices": run.notices,
        **({"took": str(run.folder.resources)} if run.folder.resources else {}),
        **_used(summary.usage, summary.usage_unscored),
    }


def _episode(judged: JudgedEpisode) -> dict[str, Any]:
    result, episode = judged.result, judged.episode
    said = {"id": result.episode_id, "scene": result.scene_id, "text": result.instruction}
    if episode is not None:
        said |= {"language": episode.language, "split": episode.split, "limit": episode.step_limit}
    return said


def _result(judged: JudgedEpisode, episode: int, frames: KeyFrames | None) -> dict[str, Any]:
    result, verdict = judged.result, judged.verdict
    said: dict[str, Any] = {
        "e": episode,
        "r": judged.run,
        "kind": verdict.kind,
        "step": verdict.step,
        "say": verdict.sentence,
        "end": round(result.final_distance_to_goal, 2),
        "steps": result.steps,
        "bump": result.collision_steps,
        "m": {name: round(value, DIGITS) for name, value in result.metrics.items()},
    }
    latency = latency_of([result])
    if latency is not None:
        said["ms"] = [_ms(latency.p50_ms), _ms(latency.worst_ms)]
    said |= _used(result.usage)
    decided = decision_latency_of([result])
    if decided is not None:
        said["decided"] = seconds_text(decided.p50_ms)
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


def _used(usage: Usage | UnsetType, unscored: Usage | UnsetType = UNSET) -> dict[str, Any]:
    """Return what was used as numbers, to sort by, and in words; nothing where it is not known."""
    if not usage:
        return {}
    said: dict[str, Any] = {
        "decisions": usage.decisions,
        "repairs": usage.repairs,
        "tokens": usage.tokens,
        "tokensText": count_text(usage.tokens),
        "inText": count_text(usage.input_tokens),
        "cachedText": cached_text(usage),
        "outText": count_text(usage.output_tokens),
    }
    if usage.cost_usd is not None:
        said |= {"cost": usage.cost_usd, "costText": dollars(usage.cost_usd)}
    if unscored:
        said["unscored"] = usage_text(unscored)
    return {"used": said}


def _ms(value: float) -> float:
    return round(value, 2)
