"""Things that come in mesh and USD files: unit, place, colour, what they collide as, what is refused."""

import json
import sys

import numpy as np
import pytest
import trimesh
from pxr import Usd

from proctor.core.errors import MissingDependency
from proctor.scenes import thing_files
from proctor.scenes.mesh_files import USD_SUFFIXES
from proctor.scenes.tabletop_parts import SceneItem, Shape
from proctor.scenes.thing_files import MAX_HULL_POINTS, MAX_LOOSE_PIECES, THIN_M
from proctor.scenes.things import make_thing

CUBE_FACES = [0, 1, 3, 2, 4, 6, 7, 5, 0, 4, 5, 1, 2, 3, 7, 6, 0, 2, 6, 4, 1, 5, 7, 3]
HEADER = '#usda 1.0\n(\n    defaultPrim = "Root"\n    metersPerUnit = {unit}\n    upAxis = "{up}"\n)\n'


def read(folder, usd_path, **parts):
    item = SceneItem(**{"name": "thing", "position": (0.0, 0.0, 0.0), "usd_path": usd_path} | parts)
    return make_thing(item, folder)


def refusal(folder, usd_path, **parts):
    with pytest.raises(ValueError, match=r".") as caught:
        read(folder, usd_path, **parts)
    return str(caught.value)


def write_box(folder, name="crate.stl", size=(0.04, 0.06, 0.1)):
    trimesh.creation.box(size).apply_translation((1.0, 2.0, 3.0)).export(folder / name)
    return name


def write_usd(folder, body, name="thing.usda", unit=0.01, up="Y"):
    root = f'def Xform "Root"\n{{\n{body}\n}}\n'
    (folder / name).write_text(HEADER.format(unit=unit, up=up) + root)
    return name


def usd_cube(name="cube", low=(0, 0, 0), high=(2, 4, 6), extra="", faces=CUBE_FACES):
    points = [(x, y, z) for x in (low[0], high[0]) for y in (low[1], high[1]) for z in (low[2], high[2])]
    return (
        f'def Mesh "{name}"\n{{\n    point3f[] points = {points}\n    int[] faceVertexCounts = {[4] * 6}\n'
        f"    int[] faceVertexIndices = {faces}\n{extra}\n}}\n"
    )


def test_a_file_stands_on_its_bottoms_middle_and_furniture_is_placed_by_its_centre(tmp_path):
    name = write_box(tmp_path)
    loose, fixed = read(tmp_path, name), read(tmp_path, name, static=True)
    assert (loose.low, loose.high) == (pytest.approx([-0.02, -0.03, 0]), pytest.approx([0.02, 0.03, 0.1]))
    assert (fixed.low, fixed.high) == (
        pytest.approx([-0.02, -0.03, -0.05]),
        pytest.approx([0.02, 0.03, 0.05]),
    )
    assert (loose.is_furniture, fixed.is_furniture) == (False, True)
    assert loose.surfaces[0].vertices.min(axis=0) == pytest.approx(loose.low)
    assert loose.kind == "crate"
    assert loose.notes == ()


def test_scale_and_mass_are_the_episodes(tmp_path):
    name = write_box(tmp_path, size=(40.0, 60.0, 100.0))
    thing = read(tmp_path, name, scale=(0.001, 0.001, 0.002))
    assert thing.high == pytest.approx([0.02, 0.03, 0.2])
    assert thing.mass_kg == pytest.approx(0.04 * 0.06 * 0.2 * thing_files.DENSITY_KG_M3)
    assert np.linalg.norm(thing.surfaces[0].normals, axis=1) == pytest.approx(1.0)
    assert read(tmp_path, name, scale=(0.001, 0.001, 0.001), mass=0.7).mass_kg == 0.7


def test_a_unit_that_is_not_the_metre_is_noticed(tmp_path):
    told = refusal(tmp_path, write_box(tmp_path, size=(40.0, 60.0, 100.0)))
    assert "crate.stl" in told
    assert "100 m large" in told
    assert "scale" in told
    assert " m large" in refusal(tmp_path, write_box(tmp_path, size=(4e-5, 6e-5, 1e-4)))


def test_a_round_mesh_collides_as_a_hull_of_few_corners_and_keeps_its_bounds(tmp_path):
    trimesh.creation.icosphere(subdivisions=4, radius=0.04).export(tmp_path / "orange.ply")
    thing = read(tmp_path, "orange.ply")
    (solid,) = thing.solids
    assert len(solid.points) <= MAX_HULL_POINTS
    assert solid.size == pytest.approx([0.08, 0.08, 0.08], abs=1e-4)
    assert solid.volume_m3 > 0.85 * 4 / 3 * np.pi * 0.04**3


def test_pieces_collide_one_by_one_and_too_many_of_a_loose_thing_as_one(tmp_path):
    def export(count):
        legs = [
            trimesh.creation.box((0.02, 0.02, 0.1)).apply_translation((0.05 * index, 0, 0))
            for index in range(count)
        ]
        trimesh.util.concatenate(legs).export(tmp_path / "legs.stl")

    export(2)
    assert len(read(tmp_path, "legs.stl").solids) == 2
    export(MAX_LOOSE_PIECES + 1)
    thing = read(tmp_path, "legs.stl")
    assert len(thing.solids) == 1
    assert f"{MAX_LOOSE_PIECES + 1} pieces" in thing.notes[0]
    assert len(read(tmp_path, "legs.stl", static=True).solids) == MAX_LOOSE_PIECES + 1


def open_box():
    box = trimesh.creation.box((0.04, 0.04, 0.04))
    box.update_faces(np.arange(len(box.faces)) > 1)
    return box


def finned_box():
    box = trimesh.creation.box((0.04, 0.04, 0.04))
    fin = [*box.vertices[box.faces[0][:2]], [0.0, 0.0, 0.08]]
    return trimesh.Trimesh([*box.vertices, *fin], [*box.faces, [8, 9, 10]])


def sheet():
    return trimesh.Trimesh([[0, 0, 0], [0.1, 0, 0], [0.1, 0.1, 0], [0, 0.1, 0]], [[0, 1, 2], [0, 2, 3]])


def hollow_cup():
    return trimesh.creation.annulus(r_min=0.027, r_max=0.03, height=0.09)


@pytest.mark.parametrize(
    ("mesh", "note"),
    [
        (open_box(), "is not closed"),
        (finned_box(), "is not manifold"),
        (sheet(), "is flat"),
        (hollow_cup(), "is hollow"),
    ],
    ids=["open", "non-manifold", "flat", "hollow"],
)
def test_a_mesh_without_a_proper_inside_collides_as_a_hull_and_says_so(tmp_path, mesh, note):
    mesh.export(tmp_path / "odd.obj")
    thing = read(tmp_path, "odd.obj")
    assert [text for text in thing.notes if note in text and "odd.obj" in text]
    assert all(solid.volume_m3 > 0 for solid in thing.solids)
    assert thing.low[2] == pytest.approx(0.0, abs=1e-9)
    assert np.ptp(thing.points, axis=0).min() >= THIN_M - 1e-9


def test_a_thin_plate_stays_as_thin_as_it_is(tmp_path):
    thing = read(tmp_path, write_box(tmp_path, size=(0.1, 0.1, 0.004)))
    assert thing.high[2] == pytest.approx(0.004, abs=1e-6)


@pytest.mark.parametrize(
    ("usd_path", "word"),
    [
        ("../thing.usd", "inside the dataset's folder"),
        ("/etc/thing.usd", "inside the dataset's folder"),
        ("C:/thing.usd", "inside the dataset's folder"),
        ("omniverse://server/thing.usd", "inside the dataset's folder"),
        ("..\\thing.usd", "inside the dataset's folder"),
        ("a" * 256, "expected the name of a mesh file"),
        ("", "expected the name of a mesh file"),
        ("notes.txt", "no mesh file"),
        ("link/crate.stl", "leads out of"),
    ],
)
def test_files_stay_inside_the_folder_even_if_there_is_a_fallback(tmp_path, usd_path, word):
    outside, folder = tmp_path / "outside", tmp_path / "dataset"
    outside.mkdir()
    folder.mkdir()
    write_box(outside)
    (folder / "notes.txt").write_text("a thing")
    (folder / "link").symlink_to(outside)
    assert word in refusal(folder, usd_path, fallback=Shape(kind="box"))


def test_a_missing_file_names_folder_kinds_and_remedy(tmp_path):
    told = refusal(tmp_path, "objects/gadget.usd")
    for word in ("objects/gadget.usd", str(tmp_path), "'gadget'", "table", "fallback"):
        assert word in told


def test_what_is_no_mesh_or_too_much_of_one_is_refused(tmp_path, monkeypatch):
    (tmp_path / "broken.stl").write_bytes(b"not a mesh")
    assert "broken.stl" in refusal(tmp_path, "broken.stl")
    monkeypatch.setattr(thing_files, "MAX_TRIANGLES", 11)
    assert "12 triangles" in refusal(tmp_path, write_box(tmp_path))


def test_a_usd_file_is_read_in_its_unit_axis_and_colors(tmp_path):
    tin = (
        'def Cylinder "tin"\n{\n    double radius = 3\n    double height = 9\n    token axis = "Y"\n'
        "    color3f[] primvars:displayColor = [(1, 0, 0)]\n    double3 xformOp:translate = (0, 4.5, 0)\n"
        '    uniform token[] xformOpOrder = ["xformOp:translate"]\n}\n'
    )
    knob = usd_cube(low=(-1, 9, -2), high=(1, 10, 2), extra="color3f[] primvars:displayColor = [(0, 0.5, 0)]")
    thing = read(tmp_path, write_usd(tmp_path, tin + knob))
    assert thing.high == pytest.approx([0.03, 0.03, 0.1], abs=1e-6)
    assert thing.notes == ()
    red, green = (surface.rgba[:3] for surface in thing.surfaces)
    assert red == pytest.approx((1.0, 0.0, 0.0))
    assert green == pytest.approx((0.0, 0.73, 0.0), abs=0.01)  # 0.5 in linear light
    for surface in thing.surfaces:  # turned and moved, but not inside out
        middle = surface.vertices.mean(axis=0)
        assert ((surface.vertices - middle) * surface.normals).sum() > 0
        assert trimesh.Trimesh(surface.vertices, surface.faces).volume > 0


@pytest.mark.parametrize(
    ("extra", "faces"),
    [
        ('double3 xformOp:scale = (-1, 1, 1)\nuniform token[] xformOpOrder = ["xformOp:scale"]', CUBE_FACES),
        ('uniform token orientation = "leftHanded"', CUBE_FACES[::-1]),
    ],
    ids=["mirrored", "left-handed"],
)
def test_a_usd_mesh_is_not_inside_out(tmp_path, extra, faces):
    (surface,) = read(tmp_path, write_usd(tmp_path, usd_cube(extra=extra, faces=faces), up="Z")).surfaces
    assert trimesh.Trimesh(surface.vertices, surface.faces).volume == pytest.approx(0.02 * 0.04 * 0.06)


def test_a_usd_file_that_was_replaced_is_read_anew_even_if_somebody_has_it_open(tmp_path):
    write_usd(tmp_path, usd_cube(), up="Z")
    somebodys = Usd.Stage.Open(str(tmp_path / "thing.usda"))
    assert read(tmp_path, "thing.usda").high[2] == pytest.approx(0.06)
    write_usd(tmp_path, usd_cube(high=(2, 4, 12)), up="Z")
    assert read(tmp_path, "thing.usda").high[2] == pytest.approx(0.12)
    assert somebodys


def test_materials_of_a_usd_mesh_and_of_its_faces_give_their_colors(tmp_path):
    def material(name, color):
        shader = f'def Shader "s"\n{{\n    uniform token info:id = "UsdPreviewSurface"\n    {color}\n'
        output = "token outputs:surface\n}\n"
        link = f"token outputs:surface.connect = </Root/{name}/s.outputs:surface>\n"
        return f'def Material "{name}"\n{{\n{link}{shader}{output}}}\n'

    def bound(name):
        return f"rel material:binding = </Root/{name}>"

    top = (
        'def GeomSubset "top" (prepend apiSchemas = ["MaterialBindingAPI"])\n{\n'
        f'    uniform token elementType = "face"\n    uniform token familyName = "materialBind"\n'
        f"    int[] indices = [5]\n    {bound('white')}\n}}\n"
    )
    cube = usd_cube(extra=bound("blue") + "\n" + top).replace(
        'def Mesh "cube"', 'def Mesh "cube" (prepend apiSchemas = ["MaterialBindingAPI"])'
    )
    paints = material("blue", "color3f inputs:diffuseColor = (0, 0, 1)")
    paints += material("white", "color3f inputs:diffuseColor = (1, 1, 1)")
    thing = read(tmp_path, write_usd(tmp_path, cube + paints, up="Z"))
    faces = {surface.rgba[:3]: len(surface.faces) for surface in thing.surfaces}
    assert faces == {(1.0, 1.0, 1.0): 2, (0.0, 0.0, 1.0): 10}
    assert len(thing.solids) == 1  # one piece, whatever its materials


def test_what_is_hidden_or_a_guide_is_left_out_and_a_missing_unit_is_told(tmp_path):
    hidden = usd_cube("hidden", high=(200, 4, 6), extra='token visibility = "invisible"')
    guide = usd_cube("guide", high=(200, 4, 6), extra='uniform token purpose = "guide"')
    write_usd(tmp_path, usd_cube() + hidden + guide, up="Z")
    text = (tmp_path / "thing.usda").read_text().replace("    metersPerUnit = 0.01\n", "")
    (tmp_path / "thing.usda").write_text(text)
    thing = read(tmp_path, "thing.usda")
    assert thing.high == pytest.approx([0.01, 0.02, 0.06])
    assert "centimetres" in thing.notes[0]


def test_usd_files_may_refer_to_others_of_the_folder_only(tmp_path):
    folder = tmp_path / "dataset"
    (folder / "parts").mkdir(parents=True)
    write_usd(folder / "parts", usd_cube(), "cube.usda", up="Z")
    write_usd(tmp_path, usd_cube(), "cube.usda", up="Z")

    def refer(to):
        return write_usd(folder, f'def "part" (prepend references = @{to}@) {{}}', up="Z")

    assert read(folder, refer("parts/cube.usda")).high == pytest.approx([0.01, 0.02, 0.06])
    for to in ("../cube.usda", str(tmp_path / "cube.usda"), "file:///cube.usda"):
        assert "outside of" in refusal(folder, refer(to))
    assert "does not exist" in refusal(folder, refer("other.usda"))
    choice = (
        'def "part" (\n    variants = {string v = "a"}\n    prepend variantSets = "v"\n)\n{\n'
        '    variantSet "v" = { "a" (prepend payload = @../cube.usda@) {} "b" {} }\n}'
    )
    assert "outside of" in refusal(folder, write_usd(folder, choice))
    (folder / "thing.usda").write_text("#usda 1.0\n(\n    subLayers = [@../cube.usda@]\n)\n")
    assert "outside of" in refusal(folder, "thing.usda")


@pytest.mark.parametrize("suffix", USD_SUFFIXES)
@pytest.mark.parametrize("content", [b"", b"no usd", b"#usda 1.0\ndef Xform {{{", b"PXR-USDC" + bytes(100)])
def test_broken_usd_files_are_refused(tmp_path, suffix, content):
    (tmp_path / f"broken{suffix}").write_bytes(content)
    assert f"'broken{suffix}' is not a USD file" in refusal(tmp_path, f"broken{suffix}")


@pytest.mark.parametrize(
    ("body", "word"),
    [
        ("", "holds no mesh"),
        (usd_cube(faces=[*CUBE_FACES[:-1], 8]), "name points that it does not have"),
        (usd_cube(faces=[*CUBE_FACES[:-1], -1]), "name points that it does not have"),
        (usd_cube(faces=CUBE_FACES[:-1]), "other corners than they say"),
    ],
)
def test_usd_meshes_that_make_no_sense_are_refused(tmp_path, body, word):
    assert word in refusal(tmp_path, write_usd(tmp_path, body))


def test_without_usd_core_the_extra_is_named(tmp_path, monkeypatch):
    name = write_usd(tmp_path, usd_cube())
    monkeypatch.setitem(sys.modules, "pxr", None)
    with pytest.raises(MissingDependency, match=r"proctor-eval\[usd\]"):
        read(tmp_path, name)


def test_a_count_without_data_is_a_broken_file(tmp_path):
    document = {
        "asset": {"version": "2.0"},
        "buffers": [{"uri": "data:application/octet-stream;base64,AAAA", "byteLength": 3}],
        "accessors": [{"componentType": 5126, "count": 3_000_000_000, "type": "VEC3"}],
        "meshes": [{"primitives": [{"attributes": {"POSITION": 0}}]}],
        "nodes": [{"mesh": 0}],
        "scenes": [{"nodes": [0]}],
        "scene": 0,
    }
    (tmp_path / "bomb.gltf").write_text(json.dumps(document))
    assert "'bomb.gltf' is not a .gltf mesh" in refusal(tmp_path, "bomb.gltf")
