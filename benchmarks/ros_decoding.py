"""Pictures of 640x480 from messages to arrays, beside what else does it; see `bench_ros.py`.

Runs where rclpy is, and prints one line of JSON: seconds of ours and of the other, by name.
"""

import json
import timeit

import numpy as np
from PIL import Image as Pillow
from rclpy.serialization import deserialize_message, serialize_message
from sensor_msgs.msg import Image

from benchmarks.ros_messages import image_message
from proctor.worlds.ros2.node.convert import depth_of, rgb_of

WIDTH, HEIGHT = 640, 480
ROUNDS, CALLS = 20, 10


def side_by_side(ours, theirs) -> tuple[float, float]:
    """Return the quickest of many rounds of both, which take turns."""
    rounds = [[timeit.timeit(call, number=CALLS) / CALLS for call in (ours, theirs)] for _ in range(ROUNDS)]
    quickest = np.min(rounds, axis=0)
    return float(quickest[0]), float(quickest[1])


def main() -> None:
    rng = np.random.default_rng(0)
    rgb = rng.integers(0, 256, (HEIGHT, WIDTH, 3), dtype=np.uint8)
    depth = rng.integers(0, 10_000, (HEIGHT, WIDTH), dtype=np.uint16)
    plain, rgba, bgr = (image_message(rgb, encoding) for encoding in ("rgb8", "rgba8", "bgr8"))
    metres = image_message(depth, "32FC1")
    wire = serialize_message(plain)

    def pillow(message, layout):
        size = (message.width, message.height)
        return np.asarray(Pillow.frombytes("RGB", size, message.data, "raw", layout, message.step))

    def numpy_alone():
        values = np.frombuffer(metres.data, "<f4").reshape(HEIGHT, WIDTH)
        valid = np.isfinite(values) & (values > 0) & (values < 65.5355)
        return np.where(valid, np.rint(1000 * np.where(valid, values, 0)), 0).astype(np.uint16)

    np.testing.assert_array_equal(rgb_of(rgba), pillow(rgba, "RGBX"))
    np.testing.assert_array_equal(rgb_of(bgr), pillow(bgr, "BGR"))
    np.testing.assert_array_equal(depth_of(metres), numpy_alone())
    found = {
        "rgb8 (vs rclpy's part)": side_by_side(
            lambda: rgb_of(plain), lambda: deserialize_message(wire, Image)
        ),
        "rgba8 (vs Pillow)": side_by_side(lambda: rgb_of(rgba), lambda: pillow(rgba, "RGBX")),
        "bgr8 (vs Pillow)": side_by_side(lambda: rgb_of(bgr), lambda: pillow(bgr, "BGR")),
        "32FC1 (vs numpy, straightforward)": side_by_side(lambda: depth_of(metres), numpy_alone),
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main()
