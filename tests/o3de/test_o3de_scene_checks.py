"""The scene validator of o3de_sim says yes and no as that of proctor.scenes, and says where and why."""

import copy
import gzip
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import proctor
from o3de_sim.common.scene_builder import file_name
from o3de_sim.common.scene_file import InvalidScene, check_scene, load_scene, read_scene_file
from proctor.core.documents import convert, read_json
from proctor.core.errors import InvalidFile
from proctor.scenes import scene_config
from proctor.scenes.scene import Scene
from proctor.scenes.scene_config import SceneConfig

HOUSES = sorted(Path(proctor.__file__).parent.glob("suites/houses-v1/scenes/*.json"))
BOX = {"shape": "box", "size": [1, 2, 3]}
SCENE = {
    "scene_name": "room",
    "scene_type": "indoor",
    "notes": ["a note"],
    "objects": [
        {
            **{"name": "table", "category": "table", "color": "brown", "room": "hall", "mass": 3},
            **{"translate": [1, 2, 3], "rotate": {"x": 0, "y": 0, "z": 30}, "scale": 2},
            **{"rigid_body_type": "dynamic", "parts": [{**BOX, "color": [0.5, 0.5, 0.5], "texture": "wood"}]},
        },
        {"name": "house", "asset_path": "meshes/house.glb", "collision": "surface", "scale": [1, 1, 2]},
        {
            **{"name": "ball", "asset_path": "ball.gltf", "scale": {"x": 1, "y": 1, "z": 1}},
            "parts": [
                {"shape": "sphere", "size": [0.2, 0.2, 0.2], "collision": False},
                {"shape": "cylinder", "size": [0.2, 0.2, 0.4], "rotate": [0, 90, 0], "color": [1, 0, 0, 0.5]},
            ],
        },
        {"name": "uneven", "scale": [1, 2, 3], "parts": [{**BOX, "rotate": [180, 0, 360]}]},
    ],
    "lights": [
        {
            "name": "sun",
            "type": "directional",
            "direction": [0, 1, -1],
            "intensity": 0.3,
            "color": [1, 1, 0.9],
        },
        {"translate": [0, 0, 2]},
    ],
}


def theirs(value):
    try:
        return convert(scene_config._with_vectors(value), SceneConfig, Path("scene.json"))
    except InvalidFile:
        return None


def ours(value):
    try:
        return check_scene(value)
    except InvalidScene:
        return None


def assert_same(found, expected):
    assert found.scene_name == expected.scene_name
    assert list(found.notes) == expected.notes
    for mine, other in zip(found.objects, expected.objects, strict=True):
        for name in ("name", "asset_path", "rigid_body_type", "mass", "collision"):
            assert getattr(mine, name) == getattr(other, name)
        for name in ("translate", "rotate", "scale"):
            assert getattr(mine, name).to_list() == getattr(other, name).array().tolist()
        for part, same in zip(mine.parts, other.parts, strict=True):
            assert (part.shape, part.color, part.collision) == (same.shape, same.color, same.collision)
            for name in ("size", "translate", "rotate"):
                assert getattr(part, name).to_list() == getattr(same, name).array().tolist()
    for mine, other in zip(found.lights, expected.lights, strict=True):
        assert (mine.name, mine.type, mine.color, mine.intensity) == (
            *(other.name, other.type, other.color, other.intensity),
        )
        assert mine.direction.to_list() == other.direction.array().tolist()


@pytest.mark.parametrize("path", HOUSES, ids=lambda path: path.stem)
def test_the_suite_is_accepted(path):
    assert_same(load_scene(path), Scene.load(path).config)


def test_a_scene_with_everything_is_accepted():
    assert_same(check_scene(SCENE), theirs(SCENE))


CYLINDER, SPHERE = {"shape": "cylinder", "size": [1, 1, 2]}, {"shape": "sphere", "size": [1, 1, 1]}
MESH = {"asset_path": "a.glb"}
EDGES = [
    *({"parts": [part], "scale": [1, 2, 1]} for part in (BOX, CYLINDER, SPHERE)),
    *({"parts": [part], "scale": [2, 2, 1]} for part in (BOX, CYLINDER, SPHERE)),
    *({"parts": [{**BOX, "rotate": [0, 0, turn]}], "scale": [1, 2, 1]} for turn in (0, 90, 180, -360, 1e-9)),
    *({"parts": [{**BOX, "size": [1, 1, size]}]} for size in (0.0005, 0.00049, 0, -1)),
    *({"parts": [{**CYLINDER, "size": size}]} for size in ([1, 2, 1], [2, 2, 1])),
    *({"parts": [{**SPHERE, "size": size}]} for size in ([1, 1, 2], [2, 1, 1])),
    *(
        {"parts": [{**BOX, "color": color}]}
        for color in ([], [0, 0], [0, 1, 0.5], [0] * 4, [0] * 5, [1.1, 0, 0])
    ),
    *({"parts": [{**BOX, "collision": value}]} for value in (True, None, 1, "surface")),
    *({**MESH, "collision": "surface", "rigid_body_type": kind} for kind in ("static", "dynamic", "none")),
    *({"collision": "surface", **look} for look in ({"parts": [BOX]}, {"parts": [BOX], **MESH})),
    *(
        {**look, "collision": "hull"}
        for look in ({}, {"parts": []}, {"asset_path": None}, {**MESH, "parts": []})
    ),
    *({**MESH, "mass": mass} for mass in (None, 0, 1e-300, "1")),
    *({**MESH, "scale": scale} for scale in (0, 1e-9, True, "2", [1, 1], [2, 2, 2], {"x": 1, "y": 1}, None)),
    *({"asset_path": name} for name in ("", ".", "a", ".glb", "a.GLB", "./a.glb", "a/../b.glb", "b\\c.ply")),
    *(
        {"asset_path": name}
        for name in ("..\\a.glb", "/a.glb", "c:a.glb", "a:b/c.glb", "d/c:.glb", "a\0.glb")
    ),
    *({"asset_path": "a" * length + ".glb"} for length in (251, 252)),
]


@pytest.mark.parametrize("item", EDGES, ids=str)
def test_at_the_edges_both_say_the_same(item):
    scene = {"scene_name": "a", "objects": [{"name": "b", **item}]}
    assert (ours(scene) is None) == (theirs(scene) is None)


def places(value, place=()):
    """Return all places in a document."""
    found = [place]
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        found += places(item, (*place, key))
    return found


WORDS = (
    "name",
    "asset_path",
    "parts",
    "scale",
    "mass",
    "collision",
    "texture",
    "intensity",
    "x",
    "size",
    "colour",
)
VALUES = st.one_of(
    st.sampled_from(
        [None, True, False, "", "box", "sphere", "none", "surface", "../a.glb", "a.OBJ", "C:/a.stl"]
    ),
    st.sampled_from(
        [0, -1, 0.0004, 0.0005, 180, 1e308, 10**30, 10**400, [], {}, [1, 2], [0, 0, 0], [1, 1, 1, 1]]
    ),
    st.lists(st.one_of(st.floats(-2, 2), st.integers(-2, 200), st.booleans()), min_size=3, max_size=3),
    st.fixed_dictionaries({axis: st.sampled_from([0, 1, 0.5, -1, "1", None]) for axis in "xyz"}),
    st.sampled_from([BOX, [BOX], [{**BOX, "shape": "sphere"}], {"name": "new", "parts": [BOX]}]),
    st.text(max_size=5),
    st.floats(allow_nan=False, allow_infinity=False),
)


@settings(max_examples=100)
@given(st.data())
def test_whatever_is_changed_in_a_scene_both_say_the_same(data):
    scene = copy.deepcopy(SCENE)
    for _ in range(data.draw(st.integers(1, 2))):
        place = data.draw(st.sampled_from([place for place in places(scene) if place]))
        holder = scene
        for key in place[:-1]:
            holder = holder[key]
        how = data.draw(st.sampled_from(["set", "remove", "add", "set"]))
        if how == "remove":
            del holder[place[-1]]
        elif how == "add" and isinstance(holder, dict):
            holder[data.draw(st.sampled_from(WORDS))] = copy.deepcopy(data.draw(VALUES))
        else:
            holder[place[-1]] = copy.deepcopy(data.draw(VALUES))
    expected, found = theirs(scene), ours(scene)
    assert (found is None) == (expected is None), scene
    if expected is not None:
        assert_same(found, expected)


BROKEN = {
    "empty": b"",
    "no JSON": b"{",
    "NaN": b'{"scene_name": "a", "lights": [{"intensity": NaN}]}',
    "endless": b'{"scene_name": "a", "lights": [{"intensity": 1e999}]}',
    "digits": b'{"scene_name": "a", "lights": [{"intensity": ' + b"9" * 5000 + b"}]}",
    "twice": b'{"scene_name": "a", "scene_name": "b"}',
    "deep": b"[" * 100 + b"]" * 100,
    "very deep": b"[" * 100_000,
    "latin": b'{"scene_name": "\xe4"}',
    "surrogate": b'{"scene_name": "\\ud800"}',
    "cut": gzip.compress(b'{"scene_name": "a"}')[:-10],
}


@pytest.mark.parametrize("content", BROKEN.values(), ids=BROKEN)
def test_what_is_no_document_is_refused_by_both(tmp_path, content):
    path = tmp_path / "scene.json"
    path.write_bytes(content)
    with pytest.raises(InvalidFile):
        read_json(path)
    with pytest.raises(InvalidScene, match=r"scene\.json: "):
        read_scene_file(path)


def test_files_may_be_packed_and_begin_with_a_mark(tmp_path):
    for name, content in (
        ("a.json.gz", gzip.compress(b'{"scene_name": "a"}')),
        ("b", b'\xef\xbb\xbf{"scene_name": "a"}'),
    ):
        path = tmp_path / name
        path.write_bytes(content)
        assert load_scene(str(path)).scene_name == read_json(path)["scene_name"] == "a"


@pytest.mark.parametrize(
    ("place", "value", "complaint"),
    [
        (
            ("objects", 3, "scale"),
            [1, 0, 1],
            "objects[3].scale: expected factors above 0, found [1.0, 0.0, 1.0]",
        ),
        (("objects", 0, "colour"), "red", "objects[0]: unknown key 'colour', did you mean 'color'?"),
        (("objects", 0, "parts", 0, "shape"), "cilinder", "found 'cilinder', did you mean 'cylinder'?"),
        (("objects", 0, "parts", 0, "size"), [1, 2], "objects[0].parts[0].size: expected three numbers"),
        (("objects", 0, "translate"), {"x": 1, "y": 2}, "objects[0].translate: the key 'z' is missing"),
        (
            ("objects", 0, "translate", 1),
            "2",
            "objects[0].translate[1]: expected a number, found the text '2'",
        ),
        (("objects", 2, "name"), "table", "objects[2].name: two objects have the name 'table'"),
        (("objects", 1, "asset_path"), "/etc/a.glb", "objects[1].asset_path: '/etc/a.glb' must stay inside"),
        (("objects", 0, "mass"), -1, "objects[0].mass: expected kilograms above 0, found -1.0"),
        (("lights", 0, "direction"), [0, 0, 0], "lights[0].direction: expected one that is not zero"),
        (("lights", 1), [], "lights[1]: expected an object, found a list"),
        (("objects",), {}, "objects: expected a list, found an object"),
    ],
)
def test_complaints_name_the_place_and_what_is_right(tmp_path, place, value, complaint):
    scene = copy.deepcopy(SCENE)
    holder = scene
    for key in place[:-1]:
        holder = holder[key]
    holder[place[-1]] = value
    path = tmp_path / "scene.json"
    path.write_text(json.dumps(scene))
    with pytest.raises(InvalidScene) as caught:
        load_scene(path)
    assert caught.value.message.startswith(f"{path}: ")
    assert complaint in caught.value.message
    assert caught.value.code == "bad_request"


def test_a_mesh_is_no_scene_file():
    with pytest.raises(InvalidScene, match="export-o3de --scene"):
        load_scene("house.glb")


@given(st.text(max_size=80), st.text(max_size=80))
def test_names_of_files_are_plain_and_differ_as_the_names_do(first, second):
    name = file_name(first)
    assert set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789_-")
    assert 0 < len(name) <= 60
    assert (name == file_name(second)) == (first == second)


def test_names_of_files_can_be_read():
    assert file_name("hall floor") == "hall-floor"
    assert file_name("house_8123") == "house_8123"
    assert file_name("Hall floor").startswith("hall-floor-")
    assert (
        len({file_name(name) for name in ("wall", "Wall", "WALL", "wall ", "wall-", "w all", "w-all")}) == 7
    )
