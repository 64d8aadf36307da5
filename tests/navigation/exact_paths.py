"""Slow and simple: whether lines are free, and the shortest path, to check the fast ones against.

All in cells, x first.
"""

import itertools
import math

import numpy as np
from scipy.sparse.csgraph import dijkstra

HAIR = 1e-7


def forbidden_boxes(free):
    """Boxes (x0, y0, x1, y1) that no line may touch.

    They are the cells that are not free, those around the map included, a hair smaller than they are; and
    thin ones where there is no room between two such cells, side by side or diagonal.
    """
    free = np.pad(free, 1)
    boxes = []
    for row, column in itertools.product(*map(range, free.shape)):
        x, y = column - 1.0, row - 1.0
        if not free[row, column]:
            boxes.append((x, y, x + 1, y + 1))
        if row and column:
            here, left = free[row, column], free[row, column - 1]
            below, diagonal = free[row - 1, column], free[row - 1, column - 1]
            if not here and not left:
                boxes.append((x - 1e-4, y, x + 1e-4, y + 1))
            if not here and not below:
                boxes.append((x, y - 1e-4, x + 1, y + 1e-4))
            if here == diagonal and left == below and here != left:
                boxes.append((x - 1e-4, y - 1e-4, x + 1e-4, y + 1e-4))
    return np.array(boxes) + np.array([HAIR, HAIR, -HAIR, -HAIR])


def lines_are_free(boxes, starts, ends):
    """For (N, 2) starts and ends: whether each line stays clear of all boxes."""
    moves = (ends - starts)[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        to_low = (boxes[:, :2] - starts[:, None]) / moves
        to_high = (boxes[:, 2:] - starts[:, None]) / moves
    still = moves == 0
    inside = (starts[:, None] > boxes[:, :2]) & (starts[:, None] < boxes[:, 2:])
    enter = np.where(still, np.where(inside, -np.inf, np.inf), np.minimum(to_low, to_high)).max(axis=-1)
    leave = np.where(still, np.where(inside, np.inf, -np.inf), np.maximum(to_low, to_high)).min(axis=-1)
    return ~(np.maximum(enter, 0.0) < np.minimum(leave, 1.0)).any(axis=1)


def path_is_free(boxes, path):
    """Whether all of a path stays clear of all boxes, its bends included."""
    return bool(
        lines_are_free(boxes, path[:-1], path[1:]).all()
        and lines_are_free(boxes, path[1:-1], path[1:-1]).all()
    )


def shortest_length(boxes, start, goal):
    """The length of the shortest path, by the graph of all points where cells meet that see each other."""
    columns, rows = boxes[:, 2:].max(axis=0).round().astype(int) - 1
    corners = np.array(list(itertools.product(range(columns + 1), range(rows + 1))), dtype=float)
    corners = corners[lines_are_free(boxes, corners, corners)]
    nodes = np.concatenate([[start, goal], corners])
    first, second = np.triu_indices(len(nodes), 1)
    seen = lines_are_free(boxes, nodes[first], nodes[second])
    graph = np.zeros((len(nodes), len(nodes)))
    graph[first[seen], second[seen]] = np.linalg.norm(nodes[first] - nodes[second], axis=1)[seen]
    return float(dijkstra(graph, directed=False, indices=0)[1])


def length(path):
    return sum(math.dist(a, b) for a, b in itertools.pairwise(path))
