"""What an agent might try instead of picking and placing, in the real world; none of it pays."""

import numpy as np
import pytest

from proctor.core.errors import AgentFault, SimulationError
from proctor.envs.pick_place import PickPlaceEnv
from proctor.metrics.stages import CompletionRate, Grasped
from stretch_moves import CLOSED, OPEN, TABLE_Z, controls_for, episode_with

CUP = {"shape": {"kind": "cup", "color": "red"}}
ABOVE = np.array([0.5, 0.0, 1.05])


def joints(controls):
    return {"type": "joint_position", "qpos": [float(value) for value in controls]}


@pytest.fixture
def env():
    env = PickPlaceEnv(sensors=[])
    yield env
    env.close()


def test_pressing_on_a_thing_from_above_is_no_grasp(env):
    episode = episode_with(CUP)
    env.reset(episode)
    metrics = [Grasped(), CompletionRate()]
    for metric in metrics:
        metric.reset(episode, None)
    pressed = 0
    for height_m, steps in ((1.05, 15), (TABLE_Z, 40)):
        for _ in range(steps):
            _, _, _, info = env.step(joints(controls_for([0.5, 0.0, height_m], CLOSED)))
            for metric in metrics:
                metric.update(info)
            pressed += not info["object_released"]
    assert pressed > 10, "the hand never came down on it"
    assert [metric.get_metric() for metric in metrics] == [0.0, pytest.approx(0.21, abs=0.03)]


def test_an_agent_under_whose_commands_the_physics_breaks_is_to_blame(env, monkeypatch):
    env.reset(episode_with(CUP))

    def broken():
        raise SimulationError("the physics became unstable")

    monkeypatch.setattr(env._world, "advance", broken)
    with pytest.raises(AgentFault, match="unstable") as caught:
        env.step(joints(controls_for(ABOVE, OPEN)))
    assert caught.value.kind == "unstable_physics"


@pytest.mark.parametrize("seed", range(3))
def test_commands_that_jump_between_extremes_do_not_break_the_physics(env, seed):
    rng = np.random.default_rng(seed)
    env.reset(episode_with(CUP))
    for _ in range(60):
        _, _, _, info = env.step(joints(rng.choice([-1e308, 1e308], 7)))
        assert np.isfinite(info["qpos"]).all()
        assert np.abs(info["qvel"]).max() < 10
