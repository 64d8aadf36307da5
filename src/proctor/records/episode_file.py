"""The contract of a recorder: a class that writes one file about one episode.

A recorder is a registry name (`proctor run --record video`, entry-point group `proctor.recorders`). It is
shown what the agent sees and what is true, and changes neither: it works on a thread of its own, and what it
raises ends its file and not the episode.
"""

from __future__ import annotations

import abc
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from proctor.core.types import Observation
from proctor.exams.names import AnyExam
from proctor.exams.results import EpisodeResult


class Subject(NamedTuple):
    """What is recorded."""

    exam: AnyExam
    episode: Any
    """Of the exam's own type."""
    instruction: str
    """As the agent was told it."""


class EpisodeFile(abc.ABC):
    """A file about an episode that is going on.

    `see` is called first with what the agent sees at the start, then after each `step` with what it sees
    next. All calls come from one thread.
    """

    suffix: ClassVar[str]
    """Of the file's name, such as `.mp4`."""

    def __init__(self, path: Path, subject: Subject) -> None:
        self.path, self.subject = path, subject

    @abc.abstractmethod
    def see(self, observation: Observation, state: Any) -> None:
        """Take in what the agent sees, and the trace's state; that is None where it is not known."""

    @abc.abstractmethod
    def step(self, action: Any, *, policy_s: float) -> None:
        """Take in an action, as results hold it, and how long the agent thought about it."""

    def end(self, result: EpisodeResult) -> None:  # noqa: B027  (a file may tell nothing of it)
        """Take in how the episode ended. Not called if it broke off for the evaluator's own reasons."""

    @abc.abstractmethod
    def close(self) -> None:
        """Complete the file; the last call. What was shown so far must be in it."""
