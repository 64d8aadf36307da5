"""Objects that have a mesh and parts: the mesh is seen, the parts are in the way."""

import numpy as np
import pytest
import trimesh
from PIL import Image

from proctor.core.types import Pose2
from proctor.instructions.surroundings import Surroundings
from proctor.plots.plan import draw_plan
from proctor.robots.spec import Camera, standard_robot
from proctor.scenes.meshes import MeshFile
from proctor.scenes.scene import Scene
from proctor.scenes.scene_config import Part, SceneConfig, SceneObject, save_scene
from proctor.worlds.mujoco.wheeled.camera import RgbdCamera
from proctor.worlds.mujoco.wheeled.robot import LaserScanner
from proctor.worlds.mujoco.wheeled.world import World

ROBOT = standard_robot(camera=Camera(width=64, height=48))
MESH_X, PART_X = 2.0, -2.0


@pytest.fixture
def scene_path(tmp_path):
    """A post whose mesh stands ahead of the robot, and whose part behind it."""
    mesh = trimesh.creation.box((0.2, 0.6, 2.0))
    mesh.apply_translation((MESH_X, 0.0, 1.0))
    mesh.visual.face_colors = (255, 0, 0, 255)
    mesh.export(tmp_path / "post.ply")
    part = Part(shape="box", size=(0.2, 0.6, 2.0), translate=(PART_X, 0.0, 1.0), color=(0.0, 1.0, 0.0))
    trim = Part(shape="box", size=(0.2, 0.6, 2.0), translate=(0.0, PART_X, 1.0), collision=False)
    post = SceneObject(name="post", asset_path="post.ply", parts=[part, trim])
    save_scene(SceneConfig(scene_name="post", objects=[post]), tmp_path / "scene.json")
    return tmp_path / "scene.json"


def see(world, yaw):
    camera = RgbdCamera(world)
    world.reset(Pose2(0.0, 0.0, yaw))
    rgb, depth = camera.render()
    camera.close()
    return rgb[24, 32].astype(int), int(depth[24, 32])


def test_the_mesh_is_seen_and_the_parts_are_not(scene_path):
    world = World(Scene.load(scene_path), ROBOT)
    color, depth_mm = see(world, 0.0)
    assert color[0] > 2 * color[1]
    assert depth_mm == pytest.approx(1000 * (MESH_X - 0.1), abs=2)
    assert see(world, np.pi)[1] == 0
    assert see(world, -np.pi / 2)[1] == 0


def test_the_parts_are_bumped_into_and_scanned_and_the_mesh_is_not(scene_path):
    world = World(Scene.load(scene_path), ROBOT)
    world.reset(Pose2(PART_X + 0.26, 0.0, 0.0))
    assert world.touched() == "post"
    world.reset(Pose2(MESH_X, 0.0, 0.0))
    assert world.touched() is None
    world.reset(Pose2(0.0, 0.0, 0.0))
    ranges = LaserScanner(world).scan().ranges
    assert ranges[0] == pytest.approx(-PART_X - 0.1)  # backwards
    assert np.isinf(ranges[90:271]).all()


def test_maps_and_plans_and_instructions_go_by_the_parts(scene_path):
    grid = Scene.load(scene_path).map()
    assert grid.clearance_at(PART_X, 0.0) <= 0
    assert grid.clearance_at(MESH_X, 0.0) > 0
    assert not Surroundings.of(Scene.load(scene_path).config).has_meshes
    low_x, high_x = draw_plan(Scene.load(scene_path)).low_xy[0], draw_plan(Scene.load(scene_path)).high_xy[0]
    assert low_x < PART_X < high_x < MESH_X


def test_what_is_only_seen_has_no_parts_to_bump_into(scene_path):
    scene = Scene.load(scene_path).config
    (post,) = scene.objects
    ghost = SceneObject(name="post", asset_path=post.asset_path, parts=post.parts, rigid_body_type="none")
    world = World(Scene(SceneConfig(scene_name="post", objects=[ghost]), scene_path), ROBOT)
    world.reset(Pose2(PART_X, 0.0, 0.0))
    assert world.touched() is None
    assert see(world, 0.0)[1] > 0


def test_a_loose_thing_carries_its_mesh_along_and_weighs_what_its_parts_do(scene_path):
    ball = SceneObject(
        name="ball",
        asset_path="post.ply",
        rigid_body_type="dynamic",
        translate=(0.0, 0.0, 1.0),
        parts=[Part(shape="sphere", size=(0.2, 0.2, 0.2))],
    )
    world = World(Scene(SceneConfig(scene_name="ball", objects=[ball]), scene_path), ROBOT)
    assert world.model.body("ball").mass[0] == pytest.approx(300 * np.pi / 6 * 0.2**3, rel=1e-3)
    drawn = [index for index in range(world.model.ngeom) if world.model.geom_group[index] == 0]
    assert any(world.model.geom_bodyid[index] == world.model.body("ball").id for index in drawn)


def test_gltf_is_shown_with_its_own_normals_and_colours_in_linear_light(tmp_path):
    sheet = trimesh.creation.box((1.0, 1.0, 1.0))
    material = trimesh.visual.material.PBRMaterial(baseColorFactor=[55, 55, 255, 255])  # linear
    sheet.visual = trimesh.visual.TextureVisuals(material=material)
    sheet.vertex_normals = np.tile([0.0, 1.0, 0.0], (len(sheet.vertices), 1))  # up, in glTF
    sheet.export(tmp_path / "sheet.glb", include_normals=True)
    (surface,) = MeshFile(tmp_path / "sheet.glb").asset.drawn
    assert surface.normals == pytest.approx(np.tile([0.0, 0.0, 1.0], (len(surface.normals), 1)), abs=1e-6)
    assert surface.rgba == pytest.approx((0.502, 0.502, 1.0, 1.0), abs=0.002)


def test_equal_images_are_kept_once(tmp_path):
    for name in ("a", "b"):
        sheet = trimesh.creation.box((1.0, 1.0, 1.0))
        picture = Image.fromarray(np.full((4, 4, 3), 90, np.uint8))
        material = trimesh.visual.material.PBRMaterial(baseColorTexture=picture)
        sheet.visual = trimesh.visual.TextureVisuals(uv=np.zeros((8, 2)), material=material)
        sheet.export(tmp_path / f"{name}.glb")
    (first,), (second,) = (MeshFile(tmp_path / f"{name}.glb").asset.drawn for name in ("a", "b"))
    assert first.image is second.image
