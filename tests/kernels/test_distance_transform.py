import numpy as np
import pytest
from scipy.ndimage import distance_transform_edt

from proctor.kernels.clearance import EMPTY_M, clearances, clearances_inside


def on_half_cells(occupied, resolution_m):
    """The same by scipy: the points of squares that can be nearest lie on a lattice of half cells."""
    rows, columns = occupied.shape
    free = np.ones((2 * rows + 1, 2 * columns + 1), dtype=bool)
    row, column = np.nonzero(occupied)
    for row_shift in range(3):
        for column_shift in range(3):
            free[2 * row + row_shift, 2 * column + column_shift] = False
    return resolution_m * np.where(occupied, -0.5, distance_transform_edt(free)[1::2, 1::2] / 2)


@pytest.mark.parametrize("shape", [(90, 70), (1, 40), (40, 1), (2, 2), (37, 200)])
@pytest.mark.parametrize("share", [0.002, 0.05, 0.5, 0.98])
def test_every_value_is_exactly_that_of_scipy(shape, share):
    rng = np.random.default_rng(3)
    for _ in range(5):
        occupied = rng.random(shape) < share
        occupied[rng.integers(shape[0]), rng.integers(shape[1])] = True
        np.testing.assert_array_equal(clearances(occupied, 0.05), on_half_cells(occupied, 0.05))


def test_walls_and_blocks_are_exact_too():
    occupied = np.zeros((120, 160), dtype=bool)
    occupied[0], occupied[:, 0], occupied[40:60, 30:90], occupied[100:, 80] = True, True, True, True
    np.testing.assert_array_equal(clearances(occupied, 0.1), on_half_cells(occupied, 0.1))


def test_where_nothing_is_occupied_there_is_room_for_all():
    assert (clearances(np.zeros((3, 5), dtype=bool), 0.05) == EMPTY_M).all()
    assert (clearances(np.ones((3, 5), dtype=bool), 0.05) == -0.025).all()


def test_a_window_sees_what_lies_in_it_and_nothing_else():
    occupied = np.random.default_rng(1).random((80, 60)) < 0.01
    window = (13, 61, 7, 48)
    part = occupied[13:61, 7:48]
    assert part.any()
    np.testing.assert_array_equal(clearances_inside(occupied, 0.05, window), on_half_cells(part, 0.05))


def test_any_kind_of_array_will_do():
    occupied = np.random.default_rng(1).random((30, 40)) < 0.1
    due = on_half_cells(occupied, 0.05)
    frozen = occupied.copy()
    frozen.flags.writeable = False
    for same in (np.asfortranarray(occupied), np.repeat(occupied, 2, axis=1)[:, ::2], frozen):
        np.testing.assert_array_equal(clearances(same, 0.05), due)
