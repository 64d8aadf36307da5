"""Which nodes the executor `ray` uses, on a stand-in for the cluster with a clock of its own."""

from types import SimpleNamespace

import msgspec
import pytest

from proctor.core.errors import UserError
from proctor.core.types import Vector3
from proctor.exams.results import Fault
from proctor.exams.vln.episode import Episode
from proctor.exams.vln.exam import VlnExam
from proctor.runs import ray_executor
from proctor.runs.attempts import Attempts
from proctor.runs.examiner import lost
from proctor.runs.job import RunJob, agent_digest
from proctor.runs.plan import software_versions
from proctor.runs.pool import START_DEADLINE_S
from proctor.runs.ray_actor import ActorSetup
from proctor.runs.ray_cluster import Lost, Node
from proctor.runs.ray_executor import RayExecutor
from proctor.runs.resources import Moment

JOB = RunJob(policy="random", env="mock", task="vln")


class Call:
    """A call of an actor. It does not end if its answer is None."""

    def __init__(self, answer):
        self.answer = answer


class StandIn:
    """A cluster and a clock. Calls end at once, and each look at them takes a second."""

    label, is_ours = "the Ray cluster", True

    def __init__(self, monkeypatch, **free):
        monkeypatch.setattr(ray_executor, "time", self)
        self.now_s = 0.0
        self.alive = [self.node(name, number) for name, number in free.items()]
        self.describe = lambda name: msgspec.json.encode(software_versions())
        self.prepare = lambda name: b""
        self.examine = lambda name: b""
        self.hired, self.setups, self.examined = [], [], []

    def node(self, name, free=1, places=1):
        return Node(id=name, address=name, hostname=name, places=places, free=free)

    def monotonic(self):
        return self.now_s

    def sleep(self, duration_s):
        self.now_s += duration_s

    def join(self):
        pass

    def leave(self):
        pass

    def own_address(self):
        return "here"

    def nodes(self):
        return [*self.alive]

    def hire(self, node):
        self.hired.append((self.now_s, node.id))

        def prepare(setup):
            self.setups.append(msgspec.json.decode(setup, type=ActorSetup))
            return Call(self.prepare(node.id))

        def examine(encoded, frames_budget_bytes):
            self.examined.append(node.id)
            if complaint := self.examine(node.id):
                return Call([complaint, b"", b"", b"", b""])
            episode = msgspec.json.decode(encoded, type=Episode)
            fault = Fault(side="agent", kind="test", message="")
            done = lost(VlnExam(), episode, 0, fault, begun=Moment.now())
            return Call([b"", done.record, b"", b"", b"[]"])

        return SimpleNamespace(
            describe=SimpleNamespace(remote=lambda: Call(self.describe(node.id))),
            prepare=SimpleNamespace(remote=prepare),
            examine=SimpleNamespace(remote=examine),
            close=SimpleNamespace(remote=lambda: Call(b"[]")),
        )

    def wait(self, calls, timeout_s):
        self.now_s += 1.0
        assert self.now_s < 5000, "it waits for ever"
        return [call for call in calls if call.answer is not None]

    def answer(self, call):
        if isinstance(call.answer, Exception):
            raise call.answer
        return call.answer

    def dismiss(self, actor):
        pass


def executor_on(cluster, episodes, **options):
    """Return an executor that has joined the stand-in, and its episodes."""
    given = [
        Episode(episode_id=str(number), scene_id="s", goal_position=Vector3(1, 0, 0), max_steps=9)
        for number in range(episodes)
    ]
    executor = RayExecutor(JOB, options.pop("workers", None), **options)
    executor._cluster = cluster
    executor.check(given)
    return executor, given


def do_all(executor, episodes):
    done = [finished.result.episode_id for finished in executor.run(Attempts(episodes)) if finished]
    assert sorted(done, key=int) == [episode.episode_id for episode in episodes]


def test_workers_that_come_later_check_their_agent_and_compare_its_files(monkeypatch):
    cluster = StandIn(monkeypatch, a=1)
    executor, episodes = executor_on(cluster, 20)
    executor.start()
    cluster.alive.append(cluster.node("b"))
    do_all(executor, episodes)
    assert {"a", "b"} == set(cluster.examined)
    assert [setup.check for setup in cluster.setups] == [True, True]
    assert {setup.job.policy_sha256 for setup in cluster.setups} == {agent_digest(JOB)}


def test_a_node_from_which_the_agent_is_away_for_a_moment_is_tried_again_after_a_pause(monkeypatch):
    cluster = StandIn(monkeypatch, a=1)
    executor, episodes = executor_on(cluster, 300)
    executor.start()
    cluster.alive.append(cluster.node("b", free=3, places=3))
    cluster.prepare = lambda name: b"connection refused" if cluster.now_s < 60 else b""
    do_all(executor, episodes)
    tries_s = sorted({when_s for when_s, name in cluster.hired if name == "b"})
    assert len(tries_s) == 3  # all three workers of a try fail, and that counts once
    assert 30 <= tries_s[1] - tries_s[0] < 40
    assert 60 <= tries_s[2] - tries_s[1] < 70
    assert "b" in cluster.examined
    assert executor.close() == []


def test_a_node_that_never_reaches_the_agent_is_refused_and_the_others_go_on(monkeypatch):
    cluster = StandIn(monkeypatch, a=1)
    executor, episodes = executor_on(cluster, 300)
    executor.start()
    cluster.alive.append(cluster.node("b"))
    cluster.prepare = lambda name: b"connection refused"
    do_all(executor, episodes)
    assert [name for _, name in cluster.hired].count("b") == 3
    assert set(cluster.examined) == {"a"}
    problem = "not used: node b (b): 3 workers, one after the other, could not begin: connection refused"
    assert executor.close() == [problem]


def test_a_worker_that_hangs_while_it_is_built_is_given_up(monkeypatch):
    cluster = StandIn(monkeypatch, a=1, b=1)
    cluster.prepare = lambda name: None if name == "b" else b""
    executor, _ = executor_on(cluster, 2)
    with pytest.raises(UserError, match=r"node b \(b\): a worker was not ready after 960 s"):
        executor.start()
    assert cluster.now_s > START_DEADLINE_S


def test_a_node_whose_worker_cannot_be_built_again_is_left_to_others(monkeypatch):
    cluster = StandIn(monkeypatch, a=1, b=1)
    executor, episodes = executor_on(cluster, 20)
    executor.start()
    cluster.examine = lambda name: b"the GPU is gone" if name == "b" else b""
    do_all(executor, episodes)
    assert cluster.examined.count("b") == 1
    assert executor.close() == ["not used: node b (b): the GPU is gone"]


def test_without_a_node_that_is_left_the_run_ends_with_the_reason(monkeypatch):
    cluster = StandIn(monkeypatch, a=1, b=1)
    executor, episodes = executor_on(cluster, 20)
    executor.start()
    cluster.examine = lambda name: b"the GPU is gone"
    with pytest.raises(UserError, match=r"the last node was refused: node . \(.\): the GPU is gone"):
        do_all(executor, episodes)


def test_a_run_whose_last_node_rests_says_what_went_wrong_there(monkeypatch):
    cluster = StandIn(monkeypatch, a=1)
    executor, episodes = executor_on(cluster, 20, start_timeout_s=10.0)
    executor.start()
    cluster.alive = [cluster.node("b")]
    cluster.prepare = lambda name: b"connection refused"
    executor._lose(executor._seats[0], "its node is gone")
    with pytest.raises(UserError, match=r"could begin within 10 s \(node b \(b\): connection refused\)"):
        do_all(executor, episodes)


def test_nodes_whose_cpus_are_free_come_first(monkeypatch):
    cluster = StandIn(monkeypatch, a=0, b=1, c=0)
    executor, _ = executor_on(cluster, 9, workers=1)
    executor.start()
    assert [name for _, name in cluster.hired] == ["b"]


def test_who_waits_for_a_cpu_that_is_in_use_goes_where_one_is_free(monkeypatch):
    cluster = StandIn(monkeypatch, a=0)
    describe = cluster.describe
    cluster.describe = lambda name: None if name == "a" else describe(name)
    executor, episodes = executor_on(cluster, 9, workers=1)
    executor._cluster.wait = lambda calls, timeout_s: (
        cluster.alive.append(cluster.node("b")) if len(cluster.alive) == 1 else None,
        StandIn.wait(cluster, calls, timeout_s),
    )[1]
    executor.start()
    do_all(executor, episodes)
    assert [name for _, name in cluster.hired] == ["a", "b"]
    assert set(cluster.examined) == {"b"}


def test_workers_that_wait_stay_where_they_are_while_no_cpu_is_free(monkeypatch):
    cluster = StandIn(monkeypatch, a=1, b=0)
    describe = cluster.describe
    cluster.describe = lambda name: None if name == "b" else describe(name)
    executor, episodes = executor_on(cluster, 30)
    executor.start()
    do_all(executor, episodes)
    assert [name for _, name in cluster.hired] == ["a", "b"]


def test_a_head_that_is_silent_for_a_moment_ends_no_run_also_at_its_start(monkeypatch):
    cluster = StandIn(monkeypatch, a=1)
    executor, episodes = executor_on(cluster, 20)
    nodes = cluster.nodes
    cluster.nodes = lambda: None if cluster.now_s < 5 or 15 < cluster.now_s < 20 else nodes()
    executor.start()
    do_all(executor, episodes)
    assert executor.close() == []


def test_idle_workers_of_a_node_that_is_gone_get_no_episode(monkeypatch):
    cluster = StandIn(monkeypatch, a=1, b=1)
    executor, episodes = executor_on(cluster, 20)
    executor.start()
    cluster.alive = [node for node in cluster.alive if node.id == "a"]
    cluster.now_s += 2.0
    do_all(executor, episodes)
    assert set(cluster.examined) == {"a"}


def test_a_worker_that_is_lost_before_the_start_is_tried_again_at_once(monkeypatch):
    cluster = StandIn(monkeypatch, a=1)
    cluster.prepare = lambda name: Lost("gone") if len(cluster.hired) < 3 else b""
    executor, _ = executor_on(cluster, 2)
    executor.start()
    assert len(cluster.hired) == 3
    assert cluster.now_s < 10.0
