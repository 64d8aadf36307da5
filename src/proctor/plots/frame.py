"""What stands around a picture: a title above it; a legend, a scale and a caption below."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from PIL import Image, ImageDraw

from proctor.plots.fonts import ADVICE, font_for, plain_font, wrapped
from proctor.plots.marks import Point
from proctor.plots.plan import FINER, PAPER, round_length_m

MARGIN_PX, GAP_PX = 14, 18
TITLE_PX, TEXT_PX, SMALL_PX = 20, 17, 14
MARK_PX, ROW_PX = 34, 26
SCALE_PX = 60
MOST_LINES, MOST_LETTERS = 6, 2000
DARK, GREY = (38, 41, 50), (98, 101, 108)


class LegendEntry(NamedTuple):
    """A mark and what it means."""

    text: str
    draw: Callable[[ImageDraw.ImageDraw, Point, float], None]
    """Draws the mark around a point, within half the size of a mark."""


def framed(
    picture: Image.Image,
    *,
    metres_per_pixel: float,
    legend: Sequence[LegendEntry],
    title: str = "",
    caption: str = "",
) -> Image.Image:
    """Return a picture with what is needed to read it. A text for which there is no font is not shown."""
    inner_px = picture.width - 2 * MARGIN_PX
    blocks = [
        text_block(title, TITLE_PX, inner_px, most_lines=1),
        picture,
        legend_block(legend, inner_px, metres_per_pixel),
        text_block(caption, TEXT_PX, inner_px, most_lines=MOST_LINES),
    ]
    sheet = Image.new("RGB", (picture.width, sum(block.height for block in blocks)), PAPER)
    y = 0
    for block in blocks:
        sheet.paste(block, (0 if block is picture else MARGIN_PX, y))
        y += block.height
    return sheet


def text_block(text: str, size_px: int, width_px: int, *, most_lines: int) -> Image.Image:
    """Return a text in as many lines as it needs and may have."""
    text = text[:MOST_LETTERS]  # more cannot be shown
    if not text.strip():
        return Image.new("RGB", (1, 0))
    font, color = font_for(text, size_px), DARK
    if font is None:
        font, color = plain_font(SMALL_PX), GREY
        text = f"A text in letters for which this machine has no font is left out: {ADVICE}."
    lines = wrapped(text, font, width_px)
    if len(lines) > most_lines:
        lines = [*lines[: most_lines - 1], _shortened(lines[most_lines - 1], font.getlength, width_px)]
    line_px = round(1.4 * size_px)
    block = Image.new("RGB", (width_px, line_px * len(lines) + MARGIN_PX), PAPER)
    for index, line in enumerate(lines):
        at = (0, MARGIN_PX / 2 + (index + 0.5) * line_px)
        ImageDraw.Draw(block).text(at, line, fill=color, font=font, anchor="lm")
    return block


def _shortened(line: str, length: Callable[[str], float], width_px: int) -> str:
    while line and length(f"{line} …") > width_px:
        line = line[:-1]
    return f"{line} …"


def legend_block(
    legend: Sequence[LegendEntry], width_px: int, metres_per_pixel: float | None = None
) -> Image.Image:
    """Return the legend from left to right, in as many rows as it needs, and a scale at the right end."""
    font = plain_font(SMALL_PX)
    places: list[tuple[float, float]] = []
    x, row = 0.0, 0
    scale_text, scale_px, free_px = "", 0.0, float(width_px)
    if metres_per_pixel is not None:
        scale_m = round_length_m(SCALE_PX * metres_per_pixel)
        scale_px = scale_m / metres_per_pixel
        scale_text = f"{scale_m:g} m" if scale_m >= 0.01 else f"{scale_m:.0e} m"
        free_px = width_px - scale_px - font.getlength(scale_text) - 2 * GAP_PX
    for entry in legend:
        wide_px = MARK_PX + font.getlength(entry.text) + GAP_PX
        if x + wide_px > (free_px if row == 0 else width_px):
            x, row = 0.0, row + 1
        places.append((x, (row + 0.5) * ROW_PX + MARGIN_PX / 2))
        x += wide_px
    size = width_px, ROW_PX * (row + 1) + MARGIN_PX // 2
    block, marks = Image.new("RGBA", size, PAPER), Image.new("RGBA", (size[0] * FINER, size[1] * FINER))
    for entry, (left, y) in zip(legend, places, strict=True):
        entry.draw(
            ImageDraw.Draw(marks), (FINER * (left + MARK_PX / 2 - 3), FINER * y), FINER * (MARK_PX / 2 - 4)
        )
    block.alpha_composite(marks.resize(size, Image.Resampling.BOX))
    draw = ImageDraw.Draw(block)
    for entry, (left, y) in zip(legend, places, strict=True):
        draw.text((left + MARK_PX, y), entry.text, fill=GREY, font=font, anchor="lm")
    if not scale_text:
        return block.convert("RGB")
    middle, right = (ROW_PX + MARGIN_PX) / 2, width_px - 2
    draw.line([(right - scale_px, middle), (right, middle)], fill=DARK, width=2)
    for end in (right - scale_px, right):
        draw.line([(end, middle - 4), (end, middle + 4)], fill=DARK, width=2)
    draw.text((right - scale_px - 8, middle), scale_text, fill=GREY, font=font, anchor="rm")
    return block.convert("RGB")
