import re
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proctor.core.errors import UnknownName
from proctor.instructions.clauses import (
    Cross,
    Enter,
    Forward,
    GoTo,
    Leave,
    Pass,
    SpokenObject,
    Stay,
    StopAt,
    Toward,
    Turn,
)
from proctor.instructions.phrasebook import LANGUAGES, SPOKEN, Unreadable, read, say
from proctor.instructions.reference import UNNAMED
from proctor.instructions.vocabulary import COLORS, ROOMS, THINGS
from proctor.scenes.colors import PALETTE
from proctor.scenes.floor_plan import ROOM_KINDS
from proctor.scenes.houses import generate_house

DIRECTIONS = ("left", "right", "slightly left", "slightly right", "sharply left", "sharply right", "around")
hands = st.sampled_from(["left", "right"])
rooms = st.sampled_from(sorted(ROOMS))
things = st.builds(SpokenObject, st.sampled_from(sorted(THINGS)), st.sampled_from(["", *sorted(COLORS)]))
CLAUSES = (
    st.builds(Turn, st.sampled_from(DIRECTIONS)),
    st.builds(Forward, st.integers(2, 10)),
    st.builds(Toward, things),
    st.builds(Leave, rooms),
    st.builds(
        Enter,
        rooms,
        st.sampled_from(["", *["left", "right", "ahead"]]),
        st.sampled_from(["", "door", "archway"]),
    ),
    st.builds(Cross, rooms),
    st.builds(Pass, things, hands),
    st.builds(GoTo, rooms),
    st.builds(Stay, rooms),
    st.builds(StopAt, st.sampled_from(["next to", "in front of"]), things),
    st.builds(StopAt, st.just("between"), things, things),
)
WAY = [
    Leave("study"),
    Enter("hall", "", "door"),
    Turn("left"),
    Pass(SpokenObject("sofa", "red"), "right"),
    StopAt("next to", SpokenObject("bed")),
]


@pytest.mark.parametrize("language", LANGUAGES)
@given(clauses=st.lists(st.one_of(*CLAUSES), min_size=1, max_size=12), seed=st.integers(0, 2**32))
@settings(max_examples=150)
def test_what_is_said_is_read_again(language, clauses, seed):
    text = say(clauses, language, np.random.default_rng(seed))
    assert read(text, language) == clauses, text


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_pattern_is_used_and_read_again(language):
    spoken, rng, used = SPOKEN[language], np.random.default_rng(0), set()
    makers = {}
    for clauses in _examples():
        for pattern in spoken.patterns:
            if pattern.fits(clauses, spoken.words):
                used.add(pattern.text)
                phrase = spoken.phrase(pattern, clauses, rng, makers)
                assert read(phrase + spoken.end, language) == clauses[: len(pattern)], phrase
    assert {pattern.text for pattern in spoken.patterns} == used


def _examples():
    bed, lamp = SpokenObject("bed"), SpokenObject("floor lamp", "green")
    enters = [Enter("hall", side, via) for side in ("", "left", "ahead") for via in ("", "door", "archway")]
    stops = [StopAt("next to", bed), StopAt("in front of", lamp), StopAt("between", bed, lamp)]
    yield from ([Turn(direction)] for direction in DIRECTIONS)
    yield from (
        [clause]
        for clause in (Forward(4), Toward(lamp), Leave("gym"), Cross("gym"), GoTo("gym"), Stay("gym"))
    )
    yield from ([enter] for enter in enters)
    yield from ([Leave("gym"), enter] for enter in enters)
    yield from ([first, stop] for first in (GoTo("gym"), Stay("gym")) for stop in stops)
    yield from ([stop] for stop in stops)
    yield [Pass(bed, "left"), Pass(lamp, "right")]
    yield [Cross("gym"), Cross("study"), Enter("hall")]
    yield [Cross("gym"), Enter("hall")]


@pytest.mark.parametrize("language", LANGUAGES)
def test_one_way_is_told_in_very_many_words(language):
    rng = np.random.default_rng(1)
    told = [say(WAY, language, rng) for _ in range(300)]
    assert len({*told}) > 280
    openings = [text[:8] for text in told]
    assert max(openings.count(opening) for opening in openings) < 100


def test_english_sentences_begin_with_capitals_and_end_with_stops():
    rng = np.random.default_rng(2)
    for _ in range(100):
        text = say(WAY, "en", rng)
        assert text.endswith(".")
        assert "  " not in text
        assert all(sentence[0].isupper() for sentence in text[:-1].split(". "))
        assert "the the" not in text.lower()


@pytest.mark.parametrize("language", LANGUAGES)
def test_nothing_goes_on_before_it_began(language):
    rngs = [np.random.default_rng(seed) for seed in range(60)]
    texts = [say(WAY[start:], language, rng).lower() for rng in rngs for start in (1, 3)]
    assert not [text for text in texts if text.removeprefix("to begin, ").startswith(("continue", "继续"))]


@pytest.mark.parametrize(("language", "words"), [("en", ["then"]), ("zh", ["然后", "接着", "随后", "之后"])])
def test_connectives_are_not_said_twice_in_a_row(language, words):
    texts = [say(WAY, language, np.random.default_rng(seed)) for seed in range(200)]
    phrases = [re.split(r"[,.，。] ?(?:and )?| and ", text) for text in texts]
    assert not [
        (before, phrase)
        for group in phrases
        for before, phrase in pairwise(group)
        for word in words
        if before.lower().startswith(word) and phrase.lower().startswith(word)
    ]


def test_chinese_has_its_own_punctuation():
    rng = np.random.default_rng(2)
    for _ in range(100):
        text = say(WAY, "zh", rng)
        assert text.endswith("。")
        assert text.isascii() is False
        assert not any(mark in text for mark in (",", ".", " ", "的的", "，，"))


def test_a_thing_keeps_one_name_in_one_instruction():
    rng = np.random.default_rng(3)
    for _ in range(50):
        text = say(
            [GoTo("storage room"), Toward(SpokenObject("sofa")), StopAt("next to", SpokenObject("sofa"))],
            "en",
            rng,
        )
        assert not ("sofa" in text and "couch" in text)


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Turn left and sing.", "en"),
        ("Turn left", "en"),
        ("Stop next to the red spaceship.", "en"),
        ("Enter the dungeon.", "en"),
        ("", "en"),
        (".", "en"),
        ("左转，唱歌。", "zh"),
        ("Turn left.", "zh"),
        ("那把红色沙发。", "zh"),
        ("Turn left. " * 500, "en"),
    ],
)
def test_other_words_cannot_be_read(text, language):
    with pytest.raises(Unreadable):
        read(text, language)


def test_a_wrong_measure_word_cannot_be_read():
    assert read("停在那张红色沙发旁边。", "zh") == [StopAt("next to", SpokenObject("sofa", "red"))]
    with pytest.raises(Unreadable):
        read("停在那台红色沙发旁边。", "zh")


def test_unknown_languages_are_named():
    with pytest.raises(UnknownName, match="available: en, zh"):
        say(WAY, "tlh", np.random.default_rng(0))
    with pytest.raises(UnknownName, match="available: en, zh"):
        read("nuqneH.", "tlh")


def test_there_is_a_word_for_all_that_houses_hold():
    assert {*ROOM_KINDS} <= {*ROOMS}
    assert {*PALETTE} <= {*COLORS}
    for seed in range(16):
        for item in generate_house(seed, rooms=10).scene.objects:
            assert item.category in THINGS or item.category in UNNAMED, item.category
            assert item.color in COLORS or not item.color, item.color
            assert item.room in ROOMS or not item.room, item.room


def test_no_two_things_share_a_name():
    for table in (THINGS, ROOMS, COLORS):
        for language in LANGUAGES:
            names = [name for word in table.values() for name in getattr(word, language)]
            assert len(names) == len({*names})
