"""A path as a picture: where a robot drove, on the plan of its scene or on squared paper."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from io import BytesIO
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

from proctor.core.documents import write_atomically
from proctor.core.errors import UserError
from proctor.core.types import Vector3
from proctor.plots.frame import LegendEntry, framed
from proctor.plots.marks import Point, draw_bump, draw_dashes, draw_end, draw_goal, draw_start, draw_way
from proctor.plots.plan import FINER, Plan, draw_plan, grid_paper, write_room_names

AROUND_M = 1.0  # so much is shown around a way that leads out of the plan


def plot_trajectory(  # noqa: PLR0913  (the parts of a picture, all but one optional)
    scene: Plan | Path | None,
    *,
    driven: Sequence[Vector3],
    reference: Sequence[Vector3] | None = None,
    goal: Vector3 | None = None,
    success_threshold: float | None = None,
    collisions: Sequence[int] = (),
    title: str = "",
    caption: str = "",
    width_px: int = 900,
) -> Image.Image:
    """Draw a path on a plan, with a legend, a scale and a caption.

    Args:
        scene: A plan, or a scene file to draw one of. Without it, or if the file is missing, the path is
            drawn on squared paper.
        driven: Where the robot was at the start and after each step.
        reference: The path a person would take.
        goal: Where to stop.
        success_threshold: Radius of the circle around the goal, metres.
        collisions: The steps, counted from 1, in which the robot bumped into something.
        title: A line above the picture.
        caption: A text below it, such as the instruction.
        width_px: Width of the picture, if `scene` is not a plan.
    """
    if not driven:
        raise UserError("expected at least one point of a trajectory, found none")
    plan = _ground(scene, [*driven, *(reference or ()), *([goal] if goal else ())], driven[0].z, width_px)
    width, height = plan.image.size
    paths, markers = (Image.new("RGBA", (width * FINER, height * FINER)) for _ in range(2))
    sheet, draw = Plan(paths, plan.low_xy, plan.metres_per_pixel / FINER), ImageDraw.Draw(paths)
    way = [sheet.pixel(p.x, p.y) for p in driven]
    if goal is not None:
        radius = (success_threshold or 0.0) / sheet.metres_per_pixel
        draw_goal(draw, sheet.pixel(goal.x, goal.y), 13 * FINER, radius)
    if reference:
        draw_dashes(draw, [sheet.pixel(p.x, p.y) for p in reference], 3 * FINER)
    draw_way(draw, way, 3.5 * FINER)
    bumps = [way[step] for step in collisions if 0 <= step < len(way)]
    draw = ImageDraw.Draw(markers)
    draw_start(draw, way[0], 7 * FINER)
    for place in bumps:
        draw_bump(draw, place, 5 * FINER)
    draw_end(draw, way[-1], 11 * FINER)  # hollow: a robot that ends where it is stuck still shows why
    picture = plan.image.convert("RGBA")
    picture.alpha_composite(paths.resize(picture.size, Image.Resampling.BOX))
    write_room_names(plan, picture)
    picture.alpha_composite(markers.resize(picture.size, Image.Resampling.BOX))
    return framed(
        picture.convert("RGB"),
        metres_per_pixel=plan.metres_per_pixel,
        legend=_legend(has_reference=bool(reference), has_goal=goal is not None, bumps=len(bumps)),
        title=title,
        caption=caption,
    )


def save_png(image: Image.Image, path: Path) -> None:
    """Write a picture as a PNG; its folder is made if needed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    content = BytesIO()
    image.save(content, format="PNG")
    write_atomically(path, content.getvalue())


def _ground(scene: Plan | Path | None, points: Sequence[Vector3], floor_z: float, width_px: int) -> Plan:
    """Return the plan to draw on, enlarged where the points lie outside of it."""
    if isinstance(scene, Path):
        # Rounded, since storeys do not differ by a hair, but every new height would be drawn anew.
        plan = partial(draw_plan, width_px=width_px, floor_z=round(floor_z, 1), names=False)
        scene = plan(scene) if scene.is_file() else None
    flat = np.array([(point.x, point.y) for point in points])
    around_m = max(AROUND_M, 0.05 * float(np.ptp(flat, axis=0).max()))
    low, high = flat.min(axis=0) - around_m, flat.max(axis=0) + around_m
    if scene is None:
        return grid_paper((low[0], low[1]), (high[0], high[1]), width_px=width_px)
    if (flat >= scene.low_xy).all() and (flat <= scene.high_xy).all():
        return scene
    low, high = np.minimum(scene.low_xy, low), np.maximum(scene.high_xy, high)
    paper = grid_paper((low[0], low[1]), (high[0], high[1]), width_px=scene.image.width)
    left, upper = paper.pixel(scene.low_xy[0], scene.high_xy[1])
    shrink = scene.metres_per_pixel / paper.metres_per_pixel
    width, height = (max(1, round(side * shrink)) for side in scene.image.size)
    paper.image.paste(scene.image.resize((width, height)), (round(left), round(upper)))
    return paper._replace(rooms=scene.rooms)


def _legend(*, has_reference: bool, has_goal: bool, bumps: int) -> list[LegendEntry]:
    def line(draw_line: Callable[..., None], draw: ImageDraw.ImageDraw, at: Point, half: float) -> None:
        draw_line(draw, [(at[0] + half * share, at[1]) for share in np.linspace(-1, 0.7, 30)], half / 5.6)

    def mark(draw_mark: Callable[..., None], draw: ImageDraw.ImageDraw, at: Point, half: float) -> None:
        draw_mark(draw, at, half / 2)

    entries = [
        LegendEntry("start", partial(mark, draw_start)),
        LegendEntry("driven", partial(line, draw_way)),
        LegendEntry("end", partial(mark, draw_end)),
    ]
    if has_reference:
        entries.append(LegendEntry("reference", partial(line, draw_dashes)))
    if has_goal:
        entries.append(LegendEntry("goal", partial(mark, draw_goal)))
    if bumps:
        entries.append(LegendEntry(f"bump ({bumps})", partial(mark, draw_bump)))
    return entries
