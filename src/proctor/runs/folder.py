"""Reads run folders for all commands: one source of numbers, and a warning where the files disagree.

`episodes.jsonl` has the last word: it is there for unfinished runs as well, and a run continues from it.
`results.json` is only compared with it. Where the journal is gone, `results.json` is what is left.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import UNSET

from proctor.core.documents import MAX_BYTES, decode, read_bytes
from proctor.core.errors import InvalidFile
from proctor.exams.results import (
    JOURNAL,
    MANIFEST,
    RESULTS,
    EpisodeResult,
    Results,
    Summary,
    check_record,
    manifest_notes,
    read_journal,
    read_manifest,
)

MOST_DIFFERENCES = 3
"""So many are named; the others are counted."""
ROUNDING = 1e-6


class RunFolder(msgspec.Struct, frozen=True, kw_only=True):
    """What a run folder holds."""

    path: Path
    manifest: dict[str, Any]
    episodes: list[EpisodeResult]
    """The finished ones, in the order of `results.json`."""
    definition: str = ""
    """Whose metric definitions `results.json` names."""
    warnings: list[str] = []
    """Where its files do not agree, or one is missing."""

    @property
    def identity(self) -> dict[str, Any]:
        """What defines the run."""
        identity: dict[str, Any] = self.manifest["identity"]
        return identity

    @property
    def notes(self) -> list[str]:
        """What a reader must know before trusting the numbers."""
        return [*manifest_notes(self.manifest), *self.warnings]


def agent_name(identity: dict[str, Any], default: str) -> str:
    """Return what to call the agent of a run: the name it was given, or else its policy."""
    return str(identity.get("name") or identity.get("policy") or default)


def read_run_folder(path: Path) -> RunFolder:
    """Read a run folder. A run in which nothing is finished has no episodes.

    Raises:
        InvalidFile: The manifest or the journal is broken, or holds what no exam could have written.
    """
    manifest = read_manifest(path / MANIFEST)
    journal = path / JOURNAL
    finished = read_journal(journal) if journal.is_file() else {}
    results, warnings = _results(path / RESULTS)
    if results is None:
        return RunFolder(path=path, manifest=manifest, episodes=list(finished.values()), warnings=warnings)
    if finished:
        warnings += _disagreement(results, finished)
        order = {episode.episode_id: index for index, episode in enumerate(results.episodes)}
        episodes = sorted(finished.values(), key=lambda e: order.get(e.episode_id, len(order)))
    else:
        episodes = results.episodes
        if episodes:
            warnings.append(f"{JOURNAL} is missing or empty; the numbers shown are those of {RESULTS}")
    return RunFolder(
        path=path,
        manifest=manifest,
        episodes=episodes,
        definition=results.summary.definition,
        warnings=warnings,
    )


def read_results(path: Path) -> Results:
    """Read a `results.json`.

    Raises:
        InvalidFile: It is not one, or holds what no exam could have written.
    """
    results = decode(read_bytes(path), Results, path)
    for index, episode in enumerate(results.episodes):
        check_record(episode, path, place=f"episodes[{index}]")
    return results


def _results(path: Path) -> tuple[Results | None, list[str]]:
    if not path.is_file():
        return None, []
    if path.stat().st_size > MAX_BYTES:
        return None, [f"{RESULTS} is larger than {MAX_BYTES // 2**20} MiB and is not compared with {JOURNAL}"]
    try:
        return read_results(path), []
    except InvalidFile as error:
        return None, [f"{error}; the numbers shown are those of {JOURNAL}"]


def _disagreement(results: Results, finished: dict[str, EpisodeResult]) -> list[str]:
    """Return a warning if the two files do not say the same."""
    written = {episode.episode_id: episode for episode in results.episodes}
    repeated = [
        key
        for key, episode in written.items()
        if not episode.is_scored and key in finished and _untimed(finished[key]) != episode
    ]
    found = [
        *_one_sided(written, finished),
        *(
            f"episode '{key}': {difference}"
            for key, episode in written.items()
            if key in finished and key not in repeated
            for difference in _differences(episode, _untimed(finished[key]))
        ),
    ]
    if repeated:
        done = f"{len(repeated)} episodes were done again after {RESULTS} was written, first '{repeated[0]}'"
        warnings = [f"{done}; the numbers shown are those of {JOURNAL}"]
    else:
        warnings = []
        found += _summary_differences(results.summary, list(finished.values()))
    if found:
        more = f"; and {len(found) - MOST_DIFFERENCES} more" if len(found) > MOST_DIFFERENCES else ""
        warnings.append(
            f"{RESULTS} and {JOURNAL} differ, so one of them was changed after the run: "
            f"{'; '.join(found[:MOST_DIFFERENCES])}{more}. The numbers shown are those of {JOURNAL}"
        )
    return warnings


def _one_sided(written: dict[str, EpisodeResult], finished: dict[str, EpisodeResult]) -> Iterator[str]:
    yield from (f"episode '{key}' is only in {RESULTS}" for key in written if key not in finished)
    yield from (f"episode '{key}' is only in {JOURNAL}" for key in finished if key not in written)


def _untimed(episode: EpisodeResult) -> EpisodeResult:
    return msgspec.structs.replace(episode, timing=UNSET)


def _differences(written: EpisodeResult, finished: EpisodeResult) -> Iterator[str]:
    """Yield the fields in which two records of an episode differ; each metric is a field."""
    if written == finished:
        return
    for field in EpisodeResult.__struct_fields__:
        ours, theirs = getattr(written, field), getattr(finished, field)
        if ours == theirs:
            continue
        if field == "metrics":
            for name in dict.fromkeys([*ours, *theirs]):
                if ours.get(name) != theirs.get(name):
                    yield _difference(f"metrics.{name}", ours.get(name), theirs.get(name))
        else:
            yield _difference(field, ours, theirs)


def _summary_differences(summary: Summary, episodes: Sequence[EpisodeResult]) -> Iterator[str]:
    """Yield the means of a summary that are not those of the episodes."""
    scored = [episode for episode in episodes if episode.is_scored]
    expected: dict[str, float] = {
        "total_episodes": len(episodes),
        "success_count": sum(episode.success for episode in scored),
    }
    if scored:
        expected |= {
            "success_rate": expected["success_count"] / len(scored),
            "avg_distance_error": _mean([episode.final_distance_to_goal for episode in scored]),
            "avg_steps": _mean([episode.steps for episode in scored]),
        }
    found: dict[str, float] = {name: getattr(summary, name) for name in expected}
    bumps = [episode.collision_count for episode in scored if episode.collision_count is not None]
    if scored:
        found["avg_collision_count"] = _or_nan(summary.avg_collision_count)
        expected["avg_collision_count"] = _mean(bumps) if bumps else math.nan
    for name, interval in summary.metrics.items():
        values = [episode.metrics[name] for episode in scored if name in episode.metrics]
        if len(values) == interval.n:
            found[f"metrics.{name}.mean"] = interval.mean
            expected[f"metrics.{name}.mean"] = _mean(values)
    for name, value in found.items():
        both_unknown = math.isnan(value) and math.isnan(expected[name])
        if not both_unknown and not math.isclose(value, expected[name], rel_tol=ROUNDING, abs_tol=ROUNDING):
            given = f"the episodes of {JOURNAL} give {expected[name]:g}"
            yield f"summary.{name} of {RESULTS} is {value:g}, {given}"


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values) if values else 0.0


def _or_nan(value: float | None) -> float:
    return math.nan if value is None else value


def _difference(field: str, written: Any, finished: Any) -> str:
    if isinstance(written, list | msgspec.Struct) or isinstance(finished, list | msgspec.Struct):
        return f"{field} differs"
    return f"{field} is {written!r:.40} in {RESULTS} and {finished!r:.40} in {JOURNAL}"
