"""Control of a simulator through simulation_interfaces: worlds, robots, time."""

from __future__ import annotations

import math
import threading
import time
from typing import Any

from geometry_msgs.msg import PoseStamped
from rclpy.exceptions import InvalidHandle, NameValidationException
from rclpy.node import NodeNameNonExistentError
from simulation_interfaces.msg import Result, SimulationState, SimulatorFeatures
from simulation_interfaces.srv import (
    DeleteEntity,
    GetEntityState,
    GetSimulationState,
    GetSimulatorFeatures,
    LoadWorld,
    SetSimulationState,
    SpawnEntity,
)

from proctor.core.errors import SimulationError, UserError
from proctor.core.plain_text import plain
from proctor.core.types import Pose2, Vector3
from proctor.worlds.ros2.node.convert import check_rotation, quaternion, resource_of, yaw_of
from proctor.worlds.ros2.node.node import RosNode
from proctor.worlds.ros2.node.topic import RobotClock

REPEAT_S = 1.0  # so long without an answer, what does no harm twice is asked again
FEATURES: dict[int, str] = {
    value: name
    for name, value in vars(SimulatorFeatures).items()
    if name.isupper() and isinstance(value, int)
}
STATES: dict[int, str] = {
    value: name for name, value in vars(SimulationState).items() if name.startswith("STATE_")
}


class Service:
    """Calls one service from any thread but the node's own.

    Some simulators remember only the newest request on a service and would send it the answer to an older
    one. So the next request waits for the answer to the last, and an answer that nobody waits for any more is
    dropped. And a new server may drop its first answers, since it has not discovered the client yet: requests
    that do no harm twice can be repeated.
    """

    def __init__(self, node: RosNode, kind: Any, name: str) -> None:
        self.kind = kind
        self._node = node
        self._turn = threading.Lock()
        self._unanswered: list[Any] = []  # a request, and its repetitions
        try:
            self._client = node.create_client(kind, name)
        except NameValidationException as error:
            raise UserError(f"'{name}' cannot be the name of a service: {error}") from None
        self.name: str = self._client.srv_name

    def is_served(self) -> bool:
        """Return whether somebody serves it."""
        try:
            return bool(self._client.service_is_ready())
        except InvalidHandle:
            raise SimulationError(f"{self.name} cannot be called: the node was closed") from None

    def call(self, request: Any, timeout_s: float, *, repeat_s: float = math.inf) -> Any:
        """Send a request and return the answer; after `repeat_s` without one, send it again. Times are real.

        SimulationError: nobody serves it, there was no answer in time, or the node was closed.
        """
        deadline_s = time.monotonic() + timeout_s
        if not self._turn.acquire(timeout=timeout_s):
            raise SimulationError(f"{self.name} was busy with another request for {timeout_s:g} s")
        try:
            self._let_settle(deadline_s, timeout_s)
            if not self._node.wait_until(self.is_served, deadline_s - time.monotonic()):
                raise SimulationError(self.diagnosis())
            while True:
                self._unanswered.append(self._client.call_async(request))
                left_s = deadline_s - time.monotonic()
                if self._has_answer(min(left_s, repeat_s)):
                    return self._answer()
                if left_s <= repeat_s:
                    raise SimulationError(f"no answer in {timeout_s:g} s: {self.diagnosis()}")
        except InvalidHandle:
            raise SimulationError(f"{self.name} cannot be called: the node was closed") from None
        finally:
            self._turn.release()

    def sources(self) -> list[str]:
        """Return the names of the nodes that serve it."""
        return sorted({node for node, name, _ in self._servers() if name == self.name})

    def diagnosis(self) -> str:
        """Return why nobody answers, as far as the graph of nodes tells."""
        wanted = f"{self.kind.__module__.split('.')[0]}/srv/{self.kind.__name__}"
        servers = self._servers()
        types = sorted({kind for _, name, kind in servers if name == self.name})
        if types and wanted not in types:
            return f"{self.name} is {', '.join(types)}, expected {wanted}"
        who = self.sources()
        if who:
            return (
                f"{self.name} is served by {', '.join(who)}, but does not answer: is the simulator busy, "
                "stalled, or an O3DE Editor without focus (set ed_keepEditorActive to 1)?"
            )
        elsewhere = sorted({name for _, name, kind in servers if kind == wanted})
        if elsewhere:
            return f"nobody serves {self.name}, but there is {', '.join(elsewhere)}: is the prefix right?"
        return (
            f"nobody serves {self.name}: is the simulator running (an O3DE Editor: in game mode), "
            "with the same ROS_DOMAIN_ID and discovery range?"
        )

    def _let_settle(self, deadline_s: float, timeout_s: float) -> None:
        """Wait for the answer to an earlier request that came too late, or never will."""
        if not self._unanswered or self._is_answered():
            self._forget()
            return
        is_settled = self._node.wait_until(
            lambda: self._is_answered() or not self.is_served(), deadline_s - time.monotonic()
        )
        self._forget()
        if not is_settled:
            raise SimulationError(
                f"an earlier request is still unanswered after {timeout_s:g} s more: {self.diagnosis()}"
            )

    def _is_answered(self) -> bool:
        return any(future.done() for future in self._unanswered)

    def _has_answer(self, wait_s: float) -> bool:
        """Wait for an answer; SimulationError if its server is gone."""
        self._node.wait_until(lambda: self._is_answered() or not self.is_served(), max(0.0, wait_s))
        if not self._is_answered() and not self.is_served():
            # An answer may still be on its way when its sender has left.
            self._node.wait_until(self._is_answered, 0.5)
            if not self._is_answered():
                self._forget()
                raise SimulationError(f"its server left before it answered: {self.diagnosis()}")
        return self._is_answered()

    def _answer(self) -> Any:
        answered = next(future for future in self._unanswered if future.done())
        self._forget()
        return answered.result()

    def _forget(self) -> None:
        for future in self._unanswered:
            self._client.remove_pending_request(future)
        self._unanswered = []

    def _servers(self) -> list[tuple[str, str, str]]:
        """Return who serves a service of this name in any namespace: the node, the service and its type."""
        last = self.name.rpartition("/")[2]
        found = []
        for name, namespace in self._node.get_node_names_and_namespaces():
            try:
                services = self._node.get_service_names_and_types_by_node(name, namespace)
            except NodeNameNonExistentError:
                continue  # it has just left
            found += [
                (f"{namespace.rstrip('/')}/{name}", service, kind)
                for service, kinds in services
                if service.rpartition("/")[2] == last
                for kind in kinds
            ]
        return found


class SimulationClient:
    """Controls a simulator that serves simulation_interfaces, version 1 or 2: O3DE, Gazebo, `sim-host`.

    The node's thread brings the answers, so calls come from other threads. A prefix `gzserver` makes
    `/gzserver/spawn_entity`. The timeout is for each answer, in real time.
    """

    def __init__(
        self, node: RosNode, *, prefix: str = "", timeout_s: float = 10.0, clock: RobotClock | None = None
    ) -> None:
        if not 0 < timeout_s < math.inf:
            raise UserError(f"timeout_s: expected seconds above 0, found {timeout_s}")
        self._node, self._timeout_s = node, timeout_s
        self._clock = clock or RobotClock(node)
        path = "/".join(["", *filter(None, prefix.split("/"))])
        self._features = Service(node, GetSimulatorFeatures, f"{path}/get_simulator_features")
        self._old_features = Service(node, GetSimulatorFeatures, f"{path}/get_simulation_features")
        self._load = Service(node, LoadWorld, f"{path}/load_world")
        self._spawn = Service(node, SpawnEntity, f"{path}/spawn_entity")
        self._delete = Service(node, DeleteEntity, f"{path}/delete_entity")
        self._get_entity = Service(node, GetEntityState, f"{path}/get_entity_state")
        self._get_state = Service(node, GetSimulationState, f"{path}/get_simulation_state")
        self._set_state = Service(node, SetSimulationState, f"{path}/set_simulation_state")

    def is_available(self, timeout_s: float = 0.0) -> bool:
        """Tell whether a simulator is there, waiting for it for a while."""
        return self._node.wait_until(self._get_state.is_served, timeout_s)

    def features(self) -> frozenset[str]:
        """Return what the simulator can, by the names of simulation_interfaces: `WORLD_LOADING`."""
        old = self._old_features  # O3DE's first version of the services calls it so
        service = old if old.is_served() and not self._features.is_served() else self._features
        answer = service.call(GetSimulatorFeatures.Request(), self._timeout_s, repeat_s=REPEAT_S)
        numbers = answer.features.features
        return frozenset(FEATURES.get(int(number), f"FEATURE_{number}") for number in numbers)

    def load_world(self, uri: str) -> None:
        """Load a world. It has no robots, and the simulation is stopped."""
        request = LoadWorld.Request()
        resource_of(request, "world_resource").uri = uri
        self._ask(self._load, request)

    def respawn(self, name: str, pose: Pose2, z: float = 0.0, *, uri: str, namespace: str = "") -> float:
        """Begin an episode: spawn a new robot in place of the one of this name, and play the simulation.

        A robot that was only moved would keep its velocity and its odometry, and in O3DE its lidar stays
        where it was. The pose and the floor's height `z` are in the world; `uri` is for O3DE
        `product_asset:///assets/robot.spawnable`. Returns simulated time: what sensors stamp later is of the
        new robot.
        """
        self.delete(name)
        request = spawn_request(SpawnEntity.Request(), name, pose, z, uri=uri, namespace=namespace)
        taken = SpawnEntity.Response.NAME_NOT_UNIQUE
        if self._ask(self._spawn, request, accept=(taken,)).result.result == taken:
            self.delete(name)  # an earlier spawn, given up as too late, has come about in between
            self._ask(self._spawn, request)
        spawned_s, jumps = self._clock.now_s, self._clock.jumps
        self.play()
        if not self._node.wait_until(
            lambda: self._clock.now_s > spawned_s or self._clock.jumps > jumps, self._timeout_s
        ):
            silent = "stands still" if self._clock.is_simulated else "is not published"
            raise SimulationError(
                f"/clock {silent} for {self._timeout_s:g} s though the simulation is {self.state()}: is its "
                "speed 0, or is it an O3DE Editor without focus (set ed_keepEditorActive to 1)?"
            )
        return self._clock.now_s

    def delete(self, name: str) -> bool:
        """Remove a robot, and return whether it was there."""
        request = DeleteEntity.Request(entity=name)
        answer = self._ask(self._delete, request, accept=(Result.RESULT_NOT_FOUND,), repeat_s=REPEAT_S)
        return bool(answer.result.result == Result.RESULT_OK)

    def position(self, name: str) -> tuple[Vector3, float]:
        """Return the true position of a robot in the world, and its heading."""
        request = GetEntityState.Request(entity=name)
        pose = self._ask(self._get_entity, request, repeat_s=REPEAT_S).state.pose
        try:
            check_rotation(pose.orientation)
            return Vector3.of(pose.position), yaw_of(pose.orientation)
        except ValueError as error:
            raise SimulationError(f"{self._get_entity.name} of '{name}': {error}") from None

    def state(self) -> str:
        """Return the state of the simulation: `STOPPED`, `PLAYING`, `PAUSED`."""
        answer = self._ask(self._get_state, GetSimulationState.Request(), repeat_s=REPEAT_S)
        number = int(answer.state.state)
        return STATES.get(number, f"STATE_{number}").removeprefix("STATE_")

    def play(self) -> None:
        """Let time pass. Simulators begin stopped."""
        request = SetSimulationState.Request(state=SimulationState(state=SimulationState.STATE_PLAYING))
        already = SetSimulationState.Response.ALREADY_IN_TARGET_STATE
        self._ask(self._set_state, request, accept=(already,), repeat_s=REPEAT_S)

    def _ask(
        self,
        service: Service,
        request: Any,
        *,
        accept: tuple[int, ...] = (),
        repeat_s: float = math.inf,
    ) -> Any:
        """Call a service; SimulationError if its result is neither OK nor among those accepted."""
        answer = service.call(request, self._timeout_s, repeat_s=repeat_s)
        code = int(answer.result.result)
        if code != Result.RESULT_OK and code not in accept:
            said = plain(answer.result.error_message[:300]) or "it does not say why"
            if len(who := service.sources()) > 1:
                said += f" ({' and '.join(who)} serve it: two simulators with one ROS_DOMAIN_ID?)"
            raise SimulationError(f"{service.name} failed with {result_name(service.kind, code)}: {said}")
        return answer


def spawn_request(request: Any, name: str, pose: Pose2, z: float, *, uri: str, namespace: str) -> Any:
    """Fill in a request to spawn, be it of version 1 or 2."""
    request.name, request.allow_renaming, request.entity_namespace = name, False, namespace
    resource_of(request, "entity_resource").uri = uri
    request.initial_pose = PoseStamped()
    position = request.initial_pose.pose.position
    position.x, position.y, position.z = float(pose.x), float(pose.y), float(z)
    request.initial_pose.pose.orientation = quaternion(pose.yaw)
    return request


def result_name(kind: Any, code: int) -> str:
    """Return the name and number of a result: those above 100 mean something else in each service."""
    constants = vars(Result) if code < 100 else vars(kind.Response)
    names = [name for name, value in constants.items() if name.isupper() and value == code]
    return f"{names[0].removeprefix('RESULT_')} ({code})" if names else f"result {code}"
