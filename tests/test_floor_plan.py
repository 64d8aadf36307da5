import numpy as np
import pytest

from proctor.scenes.floor_plan import HALL, Rect, plan_floor, sides

SEEDS = range(120)


@pytest.fixture(scope="module")
def plans():
    return [plan_floor(np.random.default_rng(seed)) for seed in SEEDS]


def test_rooms_tile_the_house_without_gap_or_overlap(plans):
    for plan in plans:
        assert sum(room.cell.area_m2 for room in plan.rooms) == pytest.approx(plan.outline.area_m2)
        for index, room in enumerate(plan.rooms):
            assert plan.outline.contains(room.cell)
            assert not any(room.cell.overlaps(other.cell) for other in plan.rooms[index + 1 :])


def test_houses_have_four_to_eight_rooms_with_different_names(plans):
    counts = {len(plan.rooms) for plan in plans}
    assert counts == {4, 5, 6, 7, 8}
    for plan in plans:
        names = [room.name for room in plan.rooms]
        assert len({*names}) == len(names)
        assert {HALL, "living room", "kitchen", "bedroom"} <= {*names}


def test_no_room_is_tiny_and_no_house_too_large(plans):
    for plan in plans:
        assert 9 <= plan.outline.width_m <= 14
        assert 8 <= plan.outline.depth_m <= 12
        for room in plan.rooms:
            shorter_m = min(room.cell.width_m, room.cell.depth_m)
            assert shorter_m >= (1.59 if room.name == HALL else 2.39), room


def test_doors_lead_from_the_hall_to_every_room(plans):
    for plan in plans:
        reached, before = {HALL}, set()
        while reached != before:
            before = {*reached}
            reached.update(name for door in plan.doors if reached & {*door.rooms} for name in door.rooms)
        assert reached == {room.name for room in plan.rooms}


def test_some_houses_have_more_than_one_way_round(plans):
    assert any(len(plan.doors) >= len(plan.rooms) for plan in plans)


def test_a_door_opens_the_wall_between_its_two_rooms_away_from_corners(plans):
    for plan in plans:
        cells = {room.name: room.cell for room in plan.rooms}
        for door in plan.doors:
            assert 0.9 <= door.width_m <= 1.1
            zone = door.zone(0.2)
            for room in door.rooms:
                sides_touched = [
                    side
                    for side in sides(cells[room])
                    if side.along == door.along and side.at == (door.y if door.along == "x" else door.x)
                ]
                assert len(sides_touched) == 1
                start, end = (zone.x0, zone.x1) if door.along == "x" else (zone.y0, zone.y1)
                assert sides_touched[0].start + 0.2 < start < end < sides_touched[0].end - 0.2


def test_the_room_at_a_point_is_the_one_whose_cell_holds_it(plans):
    for room in plans[0].rooms:
        assert plans[0].room_at(*room.floor.centre) == room
    assert plans[0].room_at(-1.0, 3.0) is None


def test_outer_walls_are_those_on_the_outline(plans):
    plan = plans[0]
    outer_m = [
        side.end - side.start for room in plan.rooms for side in sides(room.cell) if plan.is_outer(side)
    ]
    assert sum(outer_m) == pytest.approx(2 * (plan.outline.width_m + plan.outline.depth_m))


def test_distance_to_a_rectangle_is_zero_inside_and_euclidean_outside():
    rect = Rect(0, 0, 2, 1)
    assert rect.distance_m(1, 0.5) == 0
    assert rect.distance_m(5, 5) == 5
    assert rect.distance_m(1, -2) == 2
