"""Closed-loop motion: the four actions, and timed moves, over any robot port."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from proctor.control.clearance import clearance_ahead_m
from proctor.control.robot_port import RobotPort
from proctor.core.errors import SimulationError
from proctor.core.geometry import wrap_angle
from proctor.core.types import STEP_M, TURN_RAD, Action

LANDED = 0.002
"""A move is over when less than this fraction of its length is left."""
UNHINDERED = 0.98
"""Who gets this share of the way that was asked for moves freely, though it may touch something."""
LANDING_MPS, LANDING_RADPS, BRAKING_S = 0.1, 0.3, 0.3
"""Faster moves slow down to these speeds before they land, in about this time."""
DEADLINE_FACTOR, DEADLINE_MARGIN_S = 3.0, 2.0


class Motion(NamedTuple):
    """How a move ended."""

    collided: bool
    duration_s: float
    """In the robot's time."""


class ActionExecutor:
    """Drives a robot by its odometry and stops it before, or when, it hits something.

    A collision is a contact, or, when driving forward, a range below the threshold within 30° of straight
    ahead. Turns ignore the scan, else a robot at a wall could never turn away; and a contact that was there
    when a move began does not end it as long as the robot moves freely: away, or along, but not sliding.

    Args:
        port: The robot.
        linear_speed_mps: Speed of `forward`.
        angular_speed_radps: Speed of `rotate`.
        collision_threshold_m: Ranges below this, measured from the scanner, end a forward move.
        control_period_s: Time between two commands.
    """

    def __init__(
        self,
        port: RobotPort,
        *,
        linear_speed_mps: float = 0.1,
        angular_speed_radps: float = 0.3,
        collision_threshold_m: float = 0.2,
        control_period_s: float = 0.05,
    ) -> None:
        if not (linear_speed_mps > 0 and angular_speed_radps > 0 and control_period_s > 0):
            raise ValueError("speeds and control period must be above 0")
        self._port = port
        self._linear_speed_mps = linear_speed_mps
        self._angular_speed_radps = angular_speed_radps
        self._collision_threshold_m = collision_threshold_m
        self._period_s = control_period_s
        self.is_running = False
        self.collision_detected = False
        """In the last move."""
        self.collision_count = 0
        """Since the executor was made, at most one per move."""

    def execute(self, action: Action) -> Motion:
        """Do one of the four actions."""
        if action is Action.FORWARD:
            return self.forward()
        if action is Action.LEFT:
            return self.rotate(TURN_RAD)
        if action is Action.RIGHT:
            return self.rotate(-TURN_RAD)
        return self.stop()

    def forward(self, distance_m: float = STEP_M) -> Motion:
        """Drive straight; a negative distance drives backwards.

        Raises:
            SimulationError: The robot does not move although nothing is in its way.
        """
        start, sign = self._port.odometry(), math.copysign(1.0, distance_m)

        def driven_m() -> float:
            now = self._port.odometry()
            return math.hypot(now.x - start.x, now.y - start.y)

        def drive(speed_mps: float) -> None:
            self._port.command(sign * speed_mps, 0.0)

        speeds = (self._linear_speed_mps, LANDING_MPS)
        return self._move(abs(distance_m), driven_m, drive, speeds, watch_scan=distance_m > 0)

    def rotate(self, angle_rad: float) -> Motion:
        """Turn on the spot; positive is left. Angles beyond a full turn are fine.

        Raises:
            SimulationError: The robot does not turn although nothing holds it.
        """
        sign, turned_rad, last_yaw = math.copysign(1.0, angle_rad), 0.0, self._port.odometry().yaw

        def turned() -> float:
            nonlocal turned_rad, last_yaw
            yaw = self._port.odometry().yaw
            turned_rad += wrap_angle(yaw - last_yaw)  # summed up, so that crossing ±180° does not matter
            last_yaw = yaw
            return sign * turned_rad

        def turn(speed_radps: float) -> None:
            self._port.command(0.0, sign * speed_radps)

        speeds = (self._angular_speed_radps, LANDING_RADPS)
        return self._move(abs(angle_rad), turned, turn, speeds, watch_scan=False)

    def move_timed(self, linear_x: float = 0.0, angular_z: float = 0.0, duration_s: float = 1.0) -> Motion:
        """Drive at this velocity for this long, without odometry; the last command is scaled to land."""
        start_s, touched_before = self._port.now_s(), self._port.in_contact()
        with self._running():
            while (left_s := start_s + duration_s - self._port.now_s()) > 1e-9:
                if linear_x > 0 and self._is_blocked_ahead():
                    self._note_collision()
                    break
                share = min(1.0, left_s / self._period_s)
                self._port.command(share * linear_x, share * angular_z)
                self._port.wait(self._period_s)
                touched = self._port.in_contact()
                if touched and not touched_before:
                    self._note_collision()
                    break
                touched_before = touched
        return self._at_rest(start_s)

    def stop(self) -> Motion:
        """Stand still."""
        start_s = self._port.now_s()
        with self._running():
            pass
        return self._at_rest(start_s)

    def _move(
        self,
        goal: float,
        covered: Callable[[], float],
        drive: Callable[[float], None],
        speeds: tuple[float, float],
        *,
        watch_scan: bool,
    ) -> Motion:
        """Drive until `covered` has reached the goal; both in metres, or both in radians.

        The speeds are those of the way and of the landing.
        """
        speed, landing_speed = speeds
        start_s, touched_before = self._port.now_s(), self._port.in_contact()
        deadline_s = start_s + DEADLINE_FACTOR * goal / min(speed, landing_speed) + DEADLINE_MARGIN_S
        done, starting = 0.0, True  # it takes a period to get going
        with self._running():
            while goal - done > LANDED * goal:
                if watch_scan and self._is_blocked_ahead():
                    self._note_collision()
                    break
                if self._port.now_s() > deadline_s:
                    raise SimulationError(
                        f"the robot covered {done:.3f} of {goal:.3f} m or rad in {deadline_s - start_s:.1f} s"
                        " of its time and touches nothing: check its drive and its odometry"
                    )
                left = goal - done
                step = min(self._period_s * min(speed, max(landing_speed, left / BRAKING_S)), left)
                drive(step / self._period_s)
                self._port.wait(self._period_s)
                before, done = done, covered()
                touched = self._port.in_contact()
                if touched and not (touched_before and (starting or done - before > UNHINDERED * step)):
                    self._note_collision()
                    break
                touched_before, starting = touched, False
        return self._at_rest(start_s)

    @contextmanager
    def _running(self) -> Iterator[None]:
        self.is_running, self.collision_detected = True, False
        try:
            yield
        finally:
            # On errors, too: a real robot would drive on.
            self._port.command(0.0, 0.0)
            self.is_running = False

    def _at_rest(self, start_s: float) -> Motion:
        self._port.wait(self._period_s)
        return Motion(self.collision_detected, self._port.now_s() - start_s)

    def _note_collision(self) -> None:
        self.collision_detected = True
        self.collision_count += 1

    def _is_blocked_ahead(self) -> bool:
        return clearance_ahead_m(self._port.scan()) < self._collision_threshold_m
