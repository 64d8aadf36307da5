"""Drives through the houses of the suite in physics: random goals, boxes that appear, people who walk."""

from __future__ import annotations

import math
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from proctor.core.registry import suite_path
from proctor.core.types import Array, Pose2, Vector3
from proctor.maps.grid_map import GridMap
from proctor.navigation.process.client import PlanningClient
from proctor.scenes.scene import Scene
from proctor.scenes.scene_config import Part, SceneConfig, SceneObject
from proctor.worlds.mujoco.wheeled.navigator import EmbeddedNavigator
from proctor.worlds.mujoco.wheeled.robot import TICK_S

PLACE_RADIUS_M = 0.25
LEAST_M = 2.0
TIMEOUT_S = 180.0
BOX_M = 0.4
BOX_AHEAD_M = 1.5
PERSON_RADIUS_M = 0.25
PERSON_MPS = 0.5
PERSONAL_M = PERSON_RADIUS_M + 0.3
"""So far from the middle of a person a robot must be able to stop, else the person turns round."""
AWAY = (100.0, 100.0)
MOVING_MPS = 0.05


class Trial(NamedTuple):
    """One drive and how it went."""

    name: str
    arrived: bool
    reason: str
    time_s: float
    path_m: float
    distance_m: float
    yaw_error_rad: float
    cross_track_m: np.ndarray
    contacts: int
    """Ticks in which the robot touched something."""
    contacts_moving: int
    """Of these, while it moved faster than 0.05 m/s."""
    replans: int
    recoveries: int


def houses() -> list[Path]:
    return sorted((suite_path("houses-v1") / "scenes").glob("*.json"))


def places(grid: GridMap, radius_m: float) -> np.ndarray:
    """Return (N, 2) centres of the cells where a disc fits."""
    return (np.argwhere(grid.clearance_m > radius_m)[:, ::-1] + 0.5) * grid.resolution_m + grid.origin_world


def random_goal(grid: GridMap, rng: np.random.Generator) -> tuple[Pose2, tuple[float, float], float]:
    """Return a start and a goal with a heading, connected and some way apart."""
    free = places(grid, PLACE_RADIUS_M)
    while True:
        start, goal = rng.choice(free, 2)
        if math.dist(start, goal) > LEAST_M and grid.connects(start, goal, radius_m=PLACE_RADIUS_M):
            yaw, goal_yaw = rng.uniform(-math.pi, math.pi, 2)
            return (
                Pose2(float(start[0]), float(start[1]), float(yaw)),
                (float(goal[0]), float(goal[1])),
                float(goal_yaw),
            )


def drive(number: int, *, seed: int, crowded: bool) -> Trial:
    """Drive to one random goal in one house."""
    scene_path = houses()[number % len(houses())]
    rng = np.random.default_rng([seed, number])
    scene = Scene.load(scene_path)
    grid = scene.map()
    start, goal, yaw = random_goal(grid, rng)
    crowd = Crowd(grid, rng) if crowded else None
    with EmbeddedNavigator(
        scene_path, start, scene=crowded_scene(scene.config) if crowded else None, client=_client()
    ) as nav:
        goal_pos, goal_quat = [*goal, 0.0], [0.0, 0.0, math.sin(yaw / 2), math.cos(yaw / 2)]
        contacts = contacts_moving = 0
        if crowd is not None:
            crowd.enter(nav, start, goal)

        def watch(_: dict) -> None:
            nonlocal contacts, contacts_moving
            touched = nav.robot.in_contact()
            contacts += touched
            contacts_moving += touched and math.hypot(*nav.robot.velocity()[:2]) > MOVING_MPS
            if crowd is not None:
                crowd.tick(nav, goal)

        driven = nav.navigate(goal_pos, goal_quat, TIMEOUT_S, on_tick=watch)
        end = nav.robot.pose()  # where the world has the robot, whatever the skill says of it
    result, log = driven.result, driven.log
    return Trial(
        name=f"{scene_path.stem} #{number}",
        arrived=driven.arrived,
        reason=result.get("reason", ""),
        time_s=result["total_time"],
        path_m=driven.path.length_m if driven.path else math.nan,
        distance_m=math.dist((end.x, end.y), goal),
        yaw_error_rad=abs(math.remainder(end.yaw - yaw, math.tau)),
        cross_track_m=log.cross_track_m,
        contacts=contacts,
        contacts_moving=contacts_moving,
        replans=result["replans"],
        recoveries=result["recoveries"],
    )


def crowded_scene(scene: SceneConfig) -> SceneConfig:
    """Return the scene with a box and a person somewhere far away."""
    away = Vector3(*AWAY, 0.0)
    box = Part(shape="box", size=Vector3(BOX_M, BOX_M, 0.8), translate=Vector3(0, 0, 0.4))
    person = Part(
        shape="cylinder",
        size=Vector3(2 * PERSON_RADIUS_M, 2 * PERSON_RADIUS_M, 1.7),
        translate=Vector3(0, 0, 0.85),
    )
    things = [
        SceneObject(name=name, translate=away, parts=[part], rigid_body_type="kinematic")
        for name, part in (("the box", box), ("the person", person))
    ]
    return replace(scene, objects=[*scene.objects, *things])


class Crowd:
    """A box that appears on the path, and a person who walks about and keeps out of the braking distance."""

    def __init__(self, grid: GridMap, rng: np.random.Generator) -> None:
        self._grid, self._rng = grid, rng
        self._way: list[np.ndarray] = []
        self._person = np.array(AWAY)
        self._box_at_s = float(rng.uniform(1.0, 6.0))
        self._boxed = False

    def enter(self, nav: EmbeddedNavigator, start: Pose2, goal: tuple[float, float]) -> None:
        """Put the person somewhere."""
        while True:
            self._person = self._place()
            if math.dist(self._person, (start.x, start.y)) > 1.5 and math.dist(self._person, goal) > 1.0:
                nav.world.place("the person", *self._person)
                return

    def tick(self, nav: EmbeddedNavigator, goal: tuple[float, float]) -> None:
        """Let the person walk, and perhaps the box appear."""
        self._walk(nav)
        if not self._boxed and nav.now_s() > self._box_at_s:
            self._boxed = self._put_box(nav, goal)

    def _walk(self, nav: EmbeddedNavigator) -> None:
        robot = nav.robot.pose()
        if not self._way:
            path = self._grid.shortest_path(self._person, self._place(), radius_m=PLACE_RADIUS_M)
            self._way = [] if path is None else list(path[1:])
            return
        to_go = self._way[0] - self._person
        step_m = PERSON_MPS * TICK_S
        if np.linalg.norm(to_go) <= step_m:
            self._way.pop(0)
            return
        ahead = self._person + step_m * to_go / np.linalg.norm(to_go)
        speed_mps = float(np.hypot(*nav.robot.velocity()[:2]))
        braking_m = nav.robot.spec.dynamics.stopping_distance_m(speed_mps)
        before_m, after_m = (_apart_m(place, robot, braking_m) for place in (self._person, ahead))
        if after_m < nav.params.radius_m + PERSONAL_M and after_m < before_m:
            self._way = []  # turns round
            return
        self._person = ahead
        nav.world.place("the person", *ahead)

    def _put_box(self, nav: EmbeddedNavigator, goal: tuple[float, float]) -> bool:
        """Put the box on the rest of the path, if there still is a way then; tell whether it is there."""
        trajectory = nav.skills.get_skill_data("navigate_to", "trajectory")
        if trajectory is None:
            return False
        robot = nav.robot.pose()
        points = trajectory.poses[:, :2]
        nearest = int(np.argmin(np.linalg.norm(points - (robot.x, robot.y), axis=1)))
        along = np.cumsum(np.linalg.norm(np.diff(points[nearest:], axis=0), axis=1))
        reach_m = BOX_AHEAD_M + nav.params.radius_m + BOX_M * 0.71
        for index in np.flatnonzero(along > reach_m):
            x, y = points[nearest + 1 + index]
            clear = min(math.dist((x, y), place) for place in (goal, (robot.x, robot.y), self._person))
            if (
                clear > 1.0
                and math.dist((x, y), (robot.x, robot.y)) > reach_m
                and self._leaves_way(x, y, robot, goal)
            ):
                nav.world.place("the box", x, y)
                return True
        return False

    def _leaves_way(self, x: float, y: float, robot: Pose2, goal: tuple[float, float]) -> bool:
        grid = self._grid
        corners = np.array([x, y]) + np.array([[-BOX_M], [BOX_M]]) / 2
        (left, low), (right, high) = np.floor((corners - grid.origin_world) / grid.resolution_m).astype(int)
        occupied = grid.occupied.copy()
        occupied[low : high + 1, left : right + 1] = True
        blocked = GridMap(occupied, resolution_m=grid.resolution_m, origin_world=grid.origin_world)
        return blocked.connects((robot.x, robot.y), goal, radius_m=PLACE_RADIUS_M)

    def _place(self) -> np.ndarray:
        return self._rng.choice(places(self._grid, PERSON_RADIUS_M + 0.2))


def _apart_m(place: Array, robot: Pose2, braking_m: float) -> float:
    """Return how far a place is from where the robot will be until it could stand."""
    ahead = np.array([math.cos(robot.yaw), math.sin(robot.yaw)])
    middle = np.array([robot.x, robot.y])
    along_m = float(np.clip((place - middle) @ ahead, 0.0, braking_m))
    return math.dist(place, middle + along_m * ahead)


_CLIENTS: list[PlanningClient] = []


def _client() -> PlanningClient:
    """Return the planner of this process."""
    if not _CLIENTS:
        _CLIENTS.append(PlanningClient())
    return _CLIENTS[0]


def drives(count: int, *, seed: int, crowded: bool, workers: int = 2) -> list[Trial]:
    """Drive to many goals, in all houses in turn."""
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        return list(pool.map(partial(drive, seed=seed, crowded=crowded), range(count), chunksize=1))
