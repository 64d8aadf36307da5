"""Waiting, and what the agent says of itself."""

from __future__ import annotations

import json
from typing import Any

from o3de_sim.constants import PROTOCOL
from o3de_sim.editor.session import EditorSession, Frames


def wait_for_propagation(session: EditorSession, frames: int) -> Frames[None]:
    """Let frames pass, so that edits reach the prefabs."""
    yield from session.pass_frames(frames)


def ping(session: EditorSession) -> dict[str, int]:
    """Return how many frames have passed. Two answers with one number: the Editor stands still."""
    return {"frame": session.engine.frame_count}


def greeting(session: EditorSession, operations: list[str]) -> dict[str, Any]:
    """Return what a client is told at first."""
    return {
        "protocol": PROTOCOL,
        "engine": _engine_version(session),
        "project": str(session.project),
        "level": session.level(),
        "in_game_mode": session.is_in_game_mode(),
        "operations": operations,
    }


def _engine_version(session: EditorSession) -> str:
    manifest = session.engine.engine_folder / "engine.json"
    try:
        with manifest.open("rb") as file:
            found = json.loads(file.read(1024 * 1024))
    except (OSError, ValueError, RecursionError):
        return "unknown"
    if not isinstance(found, dict):
        return "unknown"
    version = found.get("display_version") or found.get("version") or found.get("O3DEVersion")
    return str(version or "unknown")[:64]
