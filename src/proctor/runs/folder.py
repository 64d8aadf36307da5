"""Run folders: the only reader of what a run leaves behind, for reports, comparisons, rescoring and resuming.

    manifest.json    what defines the run, and what it was run with
    episodes.jsonl   one line per finished episode
    results.json     all of it at the end, without what differs between two equal runs
    traces/          what was done in each episode, and what was true after each step
    wire/            what was exchanged with the agent in each episode, if its policy keeps that
    recordings/      what the agent saw, if that was asked for
    slurm/           batch script and logs, if jobs of a SLURM cluster did it

`episodes.jsonl` has the last word: it is there for unfinished runs as well, and a run continues from it.
`results.json` is only compared with it. Where the journal is gone, `results.json` is what is left.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec

from proctor.core.documents import MAX_BYTES, read_bytes, read_json
from proctor.core.errors import InvalidFile, UnknownName, UserError
from proctor.core.types import Usage
from proctor.exams.names import AnyExam, all_exams, exam_named
from proctor.exams.record_check import check_record
from proctor.exams.results import EpisodeResult, Results, Summary, as_in_results
from proctor.exams.trace import AnyTrace
from proctor.runs.accounting import MAX_TRANSCRIPT_BYTES
from proctor.runs.recordings import plain_name
from proctor.runs.resources import RunResources, resources_of
from proctor.runs.summary import mean, summarise, usage_of
from proctor.runs.traces import decode_trace

MANIFEST, JOURNAL, RESULTS = "manifest.json", "episodes.jsonl", "results.json"
TRACES, WIRE = "traces", "wire"
MOST_DIFFERENCES = 3  # so many are named; the others are counted
ROUNDING = 1e-6


class RunFolder:
    """What a run folder holds. Make one with `open`, or with `of_results` from a `results.json` alone."""

    def __init__(
        self,
        path: Path,
        manifest: dict[str, Any],
        exam: type[AnyExam],
        episodes: Sequence[EpisodeResult],
        *,
        definition: str = "",
        repeated: Sequence[EpisodeResult] = (),
        warnings: Sequence[str] = (),
    ) -> None:
        self.path, self.manifest, self.exam = path, manifest, exam
        self.episodes = list(episodes)  # the finished ones, in the order of `results.json`
        self.repeated = list(repeated)  # attempts whose episode was done again
        self.definition = definition  # whose metric definitions `results.json` names
        self.warnings = list(warnings)  # where its files do not agree, or one is missing

    @classmethod
    def open(cls, path: Path) -> RunFolder:
        """Read a run folder. A run in which nothing is finished has no episodes."""
        manifest = read_manifest(path / MANIFEST)
        exam = _exam_of_manifest(manifest, path / MANIFEST)
        attempts = read_attempts(path / JOURNAL, exam)
        finished = {result.episode_id: result for result in attempts}
        repeated = [result for result in attempts if result is not finished[result.episode_id]]
        results, warnings = _results(path / RESULTS, exam)
        if results is None:
            return cls(path, manifest, exam, list(finished.values()), repeated=repeated, warnings=warnings)
        if finished:
            warnings += _disagreement(results, finished)
            order = {episode.episode_id: index for index, episode in enumerate(results.episodes)}
            episodes = sorted(finished.values(), key=lambda e: order.get(e.episode_id, len(order)))
        else:
            episodes = results.episodes
            if episodes:
                warnings.append(f"{JOURNAL} is missing or empty; the numbers shown are those of {RESULTS}")
        definition = results.summary.definition
        return cls(
            path, manifest, exam, episodes, definition=definition, repeated=repeated, warnings=warnings
        )

    @classmethod
    def of_results(cls, path: Path) -> RunFolder:
        """Read a `results.json`, with the folder around it if it is in one."""
        if path.name == RESULTS and all(path.with_name(name).is_file() for name in (MANIFEST, JOURNAL)):
            return cls.open(path.parent)
        manifest: dict[str, Any] = {"identity": {}}
        if path.with_name(MANIFEST).is_file():
            manifest = read_manifest(path.with_name(MANIFEST))
        raw = read_bytes(path)
        if manifest["identity"]:
            exam = _exam_of_manifest(manifest, path.with_name(MANIFEST))
        else:
            exam = _exam_of_results(raw, path)
        results = _read_results(raw, path, exam)
        definition = results.summary.definition
        return cls(path, manifest, exam, results.episodes, definition=definition)

    @property
    def identity(self) -> dict[str, Any]:
        """What defines the run; empty if nobody knows."""
        identity: dict[str, Any] = self.manifest["identity"]
        return identity

    @property
    def notes(self) -> list[str]:
        """What a reader must know before trusting the numbers."""
        return [*self.manifest.get("notes", []), *self.warnings]

    @property
    def agent_name(self) -> str:
        """What to call the agent: the name it was given, or else its policy."""
        return str(self.identity.get("name") or self.identity.get("policy") or self.path.name)

    @property
    def is_privileged(self) -> bool:
        """Whether the agent was shown the truth."""
        return bool(self.identity.get("privileged", False))

    @property
    def expected(self) -> int:
        """How many episodes the run has when it is finished."""
        return max(len(self.episodes), int(self.identity.get("episodes", 0)))

    @cached_property
    def results(self) -> Results:
        """The numbers of the finished episodes."""
        return summarise(self.exam, self.episodes, repeated=self.repeated)

    @cached_property
    def resources(self) -> RunResources | None:
        """What all attempts took; None if that was not measured."""
        return resources_of([*self.episodes, *self.repeated])

    def trace(self, episode_id: str) -> AnyTrace | None:
        """Return what was done in an episode; None if the run kept no trace of it."""
        path = trace_file(self.path, episode_id)
        if not path.is_file():
            return None
        return decode_trace(self.exam(), read_bytes(path), path)

    def wire_bytes(self, episode_id: str) -> bytes:
        """Return the file of what was exchanged with the agent in an episode; empty if the run kept none."""
        path = wire_file(self.path, episode_id)
        if not path.is_file():
            return b""
        with path.open("rb") as stream:
            return stream.read(MAX_TRANSCRIPT_BYTES)


def find_runs(folders: Sequence[Path]) -> list[Path]:
    """Return the run folders among these folders and right inside of them; a UserError if one has none."""
    found: dict[Path, None] = {}
    for folder in folders:
        if not folder.is_dir():
            raise UserError(f"{folder}: no such folder")
        inside = (
            [folder]
            if (folder / MANIFEST).is_file()
            else sorted(f for f in folder.iterdir() if (f / MANIFEST).is_file())
        )
        if not inside:
            raise UserError(
                f"{folder} is not a run: neither it nor a folder in it has a {MANIFEST}; "
                "give the folder that 'proctor run --out' wrote to"
            )
        found.update((run.resolve(), None) for run in inside)
    return list(found)


def trace_file(folder: Path, episode_id: str) -> Path:
    """Return where the trace of an episode lies."""
    return folder / TRACES / f"{plain_name(episode_id)}.trace"


def wire_file(folder: Path, episode_id: str) -> Path:
    """Return where the transcript of an episode lies."""
    return folder / WIRE / f"{plain_name(episode_id)}.jsonl.gz"


def read_attempts(path: Path, exam: type[AnyExam]) -> list[EpisodeResult]:
    """Return all records of a journal, also those of attempts whose episode was done again.

    What follows the last line break is the torn line of a run that was killed, and is ignored. So is another
    record of an episode that is scored: it can only be from a host that slept while others took over.
    """
    if not path.is_file():
        return []
    *lines, _torn = path.read_bytes().split(b"\n")
    decoder = msgspec.json.Decoder(exam.result)
    attempts: list[EpisodeResult] = []
    scored: set[str] = set()
    for number, line in enumerate(lines, 1):
        try:
            result = decoder.decode(line)
        except msgspec.MsgspecError as error:
            raise InvalidFile(path, f"not an episode record: {error}", place=f"line {number}") from None
        check_record(exam, result, path, place=f"line {number}")
        if result.episode_id not in scored:
            attempts.append(result)
        if result.is_scored:
            scored.add(result.episode_id)
    return attempts


class _Identity(msgspec.Struct):
    """What readers take from a manifest's identity. Earlier versions did not write all of it."""

    proctor: str = ""
    dataset: str = ""
    dataset_sha256: str = ""
    scenes_sha256: str = ""
    episode_ids_sha256: str = ""
    episodes: int = 0
    name: str = ""
    policy: str = ""
    policy_sha256: str = ""
    policy_options: dict[str, Any] = {}
    privileged: bool = False
    env: str = ""
    env_options: dict[str, Any] = {}
    task: str = ""
    seed: int = 0
    success_threshold_m: float = 0.0


class _Source(msgspec.Struct):
    dataset: str | None = None
    scenes: str | None = None


class _Manifest(msgspec.Struct):
    identity: _Identity
    source: _Source | None = None
    packages: dict[str, Any] = {}
    notes: list[str] = []


def read_manifest(path: Path) -> dict[str, Any]:
    """Return the manifest of a run, whose entries have the types that readers rely on."""
    manifest: dict[str, Any] = read_json(path)
    try:
        msgspec.convert(manifest, _Manifest)
    except msgspec.ValidationError as error:
        raise InvalidFile(path, f"not the manifest of a run: {error}") from None
    return manifest


def _exam_of_manifest(manifest: dict[str, Any], path: Path) -> type[AnyExam]:
    try:
        return exam_named(str(manifest["identity"].get("task", "")))
    except UnknownName as error:
        raise InvalidFile(path, f"{error}; is its package installed?", place="identity.task") from None


def _exam_of_results(raw: bytes, path: Path) -> type[AnyExam]:
    """Return the exam of a `results.json` alone: by its summary, or else by the fields of its episodes."""
    try:
        document = msgspec.json.decode(raw, type=dict[str, Any])
        tag = str(document["summary"].get("task", ""))
        first: dict[str, Any] = next(iter(document["episodes"]), {})
        if tag:
            return exam_named(tag)
    except UnknownName as error:
        raise InvalidFile(path, str(error), place="summary.task") from None
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, KeyError, TypeError, AttributeError):
        return exam_named("")  # whoever reads it will say what is wrong
    common = set(EpisodeResult.__struct_fields__)
    own = ((exam, set(exam.result.__struct_fields__) - common) for exam in all_exams())
    return next((exam for exam, fields in own if fields & set(first)), exam_named(""))


def _read_results(raw: bytes, path: Path, exam: type[AnyExam]) -> Results:
    try:
        results = msgspec.json.decode(raw, type=_ResultsFile)
        episodes = [msgspec.json.decode(record, type=exam.result) for record in results.episodes]
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidFile(path, f"not the results of a run: {error}") from None
    for index, episode in enumerate(episodes):
        check_record(exam, episode, path, place=f"episodes[{index}]")
    return Results(results.summary, episodes)


class _ResultsFile(msgspec.Struct):
    summary: Summary
    episodes: list[msgspec.Raw]


def _results(path: Path, exam: type[AnyExam]) -> tuple[Results | None, list[str]]:
    if not path.is_file():
        return None, []
    if path.stat().st_size > MAX_BYTES:
        return None, [f"{RESULTS} is larger than {MAX_BYTES // 2**20} MiB and is not compared with {JOURNAL}"]
    try:
        return _read_results(read_bytes(path), path, exam), []
    except InvalidFile as error:
        return None, [f"{error}; the numbers shown are those of {JOURNAL}"]


def _disagreement(results: Results, finished: dict[str, EpisodeResult]) -> list[str]:
    """Return a warning if the two files do not say the same."""
    written = {episode.episode_id: episode for episode in results.episodes}
    repeated = [
        key
        for key, episode in written.items()
        if not episode.is_scored and key in finished and as_in_results(finished[key]) != episode
    ]
    found = [
        *(f"episode '{key}' is only in {RESULTS}" for key in written if key not in finished),
        *(f"episode '{key}' is only in {JOURNAL}" for key in finished if key not in written),
        *(
            f"episode '{key}': {difference}"
            for key, episode in written.items()
            if key in finished and key not in repeated
            for difference in _differences(episode, as_in_results(finished[key]))
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
            "avg_distance_error": mean([episode.final_distance_to_goal for episode in scored]),
            "avg_steps": mean([episode.steps for episode in scored]),
        }
    found: dict[str, float] = {name: getattr(summary, name) for name in expected}
    bumps = [episode.collision_count for episode in scored if episode.collision_count is not None]
    if scored:
        average = summary.avg_collision_count
        found["avg_collision_count"] = math.nan if average is None else average
        expected["avg_collision_count"] = mean(bumps) if bumps else math.nan
    for name, interval in summary.metrics.items():
        values = [episode.metrics[name] for episode in scored if name in episode.metrics]
        if len(values) == interval.n:
            found[f"metrics.{name}.mean"] = interval.mean
            expected[f"metrics.{name}.mean"] = mean(values)
    for field, value in msgspec.structs.asdict(summary.usage or Usage()).items():
        found[f"usage.{field}"] = math.nan if value is None else value
    for field, value in msgspec.structs.asdict(usage_of(scored) or Usage()).items():
        expected[f"usage.{field}"] = math.nan if value is None else value
    for name, value in found.items():
        both_unknown = math.isnan(value) and math.isnan(expected[name])
        if not both_unknown and not math.isclose(value, expected[name], rel_tol=ROUNDING, abs_tol=ROUNDING):
            given = f"the episodes of {JOURNAL} give {expected[name]:g}"
            yield f"summary.{name} of {RESULTS} is {value:g}, {given}"


def _difference(field: str, written: Any, finished: Any) -> str:
    if isinstance(written, list | msgspec.Struct) or isinstance(finished, list | msgspec.Struct):
        return f"{field} differs"
    return f"{field} is {written!r:.40} in {RESULTS} and {finished!r:.40} in {JOURNAL}"
