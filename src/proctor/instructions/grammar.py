"""Phrases that turn clauses into text and text back into clauses.

A phrase is a text with slots. `{room}` stands for the field `room` of its only clause, `{1.room}` for that
of the second of several, and `{side:hand}` for the field `side` in the words of the table `hand`. Fields
without a slot have one value each: that of the phrase's meaning, or the clause's default. So what is said
can be read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, TypeAlias

import msgspec
import numpy as np

from proctor.instructions.clauses import MEANINGS, Clause, SpokenObject
from proctor.instructions.vocabulary import COLORS, ROOMS, THINGS, Word

SLOT = re.compile(r"\{(?:(\d)\.)?(\w+)(?::(\w+))?\}")
Table: TypeAlias = Mapping[Any, Sequence[str]]
"""Words, the same in meaning, for every value."""
Choices: TypeAlias = dict[tuple[str, Any], str]
"""Words chosen before: one object keeps one name in one instruction."""


class PatternSlot(NamedTuple):
    """A gap in a pattern."""

    clause: int
    field: str
    table: str


class Pattern:
    """A text with slots that says some clauses: those of its meanings."""

    def __init__(self, text: str, meanings: Sequence[str]) -> None:
        self.text = text
        self.slots = [PatternSlot(int(m[1] or 0), m[2], m[3] or m[2]) for m in SLOT.finditer(text)]
        self.kinds: list[type] = []
        self.fixed: list[dict[str, Any]] = []
        for number, meaning in enumerate(meanings):
            class_, given = MEANINGS[meaning]
            slotted = {slot.field for slot in self.slots if slot.clause == number}
            free = [f for f in msgspec.structs.fields(class_) if f.name not in slotted]
            self.kinds.append(class_)
            self.fixed.append({field.name: given.get(field.name, field.default) for field in free})

    def __len__(self) -> int:
        return len(self.kinds)

    def fits(self, clauses: Sequence[Clause], tables: Mapping[str, Table]) -> bool:
        """Tell whether the pattern says the first of these clauses."""
        if len(clauses) < len(self):
            return False
        for clause, kind, fixed in zip(clauses, self.kinds, self.fixed, strict=False):
            if type(clause) is not kind or any(getattr(clause, name) != fixed[name] for name in fixed):
                return False
        return all(
            slot.table in ("thing", "other")
            or getattr(clauses[slot.clause], slot.field) in tables[slot.table]
            for slot in self.slots
        )


class Language:
    """A way of speaking. A subclass gives its phrases, its words, and how phrases become sentences."""

    code: ClassVar[str]
    """`en` or `zh`; words of the vocabulary have a field of this name."""
    phrases: ClassVar[dict[str, str]]
    """By names of `MEANINGS`, with commas between those of several clauses: phrases with `|` between them."""
    tables: ClassVar[dict[str, Table]]
    """Words for the values of slots: `hand`, and those of the language's own."""
    numbers: ClassVar[Sequence[str]]
    """From one up."""
    metres: ClassVar[str]
    room: ClassVar[str]
    """These two have a gap, `{}`, for the words of a distance and a room."""
    thing: ClassVar[Sequence[str]]
    """How objects are named: texts with the slots `{color}`, `{category}` and `{measure}`."""
    statements: ClassVar[tuple[str, ...]]
    """What phrases begin with that are sentences of their own."""
    first: ClassVar[Sequence[str]]
    """Words before the first sentence; none of these words tells anything."""
    following: ClassVar[Sequence[str]]
    last: ClassVar[Sequence[str]]
    resuming: ClassVar[tuple[str, ...]]
    """What phrases begin with that go on with something: none of them comes first."""
    joiners: ClassVar[Sequence[str]]
    end: ClassVar[str]
    space: ClassVar[str]

    def __init__(self) -> None:
        self.patterns = [
            Pattern(text, meanings.split(", "))
            for meanings, texts in self.phrases.items()
            for text in texts.split(" | ")
        ]
        hands = self.tables["hand"]
        self.words: dict[str, Table] = {
            **self.tables,
            "room": {name: [self.room.format(form) for form in self._forms(w)] for name, w in ROOMS.items()},
            "category": {name: self._forms(word) for name, word in THINGS.items()},
            "color": {name: self._forms(word) for name, word in COLORS.items()},
            "slight": {f"slightly {side}": words for side, words in hands.items()},
            "sharp": {f"sharply {side}": words for side, words in hands.items()},
            "metres": {
                n: (self.metres.format(n), self.metres.format(word))
                for n, word in enumerate(self.numbers[1:], start=2)
            },
        }

    def _forms(self, word: Word) -> Sequence[str]:
        forms: Sequence[str] = getattr(word, self.code)
        return forms

    def phrase(
        self, pattern: Pattern, clauses: Sequence[Clause], rng: np.random.Generator, chosen: Choices
    ) -> str:
        """Say clauses by a pattern."""

        def fill(found: re.Match[str]) -> str:
            value = getattr(clauses[int(found[1] or 0)], found[2])
            table = found[3] or found[2]
            if isinstance(value, SpokenObject):
                return self._name(value, rng, chosen, pattern.text[: found.start()])
            return self._word(table, value, rng, chosen)

        return SLOT.sub(fill, pattern.text)

    def _word(self, table: str, value: Any, rng: np.random.Generator, chosen: Choices) -> str:
        if (table, value) not in chosen:
            words = self.words[table][value]
            chosen[table, value] = words[int(rng.integers(len(words)))]
        return chosen[table, value]

    def _name(self, thing: SpokenObject, rng: np.random.Generator, chosen: Choices, before: str) -> str:
        texts = [text for text in self.thing if ("{color}" in text) == bool(thing.color)]
        category = self._word("category", thing.category, rng, chosen)
        # Chinese says neither 左边的红色的沙发 nor 红色床, but 左边的那张红色的床.
        short = len(category) == 1 and bool(thing.color)
        if short or before.endswith("的"):
            texts = [text for text in texts if ("的" in text) == short]
        if short and before.endswith("的"):
            texts = [text for text in texts if "{measure}" in text]
        text = texts[int(rng.integers(len(texts)))]
        return text.format(
            category=category,
            color=self._word("color", thing.color, rng, chosen) if thing.color else "",
            measure=THINGS[thing.category].measure,
        )

    def readings(self, text: str, start: int) -> Iterator[tuple[list[Clause], int]]:
        """Yield every way to read a phrase that begins at a place of a text, with the place where it ends."""
        for pattern, expression in self._expressions:
            found = expression.match(text, start)
            clauses = None if found is None else self._clauses(pattern, found)
            if found is not None and clauses is not None:
                yield clauses, found.end()

    @cached_property
    def _expressions(self) -> list[tuple[Pattern, re.Pattern[str]]]:
        return [(pattern, re.compile(self._expression(pattern))) for pattern in self.patterns]

    def _expression(self, pattern: Pattern) -> str:
        pieces, end = [], 0
        for number, found in enumerate(SLOT.finditer(pattern.text)):
            pieces.append(re.escape(pattern.text[end : found.start()]))
            slot = pattern.slots[number]
            kind = "thing" if slot.table in ("thing", "other") else slot.table
            pieces.append(f"(?P<s{number}>{self._alternatives[kind]})")
            end = found.end()
        return "".join(pieces) + re.escape(pattern.text[end:])

    @cached_property
    def _alternatives(self) -> dict[str, str]:
        found = {name: "|".join(map(re.escape, self._reverse[name])) for name in self.words}
        words = {name: f"(?:{found[name]})" for name in ("category", "color")}
        words["measure"] = f"(?:{'|'.join(sorted({word.measure for word in THINGS.values()}))})"
        found["thing"] = "|".join(text.format(**words) for text in self.thing)
        return found

    @cached_property
    def _reverse(self) -> dict[str, dict[str, Any]]:
        """Values by word, the longest words first: `dining table` must not be read as far as `dining`."""
        return {
            name: dict(
                sorted(
                    ((word, value) for value, words in table.items() for word in words),
                    key=lambda pair: -len(pair[0]),
                )
            )
            for name, table in self.words.items()
        }

    @cached_property
    def _things(self) -> dict[str, SpokenObject]:
        found = {}
        for text in self.thing:
            colors = self._reverse["color"].items() if "{color}" in text else [("", "")]
            for color_word, color in colors:
                for word, category in self._reverse["category"].items():
                    measure = THINGS[category].measure
                    name = text.format(category=word, color=color_word, measure=measure)
                    found[name] = SpokenObject(category, color)
        return found

    def _clauses(self, pattern: Pattern, found: re.Match[str]) -> list[Clause] | None:
        """Return what was found; None if a thing has a measure word that is not its own."""
        fields = [dict(fixed) for fixed in pattern.fixed]
        for number, slot in enumerate(pattern.slots):
            word = found[f"s{number}"]
            words = self._things if slot.table in ("thing", "other") else self._reverse[slot.table]
            if word not in words:
                return None
            fields[slot.clause][slot.field] = words[word]
        return [kind(**values) for kind, values in zip(pattern.kinds, fields, strict=True)]
