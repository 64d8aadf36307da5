"""A drive as a film, at real speed."""

from __future__ import annotations

import os
from itertools import chain
from pathlib import Path
from typing import Any

import av
import numpy as np

from proctor.skills.drive import Drive
from proctor.skills.drive_frames import FPS, Backdrop, frames_of

CODECS = {"libx264": {"preset": "veryfast", "crf": "21"}, "mpeg4": {"qscale": "3"}}
"""The first that is there is taken."""


def save_video(drive: Drive, path: Path, *, backdrop: Backdrop | None = None) -> None:
    """Write the film of a drive as an MP4 file, which gets its name when it is whole.

    Args:
        drive: The drive.
        path: The file.
        backdrop: What is shown under the paths; the map if missing.

    Raises:
        OSError: The file cannot be written.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    pictures = frames_of(drive, backdrop)
    first = next(pictures)
    codec = next(name for name in CODECS if name in av.codecs_available)
    try:
        with av.open(str(temporary), "w", format="mp4", options={"movflags": "faststart"}) as film:
            stream: Any = film.add_stream(codec, rate=FPS, options=CODECS[codec])
            stream.width, stream.height = first.size
            stream.pix_fmt = "yuv420p"
            for picture in chain([first], pictures):
                film.mux(stream.encode(av.VideoFrame.from_ndarray(np.asarray(picture), format="rgb24")))
            film.mux(stream.encode())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
