"""Says clauses in words, in many wordings, and reads them back, as strictly."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from proctor.core.errors import UnknownName, UserError
from proctor.instructions.chinese import Chinese
from proctor.instructions.clauses import Clause
from proctor.instructions.english import English
from proctor.instructions.grammar import Choices, Language, Pattern

MERGE_SHARE = 0.5
"""How often one phrase says several clauses, where there is one that can."""
Reading: TypeAlias = list[Clause]
LONGEST = 4000
"""Characters of an instruction that may be read."""

SPOKEN: dict[str, Language] = {language.code: language for language in (English(), Chinese())}
LANGUAGES = tuple(SPOKEN)


def _language_named(language: str) -> Language:
    if language not in SPOKEN:
        raise UnknownName("language", language, SPOKEN)
    return SPOKEN[language]


def say(clauses: Sequence[Clause], language: str, rng: np.random.Generator) -> str:
    """Put clauses into the words of `en` or `zh`; `rng` chooses among the many ways to say it."""
    spoken = _language_named(language)
    groups = _group_phrases(_phrases(clauses, spoken, rng), spoken, rng)
    texts: list[str] = []
    used: list[str] = []
    said = ""
    for number, group in enumerate(groups):
        openers: Sequence[str] = [
            opener for opener in spoken.following if opener not in used[-2:] or not opener
        ]
        if number == 0:
            openers = spoken.first if len(groups) > 1 else ("",)
        elif number == len(groups) - 1 and len(group) == 1:
            openers = spoken.last
        opener = "" if group[0].startswith(spoken.statements) else _pick(_other_than(said, openers), rng)
        used.append(opener)
        text, said = _joined(group, spoken, rng, _connective(opener))
        sentence = opener + text + spoken.end
        texts.append(sentence[0].upper() + sentence[1:])
    return spoken.space.join(texts)


def _pick(options: Sequence[str], rng: np.random.Generator) -> str:
    return options[int(rng.integers(len(options)))]


def _phrases(clauses: Sequence[Clause], spoken: Language, rng: np.random.Generator) -> list[str]:
    phrases, used = [], set[Pattern]()
    chosen: Choices = {}
    start = 0
    while start < len(clauses):
        rest = clauses[start:]
        fitting = [pattern for pattern in spoken.patterns if pattern.fits(rest, spoken.words)]
        several = [pattern for pattern in fitting if len(pattern) > 1]
        options = several if several and rng.random() < MERGE_SHARE else fitting
        options = [pattern for pattern in options if pattern not in used] or options
        if start == 0:
            options = [pattern for pattern in options if not pattern.text.startswith(spoken.resuming)]
        if not options:
            raise ValueError(f"there are no words for {rest[0]}")
        pattern = options[int(rng.integers(len(options)))]
        used.add(pattern)
        phrases.append(spoken.phrase(pattern, rest, rng, chosen))
        start += len(pattern)
    return phrases


def _group_phrases(phrases: list[str], spoken: Language, rng: np.random.Generator) -> list[list[str]]:
    """Group phrases into sentences of one to three."""
    groups: list[list[str]] = []
    room = 0
    for phrase in phrases:
        alone = phrase.startswith(spoken.statements)
        if room > 0 and not alone:
            groups[-1].append(phrase)
            room -= 1
        else:
            groups.append([phrase])
            room = 0 if alone else int(rng.choice(3, p=(0.25, 0.5, 0.25)))
    return groups


def _connective(words: str) -> str:
    """Return the word in an opener or joiner that is heard: `then` in `, and then `."""
    return words.strip(" ,，").removeprefix("and").strip()


def _other_than(said: str, options: Sequence[str]) -> Sequence[str]:
    """Leave out what would repeat a connective, if anything else is left."""
    return [option for option in options if not said or _connective(option) != said] or options


def _joined(phrases: list[str], spoken: Language, rng: np.random.Generator, said: str) -> tuple[str, str]:
    """Return the phrases as one sentence, and the connective said last."""
    text = phrases[0]
    for number, phrase in enumerate(phrases[1:], start=1):
        last = number == len(phrases) - 1
        joiners = [joiner for joiner in spoken.joiners if last or " and" not in joiner]
        if not last:
            joiners = [joiner for joiner in joiners if joiner in (", ", "，")] or joiners
        elif spoken.space:
            joiners = [joiner for joiner in joiners if joiner != ", "]
            if " and " in text + phrase:
                joiners = [joiner for joiner in joiners if " and " not in joiner]
        awkward = _awkward(phrases[number - 1], phrase)
        joiners = [joiner for joiner in joiners if joiner not in awkward] or joiners
        joiner = _pick(_other_than(said, joiners), rng)
        said = _connective(joiner)
        text += joiner + phrase
    return text, said


def _awkward(before: str, phrase: str) -> tuple[str, ...]:
    """Return joiners that do not go between two phrases: nobody says `go left and go right`, or 再在."""
    same_verb = before.split(maxsplit=1)[0] == phrase.split(maxsplit=1)[0]
    return (*((" and ",) if same_verb else ()), *(("，再",) if phrase.startswith(("在", "到")) else ()))


class Unreadable(UserError):
    """A text that is not made of the phrasebook's phrases, or that can be read in two ways."""


def read(text: str, language: str) -> list[Clause]:
    """Return what an instruction says; Unreadable if it has other words or can be read in two ways."""
    spoken = _language_named(language)
    if len(text) > LONGEST:
        raise Unreadable(f"expected at most {LONGEST} characters, found {len(text)}")
    *sentences, rest = text.strip().split(spoken.end)
    if rest:
        raise Unreadable(f"expected '{spoken.end}' after '{rest.strip()}'")
    clauses = [clause for sentence in sentences for clause in _read_sentence(sentence.strip(), spoken)]
    if not clauses:
        raise Unreadable("expected an instruction, found nothing")
    return clauses


def _read_sentence(sentence: str, spoken: Language) -> list[Clause]:
    lowered = sentence[:1].lower() + sentence[1:]
    openers = {*spoken.first, *spoken.following, *spoken.last}
    starts = [len(opener) for opener in openers if lowered.startswith(opener)]
    readings: list[Reading] = []
    for start in sorted(starts):
        for reading in _readings(lowered, start, spoken, {}):
            if reading not in readings:
                readings.append(reading)
    if len(readings) != 1:
        problem = "cannot be read" if not readings else f"can be read in {len(readings)} ways"
        raise Unreadable(f"'{sentence}' {problem}")
    return readings[0]


def _readings(text: str, start: int, spoken: Language, known: dict[int, list[Reading]]) -> list[Reading]:
    """Return all ways to read a text from a place to its end as phrases with joiners between them."""
    if start in known:
        return known[start]
    found: list[Reading] = []
    for clauses, end in spoken.readings(text, start):
        if end == len(text):
            found.append(clauses)
            continue
        for joiner in spoken.joiners:
            if text.startswith(joiner, end):
                rest = _readings(text, end + len(joiner), spoken, known)
                found += [clauses + reading for reading in rest if clauses + reading not in found]
    known[start] = found
    return found
