"""Files of other evaluators: predictions, which say what an agent did, and results, which say how well.

An exam that knows such files says so by `Exam.predictions` and `Exam.read_foreign_results`.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from proctor.exams.results import EpisodeResult, Results
from proctor.exams.trace import AnyTrace

if TYPE_CHECKING:
    from proctor.exams.datasets import Dataset

NO_PREDICTION = "no_prediction"  # the kind of fault of an episode that a file does not tell about


class PredictedRun(abc.ABC):
    """A predictions file, read beside the episodes that it is of."""

    traces: Mapping[str, AnyTrace]
    """By episode id. An episode that is missing has no prediction."""
    ignored: Sequence[str] = ()
    """What the file calls predictions that are of no episode of the dataset."""
    unknown_metrics: Collection[str] = ()
    """Metrics that such a file cannot tell."""

    @abc.abstractmethod
    def remarks(self, results: Results) -> list[str]:
        """Return what people should know who score the file."""

    @abc.abstractmethod
    def notes(self, results: Results) -> list[str]:
        """Return what readers of the results must know, too."""


class PredictionFiles(NamedTuple):
    """How the predictions of an exam are read and written."""

    formats: tuple[str, ...]
    """That can be written."""
    read: Callable[[Path, Dataset], PredictedRun]
    """Raises InvalidFile if the predictions are broken, or not of these episodes."""
    write: Callable[[Sequence[EpisodeResult], Path, str | None, Callable[[], Dataset | None]], str]
    """Writes results to a new file in this format, by default that of the dataset, and returns the format. It
    loads the dataset if it needs it. Raises UserError if the results do not hold what the format does."""


class ForeignResults(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody else's evaluation says, under our names of metrics."""

    path: Path
    means: dict[str, float]
    episodes: dict[str, dict[str, float]]
    """By episode id; empty if the file holds the means only."""
    n: int | None
    """How many episodes the means are of; None if the file does not say."""
    ignored: list[str]
    """Keys that are not metrics, or whose values are not numbers, not finite or too large to be measured."""
    notes: list[str] = []
    """What a reader should know."""
