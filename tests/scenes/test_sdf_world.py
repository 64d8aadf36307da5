"""Worlds of Gazebo as they are read: poses, geometries, lights, and one message for each mistake."""

import math

import numpy as np
import pytest
import trimesh

from proctor.core.errors import InvalidFile, UserError
from proctor.scenes.scene import Scene
from proctor.scenes.sdf_world import read_sdf
from proctor.scenes.world_import import write_world
from proctor.scenes.xml_file import read_xml

BOX = "<geometry><box><size>1 0.5 2</size></box></geometry>"
SOLID = f"<visual name='v'>{BOX}</visual><collision name='c'>{BOX}</collision>"


def world_file(folder, content, name="x.world"):
    file = folder / name
    file.write_text(f"<sdf version='1.9'>\n<world name='x'>\n{content}\n</world>\n</sdf>\n")
    return file


def model_file(folder, name, content):
    home = folder / "models" / name
    home.mkdir(parents=True)
    (home / "model.sdf").write_text(
        f"<sdf version='1.9'>\n<model name='{name}'>\n{content}\n</model>\n</sdf>\n"
    )
    return home


def imported(folder, content):
    return write_world(read_sdf(world_file(folder, content)), folder / "scene").scene


def place(item):
    at, turned = item.translate, item.rotate
    return [at.x, at.y, at.z], [turned.x, turned.y, turned.z]


def test_poses_of_world_model_link_and_shape_add_up(tmp_path):
    scene = imported(
        tmp_path,
        f"""<model name='a'><pose>1 2 0 0 0 1.5707963267948966</pose>
        <link name='l'><pose>1 0 0 0 0 0</pose>
        <collision name='c'><pose degrees='true'>0 0 1 0 0 45</pose>{BOX}</collision></link></model>""",
    )
    (item,) = scene.objects
    assert place(item) == (pytest.approx([1, 2, 0]), pytest.approx([0, 0, 90]))
    (part,) = item.parts
    assert place(part) == (pytest.approx([1, 0, 1]), pytest.approx([0, 0, 45]))
    assert part.color == (0.7, 0.7, 0.7, 0.0)  # what only collides is not seen


def test_a_pose_may_be_relative_to_a_frame_a_link_or_a_model(tmp_path):
    scene = imported(
        tmp_path,
        f"""<frame name='f'><pose>10 0 0 0 0 0</pose></frame>
        <model name='a'><pose relative_to='f'>1 0 0 0 0 0</pose><link name='l'><pose>0 1 0 0 0 0</pose></link>
        <link name='m'><pose relative_to='l'>0 0 3 0 0 0</pose>
        <collision name='c'><pose relative_to='l'>5 0 0 0 0 0</pose>{BOX}</collision>
        <collision name='d'>{BOX}</collision></link></model>
        <model name='b'><pose relative_to='a' rotation_format='quat_xyzw'>0 0 7 0 0 1 0</pose>
        <link name='l'>{SOLID}</link></model>""",
    )
    first, second = scene.objects
    assert place(first)[0] == pytest.approx([11, 0, 0])
    assert [place(part)[0] for part in first.parts] == [pytest.approx([5, 1, 0]), pytest.approx([0, 1, 3])]
    assert place(second) == (pytest.approx([11, 0, 7]), pytest.approx([0, 0, 180]))


def test_shapes_that_are_seen_and_collide_are_one_part(tmp_path):
    red = "<material><diffuse>1 0 0 1</diffuse></material>"
    capsule = "<geometry><capsule><radius>0.2</radius><length>1</length></capsule></geometry>"
    cylinder = "<geometry><cylinder><radius>0.2</radius><length>1</length></cylinder></geometry>"
    scene = imported(
        tmp_path,
        f"""<model name='a'><static>1</static><link name='l'><visual name='v'>{BOX}{red}</visual>
        <collision name='c'>{BOX}</collision><visual name='w'>{cylinder}</visual></link></model>
        <model name='b'><link name='l'><collision name='c'>{capsule}</collision></link></model>""",
    )
    box, seen = scene.objects[0].parts
    assert (box.color, box.collision, box.shape) == ((1.0, 0.0, 0.0), True, "box")
    assert (seen.collision, seen.shape) == (False, "cylinder")
    assert [part.shape for part in scene.objects[1].parts] == ["cylinder", "sphere", "sphere"]


@pytest.mark.parametrize("suffix", ["dae", "obj", "stl", "glb", "ply"])
def test_meshes_are_scaled_mirrored_and_not_turned(tmp_path, suffix):
    home = model_file(
        tmp_path,
        "post",
        f"""<static>true</static><link name='l'><visual name='v'><geometry><mesh>
        <uri>model://post/meshes/post.{suffix}</uri><scale>-2 1 1</scale></mesh></geometry></visual>
        <collision name='c'><geometry><mesh><uri>meshes/post.{suffix}</uri></mesh></geometry></collision>
        </link>""",
    )
    (home / "meshes").mkdir()
    post = trimesh.creation.box((0.4, 0.6, 2.0)).apply_translation((1.0, 0.0, 1.0))
    post.export(home / "meshes" / f"post.{suffix}")
    world = read_sdf(
        world_file(tmp_path, "<include><uri>model://post</uri><pose>0 3 0 0 0 0</pose></include>")
    )
    imported = write_world(world, tmp_path / "scene")
    grid = Scene.load(imported.scene_path).map()
    assert grid.clearance_at(1.0, 3.0) <= 0 < grid.clearance_at(1.3, 3.0)
    (item,) = imported.scene.objects
    seen = trimesh.load_mesh(tmp_path / "scene" / str(item.asset_path))  # Y up
    assert seen.bounds[:, 0] == pytest.approx([-2.4, -1.6], abs=1e-6)
    assert seen.bounds[:, 1] == pytest.approx([0, 2], abs=1e-6)
    assert seen.volume > 0  # mirrored faces look outwards


def test_a_submesh_is_read_alone(tmp_path):
    (tmp_path / "meshes").mkdir()
    scene = trimesh.Scene()
    for name, x in (("left", -2.0), ("right", 2.0)):
        scene.add_geometry(trimesh.creation.box((1, 1, 1)).apply_translation((x, 0, 0)), name, name)
    scene.export(tmp_path / "meshes" / "two.glb")
    mesh = "<mesh><uri>meshes/two.glb</uri><submesh><name>{0}</name>{1}</submesh></mesh>"
    shape = f"<collision name='c'><geometry>{mesh}</geometry></collision>"
    content = f"<model name='{{0}}'><link name='l'>{shape}</link></model>"
    whole = world_file(
        tmp_path, content.format("right", "") + content.format("left", "<center>true</center>")
    )
    first, second = read_sdf(whole).models
    assert first.collisions[0].surfaces[0].vertices[:, 0].mean() == pytest.approx(2)
    assert second.collisions[0].surfaces[0].vertices[:, 0].mean() == pytest.approx(0)
    with pytest.raises(InvalidFile, match="has no part 'middle', but left, right"):
        read_sdf(world_file(tmp_path, content.format("middle", "")))


def test_the_floor_is_where_the_ground_plane_is(tmp_path):
    plane = "<geometry><plane><normal>0 0 1</normal></plane></geometry>"
    content = f"""<model name='ground'><pose>0 0 0.3 0 0 0</pose><static>1</static><link name='l'>
    <collision name='c'>{plane}</collision></link></model>
    <model name='a'><pose>0 0 1.3 0 0 0</pose><link name='l'>{SOLID}</link></model>
    <light name='lamp' type='point'><pose>0 0 2.3 0 0 0</pose><diffuse>0.5 0.25 0 1</diffuse></light>"""
    scene = imported(tmp_path, content)
    assert [item.name for item in scene.objects] == ["a"]
    assert place(scene.objects[0])[0] == [0, 0, 1]
    (lamp,) = scene.lights
    assert (lamp.translate.z, lamp.color, lamp.intensity) == (2.0, (1.0, 0.5, 0.0), 0.5)


def test_a_saved_world_holds_where_its_models_are_now(tmp_path):
    content = f"""<model name='a'><pose>1 0 0 0 0 0</pose><link name='l'>{SOLID}</link></model>
    <state world_name='x'><model name='a'><pose>5 0 0 0 0 0</pose></model></state>"""
    assert place(imported(tmp_path, content).objects[0])[0] == [5, 0, 0]


def test_what_has_no_place_in_a_scene_is_told(tmp_path):
    heights = "<collision name='c'><geometry><heightmap><uri>x</uri></heightmap></geometry></collision>"
    content = f"""<plugin name='p' filename='x'/><actor name='walker'/>
    <model name='door'><link name='l'>{SOLID}</link><link name='k'/>
    <joint name='hinge' type='revolute'/></model>
    <model name='hills'><static>1</static><link name='l'>{heights}</link></model>"""
    assert read_sdf(world_file(tmp_path, content)).left_out == {
        "plugins": ["p"],
        "actors": ["walker"],
        "joints: what they join stands still": ["hinge"],
        "models that can move: they stand still": ["door"],
        "geometries of the kind heightmap": ["hills"],
    }


def test_two_models_of_one_name_are_two_objects(tmp_path):
    content = f"<model name='a'><link name='l'>{SOLID}</link></model>" * 2
    assert [item.name for item in imported(tmp_path, content).objects] == ["a", "a_2"]


def test_models_are_found_where_gazebo_looks(tmp_path, monkeypatch):
    model_file(tmp_path / "elsewhere", "box", f"<link name='l'>{SOLID}</link>")
    file = world_file(tmp_path, "<include><uri>model://box</uri></include>")
    models = tmp_path / "elsewhere" / "models"
    assert len(read_sdf(file, models=[models]).models) == 1
    monkeypatch.setenv("GZ_SIM_RESOURCE_PATH", str(models))
    assert len(read_sdf(file).models) == 1
    monkeypatch.setenv("GZ_SIM_RESOURCE_PATH", "")
    with pytest.raises(InvalidFile, match="was not found"):
        read_sdf(file)


LINK = "<model name='a'>\n<link name='l'>\n<visual name='v'>{}</visual></link></model>"
MESH = LINK.format("<geometry><mesh>{}</mesh></geometry>")
MISTAKES = [
    (
        "<model name='a'>\n<pose>0 0 nan 0 0 0</pose></model>",
        r"line 4, <pose>: expected 6 finite numbers, found '0 0 nan",
    ),
    (
        "<model name='a'><pose>1 2 3</pose></model>",
        "line 3, <pose>: expected 6 finite numbers, found '1 2 3'",
    ),
    ("<model name='a'><pose>1e9 0 0 0 0 0</pose></model>", "line 3, <pose>: expected numbers from -1e"),
    ("<model name='a'><pose relative_to='b'/></model>", "relative_to: no frame 'b' beside it, found a"),
    (
        "<frame name='f'><pose relative_to='g'/></frame><frame name='g'><pose relative_to='f'/></frame>"
        "<model name='a'><pose relative_to='f'/></model>",
        "depends on itself: f -> g -> f",
    ),
    (
        "<include><uri>model://chiar</uri></include>",
        "line 3, <include>: 'model://chiar' was not found; did you mean 'chair'",
    ),
    ("<include></include>", "line 3, <include>: expected <uri> with an address"),
    ("<include><uri>https://fuel/x</uri></include>", "is not on this machine: download it"),
    ("<include><uri>file:///etc</uri></include>", "'file:///etc' lies outside of the folders of models"),
    (
        LINK.format("<geometry><box><size>1 -1 1</size></box></geometry>"),
        "line 5, <size>: expected numbers from 0 to",
    ),
    (LINK.format("<geometry><box/></geometry>"), r"line 5, <box>: expected <size> in it"),
    (LINK.format(""), r"line 5, <visual>: expected <geometry> in it"),
    (MESH.format("<uri>../../outside.obj</uri>"), "lies outside of the folders of models"),
    (MESH.format("<uri>/etc/passwd</uri>"), "lies outside of the folders of models"),
    (MESH.format("<uri>notes.txt</uri>"), "'notes.txt' is not a mesh file that can be read"),
    (
        MESH.format("<uri>broken.obj</uri>"),
        r"line 5, <uri>: 'broken.obj' (is not a .obj mesh|holds no triangles)",
    ),
    (MESH.format("<uri>bomb.dae</uri>"), r"line 5, <uri>: 'bomb.dae' holds <!DOCTYPE"),
    (MESH.format("<uri>missing.obj</uri>"), "'missing.obj' was not found"),
    ("<light name='l' type='laser'/>", 'expected type="point", "directional" or "spot", found "laser"'),
    ("<model>", "line 4, column 3: invalid XML: mismatched tag"),
    ("<include><uri>model://round</uri></include>", "a cycle: .* includes 'round/model.sdf'"),
    ("<include><uri>model://mazes</uri></include>", "expected at most 20000 models"),
]


@pytest.mark.parametrize(("content", "problem"), MISTAKES)
def test_each_mistake_has_one_message_with_file_and_line(tmp_path, content, problem):
    folder = tmp_path / "deep" / "worlds"
    folder.mkdir(parents=True)
    (tmp_path / "outside.obj").write_text("v 0 0 0\n")
    (folder / "notes.txt").write_text("x")
    (folder / "broken.obj").write_text("f 1 2 3\n")
    (folder / "bomb.dae").write_text("<!DOCTYPE x [<!ENTITY a 'a'>]><COLLADA>&a;</COLLADA>")
    model_file(folder, "chair", "")
    model_file(folder, "round", "<include><uri>model://trip</uri></include>")
    model_file(folder, "trip", "<include><uri>model://round</uri></include>")
    model_file(folder, "leaf", "")
    model_file(folder, "maze", "<include><uri>model://leaf</uri></include>" * 300)
    model_file(folder, "mazes", "<include><uri>model://maze</uri></include>" * 300)
    with pytest.raises(InvalidFile, match=problem):
        read_sdf(world_file(folder, content))


def test_entities_are_not_expanded(tmp_path):
    file = tmp_path / "bomb.world"
    laughs = "".join(f"<!ENTITY l{i} '{f'&l{i - 1};' * 10}'>" for i in range(1, 10))
    file.write_text(f"<!DOCTYPE sdf [<!ENTITY l0 'ha'>{laughs}]>\n<sdf>&l9;</sdf>")
    with pytest.raises(InvalidFile, match=r"line 1: <!DOCTYPE is not read"):
        read_sdf(file)


@pytest.mark.parametrize(
    "start",
    ["<!-- run with --levels --->", "\n <!-- a -- b --><?xml version='1.0' encoding='latin-1'?>", "<!---->"],
)
def test_xml_that_gazebo_reads_is_read_with_its_line_numbers(tmp_path, start):
    text = "<sdf><world name='x'>\n<model name='é'><pose>1</pose><!-- --\n --></model></world></sdf>"
    (tmp_path / "x.world").write_text(start + text, encoding="latin-1" if "latin-1" in start else "utf-8")
    line = 2 + start.count("\n")
    with pytest.raises(InvalidFile, match=f"line {line}, <pose>: expected 6 finite numbers, found '1'"):
        read_sdf(tmp_path / "x.world")


def test_dashes_outside_of_comments_stay_and_open_comments_end_at_once(tmp_path):
    file = tmp_path / "a.xml"
    file.write_text("<a name='b--c'><![CDATA[<!-- d--e -->]]></a>")
    root = read_xml(file)
    assert (root.name, root.text) == ("b--c", "<!-- d--e -->")
    file.write_text("<!-- --><a>" + "<!--" * 1_000_000)
    with pytest.raises(InvalidFile, match="line 1, column 12: invalid XML: unclosed"):
        read_xml(file)


def test_a_world_of_nothing_and_one_of_another_format_are_refused(tmp_path):
    with pytest.raises(UserError, match="'x' holds nothing that could be seen or bumped into"):
        imported(tmp_path, "")
    (tmp_path / "robot.sdf").write_text("<robot/>")
    with pytest.raises(InvalidFile, match="line 1, <robot>: expected <sdf>"):
        read_sdf(tmp_path / "robot.sdf")


def test_a_ring_in_one_piece_leaves_its_middle_open(tmp_path):
    """The hull of a connected, hollow mesh would close the floor in its middle."""
    ring = trimesh.creation.annulus(r_min=1.3, r_max=1.5, height=1.0)
    ring.export(tmp_path / "ring.stl")
    content = """<model name='ring'><static>1</static><pose>0 0 0.5 0 0 0</pose><link name='l'>
    <collision name='c'><geometry><mesh><uri>ring.stl</uri></mesh></geometry></collision></link></model>"""
    written = write_world(read_sdf(world_file(tmp_path, content)), tmp_path / "scene")
    assert [item.collision for item in Scene.load(written.scene_path).objects] == ["surface", "surface"]
    grid = Scene.load(written.scene_path).map()
    assert 1.1 < grid.clearance_at(0, 0) <= 1.3
    assert all(grid.clearance_at(1.4 * math.cos(a), 1.4 * math.sin(a)) <= 0 for a in np.arange(0, 6, 0.1))
