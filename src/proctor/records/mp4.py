"""Writing MP4 files that browsers play: H.264 where the encoder is there, else MPEG-4."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
from numpy.typing import NDArray

H264, MPEG4 = "libx264", "mpeg4"


class Mp4Writer:
    """An MP4 file under way, with even sides. Use as a context manager: it is complete when that is left.

    `threads` of the encoder: 0 means all cores.
    """

    def __init__(
        self,
        path: Path,
        size: tuple[int, int],
        *,
        fps: int,
        preset: str = "veryfast",
        quality: int = 21,
        threads: int = 0,
    ) -> None:
        codec = H264 if H264 in av.codecs_available else MPEG4
        options = {"preset": preset, "crf": str(quality)} if codec == H264 else {"qscale": "3"}
        self._file = av.open(str(path), "w", format="mp4", options={"movflags": "faststart"})
        stream: Any = self._file.add_stream(codec, rate=fps, options=options)
        stream.width, stream.height = size
        stream.pix_fmt = "yuv420p"
        stream.codec_context.thread_count = threads
        self._stream, self._fps, self._time = stream, fps, -1

    def __enter__(self) -> Mp4Writer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def add(self, picture: NDArray[np.uint8], *, after: int = 1) -> None:
        """Add a picture, RGB or RGBA; the one before it has been seen for so many frames."""
        frame = av.VideoFrame.from_ndarray(picture, format="rgb24" if picture.shape[2] == 3 else "rgba")
        self._time += after
        frame.pts, frame.time_base = self._time, Fraction(1, self._fps)
        self._file.mux(self._stream.encode(frame))

    def close(self) -> None:
        """Complete the file."""
        try:
            self._file.mux(self._stream.encode())
        finally:
            self._file.close()
