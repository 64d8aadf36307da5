import hashlib
import math
import re
from collections import Counter
from itertools import groupby, islice
from pathlib import Path

import msgspec
import numpy as np
import pytest

from proctor import cli
from proctor.core.documents import read_json
from proctor.core.errors import UserError
from proctor.core.registry import suite_path
from proctor.core.types import Action
from proctor.exams.datasets import load_dataset
from proctor.exams.vln.instruction_checker import check_instruction
from proctor.scenes.houses import generate_house
from proctor.scenes.scene import Scene
from proctor.suites import builder, house_exam
from proctor.suites.builder import (
    HELD_OUT_SEEDS,
    RECIPES,
    TRAINING_SEEDS,
    Recipe,
    Split,
    build_suite,
    name_of,
    recipe_of,
)
from proctor.suites.house_exam import rooms_are_reachable

ROBOT_RADIUS_M = 0.17
SPLITS = ("val_seen", "val_unseen")
SCAN_THRESHOLD_M = 0.2
RECIPE = Recipe((Split("train", 1), Split("val_unseen", 1, HELD_OUT_SEEDS)), episodes_per_house=3, seed=5)
STRIDE = pytest.mark.parametrize("stride", [7, pytest.param(1, marks=pytest.mark.slow)])
SAMPLE = Path(__file__).parents[2] / "datasets" / "sample_r2r.json"


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    folder = tmp_path_factory.mktemp("suite")
    build_suite(folder, RECIPE)
    return folder


def files(folder):
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*.json")}


def one_split(*, houses=1, episodes=1, seed=0):
    return Recipe((Split("train", houses),), episodes, seed)


def houses_v1(language="en"):
    return load_dataset(suite_path("houses-v1") / builder.episodes_file(language)).episodes


def house_seed(episode):
    return int(episode.scene_id.removeprefix("house_"))


def ends(episode):
    start, goal = episode.start_position, episode.goal_position
    return (start.x, start.y), (goal.x, goal.y)


def walk(episode, actions):
    """Return the points after each action of a robot that moves exactly."""
    (x, y), yaw = ends(episode)[0], math.radians(episode.start_rotation.z)
    points = [(x, y)]
    for action in actions:
        if action == Action.FORWARD:
            x, y = x + 0.25 * math.cos(yaw), y + 0.25 * math.sin(yaw)
        elif action != Action.STOP:
            yaw += math.radians(15 if action == Action.LEFT else -15)
        points.append((x, y))
    return np.array(points)


def test_more_episodes_than_a_house_can_have_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(builder, "HOPELESS", 0)
    monkeypatch.setattr(house_exam, "TRIES", 3)
    with pytest.raises(UserError, match="100 different episodes are too many for one house"):
        build_suite(tmp_path, one_split(episodes=100))


def test_the_same_seed_builds_the_same_files(built, tmp_path):
    build_suite(tmp_path, RECIPE)
    assert files(tmp_path) == files(built)


def test_no_name_in_a_new_exam_carries_a_seed(built):
    seeds = [next(builder._house_seeds(split, RECIPE.seed)) for split in RECIPE.splits]
    scenes = [Scene.load(file).config for file in (built / "scenes").iterdir()]
    assert [name_of(scene) for scene in scenes] == [scene.scene_name for scene in scenes]
    assert {name_of(generate_house(seed).scene) for seed in seeds} == {scene.scene_name for scene in scenes}
    text = b"".join(files(built).values()).decode()
    assert not [seed for seed in seeds if f"_{seed}" in text]
    for episode in load_dataset(built).episodes:
        assert re.fullmatch("house_[0-9a-f]{10}_[0-9]+", episode.episode_id)


def test_a_seed_that_nobody_can_guess_makes_houses_that_nobody_else_has():
    wide, public = recipe_of(1, 1, 2**64), recipe_of(1, 1, 2**64 - 1)
    (own,), (shared,) = wide.splits, public.splits
    assert shared.seeds == TRAINING_SEEDS
    seeds = list(islice(builder._house_seeds(own, wide.seed), 50))
    assert min(seeds) > 2**64  # of 128 bits: one of 50 below that is one in 10**17
    assert len({*seeds}) == 50
    assert seeds != list(islice(builder._house_seeds(own, wide.seed + 1), 50))


def test_another_seed_builds_other_houses(built, tmp_path):
    build_suite(tmp_path, one_split(seed=6))
    assert not {*files(tmp_path)} & {name for name in files(built) if name.startswith("scenes/")}


def test_builds_as_many_houses_and_episodes_as_asked_for_and_tells_so(built, tmp_path):
    episodes = load_dataset(built).episodes
    assert [len([*group]) for _, group in groupby(e.scene_id for e in episodes)] == [3, 3]
    told = []
    build_suite(tmp_path / "new" / "folder", one_split(houses=2), told.append)
    assert told == [1, 2]


@pytest.mark.parametrize("counts", [(0, 1), (1, 0), (-2, 1)])
def test_refuses_to_build_nothing(tmp_path, counts):
    with pytest.raises(UserError, match="at least 1"):
        build_suite(tmp_path, one_split(houses=counts[0], episodes=counts[1]))


def test_every_room_of_generated_houses_can_be_entered():
    for seed in (40, 41, 42, 94, 119):  # the last two have a dining table that could cut a room in two
        house = generate_house(seed)
        assert rooms_are_reachable(house, Scene(house.scene).map()), seed


def test_sofas_in_the_doors_make_a_room_unreachable():
    house = generate_house(3)
    scene = house.scene
    doors = [item for item in scene.objects if item.category == "door"]
    sofa = next(item for item in scene.objects if item.category == "sofa")
    blocking = [
        msgspec.structs.replace(sofa, name=f"blocker {index}", translate=door.translate)
        for index, door in enumerate(doors)
    ]
    blocked = msgspec.structs.replace(scene, objects=[*scene.objects, *blocking])
    assert not rooms_are_reachable(house, Scene(blocked).map())


def test_houses_v1_is_what_its_checksums_say():
    folder = suite_path("houses-v1")
    checksums = read_json(folder / "checksums.json")
    found = {name: hashlib.sha256(content).hexdigest() for name, content in files(folder).items()}
    del found["checksums.json"]
    assert found == checksums


def test_houses_v1_has_enough_episodes_in_scenes_that_load():
    episodes = houses_v1()
    assert len(episodes) >= 240
    assert len({episode.scene_id for episode in episodes}) >= 24
    for scene in {episode.scene_config_path for episode in episodes}:
        assert len(Scene.load(Path(scene)).objects) > 30
        assert Path(scene).stat().st_size < 200_000


def test_houses_v1_keeps_houses_apart_that_nobody_may_train_on():
    seeds = {split: {house_seed(e) for e in houses_v1() if e.split == split} for split in SPLITS}
    assert seeds["val_seen"] <= {*TRAINING_SEEDS}
    assert seeds["val_unseen"] <= {*HELD_OUT_SEEDS}
    assert min(map(len, seeds.values())) >= 10


def test_houses_v1_says_little_more_and_much_in_equal_shares():
    levels = Counter(episode.level for episode in houses_v1())
    assert {*levels} == {"short", "medium", "long"}
    assert len({*levels.values()}) == 1
    words = {level: [len(e.instruction.split()) for e in houses_v1() if e.level == level] for level in levels}
    short, medium, long = (np.mean(words[level]) for level in ("short", "medium", "long"))
    assert short < 0.5 * medium
    assert medium < 0.85 * long


def test_houses_v1_in_chinese_is_the_same_exam():
    for ours, theirs in zip(houses_v1(), houses_v1("zh"), strict=True):
        assert msgspec.structs.replace(theirs, instruction=ours.instruction, language="en") == ours
        assert theirs.language == "zh"
        assert re.search("[\u4e00-\u9fff]", theirs.instruction)
        assert not re.search("[A-Za-z]{4}", theirs.instruction)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_no_two_instructions_of_a_house_are_equal(language):
    told = Counter((episode.scene_id, episode.instruction) for episode in houses_v1(language))
    assert max(told.values()) == 1


@pytest.mark.slow
@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_clause_of_houses_v1_is_true_visible_and_unmistakable(language):
    for episode in houses_v1(language):
        scene = Scene.load(Path(episode.scene_config_path)).config
        assert check_instruction(scene, episode) == [], (episode.episode_id, episode.instruction)


def test_some_clauses_of_houses_v1_are_true_visible_and_unmistakable():
    for language in ("en", "zh"):
        for episode in houses_v1(language)[::12]:
            scene = Scene.load(Path(episode.scene_config_path)).config
            assert check_instruction(scene, episode) == [], (episode.episode_id, episode.instruction)


@pytest.mark.slow
def test_the_houses_of_val_seen_are_in_the_training_set(tmp_path):
    seed = RECIPES["houses-v1"].seed
    build_suite(tmp_path, one_split(houses=14, episodes=12, seed=seed))
    training = load_dataset(tmp_path).episodes
    seen = [episode for episode in houses_v1() if episode.split == "val_seen"]
    names = {e.scene_id: name_of(Scene.load(Path(e.scene_config_path)).config) for e in seen}
    assert {*names.values()} <= {e.scene_id for e in training}
    tasks = {(e.scene_id, e.start_position, e.goal_position) for e in training}
    assert tasks.isdisjoint((names[e.scene_id], e.start_position, e.goal_position) for e in seen)


@STRIDE
def test_starts_and_goals_are_free_and_a_good_walk_apart(built, stride):
    for episode in (*houses_v1()[::stride], *load_dataset(built).episodes):
        grid = Scene.load(Path(episode.scene_config_path)).map()
        start, goal = ends(episode)
        assert min(grid.clearance_at(*start), grid.clearance_at(*goal)) >= 0.3
        assert 3 <= grid.distance_m(start, goal, radius_m=0.25) <= 20
        assert episode.start_rotation.z % 15 == 0
        assert (episode.success_threshold, episode.step_limit, episode.language) == (1.0, 500, "en")


@STRIDE
def test_houses_v1_reference_paths_are_dense_and_as_short_as_can_be(stride):
    for episode in houses_v1()[::stride]:
        start, goal = ends(episode)
        path = np.array([(point.x, point.y) for point in episode.reference_path])
        steps_m = np.linalg.norm(np.diff(path, axis=0), axis=1)
        grid = Scene.load(Path(episode.scene_config_path)).map()
        assert tuple(path[0]) == start
        assert tuple(path[-1]) == goal
        assert steps_m.max() < 0.252
        assert steps_m.sum() == pytest.approx(grid.distance_m(start, goal, radius_m=0.25), abs=0.06)


@STRIDE
def test_houses_v1_reference_actions_lead_to_the_goal_without_a_touch(stride):
    for episode in houses_v1()[::stride]:
        points = walk(episode, episode.reference_actions)
        grid = Scene.load(Path(episode.scene_config_path)).map()
        assert episode.reference_actions[-1] == Action.STOP
        assert episode.reference_actions.count(Action.STOP) == 1
        assert math.dist(points[-1], ends(episode)[1]) < 0.2
        assert grid.clearances(points).min() > max(ROBOT_RADIUS_M, SCAN_THRESHOLD_M)


def test_the_sample_dataset_has_the_documented_form_and_goals_that_can_be_reached():
    keys = {
        "episode_id",
        "scene_id",
        "scene_config_path",
        "start_position",
        "start_rotation",
        "goal_position",
    }
    for record in read_json(SAMPLE)["episodes"]:
        assert {*record} == keys | {"instruction", "max_steps"}
        assert record["goal_position"]["z"] == 0
        assert (SAMPLE.parent / record["scene_config_path"]).is_file()
    episodes = load_dataset(SAMPLE).episodes
    assert episodes[0].episode_id == "ep_001"
    for episode in episodes:
        grid = Scene.load(Path(episode.scene_config_path)).map()
        assert min(grid.clearance_at(*point) for point in ends(episode)) >= 0.3
        assert grid.distance_m(*ends(episode), radius_m=0.25) < 0.25 * episode.step_limit / 2


def test_more_episodes_than_a_house_can_have_are_refused_before_any_work(tmp_path, capsys):
    command = ["generate", "--houses", "1", "--episodes-per-house", "100000", "--out", str(tmp_path / "x")]
    assert cli.main(command) == 2
    captured = capsys.readouterr()
    assert "expected at most 100 episodes per house, found 100000" in captured.err
    assert "houses" not in captured.out  # no progress bar
