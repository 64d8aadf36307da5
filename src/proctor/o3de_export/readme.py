"""What lies in an exported folder, and what to do with it: for who opens it."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources


def readme(scene_files: Sequence[str]) -> str:
    """Return the text for a folder with these scene files."""
    text = resources.files(__package__).joinpath("folder.md").read_text(encoding="utf-8")
    return text.format(scenes="\n".join(f"- `{file}`" for file in scene_files))
