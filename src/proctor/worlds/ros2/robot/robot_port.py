"""A robot behind ROS 2 topics, as the motion executor drives it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple, cast

import numpy as np
from nav_msgs.msg import Odometry
from sensor_msgs.msg import LaserScan

from proctor.core.errors import SimulationError
from proctor.core.types import Pose2, Scan
from proctor.robots.held import Held
from proctor.worlds.ros2.node.convert import scan_of, seconds
from proctor.worlds.ros2.node.node import RosNode
from proctor.worlds.ros2.node.robot_clock import RobotClock
from proctor.worlds.ros2.node.topic import Topic, TwistTopic, Value
from proctor.worlds.ros2.robot.odometry import STALE_S, Moved, Track, read_odometry

SCANNER_S = 2.0
"""So long, in real time, a driver waits for the publisher of scans of a new robot to be discovered."""
NO_SCAN = Scan(np.empty(0), 0.0, 0.0, 0.0, 0.0)  # of a robot without a scanner


class _Heard(NamedTuple):
    moved: Moved
    message: Any  # the geometry_msgs/Pose


class RosRobotPort:
    """Drives a robot by its `odom` and `scan`, through `cmd_vel`, in the robot's own time.

    A robot whose odometry or scan is late or broken is commanded to stop until they are back. What is missing
    for longer than the timeout (in real time) raises SimulationError, as does time that stands still, or
    jumps back while the robot moves, and a `cmd_vel` that nobody listens to: the message says what the graph
    of nodes shows. A robot whose `scan` nobody publishes is driven without one, and the log says so once.
    `on_scan` gets each scan, in the node's thread.
    """

    def __init__(
        self,
        node: RosNode,
        clock: RobotClock,
        *,
        silence_timeout_s: float = 5.0,
        on_scan: Callable[[Scan], None] | None = None,
    ) -> None:
        self._node, self._clock, self._timeout_s, self._on_scan = node, clock, silence_timeout_s, on_scan
        self._is_moving, self._jumps = False, clock.jumps
        self._told, self._track, self._held = np.zeros(3), Track(), Held()
        self._odom_heard_s = self._scan_heard_s = 0.0
        self._scanner_due_s, self._told_no_scanner = 0.0, False
        self._await_scanner()
        self.cmd_vel = TwistTopic(node)
        self.odom: Topic[_Heard] = Topic(
            node, Odometry, "odom", self._read_odometry, on_value=self._note_odometry
        )
        self.scans: Topic[Scan] = Topic(node, LaserScan, "scan", _read_scan, on_value=self._note_scan)

    def odometry(self) -> Pose2:
        """Return the newest pose in the odometry frame."""
        return self.timed_odometry()[1]

    def timed_odometry(self) -> tuple[float, Pose2]:
        """Return the newest pose in the odometry frame, and the robot's time when it was measured.

        That is its stamp, or when it was heard, if the odometry is stamped by another clock.
        """
        moved = self._fresh(self.odom, lambda: self._odom_heard_s).moved
        is_foreign = abs(self.now_s() - moved.stamp_s) > STALE_S
        return self._odom_heard_s if is_foreign else moved.stamp_s, moved.pose_odom

    def scan(self) -> Scan:
        """Return the newest scan; one without beams if the robot has no scanner."""
        if not self._has_scanner():
            self._tell_no_scanner()
            return NO_SCAN
        return self._fresh(self.scans, lambda: self._scan_heard_s)

    def in_contact(self) -> bool:
        """Tell whether the robot has hardly moved for half a second, though it was told to."""
        return self._held.is_held and not self.cmd_vel.is_closed

    def command(self, linear_mps: float, angular_radps: float) -> None:
        """Drive at this velocity until the next command. If nobody listens, all but a stop raise."""
        moves = linear_mps != 0 or angular_radps != 0
        if not self._is_moving:
            self._jumps = self._clock.jumps  # that time was set back while the robot stood is no fault
        self._is_moving = moves
        if moves and not self._node.wait_until(self.cmd_vel.is_heard, self._timeout_s):
            raise SimulationError(
                f"the robot cannot be driven: {self.cmd_vel.diagnosis()}. Is the simulation running, in game"
                " mode, and is its drive enabled?"
            )
        self._tell(linear_mps, angular_radps)

    def now_s(self) -> float:
        """Return the robot's time."""
        return self._clock.now_s

    def wait(self, duration_s: float, alarm: Callable[[], bool] | None = None) -> None:
        """Let this much of the robot's time pass; ends early if after a message there is an alarm."""
        until_s, jumps, silent_s = self.now_s() + duration_s - 1e-6, self._clock.jumps, 0.0
        while self.now_s() < until_s and not (alarm is not None and alarm()):
            before_s, begin_s = self.now_s(), time.monotonic()
            self._await_message(self._timeout_s - silent_s)
            if self._clock.jumps != jumps:
                return  # the robot stands, and nobody knows how long it did
            silent_s = 0.0 if self.now_s() != before_s else silent_s + time.monotonic() - begin_s

    def catch_up(self) -> None:
        """Wait until the robot's time goes on: moves count from then, not from before a pause.

        Shortly after the start, and after a robot with a scanner was forgotten, also wait until the publisher
        of scans is discovered.
        """
        now_s = self.now_s()
        if not self._node.wait_until(lambda: self.now_s() != now_s, self._timeout_s):
            raise SimulationError(self._standstill())
        undiscovered_s = self._scanner_due_s - time.monotonic()
        if undiscovered_s > 0:
            self._node.wait_until(self._has_scanner, undiscovered_s)

    def forget(self) -> None:
        """Drop what was heard of the robot: it is another one now, or elsewhere."""
        if self.scans.value is not None:
            self._await_scanner()
        self.odom.forget()
        self.scans.forget()

    def close(self) -> None:
        """Stop the robot for good. Comes before the node is closed."""
        self.cmd_vel.close()

    def _await_message(self, timeout_s: float) -> None:
        """Wait for a message of the robot or of its clock."""
        heard = self._heard()

        def news() -> bool:
            return self._heard() != heard

        # Without a simulation the robot moves on in real time, though nothing is heard of it.
        patience_s = timeout_s if self._clock.is_simulated else min(timeout_s, STALE_S)
        if not self._node.wait_until(news, patience_s):
            self._hold()
            if timeout_s <= patience_s or not self._node.wait_until(news, timeout_s - patience_s):
                raise SimulationError(self._standstill())
        self._check_time()

    def _heard(self) -> tuple[float, int, int, int]:
        return self.now_s(), self._clock.jumps, self.odom.count, self.scans.count

    def _fresh(self, topic: Topic[Value], heard_s: Callable[[], float]) -> Value:
        """Return the newest value of a topic when it may be relied upon; till then the robot stands."""

        def fresh() -> bool:
            late_s = abs(self.now_s() - heard_s())  # below 0 after time was set back
            return topic.value is not None and topic.problem is None and late_s <= STALE_S

        if not fresh():
            self._hold()
            jumps = self._clock.jumps
            there = self._node.wait_until(lambda: fresh() or self._clock.jumps != jumps, self._timeout_s)
            if there:
                self._check_time()
            if not there or topic.value is None:
                told = "the robot was told to stop. Is the simulation running, in game mode?"
                raise SimulationError(f"{topic.diagnosis()}; {told}")
        return cast(Value, topic.value)

    def _await_scanner(self) -> None:
        """Give the scanner of a robot that has just come time to be discovered."""
        self._scanner_due_s = time.monotonic() + min(SCANNER_S, self._timeout_s)

    def _has_scanner(self) -> bool:
        return self.scans.value is not None or self._node.count_publishers(self.scans.name) > 0

    def _tell_no_scanner(self) -> None:
        if not self._told_no_scanner:
            self._told_no_scanner = True
            self._node.get_logger().warning(
                f"{self.scans.diagnosis()}: the robot drives without collision detection. A collision is"
                " noticed only when something holds the robot"
            )

    def _check_time(self) -> None:
        if not self._is_moving or self._clock.jumps == self._jumps:
            return
        self._hold()
        told = f"the robot's time jumped back to {self.now_s():.2f} s in the middle of a move"
        why = "so that its odometry has another origin: the simulator was started or reset anew"
        if not self._clock.is_simulated:
            stamps = f"{self.odom.stamp_s:.2f} and {self.scans.stamp_s:.2f} s"
            why += f", or {self.odom.name} and {self.scans.name} are stamped by two clocks ({stamps})"
        raise SimulationError(f"{told}, {why}")

    def _hold(self) -> None:
        """Let the robot stand for as long as nobody knows what it does. The move goes on."""
        self._tell(0.0, 0.0)

    def _tell(self, linear_mps: float, angular_radps: float) -> None:
        self._told = np.array([linear_mps, 0.0, angular_radps])
        if not self._told.any():
            self._held = Held()  # who stands is held by nothing
        self.cmd_vel.publish(linear_mps, angular_radps)

    def _standstill(self) -> str:
        told = f"the robot's time stands still at {self.now_s():.2f} s; the robot was told to stop."
        if self._clock.is_simulated:
            return f"{told} {self._clock.diagnosis()}. Is the simulation paused, or gone?"
        unstamped = f"{self.odom.name} has no stamps, " if self.odom.count and not self.now_s() else ""
        return f"{told} {unstamped}{self.odom.diagnosis()}, and {self.scans.diagnosis()}"

    def _note_odometry(self) -> None:
        stamp_s, heard = self.odom.newest
        self._clock.hear_stamp(stamp_s)
        self._odom_heard_s = self._clock.now_s
        if heard is not None:
            self._track.add(heard.moved)
            self._held.update(stamp_s, self._told, *self._track.newest_speeds())

    def _note_scan(self) -> None:
        stamp_s, scan = self.scans.newest
        self._clock.hear_stamp(stamp_s)
        self._scan_heard_s = self._clock.now_s
        if self._on_scan is not None and scan is not None:
            self._on_scan(scan)

    def _read_odometry(self, message: Odometry) -> tuple[float, _Heard] | None:
        read = read_odometry(message, self._clock.now_s)
        return None if read is None else (read[0], _Heard(read[1], message.pose.pose))


def _read_scan(message: LaserScan) -> tuple[float, Scan]:
    return seconds(message.header.stamp), scan_of(message)
