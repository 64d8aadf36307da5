"""Letters for pictures: Pillow's own font, or one of this machine's where that lacks a letter."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

from PIL import ImageFont

FOLDERS = (
    *(Path.home() / folder for folder in (".local/share/fonts", ".fonts", "Library/Fonts")),
    *map(Path, ("/usr/share/fonts", "/usr/local/share/fonts")),
    *map(Path, ("/Library/Fonts", "/System/Library/Fonts", "C:/Windows/Fonts")),
)
PATTERNS = (
    *("DejaVuSans.ttf", "NotoSansCJK*-Regular.*", "NotoSans*SC-Regular.*", "SourceHanSans*-Regular.*"),
    *("wqy-*.tt?", "DroidSansFallback*.ttf", "PingFang.ttc", "Hiragino Sans GB.ttc", "STHeiti*.ttc"),
    *("msyh.tt?", "simhei.ttf", "simsun.tt?"),
)
"""Fonts with many letters, Chinese ones from the second on."""
ADVICE = "install a font that has its letters, such as Noto Sans CJK"


def font_for(text: str, size_px: float) -> ImageFont.FreeTypeFont | None:
    """Return a font that has every letter of a text, or None if this machine has none."""
    return next((font for font in _fonts(max(1, round(size_px))) if _has_all(font, text)), None)


def plain_font(size_px: float) -> ImageFont.FreeTypeFont:
    """Return Pillow's own font, for texts of ours."""
    return next(_fonts(max(1, round(size_px))))


def wrapped(text: str, font: ImageFont.FreeTypeFont, width_px: float) -> list[str]:
    """Break a text into lines no wider than this; within words only where a word alone is too wide."""
    lines, line = [], ""
    for piece in _pieces(text):
        if line and font.getlength((line + piece).rstrip()) > width_px:
            lines.append(line.rstrip())
            line = ""
        for letter in piece.lstrip() if not line else piece:
            if line and font.getlength(line + letter) > width_px and not letter.isspace():
                lines.append(line.rstrip())
                line = ""
            line += letter
    return [*lines, line.rstrip()] if line.strip() else lines


def _pieces(text: str) -> Iterator[str]:
    """Yield what must not be broken: a word with the space before it, or a single Chinese letter."""
    piece = ""
    for letter in " ".join(text.split()):
        if piece and (letter == " " or ord(letter) >= 0x2E80 or ord(piece[-1]) >= 0x2E80):
            yield piece
            piece = ""
        piece += letter
    if piece:
        yield piece


def _fonts(size_px: int) -> Iterator[ImageFont.FreeTypeFont]:
    built_in = ImageFont.load_default(size_px)
    if isinstance(built_in, ImageFont.FreeTypeFont):  # always, where Pillow was built with FreeType
        yield built_in
    for file in _files(FOLDERS):
        try:
            yield ImageFont.truetype(file, size_px)
        except OSError:  # not a font after all
            continue


@cache
def _files(folders: tuple[Path, ...]) -> list[Path]:
    """Return the fonts of this machine that we know by name, the more common ones first."""
    return [
        file
        for pattern in PATTERNS
        for folder in folders
        if folder.is_dir()
        for file in sorted(folder.rglob(pattern))
    ]


def _has_all(font: ImageFont.FreeTypeFont, text: str) -> bool:
    """Tell whether no letter of a text would be drawn as the box that stands for a missing one."""
    missing = bytes(font.getmask("\U0010ffff"))
    return all(bytes(font.getmask(letter)) != missing for letter in set(text) if not letter.isspace())
