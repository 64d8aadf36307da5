"""The agent and its tools: every operation has a method, and both modes do the same."""

import inspect
import pydoc

import pytest
from o3de_editors import LEVEL, TOKEN, editor_with_level, running_agent

from o3de_sim.constants import O3DE_AGENT_PEB_MODE, O3DE_AGENT_SOCKET_MODE
from o3de_sim.editor.operation_table import TABLE
from o3de_sim.errors import O3DEError
from o3de_sim.o3de_api.interface.math import Quaternion, Vector3, euler_to_quaternion
from o3de_sim.o3de_api.interface.tools import EntityId, EntityTool
from o3de_sim.o3de_api.o3de_agent import O3DEAgent
from o3de_sim.o3de_api.peb_extras import default_agent, ros2_tool, simulation_tool

TOOLS = (
    *("entity_tool", "editor_tool", "tc", "pc", "render_tool", "asset_tool", "prefab_tool", "general"),
    *("simulation_tool", "ros2_tool"),
)


def methods():
    agent = O3DEAgent()
    found = {"hello": None, "ping": agent.ping, "selftest": agent.selftest}
    for tool in TOOLS:
        members = inspect.getmembers(getattr(agent, tool), inspect.ismethod)
        found |= {f"{tool}.{name}": member for name, member in members if not name.startswith("_")}
    return found


def test_there_is_a_method_for_every_operation_and_no_other():
    assert set(methods()) == set(TABLE)


@pytest.mark.parametrize("op", sorted(set(TABLE) - {"hello"}))
def test_a_method_takes_the_arguments_of_its_operation(op):
    parameters = dict(inspect.signature(methods()[op]).parameters)
    parameters.pop("timeout_s", None)
    assert list(parameters) == [argument.name for argument in TABLE[op].arguments]
    for argument in TABLE[op].arguments:
        has_default = parameters[argument.name].default is not inspect.Parameter.empty
        assert has_default == (not argument.is_needed), argument.name
    assert inspect.getdoc(methods()[op])


def test_help_on_a_tool_shows_the_arguments_of_its_methods():
    page = pydoc.plain(pydoc.render_doc(EntityTool))
    assert "set_name(self, entity, name, timeout_s=None)" in page


def use_the_tools(agent):  # noqa: PLR0915
    """Do a bit of everything."""
    assert agent.info["protocol"] == 1
    assert agent.info["level"] == LEVEL
    assert set(agent.info["operations"]) == set(TABLE)
    agent.ping()
    turn = euler_to_quaternion([10, 20, 30])
    table = agent.entity_tool.create("table", {"x": 1, "y": 2, "z": 3})
    assert isinstance(table, EntityId)
    cup = agent.editor_tool.create_new_entity_at_position((0, 0, 1), table)
    agent.entity_tool.set_name(cup, "cup")
    agent.tc.set_pose(table, Vector3(4, 5, 6), turn)
    agent.tc.set_scale(cup, 0.5)
    agent.tc.set_scale(table, [1, 2, 3])
    agent.pc.add_rigid_body(table, "dynamic", mass=3.0)
    agent.pc.add_colliders(table, [{"shape": "box", "size": [1, 1, 1], "translate": (0, 0, 0.5)}])
    agent.render_tool.add_mesh(table, primitive="box")
    agent.render_tool.add_light(cup, "point", intensity=100)
    agent.general.wait_for_propagation(3)
    place, rotation = agent.tc.get_position(table), agent.tc.get_rotation(table)
    assert isinstance(place, Vector3)
    assert isinstance(rotation, Quaternion)
    assert place.distance([4, 5, 6]) < 1e-5
    assert tuple(rotation) == pytest.approx(tuple(turn), abs=1e-6)
    assert agent.entity_tool.find("cup") == [cup]
    assert agent.entity_tool.children(table) == [cup]
    assert agent.entity_tool.get_name(cup) == "cup"
    assert agent.pc.has_physics(table)
    assert agent.entity_tool.components(table, ["Mesh", "Camera"]) == [True, False]
    assert agent.asset_tool.exists(["Assets/none.gltf"]) == [False]
    assert agent.editor_tool.level_exists("another") is False
    agent.editor_tool.save_level()
    assert agent.editor_tool.level_exists(LEVEL)
    agent.simulation_tool.enter_game_mode()
    assert agent.simulation_tool.is_in_game_mode()
    assert isinstance(agent.entity_tool.find_game("table"), EntityId)
    assert agent.entity_tool.find_game("chair") is None
    with pytest.raises(O3DEError, match="exit_game_mode") as caught:
        agent.tc.set_position(table, [0, 0, 0])
    assert caught.value.code == "bad_state"
    agent.simulation_tool.exit_game_mode()
    agent.entity_tool.delete(table)
    assert not agent.entity_tool.exists(cup)
    with pytest.raises(O3DEError) as caught:
        agent.tc.get_position(table)
    assert caught.value.code == "not_found"


def test_through_the_socket(tmp_path):
    with running_agent(tmp_path) as pumped:
        with O3DEAgent(O3DE_AGENT_SOCKET_MODE, port=pumped.server.port, token=TOKEN, timeout_s=10) as agent:
            use_the_tools(agent)
        assert pumped.editor.unknown_calls == []


def test_inside_the_editor(tmp_path):
    with editor_with_level(tmp_path) as editor:
        with O3DEAgent(O3DE_AGENT_PEB_MODE, timeout_s=10) as agent:
            use_the_tools(agent)
        assert editor.unknown_calls == []


def test_the_documents_way_to_game_mode(tmp_path, monkeypatch):
    with editor_with_level(tmp_path):
        default_agent.cache_clear()
        simulation_tool.enter_game_mode()
        simulation_tool.toggle_physics(True)
        assert simulation_tool.is_in_game_mode()
        simulation_tool.exit_game_mode()
        assert not simulation_tool.is_in_game_mode()
        assert isinstance(ros2_tool.is_available(), bool)
        assert default_agent().mode == O3DE_AGENT_PEB_MODE
    monkeypatch.setenv("O3DE_AGENT_TOKEN", TOKEN)
    with running_agent(tmp_path / "other") as pumped:
        monkeypatch.setenv("O3DE_AGENT_PORT", str(pumped.server.port))
        monkeypatch.setattr(f"{default_agent.__module__}.azlmbr_is_here", lambda: False)  # another process
        default_agent.cache_clear()
        assert simulation_tool.is_in_game_mode() is False
        assert default_agent().mode == O3DE_AGENT_SOCKET_MODE
        default_agent().close()
    default_agent.cache_clear()


def test_what_the_editor_never_finishes_times_out(tmp_path):
    with editor_with_level(tmp_path), O3DEAgent(O3DE_AGENT_PEB_MODE) as agent:
        with pytest.raises(O3DEError, match=r"wait_for_propagation.* 0.01 s") as caught:
            agent.general.wait_for_propagation(10_000, timeout_s=0.01)
        assert caught.value.code == "timeout"


def test_outside_of_the_editor_peb_mode_says_so():
    with pytest.raises(O3DEError, match="use mode 'socket'") as caught:
        O3DEAgent(O3DE_AGENT_PEB_MODE)
    assert caught.value.code == "connection"


def test_a_mode_or_port_that_is_none_is_refused(monkeypatch):
    with pytest.raises(O3DEError, match="expected 'socket' or 'peb', found 'tcp'"):
        O3DEAgent("tcp")
    with pytest.raises(O3DEError, match="port: expected a port from 1 to 65535, found '70000'"):
        O3DEAgent(port=70000)
    monkeypatch.setenv("O3DE_AGENT_PORT", "http")
    with pytest.raises(O3DEError, match=r"O3DE_AGENT_PORT: .* found 'http'"):
        O3DEAgent()
