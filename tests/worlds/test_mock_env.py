import math

import numpy as np
import pytest

from proctor.core.errors import SimulationError
from proctor.core.types import Action, Vector3
from proctor.exams.vln.episode import Episode
from proctor.worlds.mock import MockEnv

EPISODE = Episode(
    start_position=(1.0, 2.0, 0.1), start_rotation=(0, 0, 90), goal_position=(1.0, 4.0, 0.1), max_steps=5
)


def test_reset_gives_pictures_and_the_start():
    env = MockEnv()
    observation = env.reset(EPISODE)
    assert observation["rgb"].dtype == np.uint8
    assert observation["depth"].dtype == np.uint16
    info = env.info()
    assert info["position"] == Vector3(1.0, 2.0, 0.1)
    assert info["yaw"] == pytest.approx(math.pi / 2)
    assert info["distance_to_goal"] == pytest.approx(2.0)
    assert (info["step"], info["collision"], info["collision_count"]) == (0, False, 0)
    assert info["trajectory"] == [Vector3(1.0, 2.0, 0.1)]


def test_motion_is_exact():
    env = MockEnv()
    env.reset(EPISODE)
    _, reward, done, info = env.step(Action.FORWARD)
    assert (reward, done) == (0.0, False)
    assert info["position"].y == pytest.approx(2.25, abs=1e-12)
    assert info["distance_to_goal"] == pytest.approx(1.75)
    _, _, _, info = env.step(2)
    assert info["yaw"] == pytest.approx(math.radians(105))
    _, _, _, info = env.step(np.int64(3))
    assert info["yaw"] == pytest.approx(math.radians(90))
    assert info["step"] == 3
    assert len(info["trajectory"]) == 4


def test_stop_ends_the_episode_wherever_it_is_called():
    env = MockEnv()
    env.reset(EPISODE)
    _, _, done, info = env.step(Action.STOP)
    assert done
    assert info["step"] == 1


def test_the_step_limit_ends_the_episode_exactly_there():
    env = MockEnv()
    env.reset(EPISODE)
    assert [env.step(1)[2] for _ in range(5)] == [False, False, False, False, True]


def test_a_trajectory_that_was_handed_out_does_not_grow():
    env = MockEnv()
    env.reset(EPISODE)
    info = env.info()
    env.step(1)
    assert len(info["trajectory"]) == 1


def test_steps_before_reset_after_the_end_and_after_close_are_refused():
    env = MockEnv()
    with pytest.raises(SimulationError, match="before reset"):
        env.step(1)
    with pytest.raises(SimulationError, match="before reset"):
        env.info()
    env.reset(EPISODE)
    env.step(0)
    with pytest.raises(SimulationError, match="was done"):
        env.step(1)
    env.reset(EPISODE)
    assert not env.step(1)[2]
    env.close()
    env.close()
    with pytest.raises(SimulationError, match="before reset"):
        env.step(1)


@pytest.mark.parametrize("action", [-1, 4, 1.0, "FORWARD", None, True, [1], math.nan])
def test_what_is_no_action_is_refused_and_changes_nothing(action):
    env = MockEnv()
    env.reset(EPISODE)
    with pytest.raises(ValueError, match="action from 0 to 3"):
        env.step(action)
    assert env.info()["step"] == 0
