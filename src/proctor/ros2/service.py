"""One service that is called: one request at a time, and why there is no answer."""

from __future__ import annotations

import math
import threading
import time
from typing import Any

from rclpy.exceptions import InvalidHandle, NameValidationException
from rclpy.node import NodeNameNonExistentError

from proctor.core.errors import SimulationError, UserError
from proctor.ros2.node import RosNode

GRACE_S = 0.5
"""An answer may still be on its way when who sent it has left."""


class Service:
    """Calls one service from any thread but the node's own.

    Some simulators remember only the newest request on a service and would send it the answer to an older
    one. So the next request waits for the answer to the last, and an answer that nobody waits for any more
    is dropped. And a server that is new may drop its first answers, since it does not know yet who is to hear
    them: requests that do no harm twice can be repeated.

    Args:
        node: Who calls.
        kind: The class of the service.
        name: Its name.

    Raises:
        UserError: The name is not one that a service can have.
    """

    def __init__(self, node: RosNode, kind: Any, name: str) -> None:
        self.kind = kind
        self._node = node
        self._turn = threading.Lock()
        self._unanswered: list[Any] = []
        """A request, and its repetitions."""
        try:
            self._client = node.create_client(kind, name)
        except NameValidationException as error:
            raise UserError(f"'{name}' cannot be the name of a service: {error}") from None
        self.name: str = self._client.srv_name

    def is_served(self) -> bool:
        """Tell whether somebody serves it.

        Raises:
            SimulationError: The node was closed.
        """
        try:
            return bool(self._client.service_is_ready())
        except InvalidHandle:
            raise SimulationError(f"{self.name} cannot be called: the node was closed") from None

    def call(self, request: Any, timeout_s: float, *, repeat_s: float = math.inf) -> Any:
        """Send a request and return the answer.

        Args:
            request: What to ask.
            timeout_s: How long to wait for an answer, in real time.
            repeat_s: After how long without one it is asked again.

        Raises:
            SimulationError: Nobody serves it, there was no answer in time, or the node was closed.
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
        """Wait for an answer.

        Raises:
            SimulationError: Nobody is there any more who would send it.
        """
        self._node.wait_until(lambda: self._is_answered() or not self.is_served(), max(0.0, wait_s))
        if not self._is_answered() and not self.is_served():
            self._node.wait_until(self._is_answered, GRACE_S)
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
