"""The report: one HTML file that needs nothing else."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import msgspec

from proctor.core.documents import write_atomically
from proctor.core.errors import UserError
from proctor.exams.page import Page
from proctor.report.conversations import collect_conversations
from proctor.report.key_frames import choose, collect
from proctor.report.page_data import judge, page_data, page_of
from proctor.report.run_record import OnProgress, RunRecord

FIRST = ("dom.js", "strip.js", "marks.js", "exam.js")
LAST = (
    *("model.js", "charts.js", "overview.js", "table.js"),
    *("map.js", "timeline.js", "conversation.js", "episode.js", "app.js"),
)
"""Joined to one script, with those of the exam's page between them: these fill in what exam.js begins."""


def write_report(
    runs: Sequence[RunRecord],
    out: Path,
    *,
    frames: int | None = 0,
    replayed_steps: int | None = None,
    notices: Sequence[str] = (),
    on_progress: OnProgress | None = None,
) -> None:
    """Write the report of one or more runs on one exam as an HTML file.

    Args:
        runs: As `read_runs` gives them.
        out: The file.
        frames: For how many episodes to show what the robot saw; None for all.
        replayed_steps: How many steps these may have together, about 100 a second; None for any number.
        notices: What else to tell the reader.
        on_progress: Called after each episode of each part of the work.
    """
    judged = judge(runs, on_progress)
    page = page_of(runs, judged)
    chosen = choose(runs, judged, most=frames, most_steps=replayed_steps)
    frames_by_episode = collect(runs, chosen, page, film=True, on_progress=on_progress)
    pictured = choose(runs, judged, most=frames, most_steps=None)  # nothing need be driven again for these
    talks = collect_conversations(runs, judged, pictured, on_progress)
    data = page_data(runs, judged, page, frames_by_episode, notices, on_progress)
    for each, result in zip(judged, data["results"], strict=True):
        if (talk := talks.get((each.run, each.result.episode_id))) is not None:
            result["talk"] = talk
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(out, html_of(type(page), data).encode())
    except OSError as error:
        raise UserError(f"cannot write {out}: {error.strerror}") from error


def html_of(page: type[Page], data: dict[str, Any]) -> str:
    """Return the page with its style, its script and its data inside."""
    scripts = [*map(_file, FIRST), *map(page.viewer_file, page.scripts), *map(_file, LAST)]
    styles = [_file("style.css"), *map(page.viewer_file, page.styles)]
    script = '"use strict";\n' + "\n".join(scripts)
    parts = {
        "STYLE": "\n".join(styles),
        "SCRIPT_HASH": base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        "SCRIPT": script,
        "DATA": embedded_json(data),
    }
    text = _file("index.html")
    for name, part in parts.items():  # the data last: it may contain anything
        text = text.replace(f"<!--{name}-->", part, 1)
    return text


def _file(name: str) -> str:
    return (files("proctor.report") / "viewer" / name).read_text("utf-8")


def embedded_json(data: Any) -> str:
    """Return JSON that can stand in a script element whatever texts are in it."""
    text = msgspec.json.encode(data).decode()
    for character in "<>&\u2028\u2029":  # these occur in strings only
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text
