"""The actions of the exam in the embedded world: by physics, or much faster where nothing is near."""

from __future__ import annotations

from proctor.control.action_executor import ActionExecutor, Motion
from proctor.core.types import Action
from proctor.sim.base_drive import BaseDrive
from proctor.sim.free_base import FreeBase, NotFreeError, can_be_free
from proctor.sim.lidar import LaserScanner
from proctor.sim.world import World

SAFETY_M = 0.01
"""A free move keeps this gap beyond the one at which something would happen: a contact, or a short range."""


class ExamMotion:
    """Does the four actions with the robot of a world.

    Args:
        world: The world.
        scanner: The robot's scanner.
        linear_speed_mps: Speed of FORWARD.
        angular_speed_radps: Speed of LEFT and RIGHT.
        collision_threshold_m: Ranges below this, measured from the scanner, end a FORWARD.
    """

    def __init__(
        self,
        world: World,
        scanner: LaserScanner,
        *,
        linear_speed_mps: float,
        angular_speed_radps: float,
        collision_threshold_m: float,
    ) -> None:
        self.drive = BaseDrive(world, scanner, scan_reach_m=collision_threshold_m)
        self._executor = ActionExecutor(
            self.drive,
            linear_speed_mps=linear_speed_mps,
            angular_speed_radps=angular_speed_radps,
            collision_threshold_m=collision_threshold_m,
        )
        self.free_base = FreeBase(world) if can_be_free(world) else None
        """Does moves without physics. With None, physics does all."""
        self._scan_gap_m = max(0.0, collision_threshold_m - world.robot.radius_m)

    def execute(self, action: Action) -> Motion:
        """Do one of the four actions."""
        return self._execute_freely(action) or self._executor.execute(action)

    def _execute_freely(self, action: Action) -> Motion | None:
        """Do an action without physics; do nothing and return None where physics could matter."""
        base = self.free_base
        # Only FORWARD looks at the scan. No beam is shorter than the radius plus the gap.
        kept_gap_m = SAFETY_M + (self._scan_gap_m if action is Action.FORWARD else 0.0)
        if base is None or not base.try_start(kept_gap_m):
            return None
        try:
            with self.drive.driving(base):
                motion = self._executor.execute(action)
        except NotFreeError:
            return None
        base.finish()
        return motion
