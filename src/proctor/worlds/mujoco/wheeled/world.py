"""The physics of a scene with a robot in it: reset, step, and what is true."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mujoco

from proctor.core.errors import UserError
from proctor.core.types import Pose2
from proctor.robots.spec import RobotSpec
from proctor.scenes.mesh_house import REMEDY, filling_hulls
from proctor.scenes.scene import Scene
from proctor.worlds.mujoco.wheeled.model import ROBOT, TIMESTEP_S, build_model
from proctor.worlds.mujoco.wheeled.robot_body import RobotBody, add_robot, remove_robot


class InsideHull(UserError):
    """A start is free, but inside of the convex hull of a mesh: the scene is to be changed, not the start."""


class World:
    """The physics of one scene with one robot or several, all alike. By default methods mean the first.

    Arguments are those of `build_model`. In an open world robots come and go later, which takes more memory.
    """

    def __init__(
        self,
        scene: Scene,
        robot: RobotSpec,
        *,
        floor_z: float = 0.0,
        drawn: bool = True,
        timestep_s: float = TIMESTEP_S,
        robots: Sequence[str] = (ROBOT,),
        is_open: bool = False,
    ) -> None:
        self.robot = robot
        self.scene = scene
        self.floor_z = floor_z
        self.house = scene.house(robot.height_band_m)
        """The mesh that the scene is, if it is one."""
        self.model, spec = build_model(
            scene, robot, floor_z=floor_z, drawn=drawn, timestep_s=timestep_s, robots=robots
        )
        self._spec: Any = spec if is_open else None
        self.data = mujoco.MjData(self.model)
        self.bodies = {name: RobotBody(name, self.model, self.data) for name in robots}
        """The robots by name."""

    @property
    def body(self) -> RobotBody:
        """The first robot."""
        return next(iter(self.bodies.values()))

    def add_robot(self, name: str, pose: Pose2) -> RobotBody:
        """Put another robot into an open world. Everything else stays unchanged, but in a new model."""
        if name in self.bodies:
            raise ValueError(f"there is a robot '{name}' already")
        add_robot(self._spec, name, self.robot, floor_z=self.floor_z)
        self._recompile()
        body = self.bodies[name] = RobotBody(name, self.model, self.data)
        self.put(name, pose)
        return body

    def remove_robot(self, name: str) -> None:
        """Take a robot out of an open world. Everything else stays unchanged, but in a new model."""
        del self.bodies[name]
        remove_robot(self._spec, name)
        self._recompile()

    def _recompile(self) -> None:
        self.model, self.data = self._spec.recompile(self.model, self.data)
        for body in self.bodies.values():
            body.bind(self.model, self.data)
        mujoco.mj_forward(self.model, self.data)

    def put(self, name: str, pose: Pose2) -> None:
        """Put a robot elsewhere, at rest."""
        self.bodies[name].put(pose)
        mujoco.mj_forward(self.model, self.data)

    def reset(self, *poses: Pose2) -> None:
        """Put everything back to where the scene has it, and the robots at these poses, at rest."""
        mujoco.mj_resetData(self.model, self.data)
        for body, pose in zip(self.bodies.values(), poses, strict=True):
            body.put(pose)
        mujoco.mj_forward(self.model, self.data)

    def begin(self, start: Pose2, *, who: str, z: float) -> None:
        """Reset the world with the robot at a start; raise a UserError if it cannot stand there.

        InsideHull, if it touches nothing but the convex hull of a mesh. The message begins with `who` and
        names `z`, the height that was asked for.
        """
        house = self.house
        if house is not None and not house.has_floor(start.x, start.y, self.floor_z):
            place, floors = f"x={start.x}, y={start.y}, z={z}", house.described_floors()
            problem = f"there is no floor at its start, {place}; the scene's floors are at {floors}"
            raise UserError(f"{who}: {problem} (Y-up data?)")
        self.reset(start)
        obstacle = self.touched()
        if obstacle is None and house is not None and house.is_blocked(start.x, start.y, self.floor_z):
            obstacle = house.object_at(start.x, start.y, self.floor_z)
        if obstacle is None:
            return
        place = f"at x={start.x}, y={start.y}"
        robot, floor_z = self.robot, self.floor_z
        hulls = filling_hulls(
            self.scene,
            (start.x, start.y),
            radius_m=robot.radius_m,
            band_m=(floor_z + robot.ground_clearance_m, floor_z + robot.height_m),
        )
        if obstacle in hulls:
            raise InsideHull(f"{who} starts inside of the convex hull of '{obstacle}' {place}: {REMEDY}")
        raise UserError(f"{who} starts inside of '{obstacle}' {place}")

    def step(self, velocity_world: tuple[float, float, float]) -> None:
        """Advance by one time step with the robot's servos at this velocity: x, y and yaw."""
        self.body.drive(velocity_world)
        self.advance()

    def advance(self) -> None:
        """Advance by one time step with all servos as they were set.

        Afterwards positions, contacts and camera poses all belong to the new time, which `mj_step`, whose
        second half this does first, would leave one step behind.
        """
        mujoco.mj_step2(self.model, self.data)
        mujoco.mj_step1(self.model, self.data)

    def set_state(
        self, qpos: Sequence[float], qvel: Sequence[float], ctrl: Sequence[float], time_s: float
    ) -> None:
        """Go on from another state, as if physics had led there."""
        data = self.data
        data.qpos[:], data.qvel[:], data.ctrl[:], data.time = qpos, qvel, ctrl, time_s
        mujoco.mj_step1(self.model, data)

    def place(self, name: str, x: float, y: float) -> None:
        """Put a kinematic object elsewhere on the floor, from the next step on; KeyError if there is none."""
        number = int(self.model.body(name).mocapid[0])
        if number < 0:
            raise KeyError(name)
        self.data.mocap_pos[number, :2] = x, y

    def pose(self) -> Pose2:
        """Return the robot's true pose; raise a SimulationError if the physics has become unstable."""
        return self.body.pose()

    def touched(self) -> str | None:
        """Return the name of an object that the robot touches, if there is one."""
        return self.body.touched()

    @property
    def time_s(self) -> float:
        """Simulated seconds since the reset."""
        return float(self.data.time)
