import math
from contextlib import closing

import numpy as np
import pytest

from proctor.core.errors import InvalidFile, SimulationError, UserError
from proctor.core.types import Action, Pose2, Scan, Vector3
from proctor.exams.vln.episode import Episode
from proctor.scenes.scene_config import Part, SceneConfig, SceneObject, save_scene
from proctor.worlds.mujoco.wheeled import env as vln
from proctor.worlds.mujoco.wheeled.env import VLNEnv
from proctor.worlds.mujoco.wheeled.world import World

ACTIONS = [1, 2, 1, 1, 3, 3, 1, 1, 1, 2]


def box(name, at, size, **options):
    parts = [Part(shape="box", size=size, color=(0.7, 0.3, 0.2), texture="brick")]
    return SceneObject(name=name, translate=at, parts=parts, **options)


@pytest.fixture(scope="module")
def scenes(tmp_path_factory):
    folder = tmp_path_factory.mktemp("scenes")
    room = [
        box("wall", (2.0, 0.0, 1.0), (0.1, 4.0, 2.0)),
        box("ball", (0.9, 0.35, 0.2), (0.3, 0.3, 0.4), rigid_body_type="dynamic", mass=1.0),
    ]
    save_scene(SceneConfig(scene_name="room", objects=room), folder / "room.json")
    save_scene(SceneConfig(scene_name="floor"), folder / "floor.json")
    return folder


@pytest.fixture(scope="module")
def env():
    env = VLNEnv(width=64, height=48)
    yield env
    env.close()


def episode(scenes, name="room", **options):
    return Episode(scene_config_path=str(scenes / f"{name}.json"), goal_position=(1.0, 0.0, 0.0), **options)


def roll(env, episode):
    observations, infos = [env.reset(episode)], [env.info()]
    for action in ACTIONS:
        observation, _, _, info = env.step(action)
        observations.append(observation)
        infos.append(info)
    return observations, infos


def test_reset_puts_the_robot_at_the_start(env, scenes):
    observation = env.reset(episode(scenes, start_position=(-1.0, 0.5, 0.0), start_rotation=(0, 0, 30)))
    assert set(observation) == {"rgb", "depth"}
    assert observation["rgb"].shape == (48, 64, 3)
    assert observation["depth"].shape == (48, 64)
    info = env.info()
    assert info["position"] == Vector3(-1.0, 0.5, 0.0)
    assert info["yaw"] == pytest.approx(math.radians(30))
    assert info["distance_to_goal"] == pytest.approx(math.hypot(2.0, 0.5))
    assert info["step"] == 0


def test_a_step_moves_the_robot_and_tells_the_truth(env, scenes):
    first = env.reset(episode(scenes))
    observation, reward, done, info = env.step(Action.FORWARD)
    assert (reward, done) == (0.0, False)
    assert info["position"].x == pytest.approx(0.25, abs=0.005)
    assert info["position"].z == 0.0
    assert info["distance_to_goal"] == pytest.approx(0.75, abs=0.005)
    assert info["trajectory"] == [Vector3(0.0, 0.0, 0.0), info["position"]]
    nearer = first["depth"][24, 32] - observation["depth"][24, 32]
    assert nearer == pytest.approx(250, abs=5)
    _, _, _, info = env.step(2)
    assert info["yaw"] == pytest.approx(math.radians(15), abs=math.radians(0.3))


def test_collisions_are_reported_per_step_and_per_episode(env, scenes):
    there = episode(scenes, start_position=(1.4, -1.0, 0.0))
    env.reset(there)
    collisions = [env.step(action)[3]["collision"] for action in (1, 1, 2, 1)]
    assert collisions == [False, True, False, True]
    assert env.info()["collision_count"] == 2
    env.reset(there)
    assert env.info()["collision_count"] == 0


def test_a_collision_ends_the_episode_only_if_asked(scenes):
    env = VLNEnv(width=16, height=12, end_on_collision=True)
    env.reset(episode(scenes, start_position=(1.6, -1.0, 0.0)))
    _, _, done, info = env.step(1)
    assert done
    assert info["collision"]
    env.close()


def test_stop_and_the_step_limit_end_the_episode(env, scenes):
    env.reset(episode(scenes, max_steps=3))
    assert [env.step(2)[2] for _ in range(3)] == [False, False, True]
    with pytest.raises(SimulationError, match="was done"):
        env.step(2)
    env.reset(episode(scenes))
    assert env.step(0)[2]


@pytest.mark.parametrize("action", [7, "1", True, 2.0])
def test_what_is_no_action_is_refused(env, scenes, action):
    env.reset(episode(scenes))
    with pytest.raises(ValueError, match="action from 0 to 3"):
        env.step(action)


def test_the_same_actions_give_the_same_bits_whatever_happened_before(scenes):
    env = VLNEnv(width=64, height=48, sensors=("rgb", "depth", "scan", "odom"))
    first = roll(env, episode(scenes))
    roll(env, episode(scenes, start_position=(0.0, 1.0, 0.0)))
    roll(env, episode(scenes, "floor"))
    second = roll(env, episode(scenes))
    env.close()
    fresh = VLNEnv(width=64, height=48, sensors=("rgb", "depth", "scan", "odom"))
    third = roll(fresh, episode(scenes))
    fresh.close()
    assert any(info["collision"] for info in first[1]), "the loose ball should have been hit"
    for observations, infos in (second, third):
        assert infos == first[1]
        for mine, theirs in zip(observations, first[0], strict=True):
            assert (mine["rgb"] == theirs["rgb"]).all()
            assert (mine["depth"] == theirs["depth"]).all()
            assert (mine["scan"].ranges == theirs["scan"].ranges).all()
            assert mine["odom"] == theirs["odom"]


def test_an_env_that_does_not_look_draws_nothing_and_moves_the_same(env, scenes):
    observations, infos = roll(env, episode(scenes))
    env.looking = False
    try:
        blind, same = roll(env, episode(scenes))
    finally:
        env.looking = True
    assert blind == [{}] * len(observations)
    assert [info["position"] for info in same] == [info["position"] for info in infos]


def test_sensors_are_what_was_asked_for(scenes):
    env = VLNEnv(sensors=("scan", "odom"))
    observation = env.reset(episode(scenes, start_position=(1.0, -1.0, 0.0)))
    assert set(observation) == {"scan", "odom"}
    assert isinstance(observation["scan"], Scan)
    assert np.nanmin(observation["scan"].ranges) == pytest.approx(0.95, abs=0.01)
    assert observation["odom"] == Pose2(0.0, 0.0, 0.0)
    observation, _, _, _ = env.step(1)
    assert observation["odom"].x == pytest.approx(0.25, abs=0.005)
    env.close()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"sensors": ("rgb", "lidar")},
            r"sensors\[1\]: Invalid enum value 'lidar', expected 'depth' or",
        ),
        ({"sensors": "rgb"}, "option sensors: Expected `array`, got `str`"),
        ({"width": 0}, "option width: Expected `int` >= 1, found 0"),
        ({"width": 1.5}, r"option width: Expected `int \| null`, got `float`"),
        ({"width": True}, r"option width: Expected `int \| null`, got `bool`"),
        ({"height": 100_000}, "option height: Expected `int` <= 4096, found 100000"),
        ({"fov_deg": 200.0}, "option fov_deg: Expected `float` < 180.0, found 200.0"),
        ({"linear_speed_mps": 0.0}, "option linear_speed_mps: "),
        ({"linear_speed_mps": float("inf")}, "option linear_speed_mps: "),
        ({"collision_threshold_m": -1.0}, "option collision_threshold_m: "),
        ({"end_on_collision": "maybe"}, r"option end_on_collision: Expected `bool`, got `str`"),
    ],
)
def test_options_that_make_no_sense_are_refused(options, message):
    with pytest.raises(UserError, match=message):
        VLNEnv(**options)


def test_an_episode_without_a_scene_is_refused(env):
    with pytest.raises(UserError, match="'nowhere': the embedded world needs a scene"):
        env.reset(Episode(episode_id="nowhere"))


def test_a_missing_scene_is_refused(env, scenes):
    with pytest.raises(InvalidFile, match=r"no\.json: no such file"):
        env.reset(episode(scenes, "no"))


def test_a_start_on_another_storey_is_refused(env, scenes):
    with pytest.raises(UserError, match=r"start_position\.z is 3\.0"):
        env.reset(episode(scenes, start_position=(0.0, 0.0, 3.0)))


def test_a_start_inside_of_an_obstacle_is_refused_and_found_before_the_first_episode(env, scenes):
    inside = episode(scenes, start_position=(1.9, 0.0, 0.0))
    with pytest.raises(UserError, match=r"starts inside of 'wall' at x=1\.9, y=0\.0"):
        env.reset(inside)
    with pytest.raises(UserError, match="starts inside of 'wall'"):
        env.check([episode(scenes, "floor"), episode(scenes), inside])
    env.check([episode(scenes, "floor"), episode(scenes)])


def test_positions_keep_the_height_of_the_start(env, scenes):
    env.reset(episode(scenes, start_position=(0.0, 0.0, 0.3)))
    assert env.step(1)[3]["position"].z == 0.3


def test_close_may_be_called_twice_and_the_env_used_again(scenes):
    env = VLNEnv(width=16, height=12)
    env.close()
    env.reset(episode(scenes))
    env.close()
    env.close()
    with pytest.raises(SimulationError, match="before reset"):
        env.step(1)
    env.reset(episode(scenes))
    env.close()


def test_a_scene_file_that_was_edited_is_built_anew(env, tmp_path):
    path = tmp_path / "scene.json"
    save_scene(SceneConfig(scene_name="empty"), path)
    env.reset(Episode(scene_config_path=str(path)))
    assert not env.step(1)[3]["collision"]
    save_scene(SceneConfig(scene_name="wall", objects=[box("wall", (0.3, 0, 1), (0.1, 2, 2))]), path)
    env.reset(Episode(scene_config_path=str(path)))
    assert env.step(1)[3]["collision"]


def test_starts_are_checked_once_for_each_version_of_a_scene(tmp_path, monkeypatch):
    built = []

    class CountedWorld(World):
        def __init__(self, *arguments, **options):
            built.append(1)
            super().__init__(*arguments, **options)

    monkeypatch.setattr(vln, "World", CountedWorld)
    save_scene(SceneConfig(scene_name="floor"), tmp_path / "floor.json")
    first, second = (episode(tmp_path, "floor", start_position=(x, 0.0, 0.0)) for x in (0.0, 1.0))

    def check(*episodes):
        with closing(VLNEnv(sensors=("odom",))) as env:
            env.check(episodes)
        return len(built)

    assert check(first) == 1
    assert check(first) == 1
    assert check(first, second) == 2
    save_scene(
        SceneConfig(scene_name="floor", objects=[box("box", (1.0, 0.0, 0.5), (1, 1, 1))]),
        tmp_path / "floor.json",
    )
    for _ in range(2):  # a start that is refused is refused again
        with pytest.raises(UserError, match="starts inside of 'box'"):
            check(first, second)
    assert len(built) == 4
