"""How far a pick-and-place episode came: one class, the step where it went wrong, and a sentence for people.

The first class that applies is taken. `docs/report.md` lists and defines them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from msgspec import UNSET

from proctor.core.types import Array
from proctor.exams.fault_words import counted, fault_verdict
from proctor.exams.pick_place.episode import PickAndPlaceEpisode
from proctor.exams.pick_place.results import PickPlaceRecord, PickPlaceResult
from proctor.exams.results import EpisodeResult, Verdict
from proctor.scenes.kinds import kind_and_color
from proctor.scenes.tabletop_parts import SuccessCriteria

FELL_M = 0.05  # an object that is this far below where it stood has fallen off what it stood on
PUSHED_M = 0.03  # an object that was moved less than this has hardly been touched
ROUNDING_M = 1e-6
CLOSED_SHARE = 0.7  # a gripper that is this share as wide as at its widest, or less, has been closed


class _Story(NamedTuple):
    """A record as arrays, with what was asked."""

    record: PickPlaceRecord
    hand: Array
    object_xyz: Array
    name: str
    criteria: SuccessCriteria
    within_m: float
    """At this distance the object is just in its target: in a container, or on a surface, none is allowed."""
    last: int
    final_m: float

    @property
    def raised_m(self) -> Array:
        heights: Array = self.object_xyz[:, 2] - self.object_xyz[0, 2]
        return heights

    def lost_at(self) -> int | None:
        """Return the step after which nothing held the object any more; None if it is held at the end."""
        held = np.flatnonzero(self.record.held)
        return None if len(held) == 0 or held[-1] == self.last else int(held[-1]) + 1


def verdict_of(episode: PickAndPlaceEpisode | None, result: PickPlaceResult) -> Verdict:
    """Find out how far an episode came and what stopped it. The episode is None if its dataset is gone."""
    last = max(len(result.trajectory) - 1, 0)
    if result.error is not None:
        return fault_verdict(result.error, last)
    if result.pick_place is UNSET or not result.pick_place.object_path:
        text = "The run kept no record of hand and object, so there is nothing to tell."
        return Verdict("success" if result.success else "never_reached", last, text)
    story = _story(result, result.pick_place, episode, last)
    if result.success:
        return Verdict("success", last, _success(story, result))
    stages = story.record.stages
    tellers = {"reached": _ungrasped, "grasped": _ungrasped, "lifted": _unlifted, "placed": _unplaced}
    return next((tell for stage, tell in tellers.items() if stages.get(stage) is None), _unfinished)(story)


def _story(
    result: EpisodeResult, record: PickPlaceRecord, episode: PickAndPlaceEpisode | None, last: int
) -> _Story:
    target = episode.task_goal.target_object if episode is not None else None
    location = episode.task_goal.target_location if episode is not None else None
    criteria = episode.task_goal.success_criteria if episode is not None else SuccessCriteria()
    is_spot = location is None or location.type == "position"
    return _Story(
        record=record,
        hand=np.array([(point.x, point.y, point.z) for point in result.trajectory]),
        object_xyz=np.array(record.object_path, dtype=float),
        name="the object" if target is None else f"the {spoken(target.name)}",
        criteria=criteria,
        within_m=criteria.place_tolerance if is_spot else ROUNDING_M,
        last=last,
        final_m=result.final_distance_to_goal,
    )


def _success(story: _Story, result: EpisodeResult) -> str:
    drops = int(result.metrics.get("drops", 0))
    but = f", after {counted(drops, 'drop')}" if drops else ""
    if story.record.target is None:
        return f"Lifted {story.name} and held it aloft{but}."
    where = f"{_cm(story.final_m)} from the target" if story.final_m >= 0.0005 else "in the target"
    return f"Put {story.name} down {where} and let go of it{but}."


def _ungrasped(story: _Story) -> Verdict:
    """Tell of an episode in which the object was never held."""
    fallen = np.flatnonzero(story.raised_m < -FELL_M)
    if len(fallen):
        step = int(fallen[0])
        down_m = -float(story.raised_m.min())
        return Verdict(
            "knocked_down", step, f"Knocked {story.name} down at step {step}: it fell {_cm(down_m)}."
        )
    pushed_m = float(np.linalg.norm(story.object_xyz - story.object_xyz[0], axis=1).max())
    and_pushed = f" It pushed it {_cm(pushed_m)} away." if pushed_m > PUSHED_M else ""
    reached = story.record.stages.get("reached")
    if reached is None:
        gaps_m = np.linalg.norm(story.hand - story.object_xyz, axis=1)
        nearest = int(gaps_m.argmin())
        when = f"{_cm(float(gaps_m[nearest]))} away at its nearest, {_after(nearest)}"
        return Verdict("never_reached", nearest, f"The hand never came to {story.name}: {when}.{and_pushed}")
    gripper = np.array(story.record.gripper)
    closed = np.flatnonzero(gripper[reached:] <= CLOSED_SHARE * gripper.max()) + reached
    if len(closed) == 0:
        text = f"Came to {story.name} at step {reached}, but never closed the gripper.{and_pushed}"
        return Verdict("not_grasped", reached, text)
    step = int(closed[0])
    text = f"Closed the gripper at step {step} without getting hold of {story.name}.{and_pushed}"
    return Verdict("not_grasped", step, text)


def _unlifted(story: _Story) -> Verdict:
    """Tell of an episode in which the object was held, but never lifted as high as it had to be."""
    raised_m, wanted_m = max(float(story.raised_m.max()), 0.0), story.criteria.lift_height
    how_far = f"raised it {_cm(raised_m)} of {_cm(wanted_m)}"
    grasped = story.record.stages["grasped"]
    lost = story.lost_at()
    if lost is None:
        step = int(story.raised_m.argmax()) if raised_m > 0 else int(grasped or 0)
        text = f"Held {story.name} from step {grasped} to the end, but only {how_far}."
        return Verdict("not_lifted", step, text)
    text = f"Had hold of {story.name} at step {grasped}, {how_far}, and lost it at step {lost}."
    return Verdict("not_lifted", lost, text)


def _unplaced(story: _Story) -> Verdict:
    """Tell of an episode in which the object was lifted, but never was where it should go."""
    lost, target = story.lost_at(), story.record.target
    if target is None:
        if lost is None:
            text = f"Lifted {story.name}, but had not held it aloft long enough at the end."
            return Verdict("not_placed", story.last, text)
        return Verdict("dropped", lost, f"Lifted {story.name}, but lost it at step {lost}.")
    gaps_m = np.linalg.norm(story.object_xyz - np.array(target), axis=1)
    lifted = story.record.stages["lifted"] or 0
    nearest = lifted + int(gaps_m[lifted:].argmin())
    if lost is None:
        text = (
            f"Still held {story.name} at the end, {_cm(story.final_m)} from the target "
            f"({_cm(float(gaps_m[nearest]))} at its nearest, {_after(nearest)})."
        )
        return Verdict("not_placed", nearest, text)
    fell_m = float(story.object_xyz[lost, 2] - story.object_xyz[-1, 2])
    fell = f", and it fell {_cm(fell_m)}" if fell_m > FELL_M else ""
    away = f"{_cm(float(gaps_m[lost]))} from the target"
    return Verdict("dropped", lost, f"Let go of {story.name} at step {lost}, {away}{fell}.")


def _unfinished(story: _Story) -> Verdict:
    """Tell of an episode in which the object was where it should go, but that was not the end of it."""
    placed = story.record.stages["placed"] or 0
    if story.final_m > story.within_m:
        text = f"{story.name} was in the target at step {placed}, but ended {_cm(story.final_m)} from it."
        return Verdict("left_target", placed, _capital(text))
    if story.record.held[-1]:
        text = f"{story.name} was in the target at step {placed}, but the gripper never let go of it."
        return Verdict("not_released", placed, _capital(text))
    lost = story.lost_at() or placed
    text = f"Let go of {story.name} in the target at step {lost}, but it was not at rest there long enough."
    return Verdict("not_released", lost, text)


def spoken(name: str) -> str:
    """Return an object's name as people would say it: `cup_red` is a red cup."""
    known = kind_and_color(name)
    return name.replace("_", " ") if known is None else f"{known[1]} {known[0]}".strip()


def _after(step: int) -> str:
    return "at the start" if step == 0 else f"after step {step}"


def _cm(metres: float) -> str:
    return f"{100 * metres:.1f} cm" if metres < 0.1 else f"{100 * metres:.0f} cm"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
