"""How much of an agent's score depends on words and on pictures: the same episodes under several conditions.

Each arm is an ordinary run. Arms are compared with the plain one episode by episode, which is more exact
than to compare two means: what makes an episode hard is the same in both.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from statistics import stdev

import msgspec
from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from proctor.core.errors import UserError, did_you_mean
from proctor.exams.exam import Metric
from proctor.exams.names import AnyExam
from proctor.exams.results import EpisodeResult, Informed
from proctor.exams.step_metrics import metrics_of
from proctor.runs.compare import MetricDifference, compare
from proctor.runs.conditions import Conditions
from proctor.runs.folder import RunFolder

PLAIN = "plain"
ARMS: Mapping[str, Conditions] = {
    PLAIN: Conditions(),
    "words-blank": Conditions(instructions="blank"),
    "words-shuffled": Conditions(instructions="shuffled"),
    "words-mirrored": Conditions(instructions="mirrored"),
    "words-paraphrased": Conditions(instructions="paraphrased"),
    "pictures-blank": Conditions(pictures="blank"),
    "pictures-noise": Conditions(pictures="noise"),
    "pictures-frozen": Conditions(pictures="frozen"),
}
GROUPS = ("words", "pictures")
SAME_MEANING = "words-paraphrased"
"""The arm that an agent should not notice."""


class StandardErrors(msgspec.Struct, frozen=True, kw_only=True):
    """Of a mean difference: of the pairs, and as if the two runs had had different episodes."""

    paired: float
    unpaired: float


class ArmMetric(msgspec.Struct, frozen=True, kw_only=True):
    """One metric of an arm."""

    mean: float
    change: MetricDifference | None = None
    """From plain; None for plain itself."""
    standard_errors: StandardErrors | None = None


class Arm(msgspec.Struct, frozen=True, kw_only=True):
    """One arm of a probe."""

    run: str  # its folder
    conditions: Conditions
    episodes: int
    pairs: int  # episodes that are scored here and in plain
    metrics: dict[str, ArmMetric]
    has_effect: bool = True
    """False if the agent got what it gets in plain, such as mirrored texts without left and right."""
    warnings: list[str] = []


class Probe(msgspec.Struct, frozen=True, kw_only=True):
    """All that a probe tells."""

    agent: str
    task: str
    main_metric: str
    """The score that the sentences are about."""
    informed: Informed | UnsetType = UNSET
    arms: dict[str, Arm]
    sentences: dict[str, str]  # by group


def chosen_arms(words: Sequence[str]) -> list[str]:
    """Return the arms that words mean, plain first; a word is the name of an arm or a part of it."""
    found = set[str]()
    for word in words:
        meant = {name for name in ARMS if word == name or word in name.split("-")}
        if not meant:
            parts = dict.fromkeys(part for name in ARMS for part in (name, *name.split("-")))
            known = ", ".join(ARMS)
            raise UserError(
                f"--arms: there is no arm '{word}'{did_you_mean(word, list(parts))}; arms: {known}"
            )
        found |= meant
    return [name for name in ARMS if name in found or name == PLAIN or not words]


def arm_conditions(arm: str, common: Conditions) -> Conditions:
    """Return the conditions of an arm, in all else those that all arms have in common."""
    own = ARMS[arm]
    return replace(common, instructions=own.instructions, pictures=own.pictures)


def main_metric(exam: type[AnyExam], measured: Collection[str]) -> Metric:
    """Return the finest score that was measured: it can change where success, which is mostly 0, cannot."""
    metrics = [metric for metric in metrics_of(exam) if metric.name in measured]
    fine = [metric for metric in metrics if metric.is_score and metric.in_table and not metric.is_rate]
    return fine[-1] if fine else next(metric for metric in metrics if metric.name == "success")


def probe_of(runs: Mapping[str, RunFolder], conditions: Mapping[str, Conditions]) -> Probe:
    """Compare the arms of a probe with its plain one, which must be among them."""
    plain = runs[PLAIN]
    arms = {name: _arm(plain, run, conditions[name], is_plain=run is plain) for name, run in runs.items()}
    informed = next((e.informed for e in plain.episodes if e.informed is not UNSET), UNSET)
    metric = main_metric(plain.exam, arms[PLAIN].metrics)
    return Probe(
        agent=plain.agent_name,
        task=plain.exam.name,
        main_metric=metric.name,
        informed=informed,
        arms=arms,
        sentences={
            group: _sentence(group, metric, arms, informed)
            for group in GROUPS
            if any(name.startswith(group) for name in arms)
        },
    )


def _arm(plain: RunFolder, run: RunFolder, conditions: Conditions, *, is_plain: bool) -> Arm:
    """Return the numbers of an arm, of the episodes that are scored in both."""
    comparison = compare(plain, run)
    is_own_text = all(episode.delivered_instruction is UNSET for episode in run.episodes)
    has_effect = conditions.instructions == "original" or not is_own_text
    before = {episode.episode_id: episode for episode in plain.episodes if episode.is_scored}
    pairs = [(before[e.episode_id], e) for e in run.episodes if e.is_scored and e.episode_id in before]
    unscored = sum(not episode.is_scored for episode in run.episodes)
    warnings = [f"{unscored} episodes are not scored"] if unscored else []
    if not has_effect:
        warnings.append("no instruction was changed, so this arm says nothing about words")
    return Arm(
        run=str(run.path),
        conditions=conditions,
        episodes=len(run.episodes),
        pairs=comparison.pairs,
        metrics={
            name: ArmMetric(
                mean=difference.b,
                change=None if is_plain else difference,
                standard_errors=None if is_plain else standard_errors(name, pairs),
            )
            for name, difference in comparison.metrics.items()
        },
        has_effect=has_effect,
        warnings=warnings,
    )


def standard_errors(
    metric: str, pairs: Sequence[tuple[EpisodeResult, EpisodeResult]]
) -> StandardErrors | None:
    """Return the standard errors of a mean difference; None for fewer than two pairs."""
    rows = [
        (a.metrics[metric], b.metrics[metric]) for a, b in pairs if {metric} <= a.metrics.keys() & b.metrics
    ]
    if len(rows) < 2:
        return None
    root = math.sqrt(len(rows))
    old, new = zip(*rows, strict=True)
    return StandardErrors(
        paired=stdev(b - a for a, b in rows) / root,
        unpaired=math.hypot(stdev(old), stdev(new)) / root,
    )


def _sentence(group: str, metric: Metric, arms: Mapping[str, Arm], informed: Informed | UnsetType) -> str:
    """Say how much of the score depends on words or pictures."""
    if group == "pictures" and informed is not UNSET and not informed.resolution:
        return "Pictures: the agent gets none."
    title, label = group.capitalize(), metric.label
    plain = arms[PLAIN].metrics[metric.name].mean
    changes = {
        name.partition("-")[2]: arm.metrics[metric.name].change
        for name, arm in arms.items()
        if name.startswith(group) and name != SAME_MEANING and arm.has_effect and metric.name in arm.metrics
    }
    found = {name: change for name, change in changes.items() if change is not None}
    worse = {name: change for name, change in found.items() if change.reading == "worse"}
    if worse:
        name = min(worse, key=lambda name: worse[name].difference.mean)
        change, scale = worse[name], metric.scale
        low, high = change.difference.low * scale, change.difference.high * scale
        share = -change.difference.mean / change.a
        text = (
            f"{title}: {share:.0%} of {label} depends on them. It falls from {change.a * scale:.3g} to "
            f"{change.b * scale:.3g} with {name} {group} (95 % of the change: {low:+.2g} to {high:+.2g})."
        )
    elif found and all(change.reading == "equal" for change in found.values()):
        text = f"{title}: nothing of {label} depends on them. It is {plain * metric.scale:.3g} in all arms."
    elif found:
        text = f"{title}: no arm lowers {label} ({plain * metric.scale:.3g}) by more than chance could."
    else:
        text = ""
    same = arms.get(SAME_MEANING)
    if group == "words" and same is not None and metric.name in same.metrics:
        text = f"{text} {_same_meaning(same.metrics[metric.name])}".strip()
    return text


def _same_meaning(metric: ArmMetric) -> str:
    reading = metric.change.reading if metric.change is not None else "equal"
    if reading in ("better", "worse"):
        return f"Other words for the same path make it {reading}."
    if reading == "equal":
        return "Other words for the same path change nothing."
    return "Other words for the same path make no difference that can be told."
