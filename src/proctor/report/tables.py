"""Tables for the terminal, 80 columns wide."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from rich import box
from rich.markup import escape
from rich.table import Table

from proctor.core.addresses import is_address, short_address
from proctor.core.plain_text import plain
from proctor.exams.distance_labels import distance_label
from proctor.exams.fault_words import fault_line, fault_words, loss_text
from proctor.exams.results import Fault, Interval, Results, Summary
from proctor.report.fitting import WIDTH, add_number_column, fit_names, name_notes, number, table_width
from proctor.runs.latency import latency_of

STAR = "*"
PRIVILEGED_NOTE = f"{STAR} knows the goal and its own position: an upper bound, no contestant."
COLUMNS = (
    ("SR %", "success", 100.0, 0),
    ("0.2 m", "success_at_0.2m", 100.0, 0),
    ("SPL", "spl", 1.0, 2),
    ("nDTW", "ndtw", 1.0, 2),
    ("OSR %", "oracle_success", 100.0, 0),
    ("NE m", "navigation_error", 1.0, 1),
    ("Bumps", "collisions", 1.0, 1),
)


PICK_PLACE_COLUMNS = (
    ("SR %", "success", 100.0, 0),
    ("Any %", "success_any_step", 100.0, 0),
    ("Done %", "completion_rate", 100.0, 0),
    ("Simil", "trajectory_similarity", 1.0, 2),
    ("Drops", "drops", 1.0, 1),
    ("Steps", "steps", 1.0, 0),
)
STAGES = ("grasped", "lifted", "placed")
STAGES_HEADING, BUMPS_HEADING = "G/L/P %", "Bumps"
"""Columns without intervals: three rates in one, and a mean."""
TASK_NOTES = {
    "vln": ("SR: stopped within the episode's threshold; 0.2 m: stopped within 0.2 m.",),
    "pick_and_place": (
        "SR: at the end grasped, lifted and, where there is a target, placed, let go and at rest; "
        "Any: grasped, lifted and at the target in any step.",
        "Done: how far through reach, grasp, lift and place. Simil: joint path and reference, 1 is equal. "
        "G/L/P: grasped, lifted, placed. Bumps: steps in which the robot touched what it should not.",
    ),
}


def score_table(runs: Mapping[str, Results], *, title: str, privileged: Collection[str] = ()) -> Table:
    """Return one row per run: means with their 95 % intervals below them; privileged runs get a star."""
    shown, padding = _layout(runs, privileged)
    return _score_table(runs, shown, title, privileged, padding=padding)


def mean_table(rows: Mapping[str, MeanRow], *, task: str) -> tuple[Table, list[str]]:
    """Return a table with one row of means per run or file, and the full names of those it shortens."""
    columns = PICK_PLACE_COLUMNS if task == "pick_and_place" else COLUMNS

    def table(shown: Mapping[str, str]) -> Table:
        made = _empty_table("", [heading for heading, *_ in columns], padding=1)
        for name, row in rows.items():
            cells = [_mean_cell(row.means.get(key), scale, digits) for _, key, scale, digits in columns]
            star = STAR * row.is_privileged
            made.add_row(escape(plain(shown[name])) + star, "?" if row.n is None else str(row.n), *cells)
        return made

    shown = fit_names(table, {name: name for name in rows})
    return table(shown), name_notes(rows, shown)


class MeanRow(NamedTuple):
    """A row of a table of means."""

    means: Mapping[str, float]
    n: int | None
    """Of episodes; None if nobody knows."""
    is_privileged: bool = False


def _layout(runs: Mapping[str, Results], privileged: Collection[str]) -> tuple[dict[str, str], int]:
    """Return how the table writes the names of runs, and how many blanks are right of each column."""
    names = {name: short_address(name) if is_address(name) else name for name in runs}
    if table_width(_score_table(runs, names, "", privileged)) <= WIDTH:
        return names, 1
    return fit_names(lambda shown: _score_table(runs, shown, "", privileged, padding=0), names), 0


def _score_table(
    runs: Mapping[str, Results],
    shown: Mapping[str, str],
    title: str,
    privileged: Collection[str],
    *,
    padding: int = 1,
) -> Table:
    picks = any(results.task == "pick_and_place" for results in runs.values())
    columns = PICK_PLACE_COLUMNS if picks else COLUMNS
    more = (STAGES_HEADING, BUMPS_HEADING) if picks else ()
    padding = 0 if picks else padding  # there is more to show of a robot that picks
    table = _empty_table(title, [*(column[0] for column in columns), *more], padding=padding)
    for name, results in runs.items():
        metrics = results.summary.metrics
        cells = [_cell(metrics.get(metric), scale, digits) for _, metric, scale, digits in columns]
        if picks:
            cells += [_stages(metrics), _mean(results.summary.avg_collision_count)]
        scored = results.total_episodes - sum(results.summary.unscored.values())
        table.add_row(escape(plain(shown[name])) + STAR * (name in privileged), str(scored), *cells)
    return table


def _empty_table(title: str, headings: Sequence[str], *, padding: int) -> Table:
    table = Table(
        title=title or None,
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        padding=(0, padding, 0, 0),
    )
    table.add_column("Policy", no_wrap=True, min_width=8)
    table.add_column("N", justify="right", no_wrap=True, min_width=2)
    for heading in headings:
        add_number_column(table, heading)
    return table


def score_notes(runs: Mapping[str, Results], *, privileged: Collection[str] = ()) -> str:
    """Return what a reader must know to read the table: why episodes failed, times, definitions."""
    lines = name_notes(runs, _layout(runs, privileged)[0])
    for name, results in runs.items():
        reasons = Counter(e.failure_reason for e in results.episodes if e.failure_reason and e.is_scored)
        failures = ", ".join(f"{count} {reason}" for reason, count in sorted(reasons.items()))
        if failures:
            lines.append(f"{name} failed: {failures}")
        faults = {e.error.kind: (e.episode_id, e.error) for e in reversed(results.episodes) if e.error}
        lines += [_fault_note(*first) for first in faults.values()]
        latency = latency_of(results.episodes)
        if latency is not None and not latency.is_of_a_script:
            lines.append(f"{name}: {latency}")
        lost = loss_text(results.summary.unscored, results.total_episodes)
        bounds = results.summary.success_rate_bounds
        if lost:
            lines.append(f"{name}: {lost}; SR is between {bounds.low:.0%} and {bounds.high:.0%}")
    kinds = sorted({_definitions(run.summary) for run in runs.values()})
    lines.append(f"Definitions: {'; '.join(kinds)}. Below each mean: its 95 % interval. N: episodes scored.")
    navigation = [run.summary.distance for run in runs.values() if run.task == "vln"]
    if navigation:
        lines.append(navigation_error_note(navigation))
    for task in sorted({run.task for run in runs.values()}):
        lines += TASK_NOTES[task]
    if privileged:
        lines.append(PRIVILEGED_NOTE)
    return plain("\n".join(lines))


def _definitions(summary: Summary) -> str:
    """Return whose definitions a run's metrics follow, and whose shortest paths SPL compares with."""
    text = summary.definition
    return f"{text}, SPL by the path distances that the dataset stores" if summary.shortest_path else text


def navigation_error_note(kinds: Iterable[str]) -> str:
    """Return by which distance navigation errors are measured.

    Args:
        kinds: What the results call it.
    """
    labels = " or ".join(dict.fromkeys(map(distance_label, kinds)))
    return f"NE: {labels} to the goal at the end; SR and OSR go by it, too."


def _fault_note(episode_id: str, fault: Fault) -> str:
    side = fault.side if fault.side == "unavailable" else f"{fault.side} fault"
    what = f"{side} {fault.kind} ({fault_words(fault.kind)})"
    return f"  {what}, first in {episode_id}: {fault_line(fault)}"


def _mean(value: float | None) -> str:
    if value is None:
        return "-"
    return f"[bold]{number(value, 0 if value >= 10 else 1)}[/bold]"


def _mean_cell(mean: float | None, scale: float, digits: int) -> str:
    return "-" if mean is None else number(scale * mean, digits)


def _stages(metrics: Mapping[str, Interval]) -> str:
    """Return three rates in one cell."""
    shown = [f"{100 * metrics[stage].mean:.0f}" if stage in metrics else "-" for stage in STAGES]
    return f"[bold]{'/'.join(shown)}[/bold]"


def _cell(interval: Interval | None, scale: float, digits: int) -> str:
    if interval is None:
        return "-"
    if digits == 1 and scale * interval.high >= 10:
        digits = 0  # else it is too wide for its column
    mean, low, high = (number(scale * x, digits) for x in (interval.mean, interval.low, interval.high))
    return f"[bold]{mean}[/bold]\n[dim]{low}-{high}[/dim]"
