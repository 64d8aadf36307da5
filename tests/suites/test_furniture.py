from itertools import combinations

import numpy as np
import pytest

from proctor.core.geometry import quaternion_of_euler_deg, rotation_matrix
from proctor.scenes import cabinets, decor
from proctor.scenes.colors import PALETTE
from proctor.scenes.floor_plan import WALL_HEIGHT_M
from proctor.scenes.interiors import CEILING_LAMP, INTERIORS

RULES = {rule.make: rule for rules in INTERIORS.values() for rule in (*rules, CEILING_LAMP)}


def pieces(seed):
    rng = np.random.default_rng(seed)
    return [slot.piece for make in RULES for slot in make(rng)]


def corners(part):
    turn = np.abs(rotation_matrix(quaternion_of_euler_deg(part.rotate)))
    centre, half = part.translate.array(), turn @ part.size.array() / 2
    return centre - half, centre + half


@pytest.mark.parametrize("seed", range(5))
def test_pieces_take_no_more_room_than_they_say(seed):
    for piece in pieces(seed):
        low, high = np.array([corners(part) for part in piece.parts]).transpose(1, 0, 2)
        claimed = (piece.depth_m / 2, piece.width_m / 2, piece.height_m)
        assert np.all(high.max(axis=0) <= np.array(claimed) + 1e-3), piece.category
        assert low[:, 0].min() >= -piece.depth_m / 2 - 1e-3, piece.category
        assert low[:, 1].min() >= -piece.width_m / 2 - 1e-3, piece.category
        assert low[:, 2].min() >= piece.bottom_m - 1e-3, piece.category


@pytest.mark.parametrize("seed", range(5))
def test_pieces_fill_most_of_the_room_they_claim(seed):
    for piece in pieces(seed):
        low, high = np.array([corners(part) for part in piece.parts]).transpose(1, 0, 2)
        filled = high.max(axis=0) - low.min(axis=0)
        assert np.all(filled[:2] > 0.7 * np.array([piece.depth_m, piece.width_m])), piece.category


def test_nothing_stands_in_the_air():
    for piece in pieces(0):
        boxes = [corners(part) for part in piece.parts]
        held = {i for i, (low, _) in enumerate(boxes) if low[2] < 0.07 or low[0] < -piece.depth_m / 2 + 0.05}
        held |= {i for i, (_, high) in enumerate(boxes) if high[2] > WALL_HEIGHT_M - 0.01}
        touching = [
            (i, j)
            for (i, (low, high)), (j, (other_low, other_high)) in combinations(enumerate(boxes), 2)
            if np.all(low <= other_high + 0.011) and np.all(other_low <= high + 0.011)
        ]
        for _ in boxes:
            held |= {j for pair in touching for j in pair if held & {*pair}}
        assert len(held) == len(boxes), (
            piece.category,
            [piece.parts[i] for i in set(range(len(boxes))) - held],
        )


def test_no_two_faces_of_a_piece_fight_for_the_same_place():
    for piece in pieces(0):
        for first, second in combinations(piece.parts, 2):
            turned = any((first.rotate.x, first.rotate.y, second.rotate.x, second.rotate.y))
            boxes = first.shape == second.shape == "box"
            if not boxes or turned or first.color == second.color:
                continue
            (low, high), (other_low, other_high) = corners(first), corners(second)
            for axis in range(3):
                others = [other for other in range(3) if other != axis]
                shared = np.minimum(high, other_high)[others] - np.maximum(low, other_low)[others]
                same_high = abs(high[axis] - other_high[axis]) < 1e-3
                same_low = (
                    axis == 1 and abs(low[axis] - other_low[axis]) < 1e-3
                )  # nobody sees back and bottom
                fighting = (same_high or same_low) and np.all(shared > 1e-3)
                assert not fighting, (piece.category, "xyz"[axis], first, second)


def test_rugs_pictures_and_windows_stop_nobody():
    rng = np.random.default_rng(0)
    for piece in (
        decor.rug(rng, 1.0, 2.0),
        decor.picture(rng),
        decor.window(rng),
        decor.mirror(),
    ):
        assert not any(part.collision for part in piece.parts)


def test_makers_draw_different_pieces():
    rng = np.random.default_rng(0)
    assert len({str(cabinets.wardrobe(rng)) for _ in range(10)}) > 3


@pytest.mark.parametrize("seed", range(5))
def test_what_stands_on_the_floor_stops_a_robot_nearly_wherever_it_is(seed):
    """What is only looked at may not jut out of what a robot bumps into."""
    for piece in pieces(seed):
        if piece.bottom_m > 0 or piece.height_m < 0.05:
            continue
        solid = np.array([corners(part) for part in piece.parts if part.collision])
        low, high = solid[:, 0].min(axis=0), solid[:, 1].max(axis=0)
        for part in piece.parts:
            part_low, part_high = corners(part)
            if part_low[2] < 1.3:
                assert np.all(part_low[:2] > low[:2] - 0.15), (piece.category, part)
                assert np.all(part_high[:2] < high[:2] + 0.15), (piece.category, part)


def test_colours_are_words_of_the_palette():
    assert {piece.color for seed in range(3) for piece in pieces(seed)} == {*PALETTE, ""}
