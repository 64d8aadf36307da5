"""What exams have in common whose agents drive a robot by STOP, FORWARD, LEFT and RIGHT.

A subclass of `DrivingExam` adds its episodes, its metrics and `distance`.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import msgspec
import numpy as np

from proctor.core.answers import INVALID_ACTION, NOT_FINITE, WRONG_LENGTH, describe_answer
from proctor.core.errors import AgentFault
from proctor.core.geometry import distance as straight_m
from proctor.core.interfaces import DrivingEpisode
from proctor.core.types import Action, Info, Observation, Vector3
from proctor.exams.env_info import read_flag, read_more, read_number, read_point
from proctor.exams.exam import Exam
from proctor.exams.offers import DRIVING_OFFERS, Offer
from proctor.exams.results import EpisodeResult
from proctor.exams.trace import Trace, plain_state
from proctor.scenes.mesh_files import files_of_mesh, folder_of_scene

DrivingEpisodeT = TypeVar("DrivingEpisodeT", bound=DrivingEpisode)
CHANCES_SUMMED = (0.02, 0.70, 0.85)
"""Of the policy `random`: STOP 2 %, FORWARD 68 %, LEFT 15 % and RIGHT 15 %, each added to those before it."""
KNOWN_KEYS = frozenset(("position", "collision", "yaw", "trajectory"))
"""Entries of an env's info that have a field of their own, or follow from the other states."""


class DrivingState(msgspec.Struct, frozen=True, kw_only=True):
    """Where the robot is after a step."""

    position: Vector3
    yaw: float | None = None
    """Radians; None where the env does not tell."""
    collision: bool = False
    """Whether it bumped into something in this step."""
    more: dict[str, float | int | bool | str] = {}
    """All other numbers and words that the env reports, for metrics of one's own."""


DrivingTrace = Trace[Action, DrivingState]


def headings_of(states: list[DrivingState]) -> list[float]:
    """Return a rounded heading for each state, the last one known; none if no state has one."""
    if all(state.yaw is None for state in states):
        return []
    headings: list[float] = []
    for state in states:
        yaw = state.yaw
        known = headings[-1] if yaw is None and headings else yaw
        headings.append(round(known or 0.0, 6))
    return headings


def parse_driving_action(answer: Any) -> Action:
    """Return the action an agent means: a number from 0 to 3 or a name, alone or as `{"action": 1}`."""
    value = answer["action"] if isinstance(answer, dict) and "action" in answer else answer
    if isinstance(value, list | tuple | np.ndarray):
        count = np.size(value) if isinstance(value, np.ndarray) else len(value)
        if count != 1:
            raise AgentFault(WRONG_LENGTH, f"expected one action; found {describe_answer(value)}")
        value = value.reshape(-1)[0] if isinstance(value, np.ndarray) else value[0]
    if isinstance(value, str) and value.upper() in Action.__members__:
        return Action[value.upper()]
    if isinstance(value, int | np.integer) and not isinstance(value, bool) and 0 <= value <= 3:
        return Action(int(value))
    unsure = isinstance(value, float | np.floating) and not math.isfinite(value)
    expected = "expected an integer, 0 STOP, 1 FORWARD, 2 LEFT or 3 RIGHT, or its name"
    raise AgentFault(NOT_FINITE if unsure else INVALID_ACTION, f"{expected}; found {describe_answer(value)}")


class DrivingExam(Exam[DrivingEpisodeT, Action, DrivingState]):
    """The base of exams whose agents drive by the four actions; `distance` must return a `PathDistance`."""

    state_type = DrivingState
    action_type = Action
    envs: ClassVar[tuple[str, ...]] = ("embedded", "mock", "o3de", "ros2")
    actions = tuple(Action.__members__)
    offers: ClassVar[Mapping[str, Offer]] = DRIVING_OFFERS
    chat = "proctor.exams.driving_chat:DrivingChat"
    controls = "proctor.exams.controls:DrivingControls"
    parse_action = staticmethod(parse_driving_action)

    @classmethod
    def scene_files(cls, episodes: Sequence[DrivingEpisodeT]) -> Iterator[Path]:
        """Yield the scene files, their meshes and what these consist of."""
        from proctor.scenes.scene import Scene  # noqa: PLC0415  (maps need packages that agents do not)

        for scene in sorted({e.scene_config_path for e in episodes if e.scene_config_path is not None}):
            path = Path(scene)
            if not path.is_file():
                continue
            loaded, root = Scene.load(path), folder_of_scene(path)
            meshes = loaded.mesh_files()
            yield from (path, *meshes, *(part for mesh in meshes for part in files_of_mesh(mesh, root)))

    def encode_action(self, action: Action) -> int:
        """Return the action's number."""
        return int(action)

    def first_trace(self, episode: DrivingEpisodeT, info: Callable[[], Info] | None = None) -> DrivingTrace:
        """Begin where the episode says that the robot starts: not every env tells it."""
        return Trace(DrivingState(position=episode.start_position, yaw=episode.start_yaw))

    def state(self, info: Info) -> DrivingState:
        """Read position, heading and collision."""
        return DrivingState(
            position=read_point(info, "position"),
            collision=read_flag(info, "collision"),
            yaw=read_number(info, "yaw") if "yaw" in info else None,
            more=read_more(info, KNOWN_KEYS),
        )

    @classmethod
    def as_info(cls, episode: DrivingEpisodeT, trace: DrivingTrace, index: int) -> Info:
        """Add the distance to the goal, the steps and the trajectory so far."""
        states = trace.states[: index + 1]
        return {
            "distance_to_goal": straight_m(states[-1].position, episode.goal),
            "collision_count": sum(state.collision for state in states),
            "step": index,
            "trajectory": [state.position for state in states],
            **plain_state(states[-1]),
        }

    def record(self, episode: DrivingEpisodeT, trace: DrivingTrace, distance: Any) -> dict[str, Any]:
        """Return path, headings and collisions."""
        bumps = [step for step, state in enumerate(trace.states) if state.collision]
        return {
            "trajectory": [state.position for state in trace.states],
            "headings": headings_of(trace.states),
            "collision_steps": bumps,
            "collision_count": len(bumps),
            "final_distance_to_goal": straight_m(trace.states[-1].position, episode.goal),
            "distance": distance.kind,
            "shortest_path": msgspec.UNSET if distance.stored_m is None else "dataset",
        }

    def failure_reason(self, episode: DrivingEpisodeT, result: EpisodeResult) -> str:
        """Tell a STOP in the wrong place from running out of steps."""
        if result.actions and result.actions[-1] == Action.STOP:
            return "stopped_far"
        if result.steps >= episode.step_limit:
            return "timeout"
        # Only an env with `end_on_collision` ends early for that; predictions just end.
        last = len(result.trajectory) - 1
        return "collision" if result.collision_steps[-1:] == [last] else "no_stop"

    def trace_of(self, result: EpisodeResult) -> DrivingTrace | None:
        """Return path, collisions and actions: all that the scores of a drive depend on."""
        headings: Sequence[float | None] = result.headings or [None] * len(result.trajectory)
        states = [
            DrivingState(position=position, yaw=yaw, collision=step in result.collision_steps)
            for step, (position, yaw) in enumerate(zip(result.trajectory, headings, strict=True))
        ]
        if len(states) != len(result.actions) + 1:
            return None
        trace: DrivingTrace = Trace(states[0])
        for action, state in zip(result.actions, states[1:], strict=True):
            trace.add(self.parse_action(action), state)
        return trace

    def sample_action(self, rng: np.random.Generator, step: int) -> Action:
        """Mostly go FORWARD."""
        return Action(bisect.bisect(CHANCES_SUMMED, rng.random()))

    def idle_action(self, observation: Observation, last: Any) -> Action:
        """Stop."""
        return Action.STOP
