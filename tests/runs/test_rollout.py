"""The loop: exact step limits, faults laid at the right door, ground truth kept from agents."""

import math

import msgspec
import numpy as np
import pytest
from running import examine

from proctor.core.errors import AgentFault, EvaluatorError, SimulationError, UserError
from proctor.core.interfaces import TRUTH, Env, Policy
from proctor.core.types import Vector3
from proctor.exams.results import EpisodeResult
from proctor.exams.vln.episode import Episode
from proctor.exams.vln.exam import VlnExam
from proctor.worlds.mock import MockEnv

EPISODE = Episode(
    episode_id="straight",
    goal_position={"x": 1, "y": 0, "z": 0},
    instruction="Walk one metre.",
    max_steps=10,
    reference_path=[Vector3(0.25 * i, 0, 0) for i in range(5)],
)


class Scripted(Policy):
    """Gives the listed answers; an exception in the list is raised."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.seen = []
        self.told = self.outcome = None

    def reset(self, episode_info):
        self.told = episode_info

    def act(self, observation):
        self.seen.append(observation)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    def episode_end(self, outcome):
        self.outcome = outcome


class BrokenWorld(MockEnv):
    """Works for a while, then does not."""

    def __init__(self, *, good_steps):
        super().__init__()
        self.good_steps = good_steps

    def reset(self, episode):
        if self.good_steps < 0:
            raise RuntimeError("the engine did not start")
        return super().reset(episode)

    def step(self, action):
        self.good_steps -= 1
        if self.good_steps < 0:
            raise RuntimeError("the engine died")
        return super().step(action)


def take(policy, *, env=None, episode=EPISODE):
    return examine(env or MockEnv(), policy, episode, seed=7)


def test_walking_to_the_goal_and_stopping_is_a_success():
    result = take(Scripted(1, 1, 1, 1, 0))
    assert (result.status, result.success, result.failure_reason) == ("success", True, None)
    assert result.actions == [1, 1, 1, 1, 0]
    assert result.steps == 5
    assert len(result.trajectory) == 6
    assert result.final_distance_to_goal == pytest.approx(0)
    assert result.metrics["spl"] == pytest.approx(1)
    assert result.metrics["ndtw"] == pytest.approx(1)
    assert result.metrics["steps"] == 5


@pytest.mark.parametrize("limit", [1, 2, 5, 37])
def test_the_step_limit_is_exact(limit):
    policy = Scripted(2)
    result = take(policy, episode=Episode(goal_position=Vector3(9, 0, 0), max_steps=limit))
    assert result.steps == limit
    assert len(policy.seen) == limit
    assert result.failure_reason == "timeout"
    assert result.status == "failure"


def test_a_stop_in_the_last_step_is_a_stop_not_a_timeout():
    result = take(Scripted(1, 1, 0), episode=Episode(goal_position=Vector3(0.5, 0, 0), max_steps=3))
    assert result.success


def test_stopping_far_away_ends_the_episode_as_a_failure():
    result = take(Scripted(0))
    assert (result.status, result.failure_reason, result.steps) == ("failure", "stopped_far", 1)


@pytest.mark.parametrize(
    "answer", [4, -1, 1.0, "GO", None, True, [True], {"action": None}, np.float32(1), np.array([1.0]), 2**70]
)
def test_an_action_that_is_none_is_the_agents_fault_and_keeps_what_was_measured(answer):
    result = take(Scripted(1, answer))
    assert result.status == "error"
    assert result.error.side == "agent"
    assert result.failure_reason == result.error.kind == "invalid_action"
    assert "0 STOP, 1 FORWARD" in result.error.message
    assert result.steps == 1
    assert result.metrics["success"] == 0.0
    assert result.metrics["path_length"] == pytest.approx(0.25)


@pytest.mark.parametrize("answer", [np.int64(1), np.uint8(1)])
def test_numpy_integers_are_integers(answer):
    assert take(Scripted(answer)).status == "failure"


def test_an_exception_in_the_policy_is_the_agents_fault():
    result = take(Scripted(1, ZeroDivisionError("model exploded")))
    assert result.error.side == "agent"
    assert result.error.kind == "policy_exception"
    assert result.error.message == "ZeroDivisionError: model exploded"
    assert "in act" in result.error.traceback
    assert result.steps == 1


def test_a_fault_that_the_policy_names_keeps_its_name():
    result = take(Scripted(AgentFault("timeout_of_my_model", "too slow")))
    assert result.failure_reason == "timeout_of_my_model"


@pytest.mark.parametrize("error", [EvaluatorError, SimulationError, UserError])
def test_no_error_that_a_policy_raises_removes_the_episode_from_its_score(error):
    result = take(Scripted(1, error("this episode is too hard")))
    assert (result.error.side, result.error.kind) == ("agent", "policy_exception")
    assert result.error.message == "this episode is too hard"
    assert result.metrics["success"] == 0.0


def test_an_exception_in_reset_of_the_policy_is_the_agents_fault():
    class NoStart(Scripted):
        def reset(self, episode_info):
            raise ValueError("no weights")

    result = take(NoStart(0))
    assert result.error.side == "agent"
    assert result.steps == 0
    assert result.metrics["navigation_error"] == pytest.approx(1.0)


@pytest.mark.parametrize("good_steps", [-1, 0, 3])
def test_a_broken_world_is_never_the_agents_fault(good_steps):
    policy = Scripted(1)
    result = take(policy, env=BrokenWorld(good_steps=good_steps))
    assert result.is_evaluator_fault
    assert result.error.kind == "env_exception"
    assert result.metrics == {}
    assert not result.success
    if policy.told is None:
        assert policy.outcome is None  # the end of what never began for it
    else:
        assert (policy.outcome.status, policy.outcome.num_steps) == ("error", good_steps)


class Unprintable(Exception):
    def __str__(self):
        raise RuntimeError


@pytest.mark.parametrize(
    "error",
    [
        SystemExit(0),
        GeneratorExit(),
        BaseException(),
        Unprintable(),
        ValueError("\ud800"),
        RecursionError(),
        MemoryError(),
    ],
    ids=lambda error: type(error).__name__,
)
def test_whatever_a_policy_raises_is_recorded_and_can_be_written_down(error):
    class Raising(Policy):
        def act(self, observation):
            raise error

    result = take(Raising())
    assert result.error.side == "agent"
    assert result.error.kind == "policy_exception"
    assert msgspec.json.decode(msgspec.json.encode(result), type=EpisodeResult) == result


@pytest.mark.parametrize("answer", [10**5000, object()], ids=["a huge number", "an object"])
def test_an_answer_that_cannot_be_quoted_is_still_the_agents_fault(answer):
    first, again = take(Scripted(answer)), take(Scripted(answer))
    assert first.error.side == "agent"
    assert first.error.message == again.error.message
    assert "0x" not in first.error.message


def with_score_of_steps(score):
    class Odd(VlnExam):
        metrics = tuple(
            metric._replace(score=score) if metric.name == "steps" else metric for metric in VlnExam.metrics
        )

    return Odd()


def test_a_metric_that_is_infinite_or_no_number_is_left_out():
    for value in (math.inf, math.nan):
        exam = with_score_of_steps(lambda episode, trace, distance, value=value: value)
        result = examine(MockEnv(), Scripted(0), EPISODE, exam)
        assert "steps" not in result.metrics
        assert result.error is None


def fail(episode, trace, distance):
    raise ZeroDivisionError("by nought")


@pytest.mark.parametrize(
    ("score", "said"),
    [
        (fail, "the metric 'steps' failed: ZeroDivisionError: by nought"),
        (
            lambda episode, trace, distance: "many",
            "the metric 'steps' returned 'many' (str), expected a number",
        ),
        (
            lambda episode, trace, distance: None,
            "the metric 'steps' returned None (NoneType), expected a number",
        ),
    ],
)
def test_a_metric_that_fails_or_returns_something_else_is_the_evaluators_fault(score, said):
    result = examine(MockEnv(), Scripted(1, 0), EPISODE, with_score_of_steps(score))
    assert result.is_evaluator_fault
    assert said in result.error.message
    assert result.metrics == {}


def test_an_env_without_info_serves_ordinary_policies_and_says_so_to_privileged_ones():
    class Plain(Env):
        def __init__(self):
            self.world = MockEnv()

        def reset(self, episode):
            return self.world.reset(episode)

        def step(self, action):
            return self.world.step(action)

        def close(self):
            self.world.close()

    class Oracle(Scripted):
        privileged = True

    assert take(Scripted(1, 1, 1, 1, 0), env=Plain()).success
    result = take(Oracle(0), env=Plain())
    assert result.is_evaluator_fault
    assert "Plain has no info()" in result.error.message


def test_an_interrupt_is_not_swallowed():
    class Impatient(Policy):
        def act(self, observation):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        take(Impatient())


def test_an_ordinary_policy_sees_no_goal_and_no_ground_truth():
    policy = Scripted(1, 0)
    take(policy)
    assert policy.told.episode is None
    assert policy.told.instruction == "Walk one metre."
    assert policy.told.max_steps == 10
    assert all(set(seen) == {"rgb", "depth"} for seen in policy.seen)


def test_a_privileged_policy_gets_the_episode_and_the_truth():
    class Oracle(Scripted):
        privileged = True

    policy = Oracle(1, 0)
    take(policy)
    assert policy.told.episode == EPISODE
    assert [seen[TRUTH]["step"] for seen in policy.seen] == [0, 1]
    assert policy.seen[1][TRUTH]["position"].x == pytest.approx(0.25)


def test_a_policy_cannot_make_itself_privileged():
    policy = Scripted(1, 0)
    policy.privileged = True
    take(policy)
    assert policy.told.episode is None
    assert TRUTH not in policy.seen[0]


def test_an_endless_error_text_is_cut():
    result = take(Scripted(ValueError("x" * 1_000_000)))
    assert result.error.message.startswith("ValueError: xxx")
    assert len(result.error.message) < 4100
    assert len(result.error.traceback) < 4100


def test_one_exam_can_grade_many_episodes_without_mixing_them_up():
    exam = VlnExam()
    first = examine(MockEnv(), Scripted(1, 1, 1, 1, 0), EPISODE, exam)
    examine(MockEnv(), Scripted(2), EPISODE, exam)
    again = examine(MockEnv(), Scripted(1, 1, 1, 1, 0), EPISODE, exam)
    assert again.metrics == first.metrics
    assert again.trajectory == first.trajectory


def test_time_is_charged_to_the_side_that_took_it():
    timing = take(Scripted(2)).timing
    assert timing.policy_s > 0
    assert timing.env_s > 0
    assert timing.evaluator_s > 0


class Seeing(MockEnv):
    """Tells of its camera what the test says."""

    def __init__(self, **camera):
        super().__init__()
        self.camera = camera

    def cameras(self):
        return {"rgb": self.camera}


class Chatty(Scripted):
    uses_chat_task = True


CAMERA = {
    "height": 48,
    "fy": 24.0,
    "frame": "base_link",
    "position": [0, 0, 1.2],
    "rotation": [0.5, -0.5, 0.5, -0.5],
}


def test_only_who_speaks_to_a_model_is_told_of_the_camera():
    for policy, told in ((Scripted(0), None), (Chatty(0), (90.0, 0.0, 1.2))):
        examine(Seeing(**CAMERA), policy, EPISODE)
        assert policy.told.camera == (told if told is None else pytest.approx(told))
    policy = Chatty(0)
    examine(Seeing(**{**CAMERA, "frame": "head"}), policy, EPISODE)
    assert policy.told.camera.height_m is None


def test_an_env_that_does_not_know_its_camera_is_at_fault_itself_and_only_if_it_is_asked():
    assert examine(Seeing(fy=0.0), Scripted(0), EPISODE).error is None
    error = examine(Seeing(fy=0.0), Chatty(0), EPISODE).error
    assert (error.side, "no calibration for 'rgb'" in error.message) == ("evaluator", True)
