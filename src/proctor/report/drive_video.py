"""A drive as a film at real speed: its plot, in which the robot moves, with how fast it drives."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.patches import Circle, Polygon
from numpy.typing import NDArray

from proctor.navigation.skill.drive import Drive
from proctor.plots.figure import canvas_of
from proctor.plots.floor import INK, START
from proctor.plots.plan import Plan
from proctor.records.mp4 import Mp4Writer
from proctor.report.drive_plot import DRIVEN, draw_drive

FPS, DPI = 30, 96
HOLD_S = 1.5  # the last picture stays so long
LONGEST_S = 1800.0  # what comes later is left out
TARGET = "#f08c00"
NOSE = np.array([(0.78, 0.0), (-0.25, 0.5), (-0.25, -0.5)])
Rgba = NDArray[np.uint8]


def frames_of(drive: Drive, backdrop: Plan | None = None) -> Iterator[Rgba]:
    """Yield `FPS` RGBA pictures with even sides for each second, over the backdrop, by default the map."""
    film = _Film(drive, backdrop)
    times_s = drive.log.elapsed_s
    ticks = np.arange(0, min(float(times_s[-1]), LONGEST_S), 1 / FPS) if len(times_s) else np.zeros(0)
    for index in np.searchsorted(times_s, ticks).tolist():
        yield film.frame(index)
    last = film.frame(len(times_s) - 1, is_last=True)
    for _ in range(1 + round(HOLD_S * FPS)):
        yield last


class _Film:
    """What stays is drawn once; the driven path grows, the robot and two numbers move over it."""

    def __init__(self, drive: Drive, backdrop: Plan | None) -> None:
        self._drive, parts = drive, draw_drive(drive, backdrop, "robot")
        self._driven, self._head, self._facts = parts.driven, parts.head, parts.facts
        self._end = parts.head.get_text(), parts.facts.get_text(), parts.head.get_color()
        disc: dict[str, Any] = {"facecolor": "#fafafa", "edgecolor": DRIVEN, "linewidth": 2}
        self._robot = parts.floor.add_patch(Circle((0, 0), drive.radius_m, **disc))
        self._nose: Any = parts.floor.add_patch(Polygon(NOSE, color=START))
        self._target = parts.floor.plot([], [], "o", color=TARGET, markeredgecolor="white", markersize=6)[0]
        self._cursors = [panel.axvline(0, color=TARGET, linewidth=1.5) for panel in parts.panels]
        on_floor = [self._driven, self._robot, self._nose, self._target]
        self._moving = [*on_floor, self._head, self._facts, *self._cursors]
        for order, artist in enumerate(self._moving):
            artist.set(animated=True, zorder=10 + order)
        parts.figure.set_dpi(DPI)
        self._canvas = canvas_of(parts.figure)
        self._canvas.draw()
        self._still = self._canvas.copy_from_bbox(parts.figure.bbox)

    def frame(self, index: int, *, is_last: bool = False) -> Rgba:
        """Return the picture at a tick of the log; -1 is before the first."""
        drive, log = self._drive, self._drive.log
        start = drive.start
        x, y, yaw = (start.x, start.y, start.yaw) if index < 0 else log.poses[index].tolist()
        time_s = 0.0 if index < 0 else float(log.elapsed_s[index])
        speed = 0.0 if index < 0 else math.hypot(*log.velocities[index, :2])
        left_m = math.dist((x, y), drive.goal)
        to_go = f"{left_m:.1f} m to go" if left_m >= 0.1 else f"{100 * left_m:.1f} cm to go"
        now = f"{speed:.2f} m/s", f"{time_s:.1f} s · {to_go}", INK
        head, facts, color = self._end if is_last else now
        self._head.set(text=head, color=color)
        self._facts.set(text=facts)
        self._driven.set_data(*log.poses[: index + 1, :2].T)
        self._robot.set(center=(x, y))
        turn = np.array([[np.cos(yaw), np.sin(yaw)], [-np.sin(yaw), np.cos(yaw)]])
        self._nose.set_xy(drive.radius_m * NOSE @ turn + (x, y))
        self._target.set_data(*(log.targets[[index], :2] if index >= 0 else np.zeros((0, 2))).T)
        for cursor in self._cursors:
            cursor.set_xdata([time_s, time_s])
        self._canvas.restore_region(self._still)
        for artist in self._moving:
            artist.draw(self._canvas.get_renderer())
        pixels = np.asarray(self._canvas.buffer_rgba())
        height, width = (side // 2 * 2 for side in pixels.shape[:2])
        return pixels[:height, :width].copy()


def save_video(drive: Drive, path: Path, *, backdrop: Plan | None = None) -> None:
    """Write the film of a drive as an MP4 file, which gets its name when it is complete."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    pictures = frames_of(drive, backdrop)
    first = next(pictures)
    try:
        with Mp4Writer(temporary, first.shape[1::-1], fps=FPS) as film:
            for picture in chain([first], pictures):
                film.add(picture)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
