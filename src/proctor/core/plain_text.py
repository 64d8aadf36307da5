"""Texts of others, made harmless for a terminal."""

from __future__ import annotations

import re

UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""Control characters but tab and line feed, and those that turn the direction of writing around."""


def plain(text: str) -> str:
    """Return a text whose control and direction characters are written out as their code points."""
    return UNSEEN.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
