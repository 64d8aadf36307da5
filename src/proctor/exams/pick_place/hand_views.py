"""The path of the hand as a picture: from above or from the side, coloured by phase, on the tabletop."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgb
from matplotlib.patches import Circle, Polygon, Rectangle
from scipy.spatial import ConvexHull, QhullError
from scipy.spatial.transform import Rotation

from proctor.core.errors import ProctorError
from proctor.core.types import Array
from proctor.exams.pick_place.episode import PickAndPlaceEpisode
from proctor.exams.pick_place.results import PickPlaceRecord, PickPlaceResult
from proctor.plots.figure import DARK, PAPER, add_scale, edge, image_of, write_text
from proctor.plots.plan import Plan, grid_paper, plan_axes
from proctor.plots.trajectory import CIRCLE, CROSS, DASHES, GOAL, RING, STAR
from proctor.scenes.meshes import Surface
from proctor.scenes.tabletop_parts import SceneItem, TargetLocation
from proctor.scenes.thing import Thing
from proctor.scenes.things import make_thing

PHASE_COLORS = {"reach": "#3b9bd4", "grasp": "#e69f00", "lift": "#b35a8f", "place": "#009e73"}
"""As in the page."""
AROUND_M, AROUND_HAND_M = 0.1, 0.35
BASE_M = (0.34, 0.33)  # the robot's base, length and width
BASE, FLOOR = "#6b7280", "#e4e3dd"

STAGES = {"reached": "reach", "grasped": "grasp", "lifted": "lift", "placed": "place"}
"""What is said of the step in which a stage was first there."""
PICTURES = 6

APART_M = 0.05  # where the target is nearer than this, it does not say from which side to look


class Paths(NamedTuple):
    """Everything of an episode that is drawn."""

    result: PickPlaceResult
    record: PickPlaceRecord
    episode: PickAndPlaceEpisode | None
    side: SideView
    shapes: Sequence[ShapeOutline]
    moments: Sequence[Moment]

    @property
    def location(self) -> TargetLocation | None:
        """Where the object was to be put, if the episode is known and says."""
        return None if self.episode is None else self.episode.task_goal.target_location


def draw_view(axes: Axes, paths: Paths, view: Literal["top", "side"]) -> None:
    """Draw one of the two projections of an episode on axes whose size in pixels is known."""
    hand = np.array([(point.x, point.y, point.z) for point in paths.result.trajectory])
    base = np.array(paths.record.base_path)
    flat = (lambda points: points[:, :2]) if view == "top" else paths.side.flat
    hands, objects = flat(hand), flat(np.array(paths.record.object_path))
    goal = None if paths.record.target is None else flat(np.array([paths.record.target]))[0]
    shown = [hands, objects] + ([] if goal is None else [goal[None]])
    if view == "top":
        shown += [base[:, :2] - BASE_M[0] / 2, base[:, :2] + BASE_M[0] / 2]
    low, high = _box(np.concatenate(shown), np.array(axes.bbox.size))
    axes.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), xticks=[], yticks=[], facecolor=PAPER)
    axes.set(autoscale_on=False)
    for spine in axes.spines.values():
        spine.set(color="#cdced0", linewidth=1)
    if view == "side":
        axes.axhspan(min(low[1], 0.0), 0.0, color=FLOOR)
    for shape in paths.shapes:
        _draw_shape(axes, shape, view, paths.location)
    if view == "top":
        _draw_base(axes, base)
    if goal is not None:
        _draw_goal(axes, goal, paths)
    if len(np.unique(objects.round(4), axis=0)) > 1:
        axes.plot(*objects.T, **DASHES, path_effects=edge(4), zorder=3)
    _draw_hand(axes, hands, paths)
    _write_labels(axes, hands, paths.moments)
    add_scale(axes, axes.bbox.width / (high[0] - low[0]), "lower left")


def _box(points: Array, size_px: Array) -> tuple[Array, Array]:
    """Return the shown rectangle: all points with some room around them, in the picture's proportions."""
    low, high = points.min(axis=0) - AROUND_M, points.max(axis=0) + AROUND_M
    lack = np.maximum((high - low)[::-1] * size_px / size_px[::-1] - (high - low), 0.0) / 2
    return low - lack, high + lack


def _draw_shape(axes: Axes, shape: ShapeOutline, view: str, location: TargetLocation | None) -> None:
    paper, share = np.array(to_rgb(PAPER)), 0.35 if shape.is_furniture else 0.6
    is_target = location is not None and location.object_name == shape.name
    look: dict[str, Any] = {"edgecolor": GOAL if is_target else "#787876", "linewidth": 3 if is_target else 1}
    color = paper + share * (np.array(shape.rgb) - paper)
    axes.add_patch(Polygon(shape.top if view == "top" else shape.side, facecolor=color, **look))


def _draw_base(axes: Axes, base: Array) -> None:
    (x, y, yaw), (length_m, width_m) = base[-1], BASE_M
    axes.plot(*base[:, :2].T, color=BASE, linewidth=2)
    corner = (x - length_m / 2, y - width_m / 2)
    outline = Rectangle(corner, length_m, width_m, angle=np.degrees(yaw), rotation_point="center")
    outline.set(facecolor=f"{BASE}2d", edgecolor=BASE, linewidth=2)
    axes.add_patch(outline)
    turn = np.array([[np.cos(yaw), np.sin(yaw)], [-np.sin(yaw), np.cos(yaw)]])
    nose = np.array([(0.15, 0.0), (0.05, -0.07), (0.05, 0.07)])
    axes.add_patch(Polygon(nose @ turn + (x, y), color=BASE))


def _draw_goal(axes: Axes, goal: Array, paths: Paths) -> None:
    axes.plot(*goal, **STAR, markersize=20, markeredgewidth=1.5)
    if paths.episode is not None and paths.location is not None and paths.location.type == "position":
        near_m = paths.episode.task_goal.success_criteria.place_tolerance
        axes.add_patch(Circle((goal[0], goal[1]), near_m, **CIRCLE))


def _draw_hand(axes: Axes, hands: Array, paths: Paths) -> None:
    """Draw the path, whose piece up to point k has the colour of phase k, and what happened on it."""
    axes.plot(*hands.T, color="white", linewidth=6.3, solid_capstyle="round", zorder=4)
    pieces = LineCollection(list(np.stack([hands[:-1], hands[1:]], axis=1)), linewidth=3.5, zorder=4)
    pieces.set(colors=[PHASE_COLORS[phase] for phase in paths.record.phases[1:]], capstyle="round")
    axes.add_collection(pieces, autolim=False)
    bumps = [step for step in paths.result.collision_steps if step < len(hands)]
    axes.plot(*hands[bumps].T, **CROSS, markersize=12, zorder=5)
    for moment in paths.moments:
        if moment.label and moment.label != "start":
            color = "#c1121f" if "wrong" in moment.label else DARK
            axes.plot(
                *hands[moment.step],
                "o",
                color="white",
                markeredgecolor=color,
                markeredgewidth=2,
                markersize=9,
                zorder=6,
            )
    axes.plot(*hands[0], **RING, markersize=9, markeredgewidth=3.4, zorder=6)


def _write_labels(axes: Axes, hands: Array, moments: Sequence[Moment]) -> None:
    """Write the moments beside the path, each where no other is; those at one place share a line."""
    pixels = axes.transData.transform(hands)
    places: dict[int, list[str]] = {}
    for moment in moments:
        near = (step for step in places if math.dist(pixels[step], pixels[moment.step]) < 6)
        if moment.label:
            places.setdefault(next(near, moment.step), []).append(moment.label)
    taken: list[Any] = []
    for step, words in places.items():
        for right, up in ((9, 9), (9, -9), (-9, 9), (-9, -9)):
            where: dict[str, Any] = {"xytext": (right, up), "textcoords": "offset points"}
            sides = {"ha": "left" if right > 0 else "right", "va": "bottom" if up > 0 else "top"}
            text = write_text(
                axes, ", ".join(words), hands[step], 15, **where, **sides, path_effects=edge(4), zorder=7
            )
            box: Any = text.get_window_extent()
            is_inside = (box.min >= axes.bbox.min).all() and (box.max <= axes.bbox.max).all()
            if is_inside and not any(box.overlaps(other) for other in taken):
                taken.append(box)
                break
            text.remove()


class Moment(NamedTuple):
    """A step, as the number of steps done, and what happened there."""

    step: int
    label: str


def moments_of(result: PickPlaceResult, record: PickPlaceRecord, wrong: int) -> list[Moment]:
    """Return as many moments as there are pictures; `wrong` is where the episode went wrong."""
    last = max(len(result.trajectory) - 1, 0)
    told: dict[int, list[str]] = {0: ["start"]}
    for stage, label in STAGES.items():
        step = record.stages.get(stage)
        if step is not None and 0 <= step <= last:
            told.setdefault(step, []).append(label)
    told.setdefault(last, []).append("end")
    if not result.success and 0 < wrong < last and (wrong in told or len(told) < PICTURES):
        told.setdefault(wrong, []).append("went wrong")
    while len(told) < min(PICTURES, last + 1):
        steps = sorted(told)
        gap, before = max((after - before, before) for before, after in pairwise(steps))
        told[before + gap // 2] = []
    return [Moment(step, ", ".join(told[step])) for step in sorted(told)]


class SideView(NamedTuple):
    """From which side one looks: what goes to the right in the side view."""

    origin_xy: tuple[float, float]  # where the distance is 0
    along_xy: tuple[float, float]  # a unit vector
    label: str

    def flat(self, points: Array) -> Array:
        """Return distance and height of points, (N, 2)."""
        distances = (points[:, :2] - np.array(self.origin_xy)) @ np.array(self.along_xy)
        return np.stack([distances, points[:, 2]], axis=1)


class ShapeOutline(NamedTuple):
    """A thing, or a part of one, as a convex outline in both views."""

    name: str
    is_furniture: bool
    top: Array  # (N, 2): x, y
    side: Array  # (M, 2): distance, height
    rgb: tuple[float, float, float]
    high_z: float


def side_of(record: PickPlaceRecord) -> SideView:
    """Return the side from which carrying is seen best: the object goes from the left to the right.

    Where there is no way to go, the robot is at the left and the object at the right.
    """
    start = np.array(record.object_path[0][:2])
    if record.target is not None:
        way = np.array(record.target[:2]) - start
        if math.hypot(*way) > APART_M:
            return _side(start, way, "distance from the object's start towards the target")
    base = np.array(record.base_path[0][:2])
    return _side(base, start - base, "distance from the robot's start towards the object")


def shapes_of(episode: PickAndPlaceEpisode, side: SideView) -> tuple[list[ShapeOutline], list[str]]:
    """Return the outlines of all but the target object, lower ones first, and what could not be drawn."""
    shapes: list[ShapeOutline] = []
    problems: list[str] = []
    folder = Path(episode.assets_path) if episode.assets_path else None
    target = episode.task_goal.target_object
    for item in episode.scene_objects:
        if target is not None and item.name == target.name:
            continue
        try:
            thing = make_thing(item, folder)
        except (ValueError, ProctorError) as error:
            problems.append(f"No outline of '{item.name}': {error}")
            continue
        shapes += _shapes(item, thing, side)
    return sorted(shapes, key=lambda shape: shape.high_z), problems


def plan_of(episode: PickAndPlaceEpisode, points: Array, *, width_px: int) -> Plan:
    """Return what stands around from above, without the target object, where it shows all these points."""
    low, high = points.min(axis=0) - AROUND_HAND_M, points.max(axis=0) + AROUND_HAND_M
    paper = grid_paper((low[0], low[1]), (high[0], high[1]), width_px=width_px)
    axes = plan_axes(paper)
    shapes, _ = shapes_of(episode, _side(np.zeros(2), np.array([1.0, 0.0]), ""))
    for shape in shapes:
        _draw_shape(axes, shape, "top", episode.task_goal.target_location)
    return paper._replace(image=image_of(axes))


def _side(origin: Array, way: Array, label: str) -> SideView:
    length = math.hypot(*way)
    along = way / length if length > 1e-6 else np.array([1.0, 0.0])
    return SideView((float(origin[0]), float(origin[1])), (float(along[0]), float(along[1])), label)


def _shapes(item: SceneItem, thing: Thing, side: SideView) -> list[ShapeOutline]:
    """Return furniture part by part, since one sees between a table's legs, and small things as one."""
    bodies = [solid.points for solid in thing.solids] if thing.is_furniture else [thing.points]
    turn = Rotation.from_quat(item.rotation)
    rgb = max(thing.surfaces, key=_area_m2).rgba[:3] if thing.surfaces else (0.72, 0.72, 0.72)
    found = []
    for body in bodies:
        points = turn.apply(body) + np.array(item.position)
        found.append(
            ShapeOutline(
                name=item.name,
                is_furniture=thing.is_furniture,
                top=_hull(points[:, :2]),
                side=_hull(side.flat(points)),
                rgb=rgb,
                high_z=float(points[:, 2].max()),
            )
        )
    return found


def _area_m2(surface: Surface) -> float:
    corners = surface.vertices[surface.faces]
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    return float(np.linalg.norm(normals, axis=1).sum() / 2)


def _hull(points: Array) -> Array:
    try:
        return np.asarray(points[ConvexHull(points).vertices])
    except QhullError:  # seen edge-on
        return np.stack([points.min(axis=0), points.max(axis=0)])
