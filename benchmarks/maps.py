"""Generated floors to plan on: rooms with furniture, mazes, pillars, random squares, streets, caves.

Cells are of 5 cm.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter

Mask = NDArray[np.bool_]
CELL_M = 0.05


def rooms(cells: int, *, room_m: float, door_m: float, seed: int) -> Mask:
    """Square rooms; doors that join all of them, and some more; furniture in the middle."""
    rng = np.random.default_rng(seed)
    wall, clear = 2, 18
    count = round(cells * CELL_M / room_m)
    edges = np.linspace(0, cells - wall, count + 1).astype(int)
    occupied = np.zeros((cells, cells), dtype=bool)
    for edge in edges:
        occupied[edge : edge + wall] = occupied[:, edge : edge + wall] = True
    door = round(door_m / CELL_M)
    for (row, column), (next_row, next_column) in _joined(count, extra=0.35, rng=rng):
        along, across = (row, next_column) if row == next_row else (column, next_row)
        first = rng.integers(edges[along] + wall + 4, edges[along + 1] - door - 4)
        opening = slice(first, first + door), slice(edges[across], edges[across] + wall)
        occupied[opening if row == next_row else opening[::-1]] = False
    for corner in np.stack(np.meshgrid(range(count), range(count)), axis=-1).reshape(-1, 2):
        for _ in range(rng.poisson(room_m * room_m / 8)):
            size = rng.integers(8, 24, 2)
            low, high = edges[corner] + clear, edges[corner + 1] - clear - size
            if (high > low).all():
                row, column = rng.integers(low, high)
                occupied[row : row + size[0], column : column + size[1]] = True
    return occupied


def maze(cells: int, *, corridor_m: float, wall: int, seed: int) -> Mask:
    """Corridors that all are joined, with a few loops."""
    rng = np.random.default_rng(seed)
    width = round(corridor_m / CELL_M)
    pitch = width + wall
    count = (cells - wall) // pitch
    occupied = np.ones((cells, cells), dtype=bool)
    for (row, column), (next_row, next_column) in _joined(count, extra=0.05, rng=rng):
        rows = slice(wall + row * pitch, wall + next_row * pitch + width)
        occupied[rows, wall + column * pitch : wall + next_column * pitch + width] = False
    return occupied


def forest(cells: int, *, density: float, seed: int) -> Mask:
    """Round pillars anywhere, 0.2 m to 0.8 m thick."""
    rng = np.random.default_rng(seed)
    rows, columns = np.mgrid[-10:11, -10:11]
    occupied = np.zeros((cells, cells), dtype=bool)
    while occupied.mean() < density:
        for row, column in rng.integers(12, cells - 12, (64, 2)):
            pillar = rows**2 + columns**2 <= (rng.uniform(0.1, 0.4) / CELL_M) ** 2
            occupied[row - 10 : row + 11, column - 10 : column + 11] |= pillar
    occupied[[0, -1]] = occupied[:, [0, -1]] = True
    return occupied


def blocks(cells: int, *, size: int, density: float, seed: int) -> Mask:
    """Squares of so many cells, each of them full or empty at random."""
    rng = np.random.default_rng(seed)
    squares = rng.random((cells // size, cells // size)) < density
    return np.kron(squares, np.ones((size, size), dtype=bool)).astype(bool)


def streets(cells: int, *, buildings: int, seed: int) -> Mask:
    """Rectangles at all angles, as the houses of a city."""
    rng = np.random.default_rng(seed)
    rows, columns = np.mgrid[:cells, :cells].astype(np.float32)
    occupied = np.zeros((cells, cells), dtype=bool)
    for _ in range(buildings):
        angle, (y, x), (length, width) = (
            rng.uniform(0, np.pi),
            rng.uniform(0, cells, 2),
            rng.uniform(6, 60, 2),
        )
        along = (columns - x) * np.cos(angle) + (rows - y) * np.sin(angle)
        across = (rows - y) * np.cos(angle) - (columns - x) * np.sin(angle)
        occupied |= (np.abs(along) < length) & (np.abs(across) < width)
    return occupied


def caves(cells: int, *, size: float, seed: int) -> Mask:
    """Smooth noise above a level: winding passages and chambers."""
    noise = gaussian_filter(np.random.default_rng(seed).standard_normal((cells, cells)), size, mode="wrap")
    return noise > np.quantile(noise, 0.62)


PUBLIC_STYLE: dict[str, Callable[[], Mask]] = {
    "maze 512, corridors of 1": lambda: maze(512, corridor_m=0.05, wall=1, seed=2),
    "maze 512, corridors of 4": lambda: maze(512, corridor_m=0.2, wall=1, seed=2),
    "maze 512, corridors of 16": lambda: maze(512, corridor_m=0.8, wall=1, seed=2),
    "rooms 512, of 16": lambda: rooms(512, room_m=0.8, door_m=0.1, seed=2),
    "rooms 512, of 32": lambda: rooms(512, room_m=1.6, door_m=0.2, seed=2),
    "rooms 512, of 64": lambda: rooms(512, room_m=3.2, door_m=0.2, seed=2),
    "random 512, 5 %": lambda: blocks(512, size=1, density=0.05, seed=2),
    "random 512, 10 %": lambda: blocks(512, size=1, density=0.10, seed=2),
    "random 512, 25 %": lambda: blocks(512, size=1, density=0.25, seed=2),
    "blocks 768": lambda: blocks(768, size=8, density=0.25, seed=2),
    "streets 512": lambda: streets(512, buildings=40, seed=2),
    "streets 1024": lambda: streets(1024, buildings=130, seed=3),
    "forest 1024": lambda: forest(1024, density=0.15, seed=2),
    "caves 512": lambda: caves(512, size=6.0, seed=2),
    "caves 1024": lambda: caves(1024, size=10.0, seed=3),
    "caves 1550": lambda: caves(1550, size=12.0, seed=4),
}
"""As public benchmarks of path planning have them, where the robot is a point."""
MAPS: dict[str, Callable[[], Mask]] = {
    "rooms 512": lambda: rooms(512, room_m=4.0, door_m=0.9, seed=0),
    "maze 512": lambda: maze(512, corridor_m=1.2, wall=2, seed=0),
    "forest 512": lambda: forest(512, density=0.10, seed=0),
    "rooms 2048": lambda: rooms(2048, room_m=6.0, door_m=1.0, seed=1),
    "maze 2048": lambda: maze(2048, corridor_m=2.0, wall=4, seed=1),
    "forest 2048": lambda: forest(2048, density=0.10, seed=1),
}


def _joined(
    count: int, *, extra: float, rng: np.random.Generator
) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Return pairs of neighbours in a square of rooms that join them all, and a share of the other pairs.

    In each pair the room with the smaller row or column comes first.
    """
    pairs = [((row, column), (row, column + 1)) for row in range(count) for column in range(count - 1)]
    pairs += [((row, column), (row + 1, column)) for row in range(count - 1) for column in range(count)]
    part = {(row, column): row * count + column for row in range(count) for column in range(count)}
    members = {number: [room] for room, number in part.items()}
    kept = []
    for index in rng.permutation(len(pairs)):
        room, other = pairs[index]
        if part[room] == part[other]:
            if rng.random() < extra:
                kept.append((room, other))
            continue
        small, large = sorted((part[room], part[other]), key=lambda number: len(members[number]))
        for member in members[small]:
            part[member] = large
        members[large] += members.pop(small)
        kept.append((room, other))
    return kept
