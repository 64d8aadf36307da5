"""The contracts: what an environment, a policy and a metric must do. Nothing else is required of them."""

from __future__ import annotations

import abc
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Protocol

from proctor.core.errors import SimulationError
from proctor.core.types import CameraFacts, EpisodeInfo, Info, Observation, Outcome, Usage, Vector3

TRUTH = "truth"
"""Key under which a privileged policy finds the environment's info in its observation."""


class Env(abc.ABC):
    """A world with a robot in it, in Habitat's style.

    `step` returns `(observation, reward, done, info)`; the reward is 0.0. `info` carries ground truth, which
    the exam's `state` reads: where a robot drives, `position` (with .x .y .z), `yaw`, `distance_to_goal` (3D
    Euclidean, metres), `collision` (in this step), `collision_count` (in this episode), `step` (0 at reset)
    and `trajectory`.
    """

    tasks: ClassVar[tuple[str, ...]] = ()
    """Names of the exams that can be taken here; empty if it can be any, or if the exam says so itself."""

    needs_scene: ClassVar[bool] = False
    """Whether an episode without a scene file makes no sense here."""

    success_threshold_m: float | None = None
    """How near to the goal a STOP counts, where the env was told so and the episode does not say it."""

    max_open_scenes: int = 1
    """How many scenes stay built between episodes, where building one takes long."""

    @abc.abstractmethod
    def reset(self, episode: Any) -> Observation:
        """Put the world into the episode's first state and return the first observation."""

    @abc.abstractmethod
    def step(self, action: Any) -> tuple[Observation, float, bool, Info]:
        """Do one action. After `done` the only call allowed is `reset` or `close`."""

    @abc.abstractmethod
    def close(self) -> None:
        """Release everything. May be called twice."""

    @classmethod
    def example_observation(cls, episode: Any, options: Mapping[str, Any]) -> Observation | None:
        """Return an observation with the shapes that an env with these options shows, all zeros.

        Optional: it builds no world, so that a process can be forked after it. None: only `reset` can tell.
        Raises UserError for an option that makes no sense.
        """
        return None

    @classmethod
    def identity(cls, options: Mapping[str, Any]) -> dict[str, Any]:
        """Return what else makes another run, in plain values: what files say that these options name."""
        return {}

    def check(self, episodes: Sequence[Any]) -> Sequence[str] | None:
        """Raise a UserError if one of these episodes cannot be done here, before the first one begins.

        Return what people should know of them before they trust the numbers, if anything.
        """
        return None

    def wait(self, duration_s: float, *, keep: bool) -> None:
        """Let simulated time pass while the agent thinks. The robot keeps its last command, or stands.

        Optional: runs that charge the agent's thinking time need it, and `time_s`. The next `step` begins
        where the world has come to, and its info tells of collisions that happened meanwhile.
        """
        raise SimulationError(f"{type(self).__name__} has no wait(), which runs with --charge-latency need")

    def time_s(self) -> float:
        """Return the simulated seconds since `reset`. An env that can `wait` has it."""
        raise SimulationError(f"{type(self).__name__} has no time_s(), which runs with --charge-latency need")

    def info(self) -> Info:
        """Return the ground truth of the present state, also right after `reset`.

        Privileged policies, adapters and pick-and-place need it.
        """
        raise SimulationError(
            f"{type(self).__name__} has no info(), which privileged policies and pick-and-place need"
        )

    def cameras(self) -> dict[str, Any]:
        """Return the calibration of each camera by the name of its pictures, in plain values.

        `width`, `height`, `fx`, `fy`, `cx` and `cy` in pixels; `frame`, the part of the robot that it is
        mounted on; `position` (metres) and `rotation` (a quaternion wxyz) of its optical frame there, which
        has z ahead, x to the right and y down.
        """
        raise SimulationError(f"{type(self).__name__} has no cameras(), which tells their calibration")

    def camera_facts(self) -> CameraFacts | None:
        """Return what `cameras` says of the camera behind `rgb`; None if the env does not tell."""
        if type(self).cameras is Env.cameras or "rgb" not in (known := self.cameras()):
            return None
        try:
            frame, (_, _, z_m), (w, x, y, z) = (
                known["rgb"][key] for key in ("frame", "position", "rotation")
            )
            fov_deg = math.degrees(2 * math.atan(known["rgb"]["height"] / 2 / known["rgb"]["fy"]))
        except (LookupError, TypeError, ValueError, ZeroDivisionError) as error:
            problem = f"{type(self).__name__}.cameras() returned no calibration for 'rgb': {error!r}"
            raise SimulationError(problem) from None
        pitch_rad = math.pi / 2 - 2 * math.atan2(math.hypot(x, y), math.hypot(w, z))  # of the optical axis
        is_on_base = "base" in frame or "robot" in frame
        return CameraFacts(fov_deg, math.degrees(pitch_rad), z_m if is_on_base else None)


class Policy(abc.ABC):
    """An agent. It sees observations and is told what to do, never the ground truth."""

    tasks: ClassVar[tuple[str, ...]] = ()
    """Names of the exams that it can take; empty if it can be any, or if the exam says so itself."""

    privileged: ClassVar[bool] = False
    """Oracles set this: they get the episode in `reset` and the ground truth in every observation."""

    uses_chat_task: ClassVar[bool] = False
    """Whether its agent gets the tools and texts of `Exam.chat`, and so needs what they are made from."""

    @classmethod
    def result_notes(cls, options: Mapping[str, Any]) -> list[str]:
        """Return what a reader of the results must know about how an agent with these options took part."""
        return []

    def reset(self, episode_info: EpisodeInfo) -> None:  # noqa: B027  (a policy without memory needs none)
        """Forget the last episode and read the new instruction."""

    @abc.abstractmethod
    def act(self, observation: Observation) -> Any:
        """Choose the next action."""

    def episode_end(self, outcome: Outcome) -> None:  # noqa: B027  (most policies do not care)
        """Hear how the episode went that the last `reset` began. Nothing done here changes its score."""

    def usage(self) -> Usage | None:
        """Return what was used since the last call; None if the policy does not count it.

        Called after each `act`, and once more after an error.
        """
        return None

    def transcript(self) -> bytes:
        """Return what was exchanged with the agent in this episode, as a gzip file of JSON lines.

        Called once at the end of each episode, before `episode_end`. Empty if nothing is kept. The lines are
        described in `docs/cost-and-transcripts.md`.
        """
        return b""

    def check(self) -> None:  # noqa: B027  (a policy that could be built can mostly act)
        """Raise a UserError if the agent behind this policy is not there; called before a run begins."""

    def close(self) -> None:  # noqa: B027  (most policies hold nothing)
        """Release everything. May be called twice."""


class DrivingEpisode(Protocol):
    """What worlds with a robot on wheels, and distances in them, need to know of an episode of any exam."""

    @property
    def episode_id(self) -> str:
        """Its name, for messages."""

    @property
    def scene_id(self) -> str:
        """The name of its scene; worlds with places of their own may know it by that."""

    @property
    def scene_config_path(self) -> str | None:
        """The file of its scene."""

    @property
    def start_position(self) -> Vector3:
        """Where the robot starts, in the world."""

    @property
    def start_rotation(self) -> Vector3:
        """Euler angles at the start in degrees, applied Z·Y·X."""

    @property
    def start_yaw(self) -> float:
        """The heading at the start, in radians."""

    @property
    def goal(self) -> Vector3:
        """Where it is to end, in the world."""

    @property
    def step_limit(self) -> int:
        """How many actions the agent has."""


class MetricTask(Protocol):
    """What a metric may ask of the task it measures."""

    def distance_m(self, a: Vector3, b: Vector3) -> float:
        """Return the distance by which the task is scored: geodesic if there is a map, infinite if no way."""

    def shortest_path_m(self, episode: Any) -> float:
        """Return the length of the shortest path from the episode's start to its goal, infinite if none."""

    def success_threshold_m(self, episode: Any) -> float:
        """Return how near to the goal a success has to end."""


class StepMetric(abc.ABC):
    """One number about one episode, computed step by step, as the design documents write it.

    The state given to `update` is the environment's info plus `action`, what the agent did. A metric
    that does not apply to an episode (no reference path, say) returns NaN and is left out there.
    """

    is_rate: ClassVar[bool] = False
    """Whether its values are 0 or 1, so that its mean is a rate."""

    @abc.abstractmethod
    def reset(self, episode: Any, task: MetricTask) -> None:
        """Begin an episode."""

    @abc.abstractmethod
    def update(self, state: Info) -> None:
        """Take in the state after a step."""

    @abc.abstractmethod
    def get_metric(self) -> float:
        """Return the value as of the last update."""


Metric = StepMetric
"""The name in the design documents."""

DistanceFn = Callable[[Vector3, Vector3], float]
