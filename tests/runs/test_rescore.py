"""Scores are computed again from traces: equal to the last bit, with new metrics, without a simulator."""

import json
import subprocess
import sys
from types import SimpleNamespace

import msgspec
import pytest
from running import run

from proctor.core.errors import InvalidFile, UserError
from proctor.core.types import Action, Vector3
from proctor.exams import step_metrics
from proctor.exams.datasets import save_dataset
from proctor.exams.exam import Metric
from proctor.exams.vln.episode import Episode
from proctor.runs.folder import RunFolder, trace_file
from proctor.runs.job import RunJob
from proctor.runs.plan import RunConfig
from proctor.runs.scoring import dataset_of, rescore


@pytest.fixture
def folder(tmp_path):
    """A finished run of four episodes."""
    episodes = [
        Episode(
            episode_id=f"ep_{k}",
            scene_id="flat",
            goal_position=Vector3(1.0, 0, 0),
            max_steps=30,
            reference_path=[Vector3(0.25 * i, 0, 0) for i in range(5)],
        )
        for k in range(4)
    ]
    save_dataset(episodes, tmp_path / "episodes.json")
    config = RunConfig(job=RunJob(env="mock", policy="random"), dataset=tmp_path / "episodes.json")
    run(config, tmp_path / "run")
    return tmp_path / "run"


def rescored(folder, out=None):
    opened = RunFolder.open(folder)
    return rescore(opened, dataset_of(opened), out)


def test_every_score_of_a_run_comes_out_the_same(folder):
    found = rescored(folder)
    assert (found.differences, found.new_metrics, found.without_trace) == ([], [], [])
    assert found.results == RunFolder.open(folder).results


def test_no_simulator_is_loaded_for_it(folder):
    code = (
        "import sys\nfrom pathlib import Path\n"
        "from proctor.runs.folder import RunFolder\nfrom proctor.runs.scoring import rescore\n"
        "from proctor.runs.scoring import dataset_of\n"
        f"run = RunFolder.open(Path({str(folder)!r}))\n"
        "assert not rescore(run, dataset_of(run)).differences\n"
        "print(sorted({'mujoco', 'OpenGL', 'rclpy'} & {*sys.modules}))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"


def test_a_score_that_was_changed_by_hand_is_found(folder, proctor):
    journal = folder / "episodes.jsonl"
    first, *others = journal.read_text().splitlines()
    record = json.loads(first)
    record["metrics"]["path_length"] += 1.0
    journal.write_text("\n".join([json.dumps(record), *others]) + "\n")
    (difference,) = rescored(folder).differences
    assert (difference.episode_id, difference.metric) == (record["episode_id"], "path_length")
    assert difference.stored == difference.rescored + 1.0
    code, out, _ = proctor("rescore", folder)
    assert code == 1
    assert f"{record['episode_id']}: path_length is" in out


def lefts(episode, trace, distance):
    """Return how often the agent turned left."""
    return sum(action.name == "LEFT" for action in trace.actions)


@pytest.fixture
def added_metric(monkeypatch):
    """A metric that another package brings along after the run."""
    point = SimpleNamespace(
        name="lefts",
        value="somebody:LEFTS",
        dist=None,
        load=lambda: Metric("lefts", lefts, "Lefts", "How often the agent turned left."),
    )
    monkeypatch.setattr(
        step_metrics, "entry_points", lambda group: [point] if group == "proctor.metrics" else []
    )
    step_metrics.metrics_of.cache_clear()
    yield
    step_metrics.metrics_of.cache_clear()


def test_a_metric_that_was_added_after_the_run_is_measured(folder, tmp_path, proctor, request):
    request.getfixturevalue("added_metric")
    found = rescored(folder, tmp_path / "again")
    assert (found.new_metrics, found.differences) == (["lefts"], [])
    for result in RunFolder.open(tmp_path / "again").episodes:
        assert result.metrics["lefts"] == result.actions.count(Action.LEFT)
    assert not rescored(tmp_path / "again").new_metrics
    code, out, _ = proctor("rescore", folder)
    assert (code, "not measured by the run: lefts" in out) == (0, True)


def test_a_run_of_a_version_without_traces_is_rescored_from_its_records(folder):
    for file in (folder / "traces").iterdir():
        file.unlink()
    found = rescored(folder)
    assert (found.differences, found.without_trace) == ([], [])


def test_a_torn_trace_is_named_and_nothing_is_changed(folder, proctor):
    torn = trace_file(folder, "ep_1")
    torn.write_bytes(torn.read_bytes()[:-5])
    before = {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()}
    with pytest.raises(InvalidFile, match=r"ep_1\.trace: not a whole trace"):
        rescored(folder)
    code, _, err = proctor("rescore", folder)
    assert (code, "ep_1.trace" in err) == (2, True)
    assert {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()} == before


def test_an_agents_fault_is_rescored_with_what_the_agent_had_done(folder):
    journal = folder / "episodes.jsonl"
    run_ = RunFolder.open(folder)
    fault = {"side": "agent", "kind": "policy_exception", "message": "out of memory"}
    changes = {"status": "error", "success": False, "failure_reason": "policy_exception", "error": fault}
    records = [msgspec.to_builtins(result) | changes for result in run_.episodes]
    journal.write_text("".join(json.dumps(record) + "\n" for record in records))
    (folder / "results.json").unlink()
    found = rescored(folder)
    assert not found.differences
    assert found.results.summary.error_counts["agent"] == 4


def test_a_dataset_that_has_changed_is_refused(folder):
    dataset = folder.parent / "episodes.json"
    dataset.write_text(dataset.read_text().replace("30", "31"))
    with pytest.raises(UserError, match="has changed since the run"):
        rescored(folder)


def test_an_existing_folder_is_not_written_to(folder, tmp_path):
    (tmp_path / "there").mkdir()
    with pytest.raises(UserError, match="exists already"):
        rescored(folder, tmp_path / "there")
