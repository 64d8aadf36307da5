"""When to be where on a path: the fastest trajectory that keeps the robot's limits.

A differential drive turns in place before the first leg, between legs and at the end, as far as needed. A
holonomic base turns while it drives.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from proctor.core.errors import UnknownName, missing_extra
from proctor.core.geometry import wrap_angle
from proctor.core.types import Pose2
from proctor.maps.failure import infeasible
from proctor.navigation.path import Leg, RobotMotion, Trajectory
from proctor.navigation.timing.curve import Curve, fastest_rates
from proctor.navigation.timing.moves import turn, turn_to, turn_to_stop_rad
from proctor.robots.dynamics import Dynamics

METHODS = ("fast", "toppra")
REST_MPS, REST_RADPS = 0.01, 0.01  # slower is at rest
LATE_S = 0.2  # a yaw rate counts as the path's if the robot can change it to that in this time
BETWEEN = np.array([0.25, 0.5, 0.75])  # of the time from one point to the next


def time_path(
    legs: Sequence[Leg],
    dynamics: Dynamics,
    *,
    start: RobotMotion,
    goal_yaw: float | None = None,
    method: str = "fast",
) -> Trajectory:
    """Return the fastest trajectory along the legs of a path, at rest at the end of each.

    A robot in motion must move along the path at its first point. Without `goal_yaw` a differential drive
    ends with the heading of the path, a holonomic base with its own. `method` is `fast`, or `toppra` for the
    library of that name.

    Raises NavigationFailure (INFEASIBLE_TRAJECTORY) if the robot cannot follow the path from how it moves.
    """
    if not np.isfinite([start.yaw, start.v, start.omega, goal_yaw or 0.0]).all():
        raise infeasible(f"expected finite numbers, found {start} and the goal's yaw {goal_yaw}")
    if not legs:
        raise infeasible("the path has no legs")
    ways = [curve.in_steps() for leg in legs if (curve := Curve.of_leg(leg)) is not None]
    x, y = (float(number) for number in legs[0].points[0])
    parts = [Trajectory([0.0], [[x, y, start.yaw]], [[0.0, 0.0, 0.0]])]
    speed = _start_speed(start, ways, dynamics)
    curves = ways
    if dynamics.drive == "holonomic":
        curves = turning_on_the_way(ways, dynamics, (start.yaw, speed, start.omega), goal_yaw)
    for index, curve in enumerate(curves):
        rate, omega = (speed, start.omega) if index == 0 else (0.0, 0.0)
        if rate == 0.0:
            parts.append(_turned(parts[-1], float(curve.poses[0, 2]), dynamics, omega))
        parts.append(_driven(_facing(curve, parts[-1], moving=rate > 0), dynamics, rate, method))
    omega = start.omega if not curves else 0.0
    if goal_yaw is not None or abs(omega) > REST_RADPS:
        stop_yaw = float(parts[-1].poses[-1, 2]) + turn_to_stop_rad(omega, dynamics)
        wanted = stop_yaw if goal_yaw is None else goal_yaw
        parts.append(_turned(parts[-1], wanted, dynamics, omega))
    return Trajectory.joined(parts)


def _start_speed(start: RobotMotion, ways: list[Curve], dynamics: Dynamics) -> float:
    """Return the speed to begin with, 0 at rest, after checking that it leads along the path."""
    if abs(start.v) <= REST_MPS:
        return 0.0
    if start.v < 0:
        raise infeasible(f"the robot drives backwards at {-start.v:.2f} m/s; it has to stop first")
    if not ways:
        raise infeasible(f"the robot moves at {start.v:.2f} m/s, but the path has no length")
    if dynamics.drive == "holonomic":
        return start.v
    heading, curvature = ways[0].poses[0, 2], ways[0].slopes[0, 2]
    if abs(wrap_angle(heading - start.yaw)) > 0.05:  # radians that a moving robot may point elsewhere
        directions = f"{math.degrees(start.yaw):.1f}°, but the path begins at {math.degrees(heading):.1f}°"
        raise infeasible(f"the robot moves at {start.v:.2f} m/s and heads {directions}")
    if abs(start.omega - curvature * start.v) > LATE_S * dynamics.alpha_max:
        rates = f"{start.omega:.2f} rad/s, but the path begins with {curvature * start.v:.2f} rad/s"
        raise infeasible(f"the robot moves at {start.v:.2f} m/s and turns at {rates}")
    return start.v


def _driven(curve: Curve, dynamics: Dynamics, speed: float, method: str) -> Trajectory:
    if method not in METHODS:
        raise UnknownName("timing method", method, METHODS)
    find_rates = fastest_rates
    if method == "toppra":
        try:
            from proctor.navigation.timing.toppra_timing import fastest_rates as find_rates  # noqa: PLC0415
        except ModuleNotFoundError as error:
            raise missing_extra(f"the timing method '{method}'", error) or error from None
    for _ in range(4):
        rates, highest = find_rates(curve, dynamics, speed)
        if speed > 1.01 * highest:  # a start that is hardly too fast is slowed
            limits = f"at most {highest:.2f} m/s there keeps the limits further on"
            raise infeasible(f"the robot starts at {speed:.2f} m/s, but {limits}")
        trajectory = curve.timed(rates)
        if _hardest(trajectory, dynamics) <= 1.01:  # else its path is divided more finely
            break
        curve = curve.refined(np.diff(curve.knots) / 2)
    return trajectory


def _hardest(trajectory: Trajectory, dynamics: Dynamics) -> float:
    """Return the largest velocity or acceleration of a trajectory, also between its points, of its limit."""
    times_s = trajectory.times_s
    between_s = times_s[:-1, None] + np.diff(times_s)[:, None] * BETWEEN
    vx, vy, omega = trajectory.sampled(between_s.ravel())[:, 3:].T
    curve = Curve(times_s, trajectory.poses, trajectory.velocities)
    rows = np.concatenate(curve.bends(sideways=dynamics.drive == "holonomic"))
    return float(
        max(
            np.hypot(vx, vy).max() / dynamics.v_max,
            np.abs(omega).max() / dynamics.omega_max,
            np.hypot(rows[:, 1], rows[:, 2]).max() / dynamics.a_max,
            np.abs(rows[:, 4]).max() / dynamics.alpha_max,
        )
    )


def _turned(before: Trajectory, yaw: float, dynamics: Dynamics, omega: float) -> Trajectory:
    """Return the turn in place to a heading after a trajectory; only its last point if it is not worth it."""
    pose = Pose2(*map(float, before.poses[-1]))
    if abs(omega) <= REST_RADPS and abs(wrap_angle(yaw - pose.yaw)) <= math.radians(0.2):
        return turn(pose, 0.0, dynamics)
    return turn_to(pose, yaw, dynamics, omega=omega)


def _facing(curve: Curve, before: Trajectory, *, moving: bool) -> Curve:
    """Return a curve whose heading continues a trajectory's last, without a jump by whole turns.

    What a turn that was left out would have brought is spread over the path.
    """
    yaw = float(before.poses[-1, 2])
    rest_rad = wrap_angle(yaw - float(curve.poses[0, 2]))
    turns_rad = yaw - rest_rad - curve.poses[0, 2]
    if moving:
        rest_rad = 0.0
    share = (curve.knots - curve.knots[0]) / curve.length
    yaws = curve.poses[:, 2] + turns_rad + rest_rad * (1 - share)
    return curve.with_yaw(yaws, curve.slopes[:, 2] - rest_rad / curve.length)


def turning_on_the_way(
    ways: Sequence[Curve], dynamics: Dynamics, start: tuple[float, float, float], goal_yaw: float | None
) -> list[Curve]:
    """Return paths with headings that go evenly from the start's to the goal's, the short direction around.

    Evenly is about the quickest: either the path or the turn takes as long as it would alone. `start` is
    yaw, speed and yaw rate. In motion, the yaw rate changes to an even one over a distance in which the
    robot can do it; at rest, the robot has stopped turning when it starts. Without `goal_yaw` the last
    heading is that in which the robot can stop turning.
    """
    if not ways:
        return []
    yaw, speed, omega = start
    total_m = sum(curve.length for curve in ways)
    stop_rad = turn_to_stop_rad(omega, dynamics)
    if speed <= 0:
        yaw, stop_rad = yaw + stop_rad, 0.0
    angle_rad = stop_rad if goal_yaw is None else stop_rad + wrap_angle(goal_yaw - yaw - stop_rad)
    turned: list[Curve] = []
    passed_m = 0.0
    slope, more, ramp_m = _ramp(angle_rad, total_m, speed, omega, dynamics)
    for curve in ways:
        way_m = passed_m + curve.knots - curve.knots[0]
        gone = np.minimum(way_m / ramp_m, 1.0)
        yaws = yaw + slope * way_m + more * ramp_m * gone * (1 - gone / 2)
        turned.append(curve.with_yaw(yaws, slope + more * (1 - gone)))
        passed_m += curve.length
    return turned


def _ramp(
    angle_rad: float, total_m: float, speed: float, omega: float, dynamics: Dynamics
) -> tuple[float, float, float]:
    """Return the turn per metre, how much more of it there is at first, and the way until that is gone."""
    slope = angle_rad / total_m
    if speed <= 0:
        return slope, 0.0, total_m
    first, ramp_m = omega / speed, 0.0
    for _ in range(12):  # the two depend on each other; a few rounds settle them
        # With half of the yaw acceleration, so that the robot can also speed up.
        square = min(speed**2 + 2 * dynamics.a_max * ramp_m, max(dynamics.v_max, speed) ** 2)
        ramp_m = min(max(2 * abs(first - slope) * square / dynamics.alpha_max, 1e-3), total_m)
        slope = (angle_rad - first * ramp_m / 2) / (total_m - ramp_m / 2)
    return slope, first - slope, ramp_m
