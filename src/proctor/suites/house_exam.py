"""The episodes of one house: where from, where to, what to say, and how an expert would drive."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import reduce
from typing import NamedTuple

import msgspec
import numpy as np

from proctor.core.geometry import evenly_spaced, path_length, pose_after
from proctor.core.types import Action, Array, Pose2, Vector3
from proctor.exams.vln.episode import DEFAULT_MAX_STEPS, Episode
from proctor.exams.vln.instruction_checker import check_instruction
from proctor.instructions.phrasebook import LANGUAGES, say
from proctor.instructions.surroundings import Surroundings
from proctor.instructions.writer import LEVELS, describe
from proctor.maps.grid_map import PLANNING_RADIUS_M, GridMap
from proctor.navigation.action_planner import ActionPlanner
from proctor.scenes.floor_plan import Rect
from proctor.scenes.houses import House

LENGTHS_M = ((7.0, 12.0), (3.0, 7.0), (12.0, 20.0), (7.0, 12.0))
"""Bands of geodesic length, taken in turn as far as the house has such ways."""
TRIES = 80
"""For each episode; in the second half of them any length will do."""


class Question(NamedTuple):
    """An episode, and its instruction in every language."""

    episode: Episode
    instructions: Mapping[str, str]

    def asked_in(self, language: str) -> Episode:
        """Return the episode in one language."""
        return msgspec.structs.replace(
            self.episode, instruction=self.instructions[language], language=language
        )


class HouseExam:
    """Sets the episodes of one house for one split of the exam. All choices depend on the generator."""

    def __init__(self, house: House, grid: GridMap, split: str, rng: np.random.Generator) -> None:
        self._house, self._grid, self._split, self._rng = house, grid, split, rng
        self._surroundings = Surroundings.of(house.scene)
        self._free = {room.name: free_points(room.floor, grid) for room in house.rooms}
        self._goals: list[tuple[str, Array]] = []
        """For each landmark its room, and the places near it."""
        for item in house.furniture:
            if item.landmark:
                points = self._free[item.object.room]
                near = points[item.footprint.distances_m(points) <= 0.9]
                if len(near):
                    self._goals.append((item.object.room, near))

    def questions(self, count: int) -> list[Question]:
        """Return this many with different instructions, or fewer if it is too hard."""
        found: list[Question] = []
        told: set[str] = set()
        tries = 0
        while len(found) < count and tries < TRIES and self._goals:
            tries += 1
            question = self._attempt(len(found), any_length=tries > TRIES // 2)
            if question is not None and told.isdisjoint(question.instructions.values()):
                told.update(question.instructions.values())
                found.append(question)
                tries = 0
        return found

    def _attempt(self, index: int, *, any_length: bool) -> Question | None:
        """Draw an episode at random; None if it is no good."""
        rng = self._rng
        room, goals = self._goals[rng.integers(len(self._goals))]
        goal_xy = goals[rng.integers(len(goals))]
        shortest_m, longest_m = LENGTHS_M[index // len(LEVELS) % len(LENGTHS_M)]
        if any_length:
            shortest_m, longest_m = (3.0, 20.0)
        start_xy = self._start(goal_xy, room, shortest_m, longest_m)
        if start_xy is None:
            return None
        path = self._grid.shortest_path(start_xy, goal_xy, radius_m=PLANNING_RADIUS_M)
        if path is None or not shortest_m <= path_length(path) <= longest_m:
            return None
        reference = evenly_spaced(path, 0.25)
        return self._question(index, reference, yaw_deg=self._heading_deg(start_xy))

    def _heading_deg(self, start_xy: Array) -> float:
        """Return a heading with a view, or the last that was tried."""
        for yaw_deg in 15.0 * self._rng.permutation(24)[:8]:
            # Free floor ahead: a wall before the camera tells nothing.
            ahead = 1.0 * np.array([math.cos(math.radians(yaw_deg)), math.sin(math.radians(yaw_deg))])
            if self._grid.line_is_free(start_xy, start_xy + ahead, radius_m=0.0):
                break
        return float(yaw_deg)

    def _start(self, goal_xy: Array, goal_room: str, shortest_m: float, longest_m: float) -> Array | None:
        """Return a place about so far from the goal, in any room with such places; None if there is none."""
        rng, places = self._rng, {}
        for room, points in self._free.items():
            if len(points):
                far_m = self._grid.rough_distances_m(points, goal_xy, radius_m=PLANNING_RADIUS_M)
                places[room] = points[(shortest_m < far_m) & (far_m < longest_m)]
        rooms = [room for room, points in places.items() if len(points)]
        others = [room for room in rooms if room != goal_room]
        if not rooms:
            return None
        stay = goal_room in rooms and (not others or rng.random() < 0.15)
        points = places[goal_room if stay else others[rng.integers(len(others))]]
        start: Array = points[rng.integers(len(points))]
        return start

    def _question(self, index: int, path: Array, *, yaw_deg: float) -> Question | None:
        """Return the episode along a path; None if there is nothing to say, or no good way to go."""
        level = LEVELS[index % len(LEVELS)]
        start, goal = _vector(path[0]), _vector(path[-1])
        pose = Pose2(start.x, start.y, math.radians(yaw_deg))
        clauses = describe(self._surroundings, path, pose.yaw, level=level, rng=self._rng)
        if clauses is None:
            return None
        scene_id = self._house.scene.scene_name
        episode = Episode(
            episode_id=f"{scene_id}_{index}",
            scene_id=scene_id,
            start_position=start,
            start_rotation=Vector3(0.0, 0.0, yaw_deg),
            goal_position=goal,
            max_steps=DEFAULT_MAX_STEPS,
            success_threshold=1.0,
            reference_path=[_vector(point) for point in path],
            level=level,
            split=self._split,
        )
        words = {language: say(clauses, language, self._rng) for language in LANGUAGES}
        question = Question(episode, words)
        # The writer keeps a margin, but the last word on what may be said is the checker's.
        if any(check_instruction(self._surroundings, question.asked_in(tongue)) for tongue in LANGUAGES):
            return None
        actions = ActionPlanner(self._grid, (goal.x, goal.y)).plan(pose)
        end = reduce(lambda pose, action: pose_after(action, pose), actions, pose)
        if math.dist((end.x, end.y), (goal.x, goal.y)) > 0.19:
            return None
        driven = msgspec.structs.replace(episode, reference_actions=[*actions, Action.STOP])
        return question._replace(episode=driven)


def rooms_are_reachable(house: House, grid: GridMap) -> bool:
    """Tell whether a robot that stands in the hall gets into every other room."""
    hall, *others = [free_points(room.floor, grid) for room in house.rooms]
    if not len(hall):
        return False
    return all(
        len(points) and math.isfinite(grid.distance_m(hall[0], points[0], radius_m=PLANNING_RADIUS_M))
        for points in others
    )


def free_points(floor: Rect, grid: GridMap) -> Array:
    """Return the places (N, 2) in a room, 5 cm apart, with room for a robot, the roomiest first."""
    x, y = np.arange(floor.x0, floor.x1, 0.05), np.arange(floor.y0, floor.y1, 0.05)
    points = np.stack(np.meshgrid(x, y, indexing="ij"), axis=-1).reshape(-1, 2).round(2)
    clearances = grid.clearances(points)
    order = np.argsort(-clearances, kind="stable")
    free: Array = points[order[: np.count_nonzero(clearances > 0.3)]]
    return free


def _vector(point: Array) -> Vector3:
    return Vector3(round(float(point[0]), 3), round(float(point[1]), 3), 0.0)
