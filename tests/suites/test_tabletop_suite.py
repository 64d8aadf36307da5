"""The suite tabletop-v1, and the code that builds it."""

import hashlib
import math
import re
from collections import Counter

import msgspec
import numpy as np
import pytest

from proctor.core.documents import read_json
from proctor.core.errors import UserError
from proctor.core.interfaces import TRUTH
from proctor.core.registry import suite_path
from proctor.core.types import EpisodeInfo, Pose2
from proctor.exams.datasets import load_dataset
from proctor.exams.pick_place.checks import problems_of
from proctor.exams.pick_place.documented_metrics import PickPlaceCompletionRate
from proctor.exams.pick_place.env import PickPlaceEnv, things_of
from proctor.exams.pick_place.expert.expert import ExpertPolicy
from proctor.robots.stretch import controls_of_qpos
from proctor.robots.stretch_kinematics import hand_in_world
from proctor.scenes.kinds import KINDS
from proctor.suites import tabletop_builder
from proctor.suites.tabletop_builder import (
    TABLETOP_RECIPES,
    TabletopRecipe,
    TabletopSplit,
    build_tabletop,
    tried,
)
from proctor.suites.tabletop_exam import SEEN, UNSEEN, TabletopExam
from proctor.suites.tabletop_scenes import COLORS
from proctor.worlds.mujoco.tabletop.tabletop import TabletopWorld

SPLITS = ("val_seen", "val_unseen")
NAMED = re.compile(rf"the ({'|'.join(COLORS)}) ({'|'.join(KINDS)})\b")
ON_FURNITURE = re.compile(r"on the (\w+)\.$")


@pytest.fixture(scope="module")
def episodes():
    return load_dataset(suite_path("tabletop-v1")).episodes


def in_split(episodes, split):
    return [episode for episode in episodes if episode.split == split]


def target_of(episode):
    return episode.item(episode.task_goal.target_object.name)


def support_of(episode):
    """Return the furniture that the target stands on: it comes first."""
    return next(item for item in episode.scene_objects if item.static)


def location_type(episode):
    location = episode.task_goal.target_location
    return "lift" if location is None else location.type


def play(episode, policy, steps=None):
    """Return the last info, and the completion rate."""
    env, rate = PickPlaceEnv(sensors=[]), PickPlaceCompletionRate()
    observation, info, done = env.reset(episode), env.info(), False
    rate.reset(episode, None)
    policy.reset(
        EpisodeInfo(episode_id="", instruction="", max_steps=500, seed=0, task=episode.task, episode=episode)
    )
    while not done and (steps is None or info["step"] < steps):
        observation, _, done, info = env.step(policy.act({**observation, TRUTH: info}))
        rate.update(info)
    env.close()
    return info, rate.completion_rate


class Hold:
    def reset(self, episode_info):
        self.first = None

    def act(self, observation):
        self.first = observation["qpos"].tolist() if self.first is None else self.first
        return {"type": "joint_position", "qpos": self.first}


def test_the_suite_is_what_its_checksums_say_and_small():
    folder = suite_path("tabletop-v1")
    checksums = read_json(folder / "checksums.json")
    assert {*checksums} == {"episodes.json"}
    content = (folder / "episodes.json").read_bytes()
    assert hashlib.sha256(content).hexdigest() == checksums["episodes.json"]
    assert len(content) < 5_000_000


def test_there_are_enough_episodes_of_every_sort(episodes):
    recipe = TABLETOP_RECIPES["tabletop-v1"]
    assert Counter(e.split for e in episodes) == {split.name: split.episodes for split in recipe.splits}
    assert len(episodes) >= 100
    for split in SPLITS:
        own = in_split(episodes, split)
        types = Counter(map(location_type, own))
        assert set(types) == {"position", "container", "surface", "lift"}
        assert min(types.values()) >= 5
        criteria = Counter(e.task_goal.success_criteria.type for e in own)
        assert min(criteria["grasp_and_lift"], criteria["place_at_location"]) >= 15
        assert 0.1 < np.mean([e.robot_config.nonholonomic for e in own]) < 0.5
    assert all(e.sim_params.max_steps == 500 and list(problems_of(e)) == [] for e in episodes)


def test_unseen_means_other_objects_other_furniture_and_other_containers(episodes):
    for split, repertoire in zip(SPLITS, (SEEN, UNSEEN), strict=True):
        own = in_split(episodes, split)
        assert {target_of(e).shape.kind for e in own} == {*repertoire.objects}
        assert {support_of(e).shape.kind for e in own} == {*repertoire.furniture}
        holders = [e.item(e.support_name()) for e in own if location_type(e) == "container"]
        assert {item.shape.kind for item in holders} == {*repertoire.containers}
    assert {*SEEN.objects}.isdisjoint(UNSEEN.objects)
    assert {*SEEN.furniture}.isdisjoint(UNSEEN.furniture)


def test_scenes_differ_in_height_clutter_and_colour(episodes):
    heights = [2 * support_of(e).position[2] for e in episodes]
    assert 0.55 <= min(heights) < 0.62
    assert 0.85 < max(heights) <= 0.95
    around = Counter(
        sum(not item.static for item in e.scene_objects) - 1 - (location_type(e) == "container")
        for e in episodes
    )
    assert set(around) == set(range(6))
    assert {target_of(e).shape.color for e in episodes} == {*COLORS}
    assert len({e.instruction.text for e in episodes}) > 0.7 * len(episodes)


def test_hands_start_away_from_the_object_and_robots_all_around(episodes):
    far_m, yaws = [], []
    for e in episodes:
        pose = e.robot_config.init_pose
        hand, _ = hand_in_world(Pose2(*pose.base), *controls_of_qpos(pose.joint_positions)[3:6])
        far_m.append(math.dist(hand, target_of(e).position))
        yaws.append(pose.base[2])
    assert min(far_m) > 0.3
    assert max(far_m) > 1.0
    assert min(yaws) < -2.5
    assert max(yaws) > 2.5


def test_instructions_name_what_is_there_and_nothing_else_fits(episodes):
    for e in episodes:
        text, location = e.instruction.text, e.task_goal.target_location
        looks = Counter((item.shape.color, item.shape.kind) for item in e.scene_objects)
        named = NAMED.findall(text)
        assert all(looks[look] == 1 for look in named), text
        target = target_of(e).shape
        assert named[0] == (target.color, target.kind)
        kind = location_type(e)
        if kind == "container":
            holder = e.item(location.object_name).shape
            assert named[1:] == [(holder.color, holder.kind)]
        elif kind == "surface":
            kinds = Counter(item.shape.kind for item in e.scene_objects)
            (word,) = ON_FURNITURE.findall(text)
            assert word == e.item(location.object_name).shape.kind
            assert kinds[word] == 1
        elif kind == "position":
            assert re.search("target location|marked spot", text)
        else:
            assert re.match("Pick up|Lift .* and hold it", text)
            assert "put" not in text
        assert e.instruction.tokens == re.findall("[a-z]+", text.lower())


def test_no_cup_is_as_red_as_a_mug_beside_it(episodes):
    for e in episodes:
        for alike in ({"cup", "mug"}, {"box", "block"}, {"can", "cylinder"}, {"bowl", "plate"}):
            colors = [item.shape.color for item in e.scene_objects if item.shape.kind in alike]
            assert len(colors) == len({*colors})


def test_reference_trajectories_are_the_experts_step_by_step(episodes):
    for e in episodes:
        reference = e.reference_trajectory
        steps = len(reference.qpos_sequence)
        assert 50 < steps <= 0.8 * e.step_limit
        assert len(reference.ee_pose_sequence) == steps
        first = controls_of_qpos(e.robot_config.init_pose.joint_positions)
        assert np.abs(np.array(reference.qpos_sequence[0]) - first).max() < 0.15
        names = ["grasp_start", "lift_complete", "place_start", "place_complete"]
        wanted = names[:2] if location_type(e) == "lift" else names
        moments = [reference.keypoints[name] for name in wanted]
        assert moments == sorted(moments)
        assert {*reference.keypoints} == {*wanted}
        assert moments[-1] < steps


def check_still(episode):
    world = TabletopWorld(episode, things_of(episode), drawn=False)
    world.place()
    for motion in world.settle():
        assert motion.moved_m <= 0.005, (episode.episode_id, motion)
        assert motion.tilted_rad <= math.radians(5), (episode.episode_id, motion)


def test_some_episodes_stand_still(episodes):
    for episode in episodes[::12]:
        check_still(episode)


@pytest.mark.slow
def test_all_episodes_stand_still(episodes):
    for episode in episodes:
        check_still(episode)


@pytest.mark.parametrize("index", [6, 66])
def test_the_expert_does_it_as_in_the_reference(episodes, index):
    info, rate = play(episodes[index], ExpertPolicy())
    assert info["success"]
    assert rate == 1.0
    assert info["collision_count"] == 0
    reference = episodes[index].reference_trajectory.qpos_sequence
    assert len(reference) == info["step"]
    assert np.abs(controls_of_qpos(tuple(info["qpos"])) - np.array(reference[-1])).max() < 1e-3


@pytest.mark.slow
def test_the_expert_does_nearly_all_of_it(episodes):
    done = [play(episode, ExpertPolicy())[0]["success"] for episode in episodes]
    assert np.mean(done) >= 0.98


def test_who_holds_still_gets_next_to_nothing(episodes):
    rates = [play(episode, Hold(), steps=3)[1] for episode in episodes[::4]]
    assert np.mean(rates) < 0.1


def exam(index, seed=3, split="val_seen"):
    return TabletopExam(split, SEEN, np.random.default_rng([seed, index])).episode(index)


def test_the_same_seed_draws_the_same_episode():
    assert exam(0) == exam(0)
    assert exam(0) != exam(0, seed=4)


def test_an_episode_whose_things_fall_over_is_left_out():
    drawn = exam(1)
    index = drawn.object_names.index(drawn.task_goal.target_object.name)
    items = list(drawn.scene_objects)
    x, y, z = items[index].position
    items[index] = msgspec.structs.replace(items[index], position=(x, y, z + 0.05))
    goal = msgspec.structs.replace(
        drawn.task_goal,
        target_object={"name": items[index].name, "initial_position": items[index].position},
    )
    fallen = msgspec.structs.replace(drawn, scene_objects=items, task_goal=goal)
    trial = tried(fallen, PickPlaceEnv(sensors=[]))
    assert not trial.is_still
    assert not tabletop_builder.is_good(trial)


def test_builds_what_is_asked_for_and_loads_it(tmp_path):
    recipe = TabletopRecipe((TabletopSplit("mine", 1, UNSEEN),), seed=5)
    told = []
    trials = build_tabletop(tmp_path / "new", recipe, told.append)
    assert told[-1] == 1
    (loaded,) = load_dataset(tmp_path / "new").episodes
    assert loaded.split == "mine"
    assert loaded.reference_trajectory == trials[-1].episode.reference_trajectory


def test_gives_up_when_nothing_can_be_done(tmp_path, monkeypatch):
    monkeypatch.setattr(tabletop_builder, "HOPELESS", 2)
    monkeypatch.setattr(
        tabletop_builder, "tried", lambda episode, env: tabletop_builder.Trial(episode, False)
    )
    with pytest.raises(UserError, match="2 candidates in a row for 'mine' cannot be done"):
        build_tabletop(tmp_path, TabletopRecipe((TabletopSplit("mine", 1, SEEN),), seed=5))
