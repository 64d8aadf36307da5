import math

import numpy as np
import pytest
import trimesh

from proctor.core.errors import InvalidFile, UserError
from proctor.core.types import Pose2
from proctor.maps.grid_map import GridMap
from proctor.robots.spec import standard_robot
from proctor.scenes import scene_map
from proctor.scenes.scene import Scene
from proctor.scenes.scene_config import Part, SceneConfig, SceneObject, save_scene
from proctor.scenes.scene_map import draw_map
from proctor.worlds.mujoco.wheeled.world import World


def scene_of(*objects):
    return SceneConfig(scene_name="test", objects=list(objects))


def thing(shape="box", size=(1, 1, 1), at=(0, 0, 0.5), name="thing", part=None, **options):
    parts = [Part(shape=shape, size=size, **(part or {}))]
    return SceneObject(name=name, translate=at, parts=parts, **options)


def occupied_centres(grid):
    cells = np.argwhere(grid.occupied)[:, ::-1]
    return (cells + 0.5) * grid.resolution_m + np.array(grid.origin_world)


def test_a_box_on_round_numbers_fills_exactly_its_cells():
    grid = Scene(scene_of(thing(size=(0.3, 0.2, 1), at=(1.05, 2.0, 0.5)))).map()
    centres = occupied_centres(grid)
    assert len(centres) == 6 * 4
    assert centres.min(axis=0) == pytest.approx((0.925, 1.925))
    assert centres.max(axis=0) == pytest.approx((1.175, 2.075))


def test_the_map_reaches_half_a_metre_beyond_everything():
    grid = Scene(scene_of(thing(at=(3, -2, 0.5)))).map()
    assert grid.origin_world == pytest.approx((2.0, -3.0))
    assert grid.occupied.shape == (40, 40)


@pytest.mark.parametrize(
    "harmless",
    [
        thing(at=(0, 0, 2.0)),  # hangs above the robot
        thing(size=(4, 4, 0.2), at=(0, 0, -0.06)),  # a floor
        thing(part={"collision": False}),
        thing(rigid_body_type="none"),
    ],
)
def test_what_a_robot_cannot_bump_into_is_not_on_the_map(harmless):
    assert not Scene(scene_of(harmless)).map().occupied.any()


def test_a_leaning_board_is_an_obstacle_only_where_it_is_low():
    # A board that rises from the floor at x = 0 to 4 m at x = 4.
    board = thing(size=(math.sqrt(32), 1, 0.02), at=(2, 0, 2), part={"rotate": (0, -45, 0)})
    reach = occupied_centres(Scene(scene_of(board)).map())[:, 0]
    assert reach.min() == pytest.approx(0.05, abs=0.05)
    assert reach.max() == pytest.approx(1.3, abs=0.05)


def test_scale_and_rotation_of_an_object_move_its_parts():
    parts = [Part(shape="box", size=(0.2, 0.2, 0.5), translate=(1, 0, 0.25))]
    turned = SceneObject(name="a", translate=(5, 5, 0), rotate=(0, 0, 90), scale=2.0, parts=parts)
    centres = occupied_centres(Scene(scene_of(turned)).map())
    assert centres.min(axis=0) == pytest.approx((4.825, 6.825))
    assert centres.max(axis=0) == pytest.approx((5.175, 7.175))


def triple(rng, limit):
    return tuple(rng.uniform(-limit, limit, 3))


def random_things(rng, tmp_path):
    """Things of all kinds, tilted and scaled, one of them a mesh of two pieces."""
    pieces = [trimesh.creation.box((0.4, 0.2, 0.9)), trimesh.creation.icosphere(radius=0.2)]
    pieces[1].apply_translation((0.9, 0.3, 0.1))
    trimesh.util.concatenate(pieces).export(tmp_path / "mesh.stl")
    objects = [
        SceneObject(name="mesh", asset_path="mesh.stl", translate=(2, 2, 0.6), rotate=(20, 30, 40), scale=1.5)
    ]
    for index in range(12):
        shape = ("box", "cylinder", "sphere")[index % 3]
        a, b, c = rng.uniform(0.1, 0.8, 3)
        size = {"box": (a, b, c), "cylinder": (a, a, b), "sphere": (a, a, a)}[shape]
        part = {"rotate": triple(rng, 180), "translate": triple(rng, 0.3)}
        at = (*rng.uniform(-3, 3, 2), rng.uniform(0.5, 1.6))
        options = {"name": f"thing {index}", "rotate": triple(rng, 180), "scale": rng.uniform(0.5, 1.5)}
        objects.append(thing(shape, size, at, part=part, **options))
    return scene_of(*objects)


def test_the_map_agrees_with_what_the_physics_touches(tmp_path):
    rng = np.random.default_rng(4)
    scene = random_things(rng, tmp_path)
    grid = Scene(scene, tmp_path / "scene.json").map()
    world = World(Scene(scene, tmp_path / "scene.json"), standard_robot())
    touches = 0
    low = np.array(grid.origin_world)
    high = low + np.array(grid.occupied.shape[::-1]) * grid.resolution_m
    for x, y in rng.uniform(low + 0.3, high - 0.3, (1500, 2)):
        world.reset(Pose2(x, y, 0.0))
        clearance_m = grid.clearance_at(x, y)
        if world.touched():
            touches += 1
            assert clearance_m <= 0.172, (x, y)
        elif clearance_m > 0.0:
            # Never more than a cell's diagonal too careful.
            assert clearance_m > 0.17 - math.hypot(0.05, 0.05) - 0.01, (x, y)
    assert 200 < touches < 1300


def test_a_mesh_needs_its_scene_file_and_must_be_one(tmp_path):
    scene = scene_of(SceneObject(name="a", asset_path="a.stl"))
    with pytest.raises(UserError, match="scene's file"):
        Scene(scene).map()
    (tmp_path / "a.stl").write_text("no mesh")
    with pytest.raises(InvalidFile, match=r"scene.json: objects\[0\]\.asset_path: 'a.stl'"):
        Scene(scene, tmp_path / "scene.json").map()


def exact_clearance(grid, points):
    low = np.argwhere(grid.occupied)[:, ::-1] * grid.resolution_m + np.array(grid.origin_world)
    beyond = np.maximum(low - points[:, None], points[:, None] - low - grid.resolution_m)
    return np.linalg.norm(np.maximum(beyond, 0), axis=-1).min(axis=1)


def test_clearance_is_the_distance_to_the_nearest_occupied_square():
    rng = np.random.default_rng(1)
    grid = GridMap(rng.random((70, 90)) < 0.005)
    rows, columns = np.indices(grid.occupied.shape)
    centres = np.stack([columns, rows], axis=-1).reshape(-1, 2) * 0.05 + 0.025
    free = ~grid.occupied.ravel()
    assert grid.clearance_m.ravel()[free] == pytest.approx(exact_clearance(grid, centres[free]))
    assert (grid.clearance_m.ravel()[~free] < 0).all()
    points = rng.uniform((0, 0), (4.5, 3.5), (5000, 2))
    exact = exact_clearance(grid, points)
    excess = grid.clearances(points) - exact
    assert excess[exact > 0.1].max() < 0.003
    assert excess.min() > -0.05


def test_beyond_the_border_the_floor_is_empty():
    grid = Scene(scene_of(thing())).map()
    assert grid.clearance_at(-0.9, 0.0) > 0.25
    assert grid.clearance_at(-50.0, 0.0) > 0.25
    assert grid.line_is_free((-5.0, 3.0), (5.0, 3.0), 0.25)
    assert not grid.line_is_free((-5.0, 0.0), (5.0, 0.0), 0.25)


def test_a_lone_box_is_driven_around_from_far_outside_of_the_map():
    grid = Scene(scene_of(thing())).map()
    corner = (-0.5 - 0.25 * math.sqrt(0.5), 0.5 + 0.25 * math.sqrt(0.5))
    expected = 2 * math.dist((-5.0, 0.0), corner) + 2 * -corner[0]
    for world in (grid, grid.covering((-5.0, 0.0), (5.0, 0.0))):
        assert world.distance_m((-5.0, 0.0), (5.0, 0.0), radius_m=0.25) == pytest.approx(expected, rel=0.02)


def test_a_map_is_enlarged_only_where_it_must_be_and_never_without_bound():
    grid = Scene(scene_of(thing())).map()
    assert grid.covering((0.4, 0.4)) is grid
    larger = grid.covering((3.0, -2.0))
    assert larger.origin_world == pytest.approx((-1.0, -2.5))
    assert larger.occupied.shape == (70, 90)
    assert occupied_centres(larger) == pytest.approx(occupied_centres(grid))
    assert grid.covering((1e6, 1e6)) is grid


def test_an_empty_scene_is_free_everywhere():
    grid = Scene(scene_of()).map()
    assert grid.distance_m((-4.0, 0.0), (4.0, 3.0), radius_m=0.25) == pytest.approx(math.hypot(8, 3))


def test_a_line_is_free_if_the_disc_fits_all_along():
    occupied = np.zeros((60, 60), dtype=bool)
    occupied[30, 30] = True  # a post at (1.5 .. 1.55, 1.5 .. 1.55)
    grid = GridMap(occupied)
    assert not grid.line_is_free((0.5, 1.52), (2.5, 1.52), 0.0)
    assert not grid.line_is_free((0.5, 1.75), (2.5, 1.75), 0.25)
    assert grid.line_is_free((0.5, 1.83), (2.5, 1.83), 0.25)
    assert grid.line_is_free((0.5, 0.5), (0.5, 0.5), 0.25)
    ends = [(2.5, 1.5), (1.0, 1.5), (2.5, 2.5)]
    free = np.array([grid.line_is_free((0.5, 1.5), end, 0.2) for end in ends])
    assert free.tolist() == [False, True, True]


@pytest.mark.parametrize(
    "rotate", [(0, 0, 0), (0, 0, 90), (0, 0, 137.5), (0, 0, -30), (0, 25, 40), (180, 0, 10)]
)
def test_an_upright_box_is_drawn_like_any_other_solid(rotate, monkeypatch):
    scene = scene_of(thing(at=(0.31, -0.2, 0.4), size=(1.3, 0.07, 0.9), rotate=rotate))
    occupied = Scene(scene).map().occupied
    footprint = scene_map._footprint
    monkeypatch.setattr(
        scene_map, "_footprint", lambda solid, band: footprint(solid._replace(sides=None), band)
    )
    assert occupied.sum() > 20
    assert (occupied == Scene(scene).map().occupied).all()


def test_a_scene_that_would_need_a_huge_map_is_refused():
    with pytest.raises(UserError, match="test: its objects reach over 100001 m x 1 m, too much for a map"):
        Scene(scene_of(thing(), thing(name="far away", at=(1e5, 0, 0.5)))).map()


def test_the_map_of_a_scene_file_is_made_once_for_each_version(tmp_path):
    path = tmp_path / "scene.json"
    save_scene(scene_of(thing()), path)
    assert Scene.load(path).map() is Scene.load(path).map()
    assert Scene.load(path).map().occupied.sum() == 400
    save_scene(scene_of(thing(size=(2, 1, 1))), path)
    assert Scene.load(path).map().occupied.sum() == 800
    with pytest.raises(InvalidFile, match="no such file"):
        Scene.load(tmp_path / "other.json").map()


def test_the_maps_of_many_scenes_are_each_drawn_once(tmp_path, monkeypatch):
    drawn = []

    def counted(scene, *floor):
        drawn.append(scene.file)
        return draw_map(scene, *floor)

    monkeypatch.setattr("proctor.scenes.scene.draw_map", counted)
    paths = [tmp_path / f"{number}.json" for number in range(25)]
    for path in paths:
        save_scene(scene_of(thing()), path)
    for path in [*paths, *paths]:
        assert Scene.load(path).map().connects((-1, 0), (1, 1.5), radius_m=0.2)
    assert drawn == paths


@pytest.mark.parametrize(
    ("shape", "resolution_m"),
    [((1, 1), 0.05), ((1, 40), 0.05), ((4,), 0.05), ((4, 4), 0.0), ((4, 4), np.nan)],
)
def test_cells_that_make_no_map(shape, resolution_m):
    with pytest.raises(UserError, match="at least 2 x 2 cells"):
        GridMap(np.zeros(shape, dtype=bool), resolution_m=resolution_m)
