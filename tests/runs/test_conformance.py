"""The conformance kits: all that comes with Proctor passes them, and each mistake gets one clear message."""

import math
from importlib.metadata import entry_points
from types import MappingProxyType

import numpy as np
import pytest
from fetch_exam import FetchExam

from proctor.cli import main
from proctor.core import registry
from proctor.core.interfaces import Policy
from proctor.core.registry import BUILT_IN, build, suite_path
from proctor.core.types import Action, Vector3
from proctor.exams.datasets import load_dataset, save_dataset
from proctor.exams.exam import Metric
from proctor.exams.names import exam_named, exam_names
from proctor.exams.vln.episode import Episode
from proctor.exams.vln.exam import VlnExam
from proctor.runs.conformance import check_env, check_exam, check_policy
from proctor.worlds.mock import MockEnv

ENVS = [("embedded", "vln"), ("mock", "vln"), ("tabletop", "pick_and_place")]
BASELINES = [(name, exam) for exam in exam_names() for name in (*exam_named(exam).baselines, "random")]
EPISODES = [
    Episode(episode_id=f"ep_{index}", goal_position=Vector3(1 + index, 0, 0), max_steps=40)
    for index in range(2)
]


def episodes_of(exam):
    dataset = load_dataset(suite_path(exam_named(exam).example_suite))
    return dataset.select(count=2)


def complaints(checks):
    return {check.expected: check for check in checks if check.severity != "ok"}


def the_complaint(checks):
    """Return the only finding, whose words must be enough to act on it."""
    (found,) = complaints(checks).values()
    assert found.found
    assert "\n" not in found.found
    return f"{found.severity}: {found.expected}: {found.found}"


@pytest.mark.parametrize("name", exam_names())
def test_every_exam_that_is_registered_conforms(name):
    exam = exam_named(name)
    dataset = load_dataset(suite_path(exam.example_suite))
    checks = check_exam(exam, dataset, build("env", exam.envs[0], {}))
    assert complaints(checks) == {}
    assert len(checks) > 30


@pytest.mark.parametrize(("name", "exam"), ENVS)
def test_every_env_that_runs_here_conforms(name, exam):
    checks = check_env(build("env", name, {}), exam_named(exam)(), episodes_of(exam))
    assert complaints(checks) == {}
    assert len(checks) >= 16


@pytest.mark.parametrize(("name", "exam"), BASELINES)
def test_every_baseline_conforms(name, exam):
    found = exam_named(exam)
    policy = build("policy", name, {}, found.baselines)
    checks = check_policy(policy, found(), build("env", found.envs[0], {}), episodes_of(exam))
    assert complaints(checks) == {}
    assert len(checks) >= 8


def test_replay_conforms_where_there_is_something_to_repeat():
    checks = check_policy(
        build("policy", "replay", {}), VlnExam(), build("env", "embedded", {}), episodes_of("vln")
    )
    assert complaints(checks) == {}
    checks = check_policy(build("policy", "replay", {}), VlnExam(), MockEnv(), EPISODES)
    assert "episode 'ep_0' has no actions to repeat; give a run" in the_complaint(checks)


class Careless(MockEnv):
    """An env with one mistake, which a subclass makes."""

    def step(self, action):
        observation, reward, done, info = super().step(action)
        return self.spoil(observation, reward, done, info)

    def spoil(self, observation, reward, done, info):
        return observation, reward, done, info


class NoCollision(Careless):
    def spoil(self, observation, reward, done, info):
        del info["collision"]
        return observation, reward, done, info


class NanYaw(Careless):
    def spoil(self, observation, reward, done, info):
        return observation, reward, done, info | {"yaw": math.nan}


class Rewarding(Careless):
    def spoil(self, observation, reward, done, info):
        return observation, 1.0, done, info


class Restless(Careless):
    steps = 0

    def spoil(self, observation, reward, done, info):
        Restless.steps += 1
        return observation | {"clock": np.array([Restless.steps])}, reward, done, info

    def reset(self, episode):
        return super().reset(episode) | {"clock": np.array([0])}


class OneBuffer(Careless):
    buffer = np.zeros(1)

    def spoil(self, observation, reward, done, info):
        self.buffer[0] = info["step"]
        return observation | {"odometer": self.buffer}, reward, done, info

    def reset(self, episode):
        self.buffer[0] = 0
        return super().reset(episode) | {"odometer": self.buffer}


class FloatLater(Careless):
    def spoil(self, observation, reward, done, info):
        return observation | {"rgb": observation["rgb"].astype(float)}, reward, done, info


class Endless(Careless):
    def spoil(self, observation, reward, done, info):
        self._state.done = done and info["step"] == 1  # STOP as the first action still ends it
        return observation, reward, self._state.done, info


class Forgiving(MockEnv):
    def step(self, action):
        if self._state is not None and self._state.done:
            return {}, 0.0, True, self.info()
        return super().step(action)


class ClosesOnce(MockEnv):
    is_closed = False

    def close(self):
        if self.is_closed:
            raise RuntimeError("closed before")
        self.is_closed = True


@pytest.mark.parametrize(
    ("env", "complaint"),
    [
        (NoCollision, "info has no 'collision', which this task measures"),
        (NanYaw, "info['yaw']: expected a finite number, found nan"),
        (Rewarding, "warning: the reward is 0.0: the exam scores: found 1.0"),
        (Restless, "the same actions lead to the same observations and infos: step 1: "),
        (OneBuffer, "does not change after it was returned: observation['odometer'] differs"),
        (FloatLater, "observations keep their keys, dtypes and shapes: reset() gave {'rgb': 'uint8"),
        (Endless, "the step limit ends the episode: with a limit of 4 steps, done was [False, "),
        (Forgiving, "error: step() after the end raises an error: returned tuple"),
        (ClosesOnce, "close() may be called twice: raised RuntimeError: closed before"),
    ],
)
def test_a_broken_env_gets_a_message_that_says_what_is_wrong(env, complaint):
    found = [
        f"{check.severity}: {check.expected}: {check.found}"
        for check in check_env(env(), VlnExam(), EPISODES)
    ]
    named = [text for text in found if complaint in text]
    assert named, found
    assert len([text for text in found if not text.startswith("ok")]) <= 2  # one mistake, not a page


class Good(Policy):
    def act(self, observation):
        return Action.FORWARD


class Vandal(Good):
    def act(self, observation):
        observation["rgb"][:] = 255
        return Action.FORWARD


class Talker(Good):
    def act(self, observation):
        return "walk on"


class Moody(Good):
    moods = 0

    def act(self, observation):
        Moody.moods += 1
        return Action.LEFT if Moody.moods % 5 else Action.RIGHT


class Demanding(Good):
    def act(self, observation):
        return Action.FORWARD if observation["heat"] else Action.LEFT


class Sulking(Good):
    def episode_end(self, outcome):
        raise ValueError("I lost")


class Heated(MockEnv):
    """Shows a number that the briefing, which names arrays, does not promise."""

    def reset(self, episode):
        return super().reset(episode) | {"heat": 20.0}

    def step(self, action):
        observation, *rest = super().step(action)
        return observation | {"heat": 20.0}, *rest


@pytest.mark.parametrize(
    ("policy", "complaint"),
    [
        (Vandal, "act() does not change what it was shown: observation['rgb'] differs"),
        (Talker, "expected an integer, 0 STOP, 1 FORWARD, 2 LEFT or 3 RIGHT, or its name; found"),
        (Moody, "warning: the same seed leads to the same actions: actions[0] is 2, then 3"),
        (Demanding, "the sensors of the briefing are enough: raised KeyError: 'heat'"),
    ],
)
def test_a_broken_policy_gets_one_message(policy, complaint):
    Moody.moods = 0
    assert complaint in the_complaint(check_policy(policy(), VlnExam(), Heated(), EPISODES))


def test_what_a_policy_does_at_the_end_is_tried_as_well():
    checks = complaints(check_policy(Sulking(), VlnExam(), MockEnv(), EPISODES))
    assert checks["episode_end() hears how it went"].found == "raised ValueError: I lost"
    assert complaints(check_policy(Good(), VlnExam(), MockEnv(), EPISODES)) == {}


@pytest.fixture
def dataset(tmp_path):
    save_dataset(EPISODES, tmp_path / "episodes.json")
    return load_dataset(tmp_path / "episodes.json")


def exam_with(**changes):
    return type("ChangedExam", (VlnExam,), changes)


def raises(episode, trace, distance):
    return trace.states[99]


SUCCESS, *OTHERS = VlnExam.metrics
UNSTEADY = iter((0.0, 0.5))


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"metrics": OTHERS}, "one metric is called success, and is a rate: the metrics are success_at"),
        ({"metrics": (*VlnExam.metrics, OTHERS[0])}, "several metrics are called success_at_0.2m"),
        ({"envs": ("moon",)}, "its envs are known: unknown: moon"),
        ({"baselines": MappingProxyType({"best": "nowhere:Best"})}, "there is no module 'nowhere'"),
        ({"parse_action": lambda self, answer: Action.FORWARD}, "None is taken for <Action.FORWARD: 1>"),
        ({"identity": classmethod(lambda cls, options: {"x": {1, 2} and object()})}, "identity() cannot be"),
        ({"brief": lambda self, episode, seen: {}}, "brief() returned dict"),
        ({"verdict": lambda self, episode, result: "lost"}, "verdict() returned str"),
        ({"state_type": dict}, "episode and state_type are msgspec structs: state_type is <class 'dict'>"),
    ],
)
def test_a_broken_exam_gets_a_message_that_names_the_part(dataset, changes, complaint):
    checks = check_exam(exam_with(**changes), dataset)
    found = [f"{check.expected}: {check.found}" for check in checks if check.severity != "ok"]
    assert any(complaint in text for text in found), found


@pytest.mark.parametrize(
    ("score", "complaint"),
    [
        (raises, "the metric 'odd' raised IndexError: list index out of range"),
        (lambda *_: "high", "the metric 'odd' returned 'high' (str)"),
        (lambda *_: True, "the metric 'odd' returned True (bool)"),
        (lambda *_: 7.0, "the metric 'odd' returned 7.0, and is a score from 0 to 1"),
        (lambda *_: next(UNSTEADY), "returned 0.0, then 0.5"),
    ],
)
def test_a_broken_metric_is_named(dataset, score, complaint):
    odd = Metric("odd", score, "Odd", "Odd.", is_score=True)
    checks = check_exam(exam_with(metrics=(*VlnExam.metrics, odd)), dataset)
    found = complaints(checks)["nothing happened: every metric is a number or NaN, the same each time"]
    assert complaint in found.found


def test_a_score_that_depends_on_more_than_the_trace_is_noticed(dataset):
    class Forgetful(VlnExam):
        def encode_action(self, action):
            return 1

    checks = complaints(check_exam(Forgetful, dataset, MockEnv()))
    assert "actions[" in checks["a trace can be written and read"].found


def test_an_exam_that_lacks_a_method_is_told_which(monkeypatch, capsys):
    class Unfinished(FetchExam):
        state = FetchExam.__mro__[1].state

    (check,) = check_exam(Unfinished)
    assert check.found == "Unfinished lacks state"
    monkeypatch.setattr("fetch_exam.FetchExam", Unfinished)
    monkeypatch.setitem(BUILT_IN["exam"], "fetch", "fetch_exam:FetchExam")
    assert main(["check-exam", "fetch"]) == 2
    assert capsys.readouterr().err == "error: exam 'fetch' lacks state\n"


def test_two_packages_with_one_name_are_both_named(tmp_path, monkeypatch, capsys):
    for package in ("ours", "theirs"):
        info = tmp_path / f"{package}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[proctor.exams]\nfetch = {package}:FetchExam\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(registry, "entry_points", lambda group: entry_points(group=group))  # read once more
    assert main(["check-exam", "fetch"]) == 2
    told = capsys.readouterr().err
    assert "exam 'fetch' stands for several classes: " in told
    assert "ours:FetchExam of ours" in told
    assert "theirs:FetchExam of theirs" in told
    assert told.endswith("; uninstall one of them\n")


def test_the_commands_print_a_table_and_tell_by_their_exit_code(tmp_path, monkeypatch, capsys, dataset):
    (tmp_path / "worlds.py").write_text(
        "from proctor.worlds.mock import MockEnv\n"
        "class Broken(MockEnv):\n"
        "    def close(self):\n"
        "        raise RuntimeError('stuck [red]')\n"
    )
    monkeypatch.chdir(tmp_path)
    assert main(["check-env", "mock", "--dataset", str(dataset.path)]) == 0
    out = capsys.readouterr().out
    assert "18 tried: 0 errors, 0 warnings" in out
    assert main(["check-env", "worlds.py:Broken", "--dataset", str(dataset.path)]) == 1
    out = " ".join(capsys.readouterr().out.split())
    assert "error close() may be called twice found: raised RuntimeError: stuck [red] remedy: let" in out
    assert "18 tried: 1 errors, 0 warnings" in out
    assert main(["check-policy", "forward", "--env", "mock", "--dataset", str(dataset.path)]) == 0
    assert "8 tried: 0 errors" in capsys.readouterr().out
    assert main(["check-policy", "hold", "--dataset", str(dataset.path)]) == 2
    assert "policy 'hold'" in capsys.readouterr().err
    assert main(["check-exam", "pick_and_place", "--dataset", str(dataset.path)]) == 2
    assert "holds episodes of vln, not of pick_and_place" in capsys.readouterr().err
    assert main(["check-env", "mok"]) == 2
    assert "did you mean 'mock'?" in capsys.readouterr().err


class Stopped(MockEnv):
    """A world whose clock stands while the agent thinks."""

    def wait(self, duration_s, *, keep):
        super().wait(0.0, keep=keep)


def test_an_env_whose_time_stands_while_the_agent_thinks_is_noticed():
    told = the_complaint(check_env(Stopped(), VlnExam(), EPISODES))
    assert told == "error: wait() lets simulated time pass: in wait(0.5, keep=True) 0.000 s passed"
