"""A map as a world to drive in: walls where it is occupied, and nowhere else."""

import numpy as np
import pytest

from proctor.core.errors import UserError
from proctor.core.types import Pose2
from proctor.maps.grid_map import GridMap
from proctor.robots.spec import standard_robot
from proctor.scenes import scene_map
from proctor.scenes.scene import Scene
from proctor.scenes.scene_map import scene_of_map
from proctor.worlds.mujoco.wheeled.world import World


def two_rooms():
    """3 m x 2 m: a wall of 0.2 m between two rooms, a pillar in the left one."""
    occupied = np.zeros((40, 60), dtype=bool)
    occupied[[0, -1]] = occupied[:, [0, -1]] = occupied[:, 28:32] = occupied[10:13, 10:12] = True
    return GridMap(occupied, resolution_m=0.05, origin_world=(-1.0, 4.0))


def drawn(scene, grid):
    """The cells that the boxes of a scene cover, each of them once."""
    covered = np.zeros(grid.occupied.shape, dtype=int)
    for walls in scene.objects:
        for part in walls.parts:
            centre = np.array([walls.translate.x + part.translate.x, walls.translate.y + part.translate.y])
            size = np.array([part.size.x, part.size.y])
            low = centre - size / 2 - grid.origin_world
            left, bottom = np.round(low / grid.resolution_m).astype(int)
            right, top = np.round((low + size) / grid.resolution_m).astype(int)
            covered[bottom:top, left:right] += 1
    return covered


def test_walls_stand_where_the_map_is_occupied_and_can_be_reached():
    grid = two_rooms()
    covered = drawn(scene_of_map(grid, "rooms", (-0.5, 5.0)), grid)
    assert covered.max() == 1
    assert not covered[~grid.occupied].any()
    assert covered[:, 0:29].sum() == np.count_nonzero(grid.occupied[:, 0:29])
    assert not covered[1:-1, -1].any()  # the far side of the other room


def test_random_cells_are_covered_exactly():
    occupied = np.random.default_rng(0).random((50, 70)) < 0.3
    grid = GridMap(occupied)
    covered = drawn(scene_of_map(grid, "noise", (-5.0, 0.0)), grid)
    assert covered.max() == 1
    assert not covered[~occupied].any()
    inner = np.lib.stride_tricks.sliding_window_view(np.pad(occupied, 1, constant_values=True), (3, 3)).all(
        (2, 3)
    )
    assert covered[occupied & ~inner].all()


def test_a_robot_can_stand_between_the_walls_and_not_in_them():
    grid = two_rooms()
    world = World(Scene(scene_of_map(grid, "rooms", (-0.5, 5.0))), standard_robot())
    world.begin(Pose2(0.0, 5.3, 0.0), who="the robot", z=0.0)
    for x, y in ((0.3, 5.3), (-0.45, 4.575), (-0.9, 5.0)):
        with pytest.raises(UserError, match="starts inside of 'the map's walls'"):
            world.begin(Pose2(x, y, 0.0), who="the robot", z=0.0)


def test_a_map_without_walls_is_an_empty_scene():
    assert scene_of_map(GridMap(np.zeros((5, 5), dtype=bool)), "floor", (0.1, 0.1)).objects == []


def test_a_map_that_is_too_noisy_is_refused(monkeypatch):
    monkeypatch.setattr(scene_map, "MAX_BOXES", 3)
    with pytest.raises(
        UserError, match=r"rooms.yaml: too noisy to drive on: \d+ boxes of walls, expected at most 3"
    ):
        scene_of_map(two_rooms(), "rooms.yaml", (-0.5, 5.0))
