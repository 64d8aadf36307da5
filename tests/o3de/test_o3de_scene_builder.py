"""Scenes built in a made-up Editor, and read back from its level: what is there is what the file says."""

import json
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import numpy as np
import pytest
import trimesh
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from o3de_editors import TOKEN, editor_with_level, running_agent

import proctor
from o3de_sim.common.scene_builder import BasicSceneBuilder, from_engine, to_engine
from o3de_sim.common.scene_file import InvalidScene
from o3de_sim.constants import GROUND
from o3de_sim.errors import O3DEError
from o3de_sim.o3de_api.o3de_agent import O3DEAgent
from proctor.o3de.standin.level_scene import scene_of_level
from proctor.o3de_export.gltf import ExportFolder
from proctor.o3de_export.project import put_scene
from proctor.scenes.frames import frame_of, frame_of_part
from proctor.scenes.meshes import MeshFile
from proctor.scenes.scene import Scene
from proctor.scenes.scene_config import SceneConfig, save_scene

pytestmark = pytest.mark.filterwarnings("ignore:Gimbal lock")
HOUSE = Path(proctor.__file__).parent / "suites/houses-v1/scenes/house_8123.json"
BOX = {"shape": "box", "size": [1, 2, 0.5]}


@pytest.fixture
def editor(tmp_path):
    with editor_with_level(tmp_path / "project") as editor:
        yield editor


@pytest.fixture
def agent(editor):
    with O3DEAgent("peb", timeout_s=10) as agent:
        yield agent


def level_of(editor):
    """Return what would be played: what is in the template, not what is only seen."""
    assert editor.unknown_calls == []
    return scene_of_level("level", editor.level.template, editor.assets).scene


def solids(scene: SceneConfig):
    """Return all that collides, in the world: shape, size, centre, axes and body."""
    found = []
    for item in scene.objects:
        for part in item.parts if item.rigid_body_type != "none" else ():
            if part.collision:
                frame = frame_of_part(part, frame_of(item))
                numbers = np.concatenate([frame.size, frame.translation, frame.rotation.ravel()])
                found.append((part.shape, item.rigid_body_type, *(np.round(numbers, 4) + 0.0)))
    return sorted(found)


def looks(scene: SceneConfig):
    """Return the shapes that are seen, in the world: size and centre."""
    placed = [
        (part.shape, frame_of_part(part, frame_of(item))) for item in scene.objects for part in item.parts
    ]
    return [(shape, np.concatenate([frame.size, frame.translation])) for shape, frame in placed]


def assert_same_solids(found, expected):
    assert len(found) == len(expected)
    for mine, other in zip(found, expected, strict=True):
        assert mine[:2] == other[:2]
        assert mine[2:] == pytest.approx(other[2:], abs=2e-4)


numbers = st.integers(-50, 50).map(lambda tenths: tenths / 10)
lengths = st.integers(1, 30).map(lambda tenths: tenths / 10)
turns = st.tuples(*[st.sampled_from([0, 30, 90, -45, 180])] * 3).map(list)
vectors = st.tuples(numbers, numbers, numbers).map(list)


@st.composite
def part_dicts(draw):
    shape, width, height = draw(st.sampled_from(["box", "cylinder", "sphere"])), draw(lengths), draw(lengths)
    size = [width, width, width if shape == "sphere" else height]
    part = {"shape": shape, "size": size, "translate": draw(vectors), "rotate": draw(turns)}
    return {**part, "collision": draw(st.booleans())}


object_dicts = st.fixed_dictionaries(
    {
        "translate": vectors,
        "rotate": turns,
        "scale": st.sampled_from([1, 1, 0.5, 2]),
        "parts": st.lists(part_dicts(), min_size=1, max_size=3),
        "rigid_body_type": st.sampled_from(["static", "dynamic", "kinematic", "none"]),
    }
)


@settings(max_examples=12, phases=[Phase.generate])  # a smaller scene would take its time
@given(st.lists(object_dicts, min_size=1, max_size=4))
def test_what_collides_is_what_the_file_says(objects):
    config = {"scene_name": "a", "objects": [{"name": str(i), **item} for i, item in enumerate(objects)]}
    with TemporaryDirectory() as folder, editor_with_level(Path(folder)) as editor, O3DEAgent("peb") as agent:
        path = editor.project / "scene.json"
        path.write_text(json.dumps(config))
        report = BasicSceneBuilder(agent).build_scene(config)
        assert list(report.entities) == [item["name"] for item in config["objects"]]
        level = level_of(editor)
        assert_same_solids(solids(level), solids(Scene.load(path).config))
        seen = looks(level)
        for shape, expected in looks(Scene.load(path).config):
            assert any(shape == other and found == pytest.approx(expected, abs=2e-4) for other, found in seen)


def test_a_house_with_exported_meshes(editor, agent, monkeypatch):
    exported = put_scene(ExportFolder(editor.project), HOUSE)
    calls = Counter()
    call = agent._link.call

    def counted(op, args, timeout_s):
        calls[op] += 1
        return call(op, args, timeout_s)

    monkeypatch.setattr(agent._link, "call", counted)
    told = []
    builder = BasicSceneBuilder(agent, lambda done, total, name: told.append((done, total, name)))
    report = builder.build_scene(HOUSE)
    house = Scene.load(HOUSE).config
    assert report.as_mesh == [item.name for item in house.objects]
    assert not report.as_primitives
    assert not report.missing
    assert report.notes == house.notes
    level = level_of(editor)
    assert_same_solids(solids(level), solids(house))
    assert sum(item.asset_path is not None for item in level.objects) == len(house.objects)
    assert sum(calls.values()) < 5 * len(house.objects)
    assert calls["asset_tool.exists"] == 1
    steps = 1 + len(house.objects) + len(house.lights)
    assert [done for done, _, _ in told] == list(range(steps))
    assert told[0] == (0, steps, GROUND)

    agent.editor_tool.create_level("again")
    report = BasicSceneBuilder(agent).build_scene(editor.project / exported.file)
    assert len(report.as_mesh) == len(house.objects)
    assert_same_solids(solids(level_of(editor)), solids(house))


def test_a_house_without_exported_meshes(editor, agent, tmp_path):
    house = Scene.load(HOUSE).config
    part = msgspec.structs.replace(house, objects=house.objects[::4])
    save_scene(part, tmp_path / "part.json")
    report = BasicSceneBuilder(agent).build_scene(str(tmp_path / "part.json"))
    assert report.as_primitives == [item.name for item in part.objects]
    assert_same_solids(solids(level_of(editor)), solids(part))


def test_through_the_socket_it_is_the_same(tmp_path):
    config = {"scene_name": "a", "objects": [{"name": "box", "translate": [1, 2, 3], "parts": [BOX]}]}
    with running_agent(tmp_path) as pumped:
        with O3DEAgent(port=pumped.server.port, token=TOKEN) as agent:
            report = BasicSceneBuilder(agent).build_scene(config)
            assert agent.tc.get_position(report.entities["box"]).to_list() == [1, 2, 3]
            agent.editor_tool.save_level()
        assert len(solids(level_of(pumped.editor))) == 1


def seen_points(editor, item):
    """Return the corners of what is seen of a mesh, in the world, as the engine would show it."""
    points = np.concatenate([s.vertices for s in MeshFile(editor.project / item.asset_path).asset.drawn])
    return frame_of(item).points(points)


def test_an_own_gltf_stands_upright_and_collides_as_its_box(editor, agent):
    (editor.project / "meshes").mkdir(parents=True)
    mesh = trimesh.creation.box(extents=(1, 3, 2))  # Y up: 3 high
    mesh.apply_translation((0, 1.5, 0))
    mesh.export(editor.project / "meshes/chest.glb")
    config = {
        "scene_name": "a",
        "objects": [
            {"name": "chest", "asset_path": "meshes/chest.glb", "translate": [5, 0, 0], "scale": [1, 2, 1]}
        ],
    }
    report = BasicSceneBuilder(agent).build_scene(config)
    assert report.as_mesh == ["chest"]
    assert "turned by 90° about x" in report.notes[0]
    level = level_of(editor)
    (solid,) = solids(level)
    assert solid[2:8] == pytest.approx([1, 4, 3, 5, 0, 1.5])  # size and centre
    (item,) = level.objects
    points = seen_points(editor, item)
    assert np.ptp(points, axis=0) == pytest.approx([1, 4, 3], abs=1e-5)
    assert points.min(axis=0)[2] == pytest.approx(0.0, abs=1e-5)


def test_a_scene_of_an_own_mesh_exported_is_upright_without_turning(editor, agent, tmp_path):
    mesh = trimesh.creation.box(extents=(1, 3, 2))
    mesh.export(tmp_path / "chest.glb")
    config = {
        "scene_name": "a",
        "objects": [{"name": "chest", "asset_path": "chest.glb", "rotate": [0, 0, 90]}],
    }
    (tmp_path / "scene.json").write_text(json.dumps(config))
    put_scene(ExportFolder(editor.project), tmp_path / "scene.json")
    report = BasicSceneBuilder(agent).build_scene(tmp_path / "scene.json")
    assert report.as_mesh == ["chest"]
    (item,) = level_of(editor).objects
    assert np.ptp(seen_points(editor, item), axis=0) == pytest.approx([2, 1, 3], abs=1e-5)
    (solid,) = solids(level_of(editor))
    assert solid[2:5] == pytest.approx([1, 2, 3], abs=1e-5)


def test_a_missing_mesh_is_told(agent):
    config = {
        "scene_name": "a",
        "objects": [{"name": "chest", "asset_path": "chest.glb"}, {"name": "b", "parts": [BOX]}],
    }
    report = BasicSceneBuilder(agent).build_scene(config)
    assert report.missing == ["chest"]
    assert report.as_primitives == ["b"]
    notes = "\n".join(report.notes)
    assert "'chest' does not collide: its mesh chest.glb is missing" in notes
    assert "no processed mesh of it: 'chest'" in notes
    assert "1 of 2 objects are plain primitives" in notes


MESH_HOUSE = {"name": "house", "asset_path": "house.glb", "collision": "surface"}


def test_a_house_that_is_a_mesh_brings_its_floors(editor, agent, monkeypatch):
    (editor.project / "Assets/Proctor/a").mkdir(parents=True)
    content = trimesh.creation.box().export(file_type="glb")
    (editor.project / "Assets/Proctor/a/house.glb").write_bytes(content)
    scene = {"scene_name": "a", "objects": [MESH_HOUSE]}
    with monkeypatch.context() as patch:  # as if a PhysX group were in its scene settings
        patch.setattr(editor.assets, "has", lambda product: product.startswith("assets/proctor/a/house.glb"))
        report = BasicSceneBuilder(agent).build_scene(scene)
    assert report.ground is None
    assert agent.entity_tool.find(GROUND) == []
    (item,) = level_of(editor).objects
    assert item.collision == "surface"
    assert item.asset_path == "Assets/Proctor/a/house.glb"


def test_a_house_without_floors_is_an_error(editor, agent):
    with pytest.raises(O3DEError, match=r"'house' cannot be built: .*house\.glb.*export-o3de") as caught:
        BasicSceneBuilder(agent).build_scene({"scene_name": "a", "objects": [MESH_HOUSE]})
    assert caught.value.code == "not_found"
    (editor.project / "house.glb").write_bytes(trimesh.creation.box().export(file_type="glb"))
    with pytest.raises(O3DEError, match=r"'house' cannot be built: no asset house\.glb\.pxmesh"):
        BasicSceneBuilder(agent).build_scene({"scene_name": "a", "objects": [MESH_HOUSE]})


def test_the_ground_is_below_zero_and_wide_enough(editor, agent):
    report = BasicSceneBuilder(agent).build_scene(
        {"scene_name": "a", "objects": [{"name": "far", "translate": [200, -10, 0], "parts": [BOX]}]}
    )
    assert agent.entity_tool.get_name(report.ground) == GROUND
    assert agent.tc.get_position(report.ground).to_list() == [100, -5, -0.5]
    (ground,) = [entity for entity in editor.level.template.values() if entity.name == GROUND]
    collider = ground.find("PhysX Primitive Collider")
    assert ground.works("PhysX Primitive Collider")
    assert collider.properties["Shape Configuration|Box|Dimensions"].numbers_() == (300, 110, 1)


def test_masses(editor, agent):
    cylinder = {"shape": "cylinder", "size": [2, 2, 1]}
    objects = [
        {"name": "given", "rigid_body_type": "dynamic", "mass": 5, "parts": [BOX]},
        {"name": "from volume", "rigid_body_type": "dynamic", "scale": 0.5, "parts": [BOX, cylinder]},
        {"name": "static", "mass": 5, "parts": [BOX]},
        {"name": "untouchable", "rigid_body_type": "dynamic", "parts": [{**BOX, "collision": False}]},
    ]
    BasicSceneBuilder(agent).build_scene({"scene_name": "a", "objects": objects})
    found = {item.name: item for item in level_of(editor).objects}
    assert found["given"].mass == 5
    assert found["from volume"].mass == pytest.approx(300 * (1 + np.pi) / 8, rel=1e-5)
    assert found["static"].rigid_body_type == "static"
    assert "untouchable" not in found  # nothing of it collides, and what is seen hangs below it


def test_lights(editor, agent):
    lights = [
        {
            "name": "sun",
            "type": "directional",
            "direction": [0.45, 0.3, -0.85],
            "intensity": 0.3,
            "color": [1, 0.5, 0],
        },
        {"name": "lamp", "translate": [1, 2, 2.2], "intensity": 0.5},
        {"name": "dark", "intensity": 0},
    ]
    report = BasicSceneBuilder(agent).build_scene({"scene_name": "a", "lights": lights})
    assert len(report.lights) == 2
    sun, lamp = level_of(editor).lights
    wanted = np.array([0.45, 0.3, -0.85])
    assert sun.direction.array() == pytest.approx(wanted / np.linalg.norm(wanted), abs=1e-5)
    assert list(sun.color) == pytest.approx([1, 0.5, 0], abs=1e-3)
    assert list(lamp.translate.array()) == pytest.approx([1, 2, 2.2])
    entities = editor.level.template.values()
    (light,) = [entity.find("Light") for entity in entities if entity.name == "lamp"]
    assert light.properties["Controller|Configuration|Intensity"] == pytest.approx(1000)


@given(st.sampled_from(["point", "directional"]), st.floats(0.1, 100))
def test_light_units_there_and_back(kind, intensity):
    assert from_engine(kind, to_engine(kind, intensity)) == pytest.approx(intensity)
    assert to_engine("directional", 1) == 4  # the engine's own sun


def test_odd_names_are_built(editor, agent):
    names = ["", "x" * 500, "tab\there", "*?|", "Wand süd", "proctor_ground"]
    config = {"scene_name": "../../etc", "objects": [{"name": name, "parts": [BOX]} for name in names]}
    report = BasicSceneBuilder(agent).build_scene(config)
    assert list(report.entities) == names
    assert editor.unknown_calls == []


def test_a_wrong_scene_builds_nothing(editor, agent):
    before = len(editor.level.live)
    with pytest.raises(InvalidScene, match="no such file"):
        BasicSceneBuilder(agent).build_scene(editor.project / "missing.json")
    with pytest.raises(InvalidScene, match=r"objects\[1\].parts"):
        BasicSceneBuilder(agent).build_scene(
            {"scene_name": "a", "objects": [{"name": "a", "parts": [BOX]}, {"name": "b", "parts": 3}]}
        )
    assert len(editor.level.live) == before


def test_an_error_names_the_object(agent, monkeypatch):
    def fail(*_):
        raise O3DEError("az_call_failed", "the engine did not")

    monkeypatch.setattr(agent.pc, "add_colliders", fail)
    config = {"scene_name": "a", "objects": [{"name": "house", "parts": [BOX]}]}
    with pytest.raises(O3DEError, match=r"'proctor_ground' cannot be built: the engine did not") as caught:
        BasicSceneBuilder(agent).build_scene(config)
    assert caught.value.code == "az_call_failed"
