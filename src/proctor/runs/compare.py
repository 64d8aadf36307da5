"""Two agents on the same episodes: how they differ, in which episodes, and whether it could be chance."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import msgspec

from proctor.core.errors import UserError
from proctor.core.geometry import distance
from proctor.exams.results import EpisodeResult, Interval
from proctor.runs.aggregate import clustered_bootstrap
from proctor.runs.comparable import ComparableRun
from proctor.report.gap import BACKEND_KEYS, Gap, gap_of, gap_warnings, short
from proctor.runs.latency import Latency, latency_of

LEVEL = 0.05
FEWEST = 6
"""From fewer episodes nothing is told: that five change the same way is chance in 2 of 2**5 cases."""
SAME_PLACE_M = 0.01
BETTER_IF_HIGHER = frozenset(
    (
        *("success", "success_at_0.2m", "oracle_success", "spl", "ndtw", "sdtw", "cls"),
        *("success_any_step", "completion_rate", "trajectory_similarity", "ee_similarity"),
        *("reached", "grasped", "lifted", "placed"),
    )
)
BETTER_IF_LOWER = frozenset(
    (
        *("navigation_error", "collisions", "collision_rate"),
        *("time_to_success_s", "drops", "final_distance_m"),
        *("table_collisions", "object_collisions", "self_collisions"),
    )
)
EXAM_KEYS = {
    "task": "tasks",
    "dataset_sha256": "dataset files",
    "scenes_sha256": "scene files",
    "success_threshold_m": "success thresholds",
    "env": "envs",
    "env_options": "options of the env",
    "hide_goal": "what agents are told of the goal",
    "proctor": "versions of Proctor",
}
"""What makes an exam, as manifests and people call it."""

Pair = tuple[EpisodeResult, EpisodeResult]


class MetricDifference(msgspec.Struct, frozen=True, kw_only=True):
    """One metric over the episodes to which it applied in both runs."""

    a: float
    b: float
    difference: Interval
    """B - A."""
    reading: Literal["better", "worse", "higher", "lower", "equal", "unclear"]
    """What B is, if the interval leaves zero out; of some metrics nobody can say what would be better."""


class Flip(msgspec.Struct, frozen=True, kw_only=True):
    """An episode in which one agent succeeded and the other did not."""

    episode_id: str
    scene_id: str
    instruction: str
    failure_reason: str
    """Of the one that failed."""


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """All that can be said about two runs."""

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
    unscored: int
    """Episodes that are not scored in at least one of the runs; they are left out."""
    success_a: int
    success_b: int
    p_value: float
    """Of the exact McNemar test: how often chance alone would flip as unevenly."""
    gained: list[Flip]
    """B succeeded where A had failed."""
    lost: list[Flip]
    """B failed where A had succeeded."""
    metrics: dict[str, MetricDifference]
    distance: str
    """By which distance the paired episodes are judged: `geodesic`, `euclidean` or `mixed`."""
    a_latency: Latency | None
    b_latency: Latency | None
    """Of all episodes of the runs, paired or not."""
    warnings: list[str]
    verdict: str
    gap: Gap | None
    """If one agent was on two backends."""


def compare(a: ComparableRun, b: ComparableRun, *, seed: int = 0) -> Comparison:
    """Compare two runs on the episodes that both have finished.

    Args:
        a: The one to compare with.
        b: The other.
        seed: For the bootstrap.

    Raises:
        UserError: They have no episode in common.
    """
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
    metrics = _differences(pairs, seed)
    gap = gap_of(a, b, pairs)
    return Comparison(
        a=a.name,
        b=b.name,
        a_path=a.path,
        b_path=b.path,
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
        distance=_distance(pairs),
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


def _distance(pairs: Sequence[Pair]) -> str:
    kinds = {episode.distance for pair in pairs for episode in pair}
    return kinds.pop() if len(kinds) == 1 else "mixed"


def _is_same_task(x: EpisodeResult, y: EpisodeResult) -> bool:
    """Tell whether two episodes of one id are one episode: many exams call theirs `1`, `2`, `3`."""
    starts = x.trajectory[:1], y.trajectory[:1]
    same_start = not all(starts) or distance(starts[0][0], starts[1][0]) < SAME_PLACE_M
    return x.scene_id == y.scene_id and same_start


def _why_nothing_pairs(a: ComparableRun, b: ComparableRun, common: int, same: int) -> str:
    names = f"{a.path or a.name} and {b.path or b.name}"
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


def _differences(pairs: Sequence[Pair], seed: int) -> dict[str, MetricDifference]:
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
        interval = clustered_bootstrap(changes, scenes, seed=seed)
        found[name] = MetricDifference(
            a=math.fsum(old) / len(old),
            b=math.fsum(new) / len(new),
            difference=interval,
            reading="equal" if not any(changes) else _reading(name, interval),
        )
    return found


def _reading(name: str, change: Interval) -> Literal["better", "worse", "higher", "lower", "unclear"]:
    if change.low <= 0 <= change.high or change.n < FEWEST:
        return "unclear"
    if name in BETTER_IF_HIGHER or name in BETTER_IF_LOWER:
        return "better" if (change.mean > 0) == (name in BETTER_IF_HIGHER) else "worse"
    return "higher" if change.mean > 0 else "lower"


def _warnings(
    a: ComparableRun, b: ComparableRun, pairs: Sequence[Pair], *, strangers: int, wanted: Sequence[str]
) -> list[str]:
    """Return what a reader must know before believing any number; keys in `wanted` are meant to differ."""
    found = gap_warnings(a, b)
    same_ids = a.identity.get("episode_ids_sha256") == b.identity.get("episode_ids_sha256")
    for key, name in EXAM_KEYS.items():
        if key in wanted:
            continue
        if key == "scenes_sha256" and not same_ids:
            continue  # it is of the scenes of the episodes that were chosen
        x, y = a.identity.get(key), b.identity.get(key)
        if a.identity and b.identity and x != y:
            values = "" if key.endswith("sha256") else f" ({short(x)} and {short(y)})"
            found.append(f"not the same exam: {name} differ{values}")
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
    if p_value >= LEVEL or not certain:
        return f"No difference in success can be told from {base}: {flips}."
    return f"B succeeds {'more' if gained > lost else 'less'} often than A in {base}: {flips}."


def _number(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
