"""An O3DE Editor without the engine: levels are built by its agent, entered, sensed and driven in."""

import math
import socket
import threading
from contextlib import contextmanager

import pytest
from commands import command
from geometry_msgs.msg import Twist
from sensor_msgs.msg import Image, LaserScan
from simulation_interfaces.msg import SimulationState
from simulation_interfaces.srv import ResetSimulation, SetSimulationState

from o3de_sim.common.scene_builder import BasicSceneBuilder
from o3de_sim.errors import O3DEError
from o3de_sim.o3de_api.o3de_agent import O3DEAgent
from proctor.cli import main
from proctor.core.errors import SimulationError
from proctor.core.types import Pose2
from proctor.o3de.robot_prefab import ROBOT_PREFAB
from proctor.o3de.standin.standin import StandIn, WorldSettings
from proctor.worlds.ros2.host.sim_host_process import Domain
from proctor.worlds.ros2.node.node import COMMANDS, SENSORS, RosNode
from proctor.worlds.ros2.robot.simulation_client import Service, SimulationClient

HEARD_S = 20.0
ROBOT = "product_asset:///assets/models/robot/robot.spawnable"
CRATE = {
    "name": "crate",
    "translate": [2.0, 0.0, 0.5],
    "parts": [{"shape": "box", "size": [1.0, 1.0, 1.0]}],
}
FORWARD = Twist()
FORWARD.linear.x = 0.5
SCENE = {"scene_name": "room", "objects": [CRATE], "lights": [{"translate": [0, 0, 2]}]}


@contextmanager
def standing_in(project, **settings):
    """Yields an Editor that runs in a thread of its own, and an agent that talks to it.

    Without a camera: a process draws in one thread only, which other tests may have chosen.
    """
    made = WorldSettings(real_time_factor=None, camera_hz=0.0, **settings)
    failures = []
    with StandIn(project, port=0, settings=made) as standin:

        def run():
            try:
                standin.run()
            except BaseException as error:  # noqa: BLE001  (of any kind: the test is to see it)
                failures.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        try:
            with O3DEAgent(port=standin.server.port) as agent:
                yield standin, agent
        finally:
            standin.stop()
            thread.join(10.0)
    assert not failures
    assert not thread.is_alive()
    assert not standin.editor.unknown_calls
    assert not standin.editor.corrupted


@pytest.fixture(scope="module")
def playing(tmp_path_factory, ros_domain):
    """An Editor in game mode with a crate 1.5 m ahead of the origin, and a node that listens."""
    with standing_in(tmp_path_factory.mktemp("project")) as (standin, agent):
        agent.editor_tool.create_level("room")
        BasicSceneBuilder(agent).build_scene(SCENE)
        agent.editor_tool.save_level()
        agent.simulation_tool.enter_game_mode()
        with RosNode("examiner") as node:
            yield standin, agent, node, SimulationClient(node)


def latest(node, kind, topic):
    heard = []
    subscription = node.create_subscription(kind, topic, heard.append, SENSORS)
    return heard, subscription


def ahead_m(scans):
    """How far it is to what is ahead."""
    return scans[-1].ranges[len(scans[-1].ranges) // 2]


def test_a_built_level_is_sensed_and_driven_in(playing):
    standin, agent, node, client = playing
    assert client.is_available(HEARD_S)
    assert client.state() == "STOPPED"
    client.respawn("robot", Pose2(0.0, 0.0, 0.0), uri=ROBOT)
    scans, _ = latest(node, LaserScan, "/scan")
    assert node.wait_until(lambda: bool(scans), HEARD_S)
    assert ahead_m(scans) == pytest.approx(1.5, abs=0.05)
    mouth = node.create_publisher(Twist, "/cmd_vel", COMMANDS)
    assert node.wait_until(lambda: mouth.get_subscription_count() == 1, HEARD_S)
    assert node.wait_until(
        lambda: mouth.publish(FORWARD) or ahead_m(scans) < 0.25, HEARD_S
    )  # of which 0.17 are the robot's own
    count = len(scans)
    assert node.wait_until(lambda: len(scans) > count + 60, HEARD_S)
    position, _ = client.position("robot")
    assert position.x == pytest.approx(1.5 - standin.world.robot.radius_m, abs=0.03)
    with pytest.raises(O3DEError, match="exit_game_mode"):
        agent.entity_tool.create("late")


def test_the_editor_allows_less_than_others(playing):
    _, _, node, client = playing
    client.play()
    features = client.features()
    assert "SPAWNING" in features
    assert "WORLD_LOADING" not in features
    served = {name for name, _ in node.get_service_names_and_types_by_node("o3de_ros2_node", "/")}
    assert "/spawn_entity" in served
    assert "/load_world" not in served
    stop = SetSimulationState.Request(state=SimulationState(state=SimulationState.STATE_STOPPED))
    answer = Service(node, SetSimulationState, "/set_simulation_state").call(stop, HEARD_S)
    assert "cannot be stopped" in answer.result.error_message
    reset = Service(node, ResetSimulation, "/reset_simulation")
    scopes = ResetSimulation.Request
    for scope, code in {scopes.SCOPE_ALL: 0, scopes.SCOPE_SPAWNED: 1, scopes.SCOPE_TIME: 1}.items():
        assert reset.call(ResetSimulation.Request(scope=scope), HEARD_S).result.result == code
    with pytest.raises(SimulationError, match=r"NO_RESOURCE \(104\)"):
        client.respawn("robot", Pose2(0.0, 0.0, 0.0), uri="proctor://robots/wheeled")


def test_ros_is_there_in_game_mode_only_and_time_begins_anew(playing):
    standin, agent, node, client = playing
    client.play()
    assert node.wait_until(lambda: standin.world.time_s > 1.0, HEARD_S)
    agent.simulation_tool.exit_game_mode()
    assert standin.world is None
    assert node.wait_until(lambda: not client.is_available(), HEARD_S)
    crate = agent.entity_tool.find("crate")[0]
    agent.tc.set_position(crate, [3.0, 0.0, 0.5])
    agent.simulation_tool.enter_game_mode()
    assert client.is_available(HEARD_S)
    assert standin.world.time_s == 0.0
    client.respawn("robot", Pose2(0.0, 0.0, 0.0), uri=ROBOT)
    scans, _ = latest(node, LaserScan, "/scan")
    assert node.wait_until(lambda: bool(scans) and abs(ahead_m(scans) - 2.5) < 0.05, HEARD_S)


@pytest.fixture
def own_domain():
    domain = Domain()
    with domain.entered():
        yield
    domain.close()


def test_without_simulation_interfaces_the_robot_stands_in_the_level(tmp_path, own_domain):
    with standing_in(tmp_path, has_simulation_interfaces=False) as (_, agent), RosNode("driver") as node:
        agent.editor_tool.open_level("scene_001")
        placed = agent.prefab_tool.instantiate(ROBOT_PREFAB, [1.0, 2.0, 0.0], name="robot")
        assert agent.ros2_tool.missing_components(placed) == []
        agent.simulation_tool.enter_game_mode()
        mouth = node.create_publisher(Twist, "/cmd_vel", COMMANDS)
        assert node.wait_until(lambda: mouth.get_subscription_count() == 1, HEARD_S)
        assert not SimulationClient(node).is_available()
        robot = agent.entity_tool.find_game("robot")
        assert agent.tc.get_position(robot).to_list() == pytest.approx([1.0, 2.0, 0.0], abs=1e-3)
        assert node.wait_until(
            # Again and again: the first may come before the robot knows who speaks.
            lambda: mouth.publish(FORWARD) or agent.tc.get_position(robot).x > 1.5,
            HEARD_S,
        )
        assert agent.tc.get_position(robot).y == pytest.approx(2.0, abs=0.01)
        turn = agent.tc.get_rotation(robot)
        assert 2 * math.atan2(turn.z, turn.w) == pytest.approx(0.0, abs=0.01)
        agent.simulation_tool.exit_game_mode()
        assert agent.tc.get_position(placed).to_list() == pytest.approx([1.0, 2.0, 0.0])


def test_the_launcher_loads_levels_and_nothing_else_and_sees_as_o3de_does(tmp_path, own_domain):
    arguments = ("--project", str(tmp_path), "--launcher", "--size", "32x24", "--rtf", "max")
    with command("o3de-standin", *arguments) as process, RosNode("examiner") as node:
        client = SimulationClient(node)
        assert client.is_available(HEARD_S)
        assert client.state() == "NO_WORLD"
        for uri in (
            "levels/no/no.spawnable",
            "product_asset:///levels/scene_001/scene_001.spawnable",
            ROBOT,
            str(tmp_path / "x.json"),
        ):
            with pytest.raises(SimulationError, match="MISSING_ASSETS"):
                client.load_world(uri)
        client.load_world("levels/scene_001/scene_001.spawnable")
        assert client.state() == "STOPPED"
        client.respawn("robot", Pose2(1.0, 0.0, 0.0), uri=ROBOT)
        assert client.position("robot")[0].x == pytest.approx(1.0)
        pictures, _ = latest(node, Image, "/rgb")
        depths, _ = latest(node, Image, "/depth")
        assert node.wait_until(lambda: bool(pictures and depths), HEARD_S)
        assert (pictures[-1].encoding, depths[-1].encoding) == ("rgba8", "32FC1")
        assert process.close() == 0


def test_the_command_says_what_is_wrong(tmp_path, capsys):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        assert main(["o3de-standin", "--project", str(tmp_path), "--port", port, "--camera-hz", "0"]) == 2
    assert f"port {port}" in capsys.readouterr().err
    for wrong in (["--camera-hz", "99"], ["--size", "big"], ["--port", "70000"], ["--rtf", "fast"]):
        assert main(["o3de-standin", "--project", str(tmp_path), *wrong]) == 2
    assert main(["o3de-standin", "--launcher", "--no-simulation-interfaces"]) == 2
