import pytest

from proctor.core.registry import build
from proctor.core.types import Action, EpisodeInfo
from proctor.exams.vln.baselines import BlindPolicy
from proctor.exams.vln.exam import VlnExam

F, L, R, S = Action.FORWARD, Action.LEFT, Action.RIGHT, Action.STOP


def actions(text, language="en"):
    policy = build("policy", "blind", {}, VlnExam.baselines)
    policy.reset(EpisodeInfo(episode_id="e", instruction=text, max_steps=500, seed=0, language=language))
    done = []
    while not done or done[-1] != S:
        done.append(policy.act({}))
    return done


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Turn left. Walk about 2 metres and stop next to the bed.", [L] * 6 + [F] * 8),
        ("Turn around and stop in front of the sofa.", [L] * 12 + [F] * 12),
        ("Bear right. Turn left into the hall and stop by the bed.", [R] * 2 + [F] * 12 + [L] * 6 + [F] * 12),
        ("Turn sharply to the left and then wait beside the bed.", [L] * 9 + [F] * 12),
        (
            "Leave the hall and go into the study. Turn right, then stop by the bed.",
            [F] * 12 + [R] * 6 + [F] * 12,
        ),
        ("Go to the kitchen and stop by the fridge.", [F] * 24),
        ("Stay in the kitchen and stop by the fridge.", [F] * 12),
    ],
)
def test_does_what_is_said_with_closed_eyes(text, expected):
    assert actions(text) == [*expected, S]


def test_reads_chinese():
    assert actions("左转，向前走大约2米。停在床旁边。", "zh") == [*[L] * 6, *[F] * 8, S]


def test_goes_by_left_and_right_where_it_cannot_read():
    assert actions("Hang a left past the bar.") == [*[F] * 12, *[L] * 6, *[F] * 12, S]
    assert actions("在右边第二家店停下。", "zh") == [*[F] * 12, *[R] * 6, *[F] * 12, S]


@pytest.mark.parametrize("text", ["", ".", "Beam me up.", "。", "\0", "LEFT" * 10_000])
@pytest.mark.parametrize("language", ["en", "zh", "tlh"])
def test_never_fails(text, language):
    assert actions(text, language)[-1] == S


def test_gives_up_reading_endless_turns():
    assert len(actions("left " * 10_000)) < 500


def test_knows_no_truth():
    assert not BlindPolicy.privileged
