"""The four actions by their numbers."""

from __future__ import annotations

from collections.abc import Callable

from proctor.core.errors import UserError
from proctor.core.types import Action, checked_action
from proctor.ros2.action_executor import VLNActionExecutor


class ActionExecutorWrapper:
    """Does what a policy answers: 0 stop, 1 forward, 2 left, 3 right.

    Args:
        linear_speed: Of forward moves, in m/s.
        angular_speed: Of turns, in rad/s.
        executor: Who does it; without one, one is made, and closed with this.
    """

    def __init__(
        self,
        linear_speed: float = 0.1,
        angular_speed: float = 0.3,
        *,
        executor: VLNActionExecutor | None = None,
    ) -> None:
        self._is_owner = executor is None
        self.executor = executor or VLNActionExecutor(linear_speed=linear_speed, angular_speed=angular_speed)
        self.executor.LINEAR_SPEED, self.executor.ANGULAR_SPEED = linear_speed, angular_speed

    def execute_action(self, action: int) -> None:
        """Do an action, and return when it is done.

        Raises:
            UserError: It is not an integer from 0 to 3.
            SimulationError: The robot is silent or does not obey.
        """
        try:
            checked = checked_action(action)
        except ValueError as error:
            raise UserError(str(error)) from None
        moves: dict[Action, Callable[[], None]] = {
            Action.STOP: self.stop,
            Action.FORWARD: self.forward_25cm,
            Action.LEFT: lambda: self.rotate_15deg("left"),
            Action.RIGHT: lambda: self.rotate_15deg("right"),
        }
        moves[checked]()

    def forward_25cm(self) -> None:
        """Drive 25 cm ahead."""
        self.executor.execute_forward_25cm()

    def rotate_15deg(self, direction: str) -> None:
        """Turn by 15° to the `left` or `right`."""
        self.executor.execute_rotate_15deg(direction)

    def stop(self) -> None:
        """Stop the robot."""
        self.executor.stop_robot()

    def get_collision_count(self) -> int:
        """Return the collisions of all moves so far."""
        return self.executor.collision_count

    def close(self) -> None:
        """Stop the robot, and close the executor if it was made here."""
        if self._is_owner:
            self.executor.close()
        else:
            self.executor.stop_robot()
