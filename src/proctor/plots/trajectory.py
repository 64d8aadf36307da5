"""A path as a picture: where a robot drove, on the plan of its scene or on squared paper."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.patches import Circle
from matplotlib.patheffects import withStroke
from PIL import Image

from proctor.core.errors import UserError
from proctor.core.geometry import distances_along
from proctor.core.types import Array, Vector3
from proctor.plots.figure import (
    add_legend,
    add_scale,
    edge,
    fit_height,
    image_of,
    wrap_text,
    write_above,
    write_text,
)
from proctor.plots.plan import Plan, draw_plan, grid_paper, plan_axes, show_plan, write_room_names
from proctor.scenes.scene import Scene

AROUND_M = 1.0  # so much is shown around a path that leads out of the plan
REFERENCE, GOAL, BUMP = "#3a3e4a", "#0a7a4c", "#d02026"
PROGRESS = LinearSegmentedColormap.from_list("progress", ["#183ec8", "#8020aa", "#de485c", "#f69620"])
"""The colours of a path from its start to its end."""
DASHES: dict[str, Any] = {"color": REFERENCE, "linewidth": 2.6, "linestyle": (0, (3.2, 3.2))}
CIRCLE: dict[str, Any] = {"facecolor": f"{GOAL}2e", "edgecolor": GOAL, "linewidth": 3}
STAR: dict[str, Any] = {"marker": "*", "color": GOAL, "markeredgecolor": "white", "linestyle": ""}
RING: dict[str, Any] = {"marker": "o", "color": "white", "markeredgecolor": PROGRESS(0.0), "linestyle": ""}
END: dict[str, Any] = {
    **{"marker": "s", "markerfacecolor": "none", "markeredgecolor": PROGRESS(1.0), "linestyle": ""},
    **{
        "markersize": 18,
        "markeredgewidth": 2.6,
        "path_effects": [withStroke(linewidth=5, foreground=REFERENCE)],
    },
}
"""Hollow with dark edges, which is seen on paths, bumps and light floors alike."""
CROSS: dict[str, Any] = {"marker": "X", "color": BUMP, "markeredgecolor": "white", "linestyle": ""}


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
    axes = plan_axes(plan)
    path = np.array([(point.x, point.y) for point in driven])
    bumps = path[[step for step in collisions if 0 <= step < len(path)]]
    axes.plot(*path[0], **RING, markersize=11, markeredgewidth=4, zorder=6, label="start")
    _draw_progress(axes, path, plan.metres_per_pixel)
    axes.plot(*path[-1], **END, zorder=8, label="end")
    if reference:
        points = zip(*((point.x, point.y) for point in reference), strict=True)
        axes.plot(*points, **DASHES, path_effects=edge(5), zorder=3, label="reference")
    if goal is not None:
        axes.plot(goal.x, goal.y, **STAR, markersize=26, markeredgewidth=2, zorder=2, label="goal")
        axes.add_patch(Circle((goal.x, goal.y), success_threshold or 0.0, **CIRCLE, zorder=2))
    if len(bumps):
        axes.plot(*bumps.T, **CROSS, markersize=13, zorder=7, label=f"bump ({len(bumps)})")
    write_room_names(axes, plan)
    add_scale(axes, 1 / plan.metres_per_pixel, "lower right")
    inner_px = plan.image.width - 28
    legend = add_legend(axes, list(zip(*axes.get_legend_handles_labels(), strict=True)), inner_px)
    write_above(axes, [(title, 20)], inner_px, max_lines=1)
    if caption.strip():
        place: dict[str, Any] = {"xycoords": ("axes pixels", legend), "va": "top", "linespacing": 1.4}
        wrap_text(write_text(axes, caption, (14, 0), 17, **place), inner_px, 6)
    fit_height(axes)
    return image_of(axes)


def _draw_progress(axes: Axes, path: Array, metres_per_pixel: float) -> None:
    """Draw a line that changes its colour from start to end, with a white edge and arrow heads."""
    shares = np.linspace(0, 1, len(path))
    pieces = list(np.stack([path[:-1], path[1:]], axis=1))
    colors = PROGRESS(np.linspace(0, 1, max(1, len(pieces))))
    line = LineCollection(pieces, colors=colors, capstyle="round", linewidth=3.5, zorder=4, label="driven")
    axes.plot(*path.T, color="white", linewidth=6.5, solid_capstyle="round", zorder=4)
    axes.add_collection(line, autolim=False)
    passed = distances_along(path) / (56 * metres_per_pixel) + 0.5
    for index in np.nonzero(np.diff(np.floor(passed)) > 0)[0] + 1:
        ahead = np.degrees(np.arctan2(*(path[index] - path[index - 1])[::-1]))
        head: dict[str, Any] = {"marker": (3, 0, ahead - 90), "markersize": 13, "markeredgecolor": "white"}
        axes.plot(*path[index], **head, color=PROGRESS(shares[index]), zorder=5)


def _ground(scene: Plan | Path | None, points: Sequence[Vector3], floor_z: float, width_px: int) -> Plan:
    """Return the plan to draw on, enlarged where the points lie outside of it."""
    if isinstance(scene, Path):
        # Rounded, since storeys do not differ by a hair, but every new height would be drawn anew.
        plan = partial(draw_plan, width_px=width_px, floor_z=round(floor_z, 1), names=False)
        scene = plan(Scene.load(scene)) if scene.is_file() else None
    flat = np.array([(point.x, point.y) for point in points])
    around_m = max(AROUND_M, 0.05 * float(np.ptp(flat, axis=0).max()))
    low, high = flat.min(axis=0) - around_m, flat.max(axis=0) + around_m
    if scene is None:
        return grid_paper((low[0], low[1]), (high[0], high[1]), width_px=width_px)
    if (flat >= scene.low_xy).all() and (flat <= scene.high_xy).all():
        return scene
    low, high = np.minimum(scene.low_xy, low), np.maximum(scene.high_xy, high)
    paper = grid_paper((low[0], low[1]), (high[0], high[1]), width_px=scene.image.width)
    axes = plan_axes(paper)
    show_plan(axes, scene)
    return paper._replace(image=image_of(axes), rooms=scene.rooms)
