"""A probe for the terminal, 80 columns wide."""

from __future__ import annotations

from rich import box
from rich.table import Table

from proctor.exams.exam import Metric
from proctor.exams.names import exam_named
from proctor.exams.step_metrics import metric_named
from proctor.report.comparison_table import MARKS
from proctor.report.tables import add_number_column, number
from proctor.runs.probe import ArmMetric, Probe


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
        cells = [_cells(metric, arm.metrics.get(metric.name)) for metric in shown]
        main = arm.metrics.get(probe.main_metric)
        reading = MARKS[main.change.reading] if main is not None and main.change is not None else ""
        means = [cell for mean, change, _ in cells for cell in (mean, change)]
        table.add_row(name.replace("-", " "), *means, cells[-1][2], reading)
    return table


def _cells(metric: Metric, found: ArmMetric | None) -> tuple[str, str, str]:
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
