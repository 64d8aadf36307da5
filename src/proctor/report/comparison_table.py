"""A comparison for the terminal, 80 columns wide."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich import box
from rich.markup import escape
from rich.table import Table

from proctor.core.plain_text import plain
from proctor.exams.distance_labels import distance_label
from proctor.report.fitting import add_number_column, fit_names, number
from proctor.report.gap_table import gap_heading
from proctor.runs.compare import Comparison, Flip

ROWS = {
    "success": ("SR %", 100.0, 0),
    "success_at_0.2m": ("SR at 0.2 m %", 100.0, 0),
    "oracle_success": ("OSR %", 100.0, 0),
    "spl": ("SPL", 1.0, 3),
    "ndtw": ("nDTW", 1.0, 3),
    "sdtw": ("SDTW", 1.0, 3),
    "cls": ("CLS", 1.0, 3),
    "navigation_error": ("NE m", 1.0, 2),
    "path_length": ("Path m", 1.0, 2),
    "success_any_step": ("SR in any step %", 100.0, 0),
    "completion_rate": ("Completion", 1.0, 3),
    "reached": ("Reached %", 100.0, 0),
    "grasped": ("Grasped %", 100.0, 0),
    "lifted": ("Lifted %", 100.0, 0),
    "placed": ("Placed %", 100.0, 0),
    "trajectory_similarity": ("Similarity", 1.0, 3),
    "ee_similarity": ("Hand similarity", 1.0, 3),
    "final_distance_m": ("Final distance m", 1.0, 3),
    "time_to_success_s": ("Time to success s", 1.0, 1),
    "drops": ("Drops", 1.0, 2),
    "table_collisions": ("Bumps: table", 1.0, 1),
    "object_collisions": ("Bumps: objects", 1.0, 1),
    "self_collisions": ("Bumps: itself", 1.0, 1),
    "clamped_commands": ("Clamped steps", 1.0, 1),
    "object_displacement_m": ("Object moved m", 1.0, 3),
    "hand_path_m": ("Hand path m", 1.0, 2),
    "steps": ("Steps", 1.0, 1),
    "collisions": ("Bumps", 1.0, 1),
    "collision_rate": ("Bumps per step", 1.0, 3),
}
"""What metrics are called in tables, by what they are multiplied, and how many digits tell something."""
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


def comparison_table(comparison: Comparison) -> Table:
    """Return one row per metric: both means, their difference with its 95 % interval, what that says."""
    labels = {name: ROWS.get(name, (name,))[0] for name in comparison.metrics}
    return _table(comparison, fit_names(lambda shown: _table(comparison, shown), labels))


def _table(comparison: Comparison, shown: Mapping[str, str]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("Metric", no_wrap=True)
    for heading in ("A", "B", "B - A", "95 % interval"):
        add_number_column(table, heading)
    table.add_column("B is", min_width=8, no_wrap=True)
    for name in sorted(comparison.metrics, key=lambda name: [*ROWS, name].index(name)):
        metric = comparison.metrics[name]
        _, scale, digits = ROWS.get(name, (name, 1.0, 3))
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
    lines = [gap_heading(comparison.gap)] if comparison.gap else []
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
    if "navigation_error" in comparison.metrics:
        lines.append(f"NE: {distance_label(comparison.distance)} to the goal at the end.")
    if "final_distance_m" in comparison.metrics:
        lines.append("Final distance: straight line from the object to its target.")
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
