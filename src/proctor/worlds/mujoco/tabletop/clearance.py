"""How far the robot would be from everything in a posture: the geometry of a world without its physics."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import mujoco
import numpy as np

from proctor.core.types import Array
from proctor.robots.stretch import JOINT_NAMES
from proctor.scenes.tabletop_parts import TabletopSetup
from proctor.scenes.thing import Thing
from proctor.worlds.mujoco.tabletop.stretch_model import ARM_JOINTS, FINGERS, HAND_SITE, finger_angle
from proctor.worlds.mujoco.tabletop.tabletop import TabletopWorld

ROOM = ("#floor", "#zone")
SEEN_M = 0.04
"""Gaps are measured up to this."""


class Gaps(NamedTuple):
    """The narrowest gaps, metres: below 0 where things are inside each other, `SEEN_M` where it is wide."""

    robot_m: float
    """Between the robot and furniture, other objects and itself."""
    object_m: float
    """Between the target object and furniture or other objects."""
    grip_m: float
    """Between the robot and the target object."""


class Grip(NamedTuple):
    """How the hand holds the target object: its place in the hand's frame."""

    translation: Array
    rotation: Array
    """3 x 3."""


class Clearance:
    """Measures gaps in one episode's world, where movable objects stand as the episode says."""

    def __init__(self, episode: TabletopSetup, things: Mapping[str, Thing]) -> None:
        world = TabletopWorld(episode, things, drawn=False)
        model = world.model
        self._model, self._data = model, world.data
        target = episode.target_name
        geoms = [str(model.geom(index).name) for index in range(model.ngeom)]
        is_target = np.array([name.rpartition("#")[0] == target for name in geoms])
        is_robot = np.array([name.startswith("#") and name not in ROOM for name in geoms])
        # Who meets whom is cut down to what is asked for: things that stand on each other do not matter.
        model.geom_margin[~is_robot] = SEEN_M
        model.body_margin[model.geom_bodyid[~is_robot]] = SEEN_M  # by which pairs are chosen
        model.geom_conaffinity[~is_robot & ~is_target] = 0
        model.geom_contype[[name in ROOM for name in geoms]] = 0
        self._kinds = np.where(is_target, 1, np.where(is_robot, 2, 0))
        joints = (*JOINT_NAMES[:4], *ARM_JOINTS, JOINT_NAMES[8], *FINGERS)
        self._robot_at = np.array([model.joint(name).qposadr[0] for name in joints])
        address = model.jnt_qposadr[model.body(target).jntadr[0]]
        self._object_at = slice(address, address + 7)
        self._hand = model.site(HAND_SITE).id

    def move_object(self, position: Array, quaternion: Array) -> None:
        """Say where the target object stands; the quaternion is w, x, y, z."""
        self._data.qpos[self._object_at] = [*position, *quaternion]

    def gaps(self, controls: Array, grip: Grip | None = None) -> Gaps:
        """Return the gaps in a posture: seven controls, the base's in the world.

        Without a grip, the object stands where the episode says.
        """
        data = self._data
        angle = finger_angle(float(controls[6]))
        data.qpos[self._robot_at] = [*controls[:4], *(controls[4] / 4,) * 4, controls[5], angle, angle]
        mujoco.mj_kinematics(self._model, data)
        if grip is not None:
            hand = data.site_xmat[self._hand].reshape(3, 3)
            data.qpos[self._object_at][:3] = data.site_xpos[self._hand] + hand @ grip.translation
            mujoco.mju_mat2Quat(data.qpos[self._object_at][3:], (hand @ grip.rotation).ravel())
            mujoco.mj_kinematics(self._model, data)
        mujoco.mj_collision(self._model, data)
        narrowest = np.full(5, SEEN_M)
        np.minimum.at(narrowest, self._kinds[data.contact.geom].sum(axis=1), data.contact.dist)
        # Of kinds 0 (others), 1 (target) and 2 (robot), others never meet others, and the sum tells the pair.
        return Gaps(float(min(narrowest[2], narrowest[4])), float(narrowest[1]), float(narrowest[3]))
