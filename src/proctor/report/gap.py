"""The gap between two backends: one agent, the same episodes, two worlds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import msgspec

from proctor.exams.results import EpisodeResult
from proctor.exams.vln.divergence import Divergence, divergence
from proctor.exams.vln.execution_error import ActionError, execution_errors, why_unmeasurable
from proctor.runs.comparable import ComparableRun

BACKEND_KEYS = ("env", "env_options")
AGENT_KEYS = {"policy": "agents", "policy_options": "their options", "policy_sha256": "their files"}
"""What makes an agent, as manifests and people call it."""
LONGEST_NAME = 72


class Gap(msgspec.Struct, frozen=True, kw_only=True):
    """What the backend alone makes of an agent."""

    agent: str
    a_backend: str
    b_backend: str
    """The env, and those of its options that differ."""
    a_execution: dict[str, ActionError]
    b_execution: dict[str, ActionError]
    """How exactly actions were done, by their names, over the paired episodes; empty if nobody can tell."""
    unmeasured: list[str]
    """In how many episodes of a run that could not be told, and why."""
    divergences: list[Divergence]
    """Of each pair of episodes."""


def gap_of(
    a: ComparableRun, b: ComparableRun, pairs: Sequence[tuple[EpisodeResult, EpisodeResult]]
) -> Gap | None:
    """Return the gap between the backends of two runs, None if not they alone may be to blame.

    Args:
        a: One run.
        b: The other.
        pairs: Their common episodes.
    """
    if not _differ_in_backend(a, b) or agent_differences(a, b):
        return None
    runs = {"A": [x for x, _ in pairs], "B": [y for _, y in pairs]}
    measurable = {
        letter: [episode for episode in episodes if why_unmeasurable(episode) is None]
        for letter, episodes in runs.items()
    }
    return Gap(
        agent=a.name,
        a_backend=_backend_name(a, b),
        b_backend=_backend_name(b, a),
        a_execution=execution_errors(measurable["A"]),
        b_execution=execution_errors(measurable["B"]),
        unmeasured=[text for letter, episodes in runs.items() for text in _unmeasured(letter, episodes)],
        divergences=[divergence(x, y) for x, y in pairs if x.trajectory and y.trajectory],
    )


def gap_warnings(a: ComparableRun, b: ComparableRun) -> list[str]:
    """Return what a reader of two backends must know before believing that they are what differs."""
    if not _differ_in_backend(a, b):
        return []
    if differences := agent_differences(a, b):
        return [f"agent and backend differ, so this is no gap between backends: {', '.join(differences)}"]
    seeds = [run.identity.get("seed", 0) for run in (a, b)]
    if seeds[0] != seeds[1]:
        return [f"seeds differ ({seeds[0]} and {seeds[1]}): an agent may choose otherwise for that alone"]
    return []


def agent_differences(a: ComparableRun, b: ComparableRun) -> list[str]:
    """Return in what the agents of two runs differ; of two that are called otherwise, only that."""
    found = []
    for key, name in AGENT_KEYS.items():
        x, y = a.identity.get(key), b.identity.get(key)
        if x != y:
            values = "" if key.endswith("sha256") else f" ({short(x)} and {short(y)})"
            found.append(f"{name} differ{values}")
            if key == "policy":
                break
    return found


def short(value: Any) -> str:
    """Return a value of a manifest as JSON, cut off where it gets long."""
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= 40 else f"{text[:37]}..."


def _differ_in_backend(a: ComparableRun, b: ComparableRun) -> bool:
    """Tell whether two known runs of navigation were in different worlds."""
    for run in (a, b):
        if not run.identity.get("policy") or not run.identity.get("env"):
            return False
        if any(episode.task != "vln" for episode in run.episodes):
            return False
    return any(a.identity.get(key) != b.identity.get(key) for key in BACKEND_KEYS)


def _backend_name(run: ComparableRun, other: ComparableRun) -> str:
    mine, theirs = (_options(run), _options(other))
    words = [f"{key}={short(value)}" for key, value in sorted(mine.items()) if theirs.get(key) != value]
    name = " ".join([str(run.identity["env"]), *words])
    return name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 3]}..."


def _options(run: ComparableRun) -> dict[str, Any]:
    options = run.identity.get("env_options")
    return options if isinstance(options, dict) else {}


def _unmeasured(letter: str, episodes: Sequence[EpisodeResult]) -> list[str]:
    reasons = Counter(reason for episode in episodes if (reason := why_unmeasurable(episode)))
    return [f"{letter}: {reason} in {count} of {len(episodes)} episodes" for reason, count in reasons.items()]
