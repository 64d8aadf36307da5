"""What mesh files collide as."""

import json
import math
import struct
from operator import attrgetter

import numpy as np
import pytest
import trimesh
from scipy.spatial import ConvexHull

from proctor.scenes.mesh_files import missing_files
from proctor.scenes.meshes import FLAT_M, MeshFile, convex_body
from proctor.scenes.scene import Scene
from proctor.scenes.scene_config import SceneConfig, SceneObject, save_scene

LOADERS = [attrgetter("asset"), attrgetter("asset.drawn"), attrgetter("surfaces")]

TILTED_SHEET = np.array([[1.0, -2.0, 0.0], [5.0, 2.0, 0.0], [5.0, 2.0, 2.0], [1.0, -2.0, 2.0]])


def test_a_solid_thing_is_its_convex_hull():
    ball = trimesh.creation.icosphere(radius=0.5)
    assert ConvexHull(convex_body(np.asarray(ball.vertices))).volume == pytest.approx(ball.volume)


@pytest.mark.parametrize(
    ("points", "volume_m3"),
    [
        (TILTED_SHEET, 2.0 * math.sqrt(32) * FLAT_M),
        (TILTED_SHEET[[0, 3]], 2.0 * FLAT_M**2),
        (TILTED_SHEET[:1], FLAT_M**3),
    ],
    ids=["a tilted sheet", "a rod", "a point"],
)
def test_what_has_no_volume_is_made_just_thick_enough(points, volume_m3):
    body = convex_body(points)
    assert ConvexHull(body).volume == pytest.approx(volume_m3)
    assert np.linalg.norm(body[:, None] - points, axis=2).min(axis=1).max() <= FLAT_M


def write_sheet(folder, size=1.0):
    sheet = trimesh.Trimesh(TILTED_SHEET * size, [[0, 1, 2], [0, 2, 3]])
    sheet.export(folder / "sheet.obj")
    return folder / "scene.json"


@pytest.mark.parametrize("scale", [1.0, 1000.0])
def test_a_sheet_stands_in_the_map_where_it_is_and_stays_thin_at_any_scale(tmp_path, scale):
    scene_path = write_sheet(tmp_path, 1 / scale)
    sheet = SceneObject(name="sheet", asset_path="sheet.obj", scale=scale)
    grid = Scene(SceneConfig(scene_name="s", objects=[sheet]), scene_path).map()
    assert grid.clearance_at(3.0, 0.0) <= 0  # on it
    assert grid.clearance_at(1.5, 1.5) > 1.8  # inside of its bounding box, but far from it
    assert grid.occupied.sum() < 400


def test_triangles_that_share_no_corners_are_one_piece_where_they_touch(tmp_path):
    box = trimesh.creation.box()
    loose = trimesh.Trimesh(box.triangles.reshape(-1, 3), np.arange(36).reshape(-1, 3), process=False)
    loose.export(tmp_path / "box.glb")
    assert len(MeshFile(tmp_path / "box.glb").asset.pieces) == 1


def test_a_mesh_with_a_hole_is_read_as_it_is(tmp_path):
    box = trimesh.creation.box()
    box.update_faces(np.arange(len(box.faces)) > 1)
    box.export(tmp_path / "open.stl")
    (piece,) = MeshFile(tmp_path / "open.stl").asset.pieces
    assert len(piece) == 8


def write_glb(file, indices, nodes=1):
    """Write a glTF file of one tetrahedron's corners and triangles, shown by so many nodes."""
    corners = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], np.float32).tobytes()
    blob = corners + np.array(indices, np.uint32).tobytes()
    accessors = [
        {"bufferView": 0, "componentType": 5126, "count": 4, "type": "VEC3"},
        {"bufferView": 1, "componentType": 5125, "count": len(indices), "type": "SCALAR"},
    ]
    views = [
        {"buffer": 0, "byteOffset": 0, "byteLength": len(corners)},
        {"buffer": 0, "byteOffset": len(corners), "byteLength": len(blob) - len(corners)},
    ]
    document = {
        "asset": {"version": "2.0"},
        "scene": 0,
        "scenes": [{"nodes": list(range(nodes))}],
        "nodes": [{"mesh": 0}] * nodes,
        "meshes": [{"primitives": [{"attributes": {"POSITION": 0}, "indices": 1}]}],
        "accessors": accessors,
        "bufferViews": views,
        "buffers": [{"byteLength": len(blob)}],
    }
    text = json.dumps(document).encode()
    text += b" " * (-len(text) % 4)
    chunks = struct.pack("<I4s", len(text), b"JSON") + text + struct.pack("<I4s", len(blob), b"BIN\0") + blob
    file.write_bytes(struct.pack("<4sII", b"glTF", 2, 12 + len(chunks)) + chunks)
    return file


@pytest.mark.parametrize("load", LOADERS)
def test_a_triangle_of_vertices_that_are_not_there_is_refused(tmp_path, load):
    assert load(MeshFile(write_glb(tmp_path / "good.glb", [0, 1, 2, 0, 2, 3])))
    broken = write_glb(tmp_path / "broken.glb", [0, 1, 2, 0, 2, 9])
    with pytest.raises(
        ValueError, match=r"'broken\.glb' has a triangle with the vertex 9, but only 4 vertices"
    ):
        load(MeshFile(broken))


@pytest.mark.parametrize("load", LOADERS)
def test_what_would_take_very_long_to_read_is_refused_at_once(tmp_path, load):
    nodes = write_glb(tmp_path / "nodes.glb", [0, 1, 2], nodes=200_000)
    with pytest.raises(ValueError, match=r"'nodes\.glb' has 200000 nodes, more than 10000"):
        load(MeshFile(nodes))
    odd_nodes = [{"mesh": "a text"}] + [{"mesh": 0}] * 200_000
    (tmp_path / "odd.gltf").write_text(json.dumps({"asset": {"version": "2.0"}, "nodes": odd_nodes}))
    with pytest.raises(ValueError, match=r"'odd\.gltf' has 200001 nodes, more than 10000"):
        load(MeshFile(tmp_path / "odd.gltf"))
    (tmp_path / "nodes.dae").write_text("<node/>" * 10_001)
    with pytest.raises(ValueError, match=r"'nodes\.dae' has 10001 nodes, more than 10000"):
        load(MeshFile(tmp_path / "nodes.dae"))
    corners = [str(1 + number % 4) for number in range(200_000)]
    for name, blank in (("face.obj", " "), ("lines.obj", " \\\n")):
        (tmp_path / name).write_text("v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf " + blank.join(corners) + "\n")
        with pytest.raises(ValueError, match="has a face with more than 10000 corners"):
            load(MeshFile(tmp_path / name))
    materials = "".join(f"usemtl m{number}\nf 1 2 3\n" for number in range(10_001))
    (tmp_path / "materials.obj").write_text(f"v 0 0 0\nv 1 0 0\nv 0 1 0\n{materials}")
    with pytest.raises(ValueError, match="has 10001 materials, more than 10000"):
        load(MeshFile(tmp_path / "materials.obj"))


def test_a_file_of_deeply_nested_json_is_refused(tmp_path):
    (tmp_path / "deep.gltf").write_text('{"extras": ' + "[" * 100_000 + "]" * 100_000 + "}")
    with pytest.raises(ValueError, match=r"'deep\.gltf' is not a \.gltf mesh"):
        _ = MeshFile(tmp_path / "deep.gltf").asset
    assert missing_files(tmp_path / "deep.gltf") == []


def test_loose_triangles_are_counted_before_they_are_taken_apart(tmp_path):
    triangles = np.arange(6000)[:, None, None] * 2.0 + [[0, 0, 0], [1, 0, 0], [0, 1, 0]]
    loose = trimesh.Trimesh(triangles.reshape(-1, 3), np.arange(18_000).reshape(-1, 3), process=False)
    loose.export(tmp_path / "loose.stl")
    with pytest.raises(ValueError, match="falls into more than 5000 unconnected pieces"):
        _ = MeshFile(tmp_path / "loose.stl").asset


def test_a_mesh_file_that_was_replaced_is_read_anew(tmp_path):
    trimesh.creation.box((1, 1, 1)).export(tmp_path / "a.stl")
    item = SceneObject(name="a", asset_path="a.stl")
    save_scene(SceneConfig(scene_name="s", objects=[item]), tmp_path / "scene.json")

    def pieces():
        return Scene.load(tmp_path / "scene.json").mesh(item).asset.pieces

    assert len(pieces()) == 1
    two = [trimesh.creation.box((1, 1, 1)), trimesh.creation.box((1, 1, 1)).apply_translation((3, 0, 0))]
    trimesh.util.concatenate(two).export(tmp_path / "a.stl")
    assert len(pieces()) == 2


# COLLADA

DAE = """<?xml version="1.0" encoding="utf-8"?>
<COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema" version="1.4.1">
<asset><unit name="u" meter="1"/><up_axis>Z_UP</up_axis></asset>
<library_images><image id="image"><init_from>gone.png</init_from></image></library_images>
<library_effects><effect id="paint"><profile_COMMON>
<newparam sid="s"><surface type="2D"><init_from>image</init_from></surface></newparam>
<newparam sid="m"><sampler2D><source>s</source></sampler2D></newparam>
<technique sid="t"><lambert><diffuse><texture texture="m" texcoord="UV"/></diffuse></lambert></technique>
</profile_COMMON></effect></library_effects>
<library_materials><material id="red"><instance_effect url="#paint"/></material></library_materials>
<library_geometries><geometry id="cube-mesh" name="Cube"><mesh>
<source id="p"><float_array id="a" count="9">0 0 0 1 0 0 0 1 0</float_array><technique_common>
<accessor source="#a" count="3" stride="3"><param name="X" type="float"/><param name="Y" type="float"/>
<param name="Z" type="float"/></accessor></technique_common></source>
<vertices id="v"><input semantic="POSITION" source="#p"/></vertices>
<triangles count="1" material="m"><input semantic="VERTEX" source="#v" offset="0"/><p>0 1 2</p></triangles>
</mesh></geometry></library_geometries>
<library_visual_scenes><visual_scene id="s"><node id="n1" name="Branch"><translate>5 0 0</translate>
<instance_geometry url="#cube-mesh"><bind_material><technique_common>
<instance_material symbol="m" target="#red"/></technique_common></bind_material></instance_geometry></node>
<node id="n2" name="Bark"><instance_geometry url="#cube-mesh"/></node></visual_scene></library_visual_scenes>
<scene><instance_visual_scene url="#s"/></scene></COLLADA>"""


def dae_surfaces(folder, old="", new="", part=None):
    assert old in DAE
    (folder / "tree.dae").write_text(DAE.replace(old, new) if old else DAE)
    return MeshFile(folder / "tree.dae", solid=False, part=part).asset.drawn


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("<mesh>", "<mesh><!-- from Blender -- 2.8 -->"),
        ("<mesh>", "<mesh><linestrips count='0'/>"),
        ('target="#red"', 'target="#blue"'),
        ("<init_from>gone.png</init_from>", ""),
        ('url="#paint"', 'url="#gone"'),
        ("<lambert>", "<lambert><emission><color>a b</color></emission>"),
        ("</visual_scene>", "<node><instance_camera url='#gone'/></node></visual_scene>"),
        (' xmlns="http://www.collada.org/2005/11/COLLADASchema"', ""),
        ("<?xml", "\n<!-- a -- b --> <?xml"),
    ],
)
def test_what_is_no_geometry_costs_a_dae_no_geometry(tmp_path, old, new):
    first, second = dae_surfaces(tmp_path, old, new)
    assert first.vertices[:, 0].min() == 5
    assert len(second.faces) == 1


@pytest.mark.parametrize(("part", "count"), [("Branch", 1), ("n1", 1), ("Cube", 2), ("cube-mesh", 2)])
def test_a_part_of_a_dae_is_named_by_its_node_or_geometry(tmp_path, part, count):
    assert len(dae_surfaces(tmp_path, part=part)) == count
    with pytest.raises(
        ValueError, match=r"^'tree.dae' has no part 'Leaf', but Bark, Branch, Cube, cube-mesh"
    ):
        dae_surfaces(tmp_path, part="Leaf")


def test_a_node_without_a_name_has_that_of_the_node_around_it(tmp_path):
    file = tmp_path / "tree.dae"
    nested = DAE.replace('<node id="n2" name="Bark">', '<node name="Tree"><node id="n2">')
    file.write_text(nested.replace("</node></visual_scene>", "</node></node></visual_scene>"))
    assert len(MeshFile(file, solid=False, part="Tree").asset.drawn) == 1


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("0 1 2</p>", "0 1 99</p>", r"Indexes \(maxindex=99\) for source 'p' \(len=3\)"),
        *(
            ('meter="1"', f'meter="{unit}"', f"<unit>: expected metres from 1e-06 to 1e.06, found '{unit}'")
            for unit in ("nan", "1e30", "0", "-1", "abc")
        ),
        (">5 0 0<", ">5 0<", "<translate> of the node 'Branch': expected 3 finite numbers, found '5 0'"),
        (">5 0 0<", ">5 0 inf<", "expected 3 finite numbers, found '5 0 inf'"),
        (">5 0 0<", ">2e9 0 0<", r"has a vertex at 2e\+09"),
        ("0 0 0 1", "0 nan 0 1", "the vertices of <source id='p'> are not finite numbers"),
        ('<instance_visual_scene url="#s"/>', "", "expected <scene> with <instance_visual_scene> in it"),
        ('<instance_visual_scene url="#s"/>', '<instance_visual_scene url="#t"/>', "scene #t not found"),
        ("</mesh>", "", "mismatched tag: line 17"),
    ],
)
def test_what_is_wrong_with_a_dae_is_said(tmp_path, old, new, problem):
    with pytest.raises(ValueError, match=f"^'tree.dae' .*{problem}"):
        dae_surfaces(tmp_path, old, new)


@pytest.mark.parametrize(("part", "faces"), [("Car", 2), ("Wheels", 1), ("Left", 1), ("Road", 1)])
def test_a_part_of_an_obj_is_an_object_or_a_group(tmp_path, part, faces):
    text = "v 0 0 0\nv 1 0 0\nv 0 1 0\no Car\nf 1 2 3\ng Wheels Left\nf 1 3 \\\n2\no Road\nf 1 2 3\n"
    (tmp_path / "car.obj").write_text(text)
    (surface,) = MeshFile(tmp_path / "car.obj", solid=False, part=part).surfaces
    assert len(surface.faces) == faces
    with pytest.raises(ValueError, match=r"^'car.obj' has no part 'Roof', but Car, Left, Road, Wheels"):
        _ = MeshFile(tmp_path / "car.obj", part="Roof").surfaces


@pytest.mark.parametrize("number", ["nan", "inf", "-inf"])
def test_vertices_that_are_no_numbers_are_refused(tmp_path, number):
    (tmp_path / "a.obj").write_text(f"v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 {number}\nf 1 2 3\nf 1 2 4\n")
    with pytest.raises(ValueError, match=r"^'a.obj' has vertices that are not finite numbers"):
        _ = MeshFile(tmp_path / "a.obj").asset
