"""What RViz shows of a navigation: the map with what was seen, the plan, and what was driven."""

from __future__ import annotations

import array
import math

import numpy as np
from nav_msgs.msg import OccupancyGrid
from nav_msgs.msg import Path as PathMessage
from rclpy.clock import Clock, ClockType

from proctor.core.types import Pose2
from proctor.navigation.maps.grid_map import GridMap
from proctor.navigation.maps.occupancy import Occupancy
from proctor.navigation.path import Path
from proctor.ros2.convert import stamp
from proctor.ros2.mobile_base import MAP_FRAME
from proctor.ros2.navigator import RosNavigator
from proctor.ros2.node import RosNode
from proctor.ros2.path_messages import directions_of, path_message
from proctor.ros2.qos import LATCHED
from proctor.skills.states import OVER

MAP_S, PATHS_S = 1.0, 0.2
STEP_M, MOST_DRIVEN = 0.1, 500
"""Between poses of the driven path, and how many of them are shown: the latest fifty metres."""


class Views:
    """Publishes `map` (nav_msgs/OccupancyGrid), `plan` and `driven` (nav_msgs/Path) of a navigator.

    Who comes later gets the latest of each. The map comes again when it has changed, at most once a second of
    this machine's clock.

    Args:
        node: Who publishes.
        navigator: What is shown.
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
        node.create_timer(MAP_S, self._publish_map, clock=wall)
        node.create_timer(PATHS_S, self._publish_paths, clock=wall)

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
        pose = self._navigator.base.pose_at(now_s)
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
