"""Tables for the terminal, 80 columns wide: numbers are never broken over lines, long names are shortened."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from rich import box
from rich.cells import cell_len, chop_cells
from rich.console import Console
from rich.markup import escape
from rich.measure import Measurement
from rich.table import Table

from proctor.core.addresses import is_address, short_address
from proctor.core.plain_text import plain
from proctor.core.types import Usage
from proctor.exams.exam import Metric
from proctor.exams.fault_words import fault_line, fault_words, loss_text
from proctor.exams.names import AnyExam
from proctor.exams.results import Fault, Interval, Results, Summary, distance_label
from proctor.exams.step_metrics import metrics_of
from proctor.runs.accounting import dollars, usage_text
from proctor.runs.summary import decision_latency_of, latency_of, seconds_text

STAR = "*"
PRIVILEGED_NOTE = f"{STAR} knows the goal and its own position: an upper bound, no contestant."
WIDTH = 80
LARGE = 1e5  # from here on numbers are written with an exponent


def score_table(
    exam: type[AnyExam], runs: Mapping[str, Results], *, title: str, privileged: Collection[str] = ()
) -> Table:
    """Return one row per run: means with their 95 % intervals below them; privileged runs get a star."""
    shown, padding = _layout(exam, runs, privileged)
    return _score_table(exam, runs, shown, title, privileged, padding=padding)


def mean_table(rows: Mapping[str, MeanRow], *, exam: type[AnyExam]) -> tuple[Table, list[str]]:
    """Return a table with one row of means per run or file, and the full names of those it shortens."""
    metrics = _metrics_of(exam)

    def table(shown: Mapping[str, str]) -> Table:
        made = empty_table("", [metric.heading for metric in metrics], padding=1)
        for name, row in rows.items():
            cells = [_mean_cell(row.means.get(metric.name), metric) for metric in metrics]
            star = STAR * row.is_privileged
            made.add_row(escape(plain(shown[name])) + star, "?" if row.n is None else str(row.n), *cells)
        return made

    shown = fit_names(table, {name: name for name in rows})
    return table(shown), name_notes(rows, shown)


class MeanRow(NamedTuple):
    """A row of a table of means."""

    means: Mapping[str, float]
    n: int | None  # of episodes; None if nobody knows
    is_privileged: bool = False


def _layout(
    exam: type[AnyExam], runs: Mapping[str, Results], privileged: Collection[str]
) -> tuple[dict[str, str], int]:
    """Return how the table writes the names of runs, and how many blanks are right of each column."""
    names = {name: short_address(name) if is_address(name) else name for name in runs}
    if table_width(_score_table(exam, runs, names, "", privileged)) <= WIDTH:
        return names, 1
    return fit_names(lambda shown: _score_table(exam, runs, shown, "", privileged, padding=0), names), 0


def _score_table(
    exam: type[AnyExam],
    runs: Mapping[str, Results],
    shown: Mapping[str, str],
    title: str,
    privileged: Collection[str],
    *,
    padding: int = 1,
) -> Table:
    metrics = _metrics_of(exam)
    padding = 0 if exam.more_columns else padding
    headings = [metric.heading for metric in metrics] + [column.heading for column in exam.more_columns]
    table = empty_table(title, headings, padding=padding)
    for name, results in runs.items():
        found = results.summary.metrics
        cells = [_cell(found.get(metric.name), metric) for metric in metrics]
        cells += [f"[bold]{escape(column.cell(results.summary))}[/bold]" for column in exam.more_columns]
        scored = results.total_episodes - sum(results.summary.unscored.values())
        table.add_row(escape(plain(shown[name])) + STAR * (name in privileged), str(scored), *cells)
    return table


def empty_table(title: str, headings: Sequence[str], *, padding: int = 1) -> Table:
    """Return a table with columns for a name, a number of episodes and these numbers."""
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


def score_notes(exam: type[AnyExam], runs: Mapping[str, Results], *, privileged: Collection[str] = ()) -> str:
    """Return what a reader must know to read the table: why episodes failed, times, definitions."""
    lines = name_notes(runs, _layout(exam, runs, privileged)[0])
    for name, results in runs.items():
        reasons = Counter(e.failure_reason for e in results.episodes if e.failure_reason and e.is_scored)
        failures = ", ".join(f"{count} {reason}" for reason, count in sorted(reasons.items()))
        if failures:
            lines.append(f"{name} failed: {failures}")
        faults = {e.error.kind: (e.episode_id, e.error) for e in reversed(results.episodes) if e.error}
        lines += [_fault_note(*first) for first in faults.values()]
        latency, used = latency_of(results.episodes), usage_lines(results)
        if latency is not None and not latency.is_of_a_script and not used:
            lines.append(f"{name}: {latency}")
        lines += [f"{name}: {line}" for line in used]
        lost = loss_text(results.summary.unscored, results.total_episodes)
        bounds = results.summary.success_rate_bounds
        if lost:
            lines.append(f"{name}: {lost}; SR is between {bounds.low:.0%} and {bounds.high:.0%}")
    kinds = sorted({_definitions(run.summary) for run in runs.values()})
    lines.append(f"Definitions: {'; '.join(kinds)}. Below each mean: its 95 % interval. N: episodes scored.")
    lines += exam_notes(exam, [run.summary.distance for run in runs.values()])
    if privileged:
        lines.append(PRIVILEGED_NOTE)
    return plain("\n".join(lines))


def usage_lines(results: Results) -> list[str]:
    """Return what the agent used: in the episodes that are scored, and in all other attempts."""
    summary, lines = results.summary, []
    if summary.usage:
        scored = results.total_episodes - sum(summary.unscored.values())
        cost_usd = summary.usage.cost_usd
        each = "" if cost_usd is None or scored < 2 else f" ({dollars(cost_usd / scored)} per episode)"
        pace = decision_latency_of(results.episodes)
        took = (
            ""
            if pace is None
            else f", {seconds_text(pace.p50_ms)} per decision (p95 {seconds_text(pace.p95_ms)})"
        )
        lines.append(f"{usage_text(summary.usage)}{each}{took}")
    if summary.usage_unscored and summary.usage_unscored != Usage():
        lines.append(f"attempts that do not count used {usage_text(summary.usage_unscored)} more")
    return lines


def _definitions(summary: Summary) -> str:
    """Return whose definitions a run's metrics follow, and whose shortest paths SPL compares with."""
    text = summary.definition
    return f"{text}, SPL by the path distances that the dataset stores" if summary.shortest_path else text


def exam_notes(exam: type[AnyExam], kinds: Iterable[str]) -> list[str]:
    """Return what an exam says below a table; `kinds` are the distances that its results name."""
    labels = " or ".join(dict.fromkeys(map(distance_label, kinds)))
    return [note.replace("{distance}", labels) for note in exam.table_notes]


def _metrics_of(exam: type[AnyExam]) -> list[Metric]:
    return [metric for metric in metrics_of(exam) if metric.in_table]


def _fault_note(episode_id: str, fault: Fault) -> str:
    side = fault.side if fault.side == "unavailable" else f"{fault.side} fault"
    what = f"{side} {fault.kind} ({fault_words(fault.kind)})"
    return f"  {what}, first in {episode_id}: {fault_line(fault)}"


def _mean_cell(mean: float | None, metric: Metric) -> str:
    return "-" if mean is None else number(metric.scale * mean, metric.digits)


def _cell(interval: Interval | None, metric: Metric) -> str:
    if interval is None:
        return "-"
    scale, digits = metric.scale, metric.digits
    if digits == 1 and scale * interval.high >= 10:
        digits = 0  # else it is too wide for its column
    mean, low, high = (number(scale * x, digits) for x in (interval.mean, interval.low, interval.high))
    return f"[bold]{mean}[/bold]\n[dim]{low}-{high}[/dim]"


def fit_names(make_table: Callable[[Mapping[str, str]], Table], names: Mapping[str, str]) -> dict[str, str]:
    """Return how to write the names in the first column so that the table is at most WIDTH wide."""
    too_wide = table_width(make_table(names)) - WIDTH
    if too_wide <= 0:
        return dict(names)
    longest = max(map(cell_len, names.values()), default=0)
    width = max(longest - too_wide, 8)
    shown: dict[str, str] = {}
    for name, text in names.items():
        short, number = shortened(text, width), 2
        while short in shown.values():
            short, number = f"{shortened(text, width - len(str(number)) - 1)}#{number}", number + 1
        shown[name] = short
    return shown


def table_width(table: Table) -> int:
    """Return how many columns a table takes if nothing limits it."""
    console = Console(width=10 * WIDTH)
    return Measurement.get(console, console.options, table).maximum


def shortened(text: str, width: int) -> str:
    """Return a text with its middle left out, at most so many columns wide."""
    if cell_len(text) <= width:
        return text
    tail = (width - 1) // 2
    head = chop_cells(text, width - 1 - tail)[0]
    end = chop_cells(text[::-1], tail)[0][::-1] if tail else ""
    return f"{head}…{end}"


def name_notes(names: Iterable[str], shown: Mapping[str, str]) -> list[str]:
    """Return the full names of those that a table shortens."""
    return [f"{shown[name]}: {name}" for name in names if "…" in shown[name] and "…" not in name]


def add_number_column(table: Table, heading: str) -> None:
    """Add a column that is never broken over lines."""
    table.add_column(heading, justify="right", no_wrap=True)


def number(value: float, digits: int, *, sign: str = "") -> str:
    """Return a number in so many digits, or with an exponent if it is large."""
    value = round(value, digits) + 0.0  # no negative zero
    return f"{value:{sign}.{digits}f}" if abs(value) < LARGE else f"{value:{sign}.0e}"
