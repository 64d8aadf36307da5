import math

import numpy as np
import pytest

from proctor.core.errors import UnknownName, UserError
from proctor.core.types import Pose2
from proctor.maps.grid_map import GridMap
from proctor.maps.point_cloud import Pinhole, camera_frame, points_of_depth
from proctor.robots.spec import Camera, standard_robot
from proctor.scenes.scene import Scene
from proctor.scenes.scene_config import Part, SceneConfig, SceneObject
from proctor.worlds.mujoco.wheeled.camera import RgbdCamera
from proctor.worlds.mujoco.wheeled.world import World

NAN, INF = math.nan, math.inf


def floor_points(x0, y0, x1, y1, z=0.0, spacing_m=0.025):
    x, y = np.mgrid[x0 + 0.01 : x1 : spacing_m, y0 + 0.01 : y1 : spacing_m]
    return np.column_stack([x.ravel(), y.ravel(), np.full(x.size, z)])


def room():
    """A floor of 2 m x 1 m, from (-1, 3), with a post in it."""
    return np.vstack([floor_points(-1, 3, 1, 4), [(0.12, 3.52, z) for z in np.linspace(0, 2, 50)]])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_map_is_where_the_points_are(dtype):
    grid = GridMap.from_point_cloud(room().astype(dtype))
    assert grid.origin_world == pytest.approx((-1.0, 3.0))
    assert grid.occupied.shape == (20, 40)
    assert np.argwhere(grid.occupied).tolist() == [[10, 22]]
    assert not grid.unknown.any()
    assert grid.clearance_at(0.125, 3.525) < 0
    assert not grid.ends


@pytest.mark.parametrize("z", [-0.3, 1.31, 40.0])
def test_points_above_the_robot_or_far_below_the_floor_say_nothing(z):
    grid = GridMap.from_point_cloud(np.vstack([room(), floor_points(0, 3, 5, 3.5, z)]))
    assert grid.occupied.shape == (20, 40)
    assert grid.occupied.sum() == 1


def test_another_floor_and_another_robot():
    points = np.vstack([room() + np.array([0, 0, 3.0]), [(0.52, 3.52, 3.15)]])
    assert GridMap.from_point_cloud(points, floor_z=3.0).occupied.sum() == 2
    band_m = (0.2, 0.5)
    assert GridMap.from_point_cloud(points, floor_z=3.0, height_band_m=band_m).occupied.sum() == 1
    with pytest.raises(UserError, match=r"none of the cloud's .* finite points is as high as the floor"):
        GridMap.from_point_cloud(points)


def test_few_points_may_be_noise():
    points = np.vstack([room(), [(0.52, 3.52, 0.5)] * 3])
    assert GridMap.from_point_cloud(points, min_points=3).occupied.sum() == 2
    assert GridMap.from_point_cloud(points, min_points=4).occupied.sum() == 1
    assert not GridMap.from_point_cloud(points, min_points=4).unknown.any()
    only = [(0.0, 0.0, 0.5), (0.5, 0.5, 0.5)]
    assert GridMap.from_point_cloud(only, min_points=2).unknown.all()


def test_what_nobody_has_seen_is_free_or_occupied_as_one_likes():
    points = room()
    points = points[(points[:, 0] < -0.5) | (points[:, 0] > 0)]
    free = GridMap.from_point_cloud(points)
    assert free.unknown.sum() == 10 * 20
    assert free.occupied.sum() == 1
    assert free.line_is_free((-0.8, 3.2), (0.8, 3.2), 0.1)
    assert free.covering((5.0, 3.5)).unknown.sum() == free.unknown.sum()
    closed = GridMap.from_point_cloud(points, unknown="occupied")
    assert closed.occupied.sum() == 1 + 10 * 20
    assert (closed.unknown == free.unknown).all()
    assert closed.ends
    with pytest.raises(UnknownName, match="'occuppied'; did you mean 'occupied'"):
        GridMap.from_point_cloud(points, unknown="occuppied")


def test_points_that_are_not_finite_are_left_out():
    strays = [(NAN, 0, 0.5), (0, NAN, 0.5), (0, 3.5, NAN), (INF, 3.5, 0.5), (0, -INF, 0.5), (0, 3.5, INF)]
    grid = GridMap.from_point_cloud(np.vstack([room(), strays]))
    assert grid.occupied.shape == (20, 40)
    assert grid.occupied.sum() == 1


@pytest.mark.parametrize(
    ("points", "words"),
    [
        (np.empty((0, 3)), "a cloud without points"),
        (np.full((7, 3), NAN), "none of the cloud's 7 points is finite"),
        (np.full((7, 3), -INF, np.float32), "none of the cloud's 7 points is finite"),
        (np.zeros((7, 2)), r"shape \(N, 3\), found \(7, 2\)"),
        (np.zeros(3), r"found \(3,\)"),
        (np.zeros((2, 3), complex), "float32 or float64, found complex128"),
        ([["a", "b", "c"]], "found <U1"),
        ([(0, 0, 0), (1e5, 1e5, 0.5)], r"reach over 100000 m x 100000 m, too much for a map of 0.05 m cells"),
        ([(-1e308, 0, 0), (1e308, 0, 0)], "reach over inf m x 0 m"),
    ],
)
def test_clouds_that_cannot_be_drawn(points, words):
    with pytest.raises(UserError, match=words):
        GridMap.from_point_cloud(points)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"resolution_m": 0}, "resolution of more than 0 m"),
        ({"resolution_m": NAN}, "resolution of more than 0 m"),
        ({"min_points": 0}, "at least 1 point"),
        ({"height_band_m": (1, 0.5)}, "low < high"),
        ({"floor_z": NAN}, "height band"),
        ({"bounds_world": (0, 0, -1, 1)}, "expected bounds"),
        ({"bounds_world": (0, 0, NAN, 1)}, "expected bounds"),
        ({"bounds_world": (0, 0, 1)}, "expected bounds"),
    ],
)
def test_options_that_are_wrong(options, words):
    with pytest.raises(UserError, match=words):
        GridMap.from_point_cloud(room(), **options)


def test_bounds_keep_strays_out():
    grid = GridMap.from_point_cloud(np.vstack([room(), [(1e6, 0, 0.5)]]), bounds_world=(-1, 3, 0.99, 3.99))
    assert grid.occupied.shape == (20, 40)
    assert grid.occupied.sum() == 1


def test_points_on_the_lines_of_the_grid_are_never_lost():
    steps = np.arange(-300, 300)
    points = np.column_stack([steps * 0.05, steps[::-1] * 0.1, np.full(600, 0.5)])
    grid = GridMap.from_point_cloud(points)
    assert grid.occupied.sum() == 600
    assert not grid.unknown[grid.occupied].any()
    # 17 cells of 0.05 m are a little more than 0.85 m.
    assert GridMap.from_point_cloud([(0.85, 0.85, 0.5), (2.0, 2.0, 0.5)]).occupied.sum() == 2


def test_one_point_is_a_map():
    grid = GridMap.from_point_cloud([(0.51, 0.51, 0.5)])
    assert grid.occupied.shape == (2, 2)
    assert grid.clearance_at(0.525, 0.525) == pytest.approx(-0.025)


def test_depth_pixels_come_back_to_where_they_were():
    """Points are projected into an image by the book, and found again."""
    rng = np.random.default_rng(2)
    camera = Camera(width=64, height=48, pitch_deg=-20.0)
    frame = camera_frame(camera, Pose2(1.0, -2.0, 0.7), floor_z=0.5)
    assert frame[:3, 3] == pytest.approx((1.0, -2.0, 1.75))
    assert frame[:3, :3].T @ frame[:3, :3] == pytest.approx(np.eye(3))
    assert np.linalg.det(frame[:3, :3]) == pytest.approx(1.0)
    assert frame[2, 2] == pytest.approx(math.sin(math.radians(-20)))
    pinhole = Pinhole.of(camera)
    depth = rng.integers(500, 4000, (48, 64)).astype(np.uint16)
    depth[5, 7] = 0
    points = points_of_depth(depth, pinhole, frame)
    assert points.shape == (48 * 64 - 1, 3)
    seen = (points - frame[:3, 3]) @ frame[:3, :3]
    columns = seen[:, 0] / seen[:, 2] * pinhole.fx + pinhole.cx
    rows = seen[:, 1] / seen[:, 2] * pinhole.fy + pinhole.cy
    due_rows, due_columns = np.nonzero(depth)
    assert rows == pytest.approx(due_rows, abs=1e-9)
    assert columns == pytest.approx(due_columns, abs=1e-9)
    assert seen[:, 2] == pytest.approx(depth[depth > 0] / 1000)
    assert points_of_depth(depth, pinhole, frame, stride=3) == pytest.approx(
        points_of_depth(
            depth[::3, ::3], Pinhole(pinhole.fx / 3, pinhole.fy / 3, pinhole.cx / 3, pinhole.cy / 3), frame
        )
    )


def test_a_rendered_depth_image_shows_the_box_where_it_stands():
    size, at = (0.4, 1.0, 0.8), (2.2, 0.1, 0.4)
    floor = SceneObject(name="floor", translate=(0, 0, -0.05), parts=[Part(shape="box", size=(9, 9, 0.1))])
    box = SceneObject(name="box", translate=at, parts=[Part(shape="box", size=size)])
    robot = standard_robot(camera=Camera(width=160, height=120, pitch_deg=-25.0))
    world = World(Scene(SceneConfig(scene_name="box", objects=[floor, box])), robot)
    pose = Pose2(0.4, -0.3, 0.2)
    world.reset(pose)
    camera = RgbdCamera(world)
    try:
        depth = camera.render()[1]
    finally:
        camera.close()
    points = points_of_depth(depth, Pinhole.of(robot.camera), camera_frame(robot.camera, pose))
    grid = GridMap.from_point_cloud(points, bounds_world=(0.5, -1.5, 3.5, 1.5))
    rows, columns = np.nonzero(grid.occupied)
    x, y = columns * 0.05 + 0.525, rows * 0.05 - 1.475
    assert x.min() == pytest.approx(2.0, abs=0.051)
    assert y.min() == pytest.approx(-0.4, abs=0.051)
    assert y.max() == pytest.approx(0.6, abs=0.051)
    assert (x < 2.45).all()
    assert not grid.unknown[25:40, 20:28].any()  # the floor in front of it
    assert grid.unknown[30, 42]  # what the box hides


@pytest.mark.parametrize(
    ("depth", "options", "words"),
    [
        (np.zeros((4, 4), np.float32), {}, r"uint16 \(H, W\), found float32 \(4, 4\)"),
        (np.zeros((4, 4, 1), np.uint16), {}, r"found uint16 \(4, 4, 1\)"),
        (np.zeros((4, 4), np.uint16), {"stride": 0}, "stride of more than 0"),
        (np.zeros((4, 4), np.uint16), {"pinhole": Pinhole(0.0, 1.0, 0, 0)}, "fx, fy"),
        (np.zeros((4, 4), np.uint16), {"pinhole": Pinhole(NAN, 1.0, 0, 0)}, "all finite"),
        (np.zeros((4, 4), np.uint16), {"camera_world": np.eye(3)}, r"camera pose of \(4, 4\)"),
    ],
)
def test_depth_images_that_are_none(depth, options, words):
    with pytest.raises(UserError, match=words):
        points_of_depth(
            depth,
            options.get("pinhole", Pinhole(1.0, 1.0, 0.0, 0.0)),
            options.get("camera_world", np.eye(4)),
            stride=options.get("stride", 1),
        )


def test_a_depth_image_without_a_return_has_no_points():
    assert points_of_depth(np.zeros((4, 4), np.uint16), Pinhole(1.0, 1.0, 0, 0), np.eye(4)).shape == (0, 3)
