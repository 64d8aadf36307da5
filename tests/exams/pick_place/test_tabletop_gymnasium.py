"""Pick-and-place behind Gymnasium's interface: spaces, actions, rewards, vector envs."""

import gymnasium
import msgspec
import numpy as np
import pytest
from gymnasium_cases import assert_checker_is_content, vector_env_texts
from stretch_moves import CLOSED, OPEN, TABLE_Z, UP, controls_for, episode_with

from proctor.core.errors import UserError
from proctor.exams.datasets import save_dataset
from proctor.exams.pick_place.env import PickPlaceEnv
from proctor.exams.pick_place.gymnasium import ENV_ID, TabletopGym, make_tabletop
from proctor.robots.stretch import CONTROLS, CameraConfig

AT = np.array([0.5, 0.0, TABLE_Z + 0.05])
THERE = np.array([0.6, 0.15, TABLE_Z + 0.053])
SMALL = {
    "head": {"position": [0.1, 0.0, 1.2], "width": 64, "height": 48, "fov": 60.0},
    "wrist": {"position": [0.0, 0.0, 0.0], "width": 32, "height": 24, "fov": 90.0},
}


def episode(name="trial", **parts):
    cup = episode_with({"shape": {"kind": "cup", "color": "red"}}, **parts)
    cameras = {key: msgspec.convert(value, CameraConfig) for key, value in SMALL.items()}
    setup = msgspec.structs.replace(cup.robot_config, camera_config=cameras)
    return msgspec.structs.replace(
        cup, episode_id=name, robot_config=setup, instruction={"text": f"Pick up the cup: {name}."}
    )


def pick_and_place():
    """The targets of the controls, and how often each is given."""
    return [
        (controls_for(AT + UP, OPEN), 25),
        (controls_for(AT, OPEN), 20),
        (controls_for(AT, CLOSED), 14),
        (controls_for(AT + UP, CLOSED), 20),
        (controls_for(THERE + UP, CLOSED), 25),
        (controls_for(THERE, CLOSED), 20),
        (controls_for(THERE, OPEN), 10),
        (controls_for(THERE + UP, OPEN), 30),
    ]


def play(env):
    """Pick and place; return rewards, how it ended, and the last info."""
    rewards, terminated, truncated, info = [], False, False, {}
    for controls, times in pick_and_place():
        for _ in range(times):
            if not (terminated or truncated):
                _, reward, terminated, truncated, info = env.step(controls)
                rewards.append(reward)
    return rewards, terminated, truncated, info


def test_gymnasiums_own_checker_is_content():
    env = gymnasium.make(f"proctor.worlds.gymnasium:{ENV_ID}", dataset=[episode()])
    assert_checker_is_content(env)
    env.close()


def test_spaces_are_known_before_a_world_is_built():
    lazy = make_tabletop([episode()], render_mode="rgb_array")
    assert lazy._env is None
    eager = TabletopGym(PickPlaceEnv(), [episode()])
    assert lazy.observation_space == eager.observation_space
    assert lazy.observation_space["rgb_head"].shape == (48, 64, 3)
    assert lazy.action_space.shape == (len(CONTROLS),)
    observation, _ = lazy.reset(seed=0)
    assert observation in lazy.observation_space
    assert observation["instruction"] == "Pick up the cup: trial."
    assert (lazy.render() == observation["rgb_head"]).all()
    lazy.close()
    eager.close()


def test_success_ends_an_episode_and_is_the_reward():
    env = make_tabletop([episode()], reward="success", sensors=[])
    env.reset(seed=0)
    rewards, terminated, truncated, info = play(env)
    env.close()
    assert (terminated, truncated, info["success"]) == (True, False, True)
    assert rewards[-1] == 1.0
    assert sum(rewards) == 1.0


@pytest.mark.parametrize(
    "goal",
    [
        {},
        {
            "task_goal": {
                "target_object": {"name": "thing"},
                "success_criteria": {"type": "grasp_and_lift", "lift_height": 0.1},
            }
        },
    ],
)
def test_progress_adds_up_to_the_way_to_the_object_and_on_to_its_target(goal):
    env = make_tabletop([episode(**goal)], reward="progress", sensors=[])
    _, info = env.reset(seed=0)
    begun_m = env.left_m(env._episode, info)
    assert begun_m > 0.15
    rewards, terminated, _, info = play(env)
    env.close()
    assert terminated
    assert sum(rewards) == pytest.approx(begun_m - env.left_m(env._episode, info))
    assert sum(rewards) > 0.8 * begun_m


def test_rewards_are_off_unless_they_are_asked_for():
    env = make_tabletop([episode(sim_params={"max_steps": 3})], sensors=[])
    env.reset(seed=0)
    ends = [env.step(controls_for(AT, OPEN))[1:4] for _ in range(3)]
    env.close()
    assert ends == [(0.0, False, False), (0.0, False, False), (0.0, False, True)]


def test_no_episodes_are_refused():
    with pytest.raises(UserError, match="expected at least one episode, found none"):
        make_tabletop([])


def test_pictures_of_two_sizes_are_refused():
    larger = episode_with({"shape": {"kind": "cup", "color": "red"}})
    with pytest.raises(UserError, match="pictures of one size, found 2"):
        make_tabletop([episode(), larger])
    with pytest.raises(UserError, match=r"sensors\[0\]: Invalid enum value 'rgb', expected 'depth_head' or"):
        make_tabletop([episode()], sensors=["rgb"])


@pytest.mark.parametrize("vector_kwargs", [{}, {"context": "spawn"}])
def test_vector_envs_draw_in_processes_of_their_own(tmp_path, vector_kwargs):
    episodes = [episode(name, sim_params={"max_steps": 3}) for name in ("one", "two", "three")]
    save_dataset(episodes, tmp_path / "episodes.json")
    action = controls_for(AT, OPEN).tolist()
    options = {"dataset": str(tmp_path), "action": action, "steps": 6, "reward": "progress"}
    shown = vector_env_texts(tmp_path, ENV_ID, vector_kwargs=vector_kwargs, **options)
    assert 1 < len(shown) <= 3
    assert shown <= {f"Pick up the cup: {name}." for name in ("one", "two", "three")}
