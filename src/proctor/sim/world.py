"""The physics of a scene with a robot in it: reset, step, and what is true."""

from __future__ import annotations

import math
from pathlib import Path

import mujoco

from proctor.core.errors import SimulationError
from proctor.core.geometry import wrap_angle
from proctor.core.types import Pose2
from proctor.robots.wheeled import WheeledRobot
from proctor.scenes.mesh_house import house_of
from proctor.scenes.scene_config import SceneConfig
from proctor.sim.model import ROBOT, TIMESTEP_S, build_model


class World:
    """The physics of one scene with one robot in it.

    Args:
        scene: What stands where.
        scene_path: The scene's file, for its mesh assets and for messages.
        robot: The robot.
        floor_z: Height of the floor it stands on, one of the floors of a house that is a mesh.
        drawn: Whether a house that is a mesh is to be seen, which takes long to prepare.
        timestep_s: Of the physics.

    Raises:
        InvalidFile: A mesh asset is not a mesh, or an object cannot be built.
    """

    def __init__(
        self,
        scene: SceneConfig,
        scene_path: Path | None,
        robot: WheeledRobot,
        *,
        floor_z: float = 0.0,
        drawn: bool = True,
        timestep_s: float = TIMESTEP_S,
    ) -> None:
        self.robot = robot
        self.floor_z = floor_z
        self.house = house_of(scene, scene_path, (robot.ground_clearance_m, robot.height_m))
        """The mesh that the scene is, if it is one."""
        self.model = build_model(
            scene, scene_path, robot, floor_z=floor_z, drawn=drawn, timestep_s=timestep_s
        )
        self.data = mujoco.MjData(self.model)
        self.robot_body_id: int = self.model.body(ROBOT).id
        self._robot_geom_id: int = self.model.geom(ROBOT).id

    def reset(self, pose: Pose2) -> None:
        """Put everything back to where the scene has it, and the robot at this pose, at rest."""
        mujoco.mj_resetData(self.model, self.data)
        self.data.qpos[:3] = pose.x, pose.y, pose.yaw
        mujoco.mj_forward(self.model, self.data)

    def step(self, velocity_world: tuple[float, float, float]) -> None:
        """Advance by one time step with the robot's servos at this velocity: x, y and yaw.

        Afterwards positions, contacts and camera poses all belong to the new time, which `mj_step`, whose
        second half this does first, would leave one step behind.
        """
        self.data.ctrl[:] = velocity_world
        mujoco.mj_step2(self.model, self.data)
        mujoco.mj_step1(self.model, self.data)

    def place(self, name: str, x: float, y: float) -> None:
        """Put a kinematic object elsewhere on the floor, from the next step on.

        Raises:
            KeyError: The scene has no kinematic object of this name.
        """
        number = int(self.model.body(name).mocapid[0])
        if number < 0:
            raise KeyError(name)
        self.data.mocap_pos[number, :2] = x, y

    def pose(self) -> Pose2:
        """Return the robot's true pose.

        Raises:
            SimulationError: The physics has become unstable.
        """
        x, y, yaw = self.data.qpos[:3].tolist()
        if not math.isfinite(self.data.qpos.sum()):
            raise SimulationError(f"the physics became unstable {self.time_s:.2f} s into the episode")
        return Pose2(x, y, wrap_angle(yaw))

    @property
    def yaw(self) -> float:
        """The robot's heading, not wrapped."""
        return float(self.data.qpos[2])

    def touched(self) -> str | None:
        """Return the name of an object that the robot touches, if there is one."""
        if not self.data.ncon:
            return None
        pairs = self.data.contact.geom
        rows = pairs[(pairs == self._robot_geom_id).any(axis=1)]
        if not len(rows):
            return None
        first, second = rows[0].tolist()
        other = second if first == self._robot_geom_id else first
        return str(self.model.geom(other).name).rpartition("#")[0].lstrip("#")

    @property
    def time_s(self) -> float:
        """Simulated seconds since the reset."""
        return float(self.data.time)
