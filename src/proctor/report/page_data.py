"""What the report's page shows, as one JSON document: small enough for thousands of episodes."""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from proctor import __version__
from proctor.core.errors import UserError
from proctor.core.geometry import path_length
from proctor.core.results import EpisodeResult
from proctor.core.types import Array, Vector3
from proctor.episodes.vln import Episode
from proctor.metrics.navigation import DEFINITION
from proctor.report.diagnosis import Diagnosis, diagnose
from proctor.report.fault_words import fault_line, fault_words
from proctor.report.goal_distances import goal_distances
from proctor.report.key_frames import KeyFrames
from proctor.report.latency import latency_of
from proctor.report.plan import draw_plan
from proctor.report.run_record import RunRecord

PLAN_WIDTH_PX, SMALL_PLAN_WIDTH_PX, MANY_SCENES = 900, 560, 24
"""Where there are many scenes, their plans are drawn smaller: they take most of the time."""
LETTERS = "SFLR"
"""By action: STOP, FORWARD, LEFT, RIGHT."""
DIGITS = 4


class Verdict(NamedTuple):
    """An episode of a run with what was found out about it."""

    run: int
    """Index of the run."""
    result: EpisodeResult
    episode: Episode | None
    diagnosis: Diagnosis
    goal_distances_m: Array | None
    """At each point of the trajectory."""


def judge(runs: Sequence[RunRecord]) -> list[Verdict]:
    """Diagnose every episode of every run, in the order of runs and episodes."""
    found: dict[tuple[int, str], Verdict] = {}
    asked = [(index, result) for index, run in enumerate(runs) for result in run.results.episodes]

    def place(item: tuple[int, EpisodeResult]) -> tuple[str, str]:
        return item[1].scene_id, item[1].episode_id

    for index, result in sorted(asked, key=place):  # so that maps and ways to a goal are found once
        episode = runs[index].episodes.get(result.episode_id)
        distances_m = None if episode is None else goal_distances(result, episode)
        diagnosis = diagnose(result, episode, goal_distances_m=distances_m)
        found[index, result.episode_id] = Verdict(index, result, episode, diagnosis, distances_m)
    return [found[index, result.episode_id] for index, result in asked]


def page_data(
    runs: Sequence[RunRecord],
    verdicts: Sequence[Verdict],
    frames: Mapping[tuple[int, str], KeyFrames],
    notices: Sequence[str],
) -> dict[str, Any]:
    """Return the document that the page draws."""
    episodes: dict[tuple[str, str], int] = {}
    asked: list[dict[str, Any]] = []
    scenes = {v.episode.scene_config_path for v in verdicts if v.episode is not None}
    plans = _Plans(PLAN_WIDTH_PX if len(scenes) <= MANY_SCENES else SMALL_PLAN_WIDTH_PX)
    results = []
    for verdict in verdicts:
        run = runs[verdict.run]
        key = (str(run.identity.get("dataset_sha256", "")), verdict.result.episode_id)
        if key not in episodes:
            episodes[key] = len(asked)
            asked.append(_episode(verdict, run, plans))
        results.append(_result(verdict, episodes[key], frames.get((verdict.run, verdict.result.episode_id))))
    return {
        "proctor": __version__,
        "definition": DEFINITION,
        "exam": _exam(runs),
        "notices": [*notices, *_comparability(runs), *plans.problems],
        "runs": [_run(run) for run in runs],
        "plans": plans.drawn,
        "episodes": asked,
        "results": results,
    }


def _exam(runs: Sequence[RunRecord]) -> str:
    return ", ".join(dict.fromkeys(str(run.identity.get("dataset", "?")) for run in runs))


def _comparability(runs: Sequence[RunRecord]) -> list[str]:
    """Return what speaks against comparing the runs with each other."""
    said = []
    if len({run.identity.get("dataset_sha256") for run in runs}) > 1:
        said.append("The runs are of different exams: their numbers cannot be compared.")
    elif len({frozenset(result.episode_id for result in run.results.episodes) for run in runs}) > 1:
        said.append("The runs did not do the same episodes: compare their numbers with care.")
    if len({run.success_threshold_m for run in runs}) > 1:
        said.append("The runs have different success thresholds.")
    return said


def _run(run: RunRecord) -> dict[str, Any]:
    summary, identity = run.results.summary, run.identity
    latency = latency_of(run.results.episodes)
    return {
        "name": run.name,
        "folder": str(run.folder),
        "privileged": bool(identity.get("privileged")),
        "env": str(identity.get("env", "?")),
        "seed": identity.get("seed"),
        "version": str(identity.get("proctor", "?")),
        "options": {key: identity.get(key) for key in ("env_options", "policy_options") if identity.get(key)},
        "packages": run.manifest.get("packages", {}),
        "expected": run.expected,
        "distance": summary.distance,
        "bounds": [summary.success_rate_bounds.low, summary.success_rate_bounds.high],
        "faults": summary.error_counts,
        "metrics": {
            name: [round(x, DIGITS) for x in (value.mean, value.low, value.high)] + [value.n]
            for name, value in summary.metrics.items()
        },
        "latency": latency and [_ms(latency.p50_ms), _ms(latency.p95_ms), _ms(latency.p99_ms), latency.n],
        "notices": run.notices,
    }


def _episode(verdict: Verdict, run: RunRecord, plans: _Plans) -> dict[str, Any]:
    result, episode = verdict.result, verdict.episode
    said: dict[str, Any] = {
        "id": result.episode_id,
        "scene": result.scene_id,
        "text": result.instruction,
        "start": _cm([result.trajectory[0]]) if result.trajectory else [],
    }
    if episode is None:
        return said
    said |= {"language": episode.language, "level": episode.level, "split": episode.split}
    said["limit"] = episode.step_limit
    if episode.goal_position is not None:
        own = episode.success_threshold
        said |= {"goal": _cm([episode.goal_position]), "near": own or run.success_threshold_m}
    if episode.reference_path:
        length_m = path_length(np.array([(p.x, p.y, p.z) for p in episode.reference_path]))
        said |= {"ref": _cm(episode.reference_path), "length": round(length_m, 2)}
    if verdict.goal_distances_m is not None:
        said["far"] = round(float(verdict.goal_distances_m[0]), 2)
    said["plan"] = plans.number(episode)
    return said


def _result(verdict: Verdict, episode: int, frames: KeyFrames | None) -> dict[str, Any]:
    result, diagnosis = verdict.result, verdict.diagnosis
    said: dict[str, Any] = {
        "e": episode,
        "r": verdict.run,
        "kind": diagnosis.kind,
        "step": diagnosis.step,
        "say": diagnosis.sentence,
        "end": round(result.final_distance_to_goal, 2),
        "xy": _steps(_cm(result.trajectory)),
        "yaw": [round(math.degrees(yaw)) for yaw in result.headings],
        "act": "".join(LETTERS[a] if isinstance(a, int) and 0 <= a < 4 else "?" for a in result.actions),
        "bump": result.collision_steps,
        "m": {name: round(value, DIGITS) for name, value in result.metrics.items()},
        "by": result.distance,
    }
    if verdict.goal_distances_m is not None:
        said["d"] = np.rint(verdict.goal_distances_m * 100).astype(int).tolist()
    latency = latency_of([result])
    if latency is not None:
        said["ms"] = [_ms(latency.p50_ms), _ms(latency.worst_ms)]
    if result.error is not None:
        said["error"] = {
            "side": result.error.side,
            "kind": result.error.kind,
            "words": fault_words(result.error.kind),
            "line": fault_line(result.error),
            "message": result.error.message,
            "trace": result.error.traceback,
        }
    if frames is not None:
        said["frames"] = [[step, _data_uri("jpeg", picture)] for step, picture in frames.pictures]
        said["framed"] = frames.source
        said["framing"] = frames.note
    return said


class _Plans:
    """The plans of all scenes, each drawn once."""

    def __init__(self, width_px: int) -> None:
        self._width_px = width_px
        self.drawn: list[dict[str, Any]] = []
        self.problems: list[str] = []
        self._numbers: dict[tuple[str, float], int | None] = {}

    def number(self, episode: Episode) -> int | None:
        """Return which plan shows an episode's floor; None if there is none."""
        if episode.scene_config_path is None:
            return None
        key = (episode.scene_config_path, round(episode.start_position.z, 1))
        if key not in self._numbers:
            self._numbers[key] = self._draw(*key)
        return self._numbers[key]

    def _draw(self, scene_path: str, floor_z: float) -> int | None:
        try:
            plan = draw_plan(Path(scene_path), width_px=self._width_px, floor_z=floor_z)
        except UserError as error:
            self.problems.append(f"No plan: {error}")
            return None
        stream = io.BytesIO()
        plan.image.convert("RGB").save(stream, "WEBP", quality=82, method=4)
        (low_x, low_y), (high_x, high_y) = plan.low_xy, plan.high_xy
        box = [round(value, 3) for value in (low_x, low_y, high_x, high_y)]
        self.drawn.append({"image": _data_uri("webp", stream.getvalue()), "box": box})
        return len(self.drawn) - 1


def _ms(value: float) -> float:
    return round(value, 2)


def _data_uri(kind: str, content: bytes) -> str:
    return f"data:image/{kind};base64,{base64.b64encode(content).decode()}"


def _cm(points: Iterable[Vector3]) -> list[int]:
    """Return x and y of points in turn, in centimetres."""
    return [round(100 * value) for point in points for value in (point.x, point.y)]


def _steps(flat: list[int]) -> list[int]:
    """Return the first point, then from each point to the next: short numbers make a small file."""
    return flat[:2] + [after - before for before, after in zip(flat, flat[2:], strict=False)]
