"""How far a pick-and-place attempt came: reached, grasped, lifted, placed, and the way between these.

States are the environment's info. Only what the design documents list is needed; what our environment
knows better (`gripper_closed_below`, `object_in_target`, `target_distance`, ...) is used where it is there.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

from proctor.core.interfaces import Metric, MetricTask
from proctor.core.types import Info
from proctor.robots.stretch import GRIPPER_OPEN_M

PHASES = ("reach", "grasp", "lift", "place")
CLOSED_BELOW_M = 0.01
"""A gripper is closed below this, unless the state knows the width of what it closes on."""
REACHED_M = 0.05
"""A hand that is this near to the object has reached it."""
REACH_FROM_M = 0.5
"""At this distance from the object, reaching has made no progress yet."""
OBJECT_Z_M = 0.8
"""Where an object stands of which neither the state nor the episode says it."""


def is_grasped(state: Info) -> bool:
    """Whether the object is held and the gripper has closed on it."""
    closed_below_m: float = state.get("gripper_closed_below", CLOSED_BELOW_M)
    return bool(state.get("object_grasped", False)) and state.get("gripper_state", math.inf) < closed_below_m


def has_reached(state: Info) -> bool:
    """Whether the hand is at the object: by the state's phase, or by distance where it tells none."""
    if "phase" in state:
        return bool(state["phase"] != PHASES[0])
    return bool(state.get("object_grasped", False)) or _hand_distance_m(state) < REACHED_M


def is_in_target(state: Info, *, target: Any, tolerance_m: float) -> bool:
    """Whether the object is where it belongs: as the state says, else nearer to the target than allowed."""
    known = state.get("object_in_target")
    if known is not None:
        return bool(known)
    return target_distance_m(state, target=target) < tolerance_m


def target_distance_m(state: Info, *, target: Any) -> float:
    """Return how far the object is from where it belongs; infinite where that is not known."""
    known = state.get("target_distance")
    if known is not None:
        return float(known)
    told = state.get("target_position")
    return _distance_m(state.get("object_position"), target if told is None else told)


def reach_progress(distance_m: float) -> float:
    """Return how near the hand is, 1 at the object."""
    return _clamp(1.0 - distance_m / REACH_FROM_M)


def grasp_progress(gripper_m: float, *, closed_below_m: float = 0.0) -> float:
    """Return how far the gripper has closed, 1 where it has closed on the object."""
    return _ratio(GRIPPER_OPEN_M - gripper_m, GRIPPER_OPEN_M - closed_below_m)


def lift_progress(lifted_m: float, *, lift_height_m: float) -> float:
    """Return the height as a part of what is asked for."""
    return _ratio(lifted_m, lift_height_m)


def place_progress(distance_m: float, *, tolerance_m: float) -> float:
    """Return how near the object is to its target: 0 at the tolerance, 1 at the target."""
    return _ratio(tolerance_m - distance_m, tolerance_m)


class PickPlaceSuccess(Metric):
    """Whether the object was grasped, lifted and then, at any step, at its target.

    Without a target location, grasping and lifting are the whole task.

    Args:
        lift_height: Metres, for episodes that do not say it.
        place_tolerance: Metres, for episodes that do not say it.
    """

    is_rate = True

    def __init__(self, lift_height: float = 0.1, place_tolerance: float = 0.05) -> None:
        self.lift_height = self._usual_lift_height = lift_height
        self.place_tolerance = self._usual_place_tolerance = place_tolerance
        self.initial_object_pos: Any = None
        self.target_location: Any = None
        self._needs_place = True
        self._restart()

    def reset(self, episode: Any, task: MetricTask) -> None:
        """Begin with the object where it stands at first."""
        criteria = episode.task_goal["success_criteria"]
        self.lift_height = criteria.get("lift_height", self._usual_lift_height)
        self.place_tolerance = criteria.get("place_tolerance", self._usual_place_tolerance)
        self.initial_object_pos = initial_position(episode)
        self.target_location = target_position(episode)
        self._needs_place = has_target(episode)
        self._restart()

    def update(self, state: Info) -> None:
        """Take in the state after a step."""
        if is_grasped(state):
            self.object_grasped = True
        if self.object_grasped and self._height_m(state) > self.lift_height:
            self.object_lifted = True
        if self.object_lifted and is_in_target(
            state, target=self.target_location, tolerance_m=self.place_tolerance
        ):
            self.object_placed = True
        self.success = self.object_lifted and (self.object_placed or not self._needs_place)

    def get_metric(self) -> float:
        """Return 1 or 0."""
        return float(self.success)

    def _restart(self) -> None:
        self.object_grasped = False
        self.object_lifted = False
        self.object_placed = False
        self.success = False

    def _height_m(self, state: Info) -> float:
        """Return how high the object is above where it stood at first."""
        if "object_position" not in state:
            return -math.inf
        return float(state["object_position"][2]) - initial_z_m(state, self.initial_object_pos)


class PickPlaceCompletionRate(Metric):
    """How far the present phase has come, from 0 to 1; `completion_rate` is how far the whole task has."""

    def __init__(self) -> None:
        self.phase = PHASES[0]
        self.progress = 0.0
        self.completion_rate = 0.0
        """(finished phases + progress in the present one) / 4, the largest so far; 1 after a success."""
        self._goal = PickPlaceSuccess()

    def reset(self, episode: Any, task: MetricTask) -> None:
        """Begin at nothing."""
        self.phase = PHASES[0]
        self.progress = 0.0
        self.completion_rate = 0.0
        self._goal.reset(episode, task)
        self._has_target = has_target(episode)

    def update(self, state: Info) -> None:
        """Take in the state after a step."""
        phase = state.get("phase", PHASES[0])
        if phase not in PHASES:
            return
        self.phase = phase
        self.progress = self._progress(state)
        finished = len(PHASES) if state.get("success", False) else PHASES.index(phase) + self.progress
        self.completion_rate = max(self.completion_rate, finished / len(PHASES))

    def get_metric(self) -> float:
        """Return the progress in the present phase."""
        return self.progress

    def _progress(self, state: Info) -> float:
        if self.phase == "reach":
            return reach_progress(_hand_distance_m(state))
        if self.phase == "grasp":
            closed_below_m = state.get("gripper_closed_below", 0.0)
            return grasp_progress(state.get("gripper_state", GRIPPER_OPEN_M), closed_below_m=closed_below_m)
        if self.phase == "lift":
            position = state.get("object_position")
            if position is None:
                return 0.0
            lifted_m = float(position[2]) - initial_z_m(state, self._goal.initial_object_pos)
            return lift_progress(
                lifted_m, lift_height_m=state.get("target_lift_height", self._goal.lift_height)
            )
        if not self._has_target and state.get("target_position") is None:
            return 1.0
        return place_progress(
            target_distance_m(state, target=self._goal.target_location),
            tolerance_m=state.get("place_tolerance", self._goal.place_tolerance),
        )


class CompletionRate(PickPlaceCompletionRate):
    """How far the whole task has come at best: (finished phases + progress in the next) / 4."""

    def get_metric(self) -> float:
        """Return a value from 0 to 1 that never decreases."""
        return self.completion_rate


class Reached(Metric):
    """Whether the hand ever was at the object."""

    is_rate = True

    def reset(self, episode: Any, task: MetricTask) -> None:
        """Begin away from it."""
        self._reached = False

    def update(self, state: Info) -> None:
        """Take in the state after a step."""
        self._reached = self._reached or has_reached(state)

    def get_metric(self) -> float:
        """Return 1 or 0."""
        return float(self._reached)


class Grasped(Metric):
    """Whether the object ever was in the closed gripper."""

    is_rate = True
    stage: ClassVar[str] = "object_grasped"

    def __init__(self) -> None:
        self._stages = PickPlaceSuccess()

    def reset(self, episode: Any, task: MetricTask) -> None:
        """Begin with nothing done."""
        self._stages.reset(episode, task)

    def update(self, state: Info) -> None:
        """Take in the state after a step."""
        self._stages.update(state)

    def get_metric(self) -> float:
        """Return 1 or 0."""
        return float(getattr(self._stages, self.stage))


class Lifted(Grasped):
    """Whether the object, once grasped, ever was as high as it should be lifted."""

    stage = "object_lifted"


class Placed(Grasped):
    """Whether the object, once lifted, ever was at its target. Does not apply where there is none."""

    stage = "object_placed"

    def reset(self, episode: Any, task: MetricTask) -> None:
        """Begin with nothing done."""
        super().reset(episode, task)
        self._applies = has_target(episode)

    def get_metric(self) -> float:
        """Return 1 or 0, NaN where the object has no place to go."""
        return super().get_metric() if self._applies else math.nan


def initial_position(episode: Any) -> Any:
    """Return where the target object stands at first: as the goal says, else as the scene does, else None."""
    thing = episode.task_goal.get("target_object")
    if thing is None:
        return None
    own = thing.get("initial_position")
    if own is not None:
        return own
    places = (item["position"] for item in episode.scene_objects if item["name"] == thing["name"])
    return next(places, None)


def has_target(episode: Any) -> bool:
    """Whether the object has a place to go."""
    return episode.task_goal.get("target_location") is not None


def target_position(episode: Any) -> Any:
    """Return where the object belongs; None if the episode names no point."""
    location = episode.task_goal.get("target_location")
    return None if location is None else location.get("position")


def initial_z_m(state: Info, initial: Any) -> float:
    """Return the height at which the object stood: as the state says, else as the episode does."""
    return float(state.get("initial_object_z", OBJECT_Z_M if initial is None else initial[2]))


def _hand_distance_m(state: Info) -> float:
    thing = state.get("object_center", state.get("object_position"))
    return _distance_m(state.get("ee_position"), thing)


def _distance_m(a: Any, b: Any) -> float:
    return math.inf if a is None or b is None else math.dist(a, b)


def _ratio(part: float, whole: float) -> float:
    """Return a part as a number from 0 to 1, 0 if it is no number; of nothing, any part is all of it."""
    if whole <= 0:
        return float(part > 0)
    return _clamp(part / whole)


def _clamp(value: float) -> float:
    return max(0.0, min(1.0, value)) if not math.isnan(value) else 0.0
