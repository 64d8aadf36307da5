"""A drive as a picture: map, paths, speed along the way, and what was driven."""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.figure import Figure
from matplotlib.gridspec import GridSpec
from matplotlib.legend_handler import HandlerTuple
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.patheffects import withStroke
from matplotlib.text import Text
from matplotlib.ticker import MaxNLocator

from proctor.core.documents import write_atomically
from proctor.core.types import Array
from proctor.navigation.skill.drive import Drive, DriveView, view_of
from proctor.plots.figure import PAPER
from proctor.plots.floor import (
    DPI,
    INK,
    START,
    STYLE,
    LegendEntry,
    draw_arrow,
    draw_robot,
    map_plan,
    robot_mark,
    show_floor,
)
from proctor.plots.plan import Plan

WIDTH_IN = 10.0
LEFT_IN, RIGHT_IN, TOP_IN, BOTTOM_IN = 0.8, 1.25, 0.75, 0.55
LEGEND_IN, PANEL_IN, GAP_IN = 1.1, 0.95, 0.14
FLATTEST, TALLEST = 0.45, 0.85  # height of the map by its width

SEEN, RAW, REPLANNED, DRIVEN, GOAL = "#e8590c", "#6b7484", "#a94fd0", "#14171f", "#0a7a4c"
LIMIT, REFERENCE, BEYOND = "#c92a2a", "#e08a00", "#f4f5f7"


class DriveFigure(NamedTuple):
    """The picture of a drive, and those of its parts that change in a film."""

    figure: Figure
    floor: Axes
    panels: tuple[Axes, Axes]
    """Speed and turning over time."""
    driven: Line2D
    head: Text
    facts: Text


def save_plot(drive: Drive, path: Path) -> None:
    """Write the picture of a drive as a PNG file."""
    content = BytesIO()
    plot_drive(drive).savefig(content, format="png", dpi=DPI)
    write_atomically(path, content.getvalue())


def plot_drive(drive: Drive) -> Figure:
    """Draw the map with the paths, and below it how fast the robot went and turned."""
    parts = draw_drive(drive)
    if len(drive.log.poses):
        draw_robot(parts.floor, drive.log.poses[-1], drive.radius_m, DRIVEN)
    return parts.figure


def draw_drive(drive: Drive, backdrop: Plan | None = None, robot: str = "end") -> DriveFigure:
    """Draw all but the robot, which the legend calls so, over the backdrop, by default the map."""
    view = view_of(drive, flattest=FLATTEST, tallest=TALLEST)
    map_in = (WIDTH_IN - LEFT_IN - RIGHT_IN) * view.height_m / view.width_m
    rows_in = (map_in, LEGEND_IN, PANEL_IN, GAP_IN, PANEL_IN)
    height_in = TOP_IN + sum(rows_in) + BOTTOM_IN
    figure = Figure(figsize=(WIDTH_IN, height_in), facecolor="white")
    FigureCanvasAgg(figure)
    sides = {"left": LEFT_IN / WIDTH_IN, "right": 1 - RIGHT_IN / WIDTH_IN}
    ends = {"top": 1 - TOP_IN / height_in, "bottom": BOTTOM_IN / height_in}
    rows = GridSpec(len(rows_in), 1, figure, height_ratios=rows_in, hspace=0, **sides, **ends)
    with rc_context(STYLE):
        floor, going, turning = (figure.add_subplot(rows[index]) for index in (0, 2, 4))
        head, facts = _write_title(figure, drive)
        of_map = _draw_map(floor, drive, view, backdrop)
        _draw_paths(floor, drive)
        driven = floor.plot(*drive.log.poses[:, :2].T, color=DRIVEN, linewidth=1.2, zorder=5)[0]
        driven.set_path_effects([withStroke(linewidth=2.4, foreground="white")])
        draw_robot(floor, (drive.start.x, drive.start.y, drive.start.yaw), drive.radius_m, START)
        floor.plot(*drive.goal, "*", color=GOAL, markersize=15, markeredgecolor="white", zorder=8)
        if drive.goal_yaw is not None:
            draw_arrow(floor, (*drive.goal, drive.goal_yaw), 2.6 * drive.radius_m, GOAL)
        handles, labels = zip(*_legend(drive, robot, of_map), strict=True)
        place: dict[str, Any] = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.42 / map_in), "ncols": 5}
        floor.legend(handles, labels, **place, handler_map={tuple: HandlerTuple(ndivide=None, pad=0)})
        _draw_speeds(going, turning, drive)
    return DriveFigure(figure, floor, (going, turning), driven, head, facts)


def _write_title(figure: Figure, drive: Drive) -> tuple[Text, Text]:
    result = drive.result
    if drive.arrived:
        off_cm = 100 * result["final_distance"]
        head = f"Arrived {off_cm:.1f} cm from the goal after {result['total_time']:.1f} s"
    else:
        head = str(result["message"])
    planned = f"planned {drive.path.length_m:.2f} m" if drive.path is not None else "no path"
    parts = [f"planner {drive.planner}", planned, f"driven {drive.log.length_m:.2f} m"]
    parts += [f"replanned {len(drive.replanned)}×"] if drive.replanned else []
    parts += [f"recoveries {drive.recoveries}"] if drive.recoveries else []
    parts += [
        f"{stage.removesuffix('_generation')} {1e3 * spent:.1f} ms"
        for stage, spent in drive.timings_s.items()
    ]
    left, height_in = LEFT_IN / WIDTH_IN, figure.get_figheight()
    look: dict[str, Any] = {"weight": "bold", "color": GOAL if drive.arrived else LIMIT}
    return (
        figure.text(left, 1 - 0.33 / height_in, _cut(head, 85), size=13.5, **look),
        figure.text(left, 1 - 0.6 / height_in, _cut(" · ".join(parts), 125), size=9.5, color=INK),
    )


def _draw_map(axes: Axes, drive: Drive, view: DriveView, backdrop: Plan | None) -> list[LegendEntry]:
    """Draw what the robot drives on, and return the legend of the map."""
    axes.set_facecolor(BEYOND if backdrop is None else PAPER)
    plan, legend = map_plan(drive.grid, drive.radius_m) if backdrop is None else (backdrop, [])
    show_floor(axes, plan, view.low, view.high)
    corners = np.array([(-1, -1), (1, -1), (1, 1), (-1, 1)]) * drive.grid.resolution_m / 2
    axes.add_collection(
        PolyCollection(list(drive.seen[:, None] + corners), facecolor=SEEN, edgecolor="none", zorder=4)
    )
    return legend


def _draw_paths(axes: Axes, drive: Drive) -> None:
    """Draw what was planned, with a scale of the speeds in which the trajectory is coloured."""
    if drive.path is None:
        return
    for later in drive.replanned:
        axes.plot(*later.points.T, color=REPLANNED, linewidth=2.2, alpha=0.7, zorder=3)
    if drive.trajectory is not None:
        points = drive.trajectory.poses[:, :2]
        speeds = np.hypot(*drive.trajectory.velocities[:, :2].T)
        pieces = list(np.stack([points[:-1], points[1:]], axis=1))
        line = LineCollection(pieces, cmap="viridis", linewidth=8, capstyle="round", zorder=2)
        line.set(array=(speeds[:-1] + speeds[1:]) / 2, clim=(0, drive.dynamics.v_max))
        axes.add_collection(line)
        bar = axes.inset_axes((1.02, 0, 0.02, 1))
        axes.figure.colorbar(line, cax=bar, label="planned speed (m/s)")
    else:
        axes.plot(*drive.path.points.T, color=START, linewidth=5, alpha=0.5, zorder=2)
    raw = axes.plot(*drive.path.raw.T, color=RAW, linewidth=1.3, linestyle=(0, (4, 2)), zorder=4)[0]
    raw.set(marker="o", markersize=3.4, markerfacecolor="white", markeredgewidth=1)


def _legend(drive: Drive, robot: str, of_map: list[LegendEntry]) -> Iterator[LegendEntry]:
    def mark(**look: Any) -> Line2D:
        return Line2D([], [], **look)

    yield robot_mark(START), "start"
    yield mark(linestyle="", marker="*", markersize=13, color=GOAL, markeredgecolor="white"), "goal"
    yield robot_mark(DRIVEN), robot
    yield mark(color=DRIVEN, linewidth=1.3), "driven"
    if drive.path is not None:
        yield mark(color=RAW, linewidth=1.3, linestyle=(0, (4, 2))), "raw path"
        colors = [mark(color=color, linewidth=7) for color in ("#482878", "#26828e", "#b5de2b")]
        smooth = tuple(colors) if drive.trajectory is not None else mark(color=START, alpha=0.5)
        yield smooth, "smoothed path, by speed"
    if drive.replanned:
        yield mark(color=REPLANNED, linewidth=2.2), "replanned"
    yield from of_map
    if len(drive.seen):
        yield Patch(facecolor=SEEN), "seen on the way"


def _draw_speeds(going: Axes, turning: Axes, drive: Drive) -> None:
    log, limits = drive.log, drive.dynamics
    measured = [_signed_speed(log.velocities), log.velocities[:, 2]]
    names = (("speed\n(m/s)", limits.v_max), ("turning\n(rad/s)", limits.omega_max))
    for axes, (name, limit), speed, wanted in zip(
        (going, turning), names, measured, log.reference_speeds.T, strict=True
    ):
        lowest = -limit if axes is turning or (len(speed) and speed.min() < -0.05) else 0.0
        for edge in {lowest, limit} - {0.0}:
            axes.axhline(edge, color=LIMIT, linewidth=1, linestyle=(0, (3, 2)))
        axes.plot(log.elapsed_s, wanted, color=REFERENCE, linewidth=2.6, alpha=0.75, label="reference")
        axes.plot(log.elapsed_s, speed, color=DRIVEN, linewidth=1.1, label="measured")
        span = limit - lowest
        axes.set(ylabel=name, ylim=(lowest - 0.08 * span, limit + 0.12 * span))
        axes.set_xlim(0, max(1.0, float(log.elapsed_s[-1])) if len(log.elapsed_s) else 1.0)
        axes.yaxis.set_major_locator(MaxNLocator(3, steps=[1, 2, 5, 10]))
        axes.yaxis.set_label_coords(-0.055, 0.5)
        axes.grid(axis="both", color="#eceff3", linewidth=0.8)
        axes.set_axisbelow(True)
    going.tick_params(labelbottom=False)
    turning.set_xlabel("time (s)")
    going.plot([], [], color=LIMIT, linewidth=1, linestyle=(0, (3, 2)), label="limit")
    going.legend(loc="upper left", bbox_to_anchor=(1.005, 1.06), handlelength=1.3)


def _signed_speed(velocities: Array) -> Array:
    """Return speeds, negative where the robot goes backwards."""
    speed: Array = np.hypot(velocities[:, 0], velocities[:, 1])
    return np.where(velocities[:, 0] < -0.9 * speed, -speed, speed)


def _cut(text: str, letters: int) -> str:
    return text if len(text) <= letters else text[: letters - 1] + "…"
