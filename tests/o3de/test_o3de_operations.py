"""Every operation, on a made-up Editor that takes nothing that the real one would not take."""

import json
import math
import re

import pytest
from editor_agents import EditorAgent

from o3de_sim.editor.operation_table import TABLE
from o3de_sim.errors import O3DEError

TURN = [0.0, 0.0, math.sin(0.6), math.cos(0.6)]
QUAD = {
    "asset": {"version": "2.0"},
    "scene": 0,
    "scenes": [{"nodes": [0]}],
    "nodes": [
        {"children": [1], "translation": [1, 2, 3]},
        {"mesh": 0, "rotation": [0, 0, math.sqrt(0.5), math.sqrt(0.5)], "scale": [2, 1, 1]},
    ],
    "meshes": [{"primitives": [{"attributes": {"POSITION": 0}}]}],
    "accessors": [
        {"min": [0, 0, 0], "max": [1, 0.5, 0.25], "componentType": 5126, "count": 3, "type": "VEC3"}
    ],
}


@pytest.fixture
def agent(tmp_path):
    project = tmp_path / "project"
    (project / "Assets/Models").mkdir(parents=True)
    (project / "Assets/Models/Chair.gltf").write_text(json.dumps(QUAD))
    (project / "Assets/Models/robot.prefab").write_text(
        json.dumps({"ContainerEntity": {"Name": "r"}, "Entities": {}})
    )
    with EditorAgent(project).running() as running:
        yield running


def refused(agent, code, op, **args):
    with pytest.raises(O3DEError) as caught:
        agent.call(op, **args)
    assert caught.value.code == code, caught.value.message
    return caught.value.message


def test_every_operation_does_what_it_says(agent):  # noqa: PLR0915
    call = agent.call
    hello = call("hello", token="whatever: it is looked at where it comes in")
    assert hello["operations"] == list(TABLE)
    assert hello["protocol"] == 1
    assert hello["level"] == ""
    assert not call("editor_tool.level_exists", name="lab")
    call("editor_tool.create_level", name="lab")
    assert call("editor_tool.current_level") == "lab"
    assert call("editor_tool.level_exists", name="lab")
    before = call("ping")["frame"]
    call("general.wait_for_propagation", frames=3)
    assert call("ping")["frame"] >= before + 3

    table = call("entity_tool.create", name="table", position=[1, 2, 3])
    assert call("entity_tool.find", name="table") == [table]
    assert call("entity_tool.find", name="Table") == []
    leg = call("editor_tool.create_new_entity_at_position", position=[1, 2, 2.5], parent=table)
    assert call("entity_tool.children", entity=table) == [leg]
    assert call("tc.get_position", entity=leg) == pytest.approx([1, 2, 2.5])  # in the world
    call("entity_tool.set_name", entity=leg, name="leg")
    assert call("entity_tool.get_name", entity=leg) == "leg"
    other = call("entity_tool.create", name="other")
    call("entity_tool.set_parent", entity=leg, parent=other)
    assert call("entity_tool.children", entity=table) == []
    assert call("tc.get_position", entity=leg) == pytest.approx([1, 2, 2.5])

    call("tc.set_position", entity=table, position=[-1, 0.5, 0])
    call("tc.set_rotation", entity=table, rotation=TURN)
    assert call("tc.get_rotation", entity=table) == pytest.approx(TURN)
    call("tc.set_pose", entity=table, position=[4, 5, 6], rotation=TURN)
    call("tc.set_scale", entity=table, scale=1.5)
    call("tc.set_scale", entity=other, scale=[1, 2, 3])
    call("tc.set_scale", entity=other, scale=[3, 2, 1])

    assert not call("pc.has_physics", entity=table)
    call("pc.add_rigid_body", entity=table, type="dynamic", mass=12.5)
    shapes = [{"shape": shape, "size": [0.4, 0.4, 1.2]} for shape in ("box", "sphere", "cylinder", "capsule")]
    shapes[0].update(translate=[0, 0, 0.5], rotate=TURN)
    call("pc.add_colliders", entity=table, colliders=shapes)
    assert call("pc.has_physics", entity=table)
    assert call(
        "entity_tool.components", entity=table, names=["PhysX Dynamic Rigid Body", "Mesh", "Nose"]
    ) == [
        True,
        False,
        False,
    ]
    call("render_tool.add_mesh", entity=table, asset_path="Assets/Models/Chair.gltf")
    call("render_tool.add_mesh", entity=other, primitive="plane")
    call("render_tool.add_light", entity=leg, type="point", color=[1, 0.5, 0.25], intensity=300)
    call("render_tool.add_light", entity=other, type="directional")
    assert call("render_tool.screenshot", path="view.png") == "user/screenshots/view.png"
    assert (agent.editor.project / "user/screenshots/view.png").stat().st_size > 0
    paths = ["Assets/Models/Chair.gltf", "Assets/Models/robot.prefab", "Assets/no.gltf"]
    assert call("asset_tool.exists", paths=paths) == [True, True, False]
    bounds = call("asset_tool.bounds", path="Assets/Models/Chair.gltf")
    assert bounds["low"] == pytest.approx([0.5, 2, 3])  # scaled, turned by a quarter about z, moved
    assert bounds["high"] == pytest.approx([1, 4, 3.25])

    robot = call(
        "prefab_tool.instantiate", path="Assets/Models/robot.prefab", position=[2, 2, 0], name="robot"
    )
    assert call("entity_tool.find", name="robot") == [robot]
    assert call("ros2_tool.is_available") is True
    assert "ROS2 Lidar 2D Sensor" in call("ros2_tool.missing_components", entity=robot)
    made = call("prefab_tool.create", entities=[other], path="Assets/Models/other.prefab")
    assert call("entity_tool.exists", entity=made)
    call("editor_tool.save_level")

    call("simulation_tool.toggle_physics", enabled=True)
    assert agent.editor.is_in_simulation_mode
    call("simulation_tool.toggle_physics", enabled=False)
    assert not call("simulation_tool.is_in_game_mode")
    call("simulation_tool.enter_game_mode")
    call("simulation_tool.enter_game_mode")
    assert call("simulation_tool.is_in_game_mode")
    call("simulation_tool.toggle_physics", enabled=True)
    moving = call("entity_tool.find_game", name="table")
    assert moving != table
    assert call("tc.get_position", entity=moving) == pytest.approx([4, 5, 6])  # what was edited was not lost
    assert call("tc.get_rotation", entity=moving) == pytest.approx(TURN)
    assert call("entity_tool.find_game", name="nobody") is None
    call("simulation_tool.exit_game_mode")
    call("simulation_tool.exit_game_mode")
    assert not call("entity_tool.exists", entity=moving)

    call("entity_tool.delete", entity=table)
    assert not call("entity_tool.exists", entity=table)
    assert all(check["ok"] for check in call("selftest"))
    assert call("entity_tool.find", name="o3de_sim_selftest") == []
    call("editor_tool.create_level", name="second")
    call("editor_tool.open_level", name="lab")
    assert len(call("entity_tool.find", name="robot")) == 1
    assert set(agent.asked) == set(TABLE) - {"pc.add_mesh_collider"}  # which has tests of its own


@pytest.mark.parametrize("template", ["Basic", "Default_Level"])
def test_a_new_level_has_light_and_nothing_in_the_way(agent, template):
    folder = agent.editor.project / "Cache/engine/Assets/Editor/Prefabs"
    folder.mkdir(parents=True)
    (folder / f"{template}.prefab").touch()
    agent.level()
    named = {
        name: len(agent.call("entity_tool.find", name=name)) for name in ("Sun", "Ground", "Shader Ball")
    }
    assert named == {"Sun": 1, "Ground": 0, "Shader Ball": 0}
    assert len(agent.call("entity_tool.find", name="Grid")) == (template != "Basic")  # by which it was made


def test_what_is_edited_is_in_the_saved_level(agent):
    agent.level()
    table = agent.call("entity_tool.create", name="table")
    agent.call("tc.set_pose", entity=table, position=[7, 8, 9], rotation=TURN)
    agent.call("tc.set_scale", entity=table, scale=2)
    agent.call("editor_tool.save_level")
    agent.call("editor_tool.open_level", name="lab")
    (table,) = agent.call("entity_tool.find", name="table")
    assert agent.call("tc.get_position", entity=table) == pytest.approx([7, 8, 9])
    assert agent.call("tc.get_rotation", entity=table) == pytest.approx(TURN)


def test_names_with_wild_cards_are_found_exactly(agent):
    agent.level()
    plain = agent.call("entity_tool.create", name="lamp1")
    odd = agent.call("entity_tool.create", name="lamp?")
    assert agent.call("entity_tool.find", name="lamp?") == [odd]
    assert agent.call("entity_tool.find", name="lamp*") == []
    assert agent.call("entity_tool.find", name="lamp1") == [plain]


def test_colliders_are_written_as_the_engine_wants_them(agent):
    agent.level()
    thing = agent.call("entity_tool.create", name="thing")
    agent.call("pc.add_rigid_body", entity=thing, type="kinematic", mass=2)
    colliders = [
        {"shape": "cylinder", "size": [0.6, 0.6, 1.1], "translate": [0, 0, 0.55]},
        {"shape": "capsule", "size": [0.2, 0.2, 0.9]},
    ]
    agent.call("pc.add_colliders", entity=thing, colliders=colliders)
    (entity,) = [one for one in agent.editor.level.live.values() if one.name == "thing"]
    body, cylinder, capsule = [component.properties for component in entity.components]
    assert body["Configuration|Type"] is True
    assert body["Configuration|Compute Mass"] is False
    assert body["Configuration|Mass"] == 2.0
    assert cylinder["Shape Configuration|Shape"] == 3
    assert cylinder["Shape Configuration|Cylinder|Radius"] == pytest.approx(0.3)
    assert cylinder["Shape Configuration|Cylinder|Height"] == pytest.approx(1.1)
    assert capsule["Shape Configuration|Shape"] == 2
    assert capsule["Shape Configuration|Capsule|Height"] == pytest.approx(0.9)


BAD_ARGUMENTS = [
    ({"op": "tc.set_positon"}, "unknown_op", "did you mean tc.set_position"),
    ({"op": "entity_tool.create", "nam": "x"}, "bad_request", "no argument .nam.; did you mean name"),
    ({"op": "entity_tool.create"}, "bad_request", 'needs the argument "name"'),
    ({"op": "entity_tool.create", "name": ""}, "bad_request", "1 to 128 printable"),
    ({"op": "entity_tool.create", "name": "a\nb"}, "bad_request", "printable"),
    ({"op": "entity_tool.create", "name": "x" * 129}, "bad_request", "found a text of 129"),
    ({"op": "entity_tool.create", "name": None}, "bad_request", "found None"),
    (
        {"op": "entity_tool.create", "name": "x", "position": [0, 0]},
        "bad_request",
        "3 numbers.*found a list of 2",
    ),
    ({"op": "entity_tool.create", "name": "x", "position": [0, 0, True]}, "bad_request", "3 numbers"),
    ({"op": "entity_tool.create", "name": "x", "position": [0, 0, 10**400]}, "bad_request", "3 numbers"),
    ({"op": "entity_tool.create", "name": "x", "position": [0, 0, float("nan")]}, "bad_request", "3 numbers"),
    ({"op": "entity_tool.delete", "entity": "table"}, "bad_request", "the id of an entity"),
    ({"op": "entity_tool.delete", "entity": "[1]"}, "not_found", "forgotten when the level changes"),
    ({"op": "entity_tool.delete", "entity": None}, "bad_request", "found None"),
    ({"op": "editor_tool.open_level", "name": "../lab"}, "bad_request", "name of a level"),
    ({"op": "editor_tool.open_level", "name": "lap"}, "not_found", "there are lab"),
    ({"op": "editor_tool.create_level", "name": "lab"}, "bad_state", "open_level"),
    ({"op": "tc.set_scale", "entity": "$", "scale": 0}, "bad_request", "or three of them"),
    ({"op": "tc.set_rotation", "entity": "$", "rotation": [0, 0, 0, 0]}, "bad_request", "length one"),
    ({"op": "tc.set_rotation", "entity": "$", "rotation": [0, 0, 0]}, "bad_request", "length one"),
    ({"op": "pc.add_rigid_body", "entity": "$", "type": "soft"}, "bad_request", "one of static, dynamic"),
    ({"op": "pc.add_rigid_body", "entity": "$", "type": "static", "mass": 1}, "bad_request", "no .mass"),
    ({"op": "pc.add_colliders", "entity": "$", "colliders": []}, "bad_request", "a list of 1 to 4096"),
    (
        {"op": "pc.add_colliders", "entity": "$", "colliders": [{"shape": "box"}]},
        "bad_request",
        r"\[0\].*size",
    ),
    (
        {"op": "pc.add_colliders", "entity": "$", "colliders": [{"shape": "box", "size": [1, 1, 1]}]},
        "bad_state",
        "pc.add_rigid_body",
    ),
    (
        {"op": "pc.add_colliders", "entity": "$", "colliders": [{"shape": "capsule", "size": [1, 1, 0.5]}]},
        "bad_request",
        "higher",
    ),
    (
        {"op": "pc.add_mesh_collider", "entity": "$", "asset_path": "Assets/Models/Chair.gltf"},
        "bad_state",
        "rigid",
    ),
    ({"op": "render_tool.add_mesh", "entity": "$"}, "bad_request", "one of .asset_path. and .primitive"),
    ({"op": "render_tool.add_mesh", "entity": "$", "primitive": "cone"}, "bad_request", "one of box"),
    (
        {"op": "render_tool.add_mesh", "entity": "$", "asset_path": "Assets/no.gltf"},
        "not_found",
        "no such file",
    ),
    ({"op": "render_tool.screenshot", "path": "Levels/x.png"}, "bad_request", "below user/"),
    ({"op": "render_tool.screenshot", "path": "x.txt"}, "bad_request", ".png or .ppm"),
    ({"op": "asset_tool.bounds", "path": "Assets/no.gltf"}, "not_found", "no file"),
    ({"op": "asset_tool.bounds", "path": "Assets/Models/robot.prefab"}, "bad_request", "no sound .gltf"),
    ({"op": "prefab_tool.instantiate", "path": "Assets/no.prefab"}, "not_found", "no prefab"),
    ({"op": "prefab_tool.instantiate", "path": "Assets/Models/Chair.gltf"}, "bad_request", ".prefab file"),
    (
        {"op": "prefab_tool.create", "entities": ["$"], "path": "Assets/Models/robot.prefab"},
        "bad_state",
        "exists",
    ),
    ({"op": "general.wait_for_propagation", "frames": 1.5}, "bad_request", "whole number"),
    ({"op": "simulation_tool.toggle_physics", "enabled": 1}, "bad_request", "true or false"),
    ({"op": "entity_tool.find_game", "name": "x"}, "bad_state", "enter_game_mode"),
    ({"op": "entity_tool.set_parent", "entity": "$", "parent": "$"}, "bad_request", "cannot be its parent"),
]


@pytest.mark.parametrize(("request_", "code", "says"), BAD_ARGUMENTS, ids=lambda value: str(value)[:60])
def test_what_is_wrong_is_said(agent, request_, code, says):
    agent.level()
    entity = agent.call("entity_tool.create", name="thing")
    args = {key: {"$": entity}.get(str(value), value) for key, value in request_.items() if key != "op"}
    args = {key: [entity] if value == ["$"] else value for key, value in args.items()}
    assert re.search(says, refused(agent, code, request_["op"], **args))


HOSTILE_PATHS = [
    "../secret.png",
    "user/../../secret.png",
    "/etc/passwd.png",
    "C:/x.png",
    "..\\secret.png",
    "user\\x.png",
    "@engroot@/x.png",
    "user/./x.png",
    "user//x.png",
    "~/x.png",
    "user/x\x00.png",
    "user/\ud800.png",
    "user/link/x.png",
    "user/" + "x" * 255 + ".png",
    "",
    7,
    ["user/x.png"],
]


@pytest.mark.parametrize("path", HOSTILE_PATHS, ids=ascii)
def test_no_path_leads_out_of_the_project(agent, tmp_path, path):
    agent.level()
    outside = tmp_path / "outside"
    outside.mkdir()
    (agent.editor.project / "user").mkdir()
    (agent.editor.project / "user/link").symlink_to(outside)
    for op in ("render_tool.screenshot", "asset_tool.bounds", "prefab_tool.instantiate"):
        wanted = (
            path.replace(".png", ".prefab") if op.startswith("prefab") and isinstance(path, str) else path
        )
        refused(agent, "bad_request", op, path=wanted)
    refused(
        agent, "bad_request", "asset_tool.exists", paths=[path] if path != "user/link/x.png" else ["../x"]
    )
    assert list(outside.iterdir()) == []


def test_the_level_is_not_edited_while_the_editors_own_physics_runs(agent):
    agent.level()
    thing = agent.call("entity_tool.create", name="thing", position=[1, 2, 3])
    agent.call("simulation_tool.toggle_physics", enabled=True)
    assert "toggle_physics(false)" in refused(agent, "bad_state", "entity_tool.delete", entity=thing)
    assert "toggle_physics(false)" in refused(agent, "bad_state", "tc.get_position", entity=thing)
    agent.call("simulation_tool.enter_game_mode")
    assert not agent.editor.is_in_simulation_mode
    agent.call("simulation_tool.exit_game_mode")
    assert agent.call("tc.get_position", entity=thing) == pytest.approx([1, 2, 3])


def test_the_level_is_not_edited_while_the_game_runs(agent):
    agent.level()
    thing = agent.call("entity_tool.create", name="thing")
    agent.call("simulation_tool.enter_game_mode")
    assert "exit_game_mode" in refused(
        agent, "bad_state", "tc.set_position", entity=thing, position=[0, 0, 0]
    )
    assert "exit_game_mode" in refused(agent, "bad_state", "editor_tool.open_level", name="lab")
    assert "find_game" in refused(agent, "bad_state", "tc.get_position", entity=thing)
    moving = agent.call("entity_tool.find_game", name="thing")
    assert "running game" in refused(agent, "bad_state", "entity_tool.get_name", entity=moving)
    agent.call("simulation_tool.exit_game_mode")
    refused(agent, "not_found", "tc.get_position", entity=moving)
    assert agent.call("tc.get_position", entity=thing) == [0, 0, 0]


def test_ids_are_forgotten_with_their_level(agent):
    agent.level("first")
    thing = agent.call("entity_tool.create", name="thing")
    agent.call("editor_tool.save_level")
    agent.level("second")
    refused(agent, "not_found", "tc.get_position", entity=thing)
    agent.call("editor_tool.open_level", name="first")
    refused(agent, "not_found", "tc.get_position", entity=thing)
    (thing,) = agent.call("entity_tool.find", name="thing")
    levels = agent.editor.levels
    agent.editor.open("second", levels / "second/second.prefab")  # somebody at the Editor opens a level
    agent.editor.frame()
    assert "forgotten" in refused(agent, "not_found", "tc.get_position", entity=thing)


def test_an_entity_that_somebody_deleted_is_said_to_be_gone(agent):
    agent.level()
    thing = agent.call("entity_tool.create", name="thing")
    agent.editor.level.live.clear()
    assert "deleted" in refused(agent, "not_found", "tc.get_position", entity=thing)
    assert agent.call("entity_tool.exists", entity=thing) is False


def test_a_mesh_of_triangles_is_not_put_on_a_dynamic_body(agent):
    agent.level()
    thing = agent.call("entity_tool.create", name="thing")
    agent.call("pc.add_rigid_body", entity=thing, type="dynamic")
    args = {"entity": thing, "asset_path": "Assets/Models/Chair.gltf"}
    assert "dynamic body" in refused(agent, "bad_state", "pc.add_mesh_collider", **args)
    assert "has a rigid body" in refused(agent, "bad_state", "pc.add_rigid_body", entity=thing, type="static")
    still = agent.call("entity_tool.create", name="still")
    agent.call("pc.add_rigid_body", entity=still, type="static")
    args["entity"] = still
    assert "PhysX group" in refused(agent, "not_found", "pc.add_mesh_collider", **args)


def test_without_a_renderer_there_is_no_screenshot(agent):
    agent.level()
    agent.editor.captures.has_renderer = False
    assert "-rhi=null" in refused(agent, "az_call_failed", "render_tool.screenshot", path="view.png")


def test_without_a_level_nothing_can_be_made(agent):
    assert "Is a level open" in refused(agent, "az_call_failed", "entity_tool.create", name="thing")
    assert "no level is open" in refused(agent, "bad_state", "editor_tool.save_level")
    assert "no level is open" in refused(agent, "bad_state", "simulation_tool.enter_game_mode")


def test_an_unknown_component_is_named_with_those_like_it(agent, monkeypatch):
    monkeypatch.setattr("o3de_sim.editor.operations.bodies.STATIC", "PhysX Static Ridgid Body")
    agent.level()
    thing = agent.call("entity_tool.create", name="thing")
    said = refused(agent, "not_found", "pc.add_rigid_body", entity=thing, type="static")
    assert '"PhysX Static Ridgid Body"' in said
    assert "PhysX Static Rigid Body" in said


def test_a_call_that_the_engine_does_not_know_is_an_error(agent):
    with pytest.raises(O3DEError, match="ToolsApplicationRequestBus CloneEntity gave nothing"):
        agent.engine.broadcast("editor.ToolsApplicationRequestBus", "CloneEntity", agent.engine.no_entity())
    with pytest.raises(O3DEError, match="no_such_function"):
        agent.engine.general("no_such_function")
    with pytest.raises(O3DEError, match="NoSuchBus"):
        agent.engine.broadcast("editor.NoSuchBus", "X")
    agent.editor.unknown_calls.clear()


def test_the_selftest_finds_what_is_wrong(agent):
    agent.level()
    agent.editor.mark_dirty = lambda number: None  # as if transforms were not recorded
    record = {check["name"]: check for check in agent.call("selftest")}
    assert record["set and read pose"]["ok"]
    assert not record["the entity in the game"]["ok"]
    assert "expected position" in record["the entity in the game"]["detail"]
    assert record["delete entity"]["ok"]
    assert "Shape Configuration|Shape" in record["properties of PhysX Primitive Collider"]["detail"]


@pytest.mark.parametrize(
    "change",
    [
        {"scenes": []},
        {"nodes": [{"children": [0]}]},
        {"accessors": [{}]},
        {"accessors": [{"min": ["x"], "max": [1, 1, 1]}]},
        {"nodes": [{"mesh": -1}, {}]},
        {"nodes": 5},
        {"meshes": []},
        {"nodes": [{}, {}]},
    ],
    ids=str,
)
def test_a_broken_gltf_file_has_no_bounds(agent, change):
    path = agent.editor.project / "Assets/Models/Chair.gltf"
    path.write_text(json.dumps(QUAD | change))
    assert "Chair.gltf" in refused(agent, "bad_request", "asset_tool.bounds", path="Assets/Models/Chair.gltf")
