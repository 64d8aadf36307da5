"""The policy that follows the skill's path arrives, touches nothing, and goes around what no map shows."""

import math
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from proctor.core.errors import UnknownName
from proctor.core.geometry import pose_after
from proctor.core.registry import build, suite_path
from proctor.core.types import Action, EpisodeInfo, Pose2, Vector3
from proctor.exams.datasets import load_dataset
from proctor.exams.names import exams_of
from proctor.exams.vln.episode import Episode
from proctor.exams.vln.exam import VlnExam
from proctor.exams.vln.navigate_to import RADIUS_M, NavigateToPolicy
from proctor.maps.any_angle import AnyAnglePlanner
from proctor.maps.failure import PluginFailure
from proctor.scenes.scene import Scene
from proctor.scenes.scene_config import Part, SceneConfig, SceneObject, save_scene

WALLS = [(0, 0, 7, 0.1), (0, 5, 7, 5.1), (0, 0, 0.1, 5), (7, 0, 7.1, 5)]


def save_boxes(boxes, path):
    objects = [
        SceneObject(
            name=f"box {index}",
            translate=((x0 + x1) / 2, (y0 + y1) / 2, 0.5),
            parts=[Part(shape="box", size=(x1 - x0, y1 - y0, 1))],
        )
        for index, (x0, y0, x1, y1) in enumerate(boxes)
    ]
    save_scene(SceneConfig(scene_name="test", objects=objects), path)
    return path


def follow(episode, *, policy=None, rng=None, invisible=None):
    """Drive by exact kinematics, with some noise; what is invisible keeps the robot 0.3 m away."""
    policy = policy or NavigateToPolicy()
    policy.reset(EpisodeInfo(episode_id="a", instruction="", max_steps=500, seed=0, episode=episode))
    poses = [Pose2(episode.start_position.x, episode.start_position.y, episode.start_yaw)]
    actions = []
    while len(actions) < 300 and (not actions or actions[-1] is not Action.STOP):
        here = poses[-1]
        actions.append(policy.act({"truth": {"position": Vector3(here.x, here.y, 0.0), "yaw": here.yaw}}))
        there = pose_after(actions[-1], here)
        if invisible is not None and math.dist((there.x, there.y), invisible) < 0.3:
            there = here
        elif rng is not None and actions[-1] is Action.FORWARD:
            noise = rng.normal(0, (0.002, 0.002, math.radians(0.1)))
            there = Pose2(there.x + noise[0], there.y + noise[1], there.yaw + noise[2])
        poses.append(there)
    assert actions[-1] is Action.STOP
    return actions, np.array([(pose.x, pose.y) for pose in poses])


def test_it_arrives_in_every_house_and_keeps_clear():
    episodes = load_dataset(suite_path("houses-v1")).select(count=12)
    rng = np.random.default_rng(3)
    lengths = []
    for episode in episodes:
        grid = Scene.load(Path(episode.scene_config_path)).map()
        goal = (episode.goal.x, episode.goal.y)
        actions, way = follow(episode, rng=rng)
        assert grid.distance_m(way[-1], goal, radius_m=0.2) < 0.2, episode.episode_id
        between = np.concatenate([np.linspace(a, b, 6) for a, b in pairwise(way)])
        assert grid.clearances(between).min() > RADIUS_M - 0.01, episode.episode_id
        shortest_m = grid.distance_m(way[0], goal, radius_m=0.25)
        lengths.append(0.25 * actions.count(Action.FORWARD) / shortest_m)
        assert "23" not in "".join(str(int(action)) for action in actions)
    assert np.mean(lengths) < 1.06


def test_narrow_doors_are_passed_without_touching_their_frames(tmp_path):
    doors = [(2.0, 0, 2.1, 2.0), (2.0, 2.5, 2.1, 5), (4.0, 0, 4.1, 3.4), (4.0, 3.9, 4.1, 5)]
    scene = save_boxes([*WALLS, *doors], tmp_path / "scene.json")
    grid, rng = Scene.load(scene).map(), np.random.default_rng(1)
    for _ in range(8):
        start, goal = rng.uniform((0.5, 0.5), (1.5, 4.5)), rng.uniform((4.6, 0.5), (6.5, 4.5))
        episode = Episode(
            start_position=Vector3(*start, 0),
            start_rotation=Vector3(0, 0, rng.uniform(-180, 180)),
            goal_position=Vector3(*goal, 0),
            scene_config_path=str(scene),
        )
        _, way = follow(episode)
        assert math.dist(way[-1], goal) < 0.2
        between = np.concatenate([np.linspace(a, b, 6) for a, b in pairwise(way)])
        assert grid.clearances(between).min() > RADIUS_M - 0.005


def test_another_planner_is_followed_as_well():
    episode = load_dataset(suite_path("houses-v1")).episodes[0]
    policy = build("policy", "navigate_to", {"planner": "rrt_connect"}, VlnExam.baselines)
    _, way = follow(episode, policy=policy)
    assert math.dist(way[-1], (episode.goal.x, episode.goal.y)) < 0.2


def test_without_a_scene_it_goes_straight_to_the_goal():
    actions, way = follow(Episode(goal_position=Vector3(-4, 3, 0)))
    assert math.dist(way[-1], (-4, 3)) < 0.2
    assert actions.count(Action.FORWARD) <= math.ceil(5 * 1.03 / 0.25)


def test_it_stops_at_once_where_it_already_stands():
    actions, _ = follow(Episode(start_position=Vector3(1, 1, 0), goal_position=Vector3(1.05, 1, 0)))
    assert actions == [Action.STOP]


def test_something_that_the_map_does_not_show_is_driven_around(tmp_path):
    scene = save_boxes(WALLS, tmp_path / "scene.json")
    episode = Episode(
        start_position=Vector3(1, 2.5, 0), goal_position=Vector3(5, 2.5, 0), scene_config_path=str(scene)
    )
    actions, way = follow(episode, invisible=(3.0, 2.5))
    assert math.dist(way[-1], (5, 2.5)) < 0.2
    assert len(actions) < 80
    assert np.abs(way[:, 1] - 2.5).max() > 0.25


def test_a_goal_in_a_thing_is_approached_and_one_behind_walls_is_given_up(tmp_path):
    table = save_boxes([*WALLS, (3, 2, 4.4, 3)], tmp_path / "table.json")
    start = Vector3(1, 1, 0)
    in_table = Episode(start_position=start, goal_position=Vector3(3.7, 2.3, 0), scene_config_path=str(table))
    _, way = follow(in_table)
    assert 0.5 < math.dist(way[-1], (3.7, 2.3)) < 0.8
    split = save_boxes([*WALLS, (3, 0, 3.1, 5)], tmp_path / "split.json")
    behind = Episode(start_position=start, goal_position=Vector3(5, 2, 0), scene_config_path=str(split))
    assert follow(behind)[0] == [Action.STOP]


def test_it_is_for_navigation_and_knows_its_planners():
    assert exams_of("policy", "navigate_to") == ["vln"]
    assert NavigateToPolicy.privileged
    with pytest.raises(UnknownName, match="unknown planner 'gird'; did you mean 'grid'"):
        NavigateToPolicy(planner="gird")


def test_a_planner_that_breaks_is_not_taken_for_a_missing_path(monkeypatch):
    monkeypatch.setattr(AnyAnglePlanner, "plan", None)
    with pytest.raises(PluginFailure, match="planner 'grid' failed"):
        follow(Episode(goal_position=Vector3(-4, 3, 0)))
