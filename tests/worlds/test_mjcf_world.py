"""Scenes of MuJoCo as `proctor import-world` reads them, and one message for each mistake."""

import numpy as np
import pytest
import trimesh
from PIL import Image

from proctor.core.errors import InvalidFile
from proctor.scenes.scene import Scene
from proctor.scenes.world_import import write_world
from proctor.worlds.mujoco.mjcf_world import read_mjcf


def mjcf(folder, content):
    file = folder / "room.xml"
    file.write_text(f"<mujoco model='room'>\n{content}\n</mujoco>\n")
    return file


@pytest.fixture
def room(tmp_path):
    trimesh.creation.box((0.4, 0.6, 1.0)).export(tmp_path / "crate.obj")
    return mjcf(
        tmp_path,
        """<asset><mesh name='crate' file='crate.obj'/><material name='red' rgba='0.8 0.2 0.2 1'/>
        <hfield name='h' nrow='4' ncol='4' size='1 1 0.1 0.1'/></asset>
        <worldbody>
        <light name='lamp' pos='0 0 2.5' diffuse='0.8 0.4 0'/>
        <geom name='ground' type='plane' size='9 9 0.1'/>
        <geom name='north' type='box' size='3 0.05 1.2' pos='0 3 1.2'/>
        <geom name='hills' type='hfield' hfield='h' pos='8 8 0'/>
        <body name='table' pos='1 1 0.7' euler='0 0 90'>
          <geom type='box' size='0.6 0.4 0.02' material='red'/>
          <geom type='cylinder' size='0.05 0.35' pos='0.5 0 -0.35' group='3'/>
          <geom type='sphere' size='0.05' pos='0 0 0.1' contype='0' conaffinity='0'/>
        </body>
        <body name='crate' pos='-1 1 0.5'><freejoint/><geom type='mesh' mesh='crate' material='red'/></body>
        <body name='egg' pos='-1 -1 0.4'><geom type='ellipsoid' size='0.2 0.3 0.4'/></body>
        </worldbody>""",
    )


def test_bodies_become_objects_where_they_stand(room, tmp_path):
    world = read_mjcf(room)
    scene = write_world(world, tmp_path / "scene").scene
    objects = {item.name: item for item in scene.objects}
    assert set(objects) == {"north", "table", "crate", "egg"}
    table = objects["table"]
    assert [table.translate.x, table.translate.y, table.translate.z] == pytest.approx([1, 1, 0.7])
    assert table.rotate.z == pytest.approx(90)
    top, ball, leg = table.parts
    assert (top.shape, top.collision, top.color) == ("box", True, (0.8, 0.2, 0.2))
    assert (ball.shape, ball.collision) == ("sphere", False)
    assert (leg.shape, leg.collision, leg.color[3]) == ("cylinder", True, 0.0)  # of a group that is not shown
    assert [leg.size.x, leg.size.z] == pytest.approx([0.1, 0.7])
    assert scene.lights[0].color == (1.0, 0.5, 0.0)


def test_the_map_shows_meshes_and_ellipsoids(room, tmp_path):
    grid = Scene.load(write_world(read_mjcf(room), tmp_path / "scene").scene_path).map()
    for x, y in ((-1, 1), (-0.85, 1.2), (-1, -1.25), (1, 1.4), (0, 3)):
        assert grid.clearance_at(x, y) <= 0, (x, y)
    for x, y in ((-0.7, 1), (-1.3, -1.3), (0, 0)):
        assert grid.clearance_at(x, y) > 0, (x, y)


def test_what_has_no_place_in_a_scene_is_told(room):
    world = read_mjcf(room)
    assert world.grounds_z == [0.0]
    assert world.left_out == {
        "the motion of bodies that could move": ["crate"],
        "geoms of the kind hfield": ["hills"],
    }


def test_a_textured_mesh_keeps_its_picture(tmp_path):
    mesh = trimesh.creation.box((1, 1, 1))
    mesh.visual = trimesh.visual.TextureVisuals(uv=mesh.vertices[:, :2] + 0.5)
    mesh.export(tmp_path / "box.obj")
    file = mjcf(
        tmp_path,
        """<asset><mesh name='box' file='box.obj'/>
        <texture name='t' type='2d' builtin='flat' rgb1='0.2 0.6 0.4' width='8' height='8'/>
        <material name='m' texture='t'/></asset>
        <worldbody><geom type='mesh' mesh='box' material='m'/></worldbody>""",
    )
    (surface,) = read_mjcf(file).models[0].visuals[0].surfaces
    assert surface.image.shape == (8, 8, 3)
    assert surface.image[0, 0] == pytest.approx(np.array([51, 153, 102]), abs=1)
    assert surface.texcoords.max() > 0.9


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("<worldbody><geom type='bx'/></worldbody>", "MuJoCo cannot build it: .*line 2"),
        ("<asset><mesh name='m' file='../x.obj'/></asset>", "line 2, <mesh>: '../x.obj' lies outside of"),
        ("<asset><mesh name='m' file='/etc/x.obj'/></asset>", "line 2, <mesh>: '/etc/x.obj' lies outside of"),
        ("<compiler meshdir='../..'/>", "line 2, <compiler>: '../..' lies outside of"),
        (
            "<include file='room.xml'/>",
            "line 2, <include>: 'room.xml' is named a second time, or includes itself",
        ),
        ("<include file='none.xml'/>", "none.xml: no such file"),
        ("<asset><mesh name='m' file='none.obj'/></asset>", "MuJoCo cannot build it: .*none.obj"),
        ("<worldbody><geom size='1' pos='nan 0 0'/></worldbody>", "'geom 0' are not finite numbers"),
        (
            "<worldbody><body name='b'><joint/><geom name='ball' size='1' pos='nan 0 0'/></body></worldbody>",
            "(place or size of 'ball' are not finite numbers|MuJoCo cannot build it)",
        ),
        (
            "<worldbody><replicate count='100000000'><geom size='1'/></replicate></worldbody>",
            "line 2, <replicate>: count='100000000': expected at most 10000 elements, found 100000000",
        ),
        (
            "<worldbody><replicate count='200'><include file='many.xml'/></replicate></worldbody>",
            "line 2, <replicate>: count='200': expected at most 10000 elements",
        ),
        (
            "<worldbody><replicate count='+12000'><geom size='1'/></replicate></worldbody>",
            "expected at most 10000 elements, found 12000",
        ),
        (
            f"<worldbody><replicate count='{'9' * 5000}'><geom size='1'/></replicate></worldbody>",
            "line 2, <replicate>: expected a count of at most 9 digits, found '999",
        ),
        (
            "<asset><model name='c' file='many.xml'/></asset><worldbody><replicate count='100'>"
            "<attach model='c' body='b' prefix='x'/></replicate></worldbody>",
            "line 2, <replicate>: count='100': expected at most 10000 elements",
        ),
    ],
)
def test_each_mistake_has_one_message(tmp_path, content, problem, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    copies = "<replicate count='200'><geom size='1'/></replicate>"
    (tmp_path / "many.xml").write_text(f"<mujocoinclude>{copies}</mujocoinclude>")
    with pytest.raises(InvalidFile, match=problem):
        read_mjcf(mjcf(tmp_path, content))
    assert capfd.readouterr() == ("", "")  # and MuJoCo writes no log file
    assert {file.name for file in tmp_path.iterdir()} <= {"room.xml", "many.xml"}


@pytest.mark.parametrize(
    "content",
    [
        "<asset><texture name='t' type='cube' fileright='../x.png'/></asset>",
        r"<asset><texture name='t' type='2d' file='..\x.png'/></asset>",
        "<asset><model name='c' file='sub/child.xml'/></asset>",
        "<compiler meshdir='sub'/><asset><mesh name='m' file='link.stl'/></asset>",
        "<compiler meshdir='sub' strippath='true'/><asset><mesh name='m' file='none/link.stl'/></asset>",
    ],
)
def test_no_file_outside_of_the_folder_is_read(tmp_path, content):
    (tmp_path / "here" / "sub").mkdir(parents=True)
    Image.new("RGB", (4, 4)).save(tmp_path / "x.png")
    trimesh.creation.box((1, 1, 1)).export(tmp_path / "box.stl")
    (tmp_path / "here" / "sub" / "link.stl").symlink_to(tmp_path / "box.stl")
    child = "<mujoco><asset><texture name='t' type='2d' file='../../x.png'/></asset></mujoco>"
    (tmp_path / "here" / "sub" / "child.xml").write_text(child)
    with pytest.raises(InvalidFile, match="lies outside of"):
        read_mjcf(mjcf(tmp_path / "here", f"{content}<worldbody><geom size='1'/></worldbody>"))


def test_scenes_in_subfolders_and_many_copies_are_read(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "a.xml").write_text("<mujoco><include file='b.xml'/></mujoco>")
    (tmp_path / "sub" / "b.xml").write_text("<mujoco><worldbody><geom size='0.1'/></worldbody></mujoco>")
    trimesh.creation.box((1, 1, 1)).export(tmp_path / "sub" / "box.stl")
    (tmp_path / "sub" / "child.xml").write_text(
        "<mujoco><asset><mesh name='m' file='../sub/box.stl'/></asset><worldbody><body name='b'>"
        "<geom type='mesh' mesh='m'/></body></worldbody></mujoco>"
    )
    content = """<include file='sub/a.xml'/><asset><model name='c' file='sub/child.xml'/></asset>
        <worldbody><attach model='c' body='b' prefix='x'/>
        <replicate count='5001' offset='1 0 0'><geom size='0.1'/></replicate></worldbody>"""
    assert len(read_mjcf(mjcf(tmp_path, content)).models) == 5003


def test_another_folder_is_read_if_it_is_named(tmp_path):
    (tmp_path / "here").mkdir()
    trimesh.creation.box((1, 1, 1)).export(tmp_path / "box.stl")
    asset = "<asset><mesh name='m' file='../box.stl'/></asset>"
    file = mjcf(tmp_path / "here", f"{asset}<worldbody><geom type='mesh' mesh='m'/></worldbody>")
    assert len(read_mjcf(file, models=[tmp_path]).models) == 1
