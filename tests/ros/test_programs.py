"""Benchmarks and examples that need ROS 2 import, and their pictures are those that we read."""

import sys

import numpy as np
import pytest
from programs import REPOSITORY, ROS_FILES, import_failures

from proctor.worlds.ros2.node.convert import depth_of, rgb_of


def test_what_is_run_by_hand_imports():
    assert {path.parent.name for path in ROS_FILES} == {"benchmarks", "ros2"}
    assert import_failures(ROS_FILES) == []


@pytest.mark.parametrize("encoding", ["rgb8", "rgba8", "bgr8", "16UC1", "32FC1"])
def test_the_pictures_of_the_benchmarks_are_read_exactly(encoding, monkeypatch):
    monkeypatch.setattr(sys, "path", [str(REPOSITORY), *sys.path])
    from benchmarks.ros_messages import image_message  # noqa: PLC0415 - it is found only now

    rng = np.random.default_rng(0)
    if encoding in ("16UC1", "32FC1"):
        depth = rng.integers(1, 60_000, (6, 8), dtype=np.uint16)
        np.testing.assert_array_equal(depth_of(image_message(depth, encoding)), depth)
    else:
        rgb = rng.integers(0, 256, (6, 8, 3), dtype=np.uint8)
        np.testing.assert_array_equal(rgb_of(image_message(rgb, encoding)), rgb)
