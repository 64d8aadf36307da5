"""A robot that speaks DDS and knows nothing of ROS 2, as a process of its own.

Publishes `cmd_vel_there`, `odom`, `scan`, `rgb` and `depth` all the time. Prints, as a line of JSON each, the
first messages that it hears on `cmd_vel`, `odom_here` and `rgb_here`, and goes when its stdin is closed.
"""

import dataclasses
import hashlib
import json
import math
import os
import struct
import sys
import time

from cyclonedds.core import InstanceState, Policy, Qos, ReadCondition, SampleState, ViewState, WaitSet
from cyclonedds.domain import DomainParticipant
from cyclonedds.pub import DataWriter
from cyclonedds.sub import DataReader
from cyclonedds.topic import Topic
from cyclonedds.util import duration
from dds_types import (
    Header,
    Image,
    LaserScan,
    Odometry,
    Point,
    Pose,
    PoseWithCovariance,
    Quaternion,
    Time,
    Twist,
    TwistWithCovariance,
    Vector3,
)

LOOPBACK = """<CycloneDDS><Domain Id="any"><General>
    <Interfaces><NetworkInterface name="lo" multicast="false"/></Interfaces>
    <AllowMulticast>false</AllowMulticast>
  </General><Discovery>
    <ParticipantIndex>auto</ParticipantIndex><MaxAutoParticipantIndex>30</MaxAutoParticipantIndex>
    <Peers><Peer address="localhost"/></Peers>
  </Discovery></Domain></CycloneDDS>"""
"""For CYCLONEDDS_URI, which is read when the process begins."""
SIDE = 160
"""Pictures are larger than a datagram."""
PIXELS = [(7 * i + i // 251) % 256 for i in range(3 * SIDE * SIDE)]
DEPTHS_M = [0.001 * (i % 60000) for i in range(SIDE * SIDE - 3)] + [math.nan, math.inf, 100.0]
RANGES_M = [math.inf, -math.inf, math.nan, 0.25, 1.5, 9.75]
PERIOD_S, LIFE_S = 0.1, 30.0
COMMON = (
    Policy.Durability.Volatile,
    Policy.History.KeepLast(10),
    Policy.DataRepresentation(use_cdrv0_representation=True),
)
BEST_EFFORT = Qos(Policy.Reliability.BestEffort, *COMMON)
RELIABLE = Qos(Policy.Reliability.Reliable(duration(seconds=1)), *COMMON)


def messages(count):
    """What is published, by topic; the count makes the stamp."""
    header = Header(Time(count, 500_000_000), "there")
    turned = Pose(Point(1.25, -2.5, 0.125), Quaternion(z=math.sin(0.3), w=math.cos(0.3)))
    moving = Twist(Vector3(x=0.5), Vector3(z=-0.25))
    covariance = [0.5 * i for i in range(36)]
    depth = struct.pack(f"<{len(DEPTHS_M)}f", *DEPTHS_M)
    return {
        "cmd_vel_there": moving,
        "odom": Odometry(header, "base", PoseWithCovariance(turned, covariance), TwistWithCovariance(moving)),
        "scan": LaserScan(header, -1.0, 1.0, 0.4, 0.0, 0.1, 0.05, 10.0, RANGES_M, [1.0]),
        "rgb": Image(header, SIDE, SIDE, "rgb8", 0, 3 * SIDE, PIXELS),
        "depth": Image(header, SIDE, SIDE, "32FC1", 0, 4 * SIDE, list(depth)),
    }


def main():
    participant = DomainParticipant(int(os.environ["ROS_DOMAIN_ID"]))
    writers = {
        name: DataWriter(
            participant,
            Topic(participant, f"rt/{name}", type(message)),
            RELIABLE if isinstance(message, Twist) else BEST_EFFORT,
        )
        for name, message in messages(0).items()
    }
    kinds = {
        "cmd_vel": (Twist, RELIABLE),
        "odom_here": (Odometry, BEST_EFFORT),
        "rgb_here": (Image, BEST_EFFORT),
    }
    readers = {
        name: DataReader(participant, Topic(participant, f"rt/{name}", kind), qos)
        for name, (kind, qos) in kinds.items()
    }
    waiting = WaitSet(participant)
    for reader in readers.values():
        waiting.attach(ReadCondition(reader, SampleState.NotRead | ViewState.Any | InstanceState.Alive))
    begin_s, count, heard = time.monotonic(), 0, set()
    while len(heard) < len(readers) and time.monotonic() < begin_s + LIFE_S:
        if time.monotonic() >= begin_s + count * PERIOD_S:
            count += 1
            for name, message in messages(count).items():
                writers[name].write(message)
        waiting.wait(duration(milliseconds=20))
        for name, reader in readers.items():
            for message in reader.take(10):
                if name not in heard and dataclasses.is_dataclass(message):  # not news of a writer that left
                    heard.add(name)
                    tell(name, message)
    if len(heard) < len(readers):
        sys.exit(f"heard only {sorted(heard)}")
    sys.stdin.read()


def tell(name, message):
    said = dataclasses.asdict(message)
    if isinstance(message, Image):
        said["data"] = hashlib.sha256(bytes(message.data)).hexdigest()
    print(json.dumps({"topic": name, "message": said}), flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
