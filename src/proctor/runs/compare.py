"""Two agents on the same episodes: how they differ, in which episodes, and whether it could be chance."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, Literal

import msgspec

from proctor.core.errors import UserError
from proctor.core.geometry import distance
from proctor.exams.exam import Metric
from proctor.exams.names import AnyExam
from proctor.exams.results import EpisodeResult, Interval
from proctor.exams.step_metrics import metric_named
from proctor.runs.folder import MANIFEST, RunFolder
from proctor.runs.summary import Latency, clustered_bootstrap, latency_of

FEWEST = 6  # from fewer episodes nothing is told: that five change the same way is chance in 2 of 2**5 cases
SAME_PLACE_M = 0.01
COMPARED_KEYS = {
    "task": "tasks",
    "dataset_sha256": "dataset files",
    "scenes_sha256": "scene files",
    "env": "envs",
    "env_options": "options of the env",
    "conditions": "what agents are told and shown",
    "proctor": "versions of Proctor",
}
"""What makes runs comparable, whatever their exam, as manifests and people call it."""

Pair = tuple[EpisodeResult, EpisodeResult]
BACKEND_KEYS = ("env", "env_options")
AGENT_KEYS = {"policy": "agents", "policy_options": "their options", "policy_sha256": "their files"}
"""What makes an agent, as manifests and people call it."""
LONGEST_NAME = 72


class MetricDifference(msgspec.Struct, frozen=True, kw_only=True):
    """One metric over the episodes to which it applied in both runs."""

    a: float
    b: float
    difference: Interval  # B - A
    reading: Literal["better", "worse", "higher", "lower", "equal", "unclear"]
    """What B is, if the interval leaves zero out; of some metrics nobody can say what would be better."""


class Flip(msgspec.Struct, frozen=True, kw_only=True):
    """An episode in which one agent succeeded and the other did not."""

    episode_id: str
    scene_id: str
    instruction: str
    failure_reason: str  # of the one that failed


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """All that can be said about two runs."""

    task: str  # the name of the exam
    a: str
    b: str
    a_path: str
    b_path: str
    a_is_privileged: bool
    b_is_privileged: bool
    pairs: int
    scenes: int
    only_in_a: int
    only_in_b: int
    unscored: int  # episodes that are not scored in at least one of the runs; they are left out
    success_a: int
    success_b: int
    p_value: float  # of the exact McNemar test: how often chance alone would flip as unevenly
    gained: list[Flip]  # B succeeded where A had failed
    lost: list[Flip]  # B failed where A had succeeded
    metrics: dict[str, MetricDifference]
    distance: str  # by which distance the paired episodes are judged: `geodesic`, `euclidean` or `mixed`
    a_latency: Latency | None
    b_latency: Latency | None  # of all episodes of the runs, paired or not
    warnings: list[str]
    verdict: str
    gap: Any  # what the exam says of one agent on two backends; None if that is not what was compared


def load_run(path: Path) -> RunFolder:
    """Read a run folder, or a `results.json` by itself. An unfinished run has what it has so far."""
    if path.is_file():
        run = RunFolder.of_results(path)
    elif not path.exists():
        raise UserError(f"{path}: no such folder; expected a run, as `proctor run --out` makes it")
    elif not (path / MANIFEST).is_file():
        inside = sorted(item.parent.name for item in path.glob(f"*/{MANIFEST}"))
        hint = f"; it holds runs, name one of them: {', '.join(inside[:8])}" if inside else ""
        raise UserError(f"{path}: not a run: there is no {MANIFEST} in it{hint}")
    else:
        run = RunFolder.open(path)
    if not run.episodes:
        raise UserError(f"{path}: no episode of this run is finished; the command that began it goes on")
    return run


def compare(a: RunFolder, b: RunFolder) -> Comparison:
    """Compare two runs on the episodes that both have finished; a UserError if there are none."""
    mine = {episode.episode_id: episode for episode in a.episodes}
    theirs = {episode.episode_id: episode for episode in b.episodes}
    common = [(mine[key], theirs[key]) for key in sorted(mine.keys() & theirs.keys())]
    same = [pair for pair in common if _is_same_task(*pair)]
    pairs = [pair for pair in same if all(episode.is_scored for episode in pair)]
    if not pairs:
        raise UserError(_why_nothing_pairs(a, b, len(common), len(same)))
    gained = [_flip(x) for x, y in pairs if y.success and not x.success]
    lost = [_flip(y) for x, y in pairs if x.success and not y.success]
    p_value = mcnemar_p(len(gained), len(lost))
    metrics = _differences(a.exam, pairs)
    gap = backend_gap(a, b, pairs)
    kinds = {episode.distance for pair in pairs for episode in pair}
    return Comparison(
        task=a.exam.name,
        a=a.agent_name,
        b=b.agent_name,
        a_path=str(a.path),
        b_path=str(b.path),
        a_is_privileged=a.is_privileged,
        b_is_privileged=b.is_privileged,
        pairs=len(pairs),
        scenes=len({x.scene_id for x, _ in pairs}),
        only_in_a=len(mine.keys() - theirs.keys()),
        only_in_b=len(theirs.keys() - mine.keys()),
        unscored=len(same) - len(pairs),
        success_a=sum(x.success for x, _ in pairs),
        success_b=sum(y.success for _, y in pairs),
        p_value=p_value,
        gained=gained,
        lost=lost,
        metrics=metrics,
        distance=kinds.pop() if len(kinds) == 1 else "mixed",
        a_latency=latency_of(a.episodes),
        b_latency=latency_of(b.episodes),
        warnings=_warnings(
            a, b, pairs, strangers=len(common) - len(same), wanted=BACKEND_KEYS if gap else ()
        ),
        verdict=_verdict(pairs, len(gained), len(lost), p_value, metrics.get("success")),
        gap=gap,
    )


def mcnemar_p(gained: int, lost: int) -> float:
    """Return the two-sided p-value of McNemar's exact test: a fair coin for each flipped episode."""
    flips = gained + lost
    tail = sum(math.comb(flips, k) for k in range(min(gained, lost) + 1))
    return float(min(1.0, 2 * tail / 2**flips))


def _is_same_task(x: EpisodeResult, y: EpisodeResult) -> bool:
    """Tell whether two episodes of one id are one episode: many exams call theirs `1`, `2`, `3`."""
    starts = x.trajectory[:1], y.trajectory[:1]
    same_start = not all(starts) or distance(starts[0][0], starts[1][0]) < SAME_PLACE_M
    return x.scene_id == y.scene_id and same_start


def _why_nothing_pairs(a: RunFolder, b: RunFolder, common: int, same: int) -> str:
    names = f"{a.path} and {b.path}"
    if same:
        return f"{names}: each of the {same} common episodes is not scored in one of them"
    if common:
        return f"{names}: {common} ids are the same, but not one of the episodes: scene or start differ"
    return (
        f"{names} have no episode in common ({len(a.episodes)} and {len(b.episodes)} episodes); "
        "compare runs of the same exam"
    )


def _flip(failed: EpisodeResult) -> Flip:
    return Flip(
        episode_id=failed.episode_id,
        scene_id=failed.scene_id,
        instruction=failed.instruction,
        failure_reason=failed.failure_reason or "",
    )


def _differences(exam: type[AnyExam], pairs: Sequence[Pair]) -> dict[str, MetricDifference]:
    found = {}
    for name in sorted({name for x, y in pairs for name in x.metrics.keys() & y.metrics.keys()}):
        rows = [
            (x.metrics[name], y.metrics[name], x.scene_id)
            for x, y in pairs
            if math.isfinite(x.metrics.get(name, math.nan)) and math.isfinite(y.metrics.get(name, math.nan))
        ]
        if not rows:
            continue
        old, new, scenes = zip(*rows, strict=True)
        changes = [y - x for x, y in zip(old, new, strict=True)]
        interval = clustered_bootstrap(changes, scenes, seed=0)
        found[name] = MetricDifference(
            a=math.fsum(old) / len(old),
            b=math.fsum(new) / len(new),
            difference=interval,
            reading="equal" if not any(changes) else _reading(metric_named(exam, name), interval),
        )
    return found


def _reading(metric: Metric, change: Interval) -> Literal["better", "worse", "higher", "lower", "unclear"]:
    if change.low <= 0 <= change.high or change.n < FEWEST:
        return "unclear"
    if metric.better != "none":
        return "better" if (change.mean > 0) == (metric.better == "up") else "worse"
    return "higher" if change.mean > 0 else "lower"


def _warnings(
    a: RunFolder, b: RunFolder, pairs: Sequence[Pair], *, strangers: int, wanted: Sequence[str]
) -> list[str]:
    """Return what a reader must know before believing any number; keys in `wanted` are meant to differ."""
    found = backend_warnings(a, b)
    same_ids = a.identity.get("episode_ids_sha256") == b.identity.get("episode_ids_sha256")
    for key, name in (COMPARED_KEYS | dict(a.exam.compared_options)).items():
        if key in wanted:
            continue
        if key == "scenes_sha256" and not same_ids:
            continue  # it is of the scenes of the episodes that were chosen
        if a.identity and b.identity and (text := _difference(a, b, key, name)):
            found.append(f"not the same exam: {text}")
    if a.definition and b.definition and a.definition != b.definition:
        found.append(f"not the same exam: metrics by {a.definition} and by {b.definition}")
    differing = sum((x.distance, x.shortest_path) != (y.distance, y.shortest_path) for x, y in pairs)
    if differing:
        found.append(f"not the same exam: {differing} episodes are judged by another kind of distance")
    reworded = sum(x.instruction != y.instruction for x, y in pairs)
    if reworded:
        found.append(f"not the same exam: {reworded} episodes have another instruction")
    if strangers:
        found.append(f"{strangers} episodes have the same id, but another scene or start, and are left out")
    found += [
        f"{letter} is unfinished: {len(run.episodes)} of {run.expected} episodes, paired on what there is"
        for letter, run in (("A", a), ("B", b))
        if len(run.episodes) < run.expected
    ]
    found += [f"{letter}: {note}" for letter, run in (("A", a), ("B", b)) for note in run.notes]
    if a.is_privileged != b.is_privileged:
        letter = "A" if a.is_privileged else "B"
        found.append(f"{letter} is privileged: it was shown the truth, and the other was not")
    return found


def _verdict(
    pairs: Sequence[Pair], gained: int, lost: int, p_value: float, success: MetricDifference | None
) -> str:
    scenes = len({x.scene_id for x, _ in pairs})
    base = f"{_number(len(pairs), 'episode')} in {_number(scenes, 'scene')}"
    if gained == lost == 0:
        successes = sum(x.success for x, _ in pairs)
        return f"No difference in success: both succeeded in the same {successes} of {base}."
    chance = f"p = {p_value:.3f}" if p_value >= 0.001 else "p < 0.001"
    flips = f"{gained} won, {lost} lost, {chance}"
    certain = success is not None and success.reading in ("better", "worse")
    if p_value >= 0.05 or not certain:
        return f"No difference in success can be told from {base}: {flips}."
    return f"B succeeds {'more' if gained > lost else 'less'} often than A in {base}: {flips}."


def _number(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def backend_gap(a: RunFolder, b: RunFolder, pairs: Sequence[Pair]) -> Any | None:
    """Return what the exam says of two runs that differ in nothing but the backend; None for other runs."""
    if not _differ_in_backend(a, b) or _agent_differences(a, b):
        return None
    backends = _backend_name(a, b), _backend_name(b, a)
    return resolve_name(a.exam.backend_gap)(a.agent_name, backends, pairs)


def backend_warnings(a: RunFolder, b: RunFolder) -> list[str]:
    """Return what a reader of two backends must know before believing that they are what differs."""
    if not _differ_in_backend(a, b):
        return []
    if differences := _agent_differences(a, b):
        return [f"agent and backend differ, so this is no gap between backends: {', '.join(differences)}"]
    seeds = [run.identity.get("seed", 0) for run in (a, b)]
    if seeds[0] != seeds[1]:
        return [f"seeds differ ({seeds[0]} and {seeds[1]}): an agent may choose otherwise for that alone"]
    return []


def short(value: Any) -> str:
    """Return a value of a manifest as JSON, cut off where it gets long."""
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= 40 else f"{text[:37]}..."


def _difference(a: RunFolder, b: RunFolder, key: str, name: str) -> str:
    x, y = a.identity.get(key), b.identity.get(key)
    values = "" if key.endswith("sha256") else f" ({short(x)} and {short(y)})"
    return "" if x == y else f"{name} differ{values}"


def _agent_differences(a: RunFolder, b: RunFolder) -> list[str]:
    """Return in what the agents of two runs differ; of two that are called otherwise, only that."""
    found = []
    for key, name in AGENT_KEYS.items():
        if text := _difference(a, b, key, name):
            found.append(text)
            if key == "policy":
                break
    return found


def _differ_in_backend(a: RunFolder, b: RunFolder) -> bool:
    """Tell whether two known runs of one exam that has something to say of it were in different worlds."""
    if a.exam is not b.exam or not a.exam.backend_gap:
        return False
    if not all(run.identity.get("policy") and run.identity.get("env") for run in (a, b)):
        return False
    return any(a.identity.get(key) != b.identity.get(key) for key in BACKEND_KEYS)


def _backend_name(run: RunFolder, other: RunFolder) -> str:
    mine, theirs = (each.identity.get("env_options") or {} for each in (run, other))
    words = [f"{key}={short(value)}" for key, value in sorted(mine.items()) if theirs.get(key) != value]
    name = " ".join([str(run.identity["env"]), *words])
    return name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 3]}..."
