"""Which pictures of two cameras belong together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, NamedTuple, TypeVar

Value = TypeVar("Value")
Other = TypeVar("Other")

TOLERANCE_S = 0.02
"""Pictures of a robot that stamps them apart belong together if it is by no more than this."""


class Frame(NamedTuple, Generic[Value]):
    """Something sensed, and when."""

    stamp_s: float
    value: Value


def newest_pair(
    ones: Sequence[Frame[Value]], others: Sequence[Frame[Other]], after_s: float
) -> tuple[Frame[Value], Frame[Other]] | None:
    """Return the newest pair of frames, both taken after a time, or None if there is none yet.

    Frames of the same stamp are a pair. Frames that are a little apart are one as soon as neither can get a
    better partner, since the stamps of each kind rise.

    Args:
        ones: Frames in the order of their stamps.
        others: Frames in the order of their stamps.
        after_s: Frames of this time or before do not count.
    """
    ones = [frame for frame in ones if frame.stamp_s > after_s]
    others = [frame for frame in others if frame.stamp_s > after_s]
    if not ones or not others:
        return None
    complete_s = min(ones[-1].stamp_s, others[-1].stamp_s)  # up to here, all is there that will be
    for one in reversed(ones):
        other = min(others, key=lambda frame: abs(frame.stamp_s - one.stamp_s))
        apart_s = abs(other.stamp_s - one.stamp_s)
        if apart_s == 0 or (apart_s <= TOLERANCE_S and max(one.stamp_s, other.stamp_s) <= complete_s):
            return one, other
    return None
