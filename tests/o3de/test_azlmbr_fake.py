"""The made-up azlmbr is as unforgiving as the real one, call by call."""

import importlib
import json
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from o3de_sim.constants import GROUND
from o3de_sim.o3de_api.interface.math import from_o3de_euler_degrees
from proctor.core.types import Pose2, Vector3
from proctor.o3de.robot_prefab import ROBOT_PREFAB
from proctor.o3de.standin.fake_azlmbr import CALL_HANDLERS, calls
from proctor.o3de.standin.fake_editor import EditorHang, FakeEditor
from proctor.o3de.standin.level import component_kinds
from proctor.o3de.standin.level_scene import scene_of_level
from proctor.o3de.standin.project_files import PRIMITIVES, ROBOT_PRODUCT, prepare_project
from proctor.scenes.frames import frame_of, frame_of_part

NAMES = ("bus", "editor", "entity", "components", "math", "asset", "prefab", "physics", "atom", "paths")
BOX = "objects/_primitives/_box_1x1.fbx.azmodel"
MODEL = "Controller|Configuration|Model Asset"
STATIC, DYNAMIC = "PhysX Static Rigid Body", "PhysX Dynamic Rigid Body"
COLLIDER = "PhysX Primitive Collider"


class Script:
    """A script in the Editor, with short words for what the tests do often."""

    def __init__(self, editor):
        self.editor_ = editor
        self.general = importlib.import_module("azlmbr.legacy.general")
        for name in NAMES:
            setattr(self, name, importlib.import_module(f"azlmbr.{name}"))

    def tools(self, event, *arguments):
        return self.editor.ToolsApplicationRequestBus(self.bus.Broadcast, event, *arguments)

    def on(self, event, *arguments):
        return self.editor.EditorComponentAPIBus(self.bus.Broadcast, event, *arguments)

    def transform(self, event, *arguments):
        return self.components.TransformBus(self.bus.Event, event, *arguments)

    def position(self, entity):
        found = self.transform("GetWorldTranslation", entity)
        return None if found is None else (found.x, found.y, found.z)

    def move(self, entity, *xyz):
        self.transform("SetWorldTranslation", entity, self.math.Vector3(*xyz))

    def rename(self, entity, name):
        self.editor.EditorEntityAPIBus(self.bus.Event, "SetName", entity, name)

    def create(self, name, *xyz, parent=None):
        at = self.math.Vector3(*map(float, xyz or (0, 0, 0)))
        made = self.tools("CreateNewEntityAtPosition", at, parent or self.entity.EntityId())
        self.rename(made, name)
        return made

    def type_of(self, name):
        (found,) = self.on("FindComponentTypeIdsByEntityType", [name], self.entity.EntityType().Game)
        return found

    def add(self, entity, name):
        return self.on("AddComponentsOfType", entity, [self.type_of(name)]).GetValue()[0]

    def set(self, component, path, value):
        return self.on("SetComponentProperty", component, path, value)

    def find(self, name):
        search = self.entity.SearchFilter()
        search.names, search.names_case_sensitive = [name], True
        found = self.entity.SearchBus(self.bus.Broadcast, "SearchEntities", search)
        return found[0] if found else self.entity.EntityId()

    def quaternion(self, *degrees):
        return self.math.Quaternion(*from_o3de_euler_degrees(degrees).to_xyzw())

    def asset_id(self, product):
        return self.asset.AssetCatalogRequestBus(
            self.bus.Broadcast, "GetAssetIdByPath", product, self.math.Uuid(), False
        )

    def create_level(self, name="L"):
        return self.general.create_level_no_prompt("Prefabs/Default_Level.prefab", name, 1024, 1, 4096, False)

    def reopen(self, name="L"):
        assert self.general.open_level_no_prompt(name)
        self.editor_.frame()

    def instantiate(self, path, *xyz):
        at = self.math.Vector3(*map(float, xyz))
        return self.prefab.PrefabPublicRequestBus(
            self.bus.Broadcast, "InstantiatePrefab", path, self.entity.EntityId(), at
        )


@pytest.fixture
def editor(tmp_path):
    editor = FakeEditor(tmp_path / "project")
    editor.project.mkdir()
    with editor.installed():
        yield editor


@pytest.fixture
def az(editor):
    """A script in an Editor with a new level open."""
    script = Script(editor)
    assert script.create_level() == 0
    editor.frame()
    assert not editor.unknown_calls
    return script


def scene(editor):
    return scene_of_level("L", editor.level.template, editor.assets)


def test_every_call_of_the_table_can_be_made():
    for call in calls():
        if call.kind in ("event", "broadcast", "function"):
            assert (call.bus or call.module, call.name) in CALL_HANDLERS, call
        assert call.source
    assert len({(call.module, call.bus, call.kind, call.name) for call in calls()}) == len(calls())


def test_what_is_not_known_gives_nothing_and_is_written_down(az, editor):
    chair = az.create("chair")
    nothing = [
        az.tools("CloneEntity", chair),  # no such event
        az.tools("EntityExists"),  # too few
        az.tools("EntityExists", chair, chair),  # too many
        az.transform("SetWorldTranslation", chair, [1.0, 2.0, 3.0]),  # a list is no Vector3
        az.components.TransformBus(az.bus.Broadcast, "GetWorldTranslation", chair),  # not for all
        az.editor.NoSuchBus(az.bus.Broadcast, "Anything"),
        az.general.create_level_no_prompt("L2", 0),
        az.general.set_cvar_integer("a", 1.5),
        az.general.set_cvar_integer("a", True),
        az.general.idle_enable(1),
        az.math.Vector3(1.0, 2.0, 3.0).length,
        chair.number,
    ]
    assert nothing == [None] * len(nothing)
    assert len(editor.unknown_calls) == len(nothing)
    assert az.position(chair) == (0.0, 0.0, 0.0)
    filter_ = az.entity.SearchFilter()
    filter_.name = "chair"  # it is called names
    assert editor.unknown_calls[-1] == "SearchFilter.name = ..."


def test_ids_cannot_be_made_of_numbers_nor_be_keys(az):
    chair = az.create("chair")
    number = int(chair.ToString().strip("[]"))
    assert chair.IsValid()
    assert not az.entity.EntityId(number).IsValid()
    again = az.find("chair")
    assert chair == again
    assert again not in {chair: True}
    assert not az.find("Chair").IsValid()


def test_names_are_searched_with_wildcards_in_any_case_unless_told_otherwise(az):
    for name in ("chair", "Chair", "chair_2"):
        az.create(name)

    def found(pattern, **settings):
        search = az.entity.SearchFilter()
        search.names = [pattern]
        for key, value in settings.items():
            setattr(search, key, value)
        return len(az.entity.SearchBus(az.bus.Broadcast, "SearchEntities", search))

    assert (found("chair"), found("chair*"), found("chair", names_case_sensitive=True)) == (2, 3, 1)
    assert found("L") == 1  # the level is an entity, too


def test_components_are_known_by_their_exact_names(az):
    assert az.type_of("Point Light").IsNull()
    assert az.type_of("PhysX static rigid body").IsNull()
    assert not az.type_of(STATIC).IsNull()
    chair = az.create("chair")
    outcome = az.on("AddComponentsOfType", chair, [az.type_of("Meshes")])
    assert not outcome.IsSuccess()
    assert outcome.GetError()
    az.add(chair, "Mesh")
    assert az.on("HasComponentOfType", chair, az.type_of("Mesh"))


def test_properties_need_their_path_and_their_type(az, editor):
    mesh = az.add(az.create("chair"), "Mesh")
    assert not az.set(mesh, "Controller|Configuration|Mesh Asset", az.asset_id(BOX)).IsSuccess()
    assert not az.set(mesh, MODEL, BOX).IsSuccess()  # a text is no asset
    assert az.set(mesh, MODEL, az.asset_id(BOX)).IsSuccess()
    body = az.add(az.create("ball"), DYNAMIC)
    assert az.set(body, "Configuration|Mass", 2).IsSuccess()  # numbers become each other
    assert not az.set(body, "Configuration|Compute Mass", 0).IsSuccess()  # but not a bool
    assert not az.set(body, "Configuration|Mass", True).IsSuccess()
    assert az.on("GetComponentProperty", body, "Configuration|Mass").GetValue() == 2.0
    assert az.set(body, "Configuration|Mass", None).IsSuccess()  # sets it back, and says yes
    assert az.on("GetComponentProperty", body, "Configuration|Mass").GetValue() == 0.0
    assert not editor.unknown_calls


def test_wrapped_components_are_not_to_be_touched(az, editor):
    robot = az.create("robot")
    frame, lidar = az.add(robot, "ROS2 Frame"), az.add(robot, "ROS2 Lidar 2D Sensor")
    az.set(frame, "anything", 1.0)
    assert not editor.corrupted
    az.set(lidar, "anything", 1.0)
    assert editor.corrupted


@pytest.mark.parametrize("how", ["save", "play"])
def test_transforms_are_lost_outside_of_an_undo_batch(az, editor, how):
    lost, kept = az.create("lost"), az.create("kept")
    az.tools("AddDirtyEntity", lost)  # nobody listens
    az.move(lost, 1.0, 0.0, 0.0)
    az.tools("BeginUndoBatch", "move")
    az.tools("AddDirtyEntity", kept)
    az.move(kept, 2.0, 0.0, 0.0)
    az.tools("EndUndoBatch")
    assert (az.position(lost)[0], az.position(kept)[0]) == (1.0, 2.0)
    if how == "save":
        assert az.general.save_level()
        az.reopen()
        find = az.find
        assert not az.tools("EntityExists", kept)  # they are others now
    else:
        az.general.enter_game_mode()
        editor.frame()
        find = az.general.find_game_entity
    assert (az.position(find("lost"))[0], az.position(find("kept"))[0]) == (0.0, 2.0)


def test_what_sets_a_component_records_the_whole_entity(az, editor):
    chair = az.create("chair")
    az.move(chair, 1.0, 0.0, 0.0)
    az.add(chair, "Mesh")
    assert editor.level.template[chair.number_].placement.translation == (1.0, 0.0, 0.0)


def test_game_mode_comes_and_goes_with_frames(az, editor):
    chair, told = az.create("chair"), []
    editor.on_game_mode = told.append
    editor.game_transform = lambda name: (
        editor.level.live[chair.number_].placement._replace(translation=(9.0, 9.0, 9.0))
        if name == "robot"
        else None
    )
    robot = az.create("robot")
    az.add(robot, DYNAMIC)
    az.create("camera", 1, 0, 0, parent=robot)
    az.move(chair, 5.0, 0.0, 0.0)
    az.general.enter_game_mode()
    assert not az.general.is_in_game_mode()
    editor.has_focus = False
    editor.frame()
    assert not az.general.is_in_game_mode()  # nothing moves without focus
    editor.has_focus = True
    editor.frame()
    assert az.general.is_in_game_mode()
    assert told == [True]
    assert az.position(chair) is None  # it is not active
    az.rename(chair, "table")
    assert not az.tools("CreateNewEntityAtPosition", az.math.Vector3(), az.entity.EntityId()).IsValid()
    assert not az.on("AddComponentsOfType", chair, [az.type_of("Mesh")]).IsSuccess()
    assert not az.general.open_level_no_prompt("L")
    assert not az.general.save_level()
    assert az.position(az.general.find_game_entity("robot")) == (9.0, 9.0, 9.0)
    assert az.position(az.general.find_game_entity("camera")) == (10.0, 9.0, 9.0)
    az.general.exit_game_mode()
    assert az.general.is_in_game_mode()
    editor.frame()
    assert told == [True, False]
    assert az.position(chair) == (0.0, 0.0, 0.0)
    assert not az.general.find_game_entity("robot").IsValid()
    assert az.find("chair").IsValid()
    assert not editor.unknown_calls


def test_physics_puts_a_body_back_that_is_moved_in_the_game(az, editor):
    az.add(az.create("ball"), DYNAMIC)
    az.general.enter_game_mode()
    editor.frame()
    ball = az.general.find_game_entity("ball")
    az.move(ball, 1.0, 0.0, 0.0)
    assert az.position(ball)[0] == 0.0


def test_waiting_for_frames_hangs_where_none_can_come(az, editor):
    seen = []

    def on_tick(arguments):
        seen.append(len(arguments))
        with pytest.raises(EditorHang):
            az.general.idle_wait_frames(1)

    handler = az.components.TickBusHandler()
    assert not handler.add_callback("OnTick", on_tick)  # not connected yet
    assert handler.connect()
    assert handler.add_callback("OnTick", on_tick)
    assert not handler.add_callback("OnTock", on_tick)
    az.general.idle_wait_frames(3)
    assert seen == [2, 2, 2]
    editor.has_focus = False
    editor.frame()
    assert len(seen) == 3
    with pytest.raises(EditorHang):
        az.general.idle_wait_frames(1)
    az.general.set_cvar_integer("ed_keepEditorActive", 1)
    editor.frame()
    assert len(seen) == 4
    handler.connect()  # which forgets the callbacks
    editor.frame()
    handler.disconnect()
    assert len(seen) == 4


def test_qt_calls_back_also_without_focus(tmp_path):
    without = FakeEditor(tmp_path)
    with without.installed(), pytest.raises(ImportError):
        importlib.import_module("azlmbr.qt_helpers")
    editor, called = FakeEditor(tmp_path, qt_helpers=True, is_starting=True), []
    with editor.installed():
        script, helpers = Script(editor), importlib.import_module("azlmbr.qt_helpers")
        handler = script.editor.EditorEventBusHandler()
        handler.connect()
        handler.add_callback("NotifyEditorInitialized", called.append)
        with pytest.raises(EditorHang):
            script.general.idle_wait_frames(1)  # the Editor is not there yet
        helpers.set_loop_callback(lambda: called.append("loop"))
        editor.has_focus = False
        editor.frame()
        editor.frame()
    assert called == [(), "loop", "loop"]
    assert editor.frame_count == 0
    assert not [name for name in sys.modules if name.startswith("azlmbr")]


def test_levels_are_made_opened_and_refused(az, editor):
    assert az.create_level() == 1  # exists
    assert az.create_level("a" * 300) == 3  # too long
    (editor.project / "Levels" / "file").write_text("")
    assert az.create_level("file") == 2  # no folder
    assert az.create_level("M") == 0
    assert az.general.get_current_level_name() == "L"
    editor.frame()
    assert az.general.get_current_level_name() == "M"
    assert not az.general.open_level_no_prompt("Levels/L")
    assert not az.general.open_level_no_prompt("nowhere")
    az.reopen("L")
    assert az.general.get_current_level_name() == "L"
    assert az.find("Sun").IsValid()
    (editor.project / "Levels" / "M" / "M.prefab").write_text("[]")
    assert not az.general.open_level_no_prompt("M")


def test_parents_carry_their_children(az, editor):
    outer, inner = az.create("outer", 1, 0, 0), az.create("inner", 1, 1, 0)
    turn = az.quaternion(0.0, 0.0, 90.0)
    az.editor.EditorEntityAPIBus(az.bus.Event, "SetParent", inner, outer)
    assert az.position(inner) == (1.0, 1.0, 0.0)
    az.transform("SetWorldRotationQuaternion", outer, turn)
    az.transform("SetLocalUniformScale", outer, 2.0)
    assert az.position(inner) == pytest.approx((-1.0, 0.0, 0.0))
    assert az.transform("GetWorldRotationQuaternion", inner).z == pytest.approx(np.sqrt(0.5))
    az.editor.EditorEntityAPIBus(az.bus.Event, "SetParent", outer, inner)  # a loop
    parents = az.editor.EditorEntityInfoRequestBus(az.bus.Event, "GetParent", outer)
    assert az.editor.EditorEntityInfoRequestBus(az.bus.Event, "GetName", parents) == "L"
    az.tools("DeleteEntityAndAllDescendants", outer)
    assert not az.tools("EntityExists", inner)


def test_a_new_entity_is_placed_in_its_parent(az, editor):
    outer = az.create("outer", 1, 2, 0)
    assert az.position(az.create("inner", 1, 0, 0, parent=outer)) == (2.0, 2.0, 0.0)


def test_those_below_an_entity_come_level_by_level(az, editor):
    top = az.create("top")
    left, right = (az.create(name, parent=top) for name in ("left", "right"))
    below = az.create("below", parent=left)
    found = az.transform("GetEntityAndAllDescendants", top)
    assert found == [top, left, right, below]


def test_only_bodies_that_can_move_answer_in_the_game(az, editor):
    for name, body in (("wall", "PhysX Static Rigid Body"), ("ball", DYNAMIC)):
        az.add(az.create(name), body)
    az.general.enter_game_mode()
    editor.frame()
    wall, ball = map(az.general.find_game_entity, ("wall", "ball"))
    answers = [
        az.physics.RigidBodyRequestBus(az.bus.Event, "IsPhysicsEnabled", body) for body in (wall, ball)
    ]
    assert answers == [None, True]


def test_the_editors_own_physics_switches_the_level_off(az, editor):
    chair = az.create("chair", 1, 0, 0)
    az.general.enter_simulation_mode()
    assert az.position(chair) is None
    assert not az.tools("CreateNewEntityAtPosition", az.math.Vector3(0.0, 0.0, 0.0), chair).IsValid()
    assert not az.general.save_level()
    az.general.exit_simulation_mode()
    assert az.position(chair) == (1.0, 0.0, 0.0)


def test_assets_are_found_by_their_products(az, editor):
    (editor.project / "Assets").mkdir()
    (editor.project / "Assets" / "Chair.gltf").write_text("{}")
    assert az.asset_id("assets/chair.gltf.azmodel").is_valid()
    assert not az.asset_id("Assets/Chair.gltf.azmodel").is_valid()
    assert not az.asset_id("assets/chair.gltf").is_valid()
    assert not az.asset_id("assets/table.gltf.azmodel").is_valid()
    assert not az.asset_id("assets/chair.gltf.pxmesh").is_valid()  # only if its settings ask for it
    assert not az.asset_id("../project/assets/chair.gltf.azmodel").is_valid()
    assert all(az.asset_id(product).is_valid() for product in PRIMITIVES)
    prepare_project(editor.project)
    assert az.asset_id(ROBOT_PRODUCT).is_valid()


def test_screenshots_take_a_frame_and_a_renderer(az, editor):
    capture = az.atom.FrameCaptureRequestBus
    outcome, results = capture(az.bus.Broadcast, "CaptureScreenshot", "view.png"), []
    handler = az.atom.FrameCaptureNotificationBusHandler()
    assert not handler.connect()
    handler.connect(outcome.GetValue())
    handler.add_callback("OnFrameCaptureFinished", lambda arguments: results.append(arguments[0]))
    assert not (editor.project / "view.png").exists()
    editor.frame()
    assert results == [az.atom.FrameCaptureResult_Success]
    assert (editor.project / "view.png").exists()
    editor.captures.has_renderer = False
    assert not capture(az.bus.Broadcast, "CaptureScreenshot", "view.png").IsSuccess()
    assert capture(az.bus.Broadcast, "CanCapture") is None


def test_prefabs_are_put_into_a_level_and_made(az, editor):
    prepare_project(editor.project)
    robot = az.instantiate(ROBOT_PREFAB, 1, 2, 0).GetValue()
    assert az.position(robot) == (1.0, 2.0, 0.0)
    assert az.position(az.find("base_scan")) == (1.0, 2.0, 0.2)
    assert not az.instantiate("Assets/nothing.prefab", 0, 0, 0).IsSuccess()
    chair = az.create("chair", 3, 0, 0)
    made = az.prefab.PrefabPublicRequestBus(
        az.bus.Broadcast, "CreatePrefabInMemory", [chair], "Assets/Chair.prefab"
    )
    assert made.IsSuccess()
    assert not az.tools("EntityExists", chair)  # it has another id now
    assert az.position(az.find("chair")) == (3.0, 0.0, 0.0)
    assert not (editor.project / "Assets" / "Chair.prefab").exists()
    az.general.save_level()
    assert "Entities" in json.loads((editor.project / "Assets" / "Chair.prefab").read_text())
    az.reopen()
    assert scene(editor).robots == [("robot", Pose2(1.0, 2.0, 0.0))]


# What a level is in the embedded world


def solid(az, name, *xyz, size=(1.0, 1.0, 1.0), body=STATIC):
    entity = az.create(name, *xyz)
    if body is not None:
        az.add(entity, body)
    collider = az.add(entity, COLLIDER)
    az.set(collider, "Shape Configuration|Shape", az.physics.ShapeType_Box)
    az.set(collider, "Shape Configuration|Box|Dimensions", az.math.Vector3(*size))
    return SimpleNamespace(entity=entity, collider=collider)


def test_only_bodies_with_colliders_collide(az, editor):
    solid(az, "bodiless", body=None)
    az.add(az.create("shapeless"), STATIC)
    solid(az, GROUND, 0, 0, -0.5)
    trigger = solid(az, "trigger")
    az.set(trigger.collider, "Collider Configuration|Trigger", True)
    az.add(solid(az, "late", body=None).entity, STATIC)
    unseen = az.create("seen")
    az.set(az.add(unseen, "Mesh"), MODEL, az.asset_id(BOX))
    objects = {item.name: item for item in scene(editor).scene.objects}
    assert {name: item.rigid_body_type for name, item in objects.items()} == {
        "late": "static",
        "seen": "none",
    }
    assert not objects["seen"].parts[0].collision


def test_sizes_and_turns_add_up(az, editor):
    outer = az.create("outer", 1, 0, 0)
    az.transform("SetLocalUniformScale", outer, 2.0)
    turn = az.quaternion(0.0, 0.0, 90.0)
    az.transform("SetWorldRotationQuaternion", outer, turn)
    box = solid(az, "box", size=(0.5, 0.25, 0.1))
    az.set(box.collider, "Collider Configuration|Offset", az.math.Vector3(0.3, 0.0, 0.0))
    az.editor.EditorEntityAPIBus(az.bus.Event, "SetParent", box.entity, outer)
    az.move(box.entity, 1.0, 0.0, 0.0)
    az.transform("SetWorldRotationQuaternion", box.entity, turn)
    az.transform("SetLocalUniformScale", box.entity, 1.0)
    az.set(az.add(box.entity, "Non-uniform Scale"), "Non-uniform Scale", az.math.Vector3(1.0, 3.0, 1.0))
    for number in (outer.number_, box.entity.number_):
        editor.level.record(number)
    (item,) = scene(editor).scene.objects
    frame = frame_of_part(item.parts[0], frame_of(item))
    np.testing.assert_allclose(frame.size, [1.0, 1.5, 0.2])
    np.testing.assert_allclose(frame.translation, [1.0, 0.6, 0.0], atol=1e-12)
    np.testing.assert_allclose(
        frame.rotation, Rotation.from_euler("z", 90, degrees=True).as_matrix(), atol=1e-12
    )


TRIANGLE = {
    "asset": {"version": "2.0"},
    "scene": 0,
    "scenes": [{"nodes": [0]}],
    "nodes": [{"mesh": 0}],
}
Z_UP = [1, 0, 0, 0, 0, 0, -1, 0, 0, 1, 0, 0, 0, 0, 0, 1]


@pytest.mark.parametrize("has_turning_root", [False, True])
def test_meshes_are_seen_as_the_engine_imports_them(az, editor, has_turning_root):
    document = {**TRIANGLE, "nodes": [{"mesh": 0, **({"matrix": Z_UP} if has_turning_root else {})}]}
    (editor.project / "chair.gltf").write_text(json.dumps(document))
    chair = solid(az, "chair", 2, 0, 0, size=(1.0, 2.0, 3.0))
    child = az.create("chair mesh", 0, 0, 0, parent=chair.entity)
    az.set(az.add(child, "Mesh"), MODEL, az.asset_id("chair.gltf.azmodel"))
    (item,) = scene(editor).scene.objects
    assert (item.name, item.asset_path, item.rigid_body_type) == ("chair", "chair.gltf", "static")
    # Proctor turns glTF upright, the engine does not; a root that turns it back is left out there.
    assert item.rotate == (Vector3(0.0, 0.0, 0.0) if has_turning_root else Vector3(-90.0, 0.0, 0.0))
    frame = frame_of_part(item.parts[0], frame_of(item))
    np.testing.assert_allclose(np.abs(frame.rotation) @ frame.size, [1.0, 2.0, 3.0], atol=1e-9)
    np.testing.assert_allclose(frame.translation, [2.0, 0.0, 0.0], atol=1e-9)


def test_lights_shine_as_they_are_turned(az, editor):
    lamp, sun = az.create("lamp", 1, 2, 3), az.create("sun")
    light = az.add(lamp, "Light")
    az.set(light, "Controller|Configuration|Color", az.math.Color(1.0, 0.5, 0.0, 1.0))
    az.set(light, "Controller|Configuration|Intensity", 1000.0)
    down = az.quaternion(-90.0, 0.0, 0.0)
    az.transform("SetWorldRotationQuaternion", sun, down)
    az.add(sun, "Directional Light")
    point, directional = scene(editor).scene.lights
    assert (point.type, point.color, point.translate) == ("point", (1.0, 0.5, 0.0), Vector3(1.0, 2.0, 3.0))
    assert point.intensity == pytest.approx(0.5)  # in Proctor's unit, 2000 lumen
    assert directional.direction.z == pytest.approx(-1.0)


def test_the_components_of_the_table_are_whole():
    for kind in component_kinds().values():
        assert set(kind.defaults) <= set(kind.properties), kind.name
        assert kind.source
