import math
import threading

import numpy as np
import pytest

from proctor.core.errors import UnknownName, UserError
from proctor.core.types import Pose2, Scan
from proctor.maps import live_map
from proctor.maps.grid_map import GridMap
from proctor.maps.live_map import LiveMap
from proctor.robots.spec import standard_robot
from proctor.scenes.scene import Scene
from proctor.scenes.scene_config import Part, SceneConfig, SceneObject
from proctor.worlds.mujoco.wheeled.robot import LaserScanner
from proctor.worlds.mujoco.wheeled.world import World

NAN, INF = math.nan, math.inf
CENTRE = Pose2(3.0, 2.5, 0.0)


def room(columns=120, rows=100):
    """A room of 6 m x 5 m with a wall of one cell around it."""
    occupied = np.ones((rows, columns), dtype=bool)
    occupied[1:-1, 1:-1] = False
    return GridMap(occupied)


def scan_of(ranges, **options):
    count = len(ranges)
    numbers = {
        "angle_min": -math.pi,
        "angle_increment": math.tau / max(count, 1),
        "range_min": 0.02,
        "range_max": 10.0,
    }
    return Scan(np.array(ranges, dtype=float), **(numbers | options))


def ahead(range_m, *, width=1, beams=360):
    """A full scan that sees something straight ahead and nothing else."""
    ranges = np.full(beams, INF)
    ranges[beams // 2 - width : beams // 2 + width + 1] = range_m
    return scan_of(ranges)


def seen(live):
    """The centres of what is occupied beyond the room, as (x, y) in cells."""
    return sorted(map(tuple, np.argwhere(live.snapshot().occupied & ~room().occupied)[:, ::-1].tolist()))


def agrees(live, time_s):
    """The field must be, bit by bit, the one of a map that is made anew."""
    np.testing.assert_array_equal(live.field(time_s).cells, live.snapshot().clearance_m)


def test_without_sensors_it_is_the_map_itself():
    grid = room()
    live = LiveMap(grid)
    assert live.field(0.0).cells is grid.clearance_m
    assert live.version == 0
    assert live.field(1.0).resolution_m == 0.05


def test_what_a_beam_hits_is_an_obstacle():
    live = LiveMap(room())
    live.mark_scan(ahead(1.0, width=0), CENTRE, 0.0)
    assert seen(live) == [(80, 50)]
    assert live.version == 1
    field = live.field(0.0)
    assert field.cells[50, 80] == -0.025
    assert field.cells[50, 70] == pytest.approx(0.475)
    agrees(live, 0.0)


def test_beams_are_turned_with_the_robot_and_angles_may_fall():
    ranges = np.full(8, INF)
    ranges[1] = 1.0
    live = LiveMap(room())
    live.mark_scan(scan_of(ranges, angle_min=0.0), Pose2(3.0, 2.5, math.pi / 4), 0.0)
    assert seen(live) == [(60, 70)]  # a quarter turn to the left
    live.clear()
    live.mark_scan(scan_of(ranges, angle_min=0.0, angle_increment=-math.pi / 4), CENTRE, 0.0)
    (found,) = seen(live)
    assert found == (74, 35)
    live.mark_scan(scan_of([2.0] * 8, angle_min=0.0, angle_increment=-math.pi / 4), CENTRE, 0.0)
    assert found not in seen(live)


def test_the_walls_of_the_map_are_not_marked_again():
    live = LiveMap(room())
    angles = np.arange(360) * math.tau / 360 - math.pi
    with np.errstate(divide="ignore"):
        to_wall = np.minimum(2.95 / np.abs(np.cos(angles)), 2.45 / np.abs(np.sin(angles)))
    for error_m in (-0.04, 0.0, 0.04):
        live.mark_scan(scan_of(to_wall + error_m), CENTRE, 0.0)
    assert seen(live) == []
    assert live.version == 0


def test_the_same_again_changes_nothing():
    live = LiveMap(room())
    live.mark_scan(ahead(1.0), CENTRE, 0.0)
    field, version = live.field(0.0), live.version
    live.mark_scan(ahead(1.0), CENTRE, 0.1)
    assert live.field(0.1).cells is field.cells
    assert live.version == version


def test_a_field_that_was_given_out_stays_as_it_is():
    live = LiveMap(room())
    live.mark_scan(ahead(1.0), CENTRE, 0.0)
    field = live.field(0.0)
    before = field.cells.copy()
    live.mark_scan(ahead(0.6), CENTRE, 0.1)
    assert live.field(0.1).cells is not field.cells
    np.testing.assert_array_equal(field.cells, before)


def test_what_is_not_seen_any_more_goes_after_a_while():
    grid = room()
    live = LiveMap(grid, decay_s=2.0)
    live.mark_scan(ahead(1.0), CENTRE, 0.0)
    live.mark_scan(ahead(1.0), CENTRE, 5.0)
    live.field(7.0)
    assert seen(live)
    version = live.version
    assert live.field(7.01).cells is grid.clearance_m
    assert seen(live) == []
    assert live.version == version + 1
    lasting = LiveMap(grid, decay_s=None)
    lasting.mark_scan(ahead(1.0), CENTRE, 0.0)
    lasting.field(1e9)
    assert seen(lasting)


def test_beams_that_look_through_an_obstacle_clear_it():
    live = LiveMap(room())
    live.mark_scan(ahead(1.0), CENTRE, 0.0)
    live.mark_scan(ahead(2.0), CENTRE, 0.1)
    assert {cell[0] for cell in seen(live)} == {100}
    live.mark_scan(ahead(INF), CENTRE, 0.2)
    assert seen(live) == []
    agrees(live, 0.2)


def test_beams_that_see_nothing_clear_as_far_as_they_see():
    live = LiveMap(room())
    live.mark_scan(ahead(1.0, width=0), CENTRE, 0.0)
    live.mark_scan(scan_of([INF] * 360, range_max=0.9), CENTRE, 0.1)
    assert seen(live)
    live.mark_scan(scan_of([INF] * 360, range_max=INF), CENTRE, 0.1)
    assert seen(live)
    live.mark_scan(scan_of([1.5] * 360, range_max=1.2), CENTRE, 0.1)
    assert seen(live) == []


@pytest.mark.parametrize("range_m", [NAN, 0.0, -1.0, 0.01, -INF])
def test_beams_that_say_nothing_mark_and_clear_nothing(range_m):
    live = LiveMap(room())
    live.mark_scan(ahead(1.0, width=0), CENTRE, 0.0)
    before = seen(live)
    live.mark_scan(scan_of([range_m] * 360), CENTRE, 0.1)
    assert seen(live) == before


def test_a_beam_clears_neither_beside_it_nor_behind_what_it_hits():
    live, pose = LiveMap(room()), Pose2(3.0, 2.525, 0.0)
    live.mark_points([(4.02, 2.52, 0.5)], 0.0)  # only beams clear what beams showed
    live.mark_scan(ahead(1.5, width=0), pose, 0.0)
    live.mark_scan(ahead(0.5, width=0), pose, 0.1)
    assert seen(live) == [(70, 50), (80, 50), (90, 50)]
    live.mark_scan(ahead(0.55, width=0), pose, 0.1)  # the same thing, or noise
    assert (70, 50) in seen(live)
    beside = scan_of([INF, INF, INF, INF], angle_min=0.03)
    live.mark_scan(beside, pose, 0.2)
    assert (90, 50) in seen(live)


def test_a_sector_clears_only_in_front():
    live = LiveMap(room())
    ranges = np.full(360, INF)
    ranges[[0, 180]] = 1.0
    live.mark_scan(scan_of(ranges), CENTRE, 0.0)
    assert seen(live) == [(39, 50), (80, 50)]
    live.mark_scan(scan_of([INF] * 61, angle_min=-math.pi / 6, angle_increment=math.pi / 180), CENTRE, 0.1)
    assert seen(live) == [(39, 50)]


def test_a_beam_clears_nothing_in_its_back():
    live, pose = LiveMap(room()), Pose2(3.0, 2.525, 0.0)
    live.mark_scan(ahead(1.0, width=0), pose, 0.0)
    live.mark_scan(scan_of([INF], angle_min=math.pi, angle_increment=0.1), pose, 0.1)
    assert seen(live) == [(80, 50)]
    live.mark_scan(scan_of([INF], angle_min=0.0, angle_increment=0.1), pose, 0.1)
    assert seen(live) == []


def test_a_range_of_0_is_none_even_for_a_scanner_that_sees_at_once():
    live = LiveMap(room())
    live.mark_scan(scan_of([0.0] * 360, range_min=0.0), CENTRE, 0.0)
    assert seen(live) == []


def test_what_lies_beyond_the_map_does_no_harm():
    live = LiveMap(room())
    live.mark_scan(scan_of([1.0] * 360), Pose2(-50.0, 99.0, 1.0), 0.0)
    live.mark_scan(scan_of([9.0] * 360), CENTRE, 0.0)
    live.mark_points([(1e9, -1e9, 0.5), (NAN, 1.0, 0.5)], 0.0)
    live.mark_scan(scan_of([]), CENTRE, 0.0)
    assert live.version == 0


def test_points_are_taken_in_the_height_band_and_left_to_decay():
    live = LiveMap(room(), floor_z=1.0, min_points=2)
    points = [(1.02, 1.02, 1.5)] * 2 + [(2.02, 2.02, 1.5)] + [(3.02, 3.02, 2.4)] * 2 + [(4.02, 2.02, 1.0)] * 2
    live.mark_points(np.array(points, np.float32), 0.0)
    assert seen(live) == [(20, 20)]
    live.mark_scan(scan_of([INF] * 3600), CENTRE, 1.0)
    assert seen(live) == [(20, 20)]
    live.field(3.1)
    assert seen(live) == []
    live.mark_points(np.empty((0, 3)), 4.0)
    with pytest.raises(UserError, match=r"shape \(N, 3\)"):
        live.mark_points(np.zeros(5), 4.0)


def test_recovery_clears_all_or_what_is_near():
    live = LiveMap(room())
    live.mark_scan(ahead(1.0), CENTRE, 5.0)
    live.mark_points([(1.02, 1.02, 0.5)], 5.0)
    live.clear(Pose2(4.0, 2.5, 0.0), 0.5)
    assert seen(live) == [(20, 20)]
    agrees(live, 5.0)
    live.clear()
    assert seen(live) == []
    assert live.field(0.0).cells is live.field(0.0).cells  # time may begin anew
    with pytest.raises(ValueError, match="both a pose and a radius"):
        live.clear(CENTRE)
    with pytest.raises(ValueError, match="finite"):
        live.clear(Pose2(NAN, 0, 0), 1.0)


@pytest.mark.parametrize("occupied", [room().occupied, np.zeros((100, 120), dtype=bool)])
def test_the_field_is_that_of_a_new_map_whatever_comes(occupied):
    rng = np.random.default_rng(7)
    occupied = occupied.copy()
    occupied[:, 40] = occupied.any()
    live = LiveMap(GridMap(occupied), decay_s=0.5)
    versions = set()
    for step in range(40):
        time_s = 0.1 * step
        ranges = rng.uniform(0.1, 4.0, 90)
        ranges[rng.random(90) < 0.9] = INF
        pose = Pose2(*rng.uniform((0.2, 0.2, -9), (5.8, 4.8, 9)))
        live.mark_scan(scan_of(ranges, range_max=3.0), pose, time_s)
        if step % 3 == 0:
            live.mark_points(rng.uniform((0, 0, 0), (6, 5, 2), (4, 3)), time_s)
        if step % 7 == 0:
            live.clear(pose, 0.7)
        agrees(live, time_s)
        versions.add(live.version)
    assert len(versions) > 30


def test_unknown_space_is_closed_until_it_is_seen():
    unknown = np.zeros((100, 120), dtype=bool)
    unknown[1:-1, 60:-1] = True
    grid = GridMap(room().occupied | unknown, unknown=unknown, ends=True)
    free = LiveMap(grid)
    assert free.field(0.0).cells[50, 80] > 1.0
    live = LiveMap(grid, unknown="occupied")
    assert live.field(0.0).cells[50, 80] == -0.025
    live.mark_scan(ahead(1.0, width=60), Pose2(2.9, 2.5, 0.0), 0.0)
    agrees(live, 0.0)
    assert live.field(0.0).cells[50, 68] > 0
    assert live.snapshot().unknown[50, 84]
    live.field(100.0)
    assert not live.snapshot().unknown[50, 68]  # what was seen to be free stays so
    live.mark_points([(5.02, 2.52, 0.0)], 100.0)
    assert not live.snapshot().occupied[50, 100]
    live.clear()
    assert not live.snapshot().unknown[50, 68]
    agrees(live, 100.0)
    with pytest.raises(UnknownName, match="policy for unknown space 'wall'"):
        LiveMap(grid, unknown="wall")


@pytest.mark.parametrize("options", [{"decay_s": 0}, {"decay_s": NAN}, {"min_points": 0}, {"floor_z": INF}])
def test_options_that_are_wrong(options):
    with pytest.raises(UserError, match="expected a"):
        LiveMap(room(), **options)


@pytest.mark.parametrize(
    ("scan", "pose", "time_s"),
    [
        (ahead(1.0), Pose2(NAN, 0, 0), 0.0),
        (ahead(1.0), Pose2(0, 0, INF), 0.0),
        (ahead(1.0), CENTRE, NAN),
        (scan_of([1.0], angle_increment=0.0), CENTRE, 0.0),
        (scan_of([1.0], angle_min=NAN), CENTRE, 0.0),
        (scan_of([1.0], range_min=2.0, range_max=1.0), CENTRE, 0.0),
        (scan_of([1.0], range_max=NAN), CENTRE, 0.0),
        (scan_of([[1.0, 2.0]]), CENTRE, 0.0),
    ],
)
def test_scans_that_are_none(scan, pose, time_s):
    with pytest.raises(ValueError, match="expected"):
        LiveMap(room()).mark_scan(scan, pose, time_s)


def test_time_does_not_go_back():
    live = LiveMap(room())
    live.field(5.0)
    live.mark_scan(ahead(1.0), CENTRE, 4.9)  # a little late
    assert seen(live)
    with pytest.raises(ValueError, match=r"not before 5.0 s, found 4.0; clear\(\) begins anew"):
        live.field(4.0)


def test_a_cloud_taken_in_beside_is_the_same_as_one_taken_in_at_once():
    rng = np.random.default_rng(3)
    points = rng.uniform((0, 0, -0.05), (6, 5, 2), (3000, 3)).astype(np.float32)
    points.flags.writeable = False  # as a message's buffer is
    at_once = LiveMap(room())
    at_once.mark_points(points, 1.0)
    with LiveMap(room()) as live:
        live.mark_points_async(points, 1.0)
        live.finish_clouds()
        np.testing.assert_array_equal(live.field(1.0).cells, at_once.field(1.0).cells)
        assert seen(live)


class Gate:
    """Stands in for the work on a cloud, and holds it up until it is let go."""

    def __init__(self, monkeypatch):
        self.open, self.began, self.worked_on = threading.Event(), threading.Event(), []
        self._work = live_map.seen_cells
        monkeypatch.setattr(live_map, "seen_cells", self)

    def __call__(self, points, *rest):
        self.worked_on.append(float(points[0, 0]))
        self.began.set()
        assert self.open.wait(10)
        if not len(self.worked_on) % 5:
            raise MemoryError("no room for a cloud")
        return self._work(points, *rest)


def cloud_at(x):
    return np.array([(x, 2.52, 0.5)])


def test_the_newest_cloud_wins_and_nobody_waits(monkeypatch):
    gate = Gate(monkeypatch)
    with LiveMap(room()) as live:
        for x in (1.02, 2.02, 3.02):
            live.mark_points_async(cloud_at(x), 0.0)
        assert gate.began.wait(10)
        assert live.field(0.0).cells is live.field(0.1).cells  # not yet
        gate.open.set()
        live.finish_clouds()
        assert gate.worked_on == [1.02, 3.02]
        assert seen(live) == [(20, 50), (60, 50)]


def test_what_clouds_are_in_work_is_forgotten_by_clearing(monkeypatch):
    gate = Gate(monkeypatch)
    with LiveMap(room()) as live:
        live.mark_points_async(cloud_at(1.02), 0.0)
        live.mark_points_async(cloud_at(2.02), 0.0)
        assert gate.began.wait(10)
        live.clear()
        live.mark_points_async(cloud_at(3.02), 0.0)
        gate.open.set()
        live.finish_clouds()
        assert seen(live) == [(60, 50)]


def test_errors_in_the_thread_come_out_and_it_goes_on(monkeypatch):
    gate = Gate(monkeypatch)
    gate.open.set()
    with LiveMap(room()) as live:
        for _ in range(4):
            live.mark_points_async(cloud_at(1.02), 0.0)
            live.finish_clouds()
        live.mark_points_async(cloud_at(1.02), 0.0)
        with pytest.raises(MemoryError, match="no room for a cloud"):
            live.finish_clouds()
        live.mark_points_async(cloud_at(2.02), 0.0)
        live.finish_clouds()
        assert (40, 50) in seen(live)
        with pytest.raises(UserError, match=r"shape \(N, 3\)"):
            live.mark_points_async(np.zeros(3), 0.0)


def test_closing_ends_the_thread_also_in_the_midst_of_a_cloud():
    before = threading.active_count()
    live = LiveMap(room())
    live.mark_points_async(np.random.default_rng(0).random((200_000, 3)), 0.0)
    live.mark_points_async(cloud_at(1.02), 0.0)
    live.close()
    live.close()
    assert threading.active_count() == before
    live.field(0.0)
    with pytest.raises(ValueError, match="closed"):
        live.mark_points_async(cloud_at(1.02), 0.0)


def test_other_threads_go_on_while_a_cloud_is_worked_on():
    """Points are counted without Python's global lock."""
    live = LiveMap(room())
    points = np.random.default_rng(0).random((4_000_000, 3), np.float32)
    live.mark_points(points[:10], 0.0)  # compiled by now
    live.mark_points_async(points, 0.0)
    turns = 0
    while live.version < 2:
        live.field(0.0)
        turns += 1
    live.close()
    assert turns > 1  # with the lock, the first turn would end after the work


def test_a_scan_of_a_world_shows_only_what_is_not_on_the_map():
    """A robot in a room of walls and a table, in which somebody put a box."""

    def thing(name, size, at):
        return SceneObject(name=name, translate=at, parts=[Part(shape="box", size=size)])

    walls = [
        thing("south", (6.0, 0.1, 1), (3, 0.05, 0.5)),
        thing("north", (6.0, 0.1, 1), (3, 4.95, 0.5)),
        thing("west", (0.1, 5.0, 1), (0.05, 2.5, 0.5)),
        thing("east", (0.1, 5.0, 1), (5.95, 2.5, 0.5)),
        SceneObject(
            name="pillar",
            translate=(1.5, 3.5, 0.5),
            rotate=(0, 0, 30),
            parts=[Part(shape="box", size=(0.43, 0.3, 1))],
        ),
    ]
    live = LiveMap(Scene(SceneConfig(scene_name="room", objects=walls)).map())
    box = thing("box", (0.4, 0.6, 0.5), (4.2, 2.4, 0.25))
    world = World(Scene(SceneConfig(scene_name="room", objects=[*walls, box])), standard_robot())
    world.reset(Pose2(2.0, 2.0, 0.3))
    scanner = LaserScanner(world)
    live.mark_scan(scanner.scan(), world.pose(), 0.0)
    grid = live.snapshot()
    rows, columns = np.nonzero(grid.occupied & (live._static.cells > 0))
    x, y = (columns + 0.5) * 0.05 + grid.origin_world[0], (rows + 0.5) * 0.05 + grid.origin_world[1]
    assert x.min() == pytest.approx(4.025)
    assert len(x) > 10
    assert (np.abs(x - 4.2) < 0.25).all()
    assert (np.abs(y - 2.4) < 0.35).all()
    assert live.field(0.0).cells[rows, columns].max() < 0
    world.reset(Pose2(2.3, 2.9, -2.0))  # from elsewhere, and turned
    version = live.version
    live.mark_scan(scanner.scan(), world.pose(), 0.1)
    assert live.version > version
    rows, columns = np.nonzero(live.snapshot().occupied & (live._static.cells > 0))
    assert (np.abs((columns + 0.5) * 0.05 + grid.origin_world[0] - 4.2) < 0.25).all()
    assert (np.abs((rows + 0.5) * 0.05 + grid.origin_world[1] - 2.4) < 0.35).all()
