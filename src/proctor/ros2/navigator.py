"""`navigate_to` for a robot on ROS 2 topics: base, live map, planner and controller put together."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import msgspec
import numpy as np
from sensor_msgs.msg import LaserScan

from proctor.core.geometry import pose_out_of
from proctor.core.types import Pose2, Scan
from proctor.navigation.maps.beams import Beams
from proctor.navigation.maps.clearance_field import ClearanceField
from proctor.navigation.maps.grid_map import GridMap
from proctor.navigation.maps.live_map import LiveMap
from proctor.navigation.process.client import PlanningClient
from proctor.navigation.timing.moves import straight
from proctor.navigation.tracking.mpc import PERIOD_S, MpcController
from proctor.robots.dynamics import Dynamics
from proctor.ros2.convert import scan_of, seconds
from proctor.ros2.mobile_base import RosBase, topic_in
from proctor.ros2.node import RosNode
from proctor.ros2.robot_clock import RobotClock
from proctor.ros2.topic import Topic
from proctor.skills.course import Course
from proctor.skills.manager import SkillManager
from proctor.skills.navigate_to import NavigateTo
from proctor.skills.params import NavigationParams

SCAN_STALE_S = 1.0
"""A robot whose scanner has been silent for longer than this, in its own time, does not drive."""
MARK_S = 0.045
"""Scans that come so soon after one that was marked on the map are not: 20 in a second are enough."""
LIVE_PARAMS = NavigationParams(path_ticks=0, trajectory_ticks=0, lead_s=0.3)
"""For a robot that does not wait: plans are taken when they come, and have a little longer for it."""


class NavigatorOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How a robot on ROS 2 navigates."""

    params: NavigationParams = LIVE_PARAMS
    dynamics: Dynamics = Dynamics()
    robot_namespace: str | None = None
    """Where its topics are: "" for `/odom`, `robot_0` for `/robot_0/odom`, None for the node's namespace."""
    odom_origin: Pose2 | None = None
    """Where in the map its odometry begins, if no transform tells."""
    floor_z: float = 0.0
    uses_scan: bool = True
    """Whether it has a scanner, without whose scans it does not drive."""


class _Unmarked(NamedTuple):
    """A scan that is not on the map yet."""

    scan: Scan
    stamp_s: float
    frame: str


class RosNavigator:
    """What a node needs to let a robot navigate. All methods are for the node's thread.

    Args:
        node: Who listens and publishes.
        clock: The robot's.
        grid: What is known of the surroundings.
        options: How to navigate.
        client: A planner to share with others; by default it has one of its own.
    """

    def __init__(
        self,
        node: RosNode,
        clock: RobotClock,
        grid: GridMap,
        options: NavigatorOptions,
        client: PlanningClient | None = None,
    ) -> None:
        self.clock, self._options = clock, options
        self.params = options.params.checked()
        self.live_map = LiveMap(grid, floor_z=options.floor_z)
        self._warm_up()
        self._marked_s = -math.inf
        self._unmarked: _Unmarked | None = None
        self.base = RosBase(
            node,
            clock,
            robot_namespace=options.robot_namespace,
            dynamics=options.dynamics,
            odom_origin=options.odom_origin,
        )
        self.controller = MpcController(
            self.base, now_s=self.now_s, field=self.field, radius_m=self.params.radius_m, period_s=PERIOD_S
        )
        self._owns_client = client is None
        self.client = client or PlanningClient()
        self.client.start()
        self.navigate_to = NavigateTo(
            self.base, self.controller, self.live_map, self.client, self.now_s, self.params
        )
        self.skills = SkillManager([self.navigate_to])
        self.scan: Topic[Scan] | None = None
        if options.uses_scan:
            self.scan = Topic(node, LaserScan, topic_in(options.robot_namespace, "scan"), self._read_scan)

    def now_s(self) -> float:
        """Return the robot's time."""
        return self.clock.now_s

    def field(self) -> ClearanceField:
        """Return the newest clearances."""
        return self.live_map.field(self.now_s())

    def problem(self) -> str | None:
        """Return why the robot cannot be driven now, or None if it can."""
        problem = self.base.problem()
        if problem is None and self.scan is not None:
            newest = self.scan.newest
            is_old = self.now_s() - newest.stamp_s > SCAN_STALE_S
            if newest.value is None or self.scan.problem is not None or is_old:
                return self.scan.diagnosis()
        return problem

    def control(self) -> None:
        """Let the controller make one command, and send it.

        Raises:
            SimulationError: The robot's pose is not known.
        """
        self.controller.clock_callback(self.now_s())
        self.base.publish()

    def begin_anew(self) -> None:
        """Stop and forget all, also what was seen: the robot's time began anew."""
        self.navigate_to.reset()
        self.base.forget()
        self.live_map.clear()
        self._marked_s, self._unmarked = -math.inf, None
        if self.scan is not None:
            self.scan.forget()

    def close(self) -> None:
        """Stop the planner, unless it is shared."""
        self.live_map.close()
        if self._owns_client:
            self.client.close()

    def _read_scan(self, message: Any) -> tuple[float, Scan]:
        """Read a scan and put it onto the map, if it is known by now where it was taken.

        Raises:
            ValueError: It is no scan.
        """
        scan, stamp_s = scan_of(message), seconds(message.header.stamp)
        if not 0 <= stamp_s - self._marked_s < MARK_S:
            Beams.of(scan, Pose2(0.0, 0.0, 0.0))  # raises if it is none
            self._unmarked = _Unmarked(scan, stamp_s, message.header.frame_id)
            self.look()
        return stamp_s, scan

    def look(self) -> None:
        """Put the newest scan onto the map, as soon as the odometry tells where the robot was.

        A scan that is marked with the pose of a moment before or after shows walls where there are none.
        """
        scan, stamp_s, frame = self._unmarked or (None, 0.0, "")
        if scan is None or not self.base.knew_pose_at(stamp_s):
            return
        self._unmarked, pose = None, self.base.pose_at(stamp_s)
        if pose is not None and math.isfinite(pose.x + pose.y + pose.yaw):
            mount = self.base.transforms.pose_of(frame, self.base.frame)
            scanner = pose if mount is None else pose_out_of(pose, mount)
            self.live_map.mark_scan(scan, scanner, min(stamp_s, self.now_s()))
            self._marked_s = stamp_s

    def _warm_up(self) -> None:
        """Do once what a drive does, so that no tick waits until functions are compiled or loaded."""
        nothing = Scan(np.full(4, np.nan), 0.0, 0.1, 0.0, 1.0)
        self.live_map.mark_scan(nothing, Pose2(0.0, 0.0, 0.0), 0.0)
        course = Course(
            trajectory=straight(Pose2(0.0, 0.0, 0.0), 0.5, self._options.dynamics),
            begun_s=0.0,
            purpose="goal",
        )
        course.block_ahead_m(self.live_map.field(0.0), 0.0, math.inf)
        course.braked(0.5, self._options.dynamics)
        self.live_map.clear()
