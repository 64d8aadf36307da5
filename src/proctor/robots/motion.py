"""Closed-loop motion: the four actions and timed moves, for any `Robot`."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np

from proctor.core.errors import SimulationError
from proctor.core.geometry import wrap_angle
from proctor.core.types import SECTOR_RAD, STEP_M, TURN_RAD, Action, Pose2, Scan
from proctor.robots.landing import AT_ONCE, Approach, Landing, Prediction
from proctor.robots.robot import STILL, Robot, Twist

UNHINDERED = 0.98  # a robot that covers this share of a step moves freely, though it may touch something
DEADLINE_FACTOR, DEADLINE_MARGIN_S = 3.0, 2.0
REST_S, REST_MPS, REST_RADPS, REST_DEADLINE_S = 0.015, 0.01, 0.02, 3.0
"""A robot rests if it is slower than this for the time; it has to within the deadline."""
SCAN_WAIT_S = 0.5  # of the robot's time, for a scan that was made after a drive; longer if it runs fast


class Motion(NamedTuple):
    """How a move ended."""

    collided: bool
    duration_s: float  # in the robot's time


class _Move(NamedTuple):
    """A drive or a turn; all numbers are in metres, or all in radians."""

    approach: Approach
    measure: Callable[[], tuple[float, float]]  # returns the newest odometry's time, and the part covered
    command: Callable[[float], None]  # commands a speed along the way
    now_s: Callable[[], float]
    watches_scan: bool
    prediction: Prediction | None  # of a robot that obeys late

    def drive(self, speed: float) -> None:
        """Command a speed along the way."""
        if self.prediction is not None:
            self.prediction.command(self.now_s(), speed)
        self.command(speed)

    def covered(self) -> float:
        """Return how much of the path is covered once the robot has executed the commands so far."""
        return self.predict(*self.measure())

    def predict(self, measured_s: float, covered: float) -> float:
        """Return what `covered` does, given the newest odometry: its time and what it shows."""
        if self.prediction is None:
            return covered
        return self.prediction.covered(measured_s, covered, self.now_s())


class ActionExecutor:
    """Drives a robot by its odometry and stops it before, or when, it hits something.

    A collision is a contact, or, when driving forward, a range below `collision_threshold_m` (from the
    scanner) within 30° of straight ahead. Turns ignore the scan, else a robot at a wall could never turn
    away. A contact that was there when a move began does not end it as long as the robot moves freely:
    away, or along, but not sliding. Speeds and threshold may be set between moves. `landing` says how
    moves end: robots that obey late need another one than those that obey at once.
    """

    def __init__(
        self,
        robot: Robot,
        *,
        linear_speed_mps: float = 0.1,
        angular_speed_radps: float = 0.3,
        collision_threshold_m: float = 0.2,
        control_period_s: float = 0.05,
        landing: Landing = AT_ONCE,
    ) -> None:
        if not (linear_speed_mps > 0 and angular_speed_radps > 0 and control_period_s > 0):
            raise ValueError("speeds and control period must be above 0")
        self._robot = robot
        self.linear_speed_mps = linear_speed_mps
        self.angular_speed_radps = angular_speed_radps
        self.collision_threshold_m = collision_threshold_m
        self._period_s = control_period_s
        self._landing, self._latency_s = landing, 0.05  # of a robot that has not moved yet
        self.is_running = False
        self.collision_detected = False  # in the last move
        self.collision_count = 0  # since the executor was made, at most one per move

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
        """Drive straight, backwards if negative; SimulationError if a free robot does not move."""
        (_, start), sign = self._robot.odometry(), math.copysign(1.0, distance_m)

        def driven_m() -> tuple[float, float]:
            measured_s, now = self._robot.odometry()
            return measured_s, math.hypot(now.x - start.x, now.y - start.y)

        def drive(speed_mps: float) -> None:
            self._robot.command(Twist(vx=sign * speed_mps))

        approach = Approach(
            abs(distance_m), self.linear_speed_mps, self._landing.drive, self._landing.braking_s
        )
        return self._move(approach, driven_m, drive, watches_scan=distance_m > 0)

    def rotate(self, angle_rad: float) -> Motion:
        """Turn on the spot by any angle, left if positive; SimulationError if a free robot does not turn."""
        sign, turned_rad, last_yaw = math.copysign(1.0, angle_rad), 0.0, self._robot.odometry()[1].yaw

        def turned() -> tuple[float, float]:
            nonlocal turned_rad, last_yaw
            measured_s, now = self._robot.odometry()
            turned_rad += wrap_angle(now.yaw - last_yaw)  # summed up, so that crossing ±180° does not matter
            last_yaw = now.yaw
            return measured_s, sign * turned_rad

        def turn(speed_radps: float) -> None:
            self._robot.command(Twist(omega=sign * speed_radps))

        approach = Approach(
            abs(angle_rad), self.angular_speed_radps, self._landing.turn, self._landing.braking_s
        )
        return self._move(approach, turned, turn, watches_scan=False)

    def move_timed(self, linear_x: float = 0.0, angular_z: float = 0.0, duration_s: float = 1.0) -> Motion:
        """Drive at this velocity for this long, without odometry; the last command is scaled to land."""
        start_s, touched_before = self._robot.now_s(), self._robot.in_contact()
        watch_scan = linear_x > 0

        def alarm() -> bool:
            return not self.is_running or (watch_scan and self._is_blocked_ahead())

        with self._running():
            while self.is_running and (left_s := start_s + duration_s - self._robot.now_s()) > 1e-9:
                if watch_scan and self._is_blocked_ahead():
                    self.note_collision()
                    break
                share = min(1.0, left_s / self._period_s)
                self._robot.command(Twist(share * linear_x, 0.0, share * angular_z))
                self._robot.wait(self._period_s, alarm)
                touched = self._robot.in_contact()
                if touched and not touched_before:
                    self.note_collision()
                    break
                touched_before = touched
        self._robot.wait(self._period_s)
        return self._ended(start_s)

    def halt(self) -> None:
        """Stop at once; a move that another thread runs ends where the robot is."""
        self.is_running = False
        self._robot.command(STILL)

    def note_collision(self) -> None:
        """Count a collision of the present move."""
        self.collision_detected = True
        self.collision_count += 1

    def stop(self) -> Motion:
        """Stand still."""
        start_s = self._robot.now_s()
        with self._running():
            pass
        self._robot.wait(self._period_s)
        return self._ended(start_s)

    def _move(
        self,
        approach: Approach,
        measure: Callable[[], tuple[float, float]],
        command: Callable[[float], None],
        *,
        watches_scan: bool,
    ) -> Motion:
        """Make a drive or a turn, see `_Move`."""
        start_s = self._robot.now_s()
        prediction = Prediction(self._latency_s) if self._landing.is_late else None
        move = _Move(approach, measure, command, self._robot.now_s, watches_scan, prediction)
        with self._running():
            self._approach(move)
            if prediction is not None:
                self._latency_s = prediction.latency_s
                self._settle()
                self._correct(move)
                self._look_ahead(move)
        if prediction is None:
            self._robot.wait(self._period_s)
        return self._ended(start_s)

    def _approach(self, move: _Move) -> None:
        """Drive until the goal is reached, or something is in the way."""
        approach = move.approach
        start_s, touched_before = self._robot.now_s(), self._robot.in_contact()
        deadline_s = start_s + DEADLINE_FACTOR * approach.goal / approach.speed + DEADLINE_MARGIN_S
        give_up_s = time.monotonic() + self._landing.patience_s
        covered, done, starting = 0.0, 0.0, True  # it takes a period to get going
        due_s = start_s

        def alarm() -> bool:
            if (move.watches_scan and self._is_blocked_ahead()) or not self.is_running:
                return True
            now = move.covered()
            return approach.is_over(now) or (approach.is_final(now) and not approach.is_final(done))

        while self.is_running and not approach.is_over(done):
            if move.watches_scan and self._is_blocked_ahead():
                self.note_collision()
                break
            if self._robot.now_s() > deadline_s and time.monotonic() >= give_up_s:
                raise SimulationError(
                    f"the robot covered {covered:.3f} of {approach.goal:.3f} m or rad in"
                    f" {self._robot.now_s() - start_s:.1f} s of its time and touches nothing: check its drive"
                    " and its odometry"
                )
            step = approach.step(done, self._period_s)
            move.drive(step / self._period_s)
            due_s = self._wait_for_period(due_s, alarm)
            before, (measured_s, covered) = covered, move.measure()
            done = move.predict(measured_s, covered)
            touched = self._robot.in_contact()
            if touched and not (touched_before and (starting or covered - before > UNHINDERED * step)):
                self.note_collision()
                break
            touched_before, starting = touched, False

    def _wait_for_period(self, due_s: float, alarm: Callable[[], bool]) -> float:
        """Wait until the next command is due, or for an alarm; a late present command does not delay it."""
        now_s = self._robot.now_s()
        left_s = min(due_s - now_s, 0.0) + self._period_s
        if left_s <= 0:
            left_s = self._period_s
        self._robot.wait(left_s, alarm)
        return now_s + left_s

    def _settle(self) -> None:
        """Stop, and wait until the odometry shows that the robot stands."""
        stopped_s, give_up_s = self._robot.now_s(), time.monotonic() + self._landing.patience_s
        before: tuple[float, Pose2] | None = None
        speeds = math.inf, math.inf

        def rests() -> bool:
            nonlocal before, speeds
            measured_s, now = self._robot.odometry()
            if before is None or measured_s < before[0]:
                if measured_s >= stopped_s + self._latency_s:
                    before = measured_s, now
            elif measured_s - before[0] >= REST_S:
                passed_s, was = measured_s - before[0], before[1]
                moved_m, turned_rad = math.hypot(now.x - was.x, now.y - was.y), wrap_angle(now.yaw - was.yaw)
                speeds, before = (moved_m / passed_s, turned_rad / passed_s), (measured_s, now)
            return speeds[0] < REST_MPS and abs(speeds[1]) < REST_RADPS

        while not rests():
            if self._robot.now_s() > stopped_s + REST_DEADLINE_S and time.monotonic() >= give_up_s:
                raise SimulationError(
                    f"{REST_DEADLINE_S:g} s after it was told to stop the robot still moves, at"
                    f" {speeds[0]:.3f} m/s and {speeds[1]:.3f} rad/s: does someone else drive it?"
                )
            self._robot.command(STILL)
            self._robot.wait(self._period_s, rests)

    def _correct(self, move: _Move) -> None:
        """Creep to the goal if the robot obeyed so late that it is off: its computer may be busy."""
        approach = move.approach
        for _ in range(3):
            off = move.measure()[1] - approach.goal
            if self.collision_detected or not self.is_running or not approach.is_off(off):
                return
            sign = -math.copysign(1.0, off)
            deadline_s = self._robot.now_s() + abs(off) / approach.creep + DEADLINE_MARGIN_S

            def left(sign: float = sign) -> float:
                return sign * (approach.goal - move.covered())

            def ends(sign: float = sign, left: Callable[[], float] = left) -> bool:
                blocked = move.watches_scan and sign > 0 and self._is_blocked_ahead()
                return left() <= approach.near or blocked or not self.is_running

            while not ends() and not self._robot.in_contact() and self._robot.now_s() < deadline_s:
                move.drive(sign * min(approach.creep, left() / self._period_s))
                self._robot.wait(self._period_s, ends)
            move.drive(0.0)
            self._settle()

    def _look_ahead(self, move: _Move) -> None:
        """Count what a scan from where the robot stands shows: it may have come too late to end the drive."""
        if not move.watches_scan or self.collision_detected or not self.is_running:
            return
        (stood_s, _), give_up_s = self._robot.odometry(), time.monotonic() + self._landing.patience_s
        end_s = self._robot.now_s() + SCAN_WAIT_S

        def has_looked() -> bool:
            return self._robot.scanned_s() >= stood_s or not self.is_running

        while not has_looked() and (self._robot.now_s() < end_s or time.monotonic() < give_up_s):
            self._robot.wait(self._period_s, has_looked)
        if self.is_running and self._is_blocked_ahead():
            self.note_collision()

    @contextmanager
    def _running(self) -> Iterator[None]:
        self.is_running, self.collision_detected = True, False
        try:
            yield
        finally:
            # On errors, too: a real robot would drive on.
            self._robot.command(STILL)
            self.is_running = False

    def _ended(self, start_s: float) -> Motion:
        return Motion(self.collision_detected, self._robot.now_s() - start_s)

    def _is_blocked_ahead(self) -> bool:
        return clearance_ahead_m(self._robot.scan()) < self.collision_threshold_m


def clearance_ahead_m(scan: Scan) -> float:
    """Return the shortest valid range within 30° of straight ahead, by angles; infinity if there is none."""
    ranges = np.asarray(scan.ranges)
    if not len(ranges):
        return math.inf
    angles = scan.angle_min + scan.angle_increment * np.arange(len(ranges))
    # Wrapped, so that scans that begin straight ahead or behind are right, too.
    ahead = np.abs((angles + np.pi) % (2 * np.pi) - np.pi) <= SECTOR_RAD + 1e-6
    valid = (ranges > scan.range_min) & (ranges < scan.range_max)  # False for NaN and inf
    return float(ranges[ahead & valid].min(initial=math.inf))
