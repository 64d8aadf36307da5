"""A scene is loaded once per process and content, and so are its meshes."""

import os
import sys
from collections import Counter

import pytest
import trimesh

from proctor.core.errors import InvalidFile, UserError
from proctor.core.types import Vector3
from proctor.plots.plan import draw_plan
from proctor.robots.spec import standard_robot
from proctor.scenes import scene as scene_module
from proctor.scenes.scene import Scene
from proctor.scenes.scene_config import Part, SceneConfig, SceneObject, save_scene
from proctor.worlds.mujoco.wheeled.world import World

opened: Counter[str] = Counter()


@pytest.fixture(scope="module", autouse=True)
def _watch_opening():
    """Count how often each file is opened; a hook cannot be removed, so it only counts."""
    sys.addaudithook(lambda event, given: opened.update([str(given[0])]) if event == "open" else None)


def box(name, x=0.0, **options):
    part = Part(shape="box", size=(0.4, 0.4, 0.4))
    return SceneObject(name=name, translate=Vector3(x, 0, 0.2), parts=[part], **options)


def write(folder, *objects):
    save_scene(SceneConfig(scene_name="s", objects=list(objects)), folder / "scene.json")
    return folder / "scene.json"


def write_again(file, content=None):
    """Write a file anew, which changes its date."""
    at_ns = file.stat().st_mtime_ns
    file.write_bytes(file.read_bytes() if content is None else content)
    os.utime(file, ns=(at_ns + 10**9, at_ns + 10**9))


def test_a_scene_is_the_same_object_as_long_as_its_content_is_the_same(tmp_path):
    path = write(tmp_path, box("a"))
    scene, grid = Scene.load(path), Scene.load(path).map()
    write_again(path)
    assert Scene.load(path) is scene
    assert Scene.load(path).map() is grid
    write(tmp_path, box("b", x=1.0))
    assert Scene.load(path) is not scene
    assert Scene.load(path).digest != scene.digest
    assert Scene.load(path).map() is not grid
    assert [item.name for item in scene.objects] == ["a"]


def test_another_mesh_makes_another_scene_and_the_same_one_does_not(tmp_path):
    trimesh.creation.box((1, 1, 1)).export(tmp_path / "a.stl")
    path = write(tmp_path, SceneObject(name="a", asset_path="a.stl"))
    scene = Scene.load(path)
    assert scene.map().occupied.sum() == 400
    write_again(tmp_path / "a.stl")
    assert Scene.load(path) is scene
    other = trimesh.creation.box((2, 1, 1)).export(file_type="stl")
    write_again(tmp_path / "a.stl", other)
    assert Scene.load(path) is not scene
    assert Scene.load(path).digest != scene.digest
    assert Scene.load(path).map().occupied.sum() == 800
    (tmp_path / "a.stl").unlink()
    with pytest.raises(InvalidFile, match=r"objects\[0\]\.asset_path: 'a\.stl' does not exist"):
        Scene.load(path)


def test_the_digest_is_of_the_content_and_not_of_the_place(tmp_path):
    digests = set()
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        trimesh.creation.box((1, 1, 1)).export(tmp_path / name / "a.stl")
        path = write(tmp_path / name, SceneObject(name="a", asset_path="a.stl"))
        digests.add(Scene.load(path).digest)
    assert len(digests) == 1
    write(tmp_path / "two", SceneObject(name="a", asset_path="a.stl", scale=Vector3(2, 2, 2)))
    assert Scene.load(path).digest not in digests


@pytest.mark.parametrize("suffix", ["glb", "obj", "stl"])
def test_no_mesh_file_is_read_twice_however_many_there_are(tmp_path, suffix):
    objects = []
    for number in range(200):
        trimesh.creation.box((0.2, 0.2, 0.2)).export(tmp_path / f"{number}.{suffix}")
        at = Vector3(number % 20 * 0.5, number // 20 * 0.5, 0.1)
        options = {"parts": [Part(shape="box", size=(0.2, 0.2, 0.2))]} if number % 3 == 0 else {}
        for copy in ("left", "right"):
            place = at if copy == "left" else Vector3(at.x, at.y + 10, at.z)
            objects.append(
                SceneObject(
                    name=f"{number} {copy}",
                    asset_path=f"{number}.{suffix}",
                    translate=place,
                    rigid_body_type="none" if number % 3 == 1 else "static",
                    **options,
                )
            )
    path = write(tmp_path, *objects)
    opened.clear()
    for _ in range(2):
        scene = Scene.load(path)
        scene.map()
        scene.map(height_band_m=(0.02, 1.0))
        World(scene, standard_robot())
        draw_plan(scene, width_px=100)
        assert scene.is_reachable(Vector3(-1, -1, 0), Vector3(-1, 3, 0))
        assert scene.digest
    reads = [opened[str(tmp_path / f"{number}.{suffix}")] for number in range(200)]
    assert reads == [1] * 200


def test_the_memory_of_meshes_is_limited_and_the_latest_scene_keeps_its_own(tmp_path, monkeypatch):
    scenes = []
    for name in ("one", "two", "three"):
        (tmp_path / name).mkdir()
        trimesh.creation.icosphere(subdivisions=3).export(tmp_path / name / "a.stl")
        path = write(tmp_path / name, SceneObject(name="a", asset_path="a.stl"))
        scenes.append(Scene.load(path))
        assert scenes[-1].mesh(scenes[-1].objects[0]).asset.pieces
    size = scenes[0].size_bytes()
    assert size > 10_000
    monkeypatch.setattr(scene_module, "MAX_BYTES", size + 1)
    assert Scene.load(scenes[1].file) is scenes[1]
    assert [scene.size_bytes() for scene in scenes] == [0, size, 0]
    monkeypatch.setattr(scene_module, "MAX_BYTES", 1)
    assert scenes[2].mesh(scenes[2].objects[0]).asset.pieces  # read again
    assert Scene.load(scenes[2].file) is scenes[2]
    assert [scene.size_bytes() for scene in scenes] == [0, 0, size]


def test_the_number_of_loaded_scenes_is_limited(tmp_path, monkeypatch):
    monkeypatch.setattr(scene_module, "MAX_SCENES", 2)
    paths = []
    for name in ("one", "two", "three"):
        (tmp_path / name).mkdir()
        paths.append(write(tmp_path / name, box(name)))
    first, second = Scene.load(paths[0]), Scene.load(paths[1])
    Scene.load(paths[2])
    assert Scene.load(paths[1]) is second
    assert Scene.load(paths[0]) is not first


def test_a_scene_that_is_no_file_can_have_no_meshes():
    scene = Scene(SceneConfig(scene_name="s", objects=[SceneObject(name="chair", asset_path="a.glb")]))
    with pytest.raises(UserError, match="object 'chair' has a mesh: its scene's file must be given, too"):
        scene.map()


def test_a_map_is_one_of_a_floor_and_a_height_band():
    scene = Scene(SceneConfig(scene_name="s", objects=[box("low")]))
    assert scene.map().occupied.any()
    assert not scene.map(height_band_m=(0.5, 1.0)).occupied.any()
    assert scene.map() is scene.map(0.0)
    assert scene.map() is not scene.map(height_band_m=(0.5, 1.0))
