"""Scenes from above: what is drawn where."""

import json
import math

import numpy as np
import pytest
import trimesh
from mesh_houses import Y_UP, two_storeys, write
from PIL import Image, ImageColor
from scipy.spatial import ConvexHull

from proctor.core.errors import InvalidFile, MissingDependency, UserError
from proctor.core.registry import suite_path
from proctor.core.types import Pose2
from proctor.exams.datasets import load_dataset
from proctor.plots import figure
from proctor.plots import plan as plan_module
from proctor.plots.figure import round_length_m
from proctor.plots.plan import draw_plan, grid_paper, outlines_of_scene
from proctor.robots.spec import standard_robot
from proctor.scenes.scene import Scene
from proctor.scenes.scene_config import Part, SceneConfig, SceneObject, save_scene
from proctor.worlds.mujoco.wheeled import camera
from proctor.worlds.mujoco.wheeled.camera import RgbdCamera, render_from_above
from proctor.worlds.mujoco.wheeled.world import World

PAPER, WALL = ImageColor.getrgb(figure.PAPER), ImageColor.getrgb(plan_module.WALL)
HOUSE = min((suite_path("houses-v1") / "scenes").glob("*.json"))


def color_at(plan, x, y):
    column, row = plan.pixel(x, y)
    return plan.image.getpixel((int(column), int(row)))


def scene_file(folder, *objects):
    path = folder / "scene.json"
    save_scene(SceneConfig(scene_name="s", objects=list(objects)), path)
    return path


def box(name, at, size, **more):
    part = Part(shape="box", size=size, **{key: more.pop(key) for key in ("color", "rotate") if key in more})
    return SceneObject(name=name, translate=at, parts=[part], **more)


def test_walls_are_dark_and_every_reference_path_goes_around_them():
    plan = draw_plan(Scene.load(HOUSE), names=False)
    shapes = outlines_of_scene(Scene.load(HOUSE).config)
    walls = [shape for shape in shapes if shape.kind == "wall" and shape.top_m > 1]  # no skirting boards
    assert len(walls) > 20
    for shape in walls:
        assert color_at(plan, *shape.corners.mean(axis=0)) == WALL
    episodes = [e for e in load_dataset(suite_path("houses-v1")).episodes if e.scene_id == HOUSE.stem]
    assert episodes
    for point in (point for episode in episodes for point in episode.reference_path):
        assert sum(color_at(plan, point.x, point.y)) > 300  # doors are open


def test_the_image_covers_the_scene_and_pixels_are_where_they_should_be():
    plan = draw_plan(Scene.load(HOUSE), width_px=400)
    corners = np.concatenate([shape.corners for shape in outlines_of_scene(Scene.load(HOUSE).config)])
    assert plan.image.width == 400
    assert (corners.min(axis=0) > plan.low_xy).all()
    assert (corners.max(axis=0) < plan.high_xy).all()
    assert plan.pixel(*plan.low_xy) == (0, plan.image.height)
    right, up = plan.pixel(plan.low_xy[0] + 1, plan.low_xy[1] + 2)
    assert right == pytest.approx(1 / plan.metres_per_pixel)
    assert plan.image.height - up == pytest.approx(2 / plan.metres_per_pixel)


def test_what_hangs_above_is_left_out(tmp_path):
    path = scene_file(
        tmp_path,
        box("ceiling", (0, 0, 2.6), (4, 4, 0.05), color=(1, 0, 0)),
        box("picture", (1, 1, 1.6), (0.5, 0.5, 0.5), color=(1, 0, 0)),
        box("glass", (-1, 1, 0.5), (0.5, 0.5, 0.5), color=(1, 0, 0, 0.3)),
        box("cellar", (-1, -1, -1), (0.5, 0.5, 0.5), color=(1, 0, 0)),
        box("box", (1, -1, 0.5), (0.5, 0.5, 0.5), color=(0, 0, 1)),
    )
    outlines = outlines_of_scene(Scene.load(path).config)
    assert [shape.color for shape in outlines] == [(0, 0, 1)]
    red, green, blue = color_at(draw_plan(Scene.load(path)), 1, -1)
    assert blue > red == green


def test_another_storey_shows_what_stands_there(tmp_path):
    path = scene_file(
        tmp_path,
        box("below", (0, 0, 0.5), (1, 1, 1), color=(1, 0, 0)),
        box("above", (0, 0, 3.5), (1, 1, 1), color=(0, 0, 1)),
    )
    assert color_at(draw_plan(Scene.load(path)), 0, 0)[0] > 200
    assert color_at(draw_plan(Scene.load(path), floor_z=3.0), 0, 0)[2] > 200


def test_outlines_are_scaled_and_turned(tmp_path):
    path = scene_file(tmp_path, box("box", (1, 2, 0.5), (1, 0.2, 1), scale=2.0, rotate=(0, 0, 90)))
    (shape,) = outlines_of_scene(Scene.load(path).config)
    assert shape.corners.min(axis=0) == pytest.approx([0.8, 1.0])
    assert shape.corners.max(axis=0) == pytest.approx([1.2, 3.0])


@pytest.mark.parametrize("rotate", [(0, 0, 0), (0, 0, 30), (0, 0, -110), (90, 0, 0), (20, 30, 40)])
def test_the_outline_of_a_box_is_its_hull_corner_by_corner(tmp_path, rotate):
    path = scene_file(tmp_path, box("box", (2, 1, 0.4), (1.0, 0.6, 0.2), rotate=rotate))
    (shape,) = outlines_of_scene(Scene.load(path).config)
    hull = shape.corners[ConvexHull(shape.corners).vertices]
    assert len(hull) == len(shape.corners)  # no corner lies inside
    turns = [np.roll(shape.corners, turn, axis=0) for turn in range(len(hull))]
    assert any(np.array_equal(turn, hull) for turn in turns)  # and they go around it


def test_a_tilted_part_is_as_large_as_it_looks_from_above(tmp_path):
    path = scene_file(tmp_path, box("plank", (0, 0, 0.6), (1, 0.1, 0.1), rotate=(0, 60, 0)))
    (shape,) = outlines_of_scene(Scene.load(path).config)
    expected = math.cos(math.pi / 3) + 0.1 * math.sin(math.pi / 3)
    assert np.ptp(shape.corners[:, 0]) == pytest.approx(expected)


@pytest.mark.parametrize(("shape", "size"), [("cylinder", (0.4, 0.4, 1)), ("sphere", (0.4, 0.4, 0.4))])
def test_round_things_are_round(tmp_path, shape, size):
    item = SceneObject(name="a", rotate=(0, 0, 20), parts=[Part(shape=shape, size=size)])
    (found,) = outlines_of_scene(Scene.load(scene_file(tmp_path, item)).config)
    assert np.linalg.norm(found.corners, axis=1).max() == pytest.approx(0.2, rel=0.02)
    assert len(found.corners) >= 16


def test_a_high_thin_box_without_a_category_is_a_wall(tmp_path):
    path = scene_file(
        tmp_path,
        box("a", (0, 0, 1.3), (4, 0.1, 2.6)),
        box("pillar", (0, 3, 1.3), (0.4, 0.4, 2.6)),
        box("shelf", (0, 2, 1.0), (2, 0.1, 2.0), category="shelf"),
    )
    assert [shape.kind for shape in outlines_of_scene(Scene.load(path).config)] == ["thing", "thing", "wall"]


def test_an_empty_scene_is_squared_paper(tmp_path):
    plan = draw_plan(Scene.load(scene_file(tmp_path)), width_px=300)
    assert plan.image.size == (300, 300)
    assert color_at(plan, 0.5, 0.5) == PAPER
    assert color_at(plan, 2.001, 0.5) != PAPER


def test_a_corridor_does_not_become_a_strip(tmp_path):
    plan = draw_plan(
        Scene.load(scene_file(tmp_path, box("wall", (0, 50, 1.3), (0.1, 100, 2.6)))), width_px=300
    )
    assert plan.image.height <= 901
    assert color_at(plan, 0, 50)[0] < 120


def test_a_plan_is_drawn_once_for_each_version_of_the_file(tmp_path):
    path = scene_file(tmp_path, box("a", (0, 0, 0.5), (1, 1, 1), color=(1, 0, 0)))
    first = draw_plan(Scene.load(path))
    assert draw_plan(Scene.load(path)).image is first.image
    path.unlink()
    scene_file(tmp_path, box("a", (0, 0, 0.5), (1, 1, 1), color=(0, 0, 1)))
    assert color_at(draw_plan(Scene.load(path)), 0, 0)[2] > 200


def test_room_names_are_written_and_move_out_of_the_way_of_furniture(tmp_path):
    floor = box("floor", (0, 0, 0), (8, 6, 0.002), category="floor", room="study")
    plain = draw_plan(Scene.load(scene_file(tmp_path, floor)), width_px=400)
    assert np.asarray(plain.image)[130:170, 170:230].min() < 150  # dark letters in the middle
    table = box("table", (0, 0, 0.4), (3, 2, 0.8), color=(1, 1, 1))
    path = tmp_path / "other" / "scene.json"
    path.parent.mkdir()
    moved = draw_plan(Scene.load(scene_file(path.parent, floor, table)), width_px=400)
    assert np.asarray(moved.image)[130:170, 170:230].min() > 200


@pytest.fixture
def mesh_scene(tmp_path):
    scene = trimesh.Scene()
    for size, at, color in (
        ((8, 6, 0.02), (4, 3, 0.0), (90, 90, 90)),
        ((8, 6, 0.02), (4, 3, 2.6), (255, 255, 255)),
        ((1, 2, 0.8), (6, 1.5, 0.4), (220, 20, 20)),
        ((0.1, 6, 2.6), (4, 3, 1.3), (230, 230, 230)),
    ):
        mesh = trimesh.creation.box(size)
        mesh.apply_translation(at)
        mesh.visual.face_colors = [*color, 255]
        scene.add_geometry(mesh)
    scene.apply_transform([[1, 0, 0, 0], [0, 0, 1, 0], [0, -1, 0, 0], [0, 0, 0, 1]])  # glTF is Y up
    scene.export(tmp_path / "house.glb")
    path = tmp_path / "scene.json"
    path.write_text(
        json.dumps({"scene_name": "m", "objects": [{"name": "house", "asset_path": "house.glb"}]})
    )
    return path


def test_a_mesh_is_photographed_without_its_ceiling(mesh_scene):
    plan = draw_plan(Scene.load(mesh_scene), width_px=450)
    red, green, blue = color_at(plan, 6, 1.5)
    assert red > 120 > max(green, blue)
    assert plan.low_xy == pytest.approx((-0.4, -0.4), abs=0.001)
    red, green, blue = color_at(plan, 2, 4.5)
    assert 60 < min(red, green, blue) <= max(red, green, blue) < 200  # the floor, not the white ceiling
    assert color_at(plan, -0.2, 3.3) == PAPER
    assert color_at(plan, 4.0, 3.0) == WALL  # although from above it has no sides, and is hollow


def test_a_white_object_has_an_outline(tmp_path):
    box = trimesh.creation.box((1.0, 1.0, 1.0))
    box.visual.face_colors = [255, 255, 255, 255]
    box.export(tmp_path / "sill.glb")
    item = SceneObject(name="sill", asset_path="sill.glb", translate=(0, 0, 0.5))
    plan = draw_plan(Scene.load(scene_file(tmp_path, item)), width_px=400)
    row = np.asarray(plan.image.convert("L"))[int(plan.pixel(0, 0.25)[1])].astype(int)
    left, right = (round(plan.pixel(side, 0)[0]) for side in (-0.5, 0.5))
    for side in (left, right):
        assert row[side - 3 : side + 4].min() < row[(left + right) // 2] - 30


@pytest.mark.parametrize("height_m", [0.01, 0.5])
def test_a_white_part_has_an_outline(tmp_path, height_m):
    white = box("line", (0, 0, 0), (2, 1, height_m), color=(1, 1, 1))
    plan = draw_plan(Scene.load(scene_file(tmp_path, white)), width_px=400)
    row = np.asarray(plan.image.convert("L"))[int(plan.pixel(0, 0.25)[1])].astype(int)
    for side in (round(plan.pixel(x, 0)[0]) for x in (-1.0, 1.0)):
        assert row[side - 3 : side + 4].min() < 225


def test_without_rendering_a_mesh_is_drawn_as_what_is_in_the_way(mesh_scene, monkeypatch):
    def no_context():
        raise MissingDependency("OpenGL", "none")

    monkeypatch.setattr(camera, "drawing", no_context)
    plan = draw_plan(Scene.load(mesh_scene), width_px=451)
    assert sum(color_at(plan, 6, 1.5)) < 400
    assert color_at(plan, 2.3, 4.3) == PAPER


@pytest.mark.parametrize("floor_z", [0.0, 2.8])
def test_each_floor_of_a_house_that_is_a_mesh_has_a_plan(tmp_path, floor_z):
    house = write(two_storeys(), tmp_path / "house.glb", turn=Y_UP)
    plan = draw_plan(Scene.load(house), width_px=400, floor_z=floor_z)
    red, green, blue = color_at(plan, 2.0, 2.0)
    assert red > 100 > max(green, blue)  # the floor, and no ceiling
    assert color_at(plan, 4.0, 0.7) == WALL
    assert color_at(plan, 4.0, 2.0) != WALL  # the door


def test_rendering_from_above_leaves_the_camera_as_it_was(mesh_scene):
    world = World(Scene.load(mesh_scene), standard_robot())
    world.reset(Pose2(2.0, 3.0, 0.0))
    view = render_from_above(world, (0, 0), (8, 6), size_px=(800, 600), below_m=2.0)
    assert view.rgb.shape == (600, 800, 3)
    assert view.height_m[450, 600] == pytest.approx(0.8, abs=1e-3)  # the box, 1.5 m from the lower edge
    assert view.height_m[300, 100] == pytest.approx(0.01, abs=1e-3)
    camera = RgbdCamera(world)
    assert camera.render()[0].shape == (480, 640, 3)
    camera.close()


@pytest.mark.parametrize("width_px", [0, -5, 100_000])
def test_a_width_that_cannot_be_drawn_is_refused(width_px):
    with pytest.raises(UserError, match="width"):
        draw_plan(Scene.load(HOUSE), width_px=width_px)


def test_a_missing_scene_is_named(tmp_path):
    with pytest.raises(InvalidFile, match="nowhere"):
        draw_plan(Scene.load(tmp_path / "nowhere.json"))


@pytest.mark.parametrize(
    ("at_least", "expected"), [(0.3, 0.5), (1.0, 1.0), (1.1, 2.0), (70, 100), (600, 1000)]
)
def test_lengths_of_scales_are_round(at_least, expected):
    assert round_length_m(at_least) == pytest.approx(expected)


def test_paper_of_a_point_and_of_the_whole_world():
    assert grid_paper((1, 1), (1, 1), width_px=100).image.size == (100, 100)
    assert grid_paper((-1e4, -1e4), (1e4, 0), width_px=100).image.size == (100, 50)
    assert isinstance(grid_paper((0, 0), (1, 1)).image, Image.Image)
