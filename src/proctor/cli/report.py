"""`proctor report`: what the agents did, and why they failed, as one HTML file."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from proctor.cli.options import add_command, add_option
from proctor.cli.terminal import DONE, console
from proctor.core.errors import UnknownName, UserError

if TYPE_CHECKING:
    from proctor.report.run_record import OnProgress, RunRecord

REPORT_HELP = """\
show what agents did and why they failed, as one HTML file
Write one HTML file about one or more runs. It works offline and can be sent to others.

examples:
  proctor report runs/first                       all runs in the folder, side by side
  proctor report runs/mine --baseline runs/first  mine, with baselines beside it
  proctor report runs/mine --frames all           what the robot saw, in every episode
  proctor report runs/mine --png house_64959_0    a picture of one episode: its path or, of
                                                  pick-and-place, a film strip and the hand's path
"""


def add_report(commands: Any) -> None:
    """Add the command."""
    report = add_command(commands, "report", _report, REPORT_HELP)
    add_option(report, "folder DIR", Path, "a run's folder, or a folder of such folders")
    add_option(report, "--baseline DIR", Path, "further runs to put beside it", nargs="+", default=[])
    add_option(report, "--out FILE", Path, "the file to write (default: DIR/report.html)")
    text = "for how many episodes to show what the robot saw (default: up to 24, failures first)"
    add_option(report, "--frames N|all|none", str, text)
    add_option(report, "--png EPISODE", str, "instead, draw one episode as a picture")


def _report(arguments: argparse.Namespace) -> int:
    from pkgutil import resolve_name

    from proctor.report.html import write_report
    from proctor.report.latency_curves import latency_curves, latency_table
    from proctor.report.run_record import exam_of, read_runs
    from proctor.runs.folder import find_runs

    frames = _frames(arguments.frames)
    folder: Path = arguments.folder
    runs, empty = read_runs(find_runs([folder, *arguments.baseline]))
    if arguments.png is not None:
        console.say(*empty)
        return _draw(runs, arguments.png, arguments.out)
    console.say(*empty, *(f"{run.name}: {notice}" for run in runs for notice in run.notices))
    curves = latency_curves(runs)
    if curves:
        console.print(latency_table(curves))
    out = arguments.out or folder / "report.html"
    steps = resolve_name(exam_of(runs).page).replayed_steps if arguments.frames is None else None
    with _progress() as on_progress:
        write_report(runs, out, frames=frames, replayed_steps=steps, notices=empty, on_progress=on_progress)
    size_mb = out.stat().st_size / 1e6
    console.say(f"Report: {out} ({size_mb:.1f} MB)")
    return DONE


@contextmanager
def _progress() -> Iterator[OnProgress]:
    """Show what is being done: a bar on a terminal, else a line for each tenth of the work."""
    if not console.is_terminal:
        yield _print_progress
        return
    columns = TextColumn("{task.description:<16}"), BarColumn(), MofNCompleteColumn()
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("reading", total=None)
        yield lambda what, done, total: bar.update(task, description=what, completed=done, total=total)


def _print_progress(what: str, done: int, total: int) -> None:
    if done == total or done % max(1, total // 10) == 0:
        console.print(f"{what}: {done} of {total} episodes", markup=False)


def _frames(text: str | None) -> int | None:
    """Return for how many episodes to show pictures; None for all."""
    if text is None:
        return 24
    if text in ("none", "all"):
        return 0 if text == "none" else None
    if not text.isdecimal():
        raise UserError(f"--frames: expected a number, all or none, found '{text}'")
    return int(text)


def _draw(runs: list[RunRecord], episode_id: str, out: Path | None) -> int:
    """Write the picture of one episode of the first run that has it."""
    done = {result.episode_id: run for run in reversed(runs) for result in run.results.episodes}
    if episode_id not in done:
        raise UnknownName("episode", episode_id, done)
    run = done[episode_id]
    console.say(*(f"{run.name}: {notice}" for notice in run.notices))
    file = out or Path(f"{''.join(c if c.isalnum() or c in '-_.' else '_' for c in episode_id)}.png")
    try:
        _draw_episode(run, episode_id, file)
    except OSError as error:
        raise UserError(f"cannot write {file}: {error.strerror}") from error
    console.say(f"Picture: {file}")
    return DONE


def _draw_episode(run: RunRecord, episode_id: str, file: Path) -> None:
    from proctor.report.key_frames import collect
    from proctor.report.page_data import judge, page_of

    judged = judge([run])
    page = page_of([run], judged)
    (episode,) = (each for each in judged if each.result.episode_id == episode_id)
    page.draw(
        episode,
        file,
        lambda width_px: collect([run], [episode], page, width_px=width_px)[episode.run, episode_id],
    )
