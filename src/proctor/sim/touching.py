"""Who touches whom: contacts of a tabletop world in the terms of its exam."""

from __future__ import annotations

from typing import Any, NamedTuple

import mujoco
import numpy as np
from numpy.typing import NDArray

from proctor.episodes.pick_place import PickAndPlaceEpisode

NOBODY, FINGER_LEFT, FINGER_RIGHT, HAND, BODY, FLOOR, FURNITURE, OBJECT, TARGET = range(9)
ROBOT = (FINGER_LEFT, FINGER_RIGHT, HAND, BODY)


class Touch(NamedTuple):
    """What touches what at one moment."""

    left: bool
    """A finger touches the target object."""
    right: bool
    robot_on_target: bool
    """Any part of the robot touches the target object."""
    support_on_target: bool
    """Something else does."""
    furniture: bool
    """The robot touches furniture, another object, itself."""
    objects: bool
    self: bool


class Toucher:
    """Sorts the contacts of a model.

    Args:
        model: The MjModel of an episode.
        episode: Which things are what.
    """

    def __init__(self, model: Any, episode: PickAndPlaceEpisode) -> None:
        roles = _roles(model, episode)
        self._roles = roles
        self.names = [str(model.geom(index).name).rpartition("#")[0] for index in range(model.ngeom)]
        """Of the thing that a geom belongs to; empty for the robot and the floor."""

    def touch(self, data: Any) -> Touch:
        """Return what touches what now."""
        if not data.ncon:
            return Touch(*(False,) * 7)
        pairs = np.sort(self._roles[data.contact.geom], axis=1)
        met = set((pairs[:, 0] * 16 + pairs[:, 1]).tolist())

        def are_touching(first: int, second: int) -> bool:
            return first * 16 + second in met

        on_target = [are_touching(part, TARGET) for part in ROBOT]
        return Touch(
            left=on_target[0],
            right=on_target[1],
            robot_on_target=any(on_target),
            support_on_target=any(are_touching(part, TARGET) for part in (FLOOR, FURNITURE, OBJECT)),
            furniture=any(are_touching(part, FURNITURE) for part in ROBOT),
            objects=any(are_touching(part, OBJECT) for part in ROBOT),
            self=any(are_touching(part, other) for part in ROBOT for other in (HAND, BODY)),
        )

    def deepest(self, data: Any) -> tuple[str, str, float]:
        """Return the two that are deepest in each other, and how deep in metres. The robot has no name."""
        if not data.ncon:
            return "", "", 0.0
        index = int(np.argmin(data.contact.dist))
        first, second = data.contact.geom[index].tolist()
        return self.names[first], self.names[second], max(0.0, -float(data.contact.dist[index]))


def _roles(model: Any, episode: PickAndPlaceEpisode) -> NDArray[np.int64]:
    target = episode.task_goal.target_object
    by_name = {
        item.name: TARGET
        if target is not None and item.name == target.name
        else FURNITURE
        if item.static
        else OBJECT
        for item in episode.scene_objects
    }
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


def normal_forces_n(model: Any, data: Any, first: int, second: int) -> float:
    """Return the sum of normal forces between two geoms."""
    force, total = np.zeros(6), 0.0
    for index in range(data.ncon):
        if set(data.contact.geom[index].tolist()) == {first, second}:
            mujoco.mj_contactForce(model, data, index, force)
            total += float(force[0])
    return total
