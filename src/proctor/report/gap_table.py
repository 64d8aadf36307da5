"""A gap between backends for the terminal, 80 columns wide."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from rich import box
from rich.table import Table

from proctor.core.plain_text import plain
from proctor.exams.vln.divergence import PARTED_M
from proctor.exams.vln.execution_error import ActionError, Spread
from proctor.report.fitting import add_number_column, number
from proctor.report.gap import Gap

ERRORS = {
    "along_mm": ("along mm", 1),
    "across_mm": ("across mm", 1),
    "turn_deg": ("turn °", 2),
    "drift_mm": ("drift mm", 1),
    "heading_deg": ("heading °", 2),
}
"""What errors are called in the table, and how many digits tell something."""


def gap_heading(gap: Gap) -> str:
    """Return what was compared."""
    return plain(f"One agent on two backends: A on {gap.a_backend}, B on {gap.b_backend}")


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
