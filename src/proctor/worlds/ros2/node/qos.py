"""Quality of service: who hears whom."""

from __future__ import annotations

from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile, ReliabilityPolicy


def sensor_qos(reliability: str, durability: str, depth: int) -> QoSProfile:
    """Return a profile that keeps the last messages, by ROS 2's names: `BEST_EFFORT`, `VOLATILE`."""
    return QoSProfile(
        reliability=ReliabilityPolicy[reliability],
        durability=DurabilityPolicy[durability],
        history=HistoryPolicy.KEEP_LAST,
        depth=depth,
    )


SENSORS = sensor_qos("BEST_EFFORT", "VOLATILE", 10)
"""What simulators and drivers publish sensors with. A reader like this hears reliable writers, too."""
COMMANDS = sensor_qos("RELIABLE", "VOLATILE", 10)
CLOCK = sensor_qos("BEST_EFFORT", "VOLATILE", 1)
LATCHED = sensor_qos("RELIABLE", "TRANSIENT_LOCAL", 1)
"""For maps and static transforms: late subscribers still get the last one."""
