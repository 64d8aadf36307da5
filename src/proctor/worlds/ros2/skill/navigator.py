"""`navigate_to` for a robot on ROS 2 topics: base, live map, planner and controller, and views for RViz."""

from __future__ import annotations

import array
import math
from typing import Any, NamedTuple

import msgspec
import numpy as np
from nav_msgs.msg import OccupancyGrid
from nav_msgs.msg import Path as PathMessage
from rclpy.clock import Clock, ClockType
from sensor_msgs.msg import LaserScan

from proctor.core.geometry import pose_out_of
from proctor.core.types import Pose2, Scan
from proctor.kernels.clearance import ClearanceField
from proctor.kernels.sensing import Beams
from proctor.maps.grid_map import GridMap
from proctor.maps.live_map import LiveMap
from proctor.maps.occupancy import Occupancy
from proctor.navigation.path import Path
from proctor.navigation.process.client import PlanningClient
from proctor.navigation.skill.manager import SkillManager
from proctor.navigation.skill.navigate_to import NavigateTo
from proctor.navigation.skill.params import NavigationParams
from proctor.navigation.skill.states import OVER
from proctor.navigation.tracking.mpc import PERIOD_S
from proctor.navigation.warm_up import warm_up_control
from proctor.robots.spec import RobotSpec, standard_robot
from proctor.worlds.ros2.node.convert import scan_of, seconds, stamp
from proctor.worlds.ros2.node.node import LATCHED, RosNode
from proctor.worlds.ros2.node.topic import RobotClock, Topic
from proctor.worlds.ros2.robot.odometry import MAP_FRAME, Transforms
from proctor.worlds.ros2.robot.ros2_robot import Ros2Robot, topic_in
from proctor.worlds.ros2.skill.path_messages import directions_of, path_message

LIVE_PARAMS = NavigationParams(path_ticks=0, trajectory_ticks=0, lead_s=0.3)
"""For a robot that does not wait: plans are taken when they come, and have a little longer for it."""
STEP_M, MOST_DRIVEN = 0.1, 500
"""Between poses of the driven path, and how many of them are shown: the latest fifty metres."""


class NavigatorOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How a robot on ROS 2 navigates."""

    params: NavigationParams = LIVE_PARAMS
    robot: RobotSpec = msgspec.field(default_factory=standard_robot)
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
    """What a node needs to let a robot navigate. All methods are for the node's thread."""

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
        self.live_map = LiveMap(grid, floor_z=options.floor_z, height_band_m=options.robot.height_band_m)
        warm_up_control(options.robot.dynamics.drive)
        self._marked_s = -math.inf
        self._unmarked: _Unmarked | None = None
        self.transforms = Transforms(node)
        self.robot = Ros2Robot(
            node,
            clock,
            spec=options.robot,
            robot_namespace=options.robot_namespace,
            transforms=self.transforms,
            odom_origin=options.odom_origin,
            silence_timeout_s=None,
            has_scan=False,
        )
        self.controller = self.params.make_controller(
            self.robot, now_s=self.now_s, field=self.field, period_s=PERIOD_S
        )
        self._owns_client = client is None
        self.client = client or PlanningClient()
        self.client.start()
        self.navigate_to = NavigateTo(
            self.robot, self.controller, self.live_map, self.client, self.now_s, self.params
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
        problem = self.robot.problem()
        if problem is None and self.scan is not None:
            newest = self.scan.newest
            is_old = self.now_s() - newest.stamp_s > 1.0  # of the robot's time
            if newest.value is None or self.scan.problem is not None or is_old:
                return self.scan.diagnosis()
        return problem

    def control(self) -> None:
        """Compute one command and send it; SimulationError if the robot's pose is not known."""
        if self.navigate_to.target() is not None:
            self.navigate_to.control()
        else:
            self.robot.command(self.robot.commanded)  # again: a single message may be lost

    def begin_anew(self) -> None:
        """Stop and forget all, also what was seen: the robot's time began anew."""
        self.navigate_to.reset()
        self.robot.forget()
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
        """Read a scan and put it onto the map, if it is known by now where it was taken."""
        scan, stamp_s = scan_of(message), seconds(message.header.stamp)
        if not 0 <= stamp_s - self._marked_s < 0.045:  # 20 scans in a second are enough
            Beams.of(scan, Pose2(0.0, 0.0, 0.0))  # raises if it is none
            self._unmarked = _Unmarked(scan, stamp_s, message.header.frame_id)
            self.look()
        return stamp_s, scan

    def look(self) -> None:
        """Put the newest scan onto the map, as soon as the odometry tells where the robot was.

        A scan that is marked with the pose of a moment before or after shows walls where there are none.
        """
        scan, stamp_s, frame = self._unmarked or (None, 0.0, "")
        if scan is None or not self.robot.knew_pose_at(stamp_s):
            return
        self._unmarked, pose = None, self.robot.pose_at(stamp_s)
        if pose is not None and math.isfinite(pose.x + pose.y + pose.yaw):
            mount = self.transforms.pose_of(frame, self.robot.frame)
            scanner = pose if mount is None else pose_out_of(pose, mount)
            self.live_map.mark_scan(scan, scanner, min(stamp_s, self.now_s()))
            self._marked_s = stamp_s


class Views:
    """Publishes `map` (nav_msgs/OccupancyGrid), `plan` and `driven` (nav_msgs/Path) of a navigator, latched.

    The map comes again when it has changed, at most once a second of this machine's clock.
    """

    def __init__(self, node: RosNode, navigator: RosNavigator) -> None:
        self._navigator = navigator
        self._map_out = node.create_publisher(OccupancyGrid, "map", LATCHED)
        self._plan_out = node.create_publisher(PathMessage, "plan", LATCHED)
        self._driven_out = node.create_publisher(PathMessage, "driven", LATCHED)
        self._version: int | None = None
        self._plan: Path | None = None
        self._driven = path_message(np.zeros((0, 2)), np.zeros(0), frame=MAP_FRAME, time_s=0.0)
        wall = Clock(clock_type=ClockType.STEADY_TIME)
        self._publish_map()
        node.create_timer(1.0, self._publish_map, clock=wall)
        node.create_timer(0.2, self._publish_paths, clock=wall)

    def _publish_map(self) -> None:
        live_map = self._navigator.live_map
        if self._version != live_map.version:
            self._version = live_map.version
            self._map_out.publish(map_message(live_map.snapshot(), self._navigator.now_s()))

    def _publish_paths(self) -> None:
        skill = self._navigator.navigate_to
        if skill.state in OVER:
            return
        plans, now_s = skill.planning.paths, self._navigator.now_s()
        if plans and plans[-1] is not self._plan:
            if len(plans) == 1:
                self._driven.poses.clear()  # to another goal
            self._plan = plans[-1]
            self._plan_out.publish(
                path_message(self._plan.points, directions_of(self._plan), frame=MAP_FRAME, time_s=now_s)
            )
        pose = self._navigator.robot.pose_at(now_s)
        if pose is not None:
            self._drive_to(pose, now_s)

    def _drive_to(self, pose: Pose2, now_s: float) -> None:
        """Publish the driven path if it has got longer."""
        poses = self._driven.poses
        if poses:
            last = poses[-1].pose.position
            if math.dist((last.x, last.y), (pose.x, pose.y)) < STEP_M:
                return
        here = path_message(np.array([[pose.x, pose.y]]), np.array([pose.yaw]), frame=MAP_FRAME, time_s=now_s)
        self._driven.header = here.header
        self._driven.poses = [*poses[1 - MOST_DRIVEN :], *here.poses]
        self._driven_out.publish(self._driven)


def map_message(grid: GridMap, time_s: float) -> OccupancyGrid:
    """Return a map as a message."""
    occupancy, message = Occupancy.of(grid), OccupancyGrid()
    message.header.frame_id, message.header.stamp = MAP_FRAME, stamp(time_s)
    message.info.width, message.info.height = occupancy.width, occupancy.height
    message.info.resolution = occupancy.resolution_m
    message.info.origin.position.x, message.info.origin.position.y = occupancy.origin_world
    message.data = array.array("b", np.asarray(occupancy.data, dtype=np.int8).tobytes())
    return message
