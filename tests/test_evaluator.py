"""The Python interface, and the usage examples of the design document as written."""

import json
import runpy
from pathlib import Path

import pytest

from proctor.core.errors import InvalidFile, MissingDependency, UserError
from proctor.core.types import Vector3
from proctor.episodes.vln import Episode
from vln_evaluator import VLNEvaluator, evaluate_vln
from vln_evaluator.env import O3DE_SIMULATOR_CONFIG, MockEnv, O3DEEnv
from vln_evaluator.policy import MockPolicy

REPOSITORY = Path(__file__).parent.parent
SAMPLE = REPOSITORY / "datasets" / "sample_r2r.json"


class CountingEnv(MockEnv):
    closed = 0

    def close(self):
        self.closed += 1
        super().close()


def test_the_documents_mock_example_runs_as_written(monkeypatch, capsys, tmp_path):
    script = tmp_path / "example.py"
    script.write_text(
        "from vln_evaluator.env import MockEnv\n"
        "from vln_evaluator.policy import MockPolicy\n"
        "from vln_evaluator import VLNEvaluator\n"
        "env = MockEnv()\n"
        "policy = MockPolicy()\n"
        "with VLNEvaluator(env=env, policy=policy) as evaluator:\n"
        "    results = evaluator.evaluate_dataset('datasets/sample_r2r.json')\n"
        '    print(f"Success rate: {results.success_rate:.2%}")\n'
    )
    monkeypatch.chdir(REPOSITORY)
    runpy.run_path(str(script))
    assert "Success rate: " in capsys.readouterr().out


def test_the_documents_o3de_example_says_what_is_missing():
    with pytest.raises(MissingDependency, match=r"O3DE.*ROS 2.*env 'embedded'"):
        O3DEEnv(simulator_config={"mode": "socket"})


@pytest.mark.parametrize(
    "config", [{"mode": "carrier pigeon"}, {"succes_threshold": 0.2}, {"socket_port": "x"}]
)
def test_a_wrong_o3de_configuration_is_told_before_anything_else(config):
    with pytest.raises(UserError, match=r"simulator_config: .*success_threshold"):
        O3DEEnv(simulator_config=config)


def test_the_documents_configuration_keys_exist_with_their_values():
    assert O3DE_SIMULATOR_CONFIG == {
        "mode": "socket",
        "socket_host": "127.0.0.1",
        "socket_port": 8080,
        "sensor_qos": {"reliability": "BEST_EFFORT", "durability": "VOLATILE", "depth": 10},
        "success_threshold": 0.2,
        "collision_threshold": 0.3,
        "linear_speed": 0.1,
        "angular_speed": 0.3,
        "robot_asset_path": "Assets/Models/robot/robot.gltf",
        "robot_name": "robot",
    }


def test_results_are_saved_where_the_user_says(tmp_path):
    evaluator = VLNEvaluator(env=MockEnv(), policy=MockPolicy())
    results = evaluator.evaluate_dataset(SAMPLE)
    evaluator.save_results(results, tmp_path / "results" / "eval.json")
    evaluator.close()
    saved = json.loads((tmp_path / "results" / "eval.json").read_text())
    assert saved["summary"]["total_episodes"] == results.total_episodes == len(saved["episodes"])
    assert saved["summary"]["avg_steps"] == results.avg_steps
    assert results.success_count == sum(episode["success"] for episode in saved["episodes"])
    assert results.timeout_count + results.success_count <= results.total_episodes
    assert results.avg_distance_error > 0
    assert results.avg_collision_count == 0


def test_one_episode_built_in_code_can_be_evaluated():
    episode = Episode(goal_position={"x": 1, "y": 0, "z": 0}, max_steps=5)
    with VLNEvaluator(MockEnv(), MockPolicy()) as evaluator:
        assert evaluator.evaluate_episode(episode).steps <= 5


def test_closing_is_done_at_the_end_and_may_be_done_twice():
    env = CountingEnv()
    with VLNEvaluator(env, MockPolicy()) as evaluator:
        pass
    evaluator.close()
    assert env.closed == 2


def test_the_threshold_of_the_episode_comes_before_that_of_the_evaluator():
    class Stop(MockPolicy):
        def act(self, observation):
            return 0

    near = Episode(goal_position=Vector3(0.5, 0, 0))
    strict = Episode(goal_position=Vector3(0.5, 0, 0), success_threshold=0.4)
    with VLNEvaluator(MockEnv(), Stop(), success_threshold=0.6) as evaluator:
        assert evaluator.evaluate_episode(near).success
        assert not evaluator.evaluate_episode(strict).success
    with VLNEvaluator(MockEnv(), Stop()) as evaluator:
        assert not evaluator.evaluate_episode(near).success


def test_the_shortcut_takes_names_or_objects():
    by_name = evaluate_vln(SAMPLE, env="mock", policy="random", seed=3)
    by_object = evaluate_vln(SAMPLE, env=MockEnv(), policy=MockPolicy(), seed=3)
    assert [e.actions for e in by_name.episodes] == [e.actions for e in by_object.episodes]


def test_the_samples_goals_are_reachable_for_the_oracle_in_the_embedded_world():
    results = evaluate_vln(SAMPLE, env="embedded", policy="oracle")
    assert results.success_rate == 1.0
    assert results.avg_collision_count == 0
    assert results.summary.metrics["spl"].mean >= 0.95


def test_a_missing_dataset_is_a_user_error():
    with VLNEvaluator(MockEnv(), MockPolicy()) as evaluator, pytest.raises(InvalidFile, match="no such file"):
        evaluator.evaluate_dataset("nowhere.json")
