"""What was exchanged with a model in an episode: JSON lines, compressed, each picture once.

A picture in a request is written as `$picture:<sha256>`. Keys never appear: they are in headers, which are
not recorded, and are cut out of what a server repeats.
"""

from __future__ import annotations

import gzip
import io
from collections.abc import Iterable
from typing import Any

import msgspec

from proctor.agents.chat.prompt import Picture

LEVEL = 1  # of compression: most is JPEG in base64, where higher levels take long and gain nothing


class TranscriptWriter:
    """The lines of one episode. `secrets` are cut out wherever they appear."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._secrets = [msgspec.json.encode(secret)[1:-1] for secret in secrets]
        self._content = io.BytesIO()
        self._stream = gzip.GzipFile(fileobj=self._content, mode="wb", compresslevel=LEVEL, mtime=0)
        self._pictures: set[str] = set()
        self.is_empty = True

    def add(self, kind: str, **fields: Any) -> None:
        """Add a line."""
        line = msgspec.json.encode({"kind": kind, **fields})
        for secret in self._secrets:
            line = line.replace(secret, b"(key)")
        self._stream.write(line + b"\n")
        self.is_empty = False

    def add_pictures(self, pictures: Iterable[Picture]) -> None:
        """Add those that are not there yet."""
        for picture in pictures:
            if picture.sha256 not in self._pictures:
                self._pictures.add(picture.sha256)
                self.add("picture", sha256=picture.sha256, media_type=picture.media_type, data=picture.base64)

    def file(self) -> bytes:
        """Return the whole as a gzip file; nothing if nothing was added. Nothing can be added after it."""
        self._stream.close()
        return b"" if self.is_empty else self._content.getvalue()
