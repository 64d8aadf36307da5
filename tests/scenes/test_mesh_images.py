"""Images of meshes: where they are found, and what is said of those that are not."""

import json
import os

import numpy as np
import pytest
import trimesh
from mesh_houses import Y_UP, texture, two_rooms, write, write_dae
from PIL import Image

from proctor import cli
from proctor.core.types import Vector3
from proctor.exams.checked_dataset import examine
from proctor.exams.datasets import save_dataset, scenes_digest
from proctor.exams.vln.checks import scene_notes
from proctor.exams.vln.episode import Episode
from proctor.exams.vln.exam import VlnExam
from proctor.scenes.mesh_files import find_named_file, folder_of_scene, missing_files, missing_notes
from proctor.scenes.meshes import MeshFile
from proctor.scenes.scene import Scene
from proctor.scenes.thing_files import thing_of_file

FLOOR_Z = 0.7


def save_texture(file):
    file.parent.mkdir(parents=True, exist_ok=True)
    texture().save(file)
    return file


def crate():
    """Return a textured box as Gazebo's models are: one mesh with its image elsewhere."""
    solid = trimesh.creation.box((0.4, 0.4, 0.4))
    solid.visual = trimesh.visual.TextureVisuals(uv=np.full((len(solid.vertices), 2), 0.5))
    return solid


@pytest.fixture
def model(tmp_path):
    """A scene file, and a model in the usual layout of Gazebo and ROS below it."""
    write_dae(crate(), tmp_path / "crate/meshes/crate.dae", "../materials/textures/crate.png")
    save_texture(tmp_path / "crate/materials/textures/crate.png")
    item = {"name": "crate", "asset_path": "crate/meshes/crate.dae", "translate": [2, 0, 0.2]}
    (tmp_path / "scene.json").write_text(json.dumps({"scene_name": "s", "objects": [item]}))
    return tmp_path / "crate/meshes/crate.dae"


def test_images_in_the_usual_layout_of_gazebo_and_ros_are_drawn(tmp_path, model):
    for surfaces in (
        MeshFile(model, tmp_path).asset.surfaces,
        MeshFile(model, tmp_path).asset.drawn,
        MeshFile(model, tmp_path).surfaces,
    ):
        assert [surface.image is not None for surface in surfaces] == [True]
    assert Scene.load(tmp_path / "scene.json").missing_file_notes() == []


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("crate.png", "crate/meshes/crate.png"),
        ("crate.png", "crate/meshes/textures/crate.png"),
        ("crate.png", "crate/materials/textures/crate.png"),
        ("crate.png", "crate/textures/crate.png"),
        ("../materials/textures/crate.png", "crate/meshes/crate.png"),
        ("..\\materials\\textures\\crate.png", "crate/materials/textures/crate.png"),
        ("model://crate/materials/textures/crate.png", "crate/materials/textures/crate.png"),
        ("package://crate/images/crate.png", "crate/images/crate.png"),
        ("file:///home/anna/crate.png", "crate/meshes/crate.png"),
        ("../../shared/images/my%20crate.png", "shared/images/my crate.png"),
        ("-s 1 1 1 crate.png", "crate/textures/crate.png"),
    ],
)
def test_an_image_is_found_where_it_is_named_or_by_custom(tmp_path, name, place):
    (tmp_path / "crate/meshes").mkdir(parents=True)
    save_texture(tmp_path / place)
    found = find_named_file(name, tmp_path / "crate/meshes", tmp_path)
    assert found == (tmp_path / place).resolve()


@pytest.mark.parametrize(
    "name",
    [
        "../../../secret.png",
        "/etc/hostname",
        "model://outside/secret.png",
        "link.png",
        "",
        "a\0b",
        "x" * 5000,
    ],
)
def test_nothing_outside_of_the_scene_is_found(tmp_path, name):
    scene = tmp_path / "outside" / "scene"
    (scene / "crate/meshes").mkdir(parents=True)
    save_texture(tmp_path / "outside/secret.png")
    (scene / "crate/meshes/link.png").symlink_to(tmp_path / "outside/secret.png")
    assert find_named_file(name, scene / "crate/meshes", scene) is None


def test_a_house_in_a_folder_of_meshes_has_the_images_beside_that_folder(tmp_path):
    house = write_dae(two_rooms(), tmp_path / "villa/meshes/house.dae", "../materials/textures/house.png")
    assert folder_of_scene(house) == (tmp_path / "villa").resolve()
    (note,) = Scene.load(house).missing_file_notes()
    assert note.startswith("house.dae is drawn without '../materials/textures/house.png': no readable file")
    save_texture(tmp_path / "villa/materials/textures/house.png")
    assert Scene.load(house).missing_file_notes() == []
    os.utime(house, ns=(1, 1))  # a mesh is read once for each version of its own file
    root = folder_of_scene(house)
    assert all(surface.image is not None for surface in MeshFile(house, root).surfaces)
    episode = Episode(start_position=Vector3(1, 1, FLOOR_Z), scene_config_path=str(house))
    before = scenes_digest(VlnExam, [episode])
    Image.new("RGB", (4, 4)).save(tmp_path / "villa/materials/textures/house.png")
    assert scenes_digest(VlnExam, [episode]) != before


def test_a_long_name_is_shortened_in_the_note(tmp_path):
    (tmp_path / "a.obj").write_text(f"mtllib {'x' * 5000}.mtl\nv 0 0 0\n")
    (note,) = missing_notes(tmp_path / "a.obj", tmp_path)
    assert len(note) < 500 + len(str(tmp_path))


def test_missing_images_and_materials_of_all_formats_are_named(tmp_path, caplog):
    write(two_rooms(), tmp_path / "a.obj")
    assert missing_files(tmp_path / "a.obj") == []
    (tmp_path / "material_0.png").write_bytes(b"no image")
    assert missing_files(tmp_path / "a.obj") == ["material_0.png"]
    (tmp_path / "material.mtl").unlink()
    assert missing_files(tmp_path / "a.obj") == ["material.mtl"]
    write_dae(crate(), tmp_path / "b.dae", "gone.png")
    assert missing_files(tmp_path / "b.dae") == ["gone.png"]  # and not the surface that names the image's id
    crate().export(tmp_path / "c.ply")
    header, vertices = (tmp_path / "c.ply").read_bytes().split(b"element", 1)
    (tmp_path / "c.ply").write_bytes(header + b"comment TextureFile gone.jpg\nelement" + vertices)
    assert missing_files(tmp_path / "c.ply") == ["gone.jpg"]
    assert MeshFile(tmp_path / "c.ply").asset.surfaces
    assert caplog.text == ""  # the note says what is missing, not a traceback of the reader
    glb = write(two_rooms(), tmp_path / "d.glb", turn=Y_UP)
    assert missing_files(glb) == []
    content = {
        "images": [{"uri": "gone.png"}, {"uri": "data:image/png;base64,"}],
        "buffers": [{"uri": "b.bin"}],
    }
    (tmp_path / "e.gltf").write_text(json.dumps(content))
    assert missing_files(tmp_path / "e.gltf") == ["gone.png"]  # without a buffer it is not read at all


@pytest.fixture
def dataset(tmp_path, model):
    (tmp_path / "crate/materials/textures/crate.png").unlink()
    episode = Episode(
        episode_id="a",
        scene_id="s",
        scene_config_path="scene.json",
        goal_position=Vector3(1, 0, 0),
        instruction="Go.",
    )
    save_dataset([episode], tmp_path / "episodes.json")
    return tmp_path / "episodes.json"


def test_what_is_missing_is_told_by_check_dataset_run_and_navigate(tmp_path, dataset, capsys):
    told = "crate.dae is drawn without '../materials/textures/crate.png'"
    (item,) = [item for item in examine(dataset).findings.items if item.kind == "missing-file"]
    assert (item.severity, item.ids) == ("warning", ["a"])
    assert item.text.startswith(told)
    words = ["--policy", "forward", "--env", "mock", "--out", str(tmp_path / "run")]
    assert cli.main(["run", "--dataset", str(dataset), *words]) == 0
    assert told in capsys.readouterr().out.replace("\n", " ")
    words = ["--start", "2,0", "--goal", "0,0"]  # inside of the crate, so that nothing need be planned
    assert cli.main(["navigate", "--scene", str(tmp_path / "scene.json"), *words]) == 2
    assert told in capsys.readouterr().out.replace("\n", " ")


def test_a_scene_of_parts_has_nothing_to_miss(tmp_path):
    item = {"name": "box", "translate": [0, 3, 0], "parts": [{"shape": "box", "size": [1, 1, 1]}]}
    (tmp_path / "scene.json").write_text(json.dumps({"scene_name": "s", "objects": [item]}))
    assert Scene.load(tmp_path / "scene.json").objects
    assert Scene.load(tmp_path / "scene.json").missing_file_notes() == []
    episode = Episode(scene_config_path=str(tmp_path / "scene.json"), goal_position=Vector3(3, 0, 0))
    assert scene_notes([episode]) == []


def test_a_thing_to_grasp_is_drawn_with_its_image_or_says_what_it_lacks(tmp_path, model):
    scale = (0.2, 0.2, 0.2)
    thing = thing_of_file(model, tmp_path, scale, is_furniture=False)
    assert thing.notes == ()
    assert thing.surfaces[0].image is not None
    bare = write_dae(crate(), tmp_path / "bare.dae", "gone.png")
    (note,) = thing_of_file(bare, tmp_path, scale, is_furniture=False).notes
    assert note.startswith("bare.dae is drawn without 'gone.png'")
