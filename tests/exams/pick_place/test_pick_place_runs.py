"""Runs of pick-and-place by name, from the command line and over a wire, on a table without physics."""

import json
import queue
from pathlib import Path

import numpy as np
import pytest
from fake_tabletop import Deadly, FakeTabletop, Picker, episode, record
from running import examine, run
from served_agents import JSON, MSGPACK, Agent, served

from proctor import cli
from proctor.agents.server import PolicyServer
from proctor.agents.websocket_policy import WebSocketPolicy
from proctor.core.errors import SimulationError, UserError
from proctor.core.registry import load
from proctor.core.types import EpisodeInfo
from proctor.exams.pick_place.baselines import HoldPolicy
from proctor.exams.pick_place.exam import PickPlaceExam
from proctor.runs.folder import read_manifest
from proctor.runs.job import RunJob, fit_job
from proctor.runs.plan import RunConfig
from proctor.runs.recorder import RecordingConfig
from proctor.runs.recordings import read_recording
from proctor.runs.replay import ReplayPolicy

FAKE, PICKER = "fake_tabletop:FakeTabletop", "fake_tabletop:Picker"
SPEC_OBSERVATION = {
    *("rgb_head", "rgb_wrist", "depth_head", "qpos", "qvel", "ee_pose", "gripper_state", "instruction"),
}


@pytest.fixture
def dataset(tmp_path):
    return write(tmp_path / "tables" / "episodes.json", 3)


def write(path, count):
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"episodes": [record(index) for index in range(count)]}))
    return path


def config(dataset, policy=PICKER, *, env=FAKE, workers=1, recording=None, **job):
    return RunConfig(
        job=RunJob(env=env, policy=policy, **job), dataset=dataset, workers=workers, recording=recording
    )


def run_quietly(config, out, notes=None):
    return run(config, out, lambda progress: notes.extend(progress.notes) if notes is not None else None)


def proctor(capsys, *words):
    code = cli.main([str(word) for word in words])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


# -- runs


def test_one_and_two_workers_write_the_same_bytes(dataset, tmp_path):
    one = run_quietly(config(dataset, policy="random", seed=3), tmp_path / "one")
    run_quietly(config(dataset, policy="random", seed=3, workers=2), tmp_path / "two")
    first, second = (tmp_path / name / "results.json" for name in ("one", "two"))
    assert first.read_bytes() == second.read_bytes()
    actions = [episode.actions for episode in one.results.episodes]
    assert actions[0] != actions[1]


def test_a_run_is_summed_up_by_its_own_metrics(dataset, tmp_path):
    results = run_quietly(config(dataset), tmp_path / "run").results
    summary = results.summary
    assert (summary.success_count, summary.success_rate, summary.timeout_count) == (3, 1.0, 0)
    assert 0 <= summary.avg_distance_error < 0.05
    assert summary.metrics["success"].low == pytest.approx(0.4385, abs=1e-3)  # Wilson's: it is a rate
    assert summary.metrics["grasped"].low == summary.metrics["success"].low
    assert summary.metrics["steps"].mean == summary.avg_steps
    assert not {"spl", "navigation_error"} & summary.metrics.keys()
    assert "trajectory_similarity" not in summary.metrics  # there is no reference
    assert summary.distance == "euclidean"
    assert summary.task == "pick_and_place"


def test_a_killed_run_goes_on_where_it_stopped(dataset, tmp_path):
    whole = run_quietly(config(dataset), tmp_path / "whole")
    killed = tmp_path / "killed"
    run_quietly(config(dataset), killed)
    journal = killed / "episodes.jsonl"
    first, second, _ = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(first + second[:99])  # torn in the middle of the second line
    (killed / "results.json").unlink()
    report = run_quietly(config(dataset), killed)
    assert report.done_before == 1
    assert (killed / "results.json").read_bytes() == (tmp_path / "whole" / "results.json").read_bytes()
    assert [e.episode_id for e in report.results.episodes] == [e.episode_id for e in whole.results.episodes]


def test_what_defines_a_run_is_in_its_manifest(dataset, tmp_path):
    options = {"object_info": True, "level": 2, "level_seed": 7}
    run_quietly(config(dataset, env_options=options, seed=7), tmp_path / "run")
    manifest = read_manifest(tmp_path / "run" / "manifest.json")
    identity = manifest["identity"]
    assert (identity["task"], identity["env"], identity["hide_goal"]) == ("pick_and_place", FAKE, False)
    assert identity["env_options"] == options
    assert "success_threshold_m" not in identity
    assert [note for note in manifest["notes"] if "object_info is on" in note]
    with pytest.raises(UserError, match=r"its env_options is .* yours is "):
        run_quietly(config(dataset, env_options={"level": 2}, seed=7), tmp_path / "run")


def test_the_folder_of_a_run_that_told_the_goal_is_not_taken_for_one_that_hides_it(dataset, tmp_path):
    run_quietly(config(dataset, policy="hold"), tmp_path / "run")
    with pytest.raises(UserError, match="its hide_goal is False, yours is True"):
        run_quietly(config(dataset, policy="hold", exam_options={"hide_goal": True}), tmp_path / "run")


def test_an_agent_that_takes_its_process_down_loses_its_episode_only(dataset, tmp_path):
    results = run_quietly(config(dataset, policy="fake_tabletop:Deadly", workers=2), tmp_path / "run").results
    lost = results.episodes[1]
    assert [e.success for e in results.episodes] == [True, False, True]
    assert (lost.error.side, lost.error.kind, lost.metrics["success"]) == ("agent", "policy_lost", 0.0)
    assert lost.trajectory == []
    assert lost.final_distance_to_goal == pytest.approx(np.hypot(0.3, 0.02))
    assert issubclass(Deadly, Picker)


def test_a_fault_of_the_world_is_left_out_and_done_again(dataset, tmp_path, monkeypatch):
    first = run_quietly(config(dataset, env="fake_tabletop:BrokenWorld"), tmp_path / "run").results
    assert first.summary.error_counts == {"agent": 0, "evaluator": 1}
    assert first.success_rate == 1.0
    monkeypatch.setattr("fake_tabletop.BrokenWorld.reset", FakeTabletop.reset)
    again = run_quietly(config(dataset, env="fake_tabletop:BrokenWorld"), tmp_path / "run")
    assert (again.done_before, again.results.summary.error_counts["evaluator"]) == (2, 0)


def test_a_finished_run_can_be_replayed(dataset, tmp_path):
    done = run_quietly(config(dataset), tmp_path / "run").results
    job = {"policy": "replay", "policy_options": {"run": str(tmp_path / "run")}}
    again = run_quietly(config(dataset, **job), tmp_path / "again").results
    assert [e.actions for e in again.episodes] == [e.actions for e in done.episodes]
    assert [e.pick_place for e in again.episodes] == [e.pick_place for e in done.episodes]
    policy = ReplayPolicy(run=str(tmp_path / "run"))
    policy.reset(EpisodeInfo(episode_id="pick_0", instruction="", max_steps=1, seed=0, task="pick_and_place"))
    acted = [policy.act({"qpos": np.zeros(10)}) for _ in range(done.episodes[0].steps + 2)]
    assert acted[-3:] == [done.episodes[0].actions[-1]] * 3  # it keeps to the last when there are no more


def test_head_pictures_and_actions_are_recorded(dataset, tmp_path):
    asked = config(dataset, recording=RecordingConfig(frames=True))
    result = run_quietly(asked, tmp_path / "run").results.episodes[0]
    recording = read_recording(tmp_path / "run", "pick_0")
    assert len(recording.frames) == len(recording.steps) + 1 == result.steps + 1
    assert [step.action for step in recording.steps] == result.actions
    last = recording.steps[-1]
    assert (last.x, last.y, last.yaw) == tuple(result.pick_place.base_path[-1])
    assert last.distance_to_goal == pytest.approx(result.final_distance_to_goal, abs=1e-6)


# -- what does not fit


@pytest.mark.parametrize(
    ("job", "complaint"),
    [
        (
            {"policy": "oracle"},
            "policy 'oracle' is for vln, .*what fits: expert, hold, human, mcp, random, replay",
        ),
        ({"env": "mock"}, "env 'mock' is for vln, .* of pick_and_place; what fits: tabletop"),
        (
            {"exam_options": {"success_threshold_m": 1.0}},
            "pick_and_place has no option 'success_threshold_m'",
        ),
        ({"exam_options": {"hide_goal": True, "object_info": True}}, "choose one of them"),
    ],
)
def test_what_is_for_another_task_is_refused_before_anything_is_written(dataset, tmp_path, job, complaint):
    with pytest.raises(UserError, match=complaint):
        run_quietly(config(dataset, **job), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_navigation_refuses_what_is_of_pick_and_place(tmp_path):
    house = Path("datasets/sample_r2r.json")
    with pytest.raises(UserError, match=r"policy 'hold' is for pick_and_place, .*what fits: .*oracle"):
        run_quietly(config(house, policy="hold", env="mock"), tmp_path / "run")
    with pytest.raises(UserError, match="the exam vln has no option 'hide_goal'"):
        run_quietly(
            config(house, policy="random", env="mock", exam_options={"hide_goal": True}), tmp_path / "run"
        )


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--level", "1"), "--level is for pick_and_place, and these episodes are of vln"),
        (("--object-info",), "--object-info is for pick_and_place"),
        (("--hide-goal",), "--hide-goal is for pick_and_place"),
    ],
)
def test_options_of_pick_and_place_are_refused_in_navigation(capsys, tmp_path, words, complaint):
    command = ("run", "--dataset", "datasets/sample_r2r.json", "--env", "mock", "--policy", "random")
    code, _, complained = proctor(capsys, *command, "--out", tmp_path / "run", *words)
    assert code == 2
    assert complaint in complained
    assert not (tmp_path / "run").exists()


def test_the_command_refuses_before_the_first_policy_has_begun(capsys, dataset, tmp_path):
    command = ("run", "--dataset", dataset, "--env", FAKE, "--out", tmp_path / "run")
    code, _, complained = proctor(capsys, *command, "--policy", "hold", "forward")
    assert code == 2
    assert "policy 'forward' is for vln" in complained
    code, _, complained = proctor(capsys, *command, "--policy", "hold", "--success-threshold", "1")
    assert code == 2
    assert "--success-threshold is for vln" in complained
    code, _, complained = proctor(capsys, *command, "--policy", "hold", "--level", "4")
    assert code == 2
    assert "--level: expected 0 to 3, found 4" in complained
    assert not (tmp_path / "run").exists()


# -- commands


def test_scores_are_told_in_the_tasks_own_columns(capsys, dataset, tmp_path):
    out = tmp_path / "run"
    command = ("run", "--dataset", dataset, "--env", FAKE, "--policy", PICKER, "hold", "--out", out)
    code, said, _ = proctor(capsys, *command, "--hide-goal")
    assert code == 0, said  # the picker cannot do without coordinates
    assert "KeyError" in said
    assert "note: the goal is hidden" in said
    code, said, _ = proctor(capsys, *command[:-1], tmp_path / "told", "--level", "2", "--seed", "9")
    assert code == 0
    lines = said.splitlines()
    heading = next(line for line in lines if "SR %" in line)
    table = lines[lines.index(heading) :]
    end = next(index for index, line in enumerate(table) if not line.strip())
    assert max(map(len, table[:end])) <= 80
    for column in ("Any %", "Done %", "Simil", "G/L/P %", "Drops", "Bumps", "Steps"):
        assert column in heading
    assert "100/100/100" in said
    assert "0/0/0" in said
    assert "hold failed: 3 timeout" in said
    assert "place" in said
    assert "0.2 m" not in said
    identity = read_manifest(tmp_path / "told" / "hold" / "manifest.json")["identity"]
    assert identity["env_options"] == {"level": 2, "level_seed": 9}


def test_level_0_is_the_run_without_a_level(capsys, dataset, tmp_path):
    command = ("run", "--dataset", dataset, "--env", FAKE, "--policy", "hold", "--out", tmp_path / "run")
    assert proctor(capsys, *command)[0] == 0
    assert proctor(capsys, *command, "--level", "0")[0] == 0  # goes on with it


def test_runs_are_compared_by_the_tasks_own_metrics(capsys, tmp_path):
    dataset = write(tmp_path / "tables" / "episodes.json", 8)
    for policy in (PICKER, "hold"):
        run_quietly(config(dataset, policy=policy), tmp_path / policy.rpartition(":")[2])
    run_quietly(config(dataset, policy="hold", exam_options={"hide_goal": True}), tmp_path / "hidden")
    code, said, _ = proctor(capsys, "compare", tmp_path / "hold", tmp_path / "Picker")
    assert code == 0
    rows = {line.split("  ")[0].strip(): line for line in said.splitlines()}
    for label in ("SR %", "Done %", "Grasped %", "Placed %", "Off target cm"):
        assert "better" in rows[label], said
    assert "B succeeds more often than A in 8 episodes" in said
    _, said, _ = proctor(capsys, "compare", tmp_path / "hold", tmp_path / "hidden")
    assert "not the same exam: what agents are told of the goal differ (false and true)" in said
    assert "B: the goal is hidden" in said


def test_the_list_says_what_is_for_which_task(capsys):
    code, said, _ = proctor(capsys, "list")
    assert code == 0
    tasks = {line.split()[0]: line.split()[1] for line in said.splitlines() if line.startswith("  ")}
    assert (tasks["tabletop"], tasks["embedded"]) == ("pick_and_place", "vln")
    assert (tasks["hold"], tasks["forward"], tasks["random"]) == ("pick_and_place", "vln", "any")
    assert tasks["pick_and_place"] == "proctor.exams.pick_place.exam:PickPlaceExam"


def test_a_job_needs_no_env_to_be_named():
    assert fit_job(RunJob(policy="hold"), PickPlaceExam).env == "tabletop"


# -- over a wire


def shape(value):
    """Return what a message is like: its keys, and what kind of thing each is."""
    if isinstance(value, dict):
        return {key: shape(item) for key, item in value.items()}
    if isinstance(value, list):
        return [shape(value[0])] * len(value) if value else []
    return "number" if isinstance(value, int | float) else type(value).__name__


@pytest.mark.parametrize("subprotocol", [JSON, MSGPACK])
def test_an_agent_at_the_end_of_a_wire_is_sent_the_documents_messages(subprotocol):
    command = {"type": "joint_position", "qpos": [0.05, 0.0, 0.1, 0.6, 0.1, 0.1, 0.0, 0.0, 0.0, 0.02]}
    agent = Agent(answer=lambda conversation: conversation.reply(command))
    given = episode(sim_params={"max_steps": 2})
    with served(agent, subprotocol=subprotocol) as port:
        policy = WebSocketPolicy("127.0.0.1", port)
        result = examine(FakeTabletop(object_info=True), policy, given, PickPlaceExam(), seed=1)
        policy.close()
    assert (result.failure_reason, result.actions) == ("timeout", [command] * 2)
    (reset,) = agent.told("reset_episode")
    told = reset["episode"]
    assert told["task_type"] == "pick_and_place"
    assert {"robot_type": "stretch", "dof": 7}.items() <= told["robot_config"].items()
    goal = record()["task_goal"]
    for part, values in goal.items():
        assert told["task_goal"][part].items() >= values.items()
    cup = record()["scene_objects"][1]
    del cup["usd_path"]  # no agent is told names of files
    assert told["scene_objects"][1].items() >= cup.items()
    assert told["instruction"]["text"] == given.instruction.text
    asked = agent.told("get_action")[0]
    seen = asked["observation"]
    assert seen.keys() == SPEC_OBSERVATION | {"object_info"}
    assert shape(seen["object_info"]) == {
        "target_object_position": ["number"] * 3,
        "target_location_position": ["number"] * 3,
    }
    assert seen["instruction"]["text"] == given.instruction.text
    assert seen["gripper_state"] == 0.0
    if subprotocol == JSON:
        assert [type(seen[name]) for name in ("rgb_head", "rgb_wrist", "depth_head")] == [str] * 3
        assert (shape(seen["qpos"]), shape(seen["ee_pose"])) == (["number"] * 10, ["number"] * 7)
        assert reset["observation_format"]["depth_head"]["encoding"] == "png"
    else:
        assert (seen["rgb_head"]["shape"], seen["qpos"]["dtype"]) == ([24, 32, 3], "<f8")
    (end,) = agent.told("episode_end")
    assert (end["status"], end["num_steps"], end["metrics"]["success"]) == ("failure", 2, 0.0)
    assert end["metrics"]["completion_rate"] == result.metrics["completion_rate"]
    assert end["metrics"]["trajectory_similarity"] is None, "the episode has no reference"
    assert {message["session_id"] for message in (reset, asked, end)} == {reset["session_id"]}


class Breaking(FakeTabletop):
    def step(self, action):
        raise SimulationError("the physics broke")


@pytest.mark.parametrize(("env", "options"), [(FakeTabletop, {"tell_metrics": False}), (Breaking, {})])
def test_the_documented_metrics_are_null_where_they_are_kept_back_or_not_measured(env, options):
    agent = Agent(lambda conversation: conversation.reply({"type": "joint_position", "qpos": [0.0] * 10}))
    with served(agent) as port:
        policy = WebSocketPolicy("127.0.0.1", port, **options)
        examine(env(), policy, episode(sim_params={"max_steps": 2}), PickPlaceExam(), seed=1)
        policy.close()
    (end,) = agent.told("episode_end")
    names = ("success", "completion_rate", "trajectory_similarity")
    assert end["metrics"] == dict.fromkeys(names)


def test_a_served_policy_hears_the_metrics_that_were_measured_as_it_does_in_process():
    heard = queue.Queue()

    class Listener(HoldPolicy):
        def episode_end(self, outcome):
            heard.put(outcome)

    given = episode(sim_params={"max_steps": 2})
    examine(FakeTabletop(), Listener(), given, PickPlaceExam(), seed=1)
    here = heard.get(timeout=60)
    with PolicyServer(Listener, port=0) as server:
        policy = WebSocketPolicy(server.url)
        examine(FakeTabletop(), policy, given, PickPlaceExam(), seed=1)
        there = heard.get(timeout=60)
        policy.close()
    assert (there.status, there.metrics, there.num_steps) == (here.status, here.metrics, here.num_steps)
    assert None not in there.metrics.values()


@pytest.mark.parametrize("policy", [PICKER, "random", "hold"])
def test_a_served_policy_scores_as_it_does_in_process(dataset, tmp_path, policy):
    here = run_quietly(config(dataset, policy=policy), tmp_path / "here").results
    with PolicyServer(load("policy", policy, PickPlaceExam.baselines), port=0) as server:
        there = run_quietly(config(dataset, policy=server.url), tmp_path / "there").results
    assert [e.actions for e in there.episodes] == [e.actions for e in here.episodes]
    assert [e.metrics for e in there.episodes] == [e.metrics for e in here.episodes]
    assert [e.pick_place for e in there.episodes] == [e.pick_place for e in here.episodes]
