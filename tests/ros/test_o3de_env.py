"""Exams on O3DE: against an Editor without the engine, through its agent's socket and over ROS 2."""

import json
import math

import pytest
from nav_msgs.msg import Odometry
from o3de_standins import FAST, standin
from served_agents import free_port
from served_world import save_yard, yard_episode

from o3de_sim.o3de_api.interface import math as o3de_math
from proctor.core.errors import SimulationError, UserError
from proctor.core.registry import load, suite_path
from proctor.core.types import Action
from proctor.exams.datasets import load_dataset
from proctor.exams.vln.episode import Episode
from proctor.exams.vln.oracle import OraclePolicy
from proctor.o3de.agent_manager import BUILT, BUILT_PLAIN
from proctor.o3de.simulator import O3DEEnv, O3DESimulator
from proctor.o3de_export.project import export_scene
from proctor.worlds.mujoco.wheeled.env import VLNEnv
from proctor.worlds.ros2.node.node import RosNode
from vln_evaluator.evaluators import VLNEvaluator

FORWARD, LEFT, RIGHT, STOP = Action.FORWARD, Action.LEFT, Action.RIGHT, Action.STOP
THRESHOLD_M = 0.3
BASE_RADIUS_M = 0.17


@pytest.fixture(scope="module")
def scene(tmp_path_factory):
    return save_yard(tmp_path_factory.mktemp("yard") / "yard.json")


@pytest.fixture(scope="module")
def editor(tmp_path_factory, ros_domain):
    with standin(tmp_path_factory.mktemp("project")) as process:
        yield process


@pytest.fixture
def simulator(editor):
    simulator = O3DESimulator(config=FAST)
    yield simulator
    simulator.close()


def check_same_drive(simulator, scene, start, actions):
    """Drive in O3DE and in the embedded world."""
    x, y, yaw_deg = start
    episode = yard_episode(scene, x, y, yaw_deg)
    embedded = VLNEnv(
        sensors=[], collision_threshold_m=THRESHOLD_M, linear_speed_mps=0.5, angular_speed_radps=1.5
    )
    seen, _ = simulator.reset(episode), embedded.reset(episode)
    assert seen["rgb"].shape == (48, 64, 3)
    assert seen["rgb"].dtype == "uint8"
    assert seen["depth"].shape == (48, 64)
    assert seen["depth"].dtype == "uint16"
    for action in actions:
        _, reward, done, info = simulator.step(action)
        _, _, expected_done, truth = embedded.step(action)
        where, right = info["position"], truth["position"]
        # A busy machine hears the scan late: the robot drives on, at the latest until it touches the post.
        near_m = THRESHOLD_M - BASE_RADIUS_M + 0.02 if info["collision_count"] else 0.02
        assert math.dist((where.x, where.y), (right.x, right.y)) < near_m
        assert info["yaw"] == pytest.approx(truth["yaw"], abs=math.radians(1.0))
        assert info["collision"] == truth["collision"]
        assert (reward, done, info["step"]) == (0.0, expected_done, truth["step"])
        position = simulator.get_current_position()
        assert isinstance(position, o3de_math.Vector3)
        assert math.dist((position.x, position.y), (where.x, where.y)) < 0.005
        assert simulator.get_distance_to_goal() == pytest.approx(info["distance_to_goal"], abs=0.01)
    embedded.close()


@pytest.mark.parametrize(
    ("start", "actions"),
    [
        ((0.5, 0.2, 30.0), [FORWARD, RIGHT, FORWARD, LEFT, STOP]),
        ((2.2, 0.0, 0.0), [FORWARD, FORWARD, LEFT]),  # into the post
    ],
)
def test_a_robot_in_o3de_does_what_the_embedded_one_does(simulator, scene, start, actions):
    check_same_drive(simulator, scene, start, actions)
    assert simulator.get_robot_entity_id() == "robot"


def test_a_level_is_built_once_and_opened_again(simulator, scene, editor, tmp_path):
    other = save_yard(tmp_path / "other.json", name="other yard!")
    for path in (scene, other, scene):
        simulator.reset(yard_episode(path))
    agent = simulator.agent_manager.agent
    level = agent.editor_tool.current_level()
    assert level.startswith("yard_")
    assert agent.simulation_tool.is_in_game_mode()
    simulator.close()
    again = O3DESimulator(config=FAST)
    again.reset(yard_episode(scene))
    again.agent_manager.leave_game_mode()
    assert len(again.agent_manager.agent.entity_tool.find("post")) == 1
    again.close()


def test_what_was_given_up_half_way_is_built_anew(editor, tmp_path):
    scene = save_yard(tmp_path / "half.json", name="half")
    simulator = O3DESimulator(config=FAST)
    manager = simulator.agent_manager
    level = manager.create_scene(scene)
    for entity in manager.agent.entity_tool.find(BUILT_PLAIN):
        manager.agent.entity_tool.delete(entity)
    manager.agent.editor_tool.save_level()
    simulator.close()
    simulator = O3DESimulator(config=FAST)
    simulator.reset(yard_episode(scene))
    simulator.agent_manager.leave_game_mode()
    assert simulator.agent_manager.agent.editor_tool.current_level() == level
    assert len(simulator.agent_manager.agent.entity_tool.find("post")) == 1
    simulator.close()


def test_a_level_without_meshes_is_told_and_built_anew_when_they_are_there(tmp_path, ros_domain):
    project = tmp_path / "project"
    scene = save_yard(tmp_path / "plain.json", name="plain")
    with standin(project):
        simulator = O3DESimulator(config=FAST)
        (note,) = simulator.check([yard_episode(scene)])
        assert "1 of 1 scenes are not seen as they should be, plain for one" in note
        simulator.reset(yard_episode(scene))
        export_scene(scene, project)
        assert simulator.check([yard_episode(scene)]) == []
        simulator.close()
        simulator = O3DESimulator(config=FAST)
        simulator.reset(yard_episode(scene))
        simulator.agent_manager.leave_game_mode()
        found = simulator.agent_manager.agent.entity_tool.find
        assert [len(found(name)) for name in ("post", BUILT, BUILT_PLAIN)] == [1, 1, 0]
        simulator.close()


def test_a_new_simulator_takes_over_from_one_that_was_never_closed(editor, scene):
    first = O3DESimulator(config=FAST)
    second = O3DESimulator(config=FAST)
    with pytest.raises(SimulationError, match="close"):
        first.reset(yard_episode(scene))
    second.agent_manager.agent.ping()
    second.close()


@pytest.mark.parametrize(
    ("episode", "complaint"),
    [
        (Episode(scene_id="nowhere"), "no level 'nowhere'"),
        (Episode(), "needs a scene"),
    ],
)
def test_episodes_without_a_world_are_told_what_they_lack(simulator, episode, complaint):
    with pytest.raises((SimulationError, UserError), match=complaint):
        simulator.reset(episode)
    with pytest.raises(UserError, match=complaint):  # before the first episode, and once for all
        simulator.check([episode])


def test_two_who_tell_where_the_robot_is_are_one_too_many(simulator, scene):
    with RosNode("stranger") as stranger:
        stranger.create_publisher(Odometry, "/odom", 1)
        with pytest.raises(SimulationError, match=r"/odom is published by .* and /stranger: which is"):
            simulator.reset(yard_episode(scene))


def test_a_robot_that_the_project_lacks_is_named(editor, scene):
    simulator = O3DESimulator(config={**FAST, "robot_asset_path": "Assets/Models/rover/rover.gltf"})
    with pytest.raises(SimulationError, match=r"assets/models/rover/rover\.spawnable"):
        simulator.reset(yard_episode(scene))
    simulator.close()


def test_without_an_editor_it_is_said_how_to_start_one(ros_domain, monkeypatch):
    monkeypatch.setenv("O3DE_AGENT_PORT", str(free_port()))
    with pytest.raises(UserError, match=r"O3DE cannot be reached.*O3DE_AGENT_PORT"):
        O3DEEnv({"timeout_s": 0.5})


def test_without_simulation_interfaces_the_agent_does_it(tmp_path, scene, ros_domain, monkeypatch):
    monkeypatch.setattr("proctor.worlds.ros2.robot.exam_robot.SERVICES_S", 1.0)  # for which is looked in vain
    with standin(tmp_path / "project", "--no-simulation-interfaces"):
        simulator = O3DESimulator(config=FAST)
        check_same_drive(simulator, scene, (0.5, 0.2, 30.0), [FORWARD, LEFT, STOP])
        check_same_drive(simulator, scene, (1.0, 1.0, -90.0), [FORWARD, STOP])
        assert simulator.get_robot_entity_id().startswith("[")
        simulator.close()


def test_a_game_launcher_plays_what_an_editor_has_built(tmp_path, scene, ros_domain):
    project = tmp_path / "project"
    with standin(project):
        simulator = O3DESimulator(config=FAST)
        simulator.agent_manager.create_scene(scene)
        simulator.close()
    with standin(project, "--launcher"):
        simulator = O3DESimulator(config={**FAST, "socket_port": free_port()})
        assert simulator.agent_manager is None
        check_same_drive(simulator, scene, (0.5, 0.2, 30.0), [FORWARD, LEFT, STOP])
        simulator.close()


def test_an_editor_that_dies_is_an_evaluator_fault(tmp_path, scene, ros_domain):
    with standin(tmp_path / "project") as process:
        simulator = O3DESimulator(config={**FAST, "timeout_s": 6.0})
        simulator.reset(yard_episode(scene))
        assert process.close() == 0
        with pytest.raises(SimulationError, match="Editor"):
            simulator.step(LEFT)
        simulator.close()


def oracle_means(env, episodes):
    with VLNEvaluator(env, OraclePolicy()) as evaluator:
        results = [evaluator.evaluate_episode(episode) for episode in episodes]
    assert not [result.error for result in results if result.error]
    names = ("success", "spl", "ndtw", "path_length", "steps")
    count = len(results)
    return {name: sum(float(result.metrics[name]) for result in results) / count for name in names}


def test_the_registry_knows_it():
    assert load("env", "o3de") is O3DEEnv


def shortest(count, scene_id=""):
    """Return those episodes of the suite, or of one house, that need the fewest actions."""
    episodes = load_dataset(suite_path("houses-v1")).episodes
    found = [episode for episode in episodes if scene_id in episode.scene_id]
    found.sort(key=lambda episode: len(episode.reference_actions))
    return sorted(found[:count], key=lambda episode: episode.scene_id)


def check_oracle(project, episodes, *, rtf, within):
    """Let the oracle do episodes on O3DE and in the embedded world."""
    with standin(project, rtf=rtf):
        on_o3de = oracle_means(O3DEEnv(FAST, collision_threshold=THRESHOLD_M), episodes)
    embedded = oracle_means(VLNEnv(collision_threshold_m=THRESHOLD_M), episodes)
    assert on_o3de["success"] == 1.0
    assert on_o3de == pytest.approx(embedded, rel=within)
    return json.dumps({"o3de": on_o3de, "embedded": embedded})


def test_the_oracle_does_as_well_as_in_the_embedded_world(tmp_path, ros_domain):
    # In two episodes that are this short, one action more makes 3 %.
    check_oracle(tmp_path / "project", shortest(2, "house_1064959"), rtf="8", within=0.05)


@pytest.mark.slow
def test_the_oracle_does_as_well_in_twenty_episodes(tmp_path, ros_domain, capsys):
    said = check_oracle(tmp_path / "project", shortest(20), rtf="max", within=0.02)
    with capsys.disabled():
        print(said)  # noqa: T201
