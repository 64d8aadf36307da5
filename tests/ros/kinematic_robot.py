"""A small ROS 2 robot without physics, which misbehaves on command.

    with KinematicRobot(wall_x_m=2.0, real_time_factor=5.0) as robot: ...

publishes `/clock`, `odom` and `scan` at 60 Hz of its own time and obeys `cmd_vel`. As a process it prints
`ready` and runs until it is killed: `python kinematic_robot.py --real-time-factor 5 --start-s 100`.
"""

import argparse
import array
import math
import threading
import time
from typing import NamedTuple

import numpy as np
from geometry_msgs.msg import Twist
from nav_msgs.msg import Odometry
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import LaserScan

from proctor.core.geometry import pose_into, wrap_angle
from proctor.core.types import Pose2
from proctor.worlds.ros2.node.convert import quaternion, stamp
from proctor.worlds.ros2.node.node import CLOCK, COMMANDS, SENSORS, RosNode

TICK_S = 1 / 60
BEAMS = 360
ANGLES = -math.pi + math.tau / BEAMS * np.arange(BEAMS)
RANGE_M = (0.02, 10.0)
SEEN_M = 0.2
LATE_S = 0.1
"""A robot that is further behind real time than this does not catch up."""
UNDRIVEN_S, PATIENCE_S = 0.1, 0.3
"""A robot that moves and has heard no command for so much of its time waits for one, for so long in real
time: else its clock would outrun who drives it where machines are busy."""


class Applied(NamedTuple):
    """A command, and when the robot began to obey it."""

    time_s: float
    linear_mps: float
    angular_radps: float


class KinematicRobot(RosNode):
    """Moves at once as it is told, in a world with at most two walls, both across the x axis.

    Args:
        name: Of the node.
        start: Where it begins, in the world. Its odometry begins at zero.
        real_time_factor: Simulated seconds in a real one; `inf` is as fast as it can.
        start_s: Its time at the beginning.
        lag_s: Commands take this much of its time to get through.
        wall_x_m: Where the wall is that the scan shows.
        bump_x_m: Where a wall is that the scan does not show, and that holds the robot.
        zero_frames: So many odometry messages at the beginning are empty, as O3DE sends them.
        scan_every: Ticks between two scans.
        has_clock: Whether it publishes `/clock`.
        has_scanner: Whether it has the topic `scan`.
        stamps_odometry: Whether its odometry tells its time; else all stamps of it are 0.
        odom_origin: Where its odometry is zero, in the world; where it begins, if it is None.
        command_qos: How it listens to `cmd_vel`.
        **options: Of `RosNode`: namespace, ros_args.

    Attributes:
        silent: What it does not publish at present: any of clock, odom, scan.
        scan_filled_with: All ranges are this, if it is not None: nan or inf.
        is_deaf: Whether it ignores commands.
        is_paused: Whether its time stands still; it publishes all the same.
        pose: Where it is, in the world.
        time_s: Its time.
        applied: The commands that it obeyed.
        seen_s: The stamp of the first scan with something nearer than SEEN_M ahead.
    """

    def __init__(
        self,
        name="kinematic_robot",
        *,
        start=Pose2(0.0, 0.0, 0.0),  # noqa: B008  (frozen)
        real_time_factor=1.0,
        start_s=100.0,
        lag_s=0.0,
        wall_x_m=math.inf,
        bump_x_m=math.inf,
        zero_frames=3,
        scan_every=1,
        has_clock=True,
        has_scanner=True,
        stamps_odometry=True,
        odom_origin=None,
        command_qos=COMMANDS,
        **options,
    ):
        super().__init__(name, **options)
        self._odom_origin, self.pose, self.time_s = odom_origin or start, start, start_s
        self._stamps_odometry = stamps_odometry
        self.real_time_factor, self._lag_s = real_time_factor, lag_s
        self.wall_x_m, self._bump_x_m = wall_x_m, bump_x_m
        self._zero_frames, self._scan_every = zero_frames, scan_every
        self.silent = set() if has_clock else {"clock"}
        self.scan_filled_with, self.is_deaf, self.is_paused = None, False, False
        self.applied, self.seen_s = [Applied(start_s, 0.0, 0.0)], None
        self._underway = []
        self._ticks = 0
        self._told_s, self._told_at = start_s, 0.0  # when the newest command came: its time, and real time
        self._clock_out = self.create_publisher(Clock, "/clock", CLOCK)
        self._odom_out = self.create_publisher(Odometry, "odom", SENSORS)
        self._scan_out = self.create_publisher(LaserScan, "scan", SENSORS) if has_scanner else None
        self.create_subscription(Twist, "cmd_vel", self._hear, command_qos)
        self._ending, self._lock = threading.Event(), threading.RLock()
        self._ticker = threading.Thread(target=self._run, name=f"{name} ticks", daemon=True)
        self._ticker.start()

    @property
    def velocity(self):
        """What it does now: m/s ahead and rad/s to the left."""
        return self.applied[-1][1:]

    def jump_to(self, time_s):
        """Set its clock."""
        with self._lock:
            self._underway = [(due_s + time_s - self.time_s, *rest) for due_s, *rest in self._underway]
            self.time_s = self._told_s = time_s

    def close(self):
        self._ending.set()
        self._ticker.join(5.0)
        super().close()

    def _hear(self, message):
        with self._lock:
            self._told_s, self._told_at = self.time_s, time.monotonic()
            if not self.is_deaf:
                self._underway.append((self.time_s + self._lag_s, message.linear.x, message.angular.z))

    def _run(self):
        due_s = time.monotonic()
        while not self._ending.wait(max(0.0, due_s - time.monotonic())):
            with self._lock:
                if not self._awaits_command():
                    self._tick()
            due_s = max(due_s + TICK_S / self.real_time_factor, time.monotonic() - LATE_S)

    def _awaits_command(self):
        is_undriven = any(self.velocity) and self.time_s - self._told_s > UNDRIVEN_S
        return is_undriven and time.monotonic() - self._told_at < PATIENCE_S

    def _tick(self):
        if not self.is_paused:
            while self._underway and self._underway[0][0] <= self.time_s + 1e-9:
                _, linear_mps, angular_radps = self._underway.pop(0)
                if (linear_mps, angular_radps) != self.velocity:
                    self.applied.append(Applied(self.time_s, linear_mps, angular_radps))
            self._move(*self.velocity)
            self.time_s += TICK_S
        now = stamp(self.time_s)
        if "clock" not in self.silent:
            self._clock_out.publish(Clock(clock=now))
        if "odom" not in self.silent:
            self._odom_out.publish(self._odometry(now))
        has_scan = self._scan_out is not None and "scan" not in self.silent
        if has_scan and self._ticks % self._scan_every == 0:
            self._scan_out.publish(self._scan(now))
        self._ticks += 1

    def _move(self, linear_mps, angular_radps):
        x, y, yaw = self.pose.x, self.pose.y, self.pose.yaw
        middle = yaw + angular_radps * TICK_S / 2
        ahead_m = linear_mps * TICK_S
        x = min(x + ahead_m * math.cos(middle), self._bump_x_m)
        self.pose = Pose2(
            x, y + ahead_m * math.sin(middle), wrap_angle(self.pose.yaw + angular_radps * TICK_S)
        )

    def _odometry(self, now):
        message = Odometry()
        message.header.frame_id, message.child_frame_id = "odom", "base_link"
        if self._zero_frames > 0:
            self._zero_frames -= 1
            return message
        pose = pose_into(self._odom_origin, self.pose)
        if self._stamps_odometry:
            message.header.stamp = now
        message.pose.pose.position.x, message.pose.pose.position.y = pose.x, pose.y
        message.pose.pose.orientation = quaternion(pose.yaw)
        message.twist.twist.linear.x, message.twist.twist.angular.z = self.velocity
        return message

    def _scan(self, now):
        toward = np.cos(ANGLES + self.pose.yaw)
        with np.errstate(divide="ignore", invalid="ignore"):
            ranges = np.where(toward > 0, (self.wall_x_m - self.pose.x) / toward, np.inf)
        ranges[ranges > RANGE_M[1]] = np.inf
        if self.scan_filled_with is not None:
            ranges[:] = self.scan_filled_with
        elif self.seen_s is None and ranges[np.abs(ANGLES) <= math.radians(30)].min() < SEEN_M:
            self.seen_s = self.time_s
        message = LaserScan(angle_min=-math.pi, angle_max=math.pi, angle_increment=math.tau / BEAMS)
        message.header.stamp, message.header.frame_id = now, "base_scan"
        message.range_min, message.range_max = RANGE_M
        message.ranges = array.array("f", ranges.astype(np.float32).tobytes())
        return message


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--real-time-factor", type=float, default=1.0)
    parser.add_argument("--start-s", type=float, default=100.0)
    parser.add_argument("--wall-x", type=float, default=math.inf)
    parser.add_argument("--namespace", default="")
    parser.add_argument("--no-scanner", action="store_true")
    asked = parser.parse_args()
    options = {"real_time_factor": asked.real_time_factor, "start_s": asked.start_s}
    options["has_scanner"] = not asked.no_scanner
    with KinematicRobot(wall_x_m=asked.wall_x, namespace=asked.namespace, **options):
        print("ready", flush=True)  # noqa: T201
        threading.Event().wait()


if __name__ == "__main__":
    main()
