"""What an exam leaves behind: one record per episode, and a summary of all."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias

import msgspec
from msgspec import UNSET, UnsetType

from proctor.core.documents import write_atomically
from proctor.core.types import Sensor, Usage, Vector3

Side: TypeAlias = Literal["agent", "evaluator", "unavailable", "unknown"]
"""Whose fault it is that an episode has no end. `unavailable`: nobody's, the agent was not there when it
began. `unknown`: its process was killed from outside."""

LABELS = {
    "geodesic": "path distance",
    "euclidean": "straight-line distance",
    "mixed": "path distance where the scene has a map, else straight-line distance",
}
"""By the word that results use. The path is the shortest one around obstacles."""


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """Why an episode could not be finished, and by whose fault."""

    side: Side
    """Only faults of the agent count against it. Episodes with any other are not scored, and done again
    when the run is resumed."""
    kind: str
    message: str
    traceback: str = ""


class Timing(msgspec.Struct, frozen=True, kw_only=True):
    """Where the wall-clock time of an episode went, in seconds, and what it took. Differs from run to run.

    Of a process that was lost, all of the episode's time is the evaluator's, and what it used is not known.
    """

    env_s: float
    policy_s: float
    evaluator_s: float
    """All but env and policy."""
    act_s: list[float] = []
    """How long the agent took for each action; over a network, its way there and back included."""
    decision_s: list[float] | UnsetType = UNSET
    """Of these, the times of actions for which the agent decided anew, where its policy counts decisions."""
    began: Annotated[datetime, msgspec.Meta(tz=True)] | UnsetType = UNSET
    """By the clock of the host, for people. This and what follows is missing in runs of earlier versions."""
    host: str | UnsetType = UNSET
    cpu_s: float | UnsetType = UNSET
    """CPU time that its process used since its last episode, or since its start, with that of its children
    that have ended: user and system."""
    peak_mb: float | UnsetType = UNSET
    """The most memory that its process had held until then, in megabytes of 10^6 bytes."""

    @property
    def duration_s(self) -> float:
        """How long the episode took."""
        return self.env_s + self.policy_s + self.evaluator_s


class Thinking(msgspec.Struct, frozen=True, kw_only=True):
    """Simulated time of an episode in which the agent's thinking was charged."""

    charged_s: list[float]
    """How much passed before each action while the agent thought."""
    simulated_s: float
    """How long the whole episode took in the world."""


class Verdict(msgspec.Struct, frozen=True):
    """Why an episode ended as it did: the same words in results and reports."""

    kind: str
    """One word for the class of endings, such as `success`, `looped` or `agent_fault`."""
    step: int
    """Where it went wrong, as a number of steps done: the index into the trajectory."""
    sentence: str
    """For people."""


class Informed(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent was told and shown, read off the first briefing and the first observation."""

    sensors: dict[str, Sensor]
    """The arrays of an observation."""
    resolution: dict[str, tuple[int, int]]
    """Width and height of each picture."""
    entries: list[str]
    """All entries of an observation, also those that are not arrays."""
    details: list[str]
    """What the briefing says beyond the instruction and the limits."""
    calibration: bool
    odometry: bool
    pose: bool
    map: bool
    goal: bool
    """Whether it was given coordinates of the goal."""
    truth: bool = False
    """Whether it is privileged: it gets the episode and the ground truth, whatever else is withheld."""
    history: int = 0
    """How many earlier observations come with each one. What agents keep themselves does not count."""
    inform: tuple[str, ...] = ("default",)
    instructions: str = "original"
    pictures: str = "original"


class EpisodeResult(msgspec.Struct, frozen=True, kw_only=True):
    """One finished episode."""

    episode_id: str
    scene_id: str
    instruction: str
    status: Literal["success", "failure", "error"]
    success: bool
    failure_reason: str | None
    """`timeout`, `stopped_far`, `collision`, ..., or the kind of the fault; null for a success."""
    error: Fault | None
    final_distance_to_goal: float = 0.0
    """3D Euclidean, in metres."""
    steps: int
    collision_count: int | None = None
    """Null where nobody knows, as in scored predictions."""
    trajectory: list[Vector3] = []
    """Where the robot was at the start and after each step, in the world frame."""
    headings: list[float] = []
    """Which way it looked there, as a yaw in radians; empty in runs of versions that did not keep it."""
    collision_steps: list[int] = []
    """The steps, counted from 1, in which it bumped into something; empty there as well."""
    actions: list[Any]
    metrics: dict[str, float]
    """By name; a metric that does not apply to the episode is missing."""
    distance: Literal["geodesic", "euclidean"] = "euclidean"
    """By which distance success, SPL, navigation error and oracle success were judged."""
    shortest_path: Literal["dataset"] | UnsetType = UNSET
    """Set where there is no map and SPL compares with the geodesic distance that the dataset stores."""
    seed: int
    timing: Timing | UnsetType = UNSET
    """In the journal only: `results.json` holds nothing that differs between two equal runs."""
    verdict: Verdict | UnsetType = UNSET
    """Missing in runs of versions that did not keep it."""
    thinking: Thinking | UnsetType = UNSET
    """Missing where thinking is free."""
    delivered_instruction: str | UnsetType = UNSET
    """The text that the agent got, where it is not `instruction`."""
    informed: Informed | UnsetType = UNSET
    """In the journal only: the summary says it for the run."""
    usage: Usage | UnsetType = UNSET
    """What the agent used, also after the last action; missing where the policy does not count it."""

    @property
    def is_scored(self) -> bool:
        """Whether it counts: it came to its end, or broke off by the agent's own fault."""
        return self.error is None or self.error.side == "agent"

    @property
    def is_unavailable(self) -> bool:
        """Whether the agent was not there when it began."""
        return self.error is not None and self.error.side == "unavailable"

    @property
    def is_evaluator_fault(self) -> bool:
        """Whether the evaluator, not the agent, is to blame for the missing score."""
        return self.error is not None and self.error.side == "evaluator"


class Interval(msgspec.Struct, frozen=True):
    """A mean with its 95 % interval and the number of episodes behind it."""

    mean: float
    low: float
    high: float
    n: int


class SuccessBounds(msgspec.Struct, frozen=True):
    """The success rate if all unscored episodes had been failures, and if all had been successes."""

    low: float
    high: float


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """A run in numbers. Rates and averages leave out episodes that are not scored."""

    total_episodes: int
    success_count: int
    success_rate: float
    success_rate_bounds: SuccessBounds
    avg_distance_error: float
    """Mean Euclidean distance to the goal at the end, metres."""
    avg_steps: float
    avg_collision_count: float | None
    """Null where no episode's collisions are known, as in scored predictions."""
    timeout_count: int
    error_counts: dict[str, int]
    """Episodes with a fault, by side: agent and evaluator, and unavailable and unknown if there are any."""
    failure_reasons: dict[str, int]
    definition: str
    """Whose metric definitions were used."""
    distance: str
    """`geodesic`, `euclidean` or `mixed`."""
    shortest_path: Literal["dataset", "mixed"] | UnsetType = UNSET
    """Whether SPL compares with the geodesic distances that the dataset stores, for want of maps."""
    metrics: dict[str, Interval]
    task: str = ""
    """The name of the exam; empty in files of versions that did not write it."""
    informed: Informed | UnsetType = UNSET
    """What the agent was told and shown; missing in files of versions that did not write it."""
    usage: Usage | UnsetType = UNSET
    """What the agent used in the episodes that are scored; missing where the policy does not count it."""
    usage_unscored: Usage | UnsetType = UNSET
    """What it used in all other attempts, also in those whose episode was done again; missing if nothing."""

    @property
    def unscored(self) -> dict[str, int]:
        """Episodes that do not count, by side; empty if all count."""
        return {side: count for side, count in self.error_counts.items() if side != "agent" and count}


class Results(msgspec.Struct, frozen=True):
    """A finished run. The summary's main numbers can be read off directly."""

    summary: Summary
    episodes: list[EpisodeResult]

    @property
    def total_episodes(self) -> int:
        """How many episodes there were."""
        return self.summary.total_episodes

    @property
    def success_count(self) -> int:
        """How many of them succeeded."""
        return self.summary.success_count

    @property
    def success_rate(self) -> float:
        """Share of successes among the episodes that are scored."""
        return self.summary.success_rate

    @property
    def avg_distance_error(self) -> float:
        """Mean Euclidean distance to the goal at the end, metres."""
        return self.summary.avg_distance_error

    @property
    def avg_steps(self) -> float:
        """Mean number of actions."""
        return self.summary.avg_steps

    @property
    def avg_collision_count(self) -> float | None:
        """Mean number of collisions, None where they are not known."""
        return self.summary.avg_collision_count

    @property
    def timeout_count(self) -> int:
        """How many episodes ran out of steps."""
        return self.summary.timeout_count

    def save(self, path: Path | str) -> None:
        """Write `{"summary": ..., "episodes": [...]}`, the same bytes for the same run."""
        path = Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        encoded = msgspec.json.encode(Results(self.summary, list(map(as_in_results, self.episodes))))
        write_atomically(path, msgspec.json.format(encoded, indent=1) + b"\n")


def as_in_results(episode: EpisodeResult) -> EpisodeResult:
    """Return a record of the journal as `results.json` holds it."""
    return msgspec.structs.replace(episode, timing=UNSET, informed=UNSET)


class GoalDistance(NamedTuple):
    """How far from its goal an episode ended."""

    metres: float
    label: str
    """By which distance, as people say it."""

    def __str__(self) -> str:
        return f"{self.metres:.1f} m from the goal ({self.label})"


def distance_label(kind: str) -> str:
    """Return what people call a distance; a kind that is not known is its own name."""
    return LABELS.get(kind, f"{kind} distance")
