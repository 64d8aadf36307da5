"""A scene from above, as an architect would draw it: dark walls, open doors, furniture, names of rooms."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
import trimesh
from PIL import Image, ImageDraw, ImageFilter
from scipy.ndimage import grey_closing, uniform_filter

from proctor.core.errors import InvalidFile, MissingDependency, UserError
from proctor.core.types import Array, Pose2
from proctor.maps.grid_map import GridMap
from proctor.plots.fonts import font_for
from proctor.plots.outlines import UP, Outline, outlines_of_scene
from proctor.robots.wheeled import WheeledRobot
from proctor.scenes.frames import frame_of
from proctor.scenes.mesh_files import folder_of_scene
from proctor.scenes.meshes import load_mesh_asset, load_surfaces
from proctor.scenes.scene_config import SceneConfig, asset_file, load_scene, scene_version
from proctor.scenes.scene_map import floor_of_scene, map_of_scene

Point = tuple[float, float]
Rgb = tuple[int, int, int]

MARGIN_M = 0.4
EMPTY_M = 5.0  # an empty scene is shown so far around its origin
SLIMMEST = 1 / 3  # a scene that is narrower than this, for its length, gets some empty floor at its sides
WIDEST_PX = 4096
FINER = 3  # drawn so many times larger, then shrunk, so that edges are smooth
LARGEST_PX = 8192
CEILING_M = 2.0  # above the floor: where meshes are cut open
SECTION_M = 1.5  # above the floor: what reaches through this height is a wall, or as good as one
THICKEST_WALL_M = 0.3
ABOVE_GROUND_M = 0.0005  # what is seen no higher than this above the ground around a scene is that ground
FLAT = {"floor": 0.45, "rug": 0.6}  # what lies on the floor, and how strong its colour is
PAPER, GRID, WALL, INK = (250, 250, 247), (233, 234, 230), (52, 56, 66), (74, 77, 85)


class RoomName(NamedTuple):
    """Where the name of a room is written, in the world frame."""

    text: str
    x: float
    y: float
    height_m: float  # of its letters


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

    def world(self, right: float, down: float) -> Point:
        """Return where a pixel of the image is in the world."""
        up = self.image.height - down
        return self.low_xy[0] + right * self.metres_per_pixel, self.low_xy[1] + up * self.metres_per_pixel


def draw_plan(scene_path: Path, *, width_px: int = 900, floor_z: float = 0.0, names: bool = True) -> Plan:
    """Draw a scene from above, once for each version of its file. The height follows from the width.

    `floor_z` is the height of the storey to draw; `names` are those of the rooms.
    """
    if not 16 <= width_px <= WIDEST_PX:
        raise UserError(f"expected a width from 16 to {WIDEST_PX} pixels, found {width_px}")
    return _plan_of_version(scene_path, scene_version(scene_path), width_px, floor_z, names)


def grid_paper(low_xy: Point, high_xy: Point, *, width_px: int = 900) -> Plan:
    """Return a plan of nothing: squared paper that covers at least this rectangle of the world."""
    low, high = _not_slim(np.array(low_xy, dtype=float), np.array(high_xy, dtype=float))
    metres_per_pixel = float(high[0] - low[0]) / width_px
    height_px = math.ceil((high[1] - low[1]) / metres_per_pixel)
    plan = Plan(
        Image.new("RGB", (width_px, height_px), PAPER), (float(low[0]), float(low[1])), metres_per_pixel
    )
    every_m = round_length_m(40 * metres_per_pixel)
    draw, (high_x, high_y) = ImageDraw.Draw(plan.image), plan.high_xy
    for x in np.arange(math.ceil(low[0] / every_m) * every_m, high_x, every_m):
        draw.line([plan.pixel(x, low[1]), plan.pixel(x, high_y)], fill=GRID)
    for y in np.arange(math.ceil(low[1] / every_m) * every_m, high_y, every_m):
        draw.line([plan.pixel(low[0], y), plan.pixel(high_x, y)], fill=GRID)
    return plan


def round_length_m(at_least_m: float) -> float:
    """Return the next length of 1, 2 or 5 times a power of ten metres."""
    power = 10.0 ** math.floor(math.log10(at_least_m))
    return next(step * power for step in (1.0, 2.0, 5.0, 10.0) if step * power >= at_least_m)


@lru_cache(maxsize=16)
def _plan_of_version(path: Path, version: int, width_px: int, floor_z: float, names: bool) -> Plan:  # noqa: FBT001
    del version  # only there to tell versions apart
    scene = load_scene(path)
    outlines = outlines_of_scene(scene, floor_z=floor_z)
    meshes = _surfaces(scene, path)
    corners = [*(shape.corners for shape in outlines), *(mesh.bounds[:, :2] for mesh in meshes)]
    points = np.concatenate(corners or [np.zeros((0, 2))])
    if len(points):
        low, high = points.min(axis=0) - MARGIN_M, points.max(axis=0) + MARGIN_M
    else:
        low, high = np.full(2, -EMPTY_M), np.full(2, EMPTY_M)
    paper = grid_paper((low[0], low[1]), (high[0], high[1]), width_px=width_px)
    large = _enlarged(paper)
    if meshes:
        large = large._replace(image=_photograph(scene, path, large, floor_z))
        _draw_section(large, meshes, floor_z + SECTION_M)
        outlines = [shape for shape in outlines if shape.kind == "wall"]
    _draw_outlines(large, outlines)
    plan = paper._replace(image=large.image.resize(paper.image.size, Image.Resampling.BOX))
    plan = plan._replace(rooms=tuple(_room_names(plan, outlines)))
    if names:
        write_room_names(plan, plan.image)
    return plan


def write_room_names(plan: Plan, image: Image.Image) -> None:
    """Write the names of rooms on an image of the plan's size, readable on whatever is drawn there."""
    draw = ImageDraw.Draw(image)
    for room in plan.rooms:
        size_px = min(max(10.0, room.height_m / plan.metres_per_pixel), 22.0)
        font = font_for(room.text, size_px)
        if font is not None:
            at = plan.pixel(room.x, room.y)
            draw.text(at, room.text, fill=INK, font=font, anchor="mm", stroke_width=2, stroke_fill=PAPER)


def _not_slim(low: Array, high: Array) -> tuple[Array, Array]:
    """Widen a rectangle so that neither side is much longer than the other, and none is nothing."""
    size = np.maximum(high - low, 1e-3)
    wanted = np.maximum(size, size.max() * SLIMMEST)
    centre = (low + high) / 2
    return centre - wanted / 2, centre + wanted / 2


def _enlarged(paper: Plan) -> Plan:
    """Return paper to draw on that is to be shrunk afterwards, so that edges become smooth."""
    width, height = paper.image.size
    finer = max(1, min(FINER, LARGEST_PX // max(width, height)))
    image = paper.image.resize((width * finer, height * finer), Image.Resampling.NEAREST)
    return Plan(image, paper.low_xy, paper.metres_per_pixel / finer)


def _draw_outlines(plan: Plan, outlines: Sequence[Outline]) -> None:
    draw = ImageDraw.Draw(plan.image)
    things = [shape for shape in outlines if shape.kind == "thing"]
    for shape in outlines:
        if shape.kind in FLAT:
            draw.polygon(_pixels(plan, shape), fill=_soft(shape.color, FLAT[shape.kind]))
    _draw_shadow(plan, things)
    for shape in things:
        edge = tuple(round(255 * (0.3 + 0.3 * channel)) for channel in shape.color)
        draw.polygon(_pixels(plan, shape), fill=_soft(shape.color, 0.85), outline=edge, width=FINER)
    for shape in outlines:
        if shape.kind == "wall":  # outlined, too, so that thin walls of large scenes are seen
            draw.polygon(_pixels(plan, shape), fill=WALL, outline=WALL, width=FINER)


def _pixels(plan: Plan, shape: Outline) -> list[Point]:
    return [plan.pixel(x, y) for x, y in shape.corners.tolist()]


def _soft(color: tuple[float, float, float], strength: float) -> Rgb:
    """Mix a colour with white."""
    red, green, blue = (round(255 * (1 - strength * (1 - channel))) for channel in color)
    return red, green, blue


def _draw_shadow(plan: Plan, things: Sequence[Outline]) -> None:
    """Darken the floor around furniture a little, which lifts it off the floor."""
    mask = Image.new("L", plan.image.size, 0)
    draw = ImageDraw.Draw(mask)
    for shape in things:
        draw.polygon(_pixels(plan, shape), fill=90)
    mask = mask.filter(ImageFilter.BoxBlur(min(12.0, 0.06 / plan.metres_per_pixel)))
    plan.image.paste((40, 36, 30), mask=mask)


def _room_names(plan: Plan, outlines: Sequence[Outline]) -> Iterator[RoomName]:
    """Yield each room's name where it covers the least, as near to the middle as can be."""
    taken = Image.new("L", plan.image.size, 0)
    draw = ImageDraw.Draw(taken)
    for shape in outlines:
        if shape.kind != "floor":
            draw.polygon(_pixels(plan, shape), fill=1 if shape.kind == "rug" else 3)
    cells = np.asarray(taken) / 3.0
    floors: dict[str, Outline] = {}
    for shape in sorted(outlines, key=lambda shape: -float(np.ptp(shape.corners, axis=0).prod())):
        if shape.kind == "floor" and shape.room:
            floors.setdefault(" ".join(shape.room.split()), shape)
    for room, floor in floors.items():
        size_px = min(max(10.0, 0.22 / plan.metres_per_pixel), 22.0)
        font = font_for(room, size_px)
        pixels = np.array(_pixels(plan, floor))
        low, high = pixels.min(axis=0), pixels.max(axis=0)
        room_for_text = high - low - (4.0, 4.0)
        if font is None or (room_for_text < (font.getlength(room), 1.4 * size_px)).any():
            continue  # better no name than one that belongs to the next room
        at = _freest(cells, low, high, (font.getlength(room) + 8, size_px * 1.5))
        x, y = plan.world(*at)
        yield RoomName(room, float(x), float(y), float(size_px * plan.metres_per_pixel))


def _freest(taken: Array, low: Array, high: Array, size: Point) -> Point:
    """Return the centre of a box of this size in a rectangle, where the fewest pixels are taken."""
    left, upper, right, lower = (*np.maximum(low, 0).astype(int), *high.astype(int))
    room = taken[upper:lower, left:right]
    width, height = int(size[0]), int(size[1])
    covered = uniform_filter(room, size=(height, width), mode="constant", cval=1.0)
    rows, columns = np.indices(covered.shape)
    middle_row, middle_column = covered.shape[0] / 2, covered.shape[1] / 2
    away = np.hypot(rows - middle_row, columns - middle_column) / np.hypot(middle_row, middle_column)
    row, column = np.unravel_index(np.argmin(covered + 0.1 * away), covered.shape)
    return left + float(column), upper + float(row)


def _surfaces(scene: SceneConfig, path: Path) -> list[trimesh.Trimesh]:
    """Return the surfaces of all that is only a mesh in the world frame."""
    found = []
    for index, item in enumerate(scene.objects):
        if item.asset_path is None or item.parts:
            continue
        file, root = asset_file(path, item.asset_path), folder_of_scene(path)
        try:
            is_house = item.collision == "surface"
            surfaces = load_surfaces(file, root) if is_house else load_mesh_asset(file, root).surfaces
        except ValueError as error:
            raise InvalidFile(path, str(error), place=f"objects[{index}].asset_path") from None
        frame = frame_of(item)
        found += [trimesh.Trimesh(frame.points(s.vertices), s.faces, process=False) for s in surfaces]
    return found


def _draw_section(plan: Plan, surfaces: Sequence[trimesh.Trimesh], height_m: float) -> None:
    """Draw what a cut at some height goes through: walls, which cannot be seen from above, and open doors."""
    mask = Image.new("L", plan.image.size, 0)
    draw = ImageDraw.Draw(mask)
    for surface in surfaces:
        ends = trimesh.intersections.mesh_plane(surface, UP, UP * height_m)  # type: ignore[no-untyped-call]
        for (ax, ay, _), (bx, by, _) in ends.tolist():
            draw.line([plan.pixel(ax, ay), plan.pixel(bx, by)], fill=255, width=FINER)
    # Meshes are hollow: what lies between the two sides of a wall is wall.
    gap_px = min(max(3, round(THICKEST_WALL_M / plan.metres_per_pixel)), 301)
    plan.image.paste(WALL, mask=Image.fromarray(grey_closing(np.asarray(mask), size=(gap_px, gap_px))))


def _photograph(scene: SceneConfig, path: Path, paper: Plan, floor_z: float) -> Image.Image:
    """Return the scene from above or, on a machine that cannot render, what is in the way on paper."""
    # Only here, since the physics engine is much to import for scenes that need none.
    from proctor.worlds.mujoco.wheeled.camera import render_from_above  # noqa: PLC0415
    from proctor.worlds.mujoco.wheeled.world import World  # noqa: PLC0415

    image = paper.image.copy()
    # Nothing will bump into anything, and what things collide as takes long to work out.
    objects = [
        item if item.collision == "surface" else msgspec.structs.replace(item, rigid_body_type="none")
        for item in scene.objects
    ]
    unsolid = msgspec.structs.replace(scene, objects=objects)
    try:
        world = World(unsolid, path, WheeledRobot(), floor_z=floor_of_scene(path, floor_z))
        world.reset(Pose2(0.0, 0.0, 0.0))
        cut_m = floor_z + CEILING_M
        view = render_from_above(world, paper.low_xy, paper.high_xy, size_px=image.size, below_m=cut_m)
    except MissingDependency:
        _draw_obstacles(paper._replace(image=image), map_of_scene(path, floor_z))
    else:
        ground_m = float(view.height_m[0, 0])  # the margin, where nothing stands
        inside = Image.fromarray((255 * (view.height_m > ground_m + ABOVE_GROUND_M)).astype(np.uint8))
        # A little pale, so that what is drawn on it can be seen.
        pale = Image.blend(Image.fromarray(view.rgb), Image.new("RGB", image.size, PAPER), 0.2)
        image.paste(pale, mask=inside)
    return image


def _draw_obstacles(plan: Plan, grid: GridMap) -> None:
    cells = Image.fromarray((255 * grid.occupied[::-1]).astype(np.uint8))
    scale = grid.resolution_m / plan.metres_per_pixel
    mask = cells.resize((max(1, round(cells.width * scale)), max(1, round(cells.height * scale))))
    left, lower = plan.pixel(*grid.origin_world)
    plan.image.paste(INK, (round(left), round(lower) - mask.height), mask)
