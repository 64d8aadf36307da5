"""What an exam leaves behind: one record per episode, and a summary of all."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import UNSET, UnsetType

from proctor.core.documents import read_json, write_atomically
from proctor.core.errors import InvalidFile
from proctor.core.types import Vector3
from proctor.exams.distance_labels import GoalDistance, distance_label
from proctor.exams.record_check import record_problem

MANIFEST, JOURNAL, RESULTS = "manifest.json", "episodes.jsonl", "results.json"
"""In a run directory: what defines the run, one line per finished episode, and all of it at the end."""


Side: TypeAlias = Literal["agent", "evaluator", "unavailable", "unknown"]
"""Whose fault it is that an episode has no end. `unavailable`: nobody's, the agent was not there when it
began. `unknown`: its process was killed from outside."""


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """Why an episode could not be finished, and by whose fault."""

    side: Side
    """Only faults of the agent count against it. Episodes with any other are not scored, and done again
    when the run is resumed."""
    kind: str
    message: str
    traceback: str = ""


class Timing(msgspec.Struct, frozen=True, kw_only=True):
    """Where the wall-clock time of an episode went, in seconds. Differs from run to run."""

    env_s: float
    policy_s: float
    evaluator_s: float
    """All but env and policy."""
    act_s: list[float] = []
    """How long the agent took for each action; over a network, its way there and back included."""


class PickPlaceRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What a pick-and-place episode leaves behind beyond its numbers; lists begin before the first step."""

    object_path: list[tuple[float, float, float]]
    """Where the target object was, in the world."""
    base_path: list[tuple[float, float, float]]
    """x, y and heading of the robot's base, in the world."""
    gripper: list[float]
    """How far one fingertip was from closed, metres."""
    phases: list[Literal["reach", "grasp", "lift", "place"]]
    held: list[bool]
    """Whether both fingers had hold of the object."""
    stages: dict[str, int | None]
    """The step, counted from 1, in which `reached`, `grasped`, `lifted`, `placed`, `released` first held."""
    target: tuple[float, float, float] | None
    """Where the object should go."""


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
    final_distance_to_goal: float
    """3D Euclidean, in metres."""
    steps: int
    collision_count: int | None
    """Null where nobody knows, as in scored predictions."""
    trajectory: list[Vector3]
    """Where the robot was at the start and after each step, in the world frame."""
    headings: list[float] = []
    """Which way it looked there, as a yaw in radians; empty in runs of versions that did not keep it."""
    collision_steps: list[int] = []
    """The steps, counted from 1, in which it bumped into something; empty there as well."""
    actions: list[Any]
    metrics: dict[str, float]
    """By name; a metric that does not apply to the episode is missing."""
    distance: Literal["geodesic", "euclidean"]
    """By which distance success, SPL, navigation error and oracle success were judged."""
    shortest_path: Literal["dataset"] | UnsetType = UNSET
    """Set where there is no map and SPL compares with the geodesic distance that the dataset stores."""
    seed: int
    pick_place: PickPlaceRecord | UnsetType = UNSET
    """Only of pick-and-place, where `trajectory` is the path of the hand, `headings` are of the base and
    `final_distance_to_goal` is the object's."""
    timing: Timing | UnsetType = UNSET
    """In the journal only: `results.json` holds nothing that differs between two equal runs."""

    @property
    def task(self) -> str:
        """The task it was an episode of."""
        return "vln" if self.pick_place is UNSET else "pick_and_place"

    @property
    def is_scored(self) -> bool:
        """Whether it counts: it came to its end, or broke off by the agent's own fault."""
        return self.error is None or self.error.side == "agent"

    @property
    def goal_distance(self) -> GoalDistance:
        """How far from the goal it ended: the navigation error, or else the straight line."""
        straight_m = self.final_distance_to_goal
        error_m = self.metrics.get("navigation_error", straight_m)
        # Where the map shows no path from the last position, the navigation error is the straight line.
        is_straight = error_m == straight_m and not self.success
        return GoalDistance(error_m, distance_label("euclidean" if is_straight else self.distance))

    @property
    def is_unavailable(self) -> bool:
        """Whether the agent was not there when it began."""
        return self.error is not None and self.error.side == "unavailable"

    @property
    def is_evaluator_fault(self) -> bool:
        """Whether the evaluator, not the agent, is to blame for the missing score."""
        return self.error is not None and self.error.side == "evaluator"


def read_journal(path: Path) -> dict[str, EpisodeResult]:
    """Return the finished episodes of a journal by id. The last record of an episode wins.

    What follows the last line break is the torn line of a run that was killed, and is nothing.

    Raises:
        InvalidFile: A line is not a record, or holds values that no exam could have written.
    """
    *lines, _torn = path.read_bytes().split(b"\n")
    finished: dict[str, EpisodeResult] = {}
    for number, line in enumerate(lines, 1):
        try:
            result = msgspec.json.decode(line, type=EpisodeResult)
        except msgspec.MsgspecError as error:
            raise InvalidFile(path, f"not an episode record: {error}", place=f"line {number}") from None
        check_record(result, path, place=f"line {number}")
        finished[result.episode_id] = result
    return finished


def check_record(result: EpisodeResult, path: Path, *, place: str) -> None:
    """Refuse a record that no exam could have written.

    Raises:
        InvalidFile: It is one; the message names the episode and the field.
    """
    problem = record_problem(result)
    if problem is not None:
        field, text = problem
        raise InvalidFile(path, f"episode '{result.episode_id:.80}', {field}: {text}", place=place)


class _Identity(msgspec.Struct):
    """What readers take from a manifest's identity. Earlier versions did not write all of it."""

    proctor: str = ""
    dataset: str = ""
    dataset_sha256: str = ""
    scenes_sha256: str = ""
    episode_ids_sha256: str = ""
    episodes: int = 0
    name: str = ""
    policy: str = ""
    policy_sha256: str = ""
    policy_options: dict[str, Any] = {}
    privileged: bool = False
    env: str = ""
    env_options: dict[str, Any] = {}
    task: str = ""
    seed: int = 0
    success_threshold_m: float = 0.0


class _Source(msgspec.Struct):
    dataset: str | None = None
    scenes: str | None = None


class _Manifest(msgspec.Struct):
    identity: _Identity
    source: _Source | None = None
    packages: dict[str, Any] = {}
    notes: list[str] = []


def read_manifest(path: Path) -> dict[str, Any]:
    """Return the manifest of a run, whose entries have the types that readers rely on.

    Raises:
        InvalidFile: It is missing, or not a manifest.
    """
    manifest: dict[str, Any] = read_json(path)
    try:
        msgspec.convert(manifest, _Manifest)
    except msgspec.ValidationError as error:
        raise InvalidFile(path, f"not the manifest of a run: {error}") from None
    return manifest


def manifest_notes(manifest: dict[str, Any]) -> list[str]:
    """Return what a manifest says that a reader must know before trusting the numbers."""
    notes: list[str] = manifest.get("notes", [])
    return notes


class Interval(msgspec.Struct, frozen=True):
    """A mean with its 95 % interval and the number of episodes behind it."""

    mean: float
    low: float
    high: float
    n: int


class Bounds(msgspec.Struct, frozen=True):
    """The success rate if all unscored episodes had been failures, and if all had been successes."""

    low: float
    high: float


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """A run in numbers. Rates and averages leave out episodes that are not scored."""

    total_episodes: int
    success_count: int
    success_rate: float
    success_rate_bounds: Bounds
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

    @property
    def unscored(self) -> dict[str, int]:
        """Episodes that do not count, by side; empty if all count."""
        return {side: count for side, count in self.error_counts.items() if side != "agent" and count}


class Results(msgspec.Struct, frozen=True):
    """A finished run. The summary's main numbers can be read off directly."""

    summary: Summary
    episodes: list[EpisodeResult]

    @property
    def task(self) -> str:
        """The task of all of its episodes."""
        return self.episodes[0].task if self.episodes else "vln"

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

    def save(self, path: Path) -> None:
        """Write `{"summary": ..., "episodes": [...]}`, the same bytes for the same run."""
        path.parent.mkdir(parents=True, exist_ok=True)
        untimed = [msgspec.structs.replace(episode, timing=UNSET) for episode in self.episodes]
        encoded = msgspec.json.encode(Results(self.summary, untimed))
        write_atomically(path, msgspec.json.format(encoded, indent=1) + b"\n")
