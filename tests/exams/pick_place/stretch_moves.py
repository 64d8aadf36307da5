"""A Stretch that is told where to put its hand, for tests: no planning, the arm looks at +x of the world."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from proctor.exams.pick_place.env import things_of
from proctor.exams.pick_place.episode import PickAndPlaceEpisode
from proctor.worlds.mujoco.tabletop.tabletop import TabletopWorld

OPEN, CLOSED = 0.04, 0.0
TABLE_Z = 0.8
TABLE = {"name": "table", "usd_path": "furniture/table.usd", "position": [0.5, 0.0, 0.4], "static": True}
UP = np.array([0.0, 0.0, 0.15])


def episode_with(thing: dict[str, Any], *others: dict[str, Any], **parts: Any) -> PickAndPlaceEpisode:
    """Return an episode with a table and a thing called `thing` on it, the robot turned to look at it."""
    item = {"name": "thing", "position": [0.5, 0.0, TABLE_Z], "graspable": True, **thing}
    goal = {
        "target_object": {"name": "thing"},
        "target_location": {"type": "position", "position": [0.6, 0.15, TABLE_Z]},
    }
    pose = {"base": [0.0, 0.0214, math.pi / 2], "joint_positions": [0, 0, 0, 0.98, 0, 0, 0, 0, 0, OPEN]}
    return PickAndPlaceEpisode(
        "trial",
        robot_config={"init_pose": pose},
        scene_objects=[TABLE, item, *others],
        **{"task_goal": goal, **parts},
    )


def world_of(episode: PickAndPlaceEpisode) -> TabletopWorld:
    """Return the episode's world, settled, with nothing to see."""
    world = TabletopWorld(episode, things_of(episode), drawn=False)
    world.place()
    world.settle()
    return world


def controls_for(hand_world: Any, opening_m: float) -> np.ndarray:
    """Return the controls that bring the hand of `episode_with`'s robot to a place."""
    x, y, z = hand_world
    return np.array([y, 0.0, 0.0, z - 0.0274, x - 0.3481, 0.0, opening_m])


def go(world: TabletopWorld, controls: np.ndarray, *, wait_s: float = 0.0) -> None:
    """Command, and wait until the arm is there and some more."""
    world.command(controls)
    for _ in range(150):
        world.advance()
        if np.abs(world.controls() - world.target)[:6].max() < 2e-3:
            break
    else:
        raise AssertionError(f"the arm stays at {world.controls()}, not {controls}")
    for _ in range(round(wait_s / world.episode.sim_params.control_period)):
        world.advance()


def grasp(world: TabletopWorld, at: Any) -> None:
    """Descend upon a place and close the hand there."""
    go(world, controls_for(at + UP, OPEN))
    go(world, controls_for(at, OPEN))
    go(world, controls_for(at, CLOSED), wait_s=1.5)


def in_hand(world: TabletopWorld, name: str) -> np.ndarray:
    """Return where a thing is in the hand's frame."""
    turned = world.data.site("hand").xmat.reshape(3, 3)
    return turned.T @ (world.pose_of(name)[0] - world.hand_position())


def deepest_on_pads_m(world: TabletopWorld, name: str) -> float:
    """Return how deep the pads are in a thing."""
    names = [str(world.model.geom(i).name) for i in range(world.model.ngeom)]
    deep = 0.0
    for contact in world.data.contact:
        pair = {names[contact.geom[0]], names[contact.geom[1]]}
        if any(n.startswith("#pad") for n in pair) and any(n.startswith(f"{name}#") for n in pair):
            deep = max(deep, -contact.dist)
    return deep
