"""The score of one episode, as the page of `proctor play` shows it: the report's words, numbers and map."""

from __future__ import annotations

import logging
import math
import tempfile
from collections.abc import Mapping
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET

from proctor.core.errors import ProctorError
from proctor.exams.exam import Metric
from proctor.exams.page import JudgedEpisode, KeyFrames, Page
from proctor.exams.results import EpisodeResult
from proctor.exams.step_metrics import metric_named, metrics_of
from proctor.runs.plan import RunPlan

log = logging.getLogger("proctor.play")


class Fact(msgspec.Struct, frozen=True):
    """A number about an episode, for people."""

    title: str
    text: str
    about: str


class PlayScore(msgspec.Struct, frozen=True, kw_only=True):
    """How an episode ended. Its map is sent beside it."""

    number: int
    """Counts the scores since the run began or went on."""
    success: bool
    is_scored: bool
    kind: str
    sentence: str
    instruction: str
    facts: list[Fact]


class _ShownPlan(NamedTuple):
    """The run as a report's page wants to know it."""

    name: str
    identity: Mapping[str, Any]


class EpisodeScore:
    """Makes the score of an episode: first the words and numbers, then the picture, which takes longer.

    `frames` are JPEG files of what was seen, by the number of steps done before.
    """

    def __init__(self, plan: RunPlan, result: EpisodeResult, frames: Mapping[int, bytes]) -> None:
        exam = plan.dataset.exam
        episode = next(each for each in plan.episodes if each.episode_id == result.episode_id)
        verdict = exam().verdict(episode, result) if result.verdict is UNSET else result.verdict
        self._judged = JudgedEpisode(0, result, episode, verdict)
        shown = _ShownPlan(plan.config.label, plan.identity)
        self._page: Page = resolve_name(exam.page)(exam, [self._judged], [shown])
        self._frames = frames

    def score(self, number: int) -> PlayScore:
        """Return words and numbers."""
        _, result, _, verdict = self._judged
        return PlayScore(
            number=number,
            success=result.success,
            is_scored=result.is_scored,
            kind=verdict.kind,
            sentence=verdict.sentence,
            instruction=result.instruction,
            facts=_facts(self._page, result),
        )

    def pictures(self) -> list[bytes]:
        """Draw the episode as the report does; return one PNG file, or none if there is nothing to draw."""
        steps = self._page.key_steps(self._judged)
        seen = [(step, self._frames[step]) for step in steps if step in self._frames]
        shown = KeyFrames(seen, "recorded" if seen else "none")
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "map.png"
            try:
                self._page.draw(self._judged, file, lambda width_px: shown)
                return [file.read_bytes()]
            except (ProctorError, OSError) as error:
                log.warning("%s has no map: %s", self._judged.result.episode_id, error)
                return []


def _facts(page: Page, result: EpisodeResult) -> list[Fact]:
    names = page.scores or tuple(metric.name for metric in metrics_of(page.exam) if metric.in_table)
    metrics = [
        metric_named(page.exam, name) for name in names if name != "success" and name in result.metrics
    ]
    return [
        Fact(
            page.titles.get(metric.name, metric.label).removesuffix(" per episode"),
            _text(metric, result.metrics[metric.name]),
            metric.definition,
        )
        for metric in metrics
        if math.isfinite(result.metrics[metric.name])
    ]


def _text(metric: Metric, value: float) -> str:
    if metric.is_rate:
        return "✓" if value else "✗"
    shown = metric.scale * value
    text = f"{shown:.0f}" if shown == round(shown) and not metric.unit else f"{shown:.{metric.digits}f}"
    return f"{text}%" if metric.unit == "%" else f"{text} {metric.unit}".strip()
