"""What an agent may be given beyond the instruction and its colour pictures: the words of `--inform`.

An exam lists its words in `Exam.offers`. What belongs to a word that the run does not name is withheld;
what belongs to no word reaches every agent.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from proctor.core.errors import UserError, did_you_mean
from proctor.core.geometry import pose_into, wrap_angle
from proctor.core.interfaces import DrivingEpisode, Env
from proctor.core.types import Info, Pose2
from proctor.exams.env_info import read_number, read_point
from proctor.exams.path_distance import scene_of

DEFAULT, NONE = "default", "none"
MAP_CELL_M = 0.1


class Offer(NamedTuple):
    """One word of `--inform`: where it stands in what the agent gets, and how it is made.

    Without `brief` and `observe` the exam or the env gives it by themselves, so it can only be withheld.
    """

    help: str
    entries: tuple[str, ...] = ()
    """Its entries in observations."""
    details: tuple[str, ...] = ()
    """Its entries in the details of the briefing."""
    brief: Callable[[Any, Env], dict[str, Any]] | None = None
    """Makes its details from the episode and the env."""
    observe: Callable[[Any, Info], dict[str, Any]] | None = None
    """Makes its entries from the episode and the env's ground truth."""
    sensor: str = ""
    """What turns it on in the option `sensors` of envs that have one."""
    env_method: str = ""
    """A method of `Env` that must be overridden, since its default only raises."""

    @property
    def is_made(self) -> bool:
        """Whether it is given only where a run names it."""
        return self.brief is not None or self.observe is not None


SENSOR_OFFERS: Mapping[str, Offer] = {
    "depth": Offer("depth pictures", entries=("depth",), sensor="depth"),
    "scan": Offer("the laser scan", entries=("scan",), sensor="scan"),
    "odometry": Offer("where the robot believes to be since the start", entries=("odom",), sensor="odom"),
    "calibration": Offer(
        "intrinsics and mounts of the cameras",
        details=("cameras",),
        brief=lambda episode, env: {"cameras": env.cameras()},
        env_method="cameras",
    ),
}
"""Of any exam."""


def start_of(episode: DrivingEpisode) -> Pose2:
    """Return the pose at the start, in the world frame."""
    return Pose2(episode.start_position.x, episode.start_position.y, episode.start_yaw)


def pose_from_start(episode: DrivingEpisode, info: Info) -> dict[str, Any]:
    """Return the true pose: x ahead of the start, y to its left, yaw to the left."""
    position = read_point(info, "position")
    pose = pose_into(start_of(episode), Pose2(position.x, position.y, read_number(info, "yaw")))
    return {"pose": Pose2(pose.x, pose.y, wrap_angle(pose.yaw))}


def goal_from_start(episode: DrivingEpisode, env: Env) -> dict[str, Any]:
    """Return the goal in the frame of the start, in metres."""
    del env
    goal = pose_into(start_of(episode), Pose2(episode.goal.x, episode.goal.y, 0.0))
    return {"goal": {"x": goal.x, "y": goal.y, "z": episode.goal.z - episode.start_position.z}}


def map_from_start(episode: DrivingEpisode, env: Env) -> dict[str, Any]:
    """Return what is occupied on the floor of the start, as rows of text.

    `origin` is the pose of the corner of the first cell of the first row in the frame of the start, as in
    nav_msgs/OccupancyGrid: columns go along its x, rows along its y.
    """
    del env
    scene = scene_of(episode)
    if scene is None:
        raise UserError(f"episode '{episode.episode_id}': there is no scene file to draw a map from")
    grid = scene.map_at(episode.start_position)
    size = max(1, round(MAP_CELL_M / grid.resolution_m))
    blocked = grid.occupied | grid.unknown
    rows, columns = blocked.shape
    blocked = np.pad(blocked, [(0, -rows % size), (0, -columns % size)])
    shape = (blocked.shape[0] // size, size, blocked.shape[1] // size, size)
    coarse = np.logical_or.reduce(blocked.reshape(shape), axis=(1, 3))
    origin = pose_into(start_of(episode), Pose2(*grid.origin_world, 0.0))
    return {
        "map": {
            "resolution_m": grid.resolution_m * size,
            "origin": {"x": origin.x, "y": origin.y, "yaw": wrap_angle(origin.yaw)},
            "rows": ["".join("#" if cell else "." for cell in row) for row in coarse.tolist()],
        }
    }


DRIVING_OFFERS: Mapping[str, Offer] = {
    **SENSOR_OFFERS,
    "pose": Offer(
        "the true pose in the frame of the start",
        entries=("pose",),
        observe=pose_from_start,
        env_method="info",
    ),
    "map": Offer(
        "what is occupied around the start, without the goal", details=("map",), brief=map_from_start
    ),
    "goal": Offer("where the goal is, seen from the start", details=("goal",), brief=goal_from_start),
}
"""Of exams whose agents drive."""


def read_inform(given: str) -> tuple[str, ...]:
    """Return the words of `--inform`, sorted; whether an exam knows them is checked when it is known."""
    words = sorted({word.strip() for word in given.split(",")} - {""})
    if not words:
        raise UserError(
            "--inform: expected words with commas between, such as pose,map, or none; found nothing"
        )
    if NONE in words and len(words) > 1:
        raise UserError(f"--inform: none goes with nothing else, found {given}")
    return tuple(words)


def sensing_options(
    words: tuple[str, ...], offers: Mapping[str, Offer], env: type[Env], given: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the env's options, with the sensors turned on that these words ask for."""
    wanted = [offers[word].sensor for word in words if word in offers and offers[word].sensor]
    option = inspect.signature(env).parameters.get("sensors")
    sensors = given.get("sensors", option.default if option is not None else None)
    if not isinstance(sensors, list | tuple):  # there is nothing to choose, or the env will refuse it
        return dict(given)
    missing = [name for name in wanted if name not in sensors]
    return {**given, "sensors": [*sensors, *missing]} if missing else dict(given)


def check_inform(words: tuple[str, ...], exam: str, offers: Mapping[str, Offer], env: type[Env]) -> None:
    """Raise a UserError for a word that the exam does not offer, or that the env cannot serve."""
    for word in words:
        if word in (DEFAULT, NONE):
            continue
        if word not in offers:
            known = (DEFAULT, NONE, *offers)
            hint = did_you_mean(word, known)
            raise UserError(
                f"--inform: the exam {exam} cannot give '{word}'{hint}; it can give: {', '.join(known)}"
            )
        method = offers[word].env_method
        if method and getattr(env, method, None) is getattr(Env, method):
            raise UserError(f"--inform: {env.__name__} has no {method}(), which '{word}' comes from")
