"""What an agent might try instead of picking and placing, in the real world; none of it pays."""

import numpy as np
import pytest
from pick_place_states import score
from stretch_moves import CLOSED, OPEN, TABLE_Z, controls_for, episode_with

from proctor.core.errors import AgentFault, SimulationError
from proctor.exams.pick_place.documented_metrics import PickPlaceTrajectorySimilarity
from proctor.exams.pick_place.env import PickPlaceEnv, things_of
from proctor.exams.pick_place.ground_truth import goal_of
from proctor.scenes.tabletop_parts import SimParams
from proctor.worlds.mujoco.tabletop.tabletop import TabletopWorld

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
    heights_m = [1.05] * 15 + [TABLE_Z] * 40
    infos = [env.step(joints(controls_for([0.5, 0.0, z], CLOSED)))[3] for z in heights_m]
    assert sum(not info["object_released"] for info in infos) > 10, "the hand never came down on it"
    assert score("grasped", infos, episode) == 0.0
    assert score("completion_rate", infos, episode) == pytest.approx(0.21, abs=0.03)


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


@pytest.mark.parametrize(("turned", "inside"), [((0.0, 0.0, 0.0, 1.0), True), ((1.0, 0.0, 0.0, 0.0), False)])
def test_a_bowl_that_is_put_over_a_thing_does_not_contain_it(turned, inside):
    bowl = {"name": "bowl", "shape": {"kind": "bowl"}, "position": [0.5, -0.2, 0.9], "rotation": turned}
    goal = {
        "target_object": {"name": "thing"},
        "target_location": {"type": "container", "object_name": "bowl"},
    }
    block = {"shape": {"kind": "block", "size": [0.02, 0.02, 0.02]}, "position": [0.5, 0.2, 0.8]}
    episode = episode_with(block, bowl, task_goal=goal)
    world = TabletopWorld(episode, things_of(episode), drawn=False)
    world.place()
    at, up = world.pose_of("bowl")
    assert goal_of(episode, world).contains(at + up @ [0.0, 0.0, 0.02]) is inside


def test_what_settling_moves_is_not_held_against_the_agent(env):
    episode = episode_with(CUP | {"position": [0.5, 0.0, TABLE_Z + 0.1]})
    env.reset(episode)
    infos = [env.step(joints(controls_for(ABOVE, OPEN)))[3]]
    assert score("object_displacement_m", infos, episode) == pytest.approx(0.0, abs=1e-3)


@pytest.mark.parametrize(
    ("time_step", "period", "set_points", "physics_steps"),
    [(0.01, 0.1, 10, 5), (0.1, 0.1, 10, 5), (0.025, 0.1, 12, 5), (0.001, 0.1, 100, 1), (0.1, 2.0, 200, 5)],
)
def test_set_points_never_jump_for_longer_than_10_ms(time_step, period, set_points, physics_steps):
    params = SimParams(time_step=time_step, control_period=period)
    assert (params.set_points_per_action, params.physics_steps_per_set_point) == (set_points, physics_steps)
    assert params.set_point_s * params.set_points_per_action == pytest.approx(period)
    assert params.set_point_s / params.physics_steps_per_set_point <= 0.002 + 1e-12


def test_who_writes_into_an_observation_does_not_change_what_is_measured(env):
    home = controls_for(ABOVE, OPEN)
    row = [0.0] * 10
    episode = episode_with(CUP, reference_trajectory={"qpos_sequence": [row, row]})
    values = []
    for is_forger in (False, True):
        env.reset(episode)
        metric = PickPlaceTrajectorySimilarity()
        metric.reset(episode, None)
        for _ in range(2):
            observation, _, _, info = env.step(joints(home))
            metric.update(info)
            if is_forger:
                observation["qpos"][:] = row
        values.append(metric.get_metric())
    assert values[0] == values[1] < 0.9
    history = [np.ones(10), np.ones(10)]
    metric.reset(episode, None)
    for state in history:
        metric.update({"qpos": state})
        state[:] = row
    assert metric.get_metric() < 0.9
