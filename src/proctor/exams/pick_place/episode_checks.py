"""What can be wrong with a pick-and-place episode though each of its values is right by itself."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import PurePosixPath

from proctor.core.errors import UserError, did_you_mean
from proctor.exams.pick_place.episode import SAME_PLACE_M, PickAndPlaceEpisode, SceneItem, TargetObject
from proctor.scenes.tabletop_parts import LARGEST_COORDINATE_M

Problem = tuple[str, str]
"""Where in the episode, and what."""
GOAL = "task_goal"
SAME_ROTATION = 1 - 1e-6
"""Of unit quaternions' product: within a sixth of a degree."""


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
