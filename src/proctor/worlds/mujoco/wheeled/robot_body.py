"""A robot in a world: how it is built of MuJoCo's parts, and where it is, how fast, and what it touches."""

from __future__ import annotations

import math
from typing import Any

import mujoco
import numpy as np

from proctor.core.errors import SimulationError
from proctor.core.geometry import wrap_angle
from proctor.core.types import Array, Pose2
from proctor.robots.spec import RobotSpec
from proctor.worlds.mujoco.contacts import SOLID, Group

COLOR = (0.25, 0.27, 0.3, 1.0)
"""Of a robot in the eyes of the others."""
AXES = (("x", "SLIDE", [1, 0, 0]), ("y", "SLIDE", [0, 1, 0]), ("yaw", "HINGE", [0, 0, 1]))


def add_robot(spec: Any, name: str, robot: RobotSpec, *, floor_z: float) -> None:
    """Put a robot into an MjSpec: a cylinder with velocity servos for x, y and yaw, and a camera.

    Its parts are called after it with a `#` in front, as no object of a scene is.
    """
    camera = robot.camera
    body = spec.worldbody.add_body(name=f"#{name}", pos=[0, 0, floor_z])
    half_m = (robot.height_m - robot.ground_clearance_m) / 2
    body.add_geom(
        name=f"#{name}#",
        type=mujoco.mjtGeom.mjGEOM_CYLINDER,
        size=[robot.radius_m, half_m, 0],
        pos=[0, 0, robot.ground_clearance_m + half_m],
        mass=robot.mass_kg,
        contype=SOLID,
        conaffinity=SOLID,
        # A smooth bumper: rubbing along a wall must not turn the robot.
        condim=1,
        priority=1,
        rgba=COLOR,
        group=Group.SCANNED,  # by the others; its own scanner leaves it out
    )
    inertia_kgm2 = robot.mass_kg * robot.radius_m**2 / 2
    inertias = (robot.mass_kg, robot.mass_kg, inertia_kgm2)
    limits = (robot.drive_force_n, robot.drive_force_n, robot.drive_torque_nm)
    for (axis, kind, direction), inertia, limit in zip(AXES, inertias, limits, strict=True):
        joint = f"#{name}.{axis}"
        body.add_joint(name=joint, type=getattr(mujoco.mjtJoint, f"mjJNT_{kind}"), axis=direction)
        servo = spec.add_actuator(
            name=joint, target=joint, trntype=mujoco.mjtTrn.mjTRN_JOINT, forcerange=[-limit, limit]
        )
        # As stiff as explicit integration allows: a velocity is reached in one step, if force allows.
        servo.set_to_velocity(kv=inertia / spec.option.timestep)
    pitch = math.radians(camera.pitch_deg)
    # MuJoCo's cameras look along -z with y up.
    right, up = np.array([0, -1, 0]), np.array([-math.sin(pitch), 0, math.cos(pitch)])
    rotation, wxyz = np.stack([right, up, np.cross(right, up)], axis=1), np.empty(4)
    mujoco.mju_mat2Quat(wxyz, rotation.ravel())
    body.add_camera(name=f"#{name}", pos=[0, 0, camera.height_m], quat=wxyz, fovy=camera.fov_deg)


def remove_robot(spec: Any, name: str) -> None:
    """Take a robot out of an MjSpec."""
    for axis, _, _ in AXES:
        spec.delete(spec.actuator(f"#{name}.{axis}"))
    spec.delete(spec.body(f"#{name}"))


class RobotBody:
    """One robot of a world."""

    def __init__(self, name: str, model: Any, data: Any) -> None:
        self.name = name
        self.camera_name = f"#{name}"
        self.bind(model, data)

    def bind(self, model: Any, data: Any) -> None:
        """Go on in a model that was compiled anew."""
        self._model, self._data = model, data
        first = f"#{self.name}.x"
        position, speed = int(model.joint(first).qposadr[0]), int(model.joint(first).dofadr[0])
        servo: int = model.actuator(first).id
        self._position, self._speed = slice(position, position + 3), slice(speed, speed + 3)
        self._servos = slice(servo, servo + 3)
        self.body_id: int = model.body(f"#{self.name}").id
        self.geom_id: int = model.geom(f"#{self.name}#").id

    def put(self, pose: Pose2) -> None:
        """Put the robot somewhere, at rest. MuJoCo's `mj_forward` is to follow."""
        self._data.qpos[self._position] = pose.x, pose.y, pose.yaw
        self._data.qvel[self._speed] = 0.0

    def drive(self, velocity_world: tuple[float, float, float]) -> None:
        """Set the servos to this velocity: x, y and yaw."""
        self._data.ctrl[self._servos] = velocity_world

    def pose(self) -> Pose2:
        """Return the true pose; raise a SimulationError if the physics has become unstable."""
        x, y, yaw = self._data.qpos[self._position].tolist()
        if not math.isfinite(self._data.qpos.sum()):
            raise SimulationError(f"the physics became unstable {self._data.time:.2f} s into the episode")
        return Pose2(x, y, wrap_angle(yaw))

    @property
    def yaw(self) -> float:
        """The heading, not wrapped."""
        return float(self._data.qpos[self._position.start + 2])

    @property
    def velocity_world(self) -> Array:
        """Of x, y and yaw."""
        velocity: Array = self._data.qvel[self._speed]
        return velocity

    def touched(self) -> str | None:
        """Return the name of an object or robot that this one touches, if there is one."""
        if not self._data.ncon:
            return None
        pairs = self._data.contact.geom
        rows = pairs[(pairs == self.geom_id).any(axis=1)]
        if not len(rows):
            return None
        first, second = rows[0].tolist()
        other = second if first == self.geom_id else first
        return str(self._model.geom(other).name).rpartition("#")[0].lstrip("#")
