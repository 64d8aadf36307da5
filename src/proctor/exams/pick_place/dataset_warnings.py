"""What is odd, though not wrong, about pick-and-place episodes, and what a dataset of them consists of."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping

import msgspec

from proctor.exams.findings import Findings
from proctor.exams.pick_place.episode import PickAndPlaceEpisode, TargetLocation
from proctor.exams.vln.episode_checks import groups, says_something
from proctor.robots.stretch import CONTROLS
from proctor.robots.stretch_reach import HIGHEST_M, reach_of

Picks = Mapping[int, PickAndPlaceEpisode]
"""By index in their file; broken ones are missing."""
BASE = CONTROLS[0]


def make_up(picks: Picks) -> list[str]:
    """Return lines that say how many episodes of which sort there are."""
    sorts: dict[str, Callable[[PickAndPlaceEpisode], str]] = {
        "splits": lambda e: e.split or "none",
        "success": lambda e: e.task_goal.success_criteria.type,
        "targets": lambda e: e.task_goal.target_location.type if e.task_goal.target_location else "none",
    }
    counts = {title: Counter(map(sort, picks.values())) for title, sort in sorts.items()}
    return [
        f"{title}: " + ", ".join(f"{name} {count}" for name, count in sorted(counted.items()))
        for title, counted in counts.items()
        if counted
    ]


def check_picks(picks: Picks, findings: Findings) -> None:
    """Write down all that is odd."""

    def add(kind: str, text: str, is_odd: Callable[[PickAndPlaceEpisode], bool]) -> None:
        findings.add("warning", kind, text, episodes=[i for i, e in picks.items() if is_odd(e)])

    add("empty-instruction", "nothing is said", lambda e: not says_something(e.instruction.text))
    add("start-at-goal", "the object stands where it shall be put", _is_there_already)
    text = "the object, lifted or not, or its target is higher or farther than the robot can get"
    add("out-of-reach", text, lambda e: out_of_reach(e) is not None)
    text = "the target's position is farther than its radius from the container that it names"
    add("container-elsewhere", text, _is_elsewhere)
    _check_words(picks, findings)
    notes = {
        "no-reference": ("no reference: trajectory_similarity is not measured", _lacks_reference),
        "physics": ("physics_engine is recorded, not obeyed: physics is MuJoCo's", _names_engine),
    }
    for kind, (text, holds) in notes.items():
        findings.add("note", kind, text, episodes=[i for i, e in picks.items() if holds(e)])


def _check_words(picks: Picks, findings: Findings) -> None:
    said = {index: e for index, e in picks.items() if says_something(e.instruction.text)}
    equal = []
    for indices in groups(said, lambda e: (_scene(e), " ".join(e.instruction.text.lower().split()))):
        if len({_goal(said[index]) for index in indices}) > 1:
            equal += indices
    text = "the same words for different goals in one scene"
    findings.add("warning", "equal-instruction", text, episodes=sorted(equal))
    twins = groups(picks, lambda e: (_scene(e), _goal(e), e.instruction.text))
    text = "the same scene, start, goal and words as an episode before: it counts twice"
    repeated = sorted(index for indices in twins for index in indices[1:])
    findings.add("warning", "duplicate", text, episodes=repeated)


def _scene(episode: PickAndPlaceEpisode) -> bytes:
    """Return what stands where, in bytes: episodes with one scene_id often differ in it."""
    return msgspec.json.encode((episode.scene_id, episode.scene_objects, episode.robot_config))


def _goal(episode: PickAndPlaceEpisode) -> bytes:
    return msgspec.json.encode(episode.task_goal)


def _position_of_target(episode: PickAndPlaceEpisode) -> tuple[float, float, float] | None:
    location = episode.task_goal.target_location
    return location.position if location else None


def _is_there_already(episode: PickAndPlaceEpisode) -> bool:
    goal, location = episode.task_goal, episode.task_goal.target_location
    start = goal.target_object.initial_position if goal.target_object else None
    if start is None or location is None or location.position is None or location.type != "position":
        return False
    return math.dist(start, location.position) < goal.success_criteria.place_tolerance


def out_of_reach(episode: PickAndPlaceEpisode) -> str | None:
    """Tell why no agent can do an episode, if the reason is how high or far the robot gets."""
    goal, params, start = episode.task_goal, episode.sim_params, episode.robot_config.init_pose.base
    at = goal.target_object.initial_position if goal.target_object else None
    longest_m = BASE.speed * params.control_period * params.max_steps
    for what, point in (("the object", at), ("its target", _position_of_target(episode))):
        reach = reach_of(start, point) if point is not None else None
        if reach is not None and reach.too_high_m > 0:
            return f"{what} is higher than the hand can get, {HIGHEST_M:.2f} m"
        if reach is not None and reach.drive_m > longest_m:
            return f"{what} is {reach.distance_m:.1f} m away, farther than the base can drive in max_steps"
    if at is not None and at[2] + goal.success_criteria.lift_height > HIGHEST_M:
        return f"lifted by lift_height, the object would be higher than the hand can get, {HIGHEST_M:.2f} m"
    return None


def _is_elsewhere(episode: PickAndPlaceEpisode) -> bool:
    location = episode.task_goal.target_location
    if not isinstance(location, TargetLocation) or location.type != "container":
        return False
    if location.object_name is None or location.position is None:
        return False
    container = episode.item(location.object_name).position
    return math.dist(container[:2], location.position[:2]) > location.radius


def _lacks_reference(episode: PickAndPlaceEpisode) -> bool:
    return episode.reference_trajectory is None


def _names_engine(episode: PickAndPlaceEpisode) -> bool:
    return episode.sim_params.physics_engine not in (None, "mujoco")
