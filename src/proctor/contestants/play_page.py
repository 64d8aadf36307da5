"""The document of `proctor play`: one page with its style, its script and the exam's controls inside."""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files

from proctor.contestants.play_session import PlaySession
from proctor.report.html import embedded_json


def page_of(session: PlaySession, title: str) -> tuple[bytes, tuple[str, str]]:
    """Return the page, and the hashes of its script and its style."""
    report, own = files("proctor.report") / "viewer", files("proctor.contestants") / "page"
    texts = {
        "script": '"use strict";\n'
        + "\n".join(
            file.read_text("utf-8") for file in (report / "dom.js", own / "words.js", own / "play.js")
        ),
        "style": "\n".join(file.read_text("utf-8") for file in (report / "style.css", own / "play.css")),
    }
    controls = session.controls
    setup = {
        "title": title,
        "exam": session.exam.title or session.exam.name,
        "buttons": controls.buttons,
        "sliders": controls.sliders,
        "howTo": controls.how_to,
    }
    html = (own / "index.html").read_text("utf-8")
    for name, part in {**texts, "data": embedded_json(setup)}.items():
        html = html.replace(f"<!--{name.upper()}-->", part, 1)
    script, style = (
        base64.b64encode(hashlib.sha256(texts[name].encode()).digest()).decode()
        for name in ("script", "style")
    )
    return html.encode(), (script, style)
