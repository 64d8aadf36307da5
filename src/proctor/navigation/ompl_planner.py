"""The planners of the Open Motion Planning Library, on maps of free cells.

They draw random places and join them by straight lines, each of which is tested exactly. OMPL holds Python's
lock while it works, so whoever has anything else to do calls these planners in another process: see
`planning_client`. A run is bounded by counting its iterations wherever OMPL lets it, so that the same seed
gives the same path; time only ends it when it is up.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from ompl import base, geometric, util

from proctor.core.types import Array
from proctor.navigation.failure import NavigationFailure, Reason
from proctor.navigation.line_of_sight import line_is_free, path_is_free
from proctor.navigation.roadmap import Roadmap

Mask: TypeAlias = NDArray[np.bool_]
Cancelled: TypeAlias = Callable[[], bool] | None

NOTHING = np.zeros((1, 1), dtype=bool)
CELLS_PER_PLACE = 20
"""How dense a roadmap begins."""
FEWEST_PLACES, MOST_PLACES = 1000, 30_000
SPARSELY = 5

util.setLogLevel(util.LOG_NONE)


class Budget:
    """Tells OMPL when to stop: after so many iterations, when the time is up, or when nobody wants a path.

    Planners ask once per iteration.
    """

    def __init__(self, timeout_s: float, cancelled: Cancelled) -> None:
        self._deadline_s = time.monotonic() + timeout_s
        self._cancelled = cancelled
        self._asked = 0

    @property
    def is_over(self) -> bool:
        """Whether there is no time left, or no need."""
        return time.monotonic() > self._deadline_s or (self._cancelled is not None and self._cancelled())

    def iterations(self, count: float = math.inf) -> Any:
        """Return OMPL's condition for ending after so many iterations, or when the budget is over."""
        self._asked = 0

        def ended() -> bool:
            self._asked += 1
            return self._asked > count or self.is_over

        return base.PlannerTerminationCondition(ended)

    def failure(self, planner: str) -> NavigationFailure:
        """Return why there is no path, though the cells are connected."""
        if self._cancelled is not None and self._cancelled():
            return NavigationFailure(Reason.CANCELLED, "planning was cancelled")
        return NavigationFailure(Reason.PLANNING_TIMEOUT, f"{planner} found no path in the time it had")


class Motions(base.MotionValidator):  # type: ignore[misc]
    """Tests straight lines exactly, instead of at points along them."""

    def __init__(self, information: Any) -> None:
        super().__init__(information)
        self.free = NOTHING

    def checkMotion(self, start: Any, end: Any, *_last_valid: Any) -> bool:  # noqa: N802
        """Tell whether a straight line is free."""
        return line_is_free(self.free, start[0], start[1], end[0], end[1])


class Plane:
    """The continuous plane of a map's cells, as OMPL knows it. One for all masks of a size.

    OMPL never lets go of what it calls back, so the mask is lent for one query only.
    """

    def __init__(self, rows: int, columns: int) -> None:
        bounds = base.RealVectorBounds(2)
        bounds.setLow(0.0)
        bounds.setHigh(0, float(columns))
        bounds.setHigh(1, float(rows))
        self._space = base.RealVectorStateSpace(2)
        self._space.setBounds(bounds)
        self.information = base.SpaceInformation(self._space)
        self._motions = Motions(self.information)
        self.information.setMotionValidator(self._motions)
        self.information.setStateValidityChecker(self._is_free)
        self.information.setup()

    @contextmanager
    def lent(self, free: Mask) -> Iterator[None]:
        """Let OMPL see a mask for a while."""
        self._motions.free = free
        try:
            yield
        finally:
            self._motions.free = NOTHING

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

    def _is_free(self, state: Any) -> bool:
        free, row, column = self._motions.free, int(state[1]), int(state[0])
        return row < free.shape[0] and column < free.shape[1] and bool(free[row, column])


@lru_cache(maxsize=4)
def plane_of(rows: int, columns: int) -> Plane:
    """Return the plane of a size of map, made once: OMPL would leak it."""
    return Plane(rows, columns)


class OmplPlanner:
    """What all of these planners share; see `planner.PlannerBackend`, also for the arguments."""

    def __init__(self, free: Mask, *, reach: int) -> None:
        self._free, self._reach = free, reach
        self._plane = plane_of(*free.shape)

    def plan(
        self, free: Mask, start: Array, goal: Array, *, timeout_s: float, seed: int, cancelled: Cancelled
    ) -> Array:
        """Return the corners (N, 2) of a path in cells. That there is one must be known.

        Raises:
            NavigationFailure: PLANNING_TIMEOUT or CANCELLED.
        """
        if line_is_free(free, start[0], start[1], goal[0], goal[1]):
            return np.stack([start, goal])
        budget = Budget(timeout_s, cancelled)
        util.RNG.setSeed(seed + 1)  # 0 would be none
        found = self._find(free, start, goal, budget)
        with self._plane.lent(free):
            path = self._plane.path(found)
            geometric.PathSimplifier(self._plane.information).simplifyMax(path)
            simpler = _points(path)
        return simpler if path_is_free(free, simpler) else found

    def _find(self, free: Mask, start: Array, goal: Array, budget: Budget) -> Array:
        raise NotImplementedError


class TreePlanner(OmplPlanner):
    """Grows a tree from the start for each query."""

    name: str
    branch: float | None = None
    """Cells: how far a branch goes at most; by default a fifth of the map's diagonal."""
    enough = math.inf
    """Iterations after which the path is good enough. More are made if there is no path yet."""

    def _find(self, free: Mask, start: Array, goal: Array, budget: Budget) -> Array:
        problem = self._plane.problem(start, goal)
        planner = getattr(geometric, self.name)(self._plane.information)
        planner.setProblemDefinition(problem)
        if self.branch is not None:
            planner.setRange(self.branch)
        planner.setup()
        with self._plane.lent(free):
            while not problem.hasExactSolution():
                planner.solve(budget.iterations(self.enough))
                if budget.is_over and not problem.hasExactSolution():
                    raise budget.failure(self.name)
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
    enough = 12_000


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

    def _find(self, free: Mask, start: Array, goal: Array, budget: Budget) -> Array:
        extra = self._places_near(free, start, goal)
        while True:
            found = None if self._roadmap is None else self._roadmap.path(free, start, goal, extra)
            if found is not None:
                return found
            if budget.is_over:
                raise budget.failure("PRM")
            self._grow(budget)

    def _grow(self, budget: Budget) -> None:
        """Add places to the roadmap, where all queries may go."""
        with self._plane.lent(self._free):
            self._planner.growRoadmapPtc(budget.iterations(self._batch))
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
        for x, y in ends:
            rows = slice(max(int(y) - self._reach, 0), int(y) + self._reach + 1)
            columns = slice(max(int(x) - self._reach, 0), int(x) + self._reach + 1)
            only_here = np.argwhere(free[rows, columns] & ~self._free[rows, columns])[:, ::-1]
            places.append(only_here[::SPARSELY] + np.array([columns.start, rows.start]) + 0.5)
        return np.concatenate(places)


def _points(path: Any) -> Array:
    """Return the (N, 2) points of OMPL's path."""
    return np.array([(state[0], state[1]) for state in path.getStates()])
