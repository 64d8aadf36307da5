"""What a dataset doctor writes down: findings, and which episodes a filter would drop."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Literal

import msgspec

Severity = Literal["error", "warning", "note"]
Remedy = Literal["fixed", "dropped", ""]


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One thing about a dataset, however many episodes it concerns."""

    severity: Severity
    """An error makes the dataset, or these episodes, unusable; a note is only good to know."""
    kind: str
    """A short stable word, such as `duplicate-id`."""
    text: str
    count: int
    places: list[str]
    """Where in the file, such as `episodes[3].start_position[1]`."""
    ids: list[str] = []
    """Of the episodes that it concerns; empty if it is about something else."""
    remedy: Remedy = ""
    """What a corrected copy does about it."""


FILTERS = {
    "no-goal": "the goal is withheld",
    "no-gt": "no dense reference path",
    "no-scene": "the scene file is missing",
    "scene": "the scene is broken",
    "off-map": "start or goal inside of something, or beyond the map",
    "start-blocked": "the robot cannot stand at the start",
    "unreachable": "no way from start to goal",
    "level-change": "more than 0.3 m up or down on the way",
    "empty-instruction": "nothing is said",
    "duplicate": "the same in all as an episode before",
}
"""Reasons to leave episodes out, by name. Nothing is left out unless asked for."""


class Findings:
    """The notebook. Episodes are known by their index in the file.

    Args:
        id_at: Returns the id of the episode at an index.
    """

    def __init__(self, id_at: Callable[[int], str]) -> None:
        self._id_at = id_at
        self.items: list[Finding] = []
        self.filters: dict[str, set[int]] = {}
        self.dropped: dict[int, str] = {}
        """Episodes that no corrected copy can hold, and why."""

    def add(
        self,
        severity: Severity,
        kind: str,
        text: str,
        *,
        episodes: Iterable[int] = (),
        places: Sequence[str] = (),
        remedy: Remedy = "",
    ) -> None:
        """Write down a finding about some episodes, or about other places; none at all is no finding.

        Where `kind` is the name of a filter, these are the episodes it drops.
        """
        indices = list(episodes)
        where = list(places) or [f"episodes[{index}]" for index in indices]
        if not where:
            return
        self.items.append(
            Finding(
                severity=severity,
                kind=kind,
                text=text,
                count=len(where),
                places=where,
                ids=[self._id_at(index) for index in indices],
                remedy=remedy,
            )
        )
        if kind in FILTERS:
            self.filters.setdefault(kind, set()).update(indices)
        if remedy == "dropped":
            for index in indices:
                self.dropped.setdefault(index, f"{kind}: {text}")

    def count(self, severity: Severity) -> int:
        """Return how many findings of a severity there are."""
        return sum(item.severity == severity for item in self.items)
