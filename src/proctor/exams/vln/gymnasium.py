"""Any VLN environment as a Gymnasium one, registered as `proctor/VLN-v0`.

`gymnasium.make("proctor.envs.gymnasium:proctor/VLN-v0", dataset="houses-v1")` needs no other import.
For `AsyncVectorEnv` give `context="spawn"`: OpenGL does not survive a fork.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proctor.core.errors import MissingDependency, UnknownName, UserError, install_command
from proctor.core.interfaces import Env
from proctor.core.registry import build, names, suite_path
from proctor.core.types import Action, Info, Observation, Pose2, Scan
from proctor.exams.datasets import episodes_of, load_dataset
from proctor.exams.vln.episode import LARGEST_COORDINATE, Episode

try:
    import gymnasium
    from gymnasium import spaces
except ModuleNotFoundError as error:
    raise MissingDependency("Gymnasium", install_command("gym")) from error

ENV_ID = "proctor/VLN-v0"


class ProctorGym(gymnasium.Env[Observation, Any]):
    """A VLN environment with the episodes that `reset` draws from.

    Observations hold the environment's arrays, its numbers as arrays without dimensions, and the
    `instruction`. A `Scan` becomes its ranges, with `range_max` for beams without a return; an `odom` pose
    becomes x, y and yaw. Anything else is left out. STOP terminates, as does a collision if the environment
    ends on it; the step limit truncates. `info` is ground truth, so an agent that is to be examined must not
    look at it. With the `render_mode` `rgb_array`, `render` returns the last picture.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 4}  # noqa: RUF012  (Gymnasium's own declaration)

    def __init__(self, env: Env, episodes: Sequence[Episode], *, render_mode: str | None = None) -> None:
        if not episodes:
            raise UserError("expected at least one episode, found none")
        self.env = env
        self.render_mode = render_mode
        self._episodes = {episode.episode_id: episode for episode in episodes}
        self._observation = env.reset(episodes[0])
        self._episode = episodes[0]
        texts = [episode.instruction for episode in episodes]
        instruction = spaces.Text(
            max(1, *map(len, texts)), min_length=0, charset=frozenset("".join(texts)) | {" "}
        )
        boxes = {key: _box(value) for key, value in self._observation.items()}
        self._boxes = {key: box for key, box in boxes.items() if box is not None}
        self.observation_space = spaces.Dict(self._boxes | {"instruction": instruction})
        self.action_space = spaces.Discrete(len(Action))

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[Observation, Info]:
        """Begin `options["episode"]`, the episode of `options["episode_id"]`, or one drawn by the seed."""
        super().reset(seed=seed)
        options = options or {}
        if set(options) - {"episode", "episode_id"}:
            raise UserError(
                f"reset options: expected episode or episode_id, found {', '.join(sorted(options))}"
            )
        if "episode" in options:
            self._episode = options["episode"]
        elif "episode_id" in options:
            if options["episode_id"] not in self._episodes:
                raise UnknownName("episode", str(options["episode_id"]), self._episodes)
            self._episode = self._episodes[options["episode_id"]]
        else:
            index = int(self.np_random.integers(len(self._episodes)))
            self._episode = list(self._episodes.values())[index]
        return self._show(self.env.reset(self._episode)), self.env.info()

    def step(self, action: Any) -> tuple[Observation, float, bool, bool, Info]:
        """Do one action."""
        observation, reward, done, info = self.env.step(action)
        truncated = done and int(action) != Action.STOP and info["step"] >= self._episode.step_limit
        return self._show(observation), reward, done and not truncated, truncated, info

    def render(self) -> NDArray[np.uint8] | None:
        """Return the last picture."""
        return self._observation["rgb"].copy() if self.render_mode == "rgb_array" else None

    def close(self) -> None:
        """Close the environment."""
        self.env.close()

    def _show(self, observation: Observation) -> Observation:
        self._observation = observation
        shown = {key: _array(observation[key]).astype(box.dtype) for key, box in self._boxes.items()}
        return shown | {"instruction": self._episode.instruction}


def make_vln(
    dataset: str | Path | Sequence[Episode] = "houses-v1",
    env: str = "embedded",
    render_mode: str | None = None,
    **env_options: Any,
) -> ProctorGym:
    """Make the environment behind `proctor/VLN-v0`.

    `dataset` is a suite's name, an episode file, or episodes; `env` a registered environment or
    `module:Class`, whose constructor gets `env_options`.
    """
    if isinstance(dataset, str | Path):
        path = suite_path(str(dataset)) if str(dataset) in names("suite") else Path(dataset)
        dataset = episodes_of(load_dataset(path), Episode)
    return ProctorGym(build("env", env, env_options), dataset, render_mode=render_mode)


def register() -> None:
    """Make `gymnasium.make("proctor/VLN-v0")` work. Importing this module does so."""
    if ENV_ID not in gymnasium.registry:
        gymnasium.register(ENV_ID, entry_point=make_vln)


def _box(value: Any) -> spaces.Box | None:
    """Return the space of an entry of an observation; None if it is not made of numbers."""
    if isinstance(value, Scan):
        return spaces.Box(0.0, value.range_max, value.ranges.shape, value.ranges.dtype.type)
    if isinstance(value, Pose2):
        high = np.array([LARGEST_COORDINATE, LARGEST_COORDINATE, np.pi])
        return spaces.Box(-high, high, dtype=np.float64)
    array = _array(value)
    if array.dtype.kind == "b":
        return spaces.Box(0, 1, array.shape, np.uint8)
    if array.dtype.kind in "iu":
        limits = np.iinfo(array.dtype)
        return spaces.Box(limits.min, limits.max, array.shape, array.dtype.type)
    # Nothing is known of the limits of other numbers, and a sensor may well say infinity.
    return spaces.Box(-np.inf, np.inf, array.shape, array.dtype.type) if array.dtype.kind == "f" else None


def _array(value: Any) -> NDArray[Any]:
    """Return an entry of an observation as Gymnasium sees it."""
    if isinstance(value, Scan):
        return np.nan_to_num(value.ranges, nan=value.range_max, posinf=value.range_max)
    if isinstance(value, Pose2):
        return np.array([value.x, value.y, value.yaw])
    is_number = isinstance(value, int | float | np.generic | np.ndarray)
    return np.asarray(value if is_number else None)


register()
