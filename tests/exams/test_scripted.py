import msgspec
import numpy as np
import pytest
from running import examine

from proctor.core.errors import AgentFault, InvalidFile, UserError
from proctor.core.interfaces import Policy
from proctor.core.types import Action, EpisodeInfo
from proctor.exams.baselines import MockPolicy
from proctor.exams.results import Fault
from proctor.exams.vln.baselines import ForwardPolicy
from proctor.exams.vln.episode import Episode
from proctor.runs.replay import ReplayPolicy
from proctor.worlds.mock import MockEnv


def info(episode_id="a", seed=0, episode=None):
    return EpisodeInfo(episode_id=episode_id, instruction="", max_steps=9, seed=seed, episode=episode)


def actions(policy, count):
    return [policy.act({}) for _ in range(count)]


def after_reset(policy, episode_info, count=100):
    policy.reset(episode_info)
    return actions(policy, count)


def test_the_random_policy_draws_with_its_stated_chances():
    drawn = np.array(after_reset(MockPolicy(), info(seed=1), 20000))
    shares = [np.mean(drawn == action) for action in Action]
    assert shares == pytest.approx([0.02, 0.68, 0.15, 0.15], abs=0.01)


def test_the_random_policy_depends_on_its_seed_and_on_the_episode_alone():
    policy = MockPolicy()
    first = after_reset(policy, info(seed=1))
    assert after_reset(policy, info(seed=2)) != first
    assert after_reset(policy, info(seed=1)) == first
    assert after_reset(MockPolicy(seed=5), info(seed=1)) != first
    assert after_reset(MockPolicy(seed=5), info(seed=1)) == after_reset(MockPolicy(5), info(seed=1))


def test_the_random_policy_acts_without_a_reset_too():
    assert actions(MockPolicy(), 100) == actions(MockPolicy(), 100)
    assert actions(MockPolicy(1), 100) != actions(MockPolicy(2), 100)


def test_the_forward_policy_goes_ahead_and_stops_in_every_episode():
    policy = ForwardPolicy(steps=3)
    expected = [Action.FORWARD] * 3 + [Action.STOP] * 2
    assert after_reset(policy, info(), 5) == expected
    assert after_reset(policy, info("b"), 5) == expected
    assert actions(ForwardPolicy(), 38) == [Action.FORWARD] * 37 + [Action.STOP]


class Given(Policy):
    """Does the given actions."""

    def __init__(self, actions):
        self._actions = iter(actions)

    def act(self, observation):
        return next(self._actions)


def record(episode_id, actions):
    episode = Episode(episode_id=episode_id, max_steps=len(actions))
    return examine(MockEnv(), Given(actions), episode)


def unscored(result):
    fault = Fault(side="evaluator", kind="env_exception", message="it broke")
    return msgspec.structs.replace(result, status="error", failure_reason=fault.kind, error=fault)


def write_journal(folder, *records, tail=b""):
    lines = b"".join(msgspec.json.encode(record) + b"\n" for record in records)
    (folder / "manifest.json").write_text('{"identity": {"task": "vln"}}')
    (folder / "episodes.jsonl").write_bytes(lines + tail)


def test_replay_repeats_the_last_record_of_an_episode_and_then_stops(tmp_path):
    write_journal(
        tmp_path,
        unscored(record("a", [3])),
        record("b", [2, 2, 0]),
        record("a", [1, 2, 1]),
        tail=b'{"episode_id": "b", "acti',
    )
    policy = ReplayPolicy(str(tmp_path))
    assert after_reset(policy, info("a"), 5) == [1, 2, 1, 0, 0]
    assert after_reset(policy, info("b"), 4) == [2, 2, 0, 0]
    with pytest.raises(AgentFault, match="has no episode 'c'"):
        policy.reset(info("c"))


def test_replay_without_a_run_takes_the_reference_actions():
    assert ReplayPolicy.privileged
    policy = ReplayPolicy()
    episode = Episode(reference_actions=[Action.LEFT, Action.FORWARD])
    assert after_reset(policy, info(episode=episode), 3) == [Action.LEFT, Action.FORWARD, Action.STOP]
    with pytest.raises(AgentFault, match="'a' has no actions to repeat"):
        policy.reset(info(episode=Episode()))


def test_replay_refuses_what_is_not_a_run(tmp_path):
    with pytest.raises(UserError, match="not the directory of a run"):
        ReplayPolicy(str(tmp_path / "missing"))
    write_journal(tmp_path, tail=b'{"episode_id": "a"}\n')
    with pytest.raises(InvalidFile, match="line 1"):
        ReplayPolicy(str(tmp_path))


@pytest.mark.parametrize("value", [-1, 1.5, "3", True])
def test_options_that_are_not_whole_numbers_are_refused(value):
    with pytest.raises(UserError, match="seed: expected a whole number"):
        MockPolicy(seed=value)
    with pytest.raises(UserError, match="steps: expected a whole number"):
        ForwardPolicy(steps=value)
