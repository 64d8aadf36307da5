import numpy as np
import pytest
from house_numbers import number_of

from proctor.scenes.floor_plan import CORRIDOR, HALL, NEVER, OPEN_PAIRS, ROOM_KINDS, Rect, pair, sides
from proctor.scenes.floor_plan_generator import plan_floor
from proctor.scenes.houses import LARGEST_NUMBER, numbered

SEEDS = range(80)


@pytest.fixture(scope="module")
def plans():
    return [plan_floor(np.random.default_rng(seed)) for seed in SEEDS]


def test_rooms_tile_the_house_without_gap_or_overlap(plans):
    for plan in plans:
        assert sum(room.cell.area_m2 for room in plan.rooms) == pytest.approx(plan.outline.area_m2)
        for index, room in enumerate(plan.rooms):
            assert plan.outline.contains(room.cell)
            assert not any(room.cell.overlaps(other.cell) for other in plan.rooms[index + 1 :])


def test_houses_have_four_to_ten_rooms_with_different_names(plans):
    counts = {len(plan.rooms) for plan in plans}
    assert counts == {4, 5, 6, 7, 8, 9, 10}
    for plan in plans:
        names = [room.name for room in plan.rooms]
        assert len({*names}) == len(names)
        assert names[0] == HALL
        assert {"living room", "kitchen", "bedroom"} <= {*names}


@pytest.mark.parametrize("rooms", [4, 7, 10])
def test_a_house_has_as_many_rooms_as_asked_for(rooms):
    assert len(plan_floor(np.random.default_rng(1), rooms=rooms).rooms) == rooms


def test_every_kind_of_room_occurs(plans):
    assert {room.name for plan in plans for room in plan.rooms} == {*ROOM_KINDS}


def test_no_room_is_too_narrow_for_what_belongs_into_it(plans):
    for plan in plans:
        for room in plan.rooms:
            shorter_m, longer_m = sorted((room.cell.width_m, room.cell.depth_m))
            assert shorter_m >= ROOM_KINDS[room.name].shortest_m - 1e-6, room
            assert room.name in (HALL, CORRIDOR) or longer_m <= 2.31 * shorter_m


def test_living_rooms_are_larger_than_bathrooms(plans):
    def mean_m2(name):
        return np.mean([room.cell.area_m2 for plan in plans for room in plan.rooms if room.name == name])

    assert mean_m2("living room") > 2 * mean_m2("bathroom") > 2 * mean_m2("pantry")


def test_halls_have_an_outer_wall_for_the_front_door(plans):
    for plan in plans:
        assert any(plan.is_outer(side) for side in sides(plan.rooms[0].cell))


def test_doors_lead_from_the_hall_to_every_room(plans):
    for plan in plans:
        reached, before = {HALL}, set()
        while reached != before:
            before = {*reached}
            reached.update(name for door in plan.doors if reached & {*door.rooms} for name in door.rooms)
        assert reached == {room.name for room in plan.rooms}


def test_nobody_walks_through_a_bathroom(plans):
    for plan in plans:
        for room in plan.rooms:
            doors = [door for door in plan.doors if room.name in door.rooms]
            if ROOM_KINDS[room.name].passage == NEVER and len(doors) > 1:
                others = [door for door in plan.doors if door not in doors]
                reached, before = {HALL}, set()
                while reached != before:
                    before = {*reached}
                    reached.update(n for door in others if reached & {*door.rooms} for n in door.rooms)
                assert reached == {other.name for other in plan.rooms} - {room.name}


def test_some_houses_have_more_than_one_way_round(plans):
    assert any(len(plan.doors) >= len(plan.rooms) for plan in plans)


def test_a_door_opens_the_wall_between_its_two_rooms_away_from_corners(plans):
    for plan in plans:
        cells = {room.name: room.cell for room in plan.rooms}
        for door in plan.doors:
            assert 0.85 <= door.width_m <= 1.0 or door.is_archway
            zone = door.zone(0.2)
            for room in door.rooms:
                sides_touched = [
                    side
                    for side in sides(cells[room])
                    if side.along == door.along and side.at == (door.y if door.along == "x" else door.x)
                ]
                assert len(sides_touched) == 1
                start, end = (zone.x0, zone.x1) if door.along == "x" else (zone.y0, zone.y1)
                assert sides_touched[0].start + 0.19 < start < end < sides_touched[0].end - 0.19


def test_outer_walls_are_those_on_the_outline(plans):
    plan = plans[0]
    outer_m = [
        side.end - side.start for room in plan.rooms for side in sides(room.cell) if plan.is_outer(side)
    ]
    assert sum(outer_m) == pytest.approx(2 * (plan.outline.width_m + plan.outline.depth_m))


def test_distance_to_a_rectangle_is_zero_inside_and_euclidean_outside():
    rect = Rect(0, 0, 2, 1)
    assert rect.distances_m(np.array([(1, 0.5), (5, 5), (1, -2)])).tolist() == [0, 5, 2]


def test_wide_openings_join_only_rooms_that_people_leave_open(plans):
    archways = [door for plan in plans for door in plan.doors if door.is_archway]
    assert len(archways) > len(plans) / 4
    for door in archways:
        assert door.leaf is None
        halls = {*door.rooms} <= {HALL, CORRIDOR, "living room"}
        assert halls or pair(*door.rooms) in OPEN_PAIRS
        assert 1.4 <= door.width_m <= 2.2


def test_open_leaves_stand_beside_their_door_along_a_wall_of_one_of_its_rooms(plans):
    leaves = [(plan, door) for plan in plans for door in plan.doors if door.leaf]
    assert len(leaves) > len(plans) * 3
    for plan, door in leaves:
        floors = [room.floor for room in plan.rooms if room.name in door.rooms]
        assert any(floor.inset(-1e-6).contains(door.leaf) for floor in floors)
        assert door.color
        (distance_m,) = door.leaf.distances_m(np.array([(door.x, door.y)]))
        assert distance_m == pytest.approx(door.width_m / 2, abs=0.06)
        assert not any(door.leaf.inset(1e-3).overlaps(other.zone(0.5)) for other in plan.doors)


def test_the_doors_of_houses_differ_in_colour(plans):
    assert len({door.color for plan in plans for door in plan.doors}) > 6


def test_no_two_numbers_give_the_same_plan(plans):
    plan = plans[0]
    numbers = [
        *range(4000),
        *range(50**3, 50**4, 999),
        *range(50**4, LARGEST_NUMBER, 100_003),
        LARGEST_NUMBER,
    ]
    stamped = [numbered(plan, number) for number in numbers]
    assert [number_of(plan) for plan in stamped] == numbers
    assert len({*stamped}) == len(numbers)


def test_plans_hold_numbers_whatever_their_layout(plans):
    for seed, plan in enumerate(plans):
        stamped = numbered(plan, seed + 7_654_321)
        assert number_of(plan) == 0
        assert number_of(stamped) == seed + 7_654_321
        assert sum(room.cell.area_m2 for room in stamped.rooms) == pytest.approx(stamped.outline.area_m2)
        assert all(door.zone(0.2).area_m2 for door in stamped.doors)
