"""The exam: its episodes, its options, what agents are told, and how they are scored."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import Meta

from proctor.core.errors import InvalidFile
from proctor.core.geometry import distance as straight_m
from proctor.core.geometry import pose_into
from proctor.core.registry import suite_path
from proctor.core.types import Action, EpisodeInfo, Observation, Pose2, Vector3
from proctor.exams.driving import DrivingExam, DrivingTrace
from proctor.exams.exam import ExamOptions, Metric
from proctor.exams.findings import EpisodesToCheck, Finding, found
from proctor.exams.path_distance import PathDistance, is_reachable
from proctor.exams.vln.exam import VlnExam


class PointGoalEpisode(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One episode, as its file holds it."""

    episode_id: str
    scene_id: str
    start_position: Vector3
    start_rotation: Vector3
    goal: Vector3
    step_limit: int = 500
    language: str = "en"
    split: str | None = None
    scene_config_path: str | None = None

    @property
    def start_yaw(self) -> float:
        """The heading at the start, in radians."""
        return math.radians(self.start_rotation.z)

    def goal_from_start(self) -> Pose2:
        """Return the goal as seen from the start: x ahead, y to the left, metres."""
        start = Pose2(self.start_position.x, self.start_position.y, self.start_yaw)
        return pose_into(start, Pose2(self.goal.x, self.goal.y, 0.0))


class PointGoalOptions(ExamOptions, frozen=True, kw_only=True):
    """The flags that the exam adds to `proctor run`."""

    goal_radius_m: Annotated[
        float,
        Meta(gt=0, description="how near to the goal a STOP counts (default: 0.5)", extra={"metavar": "M"}),
    ] = 0.5
    odometry: Annotated[bool, Meta(description="show the agent its pose in the frame of its start")] = False


def distance_to_goal(episode: PointGoalEpisode, trace: DrivingTrace, distance: PathDistance) -> float:
    """Return how far it is from the last position to the goal."""
    return distance(trace.states[-1].position, episode.goal)


def success(episode: PointGoalEpisode, trace: DrivingTrace, distance: PathDistance) -> float:
    """Return 1 if the last action was a STOP within the radius of the goal, else 0."""
    is_near = distance_to_goal(episode, trace, distance) <= distance.success_threshold_m
    return float(is_near and trace.actions[-1:] == [Action.STOP])


def spl(episode: PointGoalEpisode, trace: DrivingTrace, distance: PathDistance) -> float:
    """Return success, weighted by how much longer the driven path is than the shortest one."""
    driven_m = sum(straight_m(a.position, b.position) for a, b in pairwise(trace.states))
    longer_m = max(driven_m, distance.shortest_path_m)
    return success(episode, trace, distance) * (distance.shortest_path_m / longer_m if longer_m else 1.0)


METRICS = (
    Metric(
        "success", success, "SR", "Stopped there.", "%", 0, "up", is_rate=True, is_score=True, in_table=True
    ),
    Metric("spl", spl, "SPL", "Success weighted by path length.", better="up", is_score=True, in_table=True),
    Metric("distance_to_goal", distance_to_goal, "DTG", "Path left.", "m", better="down", in_table=True),
    *(metric for metric in VlnExam.metrics if metric.name in ("path_length", "steps", "collisions")),
)


class PointGoalExam(DrivingExam[PointGoalEpisode]):
    """Drive to a point that is given relative to the start, and stop there."""

    name = "point_goal"
    title = "point-goal navigation"
    definition = "point-goal v1"
    episode = PointGoalEpisode
    options_type = PointGoalOptions
    example_suite = "point-goal-v1"
    envs = ("embedded",)
    metrics: ClassVar[Sequence[Metric]] = METRICS
    baselines: ClassVar[Mapping[str, str]] = {
        "oracle": "proctor.exams.vln.oracle:OraclePolicy",
        "greedy": "pointgoal.greedy:GreedyPolicy",
    }

    @classmethod
    def locator(cls, file: Path, scenes: Path | None) -> Callable[[PointGoalEpisode], PointGoalEpisode]:
        """Find the scenes of the episodes in the folder `--scenes`, or else in the suite houses-v1."""
        folder = scenes or suite_path("houses-v1") / "scenes"

        def locate(episode: PointGoalEpisode) -> PointGoalEpisode:
            scene = folder / f"{episode.scene_id}.json"
            if not scene.is_file():
                raise InvalidFile(file, f"there is no scene {scene}", place="scene_id")
            return msgspec.structs.replace(episode, scene_config_path=str(scene))

        return locate

    def check(self, given: EpisodesToCheck[PointGoalEpisode]) -> Iterator[Finding]:
        """Refuse goals that the robot cannot drive to."""
        lost = [index for index, episode in given.episodes.items() if not is_reachable(episode)]
        return found("error", "unreachable", "no path leads from the start to the goal", lost)

    def instruction(self, episode: PointGoalEpisode) -> str:
        """Say the goal in words, for agents that read."""
        goal = episode.goal_from_start()
        return f"Go to the point {goal.x:.2f} m ahead and {goal.y:.2f} m to the left of your start, and stop."

    def brief(self, episode: PointGoalEpisode, observation: Observation) -> EpisodeInfo:
        """Tell every agent the goal in the frame of the start: metres and radians, x ahead, y to the left."""
        goal = episode.goal_from_start()
        polar = {"distance_m": math.hypot(goal.x, goal.y), "bearing_rad": math.atan2(goal.y, goal.x)}
        details = {"goal": {"x": goal.x, "y": goal.y, **polar}}
        return msgspec.structs.replace(super().brief(episode, observation), details=details)

    def distance(self, episode: PointGoalEpisode) -> PathDistance:
        """Measure around obstacles, on the map of the scene."""
        return PathDistance(episode, success_threshold_m=self.options.goal_radius_m)

    @classmethod
    def env_options(cls, options: Any, seed: int) -> dict[str, Any]:
        """Add the odometry to what the robot senses."""
        return {"sensors": ["rgb", "depth", "odom"]} if options.odometry else {}
