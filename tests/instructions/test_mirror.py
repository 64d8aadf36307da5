"""Left and right swapped: words with sides, words without, and the suite's own instructions."""

import pytest

from proctor.core.registry import suite_path
from proctor.exams.datasets import load_dataset
from proctor.instructions.mirror import mirror
from proctor.instructions.phrasebook import read


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Turn left, then go RIGHT.", "Turn right, then go LEFT."),
        ("Left-hand door, rightmost chair", "Right-hand door, leftmost chair"),
        ("Turn right before the table.", "Turn left before the table."),
        ("Make a right at the end.", "Make a left at the end."),
        ("Turn clockwise by 90 degrees.", "Turn counterclockwise by 90 degrees."),
        ("向左转，经过右边的沙发", "向右转，经过左边的沙发"),
        ("逆时针转", "顺时针转"),
        ("Right behind the sofa, bear slightly left.", "Right behind the sofa, bear slightly right."),
    ],
)
def test_sides_are_swapped_and_two_mirrors_give_the_text_back(text, expected):
    assert mirror(text) == expected
    assert mirror(expected) == text


@pytest.mark.parametrize(
    "text",
    [
        "Stop right in front of the sofa.",
        "When you have left the room, stop right there.",
        "The brightest copyright is upright.",
        "At a right angle to the wall.",
        "直走三米左右",
        "",
    ],
)
def test_words_that_tell_no_side_stay(text):
    assert mirror(text) == text


@pytest.mark.parametrize("suite", ["houses-v1", "houses-v1-zh"])
def test_the_mirror_of_an_instruction_is_read_as_the_mirrored_clauses(suite):
    changed = 0
    for episode in load_dataset(suite_path(suite)).episodes:
        mirrored = mirror(episode.instruction)
        assert mirror(mirrored) == episode.instruction
        swapped = repr(read(episode.instruction, episode.language)).replace("left", "#")
        swapped = swapped.replace("right", "left").replace("#", "right")
        assert repr(read(mirrored, episode.language)) == swapped
        changed += mirrored != episode.instruction
    assert changed > 150
