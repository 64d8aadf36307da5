"""The project folder to write to. Unchanged files stay untouched: the Asset Processor handles each change."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image


class ExportFolder:
    """Writes files below a folder, which need not exist, and knows which."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.sizes: dict[str, int] = {}  # of all files put here, in bytes, by their path below the root
        self.changed = 0  # how many of them were new or other than what was there

    def put(self, path: str, content: bytes) -> None:
        """Write a file, unless it is there."""
        file = self.root / path
        if not file.is_file() or file.read_bytes() != content:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
            self.changed += 1
        self.sizes[path] = len(content)

    def take_back(self, path: str, content: bytes) -> None:
        """Delete a file if it is there with just this content."""
        file = self.root / path
        if file.is_file() and file.read_bytes() == content:
            file.unlink()
            self.changed += 1

    def put_image(self, path: str, image: NDArray[np.uint8]) -> None:
        """Write an image as PNG, once: a path always means the same image."""
        if path not in self.sizes:
            packed = io.BytesIO()
            Image.fromarray(image).save(packed, "PNG")
            self.put(path, packed.getvalue())
