"""Pictures from one process to another over ROS 2: how late they come, and how many never.

Runs where rclpy is: `.venv-ros/bin/python -m benchmarks.ros_pictures` prints one line of JSON.
"""

import argparse
import json
import subprocess
import sys
import threading
import time

import numpy as np
from sensor_msgs.msg import Image

from benchmarks.ros_messages import image_message, numbered
from proctor.worlds.ros2.node.convert import depth_of, rgb_of
from proctor.worlds.ros2.node.node import SENSORS, RosNode

WIDTH, HEIGHT = 640, 480
MATCH_S = 20.0
LAST_S = 1.0
"""Pictures that come later than this after the last one was sent are lost."""


def send(frames: int, hz: float, encodings: tuple[str, str]) -> None:
    """Publish pairs of pictures; the number of a pair is its stamp in seconds."""
    rng = np.random.default_rng(0)
    rgb = rng.integers(0, 256, (HEIGHT, WIDTH, 3), dtype=np.uint8)
    depth = rng.integers(1, 10_000, (HEIGHT, WIDTH), dtype=np.uint16)
    with RosNode("camera") as node:
        pairs = [
            (node.create_publisher(Image, topic, SENSORS), image_message(picture, encoding))
            for topic, picture, encoding in zip(("rgb", "depth"), (rgb, depth), encodings, strict=True)
        ]
        matched = node.wait_until(
            lambda: all(publisher.get_subscription_count() > 0 for publisher, _ in pairs), MATCH_S
        )
        assert matched, "nobody listens"
        never, due_s = threading.Event(), time.monotonic()
        for frame in range(frames):
            never.wait(max(0.0, due_s - time.monotonic()))
            due_s += 1 / hz
            for publisher, message in pairs:
                publisher.publish(numbered(message, frame))
        print("sent", flush=True)
        sys.stdin.read()  # until all is counted


def receive(frames: int, hz: float, encodings: tuple[str, str]) -> dict[str, float]:
    """Let another process send, and take the pictures in as an agent would."""
    latencies_s: list[float] = []
    decode_s: list[float] = []
    with RosNode("agent") as node:

        def listen(topic: str, decode) -> None:
            def hear(message, info) -> None:
                latencies_s.append(1e-9 * (time.time_ns() - info["source_timestamp"]))
                begin_s = time.perf_counter()
                decode(message)
                decode_s.append(time.perf_counter() - begin_s)

            node.create_subscription(Image, topic, hear, SENSORS)

        listen("rgb", rgb_of)
        listen("depth", depth_of)
        command = [sys.executable, "-m", "benchmarks.ros_pictures", "--sender"]
        command += ["--frames", str(frames), "--hz", str(hz), "--encodings", *encodings]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as sender:
            try:
                assert any(line == "sent\n" for line in sender.stdout), (
                    "the sender failed"
                )  # Fast DDS logs, too
                node.wait_until(lambda: len(latencies_s) == 2 * frames, LAST_S)
            finally:
                sender.stdin.close()
    late = np.array(latencies_s) if latencies_s else np.array([np.inf])
    return {
        "sent": 2 * frames,
        "lost": 2 * frames - len(latencies_s),
        "p50_s": float(np.percentile(late, 50)),
        "p95_s": float(np.percentile(late, 95)),
        "max_s": float(late.max()),
        "decode_s": float(np.median(decode_s or [np.inf])),
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--sender", action="store_true")
    parser.add_argument("--frames", type=int, default=300)
    parser.add_argument("--hz", type=float, default=30.0)
    parser.add_argument("--encodings", nargs=2, default=("rgb8", "16UC1"))
    asked = parser.parse_args()
    role = send if asked.sender else receive
    found = role(asked.frames, asked.hz, tuple(asked.encodings))
    if found is not None:
        print(json.dumps(found))


if __name__ == "__main__":
    main()
