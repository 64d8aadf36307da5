"""Physics of one pick-and-place episode: put up, let settle, command, advance; contacts and true state."""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import mujoco
import numpy as np
from numpy.typing import NDArray

from proctor.core.errors import SimulationError, UserError
from proctor.core.geometry import pose_into, pose_out_of
from proctor.core.types import Array, Pose2
from proctor.robots.stretch import CONTROLS, JOINT_NAMES, controls_of_qpos
from proctor.scenes.tabletop_parts import TabletopSetup
from proctor.scenes.thing import Thing
from proctor.worlds.mujoco.tabletop.look import PLAIN, Look
from proctor.worlds.mujoco.tabletop.set_points import SetPoints
from proctor.worlds.mujoco.tabletop.stretch_model import (
    ARM_JOINTS,
    BASE,
    FINGERS,
    HAND_SITE,
    OPENING,
    finger_angle,
    grip_command,
    opening_of,
)
from proctor.worlds.mujoco.tabletop.tabletop_model import build_tabletop

NOBODY, FINGER_LEFT, FINGER_RIGHT, HAND, BODY, FLOOR, FURNITURE, OBJECT, TARGET = range(9)
ROBOT = (FINGER_LEFT, FINGER_RIGHT, HAND, BODY)
LEAST_ACROSS = 0.5
"""Of a contact's normal along the line on which the fingers close: 60 degrees off it, nothing can be held."""
OVERLAP_M = 0.004
"""Things may be put this deep into each other: they are a little apart once they have settled."""
SETTLE_S, REST_MPS, REST_RADPS = 3.0, 2e-3, 2e-2
LOW, HIGH = (np.array([getattr(control, side) for control in CONTROLS]) for side in ("low", "high"))
GRIPPER = len(CONTROLS) - 1


class Touch(enum.IntFlag):
    """What touches what. The target is the object to be picked up."""

    LEFT = 1
    """The left finger presses the target towards the right one: not from above, below or outside."""
    RIGHT = 2
    ROBOT = 4
    """Some part of the robot touches the target."""
    SUPPORT = 8
    """Something else touches the target."""
    FURNITURE = 16
    """The robot touches furniture."""
    OBJECTS = 32
    """The robot touches an object that is not the target."""
    SELF = 64
    """The hand touches the robot's own body."""


class Toucher:
    """Sorts the contacts of an episode's MjModel."""

    def __init__(self, model: Any, episode: TabletopSetup) -> None:
        self._roles = _roles(model, episode)
        self._hand = model.site(HAND_SITE).id
        names = [str(model.geom(index).name) for index in range(model.ngeom)]
        self._owners = [_owner(name) for name in names]

    def touch(self, data: Any) -> int:
        """Return the flags of `Touch` that are set now."""
        if not data.ncon:
            return 0
        roles = self._roles[data.contact.geom]
        flags = int(np.bitwise_or.reduce(MEETINGS[roles[:, 0], roles[:, 1]]))
        return flags | self._pressing(data, roles) if flags & ON_TARGET else flags

    def _pressing(self, data: Any, roles: NDArray[np.int64]) -> int:
        """Return the flags of the fingers that have the target between them and the other one."""
        to_left = data.site_xmat[self._hand].reshape(3, 3)[:, 1]
        normals = data.contact.frame[:, :3] @ to_left  # they point from the first geom to the second
        to_finger = np.where(roles[:, 1] == TARGET, -normals, normals)
        on_target = (roles == TARGET).any(axis=1)
        left = on_target & (roles == FINGER_LEFT).any(axis=1) & (to_finger > LEAST_ACROSS)
        right = on_target & (roles == FINGER_RIGHT).any(axis=1) & (to_finger < -LEAST_ACROSS)
        return Touch.LEFT * bool(left.any()) | Touch.RIGHT * bool(right.any())

    def deepest(self, data: Any) -> tuple[str, str, float]:
        """Return the two that are deepest in each other, in words, and how deep in metres."""
        if not data.ncon:
            return "", "", 0.0
        index = int(np.argmin(data.contact.dist))
        first, second = data.contact.geom[index].tolist()
        return self._owners[first], self._owners[second], max(0.0, -float(data.contact.dist[index]))


def _owner(geom: str) -> str:
    if geom == "#floor":
        return "the floor"
    return "the robot" if geom.startswith("#") else f"'{geom.rpartition('#')[0]}'"


def _meetings() -> NDArray[np.int64]:
    table = np.zeros((9, 9), np.int64)
    for part in ROBOT:
        table[part, TARGET] = Touch.ROBOT
        table[part, FURNITURE] = Touch.FURNITURE
        table[part, OBJECT] = Touch.OBJECTS
        table[part, BODY] = Touch.SELF
    for other in (FLOOR, FURNITURE, OBJECT):
        table[other, TARGET] = Touch.SUPPORT
    return table | table.T


MEETINGS = _meetings()
ON_TARGET = int(Touch.ROBOT)
"""As a plain number, with which a flag is asked for in a tenth of the time."""


def _roles(model: Any, episode: TabletopSetup) -> NDArray[np.int64]:
    by_name = {item.name: FURNITURE if item.static else OBJECT for item in episode.scene_objects}
    if episode.task_goal.target_object is not None:
        by_name[episode.task_goal.target_object.name] = TARGET
    own = {
        "#pad_left": FINGER_LEFT,
        "#finger_left": FINGER_LEFT,
        "#pad_right": FINGER_RIGHT,
        "#finger_right": FINGER_RIGHT,
        "#link_wrist_yaw": HAND,
        "#link_gripper": HAND,
        "#floor": FLOOR,
    }
    roles = np.zeros(model.ngeom, np.int64)
    for index in range(model.ngeom):
        name = str(model.geom(index).name)
        if name.startswith("#"):
            roles[index] = own.get(name, BODY)
        else:
            roles[index] = by_name.get(name.rpartition("#")[0], NOBODY)
    return roles


class Displacement(NamedTuple):
    """How far a thing has moved while the world settled."""

    name: str
    moved_m: float
    tilted_rad: float


class TabletopWorld:
    """The physics of one episode, with its scene objects by name. UserError if it cannot be built."""

    def __init__(
        self,
        episode: TabletopSetup,
        things: Mapping[str, Thing],
        *,
        look: Look = PLAIN,
        drawn: bool = True,
    ) -> None:
        self.episode, self.things = episode, things
        self.model = build_tabletop(episode, things, look, drawn=drawn)
        self.data = mujoco.MjData(self.model)
        self.toucher = Toucher(self.model, episode)
        params = episode.sim_params
        self._set_point_s, self._set_points_per_action = params.set_point_s, params.set_points_per_action
        self._substeps = params.physics_steps_per_set_point
        joints = (*JOINT_NAMES[:9], FINGERS[0])
        self._qpos_at = np.array([self.model.joint(name).qposadr[0] for name in joints])
        self._qvel_at = np.array([self.model.joint(name).dofadr[0] for name in joints])
        self._hand = self.model.site(HAND_SITE).id
        self._base = self.model.body(BASE).id
        setup = episode.robot_config.init_pose
        self._start = Pose2(*setup.base)
        self._first = np.array(controls_of_qpos(setup.joint_positions))
        self.target = self._first.copy()
        """What is commanded: the seven controls, the base's relative to its start."""
        self._set_points = SetPoints(self._world_of(self._first), nonholonomic=False)

    def place(self) -> None:
        """Put everything to its place, at rest; UserError if objects are inside each other or the robot."""
        data = self.data
        mujoco.mj_resetData(self.model, data)
        self.target = self._first.copy()
        world = self._world_of(self._first)
        for name, value in zip((*JOINT_NAMES[:4], JOINT_NAMES[8]), (*world[:4], world[5]), strict=True):
            data.joint(name).qpos[0] = value
        for name in ARM_JOINTS:
            data.joint(name).qpos[0] = world[4] / 4
        for name in FINGERS:
            data.joint(name).qpos[0] = finger_angle(world[GRIPPER])
        setup = self.episode.robot_config
        self._set_points = SetPoints(world, nonholonomic=setup.nonholonomic)
        self._servo(world)
        mujoco.mj_forward(self.model, data)
        self._refuse_overlaps()

    def settle(self) -> list[Displacement]:
        """Let objects come to rest, start the clock anew, and return what moved meanwhile."""
        movable = [item.name for item in self.episode.scene_objects if not item.static]
        before = {name: self.pose_of(name) for name in movable}
        for _ in range(round(SETTLE_S / self._set_point_s)):
            mujoco.mj_step(self.model, self.data, nstep=self._substeps)
            if self.time_s > 0.2 and all(map(self.is_at_rest, movable)):
                break
        mujoco.mj_forward(self.model, self.data)
        self.data.time = 0.0
        if not math.isfinite(self.data.qpos.sum()):
            raise SimulationError(
                f"episode '{self.episode.episode_id}': the physics is unstable at the start"
            )
        return [_displacement(name, before[name], self.pose_of(name)) for name in movable]

    def command(self, controls: Array) -> list[str]:
        """Take a new command, clamped to what the robot can do; return the names of what was clamped."""
        present = self.controls()
        low, high = LOW.copy(), HIGH.copy()
        low[:3] += present[:3]  # the base's limits are how far a target may be from where it is
        high[:3] += present[:3]
        self.target = np.clip(controls, low, high)
        far = np.abs(self.target - controls) > 1e-6
        return [control.name for control, is_far in zip(CONTROLS, far, strict=True) if is_far]

    def advance(self) -> int:
        """Let one control period pass. Return the flags of `Touch` that were set at any time of it."""
        return self._follow(self._world_of(self.target), self._set_points_per_action)

    def wait(self, duration_s: float, *, keep: bool) -> int:
        """Let time pass while the robot goes on to its targets, or brakes and stands; return as `advance`.

        A standing gripper keeps its grip: its set point stays.
        """
        goal = self._world_of(self.target) if keep else self._set_points.stopping_point()
        return self._follow(goal, round(duration_s / self._set_point_s))

    def _follow(self, goal: Array, set_points: int) -> int:
        touched = 0
        for _ in range(set_points):
            self._servo(self._set_points.move(goal, self._set_point_s))
            mujoco.mj_step(self.model, self.data, nstep=self._substeps)
            touched |= self.toucher.touch(self.data)
        mujoco.mj_kinematics(self.model, self.data)  # poses of the new time, for cameras and measures
        mujoco.mj_camlight(self.model, self.data)
        if not math.isfinite(self.data.qpos.sum()):
            raise SimulationError(f"the physics became unstable {self.time_s:.2f} s into the episode")
        return touched

    def controls(self) -> Array:
        """Return the seven controls as they are, the base's relative to its start."""
        qpos = self.qpos()
        return np.array([*qpos[:4], qpos[4:8].sum(), *qpos[8:]])

    def qpos(self) -> Array:
        """Return the ten joint positions, the base's relative to its start, the gripper's in metres."""
        values = self.data.qpos[self._qpos_at]
        base = pose_into(self._start, self.base_pose())
        values[:3] = base.x, base.y, base.yaw
        values[9] = opening_of(values[9])
        return np.asarray(values)

    def qvel(self) -> Array:
        """Return the velocities of the same ten."""
        values = self.data.qvel[self._qvel_at]
        x, y = values[:2].tolist()
        turned = pose_into(Pose2(0.0, 0.0, self._start.yaw), Pose2(x, y, 0.0))
        values[:2] = turned.x, turned.y
        opening_m = opening_of(float(self.data.qpos[self._qpos_at[9]]))
        values[9] /= OPENING[1] + 2 * OPENING[2] * opening_m
        return np.asarray(values)

    def base_pose(self) -> Pose2:
        """Return where the base is in the world."""
        x, y, yaw = self.data.qpos[self._qpos_at[:3]].tolist()
        return Pose2(x, y, yaw)

    def hand_position(self) -> Array:
        """Return where the hand is in the world: the middle between the pads."""
        return np.array(self.data.site_xpos[self._hand])

    def hand_pose_in_base(self) -> Array:
        """Return x, y, z and a quaternion w, x, y, z of the hand in `base_link`."""
        base = self.data.xmat[self._base].reshape(3, 3)
        position = base.T @ (self.data.site_xpos[self._hand] - self.data.xpos[self._base])
        pose = np.empty(7)
        pose[:3] = position
        mujoco.mju_mat2Quat(pose[3:], (base.T @ self.data.site_xmat[self._hand].reshape(3, 3)).ravel())
        return pose if pose[3] >= 0 else pose * [1, 1, 1, -1, -1, -1, -1]

    def closing_direction(self) -> Array:
        """Return the unit vector in the world along which the fingers close."""
        return np.array(self.data.site_xmat[self._hand].reshape(3, 3)[:, 1])

    def pose_of(self, name: str) -> tuple[Array, Array]:
        """Return a thing's position and rotation matrix in the world."""
        body = self.data.body(name)
        return np.array(body.xpos), np.array(body.xmat).reshape(3, 3)

    def quaternion_of(self, name: str) -> Array:
        """Return how a thing is turned in the world, as w, x, y, z."""
        return np.array(self.data.body(name).xquat)

    def speed_of(self, name: str) -> tuple[float, float]:
        """Return how fast a movable thing moves, in metres, and turns, in radians per second."""
        address = self.model.body(name).dofadr[0]
        linear, angular = self.data.qvel[address : address + 3], self.data.qvel[address + 3 : address + 6]
        return float(np.linalg.norm(linear)), float(np.linalg.norm(angular))

    @property
    def time_s(self) -> float:
        """Simulated seconds since the episode began."""
        return float(self.data.time)

    def is_at_rest(self, name: str) -> bool:
        """Tell whether a movable thing has settled."""
        speed_mps, spin_radps = self.speed_of(name)
        return speed_mps < REST_MPS and spin_radps < REST_RADPS

    def _world_of(self, controls: Array) -> Array:
        """Return controls with the base's part in the world."""
        base = pose_out_of(self._start, Pose2(*controls[:3].tolist()))
        return np.array([base.x, base.y, base.yaw, *controls[3:]])

    def _servo(self, world: Array) -> None:
        self.data.ctrl[:] = world
        self.data.ctrl[GRIPPER] = grip_command(world[GRIPPER])

    def _refuse_overlaps(self) -> None:
        first, second, depth_m = self.toucher.deepest(self.data)
        if depth_m > OVERLAP_M:
            problem = f"at the start {first} and {second} are {1000 * depth_m:.0f} mm inside each other"
            raise UserError(f"episode '{self.episode.episode_id}': {problem}")


def _displacement(name: str, before: tuple[Array, Array], after: tuple[Array, Array]) -> Displacement:
    tilted = math.acos(min(1.0, float(before[1][:, 2] @ after[1][:, 2])))
    return Displacement(name, float(np.linalg.norm(after[0] - before[0])), tilted)
