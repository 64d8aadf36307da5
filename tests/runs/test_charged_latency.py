"""Thinking time that costs: what is charged, what the robot does meanwhile, and what is kept of it."""

import time

import numpy as np
import pytest
from running import run
from stretch_moves import CLOSED, OPEN, TABLE_Z, UP, controls_for, episode_with

from proctor.core.errors import SimulationError, UserError
from proctor.core.interfaces import Env, Policy
from proctor.core.types import Action, Usage, Vector3
from proctor.exams.datasets import save_dataset
from proctor.exams.pick_place.env import PickPlaceEnv
from proctor.exams.vln.episode import Episode
from proctor.exams.vln.exam import VlnExam
from proctor.runs.conditions import Conditions
from proctor.runs.folder import RunFolder
from proctor.runs.job import RunJob
from proctor.runs.latency import MAX_CHARGE_S, ThinkingCost, checked_charge
from proctor.runs.plan import RunConfig
from proctor.runs.rollout import rollout
from proctor.runs.scoring import dataset_of, rescore
from proctor.scenes.scene_config import Part, SceneConfig, SceneObject, save_scene
from proctor.worlds.mock import MockEnv
from proctor.worlds.mujoco.wheeled.env import VLNEnv


class Drives(Policy):
    """Goes FORWARD so many times, then stops; thinks for a while before each action."""

    def __init__(self, moves=3, thinks_s=0.0):
        self.moves, self.thinks_s = moves, thinks_s

    def reset(self, episode_info):
        self.left = self.moves

    def act(self, observation):
        began_s = time.perf_counter()
        while time.perf_counter() - began_s < self.thinks_s:
            pass
        self.left -= 1
        return Action.FORWARD if self.left >= 0 else Action.STOP


class Wandering(Drives):
    """Turns and drives by chance: its actions do not depend on how long anything takes."""

    def reset(self, episode_info):
        self.turn = episode_info.seed % 7

    def act(self, observation):
        self.turn += 1
        return (Action.FORWARD, Action.LEFT, Action.FORWARD, Action.RIGHT)[self.turn % 4]


class Chatty(Drives):
    """Decides about two actions at once, and counts its decisions."""

    def usage(self):
        return Usage(decisions=1) if self.left % 2 == 0 else None


class Impatient(MockEnv):
    """A world of the kind that was written before there was a `wait`."""

    wait = Env.wait


def episode(key="ep", **fields):
    return Episode(
        episode_id=key,
        scene_id="flat",
        instruction=f"Go straight ahead: {key}.",
        goal_position=Vector3(2.0, 0.0, 0.0),
        max_steps=12,
        **fields,
    )


@pytest.fixture
def dataset(tmp_path):
    save_dataset([episode(f"ep_{number}") for number in range(5)], tmp_path / "episodes.json")
    return tmp_path / "episodes.json"


@pytest.fixture
def walled(tmp_path):
    """An episode whose robot looks at a wall, 0.8 m ahead."""
    wall = SceneObject(
        name="wall",
        translate=(1.0, 0.0, 0.0),
        parts=[Part(shape="box", size=(0.4, 4.0, 1.0), translate=(0.0, 0.0, 0.5))],
    )
    save_scene(SceneConfig(scene_name="walled", objects=[wall]), tmp_path / "walled.json")
    return episode(scene_config_path=str(tmp_path / "walled.json"))


def job(*, charge_latency="", while_thinking="stop", **fields):
    conditions = Conditions(charge_latency=charge_latency, while_thinking=while_thinking)
    wandering = {"env": "mock", "policy": "test_charged_latency:Wandering", "conditions": conditions}
    return RunJob(**wandering | fields)


def files_of(folder):
    """All that a run has written, without what differs between two equal runs."""
    found = RunFolder.open(folder)
    traces = {result.episode_id: found.trace(result.episode_id) for result in found.episodes}
    charged = {key: (trace.charged_s, trace.simulated_s, trace.states) for key, trace in traces.items()}
    return (folder / "results.json").read_bytes(), charged


@pytest.mark.parametrize("while_thinking", ["hold", "stop"])
def test_a_fixed_latency_gives_the_same_bytes_for_any_number_of_workers(tmp_path, dataset, while_thinking):
    charged = job(charge_latency="0.7", while_thinking=while_thinking)
    for workers in (1, 2):
        run(RunConfig(job=charged, dataset=dataset, workers=workers), tmp_path / str(workers))
    assert files_of(tmp_path / "1") == files_of(tmp_path / "2")
    (first, *_), (_, charges) = RunFolder.open(tmp_path / "1").episodes, files_of(tmp_path / "1")
    assert first.thinking.charged_s == [0.7] * 12
    assert first.thinking.simulated_s == pytest.approx(charges["ep_0"][1])


def test_a_latency_of_zero_is_the_same_run_as_none(tmp_path, dataset):
    run(RunConfig(job=job(), dataset=dataset), tmp_path / "free")
    zero = job(charge_latency="0.0", while_thinking="hold")
    run(RunConfig(job=zero, dataset=dataset), tmp_path / "zero")
    assert files_of(tmp_path / "free") == files_of(tmp_path / "zero")
    assert run(RunConfig(job=zero, dataset=dataset), tmp_path / "free").done_before == 5
    with pytest.raises(
        UserError, match=r"different run: its conditions is None, yours is {'charge_latency': '0.5'}"
    ):
        run(RunConfig(job=job(charge_latency="0.50"), dataset=dataset), tmp_path / "free")


def test_the_robot_moves_on_or_stands_while_the_agent_thinks(tmp_path, dataset):
    ends = {}
    for while_thinking in ("hold", "stop"):
        drives = job(policy="test_charged_latency:Drives", charge_latency="1", while_thinking=while_thinking)
        run(RunConfig(job=drives, dataset=dataset, episodes=1), tmp_path / while_thinking)
        (ends[while_thinking],) = RunFolder.open(tmp_path / while_thinking).episodes
    assert ends["stop"].trajectory[-1].x == pytest.approx(0.75)
    # Before the first action there is nothing to go on with. Before each of the three others it drives on.
    assert ends["hold"].trajectory[-1].x == pytest.approx(0.75 + 3 * 0.1)
    assert ends["hold"].thinking.simulated_s == pytest.approx(4 * 1.0 + 3 * 2.5)


def test_a_robot_near_a_wall_bumps_while_the_agent_thinks(walled):
    bumps = {}
    for keeps in (True, False):
        env = VLNEnv(sensors=["odom"])
        cost = ThinkingCost(5.0, keeps_command=keeps)
        trace = rollout(env, Drives(1), walled, VlnExam(), seed=0, thinking=cost)
        env.close()
        bumps[keeps] = [state.collision for state in trace.states]
        assert trace.charged_s == [5.0, 5.0]
        assert trace.simulated_s == pytest.approx(12.7, abs=0.3)
    assert bumps == {True: [False, False, True], False: [False, False, False]}


@pytest.mark.parametrize("keeps", [True, False])
def test_an_agent_may_be_quicker_than_a_step_of_physics(walled, keeps):
    env = VLNEnv(sensors=["odom"])
    trace = rollout(
        env, Drives(1), walled, VlnExam(), seed=0, thinking=ThinkingCost(1e-5, keeps_command=keeps)
    )
    env.close()
    assert trace.steps == 2


def test_what_was_measured_is_charged_and_kept(tmp_path, dataset):
    thinks = job(
        policy="test_charged_latency:Drives",
        policy_options={"thinks_s": 0.02},
        charge_latency="measured",
        while_thinking="hold",
    )
    run(RunConfig(job=thinks, dataset=dataset, episodes=2), tmp_path / "run")
    found = RunFolder.open(tmp_path / "run")
    for result in found.episodes:
        trace = found.trace(result.episode_id)
        assert trace.charged_s == result.thinking.charged_s
        assert trace.charged_s == pytest.approx(trace.latencies_s, abs=2e-6)
        assert min(trace.charged_s) >= 0.02
        assert result.trajectory[-1].x == pytest.approx(0.75 + 0.1 * sum(trace.charged_s[1:]))
    again = rescore(found, dataset_of(found))
    assert [r.thinking for r in again.results.episodes] == [r.thinking for r in found.episodes]
    for trace_file in (tmp_path / "run" / "traces").iterdir():
        trace_file.unlink()
    again = rescore(found, dataset_of(found))
    assert [r.thinking for r in again.results.episodes] == [r.thinking for r in found.episodes]


def test_an_agent_that_hangs_is_charged_only_so_much():
    env = MockEnv()
    env.reset(episode())
    assert ThinkingCost(None, keeps_command=False).charge(env, 1e9) == MAX_CHARGE_S
    assert env.time_s() == MAX_CHARGE_S


@pytest.mark.parametrize(
    ("written", "meant"), [("measured", "measured"), ("0.50", "0.5"), ("2", "2"), ("0", ""), ("1e-9", "")]
)
def test_seconds_have_one_spelling(written, meant):
    assert checked_charge(written) == meant


@pytest.mark.parametrize("written", ["-1", "nan", "inf", "601", "soon", "1s"])
def test_seconds_that_make_no_sense_are_refused(written):
    with pytest.raises(UserError, match=r"--charge-latency: expected measured or seconds from 0 to 600"):
        checked_charge(written)


def test_a_world_that_cannot_wait_is_refused_before_the_run(tmp_path, dataset):
    charged = job(env="test_charged_latency:Impatient", charge_latency="1")
    with pytest.raises(UserError, match=r"cannot let simulated time pass.*: embedded, mock"):
        run(RunConfig(job=charged, dataset=dataset), tmp_path / "run")
    assert not (tmp_path / "run").exists()
    with pytest.raises(SimulationError, match="Impatient has no wait"):
        Impatient().wait(1.0, keep=True)


def test_the_command_line_explains_what_is_missing(proctor, dataset, tmp_path):
    exam = ["run", "--dataset", str(dataset), "--policy", "forward", "--env", "mock", "--episodes", "1"]
    code, _, problem = proctor(*exam, "--while-thinking", "hold")
    assert code == 2
    assert "--while-thinking is about time that --charge-latency charges" in problem
    charged = ["--charge-latency", "0.5", "--while-thinking", "hold", "--out", str(tmp_path / "run")]
    code, said, _ = proctor(*exam, *charged)
    assert code == 0
    told = "thinking time is charged, 0.5 s for every action: the robot keeps its last command meanwhile"
    assert told in " ".join(said.split())
    assert RunFolder.open(tmp_path / "run").notes == [told]


def test_the_arm_goes_on_to_its_targets_or_stops():
    at = np.array([0.5, 0.0, TABLE_Z + 0.05])
    env = PickPlaceEnv(sensors=[])
    moved = {}
    for keep in (True, False):
        env.reset(episode_with({"shape": {"kind": "cup", "color": "red"}}))
        env.step(_joints(controls_for(at + UP, OPEN)))
        before_s, before = env.time_s(), env._world.controls()
        env.wait(3.0, keep=keep)
        assert env.time_s() - before_s == pytest.approx(3.0)
        moved[keep] = abs(env._world.controls() - before).max()
    env.close()
    assert moved[True] > 0.1
    assert moved[False] < 0.03


def test_a_hand_that_stops_while_the_agent_thinks_does_not_let_go():
    at = np.array([0.5, 0.0, TABLE_Z + 0.05])
    env = PickPlaceEnv(sensors=[])
    env.reset(episode_with({"shape": {"kind": "cup", "color": "red"}}))
    moves = ((at + UP, OPEN, 40), (at, OPEN, 30), (at, CLOSED, 20), (at + UP, CLOSED, 12))
    for place, grip, steps in moves:
        for _ in range(steps):
            _, _, _, info = env.step(_joints(controls_for(place, grip)))
    assert info["object_grasped"]
    env.wait(2.0, keep=False)
    _, _, _, info = env.step(_joints(controls_for(at + UP, CLOSED)))
    env.close()
    assert info["object_grasped"]


def _joints(controls):
    return {"type": "joint_position", "qpos": [float(value) for value in controls]}


def test_what_was_decided_at_once_is_charged_once():
    trace = rollout(
        MockEnv(), Chatty(3), episode(), VlnExam(), seed=0, thinking=ThinkingCost(0.5, keeps_command=True)
    )
    assert trace.charged_s == [0.5, 0.0, 0.5, 0.0]


class Denying(Chatty):
    """Counts tokens, and says that it never decides."""

    def act(self, observation):
        time.sleep(0.01)
        return super().act(observation)

    def usage(self):
        return Usage(input_tokens=5)


def test_an_agent_that_counts_no_decisions_is_charged_for_each_action():
    cost = ThinkingCost(0.5, keeps_command=True)
    trace = rollout(MockEnv(), Denying(3), episode(), VlnExam(), seed=0, thinking=cost)
    assert trace.charged_s == [0.5] * 4


def test_a_measured_time_is_charged_whatever_the_agent_says_of_its_decisions():
    cost = ThinkingCost(None, keeps_command=False)
    trace = rollout(MockEnv(), Denying(3), episode(), VlnExam(), seed=0, thinking=cost)
    assert min(trace.charged_s) >= 0.01
