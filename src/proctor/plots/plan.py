"""A scene from above, as an architect would draw it: dark walls, open doors, furniture, names of rooms.

Each part becomes an `Outline` on the floor.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, Literal, NamedTuple

import msgspec
import numpy as np
import trimesh
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PolyCollection
from PIL import Image
from scipy.ndimage import grey_closing, maximum_filter, minimum_filter, uniform_filter
from scipy.spatial import ConvexHull

from proctor.core.errors import MissingDependency, UserError
from proctor.core.plain_text import plain
from proctor.core.types import Array, Pose2
from proctor.plots.figure import (
    PAPER,
    edge,
    font_families,
    has_letters,
    image_of,
    new_figure,
    round_length_m,
    write_text,
)
from proctor.robots.spec import standard_robot
from proctor.scenes.frames import Frame, frame_of, placed_parts
from proctor.scenes.scene import Scene
from proctor.scenes.scene_config import Part, SceneConfig, SceneObject

Point = tuple[float, float]

MARGIN_M = 0.4
EMPTY_M = 5.0  # an empty scene is shown so far around its origin
SLIMMEST = 1 / 3  # a scene that is narrower than this, for its length, gets some empty floor at its sides
WIDEST_PX = 4096
FINER = 3  # meshes are rendered so many times larger, then shrunk, so that edges are smooth
LARGEST_PX = 8192
SECTION_M = 1.5  # above the floor: what reaches through this height is a wall, or as good as one
THICKEST_WALL_M = 0.3
ABOVE_GROUND_M = 0.0005  # what is seen no higher than this above the ground around a scene is that ground
GRID, WALL, INK = "#e9eae6", "#343842", "#4a4d55"


class RoomName(NamedTuple):
    """Where the name of a room is written, in the world frame."""

    text: str
    x: float
    y: float
    height_m: float  # of its letters


class ObjectName(NamedTuple):
    """What an object is called, and the rectangle of the world it stands on."""

    text: str
    x: float
    y: float
    size: Point


class Plan(NamedTuple):
    """A drawing with its place in the world. It is shared: copy the image before you draw on it."""

    image: Image.Image
    low_xy: Point  # the lower left corner of the image in the world frame; +y is up
    metres_per_pixel: float
    rooms: tuple[RoomName, ...] = ()  # for whoever draws a path and writes the names above it

    @property
    def high_xy(self) -> Point:
        """The upper right corner of the image in the world frame."""
        width, height = self.image.size
        return (
            self.low_xy[0] + width * self.metres_per_pixel,
            self.low_xy[1] + height * self.metres_per_pixel,
        )

    def pixel(self, x: float, y: float) -> Point:
        """Return where a point of the world is in the image, from its upper left corner."""
        right, up = (x - self.low_xy[0]) / self.metres_per_pixel, (y - self.low_xy[1]) / self.metres_per_pixel
        return right, self.image.height - up


def draw_plan(scene: Scene, *, width_px: int = 900, floor_z: float = 0.0, names: bool = True) -> Plan:
    """Draw a scene from above, once. The height follows from the width.

    `floor_z` is the height of the storey to draw; `names` are those of the rooms.
    """
    if not 16 <= width_px <= WIDEST_PX:
        raise UserError(f"expected a width from 16 to {WIDEST_PX} pixels, found {width_px}")
    return _plan(scene, width_px, floor_z, names)


def grid_paper(low_xy: Point, high_xy: Point, *, width_px: int = 900) -> Plan:
    """Return a plan of nothing: squared paper that covers at least this rectangle of the world."""
    plan, axes = _paper(low_xy, high_xy, width_px)
    return plan._replace(image=image_of(axes))


def plan_axes(plan: Plan) -> Axes:
    """Return axes in metres that fill a figure, with a plan on them."""
    axes = _empty_axes(plan)
    show_plan(axes, plan)
    return axes


def show_plan(axes: Axes, plan: Plan) -> None:
    """Put the image of a plan where it belongs on axes in metres."""
    (left, lower), (right, upper) = plan.low_xy, plan.high_xy
    axes.imshow(plan.image, extent=(left, right, lower, upper), aspect="auto", zorder=0)


def _empty_axes(plan: Plan) -> Axes:
    axes = new_figure(*plan.image.size).add_axes((0, 0, 1, 1), autoscale_on=False)
    axes.set(xlim=(plan.low_xy[0], plan.high_xy[0]), ylim=(plan.low_xy[1], plan.high_xy[1]))
    axes.set_axis_off()
    return axes


def _paper(low_xy: Sequence[float], high_xy: Sequence[float], width_px: int) -> tuple[Plan, Axes]:
    """Return a plan without lines yet, and axes with the lines of squared paper."""
    low, high = not_slim(np.array(low_xy, dtype=float), np.array(high_xy, dtype=float))
    metres_per_pixel = float(high[0] - low[0]) / width_px
    height_px = math.ceil((high[1] - low[1]) / metres_per_pixel)
    plan = Plan(Image.new("RGB", (width_px, height_px)), (float(low[0]), float(low[1])), metres_per_pixel)
    axes, (high_x, high_y) = _empty_axes(plan), plan.high_xy
    every_m = round_length_m(40 * metres_per_pixel)
    first_x, first_y = (math.ceil(side / every_m) * every_m for side in plan.low_xy)
    axes.vlines(np.arange(first_x, high_x, every_m), low[1], high_y, color=GRID, linewidth=1, zorder=0)
    axes.hlines(np.arange(first_y, high_y, every_m), low[0], high_x, color=GRID, linewidth=1, zorder=0)
    return plan, axes


@lru_cache(maxsize=16)
def _plan(scene: Scene, width_px: int, floor_z: float, names: bool) -> Plan:  # noqa: FBT001
    outlines = outlines_of_scene(scene.config, floor_z=floor_z)
    meshes = [mesh for item in scene.objects for mesh in _surfaces(scene, item)]
    corners = [*(shape.corners for shape in outlines), *(mesh.bounds[:, :2] for mesh in meshes)]
    points = np.concatenate(corners or [np.zeros((0, 2))])
    if len(points):
        low, high = points.min(axis=0) - MARGIN_M, points.max(axis=0) + MARGIN_M
    else:
        low, high = np.full(2, -EMPTY_M), np.full(2, EMPTY_M)
    paper, axes = _paper(low, high, width_px)
    if meshes:
        _draw_photograph(axes, scene, paper, floor_z)
        _draw_section(axes, paper, meshes, floor_z + SECTION_M)
        outlines = [shape for shape in outlines if shape.kind == "wall"]
    _draw_outlines(axes, outlines, paper.metres_per_pixel)
    plan = paper._replace(rooms=tuple(_room_names(paper, outlines)))
    if names:
        write_room_names(axes, plan)
    return plan._replace(image=image_of(axes))


def write_room_names(axes: Axes, plan: Plan) -> None:
    """Write the names of rooms on the axes of a plan, readable on whatever is drawn there."""
    for room in plan.rooms:
        size_px = min(max(10.0, room.height_m / plan.metres_per_pixel), 22.0)
        look: dict[str, Any] = {
            "ha": "center",
            "va": "center_baseline",
            "path_effects": edge(4),
            "color": INK,
        }
        write_text(axes, room.text, (room.x, room.y), size_px, **look, zorder=5)


def not_slim(low: Array, high: Array) -> tuple[Array, Array]:
    """Widen a rectangle so that neither side is much longer than the other, and none is nothing."""
    size = np.maximum(high - low, 1e-3)
    wanted = np.maximum(size, size.max() * SLIMMEST)
    centre = (low + high) / 2
    return centre - wanted / 2, centre + wanted / 2


def _draw_outlines(axes: Axes, outlines: Sequence[Outline], metres_per_pixel: float) -> None:
    """Draw what lies on the floor, what stands on it with a shadow that lifts it off, and walls above all."""
    blur_px = math.ceil(min(4.0, 0.06 / metres_per_pixel))

    def blurred(image: Array, _: float) -> tuple[Array, int, int]:
        wider = np.pad(image, [(blur_px, blur_px), (blur_px, blur_px), (0, 0)])
        wider[..., 3] = 0.35 * uniform_filter(wider[..., 3], 2 * blur_px + 1)
        wider[..., :3] = 0.14
        return wider, -blur_px, -blur_px

    for kind, strength in (("floor", 0.45), ("rug", 0.6), ("thing", 0.85), ("wall", 1.0)):
        corners = [shape.corners for shape in outlines if shape.kind == kind]
        colors = np.array([shape.color for shape in outlines if shape.kind == kind]).reshape(-1, 3)
        faces, in_room = 1 - strength * (1 - colors), [[bool(s.room)] for s in outlines if s.kind == kind]
        edges = np.where(np.reshape(in_room, (-1, 1)), faces, 0.8 * faces)  # rooms have walls around them
        shapes = PolyCollection(corners, facecolors=faces, edgecolors=edges)
        if kind == "thing":
            shadow = PolyCollection(corners, facecolor="black", agg_filter=blurred)
            axes.add_collection(shadow, autolim=False)
            shapes.set(edgecolors=0.3 + 0.3 * colors, linewidth=1)
        elif kind == "wall":  # outlined, too, so that thin walls of large scenes are seen
            shapes.set(color=WALL, linewidth=1)
        axes.add_collection(shapes, autolim=False)


def _room_names(plan: Plan, outlines: Sequence[Outline]) -> Iterator[RoomName]:
    """Yield each room's name where it covers the least, as near to the middle as can be."""
    others = [shape for shape in outlines if shape.kind != "floor"]
    boxes = np.array([(shape.corners.min(axis=0), shape.corners.max(axis=0)) for shape in others]).reshape(
        -1, 2, 2
    )
    weights = np.array([1 / 3 if shape.kind == "rug" else 1.0 for shape in others])
    floors: dict[str, Outline] = {}
    for shape in sorted(outlines, key=lambda shape: -float(np.ptp(shape.corners, axis=0).prod())):
        if shape.kind == "floor" and shape.room:
            floors.setdefault(" ".join(plain(shape.room).split()), shape)
    size_px = min(max(10.0, 0.22 / plan.metres_per_pixel), 22.0)
    measure = new_figure(1, 1).text(0, 0, "", fontsize=size_px, family=font_families(), parse_math=False)
    for room, floor in floors.items():
        measure.set_text(room if has_letters(room) else "")
        low, high = floor.corners.min(axis=0), floor.corners.max(axis=0)
        size = np.array([measure.get_window_extent().width + 8, 1.5 * size_px]) * plan.metres_per_pixel
        if measure.get_text() and (high - low > size).all():  # better no name than one in the next room
            near = (boxes[:, 0] < high).all(axis=1) & (boxes[:, 1] > low).all(axis=1)
            x, y = _freest(boxes[near], weights[near], low + size / 2, high - size / 2, size)
            yield RoomName(room, x, y, float(size_px * plan.metres_per_pixel))


def _freest(boxes: Array, weights: Array, low: Array, high: Array, size: Array) -> Point:
    """Return the centre of a rectangle of this size, between low and high, that covers the least of boxes."""
    centres = np.stack(np.meshgrid(*np.linspace(low, high, 25).T), axis=-1).reshape(-1, 1, 2)
    shared = np.minimum(centres + size / 2, boxes[:, 1]) - np.maximum(centres - size / 2, boxes[:, 0])
    covered = shared.clip(0).prod(axis=2) @ weights / size.prod()
    away = np.hypot(*((centres[:, 0] - (low + high) / 2) / (high - low + size)).T)
    x, y = centres[np.argmin(covered.clip(0, 1) + 0.1 * away), 0].tolist()
    return x, y


def object_names(scene: Scene, floor_z: float = 0.0) -> list[ObjectName]:
    """Return the names of the objects that stand on the floor of a storey, but for walls and doors."""
    found = []
    for item in scene.objects:
        points = [_corners(part, frame) for part, frame in placed_parts(item)]
        points += [mesh.bounds for mesh in _surfaces(scene, item)]
        if not points or item.category in ("wall", "door", "window"):
            continue
        corners = np.concatenate(points)
        low, high = corners.min(axis=0), corners.max(axis=0)
        (width, depth, _), (x, y, _) = (high - low).tolist(), ((low + high) / 2).tolist()
        slim, long = sorted((width, depth))
        is_here = low[2] - floor_z < HIGHEST_FOOT_M and high[2] - floor_z > FLAT_M and slim > SLIMMEST_M
        is_house = long > LARGEST_M or (high[2] - floor_z > CUT_M and 4 * slim < long)
        if is_here and not is_house:
            text = plain(item.category or re.sub(r"([ _.-]*\d+)+$", "", item.name))
            found.append(ObjectName(text, x, y, (width, depth)))
    alike = Counter(name.text for name in found)
    return [name for name in found if name.text and alike[name.text] <= MOST_ALIKE]


def _surfaces(scene: Scene, item: SceneObject) -> list[trimesh.Trimesh]:
    if item.asset_path is None or item.parts:
        return []
    mesh, frame = scene.mesh(item), frame_of(item)
    surfaces = mesh.surfaces if item.collision == "surface" else mesh.asset.drawn
    return [trimesh.Trimesh(frame.points(s.vertices), s.faces, process=False) for s in surfaces]


def _draw_section(axes: Axes, plan: Plan, surfaces: Sequence[trimesh.Trimesh], height_m: float) -> None:
    """Draw what a cut at some height goes through: walls, which cannot be seen from above, and open doors."""
    blank = _empty_axes(plan)
    blank.figure.set_facecolor("black")
    for surface in surfaces:
        ends = trimesh.intersections.mesh_plane(surface, UP, UP * height_m)  # type: ignore[no-untyped-call]
        blank.add_collection(LineCollection(ends[..., :2], color="white", linewidth=1), autolim=False)
    # Meshes are hollow: what lies between the two sides of a wall is wall.
    gap_px = min(max(3, round(THICKEST_WALL_M / plan.metres_per_pixel)), 101)
    cut = grey_closing(np.asarray(image_of(blank))[..., 0], size=(gap_px, gap_px))
    walls = Image.new("RGB", plan.image.size, WALL)
    walls.putalpha(Image.fromarray(cut))
    show_plan(axes, plan._replace(image=walls))


def _draw_photograph(axes: Axes, scene: Scene, paper: Plan, floor_z: float) -> None:
    """Draw the scene from above or, on a machine that cannot render, what is in the way."""
    # Only here, since the physics engine is much to import for scenes that need none.
    from proctor.worlds.mujoco.wheeled.camera import render_from_above  # noqa: PLC0415
    from proctor.worlds.mujoco.wheeled.world import World  # noqa: PLC0415

    # Nothing will bump into anything, and what things collide as takes long to work out.
    objects = [
        item if item.collision == "surface" else msgspec.structs.replace(item, rigid_body_type="none")
        for item in scene.objects
    ]
    width, height = paper.image.size
    finer = max(1, min(FINER, LARGEST_PX // max(width, height)))
    try:
        world = World(scene.with_objects(objects), standard_robot(), floor_z=scene.floor_near(floor_z))
        world.reset(Pose2(0.0, 0.0, 0.0))
        size_px, cut_m = (width * finer, height * finer), floor_z + 2.0  # where meshes are cut open
        view = render_from_above(world, paper.low_xy, paper.high_xy, size_px=size_px, below_m=cut_m)
    except MissingDependency:
        grid = scene.map_at(floor_z)
        cells = Image.new("RGB", grid.occupied.shape[::-1], INK)
        cells.putalpha(Image.fromarray((255 * grid.occupied[::-1]).astype(np.uint8)))
        show_plan(axes, Plan(cells, grid.origin_world, grid.resolution_m))
    else:
        ground_m = float(view.height_m[0, 0])  # the margin, where nothing stands
        # Outlined, since the paper is white as well, and pale, so that what is drawn on it can be seen.
        steps = maximum_filter(view.height_m, finer + 2) - minimum_filter(view.height_m, finer + 2)
        rgb = np.where((steps > FLAT_M)[..., None], view.rgb // 3, view.rgb)
        pale = Image.blend(Image.fromarray(rgb), Image.new("RGB", size_px, PAPER), 0.2)
        pale.putalpha(Image.fromarray((255 * (view.height_m > ground_m + ABOVE_GROUND_M)).astype(np.uint8)))
        show_plan(axes, paper._replace(image=pale, metres_per_pixel=paper.metres_per_pixel / finer))


CUT_M = 1.9  # above the floor. What begins higher is left out: ceilings, lamps, and the wall above a door.
HANGING_M = 1.2  # objects that hang this high are pictures and cupboards: nothing of them stands in the way
HIGHEST_FOOT_M = 0.3  # what begins higher does not stand on the floor
FLAT_M = 0.05  # what is lower than this lies on the floor
LARGEST_M = 6.0  # what is longer is a house or a hall, not an object in it
SLIMMEST_M = 0.1  # what is thinner leans on a wall
MOST_ALIKE = 12  # a name that more objects have says nothing
BELOW_M = 0.3  # what ends this far below the floor belongs to another storey
SIDES = 32
CORNERS = np.array([[x, y, z] for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (-0.5, 0.5)])
BOX_OUTLINE = [0, 4, 6, 2]
"""Which of the CORNERS go around a box that stands upright: most parts do, and their hull takes long."""
ANGLES = np.arange(SIDES) * math.tau / SIDES
RING = np.stack([np.cos(ANGLES), np.sin(ANGLES), 0 * ANGLES], axis=1) / 2
UP = np.array([0.0, 0.0, 1.0])

Kind = Literal["floor", "rug", "thing", "wall"]


class Outline(NamedTuple):
    """A part, seen from above."""

    kind: Kind
    corners: Array  # (N, 2), in the world frame
    top_m: float
    color: tuple[float, float, float]
    room: str


def outlines_of_scene(scene: SceneConfig, *, floor_z: float = 0.0) -> list[Outline]:
    """Return the parts of one storey in the order in which they are drawn: lower ones first, walls last."""
    found = [outline for item in scene.objects for outline in _outlines(item, floor_z)]
    return sorted(found, key=lambda shape: (("floor", "rug", "thing", "wall").index(shape.kind), shape.top_m))


def _outlines(item: SceneObject, floor_z: float) -> list[Outline]:
    bodies = [_corners(part, frame) for part, frame in placed_parts(item)]
    lowest_m = min((float(body[:, 2].min()) for body in bodies), default=0.0) - floor_z
    if lowest_m > HANGING_M:
        return []
    found = []
    for part, body in zip(item.parts, bodies, strict=True):
        bottom_m, top_m = float(body[:, 2].min()) - floor_z, float(body[:, 2].max()) - floor_z
        glass = len(part.color) == 4 and part.color[3] < 1
        if bottom_m > CUT_M or top_m < -BELOW_M or glass:
            continue
        flat = body[:, :2]
        is_upright_box = part.shape == "box" and np.array_equal(flat[::2], flat[1::2])
        corners = flat[BOX_OUTLINE if is_upright_box else ConvexHull(flat).vertices]
        red, green, blue = part.color[:3]
        kind = _kind(item, part, bottom_m, top_m)
        found.append(Outline(kind, corners, top_m, (red, green, blue), item.room))
    return found


def _kind(item: SceneObject, part: Part, bottom_m: float, top_m: float) -> Kind:
    if top_m < FLAT_M:
        return "floor" if item.category in ("floor", "") else "rug"
    if item.category:
        return "wall" if item.category == "wall" else "thing"
    # Scenes of others may say nothing. A wall is what is high and thin, and stands on the floor.
    sides = sorted((part.size.x * item.scale.x, part.size.y * item.scale.y))
    is_wall = part.shape == "box" and bottom_m < FLAT_M and top_m > CUT_M and 4 * sides[0] < sides[1]
    return "wall" if is_wall else "thing"


def _corners(part: Part, frame: Frame) -> Array:
    """Return points in the world frame, whose hull is the part."""
    if part.shape == "box":
        unit = CORNERS
    elif part.shape == "cylinder":
        unit = np.concatenate([RING - UP / 2, RING + UP / 2])
    else:
        unit = np.concatenate([RING, RING[:, [0, 2, 1]], RING[:, [2, 0, 1]]])
    return frame.points(unit)
