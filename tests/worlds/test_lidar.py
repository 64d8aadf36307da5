import math

import numpy as np
import pytest

from proctor.core.types import Pose2
from proctor.robots.spec import standard_robot
from proctor.scenes.scene import Scene
from proctor.scenes.scene_config import Part, SceneConfig, SceneObject
from proctor.worlds.mujoco.wheeled.robot import LaserScanner
from proctor.worlds.mujoco.wheeled.world import World


def scanner_in(*objects, pose=(0.0, 0.0, 0.0)):
    world = World(Scene(SceneConfig(scene_name="test", objects=list(objects))), standard_robot())
    world.reset(Pose2(*pose))
    return LaserScanner(world)


def wall(at, size=(0.1, 4.0, 1.0), **options):
    return SceneObject(name=f"wall {at}", translate=at, parts=[Part(shape="box", size=size, **options)])


def angles(scan):
    return scan.angle_min + scan.angle_increment * np.arange(len(scan.ranges))


def test_an_empty_floor_returns_nothing():
    scan = scanner_in().scan()
    assert len(scan.ranges) == 360
    assert np.isinf(scan.ranges).all()


def test_a_wall_is_where_geometry_says():
    scan = scanner_in(wall((2.05, 0.0, 0.5))).scan()
    seen = np.isfinite(scan.ranges)
    expected = 2.0 / np.cos(angles(scan)[seen])
    assert scan.ranges[seen] == pytest.approx(expected, abs=1e-9)
    assert np.abs(angles(scan)[seen]).max() == pytest.approx(math.atan2(2.0, 2.0), abs=0.02)


@pytest.mark.parametrize("yaw", [0.0, 1.0, -2.5])
def test_angles_are_in_the_robots_frame_and_grow_to_the_left(yaw):
    post = wall((2.0 * math.cos(yaw + 0.5), 2.0 * math.sin(yaw + 0.5), 0.5), size=(0.1, 0.1, 1.0))
    scan = scanner_in(post, pose=(0.0, 0.0, yaw)).scan()
    assert angles(scan)[np.isfinite(scan.ranges)].mean() == pytest.approx(0.5, abs=0.02)


def test_the_scanner_sees_neither_itself_nor_what_is_above_or_without_collision():
    scan = scanner_in(
        wall((1.0, 0.0, 1.5)),
        wall((1.5, 0.0, 0.5), collision=False),
        wall((2.0, 0.0, 0.01), size=(1, 1, 0.02)),
    ).scan()
    assert np.isinf(scan.ranges).all()


def test_nothing_is_seen_beyond_the_range():
    assert np.isinf(scanner_in(wall((10.2, 0.0, 0.5))).scan().ranges).all()
    assert np.isfinite(scanner_in(wall((9.9, 0.0, 0.5))).scan().ranges).any()


def test_looking_ahead_gives_the_same_ranges_as_the_full_scan_up_to_its_reach():
    scanner = scanner_in(
        wall((0.5, 0.3, 0.5), size=(0.1, 0.3, 1.0)), wall((2.0, 0.0, 0.5)), pose=(0.1, 0.0, 0.3)
    )
    full, ahead = scanner.scan(), scanner.scan_ahead(1.0)
    assert np.abs(angles(ahead)).max() == pytest.approx(math.radians(30), abs=1e-6)
    index = np.searchsorted(angles(full), angles(ahead)[0] - 1e-9)
    part = full.ranges[index : index + len(ahead.ranges)]
    assert ahead.ranges == pytest.approx(np.where(part <= 1.0, part, np.inf))
    assert np.isfinite(ahead.ranges).any()
    assert np.isinf(ahead.ranges).any()
