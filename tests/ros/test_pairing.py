"""Which colour picture belongs to which depth picture."""

import math

from hypothesis import given
from hypothesis import strategies as st

from proctor.worlds.ros2.node.topic import Stamped
from proctor.worlds.ros2.robot.sensors import TOLERANCE_S, newest_pair


def frames(*stamps):
    return [Stamped(stamp_s, f"at {stamp_s}") for stamp_s in stamps]


def stamps_of(pair):
    return None if pair is None else (pair[0].stamp_s, pair[1].stamp_s)


def paired(ones, others, after_s=-math.inf):
    return stamps_of(newest_pair(frames(*ones), frames(*others), after_s))


def test_equal_stamps_belong_together():
    assert paired([1.0, 1.1, 1.2], [1.0, 1.1]) == (1.1, 1.1)
    assert paired([1.0], [1.0]) == (1.0, 1.0)
    assert paired([1.1], [1.0]) is None
    assert paired([], [1.0]) is None


def test_what_is_not_newer_does_not_count():
    assert paired([1.0, 1.1], [1.0, 1.1], after_s=1.0) == (1.1, 1.1)
    assert paired([1.0, 1.1], [1.0, 1.1], after_s=1.1) is None
    assert paired([1.0, 1.01], [1.0, 1.005], after_s=1.0) is None


def test_a_partner_is_waited_for_as_long_as_it_may_come():
    assert paired([1.0], [0.99]) is None, "one of 1.0 may be on its way"
    assert paired([1.0], [0.99, 1.0]) == (1.0, 1.0)
    assert paired([1.0, 1.033], [0.99, 1.023]) == (1.0, 0.99)
    assert paired([1.0, 1.1], [1.05, 1.15]) is None, "too far apart"


STAMPS = st.lists(st.integers(0, 200), unique=True, max_size=10).map(lambda t: [0.005 * i for i in sorted(t)])


@given(STAMPS, STAMPS, st.floats(0, 1))
def test_pairs_are_near_newer_and_the_best_there_is(ones, others, after_s):
    found = paired(ones, others, after_s)
    equal = [stamp_s for stamp_s in ones if stamp_s in others and stamp_s > after_s]
    if found is None:
        assert not equal
    else:
        assert min(found) > after_s
        assert abs(found[0] - found[1]) <= TOLERANCE_S + 1e-12
        assert abs(found[0] - found[1]) <= min(abs(found[0] - t) for t in others if t > after_s)
        assert found[0] >= max(equal, default=0.0)


@given(STAMPS, STAMPS, st.integers(0, 10), st.integers(0, 10))
def test_no_better_partner_comes_later(ones, others, heard, heard_others):
    early = paired(ones[:heard], others[:heard_others])
    if early is not None:
        assert abs(early[0] - early[1]) <= min(abs(early[0] - stamp_s) for stamp_s in others)
