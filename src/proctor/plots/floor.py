"""A floor under axes in metres: the map below a drive, and a plan or map with the robot at a place."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from io import BytesIO
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Circle, Patch, Wedge
from matplotlib.ticker import MultipleLocator
from matplotlib.transforms import Bbox
from PIL import Image

from proctor.core.types import Pose2
from proctor.maps.grid_map import GridMap
from proctor.plots.figure import PAPER, edge, has_letters, round_length_m, write_text
from proctor.plots.plan import MARGIN_M, ObjectName, Plan, Point, not_slim, show_plan
from proctor.robots.spec import RobotSpec

DPI = 160
ARROW = 2.6  # the length of a robot's arrow at a place, by its radius
LARGEST_IN = 8.8  # the longer side of a plan or map
FREE, TOO_CLOSE, OCCUPIED, UNKNOWN, OUTSIDE = "#ffffff", "#e4e9f0", "#4a5263", "#ddd0b8", "#b4bac6"
START, INK, SIGHT = "#1c4fd8", "#343a46", "#1c4fd840"
STYLE: Any = {
    **{f"{axis}tick.{name}": value for axis in "xy" for name, value in (("labelsize", 9), ("color", INK))},
    **{f"{axis}tick.major.{name}": value for axis in "xy" for name, value in (("width", 0.6), ("size", 3))},
    **{"axes.labelsize": 9.5, "axes.labelcolor": INK, "axes.edgecolor": "#adb5bd", "axes.linewidth": 0.6},
    **{"legend.frameon": False, "legend.fontsize": 9, "legend.labelcolor": INK},
}

LegendEntry = tuple[Any, str]


def map_plan(grid: GridMap, radius_m: float) -> tuple[Plan, list[LegendEntry]]:
    """Return a map as a picture, with where the centre of a robot cannot be, and its legend."""
    cells = np.full((*grid.occupied.shape, 3), to_rgb(FREE))
    legend: list[LegendEntry] = [(Patch(facecolor=FREE, edgecolor=OCCUPIED, linewidth=0.6), "free")]
    for where, color, name in (
        (grid.clearance_m <= radius_m, TOO_CLOSE, f"too near for its {100 * radius_m:.0f} cm radius"),
        (grid.occupied, OCCUPIED, "occupied"),
        (grid.unknown, UNKNOWN, "unknown"),
        (grid.outside, OUTSIDE, "outside"),
    ):
        if where.any():
            cells[where] = to_rgb(color)
            legend.append((Patch(facecolor=color), name))
    image = Image.fromarray((255 * cells[::-1]).round().astype(np.uint8))
    return Plan(image, grid.origin_world, grid.resolution_m), legend


def show_floor(
    axes: Axes, plan: Plan, low: Sequence[float], high: Sequence[float], *, most_ticks: int = 14
) -> None:
    """Show this rectangle of a plan, with axes in metres."""
    show_plan(axes, plan)
    axes.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]))
    axes.set(xlabel="x (m)", ylabel="y (m)", aspect="equal")
    spacing_m = round_length_m(max(high[0] - low[0], high[1] - low[1]) / most_ticks)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MultipleLocator(spacing_m))
    axes.ticklabel_format(useOffset=False, style="plain")


def draw_robot(axes: Axes, pose: Any, radius_m: float, color: str, *, arrow: float = 1.5) -> None:
    """Draw a robot as large as it is, with an arrow ahead of so many times its radius."""
    axes.add_patch(
        Circle(pose[:2], radius_m, facecolor="#ffffffa0", edgecolor=color, linewidth=1.8, zorder=6)
    )
    draw_arrow(axes, pose, arrow * radius_m, color)


def draw_arrow(axes: Axes, pose: Any, length_m: float, color: str) -> None:
    """Draw an arrow from a pose ahead."""
    x, y, yaw = (float(number) for number in pose)
    tip = (x + length_m * np.cos(yaw), y + length_m * np.sin(yaw))
    style = {"arrowstyle": "-|>,head_width=0.25,head_length=0.45", "color": color, "linewidth": 1.8}
    axes.annotate("", tip, (x, y), arrowprops={**style, "shrinkA": 0, "shrinkB": 0}, zorder=7)


def robot_mark(color: str) -> Line2D:
    """Return what stands for a robot in legends."""
    return Line2D([], [], linestyle="", marker="o", markersize=9, color="white", markeredgecolor=color)


def draw_place(plan: Plan, pose: Pose2, robot: RobotSpec, **more: Any) -> Image.Image:
    """Return the figure of `plot_place` as a picture."""
    content = BytesIO()
    plot_place(plan, pose, robot, **more).savefig(content, format="png", bbox_inches="tight", pad_inches=0.15)
    return Image.open(content).convert("RGB")


def plot_place(
    plan: Plan,
    pose: Pose2,
    robot: RobotSpec,
    *,
    legend: Sequence[LegendEntry] = (),
    objects: Sequence[ObjectName] = (),
) -> Figure:
    """Draw a robot on a plan or map, with where its camera looks, names and a legend."""
    at = np.array([pose.x, pose.y])
    low, high = not_slim(np.minimum(plan.low_xy, at - MARGIN_M), np.maximum(plan.high_xy, at + MARGIN_M))
    size_m = high - low
    width_in, height_in = LARGEST_IN * size_m / size_m.max()
    figure = Figure(figsize=(width_in, height_in), dpi=DPI, facecolor="white")
    FigureCanvasAgg(figure)
    camera = robot.camera
    half = math.atan(math.tan(math.radians(camera.fov_deg) / 2) * camera.width / camera.height)
    angles = (math.degrees(pose.yaw - half), math.degrees(pose.yaw + half))
    with rc_context(STYLE):
        axes = figure.add_axes((0, 0, 1, 1), facecolor=PAPER)
        show_floor(axes, plan, low.tolist(), high.tolist(), most_ticks=20)
        axes.grid(color="#00000016", linewidth=0.6)
        reach_m = max(float(size_m.max()) / 12, 2.5 * robot.radius_m)
        axes.add_patch(Wedge((pose.x, pose.y), reach_m, *angles, color=SIGHT, zorder=5))
        shown_m = max(robot.radius_m, 0.006 * float(size_m.max()))  # in a city it would be a dot
        draw_robot(axes, (pose.x, pose.y, pose.yaw), shown_m, START, arrow=ARROW)
        drawn = Bbox([at - ARROW * shown_m, at + ARROW * shown_m])
        _write_names(axes, plan, objects, [drawn.transformed(axes.transData)])
        larger = " (drawn larger)" if shown_m > robot.radius_m else ""
        entries = [
            (robot_mark(START), f"robot, {100 * robot.radius_m:.0f} cm radius{larger}"),
            (Patch(facecolor=SIGHT), "where its camera looks"),
            *legend,
        ]
        below: dict[str, Any] = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.42 / height_in)}
        axes.legend(*zip(*entries, strict=True), **below, ncols=max(2, int(width_in / 2)))
    return figure


def _write_names(axes: Axes, plan: Plan, objects: Sequence[ObjectName], taken: list[Any]) -> None:
    """Write names of rooms, then of objects, the largest first, where no other name and no robot is."""
    for room in plan.rooms:
        steps = sorted(range(-6, 7), key=abs)
        places = [(room.x, room.y + 0.7 * step * room.height_m) for step in steps]
        _write_name(axes, room.text, places, taken, fontsize=9, weight="bold")
    for name in sorted(objects, key=lambda name: -float(np.prod(name.size))):
        right, up = name.size[0] / 2, name.size[1] / 2
        widest_px = 2.2 * max(axes.transData.transform(name.size) - axes.transData.transform((0, 0)))
        places = [(name.x, name.y + step * up) for step in (0, 0.6, -0.6, 1.3, -1.3)]
        places += [(name.x + step * right, name.y) for step in (0.6, -0.6)]
        _write_name(axes, name.text, places, taken, widest_px, fontsize=7.5)


def _write_name(
    axes: Axes, text: str, places: Iterable[Point], taken: list[Any], widest_px: float = math.inf, **look: Any
) -> None:
    if not has_letters(text):
        return
    middle: dict[str, Any] = {"ha": "center", "va": "center", "path_effects": edge(2.2), "zorder": 8}
    for at in places:
        written = write_text(axes, text, at, look["fontsize"], **middle, **look)
        box = written.get_window_extent()
        if (
            axes.bbox.containsx(box.x0)
            and axes.bbox.containsx(box.x1)
            and box.width <= widest_px
            and not any(box.overlaps(other) for other in taken)
        ):
            taken.append(box)
            return
        written.remove()
