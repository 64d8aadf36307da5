"""Meshes as scenes: where they are found."""

import pytest

from proctor.scenes.mesh_scene import find_scene


def touch(folder, *names):
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("")


@pytest.mark.parametrize(
    ("scene_id", "file"),
    [
        ("mp3d/abc/abc.glb", "mp3d/abc/abc.glb"),
        ("mp3d/abc/abc.glb", "abc/abc.glb"),
        ("mp3d/abc/abc.glb", "abc.glb"),
        ("mp3d/abc/abc.glb", "abc.json"),
        ("mp3d/abc/abc.glb", "abc/abc.dae"),
        ("abc", "abc.obj"),
        ("abc", "abc/abc.glb"),
        ("abc", "abc.json"),
        ("v1.2", "v1.2.json"),
        ("hm3d/val/00800-abc/abc.basis.glb", "hm3d/val/00800-abc/abc.basis.glb"),
        ("hm3d/val/00800-abc/abc.basis.glb", "val/00800-abc/abc.glb"),
        ("hm3d/val/00800-abc/abc.basis.glb", "abc.glb"),
        ("ABC.GLB", "ABC.GLB"),
        ("/data/mp3d/abc/abc.glb", "mp3d/abc/abc.glb"),
        ("mp3d\\abc\\abc.glb", "abc/abc.glb"),
    ],
)
def test_a_scene_is_found_by_the_customs_of_the_datasets(tmp_path, scene_id, file):
    touch(tmp_path, file, "other.glb", "abc.navmesh")
    assert find_scene(tmp_path, scene_id) == tmp_path.resolve() / file


def test_what_the_id_says_is_preferred_and_a_scene_file_to_that(tmp_path):
    touch(tmp_path, "abc.glb", "mp3d/abc/abc.dae", "mp3d/abc/abc.obj")
    assert find_scene(tmp_path, "mp3d/abc/abc.obj") == tmp_path.resolve() / "mp3d/abc/abc.obj"
    touch(tmp_path, "mp3d/abc/abc.json")
    assert find_scene(tmp_path, "mp3d/abc/abc.obj") == tmp_path.resolve() / "mp3d/abc/abc.json"


@pytest.mark.parametrize(
    "scene_id",
    ["", ".", "/", "../secret", "a/../../secret.glb", "secret\0", "a" * 300, "link", "folder", "text.txt"],
)
def test_nothing_outside_of_the_folder_and_nothing_but_scenes_is_found(tmp_path, scene_id):
    inner = tmp_path / "scenes"
    touch(tmp_path, "secret.glb", "scenes/text.txt", "scenes/folder.glb/x")
    (inner / "link.glb").symlink_to(tmp_path / "secret.glb")
    assert find_scene(inner, scene_id) is None
    assert find_scene(tmp_path / "missing", scene_id) is None
