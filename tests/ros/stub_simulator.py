"""A simulator that answers as it is told, or not at all."""

import re
import threading

from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.task import Future
from rosgraph_msgs.msg import Clock
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

from proctor.worlds.ros2.node.convert import stamp
from proctor.worlds.ros2.node.node import CLOCK, RosNode

KINDS = (
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
OK = 1


class StubSimulator(RosNode):
    """Serves what the client calls. All is well unless told otherwise.

    Args:
        prefix: Before the services' names.
        kinds: What it serves.
        names: Names of services that are not called by their type.
        ticking: Whether its clock advances with each state that it is asked to take.
    """

    def __init__(self, prefix="", kinds=KINDS, names=None, *, ticking=True):
        super().__init__("stub_simulator")
        self.codes = {}
        """Results by type, as lists of which the last one stays."""
        self.requests = []
        """The names of the types that were asked for, with the requests."""
        self.held = set()
        """The types whose requests are not answered before `release`."""
        self.in_flight = {}
        """The most requests of a type at the same time."""
        self.error_message = "as it was told"
        self.fill = {}
        """By type, what else to do with a response."""
        self._waiting, self._now, self._ticking, self._time_s = [], {}, ticking, 0.0
        self._lock = threading.Lock()
        self._clock = self.create_publisher(Clock, "/clock", CLOCK)
        group = ReentrantCallbackGroup()  # others are answered while one is held
        for kind in kinds:
            snake = (names or {}).get(kind) or re.sub("(?<!^)(?=[A-Z])", "_", kind.__name__).lower()
            self.create_service(kind, f"{prefix}/{snake}", self._handler(kind), callback_group=group)

    def asked(self, kind):
        """Returns the requests of a type."""
        return [request for of, request in self.requests if of is kind]

    def tick(self):
        """Lets a second pass."""
        self._time_s += 1.0
        self._clock.publish(Clock(clock=stamp(self._time_s)))

    def release(self):
        """Answers what was held."""
        with self._lock:
            waiting, self._waiting = self._waiting, []
        for future in waiting:
            future.set_result(None)
        self._spinner.wake()

    def _handler(self, kind):
        async def answer(request, response):
            self.requests.append((kind, request))
            self._now[kind] = self._now.get(kind, 0) + 1
            self.in_flight[kind] = max(self.in_flight.get(kind, 0), self._now[kind])
            if kind in self.held:
                future = Future(executor=self._spinner)
                with self._lock:
                    self._waiting.append(future)
                await future
            self._now[kind] -= 1
            codes = self.codes.get(kind, [OK])
            if hasattr(response, "result"):
                response.result.result = codes.pop(0) if len(codes) > 1 else codes[0]
                response.result.error_message = self.error_message
            self.fill.get(kind, lambda _: None)(response)
            if kind is SetSimulationState and self._ticking:
                self.tick()
            return response

        return answer
