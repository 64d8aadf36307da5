import json
import os

import msgspec
import pytest

from proctor.core.errors import InvalidFile
from proctor.core.types import Vector3
from proctor.scenes.scene import Scene
from proctor.scenes.scene_config import Part, SceneConfig, SceneObject, save_scene


def box(**changes):
    return {"name": "box", "parts": [{"shape": "box", "size": [1, 1, 1]}]} | changes


def write(folder, *objects, **top):
    path = folder / "scene.json"
    path.write_text(json.dumps({"scene_name": "room", "objects": list(objects), **top}))
    return path


def test_triples_may_be_lists_or_dicts_and_a_scale_one_number(tmp_path):
    scene = Scene.load(
        write(
            tmp_path,
            box(translate=[1, 2, 3], rotate={"x": 0, "y": 0, "z": 90}, scale=2, rigid_body_type="static"),
        )
    ).config
    (item,) = scene.objects
    assert item.translate == Vector3(1, 2, 3)
    assert item.rotate == Vector3(0, 0, 90)
    assert item.scale == Vector3(2, 2, 2)


def test_a_scene_reads_back_equal(tmp_path):
    part = Part(shape="cylinder", size=(0.5, 0.5, 1.0), color=(1, 0, 0), texture="wood", collision=False)
    scene = SceneConfig(scene_name="s", objects=[SceneObject(name="a", category="stool", parts=[part])])
    save_scene(scene, tmp_path / "scene.json")
    assert Scene.load(tmp_path / "scene.json").config == scene


@pytest.mark.parametrize(
    ("item", "complaint"),
    [
        (
            box(asset_path="../secret.glb", parts=[]),
            r"objects\[0\]\.asset_path: '../secret.glb' must stay inside",
        ),
        (box(asset_path="a/../../b.obj", parts=[]), "must stay inside"),
        (box(asset_path="/etc/x.glb", parts=[]), "must stay inside"),
        (box(asset_path="C:\\x.glb", parts=[]), "must stay inside"),
        (box(asset_path="", parts=[]), "asset_path: expected the name of a mesh file, found ''"),
        (box(asset_path="a\0.glb", parts=[]), "expected the name of a mesh file"),
        (box(asset_path="a" * 5000 + ".glb", parts=[]), "expected the name of a mesh file"),
        (box(asset_path="notes.txt", parts=[]), "is no mesh file"),
        (box(asset_path="gone.glb", parts=[]), r"objects\[0\]\.asset_path: 'gone.glb' does not exist"),
        (box(asset_path="a.glb"), r"objects\[0\]\.asset_path: 'a.glb' does not exist"),
        (box(asset_path="a.glb", collision="surface"), "its surface or as its parts, not as both"),
        (box(parts=[]), "expected asset_path, parts, or both"),
        (box(rigid_body_type="soft"), r"objects\[0\]\.rigid_body_type: Invalid enum value 'soft'"),
        (box(translate=[1, 2]), r"objects\[0\]\.translate"),
        (box(colour=[1, 1, 1]), "unknown key 'colour'; did you mean 'color'"),
        (box(parts=[{"shape": "box", "size": [1, 0, 1]}]), r"parts\[0\]\.size: expected at least 0.0005 m"),
        (box(parts=[{"shape": "sphere", "size": [1, 1, 2]}]), "a sphere is round"),
        (
            box(parts=[{"shape": "box", "size": [1, 1, 1], "color": [2, 0, 0]}]),
            "expected 3 or 4 channels from 0 to 1",
        ),
        (
            box(parts=[{"shape": "box", "size": [1, 1, 1], "texture": "wod"}]),
            r"parts\[0\]\.texture: Invalid enum",
        ),
        (box(scale=[1, 0, 1]), r"objects\[0\]\.scale: expected factors above 0"),
        (
            box(scale=[1, 2, 1], parts=[{"shape": "box", "size": [1, 1, 1], "rotate": [0, 0, 45]}]),
            r"objects\[0\]\.scale: .*would bend a box",
        ),
        (box(scale=[1, 2, 1], parts=[{"shape": "cylinder", "size": [1, 1, 2]}]), "would bend a cylinder"),
        (box(scale=-2), "scale: expected factors above 0"),
        (box(mass=0), "mass: expected kilograms above 0"),
    ],
)
def test_each_mistake_is_named_with_its_place(tmp_path, item, complaint):
    with pytest.raises(InvalidFile, match=complaint):
        Scene.load(write(tmp_path, item))


def test_two_objects_cannot_share_a_name(tmp_path):
    with pytest.raises(InvalidFile, match="two objects have the name 'box'"):
        Scene.load(write(tmp_path, box(), box()))


def test_a_link_out_of_the_folder_is_refused(tmp_path):
    (tmp_path / "outside.glb").write_bytes(b"x")
    inner = tmp_path / "inner"
    inner.mkdir()
    (inner / "link.glb").symlink_to(tmp_path / "outside.glb")
    with pytest.raises(InvalidFile, match="lies outside of"):
        Scene.load(write(inner, {"name": "a", "asset_path": "link.glb"}))


def test_defaults_are_not_written(tmp_path):
    scene = SceneConfig(scene_name="s")
    save_scene(scene, tmp_path / "scene.json")
    assert msgspec.json.decode((tmp_path / "scene.json").read_bytes()) == {"scene_name": "s"}


def test_a_file_that_is_replaced_within_the_clocks_tick_is_read_again(tmp_path):
    path, other = write(tmp_path, box(name="aa")), tmp_path / "other.json"
    assert Scene.load(path).objects[0].name == "aa"
    other.write_text(path.read_text().replace("aa", "bb"))
    at_ns = path.stat().st_mtime_ns
    os.utime(other, ns=(at_ns, at_ns))
    other.rename(path)
    assert Scene.load(path).objects[0].name == "bb"
