"""What can be wrong or odd with a dataset: one stream of findings for `check-dataset` and before a run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Generic, Literal, NamedTuple, TypeVar

import msgspec

T = TypeVar("T")
EpisodeT = TypeVar("EpisodeT")
KeyT = TypeVar("KeyT", bound=Hashable)
Severity = Literal["error", "warning", "note"]
Remedy = Literal["fixed", "dropped", ""]


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One observation about a dataset, however many episodes it concerns."""

    severity: Severity
    """An error makes the dataset, or these episodes, unusable; a note is only good to know."""
    kind: str
    """A short stable word, such as `duplicate-id`."""
    text: str
    count: int = 0
    """Of places. Filled in when the finding is collected, as are places and ids where they are missing."""
    places: list[str] = []
    """Where in the file, such as `episodes[3].start_position[1]`."""
    ids: list[str] = []
    """Of the episodes that it concerns; empty if it is about something else."""
    remedy: Remedy = ""
    """What a corrected copy does about it."""
    episodes: list[int] = []
    """The episodes that it concerns, by their index in the file."""


class EpisodesToCheck(NamedTuple, Generic[EpisodeT]):
    """What `Exam.check` looks at."""

    episodes: Mapping[int, EpisodeT]
    """By index in their file; those that could not be read are missing."""
    path: Path
    format: str = "native"
    scenes: Path | None = None
    """The folder in which the scenes were looked for, if one was given."""
    is_run: bool = False
    """Whether a run is about to begin: errors then keep it from starting, and it prints all other findings.
    Else `check-dataset` asks, which shows everything and may take its time."""
    needs_scene: bool = False
    """Whether the env of that run cannot do an episode without a scene."""


def found(
    severity: Severity,
    kind: str,
    text: str,
    episodes: Iterable[int],
    *,
    places: Sequence[str] = (),
    remedy: Remedy = "",
) -> Iterator[Finding]:
    """Yield a finding about some episodes, or about other places; nothing if there are none of them."""
    indices = list(episodes)
    if indices or places:
        yield Finding(
            severity=severity, kind=kind, text=text, episodes=indices, places=list(places), remedy=remedy
        )


def found_where(
    severity: Severity, kind: str, text: str, episodes: Mapping[int, T], is_so: Callable[[T], bool]
) -> Iterator[Finding]:
    """Yield a finding about the episodes of which something is true; nothing if there are none of them."""
    return found(severity, kind, text, [index for index, episode in episodes.items() if is_so(episode)])


class Findings:
    """All findings about a dataset. Episodes are known by their index in the file."""

    def __init__(self, id_at: Callable[[int], str], filters: Iterable[str]) -> None:
        self._id_at = id_at
        self._filters = frozenset(filters)
        self.items: list[Finding] = []
        self.filters: dict[str, set[int]] = {}
        """The episodes that each filter would leave out."""
        self.dropped: dict[int, str] = {}
        """Episodes that no corrected copy can hold, and why."""

    def add(self, finding: Finding) -> None:
        """Add a finding; one that names neither episodes nor places is about the whole file."""
        places = finding.places or places_of(finding.episodes) or ["episodes"]
        ids = finding.ids or [self._id_at(index) for index in finding.episodes]
        self.items.append(msgspec.structs.replace(finding, count=len(places), places=places, ids=ids))
        if finding.kind in self._filters:
            self.filters.setdefault(finding.kind, set()).update(finding.episodes)
        if finding.remedy == "dropped":
            for index in finding.episodes:
                self.dropped.setdefault(index, f"{finding.kind}: {finding.text}")

    def about(
        self,
        severity: Severity,
        kind: str,
        text: str,
        *,
        episodes: Iterable[int] = (),
        places: Sequence[str] = (),
        remedy: Remedy = "",
    ) -> None:
        """Add a finding about some episodes, or about other places; nothing if there are none of them."""
        for finding in found(severity, kind, text, episodes, places=places, remedy=remedy):
            self.add(finding)

    def count(self, severity: Severity) -> int:
        """Return how many findings of a severity there are."""
        return sum(item.severity == severity for item in self.items)


def places_of(episodes: Iterable[int]) -> list[str]:
    """Return where episodes stand in their file."""
    return [f"episodes[{index}]" for index in episodes]


def says_something(text: str) -> bool:
    """Tell whether there is anything to see: blanks of no width are no blanks to Python."""
    return any(character.isprintable() and not character.isspace() for character in text)


def some_of(names: Sequence[str], most: int = 5) -> str:
    """Return the first of some names in one line."""
    return ", ".join(names[:most]) + (", ..." if len(names) > most else "")


def grouped(episodes: Mapping[int, T], key: Callable[[T], KeyT]) -> dict[KeyT, list[int]]:
    """Return the indices of episodes by their keys."""
    alike: dict[KeyT, list[int]] = defaultdict(list)
    for index, episode in episodes.items():
        alike[key(episode)].append(index)
    return alike


def groups(episodes: Mapping[int, T], key: Callable[[T], Hashable]) -> list[list[int]]:
    """Return the indices of episodes with the same key, where there are two or more of them."""
    return [indices for indices in grouped(episodes, key).values() if len(indices) > 1]


def check_wording(
    episodes: Mapping[int, T],
    *,
    words: Callable[[T], str],
    scene: Callable[[T], Hashable],
    goal: Callable[[T], Hashable],
    start: Callable[[T], Hashable],
) -> Iterator[Finding]:
    """Yield instructions that fit different goals, and episodes that are there twice."""
    said = {index: e for index, e in episodes.items() if says_something(words(e)) and goal(e) is not None}
    same_words = groups(said, lambda e: (scene(e), " ".join(words(e).lower().split())))
    equal = [i for indices in same_words if len({goal(said[i]) for i in indices}) > 1 for i in indices]
    text = "the same words for different goals in one scene"
    yield from found("warning", "equal-instruction", text, sorted(equal))
    twins = groups(episodes, lambda e: (scene(e), start(e), goal(e), words(e)))
    text = "the same scene, start, goal and words as an episode before: it counts twice"
    yield from found("warning", "duplicate", text, sorted(i for indices in twins for i in indices[1:]))
