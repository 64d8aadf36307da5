"""Tables for the terminal."""

from __future__ import annotations

from collections.abc import Mapping

from rich.table import Table

from proctor.core.results import Interval, Results

COLUMNS = (
    ("SR %", "success", 100.0, 0),
    ("SPL", "spl", 1.0, 2),
    ("nDTW", "ndtw", 1.0, 2),
    ("Oracle SR %", "oracle_success", 100.0, 0),
    ("Error m", "navigation_error", 1.0, 2),
    ("Collisions", "collisions", 1.0, 1),
    ("Steps", "steps", 1.0, 0),
)


def score_table(runs: Mapping[str, Results], *, title: str) -> Table:
    """Return one row per run: means with their 95 % intervals, and what went wrong."""
    table = Table(title=title, title_justify="left", caption=_caption(runs), caption_justify="left")
    table.add_column("Policy")
    table.add_column("Episodes", justify="right")
    for heading, *_ in COLUMNS:
        table.add_column(heading, justify="right")
    table.add_column("Failures")
    for name, results in runs.items():
        cells = [
            _cell(results.summary.metrics.get(metric), scale, digits) for _, metric, scale, digits in COLUMNS
        ]
        table.add_row(name, str(results.total_episodes), *cells, _failures(results))
    return table


def _cell(interval: Interval | None, scale: float, digits: int) -> str:
    if interval is None:
        return "-"
    mean, low, high = (f"{scale * x:.{digits}f}" for x in (interval.mean, interval.low, interval.high))
    return f"[bold]{mean}[/bold]\n[dim]{low}..{high}[/dim]"


def _failures(results: Results) -> str:
    reasons = results.summary.failure_reasons
    return "\n".join(f"{count} {reason}" for reason, count in reasons.items()) or "none"


def _caption(runs: Mapping[str, Results]) -> str:
    kinds = {(results.summary.definition, results.summary.distance) for results in runs.values()}
    definitions = ", ".join(f"{definition}, {distance} distance" for definition, distance in sorted(kinds))
    faults = sum(results.summary.error_counts["evaluator"] for results in runs.values())
    lost = f" {faults} evaluator faults are left out." if faults else ""
    return f"Definitions: {definitions}. Small numbers: 95 % intervals.{lost}"
