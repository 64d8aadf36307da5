"""What was said between the evaluator and an agent, for the report: every decision, in step with the map.

Texts are cut and pictures shrunk, so that the page stays small. The whole stands in the run's folder `wire`.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from PIL import Image

from proctor.core.errors import InvalidFile
from proctor.core.types import Usage
from proctor.exams.page import JudgedEpisode
from proctor.plots.figure import data_uri
from proctor.report.key_frames import MOST_FILM_FRAMES, MOST_FRAMES_OF_AN_EPISODE, jpeg, spread
from proctor.report.run_record import OnProgress, RunRecord, tracked
from proctor.runs.accounting import tokens_text
from proctor.runs.folder import WIRE, wire_file
from proctor.runs.transcripts import RecordedDecision, RecordedPicture, Transcript

WIDTH_PX = 320
MAX_LETTERS = 4000  # of a prompt or a reply
MAX_REPORT_LETTERS = 20_000_000  # of all conversations in a report
MAX_DECISIONS = 1000  # of an episode
MAX_PIXELS = 16_000_000
FORMATS = ("JPEG", "PNG", "WEBP")


def collect_conversations(
    runs: Sequence[RunRecord],
    judged: Sequence[JudgedEpisode],
    pictured: Sequence[JudgedEpisode],
    on_progress: OnProgress | None = None,
) -> dict[tuple[int, str], dict[str, Any]]:
    """Return the conversations of all episodes that have one by run and id; `pictured` ones get pictures."""
    keys = [(each.run, each.result.episode_id) for each in judged]
    keys = [key for key in keys if wire_file(runs[key[0]].folder.path, key[1]).is_file()]
    first = {(each.run, each.result.episode_id) for each in pictured}.intersection(keys)
    keys.sort(key=lambda key: key not in first)  # those with pictures first: there may not be room for all
    most_pictures = min(MOST_FILM_FRAMES // max(len(first), 1), MOST_FRAMES_OF_AN_EPISODE)
    found: dict[tuple[int, str], dict[str, Any]] = {}
    letters = 0
    for key in tracked(keys, "reading transcripts", on_progress):
        if letters > MAX_REPORT_LETTERS:
            found[key] = {"note": f"Left out to keep this page small; the folder {WIRE} has it.", "turns": []}
            continue
        found[key] = _conversation(runs[key[0]], key[1], most_pictures if key in first else 0)
        letters += sum(len(turn["prompt"]) + len(turn["reply"]) for turn in found[key]["turns"])
    return found


def _conversation(run: RunRecord, episode_id: str, most_pictures: int) -> dict[str, Any]:
    path = wire_file(run.folder.path, episode_id)
    transcript = Transcript(path)
    decisions = transcript.decisions[:MAX_DECISIONS]
    pictures = _pictures(transcript, decisions, most_pictures)
    problems = transcript.problems
    if len(transcript.decisions) > MAX_DECISIONS:
        problems.append(f"of {len(transcript.decisions)} decisions the first {MAX_DECISIONS} are shown")
    usage = _usage_by_step(run, episode_id)
    places = {sha256: place for place, sha256 in enumerate(pictures)}
    return {
        "note": f"The transcript {path.name}: {'; '.join(problems)}." if problems else "",
        "pictures": list(pictures.values()),
        "turns": [_turn(decision, places, usage) for decision in decisions],
    }


def _turn(
    decision: RecordedDecision, places: Mapping[str, int], usage: Mapping[int, Usage]
) -> dict[str, Any]:
    used = usage.get(decision.step)
    said: dict[str, Any] = {
        "step": decision.step,
        "actions": shortened(", ".join(map(_action_text, decision.actions[:100])), 300),
        "note": shortened(decision.note),
        "prompt": shortened(decision.prompt),
        "reply": shortened(decision.reply),
        "pictures": [places[sha256] for sha256 in decision.pictures[:16] if sha256 in places],
    }
    if decision.attempts > 1:
        said["attempts"] = decision.attempts
    if decision.seconds:
        said["seconds"] = round(decision.seconds, 2)
    if used is not None:
        said["used"] = tokens_text(used)
    return said


def _pictures(transcript: Transcript, decisions: Sequence[RecordedDecision], most: int) -> dict[str, str]:
    """Return as many of the pictures that were shown as there is room for, as data URIs by sha256."""
    shown = dict.fromkeys(sha256 for decision in decisions for sha256 in decision.pictures)
    known = [sha256 for sha256 in shown if sha256 in transcript.pictures]
    found = {}
    for sha256 in spread(known, most):
        try:
            found[sha256] = data_uri("jpeg", _shrunk(transcript.pictures[sha256]))
        except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
            problem = f"a picture cannot be read: {error}"
            if problem not in transcript.problems:
                transcript.problems.append(problem)
    return found


def _shrunk(picture: RecordedPicture) -> bytes:
    image = Image.open(io.BytesIO(base64.b64decode(picture.data, validate=True)), formats=FORMATS)
    if image.width * image.height > MAX_PIXELS:
        raise ValueError(f"it has {image.width} x {image.height} pixels")
    return jpeg(image.convert("RGB"), WIDTH_PX)


def _usage_by_step(run: RunRecord, episode_id: str) -> dict[int, Usage]:
    """Return what each decision used, by the number of steps done before it."""
    try:
        trace = run.folder.trace(episode_id)
    except InvalidFile:
        return {}  # the page shows what else there is
    usage = trace.usage if trace is not None else []
    return {step: used for step, used in enumerate(usage) if used is not None and used.requests}


def _action_text(action: Any) -> str:
    return action if isinstance(action, str) else msgspec.json.encode(action).decode()


def shortened(text: str, most: int = MAX_LETTERS) -> str:
    """Return a text without its middle if it is too long: prompts end with what matters most."""
    text = text.encode("utf-8", "replace").decode()
    if len(text) <= most:
        return text
    return f"{text[: most // 2]}\n[... {len(text) - most} characters left out ...]\n{text[-most // 2 :]}"
