"""Pictures as messages and as arrays."""

import array
import math
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sensor_msgs.msg import Image

from proctor.worlds.ros2.node.convert import COLOURS, depth_of, rgb_of

SIDES = st.integers(1, 7)


def message(encoding, width, height, step, data, *, is_bigendian=0):
    made = Image(encoding=encoding, width=width, height=height, step=step, is_bigendian=is_bigendian)
    made.data = array.array("B", bytes(data))
    return made


def padded(rows, padding):
    """Bytes of rows, with something in between that is not to be seen."""
    return b"".join(row + b"\xaa" * padding for row in rows)


@given(
    hnp.arrays(np.uint8, st.tuples(SIDES, SIDES, st.just(4))),
    st.sampled_from([*COLOURS]),
    st.integers(0, 5),
)
def test_bytes_mean_what_the_encoding_says(pixels, encoding, padding):
    channels = len(encoding) - 1
    rows = [row[:, :channels].tobytes() for row in pixels]
    height, width = pixels.shape[:2]
    sent = message(encoding, width, height, width * channels + padding, padded(rows, padding))
    wanted = pixels[..., [encoding.index(colour) for colour in "rgb"]]
    rgb = rgb_of(sent)
    np.testing.assert_array_equal(rgb, wanted)
    assert rgb.dtype == np.uint8
    assert rgb.flags.c_contiguous
    assert rgb.flags.writeable


@given(
    st.lists(st.lists(st.floats(width=32), min_size=3, max_size=3), min_size=1, max_size=4),
    st.booleans(),
    st.integers(0, 5),
    st.none() | st.floats(0.1, 200),
)
def test_metres_become_millimetres_and_nothing_becomes_zero(rows, is_bigendian, padding, far_m):
    order = ">" if is_bigendian else "<"
    data = padded([struct.pack(f"{order}3f", *row) for row in rows], padding)
    sent = message("32FC1", 3, len(rows), 12 + padding, data, is_bigendian=int(is_bigendian))
    depth = depth_of(sent, far_m)
    assert depth.dtype == np.uint16
    assert depth.dtype.isnative
    clip_m = math.inf if far_m is None else far_m
    for metres, found in zip(np.ravel(rows), depth.ravel(), strict=True):
        if not 0.0 < metres < min(clip_m, 65.5355):
            assert found == 0
        elif metres < 0.9998 * min(clip_m, 65.5):
            assert abs(float(found) - 1000 * metres) <= 0.51


@given(
    hnp.arrays(np.uint16, st.tuples(SIDES, SIDES)),
    st.booleans(),
    st.integers(0, 5),
    st.sampled_from([None, 30.0]),
)
def test_millimetres_stay_as_they_are(depth, is_bigendian, padding, far_m):
    rows = [row.astype(">u2" if is_bigendian else "<u2").tobytes() for row in depth]
    height, width = depth.shape
    data = padded(rows, padding)
    sent = message("16UC1", width, height, 2 * width + padding, data, is_bigendian=int(is_bigendian))
    found = depth_of(sent, far_m)
    np.testing.assert_array_equal(found, depth if far_m is None else np.where(depth < 29997, depth, 0))
    assert found.dtype == np.uint16
    assert found.dtype.isnative
    assert found.flags.c_contiguous
    assert found.flags.aligned


def test_background_at_the_far_clip_is_no_return():
    far = message("32FC1", 3, 1, 12, struct.pack("<3f", 9.9999, 10.0, 9.5))
    assert depth_of(far, 10.0).tolist() == [[0, 0, 9500]]
    assert depth_of(far).tolist() == [[10000, 10000, 9500]]
    near = message("16UC1", 3, 1, 6, struct.pack("<3H", 29996, 29997, 30000))
    assert depth_of(near, 30.0).tolist() == [[29996, 0, 0]]
    edges = message("32FC1", 4, 1, 16, struct.pack("<4f", 65.535, 65.536, 100.0, 1e-4))
    assert depth_of(edges).tolist() == [[65535, 0, 0, 0]]


def test_pictures_of_two_messages_share_no_memory_and_plain_ones_are_not_copied():
    first, second = (message("rgb8", 2, 1, 6, [value] * 6) for value in (1, 2))
    rgb = rgb_of(first)
    assert np.shares_memory(rgb, np.frombuffer(first.data, np.uint8))
    assert not np.shares_memory(rgb, rgb_of(second))


@pytest.mark.parametrize(
    ("sent", "complaint"),
    [
        (message("mono8", 2, 1, 2, [1, 2]), "'mono8', expected that of a colour: rgb8, rgba8, bgr8, bgra8"),
        (message("16UC1", 2, 1, 4, [0] * 4), "'16UC1', expected that of a colour"),
        (message("", 0, 0, 0, []), "the encoding is '', expected"),
        (message("rgb8", 2, 2, 6, [0] * 11), "11 bytes of data, expected 12: 2 rows of 6"),
        (message("rgb8", 2, 2, 6, [0] * 13), "13 bytes of data, expected 12"),
        (message("rgb8", 2, 2, 5, [0] * 10), "step is 5 bytes, but a row of 2 pixels of rgb8 needs 6"),
        (message("rgb8", 0, 2, 0, []), "a picture of 0x2"),
        (message("rgb8", 2**31, 2**31, 2**32 - 1, []), "step is 4294967295 bytes, but a row of 2147483648"),
    ],
)  # fmt: skip
def test_wrong_pictures_are_refused_with_what_would_be_right(sent, complaint):
    with pytest.raises(ValueError, match=complaint):
        rgb_of(sent)


def test_wrong_depth_is_refused():
    with pytest.raises(ValueError, match="'rgb8', expected that of a depth: 16UC1, 32FC1"):
        depth_of(message("rgb8", 1, 1, 3, [0] * 3))
    with pytest.raises(ValueError, match="step is 4 bytes, but a row of 2 pixels of 32FC1 needs 8"):
        depth_of(message("32FC1", 2, 1, 4, [0] * 4))
