"""Quality of service: who hears whom."""

from __future__ import annotations

from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile, ReliabilityPolicy

DEPTH = 10

SENSORS = QoSProfile(
    reliability=ReliabilityPolicy.BEST_EFFORT,
    durability=DurabilityPolicy.VOLATILE,
    history=HistoryPolicy.KEEP_LAST,
    depth=DEPTH,
)
"""What simulators and drivers publish sensors with. A reader like this hears reliable writers, too."""

COMMANDS = QoSProfile(
    reliability=ReliabilityPolicy.RELIABLE,
    durability=DurabilityPolicy.VOLATILE,
    history=HistoryPolicy.KEEP_LAST,
    depth=DEPTH,
)

CLOCK = QoSProfile(
    reliability=ReliabilityPolicy.BEST_EFFORT,
    durability=DurabilityPolicy.VOLATILE,
    history=HistoryPolicy.KEEP_LAST,
    depth=1,
)

LATCHED = QoSProfile(
    reliability=ReliabilityPolicy.RELIABLE,
    durability=DurabilityPolicy.TRANSIENT_LOCAL,
    history=HistoryPolicy.KEEP_LAST,
    depth=1,
)
"""For maps and static transforms: who comes later still gets the last one."""


def sensor_qos(reliability: str, durability: str, depth: int) -> QoSProfile:
    """Return how to listen, of the words that ROS 2 uses: `BEST_EFFORT`, `VOLATILE`."""
    return QoSProfile(
        reliability=ReliabilityPolicy[reliability],
        durability=DurabilityPolicy[durability],
        history=HistoryPolicy.KEEP_LAST,
        depth=depth,
    )
