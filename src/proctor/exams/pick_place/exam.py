"""Pick-and-place as an exam: what the agent is told, legal actions, what is measured, how it is judged."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal, TypeAlias, get_args

import msgspec

from proctor.core.actions import ManipulationAction, action_as_dict, parse_manipulation_action
from proctor.core.errors import SimulationError
from proctor.core.geometry import distance
from proctor.core.interfaces import Metric
from proctor.core.registry import Kind, build, names
from proctor.core.types import EpisodeInfo, Info, Observation, Vector3
from proctor.exams.env_info import read_flag, read_number, read_point
from proctor.exams.pick_place.episode import PickAndPlaceEpisode
from proctor.exams.results import EpisodeResult, PickPlaceRecord
from proctor.exams.sensors import sensors_of
from proctor.robots.stretch import JOINT_NAMES, limits_as_dict
from proctor.runs.agent_ids import agent_id, draw_key
from proctor.runs.episode_log import EpisodeLog

METRICS: Kind = "manipulation_metric"
ACTIONS = ("joint_position", "ee_pose_target")
DIGITS = 6
"""Of what is only told, a micrometre and a microradian are enough."""
STAGES = ("reached", "grasped", "lifted", "placed")
"""Metrics that are 1 from the step on in which something was achieved."""
COORDINATES = frozenset(("position", "rotation", "initial_position", "initial_rotation"))
FILES = frozenset(("usd_path",))
"""Names of files on the evaluator's side."""

Phase: TypeAlias = Literal["reach", "grasp", "lift", "place"]
Point: TypeAlias = tuple[float, float, float]


class PickPlaceTask:
    """The pick-and-place exam.

    Args:
        hide_goal: Whether to keep the coordinates of things and places from the agent, which then has to
            find them with its cameras.
        agent_id_key: The secret by which the ids that agents are told are made; drawn if it is empty.
    """

    def __init__(self, *, hide_goal: bool = False, agent_id_key: str = "") -> None:
        self._agent_id_key = agent_id_key or draw_key()
        self._hide_goal = hide_goal
        self._metrics: dict[str, Metric] = {name: build(METRICS, name, {}) for name in names(METRICS)}
        self._track = _Track()

    def begin(self, episode: PickAndPlaceEpisode) -> None:
        """Start the metrics."""
        self._track = _Track()
        for metric in self._metrics.values():
            metric.reset(episode, self)

    def start(self, info: Callable[[], Info]) -> None:
        """Note where hand, base and object are before the first step."""
        self._track.add(info())

    def briefing(
        self, episode: PickAndPlaceEpisode, observation: Observation, *, seed: int, privileged: bool
    ) -> EpisodeInfo:
        """Return the instruction, robot, goal and objects.

        Privileged policies get the stored id and the whole episode, too.
        """
        return EpisodeInfo(
            episode_id=episode.episode_id if privileged else agent_id(self._agent_id_key, episode.episode_id),
            instruction=episode.instruction.text,
            max_steps=episode.step_limit,
            seed=seed,
            language=episode.language,
            task=episode.task,
            sensors=sensors_of(observation),
            actions=ACTIONS,
            details=details_of(episode, hide_goal=self._hide_goal),
            episode=episode if privileged else None,
        )

    def parse_action(self, answer: Any) -> ManipulationAction:
        """Return the action an agent means.

        Raises:
            AgentFault: It means none.
        """
        return parse_manipulation_action(answer)

    def update(self, action: ManipulationAction, info: Info) -> None:
        """Measure the state after a step."""
        self._track.add(info)
        state = {**info, "action": action}
        for metric in self._metrics.values():
            metric.update(state)
        achieved = {name for name in STAGES if self._metrics[name].get_metric() == 1.0}
        if "placed" in achieved and info["object_released"]:
            achieved.add("released")
        self._track.note(achieved)

    def distance_m(self, a: Vector3, b: Vector3) -> float:
        """Return the distance by which the task is scored."""
        return distance(a, b)

    def shortest_path_m(self, episode: PickAndPlaceEpisode) -> float:
        """Return NaN: nothing is driven here that is compared with a shortest path."""
        del episode
        return math.nan

    def success_threshold_m(self, episode: PickAndPlaceEpisode) -> float:
        """Return how near to its target the object must be put."""
        return episode.task_goal.success_criteria.place_tolerance

    def measure(self) -> dict[str, float]:
        """Return the metrics that apply to the episode, as of its last step."""
        values = {name: float(metric.get_metric()) for name, metric in self._metrics.items()}
        return {name: value for name, value in values.items() if math.isfinite(value)}

    def result(self, episode: PickAndPlaceEpisode, log: EpisodeLog) -> EpisodeResult:
        """Write the episode's record. Of one that never began, the paths are empty."""
        fault, track = log.fault, self._track
        success = fault is None and log.metrics["success"] == 1.0
        reason = fault.kind if fault else None if success else _failure_reason(episode, log)
        target_m = track.target_m
        return EpisodeResult(
            episode_id=episode.episode_id,
            scene_id=episode.scene_id,
            instruction=episode.instruction.text,
            status="error" if fault else "success" if success else "failure",
            success=success,
            failure_reason=reason,
            error=fault,
            final_distance_to_goal=_start_distance_m(episode) if target_m is None else target_m,
            steps=len(log.actions),
            collision_count=len(track.collision_steps),
            trajectory=track.hand,
            headings=[yaw for _, _, yaw in track.base],
            collision_steps=track.collision_steps,
            actions=[action_as_dict(action) for action in log.actions],
            metrics=log.metrics,
            distance="euclidean",
            seed=log.seed,
            pick_place=track.record(),
            timing=log.timing,
        )


class _Track:
    """What of the states of an episode is kept. The first is the one before the first step."""

    def __init__(self) -> None:
        self.hand: list[Vector3] = []
        self.base: list[Point] = []
        self.collision_steps: list[int] = []
        self.target_m: float | None = None
        """From the object to where it should go, as of the last state."""
        self._object: list[Point] = []
        self._gripper: list[float] = []
        self._phases: list[Phase] = []
        self._held: list[bool] = []
        self._stages: dict[str, int | None] = dict.fromkeys((*STAGES, "released"))
        self._target: Point | None = None

    @property
    def step(self) -> int:
        """How many steps have been done."""
        return len(self.hand) - 1

    def add(self, info: Info) -> None:
        """Take in a state.

        Raises:
            SimulationError: The env reports what cannot be measured.
        """
        base, yaw = read_point(info, "position"), read_number(info, "yaw")
        hand, thing = _point(read_point(info, "ee_position")), _point(read_point(info, "object_position"))
        gripper = round(read_number(info, "gripper_state"), DIGITS)
        collided, held = read_flag(info, "collision"), read_flag(info, "object_grasped")
        has_target = info.get("target_distance", "missing") is not None
        target_m = read_number(info, "target_distance") if has_target else 0.0
        has_place = info.get("target_position", "missing") is not None
        target = _point(read_point(info, "target_position")) if has_place else None
        phase: Any = info.get("phase")
        if phase not in get_args(Phase):
            raise SimulationError(f"info['phase']: expected one of {get_args(Phase)}, found {phase!r:.40}")
        self.hand.append(Vector3(*hand))
        self.base.append((round(base.x, DIGITS), round(base.y, DIGITS), round(yaw, DIGITS)))
        if collided:
            self.collision_steps.append(self.step)
        self.target_m, self._target = target_m, target
        self._object.append(thing)
        self._gripper.append(gripper)
        self._phases.append(phase)
        self._held.append(held)

    def note(self, achieved: set[str]) -> None:
        """Take in which stages hold; the first step in which one does is kept."""
        for name in achieved:
            if self._stages[name] is None:
                self._stages[name] = self.step

    def record(self) -> PickPlaceRecord:
        """Return what results tell of this task only."""
        return PickPlaceRecord(
            object_path=self._object,
            base_path=self.base,
            gripper=self._gripper,
            phases=self._phases,
            held=self._held,
            stages=self._stages,
            target=self._target,
        )


def details_of(episode: PickAndPlaceEpisode, *, hide_goal: bool) -> dict[str, Any]:
    """Return what every agent is told of an episode, as plain dicts and lists.

    Args:
        episode: The episode.
        hide_goal: Whether to leave out where things and the target are.
    """
    hidden = FILES | COORDINATES if hide_goal else FILES
    robot = _plain(episode.robot_config)
    return {
        "robot_config": robot | {"joint_names": list(JOINT_NAMES), "joint_limits": limits_as_dict()},
        "task_goal": _without(hidden, _plain(episode.task_goal)),
        "scene_objects": _without(hidden, [_plain(item) for item in episode.scene_objects]),
        "sim_params": _plain(episode.sim_params),
    }


def _plain(value: Any) -> Any:
    """Return builtins, defaults included and None left out, unlike what is written into files."""
    if isinstance(value, msgspec.Struct):
        value = msgspec.structs.asdict(value)
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items() if item is not None}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value


def _without(hidden: frozenset[str], value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without(hidden, item) for key, item in value.items() if key not in hidden}
    return [_without(hidden, item) for item in value] if isinstance(value, list) else value


def _failure_reason(episode: PickAndPlaceEpisode, log: EpisodeLog) -> str:
    return "timeout" if len(log.actions) >= episode.step_limit else "ended_early"  # as no env of ours does


def _start_distance_m(episode: PickAndPlaceEpisode) -> float:
    """Return how far the object is from its target in an episode of which nothing else is known."""
    target, location = episode.task_goal.target_object, episode.task_goal.target_location
    if target is None or location is None:
        return 0.0
    places = {item.name: item.position for item in episode.scene_objects}
    start = target.initial_position or places.get(target.name)
    goal = location.position or places.get(str(location.object_name))
    return math.dist(start, goal) if start and goal else 0.0


def _point(point: Vector3) -> Point:
    return round(point.x, DIGITS), round(point.y, DIGITS), round(point.z, DIGITS)
