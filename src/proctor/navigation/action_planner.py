"""Plans of FORWARD, LEFT and RIGHT that bring a robot to a goal, found by simulating them."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from proctor.core.types import STEP_M, TURN_RAD, Action, Array, Pose2
from proctor.maps.grid_map import GridMap

TURNS = np.arange(-11, 13)  # to every heading, left is positive

COMFORT_M = 0.32  # moves with less clearance cost more: corners are taken wide without a detour
PROBES = np.array([0.25, 0.5, 0.75, 1.0])  # of a move

BEAM = 100
BIN_M = 0.05
TURN_COST_M = 0.02
CLOSENESS_COST = 0.3
NEAR_M = 0.1  # nearer to the goal than this is no better
MISS_COST = 5.0


class _Layer(NamedTuple):
    """Poses after the same number of FORWARDs. Costs are in metres of detour."""

    points: Array  # (N, 2)
    headings: NDArray[np.int64]  # turns from the first heading
    costs: Array  # of turning and of closeness to obstacles, so far
    parents: NDArray[np.int64]  # rows of the layer before
    turns: NDArray[np.int64]  # before the FORWARD that led here

    def rows(self, rows: NDArray[np.int64]) -> _Layer:
        """Return some of the poses."""
        return _Layer._make(column[rows] for column in self)


class ActionPlanner:
    """Finds actions that lead to a goal: short, with few turns and with room to spare.

    It is a beam search over exact kinematics. All poses of a layer have driven equally far forward; those
    with the least cost so far and the least distance to go are continued. Without a grid the floor is
    endless and empty.
    """

    def __init__(self, grid: GridMap | None, goal_xy: tuple[float, float]) -> None:
        self._grid, self._goal = grid, np.array(goal_xy)
        self._blocked = np.empty((0, 2))

    def block(self, x: float, y: float) -> None:
        """Plan no more steps that end here: something is in the way that the map does not show."""
        self._blocked = np.vstack([self._blocked, (x, y)])

    def plan(self, start: Pose2) -> list[Action]:
        """Return the actions up to the STOP, which ends nearest to the goal."""
        best: list[Action] = []
        best_total = math.inf
        for clearance_m in (0.25, 0.22):  # the second where the first does not lead to the goal
            actions, total, miss_m = self._search(start, clearance_m)
            if total < best_total:
                best, best_total = actions, total
            if miss_m < 2 * NEAR_M:
                break
        return best

    def _search(self, start: Pose2, clearance_m: float) -> tuple[list[Action], float, float]:
        """Return the best actions, their total cost and how far from the goal they end."""
        zero = np.zeros(1, dtype=np.int64)
        layer = _Layer(np.array([[start.x, start.y]]), zero, np.zeros(1), zero, zero)
        layers: list[_Layer] = []
        depth, row, total, miss_m = 0, 0, math.inf, math.inf
        while len(layer.costs) and STEP_M * len(layers) < total:
            remaining_m = self._remaining_m(layer.points, clearance_m)
            misses_m = np.maximum(self._straight_m(layer.points), remaining_m)
            totals = layer.costs + STEP_M * len(layers)
            totals += MISS_COST * np.maximum(misses_m - NEAR_M, 0)
            best = int(totals.argmin())
            if totals[best] < total:
                depth, row = len(layers), best
                total, miss_m = float(totals[best]), float(misses_m[best])
            layers.append(layer)
            layer = self._expanded(layer, start.yaw, clearance_m)
        return _actions(layers, depth, row), total, miss_m

    def _expanded(self, layer: _Layer, first_yaw: float, clearance_m: float) -> _Layer:
        """Turn all poses every way, go forward, and keep the best of what is allowed."""
        parents = np.repeat(np.arange(len(layer.costs)), len(TURNS))
        turns = np.tile(TURNS, len(layer.costs))
        headings = layer.headings[parents] + turns
        yaws = first_yaw + TURN_RAD * headings
        moves = STEP_M * np.stack([np.cos(yaws), np.sin(yaws)], axis=1)
        points = layer.points[parents] + moves
        costs = layer.costs[parents] + TURN_COST_M * np.abs(turns)
        if self._grid is not None:
            probes = layer.points[parents][:, None] + PROBES[:, None] * moves[:, None]
            clearances_m = self._grid.clearances(probes).min(axis=1)
            costs += CLOSENESS_COST * np.maximum(COMFORT_M - clearances_m, 0)
            costs[clearances_m <= clearance_m] = np.inf
        for blocked in self._blocked:
            costs[np.linalg.norm(points - blocked, axis=1) < STEP_M / 2] = np.inf
        ahead = _Layer(points, headings, costs, parents, turns).rows(np.flatnonzero(costs < np.inf))
        return ahead.rows(self._best(ahead, clearance_m))

    def _best(self, layer: _Layer, clearance_m: float) -> NDArray[np.int64]:
        """Return the most promising rows, only one for poses that are much the same."""
        order = np.argsort(layer.costs + self._remaining_m(layer.points, clearance_m), kind="stable")
        bins = np.round(layer.points[order] / BIN_M).astype(int)
        poses = np.column_stack([bins, layer.headings[order] % len(TURNS)])
        _, firsts = np.unique(poses, axis=0, return_index=True)
        kept: NDArray[np.int64] = order[np.sort(firsts)[:BEAM]]
        return kept

    def _remaining_m(self, points: Array, clearance_m: float) -> Array:
        if self._grid is None:
            return self._straight_m(points)
        return self._grid.rough_distances_m(points, self._goal, radius_m=clearance_m)

    def _straight_m(self, points: Array) -> Array:
        distances: Array = np.linalg.norm(points - self._goal, axis=1)
        return distances


def _actions(layers: list[_Layer], depth: int, row: int) -> list[Action]:
    """Read the actions that led to a pose, backwards."""
    actions: list[Action] = []
    for layer in layers[depth:0:-1]:
        turns = int(layer.turns[row])
        actions += [Action.FORWARD] + [Action.LEFT if turns > 0 else Action.RIGHT] * abs(turns)
        row = int(layer.parents[row])
    return actions[::-1]
