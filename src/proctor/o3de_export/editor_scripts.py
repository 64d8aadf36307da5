"""What the Editor runs: the package `o3de_sim`, and the file that starts its agent."""

from __future__ import annotations

from pathlib import Path

import o3de_sim
from proctor.o3de_export.folder import ExportFolder

SCRIPTS = "Editor/Scripts"
"""In a project: on the path of the Editor's Python."""
BOOTSTRAP = f"{SCRIPTS}/bootstrap.py"
START_LINE = "import o3de_sim.editor.bootstrap"


def put_editor_scripts(folder: ExportFolder) -> list[str]:
    """Write the agent into a project, and return what its owner must do by hand."""
    package = Path(o3de_sim.__file__).parent
    for file in sorted([*package.rglob("*.py"), package / "py.typed"]):
        folder.put(f"{SCRIPTS}/o3de_sim/{file.relative_to(package).as_posix()}", file.read_bytes())
    ours = (package / "editor" / "bootstrap.py").read_bytes()
    there = folder.root / BOOTSTRAP
    if there.is_file() and not _is_ours(found := there.read_bytes(), ours):
        is_called = any(line.strip() == START_LINE.encode() for line in found.splitlines())
        return [] if is_called else [f"{BOOTSTRAP} is your own and was left alone: add the line {START_LINE}"]
    folder.put(BOOTSTRAP, ours)
    return []


def _is_ours(found: bytes, ours: bytes) -> bool:
    """Tell whether a file is ours, of this version or another."""
    return found.splitlines()[:1] == ours.splitlines()[:1]
