"""What is wrong or odd with pick-and-place episodes, and what a dataset of them consists of."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import PurePosixPath

import msgspec

from proctor.core.errors import MissingDependency, UserError, did_you_mean
from proctor.core.registry import build
from proctor.exams.findings import EpisodesToCheck, Finding, check_wording, found, found_where, says_something
from proctor.exams.pick_place.episode import PickAndPlaceEpisode
from proctor.robots.stretch import CONTROLS
from proctor.robots.stretch_kinematics import HIGHEST_M, reach_of
from proctor.scenes.tabletop_parts import (
    LARGEST_COORDINATE_M,
    SAME_PLACE_M,
    SceneItem,
    TargetLocation,
    TargetObject,
)

Picks = Mapping[int, PickAndPlaceEpisode]
"""By index in their file; broken ones are missing."""
FILTERS = {"empty-instruction": "nothing is said", "duplicate": "the same in all as an episode before"}
"""Reasons to leave episodes out, by name."""

Problem = tuple[str, str]
"""Where in the episode, and what."""
GOAL = "task_goal"
SAME_ROTATION = 1 - 1e-6  # of unit quaternions' product: within a sixth of a degree


def check_before_run(given: EpisodesToCheck[PickAndPlaceEpisode]) -> Iterator[Finding]:
    """Say which objects the hand cannot get at, if any. What cannot be put up is refused by the world."""
    episodes = given.episodes
    reasons = {index: reason for index, e in episodes.items() if (reason := out_of_reach(e)) is not None}
    some = [f"{episodes[index].episode_id}: {reason}" for index, reason in list(reasons.items())[:5]]
    lost = f"{len(reasons)} of {len(episodes)} episodes cannot be done, whatever the agent does"
    text = f"{lost}: {'; '.join(some)}{'; ...' if len(reasons) > 5 else ''}"
    yield from found("note", "out-of-reach", text, reasons)


def check_dataset(given: EpisodesToCheck[PickAndPlaceEpisode], env: str) -> Iterator[Finding]:
    """Yield all that is wrong or odd. The objects are put up in the world `env`."""
    picks = given.episodes
    empty = [index for index, e in picks.items() if not says_something(e.instruction.text)]
    yield from found("warning", "empty-instruction", "nothing is said", empty)
    text = "the object stands where it shall be put"
    yield from found_where("warning", "start-at-goal", text, picks, _is_there_already)
    text = "the object, lifted or not, or its target is higher or farther than the robot can get"
    yield from found_where("warning", "out-of-reach", text, picks, lambda e: out_of_reach(e) is not None)
    text = "the target's position is farther than its radius from the container that it names"
    yield from found_where("warning", "container-elsewhere", text, picks, _is_elsewhere)
    yield from check_wording(
        picks,
        words=lambda e: e.instruction.text,
        scene=_scene,
        goal=lambda e: msgspec.json.encode(e.task_goal),
        start=lambda e: None,
    )
    text = "no reference: trajectory_similarity is not measured"
    yield from found_where("note", "no-reference", text, picks, lambda e: e.reference_trajectory is None)
    text = "physics_engine is recorded, not obeyed: physics is MuJoCo's"
    others = [i for i, e in picks.items() if e.sim_params.physics_engine not in (None, "mujoco")]
    yield from found("note", "physics", text, others)
    yield from _put_up(picks, env)


def _put_up(picks: Picks, env_name: str) -> Iterator[Finding]:
    """Put the objects of every episode up, if there is a world to put them up in."""
    problems: dict[str, list[int]] = defaultdict(list)
    notes: dict[str, list[int]] = defaultdict(list)
    try:
        with closing(build("env", env_name, {"sensors": []})) as env:
            for index, pick in picks.items():
                try:
                    for note in env.check([pick]) or ():
                        notes[note.removeprefix(f"episode '{pick.episode_id}': ")].append(index)
                except MissingDependency:
                    raise
                except UserError as error:
                    problems[str(error).removeprefix(f"episode '{pick.episode_id}': ")].append(index)
    except MissingDependency as error:
        yield from found("note", "no-world", f"objects were not put up: {error}", picks)
        return
    for problem, indices in problems.items():
        yield from found("error", "cannot-start", problem, indices, remedy="dropped")
    for note, indices in notes.items():
        yield from found("note", "put-up", note, indices)


def _scene(episode: PickAndPlaceEpisode) -> bytes:
    """Return what stands where, in bytes: episodes with one scene_id often differ in it."""
    return msgspec.json.encode((episode.scene_id, episode.scene_objects, episode.robot_config))


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
    longest_m = CONTROLS[0].speed * params.control_period * params.max_steps
    there = goal.target_location.position if goal.target_location else None
    for what, point in (("the object", at), ("its target", there)):
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


def problems_of(episode: PickAndPlaceEpisode) -> Iterator[Problem]:
    """Tell, one after the other, for what an episode of a file must be refused."""
    yield from _duplicate_names(episode)
    for index, item in enumerate(episode.scene_objects):
        yield from ((f"scene_objects[{index}].{place}", problem) for place, problem in _item_problems(item))
    yield from _reference_problems(episode)
    target = episode.task_goal.target_object
    if target is None:
        yield GOAL, "the key 'target_object' is missing"
        return
    if target.name in episode.object_names:
        yield from _target_problems(target, episode)
    else:
        yield f"{GOAL}.target_object.name", _unknown(target.name, episode)
    yield from _location_problems(target.name, episode)


def _duplicate_names(episode: PickAndPlaceEpisode) -> Iterator[Problem]:
    first: dict[str, int] = {}
    for index, name in enumerate(episode.object_names):
        other = first.setdefault(name, index)
        if other != index:
            yield f"scene_objects[{index}].name", f"the name '{name}' is taken by scene_objects[{other}]"


def _item_problems(item: SceneItem) -> Iterator[Problem]:
    path = PurePosixPath((item.usd_path or "").replace("\\", "/"))
    is_none = item.usd_path == "" or not str(path).isprintable()
    if is_none or path.is_absolute() or ".." in path.parts:
        yield "usd_path", f"expected a file inside of the assets' folder, found {item.usd_path!r}"
    for key in ("shape", "fallback"):
        size = item[key].size if item[key] else None
        if size is not None and not (min(size) > 0 and max(size) <= LARGEST_COORDINATE_M):
            yield f"{key}.size", f"expected metres from 0 to 100, found {list(size)}"


def _unknown(name: str, episode: PickAndPlaceEpisode) -> str:
    known = ", ".join(episode.object_names[:8]) or "there are none"
    return f"'{name}' is not among the scene_objects ({known}){did_you_mean(name, episode.object_names)}"


def _target_problems(target: TargetObject, episode: PickAndPlaceEpisode) -> Iterator[Problem]:
    """Tell where the target and the scene's object of its name contradict each other."""
    index = episode.object_names.index(target.name)
    item = episode.scene_objects[index]
    if not item.graspable:
        expected = "graspable: true and static: false, since it is the target_object"
        found = f"graspable: {str(item.graspable).lower()}, static: {str(item.static).lower()}"
        yield f"scene_objects[{index}].graspable", f"'{item.name}': expected {expected}; found {found}"
    position, rotation = target.initial_position or item.position, target.initial_rotation or item.rotation
    lengths = math.hypot(*rotation) * math.hypot(*item.rotation)
    product = sum(a * b for a, b in zip(rotation, item.rotation, strict=True)) / lengths
    path = target.usd_path or item.usd_path
    for key, own_key, found_value, expected_value, is_same in (
        ("initial_position", "position", position, item.position, _is_near(position, item.position)),
        ("initial_rotation", "rotation", rotation, item.rotation, abs(product) > SAME_ROTATION),
        ("usd_path", "usd_path", path, item.usd_path, path == item.usd_path),
    ):
        if not is_same:
            own = f"{_written(expected_value)} as in scene_objects[{index}].{own_key}"
            yield f"{GOAL}.target_object.{key}", f"expected {own}, or no key; found {_written(found_value)}"


def _is_near(position: tuple[float, ...], other: tuple[float, ...]) -> bool:
    return math.dist(position, other) <= SAME_PLACE_M


def _written(value: tuple[float, ...] | str | None) -> str:
    return f"'{value}'" if isinstance(value, str) else str(value and list(value))


def _location_problems(target_name: str, episode: PickAndPlaceEpisode) -> Iterator[Problem]:
    location = episode.task_goal.target_location
    place = f"{GOAL}.target_location"
    if location is None:
        if episode.task_goal.success_criteria.type == "place_at_location":
            yield GOAL, "the key 'target_location' is missing: 'place_at_location' needs it"
        return
    name = location.object_name
    if location.type == "position":
        if name is not None:
            problem = f"expected no key, since the type is 'position', found '{name}'"
            yield f"{place}.object_name", f"{problem}; or give the type 'container' or 'surface'"
    elif name == target_name:
        problem = f"expected another object than the target_object, found '{name}'"
        yield f"{place}.object_name", problem
    elif name is not None and name not in episode.object_names:
        yield f"{place}.object_name", _unknown(name, episode)
    else:
        try:
            episode.support_name()
        except UserError:
            fitting = "a static object" if location.type == "surface" else "an object, beside the target, "
            where = "" if location.type == "surface" else f"within {location.radius:g} m of the position"
            yield place, f"expected {fitting}{where} to be the {location.type}, or an object_name; found none"


def _reference_problems(episode: PickAndPlaceEpisode) -> Iterator[Problem]:
    reference = episode.reference_trajectory
    for index, row in enumerate((reference and reference.ee_pose_sequence) or ()):
        if not 0.99 < math.hypot(*row[3:]) < 1.01:
            problem = f"expected a unit quaternion qw, qx, qy, qz after x, y, z, found {list(row[3:])}"
            yield f"reference_trajectory.ee_pose_sequence[{index}]", problem
            return
