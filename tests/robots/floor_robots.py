"""A robot on an empty plane or on a drawn map: exact wheels, no physics, for tests of what drives it."""

from __future__ import annotations

import math

import msgspec
import numpy as np

from proctor.core.types import Pose2
from proctor.maps.grid_map import GridMap
from proctor.maps.live_map import LiveMap
from proctor.navigation.skill.manager import SkillManager
from proctor.navigation.skill.navigate_to import NavigateTo
from proctor.navigation.tracking.mpc import MpcController
from proctor.robots.dynamics import Dynamics

TICK_S = 1 / 60


class FloorRobot:
    """Does exactly what it is told, within its limits of acceleration."""

    def __init__(self, x=0.0, y=0.0, yaw=0.0, dynamics=None):
        self.pose = np.array([x, y, yaw])
        self.dynamics = dynamics or Dynamics()
        self.target_linear_velocity = np.zeros(3)
        self.target_angular_velocity = np.zeros(3)
        self.velocity = np.zeros(3)
        self.touching = False
        self.stuck = False

    def get_world_pose(self):
        half = self.pose[2] / 2
        return np.array([*self.pose[:2], 0.0]), np.array([0.0, 0.0, math.sin(half), math.cos(half)])

    def get_velocity(self):
        return self.velocity.copy()

    def get_dynamics_constraints(self):
        return msgspec.structs.asdict(self.dynamics)

    def is_collision_detected(self):
        return self.touching

    def advance(self):
        self.velocity = np.array([*self.target_linear_velocity[:2], self.target_angular_velocity[2]])
        if self.stuck:
            self.velocity = np.zeros(3)
        vx, vy, omega = self.velocity
        middle = self.pose[2] + omega * TICK_S / 2
        self.pose += TICK_S * np.array(
            [
                vx * math.cos(middle) - vy * math.sin(middle),
                vx * math.sin(middle) + vy * math.cos(middle),
                omega,
            ]
        )


class Floor:
    """A robot, its map, its controller and its skills, stepped by hand."""

    def __init__(self, client, occupied, start=(1.0, 1.0, 0.0), *, params=None, dynamics=None):
        self.grid = GridMap(occupied, resolution_m=0.05)
        self.live_map = LiveMap(self.grid)
        self.robot = FloorRobot(*start, dynamics=dynamics)
        self.ticks = 0
        self.controller = MpcController(
            self.robot, now_s=self.now_s, field=lambda: self.live_map.field(self.now_s())
        )
        self.skill = NavigateTo(self.robot, self.controller, self.live_map, client, self.now_s, params)
        self.skills = SkillManager([self.skill])

    def now_s(self):
        return self.ticks * TICK_S

    def tick(self, **params):
        result = self.skills.execute_skill("navigate_to", **params)
        self.controller.clock_callback(self.now_s())
        self.robot.advance()
        self.ticks += 1
        self.skill.planning.wait_if_due()
        return result

    def until(self, state, limit=2000, **params):
        """Tick until the skill is in a state, and return the latest feedback."""
        for _ in range(limit):
            result = self.tick(**params)
            if self.skill.state == state:
                return result
        raise AssertionError(f"never in {state}: {result}")

    def finish(self, limit=6000, **params):
        """Tick until there is a result."""
        for _ in range(limit):
            result = self.tick(**params)
            if result["status"] != "processing":
                return result
        raise AssertionError(f"no end: {result}")

    @property
    def stands(self):
        return not self.robot.target_linear_velocity.any() and not self.robot.target_angular_velocity.any()

    def place(self):
        return Pose2(*self.robot.pose)


def room(width_m=6.0, depth_m=4.0):
    """Return an empty room with walls of one cell."""
    occupied = np.zeros((round(depth_m / 0.05), round(width_m / 0.05)), dtype=bool)
    occupied[[0, -1]] = True
    occupied[:, [0, -1]] = True
    return occupied
