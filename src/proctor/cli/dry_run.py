"""`proctor run --dry-run`: tell what a run would do, how long it would take and how much disk it needs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from rich import box
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from proctor.cli.terminal import DONE, TOO_MANY_FAULTS, UNAVAILABLE, console, errors
from proctor.core.plain_text import plain

if TYPE_CHECKING:
    from pathlib import Path

    from proctor.runs.forecast import Forecast, Measurement, Range
    from proctor.runs.plan import RunConfig, RunPlan

NAME_WIDTH = 20


def dry_run(plans: Mapping[str, RunPlan], title: str, *, out: Path, max_fault_rate: float, join: bool) -> int:
    """Check the runs, measure a few episodes of each, and print what will happen; return the exit code."""
    from proctor.runs.forecast import forecast

    first = next(iter(plans.values()))
    forecasts, told = [], set[str]()
    for label, plan in plans.items():
        if not console.is_terminal:
            console.print(f"{label}: checking, then measuring a few episodes", markup=False)
        with console.status(Text(f"{plain(label)}: checking, then measuring a few episodes")):
            found = forecast(plan, join=join)
        console.say(*(f"note: {note}" for note in found.notes if note not in told))
        told.update(found.notes)
        forecasts.append(found)
    console.print(_table(forecasts, f"{title} on {first.config.job.env}: a dry run"))
    console.say(f"Episodes are done {_where(first.config, forecasts)}. {_recordings(first.config)}")
    console.say(*_measured_lines(forecasts))
    _tell_total(forecasts, first.out)
    console.say(f"Nothing was written to {out}. To begin, give the same command without --dry-run.")
    return _exit_code(forecasts, max_fault_rate)


def _table(forecasts: Sequence[Forecast], title: str) -> Table:
    from proctor.report.tables import add_number_column, shortened
    from proctor.runs.resources import duration_text

    table = Table(
        title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0)
    )
    table.add_column("Policy", no_wrap=True, min_width=8)
    for heading in ("To do", "Scenes", "Done", "An episode", "In all", "Disk"):
        add_number_column(table, heading)
    for each in forecasts:
        episode, total, disk = "-", "-", "-"
        if each.measured is not None and each.time_s is not None:
            low_s, middle_s, _ = each.measured.episode_s
            is_known = math.isfinite(middle_s)
            episode = duration_text(middle_s) if is_known else f"over {duration_text(low_s)}"
            total = range_text(each.time_s)
            disk = size_text(each.disk_bytes) if is_known else "?"
        name = escape(shortened(plain(each.label), NAME_WIDTH))
        table.add_row(name, str(each.left), str(each.scenes), str(each.done_before), episode, total, disk)
    return table


def _where(config: RunConfig, forecasts: Sequence[Forecast]) -> str:
    from proctor.exams.fault_words import counted

    workers = max((each.workers or 0 for each in forecasts), default=0)
    if not forecasts[0].is_local:
        many = counted(workers, "worker") if workers else "as many workers as there is room for"
        return f"by the executor {config.executor} with {many}"
    return f"here, in {workers} processes" if workers > 1 else "here, one after the other"


def _recordings(config: RunConfig) -> str:
    if config.recording is None:
        return "Nothing is recorded but traces."
    kinds = [
        "steps",
        *(["frames"] if config.recording.frames else []),
        *(["sensors"] if config.recording.sensors else []),
        *config.recording.recorders,
    ]
    return f"Recorded are {' and '.join(kinds)}."


def _measured_lines(forecasts: Iterable[Forecast]) -> Iterable[str]:
    """Yield what a reader must know to trust the numbers."""
    for each in forecasts:
        if not each.left:
            yield f"{each.label}: all {each.done_before} episodes were done before; nothing to do"
        elif each.measured is None:
            yield f"{each.label}: nothing was measured: {each.unmeasured_because}"
        else:
            yield f"{each.label}: {_how_measured(each, each.measured)}"


def _how_measured(each: Forecast, measured: Measurement) -> str:
    from proctor.runs.forecast import STAND_IN

    done, asked = len(measured.results), measured.asked
    many = f"{done} episode{'s' * (done != 1)}" if done == asked else f"{done} of {asked} episodes in time"
    text = f"measured with {many}"
    if not each.is_local:
        by = f"divided by {each.workers} workers" if each.workers else "as one worker would do it"
        text += f" here in one process, {by}"
    if measured.policy == STAND_IN and each.label != STAND_IN:
        text += f" of the policy {STAND_IN}, as each request to the model costs: its own time comes on top"
    return text


def _tell_total(forecasts: Sequence[Forecast], folder: Path) -> None:
    """Print time and disk of all runs together, and a warning if the disk has no room."""
    from proctor.runs.forecast import Range, free_bytes

    times_s = [each.time_s for each in forecasts if each.time_s is not None]
    if not times_s:
        return
    total_s = Range(*(sum(parts) for parts in zip(*times_s, strict=True)))
    needed, free = sum(each.disk_bytes for each in forecasts), free_bytes(folder)
    if len(times_s) > 1:
        console.say(f"In all: {range_text(total_s)}.")
    console.say(f"Disk: about {size_text(needed)} of {size_text(free)} that are free.")
    if needed > free:
        errors.say(
            f"warning: the disk of {folder} is too small: about {size_text(needed)} are needed, and "
            f"{size_text(free)} are free; give --out another disk, or record less"
        )


def _exit_code(forecasts: Sequence[Forecast], max_fault_rate: float) -> int:
    """Tell the faults of the episodes that were measured; return how a run of only these would exit."""
    from proctor.exams.fault_words import fault_line

    code = DONE
    for each in forecasts:
        if each.measured is None:
            continue
        if each.measured.unavailable:
            errors.say(f"stopped: {each.label}: the agent is unavailable: {each.measured.unavailable}")
            code = UNAVAILABLE
        failed = [result for result in each.measured.results if result.error is not None]
        first = {result.error.kind: result.error for result in reversed(failed) if result.error}
        for fault in first.values():
            side = fault.side if fault.side == "unavailable" else f"{fault.side} fault"
            errors.say(f"warning: {each.label}: {side} {fault.kind}: {fault_line(fault)}")
        unscored = sum(not result.is_scored for result in failed)
        if code == DONE and unscored > max_fault_rate * max(1, len(each.measured.results)):
            code = TOO_MANY_FAULTS
    return code


def range_text(seconds: Range) -> str:
    """Return a range of time in one unit, rounded outwards: `40 to 70 s`, `3 to 8 min`, `1.5 to 4 h`."""
    low_s, middle_s, high_s = seconds
    unit_s, unit, step = 3600, "h", 0.5
    largest_s = high_s if math.isfinite(high_s) else low_s
    if largest_s < 180 * 60:
        unit_s, unit, step = (1, "s", 1.0) if largest_s < 180 else (60, "min", 1.0)
    low = math.floor(low_s / unit_s / step) * step
    if not math.isfinite(middle_s):
        return f"over {max(low, step):g} {unit}"
    high = math.ceil(high_s / unit_s / step) * step
    return f"{low:g} to {high:g} {unit}" if low > 0 else f"up to {high:g} {unit}"


def size_text(size_bytes: float) -> str:
    """Return a size in few digits: `950 kB`, `1.2 MB`, `62 GB`."""
    for size, unit in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB")):
        if size_bytes >= 0.995 * size:
            return f"{size_bytes / size:.{int(size_bytes < 9.95 * size)}f} {unit}"
    return f"{math.ceil(size_bytes / 1e3)} kB"
