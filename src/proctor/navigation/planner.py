"""Find a path for a disc on a map: one function for all planners, which are chosen by name."""

from __future__ import annotations

import importlib
import threading
import time
from collections.abc import Callable
from typing import NamedTuple, cast

import msgspec
import numpy as np
from numpy.typing import ArrayLike

from proctor.core.errors import UnknownName, missing_extra
from proctor.core.geometry import path_length
from proctor.core.types import Array
from proctor.maps.any_angle import AnyAnglePlanner
from proctor.maps.clearance import clearance_at
from proctor.maps.clearance_field import ClearanceField
from proctor.maps.failure import NavigationFailure, Reason
from proctor.maps.free_space import FreeSpace, Mask, PlannerBackend

PLANNERS = {
    "grid": "proctor.maps.any_angle:AnyAnglePlanner",
    "rrt": "proctor.navigation.ompl_planner:RrtPlanner",
    "rrt_star": "proctor.navigation.ompl_planner:RrtStarPlanner",
    "prm": "proctor.navigation.ompl_planner:PrmPlanner",
    "rrt_connect": "proctor.navigation.ompl_planner:RrtConnectPlanner",
}
"""Where the class of each planner is."""
MARGIN_M = 0.05
MARGIN_SHARES = (1.0, 0.5, 0.0)  # tried in turn: a path matters more than room to spare
HAIR = 1e-7  # cells
HAIRS = HAIR * np.array([(0, 0), (-1, 0), (1, 0), (0, -1), (0, 1), (-1, -1), (1, -1), (-1, 1), (1, 1)])
KEPT_SPACES = 6  # the margins of two maps


class RawPath(msgspec.Struct, frozen=True, kw_only=True):
    """The corners of a path, straight lines between them."""

    points: Array  # (N, 2), world; the first is the start, the last the goal, exactly
    margin_m: float
    """What each cell on the path has at its centre beyond the robot's radius, except near both ends, where it
    may have nothing. Elsewhere in the cell it is less by up to half its diagonal."""
    planner: str
    length_m: float
    optimum_gap: float | None = None  # 0 if no path through such cells is shorter; None if not known


def find_path(  # noqa: PLR0913 - all but three have defaults
    field: ClearanceField,
    start_xy: ArrayLike,
    goal_xy: ArrayLike,
    *,
    planner: str = "grid",
    radius_m: float,
    margin_m: float = MARGIN_M,
    timeout_s: float = 5.0,
    seed: int = 0,
    cancelled: Callable[[], bool] | None = None,
) -> RawPath:
    """Return a path from the start to the goal, both in the world frame.

    The path goes through cells that have room for the robot at their centres. It may pass a corner of such a
    cell, and there it comes nearer to an obstacle than radius and margin, by up to half the diagonal of a
    cell: 3.5 cm if cells have 5 cm. With the margin of 5 cm that is still outside of the radius, except
    within 0.5 m of both ends and where there is less room. `smooth_path` makes paths that keep the radius.

    What is prepared for a map is kept, so the next query on the same map (the very array of cells) is much
    faster. `planner` is one of `PLANNERS`; those of OMPL also by their class, as `ompl:RRTstar`. `margin_m`
    is kept beyond the radius where there is room, `timeout_s` is wall time, and `cancelled` is asked now and
    then.

    Raises NavigationFailure, UnknownName, or MissingDependency if the planner's package is not installed.
    """
    name = planner_name(planner)
    start_world, goal_world = np.array(start_xy, dtype=float), np.array(goal_xy, dtype=float)
    start, goal = _checked_ends(field, start_world, goal_world, radius_m)
    query = _Query(start, goal, time.monotonic() + timeout_s, seed, cancelled)
    for share in MARGIN_SHARES if margin_m > 0 else (0.0,):
        kept_m = share * margin_m
        found = query.answer(_free_space(field, radius_m, kept_m), _kind_of(name))
        if found is not None:
            points = found.corners * field.resolution_m + (field.origin_x, field.origin_y)
            points[0], points[-1] = start_world, goal_world
            length_m, gap = path_length(points), found.optimum_gap
            return RawPath(points=points, margin_m=kept_m, planner=name, length_m=length_m, optimum_gap=gap)
    way = f"from {_shown(start_world)} to {_shown(goal_world)}"
    raise NavigationFailure(Reason.NO_PATH, f"there is no way {way} for a radius of {radius_m} m")


class _Found(NamedTuple):
    corners: Array
    optimum_gap: float | None


class _Query(NamedTuple):
    """What to plan, in cells."""

    start: Array
    goal: Array
    deadline_s: float
    seed: int
    cancelled: Callable[[], bool] | None

    def answer(self, space: FreeSpace, kind: type[PlannerBackend]) -> _Found | None:
        """Plan in a space, or return None; planners that sample are only asked if there is a path."""
        with space.lock, space.open_at(self.start, self.goal) as free:
            exact = AnyAnglePlanner
            corners = self._plan(space.planner(exact), free)
            if corners is None:
                return None
            if kind is exact:
                return _Found(corners, space.planner(exact).optimum_gap)
            corners = self._plan(space.planner(kind), free)
            if corners is None:
                raise NavigationFailure(Reason.PLANNING_TIMEOUT, "there is a path, but it was not found")
            return _Found(corners, None)

    def _plan(self, backend: PlannerBackend, free: Mask) -> Array | None:
        left_s = self.deadline_s - time.monotonic()
        if left_s <= 0:
            raise NavigationFailure(Reason.PLANNING_TIMEOUT, "the time to plan was over")
        return backend.plan(
            free, self.start, self.goal, timeout_s=left_s, seed=self.seed, cancelled=self.cancelled
        )


def planner_name(spelling: str) -> str:
    """Return the name of a planner; OMPL's may also be spelt `ompl:RRTstar`."""
    if spelling in PLANNERS:
        return spelling
    package, _, wanted = spelling.rpartition(":")
    for name, place in PLANNERS.items():
        if (
            package == "ompl"
            and "ompl" in place
            and name.replace("_", "") == wanted.lower().replace("*", "star")
        ):
            return name
    raise UnknownName("planner", spelling, PLANNERS)


def _kind_of(name: str) -> type[PlannerBackend]:
    module, _, kind = PLANNERS[name].partition(":")
    try:
        return cast(type[PlannerBackend], getattr(importlib.import_module(module), kind))
    except ModuleNotFoundError as error:
        missing = missing_extra(f"The planner '{name}'", error)
        if missing is None:
            raise
        raise missing from error


_kept: list[tuple[ClearanceField, float, float, FreeSpace]] = []
_kept_lock = threading.Lock()


def _free_space(field: ClearanceField, radius_m: float, margin_m: float) -> FreeSpace:
    """Return the free space of a map, the same as before for the same array of cells."""
    with _kept_lock:
        for index, (of, of_radius_m, of_margin_m, space) in enumerate(_kept):
            same_map = of.cells is field.cells and of.resolution_m == field.resolution_m
            if same_map and (of_radius_m, of_margin_m) == (radius_m, margin_m):
                _kept.append(_kept.pop(index))
                return space
        space = FreeSpace(field, radius_m, margin_m)
        _kept.append((field, radius_m, margin_m, space))
        del _kept[:-KEPT_SPACES]
        return space


def _checked_ends(
    field: ClearanceField, start_world: Array, goal_world: Array, radius_m: float
) -> tuple[Array, Array]:
    """Return both ends in cells, or raise NavigationFailure if a robot cannot stand there."""
    ends = []
    for what, point, outside, occupied in (
        ("start", start_world, Reason.START_OUTSIDE_MAP, Reason.START_OCCUPIED),
        ("goal", goal_world, Reason.GOAL_OUTSIDE_MAP, Reason.GOAL_OCCUPIED),
    ):
        if not field.covers(*point):  # neither does it cover what is not a number
            raise NavigationFailure(outside, f"the {what} {_shown(point)} is outside of the map")
        end = _in_free_cell(field, point, radius_m)
        if end is None:
            if not (field.cells > radius_m).any():
                problem = f"the map has no place for a robot with a radius of {radius_m} m"
                raise NavigationFailure(Reason.NO_FREE_SPACE, problem)
            problem = f"a robot with a radius of {radius_m} m does not fit at the {what} {_shown(point)}"
            found = f"an obstacle is {max(clearance_at(field, *point)[0], 0.0):.2f} m away"
            raise NavigationFailure(occupied, f"{problem}: {found}")
        ends.append(end)
    return ends[0], ends[1]


def _in_free_cell(field: ClearanceField, point: Array, radius_m: float) -> Array | None:
    """Return a point in cells. If it is on a border, it is moved by a hair to the side that is free."""
    rows, columns = field.cells.shape
    at: Array = (point - (field.origin_x, field.origin_y)) / field.resolution_m
    for shift in HAIRS:
        end: Array = np.clip(at + shift, 0.0, (columns - HAIR, rows - HAIR))
        if field.cells[int(end[1]), int(end[0])] > radius_m:
            return end
    return None


def _shown(point: Array) -> str:
    return f"({point[0]:.2f}, {point[1]:.2f})"
