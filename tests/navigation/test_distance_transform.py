import numpy as np
import pytest

from proctor.maps.clearance import clearances_inside
from proctor.maps.clearance import compiled_clearances as clearances
from proctor.maps.clearance_field import EMPTY_M, SMALL_CELLS
from proctor.maps.clearance_field import clearances as on_half_cells


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


def test_a_large_map_is_left_to_the_compiled_way_with_the_same_result():
    occupied = np.random.default_rng(2).random((600, 500)) < 0.01
    assert occupied.size > SMALL_CELLS
    np.testing.assert_array_equal(on_half_cells(occupied, 0.05), clearances(occupied, 0.05))
    part = np.ascontiguousarray(occupied[:400, :500])
    np.testing.assert_array_equal(on_half_cells(part, 0.05), clearances(part, 0.05))
