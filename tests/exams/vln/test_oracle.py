import math
from typing import NamedTuple

import numpy as np
import pytest

from proctor.core.types import Action, EpisodeInfo, Vector3
from proctor.exams.vln.episode import Episode
from proctor.exams.vln.oracle import OraclePolicy
from proctor.scenes.scene import Scene
from proctor.scenes.scene_config import Part, SceneConfig, SceneObject, save_scene

RADIUS_M = 0.25
WALLS = [(0, 0, 7, 0.1), (0, 5, 7, 5.1), (0, 0, 0.1, 5), (7, 0, 7.1, 5)]
DOOR = [(3.5, 0, 3.6, 1.2), (3.5, 2.0, 3.6, 5)]
FURNITURE = [(1, 3, 2.2, 3.8), (0.1, 1.5, 0.5, 2.5), (5, 2, 5.6, 3.4), (4.5, 0.1, 6.5, 0.6)]
ROOMS = {
    "empty": WALLS,
    "two rooms": [*WALLS, *DOOR, *FURNITURE],
    "forest": [*WALLS, *((x, y, x + 0.1, y + 0.1) for x in (1, 2.2, 3.4, 4.6) for y in (1, 2.2, 3.4))],
    "maze": [*WALLS, (1.5, 0, 1.6, 4), (3.3, 1, 3.4, 5), (5.1, 0, 5.2, 4)],
}


def scene_of(boxes):
    objects = [
        SceneObject(
            name=f"box {index}",
            translate=((x0 + x1) / 2, (y0 + y1) / 2, 0.5),
            parts=[Part(shape="box", size=(x1 - x0, y1 - y0, 1))],
        )
        for index, (x0, y0, x1, y1) in enumerate(boxes)
    ]
    return SceneConfig(scene_name="test", objects=objects)


def distance_to_boxes(boxes, points):
    low, high = np.array(boxes)[:, :2], np.array(boxes)[:, 2:]
    beyond = np.maximum(np.maximum(low - points[:, None], points[:, None] - high), 0)
    return float(np.linalg.norm(beyond, axis=-1).min())


class Drive(NamedTuple):
    actions: list[Action]
    length_m: float
    miss_m: float
    closest_m: float


class Robot:
    """Exact kinematics among boxes, with noise of 2 mm and 0.1° if asked for."""

    def __init__(self, boxes, start, yaw, rng=None):
        self.boxes, self.rng = boxes, rng
        self.at, self.yaw = np.array(start, dtype=float), yaw
        self.closest_m, self.length_m = math.inf, 0.0

    def error(self, size):
        return 0.0 if self.rng is None else self.rng.normal(0.0, size)

    def do(self, action):
        if action == Action.FORWARD:
            ahead = np.array([math.cos(self.yaw), math.sin(self.yaw)])
            way = np.linspace(0, 0.25 + self.error(0.002), 26)[:, None] * ahead
            self.closest_m = min(self.closest_m, distance_to_boxes(self.boxes, self.at + way))
            self.at = self.at + way[-1]
            self.length_m += float(np.linalg.norm(way[-1]))
        else:
            self.yaw += math.radians(15 if action == Action.LEFT else -15)
        self.yaw += self.error(math.radians(0.1))


def drive(policy, robot, goal, scene_path):
    path = None if scene_path is None else str(scene_path)
    episode = Episode(goal_position=(*goal, 0.0), scene_config_path=path)
    policy.reset(EpisodeInfo(episode_id="a", instruction="", max_steps=500, seed=0, episode=episode))
    actions = []
    for _ in range(500):
        truth = {"position": Vector3(*robot.at, 0.0), "yaw": robot.yaw}
        actions.append(policy.act({"truth": truth}))
        if actions[-1] == Action.STOP:
            break
        robot.do(actions[-1])
    return Drive(actions, robot.length_m, math.dist(robot.at, goal), robot.closest_m)


@pytest.mark.parametrize("noisy", [False, True])
@pytest.mark.parametrize("name", ROOMS)
def test_it_arrives_by_the_shortest_way_and_touches_nothing(tmp_path, name, noisy):
    boxes, scene = ROOMS[name], scene_of(ROOMS[name])
    save_scene(scene, tmp_path / "scene.json")
    grid, rng, policy = Scene(scene).map(), np.random.default_rng(7), OraclePolicy()
    scores = []
    while len(scores) < 13:
        start, goal = rng.uniform((0, 0), (7, 5), (2, 2))
        shortest_m = grid.distance_m(start, goal, radius_m=RADIUS_M)
        if not all(grid.clearance_at(*end) > RADIUS_M for end in (start, goal)) or shortest_m < 1:
            continue
        robot = Robot(boxes, start, rng.uniform(-4, 4), rng if noisy else None)
        done = drive(policy, robot, goal, tmp_path / "scene.json")
        assert done.actions[-1] == Action.STOP
        assert done.miss_m < 0.2, (start, goal)
        assert done.closest_m > 0.2, (start, goal)
        scores.append(shortest_m / max(shortest_m, done.length_m))
    assert min(scores) > 0.85
    assert np.mean(scores) > 0.95


def test_without_noise_the_plan_is_made_once_and_turns_are_never_taken_back(tmp_path):
    save_scene(scene_of(ROOMS["two rooms"]), tmp_path / "scene.json")
    robot = Robot(ROOMS["two rooms"], (1, 1), 2.0)
    done = drive(OraclePolicy(), robot, (6.2, 4.5), tmp_path / "scene.json")
    text = "".join(str(int(action)) for action in done.actions)
    assert "23" not in text
    assert "32" not in text


def test_a_goal_behind_a_wall_is_reached_however_near_it_is(tmp_path):
    save_scene(scene_of(ROOMS["maze"]), tmp_path / "scene.json")
    robot = Robot(ROOMS["maze"], (1.1, 1), 0.0)
    done = drive(OraclePolicy(), robot, (2.0, 1.0), tmp_path / "scene.json")
    assert done.miss_m < 0.2
    assert 6 < done.length_m < 8


def test_without_a_scene_it_goes_straight_to_the_goal_with_few_turns():
    done = drive(OraclePolicy(), Robot([(90, 90, 91, 91)], (0, 0), 1.0), (-8.0, 5.0), None)
    assert done.miss_m < 0.2
    assert done.length_m < math.hypot(8, 5) * 1.03
    # 91° to the goal take six turns, the rest is for steering between headings.
    assert sum(action != Action.FORWARD for action in done.actions[:-1]) <= 8


def test_it_stops_at_once_where_it_already_stands():
    done = drive(OraclePolicy(), Robot(WALLS, (1, 1), 0.0), (1.05, 1.0), None)
    assert done.actions == [Action.STOP]


def test_a_goal_that_cannot_be_reached_is_approached_as_far_as_possible(tmp_path):
    boxes = [*WALLS, (3, 2, 4.4, 3)]  # the goal is in the middle of a table
    save_scene(scene_of(boxes), tmp_path / "scene.json")
    done = drive(OraclePolicy(), Robot(boxes, (1, 1), 0.0), (3.7, 2.5), tmp_path / "scene.json")
    assert done.actions[-1] == Action.STOP
    assert 0.7 < done.miss_m < 0.95
    assert done.closest_m > 0.2
    assert done.length_m < 4.0


def test_something_that_the_map_does_not_show_is_driven_around(tmp_path):
    class Blocked(Robot):
        def do(self, action):
            before = self.at
            super().do(action)
            if math.dist(self.at, (3.0, 2.5)) < 0.3:
                self.at = before

    save_scene(scene_of(WALLS), tmp_path / "scene.json")
    done = drive(OraclePolicy(), Blocked(WALLS, (1, 2.5), 0.0), (5, 2.5), tmp_path / "scene.json")
    assert done.miss_m < 0.2
    assert len(done.actions) < 100
