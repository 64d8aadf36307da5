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
from proctor.report.key_frames import choose, collect
from proctor.report.page_data import judge, page_data
from proctor.report.progress import OnProgress
from proctor.report.run_record import RunRecord

FIRST, LAST = ("dom.js",), ("episode.js", "app.js")
COMMON = ("model.js", "charts.js", "marks.js", "overview.js", "table.js", "strip.js")
SCRIPTS = {
    "vln": (*FIRST, "vln.js", *COMMON, "map.js", "timeline.js", *LAST),
    "pick_and_place": (*FIRST, "pick_place.js", *COMMON, "stages.js", "hand.js", "phases.js", *LAST),
}
"""By task, joined to one script in this order. The task's own give names to what the common ones use."""
STYLES = {"vln": ("style.css",), "pick_and_place": ("style.css", "pick_place.css")}


def write_report(
    runs: Sequence[RunRecord],
    out: Path,
    *,
    frames: int | None = 0,
    replayed_steps: int | None = None,
    notices: Sequence[str] = (),
    on_progress: OnProgress | None = None,
) -> None:
    """Write the report of one or more runs on one exam.

    Args:
        runs: The runs, as `read_runs` gives them.
        out: The HTML file.
        frames: For how many episodes to show what the robot saw; None for all.
        replayed_steps: How many steps these may have together, about 100 a second; None for any number.
        notices: What else to tell the reader.
        on_progress: Called after each episode of each part of the work.

    Raises:
        UserError: The runs are of several tasks, or the file cannot be written.
    """
    verdicts = judge(runs, on_progress)
    chosen = choose(runs, verdicts, most=frames, most_steps=replayed_steps)
    frames_by_episode = collect(runs, chosen, film=True, on_progress=on_progress)
    data = page_data(runs, verdicts, frames_by_episode, notices, on_progress)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(out, page(data).encode())
    except OSError as error:
        raise UserError(f"cannot write {out}: {error.strerror}") from error


def page(data: dict[str, Any]) -> str:
    """Return the page with its style, its script and its data inside."""
    task = data["task"]
    script = '"use strict";\n' + "\n".join(_viewer_file(name) for name in SCRIPTS[task])
    parts = {
        "STYLE": "\n".join(_viewer_file(name) for name in STYLES[task]),
        "SCRIPT_HASH": base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        "SCRIPT": script,
        "DATA": embedded_json(data),
    }
    text = _viewer_file("index.html")
    for name, part in parts.items():  # the data last: it may contain anything
        text = text.replace(f"<!--{name}-->", part, 1)
    return text


def _viewer_file(name: str) -> str:
    for package in ("proctor.report", "proctor.exams.vln", "proctor.exams.pick_place"):
        file = files(package) / "viewer" / name
        if file.is_file():
            return file.read_text("utf-8")
    raise FileNotFoundError(name)


def embedded_json(data: Any) -> str:
    """Return JSON that can stand in a script element whatever texts are in it."""
    text = msgspec.json.encode(data).decode()
    for character in "<>&\u2028\u2029":  # these occur in strings only
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text
