"""Reads instructions back into clauses: the inverse of the phrasebook, and as strict."""

from __future__ import annotations

from typing import TypeAlias

from proctor.core.errors import UserError
from proctor.instructions.clauses import Clause
from proctor.instructions.phrasebook import Style, style_of

Reading: TypeAlias = list[Clause]
LONGEST = 4000
"""Characters of an instruction that may be read."""


class Unreadable(UserError):
    """A text that is not made of the phrasebook's phrases, or that can be read in two ways."""


def read(text: str, language: str) -> list[Clause]:
    """Return what an instruction says.

    Raises:
        Unreadable: It has other words, or can be read in two ways.
        UnknownName: The language is not spoken here.
    """
    style = style_of(language)
    if len(text) > LONGEST:
        raise Unreadable(f"expected at most {LONGEST} characters, found {len(text)}")
    clauses: list[Clause] = []
    for sentence in _sentences(text.strip(), style):
        clauses += _read_sentence(sentence, style)
    if not clauses:
        raise Unreadable("expected an instruction, found nothing")
    return clauses


def _sentences(text: str, style: Style) -> list[str]:
    *sentences, rest = text.split(style.end)
    if rest:
        raise Unreadable(f"expected '{style.end}' after '{rest.strip()}'")
    return [sentence.strip() for sentence in sentences]


def _read_sentence(sentence: str, style: Style) -> list[Clause]:
    lowered = sentence[:1].lower() + sentence[1:]
    openers = {*style.first, *style.following, *style.last}
    starts = [len(opener) for opener in openers if lowered.startswith(opener)]
    readings: list[Reading] = []
    for start in sorted(starts):
        for reading in _readings(lowered, start, style, {}):
            if reading not in readings:
                readings.append(reading)
    if len(readings) != 1:
        problem = "cannot be read" if not readings else f"can be read in {len(readings)} ways"
        raise Unreadable(f"'{sentence}' {problem}")
    return readings[0]


def _readings(text: str, start: int, style: Style, known: dict[int, list[Reading]]) -> list[Reading]:
    """Return all ways to read a text from a place to its end as phrases with joiners between them."""
    if start in known:
        return known[start]
    found: list[Reading] = []
    for clauses, end in style.language.readings(text, start):
        if end == len(text):
            found.append(clauses)
            continue
        for joiner in style.joiners:
            if text.startswith(joiner, end):
                rest = _readings(text, end + len(joiner), style, known)
                found += [clauses + reading for reading in rest if clauses + reading not in found]
    known[start] = found
    return found
