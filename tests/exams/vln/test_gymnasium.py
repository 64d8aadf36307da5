import json
import subprocess
import sys
import warnings

import gymnasium
import msgspec
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium_cases import assert_checker_is_content, vector_env_texts

from proctor.core.errors import UserError
from proctor.core.types import Pose2, Scan, Vector3
from proctor.exams.datasets import save_dataset
from proctor.exams.vln.episode import Episode
from proctor.exams.vln.gymnasium import ENV_ID, ProctorGym, make_vln, register
from proctor.scenes.scene_config import Part, SceneConfig, SceneObject, save_scene
from proctor.worlds.mock import MockEnv
from proctor.worlds.mujoco.wheeled.env import VLNEnv

EPISODES = [
    Episode(episode_id="a", instruction="Walk to the sofa.", max_steps=3),
    Episode(episode_id="b", instruction="走到沙发旁边", max_steps=5, start_position=(1, 0, 0)),
    Episode(episode_id="c", max_steps=5, start_position=(2, 0, 0)),
]


@pytest.fixture
def gym():
    env = ProctorGym(MockEnv(), EPISODES)
    yield env
    env.close()


def test_gymnasiums_own_checker_is_content_with_the_mock_env():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(ProctorGym(MockEnv(), EPISODES, render_mode="rgb_array"), skip_render_check=True)


def test_gymnasiums_own_checker_is_content_with_the_embedded_env(tmp_path):
    wall = SceneObject(name="wall", parts=[Part(shape="box", size=(0.1, 2, 2), translate=(3, 0, 1))])
    save_scene(SceneConfig(scene_name="s", objects=[wall]), tmp_path / "s.json")
    episodes = [Episode(scene_config_path=str(tmp_path / "s.json"), instruction="Go on.", max_steps=20)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        env = VLNEnv(width=32, height=24, sensors=["rgb", "depth", "scan", "odom"])
        check_env(ProctorGym(env, episodes), skip_render_check=True)


class Instruments(MockEnv):
    """Shows what envs of other people show: arrays and numbers of all kinds."""

    def reset(self, episode):
        return self.view(super().reset(episode))

    def step(self, action):
        observation, *rest = super().step(action)
        return self.view(observation), *rest

    def view(self, observation):
        scan = Scan(np.array([0.5, np.inf, np.nan]), -1.0, 1.0, 0.1, 8.0)
        own = {
            "depth_m": np.full((4, 6), 0.1, np.float32),
            "joints": np.array([0.1, -0.2]),
            "force": np.array([np.inf]),
            "speed": 0.5,
            "count": 3,
            "touches": np.array([True, False]),
            "is_moving": np.True_,
            "scan": scan,
            "odom": Pose2(1.0, 2.0, 0.5),
            "name": "robot",
            "pose": {"x": 1.0},
        }
        return observation | own


def test_gymnasiums_own_checker_is_content_with_numbers_of_all_kinds():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # Said of boxes without limits: nobody knows those of somebody else's env.
        warnings.filterwarnings("ignore", message=".*space (minimum|maximum) value is -?infinity")
        check_env(ProctorGym(Instruments(), EPISODES), skip_render_check=True)


def test_gymnasiums_own_checker_is_content_with_what_make_builds():
    env = gymnasium.make(ENV_ID, env="test_gymnasium:Instruments", dataset=EPISODES)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message=".*space (minimum|maximum) value is -?infinity")
        check_env(env.unwrapped)
    env.close()


def test_floats_and_numbers_keep_their_values():
    gym = ProctorGym(Instruments(), EPISODES)
    observation, _ = gym.reset(seed=0)
    assert observation in gym.observation_space
    assert observation["depth_m"].dtype == np.float32
    assert observation["depth_m"][0, 0] == np.float32(0.1)
    assert observation["joints"].tolist() == [0.1, -0.2]
    assert observation["speed"] == 0.5
    assert observation["count"] == 3
    assert observation["touches"].tolist() == [1, 0]
    assert observation["scan"].tolist() == [0.5, 8.0, 8.0], "no return: as far as the scanner can see"
    assert observation["odom"].tolist() == [1.0, 2.0, 0.5]
    assert not {"name", "pose"} & set(observation)


def test_observations_are_in_the_space_and_carry_the_instruction(gym):
    observation, info = gym.reset(options={"episode_id": "b"})
    assert observation in gym.observation_space
    assert observation["instruction"] == "走到沙发旁边"
    assert info["position"].x == 1.0
    assert gym.step(1)[0] in gym.observation_space


def test_stop_terminates_and_the_limit_truncates(gym):
    gym.reset(options={"episode_id": "a"})
    assert [gym.step(1)[2:4] for _ in range(3)] == [(False, False), (False, False), (False, True)]
    gym.reset(options={"episode_id": "a"})
    assert gym.step(0)[2:4] == (True, False)
    gym.reset(options={"episode_id": "a"})
    gym.step(1)
    gym.step(1)
    assert gym.step(0)[2:4] == (True, False), "STOP in the last step"


def test_the_seed_decides_the_episode(gym):
    def draw(seed):
        gym.reset(seed=seed)
        return [gym.reset()[1]["position"].x for _ in range(8)]

    assert draw(1) == draw(1)
    assert len(set(draw(1))) > 1


def test_an_episode_can_be_handed_over(gym):
    _, info = gym.reset(options={"episode": Episode(start_position=(7, 0, 0))})
    assert info["position"].x == 7.0


@pytest.mark.parametrize("options", [{"episode_id": "aa"}, {"seed": 3}])
def test_unknown_options_and_ids_are_refused(gym, options):
    with pytest.raises(UserError):
        gym.reset(options=options)


def test_no_episodes_are_refused():
    with pytest.raises(UserError, match="at least one episode"):
        ProctorGym(MockEnv(), [])


def test_make_builds_it_from_names(tmp_path):
    place = {"x": 1, "y": 2, "z": 0}
    episode = {
        "episode_id": "e",
        "scene_id": "none",
        "instruction": "Stop.",
        "start_position": place,
        "start_rotation": place,
        "goal_position": place,
    }
    (tmp_path / "episodes.json").write_text(json.dumps({"episodes": [episode]}))
    register()
    documented = f"proctor.worlds.gymnasium:{ENV_ID}"
    env = gymnasium.make(documented, env="mock", dataset=tmp_path / "episodes.json", render_mode="rgb_array")
    observation, _ = env.reset(seed=0)
    assert observation["rgb"].dtype == np.uint8
    assert (env.render() == observation["rgb"]).all()
    env.step(env.action_space.sample())
    env.close()


def test_without_gymnasium_the_error_says_what_to_install():
    code = "import sys; sys.modules['gymnasium'] = None; import proctor.worlds.gymnasium"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert result.returncode != 0
    assert "pip install 'proctor-eval[gym]'" in result.stderr


def test_what_make_builds_shows_what_a_class_of_ones_own_adds():
    env = gymnasium.make(ENV_ID, env="test_gymnasium:Instruments", dataset=EPISODES)
    assert env.observation_space["joints"].shape == (2,)
    env.close()


@pytest.fixture
def hall(tmp_path):
    """Three episodes in a hall whose goal is 1 m ahead, behind a wall to the right of which is a gap."""
    wall = SceneObject(name="wall", parts=[Part(shape="box", size=(0.1, 2, 2), translate=(3, 0, 1))])
    save_scene(SceneConfig(scene_name="s", objects=[wall]), tmp_path / "s.json")
    return [
        Episode(
            episode_id=f"hall_{k}",
            scene_config_path=str(tmp_path / "s.json"),
            instruction=f"Go on: {'ABC走到'[k]}.",
            goal_position=(1.0, 0, 0),
            success_threshold=0.2,
            max_steps=4,
        )
        for k in range(3)
    ]


SENSORS = ["rgb", "depth", "scan", "odom"]


def test_spaces_are_known_before_a_world_is_built(hall, monkeypatch):
    lazy = gymnasium.make(ENV_ID, dataset=hall, width=32, height=24, sensors=SENSORS).unwrapped
    assert lazy._env is None
    eager = ProctorGym(VLNEnv(width=32, height=24, sensors=SENSORS), hall)
    assert lazy.observation_space == eager.observation_space
    observation, _ = lazy.reset(seed=0)
    assert observation in lazy.observation_space
    assert_checker_is_content(lazy)
    lazy.close()
    eager.close()


def test_wrong_options_are_told_when_the_env_is_made(hall):
    with pytest.raises(UserError, match="width"):
        make_vln(hall, width=0)
    with pytest.raises(UserError, match="did you mean 'width'"):
        make_vln(hall, widht=32)
    with pytest.raises(UserError, match="expected none, progress or success, found 'sucess'"):
        make_vln(hall, reward="sucess")


def test_rewards_are_off_unless_they_are_asked_for(hall):
    rewards = {}
    for reward in ("none", "progress", "success"):
        env = make_vln(hall, reward=reward, sensors=["odom"])
        env.reset(seed=0)
        rewards[reward] = [env.step(action)[1] for action in (1, 1, 1, 0)]
        env.reset(seed=0)
        rewards[reward].append(env.step(0)[1])
        env.close()
    assert rewards["none"] == [0.0] * 5
    assert rewards["progress"] == pytest.approx([0.25, 0.25, 0.25, 0.0, 0.0], abs=0.03)
    assert rewards["success"] == [0.0] * 5, "0.25 m from the goal, the threshold is 0.2 m"
    env = make_vln([msgspec.structs.replace(hall[0], success_threshold=0.4)], reward="success", env="mock")
    env.reset(seed=0)
    assert [env.step(action)[1] for action in (1, 1, 1, 0)] == [0.0, 0.0, 0.0, 1.0]


def test_progress_goes_by_the_way_around_obstacles(hall):
    behind = msgspec.structs.replace(hall[0], goal_position=Vector3(4.0, 0.0, 0.0), max_steps=20)
    env = make_vln([behind], reward="progress", sensors=["odom"])
    env.reset(seed=0)
    gained = sum(env.step(1)[1] for _ in range(8))
    info = env.unwrapped.env.info()
    env.close()
    straight_m = 4.0 - info["distance_to_goal"]
    assert straight_m == pytest.approx(2.0, abs=0.05)
    assert 0 < gained < straight_m - 0.1, "in front of the wall it is no longer on the shortest way"


class Lost(MockEnv):
    """A robot that is outside of the map for a while."""


def test_a_place_off_the_map_neither_pays_nor_costs():
    env = make_vln(EPISODES, env="test_gymnasium:Lost", reward="progress")
    env.left_m = lambda episode, info: [5.0, np.inf, 4.5, 4.0][info["step"]]
    env.reset(options={"episode_id": "a"})
    assert [env.step(1)[1] for _ in range(3)] == [0.0, 0.5, 0.5]


@pytest.mark.parametrize(
    "vector_kwargs", [{}, {"context": "spawn"}, {"context": "fork", "shared_memory": False}]
)
def test_vector_envs_draw_in_processes_of_their_own(hall, tmp_path, vector_kwargs):
    save_dataset(hall, tmp_path / "episodes.json")
    options = {"dataset": str(tmp_path), "width": 32, "height": 24, "reward": "progress"}
    shown = vector_env_texts(tmp_path, ENV_ID, action=1, steps=7, vector_kwargs=vector_kwargs, **options)
    assert 1 < len(shown) <= 3
    assert shown <= {episode.instruction for episode in hall}


def test_a_process_that_was_forked_from_one_that_draws_is_told_so():
    code = (
        "import os, sys\n"
        "from proctor.worlds.mujoco.render.gl import check_drawing\n"
        "from proctor.core.errors import UserError\n"
        "check_drawing()\n"
        "child = os.fork()\n"
        "if not child:\n"
        "    try: check_drawing()\n"
        "    except UserError as error: os.write(1, str(error).encode())\n"
        "    os._exit(0)\n"
        "os.waitpid(child, 0)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True
    )
    assert 'start it with context="spawn"' in done.stdout
