import exact_paths
import numpy as np
import pytest

from proctor.kernels.lines import line_is_free, path_is_free


def mask(*blocked, shape=(8, 8)):
    free = np.ones(shape, dtype=bool)
    for row, column in blocked:
        free[row, column] = False
    return free


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ((0.5, 0.5, 7.5, 0.5), True),
        ((0.0, 3.5, 8.0, 3.5), False),
        ((3.5, 0.0, 3.5, 8.0), False),
        ((0.0, 3.0, 8.0, 3.0), True),  # along a border
        ((4.0, 8.0, 4.0, 0.0), True),
        ((2.0, 4.0, 4.0, 2.0), True),  # touches a corner
        ((2.0, 4.001, 4.001, 2.0), False),
        ((2.0, 2.0, 3.0, 3.0), True),  # ends at a corner
        ((2.0, 2.0, 3.01, 3.01), False),
        ((0.0, 0.0, 8.0, 0.0), True),  # along the rim
        ((0.0, 0.0, 0.0, 8.0), True),
        ((-0.01, 1.0, 4.0, 1.0), False),  # beyond it
        ((1.0, 8.01, 1.0, 4.0), False),
        ((1.0, 5.0, 8.01, 5.0), False),
        ((1.0, 7.5, 6.0, 8.01), False),
        ((1.0, 0.5, 6.0, -0.01), False),
        ((7.5, 1.0, 8.01, 6.0), False),
        ((0.5, 1.0, -0.01, 6.0), False),
        ((3.5, 3.5, 3.5, 3.5), False),  # points
        ((3.0, 3.0, 3.0, 3.0), True),
        ((3.0, 3.5, 3.0, 3.5), True),
        ((9.0, 9.0, 9.0, 9.0), False),
    ],
)
def test_lines_around_one_cell(line, expected):
    x0, y0, x1, y1 = line
    assert line_is_free(mask((3, 3)), *line) == expected
    assert line_is_free(mask((3, 3)), x1, y1, x0, y0) == expected


def test_there_is_no_way_between_two_cells_side_by_side_or_diagonal():
    side_by_side, diagonal = mask((3, 3), (3, 4)), mask((3, 3), (4, 4))
    assert not line_is_free(side_by_side, 4.0, 1.0, 4.0, 6.0)
    assert line_is_free(side_by_side, 3.0, 1.0, 3.0, 6.0)
    assert not line_is_free(diagonal, 3.0, 5.0, 5.0, 3.0)
    assert not line_is_free(diagonal, 4.0, 1.0, 4.0, 6.0)
    assert not line_is_free(diagonal, 1.0, 4.0, 6.0, 4.0)
    assert line_is_free(diagonal, 3.0, 4.999, 4.999, 3.0) is False
    assert line_is_free(mask((3, 3)), 3.0, 5.0, 5.0, 3.0)


def test_random_lines_are_free_exactly_if_they_stay_out_of_all_cells():
    rng = np.random.default_rng(0)
    seen = np.zeros(2, dtype=int)
    for share in (0.0, 0.05, 0.1, 0.2, 0.3) * 3:
        free = rng.random((9, 12)) >= share
        boxes = exact_paths.forbidden_boxes(free)
        anywhere = rng.random((400, 4)) * [12, 9, 12, 9]
        on_lattice = np.round(2 * anywhere) / 2  # borders, corners and centres
        lines = np.concatenate([anywhere, on_lattice])
        lines = lines[(lines[:, :2] != lines[:, 2:]).any(axis=1)]
        expected = exact_paths.lines_are_free(boxes, lines[:, :2], lines[:, 2:])
        for line, is_free in zip(lines, expected, strict=True):
            if line_is_free(free, *line) == is_free:
                continue
            # Where the one that is simple also forbids to begin or to end.
            ends = exact_paths.lines_are_free(boxes, line.reshape(2, 2), line.reshape(2, 2))
            assert not is_free
            assert not ends.all(), (line, is_free)
        seen += np.bincount(expected, minlength=2)
    assert (seen > 2000).all()


def test_a_path_is_free_if_all_its_lines_are():
    free = mask((3, 3))
    assert path_is_free(free, np.array([(1.0, 1.0), (1.0, 6.0), (6.0, 6.0)]))
    assert not path_is_free(free, np.array([(1.0, 6.0), (6.0, 6.0), (1.0, 1.0)]))
