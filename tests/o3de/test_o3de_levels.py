"""Scenes as levels, through the agent's socket: what is asked for is what gets built."""

import trimesh
from o3de_editors import TOKEN, running_agent

from o3de_sim.constants import ENVIRONMENT, GROUND
from proctor.core.types import Vector3
from proctor.o3de.agent_manager import BUILT, BUILT_PLAIN, O3DEAgentManager
from proctor.o3de.config import config_of
from proctor.o3de.standin.level_scene import scene_of_level
from proctor.o3de_export.project import export_scene
from proctor.scenes.scene import Scene
from proctor.scenes.scene_config import Part, SceneConfig, SceneObject, save_scene


def box(name, size=(1.0, 1.0, 1.0), **options):
    return SceneObject(name=name, parts=[Part(shape="box", size=size)], **options)


def write_scene(path, *objects):
    save_scene(SceneConfig(scene_name="room", objects=list(objects)), path)
    return path


def built(pumped, scene_file):
    """Build a scene, and return what the level is."""
    manager = O3DEAgentManager(config=config_of({"socket_port": pumped.server.port, "token": TOKEN}))
    try:
        level = manager.create_scene(scene_file)
    finally:
        manager.close()
    editor = pumped.editor
    return {
        item.name: item for item in scene_of_level(level, editor.level.template, editor.assets).scene.objects
    }


def test_a_mesh_collides_as_boxes_around_its_pieces_whether_it_was_exported_or_not(tmp_path):
    gate = [trimesh.creation.box((0.2, 1.0, 0.2)).apply_translation((x, 0.5, 0)) for x in (-0.5, 0.5)]
    trimesh.util.concatenate(gate).export(tmp_path / "gate.glb")
    scene = write_scene(tmp_path / "room.json", SceneObject(name="gate", asset_path="gate.glb"))
    for project in (tmp_path / "plain", tmp_path / "exported"):
        project.mkdir()
        if project.name == "exported":
            export_scene(scene, project)
        with running_agent(project) as pumped:
            found = built(pumped, scene)["gate"]
        assert sorted(round(part.translate.x, 3) for part in found.parts if part.collision) == [-0.5, 0.5]
        assert (found.asset_path is None) == (project.name == "plain")


def test_a_scene_that_was_changed_is_not_shown_by_the_meshes_of_before(tmp_path):
    project = tmp_path / "project"
    project.mkdir()
    scene = write_scene(tmp_path / "room.json", box("table"), box("chair"))
    export_scene(scene, project)
    with running_agent(project) as pumped:
        manager = O3DEAgentManager(config=config_of({"socket_port": pumped.server.port, "token": TOKEN}))
        assert manager.lacking_meshes(Scene.load(scene)) == []
        write_scene(scene, box("table", (2.0, 1.0, 1.0)), box("chair"))
        assert manager.lacking_meshes(Scene.load(scene)) == ["table"]
        exported = export_scene(scene, project)
        assert manager.lacking_meshes(Scene.load(scene)) == []
        assert manager.lacking_meshes(Scene.load(exported)) == []
        manager.close()


def test_objects_may_be_called_like_what_the_level_needs(tmp_path):
    names = ["robot", GROUND, ENVIRONMENT, BUILT, BUILT_PLAIN]
    objects = [box(name, translate=Vector3(3.0 * index, 0, 0.5)) for index, name in enumerate(names)]
    project = tmp_path / "project"
    project.mkdir()
    with running_agent(project) as pumped:
        found = built(pumped, write_scene(tmp_path / "room.json", *objects))
        assert sorted(found) == sorted(f"{name} of the scene" for name in names)
        marks = [entity.name for entity in pumped.editor.level.template.values()]
        assert [marks.count(name) for name in ("robot", BUILT, BUILT_PLAIN)] == [0, 0, 1]


def test_a_stretched_object_with_a_part_turned_by_half_stays_one(tmp_path):
    project = tmp_path / "project"
    project.mkdir()
    turned = Part(shape="box", size=(1.0, 1.0, 1.0), rotate=(0, 0, 180))
    scene = write_scene(
        tmp_path / "room.json", SceneObject(name="bar", parts=[turned], scale=(3.0, 1.0, 1.0))
    )
    export_scene(scene, project)
    with running_agent(project) as pumped:
        found = built(pumped, scene)
    assert list(found) == ["bar"]
    assert found["bar"].asset_path is not None
