"""Scenes as files of an O3DE project: they look, collide and score as the originals do."""

import json
import math
from pathlib import Path

import msgspec
import numpy as np
import pytest
import trimesh
from PIL import Image
from running import finished

from proctor import cli
from proctor.core.registry import suite_path
from proctor.core.types import Pose2
from proctor.exams.datasets import load_dataset
from proctor.o3de_export.gltf import TURN_BACK
from proctor.o3de_export.project import export_scene, export_scenes, export_suite
from proctor.robots.spec import Camera, standard_robot
from proctor.scenes.frames import frame_of, frame_of_part
from proctor.scenes.mesh_files import files_of_mesh, may_name
from proctor.scenes.scene import Scene
from proctor.scenes.scene_config import Part, SceneConfig, SceneObject, asset_file, save_scene
from proctor.worlds.mujoco.wheeled.camera import RgbdCamera
from proctor.worlds.mujoco.wheeled.robot import LaserScanner
from proctor.worlds.mujoco.wheeled.world import World

HOUSE = "house_1064959"  # the smallest
ROBOT = standard_robot(camera=Camera(width=320, height=240))
FLOAT, COUNTS = 5126, {"SCALAR": 1, "VEC2": 2, "VEC3": 3}


@pytest.fixture(scope="module")
def exam():
    dataset = load_dataset(suite_path("houses-v1"))
    episodes = [episode for episode in dataset.episodes if episode.scene_id == HOUSE]
    return msgspec.structs.replace(dataset, episodes=episodes)


@pytest.fixture(scope="module")
def project(exam, tmp_path_factory):
    out = tmp_path_factory.mktemp("project")
    export_suite(exam, out)
    return out


@pytest.fixture(scope="module")
def exported(project):
    return project / f"Assets/Proctor/{HOUSE}/scene.json"


def write_scene(folder, *objects, name="scene"):
    save_scene(SceneConfig(scene_name=name, objects=list(objects)), folder / "original.json")
    return folder / "original.json"


def mesh_of(scene_file, name):
    (item,) = [item for item in Scene.load(scene_file).objects if item.name == name]
    return scene_file.parent / item.asset_path


def box(name, size=(1.0, 1.0, 1.0), **options):
    return SceneObject(name=name, parts=[Part(shape="box", size=size)], **options)


def sofa():
    seat = Part(shape="box", size=(1.6, 0.8, 0.4), texture="fabric", color=(0.6, 0.2, 0.2))
    foot = Part(shape="cylinder", size=(0.1, 0.1, 0.2), translate=(0, 0, -0.3), texture="wood")
    return SceneObject(name="sofa", parts=[seat, foot], translate=(2, 0, 0.4), rotate=(0, 0, 20))


def positions(gltf):
    """Read all vertices of a glTF file as the engine does: without the root node."""
    document = json.loads(gltf.read_text())
    data = (gltf.parent / document["buffers"][0]["uri"]).read_bytes()
    found = []
    for primitive in document["meshes"][0]["primitives"]:
        accessor = document["accessors"][primitive["attributes"]["POSITION"]]
        offset = document["bufferViews"][accessor["bufferView"]]["byteOffset"]
        found.append(np.frombuffer(data, np.float32, 3 * accessor["count"], offset).reshape(-1, 3))
    return np.concatenate(found)


# The files


def check_gltf(gltf, project):
    document = json.loads(gltf.read_text())
    (buffer,) = document["buffers"]
    data = (gltf.parent / buffer["uri"]).read_bytes()
    assert len(data) == buffer["byteLength"]
    for uri in [buffer["uri"], *(image["uri"] for image in document.get("images", []))]:
        assert (gltf.parent / uri).resolve().is_relative_to(project.resolve())
        assert (gltf.parent / uri).is_file()
    arrays = []
    for accessor in document["accessors"]:
        view = document["bufferViews"][accessor["bufferView"]]
        kind = {FLOAT: np.float32, 5123: np.uint16, 5125: np.uint32}[accessor["componentType"]]
        shape = (accessor["count"], COUNTS[accessor["type"]])
        assert math.prod(shape) * np.dtype(kind).itemsize == view["byteLength"]
        assert view["byteOffset"] % 4 == 0
        assert view["byteOffset"] + view["byteLength"] <= len(data)
        arrays.append(np.frombuffer(data, kind, math.prod(shape), view["byteOffset"]).reshape(shape))
        if "min" in accessor:
            assert accessor["min"] == arrays[-1].min(axis=0).tolist()
            assert accessor["max"] == arrays[-1].max(axis=0).tolist()
    for primitive in document["meshes"][0]["primitives"]:
        corners = arrays[primitive["attributes"]["POSITION"]]
        assert "min" in document["accessors"][primitive["attributes"]["POSITION"]]
        assert arrays[primitive["indices"]].max() == len(corners) - 1
        lengths = np.linalg.norm(arrays[primitive["attributes"]["NORMAL"]], axis=1)
        assert lengths == pytest.approx(1.0, abs=1e-6)
        textured = "baseColorTexture" in document["materials"][primitive["material"]]["pbrMetallicRoughness"]
        assert textured == ("TEXCOORD_0" in primitive["attributes"])
    names = [material["name"] for material in document["materials"]]
    assert len(set(names)) == len(names)


def test_every_mesh_is_valid_gltf_whose_files_lie_in_the_project(project, exported):
    files = sorted(exported.parent.glob("*.gltf"))
    assert len(files) == len(Scene.load(exported).objects)
    for file in files:
        check_gltf(file, project)


def test_a_mesh_stands_upright_for_those_who_turn_gltf_and_for_the_engine_which_does_not(tmp_path):
    part = Part(shape="box", size=(0.2, 0.4, 0.6), translate=(0.5, 0.0, 1.0), rotate=(0, 0, 90))
    post = SceneObject(name="post", parts=[part], translate=(3, 4, 5), rotate=(10, 20, 30), scale=2.0)
    scene = export_scene(write_scene(tmp_path, post), tmp_path / "project")
    file = mesh_of(scene, "post")
    low, high = [0.3, -0.1, 0.7], [0.7, 0.1, 1.3]  # in the object's frame, Z up
    assert positions(file).min(axis=0) == pytest.approx(low, abs=1e-6)
    assert positions(file).max(axis=0) == pytest.approx(high, abs=1e-6)
    by_others = trimesh.load_scene(file).to_mesh().bounds  # Y up
    assert by_others == pytest.approx(np.array([[0.3, 0.7, -0.1], [0.7, 1.3, 0.1]]), abs=1e-6)


def test_an_engine_that_minds_the_root_node_gets_there_by_half_a_turn(tmp_path):
    scene = export_scene(write_scene(tmp_path, box("box")), tmp_path / "project")
    root = json.loads(mesh_of(scene, "box").read_text())["nodes"][0]
    upright = np.array([[-1, 0, 0], [0, 0, 1], [0, 1, 0]]) @ np.array(root["matrix"]).reshape(4, 4).T[:3, :3]
    x, y, z, w = TURN_BACK["rotation"]
    half_turn = trimesh.transformations.quaternion_matrix([w, x, y, z])[:3, :3]
    assert half_turn @ upright == pytest.approx(np.eye(3))


def test_writing_again_changes_nothing(tmp_path):
    path, project = write_scene(tmp_path, box("box"), sofa()), tmp_path / "project"
    assert export_scenes([path], project).changed > 5
    before = {file: (file.read_bytes(), file.stat().st_mtime_ns) for file in project.rglob("*.*")}
    assert export_scenes([path], project).changed == 0
    assert {file: (file.read_bytes(), file.stat().st_mtime_ns) for file in project.rglob("*.*")} == before
    elsewhere = tmp_path / "elsewhere"
    export_scenes([path], elsewhere)
    assert {file.relative_to(project): content for file, (content, _) in before.items()} == {
        file.relative_to(elsewhere): file.read_bytes() for file in elsewhere.rglob("*.*")
    }


# The same world


def looks_of(scene_file, pose=(0.0, 0.0, 0.0)):
    """Return what is seen there, and the world."""
    world = World(Scene.load(scene_file), ROBOT)
    camera = RgbdCamera(world)
    world.reset(Pose2(*pose))
    rgb, depth = camera.render()
    camera.close()
    return rgb.astype(int), depth.astype(int), world


def test_the_exported_house_is_seen_scanned_and_mapped_as_the_original(exam, exported):
    original = Path(exam.episodes[0].scene_config_path)
    views = []
    for path in (original, exported):
        world = World(Scene.load(path), ROBOT)
        camera, scanner = RgbdCamera(world), LaserScanner(world)
        pictures = []
        for episode in exam.episodes[:3]:
            world.reset(Pose2(episode.start_position.x, episode.start_position.y, episode.start_yaw))
            pictures.append((*camera.render(), scanner.scan().ranges))
        camera.close()
        views.append(pictures)
    for (rgb, depth, ranges), (rgb_now, depth_now, ranges_now) in zip(*views, strict=True):
        off = np.abs(rgb.astype(int) - rgb_now).max(axis=2)
        assert off.mean() < 1.0
        assert (off > 8).mean() < 0.001
        assert (np.abs(depth.astype(int) - depth_now) > 2).mean() < 0.001
        assert np.array_equal(ranges, ranges_now)
    assert np.array_equal(Scene.load(original).map().occupied, Scene.load(exported).map().occupied)


def test_the_oracle_drives_the_same_way_through_the_exported_house(exam, project, tmp_path):
    shortest = min(exam.episodes, key=lambda episode: len(episode.reference_actions or range(999)))
    small = ["--env-option", "width=32", "--env-option", "height=24"]
    drive = ["run", "--policy", "oracle", "--episode", shortest.episode_id, *small]
    ways = []
    for name, *exam_of in (("a", "--suite", "houses-v1"), ("b", "--dataset", str(project / "episodes.json"))):
        assert cli.main([*drive, *exam_of, "--out", str(tmp_path / name)]) == 0
        (result,) = finished(tmp_path / name).values()
        assert result.success
        ways.append((result.trajectory, result.metrics))
    assert ways[0] == ways[1]


# Names


NASTY = ["..", "a/b", "A/B", "Sofa", "sofa", "con", "ünï 🪑", "x" * 300, " ", "", "a\\b:c*?", "a.b.gltf", "-"]


def test_objects_may_be_called_anything(tmp_path):
    objects = [box(name, translate=(index, 0, 0.5)) for index, name in enumerate(NASTY)]
    path = write_scene(tmp_path, *objects, name="../../evil scene")
    scene_file = export_scene(path, tmp_path / "project")
    scene = Scene.load(scene_file).config
    assert [item.name for item in scene.objects] == NASTY
    assert [item.parts for item in scene.objects] == [item.parts for item in objects]
    files = [asset_file(scene_file, item.asset_path) for item in scene.objects]
    assert len({str(file).lower() for file in files}) == len(NASTY)
    assert all(file.is_relative_to((tmp_path / "project/Assets/Proctor").resolve()) for file in files)
    assert World(Scene(scene, scene_file), ROBOT).model.ngeom > len(NASTY)


def test_two_scenes_of_one_name_do_not_become_one(tmp_path):
    paths = []
    for index in (1, 2):
        (tmp_path / str(index)).mkdir()
        paths.append(write_scene(tmp_path / str(index), box("box", size=(index, 1, 1)), name="room"))
    export_scenes(paths, tmp_path / "project")
    files = sorted((tmp_path / "project/Assets/Proctor").glob("room/scene*.json"))
    assert sorted(Scene.load(file).objects[0].parts[0].size.x for file in files) == [1.0, 2.0]


# Meshes


@pytest.fixture
def textured_glb(tmp_path):
    """Two posts with an image, the left of which is dark."""
    posts = [trimesh.creation.box((0.2, 1.0, 0.2)) for _ in range(2)]  # glTF is Y up
    for post, x in zip(posts, (-0.5, 0.5), strict=True):
        post.apply_translation((x, 0.5, 0.0))
    mesh = trimesh.util.concatenate(posts)
    pixels = np.zeros((8, 8, 3), np.uint8)
    pixels[:, 4:] = (250, 40, 30)
    material = trimesh.visual.material.PBRMaterial(baseColorTexture=Image.fromarray(pixels))
    uv = np.where(mesh.vertices[:, :1] < 0, [[0.2, 0.5]], [[0.8, 0.5]])
    mesh.visual = trimesh.visual.TextureVisuals(uv=uv, material=material)
    mesh.export(tmp_path / "gate.glb")
    return tmp_path / "gate.glb"


def test_a_mesh_gets_its_images_out_and_boxes_to_bump_into(tmp_path, textured_glb):
    gate = SceneObject(name="gate", asset_path=textured_glb.name, translate=(2, 0, 0), rotate=(0, 0, 90))
    path = write_scene(tmp_path, gate)
    export = export_scenes([path], tmp_path / "project")
    assert any("'gate' of scene collides as 2 boxes" in note for note in export.notes)
    scene_file = tmp_path / "project/Assets/Proctor/scene/scene.json"
    check_gltf(mesh_of(scene_file, "gate"), tmp_path / "project")
    assert len(list((tmp_path / "project/Assets/Proctor/textures").glob("*.png"))) == 1
    sides = sorted(part.translate.x for part in Scene.load(scene_file).objects[0].parts)
    assert sides == pytest.approx([-0.5, 0.5])
    looks = [looks_of(file, (1.0, 0.5, 0.0)) for file in (path, scene_file)]
    for *_, world in looks:
        world.reset(Pose2(1.8, 0.5, 0.0))
        assert world.touched() == "gate"
        world.reset(Pose2(2.0, 0.0, 0.0))
        assert world.touched() is None
    assert (looks[0][0][-40:, 150:170, 0] > 2 * looks[0][0][-40:, 150:170, 1]).all()  # it is in view, and red
    assert np.abs(looks[0][0] - looks[1][0]).max() <= 3
    assert np.array_equal(looks[0][1], looks[1][1])


def test_a_house_that_is_a_mesh_stays_one(tmp_path):
    floor = trimesh.creation.box((8, 6, 0.1))
    floor.apply_translation((0, 0, -0.05))
    wall = trimesh.creation.box((0.1, 6, 2.6))
    wall.apply_translation((2, 0, 1.3))
    room = trimesh.util.concatenate([floor, wall])
    room.visual.face_colors = (120, 60, 30, 255)
    room.export(tmp_path / "house.ply")
    export_scenes([tmp_path / "house.ply"], tmp_path / "project")
    scene_file = tmp_path / "project/Assets/Proctor/house/scene.json"
    (house,) = Scene.load(scene_file).objects
    assert (house.collision, house.parts) == ("surface", [])
    settings = json.loads((scene_file.parent / f"{house.asset_path}.assetinfo").read_text())["values"]
    assert [group["name"] for group in settings] == [Path(house.asset_path).stem] * 2
    nodes = json.loads((scene_file.parent / house.asset_path).read_text())["nodes"]
    assert settings[1]["NodeSelectionList"]["selectedNodes"][-1] == ".".join(node["name"] for node in nodes)
    assert looks_of(tmp_path / "house.ply")[0] == pytest.approx(looks_of(scene_file)[0], abs=3)
    original = Scene.load(tmp_path / "house.ply").map()
    assert np.array_equal(Scene.load(scene_file).map().occupied, original.occupied)
    assert original.clearance_at(2.0, 0.0) <= 0


def test_what_moves_and_what_is_stretched_keep_their_look_and_their_parts(tmp_path):
    parts = [
        Part(shape="box", size=(0.3, 0.3, 0.2), texture="wood"),
        Part(shape="cylinder", size=(0.1, 0.1, 0.4), color=(0.1, 0.2, 0.3, 0.5), translate=(0, 0, 0.3)),
    ]
    cart = SceneObject(name="cart", parts=parts, rigid_body_type="dynamic", mass=3.0, translate=(1, 2, 0.1))
    tall = SceneObject(name="tall", parts=parts, rigid_body_type="none", scale=(1.5, 1.5, 3.0))
    scene_file = export_scene(write_scene(tmp_path, cart, tall), tmp_path / "project")
    scene = Scene.load(scene_file).config
    for item, original in zip(scene.objects, (cart, tall), strict=True):
        assert msgspec.structs.replace(item, asset_path=None) == original
        frame = frame_of(item)
        seen = frame.points(positions(asset_file(scene_file, item.asset_path)).astype(float))
        axis = np.array([[0, 0, -0.5], [0, 0, 0.5]])
        ends = [frame_of_part(part, frame).points(axis) for part in item.parts]
        assert seen[:, 2].min() == pytest.approx(np.min(ends, axis=(0, 1))[2], abs=1e-5)
        assert seen[:, 2].max() == pytest.approx(np.max(ends, axis=(0, 1))[2], abs=1e-5)
    glass = json.loads(mesh_of(scene_file, "cart").read_text())["materials"]
    assert [material.get("alphaMode") for material in glass].count("BLEND") == 1
    world = World(Scene(scene, scene_file), ROBOT)
    assert world.model.body("cart").mass[0] == pytest.approx(3.0, rel=1e-3)


@pytest.mark.parametrize("uri", ["../../secret.png", "../data/secret.bin", "/etc/secret.png"])
def test_a_mesh_reads_nothing_but_images_from_one_folder_over(tmp_path, uri):
    folder = tmp_path / "scene"
    folder.mkdir()
    assert not may_name(folder, (folder / uri).resolve())
    assert may_name(folder, (folder / "../textures/wood.png").resolve())
    assert may_name(folder, folder / "deep/wood.bin")
    for name in ("../textures/wood.png", "../../secret.png"):
        (folder / name).resolve().parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(b"image")
    images = [{"uri": "../textures/wood.png"}, {"uri": "../../secret.png"}]
    (folder / "a.gltf").write_text(json.dumps({"images": images}))
    assert files_of_mesh(folder / "a.gltf") == [(tmp_path / "textures/wood.png").resolve()]


@pytest.mark.parametrize("collision", ["hull", "surface"])
def test_of_two_meshes_the_engine_shows_the_one_that_is_seen(tmp_path, collision):
    floor = trimesh.creation.box((6.0, 6.0, 0.1)).apply_translation((0.0, 0.0, -0.05))
    seen = trimesh.creation.icosphere(radius=0.4).apply_translation((0.0, 0.0, 1.0))
    solid = trimesh.creation.box((0.6, 0.8, 2.0)).apply_translation((0.0, 0.0, 1.0))
    seen.export(tmp_path / "seen.ply")
    house = trimesh.util.concatenate([solid, floor])
    (solid if collision == "hull" else house).export(tmp_path / "solid.ply")
    meshes = {"asset_path": "seen.ply", "collision_asset_path": "solid.ply"}
    scene = write_scene(tmp_path, SceneObject(name="lamp", **meshes, collision=collision))
    exported = export_scene(scene, tmp_path / "out")
    (lamp,) = Scene.load(exported).objects
    assert lamp.collision_asset_path is None
    assert np.ptp(positions(mesh_of(exported, "lamp")), axis=0) == pytest.approx([0.8] * 3, abs=0.02)
    sizes = [part.size.array() for part in lamp.parts]
    assert len(sizes) == (1 if collision == "hull" else 0)
    assert all(size == pytest.approx([0.6, 0.8, 2.0]) for size in sizes)
