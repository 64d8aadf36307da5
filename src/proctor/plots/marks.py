"""The marks of a trajectory plot, for the picture and for its legend alike. Lengths are in pixels."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from PIL import ImageDraw

from proctor.core.geometry import distances_along
from proctor.core.types import Array

Point = tuple[float, float]
Rgb = tuple[int, int, int]

WHITE: Rgb = (255, 255, 255)
REFERENCE: Rgb = (58, 62, 74)
GOAL: Rgb = (10, 122, 76)
BUMP: Rgb = (208, 32, 38)
PROGRESS = np.array([[24, 62, 200], [128, 32, 170], [222, 72, 92], [246, 150, 32]], dtype=float)
"""The colours of a way from its start to its end."""


def progress_color(share: float) -> Rgb:
    """Return the colour at a share of the way, from 0 to 1."""
    at = np.linspace(0, 1, len(PROGRESS))
    red, green, blue = (round(float(np.interp(share, at, channel))) for channel in PROGRESS.T)
    return red, green, blue


def draw_way(draw: ImageDraw.ImageDraw, way: Sequence[Point], width: float) -> None:
    """Draw a line that changes its colour from start to end, with a white edge and arrow heads."""
    _polyline(draw, way, width * 1.9, lambda _: WHITE)
    _polyline(draw, way, width, progress_color)
    for tip, direction, share in _arrows(way, every=width * 16):
        _arrow_head(draw, tip, direction, width * 2.6, WHITE)
        _arrow_head(draw, tip, direction, width * 1.9, progress_color(share))


def draw_dashes(draw: ImageDraw.ImageDraw, way: Sequence[Point], width: float) -> None:
    """Draw a dashed line with a white edge. The dashes run on around corners."""
    points = np.array(way)
    at = distances_along(points)
    dash = 3.2 * width
    for edge, color in ((width * 1.9, WHITE), (width, REFERENCE)):
        for begin in np.arange(0.0, at[-1], 2 * dash):
            end = min(begin + dash, at[-1])
            inner = at[(at > begin) & (at < end)]
            stops = np.concatenate([[begin], inner, [end]])
            corners = np.stack([np.interp(stops, at, points[:, axis]) for axis in (0, 1)], axis=1)
            draw.line([(x, y) for x, y in corners.tolist()], fill=color, width=round(edge), joint="curve")


def draw_start(draw: ImageDraw.ImageDraw, at: Point, radius: float) -> None:
    """Draw a ring."""
    draw.circle(at, radius * 1.25, fill=WHITE)
    draw.circle(at, radius, fill=progress_color(0.0))
    draw.circle(at, radius * 0.45, fill=WHITE)


def draw_end(draw: ImageDraw.ImageDraw, at: Point, radius: float) -> None:
    """Draw a hollow square with dark edges, which is seen on paths, bumps and light floors alike."""
    for half, width, color in (
        (radius, 0.55 * radius, REFERENCE),
        (radius * 0.88, 0.31 * radius, progress_color(1.0)),
    ):
        box = (at[0] - half, at[1] - half, at[0] + half, at[1] + half)
        draw.rectangle(box, outline=color, width=round(width))


def draw_goal(draw: ImageDraw.ImageDraw, at: Point, radius: float, around: float = 0.0) -> None:
    """Draw a star and, if it is given, the circle around it in which a STOP counts."""
    if around > 0:
        draw.circle(at, around, fill=(*GOAL, 46), outline=(*GOAL, 255), width=max(1, round(radius / 4)))
    for size, color in ((radius * 1.45, WHITE), (radius, GOAL)):
        angles = np.arange(10) * math.tau / 10 - math.pi / 2
        reach = np.where(np.arange(10) % 2, 0.45, 1.0) * size
        corners = np.stack([at[0] + reach * np.cos(angles), at[1] + reach * np.sin(angles)], axis=1)
        draw.polygon([(x, y) for x, y in corners.tolist()], fill=color)


def draw_bump(draw: ImageDraw.ImageDraw, at: Point, radius: float) -> None:
    """Draw a cross."""
    x, y = at
    for width, color in ((radius * 0.95, WHITE), (radius * 0.5, BUMP)):
        reach = radius + (width - radius * 0.5) / 3
        for side in (-1, 1):
            ends = [(x - reach, y - side * reach), (x + reach, y + side * reach)]
            draw.line(ends, fill=color, width=round(width))


def _polyline(
    draw: ImageDraw.ImageDraw, way: Sequence[Point], width: float, color_at: Callable[[float], Rgb]
) -> None:
    last = max(1, len(way) - 1)
    for index, point in enumerate(way):
        draw.circle(point, width / 2, fill=color_at(index / last))
        if index:
            draw.line([way[index - 1], point], fill=color_at((index - 0.5) / last), width=round(width))


def _arrows(way: Sequence[Point], every: float) -> list[tuple[Point, Array, float]]:
    """Return where arrow heads belong, which way they point, and how far along the way they are."""
    found, since = [], every / 2
    for index in range(1, len(way)):
        step = np.subtract(way[index], way[index - 1])
        length = float(np.hypot(*step))
        since += length
        if since >= every and length > 0:
            found.append((way[index], step / length, index / (len(way) - 1)))
            since = 0.0
    return found


def _arrow_head(draw: ImageDraw.ImageDraw, tip: Point, ahead: Array, size: float, color: Rgb) -> None:
    left = np.array([ahead[1], -ahead[0]])
    centre = np.array(tip)
    back, wing = centre - 0.6 * size * ahead, 0.75 * size * left
    draw.polygon(
        [(float(x), float(y)) for x, y in (centre + size * ahead, back + wing, back - wing)], fill=color
    )
