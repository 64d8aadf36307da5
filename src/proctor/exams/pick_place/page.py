"""What the report shows of pick-and-place only: stages, paths of hand and object, tabletop, film strips."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from io import BytesIO
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from msgspec import UNSET
from PIL import Image

from proctor.core.errors import UserError
from proctor.core.types import Array, Observation, Vector3
from proctor.exams.names import AnyExam
from proctor.exams.page import EpisodeMap, Eye, JudgedEpisode, KeyFrames, Page
from proctor.exams.pick_place.episode import PickAndPlaceEpisode
from proctor.exams.pick_place.hand_views import (
    PHASE_COLORS,
    STAGES,
    Moment,
    Paths,
    draw_view,
    moments_of,
    plan_of,
    shapes_of,
    side_of,
)
from proctor.exams.pick_place.results import PickPlaceRecord, PickPlaceResult
from proctor.exams.pick_place.state import PickPlaceState
from proctor.exams.pick_place.verdict import verdict_of
from proctor.plots.figure import (
    DARK,
    GREY,
    add_legend,
    fit_height,
    image_of,
    new_figure,
    save_png,
    write_above,
)
from proctor.plots.trajectory import CROSS, DASHES, STAR

NOWHERE = "none: lift only"  # the target type of an episode that asks for no more than lifting

WIDTH_PX, MARGIN_PX, COLUMNS, GAP_PX = 1800, 14, 3, 12
FRAME_PX = (WIDTH_PX - 2 * MARGIN_PX - (COLUMNS - 1) * GAP_PX) // COLUMNS
"""How wide a picture of the head is shown."""
TITLE_PX, LINE_PX, LABEL_PX, BAND_PX = 30, 20, 19, 36
VIEW_PX, VIEW_HEIGHT_PX = (WIDTH_PX - 2 * MARGIN_PX - GAP_PX) // 2, 560
SOURCES = {
    "recorded": "The head's camera, recorded during the run.",
    "replayed": "The head's camera and, in the corner, the wrist's; drawn again from the recorded actions.",
    "none": "",
}


def _record(result: PickPlaceResult) -> PickPlaceRecord | None:
    """Return what the episode kept beyond its numbers; None if it never began."""
    record = result.pick_place
    return None if record is UNSET or not record.object_path or not result.trajectory else record


def _head_and_wrist(options: Mapping[str, Any], width_px: int) -> dict[str, Any]:
    """Return the options of the run with colour only. How large these pictures are, the episode says."""
    return {**options, "sensors": ["rgb_head", "rgb_wrist"]}


def _with_inset(view: Observation) -> Array:
    """Return what the head sees, and in a corner what the wrist sees: how the fingers hold an object."""
    head, wrist = Image.fromarray(view["rgb_head"]), Image.fromarray(view["rgb_wrist"])
    width = round(0.36 * head.width)
    size = width, round(width * wrist.height / wrist.width)
    edge = max(1, head.width // 200)
    at = edge, head.height - size[1] - edge
    head.paste((255, 255, 255), (0, at[1] - edge, size[0] + 2 * edge, head.height))
    head.paste(wrist.resize(size, Image.Resampling.LANCZOS), at)
    return np.asarray(head)


class PickPlacePage(Page):
    """The page of pick-and-place."""

    scripts = ("pick_place.js", "stages.js", "hand.js", "phases.js")
    styles = ("pick_place.css",)
    scores = (
        *("success", "completion_rate", "trajectory_similarity", "success_any_step"),
        *("time_to_success_s", "final_distance_m", "drops", "table_collisions"),
    )
    titles: ClassVar[Mapping[str, str]] = {
        "success": "Success rate",
        "completion_rate": "Completion rate",
        "trajectory_similarity": "Trajectory similarity",
        "success_any_step": "Success at any step",
        "time_to_success_s": "Time to success",
        "final_distance_m": "Distance at the end",
        "drops": "Drops per episode",
        "table_collisions": "Steps touching furniture",
    }
    eyes: ClassVar[Mapping[str, Eye]] = {"tabletop": Eye(_with_inset, "ee_position", _head_and_wrist)}
    replayed_steps = 2000

    @classmethod
    def episode_map(cls, episode: PickAndPlaceEpisode, state: PickPlaceState, *, width_px: int) -> EpisodeMap:
        """Return the tabletop, on which hand and object move."""
        places = [state.ee_position, state.object_position, state.target_position]
        points = np.array([place[:2] for place in places if place is not None])
        goal = None if state.target_position is None else Vector3.of(state.target_position)
        plan = plan_of(episode, points, width_px=width_px)
        tolerance_m = episode.task_goal.success_criteria.place_tolerance
        return EpisodeMap(plan, goal, tolerance_m, place="ee_position", object_place="object_position")

    @classmethod
    def step_text(cls, exam: type[AnyExam], action: Any, state: PickPlaceState) -> str:
        """Return the phase."""
        return f"{state.phase}, holding the object" if state.object_grasped else state.phase

    def episode(self, judged: JudgedEpisode) -> dict[str, Any]:
        """Return object, target and the outlines of what stands around."""
        record, episode = _record(judged.result), judged.episode
        said: dict[str, Any] = _asked(episode) if episode is not None else {}
        if record is None:
            return said
        side = side_of(record)
        said["side"] = [round(value, 4) for value in (*side.origin_xy, *side.along_xy)]
        said["sideways"] = side.label
        if record.target is not None:
            said["goal"] = [_mm(value) for value in record.target]
        if episode is not None:
            shapes, problems = shapes_of(episode, side)
            said["shapes"] = [
                {
                    "name": shape.name,
                    "big": shape.is_furniture,
                    "top": _flat_mm(shape.top),
                    "side": _flat_mm(shape.side),
                    "rgb": [round(255 * value) for value in shape.rgb],
                }
                for shape in shapes
            ]
            self.problems += [text for text in problems if text not in self.problems]
        return said

    def result(self, judged: JudgedEpisode) -> dict[str, Any]:
        """Return paths, phases and stages."""
        result, record = judged.result, _record(judged.result)
        said: dict[str, Any] = {"end": round(result.final_distance_to_goal, 4)}
        if record is None:
            return said
        moments = moments_of(result, record, judged.verdict.step)
        return said | {
            "hand": _steps_mm((point.x, point.y, point.z) for point in result.trajectory),
            "thing": _steps_mm(record.object_path),
            "base": _steps_mm((x, y) for x, y, _ in record.base_path),
            "yaw": [round(math.degrees(yaw)) for _, _, yaw in record.base_path],
            "grip": [round(10_000 * value) for value in record.gripper],
            "phase": "".join(phase[0] for phase in record.phases),
            "held": "".join(str(int(held)) for held in record.held),
            "moments": [[moment.step, moment.label] for moment in moments],
            # A success has been through all stages, also where there is nowhere to place an object.
            "got": 5 if result.success else sum(record.stages.get(name) is not None for name in STAGES),
            "stages": {name: step for name, step in record.stages.items() if step is not None},
        }

    def key_steps(self, judged: JudgedEpisode) -> list[int]:
        """Return the steps of the stages."""
        record = _record(judged.result)
        if record is None:
            return super().key_steps(judged)
        return [moment.step for moment in moments_of(judged.result, record, judged.verdict.step)]

    def draw(self, judged: JudgedEpisode, file: Path, frames: Callable[[int], KeyFrames]) -> None:
        """Draw a film strip and the path of the hand."""
        policy = self.runs[judged.run].name
        save_png(film_strip(judged.result, judged.episode, frames(FRAME_PX), policy=policy), file)


def _asked(episode: PickAndPlaceEpisode) -> dict[str, Any]:
    goal, location = episode.task_goal, episode.task_goal.target_location
    said: dict[str, Any] = {
        "object": goal.target_object.name if goal.target_object is not None else None,
        "target": location.type if location is not None else NOWHERE,
        "lift": goal.success_criteria.lift_height,
        "near": goal.success_criteria.place_tolerance,
        "period": episode.sim_params.control_period,
    }
    if location is not None:
        said["zone"] = location.radius
        said["into"] = location.object_name
    return said


def _mm(metres: float) -> int:
    return round(1000 * metres)


def _flat_mm(points: Array) -> list[int]:
    return [_mm(value) for point in points.tolist() for value in point]


def _steps_mm(points: Iterable[tuple[float, ...]]) -> list[int]:
    """Return the first point, then from each point to the next: short numbers make a small file."""
    grid = np.rint(1000 * np.array(list(points))).astype(int)
    return [int(value) for value in np.diff(grid, axis=0, prepend=0 * grid[:1]).ravel()]


def film_strip(
    result: PickPlaceResult, episode: PickAndPlaceEpisode | None, frames: KeyFrames, *, policy: str = ""
) -> Image.Image:
    """Draw an episode: pictures of the head with step, phase and time; below them the path of the hand."""
    record = _record(result)
    if record is None:
        raise UserError(f"episode '{result.episode_id}' never began: there is nothing to draw")
    verdict = verdict_of(episode, result)
    side = side_of(record)
    shapes = shapes_of(episode, side)[0] if episode is not None else []
    moments = moments_of(result, record, verdict.step)
    paths = Paths(result, record, episode, side, shapes, moments)
    outcome = "success" if result.success else verdict.kind.replace("_", " ")
    told = " · ".join(filter(None, (result.episode_id, policy, outcome)))
    pictures = {step: Image.open(BytesIO(content)) for step, content in frames.pictures}
    shown = [moment for moment in moments if moment.step in pictures] if pictures else moments
    picture_px = max((FRAME_PX * image.height // image.width for image in pictures.values()), default=0)
    row_px = picture_px + BAND_PX + GAP_PX
    film_px = -(-len(shown) // COLUMNS) * row_px
    axes = new_figure(WIDTH_PX, film_px + BAND_PX + VIEW_HEIGHT_PX).add_axes((0, 0, 1, 1), autoscale_on=False)
    axes.set(xlim=(-MARGIN_PX, WIDTH_PX - MARGIN_PX), ylim=(film_px + BAND_PX + VIEW_HEIGHT_PX, 0))
    axes.set_axis_off()
    for index, moment in enumerate(shown):
        left, top = index % COLUMNS * (FRAME_PX + GAP_PX), index // COLUMNS * row_px
        if moment.step in pictures:
            extent = (left, left + FRAME_PX, top + picture_px, top)
            axes.imshow(pictures[moment.step], extent=extent, aspect="auto", interpolation="bicubic")
        _draw_band(axes, left, top + picture_px, moment, paths)
    views: tuple[tuple[Literal["top", "side"], str], ...] = (
        ("top", "From above: x to the right, y up"),
        ("side", f"From the side: {side.label}"),
    )
    for index, (view, text) in enumerate(views):
        left = index * (VIEW_PX + GAP_PX)
        axes.text(left, film_px + BAND_PX / 2, text, fontsize=LABEL_PX, color=DARK, va="center")
        area = (left, film_px + BAND_PX, VIEW_PX, VIEW_HEIGHT_PX)
        draw_view(axes.inset_axes(area, transform=axes.transData), paths, view)
    note, told = frames.note or SOURCES[frames.source], f"{told}: {verdict.sentence}"
    header = ((note, 16), (told, LINE_PX), (result.instruction or result.episode_id, TITLE_PX))
    write_above(axes, header, WIDTH_PX - 2 * MARGIN_PX, max_lines=2)
    add_legend(axes, _legend(paths), WIDTH_PX)
    fit_height(axes)
    return image_of(axes)


def _draw_band(axes: Axes, left: float, top: float, moment: Moment, paths: Paths) -> None:
    """Draw what stands below a picture: what happened there, and when that was."""
    phase = paths.record.phases[moment.step]
    axes.add_patch(Rectangle((left, top), FRAME_PX, BAND_PX, color="#e8e9e6"))
    axes.add_patch(Rectangle((left, top), 10, BAND_PX, color=PHASE_COLORS[phase]))
    middle, label = top + BAND_PX / 2, moment.label.capitalize() or "…"
    axes.text(left + 20, middle, label, fontsize=LABEL_PX, weight="bold", color=DARK, va="center")
    parts = [f"step {moment.step}", f"phase {phase}"]
    if paths.episode is not None:
        parts.append(f"{moment.step * paths.episode.sim_params.control_period:.1f} s")
    right: dict[str, Any] = {"ha": "right", "va": "center", "fontsize": LABEL_PX - 2}
    axes.text(left + FRAME_PX - 12, middle, "  ·  ".join(parts), color=GREY, **right)


def _legend(paths: Paths) -> list[tuple[Any, str]]:
    entries: list[tuple[Any, str]] = [
        (Line2D([], [], color=color, linewidth=3.5), f"hand: {phase}")
        for phase, color in PHASE_COLORS.items()
        if phase in paths.record.phases
    ]
    entries.append((Line2D([], [], **DASHES), "object"))
    if paths.record.target is not None:
        entries.append((Line2D([], [], **STAR, markersize=19), "target"))
    bumps = len(paths.result.collision_steps)
    if bumps:
        entries.append((Line2D([], [], **CROSS, markersize=17), f"bump ({bumps})"))
    return entries
