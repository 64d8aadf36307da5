"""Batches of sessions: nobody waits in vain, nobody gets another's answer."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from evaluators import call

from proctor.agents.policy_source import Batcher
from proctor.agents.server import PolicyServer
from proctor.core.interfaces import Policy


class Named(Policy):
    def __init__(self, name=""):
        self.name = name

    def act(self, observation):
        raise AssertionError("batches go to act_batch")


@pytest.fixture
def batcher():
    """Make batchers that end with the test."""
    made = []

    def make(act_batch, *, max_batch=8, wait_s=30.0, sessions=8):
        made.append(Batcher(act_batch, max_batch=max_batch, wait_s=wait_s, sessions=lambda: sessions))
        return made[-1]

    yield make
    for one in made:
        one.close()
        one._thread.join(30)
        assert not one._thread.is_alive()


def ask_all(batcher, count):
    """Ask for several policies at the same time and return what each of them got."""
    with ThreadPoolExecutor(count) as executor:
        futures = [executor.submit(batcher.act, Named(str(n)), {"n": n}) for n in range(count)]
        return [future.exception() or future.result() for future in futures]


def sign(policies, observations):
    return [(p.name, o["n"], len(policies)) for p, o in zip(policies, observations, strict=True)]


def test_a_full_batch_does_not_wait(batcher):
    answers = ask_all(batcher(sign, max_batch=4, wait_s=3600), 4)
    assert answers == [(str(n), n, 4) for n in range(4)]


def test_a_batch_of_all_sessions_does_not_wait(batcher):
    assert ask_all(batcher(sign, wait_s=3600, sessions=3), 3) == [(str(n), n, 3) for n in range(3)]


def test_a_batch_does_not_wait_longer_than_it_may(batcher):
    assert ask_all(batcher(sign, wait_s=0.001), 1) == [("0", 0, 1)]
    assert ask_all(batcher(sign, wait_s=0.0), 1) == [("0", 0, 1)]


def test_no_batch_is_too_large_and_no_answer_is_lost(batcher):
    answers = ask_all(batcher(sign, max_batch=3, wait_s=0.001), 20)
    assert [answer[:2] for answer in answers] == [(str(n), n) for n in range(20)]
    assert max(size for *_, size in answers) <= 3


def test_what_comes_while_the_model_works_makes_the_next_batch(batcher):
    working, may_go_on = threading.Event(), threading.Event()

    def act_batch(policies, observations):
        working.set()
        assert may_go_on.wait(30)
        return sign(policies, observations)

    one = batcher(act_batch, wait_s=0.0)
    with ThreadPoolExecutor(4) as executor:
        first = executor.submit(one.act, Named("first"), {"n": 0})
        assert working.wait(30)
        others = [executor.submit(one.act, Named(str(n)), {"n": n}) for n in range(3)]
        while one._requests.qsize() < 3:
            pass
        may_go_on.set()
        assert first.result(30) == ("first", 0, 1)
        assert [other.result(30)[2] for other in others] == [3, 3, 3]


@pytest.mark.parametrize("error", [ValueError("broken model"), SystemExit(2)], ids=repr)
def test_an_error_reaches_everybody_in_its_batch_and_the_next_batch_is_served(batcher, error):
    fails = [True]

    def act_batch(policies, observations):
        if fails.pop() if fails else False:
            raise error
        return sign(policies, observations)

    one = batcher(act_batch, max_batch=3)
    assert ask_all(one, 3) == [error] * 3
    assert ask_all(one, 3) == [(str(n), n, 3) for n in range(3)]


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ([1, 2], "act_batch must return 3 actions, one per policy, found 2"),
        ([1, 2, 3, 4], "act_batch must return 3 actions, one per policy, found 4"),
        (None, "act_batch must return a list of 3 actions, found NoneType"),
        ({1: 0, 2: 0, 3: 0}, "act_batch must return a list of 3 actions, found dict"),
        ({1, 2, 3}, "act_batch must return a list of 3 actions, found set"),
        ("123", "act_batch must return a list of 3 actions, found str"),
    ],
)
def test_a_wrong_number_of_actions_is_told(batcher, answer, words):
    assert [str(error) for error in ask_all(batcher(lambda *_: answer, max_batch=3), 3)] == [words] * 3


def test_a_batch_that_fails_ends_its_sessions_and_no_others():
    class Model(Policy):
        def reset(self, episode_info):
            self.text = episode_info.instruction

        def act(self, observation):
            raise AssertionError("batches go to act_batch")

        @staticmethod
        def act_batch(policies, observations):
            if any(policy.text == "fail" for policy in policies):
                raise ValueError("no such room")
            return [policy.text for policy in policies]

    serving = PolicyServer(Model, port=0, max_batch=4, batch_wait_s=0.0)
    with serving as server, call(server) as good, call(server) as bad:
        good.reset(instruction={"text": "good"})
        bad.reset(instruction={"text": "fail"})
        assert good.act().action == "good"
        assert bad.act().message == "ValueError: no such room"
        assert good.act().action == "good"
