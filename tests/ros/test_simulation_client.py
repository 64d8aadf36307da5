"""A simulator is controlled, and what goes wrong is said in time."""

import contextlib
import math
import os
import signal
import subprocess
import sys
import threading
import time

import pytest
from served_world import save_yard, served_world
from simulation_interfaces.msg import Resource
from simulation_interfaces.srv import (
    DeleteEntity,
    GetEntityState,
    GetSimulationState,
    GetSimulatorFeatures,
    LoadWorld,
    SetSimulationState,
    SpawnEntity,
    StepSimulation,
)
from stub_simulator import KINDS, StubSimulator

from proctor.core.errors import SimulationError, UserError
from proctor.core.types import Pose2
from proctor.worlds.ros2.host.simulation_checks import ROBOT_URI
from proctor.worlds.ros2.host.simulation_services import FEATURES
from proctor.worlds.ros2.node.node import RosNode
from proctor.worlds.ros2.node.topic import RobotClock
from proctor.worlds.ros2.robot import simulation_client
from proctor.worlds.ros2.robot.simulation_client import SimulationClient

POSE = Pose2(1.0, 2.0, 0.5)


@pytest.fixture
def node():
    with RosNode("examiner") as node:
        yield node


@contextlib.contextmanager
def stub_for(node, *, timeout_s=10.0, prefix="", **options):
    """Yields a stub and a client of it that have found each other."""
    with StubSimulator(prefix, **options) as stub:
        client = SimulationClient(node, prefix=prefix, timeout_s=timeout_s)
        assert client.is_available(10.0)
        try:
            yield stub, client
        finally:
            stub.release()


@contextlib.contextmanager
def thread(work):
    worker = threading.Thread(target=work)
    worker.start()
    try:
        yield worker
    finally:
        worker.join(20.0)
        assert not worker.is_alive()


def test_an_episode_is_begun_over_and_over(node, tmp_path):
    scene = save_yard(tmp_path / "yard.json")
    with served_world(scene, prefix="sim") as host:
        clock = RobotClock(node)
        client = SimulationClient(node, prefix="/sim", clock=clock)
        assert client.is_available(10.0)
        assert len(client.features()) == len(FEATURES)
        assert "WORLD_LOADING" in client.features()
        client.load_world(scene.as_uri())
        assert client.state() == "STOPPED"
        for x in (1.0, -1.0):
            spawned_s = client.respawn("rover", Pose2(x, 2.0, -0.5), uri=ROBOT_URI, namespace="rover")
            position, yaw = client.position("rover")
            assert (position.x, position.y, yaw) == pytest.approx((x, 2.0, -0.5), abs=1e-6)
            assert client.state() == "PLAYING"
            assert 0 < spawned_s <= clock.now_s
        assert host.time_s > 0
        assert client.delete("rover")
        assert not client.delete("rover")
        with pytest.raises(SimulationError, match=r"get_entity_state failed with NOT_FOUND \(2\).*'rover'"):
            client.position("rover")
        with pytest.raises(SimulationError, match=r"load_world failed with NO_RESOURCE \(102\)"):
            client.load_world("nowhere.json")
        with pytest.raises(SimulationError, match=r"spawn_entity failed with NAME_INVALID \(102\)"):
            client.respawn("no name", POSE, uri=ROBOT_URI)


def test_every_refusal_is_an_error_with_its_name(node):
    names = {
        0: "FEATURE_UNSUPPORTED",
        2: "NOT_FOUND",
        3: "INCORRECT_STATE",
        4: "OPERATION_FAILED",
        101: "NAME_NOT_UNIQUE",
        102: "NAME_INVALID",
        103: "UNSUPPORTED_FORMAT",
        104: "NO_RESOURCE",
        105: "NAMESPACE_INVALID",
        106: "RESOURCE_PARSE_ERROR",
        107: "MISSING_ASSETS",
        108: "UNSUPPORTED_ASSETS",
        109: "INVALID_POSE",
        77: "result 77",
        200: "result 200",
    }
    with stub_for(node) as (stub, client):
        for code, name in names.items():
            stub.codes[SpawnEntity] = [code]
            with pytest.raises(SimulationError, match=rf"^/spawn_entity failed with {name}.*as it was told"):
                client.respawn("rover", POSE, uri="u")
        for kind, call in {
            DeleteEntity: lambda: client.delete("rover"),
            GetEntityState: lambda: client.position("rover"),
            GetSimulationState: client.state,
            LoadWorld: lambda: client.load_world("u"),
            SetSimulationState: client.play,
        }.items():
            for code in (0, 3, 4, 103):
                stub.codes[kind] = [code]
                with pytest.raises(SimulationError, match=rf"failed with .*\b{code}\b"):
                    call()
        stub.error_message = "\x1b[2J" + "x" * 100_000
        with pytest.raises(SimulationError) as caught:
            client.play()
        assert len(str(caught.value)) < 500
        assert "\x1b" not in str(caught.value)


def test_what_is_so_already_is_no_error(node):
    with stub_for(node) as (stub, client):
        stub.codes[SetSimulationState] = [101]
        client.play()
        stub.codes[DeleteEntity] = [2]
        assert not client.delete("rover")
        assert client.respawn("rover", POSE, z=0.25, uri="u", namespace="ns") > 0
        request = stub.asked(SpawnEntity)[-1]
        assert (request.name, request.uri, request.entity_namespace) == ("rover", "u", "ns")
        assert not request.allow_renaming
        position, orientation = request.initial_pose.pose.position, request.initial_pose.pose.orientation
        assert (position.x, position.y, position.z) == (1.0, 2.0, 0.25)
        assert (orientation.z, orientation.w) == pytest.approx((math.sin(0.25), math.cos(0.25)))
        assert [kind for kind, _ in stub.requests[-3:]] == [DeleteEntity, SpawnEntity, SetSimulationState]


def test_a_robot_that_came_late_is_replaced(node):
    with stub_for(node) as (stub, client):
        stub.codes[SpawnEntity] = [101, 1]
        client.respawn("rover", POSE, uri="u")
        asked = [kind for kind, _ in stub.requests if kind in (DeleteEntity, SpawnEntity)]
        assert asked == [DeleteEntity, SpawnEntity] * 2


def test_silence_is_an_error_in_time_and_a_late_answer_is_nobodys(node):
    with stub_for(node, timeout_s=1.0) as (stub, client):
        places = iter([1.0, 2.0])

        def fill(response):
            response.state.pose.position.x = next(places)

        stub.fill[GetEntityState] = fill
        stub.held = {GetEntityState}
        begin_s = time.monotonic()
        with pytest.raises(
            SimulationError, match=r"no answer in 1 s: /get_entity_state is served by /stub_sim"
        ):
            client.position("rover")
        assert time.monotonic() - begin_s < 5.0
        stub.held = set()
        with thread(lambda: (stub.wait_until(lambda: False, 0.2), stub.release())):
            assert client.position("rover")[0].x == 2.0
        assert stub.in_flight[GetEntityState] == 1


def test_what_does_no_harm_twice_is_asked_again_when_the_answer_is_lost(node, monkeypatch):
    monkeypatch.setattr(simulation_client, "REPEAT_S", 0.2)
    with stub_for(node) as (stub, client):
        for kind, ask in ((DeleteEntity, lambda: client.delete("robot")), (SetSimulationState, client.play)):
            stub.held = {kind}

            def answer_later_ones(kind=kind):
                stub.wait_until(lambda: stub.asked(kind), 10.0)
                stub.held = set()

            with thread(answer_later_ones):
                ask()
            assert len(stub.asked(kind)) == 2
        stub.held = {SpawnEntity}
        client._timeout_s = 1.0
        with pytest.raises(SimulationError, match=r"no answer in 1 s: /spawn_entity"):
            client.respawn("robot", POSE, uri=ROBOT_URI)
        assert len(stub.asked(SpawnEntity)) == 1  # of which there would be two robots


def test_a_simulator_that_forgot_a_request_is_asked_again_later(node):
    with stub_for(node, timeout_s=0.5) as (stub, client):
        stub.held = {GetSimulationState}
        with pytest.raises(SimulationError, match=r"no answer in 0.5 s"):
            client.state()
        with pytest.raises(SimulationError, match=r"an earlier request is still unanswered after 0.5 s more"):
            client.state()
        assert len(stub.asked(GetSimulationState)) == 1
        stub.held = set()
        assert client.state() == "STOPPED"


def test_other_services_answer_while_one_is_silent(node):
    with stub_for(node, timeout_s=0.5) as (stub, client):
        stub.held = {LoadWorld}
        states = []

        def ask():
            assert stub.wait_until(lambda: bool(stub.asked(LoadWorld)), 10.0)
            states.append(client.state())

        with thread(ask), pytest.raises(SimulationError, match=r"no answer in 0.5 s"):
            client.load_world("u")
    assert states == ["STOPPED"]


def test_threads_take_turns(node):
    with stub_for(node) as (stub, client):
        stub.held = {GetEntityState}
        found = []
        workers = [threading.Thread(target=lambda: found.append(client.position("rover"))) for _ in range(4)]
        for worker in workers:
            worker.start()
        for number in range(1, 5):
            assert stub.wait_until(lambda n=number: len(stub.asked(GetEntityState)) == n, 10.0)
            stub.release()
        for worker in workers:
            worker.join(10.0)
        assert len(found) == 4
        assert stub.in_flight[GetEntityState] == 1


def test_a_simulator_that_leaves_is_noticed_before_the_deadline(node):
    with stub_for(node, timeout_s=60.0) as (stub, client):
        stub.held = {SpawnEntity}

        def leave():
            assert stub.wait_until(lambda: bool(stub.asked(SpawnEntity)), 10.0)
            stub.close()

        begin_s = time.monotonic()
        with thread(leave), pytest.raises(SimulationError, match="left before it answered: nobody serves"):
            client.respawn("rover", POSE, uri="u")
        assert time.monotonic() - begin_s < 30.0


KILLED = """
import os, sys
sys.path.insert(0, {folder!r})
from stub_simulator import StubSimulator
stub = StubSimulator()
stub.held = {{kind for kind in __import__("stub_simulator").KINDS if kind.__name__ == "LoadWorld"}}
stub.wait_until(lambda: bool(stub.requests), 60.0)
print("asked", flush=True)
stub.wait_until(lambda: False, 60.0)
"""


def test_a_simulator_that_is_killed_is_silent_and_its_successor_is_found(node):
    folder = os.path.dirname(__file__)  # noqa: PTH120
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED.format(folder=folder)], stdout=subprocess.PIPE, text=True
    )
    try:
        client = SimulationClient(node, timeout_s=1.0)
        assert client.is_available(20.0)

        def kill():
            assert process.stdout.readline() == "asked\n"
            process.send_signal(signal.SIGKILL)

        with thread(kill), pytest.raises(SimulationError, match=r"no answer in 1 s|left before it answered"):
            client.load_world("u")
        with StubSimulator() as stub:
            assert node.wait_until(lambda: "stub_simulator" in node.get_node_names(), 10.0)
            attempts = (_state(client) for _ in range(10))
            assert next(filter(None, attempts)) == "STOPPED"
            assert stub.asked(GetSimulationState)
    finally:
        process.kill()
        process.wait(10.0)
        process.stdout.close()


def _state(client):
    with contextlib.suppress(SimulationError):
        return client.state()


def test_nobody_there_and_a_wrong_prefix_are_told_apart(node):
    client = SimulationClient(node, timeout_s=0.3)
    assert not client.is_available()
    with pytest.raises(
        SimulationError, match=r"nobody serves /set_simulation_state: is the simulator running"
    ):
        client.play()
    with (
        stub_for(node, prefix="/gzserver"),
        pytest.raises(
            SimulationError,
            match=r"nobody serves /load_world, but there is /gzserver/load_world: is the prefix",
        ),
    ):
        client.load_world("u")
    with RosNode("other") as other:
        other.create_service(StepSimulation, "/set_simulation_state", lambda _, response: response)
        assert node.wait_until(lambda: "other" in node.get_node_names(), 10.0)
        with pytest.raises(
            SimulationError,
            match=r"/set_simulation_state is .*/StepSimulation, expected .*/SetSimulationState",
        ):
            client.play()


def test_a_clock_that_stands_still_is_an_error(node):
    with stub_for(node, timeout_s=0.5, ticking=False) as (stub, client):
        stub.fill[GetSimulationState] = lambda response: setattr(response.state, "state", 1)
        with pytest.raises(SimulationError, match=r"/clock is not published for 0.5 s though .* is PLAYING"):
            client.respawn("rover", POSE, uri="u")
        assert node.wait_until(lambda: (stub.tick(), client._clock.is_simulated)[1], 10.0)
        with pytest.raises(SimulationError, match=r"/clock stands still for 0.5 s"):
            client.respawn("rover", POSE, uri="u")


def test_a_place_that_is_none_is_an_error(node):
    with stub_for(node) as (stub, client):
        stub.fill[GetEntityState] = lambda response: setattr(response.state.pose.position, "y", math.nan)
        with pytest.raises(SimulationError, match=r"/get_entity_state of 'rover': expected finite numbers"):
            client.position("rover")
        stub.fill[GetEntityState] = lambda response: setattr(response.state.pose.orientation, "z", math.inf)
        with pytest.raises(
            SimulationError, match=r"/get_entity_state of 'rover': .* quaternion of length inf, expected 1"
        ):
            client.position("rover")


def test_features_of_newer_simulators_and_of_the_oldest_are_read(node):
    names = {GetSimulatorFeatures: "get_simulation_features"}
    with stub_for(node, kinds=KINDS, names=names) as (stub, client):
        stub.fill[GetSimulatorFeatures] = lambda response: setattr(response.features, "features", [0, 9999])
        assert node.wait_until(client._old_features.is_served, 10.0)
        assert client.features() == {"SPAWNING", "FEATURE_9999"}


def test_requests_of_version_2_carry_the_address_in_a_resource(node, monkeypatch):
    for kind, field in ((SpawnEntity, "entity_resource"), (LoadWorld, "world_resource")):
        monkeypatch.setattr(simulation_client, kind.__name__, version_2(kind, field))
    with stub_for(node) as (stub, client):
        client.respawn("rover", POSE, uri="a robot")
        client.load_world("a world")
        # On the wire a resource is the two texts that version 1 has in its place.
        assert [request.uri for request in stub.asked(SpawnEntity)] == ["a robot"]
        assert [request.uri for request in stub.asked(LoadWorld)] == ["a world"]


def version_2(kind, field):
    """Returns a service whose request has `uri` in a resource, and nowhere else."""

    def init(self, **fields):
        setattr(self, field, Resource())
        kind.Request.__init__(self, **fields)

    def refuse(_, value):
        assert not value

    request = type(kind.Request)(kind.Request.__name__, (kind.Request,), {"__init__": init})
    request.uri = property(lambda self: getattr(self, field).uri, refuse)
    request.__module__ = kind.Request.__module__
    return type(kind)(kind.__name__, (kind,), {"Request": request, "__module__": kind.__module__})


def test_a_node_that_is_closed_ends_all_waiting():
    node = RosNode("examiner")
    with stub_for(node, timeout_s=60.0) as (stub, client):
        stub.held = {GetSimulationState}

        def close():
            assert stub.wait_until(lambda: bool(stub.asked(GetSimulationState)), 10.0)
            node.close()

        begin_s = time.monotonic()
        with thread(close), pytest.raises(SimulationError, match=r"no longer listens|node was closed"):
            client.state()
        with pytest.raises(SimulationError, match=r"no longer listens|node was closed"):
            client.play()
        assert time.monotonic() - begin_s < 30.0


def test_settings_that_make_no_sense_are_refused(node):
    with pytest.raises(UserError, match="cannot be the name of a service"):
        SimulationClient(node, prefix="a b")
    for timeout_s in (0.0, -1.0, math.nan, math.inf):
        with pytest.raises(UserError, match="timeout_s"):
            SimulationClient(node, timeout_s=timeout_s)
