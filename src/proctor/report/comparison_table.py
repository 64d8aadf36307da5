"""Comparisons of two runs, two backends and the arms of a probe, for the terminal, 80 columns wide."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median

from rich import box
from rich.markup import escape
from rich.table import Table

from proctor.core.plain_text import plain
from proctor.exams.driving_gap import PARTED_M, ActionError, Gap, Spread
from proctor.exams.exam import Metric
from proctor.exams.names import exam_named
from proctor.exams.step_metrics import metric_named, metrics_of
from proctor.report.tables import add_number_column, exam_notes, fit_names, number
from proctor.runs.compare import Comparison, Flip
from proctor.runs.probe import ArmMetric, Probe

MARKS = {
    "better": "[green]+ better[/green]",
    "worse": "[red]- worse[/red]",
    "higher": "higher",
    "lower": "lower",
    "equal": "[dim]equal[/dim]",
    "unclear": "[dim]unclear[/dim]",
}
FEW_SCENES = 10
MOST_FLIPS = 20
ERRORS = {
    "along_mm": ("along mm", 1),
    "across_mm": ("across mm", 1),
    "turn_deg": ("turn °", 2),
    "drift_mm": ("drift mm", 1),
    "heading_deg": ("heading °", 2),
}
"""What errors are called in the table, and how many digits tell something."""


def comparison_table(comparison: Comparison) -> Table:
    """Return one row per metric: both means, their difference with its 95 % interval, what that says."""
    exam = exam_named(comparison.task)
    labels = {name: metric_named(exam, name).heading for name in comparison.metrics}
    return _table(comparison, fit_names(lambda shown: _table(comparison, shown), labels))


def _table(comparison: Comparison, shown: Mapping[str, str]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("Metric", no_wrap=True)
    for heading in ("A", "B", "B - A", "95 % interval"):
        add_number_column(table, heading)
    table.add_column("B is", min_width=8, no_wrap=True)
    exam = exam_named(comparison.task)
    known = [metric.name for metric in metrics_of(exam)]
    for name in sorted(comparison.metrics, key=lambda name: [*known, name].index(name)):
        facts, metric = metric_named(exam, name), comparison.metrics[name]
        # A difference is smaller than what differs.
        scale, digits = facts.scale, facts.digits + (not facts.is_rate)
        change = metric.difference
        mean, low, high = (
            number(scale * x, digits, sign="+") for x in (change.mean, change.low, change.high)
        )
        table.add_row(
            escape(plain(shown[name])),
            number(scale * metric.a, digits),
            number(scale * metric.b, digits),
            f"[bold]{mean}[/bold]",
            f"{low} to {high}",
            MARKS[metric.reading],
        )
    return table


def comparison_header(comparison: Comparison) -> str:
    """Return which runs are compared, on what, and what is wrong with that."""
    lines = []
    if gap := comparison.gap:
        lines.append(f"One agent on two backends: A on {gap.a_backend}, B on {gap.b_backend}")
    for letter, name, path, privileged in (
        ("A", comparison.a, comparison.a_path, comparison.a_is_privileged),
        ("B", comparison.b, comparison.b_path, comparison.b_is_privileged),
    ):
        place = f"  ({path})" if path and path != name else ""
        lines.append(f"{letter}: {name}{' (privileged)' if privileged else ''}{place}")
    lines.append(f"{comparison.pairs} episodes in pairs, from {comparison.scenes} scenes")
    alone = [
        f"{count} only in {letter}"
        for letter, count in (("A", comparison.only_in_a), ("B", comparison.only_in_b))
        if count
    ]
    if comparison.unscored:
        alone.append(f"{comparison.unscored} not scored in A or B")
    if alone:
        lines.append(f"Left out: {', '.join(alone)}")
    lines += [f"! {warning}" for warning in comparison.warnings]
    return plain("\n".join(lines))


def comparison_notes(comparison: Comparison) -> str:
    """Return which episodes flipped, how to read the table, and the verdict."""
    lines = [
        *_flips("B succeeded where A failed", comparison.gained),
        *_flips("B failed where A succeeded", comparison.lost),
        "Intervals: bootstrap of the differences, by scene. p: exact McNemar test on success.",
    ]
    lines += exam_notes(exam_named(comparison.task), [comparison.distance])
    if comparison.scenes < FEW_SCENES:
        lines.append("With so few scenes intervals are rather too narrow.")
    if comparison.metrics:
        lines.append(
            f"Of {len(comparison.metrics)} intervals, one in twenty leaves zero out by chance alone."
        )
    latencies = (("A", comparison.a_latency), ("B", comparison.b_latency))
    if any(latency is not None and not latency.is_of_a_script for _, latency in latencies):
        lines += [f"{letter}: {latency}" for letter, latency in latencies if latency is not None]
    return plain("\n".join([*lines, "", comparison.verdict]))


def _flips(title: str, flips: Sequence[Flip]) -> list[str]:
    if not flips:
        return []
    shown = flips[:MOST_FLIPS]
    width = max(len(flip.episode_id) for flip in shown)
    lines = [f"{title} ({len(flips)}):"]
    lines += [f"  {flip.episode_id:<{width}}  {flip.failure_reason}" for flip in shown]
    if len(flips) > MOST_FLIPS:
        lines.append(f"  and {len(flips) - MOST_FLIPS} more; --json lists all")
    return [*lines, ""]


def execution_table(gap: Gap) -> Table | None:
    """Return how exactly actions were done, A above B; None if that is not known of any."""
    runs = {"A": gap.a_execution, "B": gap.b_execution}
    actions = list(dict.fromkeys(action for run in runs.values() for action in run))
    if not actions:
        return None
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for heading in ("Action", "Error", ""):
        table.add_column(heading, no_wrap=True)
    for heading in ("Bias", "Median", "p95", "Worst", "Moves", "Bumped"):
        add_number_column(table, heading)
    for action in actions:
        for row in _rows(action, {letter: run[action] for letter, run in runs.items() if action in run}):
            table.add_row(*row)
        table.add_section()
    return table


def gap_notes(gap: Gap) -> str:
    """Return how to read the table, why it may lack something, and where the two ways part."""
    lines = []
    if gap.a_execution or gap.b_execution:
        lines += [
            "Errors of single actions, each from where the one before it ended.",
            "Bias: their mean, + too far or to the left. Median, p95, worst: of their size.",
            "Bumped: moves that ended in a collision, which are in no other number.",
        ]
    if gap.unmeasured:
        what = "Not in the errors" if lines else "No errors of actions are told"
        lines += [f"{what}: {reason}" for reason in gap.unmeasured]
    return plain("\n".join([*lines, "", *_partings(gap)]))


def _rows(action: str, runs: dict[str, ActionError]) -> list[list[str]]:
    """Return the rows of an action; what they share is said in the first of each kind."""
    found: list[list[str]] = []
    names = [name for name in ERRORS if any(name in run.errors for run in runs.values())]
    for name in names or [""]:
        label, digits = ERRORS.get(name, ("", 0))
        for letter, run in runs.items():
            numbers = _numbers(run.errors.get(name), digits)
            counts = [str(run.moves), str(run.collided)] if name == (names or [""])[0] else ["", ""]
            is_first = letter == next(iter(runs))
            found.append(["" if found else action, label if is_first else "", letter, *numbers, *counts])
    return found


def _numbers(spread: Spread | None, digits: int) -> list[str]:
    if spread is None:
        return ["", "", "", ""]
    bias = "" if spread.bias is None else number(spread.bias, digits, sign="+")
    return [bias, *(number(value, digits) for value in (spread.median, spread.p95, spread.worst))]


def _partings(gap: Gap) -> list[str]:
    """Return where the two ways through the same episodes part."""
    found = gap.divergences
    if not found:
        return ["Where the ways part is not known: no positions are recorded."]
    n = len(found)
    other = [each.other_action_step for each in found if each.other_action_step is not None]
    then_m = [each.apart_then_m for each in found if each.apart_then_m is not None]
    parted = [each.parted_step for each in found if each.parted_step is not None]
    final_m = [each.final_apart_m for each in found]
    farthest = max(found, key=lambda each: each.final_apart_m).episode_id
    rows = {
        "Same actions": f"{n - len(other)} of {n}{_since('others from step', other)}",
        "Apart by then": _lengths(then_m) if then_m else "",
        f"Over {_length(PARTED_M)} apart": f"{len(parted)} of {n}{_since('from step', parted)}",
        "Apart at the end": f"{_lengths(final_m)} in {farthest}",
        "Same success": f"{sum(each.same_success for each in found)} of {n}",
    }
    return ["Both ways through each episode:", *(f"  {k:<18} {text}" for k, text in rows.items() if text)]


def _lengths(lengths_m: Sequence[float]) -> str:
    return f"{_length(median(lengths_m))} (median), {_length(max(lengths_m))} (worst)"


def _since(words: str, steps: Sequence[int]) -> str:
    return f", {words} {median(steps):.0f} (median), {min(steps)} (earliest)" if steps else ""


def _length(length_m: float) -> str:
    return f"{length_m:.2f} m" if length_m >= 1 else f"{1000 * length_m:.0f} mm"


def probe_table(probe: Probe) -> Table:
    """Return one row per arm: success and the main score, and by how much they differ from plain."""
    exam = exam_named(probe.task)
    shown = [metric_named(exam, name) for name in dict.fromkeys(("success", probe.main_metric))]
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("Arm", no_wrap=True)
    for metric in shown:
        add_number_column(table, metric.heading)
        add_number_column(table, "change")
    add_number_column(table, "95 % interval")
    table.add_column("is", no_wrap=True)
    for name, arm in probe.arms.items():
        cells = [_arm_cells(metric, arm.metrics.get(metric.name)) for metric in shown]
        main = arm.metrics.get(probe.main_metric)
        reading = MARKS[main.change.reading] if main is not None and main.change is not None else ""
        means = [cell for mean, change, _ in cells for cell in (mean, change)]
        table.add_row(name.replace("-", " "), *means, cells[-1][2], reading)
    return table


def _arm_cells(metric: Metric, found: ArmMetric | None) -> tuple[str, str, str]:
    """Return the mean, its change from plain and the interval of that."""
    if found is None:
        return "-", "", ""
    digits = metric.digits + (not metric.is_rate)  # a difference is smaller than what differs
    mean = number(metric.scale * found.mean, digits)
    if found.change is None:
        return mean, "", ""
    change = found.change.difference
    low, high = (number(metric.scale * end, digits, sign="+") for end in (change.low, change.high))
    return mean, number(metric.scale * change.mean, digits, sign="+"), f"{low} to {high}"
