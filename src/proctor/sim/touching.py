"""Who touches whom: contacts of a tabletop world in the terms of its exam."""

from __future__ import annotations

import enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proctor.exams.pick_place.episode import PickAndPlaceEpisode
from proctor.sim.stretch_model import HAND_SITE

NOBODY, FINGER_LEFT, FINGER_RIGHT, HAND, BODY, FLOOR, FURNITURE, OBJECT, TARGET = range(9)
ROBOT = (FINGER_LEFT, FINGER_RIGHT, HAND, BODY)
LEAST_ACROSS = 0.5
"""Of a contact's normal along the line on which the fingers close: 60 degrees off it, nothing can be held."""


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
    """Sorts the contacts of a model.

    Args:
        model: The MjModel of an episode.
        episode: Which things are what.
    """

    def __init__(self, model: Any, episode: PickAndPlaceEpisode) -> None:
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
    """Return what a geom belongs to."""
    if geom == "#floor":
        return "the floor"
    return "the robot" if geom.startswith("#") else f"'{geom.rpartition('#')[0]}'"


def _meetings() -> NDArray[np.int64]:
    """Return the flags for each pair of roles."""
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


def _roles(model: Any, episode: PickAndPlaceEpisode) -> NDArray[np.int64]:
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
