"""The dataset doctor: everything that is odd about a dataset at once, and a corrected copy of it."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from proctor.core.documents import write_json
from proctor.core.errors import MissingDependency, UnknownName, UserError
from proctor.core.geometry import distance
from proctor.core.registry import build
from proctor.core.types import Vector3
from proctor.exams.checked_dataset import Patient
from proctor.exams.datasets import scene_locator
from proctor.exams.findings import FILTERS, Findings
from proctor.exams.pick_place.dataset_warnings import check_picks
from proctor.exams.pick_place.episode import TASK
from proctor.exams.pick_place.files import located, relative_assets
from proctor.exams.vln.episode import Episode
from proctor.exams.vln.episode_checks import check_episodes
from proctor.exams.vln.exam import is_reachable, shortest_known_m
from proctor.exams.vln.gt import gt_name, stem_of
from proctor.navigation.maps.grid_map import BAND_M, MARGIN_M, ROBOT, GridMap, floor_of_scene, map_of_scene
from proctor.scenes.filling_hulls import REMEDY, filling_hulls
from proctor.scenes.scene_config import load_scene, missing_file_notes

if TYPE_CHECKING:
    from proctor.envs.embedded import VLNEnv


class Fixed(NamedTuple):
    """A corrected copy: its files, and how many episodes it holds and lacks."""

    file: Path
    report: Path
    kept: int
    dropped: int
    changes: int


def examine(path: Path, *, scenes: Path | None = None) -> Patient:
    """Look at all of a dataset, however broken.

    Args:
        path: The file or folder: native (of any task), a suite, R2R-CE or RxR-CE.
        scenes: A folder with its scenes. With scene files, starts, goals and ways are checked on their maps.

    Returns:
        The dataset, its `findings` and what `write_fixed` needs.

    Raises:
        InvalidFile: It cannot even be opened as a list of episodes.
    """
    if scenes is not None and not scenes.is_dir():
        raise UserError(f"{scenes} is no folder; scenes are looked for in a folder")
    patient = Patient(path)
    if patient.task == TASK:
        check_picks(patient.picks, patient.findings)
        _check_tables(patient, scenes)
        return patient
    _find_scenes(patient, scenes)
    check_episodes(patient.episodes, patient.findings, shortest_m=_shortest_m)
    _check_maps(patient)
    return patient


def write_fixed(patient: Patient, out: Path, *, drop: Sequence[str] = ()) -> Fixed:
    """Write a corrected copy in the same format, its gt, and a report of what was changed.

    Args:
        patient: What `examine` returned.
        out: The new file; the gt and the report get names beside it.
        drop: Names of filters: their episodes are left out as well.

    Raises:
        UserError: A file exists already or cannot be written, no episode would be left, or the dataset is
            beyond mending.
        UnknownName: There is no such filter.
    """
    if patient.incurable:
        raise UserError(f"{patient.file}: no corrected copy can be written: {patient.incurable}")
    report = out.with_name(f"{stem_of(out)}.report.json")
    for file in (out, gt_name(out), report):
        if file.exists():
            raise UserError(f"{file} exists already; give --fix a new name")
    dropped = _dropped(patient, drop)
    kept = [index for index in range(len(patient.records)) if index not in dropped]
    if not kept:
        raise UserError(f"{patient.file}: no episode would be left")
    records = [_record(patient, index, out) for index in kept]
    left_out = [
        {"place": f"episodes[{i}]", "episode_id": _id(patient, i), "reason": dropped[i]}
        for i in sorted(dropped)
    ]
    content = {
        "input": str(patient.file.resolve()),
        "output": str(out.resolve()),
        "episodes": len(kept),
        "changed": patient.changes,
        "dropped": left_out,
        "findings": patient.findings.items,
        "filters": {name: len(indices) for name, indices in patient.findings.filters.items()},
    }
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        write_json(out, {**patient.document, "episodes": records})
        if patient.gt is not None:
            ids = {str(record["episode_id"]) for record in records}
            write_json(gt_name(out), {key: entry for key, entry in patient.gt.items() if key in ids})
        write_json(report, content)
    except OSError as error:
        raise UserError(f"cannot write to {out}: {error.strerror}") from error
    return Fixed(out, report, len(kept), len(dropped), len(patient.changes))


def _dropped(patient: Patient, drop: Sequence[str]) -> dict[int, str]:
    """Return the episodes that the copy goes without, and why."""
    dropped = dict(patient.findings.dropped)
    for name in drop:
        if name not in FILTERS:
            raise UnknownName("filter", name, FILTERS)
        for index in patient.findings.filters.get(name, ()):
            dropped.setdefault(index, f"{name}: {FILTERS[name]}")
    return dropped


def _record(patient: Patient, index: int, out: Path) -> dict[str, Any]:
    """Return an episode for a copy elsewhere, from where its scene and things must still be found."""
    record: dict[str, Any] = patient.records[index]
    if patient.task == TASK:
        pick = located(patient.picks[index], patient.file, None)
        assets = {"assets_path": relative_assets(pick, out.parent)}
        return record if assets == {"assets_path": record.get("assets_path")} else record | assets
    scene = patient.episodes[index].scene_config_path
    if patient.format == "native" and scene is not None:
        return {**record, "scene_config_path": os.path.relpath(scene, out.resolve().parent)}
    return record


def _id(patient: Patient, index: int) -> Any:
    record = patient.records[index]
    return record.get("episode_id") if isinstance(record, dict) else None


def _find_scenes(patient: Patient, scenes: Path | None) -> None:
    """Look for the scene files, and complain of those that are missing."""
    findings = patient.findings
    malformed, locate = [], scene_locator(patient.file, scenes)
    for index, episode in list(patient.episodes.items()):
        try:
            patient.episodes[index] = locate(episode)
        except ValueError as error:
            malformed.append((index, f"episodes[{index}].scene_config_path", str(error)))
            del patient.episodes[index]
    patient.add_malformed(malformed)
    missing = [index for index, episode in patient.episodes.items() if _scene(episode) is None]
    names = list(dict.fromkeys(patient.episodes[index].scene_id for index in missing))
    if scenes is None and patient.format != "native":
        text = "no --scenes given: maps are not checked, and distances would be Euclidean"
        findings.add("note", "no-scene", text, episodes=missing)
        return
    some = ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
    text = f"no file for {len(names)} scenes: {some}"
    if scenes is None and len(missing) == len(patient.episodes):
        findings.add("warning", "no-scene", f"{text}; only envs without walls can run it", episodes=missing)
    else:
        findings.add("error", "no-scene", text, episodes=missing, remedy="dropped")


def _shortest_m(episode: Episode) -> float:
    """Return how far it is from start to goal; straight if the scene is broken, which is told elsewhere."""
    try:
        return shortest_known_m(episode)
    except UserError:
        return distance(episode.start_position, episode.goal)


def _scene(episode: Episode) -> Path | None:
    path = Path(episode.scene_config_path) if episode.scene_config_path else None
    return path if path and path.is_file() else None


def _check_maps(patient: Patient) -> None:
    by_scene: dict[Path, list[int]] = defaultdict(list)
    for index, episode in patient.episodes.items():
        scene = _scene(episode)
        if scene is not None:
            by_scene[scene].append(index)
    found: dict[str, list[int]] = defaultdict(list)
    with closing(build("env", "embedded", {"sensors": []})) as env:
        for scene, indices in by_scene.items():
            try:
                for note in missing_file_notes(scene):
                    patient.findings.add("warning", "missing-file", note, episodes=indices)
                for index in indices:
                    found[_verdict(scene, patient.episodes[index])].append(index)
            except UserError as error:
                patient.findings.add("error", "scene", str(error), episodes=indices, remedy="dropped")
                continue
            off_map = set(found["off-map"])
            blocked = _refused(env, {i: patient.episodes[i] for i in indices if i not in off_map})
            found["start-blocked"] += blocked
            end_inside = off_map.union(blocked)
            _check_hulls(patient, scene, [index for index in indices if index in end_inside])
    _add_map_findings(patient.findings, {kind: sorted(indices) for kind, indices in found.items()})


def _check_hulls(patient: Patient, scene: Path, indices: Sequence[int]) -> None:
    """Say which meshes block the ends of episodes only by their convex hulls: walls in one piece."""
    blocked: dict[str, list[int]] = defaultdict(list)
    for index in indices:
        episode = patient.episodes[index]
        for point in filter(None, (episode.start_position, episode.goal_position)):
            floor_z = floor_of_scene(scene, point)
            band_m = (floor_z + BAND_M[0], floor_z + BAND_M[1])
            xy = (point.x, point.y)
            for name in filling_hulls(load_scene(scene), scene, xy, radius_m=ROBOT.radius_m, band_m=band_m):
                if index not in blocked[name]:
                    blocked[name].append(index)
    for name, inside in blocked.items():
        text = f"{scene.name}: starts or goals are free, but inside of the convex hull of '{name}': {REMEDY}"
        patient.findings.add("error", "inside-hull", text, episodes=inside)


def _check_tables(patient: Patient, assets: Path | None) -> None:
    """Put every episode of pick-and-place up, if there is a world to put it up in."""
    found: dict[str, list[int]] = defaultdict(list)
    told: dict[str, list[int]] = defaultdict(list)
    try:
        with closing(build("env", "tabletop", {"sensors": []})) as env:
            for index, pick in patient.picks.items():
                try:
                    for note in env.check([located(pick, patient.file, assets)]) or ():
                        told[note.removeprefix(f"episode '{pick.episode_id}': ")].append(index)
                except MissingDependency:
                    raise
                except UserError as error:
                    found[str(error).removeprefix(f"episode '{pick.episode_id}': ")].append(index)
    except MissingDependency as error:
        patient.findings.add("note", "no-world", f"things were not put up: {error}", episodes=patient.picks)
        return
    for problem, indices in found.items():
        patient.findings.add("error", "cannot-start", problem, episodes=indices, remedy="dropped")
    for note, indices in told.items():
        patient.findings.add("note", "put-up", note, episodes=indices)


def _refused(env: VLNEnv, episodes: dict[int, Episode]) -> list[int]:
    """Return the indices of the episodes of one scene that an env would not run."""
    try:
        # By object: the same id may be there twice.
        refused = {id(episode) for episode, _ in env.refused(list(episodes.values()))}
    except UserError:  # there is no world at all
        return list(episodes)
    return [index for index, episode in episodes.items() if id(episode) in refused]


def _verdict(scene: Path, episode: Episode) -> Literal["off-map", "unreachable", ""]:
    """Tell what is wrong with the ends of an episode on the maps of their floors."""
    start, goal = episode.start_position, episode.goal_position
    ends = [start] if goal is None else [start, goal]
    if any(_is_off(map_of_scene(scene, point), point) for point in ends):
        return "off-map"
    if goal is None:
        return ""
    return "" if is_reachable(episode) else "unreachable"


def _is_off(grid: GridMap, point: Vector3) -> bool:
    """Tell whether a point lies inside of something, or beyond the map and its margin."""
    rows, columns = grid.occupied.shape
    x, y = grid.origin_world
    width_m, depth_m = columns * grid.resolution_m, rows * grid.resolution_m
    beyond = not (
        x - MARGIN_M <= point.x <= x + width_m + MARGIN_M
        and y - MARGIN_M <= point.y <= y + depth_m + MARGIN_M
    )
    return bool(grid.occupied.any()) and (beyond or grid.clearance_at(point.x, point.y) <= 0)


def _add_map_findings(findings: Findings, found: dict[str, list[int]]) -> None:
    texts = {
        "off-map": "start or goal inside of something, or beyond the map",
        "start-blocked": "the robot cannot stand at the start: the embedded world refuses it",
        "unreachable": "the map shows no way from start to goal",
    }
    for kind, text in texts.items():
        findings.add("error", kind, text, episodes=found.get(kind, ()), remedy="dropped")
