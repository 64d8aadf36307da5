"""The planner as the control loop sees it: a process beside it, which is asked and never waited for."""

from __future__ import annotations

from types import TracebackType

from proctor.navigation.clearance import ClearanceField
from proctor.navigation.requests import PathRequest, Reply, TrajectoryRequest


class PlanningClient:
    """Plans in a process of its own, so that no plan ever delays the caller.

    At most one request is under way. A newer one takes its place, and the older one's reply never comes.
    A process that died is replaced when the next request is made.
    """

    def start(self) -> None:
        """Start the process, if it does not run yet. It warms up by itself: see `ready`."""
        raise NotImplementedError

    @property
    def ready(self) -> bool:
        """Whether the process has compiled what it needs, so that a plan takes no longer than it must."""
        raise NotImplementedError

    @property
    def busy(self) -> bool:
        """Whether a request is under way whose reply has not been taken."""
        raise NotImplementedError

    def submit_path(self, field: ClearanceField, map_version: int, request: PathRequest) -> int:
        """Ask for a path and return the id that the reply will have.

        The map travels once per version. Its array must not be written to afterwards.

        Raises:
            UnknownName: There is no planner of this name.
            MissingDependency: The planner needs a package that is not installed.
        """
        raise NotImplementedError

    def submit_trajectory(self, request: TrajectoryRequest) -> int:
        """Ask for a trajectory and return the id that the reply will have."""
        raise NotImplementedError

    def poll(self) -> Reply | None:
        """Return the reply if it has come; never blocks.

        If the process died, the reply is a failure with the reason PLANNER_LOST.
        """
        raise NotImplementedError

    def wait(self, timeout_s: float) -> bool:
        """Block until `poll` will return a reply, and tell whether it will."""
        raise NotImplementedError

    def cancel(self) -> None:
        """Give up the request that is under way, if there is one; its reply never comes."""
        raise NotImplementedError

    def close(self) -> None:
        """End the process. Closing twice is fine, and a closed client may be started again."""
        raise NotImplementedError

    def __enter__(self) -> PlanningClient:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
