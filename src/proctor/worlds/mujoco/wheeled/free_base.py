"""The base of a robot in open space, moved by arithmetic with the bits that physics would give.

Far from everything, physics only moves the base as its servos say. Conservative advancement decides that: a
disc with a gap of d to its nearest obstacle can go d anywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import copysign, cos, hypot, nan, sin

import mujoco

from proctor.core.geometry import wrap_angle
from proctor.core.types import STEP_M, Pose2
from proctor.worlds.mujoco.wheeled.world import World

LOOK_AHEAD_M = STEP_M + 0.01
"""Gaps are measured up to this beyond the one that is kept: in open space, once in a move of the exam."""


def can_be_free(world: World) -> bool:
    """Tell whether the robot is all that moves in a world, and its scanner sees only what it can touch."""
    robot, model = world.robot, world.model
    scans_at_its_height = robot.ground_clearance_m <= robot.lidar.height_m <= robot.height_m
    # The lidar sees the meshes of a house, but the robot touches boxes around them.
    return model.nv == 3 and model.nmocap == 0 and world.house is None and scans_at_its_height


class NotFreeError(Exception):
    """Something is so near that only physics can tell what happens."""


class FreeBase:
    """The base of a world's robot where it touches nothing: its servos, integrated as MuJoCo does it.

    `try_start` takes over the world's state, `finish` changes it.
    """

    def __init__(self, world: World) -> None:
        self._world, self._spare = world, mujoco.MjData(world.model)
        model = world.model
        self._step_s = float(model.opt.timestep)
        body = world.body.body_id
        self._mass_kg, self._inertia_kgm2 = float(model.body_mass[body]), float(model.body_inertia[body, 2])
        self._gains: list[float] = model.actuator_gainprm[:, 0].tolist()
        self._max_forces: list[float] = model.actuator_forcerange[:, 1].tolist()

    def try_start(self, kept_gap_m: float) -> bool:
        """Take over the world's state if the robot is at rest and the gap around it is larger than this.

        From now on, `follow` refuses to come nearer to anything.
        """
        data = self._world.data
        self._velocity: list[float] = data.qvel.tolist()
        # On a robot that turns while it rolls on, forces act that cancel out but for rounding: left out here.
        if max(map(abs, self._velocity)) > 1e-9:
            return False
        self._x, self._y, self._yaw = data.qpos.tolist()
        self._command: Sequence[float] = data.ctrl.tolist()
        self._kept_gap_m = kept_gap_m
        self._room_m = self._measure_room_m(self._x, self._y)
        self.time_s = float(data.time)
        return self._room_m > 0

    def follow(self, speeds_mps: Sequence[float], angular_radps: float) -> None:
        """Advance one time step at each of these speeds along the heading; NotFreeError if not free."""
        # What MuJoCo computes, and in its order, so that rounding errors are the same. That is why the moment
        # of inertia depends on the heading.
        step_s, time_s, room_m = self._step_s, self.time_s, self._room_m
        x, y, yaw, (vx, vy, omega), per_mass = self._x, self._y, self._yaw, self._velocity, 1 / self._mass_kg
        (gain_x, gain_y, gain_yaw), (max_x, max_y, max_yaw) = self._gains, self._max_forces
        last_yaw = nan
        for speed_mps in speeds_mps:
            if yaw != last_yaw:  # on a straight line it stays the same
                cos_yaw, sin_yaw, last_yaw = cos(yaw), sin(yaw), yaw
                half_cos, half_sin = cos(yaw * 0.5), sin(yaw * 0.5)
                upright = half_cos * half_cos + half_sin * half_sin  # not with **, which rounds otherwise
                per_inertia = 1 / (upright * (upright * self._inertia_kgm2))
            target_x, target_y = speed_mps * cos_yaw, speed_mps * sin_yaw
            fx = gain_x * target_x - gain_x * vx
            fy = gain_y * target_y - gain_y * vy
            torque = gain_yaw * angular_radps - gain_yaw * omega
            vx += step_s * ((fx if -max_x <= fx <= max_x else copysign(max_x, fx)) * per_mass)
            vy += step_s * ((fy if -max_y <= fy <= max_y else copysign(max_y, fy)) * per_mass)
            torque = torque if -max_yaw <= torque <= max_yaw else copysign(max_yaw, torque)
            omega += step_s * (torque * per_inertia)
            x += step_s * vx
            y += step_s * vy
            yaw += step_s * omega
            time_s += step_s
            room_m -= step_s * hypot(vx, vy)
            if room_m <= 0:
                room_m = self._measure_room_m(x, y)
                if room_m <= 0:
                    raise NotFreeError
        self._x, self._y, self._yaw, self.time_s, self._room_m = x, y, yaw, time_s, room_m
        self._velocity, self._command = [vx, vy, omega], (target_x, target_y, angular_radps)

    def finish(self) -> None:
        """Move the robot of the world to where it has come here."""
        self._world.set_state((self._x, self._y, self._yaw), self._velocity, self._command, self.time_s)

    def pose(self) -> Pose2:
        """Return the robot's pose."""
        return Pose2(self._x, self._y, wrap_angle(self._yaw))

    def measure_gap_m(self, x: float, y: float, *, reach_m: float) -> float:
        """Return the gap, at most `reach_m`, between the robot at this place in the world and all objects."""
        model, body, spare = self._world.model, self._world.body, self._spare
        spare.qpos[:2] = x, y
        margins = ((model.geom_margin, body.geom_id), (model.body_margin, body.body_id))
        try:
            for margin, index in margins:  # contacts are reported from this distance on
                margin[index] = reach_m
            mujoco.mj_kinematics(model, spare)
            mujoco.mj_collision(model, spare)
        finally:
            for margin, index in margins:
                margin[index] = 0.0
        return float(spare.contact.dist.min()) if spare.ncon else reach_m

    def _measure_room_m(self, x: float, y: float) -> float:
        """Return how far the robot may go from here, in any direction, and still keep its gap."""
        return self.measure_gap_m(x, y, reach_m=self._kept_gap_m + LOOK_AHEAD_M) - self._kept_gap_m
