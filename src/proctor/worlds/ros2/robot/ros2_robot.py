"""A robot behind ROS 2 topics: `odom` and `scan` in, `cmd_vel` out, in the robot's own time."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any, NamedTuple, cast

import numpy as np
from nav_msgs.msg import Odometry
from rclpy.exceptions import NameValidationException
from rclpy.validate_namespace import validate_namespace
from sensor_msgs.msg import LaserScan

from proctor.core.errors import SimulationError, UserError
from proctor.core.geometry import pose_out_of
from proctor.core.types import Pose2, Scan
from proctor.robots.held import Held
from proctor.robots.robot import NO_SCAN, STILL, Twist
from proctor.robots.spec import RobotSpec, standard_robot
from proctor.worlds.ros2.node.convert import scan_of, seconds
from proctor.worlds.ros2.node.node import RosNode
from proctor.worlds.ros2.node.topic import RobotClock, Stamped, Topic, TwistTopic, Value
from proctor.worlds.ros2.robot.odometry import MAP_FRAME, STALE_S, Moved, Track, Transforms, read_odometry

SCANNER_S = 2.0
"""So long, in real time, a driver waits for the publisher of scans of a new robot to be discovered."""


class _Heard(NamedTuple):
    moved: Moved
    message: Any  # the geometry_msgs/Pose


class Ros2Robot:
    """A `Robot` behind topics, driven from any thread, or from the callbacks of its node.

    From a thread: a robot whose odometry or scan is late or broken is commanded to stop until they are back.
    What is missing for longer than `silence_timeout_s` (in real time) raises SimulationError, as does time
    that stands still, or jumps back while the robot moves, and a `cmd_vel` that nobody listens to: the
    message says what the graph of nodes shows. A robot whose `scan` nobody publishes is driven without one,
    and the log says so once. `on_scan` gets each scan, in the node's thread.

    From callbacks, which cannot wait, with a `silence_timeout_s` of None: `problem` says whether it can be
    driven, and of the other methods `odometry`, `scan` and `wait` are not for them.

    Its pose is that of the odometry in the map, extrapolated to the present by the velocity. Where the
    odometry begins in the map is what `transforms` say of its frame, or else `odom_origin`. Topics are in
    `robot_namespace`: "" for `/odom`, `robot_0` for `/robot_0/odom`, None for the node's own namespace.
    """

    def __init__(  # noqa: PLR0913  (how a robot can be reached, all but two by keyword)
        self,
        node: RosNode,
        clock: RobotClock,
        *,
        spec: RobotSpec | None = None,
        robot_namespace: str | None = None,
        transforms: Transforms | None = None,
        odom_origin: Pose2 | None = None,
        silence_timeout_s: float | None = 5.0,
        has_scan: bool = True,
        on_scan: Callable[[Scan], None] | None = None,
    ) -> None:
        self.spec = spec or standard_robot()
        self._node, self._clock, self._on_scan = node, clock, on_scan
        self._can_wait, self._timeout_s = silence_timeout_s is not None, silence_timeout_s or 0.0
        self._is_moving, self._jumps = False, clock.jumps
        self.commanded, self._track, self._held = STILL, Track(), Held()
        self._odom_heard_s = self._scan_heard_s = 0.0
        self._scanner_due_s, self._told_no_scanner = 0.0, False
        self._transforms, self._odom_origin = transforms, odom_origin or Pose2(0.0, 0.0, 0.0)
        self.frame, self._odom_frame = "base_link", "odom"  # until the odometry says otherwise
        self._await_scanner()
        self.cmd_vel = TwistTopic(node, topic_in(robot_namespace, "cmd_vel"))
        self.odom: Topic[_Heard] = Topic(
            node,
            Odometry,
            topic_in(robot_namespace, "odom"),
            self._read_odometry,
            on_value=self._note_odometry,
        )
        self._scans: Topic[Scan] | None = None
        if has_scan:
            name = topic_in(robot_namespace, "scan")
            self._scans = Topic(node, LaserScan, name, _read_scan, on_value=self._note_scan)

    @property
    def scans(self) -> Topic[Scan]:
        """The scanner's topic."""
        if self._scans is None:
            raise SimulationError("this robot was made without a scan")
        return self._scans

    def problem(self) -> str | None:
        """Return why the robot cannot be driven now, or None if it can."""
        if self.odom.value is None or self._age_s() > STALE_S:
            return self.odom.diagnosis()
        if self._age_s() < -STALE_S:  # its silence would not be noticed
            return (
                f"{self.odom.name} is stamped {self.odom.stamp_s:.3f} s, but the robot's time is "
                f"{self.now_s():.3f} s: does its driver go by /clock (use_sim_time)?"
            )
        return None if self.cmd_vel.is_heard() else self.cmd_vel.diagnosis()

    def pose(self) -> Pose2:
        """Return where the robot is in the map; SimulationError if there is no recent odometry."""
        pose = self.pose_at(self.now_s())
        if pose is None or self._age_s() > STALE_S:
            raise SimulationError(f"the robot's pose is not known: {self.odom.diagnosis()}")
        return pose

    def pose_at(self, time_s: float) -> Pose2 | None:
        """Return where the robot was in the map at a time of the last seconds, None if nobody knows."""
        pose_odom = self._track.at(time_s)
        if pose_odom is None:
            return None
        origin = None
        if self._transforms is not None:
            origin = self._transforms.pose_of(self._odom_frame, MAP_FRAME)
        return pose_out_of(origin or self._odom_origin, pose_odom)

    def knew_pose_at(self, time_s: float) -> bool:
        """Tell whether the odometry was there at a time, so that the pose then is no guess."""
        return self._track.covers(time_s)

    def odometry(self) -> tuple[float, Pose2]:
        """Return the robot's time of the newest odometry, and the pose then in the odometry frame.

        The time is its stamp, or when it was heard, if the odometry is stamped by another clock.
        """
        moved = self._fresh(self.odom, lambda: self._odom_heard_s).moved
        return self._measured_s(moved.stamp_s, self._odom_heard_s), moved.pose_odom

    def velocity(self) -> Twist:
        """Return the velocity that the odometry tells; none if there is no odometry yet."""
        heard = self.odom.value
        return STILL if heard is None else Twist(*heard.moved.velocity.tolist())

    def scan(self) -> Scan:
        """Return the newest scan; one without beams if the robot has no scanner."""
        if not self._has_scanner():
            self._tell_no_scanner()
            return NO_SCAN
        return self._fresh(self.scans, lambda: self._scan_heard_s)

    def scanned_s(self) -> float:
        """Return the robot's time of the newest scan, as `odometry` does; infinity without a scanner."""
        if not self._has_scanner():
            return math.inf
        return self._measured_s(self.scans.stamp_s, self._scan_heard_s)

    def in_contact(self) -> bool:
        """Tell whether the robot has hardly moved for half a second, though it was told to."""
        return self._held.is_held and not self.cmd_vel.is_closed

    def command(self, twist: Twist) -> None:
        """Drive at this velocity until the next command. If nobody listens, a thread waits, then raises."""
        moves = any(twist)
        if not self._is_moving:
            self._jumps = self._clock.jumps  # that time was set back while the robot stood is no fault
        self._is_moving = moves
        if moves and self._can_wait and not self._node.wait_until(self.cmd_vel.is_heard, self._timeout_s):
            raise SimulationError(
                f"the robot cannot be driven: {self.cmd_vel.diagnosis()}. Is the simulation running, in game"
                " mode, and is its drive enabled?"
            )
        self._tell(twist)

    def now_s(self) -> float:
        """Return the robot's time."""
        return self._clock.now_s

    def wait(self, duration_s: float, until: Callable[[], bool] | None = None) -> None:
        """Let this much of the robot's time pass, or less if `until` is true after a message."""
        end_s, jumps, silent_s = self.now_s() + duration_s - 1e-6, self._clock.jumps, 0.0
        while self.now_s() < end_s and not (until is not None and until()):
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
        """Drop what was heard of the robot: it is another one now, or elsewhere, or its time began anew."""
        # Replaced, not emptied: the node's thread may be using them.
        self._track, self._held = Track(), Held()
        self.odom.forget()
        if self._scans is not None:
            if self._scans.value is not None:
                self._await_scanner()
            self._scans.forget()

    def close(self) -> None:
        """Stop the robot for good. Comes before the node is closed."""
        self.cmd_vel.close()

    def _await_message(self, timeout_s: float) -> None:
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

    def _measured_s(self, stamp_s: float, heard_s: float) -> float:
        """Return the robot's time of a message, though it may be stamped by another clock."""
        return heard_s if abs(self.now_s() - stamp_s) > STALE_S else stamp_s

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
        self._tell(STILL)

    def _tell(self, twist: Twist) -> None:
        self.commanded = twist
        if not any(twist):
            self._held = Held()  # who stands is held by nothing
        self.cmd_vel.publish(twist.vx, twist.omega, twist.vy)

    def _age_s(self) -> float:
        return self.now_s() - self.odom.stamp_s

    def _standstill(self) -> str:
        told = f"the robot's time stands still at {self.now_s():.2f} s; the robot was told to stop."
        if self._clock.is_simulated:
            return f"{told} {self._clock.diagnosis()}. Is the simulation paused, or gone?"
        unstamped = f"{self.odom.name} has no stamps, " if self.odom.count and not self.now_s() else ""
        return f"{told} {unstamped}{self.odom.diagnosis()}, and {self.scans.diagnosis()}"

    def _note_odometry(self, newest: Stamped[_Heard]) -> None:
        stamp_s, heard = newest
        self._track.add(heard.moved)
        self._held.update(stamp_s, np.array(self.commanded), *self._track.newest_speeds())
        self._clock.hear_stamp(stamp_s)  # last: where the stamps are the clock, this is a tick
        self._odom_heard_s = self._clock.now_s

    def _note_scan(self, newest: Stamped[Scan]) -> None:
        stamp_s, scan = newest
        self._clock.hear_stamp(stamp_s)
        self._scan_heard_s = self._clock.now_s
        if self._on_scan is not None:
            self._on_scan(scan)

    def _read_odometry(self, message: Odometry) -> tuple[float, _Heard] | None:
        read = read_odometry(message, self._clock.now_s)
        if read is None:
            return None
        self._odom_frame = message.header.frame_id or self._odom_frame
        self.frame = message.child_frame_id or self.frame
        return read[0], _Heard(read[1], message.pose.pose)


def _read_scan(message: LaserScan) -> tuple[float, Scan]:
    return seconds(message.header.stamp), scan_of(message)


def topic_in(namespace: str | None, name: str) -> str:
    """Return the name of a topic in a namespace; relative to the node's if it is None."""
    if namespace is None:
        return name
    path = f"/{namespace.strip('/')}"
    try:
        validate_namespace(path)
    except NameValidationException as error:
        raise UserError(f"'{namespace}' is no namespace of a robot: {error}") from None
    return f"{path.rstrip('/')}/{name}"
