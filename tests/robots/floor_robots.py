"""A robot on an empty plane or on a drawn map: exact wheels, no physics, for tests of what drives it."""

from __future__ import annotations

import math

import numpy as np

from proctor.core.errors import SimulationError
from proctor.core.geometry import wrap_angle
from proctor.core.types import Pose2
from proctor.maps.grid_map import GridMap
from proctor.maps.live_map import LiveMap
from proctor.navigation.skill.manager import SkillManager
from proctor.navigation.skill.navigate_to import NavigateTo
from proctor.navigation.skill.params import NavigationParams
from proctor.robots.dynamics import Dynamics
from proctor.robots.robot import STILL, Twist
from proctor.robots.spec import standard_robot

TICK_S = 1 / 60


class FloorRobot:
    """Does exactly what it is told, within its limits of acceleration."""

    def __init__(self, x=0.0, y=0.0, yaw=0.0, dynamics=None):
        self.at = np.array([x, y, yaw])
        self.spec = standard_robot(dynamics=dynamics or Dynamics())
        self.commanded = STILL
        self.moves = np.zeros(3)
        self.touching = False
        self.stuck = False

    def pose(self):
        x, y, yaw = self.at.tolist()
        if not math.isfinite(x + y + yaw):
            raise SimulationError(f"the robot is at {x}, {y}, {yaw}")
        return Pose2(x, y, wrap_angle(yaw))

    def velocity(self):
        return Twist(*self.moves.tolist())

    def in_contact(self):
        return self.touching

    def command(self, twist):
        self.commanded = twist

    def advance(self):
        self.moves = np.array(STILL if self.stuck else self.commanded)
        vx, vy, omega = self.moves
        middle = self.at[2] + omega * TICK_S / 2
        self.at += TICK_S * np.array(
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
        self.controller = (params or NavigationParams()).make_controller(
            self.robot,
            now_s=self.now_s,
            field=lambda: self.live_map.field(self.now_s()),
            period_s=TICK_S,
        )
        self.skill = NavigateTo(self.robot, self.controller, self.live_map, client, self.now_s, params)
        self.skills = SkillManager([self.skill])

    def now_s(self):
        return self.ticks * TICK_S

    def tick(self, **params):
        result = self.skills.execute_skill("navigate_to", **params)
        self.skill.control()
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
        return not any(self.robot.commanded)

    def place(self):
        return Pose2(*self.robot.at)


def room(width_m=6.0, depth_m=4.0):
    """Return an empty room with walls of one cell."""
    occupied = np.zeros((round(depth_m / 0.05), round(width_m / 0.05)), dtype=bool)
    occupied[[0, -1]] = True
    occupied[:, [0, -1]] = True
    return occupied
