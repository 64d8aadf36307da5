"""What the report's page shows of navigation only: paths, distances and plans of scenes."""

from __future__ import annotations

import io
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from proctor.core.errors import UserError
from proctor.core.geometry import path_length
from proctor.core.types import Vector3
from proctor.exams.results import EpisodeResult
from proctor.exams.vln.episode import Episode
from proctor.exams.vln.goal_distances import goal_distances
from proctor.exams.vln.verdict import diagnose
from proctor.plots.data_uri import data_uri
from proctor.plots.plan import draw_plan
from proctor.report.progress import OnProgress, tracked
from proctor.report.run_record import RunRecord
from proctor.report.verdict import Verdict

PLAN_WIDTH_PX, SMALL_PLAN_WIDTH_PX, MANY_SCENES = 900, 560, 24
"""Where there are many scenes, their plans are drawn smaller: they take most of the time."""
LETTERS = "SFLR"
"""By action: STOP, FORWARD, LEFT, RIGHT."""


def judge_vln(runs: Sequence[RunRecord], on_progress: OnProgress | None = None) -> list[Verdict]:
    """Diagnose every episode of every run, in the order of runs and episodes."""
    found: dict[tuple[int, str], Verdict] = {}
    asked = [(index, result) for index, run in enumerate(runs) for result in run.results.episodes]

    def place(item: tuple[int, EpisodeResult]) -> tuple[str, str]:
        return item[1].scene_id, item[1].episode_id

    in_order = sorted(asked, key=place)  # so that maps and ways to a goal are found once
    for index, result in tracked(in_order, "diagnosing", on_progress):
        episode = runs[index].episodes.get(result.episode_id)
        distances_m = None if episode is None else goal_distances(result, episode)
        diagnosis = diagnose(result, episode, goal_distances_m=distances_m)
        found[index, result.episode_id] = Verdict(index, result, episode, diagnosis, distances_m)
    return [found[index, result.episode_id] for index, result in asked]


class VlnPage:
    """The parts of the page's data that only navigation has; each scene's plan is drawn once."""

    def __init__(self, verdicts: Sequence[Verdict]) -> None:
        scenes = {v.episode.scene_config_path for v in verdicts if v.episode is not None}
        self._width_px = PLAN_WIDTH_PX if len(scenes) <= MANY_SCENES else SMALL_PLAN_WIDTH_PX
        self._plans: list[dict[str, Any]] = []
        self._numbers: dict[tuple[str, float], int | None] = {}
        self.problems: list[str] = []

    @property
    def extras(self) -> dict[str, Any]:
        """What belongs to no single episode."""
        return {"plans": self._plans}

    def episode(self, verdict: Verdict, run: RunRecord) -> dict[str, Any]:
        """Return what was asked."""
        result, episode = verdict.result, verdict.episode
        said: dict[str, Any] = {"start": _cm([result.trajectory[0]]) if result.trajectory else []}
        if episode is None:
            return said
        said["level"] = episode.level
        if episode.goal_position is not None:
            own = episode.success_threshold
            said |= {"goal": _cm([episode.goal_position]), "near": own or run.success_threshold_m}
        if episode.reference_path:
            length_m = path_length(np.array([(p.x, p.y, p.z) for p in episode.reference_path]))
            said |= {"ref": _cm(episode.reference_path), "length": round(length_m, 2)}
        if verdict.goal_distances_m is not None:
            said["far"] = round(float(verdict.goal_distances_m[0]), 2)
        said["plan"] = self._plan(episode)
        return said

    def result(self, verdict: Verdict) -> dict[str, Any]:
        """Return what was done."""
        result = verdict.result
        said: dict[str, Any] = {
            "xy": _steps(_cm(result.trajectory)),
            "yaw": [round(math.degrees(yaw)) for yaw in result.headings],
            "act": "".join(LETTERS[a] if isinstance(a, int) and 0 <= a < 4 else "?" for a in result.actions),
        }
        if verdict.goal_distances_m is not None:
            said["d"] = np.rint(verdict.goal_distances_m * 100).astype(int).tolist()
        return said

    def _plan(self, episode: Episode) -> int | None:
        """Return which plan shows an episode's floor; None if there is none."""
        if episode.scene_config_path is None:
            return None
        key = (episode.scene_config_path, round(episode.start_position.z, 1))
        if key not in self._numbers:
            self._numbers[key] = self._draw(*key)
        return self._numbers[key]

    def _draw(self, scene_path: str, floor_z: float) -> int | None:
        try:
            plan = draw_plan(Path(scene_path), width_px=self._width_px, floor_z=floor_z, names=False)
        except UserError as error:
            self.problems.append(f"No plan: {error}")
            return None
        stream = io.BytesIO()
        plan.image.convert("RGB").save(stream, "WEBP", quality=82, method=4)
        (low_x, low_y), (high_x, high_y) = plan.low_xy, plan.high_xy
        box = [round(value, 3) for value in (low_x, low_y, high_x, high_y)]
        rooms = [[room.text, *(round(v, 2) for v in (room.x, room.y, room.height_m))] for room in plan.rooms]
        self._plans.append({"image": data_uri("webp", stream.getvalue()), "box": box, "rooms": rooms})
        return len(self._plans) - 1


def _cm(points: Iterable[Vector3]) -> list[int]:
    """Return x and y of points in turn, in centimetres."""
    return [round(100 * value) for point in points for value in (point.x, point.y)]


def _steps(flat: list[int]) -> list[int]:
    """Return the first point, then from each point to the next: short numbers make a small file."""
    return flat[:2] + [after - before for before, after in zip(flat, flat[2:], strict=False)]
