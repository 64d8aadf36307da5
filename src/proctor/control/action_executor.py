"""Closed-loop motion: the four actions, and timed moves, over any robot port."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from proctor.control.clearance import clearance_ahead_m
from proctor.control.landing import AT_ONCE, Approach, Landing
from proctor.control.robot_port import RobotPort
from proctor.core.errors import SimulationError
from proctor.core.geometry import wrap_angle
from proctor.core.types import STEP_M, TURN_RAD, Action

UNHINDERED = 0.98
"""Who gets this share of the way that was asked for moves freely, though it may touch something."""
DEADLINE_FACTOR, DEADLINE_MARGIN_S = 3.0, 2.0
CORRECTIONS = 3
REST_S, REST_M, REST_RAD, REST_DEADLINE_S = 0.1, 5e-4, 1e-3, 3.0
"""A robot rests if it moves less than this in the time; it has to within the deadline."""


class Motion(NamedTuple):
    """How a move ended."""

    collided: bool
    duration_s: float
    """In the robot's time."""


class _Move(NamedTuple):
    """A drive or a turn; all numbers are in metres, or all in radians."""

    approach: Approach
    covered: Callable[[], float]
    """Returns how much of the way is done."""
    drive: Callable[[float], None]
    """Commands a speed along the way."""
    watches_scan: bool


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
        landing: How moves end; robots that obey late need another one than those that obey at once.

    Speeds and threshold may be set between moves.
    """

    def __init__(
        self,
        port: RobotPort,
        *,
        linear_speed_mps: float = 0.1,
        angular_speed_radps: float = 0.3,
        collision_threshold_m: float = 0.2,
        control_period_s: float = 0.05,
        landing: Landing = AT_ONCE,
    ) -> None:
        if not (linear_speed_mps > 0 and angular_speed_radps > 0 and control_period_s > 0):
            raise ValueError("speeds and control period must be above 0")
        self._port = port
        self.linear_speed_mps = linear_speed_mps
        self.angular_speed_radps = angular_speed_radps
        self.collision_threshold_m = collision_threshold_m
        self._period_s = control_period_s
        self._landing = landing
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

        approach = Approach.driving(abs(distance_m), self.linear_speed_mps, self._landing)
        return self._do(_Move(approach, driven_m, drive, watches_scan=distance_m > 0))

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

        approach = Approach.turning(abs(angle_rad), self.angular_speed_radps, self._landing)
        return self._do(_Move(approach, turned, turn, watches_scan=False))

    def move_timed(self, linear_x: float = 0.0, angular_z: float = 0.0, duration_s: float = 1.0) -> Motion:
        """Drive at this velocity for this long, without odometry; the last command is scaled to land."""
        start_s, touched_before = self._port.now_s(), self._port.in_contact()
        watch_scan = linear_x > 0

        def alarm() -> bool:
            return not self.is_running or (watch_scan and self._is_blocked_ahead())

        with self._running():
            while self.is_running and (left_s := start_s + duration_s - self._port.now_s()) > 1e-9:
                if watch_scan and self._is_blocked_ahead():
                    self.note_collision()
                    break
                share = min(1.0, left_s / self._period_s)
                self._port.command(share * linear_x, share * angular_z)
                self._port.wait(self._period_s, alarm)
                touched = self._port.in_contact()
                if touched and not touched_before:
                    self.note_collision()
                    break
                touched_before = touched
        return self._at_rest(start_s)

    def halt(self) -> None:
        """Stop at once; a move that another thread runs ends where the robot is."""
        self.is_running = False
        self._port.command(0.0, 0.0)

    def note_collision(self) -> None:
        """Count a collision of the present move."""
        self.collision_detected = True
        self.collision_count += 1

    def stop(self) -> Motion:
        """Stand still."""
        start_s = self._port.now_s()
        with self._running():
            pass
        return self._at_rest(start_s)

    def _do(self, move: _Move) -> Motion:
        start_s = self._port.now_s()
        with self._running():
            self._approach(move)
            if self._landing.settles:
                self._settle()
                self._correct(move)
        return self._at_rest(start_s)

    def _approach(self, move: _Move) -> None:
        """Drive until the goal is reached, or something is in the way."""
        approach = move.approach
        start_s, touched_before = self._port.now_s(), self._port.in_contact()
        deadline_s = start_s + DEADLINE_FACTOR * approach.goal / approach.speed + DEADLINE_MARGIN_S
        give_up_s = time.monotonic() + self._landing.patience_s
        done, starting = 0.0, True  # it takes a period to get going

        def alarm() -> bool:
            blocked = move.watches_scan and self._is_blocked_ahead()
            return blocked or not self.is_running or approach.is_over(move.covered())

        while self.is_running and not approach.is_over(done):
            if move.watches_scan and self._is_blocked_ahead():
                self.note_collision()
                break
            if self._port.now_s() > deadline_s and time.monotonic() >= give_up_s:
                raise SimulationError(
                    f"the robot covered {done:.3f} of {approach.goal:.3f} m or rad in"
                    f" {self._port.now_s() - start_s:.1f} s of its time and touches nothing: check its drive"
                    " and its odometry"
                )
            step = approach.step(done, self._period_s)
            move.drive(step / self._period_s)
            self._port.wait(self._period_s, alarm)
            before, done = done, move.covered()
            touched = self._port.in_contact()
            if touched and not (touched_before and (starting or done - before > UNHINDERED * step)):
                self.note_collision()
                break
            touched_before, starting = touched, False

    def _settle(self) -> None:
        """Stop, and wait until the odometry shows that the robot stands."""
        self._port.command(0.0, 0.0)
        deadline_s, before = self._port.now_s() + REST_DEADLINE_S, self._port.odometry()
        give_up_s = time.monotonic() + self._landing.patience_s
        while True:
            self._port.wait(REST_S)
            now = self._port.odometry()
            moved_m = math.hypot(now.x - before.x, now.y - before.y)
            turned_rad = wrap_angle(now.yaw - before.yaw)
            if moved_m < REST_M and abs(turned_rad) < REST_RAD:
                return
            if self._port.now_s() > deadline_s and time.monotonic() >= give_up_s:
                raise SimulationError(
                    f"{REST_DEADLINE_S:g} s after it was told to stop the robot still moves, at"
                    f" {moved_m / REST_S:.3f} m/s and {turned_rad / REST_S:.3f} rad/s: does someone else"
                    " drive it?"
                )
            before = now

    def _correct(self, move: _Move) -> None:
        """Creep to the goal if the robot obeyed so late that it is off: its computer may be busy."""
        approach = move.approach
        for _ in range(CORRECTIONS):
            off = move.covered() - approach.goal
            if self.collision_detected or not self.is_running or not approach.is_off(off):
                return
            sign = -math.copysign(1.0, off)
            deadline_s = self._port.now_s() + abs(off) / approach.slowest + DEADLINE_MARGIN_S

            def ends(sign: float = sign) -> bool:
                there = sign * (approach.goal - move.covered()) <= approach.near
                blocked = move.watches_scan and sign > 0 and self._is_blocked_ahead()
                return there or blocked or not self.is_running

            while not ends() and not self._port.in_contact() and self._port.now_s() < deadline_s:
                move.drive(sign * approach.slowest)
                self._port.wait(self._period_s, ends)
            self._settle()

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

    def _is_blocked_ahead(self) -> bool:
        return clearance_ahead_m(self._port.scan()) < self.collision_threshold_m
