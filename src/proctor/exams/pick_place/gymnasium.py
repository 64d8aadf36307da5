"""Pick-and-place as a Gymnasium env, registered as `proctor/Tabletop-v0`.

`gymnasium.make("proctor.worlds.gymnasium:proctor/Tabletop-v0", dataset="tabletop-v1")` needs no other import.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from proctor.core.errors import UserError
from proctor.core.types import Info
from proctor.exams.gymnasium_env import ExamGym, Reward, dataset_episodes, register_once, spaces, world_of
from proctor.exams.pick_place.actions import JointPosition
from proctor.exams.pick_place.episode import PickAndPlaceEpisode
from proctor.exams.pick_place.exam import PickPlaceExam
from proctor.robots.stretch import CONTROLS
from proctor.scenes.tabletop_parts import cameras_of

ENV_ID = "proctor/Tabletop-v0"
BASE_REACH_M = 2.0
"""Targets of the base, relative to its start, have no limits of their own: here they have this one."""


class TabletopGym(ExamGym):
    """Pick-and-place. Success terminates, the step limit truncates.

    An action is the target of the seven controls: base x, y and heading relative to the start, lift, arm,
    wrist and gripper, in metres and radians.

    The reward `progress` goes by the way from the hand to the object plus that of the object to its target,
    or to the height to which it is to be lifted; `success` is 1.0 for the step in which the world says so.
    """

    picture: ClassVar[str] = "rgb_head"

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        low, high = (np.array([getattr(control, side) for control in CONTROLS]) for side in ("low", "high"))
        low[:2], high[:2] = -BASE_REACH_M, BASE_REACH_M
        self.action_space = spaces.Box(low.astype(np.float32), high.astype(np.float32), dtype=np.float32)

    @property
    def exam(self) -> PickPlaceExam:
        """Pick-and-place, with its usual options."""
        return PickPlaceExam()

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


def make_tabletop(
    dataset: str | Path | Sequence[PickAndPlaceEpisode] = "tabletop-v1",
    env: str = "tabletop",
    render_mode: str | None = None,
    reward: Reward = "none",
    **env_options: Any,
) -> TabletopGym:
    """Make the environment behind `proctor/Tabletop-v0`; the arguments are those of `make_vln`."""
    episodes = dataset_episodes(dataset, PickAndPlaceEpisode)
    sizes = {tuple((camera.width, camera.height) for camera in cameras_of(each)) for each in episodes}
    if len(sizes) > 1:
        raise UserError(f"expected episodes with pictures of one size, found {len(sizes)}: {sorted(sizes)}")
    make, example = world_of(env, env_options, next(iter(episodes), None))
    return TabletopGym(make, episodes, render_mode=render_mode, reward=reward, example=example)


def register() -> None:
    """Make `gymnasium.make("proctor/Tabletop-v0")` work. Importing this module does so."""
    register_once(ENV_ID, make_tabletop)


register()
