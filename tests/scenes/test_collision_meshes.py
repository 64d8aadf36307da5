"""Objects with two meshes: one is seen, the other is bumped into, scanned and mapped."""

import math

import msgspec
import pytest
import trimesh

from proctor.core.errors import InvalidFile
from proctor.core.types import Pose2
from proctor.exams.driving import DrivingExam
from proctor.robots.spec import Camera, standard_robot
from proctor.scenes.scene import Scene
from proctor.scenes.scene_config import Part, SceneConfig, SceneObject, save_scene
from proctor.worlds.mujoco.wheeled.camera import RgbdCamera
from proctor.worlds.mujoco.wheeled.robot import LaserScanner
from proctor.worlds.mujoco.wheeled.world import World

ROBOT = standard_robot(camera=Camera(width=64, height=48))
SEEN_X, SOLID_X = 2.0, -2.0


def write_post(file, x, *, floor=False):
    post = trimesh.creation.box((0.2, 0.6, 2.0)).apply_translation((x, 0.0, 1.0))
    if floor:
        ground = trimesh.creation.box((8.0, 8.0, 0.1)).apply_translation((0.0, 0.0, -0.05))
        post = trimesh.util.concatenate([post, ground])
    post.export(file)


@pytest.fixture(params=["hull", "surface"])
def scene_path(request, tmp_path):
    """A post whose visual mesh stands ahead of the robot, and whose collision mesh behind it."""
    write_post(tmp_path / "seen.ply", SEEN_X)
    write_post(tmp_path / "solid.ply", SOLID_X, floor=request.param == "surface")
    post = SceneObject(
        name="post", asset_path="seen.ply", collision_asset_path="solid.ply", collision=request.param
    )
    save_scene(SceneConfig(scene_name="post", objects=[post]), tmp_path / "scene.json")
    return tmp_path / "scene.json"


def test_one_mesh_is_seen_and_the_other_is_bumped_into_and_scanned(scene_path):
    world = World(Scene.load(scene_path), ROBOT)
    camera, scanner = RgbdCamera(world), LaserScanner(world)
    world.reset(Pose2(0.0, 0.0, 0.0))
    assert int(camera.render()[1][24, 32]) == pytest.approx(1000 * (SEEN_X - 0.1), abs=2)
    ranges = scanner.scan().ranges
    world.reset(Pose2(0.0, 0.0, math.pi))
    assert int(camera.render()[1][24, 32]) == 0
    camera.close()
    assert min(ranges) == pytest.approx(-SOLID_X - 0.1, abs=0.01)
    world.reset(Pose2(SOLID_X + 0.26, 0.0, 0.0))
    assert world.touched() == "post"
    world.reset(Pose2(SEEN_X, 0.0, 0.0))
    assert world.touched() is None


def test_the_map_shows_the_mesh_that_collides(scene_path):
    grid = Scene.load(scene_path).map()
    assert grid.clearance_at(SOLID_X, 0.0) <= 0
    assert grid.clearance_at(SEEN_X, 0.0) > 0.2


def test_a_change_of_the_collision_mesh_is_noticed(scene_path):
    before = Scene.load(scene_path)
    digest, is_free = before.digest, before.map().clearance_at(1.0, 0.0) > 0.2
    write_post(scene_path.parent / "solid.ply", 1.0, floor=True)
    after = Scene.load(scene_path)
    assert after is not before
    assert after.digest != digest
    assert is_free
    assert after.map().clearance_at(1.0, 0.0) <= 0


def test_a_scene_names_both_meshes_and_misses_each(scene_path):
    episode = msgspec.defstruct("Made", [("scene_config_path", str)])(str(scene_path))
    names = [file.name for file in DrivingExam.scene_files([episode])]
    assert names == ["scene.json", "seen.ply", "solid.ply"]
    (scene_path.parent / "solid.ply").unlink()
    with pytest.raises(InvalidFile, match=r"objects\[0\]\.collision_asset_path: 'solid.ply' does not exist"):
        Scene.load(scene_path)


def test_what_only_collides_is_not_seen(tmp_path):
    write_post(tmp_path / "solid.ply", SEEN_X)
    save_scene(
        SceneConfig(scene_name="x", objects=[SceneObject(name="post", collision_asset_path="solid.ply")]),
        tmp_path / "scene.json",
    )
    world = World(Scene.load(tmp_path / "scene.json"), ROBOT)
    world.reset(Pose2(SEEN_X, 0.0, 0.0))
    assert world.touched() == "post"
    world.reset(Pose2(0.0, 0.0, 0.0))
    camera = RgbdCamera(world)
    assert int(camera.render()[1][24, 32]) == 0
    camera.close()


def test_a_file_that_is_named_in_two_ways_collides(tmp_path):
    write_post(tmp_path / "post.ply", SEEN_X)
    post = SceneObject(name="post", asset_path="post.ply", collision_asset_path="./post.ply")
    world = World(Scene(SceneConfig(scene_name="x", objects=[post]), tmp_path / "scene.json"), ROBOT)
    world.reset(Pose2(SEEN_X, 0.0, 0.0))
    assert world.touched() == "post"


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"collision_asset_path": "../x.stl"}, "collision_asset_path: '../x.stl' must stay inside"),
        ({"collision_asset_path": "x.txt"}, "collision_asset_path: 'x.txt' is no mesh file"),
        (
            {"collision_asset_path": "x.stl", "parts": [Part(shape="box", size=(1, 1, 1))]},
            "collision_asset_path: an object collides as its parts or as this mesh, not as both",
        ),
    ],
)
def test_what_cannot_be_is_refused(fields, problem):
    with pytest.raises(ValueError, match=problem):
        SceneObject(name="x", **fields)
