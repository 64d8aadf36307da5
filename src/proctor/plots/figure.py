"""Figures of matplotlib in which a point is a pixel, and what pictures share: texts, legends, scales."""

from __future__ import annotations

import base64
import math
import textwrap
from collections.abc import Sequence
from fnmatch import fnmatch
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties, findfont, findSystemFonts, fontManager, get_font
from matplotlib.legend import Legend
from matplotlib.legend_handler import HandlerTuple
from matplotlib.lines import Line2D
from matplotlib.patheffects import withStroke
from matplotlib.text import Text
from mpl_toolkits.axes_grid1.anchored_artists import AnchoredSizeBar
from PIL import Image

from proctor.core.documents import write_atomically
from proctor.core.plain_text import plain

DPI = 72  # of all figures made here: a point, in which matplotlib measures letters and lines, is a pixel
PAPER, DARK, GREY = "#fafaf7", "#262932", "#62656c"
FONT_FILES = (
    *("NotoSansCJK*-Regular.*", "NotoSans*SC-Regular.*", "SourceHanSans*-Regular.*", "wqy-*.tt?"),
    *("DroidSansFallback*.ttf", "PingFang.ttc", "Hiragino Sans GB.ttc", "STHeiti*.ttc"),
    *("msyh.tt?", "simhei.ttf", "simsun.tt?"),
)
"""Fonts with Chinese letters."""
NO_FONT = (
    "A text in letters for which this machine has no font is left out: "
    "install a font that has its letters, such as Noto Sans CJK."
)
MAX_LETTERS = 2000  # more cannot be shown


def new_figure(width_px: float, height_px: float) -> Figure:
    """Return an empty figure without a window."""
    # A hair wider: matplotlib rounds pixels down.
    figure = Figure(figsize=((width_px + 1e-3) / DPI, (height_px + 1e-3) / DPI), dpi=DPI, facecolor=PAPER)
    FigureCanvasAgg(figure)
    return figure


def canvas_of(figure: Any) -> Any:
    """Return what a figure is drawn on, with methods for which matplotlib has no types."""
    return figure.canvas


def image_of(axes: Axes) -> Image.Image:
    """Draw the figure of some axes."""
    canvas = canvas_of(axes.figure)
    canvas.draw()
    return Image.fromarray(np.asarray(canvas.buffer_rgba())[..., :3])


def save_png(image: Image.Image, path: Path) -> None:
    """Write a picture as a PNG; its folder is made if needed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    content = BytesIO()
    image.save(content, format="PNG")
    write_atomically(path, content.getvalue())


def data_uri(kind: str, content: bytes) -> str:
    """Return a picture of a kind, such as `jpeg`, as an address that holds all of it."""
    return f"data:image/{kind};base64,{base64.b64encode(content).decode()}"


def edge(width_px: float) -> list[Any]:
    """Return the effect that puts an edge of paper around a line or a text."""
    return [withStroke(linewidth=width_px, foreground=PAPER)]


@cache
def font_families() -> list[str]:
    """Return the fonts in which texts are written; each has letters that those before it lack."""
    families = ["DejaVu Sans"]  # comes with matplotlib
    files = [Path(file) for file in findSystemFonts()]
    for file in sorted(file for file in files if any(fnmatch(file.name, each) for each in FONT_FILES)):
        try:
            fontManager.addfont(file)  # matplotlib's own list may be older than the font
        except (OSError, RuntimeError):  # not a font after all
            continue
        families.append(fontManager.ttflist[-1].name)
    return families


def has_letters(text: str) -> bool:
    """Tell whether this machine has a font for every letter of a text."""
    fonts = [get_font(findfont(FontProperties(family=family))) for family in font_families()]
    return all(
        any(font.get_char_index(ord(letter)) for font in fonts)
        for letter in set(text)
        if letter.isprintable()
    )


def wrap_text(text: Text, width_px: float, max_lines: int) -> None:
    """Break a text into lines no wider than this; within words only where a word alone is too wide."""
    words = text.get_text()
    letters = len(words)
    while letters >= 3:
        text.set_text("\n".join(textwrap.wrap(words, letters, max_lines=max_lines, placeholder=" …")))
        wide_px = text.get_window_extent().width
        if wide_px <= width_px:
            break
        letters = min(letters - 1, int(letters * width_px / wide_px))


def write_text(axes: Axes, text: str, at: tuple[float, float], size_px: float, **options: Any) -> Text:
    """Write a text of anyone, or that there is no font for it. `options` are those of `Axes.annotate`."""
    text = " ".join(plain(text).split())[:MAX_LETTERS]
    known = has_letters(text)
    look = {"fontsize": size_px if known else 14, "color": DARK if known else GREY, "parse_math": False}
    return axes.annotate(text if known else NO_FONT, at, family=font_families(), **{**look, **options})


def write_above(axes: Axes, lines: Sequence[tuple[str, float]], width_px: float, max_lines: int) -> None:
    """Write texts of these sizes above the axes, from below upwards; empty ones take no room."""
    below: Any = axes
    for text, size_px in lines:
        if text.strip():
            place: dict[str, Any] = {"xytext": (0, 9), "textcoords": "offset points"}
            below = write_text(axes, text, (14, 1), size_px, xycoords=("axes pixels", below), **place)
            wrap_text(below, width_px, max_lines)


def add_legend(axes: Axes, entries: Sequence[tuple[Any, str]], width_px: float) -> Legend:
    """Add a legend below the axes, in as many rows as it needs. A line of many colours shows four of them."""
    marks, texts = zip(*entries, strict=True)
    marks = tuple(_four_colors(mark) if isinstance(mark, LineCollection) else mark for mark in marks)
    look: dict[str, Any] = {"frameon": False, "fontsize": 14, "labelcolor": GREY, "markerscale": 0.75}
    look |= {"loc": "upper left", "bbox_to_anchor": (0, 0), "columnspacing": 1.4, "handlelength": 1.7}
    look["handler_map"] = {tuple: HandlerTuple(ndivide=None, pad=0)}
    for columns in range(len(entries), 0, -1):
        legend = axes.legend(marks, texts, ncols=columns, **look)
        if legend.get_window_extent().width <= width_px:
            break
    return legend


def _four_colors(line: LineCollection) -> tuple[Line2D, ...]:
    colors = np.asarray(line.get_colors())
    picked = np.linspace(0, len(colors) - 1, 4).round().astype(int)
    return tuple(Line2D([], [], color=colors[index], linewidth=3.5) for index in picked)


def add_scale(axes: Axes, pixels_per_m: float, loc: str) -> None:
    """Draw how long a round number of metres is, in a corner of axes in metres."""
    length_m = round_length_m(60 / pixels_per_m)
    text = f"{length_m:g} m" if length_m >= 1 else f"{100 * length_m:g} cm"
    look: dict[str, Any] = {"color": DARK, "label_top": True, "frameon": False, "pad": 0.5, "sep": 3}
    look["fontproperties"] = FontProperties(size=13)
    axes.add_artist(AnchoredSizeBar(axes.transData, length_m, text, loc, **look))


def fit_height(axes: Axes) -> None:
    """Make a figure as high as what stands above and below its only axes, which keep their size."""
    figure: Any = axes.figure
    content, (width, height) = figure.get_tightbbox(), figure.get_size_inches()
    above, below = (side + 8 / DPI if side > 1 / DPI else 0.0 for side in (content.y1 - height, -content.y0))
    total = math.ceil((height + above + below) * DPI) / DPI + 1e-5
    figure.set_size_inches(width, total)
    axes.set_position((0, below / total, 1, height / total))


def round_length_m(at_least_m: float) -> float:
    """Return the next length of 1, 2 or 5 times a power of ten metres."""
    power = 10.0 ** math.floor(math.log10(at_least_m))
    return next(step * power for step in (1.0, 2.0, 5.0, 10.0) if step * power >= at_least_m)
