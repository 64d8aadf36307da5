"""Asks for paths and trajectories, and takes them at the right tick."""

from __future__ import annotations

import time

from proctor.navigation.clearance import ClearanceField
from proctor.navigation.failure import NavigationFailure, Reason
from proctor.navigation.path import Path
from proctor.navigation.planning_client import PlanningClient
from proctor.navigation.requests import PathRequest, TrajectoryRequest
from proctor.navigation.trajectory import Trajectory
from proctor.skills.params import NavigationParams

START_UP_S = 60.0
"""The first plan may have to wait until the planner's code is compiled."""
GRACE_S = 2.0


class Planning:
    """The requests of one navigation.

    An answer is taken a fixed number of ticks after its request, so that a stepped world does the same on
    every machine.

    Args:
        client: The process that plans.
        params: How many ticks, and how long a plan may take.
    """

    def __init__(self, client: PlanningClient, params: NavigationParams) -> None:
        self._client, self._params = client, params
        self._due_tick = 0
        self._asked_s = 0.0
        self._deadline_s = 0.0
        self._waiting = False
        self.took_s = 0.0
        """Wall time from the latest question to its answer."""

    def ask_path(self, field: ClearanceField, map_version: int, request: PathRequest, tick: int) -> None:
        """Ask for a path; an earlier question is forgotten."""
        self._asked(tick + self._params.path_ticks)
        self._client.submit_path(field, map_version, request)

    def ask_trajectory(self, request: TrajectoryRequest, tick: int) -> None:
        """Ask for a trajectory; an earlier question is forgotten."""
        self._asked(tick + self._params.trajectory_ticks)
        self._client.submit_trajectory(request)

    def _asked(self, due_tick: int) -> None:
        self._due_tick, self._waiting = due_tick, True
        self._asked_s = time.perf_counter()
        allowed_s = self._params.planning_timeout_s + GRACE_S
        self._deadline_s = self._asked_s + allowed_s + (0.0 if self._client.ready else START_UP_S)

    def answer(self, tick: int) -> Path | Trajectory | None:
        """Return the answer if it has come and is due; never waits.

        Raises:
            NavigationFailure: There is no path or trajectory, or the planner is gone or does not answer.
        """
        if not self._waiting or tick < self._due_tick:
            return None
        reply = self._client.poll()
        if reply is None:
            if time.perf_counter() > self._deadline_s:
                self._waiting = False
                self._client.close()  # the next question starts another one
                allowed_s = self._deadline_s - self._asked_s
                raise NavigationFailure(Reason.PLANNING_TIMEOUT, f"no plan came within {allowed_s:.0f} s")
            return None
        self._waiting = False
        self.took_s = time.perf_counter() - self._asked_s
        if isinstance(reply.result, NavigationFailure):
            raise reply.result
        return reply.result

    def wait_if_due(self, tick: int) -> None:
        """Wait for the answer that the given tick will take: what a stepped world does before that tick."""
        if self._waiting and tick >= self._due_tick:
            self._client.wait(max(self._deadline_s - time.perf_counter(), 0.0))

    def cancel(self) -> None:
        """Forget the question."""
        if self._waiting:
            self._waiting = False
            self._client.cancel()
