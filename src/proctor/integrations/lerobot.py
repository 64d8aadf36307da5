"""Proctor's exams as environments of LeRobot, by the `make_env` that a repository of its EnvHub has.

A file `env.py` with `from proctor.integrations.lerobot import make_env` is all that such a repository needs.
The seed that LeRobot gives to `reset` is the number of the episode.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from proctor.core.errors import MissingDependency, UserError, install_command
from proctor.integrations.stepwise import StepwiseExam

try:
    import gymnasium
    from gymnasium import spaces
except ModuleNotFoundError as error:
    raise MissingDependency("Gymnasium", install_command("gym")) from error

NEW_ROLLOUT = "lerobot_new_rollout"
"""The option of `reset` by which LeRobot tells a new episode from the automatic reset of a vector env."""


Transition: TypeAlias = tuple[dict[str, Any], float, bool, bool, dict[str, Any]]


class LeRobotEnv(gymnasium.Env[dict[str, Any], NDArray[Any]]):
    """The episodes of a suite as LeRobot's rollout wants them.

    Observations are `pixels`, a picture or several by name, and for a robot with joints `agent_pos`. Actions
    are the positions of all joints; in navigation four scores, of which the largest counts, since policies of
    LeRobot give continuous numbers. The reward is 1 with the step of a success, else 0. `info` holds
    `is_success` and, at the end, the scores: no ground truth.

    An episode that has ended stays so until a `reset` with a seed or with LeRobot's option for a new rollout:
    the vector env's own reset must not begin another.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 10}  # noqa: RUF012  (Gymnasium's declaration)
    render_mode = "rgb_array"

    def __init__(self, suite: str = "tabletop-v1", **options: Any) -> None:
        self._stepwise = StepwiseExam(suite, "lerobot", action_kinds=("scores", "joint_position"), **options)
        self._max_episode_steps = max(episode.step_limit for episode in self._stepwise.episodes)
        self._last: Transition | None = None
        self._next = 0
        seen = self._stepwise.begin(0)
        self.observation_space = spaces.Dict({key: _space(value) for key, value in seen.items()})
        self.action_space = _action_space(self._stepwise)
        self._has_begun = False

    @property
    def task_description(self) -> str:
        """The instruction of the present episode."""
        return self._stepwise.info.instruction

    @property
    def task(self) -> str:
        """The name of the exam."""
        return self._stepwise.exam.name

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Begin the episode of this number (counted on from the start after the last), or the next one."""
        super().reset(seed=seed)
        is_new = seed is not None or bool((options or {}).get(NEW_ROLLOUT)) or not self._has_begun
        if self._last is not None and not is_new:
            return self._last[0], self._last[4]
        index = (self._next if seed is None else seed) % len(self._stepwise.episodes)
        self._next, self._last, self._has_begun = index + 1, None, True
        return self._stepwise.begin(index), {"is_success": False}

    def step(self, action: NDArray[Any]) -> Transition:
        """Do one action. After the end nothing happens any more."""
        if self._last is not None:
            return self._last
        is_done = self._stepwise.step(np.asarray(action, np.float64))
        seen = self._stepwise.seen()
        if not is_done:
            return seen, 0.0, False, False, {"is_success": False}
        result = self._stepwise.result()
        scores = {name: value for name, value in result.metrics.items() if name != "success"}
        info: dict[str, Any] = {"is_success": result.success, **scores}
        is_cut = result.error is None and result.steps >= self._max_episode_steps and not result.success
        self._last = (seen, 0.0, not is_cut, is_cut, info)
        return seen, float(result.success), not is_cut, is_cut, info

    def render(self) -> NDArray[np.uint8]:
        """Return the present picture, the first of several."""
        pixels = self._stepwise.seen()["pixels"]
        return next(iter(pixels.values())) if isinstance(pixels, dict) else pixels

    def close(self) -> None:
        """Close the world."""
        self._stepwise.close()


def make_env(
    n_envs: int = 1,
    use_async_envs: bool = False,  # noqa: FBT001, FBT002  (LeRobot's own signature)
    cfg: Any = None,
    *,
    suite: str = "tabletop-v1",
    **options: Any,
) -> dict[str, dict[int, gymnasium.vector.VectorEnv[Any, Any, Any]]]:
    """Return the vector env of a suite, as `lerobot.envs.factory.make_env` expects it.

    Args:
        n_envs: How many worlds, each with an episode of its own.
        use_async_envs: Whether each world gets a process.
        cfg: LeRobot's configuration; its `task`, if it has one, is the suite.
        suite: The name of a suite, or an episode file.
        options: Further options of `StepwiseExam`, such as `episodes=10`.
    """
    if isinstance(n_envs, bool) or not isinstance(n_envs, int) or n_envs < 1:
        raise UserError(f"n_envs: expected a number from 1, found {n_envs!r:.40}")
    suite = getattr(cfg, "task", None) or suite
    makers = [partial(LeRobotEnv, suite, **options)] * n_envs
    if use_async_envs and n_envs > 1:
        vector: Any = gymnasium.vector.AsyncVectorEnv(makers, context="spawn")  # OpenGL survives no fork
    else:
        vector = gymnasium.vector.SyncVectorEnv(makers)
    return {suite: {0: vector}}


def _action_space(stepwise: StepwiseExam) -> spaces.Box:
    limits = stepwise.info.details.get("robot_config", {}).get("joint_limits")
    if limits and stepwise.action_kind == "joint_position":
        low, high = np.array(list(limits.values()), np.float32).T
        return spaces.Box(low, high)
    kinds = stepwise.exam.dialects.action_kinds
    if stepwise.action_kind is None:
        raise UserError(f"the exam {stepwise.exam.name} has no actions for LeRobot, only {', '.join(kinds)}")
    return spaces.Box(-np.inf, np.inf, (kinds[stepwise.action_kind][-1],), np.float32)


def _space(value: Any) -> spaces.Space[Any]:
    if isinstance(value, dict):
        return spaces.Dict({key: _space(inner) for key, inner in value.items()})
    if value.dtype == np.uint8:
        return spaces.Box(0, 255, value.shape, np.uint8)
    return spaces.Box(-np.inf, np.inf, value.shape, value.dtype.type)
