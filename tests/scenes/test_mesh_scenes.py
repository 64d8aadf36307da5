"""Meshes as scenes: where they are found, how they are read, and driving in them."""

import json
import math
import os
import re

import numpy as np
import pytest
import trimesh
from mesh_houses import Y_UP, box, mesh_of, painted, two_rooms, two_storeys, walls, write, write_dae

from proctor.core.errors import InvalidFile, MissingDependency, UserError
from proctor.core.interfaces import TRUTH
from proctor.core.types import Action, EpisodeInfo, Pose2, Vector3
from proctor.exams.checked_dataset import examine
from proctor.exams.datasets import save_dataset, scenes_digest
from proctor.exams.path_distance import PathDistance, is_reachable
from proctor.exams.vln.checks import scene_notes
from proctor.exams.vln.episode import Episode
from proctor.exams.vln.exam import VlnExam
from proctor.exams.vln.oracle import OraclePolicy
from proctor.robots.spec import Camera, standard_robot
from proctor.scenes import mesh_reader
from proctor.scenes.houses import generate_house
from proctor.scenes.mesh_files import files_of_mesh, find_scene
from proctor.scenes.meshes import MeshFile
from proctor.scenes.scene import Scene
from proctor.scenes.scene_config import Part, SceneConfig, SceneObject, save_scene
from proctor.worlds.mujoco.wheeled.camera import RgbdCamera
from proctor.worlds.mujoco.wheeled.env import VLNEnv
from proctor.worlds.mujoco.wheeled.robot import LaserScanner
from proctor.worlds.mujoco.wheeled.world import World

FLOOR_Z = 0.7

# Where scenes are found


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


# How houses are read


def floor_heights(path):
    return Scene.load(path).house().floors_z


@pytest.mark.parametrize(
    ("name", "options", "notes"),
    [
        ("house.glb", {"turn": Y_UP}, ["Y up, as its format is"]),
        ("house.obj", {}, ["Z up, as its level surfaces lie"]),
        ("house.obj", {"turn": Y_UP}, ["Y up, not Z up"]),
        ("house.ply", {}, ["Z up"]),
        ("house.dae", {"turn": Y_UP}, ["Y up, as its format is"]),
        ("house.gltf", {"turn": Y_UP}, ["Y up"]),
        (
            "house.glb",
            {"turn": Y_UP, "scale": 1000.0},
            ["Y up", "millimetres: it is 2700 high and 8200 long"],
        ),
        ("house.obj", {"turn": Y_UP, "scale": 100.0}, ["Y up", "centimetres"]),
    ],
)
def test_a_house_ends_in_the_worlds_axes_and_metres_whatever_its_file_has(tmp_path, name, options, notes):
    path = write(two_rooms(), tmp_path / name, **options)
    scene = Scene.load(path).config
    assert len(scene.notes) == len(notes)
    for note, part in zip(scene.notes, notes, strict=True):
        assert part in note
    assert floor_heights(path) == [pytest.approx(FLOOR_Z)]
    grid = Scene.load(path).map()
    assert grid.clearance_at(2.0, 1.0) > 0.9
    assert grid.clearance_at(4.0, 1.0) <= 0 < grid.clearance_at(4.0, 2.0)  # the wall, and the door in it
    assert grid.clearance_at(8.5, 2.0) < 0  # outside, where there is no floor
    assert grid.distance_m((1, 1), (7, 1), radius_m=0.25) == pytest.approx(6.2, abs=0.05)


def test_a_furnished_house_in_a_glb_that_is_z_up_is_found_out(tmp_path):
    path = write(mesh_of(generate_house(seed=3).scene), tmp_path / "scan.glb")
    assert "Z up, though its format is Y up" in Scene.load(path).config.notes[0]


@pytest.mark.parametrize("size", [(20, 1.6, 2.8), (20, 1.2, 2.8), (20, 1.0, 3.0), (30, 6, 9)])
def test_a_corridor_and_a_hall_stay_upright(tmp_path, size):
    x, y, z = size
    room = [
        *(box((0, 0, -0.1), (x, y, 0)), box((0, 0, z), (x, y, z + 0.1))),
        *(box((0, -0.1, 0), (x, 0, z)), box((0, y, 0), (x, y + 0.1, z))),
        *(box((-0.1, 0, 0), (0, y, z)), box((x, 0, 0), (x + 0.1, y, z))),
    ]
    path = write(trimesh.util.concatenate(room), tmp_path / "room.glb", turn=Y_UP)
    assert "Y up, as its format is" in Scene.load(path).config.notes[0]
    assert floor_heights(path)[0] == pytest.approx(0.0)


def test_a_scene_file_says_it_explicitly_and_can_put_things_into_the_house(tmp_path):
    write(two_rooms(), tmp_path / "house.obj", turn=Y_UP, scale=1000.0)
    house = {
        "name": "house",
        "asset_path": "house.obj",
        "collision": "surface",
        "rotate": [90, 0, 0],
        "scale": 0.001,
    }
    crate = {"name": "crate", "translate": [2, 2, 1.0], "parts": [{"shape": "box", "size": [0.5, 0.5, 0.6]}]}
    path = tmp_path / "scene.json"
    path.write_text(json.dumps({"scene_name": "s", "objects": [house, crate]}))
    assert floor_heights(path) == [pytest.approx(FLOOR_Z)]
    assert Scene.load(path).map().clearance_at(2.0, 2.0) < 0
    empty = write(two_rooms(), tmp_path / "empty.glb", turn=Y_UP)
    assert Scene.load(empty).map().clearance_at(2.0, 2.0) > 0.5
    world = World(Scene.load(path), standard_robot(), floor_z=FLOOR_Z)
    world.reset(Pose2(2.0, 1.65, 0.0))
    assert world.touched() == "crate"


def several_meshes(folder, *, collision):
    """Write a house of a floor, walls and a cupboard, each a mesh of its own."""
    meshes = {
        "floor": box((-0.1, -0.1, -0.1), (8.1, 4.1, 0.0), floor=True),
        "walls": trimesh.util.concatenate(walls(0.0, ceiling=False)),
        "cupboard": box((1.5, 3.4, 0.0), (2.5, 4.0, 2.0)),
    }
    objects = []
    for name, mesh in meshes.items():
        write(mesh, folder / f"{name}.ply")
        objects.append(
            {"name": name, "asset_path": f"{name}.ply", "collision": collision.get(name, "surface")}
        )
    (folder / "scene.json").write_text(json.dumps({"scene_name": "s", "objects": objects}))
    return folder / "scene.json"


def test_what_is_touched_in_a_house_of_several_meshes_is_named(tmp_path):
    path = several_meshes(tmp_path, collision={})
    world = World(Scene.load(path), standard_robot())
    for pose, name in (
        (Pose2(2.0, 3.3, 0.0), "cupboard"),
        (Pose2(0.1, 2.0, 0.0), "walls"),
        (Pose2(2.0, 3.7, 0.0), "cupboard"),
    ):
        with pytest.raises(UserError, match=f"it starts inside of '{name}' at x="):
            world.begin(pose, who="it", z=0.0)
    world.begin(Pose2(2.0, 2.0, 0.0), who="it", z=0.0)


@pytest.mark.parametrize("collision", ["surface", "hull"])
def test_each_file_of_a_house_of_many_meshes_is_read_once(tmp_path, monkeypatch, collision):
    objects = [{"name": "floor", "asset_path": "floor.ply", "collision": "surface"}]
    write(box((-0.1, -0.1, -0.1), (8.1, 4.1, 0.0), floor=True), tmp_path / "floor.ply")
    for index in range(60):
        name = f"crate{index}{('.dae', '.glb', '.obj')[index % 3]}"
        x = 0.1 * index
        crate = box((x, 0, 0), (x + 0.08, 0.1, 1.0))
        if name.endswith(".dae"):
            write_dae(crate, tmp_path / name, "none.png")
        else:
            write(crate, tmp_path / name, turn=Y_UP if name.endswith(".glb") else None)
        objects.append({"name": name, "asset_path": name, "collision": collision})
    path = tmp_path / "scene.json"
    path.write_text(json.dumps({"scene_name": "s", "objects": objects}))
    files, read_meshes = [], mesh_reader.read_meshes

    def counted(file, *args, **options):
        files.append(file.name)
        return read_meshes(file, *args, **options)

    monkeypatch.setattr(mesh_reader, "read_meshes", counted)
    for _ in range(2):
        assert Scene.load(path).map().clearance_at(2.0, 2.0) > 0.5
        world = World(Scene.load(path), standard_robot())
    world.reset(Pose2(2.0, 0.2, 0.0))
    assert world.touched() in files
    assert sorted(files) == sorted(item["asset_path"] for item in objects)


def shell(length_m):
    """Four walls as one connected piece, as they are modelled; boxes that only touch would be several."""
    solid = trimesh.creation.box((length_m, length_m - 4.0, 2.5))
    solid.apply_translation((4, 2, 1.25))
    solid.update_faces(np.abs(solid.face_normals[:, 2]) < 0.5)
    return solid


def test_walls_whose_hull_fills_the_room_are_told_with_the_remedy(tmp_path):
    write(shell(8.2), tmp_path / "walls.ply")
    objects = [{"name": "walls", "asset_path": "walls.ply"}]
    (tmp_path / "scene.json").write_text(json.dumps({"scene_name": "s", "objects": objects}))
    task = episode(tmp_path / "scene.json", (2, 2, 0.0, 0), (3, 2, 0.0))
    env = VLNEnv(sensors=["odom"])
    with pytest.raises(UserError, match="starts inside of the convex hull of 'walls'") as caught:
        env.check([task])
    assert 'give it "collision": "surface"' in str(caught.value)
    assert "--fix" not in str(caught.value)
    at_the_wall = episode(tmp_path / "scene.json", (0.0, 2, 0.0, 0), (3, 2, 0.0))
    with pytest.raises(UserError, match=r"starts inside of 'walls' at x=0\.0, y=2; .*--fix OUT"):
        env.check([at_the_wall])
    save_dataset([task], tmp_path / "episodes.json")
    found = {item.kind: item for item in examine(tmp_path / "episodes.json").findings.items}
    assert (
        'inside of the convex hull of \'walls\': give it "collision": "surface"' in found["inside-hull"].text
    )


def test_of_several_meshes_around_a_start_only_those_in_the_way_need_another_collision(tmp_path):
    floor, ceiling = box((-0.1, -0.1, -0.1), (8.1, 4.1, 0.0)), box((-0.1, -0.1, 2.5), (8.1, 4.1, 2.6))
    for name, mesh in {"floor": floor, "ceiling": ceiling, "walls": shell(8.2), "fence": shell(9.2)}.items():
        write(mesh, tmp_path / f"{name}.ply")
    names = ("floor", "ceiling", "walls", "fence")
    objects = [{"name": name, "asset_path": f"{name}.ply"} for name in names]
    (tmp_path / "scene.json").write_text(json.dumps({"scene_name": "s", "objects": objects}))
    task = episode(tmp_path / "scene.json", (2, 2, 0.0, 0), (3, 2, 0.0))
    with pytest.raises(UserError, match=r"convex hull of '(walls|fence)' at .*: give it"):
        VLNEnv(sensors=["odom"]).check([task])
    save_dataset([task], tmp_path / "episodes.json")
    found = examine(tmp_path / "episodes.json").findings.items
    told = [item.text for item in found if item.kind == "inside-hull"]
    assert [re.search("convex hull of '(.*?)'", text)[1] for text in told] == ["walls", "fence"]


def test_surfaces_without_a_floor_among_them_say_what_is_missing(tmp_path):
    path = several_meshes(tmp_path, collision={"floor": "hull"})
    with pytest.raises(InvalidFile, match='the mesh of the floor needs "collision": "surface", too'):
        Scene.load(path).map()


def test_things_rest_on_the_floor_of_the_house_and_may_stand_beyond_its_walls(tmp_path):
    write(two_rooms(), tmp_path / "house.glb", turn=Y_UP)
    house = {"name": "house", "asset_path": "house.glb", "collision": "surface"}
    ball = {"shape": "sphere", "size": [0.3, 0.3, 0.3]}
    falling = {"name": "ball", "translate": [2, 2, 1.2], "rigid_body_type": "dynamic", "parts": [ball]}
    outside = {"name": "car", "translate": [-2, 2, 1], "parts": [{"shape": "box", "size": [3.5, 2, 1.5]}]}
    path = tmp_path / "scene.json"
    path.write_text(json.dumps({"scene_name": "s", "objects": [house, falling, outside]}))
    grid = Scene.load(path).map()
    assert grid.clearance_at(0.5, 0.5) > 0 > grid.clearance_at(-0.3, 2.0)
    assert grid.covering((20.0, 2.0)) is grid  # there is no floor to drive on
    world = World(Scene.load(path), standard_robot(), floor_z=FLOOR_Z)
    world.reset(Pose2(6.0, 2.0, 0.0))
    for _ in range(300):
        world.step((0.0, 0.0, 0.0))
    assert world.data.body("ball").xpos[2] == pytest.approx(FLOOR_Z + 0.15, abs=0.01)


def test_the_unit_that_a_dae_names_is_used(tmp_path):
    path = write(two_rooms(), tmp_path / "house.dae", turn=Y_UP, scale=1 / 0.0254)
    content = path.read_text()
    assert "<unit" not in content
    path.write_text(content.replace("<asset>", '<asset><unit name="inch" meter="0.0254"/>', 1))
    assert len(Scene.load(path).config.notes) == 1
    assert floor_heights(path) == [pytest.approx(FLOOR_Z, abs=1e-3)]


def test_a_mesh_may_be_a_link_and_hold_single_triangles(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "scenes").mkdir()
    mesh = two_rooms()
    mesh.apply_transform(Y_UP)
    lone = trimesh.Trimesh([[1, 2, -1], [2, 2, -1], [1, 2, -2]], [[0, 1, 2]])
    trimesh.Scene([mesh, lone]).export(tmp_path / "elsewhere" / "house.glb")
    path = tmp_path / "scenes" / "link.glb"
    path.symlink_to(tmp_path / "elsewhere" / "house.glb")
    world = World(Scene.load(path), standard_robot(), floor_z=FLOOR_Z)
    assert world.house.floors_z == [pytest.approx(FLOOR_Z)]


def test_the_scene_of_a_mesh_can_be_written_down_and_read_back(tmp_path):
    path = write(two_rooms(), tmp_path / "house.glb", scale=1000.0)
    save_scene(Scene.load(path).config, tmp_path / "house.json")
    assert Scene.load(tmp_path / "house.json").config == Scene.load(path).config
    written, found = Scene.load(tmp_path / "house.json").map(), Scene.load(path).map()
    assert (written.occupied == found.occupied).all()


def test_a_room_of_bare_sheets_has_a_floor_whichever_way_they_face(tmp_path):
    room = trimesh.creation.box((6, 5, 2.5))
    for name in ("out.ply", "in.ply"):
        room.export(tmp_path / name)
        assert floor_heights(tmp_path / name) == [pytest.approx(-1.25)]
        room.invert()


def test_a_house_of_parts_and_the_same_house_as_one_mesh_have_one_map(tmp_path):
    scene = generate_house(5).scene
    solid = [
        item
        for item in scene.objects
        if all(part.collision for part in item.parts) or item.category == "floor"
    ]
    scene = SceneConfig(scene_name="s", objects=solid)
    save_scene(scene, tmp_path / "parts.json")
    path = write(mesh_of(scene), tmp_path / "mesh.glb", turn=Y_UP)
    of_parts, of_mesh = Scene.load(tmp_path / "parts.json").map(), Scene.load(path).map()
    shift = np.rint((np.array(of_parts.origin_world) - of_mesh.origin_world) / 0.05).astype(int)
    rows, columns = of_parts.occupied.shape
    same = of_mesh.occupied[shift[1] :, shift[0] :][:rows, :columns]
    inside = np.s_[15:-15, 15:-15]
    free = [~of_parts.occupied[inside], ~same[inside]]
    assert (free[0] & free[1]).sum() / (free[0] | free[1]).sum() > 0.99


def test_a_mesh_that_was_replaced_is_read_anew(tmp_path):
    path = write(two_rooms(0.7), tmp_path / "house.obj")
    assert floor_heights(path) == [0.7]
    write(two_rooms(0.3), path)
    os.utime(path, ns=(1, 1))
    assert floor_heights(path) == [0.3]


# What is wrong with houses


def no_triangles():
    return trimesh.Trimesh([[0, 0, 0], [1, 0, 0], [2, 0, 0]], [[0, 1, 2]], process=False)


@pytest.mark.parametrize(
    ("mesh", "problem"),
    [
        (lambda: trimesh.util.concatenate(walls(0.0)), "no floor: in 8.20 m x 4.20 m x 2.60 m nothing level"),
        (lambda: trimesh.util.concatenate(walls(0.0, ceiling=False)), "no floor"),
        (lambda: box((0, 0, 0), (300, 300, 0.1)), "its floor reaches over 300 m x 300 m, too much for a map"),
        (lambda: box((0, 0, 0), (0.5, 0.5, 0.5)), "no floor: in 0.50 m x"),
        (no_triangles, "holds no triangles"),
    ],
    ids=["walls and a ceiling", "walls", "a desert", "a crate", "a line"],
)
def test_a_mesh_that_is_no_house_is_refused(tmp_path, mesh, problem):
    path = write(mesh(), tmp_path / "house.ply")
    with pytest.raises(InvalidFile, match=re.escape(problem)) as caught:
        Scene.load(path).map()
    assert "house.ply" in str(caught.value)


@pytest.mark.parametrize("name", ["a.glb", "a.gltf", "a.obj", "a.ply", "a.dae"])
def test_a_file_that_is_no_mesh_is_refused(tmp_path, name):
    with pytest.raises(InvalidFile, match="no such file"):
        Scene.load(tmp_path / name)
    (tmp_path / name).write_text("nonsense")
    with pytest.raises(InvalidFile, match=r"is not a|holds no triangles"):
        Scene.load(tmp_path / name)


def test_a_vertex_beyond_all_bounds_is_refused(tmp_path):
    (tmp_path / "far.obj").write_text("v 0 0 0\nv 2e9 0 0\nv 0 1 0\nf 1 2 3\n")
    with pytest.raises(ValueError, match=r"'far\.obj' has a vertex at 2e\+09, farther than 1e\+09"):
        _ = MeshFile(tmp_path / "far.obj").asset


def test_what_is_wrong_with_a_broken_mesh_is_said_in_words(tmp_path):
    (tmp_path / "empty.glb").write_bytes(b"")
    buffers = {"asset": {"version": "2.0"}, "buffers": [{"uri": "gone.bin", "byteLength": 4}], "meshes": []}
    (tmp_path / "house.gltf").write_text(json.dumps(buffers))
    with pytest.raises(InvalidFile, match=r"'empty\.glb' is empty"):
        Scene.load(tmp_path / "empty.glb")
    with pytest.raises(InvalidFile, match=r"gone\.bin, which it needs, is missing"):
        Scene.load(tmp_path / "house.gltf")


def test_a_house_without_a_reader_for_its_format_says_what_to_install(tmp_path, monkeypatch):
    (tmp_path / "a.dae").write_text("")
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(MissingDependency, match="pip install pycollada"):
        Scene.load(tmp_path / "a.dae")


def test_what_cannot_be_read_of_a_compressed_house_is_said(tmp_path):
    path = write(two_rooms(), tmp_path / "house.gltf", turn=Y_UP)
    content = path.read_text()
    path.write_text(content.replace('"asset"', '"extensionsUsed": ["KHR_texture_basisu"], "asset"', 1))
    assert "textures in Basis" in Scene.load(path).config.notes[1]
    path.write_text(
        content.replace('"asset"', '"extensionsUsed": ["KHR_draco_mesh_compression"], "asset"', 1)
    )
    os.utime(path, ns=(1, 1))
    with pytest.raises(MissingDependency, match="pip install DracoPy"):
        Scene.load(path)


def test_sizes_are_bounded(tmp_path, monkeypatch):
    path = write(two_rooms(), tmp_path / "house.obj")
    monkeypatch.setattr("proctor.scenes.mesh_reader.MAX_TRIANGLES", 10)
    with pytest.raises(InvalidFile, match="triangles, more than 10"):
        Scene.load(path)
    monkeypatch.setattr("proctor.scenes.meshes.MAX_FILE_BYTES", 10)
    with pytest.raises(InvalidFile, match="larger than"):
        Scene.load(path)


def test_a_stray_triangle_far_away_costs_a_message_and_no_memory(tmp_path):
    stray = trimesh.Trimesh([[0, 0, 1e9], [1, 0, 1e9], [0, 1, 1e9]], [[0, 1, 2]], process=False)
    house = two_rooms(0.0)
    bare = trimesh.Trimesh(house.vertices, house.faces, process=False)
    file = write(trimesh.util.concatenate([bare, stray]), tmp_path / "far.ply")
    with pytest.raises(InvalidFile, match="at most 10000 m"):
        Scene.load(file).map()


def test_only_a_static_mesh_collides_as_its_surface():
    with pytest.raises(ValueError, match="only a static mesh"):
        SceneObject(name="a", collision="surface", parts=[Part(shape="box", size=(1, 1, 1))])
    with pytest.raises(ValueError, match="only a static mesh"):
        SceneObject(name="a", collision="surface", asset_path="a.glb", rigid_body_type="dynamic")


# Storeys


def episode(path, start, goal, **more):
    x, y, z, yaw = start
    return Episode(
        episode_id="e",
        scene_id="house",
        scene_config_path=str(path),
        start_position=Vector3(x, y, z),
        start_rotation=Vector3(0, 0, yaw),
        goal_position=Vector3(*goal),
        instruction="Go.",
        **more,
    )


def test_every_storey_has_a_map_and_the_stairwell_is_no_way(tmp_path):
    path = write(two_storeys(), tmp_path / "house.glb", turn=Y_UP)
    assert floor_heights(path) == [pytest.approx(0.0, abs=1e-6), pytest.approx(2.8)]
    lower, upper = Scene.load(path).map(), Scene.load(path).map_at(2.9)
    assert Scene.load(path).map_at(0.2) is lower
    assert Scene.load(path).map_at(2.8) is upper
    assert lower.clearance_at(6.0, 2.0) > 0.5
    assert upper.clearance_at(6.0, 2.0) <= 0.1
    assert (
        upper.distance_m((1, 2), (7.5, 2), radius_m=0.25)
        > 7.0
        > lower.distance_m((1, 2), (7.5, 2), radius_m=0.25)
    )


def distance_of(one):
    return PathDistance(one, success_threshold_m=1.0)


def test_a_goal_on_another_floor_cannot_be_reached_and_that_is_said(tmp_path):
    path = write(two_storeys(), tmp_path / "house.glb", turn=Y_UP)
    apart, together = episode(path, (1, 1, 0, 0), (7, 1, 2.8)), episode(path, (1, 1, 2.8, 0), (7, 0.5, 2.8))
    assert distance_of(apart).kind == "euclidean"
    assert distance_of(together).kind == "geodesic"
    notes = scene_notes([apart, together])
    assert notes[0].startswith("house.glb is read as Y up")
    assert notes[1] == "house.glb has its floors at 0.00 m and 2.80 m"
    assert notes[2].startswith("1 of 2 episodes has a goal that no robot on wheels can reach (")
    assert "check-dataset" in notes[2]
    below = Vector3(7, 1, 0)
    assert distance_of(apart)(below, apart.goal) == math.inf
    assert len(scene_notes([together])) == 2


def split_level(lower_z):
    """Return two rooms, the second with its floor lower than the first's at 0."""
    floors = [box((-0.1, -0.1, -0.5), (4, 4.1, 0)), box((4, -0.1, lower_z - 0.1), (8.1, 4.1, lower_z))]
    return trimesh.util.concatenate([*floors, *walls(0.0)])


@pytest.mark.parametrize(("z", "floor_z"), [(-0.2, -0.2), (-0.12, -0.2), (0.05, -0.2)])
def test_a_room_a_step_lower_has_a_floor_of_its_own(tmp_path, z, floor_z):
    path = write(split_level(-0.2), tmp_path / "house.glb", turn=Y_UP)
    assert Scene.load(path).floor_near(Vector3(6, 2, z)) == pytest.approx(floor_z)
    assert Scene.load(path).floor_near(Vector3(2, 2, 0.05)) == pytest.approx(0.0)
    start, goal = (6, 1, z, 0), (7, 3, -0.2)
    VLNEnv(sensors=["odom"]).check([episode(path, start, goal)])
    assert distance_of(episode(path, start, goal)).kind == "geodesic"
    assert not is_reachable(episode(path, (2, 2, 0, 0), goal))


def test_a_start_on_a_sloping_floor_has_the_floor_that_is_below_it(tmp_path):
    slope = box((-0.1, -0.1, -0.1), (12, 4.1, 0))
    slope.apply_transform(trimesh.transformations.rotation_matrix(np.radians(-3), [0, 1, 0]))
    path = write(slope, tmp_path / "slope.glb", turn=Y_UP)
    for x in (1.0, 6.0, 11.0):
        start = (x, 2, x * math.tan(math.radians(3)), 0)
        VLNEnv(sensors=["odom"]).check([episode(path, start, (x + 0.5, 2, start[2]))])


def test_all_bad_starts_are_told_at_once(tmp_path):
    path = write(two_storeys(), tmp_path / "house.glb", turn=Y_UP)
    bad = [episode(path, (20 + x, 2, 0, 0), (1, 1, 0)) for x in range(7)]
    with pytest.raises(UserError) as caught:
        VLNEnv(sensors=["odom"]).check([*bad, episode(path, (1, 1, 0, 0), (2, 1, 0))])
    message = str(caught.value)
    assert message.startswith("7 of 8 episodes cannot start")
    assert message.count("there is no floor at its start") == 5
    assert "--fix OUT" in message


@pytest.mark.parametrize(
    ("start", "problem"),
    [
        (
            (6, 2, 2.8, 0),
            "no floor at its start, x=6, y=2, z=2.8; the scene's floors are at 0.00 m and 2.80 m",
        ),
        ((2, 2, 1.4, 0), "no floor at its start"),
        ((20, 2, 0, 0), "no floor at its start"),
        ((4, 0.5, 0, 0), "starts inside of 'house'"),
        ((4.7, 2.0, 2.8, 0), None),
        ((4.9, 2.0, 2.8, 0), "starts inside of 'the end of the floor'"),
    ],
)
def test_a_start_must_be_on_a_floor(tmp_path, start, problem):
    path = write(two_storeys(), tmp_path / "house.glb", turn=Y_UP)
    env = VLNEnv(sensors=["odom"])
    task = episode(path, start, (1, 1, start[2]))
    if problem is None:
        env.check([task])
        return
    with pytest.raises(UserError, match=re.escape(problem)):
        env.check([task])
    with pytest.raises(UserError, match=re.escape(problem)):
        env.reset(task)


# Driving


@pytest.mark.parametrize(
    ("house", "start", "goal"),
    [
        (two_rooms, (1, 3.2, FLOOR_Z, 180), (7, 3.4, FLOOR_Z)),
        (two_storeys, (3, 2, 2.8, 0), (7.5, 2, 2.8)),  # around the stairwell
    ],
)
def test_the_oracle_goes_through_the_door_and_touches_nothing(tmp_path, house, start, goal):
    path = write(house(), tmp_path / "house.glb", turn=Y_UP)
    env, policy = VLNEnv(sensors=["odom"]), OraclePolicy()
    task = episode(path, start, goal)
    observation = env.reset(task)
    policy.reset(EpisodeInfo(episode_id="e", instruction="", max_steps=500, seed=0, episode=task))
    done = False
    while not done:
        observation, _, done, info = env.step(policy.act({**observation, TRUTH: env.info()}))
    assert info["collision_count"] == 0
    assert info["distance_to_goal"] < 0.2
    assert info["position"].z == start[2]
    env.close()


def test_a_wall_stops_the_robot_and_counts(tmp_path):
    path = write(two_rooms(), tmp_path / "house.obj")
    env = VLNEnv(sensors=["odom"])
    env.reset(episode(path, (3.0, 1.0, FLOOR_Z, 0), (7, 1, FLOOR_Z)))
    for _ in range(6):
        *_, info = env.step(Action.FORWARD)
    assert info["collision_count"] >= 3
    assert info["position"].x < 3.95
    env.close()


@pytest.mark.parametrize(
    ("start", "velocity", "limit"),
    [
        (Pose2(3.0, 1.0, 0.0), (0.5, 0.0), 3.95 - 0.17),
        (Pose2(3.0, 2.0, 0.0), (0.5, 0.0), 8.0 - 0.17),  # through the door
        (Pose2(2.0, 2.0, 0.0), (-0.5, 0.0), None),
    ],
)
def test_nobody_gets_through_a_wall_or_off_the_floor(tmp_path, start, velocity, limit):
    house = two_rooms(ceiling=False)
    if limit is None:  # the front door is open, and behind it is nothing
        open_front = [part for part in walls(FLOOR_Z, ceiling=False) if part.bounds[1][0] > 0.05]
        floor = box((0, 0, FLOOR_Z - 0.1), (8, 4, FLOOR_Z), floor=True)
        house = trimesh.util.concatenate([floor, *open_front])
    path = write(house, tmp_path / "house.glb", turn=Y_UP)
    world = World(Scene.load(path), standard_robot(), floor_z=FLOOR_Z)
    world.reset(start)
    for _ in range(2000):
        world.step((*velocity, 0.0))
    pose = world.pose()
    if limit is None:
        assert 0.1 < pose.x < 0.2
        assert world.touched() == "the end of the floor"
    else:
        assert limit - 0.05 < pose.x < limit + 0.01
        assert world.touched() == "house"


def test_the_lidar_sees_walls_from_both_sides_and_at_the_height_of_the_floor(tmp_path):
    sheet = painted([[[2, 0, 0.7], [2, 4, 0.7], [2, 4, 3]], [[2, 0, 0.7], [2, 4, 3], [2, 0, 3]]])
    beam = box((2.9, 0, 0.7 + 0.3), (3.1, 4, 0.7 + 0.4))  # above the lidar's plane
    path = write(two_rooms(FLOOR_Z, sheet, beam), tmp_path / "house.glb", turn=Y_UP)
    world = World(Scene.load(path), standard_robot(), floor_z=FLOOR_Z)
    scanner = LaserScanner(world)
    for x, ahead_m, behind_m in ((1.0, 1.0, 1.0), (2.5, 1.45, 0.5)):
        world.reset(Pose2(x, 1.0, 0.0))
        ranges = scanner.scan().ranges
        assert ranges[180] == pytest.approx(ahead_m, abs=1e-3)
        assert ranges[0] == pytest.approx(behind_m, abs=1e-3)
    assert np.isfinite(ranges).all()


# Pictures


def picture(path, pose, floor_z):
    world = World(Scene.load(path), standard_robot(camera=Camera(width=160, height=120)), floor_z=floor_z)
    world.reset(pose)
    camera = RgbdCamera(world)
    try:
        return camera.render()
    finally:
        camera.close()


def share(rgb, channel):
    others = np.delete(rgb.astype(int), channel, axis=-1).max(axis=-1)
    return float((rgb[..., channel] > 1.5 * others).mean())


@pytest.mark.parametrize("name", ["house.glb", "house.gltf", "house.obj"])
def test_textures_are_seen_and_the_camera_is_above_the_floor(tmp_path, name):
    path = write(two_rooms(), tmp_path / name, turn=Y_UP)
    rgb, depth = picture(path, Pose2(3.5, 2.0, math.pi), FLOOR_Z)
    floor = rgb[112:, 20:140]
    assert share(floor, 0) > 0.9  # red
    assert floor[..., 0].std() > 20  # chequered
    assert share(rgb[10:70], 1) > 0.9  # green
    # The lowest ray goes down by 30° from 1.25 m above the floor.
    assert depth[-1, 80] == pytest.approx(1250 / math.tan(math.radians(30)), rel=0.02)


def test_a_sheet_is_seen_from_behind(tmp_path):
    sheet = painted([[[2, 0, 0.7], [2, 4, 0.7], [2, 4, 3]], [[2, 0, 0.7], [2, 4, 3], [2, 0, 3]]])
    path = write(two_rooms(FLOOR_Z, sheet), tmp_path / "house.glb", turn=Y_UP)
    for pose in (Pose2(1.0, 1.0, 0.0), Pose2(3.0, 1.0, math.pi)):
        rgb, depth = picture(path, pose, FLOOR_Z)
        assert depth[60, 80] == pytest.approx(1000, abs=5)
        assert share(rgb[50:70, 70:90], 1) == 1.0


def test_colours_of_vertices_are_seen(tmp_path):
    house = two_rooms()
    house.visual = trimesh.visual.ColorVisuals(house)
    low = house.vertices[:, 2] < FLOOR_Z + 0.01
    house.visual.vertex_colors = np.where(low[:, None], (200, 40, 40, 255), (40, 40, 200, 255)).astype(
        np.uint8
    )
    path = write(house, tmp_path / "house.ply")
    rgb, _ = picture(path, Pose2(1.0, 3.0, 0.0), FLOOR_Z)
    assert share(rgb[105:], 0) > 0.9
    assert share(rgb[:8], 2) > 0.9


# What a run is made of


def test_the_files_of_a_mesh_are_known(tmp_path):
    write(two_rooms(), tmp_path / "a.obj")
    assert [file.suffix for file in files_of_mesh(tmp_path / "a.obj")] == [".mtl", ".png"]
    (tmp_path / "b").mkdir()
    write(two_rooms(), tmp_path / "b" / "b.gltf")
    assert {file.suffix for file in files_of_mesh(tmp_path / "b" / "b.gltf")} >= {".bin"}
    images = "".join(
        f"<image><init_from>{name}</init_from></image>" for name in ("material_0.png", "../out.png")
    )
    (tmp_path / "c.dae").write_text(f"{images}<surface><init_from>a.obj</init_from></surface>")
    assert files_of_mesh(tmp_path / "c.dae") == [tmp_path.resolve() / "material_0.png"]
    assert files_of_mesh(write(two_rooms(), tmp_path / "d.glb")) == []


def test_another_texture_is_another_run(tmp_path):
    path = write(two_rooms(), tmp_path / "house.obj")
    tasks = [episode(path, (1, 1, FLOOR_Z, 0), (2, 1, FLOOR_Z))]
    before = scenes_digest(VlnExam, tasks)
    assert scenes_digest(VlnExam, tasks) == before
    next(tmp_path.glob("*.png")).write_bytes(b"other")
    assert scenes_digest(VlnExam, tasks) != before
