"""Storeys as cells, and cells as boxes."""

import numpy as np
import pytest
from mesh_houses import box, painted, two_rooms
from scipy import ndimage
from scipy.spatial import ConvexHull

from proctor.robots.spec import standard_robot
from proctor.scenes.scene_map import Footprint
from proctor.scenes.scene_map import draw as draw_convex
from proctor.scenes.surface_grid import CELL_M, FloorGrid, cut, draw_floor, draw_triangles
from proctor.worlds.mujoco.wheeled.model import boxes_of_floor

FLOOR_Z = 0.7


def floor_of(*more):
    mesh = two_rooms(FLOOR_Z, *more)
    return draw_floor(np.asarray(mesh.triangles), FLOOR_Z, standard_robot().height_band_m)


def blocked(grid, x, y):
    return bool(grid.blocked[grid.cell_at(x, y)])


def test_a_triangle_marks_exactly_the_cells_that_it_reaches_into():
    rng = np.random.default_rng(0)
    for _ in range(200):
        corners = rng.uniform(1, 39, (3, 2))
        if rng.random() < 0.3:
            corners[2] = corners[1] + rng.normal(0, 0.02, 2)  # a sliver
        expected = np.zeros((40, 40), bool)
        hull = ConvexHull(corners)
        shape = Footprint(corners[hull.vertices], hull.equations[:, :2], -hull.equations[:, 2])
        draw_convex(shape, expected, 1.0, np.zeros(2))
        drawn = draw_triangles(corners[None], 40, 40)
        # They may differ where less than a thousandth of a cell is touched.
        assert (drawn != expected).sum() <= 1
        assert (drawn | ndimage.binary_dilation(expected) == ndimage.binary_dilation(expected)).all()


def test_triangles_are_cut_without_losing_or_inventing_area():
    rng = np.random.default_rng(1)
    triangles = rng.uniform(-1, 1, (300, 3, 3))

    def areas(some):
        return np.linalg.norm(np.cross(some[:, 1] - some[:, 0], some[:, 2] - some[:, 0]), axis=1).sum() / 2

    parts = [cut(triangles, 2, low, high) for low, high in ((-1, -0.3), (-0.3, 0.2), (0.2, 1))]
    assert sum(areas(part) for part in parts) == pytest.approx(areas(triangles))
    assert parts[1][..., 2].min() >= -0.3 - 1e-12
    assert parts[1][..., 2].max() <= 0.2 + 1e-12


def test_walls_are_closed_and_as_thick_as_they_are_and_the_door_is_as_wide_as_it_is():
    grid = floor_of()
    row, first = grid.cell_at(3.0, 3.0)
    thickness = grid.blocked[row, first : first + 80].sum() * CELL_M
    assert thickness == pytest.approx(0.1, abs=1e-9)
    column = grid.cell_at(4.0, 2.0)[1]
    door = (~grid.blocked[:, column]).sum() * CELL_M
    assert door == pytest.approx(1.0, abs=1e-9)
    assert not grid.obstacle[grid.cell_at(4.0, 2.0)]  # under the lintel


def test_a_wall_that_is_a_sheet_is_closed_however_it_is_turned():
    sheet = [
        [[1.0, 0.5, 0.7], [3.0, 3.5, 0.7], [3.0, 3.5, 3.2]],
        [[1.0, 0.5, 0.7], [3.0, 3.5, 3.2], [1, 0.5, 3.2]],
    ]
    grid = floor_of(painted(sheet))
    for share in np.linspace(0, 1, 200):
        assert blocked(grid, 1 + 2 * share, 0.5 + 3 * share)
    assert not blocked(grid, 1.5, 2.0)


@pytest.mark.parametrize(
    ("height_m", "is_obstacle"), [(0.02, False), (0.04, False), (0.07, True), (0.3, True)]
)
def test_a_rug_is_driven_over_and_a_step_is_not(height_m, is_obstacle):
    step = box((1, 1, FLOOR_Z), (2, 3, FLOOR_Z + height_m))
    assert blocked(floor_of(step), 1.01, 2.0) == is_obstacle


def test_only_what_is_in_the_robots_way_counts():
    under_the_table = floor_of(box((1, 1, FLOOR_Z + 0.72), (2, 3, FLOOR_Z + 0.75)))
    assert blocked(under_the_table, 1.5, 2.0)
    lamp = floor_of(box((1, 1, FLOOR_Z + 1.35), (2, 3, FLOOR_Z + 1.6)))
    assert not blocked(lamp, 1.5, 2.0)
    cupboard = floor_of(box((1, 1, FLOOR_Z), (2, 2, FLOOR_Z + 2)))  # hollow, as all meshes are
    assert blocked(cupboard, 1.5, 1.5)


def test_narrow_gaps_of_the_floor_are_bridged_and_holes_are_not():
    left, right = box((0, 0, -0.1), (4, 4, 0)), box((4.2, 0, -0.1), (8, 4, 0))
    far = box((8.5, 0, -0.1), (12, 4, 0))
    triangles = np.concatenate([np.asarray(part.triangles) for part in (left, right, far)])
    grid = draw_floor(triangles, 0.0, standard_robot().height_band_m)
    assert not blocked(grid, 4.1, 2.0)
    assert blocked(grid, 8.25, 2.0)
    assert grid.void[grid.cell_at(8.25, 2.0)]
    assert grid.cell_at(20.0, 2.0) is None
    assert draw_floor(triangles, 1.0, standard_robot().height_band_m) is None


def test_an_uneven_scanned_floor_is_floor():
    rng = np.random.default_rng(2)
    xs, ys = np.meshgrid(np.linspace(0, 6, 61), np.linspace(0, 6, 61))
    heights = 0.06 * np.sin(xs) + rng.uniform(-0.01, 0.01, xs.shape)
    points = np.stack([xs, ys, heights], axis=-1)
    corners = [points[:-1, :-1], points[:-1, 1:], points[1:, 1:], points[1:, :-1]]
    triangles = np.concatenate(
        [np.stack([corners[i] for i in order], axis=-2) for order in ((0, 1, 2), (0, 2, 3))]
    )
    grid = draw_floor(triangles.reshape(-1, 3, 3), 0.0, standard_robot().height_band_m)
    inside = grid.blocked[
        grid.cell_at(0.1, 0.1)[0] : grid.cell_at(0, 5.9)[0], grid.cell_at(0.1, 0)[1] : grid.cell_at(5.9, 0)[1]
    ]
    assert not inside.any()


def test_boxes_cover_what_a_robot_can_reach_and_nothing_free():
    rng = np.random.default_rng(3)
    for _ in range(20):
        noise = ndimage.gaussian_filter(rng.normal(size=(60, 50)), 2)
        obstacle, void = noise > 0.08, noise < -0.12
        grid = FloorGrid(obstacle, void, (1.0, -2.0))
        covered = np.zeros_like(obstacle)
        for item in boxes_of_floor(grid):
            left, bottom = np.rint((np.array(item.low_world) - grid.origin_world) / CELL_M).astype(int)
            right, top = np.rint((np.array(item.high_world) - grid.origin_world) / CELL_M).astype(int)
            covered[bottom:top, left:right] = True
        border = grid.blocked & ndimage.binary_dilation(~grid.blocked, np.ones((3, 3)))
        assert (covered <= grid.blocked).all()
        assert (border <= covered).all()


def test_few_boxes_are_enough():
    assert len(boxes_of_floor(floor_of())) < 20
