"""An exam's world as a Gymnasium env: what navigation and pick-and-place have in common.

The world is built at the first `reset`, so that `AsyncVectorEnv` can fork its workers: the env that it makes
in the parent process, to ask for the spaces, opens no OpenGL, which would not survive the fork.
"""

from __future__ import annotations

import abc
import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from proctor.core.errors import MissingDependency, UnknownName, UserError, install_command
from proctor.core.interfaces import Env
from proctor.core.registry import build, check_options, dataset_path, load
from proctor.core.types import Info, Observation, Pose2, Scan
from proctor.exams.datasets import episodes_of, load_dataset
from proctor.exams.names import AnyExam

try:
    import gymnasium
    from gymnasium import spaces
    from gymnasium.vector.utils import read_from_shared_memory
except ModuleNotFoundError as error:
    raise MissingDependency("Gymnasium", install_command("gym")) from error

__all__ = ["ExamGym", "Reward", "spaces"]

Reward = Literal["none", "progress", "success"]
LARGEST_COORDINATE_M = 1e4


class InstructionText(spaces.Text):
    """Texts that `AsyncVectorEnv` reads anew in every step; a `Text` in shared memory it reads only once."""


class _SharedTexts(Sequence[str]):
    """The texts that workers have written into shared memory, as they are now."""

    def __init__(self, read: Callable[[], tuple[str, ...]]) -> None:
        self._read = read

    def __getitem__(self, index: Any) -> Any:
        return self._read()[index]

    def __len__(self) -> int:
        return len(self._read())

    def __deepcopy__(self, memo: Any) -> tuple[str, ...]:
        return self._read()


@read_from_shared_memory.register(InstructionText)
def _read_texts(space: InstructionText, shared_memory: Any, n: int = 1) -> _SharedTexts:
    read: Callable[..., Any] = read_from_shared_memory.dispatch(spaces.Text)
    return _SharedTexts(lambda: read(space, shared_memory, n))


class ExamGym(gymnasium.Env[Observation, Any], abc.ABC):
    """A world with the episodes that `reset` draws from.

    Observations hold the world's arrays, its numbers as arrays without dimensions, and the `instruction`. A
    `Scan` becomes its ranges, with `range_max` for beams without a return; an `odom` pose becomes x, y and
    yaw. Anything else is left out. `info` is ground truth, so an agent that is to be examined must not look
    at it. With the `render_mode` `rgb_array`, `render` returns the last picture.

    Args:
        env: The world, or a function that builds it when the first episode begins.
        episodes: What is asked.
        render_mode: None or `rgb_array`.
        reward: `none` is always 0.0; `progress` is by how many metres the agent has come nearer to its goal
            in this step; `success` is 1.0 for the step that solves the task.
        example: An observation with the shapes that the world's have; asked of the world if missing.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 4}  # noqa: RUF012  (Gymnasium's own declaration)
    env_id: ClassVar[str]
    """Its name in Gymnasium."""
    exam_type: ClassVar[type[AnyExam]]
    """The kind of task, with its usual options."""
    picture: ClassVar[str] = "rgb"
    """The entry of an observation that `render` returns."""

    def __init__(
        self,
        env: Env | Callable[[], Env],
        episodes: Sequence[Any],
        *,
        render_mode: str | None = None,
        reward: Reward = "none",
        example: Observation | None = None,
    ) -> None:
        if not episodes:
            raise UserError("expected at least one episode, found none")
        if reward not in ("none", "progress", "success"):
            raise UserError(f"reward: expected none, progress or success, found {reward!r:.40}")
        self.exam = self.exam_type()
        self.action_space = self.new_action_space()
        self._env = env if isinstance(env, Env) else None
        self._make_env: Callable[[], Env] = (lambda: env) if isinstance(env, Env) else env
        self.render_mode = render_mode
        self._reward = reward
        self._episodes = {episode.episode_id: episode for episode in episodes}
        self._episode = episodes[0]
        self._left_m = 0.0
        self._observation = self.env.reset(episodes[0]) if example is None else example
        texts = [self.exam.instruction(episode) for episode in episodes]
        # Sorted: texts go between processes as numbers of their letters, and Gymnasium 1.0 sorts no sets.
        letters = "".join(sorted({" ", *"".join(texts)}))
        instruction = InstructionText(max(1, *map(len, texts)), min_length=0, charset=letters)
        boxes = {key: _box(value) for key, value in self._observation.items() if key != "instruction"}
        self._boxes = {key: box for key, box in boxes.items() if box is not None}
        self.observation_space = spaces.Dict(self._boxes | {"instruction": instruction})

    @classmethod
    def make(
        cls,
        dataset: str | Path | Sequence[Any] = "",
        env: str = "",
        render_mode: str | None = None,
        reward: Reward = "none",
        **env_options: Any,
    ) -> Self:
        """Make the environment behind `env_id`.

        `dataset` is a suite's name, by default the exam's example, an episode file, or episodes; `env` a
        registered environment, by default the exam's first, or `module:Class`, whose constructor gets
        `env_options`. Wrong options are refused now, and not when the first episode begins.
        """
        exam, episodes = cls.exam_type, dataset
        if isinstance(episodes, str | Path):
            loaded = load_dataset(dataset_path(episodes or exam.example_suite))
            episodes = episodes_of(loaded, exam.episode)
        cls.check_episodes(episodes)
        name = env or exam.envs[0]
        check_options("env", name, env_options)
        class_: type[Env] = load("env", name)
        is_its_own = "example_observation" in vars(class_)  # what it inherits need not be what it shows
        example = class_.example_observation(episodes[0], env_options) if is_its_own and episodes else None
        world = partial(build, "env", name, env_options)
        return cls(world, episodes, render_mode=render_mode, reward=reward, example=example)

    @classmethod
    def register(cls) -> None:
        """Make `gymnasium.make(env_id)` work."""
        if cls.env_id not in gymnasium.registry:
            gymnasium.register(cls.env_id, entry_point=cls.make)

    @classmethod
    def check_episodes(cls, episodes: Sequence[Any]) -> None:
        """Refuse episodes that one env cannot have, with a UserError."""

    @abc.abstractmethod
    def new_action_space(self) -> spaces.Space[Any]:
        """Return what actions there are."""

    @abc.abstractmethod
    def has_ended(self, action: Any, info: Info, *, is_done: bool) -> tuple[bool, bool]:
        """Tell whether a step has ended the episode by itself, and whether it was cut off by its limit."""

    @abc.abstractmethod
    def is_solved(self, action: Any, info: Info) -> bool:
        """Tell whether a step has solved the task."""

    @abc.abstractmethod
    def left_m(self, episode: Any, info: Info) -> float:
        """Return how far the agent is from its goal; infinite where nobody knows."""

    @property
    def env(self) -> Env:
        """The world, built when it is first used."""
        if self._env is None:
            self._env = self._make_env()
        return self._env

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
        shown, info = self._show(self.env.reset(self._episode)), self.env.info()
        if self._reward == "progress":
            self._left_m = self.left_m(self._episode, info)
        return shown, info

    def step(self, action: Any) -> tuple[Observation, float, bool, bool, Info]:
        """Do one action."""
        observation, _, is_done, info = self.env.step(self.parsed(action))
        terminated, truncated = self.has_ended(action, info, is_done=is_done)
        return self._show(observation), self._reward_of(action, info), terminated, truncated, info

    def parsed(self, action: Any) -> Any:
        """Return an action of the action space as the world takes it."""
        return action

    def render(self) -> NDArray[np.uint8] | None:
        """Return the last picture."""
        return self._observation[self.picture].copy() if self.render_mode == "rgb_array" else None

    def close(self) -> None:
        """Close the world."""
        if self._env is not None:
            self._env.close()

    def _reward_of(self, action: Any, info: Info) -> float:
        if self._reward == "success":
            return float(self.is_solved(action, info))
        if self._reward == "none":
            return 0.0
        before_m, now_m = self._left_m, self.left_m(self._episode, info)
        if not math.isfinite(now_m):  # as far as before, until it is known again
            return 0.0
        self._left_m = now_m
        return before_m - now_m if math.isfinite(before_m) else 0.0

    def _show(self, observation: Observation) -> Observation:
        self._observation = observation
        shown = {key: _array(observation[key]).astype(box.dtype) for key, box in self._boxes.items()}
        return shown | {"instruction": self.exam.instruction(self._episode)}


def _box(value: Any) -> spaces.Box | None:
    """Return the space of an entry of an observation; None if it is not made of numbers."""
    if isinstance(value, Scan):
        return spaces.Box(0.0, value.range_max, value.ranges.shape, value.ranges.dtype.type)
    if isinstance(value, Pose2):
        high = np.array([LARGEST_COORDINATE_M, LARGEST_COORDINATE_M, np.pi])
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
