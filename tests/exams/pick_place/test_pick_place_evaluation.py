"""Pick-and-place as an exam, on a table without physics: what is told, measured, refused and kept."""

import json

import msgspec
import numpy as np
import pytest
from fake_tabletop import BrokenWorld, FakeTabletop, Picker, Untold, episode, record
from running import examine

from proctor.core.errors import UserError
from proctor.core.interfaces import Env, Policy
from proctor.core.registry import load
from proctor.core.types import EpisodeInfo
from proctor.exams.baselines import MockPolicy
from proctor.exams.pick_place.actions import parse_manipulation_action
from proctor.exams.pick_place.baselines import HoldPolicy
from proctor.exams.pick_place.episode import PickAndPlaceEpisode
from proctor.exams.pick_place.exam import PickPlaceExam, PickPlaceOptions
from proctor.exams.pick_place.results import PickPlaceResult
from proctor.robots.stretch import JOINT_LIMITS, JOINT_NAMES, SENSORS, StretchSensorSuite
from proctor.runs.examiner import episode_seed
from vln_evaluator.evaluators import PickPlaceEvaluator, evaluate_pick_place

FAKE = "fake_tabletop:FakeTabletop"


class Listener(Policy):
    """Keeps what it is told and shown."""

    def reset(self, episode_info):
        self.info, self.seen = episode_info, []

    def act(self, observation):
        self.seen.append(observation)
        return {"type": "joint_position", "qpos": observation["qpos"]}


class KnowsAll(Listener):
    privileged = True


class Says(Policy):
    """Gives one and the same answer."""

    def __init__(self, answer):
        self._answer = answer

    def act(self, observation):
        return self._answer


@pytest.fixture
def dataset(tmp_path):
    path = tmp_path / "tables" / "episodes.json"
    path.parent.mkdir()
    path.write_text(json.dumps({"episodes": [record(index) for index in range(3)]}))
    return path


def play(policy, given=None, env=None, *, exam=None):
    return examine(env or FakeTabletop(), policy, given or episode(), exam or PickPlaceExam(), seed=5)


# -- one episode


def test_a_cup_that_is_put_where_it_should_be_is_a_success():
    result = play(Picker())
    assert (result.status, result.success, result.failure_reason, result.error) == (
        "success",
        True,
        None,
        None,
    )
    assert type(result) is PickPlaceResult
    assert result.steps < 200
    assert result.metrics["success"] == result.metrics["placed"] == 1.0
    assert result.metrics["completion_rate"] > 0.9
    assert result.final_distance_to_goal < 0.05
    assert result.distance == "euclidean"
    story = result.pick_place
    assert story.target == (-0.15, -0.62, 0.8)
    states = result.steps + 1
    lists = (result.trajectory, result.headings, story.object_path, story.base_path)
    assert [len(each) for each in (*lists, story.gripper, story.phases, story.held)] == [states] * 7
    assert result.trajectory[0].array().tolist() == [0.0, -0.35, 0.5]  # before the first step
    assert story.object_path[0] == (0.1, -0.6, 0.8)
    assert (story.phases[0], story.phases[-1]) == ("reach", "place")
    stages = [story.stages[name] for name in ("reached", "grasped", "lifted", "placed", "released")]
    assert stages == sorted(stages)
    assert story.held.index(True) == story.stages["grasped"]
    assert not story.held[story.stages["released"]]


def test_its_record_survives_the_journal():
    result = play(Picker())
    back = msgspec.json.decode(msgspec.json.encode(result), type=type(result))
    assert back == result
    assert parse_manipulation_action(back.actions[0]).qpos[3] == pytest.approx(1.05)


def test_holding_still_is_a_timeout_in_which_nothing_was_reached():
    result = play(HoldPolicy(), episode(sim_params={"max_steps": 7}))
    assert (result.status, result.failure_reason, result.steps) == ("failure", "timeout", 7)
    assert set(result.pick_place.stages.values()) == {None}
    assert result.metrics["grasped"] == 0.0
    assert len(set(result.trajectory)) == 1
    assert result.final_distance_to_goal == pytest.approx(np.hypot(0.25, 0.02))


def test_an_episode_that_an_env_ends_without_success_is_no_timeout():
    class Impatient(FakeTabletop):
        def step(self, action):
            observation, reward, _, info = super().step(action)
            return observation, reward, True, info

    assert play(HoldPolicy(), env=Impatient()).failure_reason == "ended_early"


def test_without_a_target_lifting_is_enough():
    goal = record()["task_goal"]
    del goal["target_location"]
    goal["success_criteria"]["type"] = "grasp_and_lift"

    class Lifter(Picker):
        def reset(self, episode_info):
            told = episode_info.details["task_goal"]
            assert "target_location" not in told
            told["target_location"] = {"position": [0.1, -0.6, 1.0]}
            super().reset(episode_info)

    result = play(Lifter(), episode(task_goal=goal))
    assert result.success
    assert result.final_distance_to_goal == 0.0
    assert result.pick_place.target is None


def test_the_robots_bumps_are_counted_by_step():
    low = [0, 0, 0, 0.2, 0.1, 0.1, 0.1, 0.1, 0, 0.04]
    result = play(Says({"type": "joint_position", "qpos": low}), episode(sim_params={"max_steps": 30}))
    assert result.collision_count == len(result.collision_steps) == result.metrics["table_collisions"] > 0
    assert result.collision_steps[-1] == 30


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (1, "invalid_action"),
        ({"type": "joint_position", "qpos": [0.0] * 9}, "wrong_action_length"),
        ({"type": "joint_position", "qpos": [0.0] * 9 + [float("nan")]}, "action_not_finite"),
        ({"type": "ee_pose_target", "ee_pose_target": [0.0] * 7, "gripper_action": 0.0}, "invalid_action"),
    ],
)
def test_what_is_no_action_is_the_agents_fault(answer, kind):
    result = play(Says(answer))
    assert (result.status, result.error.side, result.failure_reason) == ("error", "agent", kind)
    assert result.metrics["success"] == 0.0
    assert len(result.trajectory) == 1
    assert result.final_distance_to_goal == pytest.approx(np.hypot(0.25, 0.02))


def test_hand_targets_and_seven_numbers_are_actions_too():
    hand = {"type": "ee_pose_target", "ee_pose_target": [0.0, -0.5, 0.9, 1, 0, 0, 0], "gripper_action": 0.01}
    result = play(Says(hand), episode(sim_params={"max_steps": 60}))
    assert result.actions == [hand] * 60
    assert result.trajectory[-1].array() == pytest.approx([0.0, -0.5, 0.9])
    short = play(Says({"type": "joint_position", "qpos": [0, 0, 0, 0.9, 0.1, 0, 0]}))
    assert short.trajectory[-1].array() == pytest.approx([0.0, -0.45, 0.9])


@pytest.mark.parametrize("env", [BrokenWorld(), Untold()])
def test_a_table_that_cannot_be_set_is_the_evaluators_fault(env):
    result = play(Picker(), episode(1), env)
    assert (result.error.side, result.error.kind) == ("evaluator", "env_exception")
    assert result.trajectory == result.pick_place.object_path == []
    assert result.metrics == {}
    assert result.final_distance_to_goal == pytest.approx(np.hypot(0.3, 0.02))


# -- what an agent is told


def test_an_agent_is_told_robot_goal_and_things():
    listener = Listener()
    play(
        listener,
        episode(scene_objects=[*record()["scene_objects"], {"name": "can", "position": [0, -1, 0.8]}]),
    )
    info = listener.info
    assert (info.task, info.max_steps, info.seed) == ("pick_and_place", 200, episode_seed(5, "pick_0"))
    assert info.instruction.startswith("Pick up the red cup")
    assert info.actions == ("joint_position", "ee_pose_target")
    assert info.episode is None
    assert "truth" not in listener.seen[0]
    goal, robot = info.details["task_goal"], info.details["robot_config"]
    given = record()["task_goal"]
    for part, values in given.items():  # all that the file says, defaults included
        assert goal[part].items() >= values.items()
    assert (robot["robot_type"], robot["dof"]) == ("stretch", 7)
    assert list(robot["joint_limits"]) == robot["joint_names"] == list(JOINT_NAMES)
    assert [thing["name"] for thing in info.details["scene_objects"]] == ["table", "cup_red", "can"]
    assert info.details["sim_params"]["control_period"] == 0.1
    assert msgspec.to_builtins(info.details) == json.loads(json.dumps(info.details))  # nothing but builtins


def test_where_the_object_starts_is_told_even_if_only_the_scene_says_it():
    goal = record()["task_goal"]
    del goal["target_object"]["initial_position"]
    listener = Listener()
    play(listener, episode(task_goal=goal))
    assert listener.info.details["task_goal"]["target_object"]["initial_position"] == [0.1, -0.6, 0.8]


def test_a_hidden_goal_tells_names_and_criteria_but_no_coordinates():
    listener = Listener()
    play(listener, exam=PickPlaceExam(PickPlaceOptions(hide_goal=True)))
    details = listener.info.details
    goal = details["task_goal"]
    assert goal["target_object"] == {"name": "cup_red"}
    assert goal["target_location"] == {"type": "position", "radius": 0.1}
    assert goal["success_criteria"]["place_tolerance"] == 0.05
    assert [thing["name"] for thing in details["scene_objects"]] == ["table", "cup_red"]
    text = json.dumps([goal, details["scene_objects"]])
    assert 'position": [' not in text
    assert "rotation" not in text
    assert "-0.6" not in text
    assert details["robot_config"]["init_pose"]  # its own place it may know


def test_a_privileged_policy_gets_the_episode_and_the_truth_hidden_or_not():
    knows = KnowsAll()
    play(knows, exam=PickPlaceExam(PickPlaceOptions(hide_goal=True)))
    assert isinstance(knows.info.episode, PickAndPlaceEpisode)
    assert knows.seen[0]["truth"]["object_position"] == [0.1, -0.6, 0.8]


def test_the_sensors_that_are_told_are_those_of_the_robot():
    listener = Listener()
    play(listener, episode(sim_params={"max_steps": 1}), FakeTabletop(scale=1.0))
    told = listener.info.sensors
    for name in ("rgb_head", "rgb_wrist", "depth_head"):
        facts = getattr(SENSORS, name)
        assert told[name].shape[:2] == (facts["height"], facts["width"])
        assert told[name].dtype == {"RGB": "uint8", "depth": "uint16"}[facts["format"]]
    assert told["qpos"].shape == (SENSORS.joint_positions["dim"],) == (10,)
    assert told["qvel"].shape == (SENSORS.joint_velocities["dim"],)
    assert told["ee_pose"].shape == (SENSORS.ee_pose["dim"],)
    assert SENSORS.joint_positions["names"] == list(JOINT_NAMES)
    assert SENSORS.gripper_state["range"] == [0.0, 0.04]
    assert set(told) == {"rgb_head", "rgb_wrist", "depth_head", "qpos", "qvel", "ee_pose"}


def test_what_a_sensor_suite_says_is_its_own():
    with pytest.raises(AttributeError):
        SENSORS.ee_pose = {}
    own = StretchSensorSuite()
    own.object_pose["position"]["dim"] = 6
    assert StretchSensorSuite() == SENSORS != own


# -- policies that do not look


def test_random_is_the_same_for_the_same_seed_and_stays_within_limits():
    info = EpisodeInfo(episode_id="e", instruction="", max_steps=9, seed=4, task="pick_and_place")
    runs = []
    for seed in (4, 4, 5):
        policy = MockPolicy()
        policy.reset(msgspec.structs.replace(info, seed=seed))
        runs.append([policy.act({}) for _ in range(200)])
    assert runs[0] == runs[1] != runs[2]
    targets = np.array([action.qpos for action in runs[0]])
    low, high = np.array(list(JOINT_LIMITS.values())).T
    assert ((low <= targets) & (targets <= high)).all()
    assert np.abs(targets[:, :2]).max() <= 0.2
    assert len(set(runs[0])) == 20
    assert (np.ptp(targets[:, 3:], axis=0) > 0.5 * (high - low)[3:]).all()  # all of their range


def test_hold_commands_the_first_joints_it_saw_even_if_they_move():
    policy = HoldPolicy()
    policy.reset(None)
    first = policy.act({"qpos": np.arange(10.0)})
    assert policy.act({"qpos": np.zeros(10)}) == first
    assert first.qpos == tuple(range(10))


# -- from Python


def test_the_evaluator_for_python(dataset, tmp_path):
    with PickPlaceEvaluator(FakeTabletop(), Picker(), seed=3, hide_goal=False) as evaluator:
        assert evaluator.evaluate_episode(episode()).success
        results = evaluator.evaluate_dataset(dataset, episodes=2)
        evaluator.save_results(results, tmp_path / "new" / "results.json")
    assert results.success_rate == 1.0
    assert json.loads((tmp_path / "new" / "results.json").read_text())["summary"]["success_count"] == 2
    with PickPlaceEvaluator(FakeTabletop(), Listener(), hide_goal=True) as evaluator:
        evaluator.evaluate_episode(episode())
        assert "position" not in evaluator._examiner.policy.info.details["task_goal"]["target_location"]


def test_one_call_is_enough(dataset):
    results = evaluate_pick_place(dataset, env=FAKE, policy="hold")
    assert (results.total_episodes, results.success_rate, results.timeout_count) == (3, 0.0, 3)


def test_the_evaluator_refuses_what_is_for_another_task(dataset):
    with pytest.raises(
        UserError, match=r"policy 'ForwardPolicy' is for vln, .* of pick_and_place; what fits: .*hold"
    ):
        evaluate_pick_place(dataset, env=FAKE, policy="forward")
    with pytest.raises(UserError, match=r"env 'MockEnv' is for vln.*what fits: tabletop"):
        evaluate_pick_place(dataset, env="mock", policy="hold")
    with pytest.raises(
        UserError, match="expected episodes of pick_and_place, as PickPlaceEvaluator takes, found vln"
    ):
        evaluate_pick_place("datasets/sample_r2r.json", env=FAKE, policy="hold")


# -- registry


@pytest.mark.parametrize("name", PickPlaceExam.baselines)
def test_the_baselines_of_the_exam_can_be_built(name):
    assert issubclass(load("policy", name, PickPlaceExam.baselines), Policy)


@pytest.mark.parametrize("name", PickPlaceExam.envs)
def test_the_envs_of_the_exam_can_be_built(name):
    assert issubclass(load("env", name), Env)
