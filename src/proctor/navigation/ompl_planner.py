"""The planners of the Open Motion Planning Library, on maps of free cells.

OMPL holds Python's lock while it works: call these planners in another process, see `process.client`. A run
is bounded by counting its iterations wherever OMPL allows it, so that the same seed gives the same path; time
only ends it when it is up.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from ompl import base, geometric, util
from scipy.sparse import coo_array
from scipy.sparse.csgraph import dijkstra
from scipy.spatial import cKDTree

from proctor.core.types import Array
from proctor.kernels.clearance import Mask
from proctor.kernels.lines import line_is_free, lines_are_free, path_is_free
from proctor.maps.failure import NavigationFailure, Reason
from proctor.maps.free_space import CellQuery, window_around

Indices: TypeAlias = NDArray[np.int64]

NEIGHBOURS = 12  # so many of the nearest places are tried, to join a new one to the roadmap

NOTHING = np.zeros((1, 1), dtype=bool)
CELLS_PER_PLACE = 20  # how dense a roadmap begins
FEWEST_PLACES, MOST_PLACES = 1000, 30_000
SPARSELY = 5  # one in so many of the cells that are free in one query only is a place for that query
CELLS_PER_ITERATION = 8
FEWEST_ITERATIONS, MOST_ITERATIONS = 3000, 12_000  # of RRT*: 0.3 to 1.5 s

util.setLogLevel(util.LOG_NONE)


class Roadmap:
    """Places (N, 2), in cells, and the free straight lines between them, (M, 2) indices of places."""

    def __init__(self, places: Array, ways: Indices) -> None:
        self.places, self._ways = places, ways

    def path(self, free: Mask, start: Array, goal: Array, extra: Array) -> Array | None:
        """Return the shortest path (N, 2) along the roadmap, None if start and goal are not joined.

        For this query only, start, goal and `extra` (K, 2) places are joined to it by free lines.
        """
        added = np.concatenate([start[None], goal[None], extra])
        places = np.concatenate([added, self.places])
        ways = np.concatenate([self._ways + len(added), _ways_of(free, places, len(added))])
        lengths = np.linalg.norm(places[ways[:, 0]] - places[ways[:, 1]], axis=1)
        graph = coo_array((lengths, (ways[:, 0], ways[:, 1])), shape=(len(places),) * 2)
        distances, before = dijkstra(graph.tocsr(), directed=False, indices=0, return_predecessors=True)
        if not np.isfinite(distances[1]):
            return None
        chain = [1]
        while chain[-1] != 0:
            chain.append(int(before[chain[-1]]))
        return np.asarray(places[chain[::-1]])


def _ways_of(free: Mask, places: Array, count: int) -> Indices:
    """Return the free ways between each of the first places and those that are nearest to it."""
    _, near = cKDTree(places).query(places[:count], k=min(NEIGHBOURS + 1, len(places)))
    pairs = np.stack([np.repeat(np.arange(count), near.shape[1]), near.ravel()], axis=1)
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    return np.asarray(pairs[lines_are_free(free, places[pairs[:, 0]], places[pairs[:, 1]])])


def stop_condition(query: CellQuery, count: float = math.inf) -> Any:
    """Return OMPL's condition for ending: after so many iterations, at the deadline, or if cancelled."""
    iterations = itertools.count(1)
    return base.PlannerTerminationCondition(lambda: next(iterations) > count or query.is_over)


def failure_of(query: CellQuery, planner: str) -> NavigationFailure:
    """Return why there is no path, though the cells are connected."""
    if query.is_cancelled:
        return NavigationFailure(Reason.CANCELLED, "planning was cancelled")
    return NavigationFailure(Reason.PLANNING_TIMEOUT, f"{planner} found no path in the time it had")


class LentMask:
    """The mask that OMPL asks. It knows nothing of OMPL, which never frees a cycle of references."""

    def __init__(self) -> None:
        self.free = NOTHING

    def has_state(self, state: Any) -> bool:
        """Tell whether a place is free."""
        row, column = int(state[1]), int(state[0])
        return row < self.free.shape[0] and column < self.free.shape[1] and bool(self.free[row, column])

    def has_motion(self, start: Any, end: Any) -> bool:
        """Tell whether a straight line is free."""
        return line_is_free(self.free, start[0], start[1], end[0], end[1])


class Motions(base.MotionValidator):  # type: ignore[misc]
    """Tests straight lines exactly, instead of at points along them."""

    def __init__(self, information: Any, mask: LentMask) -> None:
        super().__init__(information)
        self._mask = mask

    def checkMotion(self, start: Any, end: Any, *_last_valid: Any) -> bool:  # noqa: N802 - as OMPL calls it
        """Tell whether a straight line is free."""
        return self._mask.has_motion(start, end)


class Plane:
    """The continuous plane of a map's cells, as OMPL knows it."""

    def __init__(self, rows: int, columns: int) -> None:
        bounds = base.RealVectorBounds(2)
        bounds.setLow(0.0)
        bounds.setHigh(0, float(columns))
        bounds.setHigh(1, float(rows))
        self._space = base.RealVectorStateSpace(2)
        self._space.setBounds(bounds)
        self._mask = LentMask()
        self.information = base.SpaceInformation(self._space)
        self.information.setMotionValidator(Motions(self.information, self._mask))
        self.information.setStateValidityChecker(self._mask.has_state)
        self.information.setup()

    @contextmanager
    def lent(self, free: Mask) -> Iterator[None]:
        """Let OMPL see a mask for a while."""
        self._mask.free = free
        try:
            yield
        finally:
            self._mask.free = NOTHING

    def problem(self, start: Array, goal: Array) -> Any:
        """Return OMPL's statement of a query."""
        definition = base.ProblemDefinition(self.information)
        definition.setStartAndGoalStates(self._state(start), self._state(goal))
        return definition

    def path(self, points: Array) -> Any:
        """Return a path as OMPL has it."""
        path = geometric.PathGeometric(self.information)
        for point in points:
            path.append(self._state(point))
        return path

    def _state(self, point: Array) -> Any:
        state = self._space.allocState()
        state[0], state[1] = float(point[0]), float(point[1])
        return state


class OmplPlanner:
    """What all of these planners share; see `planner.PlannerBackend`, also for the arguments."""

    optimum_gap = None  # they never know

    def __init__(self, free: Mask, *, reach: int) -> None:
        self._free, self._reach = free, reach
        self._plane = Plane(*free.shape)

    def plan(self, query: CellQuery) -> Array:
        """Return the corners (N, 2) of a path in cells, as `PlannerBackend.plan`. There must be one."""
        free, start, goal = query[:3]
        if line_is_free(free, start[0], start[1], goal[0], goal[1]):
            return np.stack([start, goal])
        util.RNG.setSeed(query.seed + 1)  # 0 would be none
        found = self._find(query)
        with self._plane.lent(free):
            path = self._plane.path(found)
            geometric.PathSimplifier(self._plane.information).simplifyMax(path)
            simpler = _points(path)
        return simpler if path_is_free(free, simpler) else found

    def _find(self, query: CellQuery) -> Array:
        raise NotImplementedError


class TreePlanner(OmplPlanner):
    """Grows a tree from the start for each query."""

    name: str
    branch: float | None = None  # cells, longest branch; by default a fifth of the map's diagonal

    def _enough(self, free: Mask) -> float:
        """Return after how many iterations a path is good enough. More are made if there is no path yet."""
        del free
        return math.inf  # until the first path

    def _find(self, query: CellQuery) -> Array:
        problem = self._plane.problem(query.start, query.goal)
        planner = getattr(geometric, self.name)(self._plane.information)
        planner.setProblemDefinition(problem)
        if self.branch is not None:
            planner.setRange(self.branch)
        planner.setup()
        enough = self._enough(query.free)
        with self._plane.lent(query.free):
            while not problem.hasExactSolution():
                planner.solve(stop_condition(query, enough))
                if query.is_over and not problem.hasExactSolution():
                    raise failure_of(query, self.name)
        return _points(problem.getSolutionPath())


class RrtPlanner(TreePlanner):
    """RRT: the first path that is found."""

    name = "RRT"


class RrtConnectPlanner(TreePlanner):
    """RRTConnect: two trees that grow towards each other, and the first path that is found."""

    name = "RRTConnect"
    branch = 25.0


class RrtStarPlanner(TreePlanner):
    """RRT*: goes on after the first path and makes it shorter."""

    name = "RRTstar"
    branch = 25.0

    def _enough(self, free: Mask) -> float:
        return float(np.clip(free.sum() / CELLS_PER_ITERATION, FEWEST_ITERATIONS, MOST_ITERATIONS))


class PrmPlanner(OmplPlanner):
    """PRM: a roadmap that is made for the first query on a map, and kept for all that follow."""

    def __init__(self, free: Mask, *, reach: int) -> None:
        super().__init__(free, reach=reach)
        self._roadmap: Roadmap | None = None
        self._planner = geometric.PRM(self._plane.information)
        corner = np.zeros(2)
        self._planner.setProblemDefinition(self._plane.problem(corner, corner))  # it wants one, of any kind
        self._planner.setup()
        self._batch = int(np.clip(free.sum() / CELLS_PER_PLACE, FEWEST_PLACES, MOST_PLACES))

    def _find(self, query: CellQuery) -> Array:
        free, start, goal = query[:3]
        extra = self._places_near(free, start, goal)
        while True:
            found = None if self._roadmap is None else self._roadmap.path(free, start, goal, extra)
            if found is not None:
                return found
            if query.is_over:
                raise failure_of(query, "PRM")
            self._grow(query)

    def _grow(self, query: CellQuery) -> None:
        """Add places to the roadmap, where all queries may go."""
        with self._plane.lent(self._free):
            self._planner.growRoadmapPtc(stop_condition(query, self._batch))
        data = base.PlannerData(self._plane.information)
        self._planner.getPlannerData(data)
        places = [data.getVertex(index).getState() for index in range(data.numVertices())]
        ways = [(index, other) for index in range(len(places)) for other in data.getEdges(index)]
        self._roadmap = Roadmap(
            np.array([(place[0], place[1]) for place in places]).reshape(-1, 2),
            np.array(ways, dtype=np.int64).reshape(-1, 2),
        )

    def _places_near(self, free: Mask, *ends: Array) -> Array:
        """Return some of the places around the ends that are free in this query only."""
        places = []
        for end in ends:
            window = rows, columns = window_around(end, self._reach, free.shape)
            only_here = np.argwhere(free[window] & ~self._free[window])[::SPARSELY, ::-1]
            places.append(only_here + np.array([columns.start, rows.start]) + 0.5)
        return np.concatenate(places)


def _points(path: Any) -> Array:
    """Return the (N, 2) points of OMPL's path."""
    return np.array([(state[0], state[1]) for state in path.getStates()])
