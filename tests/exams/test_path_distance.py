"""By which distance an episode is judged."""

import math
from pathlib import Path

import msgspec
import numpy as np
import pytest
from mesh_houses import Y_UP, two_rooms, write

from proctor.core.registry import suite_path
from proctor.core.types import Action, Vector3
from proctor.exams.datasets import load_dataset
from proctor.exams.driving import DrivingState
from proctor.exams.path_distance import is_reachable, unreachable_notes
from proctor.exams.vln.episode import Episode
from proctor.exams.vln.exam import VlnExam
from proctor.scenes.geodesics import geodesic_m, has_path
from proctor.scenes.scene import Scene
from proctor.scenes.scene_config import Part, SceneConfig, SceneObject, save_scene


def wall(name, at, size):
    return SceneObject(name=name, translate=(*at, 1.0), parts=[Part(shape="box", size=(*size, 2.0))])


def episode_among(tmp_path, *walls, **episode):
    save_scene(SceneConfig(scene_name="s", objects=list(walls)), tmp_path / "scene.json")
    return Episode(scene_config_path=str(tmp_path / "scene.json"), **episode)


def distance_among(tmp_path, *walls, **episode):
    return VlnExam().distance(episode_among(tmp_path, *walls, **episode))


def test_the_way_around_a_wall_counts_not_the_way_through_it(tmp_path):
    distance = distance_among(tmp_path, wall("w", (1, 0), (0.1, 6)), goal_position=(2, 0, 0))
    assert distance(Vector3(0, 0, 0), Vector3(2, 0, 0)) > 2 * math.hypot(1, 3)
    assert distance(Vector3(2, 1, 0), Vector3(2, 0, 0)) == pytest.approx(1.0)


def test_height_is_added_as_a_right_angle(tmp_path):
    distance = distance_among(tmp_path, wall("w", (9, 9), (0.1, 0.1)), goal_position=(3, 0, 4))
    assert distance(Vector3(0, 0, 0), Vector3(3, 0, 4)) == pytest.approx(5.0)


def test_a_robot_that_has_squeezed_into_a_gap_is_not_taken_to_be_behind_its_wall(tmp_path):
    walls = [wall("lower", (5, -0.275), (10, 0.1)), wall("upper", (5, 0.275), (10, 0.1))]  # 0.45 m apart
    distance = distance_among(tmp_path, *walls, start_position=(-0.6, 0, 0), goal_position=(5, 0.9, 0))
    assert distance(Vector3(4.9, 0, 0), Vector3(5, 0.9, 0)) > 9.0


def test_nobody_succeeds_where_the_goal_is_in_a_sealed_room_but_the_error_is_finite(tmp_path):
    walls = [
        *(wall("west", (2, 0), (0.1, 2.1)), wall("east", (4, 0), (0.1, 2.1))),
        *(wall("south", (3, -1), (2.1, 0.1)), wall("north", (3, 1), (2.1, 0.1))),
    ]
    exam = VlnExam()
    episode = episode_among(tmp_path, *walls, goal_position=(3, 0, 0), success_threshold=3.0)
    distance = exam.distance(episode)
    assert distance.kind == "euclidean"
    trace = exam.first_trace(episode)
    trace.add(Action.STOP, DrivingState(position=Vector3(1.5, 0, 0)))
    metrics = {metric.name: metric.score(episode, trace, distance) for metric in exam.metrics}
    assert [metrics[name] for name in ("success", "oracle_success", "spl")] == [0.0, 0.0, 0.0]
    assert metrics["navigation_error"] == 1.5


def test_a_goal_inside_of_a_sofa_is_joined_to_the_nearest_place_beside_it(tmp_path):
    sofa = wall("sofa", (3, 0), (0.8, 2.0))
    distance = distance_among(tmp_path, sofa, goal_position=(2.9, 0, 0))
    assert distance.kind == "geodesic"
    assert distance(Vector3(0, 0, 0), Vector3(2.9, 0, 0)) == pytest.approx(2.9, abs=0.05)
    assert distance(Vector3(4, 0, 0), Vector3(2.9, 0, 0)) > 3.0


def test_a_robot_at_a_wall_and_close_to_its_goal_pays_no_detour(tmp_path):
    distance = distance_among(
        tmp_path, wall("w", (0, 0), (6, 0.1)), goal_position=(1, 0.2, 0), start_position=(0, 2, 0)
    )
    assert distance(Vector3(0.5, 0.2, 0), Vector3(1, 0.2, 0)) == pytest.approx(0.5)
    assert distance(Vector3(1, -0.2, 0), Vector3(1, 0.2, 0)) > 4.0


def test_a_goal_deep_inside_of_something_is_not_reachable(tmp_path):
    distance = distance_among(tmp_path, wall("block", (3, 0), (2.0, 2.0)), goal_position=(3, 0, 0))
    assert distance(Vector3(1.5, 0, 0), Vector3(3, 0, 0)) == math.inf


@pytest.mark.parametrize("beyond_m", [0.2, 0.3, 1.0])
def test_a_goal_outside_of_a_house_is_not_joined_through_its_wall(tmp_path, beyond_m):
    path = write(two_rooms(0.0), tmp_path / "house.glb", turn=Y_UP)
    outside = Episode(
        scene_config_path=str(path), start_position=(6, 2, 0), goal_position=(8.1 + beyond_m, 2, 0)
    )
    assert not is_reachable(outside)
    assert is_reachable(msgspec.structs.replace(outside, goal_position=Vector3(8.03, 2, 0)))  # in the wall


def test_a_position_that_a_file_claims_behind_a_wall_is_no_success(tmp_path):
    path = write(two_rooms(0.0), tmp_path / "house.glb", turn=Y_UP)
    episode = Episode(scene_config_path=str(path), start_position=(6, 2, 0), goal_position=(7.7, 2, 0))
    distance = VlnExam().distance(episode)
    assert distance.kind == "geodesic"
    assert distance(Vector3(8.3, 2, 0), episode.goal) == math.inf


def test_a_start_and_a_goal_far_outside_of_the_scene_are_fine(tmp_path):
    distance = distance_among(
        tmp_path, wall("w", (0, 0), (1, 1)), start_position=(-9, 0, 0), goal_position=(9, 0, 0)
    )
    assert distance.kind == "geodesic"
    assert 18.0 < distance(Vector3(-9, 0, 0), Vector3(9, 0, 0)) < 18.3


@pytest.mark.parametrize(("gap_m", "kind"), [(0.30, "euclidean"), (0.45, "geodesic"), (0.90, "geodesic")])
def test_a_door_connects_two_rooms_if_the_robot_fits_through_it(tmp_path, gap_m, kind):
    shell = [
        *(wall("west", (0, 0), (0.1, 4)), wall("east", (6, 0), (0.1, 4))),
        *(wall("south", (3, -2), (6.1, 0.1)), wall("north", (3, 2), (6.1, 0.1))),
    ]
    half = (4 - gap_m) / 2
    middle = [wall("low", (3, -2 + half / 2), (0.1, half)), wall("high", (3, 2 - half / 2), (0.1, half))]
    distance = distance_among(tmp_path, *shell, *middle, start_position=(1, 0, 0), goal_position=(5, 0, 0))
    assert distance.kind == kind


def rooms(gap_m):
    """Two rooms with a gap between them, a sofa in the left one and a sealed cell in the right one."""
    half = (4 - gap_m) / 2
    return [
        *(wall("west", (0, 0), (0.1, 4)), wall("east", (6, 0), (0.1, 4))),
        *(wall("south", (3, -2), (6.1, 0.1)), wall("north", (3, 2), (6.1, 0.1))),
        *(wall("low", (3, -2 + half / 2), (0.1, half)), wall("high", (3, 2 - half / 2), (0.1, half))),
        wall("sofa", (1, 1.2), (1.6, 0.7)),
        *(wall("cell west", (4.5, 0), (0.1, 1.1)), wall("cell east", (5.5, 0), (0.1, 1.1))),
        *(wall("cell south", (5, -0.5), (1.1, 0.1)), wall("cell north", (5, 0.5), (1.1, 0.1))),
    ]


@pytest.mark.parametrize("gap_m", [0.0, 0.30, 0.36, 0.45, 0.55, 0.90])
def test_there_is_a_way_wherever_the_distance_is_finite_and_nowhere_else(tmp_path, gap_m):
    save_scene(SceneConfig(scene_name="s", objects=rooms(gap_m)), tmp_path / "scene.json")
    grid = Scene.load(tmp_path / "scene.json").map()
    places = np.random.default_rng(1).uniform((-0.4, -2.4), (6.4, 2.4), (40, 2, 2))
    pairs = [[Vector3(*place, 0) for place in pair] for pair in places]
    pairs += [[Vector3(1, -1, 0), Vector3(5, 0, 0)], [Vector3(5, 0.1, 0), Vector3(5, 0, 0)]]
    verdicts = [has_path(grid, *pair) for pair in pairs]
    assert verdicts == [math.isfinite(geodesic_m(grid, *pair)) for pair in pairs]
    assert 0 < sum(verdicts) < len(pairs)
    assert verdicts[-2:] == [False, True]


def has_finite_way(episode):
    ends = [(point.x, point.y) for point in (episode.start_position, episode.goal)]
    grid = Scene.load(Path(episode.scene_config_path)).map_at(episode.start_position).covering(*ends)
    return grid is not None and math.isfinite(geodesic_m(grid, episode.start_position, episode.goal))


@pytest.mark.parametrize("count", [10, pytest.param(300, marks=pytest.mark.slow)])
def test_the_goals_of_the_exam_are_reachable_by_either_account(count):
    episodes = load_dataset(suite_path("houses-v1")).select(count=count)
    assert len(episodes) == count
    for episode in episodes:
        assert is_reachable(episode)
        assert has_finite_way(episode)
        outside = msgspec.structs.replace(episode, goal_position=Vector3(-0.4, -0.4, 0))
        assert is_reachable(outside) == has_finite_way(outside)


def test_a_verdict_is_forgotten_when_the_scene_changes(tmp_path):
    path = tmp_path / "scene.json"
    episode = Episode(scene_config_path=str(path), start_position=(1, -1, 0), goal_position=(5, 1.5, 0))
    for gap_m, expected in ((0.0, False), (0.9, True)):
        save_scene(SceneConfig(scene_name="s", objects=rooms(gap_m)), path)
        assert is_reachable(episode) is expected


def test_goals_out_of_reach_are_counted_and_named(tmp_path):
    near = episode_among(tmp_path, *rooms(0.9), episode_id="near", goal_position=(1, -1, 0))
    near = msgspec.structs.replace(near, start_position=Vector3(0.5, -1, 0))
    sealed = msgspec.structs.replace(near, episode_id="sealed", goal_position=Vector3(5, 0, 0))
    assert unreachable_notes([near]) == []
    (note,) = unreachable_notes([near, sealed])
    assert note.startswith("1 of 2 episodes has a goal that no robot on wheels can reach (sealed) and counts")
    assert "--fix OUT" in note
    (note,) = unreachable_notes([msgspec.structs.replace(sealed, episode_id=f"e{k}") for k in range(6)])
    assert note.startswith(
        "6 of 6 episodes have goals that no robot on wheels can reach (e0, e1, e2, e3, e4, ...)"
    )
