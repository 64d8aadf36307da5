"""Pick-and-place as a Gymnasium env, registered as `proctor/Tabletop-v0`.

`gymnasium.make("proctor.worlds.gymnasium:proctor/Tabletop-v0", dataset="tabletop-v1")` needs no other import.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from proctor.core.errors import UserError
from proctor.core.types import Info
from proctor.exams.gymnasium_env import ExamGym, spaces
from proctor.exams.pick_place.actions import JointPosition
from proctor.exams.pick_place.episode import PickAndPlaceEpisode
from proctor.exams.pick_place.exam import PickPlaceExam
from proctor.robots.stretch import CONTROLS
from proctor.scenes.tabletop_parts import cameras_of

BASE_REACH_M = 2.0
"""Targets of the base, relative to its start, have no limits of their own: here they have this one."""


class TabletopGym(ExamGym):
    """Pick-and-place. Success terminates, the step limit truncates.

    An action is the target of the seven controls: base x, y and heading relative to the start, lift, arm,
    wrist and gripper, in metres and radians.

    The reward `progress` goes by the way from the hand to the object plus that of the object to its target,
    or to the height to which it is to be lifted; `success` is 1.0 for the step in which the world says so.
    """

    env_id = "proctor/Tabletop-v0"
    exam_type = PickPlaceExam
    picture: ClassVar[str] = "rgb_head"

    @classmethod
    def check_episodes(cls, episodes: Sequence[PickAndPlaceEpisode]) -> None:
        """Refuse pictures of several sizes."""
        sizes = {tuple((camera.width, camera.height) for camera in cameras_of(each)) for each in episodes}
        if len(sizes) > 1:
            found = f"{len(sizes)}: {sorted(sizes)}"
            raise UserError(f"expected episodes with pictures of one size, found {found}")

    def new_action_space(self) -> spaces.Box:
        """Return the targets of the controls."""
        low, high = (np.array([getattr(control, side) for control in CONTROLS]) for side in ("low", "high"))
        low[:2], high[:2] = -BASE_REACH_M, BASE_REACH_M
        return spaces.Box(low.astype(np.float32), high.astype(np.float32), dtype=np.float32)

    def parsed(self, action: Any) -> JointPosition:
        """Return the seven numbers as an action."""
        return JointPosition(qpos=tuple(float(number) for number in action))

    def has_ended(self, action: Any, info: Info, *, is_done: bool) -> tuple[bool, bool]:
        """Tell success from the limit."""
        del action
        return bool(info["success"]), is_done and not info["success"]

    def is_solved(self, action: Any, info: Info) -> bool:
        """Tell whether the object is where it should be, and stays there."""
        del action
        return bool(info["success"])

    def left_m(self, episode: PickAndPlaceEpisode, info: Info) -> float:
        """Return how far the hand is from the object, and the object from its target."""
        if info["object_in_target"]:
            return 0.0
        to_object_m = float(np.linalg.norm(info["ee_position"] - info["object_center"]))
        to_target_m = info["target_distance"]
        if to_target_m is None:
            risen_m = float(info["object_position"][2]) - info["initial_object_z"]
            to_target_m = max(0.0, info["target_lift_height"] - risen_m)
        return to_object_m + float(to_target_m)


ENV_ID, make_tabletop = TabletopGym.env_id, TabletopGym.make
TabletopGym.register()
