"""The dataset doctor: everything that is odd about a dataset at once, and a corrected copy of it."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from proctor.core.documents import write_json
from proctor.core.errors import InvalidFile, UnknownName, UserError
from proctor.core.types import Vector3
from proctor.episodes.checks import check_episodes
from proctor.episodes.datasets import locate_scenes
from proctor.episodes.findings import FILTERS, Findings
from proctor.episodes.gt import gt_name, stem_of
from proctor.episodes.patient import Patient
from proctor.episodes.vln import Episode
from proctor.evaluation.vln_task import is_reachable
from proctor.navigation.grid_map import MARGIN_M, GridMap, map_of_scene


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
        path: The file or folder: native, a suite, R2R-CE or RxR-CE.
        scenes: A folder with its scenes. With scene files, starts, goals and ways are checked on their maps.

    Returns:
        The dataset, its `findings` and what `write_fixed` needs.

    Raises:
        InvalidFile: It cannot even be opened as a list of episodes.
    """
    if scenes is not None and not scenes.is_dir():
        raise UserError(f"{scenes} is no folder; scenes are looked for in a folder")
    patient = Patient(path)
    _find_scenes(patient, scenes)
    check_episodes(patient.episodes, patient.findings)
    _check_maps(patient)
    return patient


def write_fixed(patient: Patient, out: Path, *, drop: Sequence[str] = ()) -> Fixed:
    """Write a corrected copy in the same format, its gt, and a report of what was changed.

    Args:
        patient: What `examine` returned.
        out: The new file; the gt and the report get names beside it.
        drop: Names of filters: their episodes are left out as well.

    Raises:
        UserError: A file exists already, or no episode would be left.
        UnknownName: There is no such filter.
    """
    for name in drop:
        if name not in FILTERS:
            raise UnknownName("filter", name, FILTERS)
    report = out.with_name(f"{stem_of(out)}.report.json")
    for file in (out, gt_name(out), report):
        if file.exists():
            raise UserError(f"{file} exists already; give --fix a new name")
    dropped = dict(patient.findings.dropped)
    for name in drop:
        for index in patient.findings.filters.get(name, ()):
            dropped.setdefault(index, f"{name}: {FILTERS[name]}")
    kept = [index for index in range(len(patient.records)) if index not in dropped]
    if not kept:
        raise UserError(f"{patient.file}: no episode would be left")
    records = [_record(patient, index, out) for index in kept]
    out.parent.mkdir(parents=True, exist_ok=True)
    write_json(out, {**patient.document, "episodes": records})
    if patient.gt is not None:
        ids = {str(record["episode_id"]) for record in records}
        write_json(gt_name(out), {key: entry for key, entry in patient.gt.items() if key in ids})
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
    write_json(report, content)
    return Fixed(out, report, len(kept), len(dropped), len(patient.changes))


def _record(patient: Patient, index: int, out: Path) -> dict[str, Any]:
    """Return an episode for a copy elsewhere, from where its scene must still be found."""
    record: dict[str, Any] = patient.records[index]
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
    malformed = []
    for index, episode in list(patient.episodes.items()):
        try:
            (patient.episodes[index],) = locate_scenes([episode], patient.file, scenes)
        except InvalidFile as error:
            malformed.append((index, f"episodes[{index}].scene_config_path", error.problem))
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
    if scenes is None:
        findings.add("warning", "no-scene", text, episodes=missing)
    else:
        findings.add("error", "no-scene", text, episodes=missing, remedy="dropped")


def _scene(episode: Episode) -> Path | None:
    path = Path(episode.scene_config_path) if episode.scene_config_path else None
    return path if path and path.is_file() else None


def _check_maps(patient: Patient) -> None:
    by_scene: dict[Path, list[int]] = defaultdict(list)
    for index, episode in patient.episodes.items():
        scene = _scene(episode)
        if scene is not None:
            by_scene[scene].append(index)
    off_map: list[int] = []
    unreachable: list[int] = []
    for scene, indices in by_scene.items():
        try:
            for index in indices:
                verdict = _verdict(scene, patient.episodes[index])
                off_map += [index] if verdict == "off-map" else []
                unreachable += [index] if verdict == "unreachable" else []
        except UserError as error:
            patient.findings.add("error", "scene", str(error), episodes=indices)
    _add_map_findings(patient.findings, sorted(off_map), sorted(unreachable))


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


def _add_map_findings(findings: Findings, off_map: list[int], unreachable: list[int]) -> None:
    text = "start or goal inside of something, or beyond the map"
    findings.add("error", "off-map", text, episodes=off_map, remedy="dropped")
    text = "the map shows no way from start to goal"
    findings.add("error", "unreachable", text, episodes=unreachable, remedy="dropped")
