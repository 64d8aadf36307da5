"""The path of the hand as a picture: from above or from the side, coloured by phase, on the tabletop."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
from PIL import Image, ImageDraw
from scipy.spatial import ConvexHull, QhullError
from scipy.spatial.transform import Rotation

from proctor.core.errors import ProctorError
from proctor.core.types import Array
from proctor.exams.pick_place.episode import PickAndPlaceEpisode
from proctor.exams.pick_place.results import PickPlaceRecord, PickPlaceResult
from proctor.plots.fonts import plain_font
from proctor.plots.marks import Point, Rgb, draw_bump, draw_dashes, draw_goal, draw_start
from proctor.plots.plan import FINER, PAPER, round_length_m
from proctor.scenes.meshes import Surface
from proctor.scenes.tabletop_parts import SceneItem
from proctor.scenes.thing import Thing
from proctor.scenes.things import make_thing

PHASE_COLORS: dict[str, Rgb] = {
    "reach": (59, 155, 212),
    "grasp": (230, 159, 0),
    "lift": (179, 90, 143),
    "place": (0, 158, 115),
}
"""As in the page."""
AROUND_M = 0.1
BASE_M = (0.34, 0.33)  # the robot's base, length and width
BASE: Rgb = (107, 114, 128)
INK: Rgb = (38, 41, 50)
FLOOR: Rgb = (228, 227, 221)
LABEL_PX, SCALE_PX = 15, 90

STAGES = {"reached": "reach", "grasped": "grasp", "lifted": "lift", "placed": "place"}
"""What is said of the step in which a stage was first there."""
PICTURES = 6

APART_M = 0.05  # where the target is nearer than this, it does not say from which side to look


class Paths(NamedTuple):
    """Everything of an episode that is drawn."""

    result: PickPlaceResult
    record: PickPlaceRecord
    episode: PickAndPlaceEpisode | None
    side: Side
    shapes: Sequence[Shape]
    moments: Sequence[Moment]


class _Sheet(NamedTuple):
    """A layer to draw on, with its place in the plane."""

    draw: ImageDraw.ImageDraw
    low: Array
    high: Array
    scale: float  # pixels of the layer per metre

    def pixel(self, point: Array) -> Point:
        right, down = (point[0] - self.low[0]) * self.scale, (self.high[1] - point[1]) * self.scale
        return float(right), float(down)

    def pixels(self, points: Array) -> list[Point]:
        return [self.pixel(point) for point in points]


def draw_view(paths: Paths, view: Literal["top", "side"], size_px: tuple[int, int]) -> Image.Image:
    """Draw one of the two projections of an episode."""
    hand = np.array([(point.x, point.y, point.z) for point in paths.result.trajectory])
    thing = np.array(paths.record.object_path)
    base = np.array(paths.record.base_path)[:, :2]
    target = None if paths.record.target is None else np.array([paths.record.target])
    flat = (lambda points: points[:, :2]) if view == "top" else paths.side.flat
    hands, things, goal = flat(hand), flat(thing), None if target is None else flat(target)[0]
    shown = [hands, things] + ([] if goal is None else [goal[None]])
    if view == "top":
        shown += [base - BASE_M[0] / 2, base + BASE_M[0] / 2]
    low, high = _box(np.concatenate(shown), size_px)
    image = Image.new("RGB", (size_px[0] * FINER, size_px[1] * FINER), PAPER)
    sheet = _Sheet(ImageDraw.Draw(image, "RGBA"), low, high, size_px[0] * FINER / (high[0] - low[0]))
    if view == "side" and low[1] < 0:
        sheet.draw.rectangle((0, sheet.pixel(np.zeros(2))[1], *image.size), fill=FLOOR)
    for shape in paths.shapes:
        _shape(sheet, shape, view, paths.episode)
    if view == "top":
        _base(sheet, base, paths.record.base_path[-1][2])
    if goal is not None:
        _goal(sheet, goal, paths.episode)
    if len(np.unique(things.round(4), axis=0)) > 1:
        draw_dashes(sheet.draw, sheet.pixels(things), 2.2 * FINER)
    _hand(sheet, hands, paths)
    picture = image.resize(size_px, Image.Resampling.BOX)
    plain = ImageDraw.Draw(picture)
    _labels(plain, [(x / FINER, y / FINER) for x, y in sheet.pixels(hands)], paths.moments, size_px)
    _scale(plain, size_px, sheet.scale / FINER)
    plain.rectangle((0, 0, size_px[0] - 1, size_px[1] - 1), outline=(205, 206, 208))
    return picture


def draw_phase_line(
    draw: ImageDraw.ImageDraw, points: Sequence[Point], phases: Sequence[str], width: float
) -> None:
    """Draw a path whose piece up to point k has the colour of phase k."""
    for edge, is_casing in ((1.8 * width, True), (width, False)):
        for index in range(1, len(points)):
            color = (255, 255, 255) if is_casing else PHASE_COLORS[phases[index]]
            draw.line([points[index - 1], points[index]], fill=color, width=round(edge))
            draw.circle(points[index], round(edge) / 2 - 0.6, fill=color)


def _box(points: Array, size_px: tuple[int, int]) -> tuple[Array, Array]:
    """Return the shown rectangle: all points with some room around them, in the picture's proportions."""
    low, high = points.min(axis=0) - AROUND_M, points.max(axis=0) + AROUND_M
    span = high - low
    wanted = np.array([span[1] * size_px[0] / size_px[1], span[0] * size_px[1] / size_px[0]])
    lack = np.maximum(wanted - span, 0.0) / 2
    return low - lack, high + lack


def _shape(sheet: _Sheet, shape: Shape, view: str, episode: PickAndPlaceEpisode | None) -> None:
    corners = sheet.pixels(shape.top if view == "top" else shape.side)
    if len(corners) < 3:
        return
    share = 0.35 if shape.is_furniture else 0.6
    paper = np.array(PAPER)
    red, green, blue = (paper + share * (255 * np.array(shape.rgb) - paper)).round().astype(int).tolist()
    sheet.draw.polygon(corners, fill=(red, green, blue))
    location = episode.task_goal.target_location if episode is not None else None
    is_target = location is not None and location.object_name == shape.name
    edge: Rgb = (0, 122, 80) if is_target else (120, 120, 118)
    sheet.draw.line([*corners, corners[0]], fill=edge, width=(3 if is_target else 1) * FINER)


def _base(sheet: _Sheet, base: Array, yaw: float) -> None:
    if len(base) > 1:
        sheet.draw.line(sheet.pixels(base), fill=BASE, width=2 * FINER)
    turn = np.array([[np.cos(yaw), -np.sin(yaw)], [np.sin(yaw), np.cos(yaw)]])
    outline = np.array([(1, 1), (1, -1), (-1, -1), (-1, 1)]) * np.array(BASE_M) / 2
    corners = sheet.pixels(outline @ turn.T + base[-1])
    sheet.draw.polygon(corners, fill=(*BASE, 45))
    sheet.draw.line([*corners, corners[0]], fill=BASE, width=2 * FINER)
    nose = np.array([(0.15, 0.0), (0.05, -0.07), (0.05, 0.07)])
    sheet.draw.polygon(sheet.pixels(nose @ turn.T + base[-1]), fill=BASE)


def _goal(sheet: _Sheet, goal: Array, episode: PickAndPlaceEpisode | None) -> None:
    location = episode.task_goal.target_location if episode is not None else None
    is_place = location is not None and location.type == "position"
    near_m = episode.task_goal.success_criteria.place_tolerance if episode is not None and is_place else 0.0
    draw_goal(sheet.draw, sheet.pixel(goal), 9 * FINER, near_m * sheet.scale)


def _hand(sheet: _Sheet, hands: Array, paths: Paths) -> None:
    way = sheet.pixels(hands)
    draw_phase_line(sheet.draw, way, paths.record.phases, 3.5 * FINER)
    for step in paths.result.collision_steps:
        if step < len(way):
            draw_bump(sheet.draw, way[step], 5 * FINER)
    for moment in paths.moments:
        if moment.label and moment.label != "start":
            edge: Rgb = (193, 18, 31) if "wrong" in moment.label else INK
            sheet.draw.circle(
                way[moment.step], 5.5 * FINER, fill=(255, 255, 255), outline=edge, width=2 * FINER
            )
    draw_start(sheet.draw, way[0], 6 * FINER)


def _labels(
    draw: ImageDraw.ImageDraw, way: Sequence[Point], moments: Sequence[Moment], size_px: tuple[int, int]
) -> None:
    """Write the moments beside the path, each where no other is; those at one place share a line."""
    font = plain_font(LABEL_PX)
    places: dict[Point, list[str]] = {}
    for moment in moments:
        at = way[moment.step]
        near = next((place for place in places if np.hypot(place[0] - at[0], place[1] - at[1]) < 6), at)
        if moment.label:
            places.setdefault(near, []).append(moment.label)
    taken: list[tuple[float, float, float, float]] = []
    for (x, y), words in places.items():
        text, best = ", ".join(words), None
        for right, down, anchor in ((9, -9, "ls"), (9, 9, "lt"), (-9, -9, "rs"), (-9, 9, "rt")):
            box = draw.textbbox((x + right, y + down), text, font=font, anchor=anchor, stroke_width=3)
            inside = box[0] >= 0 and box[1] >= 0 and box[2] <= size_px[0] and box[3] <= size_px[1]
            if inside and not any(_overlap(box, other) for other in taken):
                best = ((x + right, y + down), anchor, box)
                break
        if best is not None:
            at, anchor, box = best
            taken.append(box)
            draw.text(at, text, fill=INK, font=font, anchor=anchor, stroke_width=3, stroke_fill=PAPER)


def _overlap(a: tuple[float, float, float, float], b: tuple[float, float, float, float]) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def _scale(draw: ImageDraw.ImageDraw, size_px: tuple[int, int], pixels_per_m: float) -> None:
    length_m = round_length_m(SCALE_PX / pixels_per_m)
    text = f"{100 * length_m:g} cm" if length_m < 1 else f"{length_m:g} m"
    left, bottom, right = 14, size_px[1] - 14, 14 + length_m * pixels_per_m
    font = plain_font(LABEL_PX)
    draw.line([(left, bottom - 6), (left, bottom), (right, bottom), (right, bottom - 6)], fill=INK, width=2)
    draw.text(
        ((left + right) / 2, bottom - 5),
        text,
        fill=INK,
        font=font,
        anchor="ms",
        stroke_width=3,
        stroke_fill=PAPER,
    )


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


class Side(NamedTuple):
    """From which side one looks: what goes to the right in the side view."""

    origin_xy: tuple[float, float]  # where the distance is 0
    along_xy: tuple[float, float]  # a unit vector
    label: str

    def flat(self, points: Array) -> Array:
        """Return distance and height of points, (N, 2)."""
        distances = (points[:, :2] - np.array(self.origin_xy)) @ np.array(self.along_xy)
        return np.stack([distances, points[:, 2]], axis=1)


class Shape(NamedTuple):
    """A thing, or a part of one, as a convex outline in both views."""

    name: str
    is_furniture: bool
    top: Array  # (N, 2): x, y
    side: Array  # (M, 2): distance, height
    rgb: tuple[float, float, float]
    high_z: float


def side_of(record: PickPlaceRecord) -> Side:
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


def shapes_of(episode: PickAndPlaceEpisode, side: Side) -> tuple[list[Shape], list[str]]:
    """Return the outlines of all but the target object, lower ones first, and what could not be drawn."""
    shapes: list[Shape] = []
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


def _side(origin: Array, way: Array, label: str) -> Side:
    length = math.hypot(*way)
    along = way / length if length > 1e-6 else np.array([1.0, 0.0])
    return Side((float(origin[0]), float(origin[1])), (float(along[0]), float(along[1])), label)


def _shapes(item: SceneItem, thing: Thing, side: Side) -> list[Shape]:
    """Return furniture part by part, since one sees between a table's legs, and small things as one."""
    bodies = [solid.points for solid in thing.solids] if thing.is_furniture else [thing.points]
    turn = Rotation.from_quat(item.rotation)
    rgb = max(thing.surfaces, key=_area_m2).rgba[:3] if thing.surfaces else (0.72, 0.72, 0.72)
    found = []
    for body in bodies:
        points = turn.apply(body) + np.array(item.position)
        found.append(
            Shape(
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
