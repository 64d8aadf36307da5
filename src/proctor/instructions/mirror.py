"""Left and right swapped in a text, in English and Chinese. The mirror of a mirror is the text itself.

Whether a word is swapped depends on the words around it, and never on whether it is left or right: else the
second mirror would decide otherwise than the first.
"""

from __future__ import annotations

import re

SWAPS = {
    "left": "right",
    "clockwise": "counterclockwise",
    "左": "右",
    "顺时针": "逆时针",
}
SWAPPED = SWAPS | {there: here for here, there in SWAPS.items()} | {"anticlockwise": "clockwise"}
"""British `anticlockwise` comes back as `counterclockwise`, the one word that two mirrors change."""

LED_BY = (
    "turn|turns|turned|turning|go|goes|going|bear|veer|keep|head|walk|move|moving|look|face|facing|swing|exit|take|"
    "hard|slight|slightly|sharp|sharply|immediate|immediately|degrees|your|the|to|on|far|door|first|second|a"
)
"""Behind these words stands a side."""
FOLLOWED_BY = (
    r"next\s+to|in\s+front|in\s+the|behind|before|after|away|beside|by|under|above|below|beneath|inside|outside|"
    r"there|here|now|up\s+to|up\s+against|at\s+the|ahead|where|when|as|over|angle|angles"
)
"""Before these words, unless it is led by one of the others, stands an adverb: `right in front of`."""
TOKEN = re.compile(
    rf"""
    (?P<kept>
        左右 | 右左                                                   # 三米左右: about three metres
      | \b(?:have|has|had|just|you|[’']ve|what[’']s|what\s+is|all)\s+(?:left|right)\b
    )
  | \b(?P<led>(?:{LED_BY})\s+)(?P<side>left|right)\b(?!\s+angles?\b)
  | \b(?P<word>(?:left|right)(?=(?:most|wards?|hand(?:ed)?)?\b)(?!\s+(?:{FOLLOWED_BY})\b)
      | (?:anti|counter)?clockwise\b)
  | (?P<chinese>左|右|顺时针|逆时针)
    """,
    re.IGNORECASE | re.VERBOSE,
)


def mirror(text: str) -> str:
    """Return a text with left and right swapped; what tells no side stays, such as `right in front of`."""
    return TOKEN.sub(_mirrored, text)


def _mirrored(found: re.Match[str]) -> str:
    if found["kept"]:
        return found["kept"]
    return (found["led"] or "") + _swap(found["side"] or found["word"] or found["chinese"])


def _swap(word: str) -> str:
    other = SWAPPED[word.lower()]
    if word.isupper():
        return other.upper()
    return other.capitalize() if word[:1].isupper() else other
