"""The robot's 2D laser scanner, by ray casting."""

from __future__ import annotations

import mujoco
import numpy as np

from proctor.core.types import SECTOR_RAD, Array, Scan
from proctor.worlds.mujoco.contacts import Group
from proctor.worlds.mujoco.wheeled.robot_body import RobotBody
from proctor.worlds.mujoco.wheeled.world import World


class LaserScanner:
    """The scanner of a robot (by default the world's first): at its centre, blind to the robot itself."""

    def __init__(self, world: World, body: RobotBody | None = None) -> None:
        self._world, self._body = world, body or world.body
        self._spec = world.robot.lidar
        angles: Array = self._spec.angle_min + self._spec.angle_increment * np.arange(float(self._spec.beams))
        ahead = np.flatnonzero(np.abs(angles) <= SECTOR_RAD + 1e-9)
        self._all, self._ahead = angles, angles[ahead]
        self._groups = np.zeros(6, np.uint8)
        self._groups[[Group.SCANNED, Group.DRAWN_AND_SCANNED]] = 1

    def scan(self) -> Scan:
        """Return a full turn."""
        return self._cast(self._all, self._spec.range_max_m)

    def scan_ahead(self, reach_m: float) -> Scan:
        """Return the beams within 30° of straight ahead, blind beyond `reach_m` and so cheap."""
        return self._cast(self._ahead, reach_m)

    def _cast(self, angles: Array, reach_m: float) -> Scan:
        world, count = self._world, len(angles)
        pose = self._body.pose()
        directions = np.zeros((count, 3))
        np.cos(angles + pose.yaw, out=directions[:, 0])
        np.sin(angles + pose.yaw, out=directions[:, 1])
        origin = np.array([pose.x, pose.y, world.floor_z + self._spec.height_m])
        geoms, ranges = np.empty(count, np.int32), np.empty(count)
        mujoco.mj_multiRay(
            world.model,
            world.data,
            origin,
            directions.ravel(),
            self._groups,
            True,  # noqa: FBT003  (MuJoCo's functions take no keywords here: include static geoms)
            self._body.body_id,
            geoms,
            ranges,
            None,
            count,
            reach_m,
        )
        ranges[(ranges < 0) | (ranges > reach_m)] = np.inf
        return Scan(
            ranges,
            float(angles[0]),
            self._spec.angle_increment,
            self._spec.range_min_m,
            self._spec.range_max_m,
        )
