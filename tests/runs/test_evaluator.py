"""The Python interface, and the usage examples of the design document as written."""

import json
import runpy
from importlib.util import find_spec
from pathlib import Path

import pytest

import vln_evaluator.env
from proctor.core.errors import InvalidFile, MissingDependency, UserError
from proctor.core.types import Vector3
from proctor.exams.datasets import save_dataset
from proctor.exams.vln.episode import Episode
from proctor.o3de.config import config_of
from proctor.runs.evaluate import evaluate
from vln_evaluator import VLNEvaluator, evaluate_vln
from vln_evaluator.env import O3DE_SIMULATOR_CONFIG, MockEnv
from vln_evaluator.policy import MockPolicy

REPOSITORY = Path(__file__).parents[2]
SAMPLE = REPOSITORY / "datasets" / "sample_r2r.json"


class Stop(MockPolicy):
    def act(self, observation):
        return 0


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


@pytest.mark.skipif(find_spec("rclpy") is not None, reason="ROS 2 is here")
def test_the_documents_o3de_example_says_what_is_missing():
    with pytest.raises(MissingDependency, match=r"ROS 2.*make ros"):
        vln_evaluator.env.O3DEEnv  # noqa: B018


@pytest.mark.parametrize(
    "config",
    [
        {"mode": "carrier pigeon"},
        {"succes_threshold": 0.2},
        {"socket_port": "x"},
        {"linear_speed": 0},
        {"sensor_qos": {"reliability": "SOMETIMES"}},
        {"robot_asset_path": "robot"},
        {"robot_name": "my-robot"},
    ],
)
def test_a_wrong_o3de_configuration_is_told_before_anything_else(config):
    with pytest.raises(UserError, match=rf"simulator_config: .*{next(iter(config))}"):
        config_of(config)


def test_the_documents_configuration_keys_exist_with_their_values():
    documented = {
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
    assert {**O3DE_SIMULATOR_CONFIG, **documented} == O3DE_SIMULATOR_CONFIG


def test_an_envs_own_success_threshold_counts_where_nobody_says_another():
    class Told(MockEnv):
        success_threshold_m = 0.6

    near = Episode(goal_position=Vector3(0.5, 0, 0))
    for options, is_success in (({}, True), ({"success_threshold": 0.4}, False)):
        with VLNEvaluator(Told(), Stop(), **options) as evaluator:
            assert evaluator.evaluate_episode(near).success is is_success


def test_results_are_saved_where_the_user_says(tmp_path):
    evaluator = VLNEvaluator(env=MockEnv(), policy=MockPolicy())
    results = evaluator.evaluate_dataset(SAMPLE)
    evaluator.save_results(results, tmp_path / "results" / "eval.json")
    results.save(str(tmp_path / "copy.json"))
    evaluator.close()
    saved = json.loads((tmp_path / "results" / "eval.json").read_text())
    assert json.loads((tmp_path / "copy.json").read_text()) == saved
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


def test_one_call_evaluates_a_policy_on_a_dataset(tmp_path):
    file = tmp_path / "episodes.json"
    save_dataset([Episode(episode_id="ahead", scene_id="flat", goal_position=Vector3(10, 0, 0))], file)
    assert evaluate("forward", file, env="mock").success_rate == 0.0  # it stops 0.75 m before the goal
    results = evaluate("forward", file, env="mock", options={"success_threshold_m": 1.0})
    assert (results.success_rate, results.summary.task) == (1.0, "vln")
    with pytest.raises(UserError, match="the exam vln has no option 'sucess'"):
        evaluate("forward", file, env="mock", options={"sucess": 1.0})
    with pytest.raises(UserError, match="unknown policy 'hold'"):
        evaluate("hold", file, env="mock")
