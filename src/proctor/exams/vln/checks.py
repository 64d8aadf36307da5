"""Check navigation episodes by themselves and in their scenes: before a run, and for `check-dataset`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Literal

import numpy as np

from proctor.core.errors import UserError
from proctor.core.geometry import distance
from proctor.core.registry import build
from proctor.core.types import Vector3
from proctor.exams.findings import (
    EpisodesToCheck,
    Finding,
    check_wording,
    found,
    found_where,
    grouped,
    says_something,
    some_of,
)
from proctor.exams.path_distance import PathDistance, has_map, unreachable_notes
from proctor.exams.vln.episode import Episode, stored_geodesic_m
from proctor.maps.grid_map import MARGIN_M, GridMap
from proctor.robots.spec import standard_robot
from proctor.scenes.mesh_house import REMEDY, filling_hulls
from proctor.scenes.scene import Scene

if TYPE_CHECKING:
    from proctor.worlds.mujoco.wheeled.env import VLNEnv

Given = EpisodesToCheck[Episode]

Episodes = Mapping[int, Episode]
"""By index in their file; broken ones are missing."""

LEVEL_M = 0.3  # more up or down is a change of floor level, for a wheeled robot
HIGH_M = 1.0
SPARSE_M = 1.0  # a wider gap in a reference path spoils nDTW
FAR_M = 1.0
NEAR_M = 0.1

_DRAWN: set[tuple[str, float]] = set()
"""Digests of scenes and floors in them whose maps could be drawn."""


def check_before_run(given: Given) -> Iterator[Finding]:
    """Yield what keeps a run from starting, then what people should know before they trust its numbers.

    Every scene in use is loaded, meshes included, and its map built.
    """
    episodes = given.episodes
    withheld = [index for index, episode in episodes.items() if episode.goal_position is None]
    text = (
        f"{len(withheld)} of {len(episodes)} episodes have no goal, as in the test split of a challenge: "
        "nothing could be scored; choose a split with goals"
    )
    places = [f"episodes[{index}].goal" for index in withheld]
    yield from found("error", "no-goal", text, withheld, places=places)
    for scene, indices in grouped(episodes, lambda e: e.scene_config_path).items():
        group = [episodes[index] for index in indices]
        if scene is not None and Path(scene).is_file():
            _check_map(Scene.load(Path(scene)), group[0].start_position)
            unreachable_notes(_with_goals(group))  # remembered, for `scene_notes`, while the map is at hand
        elif given.needs_scene:
            problem = f"there is no scene file {scene}" if scene else _missing_scene(given, group[0])
            places = [f"episodes[{index}].scene_config_path" for index in indices]
            yield from found("error", "no-scene", problem, indices, places=places)
    for note in scene_notes(list(episodes.values())):
        yield Finding(severity="note", kind="scenes", text=note)


def _check_map(scene: Scene, start: Vector3) -> None:
    """Draw a map, once for each content of a scene, however many policies are run in it."""
    floor_z = scene.floor_near(start)
    if (scene.digest, floor_z) not in _DRAWN:
        scene.map(floor_z)
        _DRAWN.add((scene.digest, floor_z))


def _missing_scene(given: Given, episode: Episode) -> str:
    if given.format == "native" and given.scenes is None:
        name = episode.scene_id
        return f"missing, and there is no scenes/{name}.json and no mesh named '{name}' beside the dataset"
    if given.scenes is None:
        return f"give --scenes DIR with the scenes of {given.format}, such as {episode.scene_id}.glb"
    without = [other for other in given.episodes.values() if other.scene_config_path is None]
    names = list(dict.fromkeys(other.scene_id for other in without))
    return f"{given.scenes} lacks {len(names)} scenes of {len(without)} episodes: {some_of(names)}"


def scene_notes(episodes: Sequence[Episode]) -> list[str]:
    """Return notes on scenes: how meshes were read, floors, missing images, goals out of reach."""
    mapped = dict(enumerate(filter(has_map, episodes)))
    by_scene = grouped(mapped, lambda e: Path(str(e.scene_config_path)))
    notes = []
    for path in by_scene:
        scene = Scene.load(path)
        house = scene.house()
        if house is not None:
            notes += [*scene.config.notes, f"{path.name} has its floors at {house.described_floors()}"]
        notes += scene.missing_file_notes()
    in_order = (mapped[index] for indices in by_scene.values() for index in indices)
    return [*notes, *unreachable_notes(_with_goals(in_order))]


def check_dataset(given: Given, env: str) -> Iterator[Finding]:
    """Yield all that is wrong or odd. The robot is put at every start in the world `env`."""
    if given.format == "native":
        text = "no reference path: nDTW, SDTW and CLS are not measured"
        yield from found_where("note", "no-gt", text, given.episodes, lambda e: e.reference_path is None)
    yield from _missing_scenes(given)
    yield from _check_episodes(given.episodes)
    yield from _check_maps(given.episodes, env)


def _missing_scenes(given: Given) -> Iterator[Finding]:
    missing = [index for index, episode in given.episodes.items() if not has_map(episode)]
    if given.scenes is None and given.format != "native":
        text = "no --scenes given: maps are not checked, and distances would be Euclidean"
        yield from found("note", "no-scene", text, missing)
        return
    names = list(dict.fromkeys(given.episodes[index].scene_id for index in missing))
    text = f"no file for {len(names)} scenes: {some_of(names)}"
    if given.scenes is None and len(missing) == len(given.episodes):
        yield from found("warning", "no-scene", f"{text}; only envs without walls can run it", missing)
    else:
        yield from found("error", "no-scene", text, missing, remedy="dropped")


def _check_maps(episodes: Mapping[int, Episode], env_name: str) -> Iterator[Finding]:
    mapped = {index: episode for index, episode in episodes.items() if has_map(episode)}
    by_scene = grouped(mapped, lambda e: Path(str(e.scene_config_path)))
    by_kind: dict[str, list[int]] = defaultdict(list)
    with closing(build("env", env_name, {"sensors": []})) as env:
        for path, indices in by_scene.items():
            try:
                scene = Scene.load(path)
                for note in scene.missing_file_notes():
                    yield from found("warning", "missing-file", note, indices)
                for index in indices:
                    by_kind[_verdict(scene, episodes[index])].append(index)
            except UserError as error:
                yield from found("error", "scene", str(error), indices, remedy="dropped")
                continue
            off_map = set(by_kind["off-map"])
            blocked = _refused(env, {i: episodes[i] for i in indices if i not in off_map})
            by_kind["start-blocked"] += blocked
            end_inside = off_map.union(blocked)
            yield from _check_hulls(scene, {i: episodes[i] for i in indices if i in end_inside})
    texts = {
        "off-map": "start or goal inside of an object, or beyond the map",
        "start-blocked": f"the robot cannot stand at the start: the {env_name} world refuses it",
        "unreachable": "the map shows no path from start to goal",
    }
    for kind, text in texts.items():
        yield from found("error", kind, text, sorted(by_kind[kind]), remedy="dropped")


def _check_hulls(scene: Scene, episodes: Mapping[int, Episode]) -> Iterator[Finding]:
    """Say which meshes block the ends of episodes only by their convex hulls: walls in one piece."""
    blocked: dict[str, list[int]] = defaultdict(list)
    robot = standard_robot()
    for index, episode in episodes.items():
        for point in filter(None, (episode.start_position, episode.goal_position)):
            floor_z = scene.floor_near(point)
            low_m, high_m = robot.height_band_m
            band_m, xy = (floor_z + low_m, floor_z + high_m), (point.x, point.y)
            for name in filling_hulls(scene, xy, radius_m=robot.radius_m, band_m=band_m):
                if index not in blocked[name]:
                    blocked[name].append(index)
    for name, inside in blocked.items():
        text = f"starts or goals are free, but inside of the convex hull of '{name}': {REMEDY}"
        yield from found("error", "inside-hull", f"{Path(str(scene.file)).name}: {text}", inside)


def _refused(env: VLNEnv, episodes: dict[int, Episode]) -> list[int]:
    """Return the indices of the episodes of one scene that an env would not run."""
    try:
        # By object: the same id may be there twice.
        refused = {id(episode) for episode, _ in env.refused(list(episodes.values()))}
    except UserError:  # there is no world at all
        return list(episodes)
    return [index for index, episode in episodes.items() if id(episode) in refused]


def _verdict(scene: Scene, episode: Episode) -> Literal["off-map", "unreachable", ""]:
    """Tell what is wrong with the ends of an episode on the maps of their floors."""
    start, goal = episode.start_position, episode.goal_position
    ends = [start] if goal is None else [start, goal]
    if any(_is_off(scene.map_at(point), point) for point in ends):
        return "off-map"
    if goal is None:
        return ""
    return "" if scene.is_reachable(start, goal) else "unreachable"


def _is_off(grid: GridMap, point: Vector3) -> bool:
    """Tell whether a point lies inside of an object, or beyond the map and its margin."""
    rows, columns = grid.occupied.shape
    x, y = grid.origin_world
    width_m, depth_m = columns * grid.resolution_m, rows * grid.resolution_m
    beyond = not (
        x - MARGIN_M <= point.x <= x + width_m + MARGIN_M
        and y - MARGIN_M <= point.y <= y + depth_m + MARGIN_M
    )
    return bool(grid.occupied.any()) and (beyond or grid.clearance_at(point.x, point.y) <= 0)


def _shortest_m(episode: Episode) -> float:
    """Return how far it is from start to goal: on the map, else as the dataset stores it, else straight.

    It is straight, too, if the scene is broken, which is told elsewhere.
    """
    try:
        stored_m = stored_geodesic_m(episode)
        return PathDistance(episode, success_threshold_m=0.0, stored_m=stored_m).shortest_path_m
    except UserError:
        return distance(episode.start_position, episode.goal)


def _with_goals(episodes: Iterable[Episode]) -> list[Episode]:
    return [episode for episode in episodes if episode.goal_position is not None]


def _check_episodes(episodes: Episodes) -> Iterator[Finding]:
    """Yield all that is odd with episodes by themselves."""
    text = "the goal is withheld: it cannot be scored"
    yield from found_where("warning", "no-goal", text, episodes, lambda e: e.goal_position is None)
    text = "a STOP at once may be a success"
    yield from found_where("warning", "start-at-goal", text, episodes, _starts_at_goal)
    yield from _check_up_axis(episodes)
    text = f"the path goes more than {LEVEL_M} m up or down: a wheeled robot cannot do it"
    yield from found_where("warning", "level-change", text, episodes, _changes_level)
    text = "the reference path has gaps of more than 1 m: even a perfect agent would have a low nDTW"
    yield from found_where("warning", "sparse-reference", text, episodes, _is_sparse)
    text = "the dense path ends more than 1 m from the goal"
    yield from found_where("warning", "reference-end", text, episodes, _reference_ends_elsewhere)
    text = "the waypoints (`reference_path`) do not run from the start to the goal"
    yield from found_where("warning", "waypoints", text, episodes, _waypoints_lead_elsewhere)
    empty = [index for index, e in episodes.items() if not says_something(e.instruction)]
    yield from found("error", "empty-instruction", "nothing is said", empty, remedy="dropped")
    yield from check_wording(
        episodes,
        words=lambda e: e.instruction,
        scene=lambda e: e.scene_id,
        goal=lambda e: e.goal_position,
        start=lambda e: (e.start_position, e.start_rotation),
    )
    routes = grouped(episodes, lambda e: (e.scene_id, e.start_position, e.goal_position)).values()
    text = f"{len(episodes)} episodes on {len(routes)} routes: some differ only in words or heading"
    shared = sorted(index for route in routes if len(route) > 1 for index in route)
    yield from found("note", "shared-route", text, shared)


def _starts_at_goal(episode: Episode) -> bool:
    if episode.goal_position is None:
        return False
    near_m = episode.success_threshold or NEAR_M
    # No path is shorter than the straight line, so most episodes need no path search.
    is_near = distance(episode.start_position, episode.goal_position) < near_m
    return is_near and _shortest_m(episode) < near_m


def _check_up_axis(episodes: Episodes) -> Iterator[Finding]:
    """Complain if goals are typically far above or below their starts, and hardly ever beside them."""
    ways = [
        (abs(e.goal_position.y - e.start_position.y), abs(e.goal_position.z - e.start_position.z))
        for e in episodes.values()
        if e.goal_position is not None
    ]
    if ways and median(up for _, up in ways) > HIGH_M and median(aside for aside, _ in ways) < LEVEL_M:
        text = "goals are high above or deep below their starts, but not beside them: is another axis up?"
        yield from found("warning", "up-axis", text, episodes)


def _changes_level(episode: Episode) -> bool:
    waypoints = episode.origin.waypoints if episode.origin is not None else None
    points = [episode.start_position, *(episode.reference_path or []), *(waypoints or [])]
    heights = [point.z for point in points] + ([episode.goal_position.z] if episode.goal_position else [])
    return max(heights) - min(heights) > LEVEL_M


def _is_sparse(episode: Episode) -> bool:
    points = np.array([(p.x, p.y, p.z) for p in episode.reference_path or ()])
    return len(points) > 1 and float(np.linalg.norm(np.diff(points, axis=0), axis=1).max()) > SPARSE_M


def _reference_ends_elsewhere(episode: Episode) -> bool:
    path, goal = episode.reference_path, episode.goal_position
    return bool(path and goal and distance(path[-1], goal) > FAR_M)


def _waypoints_lead_elsewhere(episode: Episode) -> bool:
    waypoints, goal = episode.origin.waypoints if episode.origin else None, episode.goal_position
    if not waypoints or not goal:
        return False
    ends = (waypoints[0], episode.start_position), (waypoints[-1], goal)
    return any(distance(a, b) > NEAR_M for a, b in ends)
