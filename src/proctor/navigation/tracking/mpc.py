"""The controller that keeps a robot on its trajectory: model predictive, one solve each tick."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any

import msgspec
import numpy as np
from numpy.typing import ArrayLike

from proctor.core.errors import SimulationError, UserError
from proctor.core.geometry import wrap_angle, yaw_of_quaternion
from proctor.core.types import Array
from proctor.kernels.clearance import ClearanceField
from proctor.kernels.tracking import STAGE_S
from proctor.navigation.path import MOVING_MPS, Trajectory
from proctor.navigation.plugins import Controller, ControlReport, PluginOptions
from proctor.navigation.tracking.drive_models import MODELS, DriveModel, Horizon, TrackingState
from proctor.navigation.warm_up import warm_up_control
from proctor.robots.dynamics import Dynamics
from proctor.robots.robot import STILL, Robot, Twist

PERIOD_S = 1 / 60
MISSED, CATCH_UP_S = 1.5, 0.1  # periods after which a tick was missed, and how much is made up for


class MpcOptions(PluginOptions, frozen=True):
    """How far ahead it plans."""

    horizon_s: Annotated[float, msgspec.Meta(gt=0, le=60)] = 1.5


class MpcController(Controller):
    """Tracks a reference trajectory and commands the robot's velocity.

    Each tick it plans the accelerations of the next `horizon_s` (in stages of 0.05 s) that keep the robot
    on the reference, within its limits and off obstacles, and sends the first of them as the velocity to
    have at the next tick. Two commands that follow one another never differ by more than the limits
    allow. It continues from the velocity that it sent last, not from the measured one, which lags behind;
    if someone else has set another velocity since, it continues from the measured one, and after `stop`
    from rest. After the end of the reference the robot is kept there.

    `now_s` is the clock, of the simulation if there is one. `field` returns the newest clearance field,
    or None to ignore obstacles. `on_command` receives each tick's report.
    """

    options_type = MpcOptions

    def __init__(
        self,
        robot: Robot,
        *,
        now_s: Callable[[], float],
        field: Callable[[], ClearanceField | None] = lambda: None,
        radius_m: float | None = None,
        period_s: float = PERIOD_S,
        on_command: Callable[[ControlReport], None] | None = None,
        options: MpcOptions | None = None,
    ) -> None:
        radius_m = robot.spec.radius_m if radius_m is None else radius_m
        super().__init__(
            robot, now_s=now_s, field=field, radius_m=radius_m, period_s=period_s, options=options
        )
        self._on_command = on_command
        self._stages = max(4, round(self.options.horizon_s / STAGE_S))
        self._stage_times_s: Array = STAGE_S * np.arange(self._stages + 1, dtype=np.float64)
        self.mpc_horizon = self._stages * STAGE_S
        self._models: dict[str, DriveModel] = {}
        self._reference: Trajectory | None = None
        self._start_s = 0.0
        self._is_new = False  # the reference has been set since the last tick
        self._settling = Settling()
        self._heading_error_rad: float | None = None
        self._velocity_before, self._velocity = np.zeros(3), np.zeros(3)
        """What the last tick went on from, and what it sent, in the frame of the drive's model."""
        self._has_stopped = False
        self._model(robot.spec.dynamics)

    def set_reference_trajectory(
        self, trajectory: Trajectory | Iterable[Any], start_time_s: float | None = None
    ) -> None:
        """Follow a trajectory from now on, or as if it had begun at a time of the clock."""
        start_s = self.now_s() if start_time_s is None else start_time_s
        if not math.isfinite(start_s):
            raise ValueError(f"expected a finite time to begin at, found {start_s}")
        self._reference, self._start_s = Trajectory.of(trajectory), start_s
        self._is_new = True
        self._heading_error_rad = None
        self._settling.forget()

    def clear_reference_trajectory(self) -> None:
        """Forget the reference; the robot keeps its last commanded velocity."""
        self._reference = None

    def has_reference_trajectory(self) -> bool:
        """Tell whether there is one."""
        return self._reference is not None

    def get_trajectory_segment(self, t: float, horizon: float | None = None) -> Trajectory:
        """Return the reference from a time of the clock on, with times from 0; UserError if none is set."""
        if self._reference is None:
            raise UserError("there is no reference trajectory; set one with set_reference_trajectory")
        horizon_s = self.mpc_horizon if horizon is None else horizon
        if not 0 < horizon_s < math.inf:
            raise UserError(f"expected a horizon of more than 0 s, found {horizon_s}")
        times_s: Array = STAGE_S * np.arange(math.ceil(horizon_s / STAGE_S - 1e-9) + 1, dtype=np.float64)
        rows = self._reference.sampled(t - self._start_s + times_s)
        return Trajectory(times_s, rows[:, :3], rows[:, 3:])

    def solve(
        self,
        current_state: tuple[Any, ArrayLike],
        reference: Trajectory | Iterable[Any],
        constraints: Dynamics | Mapping[str, Any],
    ) -> Twist:
        """Return the velocity (vx, vy, omega) in the robot's frame to have at the next tick.

        Each call counts as one tick: the plan of the call before is where it starts from.
        `current_state` is a pose, and a velocity [vx, vy, omega] in the robot's frame. The pose is
        [x, y, yaw], or a position and a quaternion [qx, qy, qz, qw].
        `reference` is a segment from now on, times from 0; one that is shorter than the horizon
        continues with its last velocity. Raises SimulationError if the state is not finite.
        """
        dynamics = Dynamics.of(constraints)
        segment = Trajectory.of(reference)
        rows = segment.sampled(self._stage_times_s)
        beyond_s = self._stage_times_s - segment.duration_s
        late = beyond_s > 0
        rows[late, :3] = segment.poses[-1] + np.outer(beyond_s[late], segment.velocities[-1])
        rows[late, 3:] = segment.velocities[-1]
        pose = pose_of(current_state[0])
        pose[2] = rows[0, 2] + wrap_angle(pose[2] - rows[0, 2])
        velocity = np.array(current_state[1], dtype=float)
        if velocity.shape != (3,) or not np.isfinite(velocity).all():
            raise SimulationError(f"expected a velocity [vx, vy, omega], found {current_state[1]}")
        velocity = in_model_frame(velocity, pose[2], dynamics)
        self._velocity_before = velocity
        self._velocity, _ = self._next_velocity(pose, velocity, rows, dynamics, self.period_s)
        return self._command(self._velocity, pose, dynamics)

    def control_loop(self) -> None:
        """Compute one command and give it to the robot, unless there is no reference.

        Called again at the same time of the clock, it sends the same command again. If the robot's
        pose is not known or not finite, the robot is stopped and SimulationError raised.
        """
        self.clock_callback(self.now_s())

    def clock_callback(self, time_s: float) -> None:
        """Do what `control_loop` does, at a time: to be called at every tick of the clock."""
        if self._reference is None:
            return
        if self.last is not None and time_s == self.last.time_s and not self._is_new:
            self.robot.command(self.last.command)
            return
        began = time.perf_counter()
        try:
            report = self._tick(self._reference, time_s)
        except BaseException:
            self.stop()
            raise
        self._is_new = False
        self.last = report._replace(solve_time_s=time.perf_counter() - began)
        self.robot.command(report.command)
        if self._on_command is not None:
            self._on_command(self.last)

    def stop(self) -> None:
        """Stand still, and forget the reference and all plans."""
        self.clear_reference_trajectory()
        for model in self._models.values():
            model.forget()
        self.last = None
        self._has_stopped = True
        self.robot.command(STILL)

    def _tick(self, reference: Trajectory, time_s: float) -> ControlReport:
        dynamics = self.robot.spec.dynamics
        passed_s = self.period_s if self.last is None else time_s - self.last.time_s
        if not 0 <= passed_s < self.mpc_horizon:
            self._model(dynamics).forget()
            passed_s = self.period_s
        at = self.robot.pose()
        pose = pose_of((at.x, at.y, at.yaw))
        rows = reference.sampled(time_s - self._start_s + self._stage_times_s)
        target = rows[0, :3].copy()
        pose[2] = target[2] + self._unwrapped(float(pose[2] - target[2]))
        velocity = self._velocity_now(time_s, pose, dynamics)
        fallback = False
        if time_s - self._start_s < reference.duration_s:
            self._settling.forget()
        else:
            self._settling.update(_correctable(pose, target, dynamics), velocity, passed_s)
        if self._settling.rests:
            following = within_limits(np.zeros(3), velocity, dynamics, self.period_s)
        else:
            following, fallback = self._next_velocity(pose, velocity, rows, dynamics, passed_s)
        self._velocity_before, self._velocity = velocity, following
        off, (vx, vy) = pose[:2] - target[:2], rows[0, 3:5]
        direction = math.atan2(vy, vx) if math.hypot(vx, vy) > MOVING_MPS else target[2]
        return ControlReport(
            time_s=time_s,
            command=self._command(following, pose, dynamics),
            pose=pose,
            target=target,
            position_error_m=math.hypot(off[0], off[1]),
            heading_error_rad=float(pose[2] - target[2]),
            cross_track_error_m=float(math.cos(direction) * off[1] - math.sin(direction) * off[0]),
            fallback=fallback,
            resting=self._settling.rests,
            solve_time_s=0.0,
        )

    def _next_velocity(
        self, pose: Array, velocity: Array, rows: Array, dynamics: Dynamics, passed_s: float
    ) -> tuple[Array, bool]:
        """Return the velocity to have at the next tick, and whether the plain law made it."""
        model = self._model(dynamics)
        planned = model.plan(
            TrackingState(pose, velocity, rows, dynamics, passed_s, self.field(), self.radius_m)
        )
        # After ticks that were missed, it makes up for what they would have changed.
        step_s = self.period_s if passed_s < MISSED * self.period_s else min(passed_s, CATCH_UP_S)
        if planned is None:
            return follow(pose, velocity, rows[0], dynamics, step_s), True
        return within_limits(velocity + step_s * planned, velocity, dynamics, step_s), False

    def _velocity_now(self, time_s: float, pose: Array, dynamics: Dynamics) -> Array:
        """Return what to go on from: the velocity sent last, unless someone else has sent one since."""
        commanded = self.robot.commanded
        if self.last is not None:
            if math.dist(commanded, self.last.command) < 1e-6:
                return self._velocity_before if time_s == self.last.time_s else self._velocity
        elif self._has_stopped and not any(commanded):
            return np.zeros(3)  # not what is measured: the robot may have been stopped a moment ago
        measured = np.array(self.robot.velocity())
        if not np.isfinite(measured).all():
            raise SimulationError(f"the robot's velocity is {measured.tolist()}: not finite")
        return in_model_frame(measured, pose[2], dynamics)

    def _unwrapped(self, difference: float) -> float:
        """Return the heading error nearest to the one before, so that it does not jump at half a turn."""
        before = self._heading_error_rad or 0.0
        error = before + wrap_angle(difference - before)
        if abs(error) > 4.0:  # beyond half a turn, and some: the shorter way round is better again
            error = wrap_angle(error)
        self._heading_error_rad = error
        return error

    def _command(self, velocity: Array, pose: Array, dynamics: Dynamics) -> Twist:
        """Return a velocity of the model in the robot's frame."""
        vx, vy, omega = map(float, velocity)
        if dynamics.drive == "holonomic":  # The frame turns while the command holds: take its middle.
            yaw = pose[2] + 0.5 * self.period_s * omega
            vx, vy = math.cos(yaw) * vx + math.sin(yaw) * vy, math.cos(yaw) * vy - math.sin(yaw) * vx
        return Twist(vx, vy, omega)

    def _model(self, dynamics: Dynamics) -> DriveModel:
        model = self._models.get(dynamics.drive)
        if model is None:
            warm_up_control(dynamics.drive)
            model = self._models[dynamics.drive] = MODELS[dynamics.drive](Horizon.of(self._stages))
        return model


def _correctable(pose: Array, target: Array, dynamics: Dynamics) -> Array:
    """Return the error [x, y, yaw] that a drive can correct: of a differential one, not that to its side."""
    error = pose - target
    if dynamics.drive == "differential":
        error[0], error[1] = math.cos(pose[2]) * error[0] + math.sin(pose[2]) * error[1], 0.0
    return error


def pose_of(pose: Any) -> Array:
    """Return [x, y, yaw] of such a list, or of a position and a quaternion [qx, qy, qz, qw]."""
    if len(pose) == 2:
        position, (x, y, z, w) = pose
        yaw = yaw_of_quaternion(np.array([w, x, y, z]))
        found = np.array([float(position[0]), float(position[1]), yaw])
    else:
        found = np.array(pose, dtype=float)
    if found.shape != (3,) or not np.isfinite(found).all():
        raise SimulationError(f"expected a robot's pose of finite numbers, found {found.tolist()}")
    return found


def in_model_frame(velocity: Array, yaw: float, dynamics: Dynamics) -> Array:
    """Return a velocity of the robot's frame as the drive's model has it."""
    vx, vy, omega = velocity
    if dynamics.drive == "differential":
        return np.array([vx, 0.0, omega])
    cos, sin = math.cos(yaw), math.sin(yaw)
    return np.array([cos * vx - sin * vy, sin * vx + cos * vy, omega])


POSITION_PER_S = 1.5  # how fast an error is corrected; by a differential drive, only ahead
HEADING_PER_S = 3.0
MEAN_S = 0.3  # errors are averaged over this time: noise must not keep a robot awake
REST_M, WAKE_M = 0.004, 0.008
REST_RAD, WAKE_RAD = math.radians(0.2), math.radians(0.4)
SLOW_MPS, SLOW_RADPS = 0.03, 0.05


def follow(pose: Array, velocity: Array, target: Array, dynamics: Dynamics, period_s: float) -> Array:
    """Return the velocity to have one period later, within the limits.

    The yaw of `pose` [x, y, yaw] is within half a turn of the target's. `target` [x, y, yaw, vx, vy,
    omega] is in the world frame; `velocity` and the answer are in the world frame for a holonomic drive,
    in the robot's frame for a differential one.
    """
    off, heading = target[:2] - pose[:2], target[2] - pose[2]
    wanted = np.array([0.0, 0.0, target[5] + HEADING_PER_S * heading])
    if dynamics.drive == "holonomic":
        wanted[:2] = target[3:5] + POSITION_PER_S * off
    else:
        cos, sin = math.cos(pose[2]), math.sin(pose[2])
        ahead, left = cos * off[0] + sin * off[1], cos * off[1] - sin * off[0]
        speed = target[3] * math.cos(target[2]) + target[4] * math.sin(target[2])
        wanted[0] = speed * math.cos(heading) + POSITION_PER_S * ahead
        wanted[2] += 6.0 * speed * left  # turn towards the path, per metre driven and per metre of error
    return within_limits(wanted, velocity, dynamics, period_s)


def within_limits(wanted: Array, velocity: Array, dynamics: Dynamics, period_s: float) -> Array:
    """Return the velocity nearest to the wanted one that the limits allow one period later."""
    speed = math.hypot(wanted[0], wanted[1])
    slower = min(1.0, dynamics.v_max / max(speed, 1e-9))
    omega = min(max(wanted[2], -dynamics.omega_max), dynamics.omega_max)
    step = np.array([wanted[0] * slower, wanted[1] * slower, omega]) - velocity
    step[:2] *= min(1.0, dynamics.a_max * period_s / max(math.hypot(step[0], step[1]), 1e-9))
    turn = dynamics.alpha_max * period_s
    step[2] = min(max(step[2], -turn), turn)
    return np.asarray(velocity + step)


class Settling:
    """Decides between correcting the pose and resting, with a gap between the two."""

    def __init__(self) -> None:
        self._mean: Array | None = None
        self.rests = False

    def forget(self) -> None:
        """The robot has somewhere to go again."""
        self._mean, self.rests = None, False

    def update(self, error: Array, velocity: Array, passed_s: float) -> None:
        """Take the error [x, y, yaw] that the drive can correct, and the velocity to have now."""
        if self._mean is None:
            self._mean = np.array(error)
        self._mean += min(passed_s / MEAN_S, 1.0) * (error - self._mean)
        off_m, off_rad = math.hypot(self._mean[0], self._mean[1]), abs(self._mean[2])
        if self.rests:
            self.rests = off_m < WAKE_M and off_rad < WAKE_RAD
        elif off_m < REST_M and off_rad < REST_RAD:
            self.rests = math.hypot(velocity[0], velocity[1]) < SLOW_MPS and abs(velocity[2]) < SLOW_RADPS
