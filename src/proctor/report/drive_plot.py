"""A drive as a picture: map, paths, speed along the way, and what was driven."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.legend_handler import HandlerTuple
from matplotlib.lines import Line2D
from matplotlib.patches import Circle, Patch
from matplotlib.patheffects import Normal, Stroke
from matplotlib.ticker import MaxNLocator, MultipleLocator

from proctor.core.documents import write_atomically
from proctor.core.types import Array
from proctor.navigation.skill.drive import Drive, View, view_of
from proctor.navigation.timing.trajectory import Trajectory

WIDTH_IN, DPI = 10.0, 160
LEFT_IN, RIGHT_IN, TOP_IN, BOTTOM_IN = 0.8, 1.25, 0.75, 0.55
LEGEND_IN, PANEL_IN, GAP_IN = 1.1, 0.95, 0.14
FLATTEST, TALLEST = 0.45, 0.85  # height of the map by its width

FREE, TOO_CLOSE, OCCUPIED, BEYOND = "#ffffff", "#e4e9f0", "#4a5263", "#f4f5f7"
SEEN, RAW, REPLANNED, DRIVEN, START, GOAL = "#e8590c", "#6b7484", "#a94fd0", "#14171f", "#1c4fd8", "#0a7a4c"
LIMIT, REFERENCE, INK = "#c92a2a", "#e08a00", "#343a46"
CASED = [Stroke(linewidth=2.4, foreground="white"), Normal()]  # a white edge, for any background


def save_plot(drive: Drive, path: Path) -> None:
    """Write the picture of a drive as a PNG file."""
    content = BytesIO()
    plot_drive(drive).savefig(content, format="png", dpi=DPI)
    write_atomically(path, content.getvalue())


def plot_drive(drive: Drive) -> Figure:
    """Draw the map with the paths, and below it how fast the robot went and turned."""
    view = view_of(drive, flattest=FLATTEST, tallest=TALLEST)
    wide_in = WIDTH_IN - LEFT_IN - RIGHT_IN
    map_in = wide_in * view.height_m / view.width_m
    height_in = TOP_IN + map_in + LEGEND_IN + 2 * PANEL_IN + GAP_IN + BOTTOM_IN
    figure = Figure(figsize=(WIDTH_IN, height_in), facecolor="white")
    FigureCanvasAgg(figure)

    def area(left_in: float, top_in: float, wide_in: float, tall_in: float) -> Axes:
        bottom_in = height_in - top_in - tall_in
        return figure.add_axes(
            (left_in / WIDTH_IN, bottom_in / height_in, wide_in / WIDTH_IN, tall_in / height_in)
        )

    _write_title(figure, drive)
    floor = area(LEFT_IN, TOP_IN, wide_in, map_in)
    _draw_map(floor, drive, view)
    speeds = _draw_paths(floor, drive)
    _draw_ends(floor, drive)
    if speeds is not None:
        bar = figure.colorbar(speeds, cax=area(LEFT_IN + wide_in + 0.15, TOP_IN, 0.15, map_in))
        bar.set_label("planned speed (m/s)", color=INK)
        _calm(bar.ax)
        bar.outline.set_linewidth(0.6)
    _draw_legend(figure, drive, 1 - (TOP_IN + map_in + 0.42) / height_in)
    top_in = TOP_IN + map_in + LEGEND_IN
    going = area(LEFT_IN, top_in, wide_in, PANEL_IN)
    turning = area(LEFT_IN, top_in + PANEL_IN + GAP_IN, wide_in, PANEL_IN)
    _draw_speeds(going, turning, drive)
    return figure


def _write_title(figure: Figure, drive: Drive) -> None:
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
    color = GOAL if drive.arrived else LIMIT
    figure.text(left, 1 - 0.33 / height_in, _cut(head, 85), size=13.5, weight="bold", color=color)
    figure.text(left, 1 - 0.6 / height_in, _cut(" · ".join(parts), 125), size=9.5, color=INK)


def _draw_map(axes: Axes, drive: Drive, view: View) -> None:
    grid = drive.grid
    rows, columns = grid.occupied.shape
    left, bottom = grid.origin_world
    extent = (left, left + columns * grid.resolution_m, bottom, bottom + rows * grid.resolution_m)
    kinds = np.where(grid.occupied, 2, np.where(grid.clearance_m <= drive.radius_m, 1, 0))
    colors = ListedColormap([FREE, TOO_CLOSE, OCCUPIED])
    axes.imshow(kinds, origin="lower", extent=extent, cmap=colors, vmin=0, vmax=2, interpolation="nearest")
    corners = np.array([(-1, -1), (1, -1), (1, 1), (-1, 1)]) * grid.resolution_m / 2
    axes.add_collection(
        PolyCollection(list(drive.seen[:, None] + corners), facecolor=SEEN, edgecolor="none", zorder=4)
    )
    axes.set(xlim=(view.low[0], view.high[0]), ylim=(view.low[1], view.high[1]))
    axes.set(xlabel="x (m)", ylabel="y (m)", aspect="equal", facecolor=BEYOND)
    spacing_m = next(step for step in (0.5, 1, 2, 5, 10, 20, 50, 1e9) if view.width_m / step <= 14)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MultipleLocator(spacing_m))
    _calm(axes)


def _draw_paths(axes: Axes, drive: Drive) -> LineCollection | None:
    """Draw what was planned and driven, and return the line whose colours are speeds."""
    speeds = None
    if drive.path is not None:
        for later in drive.replanned:
            axes.plot(*later.points.T, color=REPLANNED, linewidth=2.2, alpha=0.7, zorder=3)
        if drive.trajectory is not None:
            speeds = _speed_line(drive.trajectory, drive.dynamics.v_max)
            axes.add_collection(speeds)
        else:
            axes.plot(*drive.path.points.T, color=START, linewidth=5, alpha=0.5, zorder=2)
        raw = axes.plot(*drive.path.raw.T, color=RAW, linewidth=1.3, linestyle=(0, (4, 2)), zorder=4)[0]
        raw.set(marker="o", markersize=3.4, markerfacecolor="white", markeredgewidth=1)
    driven = axes.plot(*drive.log.poses[:, :2].T, color=DRIVEN, linewidth=1.2, zorder=5)[0]
    driven.set_path_effects(CASED)
    return speeds


def _speed_line(trajectory: Trajectory, v_max: float) -> LineCollection:
    points = trajectory.poses[:, :2]
    speeds: Array = np.hypot(*trajectory.velocities[:, :2].T)
    line = LineCollection(
        list(np.stack([points[:-1], points[1:]], axis=1)),
        cmap="viridis",
        linewidth=8,
        capstyle="round",
        zorder=2,
    )
    line.set_array((speeds[:-1] + speeds[1:]) / 2)
    line.set_clim(0, v_max)
    return line


def _draw_ends(axes: Axes, drive: Drive) -> None:
    """Draw the robot's outline at both ends of the drive, and the goal."""
    start, radius_m = drive.start, drive.radius_m
    _disc(axes, (start.x, start.y, start.yaw), radius_m, START)
    if len(drive.log.poses):
        _disc(axes, drive.log.poses[-1], radius_m, DRIVEN)
    axes.plot(*drive.goal, "*", color=GOAL, markersize=15, markeredgecolor="white", zorder=8)
    if drive.goal_yaw is not None:
        _arrow(axes, (*drive.goal, drive.goal_yaw), 2.6 * radius_m, GOAL)


def _disc(axes: Axes, pose: Any, radius_m: float, color: str) -> None:
    axes.add_patch(
        Circle(pose[:2], radius_m, facecolor="#ffffffa0", edgecolor=color, linewidth=1.8, zorder=6)
    )
    _arrow(axes, pose, 1.5 * radius_m, color)


def _arrow(axes: Axes, pose: Any, length_m: float, color: str) -> None:
    x, y, yaw = (float(number) for number in pose)
    tip = (x + length_m * np.cos(yaw), y + length_m * np.sin(yaw))
    style = {"arrowstyle": "-|>,head_width=0.25,head_length=0.45", "color": color, "linewidth": 1.8}
    axes.annotate("", tip, (x, y), arrowprops={**style, "shrinkA": 0, "shrinkB": 0}, zorder=7)


def _draw_legend(figure: Figure, drive: Drive, top: float) -> None:
    colors = [Line2D([], [], color=color, linewidth=7) for color in ("#482878", "#26828e", "#b5de2b")]
    entries: list[tuple[Any, str]] = [
        (_mark("o", START), "start"),
        (_mark("*", GOAL, 13), "goal"),
        (_mark("o", DRIVEN), "end"),
        (Line2D([], [], color=DRIVEN, linewidth=1.3), "driven"),
    ]
    if drive.path is not None:
        dashes = Line2D([], [], color=RAW, linewidth=1.3, linestyle=(0, (4, 2)))
        smooth = tuple(colors) if drive.trajectory is not None else Line2D([], [], color=START, alpha=0.5)
        entries += [(dashes, "raw path"), (smooth, "smoothed path, by speed")]
    if drive.replanned:
        entries.append((Line2D([], [], color=REPLANNED, linewidth=2.2), "replanned"))
    entries.append((Patch(facecolor=OCCUPIED), "occupied"))
    entries.append((Patch(facecolor=TOO_CLOSE), f"too near for its {100 * drive.radius_m:.0f} cm radius"))
    if len(drive.seen):
        entries.append((Patch(facecolor=SEEN), "seen on the way"))
    figure.legend(
        *zip(*entries, strict=True),
        loc="upper center",
        bbox_to_anchor=(0.5 + (LEFT_IN - RIGHT_IN) / 2 / WIDTH_IN, top),
        ncols=5,
        frameon=False,
        fontsize=9,
        labelcolor=INK,
        handler_map={tuple: HandlerTuple(ndivide=None, pad=0)},
    )


def _mark(marker: str, color: str, size: float = 9) -> Line2D:
    face = color if marker == "*" else "white"
    edge = "white" if marker == "*" else color
    return Line2D(
        [], [], linestyle="", marker=marker, markersize=size, markerfacecolor=face, markeredgecolor=edge
    )


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
        _calm(axes)
    going.tick_params(labelbottom=False)
    turning.set_xlabel("time (s)")
    going.plot([], [], color=LIMIT, linewidth=1, linestyle=(0, (3, 2)), label="limit")
    going.legend(
        loc="upper left",
        bbox_to_anchor=(1.005, 1.06),
        frameon=False,
        fontsize=9,
        labelcolor=INK,
        handlelength=1.3,
    )


def _signed_speed(velocities: Array) -> Array:
    """Return speeds, negative where the robot goes backwards."""
    speed: Array = np.hypot(velocities[:, 0], velocities[:, 1])
    return np.where(velocities[:, 0] < -0.9 * speed, -speed, speed)


def _calm(axes: Axes) -> None:
    axes.tick_params(labelsize=9, colors=INK, width=0.6, length=3)
    axes.xaxis.label.set(size=9.5, color=INK)
    axes.yaxis.label.set(size=9.5, color=INK)
    for spine in axes.spines.values():
        spine.set(linewidth=0.6, edgecolor="#adb5bd")


def _cut(text: str, letters: int) -> str:
    return text if len(text) <= letters else text[: letters - 1] + "…"
