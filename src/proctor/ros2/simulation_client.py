"""Control of a simulator through simulation_interfaces: worlds, robots, time."""

from __future__ import annotations

import enum
import math
from typing import Any

from geometry_msgs.msg import PoseStamped
from simulation_interfaces.msg import Result, SimulationState, SimulatorFeatures
from simulation_interfaces.srv import (
    DeleteEntity,
    GetEntityState,
    GetSimulationState,
    GetSimulatorFeatures,
    LoadWorld,
    ResetSimulation,
    SetSimulationState,
    SpawnEntity,
    StepSimulation,
)

from proctor.core.errors import SimulationError, UserError
from proctor.core.plain_text import plain
from proctor.core.types import Pose2, Vector3
from proctor.ros2.convert import check_rotation, quaternion, yaw_of
from proctor.ros2.node import RosNode
from proctor.ros2.robot_clock import RobotClock
from proctor.ros2.service import Service
from proctor.ros2.simulation_versions import resource_of

REPEAT_S = 1.0
"""So long without an answer, what does no harm twice is asked again."""
STEP_PATIENCE_S = 0.1
"""How long a step may take, on top of the usual time for an answer: ten frames a second."""
MAX_MESSAGE = 300
"""Characters of a simulator's error message that are shown."""
FEATURES: dict[int, str] = {
    value: name
    for name, value in vars(SimulatorFeatures).items()
    if name.isupper() and isinstance(value, int)
}
STATES: dict[int, str] = {
    value: name for name, value in vars(SimulationState).items() if name.startswith("STATE_")
}


class Scope(enum.IntFlag):
    """What a reset resets. TIME, STATE and SPAWNED may be combined."""

    DEFAULT = 0
    """As ALL."""
    TIME = 1
    STATE = 2
    SPAWNED = 4
    ALL = 255


class SimulationClient:
    """Controls a simulator that serves simulation_interfaces, version 1 or 2: O3DE, Gazebo, `sim-host`.

    Args:
        node: Who calls. Its thread brings the answers, so calls come from other threads.
        prefix: What stands before the services' names: `gzserver` makes `/gzserver/spawn_entity`.
        timeout_s: How long to wait for each answer, in real time.
        clock: The clock of the simulation, if the caller listens to it already.

    Raises:
        UserError: The prefix cannot be part of a name, or the timeout is not above 0.
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
        self._reset = Service(node, ResetSimulation, f"{path}/reset_simulation")
        self._step = Service(node, StepSimulation, f"{path}/step_simulation")

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
        """Load a world. All robots are gone then, and the simulation is stopped.

        Raises:
            SimulationError: The simulator cannot, or does not answer.
        """
        request = LoadWorld.Request()
        resource_of(request, "world_resource").uri = uri
        self._ask(self._load, request)

    def respawn(self, name: str, pose: Pose2, z: float = 0.0, *, uri: str, namespace: str = "") -> float:
        """Begin an episode: a new robot in place of the one of this name, and the simulation plays.

        A robot that was only moved would keep its velocity and its odometry, and in O3DE its lidar stays
        where it was.

        Args:
            name: Of the robot: letters, digits and underscores.
            pose: Where it begins, in the world.
            z: Height of the floor there.
            uri: What to spawn, for O3DE `product_asset:///assets/robot.spawnable`.
            namespace: Its topics are below this.

        Returns:
            Simulated time: what sensors stamp later is of the new robot.

        Raises:
            SimulationError: The simulator refuses, does not answer, or its clock stands still.
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
        self._change_state(SimulationState.STATE_PLAYING)

    def pause(self) -> None:
        """Let time stand still. A simulation that is stopped has to play first."""
        self._change_state(SimulationState.STATE_PAUSED)

    def stop(self) -> None:
        """Stop and reset the simulation. The O3DE Editor refuses this."""
        self._change_state(SimulationState.STATE_STOPPED)

    def step(self, steps: int = 1) -> None:
        """Let a paused simulation do some time steps, and return when it is paused again."""
        if steps < 1:
            raise UserError(f"steps: expected 1 or more, found {steps}")
        request = StepSimulation.Request(steps=steps)
        self._ask(self._step, request, timeout_s=self._timeout_s + STEP_PATIENCE_S * steps)

    def reset(self, scope: Scope = Scope.ALL) -> None:
        """Reset parts of the simulation, or all of it.

        Raises:
            SimulationError: The simulator does not know a scope; the O3DE Editor knows all but ALL.
            UserError: There is no such scope.
        """
        if scope != Scope.ALL and scope not in range(8):
            raise UserError(f"scope: expected TIME, STATE, SPAWNED, a sum of these, or ALL, found {scope!r}")
        # O3DE knows no combinations: they are asked for one by one.
        parts = [scope] if scope in (Scope.ALL, Scope.DEFAULT) else [part for part in Scope if part & scope]
        for part in sorted(parts, reverse=True):
            self._ask(self._reset, ResetSimulation.Request(scope=int(part)))

    def _change_state(self, state: int) -> None:
        request = SetSimulationState.Request(state=SimulationState(state=state))
        already = SetSimulationState.Response.ALREADY_IN_TARGET_STATE
        self._ask(self._set_state, request, accept=(already,), repeat_s=REPEAT_S)

    def _ask(
        self,
        service: Service,
        request: Any,
        *,
        accept: tuple[int, ...] = (),
        timeout_s: float | None = None,
        repeat_s: float = math.inf,
    ) -> Any:
        """Call a service and check its result.

        Raises:
            SimulationError: The result is neither OK nor among those accepted.
        """
        answer = service.call(request, timeout_s or self._timeout_s, repeat_s=repeat_s)
        code = int(answer.result.result)
        if code != Result.RESULT_OK and code not in accept:
            said = plain(answer.result.error_message[:MAX_MESSAGE]) or "it does not say why"
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
