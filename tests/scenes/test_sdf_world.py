"""Worlds of Gazebo as they are read: poses, geometries, lights, and one message for each mistake."""

import math

import numpy as np
import pytest
import trimesh

from proctor.core.errors import InvalidFile
from proctor.scenes.scene import Scene
from proctor.scenes.sdf_world import read_sdf
from proctor.scenes.world_import import surface_of_primitive, write_world
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


def middles(scene):
    """Where the parts of a scene without rotations are in the world."""
    return [
        [place(item)[0][axis] + place(part)[0][axis] for axis in range(3)]
        for item in scene.objects
        for part in item.parts
    ]


def test_a_frame_may_lie_in_a_nested_model(tmp_path):
    scene = imported(
        tmp_path,
        f"""<model name='o'><pose>0 5 0 0 0 0</pose><model name='i'><pose>2 0 0.5 0 0 0</pose>
        <link name='l'><pose>0 0 1 0 0 0</pose></link></model>
        <frame name='f' attached_to='i::l'><pose>0 0 1 0 0 0</pose></frame>
        <joint name='j'><child>i::l</child></joint>
        <link name='k'><pose relative_to='f'>0 3 0 0 0 0</pose>{SOLID}</link>
        <link name='m'><pose relative_to='j'>1 0 0 0 0 0</pose>{SOLID}</link></model>
        <model name='p'><pose relative_to='o::i::l'>0 0 4 0 0 0</pose>
        <link name='l'>{SOLID}</link></model>""",
    )
    assert middles(scene) == [[2, 8, 2.5], [3, 5, 1.5], [2, 5, 5.5]]


@pytest.mark.parametrize(
    "content",
    [
        "<model name='a' placement_frame='l'>{pose}{link}</model>",
        "<include><uri>model://a</uri><placement_frame>l</placement_frame>{pose}</include>",
        "<model name='o'><model name='a' placement_frame='l'>{pose}{link}</model></model>",
    ],
)
def test_a_pose_places_the_placement_frame(tmp_path, content):
    link = f"<link name='l'><pose>1 2 0 0 0 0</pose>{SOLID}</link>"
    model_file(tmp_path, "a", link)
    assert middles(imported(tmp_path, content.format(pose="<pose>-5 -4 3 0 0 0</pose>", link=link))) == [
        [-5, -4, 3]
    ]


def test_long_chains_of_frames_are_refused(tmp_path):
    chain = "".join(f"<frame name='f{i}'><pose relative_to='f{i + 1}'/></frame>" for i in range(3000))
    model = "<model name='a'><pose relative_to='f0'/></model>"
    with pytest.raises(InvalidFile, match="expected at most 100 frames that depend on each other"):
        read_sdf(world_file(tmp_path, f"{chain}{model}"))


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


def test_shapes_are_matched_in_any_order(tmp_path):
    at = "<pose>0 {} 0 0 0 0</pose>"
    shapes = [("collision", 0), ("collision", 1), ("visual", 1), ("visual", 0)]
    content = "".join(f"<{tag} name='{y}'>{at.format(y)}{BOX}</{tag}>" for tag, y in shapes)
    (item,) = imported(tmp_path, f"<model name='a'><link name='l'>{content}</link></model>").objects
    assert [(part.translate.y, part.collision) for part in item.parts] == [(1, True), (0, True)]


@pytest.mark.parametrize(
    ("shape", "low", "high"),
    [
        ("<ellipsoid><radii>1 2 0.5</radii></ellipsoid>", (-1, -2, -0.5), (1, 2, 0.5)),
        ("<cone><radius>0.5</radius><length>3</length></cone>", (-0.5, -0.5, -1.5), (0.5, 0.5, 1.5)),
        ("<ellipsoid/>", (-1, -1, -1), (1, 1, 1)),
        ("<sphere/>", (-1, -1, -1), (1, 1, 1)),
        ("<box/>", (-0.5, -0.5, -0.5), (0.5, 0.5, 0.5)),
        ("<cylinder/>", (-1, -1, -0.5), (1, 1, 0.5)),
    ],
)
def test_each_shape_has_its_size_or_that_of_the_format(tmp_path, shape, low, high):
    collision = f"<collision name='c'><geometry>{shape}</geometry></collision><visual name='empty'/>"
    content = f"<model name='a'><link name='l'>{collision}</link></model>"
    (model,) = read_sdf(world_file(tmp_path, content)).models
    (found,) = model.collisions
    surface = found.surfaces[0] if found.surfaces else surface_of_primitive(found)
    vertices = surface.vertices * (found.size if found.surfaces else 1)
    assert vertices.min(axis=0) == pytest.approx(low, abs=0.01)
    assert vertices.max(axis=0) == pytest.approx(high, abs=0.01)
    assert imported(tmp_path, content).objects


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


def plane_model(name, pose, size):
    shape = f"<geometry><plane><normal>0 0 1</normal>{size}</plane></geometry>"
    shapes = f"<visual name='v'>{shape}</visual><collision name='c'>{shape}</collision>"
    return f"<model name='{name}'><static>1</static><pose>{pose}</pose><link name='l'>{shapes}</link></model>"


def test_the_largest_plane_is_the_floor_and_small_ones_are_objects(tmp_path):
    content = (
        plane_model("shelf", "2 0 2 0 0 0", "<size>1 1</size>")
        + plane_model("ground", "0 0 0.5 0 0 0", "<size>50 50</size>")
        + plane_model("storey", "0 0 3 0 0 0", "<size>20 20</size>")
        + plane_model("wall", "3 0 1 0 1.5707963267948966 0", "<size>2 1</size>")
    )
    world = read_sdf(world_file(tmp_path, content))
    assert (world.grounds_z, world.left_out) == ([0.5], {"ground planes other than the largest": ["storey"]})
    written = write_world(world, tmp_path / "scene")
    shelf = written.scene.objects[0]
    (board,) = shelf.parts
    assert (place(shelf)[0], place(board)[0], board.collision) == ([2, 0, 1.5], [0, 0, -0.005], True)
    grid = Scene.load(written.scene_path).map()
    assert grid.clearance_at(2.99, 0) <= 0 < grid.clearance_at(2, 0)


@pytest.mark.parametrize(("slab", "floor_z"), [("9 9 0.1", 0.0), ("2 2 0.1", -0.1)])
def test_a_floor_may_lie_on_a_ground_that_was_lowered_for_it(tmp_path, slab, floor_z):
    shape = f"<collision name='c'><geometry><box><size>{slab}</size></box></geometry></collision>"
    content = f"""<include><uri>model://ground_plane</uri><pose>0 0 -0.1 0 0 0</pose></include>
    <model name='slab'><pose>0 0 -0.05 0 0 0</pose><link name='l'>{shape}</link></model>"""
    assert write_world(read_sdf(world_file(tmp_path, content)), tmp_path / "scene").floor_z == floor_z


def test_a_saved_world_holds_where_its_models_are_now(tmp_path):
    content = f"""<model name='a'><pose>1 0 0 0 0 0</pose><link name='l'>{SOLID}</link></model>
    <state world_name='x'><model name='a'><pose>5 0 0 0 0 0</pose></model></state>"""
    assert place(imported(tmp_path, content).objects[0])[0] == [5, 0, 0]


def test_what_has_no_place_in_a_scene_is_told(tmp_path):
    heights = "<collision name='c'><geometry><heightmap><uri>x</uri></heightmap></geometry></collision>"
    content = f"""<plugin name='p' filename='x'/><actor name='walker'/>
    <model name='door'><link name='l'>{SOLID}</link><link name='k'/>
    <joint name='hinge' type='revolute'/></model>
    <model name='hills'><static>1</static><link name='l'>{heights}<visual name='v'/></link></model>"""
    assert read_sdf(world_file(tmp_path, content)).left_out == {
        "plugins": ["p"],
        "actors": ["walker"],
        "joints, so what they join stands still": ["hinge"],
        "the motion of models that could move": ["door"],
        "geometries of the kind heightmap": ["hills"],
        "visuals without <geometry>": ["hills"],
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
    with pytest.raises(InvalidFile, match="not found: 'model://box'"):
        read_sdf(file)


@pytest.mark.parametrize(
    "home",
    ["Big Table", "big_table", "big_table/2", "fuel.gazebosim.org/openrobotics/models/big table/12"],
)
def test_models_of_fuel_are_found_by_their_name(tmp_path, home):
    model_file(tmp_path / "downloads", home, f"<link name='l'>{SOLID}</link>")
    model_file(
        tmp_path / "downloads", home.replace("12", "3").replace("/2", "/1"), ""
    ) if "/" in home else None
    server = "https://fuel.gazebosim.org/1.0/OpenRobotics/models"
    uris = [f"{server}/Big Table", f"{server}/Big%20Table/2", f"{server}/Sun", f"{server}/Ground Plane"]
    uris.append("fuel://fuel.gazebosim.org/OpenRobotics/models/Big Table")
    content = "".join(f"<include><uri>{uri}</uri></include>" for uri in uris)
    world = read_sdf(world_file(tmp_path, content), models=[tmp_path / "downloads" / "models"])
    assert (len(world.models), len(world.lights), world.grounds_z) == (3, 1, [0.0])


def test_a_light_may_be_included_in_a_model(tmp_path):
    home = model_file(tmp_path, "lamp", "")
    (home / "model.sdf").write_text("<sdf version='1.9'><light name='lamp' type='point'/></sdf>")
    include = "<include><uri>model://lamp</uri><pose>0 0 2 0 0 0</pose></include>"
    content = (
        f"<model name='a'><pose>1 0 0 0 0 0</pose>{include}<link name='l'>{SOLID}</link></model>{include}"
    )
    lights = read_sdf(world_file(tmp_path, content)).lights
    assert [(light.translate.x, light.translate.z) for light in lights] == [(1, 2), (0, 2)]


def test_an_include_without_a_name_has_that_of_its_model(tmp_path):
    home = model_file(tmp_path, "box", f"<link name='l'>{SOLID}</link>")
    (home / "model.sdf").write_text((home / "model.sdf").read_text().replace("'box'", "'crate'"))
    content = (
        "<include><uri>model://box</uri></include><include><uri>model://box</uri><name>b</name></include>"
    )
    assert [model.name for model in read_sdf(world_file(tmp_path, content)).models] == ["crate", "b"]


def test_what_is_missing_or_not_known_is_listed(tmp_path):
    (tmp_path / "x.obj").write_text("mtllib gone.mtl\nv 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n")
    home = model_file(tmp_path, "box", f"<link name='l'>{SOLID}</link>")
    (home / "model.config").write_text("<model><name>this & that</name></model>")
    mesh = "<visual name='v'><geometry><mesh><uri>{}</uri></mesh></geometry></visual>"
    link = f"<link name='l'>{mesh.format('x.obj') * 2}{mesh.format('gone.obj')}</link>"
    content = f"""<model name='a'><static>1</static>{link}</model><include><uri>model://gone</uri></include>
    <include><uri>model://box</uri><static>1</static></include></world><world name='second'>"""
    file = world_file(tmp_path, content)
    file.write_text(file.read_text().replace("1.9", "1.13"))
    with pytest.raises(InvalidFile, match=r"not found: 'model://gone'; .*--skip-missing leaves out"):
        read_sdf(file)
    world = read_sdf(file, skip_missing=True)
    assert [model.name for model in world.models] == ["a", "box"]
    broken = world.left_out.pop("model.config that cannot be read: model.sdf is taken")
    assert "model.config: line 1" in broken[0]
    assert world.left_out == {
        "what is new in SDF 1.13: versions up to 1.12 are known": ["x.world"],
        "worlds other than 'x', the first": ["second"],
        "models and meshes that are missing": ["model://gone", "gone.obj"],
        "textures and materials that are missing": ["gone.mtl of x.obj"],
    }


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
    ("<model name='a'><pose relative_to='b'/></model>", "<model>: relative_to: no frame 'b' in 'x', found a"),
    (
        "<frame name='f' attached_to='b'/><model name='a'><pose relative_to='f'/></model>",
        "attached_to: no frame",
    ),
    ("<model name='a' placement_frame='b'/>", "<model>: placement_frame: no frame 'b' in 'a', found none"),
    (
        "<model name='a'><model name='i'/><link name='l'>"
        "<pose relative_to='i::k'/><light name='x'/></link></model>",
        "<link>: relative_to: no frame 'k' in 'i', found none",
    ),
    (
        "<frame name='f'><pose relative_to='g'/></frame><frame name='g'><pose relative_to='f'/></frame>"
        "<model name='a'><pose relative_to='f'/></model>",
        "depends on itself: f -> g -> f",
    ),
    (
        "<include><uri>model://chiar</uri></include>",
        "line 3, <include>: not found: 'model://chiar'; did you mean 'chair'",
    ),
    ("<include></include>", "line 3, <include>: expected <uri> with an address"),
    (
        "<include><uri>https://fuel.gazebosim.org/1.0/OpenRobotics/models/Table</uri></include>",
        "Table' .of Gazebo Fuel: download it to DIR/Table and give --models DIR",
    ),
    ("<include><uri>model://a%00b</uri></include>", "expected <uri> with an address"),
    (f"<include><uri>model://{'a' * 300}</uri></include>", "expected <uri> with an address"),
    (
        "<include><uri>model://hollow</uri></include>",
        "'model://hollow' .*hollow has no model.sdf",
    ),
    (
        "<include><uri>model://one</uri></include><include><uri>model://two</uri></include>",
        "2 models or meshes were not found: 'model://one', 'model://two'; looked in",
    ),
    ("<include><uri>model://led</uri></include>", "'model://led' lies outside of the folders of models"),
    ("<include><uri>file:///etc</uri></include>", "'file:///etc' lies outside of the folders of models"),
    (
        LINK.format("<geometry><box><size>1 -1 1</size></box></geometry>"),
        "line 5, <size>: expected numbers from 0 to",
    ),
    (
        LINK.format("<geometry><plane><normal>0 0 0</normal></plane></geometry>"),
        "line 5, <plane>: expected a <normal> other than 0",
    ),
    (MESH.format("<uri>../../outside.obj</uri>"), "lies outside of the folders of models"),
    (MESH.format("<uri>/etc/passwd</uri>"), "lies outside of the folders of models"),
    (MESH.format("<uri>notes.txt</uri>"), "'notes.txt' is not a mesh file that can be read"),
    (
        MESH.format("<uri>broken.obj</uri>"),
        r"line 5, <uri>: 'broken.obj' (is not a .obj mesh|holds no triangles)",
    ),
    (MESH.format("<uri>bomb.dae</uri>"), r"line 5, <uri>: 'bomb.dae' holds <!DOCTYPE"),
    (MESH.format("<uri>wide.dae</uri>"), r"line 5, <uri>: 'wide.dae' is not text in UTF-8"),
    (
        f"<include><uri>model://{'床' * 120}</uri></include>",
        "expected <uri> with an address such as model://",
    ),
    (MESH.format("<uri>missing.obj</uri>"), "not found: 'missing.obj'; looked in"),
    (
        MESH.format("<uri>model://chair/a.obj</uri>"),
        "a.obj' .*/models/chair has no a.obj.; looked",
    ),
    (
        MESH.format("<uri>file://models/a.obj</uri>"),
        "a.obj' .*/worlds/models has no a.obj.; looked",
    ),
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
    (folder / "wide.dae").write_text((folder / "bomb.dae").read_text(), encoding="utf-16")
    model_file(folder, "chair", "")
    (folder / "models" / "hollow").mkdir()
    (folder / "models" / "led").mkdir()
    (tmp_path / "outside.sdf").write_text("<sdf version='1.9'><model name='a'/></sdf>")
    (folder / "models" / "led" / "model.sdf").symlink_to(tmp_path / "outside.sdf")
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


def test_a_file_of_another_format_or_version_is_refused(tmp_path):
    (tmp_path / "robot.sdf").write_text("<robot/>")
    with pytest.raises(InvalidFile, match="line 1, <robot>: expected <sdf>"):
        read_sdf(tmp_path / "robot.sdf")
    (tmp_path / "robot.sdf").write_text("<sdf version='x'/>")
    with pytest.raises(InvalidFile, match=r'line 1, <sdf>: expected version="1.9" or .* found "x"'):
        read_sdf(tmp_path / "robot.sdf")
    for encoding in ("foo", "shift_jis", "hex"):
        (tmp_path / "robot.sdf").write_text(f"<?xml version='1.0' encoding='{encoding}'?><sdf/>")
        with pytest.raises(InvalidFile, match=r"line 1: invalid XML: .*encoding"):
            read_sdf(tmp_path / "robot.sdf")


@pytest.mark.parametrize(("radius_m", "is_too_large"), [(35, False), (60, True)])
def test_only_walls_that_are_too_large_for_a_map_are_said_to_be(tmp_path, radius_m, is_too_large):
    trimesh.creation.annulus(r_min=radius_m - 1, r_max=radius_m, height=2.0).export(tmp_path / "ring.stl")
    mesh = "<geometry><mesh><uri>ring.stl</uri></mesh></geometry>"
    content = f"<model name='a'><link name='l'><collision name='c'>{mesh}</collision></link></model>"
    written = write_world(read_sdf(world_file(tmp_path, content)), tmp_path / "scene")
    assert (len(written.scene.objects), written.is_too_large) == (2, is_too_large)


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
