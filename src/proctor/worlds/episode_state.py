"""What every VLN environment keeps of an episode: steps, trajectory, collisions, and when it is over."""

from __future__ import annotations

from proctor.core.errors import SimulationError
from proctor.core.geometry import distance
from proctor.core.interfaces import DrivingEpisode
from proctor.core.types import Action, Info, Vector3


class EpisodeState:
    """The bookkeeping of one episode."""

    def __init__(self, episode: DrivingEpisode, position: Vector3, yaw: float) -> None:
        self.episode = episode
        self.position = position
        self.yaw = yaw
        self.step = 0
        self.done = False
        self.collision = False
        self.collision_count = 0
        self.has_bumped_since = False
        """Whether the robot bumped into something after the last step, while the agent was thinking."""
        self.trajectory = [position]

    def record(self, action: Action, position: Vector3, yaw: float, *, collision: bool) -> None:
        """Take in the state after an action."""
        self.position, self.yaw = position, yaw
        self.collision, self.has_bumped_since = collision or self.has_bumped_since, False
        self.step += 1
        self.collision_count += self.collision
        self.trajectory.append(position)
        self.done = action is Action.STOP or self.step >= self.episode.step_limit

    def info(self) -> Info:
        """Return the ground truth, as `core.interfaces.Env` describes it."""
        return {
            "position": self.position,
            "yaw": self.yaw,
            "distance_to_goal": distance(self.position, self.episode.goal),
            "collision": self.collision,
            "collision_count": self.collision_count,
            "step": self.step,
            "trajectory": self.trajectory.copy(),
        }


def running(state: EpisodeState | None) -> EpisodeState:
    """Return the state; raise a SimulationError if there was no reset or the episode is over."""
    if state is None:
        raise SimulationError("step() was called before reset()")
    if state.done:
        raise SimulationError(
            f"step() was called after episode '{state.episode.episode_id}' was done; call reset() first"
        )
    return state


def started(state: EpisodeState | None) -> EpisodeState:
    """Return the state; raise a SimulationError if there was no reset."""
    if state is None:
        raise SimulationError("info() was called before reset()")
    return state


def velocities_of_actions(linear_mps: float, angular_radps: float) -> dict[Action, tuple[float, float]]:
    """Return the linear and angular velocity of each action at these speeds."""
    velocities = ((0.0, 0.0), (linear_mps, 0.0), (0.0, angular_radps), (0.0, -angular_radps))
    return dict(zip(Action, velocities, strict=True))
