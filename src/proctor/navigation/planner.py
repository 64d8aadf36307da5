"""Find a path for a disc on a map: one function for all planners, which are chosen by name."""

from __future__ import annotations

import importlib.util
import pkgutil
import threading
import time
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, ClassVar, cast

import msgspec
import numpy as np
from numpy.typing import ArrayLike

from proctor.core.errors import UnknownName, missing_extra
from proctor.core.geometry import evenly_spaced, path_length
from proctor.core.registry import EMPTY, load, names
from proctor.core.types import Array
from proctor.kernels.clearance import ClearanceField, clearance_at, least_clearance
from proctor.maps.any_angle import AnyAnglePlanner
from proctor.maps.failure import NavigationFailure, PluginFailure, Reason
from proctor.maps.free_space import CellQuery, FreeSpace, PlannerBackend, in_free_cell, is_connected
from proctor.navigation.plugins import FoundPath, PathPlanner, PathQuery, calling, check_returned, make_plugin

MARGIN_M = 0.05
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
    planner_options: Mapping[str, Any] = EMPTY,
) -> RawPath:
    """Return a path from the start to the goal, both in the world frame.

    The path goes through cells that have room for the robot at their centres. It may pass a corner of such a
    cell, and there it comes nearer to an obstacle than radius and margin, by up to half the diagonal of a
    cell: 3.5 cm if cells have 5 cm. With the margin of 5 cm that is still outside of the radius, except
    within 0.5 m of both ends and where there is less room. `smooth_path` makes paths that keep the radius.

    What is prepared for a map is kept, so the next query on the same map (the very array of cells) is much
    faster. `planner` is a name or a class, see `plugins.PathPlanner`; those of OMPL also as `ompl:RRTstar`.
    `margin_m` is kept beyond the radius where there is room, `timeout_s` is wall time, and `cancelled` is
    asked now and then.

    Raises NavigationFailure, UnknownName, UserError for an option that the planner does not have, or
    MissingDependency if its package is not installed.
    """
    name = planner_name(planner)
    start_world, goal_world = np.array(start_xy, dtype=float), np.array(goal_xy, dtype=float)
    _checked_ends(field, start_world, goal_world, radius_m)
    deadline_s = time.monotonic() + timeout_s
    own = _planner(name, msgspec.json.encode(dict(planner_options)))
    for share in (1.0, 0.5, 0.0) if margin_m > 0 else (0.0,):  # a path matters more than room to spare
        kept_m = share * margin_m
        query = PathQuery(field, start_world, goal_world, radius_m, kept_m, deadline_s, seed, cancelled)
        with calling(own):
            found = own.find_path(query)
        if found is not None:
            check_returned(own, found, FoundPath, "FoundPath(points), or None if it finds no path")
            points = found.points if isinstance(own, CellPlanner) else _checked_points(query, found, own)
            points[0], points[-1] = start_world, goal_world
            length_m, gap = path_length(points), found.optimum_gap
            return RawPath(points=points, margin_m=kept_m, planner=name, length_m=length_m, optimum_gap=gap)
    way = f"way from {_shown(start_world)} to {_shown(goal_world)} for a radius of {radius_m} m"
    problem = "there is no" if isinstance(own, CellPlanner) else f"the {own.title} returned None: it found no"
    raise NavigationFailure(Reason.NO_PATH, f"{problem} {way}")


class CellPlanner(PathPlanner):
    """A planner on the free cells of a map, which are kept for the next query."""

    backend: ClassVar[str]  # `module:Class` of a PlannerBackend, imported on use

    def find_path(self, query: PathQuery) -> FoundPath | None:
        """Plan in cells."""
        field, kind = query.field, cast(type[PlannerBackend], pkgutil.resolve_name(self.backend))
        can_prove_absence = kind is AnyAnglePlanner  # planners that sample cannot tell that there is no path
        start, goal = _checked_ends(field, query.start_xy, query.goal_xy, query.radius_m)
        space = _free_space(field, query.radius_m, query.margin_m)
        with space.lock, space.open_at(start, goal) as free:
            if not (can_prove_absence or is_connected(free, start, goal)):
                return None
            if query.left_s <= 0:
                raise NavigationFailure(Reason.PLANNING_TIMEOUT, "the time to plan was over")
            backend = space.planner(kind)
            corners = backend.plan(
                CellQuery(free, start, goal, query.deadline_s, query.seed, query.cancelled)
            )
            gap = backend.optimum_gap
        if corners is None and not can_prove_absence:
            raise NavigationFailure(Reason.PLANNING_TIMEOUT, "there is a path, but it was not found")
        if corners is None:
            return None
        return FoundPath(corners * field.resolution_m + (field.origin_x, field.origin_y), gap)


class GridPlanner(CellPlanner):
    """Any-angle search on the grid, refined among the corners of obstacles."""

    backend = "proctor.maps.any_angle:AnyAnglePlanner"


class OmplRrt(CellPlanner):
    """OMPL's RRT."""

    package, backend = "ompl", "proctor.navigation.ompl_planner:RrtPlanner"


class OmplRrtStar(CellPlanner):
    """OMPL's RRT*, which improves its path while there is time."""

    package, backend = "ompl", "proctor.navigation.ompl_planner:RrtStarPlanner"


class OmplPrm(CellPlanner):
    """OMPL's probabilistic roadmap, kept between queries on the same map."""

    package, backend = "ompl", "proctor.navigation.ompl_planner:PrmPlanner"


class OmplRrtConnect(CellPlanner):
    """OMPL's RRT-Connect, from both ends."""

    package, backend = "ompl", "proctor.navigation.ompl_planner:RrtConnectPlanner"


def planner_name(spelling: str) -> str:
    """Return the name of a planner; OMPL's may also be spelt `ompl:RRTstar`, and others `module:Class`."""
    known = names("planner")
    if spelling in known:
        return spelling
    package, _, wanted = spelling.rpartition(":")
    if package not in ("", "ompl"):
        load("planner", spelling)
        return spelling
    for name, target in known.items():
        is_ompl = package == "ompl" and target.partition(":")[2].startswith("Ompl")
        if is_ompl and name.replace("_", "") == wanted.lower().replace("*", "star"):
            return name
    raise UnknownName("planner", spelling, known)


@lru_cache(maxsize=8)
def _planner(name: str, options_json: bytes) -> PathPlanner:
    """Return the planner of a name, the same as before for the same options."""
    require_package(load("planner", name).package, f"The planner '{name}'")
    return cast(PathPlanner, make_plugin("planner", name, msgspec.json.decode(options_json)))


def require_package(package: str, what: str) -> None:
    """Raise MissingDependency if a package is not installed, without importing it."""
    if package and importlib.util.find_spec(package) is None:
        raise missing_extra(what, ModuleNotFoundError(name=package)) or ModuleNotFoundError(name=package)


def _checked_points(query: PathQuery, found: FoundPath, planner: PathPlanner) -> Array:
    """Return a planner's corners; PluginFailure if they are none, NO_PATH if the robot cannot drive there."""
    with calling(planner):
        corners, field = np.array(found.points, dtype=float), query.field
    what = f"the {planner.title} returned"
    if corners.ndim != 2 or corners.shape[1] != 2 or len(corners) < 2:
        raise PluginFailure(f"{what} an array {corners.shape}; expected (N, 2) corners, N at least 2")
    if not np.isfinite(corners).all():
        raise PluginFailure(f"{what} corners that are not finite")
    for end, wanted in ((corners[0], query.start_xy), (corners[-1], query.goal_xy)):
        if not np.hypot(*(end - wanted)) <= field.resolution_m:
            raise NavigationFailure(
                Reason.NO_PATH, f"{what} a path that ends at {_shown(end)}, not {_shown(wanted)}"
            )
    if not all(field.covers(x, y) for x, y in corners):
        raise NavigationFailure(Reason.NO_PATH, f"{what} a path that leaves the map")
    room_m = least_clearance(field, evenly_spaced(corners, field.resolution_m / 2))
    ends_m = least_clearance(field, np.stack([query.start_xy, query.goal_xy]))
    if room_m < min(query.radius_m, ends_m) - field.resolution_m:
        problem = f"{what} a path that comes within {max(room_m, 0.0):.2f} m of an obstacle"
        raise NavigationFailure(Reason.NO_PATH, f"{problem}, for a radius of {query.radius_m} m")
    return corners


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
        at = (point - (field.origin_x, field.origin_y)) / field.resolution_m
        end = in_free_cell(field.cells, at, radius_m)
        if end is None:
            if not (field.cells > radius_m).any():
                problem = f"the map has no place for a robot with a radius of {radius_m} m"
                raise NavigationFailure(Reason.NO_FREE_SPACE, problem)
            problem = f"a robot with a radius of {radius_m} m does not fit at the {what} {_shown(point)}"
            found = f"an obstacle is {max(clearance_at(field, *point)[0], 0.0):.2f} m away"
            raise NavigationFailure(occupied, f"{problem}: {found}")
        ends.append(end)
    return ends[0], ends[1]


def _shown(point: Array) -> str:
    return f"({point[0]:.2f}, {point[1]:.2f})"
