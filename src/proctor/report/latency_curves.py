"""Success against thinking time: runs of one agent that differ only in what its thinking was charged."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET
from rich.markup import escape
from rich.table import Table

from proctor.core.plain_text import plain
from proctor.exams.results import Interval
from proctor.report.run_record import RunRecord
from proctor.report.tables import empty_table
from proctor.runs.latency import HOLD, STOP, ThinkingCost, charged_cost


class LatencyPoint(NamedTuple):
    """One run of a curve."""

    seconds: float
    """Charged for an action; the mean, where it was measured."""
    success: Interval
    run: int
    """Its place among the runs of the report."""


class LatencyCurve(NamedTuple):
    """How the success of one agent depends on its thinking time."""

    name: str
    while_thinking: str
    """What the robot did meanwhile: `hold` or `stop`."""
    points: list[LatencyPoint]


def latency_curves(runs: Sequence[RunRecord]) -> list[LatencyCurve]:
    """Return a curve for each agent and each way to spend the time that has at least two latencies."""
    groups: defaultdict[bytes, list[tuple[ThinkingCost | None, LatencyPoint]]] = defaultdict(list)
    names: dict[bytes, str] = {}
    for index, run in enumerate(runs):
        success = run.results.summary.metrics.get("success")
        if success is not None:
            key = _all_but_latency(run.identity)
            names.setdefault(key, run.folder.agent_name)
            point = LatencyPoint(_seconds_per_action(run), success, index)
            groups[key].append((charged_cost(run.identity), point))
    curves = []
    for key, group in groups.items():
        for keeps_command in (True, False):
            # A run without thinking time belongs to both.
            points = [point for cost, point in group if cost is None or cost.keeps_command is keeps_command]
            if len({point.seconds for point in points}) > 1:
                points.sort(key=lambda point: (point.seconds, point.run))
                curves.append(LatencyCurve(names[key], HOLD if keeps_command else STOP, points))
    return curves


def latency_table(curves: Sequence[LatencyCurve]) -> Table:
    """Return the curves as a table for the terminal."""
    table = empty_table("Success against thinking time", ["s per action", "SR %", "95 %"])
    for curve in curves:
        for point in curve.points:
            mean, low, high = (100 * x for x in (point.success.mean, point.success.low, point.success.high))
            cells = (f"{point.seconds:g}", f"{mean:.0f}", f"{low:.0f}-{high:.0f}")
            table.add_row(
                escape(plain(f"{curve.name}, {curve.while_thinking}")), str(point.success.n), *cells
            )
    return table


def _all_but_latency(identity: dict[str, Any]) -> bytes:
    conditions = dict(identity.get("conditions") or {})
    for key in ("charge_latency", "while_thinking"):
        conditions.pop(key, None)
    kept = {**identity, "conditions": conditions, "name": ""}
    return msgspec.json.encode(kept, order="deterministic")


def _seconds_per_action(run: RunRecord) -> float:
    charged = [
        seconds
        for result in run.results.episodes
        if result.thinking is not UNSET
        for seconds in result.thinking.charged_s
    ]
    return round(sum(charged) / len(charged), 3) if charged else 0.0
