"""Screenshots, which take a frame."""

from __future__ import annotations

import itertools
from pathlib import Path

from PIL import Image

from proctor.o3de.standin.az_values import Outcome

SUCCESS, FILE_WRITE_ERROR, UNSUPPORTED_FORMAT = 1, 2, 4
SUFFIXES = (".png", ".ppm")
SIZE = (64, 36)


class FrameCaptures:
    """Takes pictures of the viewport, which is grey here.

    Args:
        project: Where paths that are not absolute begin.
    """

    def __init__(self, project: Path) -> None:
        self.has_renderer = True
        """Without one (the null RHI) there are no pictures."""
        self._project = project
        self._numbers = itertools.count(1)
        self._waiting: dict[int, Path] = {}

    def take(self, path: str) -> Outcome:
        """Order a picture."""
        if not self.has_renderer:
            return Outcome(error="Frame capture initialization failed. Frame capture not available.")
        number = next(self._numbers)
        self._waiting[number] = self._project / path
        return Outcome(number)

    def finish(self) -> list[tuple[int, int, str]]:
        """Write what was ordered, and return the number, the result and a word about each."""
        done = [(number, *_write(path)) for number, path in self._waiting.items()]
        self._waiting.clear()
        return done


def _write(path: Path) -> tuple[int, str]:
    if path.suffix.lower() not in SUFFIXES:
        return UNSUPPORTED_FORMAT, f"cannot write {path.suffix}"
    try:
        Image.new("RGB", SIZE, (128, 128, 128)).save(path)
    except OSError as error:
        return FILE_WRITE_ERROR, str(error)
    return SUCCESS, str(path)
