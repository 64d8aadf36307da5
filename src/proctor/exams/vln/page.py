"""What the report's page shows of navigation only: distances to the goal and plans of scenes."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from proctor.core.errors import UserError
from proctor.core.geometry import path_length
from proctor.core.types import Array
from proctor.exams.names import AnyExam
from proctor.exams.page import EpisodeMap, Eye, JudgedEpisode, KeyFrames, Page, ShownRun, flat_cm, path_data
from proctor.exams.results import distance_label
from proctor.exams.vln.episode import DEFAULT_SUCCESS_THRESHOLD_M, Episode
from proctor.exams.vln.goal_distances import goal_distances
from proctor.exams.vln.trajectory_plot import save_trajectory_png
from proctor.exams.vln.verdict import goal_distance
from proctor.plots.figure import data_uri
from proctor.plots.plan import draw_plan
from proctor.scenes.scene import Scene

PLAN_WIDTH_PX, SMALL_PLAN_WIDTH_PX, MANY_SCENES = 900, 560, 24
"""Where there are many scenes, their plans are drawn smaller: they take most of the time."""
LETTERS = "SFLR"  # by action: STOP, FORWARD, LEFT, RIGHT


def _small_camera(options: Mapping[str, Any], width_px: int) -> dict[str, Any]:
    """Return the options of the run with a small camera and nothing else to look with."""
    width, height = options.get("width", 640), options.get("height", 480)
    scale = min(1.0, width_px / width)
    return {
        **options,
        "width": round(width * scale),
        "height": max(1, round(height * scale)),
        "sensors": ["rgb"],
    }


class VlnPage(Page):
    """The page of navigation; each scene's plan is drawn once."""

    scripts = ("vln.js",)
    scores = (
        *("success", "spl", "ndtw", "navigation_error"),
        *("oracle_success", "success_at_0.2m", "collisions"),
    )
    titles: ClassVar[Mapping[str, str]] = {
        "success": "Success rate",
        "navigation_error": "Navigation error",
        "oracle_success": "Oracle success",
        "success_at_0.2m": "Success within 0.2 m",
        "collisions": "Bumps per episode",
    }
    eyes: ClassVar[Mapping[str, Eye]] = {"embedded": Eye(itemgetter("rgb"), "position", _small_camera)}

    def __init__(
        self, exam: type[AnyExam], judged: Sequence[JudgedEpisode], runs: Sequence[ShownRun]
    ) -> None:
        super().__init__(exam, judged, runs)
        scenes = {each.episode.scene_config_path for each in judged if each.episode is not None}
        self._width_px = PLAN_WIDTH_PX if len(scenes) <= MANY_SCENES else SMALL_PLAN_WIDTH_PX
        self._plans: list[dict[str, Any]] = []
        self._numbers: dict[tuple[str, float], int | None] = {}
        self._distances_m: dict[tuple[int, str], Array | None] = {}

    @classmethod
    def episode_map(cls, episode: Episode, state: Any, *, width_px: int) -> EpisodeMap:
        """Return the plan of the floor, with the goal."""
        empty = super().episode_map(episode, state, width_px=width_px)
        if episode.scene_config_path is None:
            return empty
        floor_z = round(episode.start_position.z, 1)
        plan = draw_plan(Scene.load(Path(episode.scene_config_path)), width_px=width_px, floor_z=floor_z)
        return empty._replace(plan=plan, goal=episode.goal_position)

    def extras(self) -> dict[str, Any]:
        """Return the plans."""
        return {"plans": self._plans}

    def episode(self, judged: JudgedEpisode) -> dict[str, Any]:
        """Return goal, reference and plan."""
        episode: Episode | None = judged.episode
        if episode is None:
            return {}
        said: dict[str, Any] = {"level": episode.level}
        if episode.goal_position is not None:
            said |= {"goal": flat_cm([episode.goal_position]), "near": self._threshold_m(judged)}
        if episode.reference_path:
            length_m = path_length(np.array([(p.x, p.y, p.z) for p in episode.reference_path]))
            said |= {"ref": flat_cm(episode.reference_path), "length": round(length_m, 2)}
        distances_m = self._goal_distances(judged)
        if distances_m is not None:
            said["far"] = round(float(distances_m[0]), 2)
        said["plan"] = self._plan(episode)
        return said

    def result(self, judged: JudgedEpisode) -> dict[str, Any]:
        """Return path, actions and distances to the goal."""
        result = judged.result
        actions = [LETTERS[a] if isinstance(a, int) and 0 <= a < 4 else "?" for a in result.actions]
        said = path_data(result) | {
            "act": "".join(actions),
            "by": distance_label(result.distance),
            "endBy": goal_distance(result).label,
        }
        distances_m = self._goal_distances(judged)
        if distances_m is not None:
            said["d"] = np.rint(distances_m * 100).astype(int).tolist()
        return said

    def draw(self, judged: JudgedEpisode, file: Path, frames: Callable[[int], KeyFrames]) -> None:
        """Draw the path on the plan."""
        threshold_m = self._threshold_m(judged)
        save_trajectory_png(judged.result, judged.episode, file, success_threshold=threshold_m)

    def _threshold_m(self, judged: JudgedEpisode) -> float:
        own_m = None if judged.episode is None else judged.episode.success_threshold
        if own_m is not None:
            return float(own_m)
        given = self.runs[judged.run].identity.get("success_threshold_m")
        return float(given) if isinstance(given, int | float) else DEFAULT_SUCCESS_THRESHOLD_M

    def _goal_distances(self, judged: JudgedEpisode) -> Array | None:
        key = judged.run, judged.result.episode_id
        if key not in self._distances_m:
            known = judged.episode is not None and judged.result.trajectory
            self._distances_m[key] = goal_distances(judged.result, judged.episode) if known else None
        return self._distances_m[key]

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
            plan = draw_plan(
                Scene.load(Path(scene_path)), width_px=self._width_px, floor_z=floor_z, names=False
            )
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
