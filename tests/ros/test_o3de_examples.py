"""The examples and the test plan of the design documents, as written, on an Editor without the engine."""

import textwrap
from pathlib import Path

import pytest
import rclpy
from o3de_standins import standin
from rclpy.signals import SignalHandlerOptions
from served_agents import Agent, served
from served_world import save_yard

from proctor.exams.vln.episode import Episode
from proctor.o3de.simulator import O3DESimulator

REPOSITORY = Path(__file__).parent.parent.parent
H, W = 48, 64


@pytest.fixture(scope="module")
def editor(tmp_path_factory, ros_domain):
    with standin(tmp_path_factory.mktemp("project"), rtf="8") as process:  # at the documents' own, low speeds
        yield process


@pytest.fixture
def workspace(editor, tmp_path, monkeypatch):
    """A folder with the datasets in it, as the one where people begin."""
    (tmp_path / "datasets").symlink_to(REPOSITORY / "datasets")
    monkeypatch.chdir(tmp_path)
    return tmp_path


class Model:
    """Goes ahead, and stops after some steps."""

    def __init__(self, steps):
        self._left = steps

    def act(self, rgb, depth, instruction):
        assert rgb.shape[:2] == depth.shape
        assert instruction
        self._left -= 1
        return 1 if self._left >= 0 else 0


def run(text, **names):
    exec(compile(textwrap.dedent(text), "example.py", "exec"), names)
    return names


EVALUATION = """
    from vln_evaluator.env import O3DEEnv
    from vln_evaluator.policy import MockPolicy
    from vln_evaluator import VLNEvaluator

    env = O3DEEnv(simulator_config={'mode': 'socket'})
    policy = MockPolicy()
    evaluator = VLNEvaluator(env=env, policy=policy)
    results = evaluator.evaluate_dataset('datasets/sample_r2r.json')
    evaluator.save_results(results, 'results/eval.json')
    evaluator.close()
"""

SERVED_EVALUATION = """
    from vln_evaluator.env import O3DEEnv
    from vln_evaluator.policy import WebSocketPolicy
    from vln_evaluator import VLNEvaluator

    env = O3DEEnv(simulator_config={
        'mode': 'socket',
        'success_threshold': 0.2
    })
    policy = WebSocketPolicy('localhost', '8080')

    with VLNEvaluator(env=env, policy=policy) as evaluator:
        results = evaluator.evaluate_dataset('datasets/sample_r2r.json')
        evaluator.save_results(results, 'results/eval.json')
"""

DIRECT_USE = """
    from o3de_simulator import O3DESimulator
    from o3de_sim import constants

    sim = O3DESimulator(mode=constants.O3DE_AGENT_SOCKET_MODE)

    episode = sim.Episode(
        episode_id="ep_001",
        scene_id="scene_001",
        start_position={'x': 0, 'y': 0, 'z': 0},
        start_rotation={'x': 0, 'y': 0, 'z': 0},
        goal_position={'x': 5, 'y': 0, 'z': 3},
        instruction="Walk forward 5 meters"
    )

    obs = sim.reset(episode)

    for step in range(50):
        action = model.act(obs['rgb'], obs['depth'], episode.instruction)
        obs, reward, done, info = sim.step(action)

        if done:
            print(f"Success! Distance: {info['distance_to_goal']}")
            break

    sim.close()
"""

EXECUTOR = """
    from vln_evaluator.o3de_simulator import O3DESimulator
    from vln_evaluator.env import Episode

    sim = O3DESimulator(mode='socket')

    episode = Episode(
        scene_config_path='...',
        start_position={'x': 0, 'y': 0, 'z': 0},
        goal_position={'x': 2, 'y': 0, 'z': 0}
    )

    obs = sim.reset(episode)

    obs, reward, done, info = sim.step(action=1)  # FORWARD
    print(f"Collision: {info['collision']}")
    print(f"Distance: {info['distance_to_goal']:.2f}m")
"""

PARTS = """
    import rclpy

    sim.action_executor.execute_action(action)
    sim.o3de_agent.general.wait_for_propagation()
    for _ in range(5):
        rclpy.spin_once(sim.sensor_sub.node, timeout_sec=0.01)
    obs = sim.sensor_sub.get_observation()
    collision_count = sim.action_executor.get_collision_count()
"""

TEST_PLAN = """
    def test_simulator_init():
        sim = O3DESimulator()
        assert sim.robot_entity_id is None
        assert sim.current_step == 0

    def test_reset():
        sim = O3DESimulator()
        episode = create_test_episode()
        obs = sim.reset(episode)

        assert 'rgb' in obs
        assert 'depth' in obs
        assert obs['rgb'].shape == (H, W, 3)

    def test_step():
        sim = O3DESimulator()
        episode = create_test_episode()
        obs = sim.reset(episode)

        obs, reward, done, info = sim.step(action=1)

        assert reward == 0.0
        assert 'position' in info
        assert 'distance_to_goal' in info

    def test_position_query():
        sim = O3DESimulator()
        episode = create_test_episode()
        sim.reset(episode)

        pos = sim.get_current_position()
        assert isinstance(pos, o3de_math.Vector3)

    def test_full_episode():
        sim = O3DESimulator()
        episode = create_simple_episode()

        obs = sim.reset(episode)

        for _ in range(10):
            obs, reward, done, info = sim.step(1)
            if done:
                break

        assert info['step'] > 0
        sim.close()
"""

GAME_MODE = """
    from o3de_sim.o3de_api.peb_extras import simulation_tool
    simulation_tool.enter_game_mode()
    simulation_tool.toggle_physics(True)
"""


def test_the_simulator_used_directly(workspace, capsys):
    names = run(DIRECT_USE, model=Model(3))
    assert "Success! Distance: " in capsys.readouterr().out
    where = names["info"]["position"]
    assert (where.x, where.y) == pytest.approx((0.75, 0.0), abs=0.02)
    assert names["info"]["step"] == 4


def test_the_executors_example(workspace, capsys):
    scene = save_yard(workspace / "yard.json")
    names = run(EXECUTOR.replace("'...'", repr(str(scene))))
    collision, distance = capsys.readouterr().out.splitlines()
    assert collision == "Collision: False"
    assert float(distance.removeprefix("Distance: ").removesuffix("m")) == pytest.approx(1.75, abs=0.021)
    simulator = names["sim"]
    rclpy.init(signal_handler_options=SignalHandlerOptions.NO)  # the document's SensorSubscriber does it
    try:
        names = run(PARTS, sim=simulator, action=1)
    finally:
        rclpy.shutdown()
    assert names["obs"]["rgb"].shape == (H, W, 3)
    assert names["collision_count"] == 0
    assert simulator.get_distance_to_goal() == pytest.approx(1.5, abs=0.041)
    assert simulator.current_step == 1
    simulator.close()


def test_the_test_plan(workspace):
    def create_test_episode():
        return Episode(scene_id="scene_001", instruction="Go", goal_position=(1, 0, 0))

    plan = run(
        "from o3de_simulator import O3DESimulator\n"
        "from o3de_sim.o3de_api.interface import math as o3de_math\n" + textwrap.dedent(TEST_PLAN),
        create_test_episode=create_test_episode,
        create_simple_episode=create_test_episode,
        **{"H": H, "W": W},
    )
    tests = [value for name, value in plan.items() if name.startswith("test_")]
    assert len(tests) == 5
    for test in tests:
        test()


def test_a_robot_that_does_not_move_is_helped_as_the_document_says(workspace):
    simulator = O3DESimulator(config={"timeout_s": 10.0})
    assert simulator.agent_manager.open_level("scene_001")
    simulator.close()  # one agent serves one client
    run(GAME_MODE)
    simulator = O3DESimulator(config={"timeout_s": 10.0})
    assert simulator.agent_manager.agent.simulation_tool.is_in_game_mode()
    simulator.agent_manager.leave_game_mode()
    simulator.close()


def test_the_evaluation_of_a_served_agent(workspace):
    agent = Agent(lambda conversation: conversation.reply(1 if conversation.step < 2 else 0))
    with served(agent) as port:
        names = run(SERVED_EVALUATION.replace("8080", str(port)))
    assert names["results"].total_episodes == 4
    assert not any(names["results"].summary.error_counts.values())
    assert names["results"].avg_steps == 3
    assert (workspace / "results" / "eval.json").is_file()


@pytest.mark.slow
def test_the_evaluation_of_a_dataset(workspace):
    names = run(EVALUATION)
    assert names["results"].total_episodes == 4
    assert not any(names["results"].summary.error_counts.values())
    assert (workspace / "results" / "eval.json").is_file()
