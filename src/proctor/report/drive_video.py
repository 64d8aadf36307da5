"""A drive as a film at real speed: the floor from above, the plan, the robot, and how fast it drives."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import av
import numpy as np
from PIL import Image, ImageDraw, ImageFont

from proctor.core.types import Array
from proctor.navigation.skill.drive import Drive, View, view_of
from proctor.plots.plan import Plan

FPS = 30
WIDTH_PX, STRIP_PX = 960, 112  # the strip below the picture tells numbers
FLATTEST, TALLEST = 0.4, 0.85
FINER = 2  # drawn so many times larger, then shrunk, so that edges are smooth
HOLD_S = 1.5  # the last picture stays so long
LONGEST_S = 1800.0  # what comes later is left out

FREE, TOO_CLOSE, OCCUPIED, PAPER = (255, 255, 255), (228, 233, 240), (74, 82, 99), (255, 255, 255)
PLANNED, REPLANNED, DRIVEN, SEEN = (28, 79, 216, 110), (169, 79, 208, 130), (20, 23, 31), (232, 89, 12, 200)
TARGET, START, GOAL, FAILED = (240, 140, 0), (28, 79, 216), (10, 122, 76), (201, 42, 42)
INK, DIM, LINE = (52, 58, 70), (134, 142, 150), (222, 226, 230)

Pixel = tuple[float, float]
CODECS = {"libx264": {"preset": "veryfast", "crf": "21"}, "mpeg4": {"qscale": "3"}}  # in this order


def frames_of(drive: Drive, backdrop: Plan | None = None) -> Iterator[Image.Image]:
    """Yield `FPS` pictures with even sides for each second, over the backdrop, by default the map."""
    times_s = drive.log.elapsed_s
    floor = _Floor(drive, view_of(drive, flattest=FLATTEST, tallest=TALLEST), backdrop)
    strip = _Strip(drive)
    ticks = np.arange(0, min(float(times_s[-1]), LONGEST_S), 1 / FPS) if len(times_s) else np.zeros(0)
    picture = Image.new("RGB", (WIDTH_PX, floor.height_px + STRIP_PX), PAPER)
    for index in [*np.searchsorted(times_s, ticks).tolist(), len(times_s) - 1]:
        picture.paste(floor.picture(index), (0, 0))
        picture.paste(strip.picture(index), (0, floor.height_px))
        yield picture
    for _ in range(round(HOLD_S * FPS)):
        yield picture


class _Floor:
    """The floor from above. What stays is drawn once, the driven path grows, the robot moves over it."""

    def __init__(self, drive: Drive, view: View, backdrop: Plan | None) -> None:
        self._drive, self._view = drive, view
        self._pixels_per_m = FINER * WIDTH_PX / view.width_m
        self.height_px = round(WIDTH_PX * view.height_m / view.width_m / 2) * 2
        ground = _picture_of_map(drive) if backdrop is None else backdrop
        self._fine = _cut_out(ground, view, (FINER * WIDTH_PX, FINER * self.height_px))
        self._draw_plan()
        self._coarse = self._fine.reduce(FINER)
        self._driven = 0

    def picture(self, index: int) -> Image.Image:
        """Return the floor at a tick of the log; -1 is before the first. Ticks must not go back."""
        log, start = self._drive.log, self._drive.start
        self._drive_to(index)
        pose = (start.x, start.y, start.yaw) if index < 0 else log.poses[index].tolist()
        radius = self._drive.radius_m * self._pixels_per_m
        spots = [self._pixel(*pose[:2])]
        if index >= 0 and np.isfinite(log.targets[index]).all():
            spots.append(self._pixel(*log.targets[index, :2].tolist()))
        left, upper, part = self._part(spots, 2 * radius)
        draw = ImageDraw.Draw(part)
        here, *target = [(x - left, y - upper) for x, y in spots]
        _draw_robot(draw, here, pose[2], radius)
        for spot in target:
            draw.circle(spot, 0.2 * radius, fill=TARGET, outline=PAPER, width=FINER)
        picture = self._coarse.copy()
        picture.paste(part.reduce(FINER), (left // FINER, upper // FINER))
        return picture

    def _drive_to(self, index: int) -> None:
        """Draw the driven way up to a tick."""
        if index <= self._driven:
            return
        way = [self._pixel(x, y) for x, y in self._drive.log.poses[self._driven : index + 1, :2].tolist()]
        ImageDraw.Draw(self._fine).line(way, fill=DRIVEN, width=2 * FINER, joint="curve")
        left, upper, part = self._part(way, 4 * FINER)
        self._coarse.paste(part.reduce(FINER), (left // FINER, upper // FINER))
        self._driven = index

    def _part(self, around: list[Pixel], margin: float) -> tuple[int, int, Image.Image]:
        """Return a copy of what is around some pixels, and where it is, in whole coarse pixels."""
        xs, ys = zip(*around, strict=True)
        left, upper = ((math.floor(min(side) - margin) // FINER) * FINER for side in (xs, ys))
        right, lower = ((math.ceil(max(side) + margin) // FINER + 1) * FINER for side in (xs, ys))
        left, upper = max(left, 0), max(upper, 0)
        box = (left, upper, min(right, self._fine.width), min(lower, self._fine.height))
        return left, upper, self._fine.crop(box)

    def _pixel(self, x: float, y: float) -> Pixel:
        """Return where a place of the world is, from the upper left corner."""
        right_m, down_m = x - self._view.low[0], self._view.high[1] - y
        return right_m * self._pixels_per_m, down_m * self._pixels_per_m

    def _draw_plan(self) -> None:
        """Draw what is known before the robot moves: paths, start, goal, and things that will be seen."""
        drive, layer = self._drive, Image.new("RGBA", self._fine.size)
        draw = ImageDraw.Draw(layer)
        half = drive.grid.resolution_m / 2
        for x, y in drive.seen.tolist():
            draw.rectangle((*self._pixel(x - half, y + half), *self._pixel(x + half, y - half)), fill=SEEN)
        colors = [PLANNED, *[REPLANNED] * len(drive.replanned)]
        for path, color in zip([drive.path, *drive.replanned], colors, strict=True):
            if path is not None:
                way = [self._pixel(x, y) for x, y in path.points.tolist()]
                draw.line(way, fill=color, width=5 * FINER, joint="curve")
        size = 9 * FINER
        draw.circle(self._pixel(drive.start.x, drive.start.y), size * 0.7, outline=START, width=3 * FINER)
        if math.isfinite(sum(drive.goal)):
            draw.polygon(_star(self._pixel(*drive.goal), 1.35 * size), fill=PAPER)
            draw.polygon(_star(self._pixel(*drive.goal), size), fill=GOAL)
        self._fine.paste(layer, (0, 0), layer)


class _Strip:
    """The numbers below the floor, and the speed over time."""

    def __init__(self, drive: Drive) -> None:
        self._drive, self._log = drive, drive.log
        self._speeds: Array = np.hypot(drive.log.velocities[:, 0], drive.log.velocities[:, 1])
        self._large, self._small = (ImageFont.load_default(size) for size in (30, 16))
        self._graph = _Graph(300, 26, WIDTH_PX - 24, STRIP_PX - 26, self._last_s, drive.dynamics.v_max)
        self._blank = Image.new("RGB", (WIDTH_PX, STRIP_PX), PAPER)
        self._draw_graph()

    def picture(self, index: int) -> Image.Image:
        """Return the strip at a tick; -1 is before the first."""
        picture = self._blank.copy()
        draw = ImageDraw.Draw(picture)
        result, at_end = self._drive.result, index == len(self._log.elapsed_s) - 1
        time_s = float(self._log.elapsed_s[index]) if index >= 0 else 0.0
        speed = float(self._speeds[index]) if index >= 0 else 0.0
        start = self._drive.start
        here = self._log.poses[index, :2].tolist() if index >= 0 else [start.x, start.y]
        left_m = math.dist(here, self._drive.goal)
        headline, color = f"{speed:.2f} m/s", INK
        if at_end:
            headline = "arrived" if self._drive.arrived else f"failed: {result.get('reason', '')}"
            color = GOAL if self._drive.arrived else FAILED
        draw.text((24, 18), headline, fill=color, font=self._fitting(headline))
        to_go = f"{left_m:.1f} m to go" if left_m >= 0.1 else f"{100 * left_m:.1f} cm to go"
        draw.text((24, 68), f"{time_s:.1f} s   ·   {to_go}", fill=INK, font=self._small)
        x, y = self._graph.pixel(time_s, speed)
        draw.line([(x, self._graph.upper), (x, self._graph.lower)], fill=DIM, width=1)
        draw.circle((x, y), 4, fill=TARGET)
        return picture

    @property
    def _last_s(self) -> float:
        return min(float(self._log.elapsed_s[-1]), LONGEST_S) if len(self._log.elapsed_s) else 1.0

    def _fitting(self, text: str) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
        return self._large if self._large.getlength(text) < 260 else self._small

    def _draw_graph(self) -> None:
        graph, limit = self._graph, self._drive.dynamics.v_max
        fine = self._blank.resize((WIDTH_PX * FINER, STRIP_PX * FINER))
        draw = ImageDraw.Draw(fine)
        for height in (0.0, limit):
            ends = [graph.pixel(0, height), graph.pixel(self._last_s, height)]
            draw.line([(FINER * x, FINER * y) for x, y in ends], fill=LINE, width=FINER)
        way = [
            graph.pixel(t, v)
            for t, v in zip(self._log.elapsed_s.tolist(), self._speeds.tolist(), strict=True)
        ]
        draw.line([(FINER * x, FINER * y) for x, y in way], fill=DRIVEN, width=2 * FINER, joint="curve")
        self._blank = fine.reduce(FINER)
        draw = ImageDraw.Draw(self._blank)
        for height in (0.0, limit):
            spot = (graph.left - 8, graph.pixel(0, height)[1])
            draw.text(spot, f"{height:g}", fill=DIM, font=ImageFont.load_default(13), anchor="rm")
        spot = (graph.left, graph.upper - 6)
        draw.text(spot, "speed (m/s)", fill=DIM, font=ImageFont.load_default(13), anchor="ls")


class _Graph(NamedTuple):
    """Where values over time are drawn, in pixels."""

    left: float
    upper: float
    right: float
    lower: float
    last_s: float
    largest: float

    def pixel(self, time_s: float, value: float) -> Pixel:
        """Return where a value is drawn."""
        share = min(time_s / max(self.last_s, 1e-9), 1.0)
        height = min(max(value / self.largest, 0.0), 1.1)
        return self.left + share * (self.right - self.left), self.lower - height * (self.lower - self.upper)


def _picture_of_map(drive: Drive) -> Plan:
    grid = drive.grid
    near = grid.clearance_m <= drive.radius_m
    cells = np.select([grid.occupied[..., None], near[..., None]], [OCCUPIED, TOO_CLOSE], FREE)
    return Plan(Image.fromarray(cells[::-1].astype(np.uint8)), grid.origin_world, grid.resolution_m)


def _cut_out(ground: Plan, view: View, size_px: tuple[int, int]) -> Image.Image:
    """Return a view of a picture; what lies beyond its borders looks like its corner."""
    scale, (left_m, bottom_m) = ground.metres_per_pixel, ground.low_xy
    x0, x1 = ((x - left_m) / scale for x in (view.low[0], view.high[0]))
    y0, y1 = (ground.image.height - (y - bottom_m) / scale for y in (view.high[1], view.low[1]))
    enlarged = size_px[0] / (x1 - x0)
    how = Image.Resampling.NEAREST if enlarged > 8 else Image.Resampling.BICUBIC  # cells stay squares
    image = ground.image.convert("RGB")
    beyond = image.getpixel((0, 0))
    return image.transform(size_px, Image.Transform.EXTENT, (x0, y0, x1, y1), how, fillcolor=beyond)


def _draw_robot(draw: ImageDraw.ImageDraw, at: Pixel, yaw: float, radius: float) -> None:
    """Draw the robot in its true size, with a nose."""
    draw.circle(at, radius, fill=(250, 250, 250), outline=DRIVEN, width=max(FINER, round(radius / 7)))
    nose = [(0.78 * radius, 0.0), (-0.25 * radius, 0.5 * radius), (-0.25 * radius, -0.5 * radius)]
    cos, sin = math.cos(yaw), math.sin(yaw)
    draw.polygon([(at[0] + cos * x - sin * y, at[1] - sin * x - cos * y) for x, y in nose], fill=START)


def _star(at: Pixel, size: float) -> list[Pixel]:
    angles = [math.tau * corner / 10 - math.pi / 2 for corner in range(10)]
    return [
        (
            at[0] + size * (0.45 if corner % 2 else 1) * math.cos(angle),
            at[1] + size * (0.45 if corner % 2 else 1) * math.sin(angle),
        )
        for corner, angle in enumerate(angles)
    ]


def save_video(drive: Drive, path: Path, *, backdrop: Plan | None = None) -> None:
    """Write the film of a drive as an MP4 file, which gets its name when it is complete."""
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
