"""An action server for work that goes on in callbacks: nothing waits while a goal is under way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from rclpy.action import ActionServer, CancelResponse

from proctor.core.errors import ProctorError, SimulationError
from proctor.navigation.failure import NavigationFailure, Reason
from proctor.ros2.node import RosNode

End = Literal["succeeded", "aborted"]


class GoalServer(ActionServer):
    """Accepts goals and leaves it to others to end them.

    rclpy gives each goal a coroutine, and an executor that has one does nothing but look at it, over and
    over, until it is done. Here a goal is executing from the moment it is accepted until `finish`, and in
    between nothing runs but what others do in their callbacks.

    Args:
        node: Whose server it is.
        action_type: The class of the action.
        name: Of the action, below the node's namespace.
        on_goal: Is given each goal's handle. All goals are accepted, so that one that makes no sense can be
            told why.
        on_cancel: Is given the handle of a goal that is to be cancelled, and sees to it that it is finished.
    """

    def __init__(
        self,
        node: RosNode,
        action_type: Any,
        name: str,
        *,
        on_goal: Callable[[Any], None],
        on_cancel: Callable[[Any], None],
    ) -> None:
        self._on_goal, self._on_cancel = on_goal, on_cancel
        self.unsent = 0
        """Goals that are finished, but whose results are not on their way yet."""
        super().__init__(
            node,
            action_type,
            name,
            execute_callback=_never,
            handle_accepted_callback=self._begin,
            cancel_callback=self._cancel,
        )

    def notify_execute(self, goal_handle: Any, execute_callback: Callable[[Any], Any] | None) -> None:
        """Let a goal be executed; without a callback that is whatever happens until `finish`."""
        if execute_callback is not None:
            super().notify_execute(goal_handle, execute_callback)

    def finish(self, goal_handle: Any, end: End, result: Any) -> None:
        """End a goal and send its result. One that was to be cancelled and did not succeed is `canceled`."""
        if end == "succeeded":
            goal_handle.succeed()
        elif goal_handle.is_cancel_requested:
            goal_handle.canceled()
        else:
            goal_handle.abort()
        self.unsent += 1
        self.notify_execute(goal_handle, lambda _: self._sent(result))

    def _sent(self, result: Any) -> Any:
        self.unsent -= 1
        return result

    def _begin(self, goal_handle: Any) -> None:
        goal_handle.execute()
        self._on_goal(goal_handle)

    def _cancel(self, goal_handle: Any) -> CancelResponse:
        self._on_cancel(goal_handle)
        return CancelResponse.ACCEPT


def reason_of(error: ProctorError) -> Reason:
    """Return the `reason` that a client gets for an error."""
    if isinstance(error, NavigationFailure):
        return error.reason
    return Reason.POSE_UNKNOWN if isinstance(error, SimulationError) else Reason.INVALID_GOAL


def _never(goal_handle: Any) -> None:
    """Stand where rclpy wants a function."""
    raise AssertionError(f"goal {goal_handle.goal_id} was executed by rclpy")
