import warnings

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from same_actions import DRIVING, REACHING, STEPS, own_results, short_suite

from proctor.core.errors import UserError
from proctor.integrations.lerobot import LeRobotEnv, make_env

NEW = {"lerobot_new_rollout": True}
ROWS = {"houses-v1": np.eye(4, dtype=np.float32)[DRIVING], "tabletop-v1": np.array(REACHING, np.float32)}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return {suite: short_suite(suite, tmp_path_factory.mktemp("suite")) for suite in ROWS}


@pytest.mark.parametrize("suite", ROWS)
def test_scores_are_those_of_a_run_with_the_same_actions(suite, files):
    env, own = LeRobotEnv(str(files[suite])), own_results(files[suite])
    for seed in (1, 0):
        env.reset(seed=seed, options=NEW)
        steps = [env.step(row) for row in ROWS[suite]]
        *_, info = steps[-1]
        metrics = dict(own[seed].metrics)
        assert info == {"is_success": bool(metrics.pop("success")), **metrics}
        assert [step[2] or step[3] for step in steps] == [False] * (STEPS - 1) + [True]
        assert [step[4] for step in steps[:-1]] == [{"is_success": False}] * (STEPS - 1)
    env.close()


@pytest.mark.parametrize("suite", ROWS)
def test_gymnasiums_own_checker_is_content(suite, files):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of boxes without bounds
        env = LeRobotEnv(str(files[suite]))
        check_env(env, skip_render_check=True)
    assert env.render().dtype == np.uint8
    assert env.action_space.shape == {"houses-v1": (4,), "tabletop-v1": (10,)}[suite]
    env.close()


def test_an_episode_that_has_ended_stays_so_until_a_new_rollout(files):
    (vector,) = make_env(n_envs=2, suite=str(files["houses-v1"]))[str(files["houses-v1"])].values()
    vector.reset(seed=[0, 1], options=NEW)
    first, second = vector.call("task_description")
    assert first != second
    stop_and_go = np.eye(4, dtype=np.float32)[[0, 1]]
    for _ in range(4):
        _, _, ended, *_ = vector.step(stop_and_go)
        assert not ended[1]
        assert vector.call("task_description") == (first, second), "the automatic reset began nothing"
    vector.reset(seed=[1, 2], options=NEW)
    assert vector.call("task_description") == (second, first), "seeds count on from the start"
    vector.reset(options=NEW)
    assert vector.call("task_description") == (first, second), "without a seed, the next episode"
    vector.close()


def test_worlds_in_processes_of_their_own(files):
    suite = str(files["tabletop-v1"])
    (vector,) = make_env(2, use_async_envs=True, suite=suite)[suite].values()
    assert isinstance(vector, gymnasium.vector.AsyncVectorEnv)
    seen, _ = vector.reset(seed=[0, 1], options=NEW)
    assert seen["pixels"]["head"].shape == (2, 480, 640, 3)
    seen, *_ = vector.step(ROWS["tabletop-v1"][:2])
    assert seen["agent_pos"].shape == (2, 10)
    assert vector.call("_max_episode_steps") == (STEPS, STEPS)
    vector.close()


@pytest.mark.parametrize("count", [0, True, "2"])
def test_a_number_of_envs_that_is_none(count):
    with pytest.raises(UserError, match="n_envs: expected a number from 1"):
        make_env(count)


def test_the_suite_may_come_from_lerobots_configuration(files):
    class Config:
        task = str(files["houses-v1"])

    (vector,) = make_env(cfg=Config())[Config.task].values()
    assert vector.call("task") == ("vln",)
    vector.close()
