"""Asks for plans, and takes their paths and trajectories at the right tick."""

from __future__ import annotations

import time

from proctor.maps.failure import NavigationFailure, Reason
from proctor.maps.live_map import LiveMap
from proctor.navigation.path import Path, Trajectory
from proctor.navigation.process.client import PlanningClient
from proctor.navigation.process.plan import PlanAnswer, PlanRequest
from proctor.navigation.skill.goal import NavigationGoal
from proctor.navigation.skill.params import NavigationParams
from proctor.navigation.skill.pilot import Departure, Pilot
from proctor.robots.dynamics import Dynamics

START_UP_S = 600.0  # the first plan waits for compiling, which takes long on a busy machine
GRACE_S = 2.0
EASE = 0.95  # trajectories use so much of the robot's limits; the rest is for the controller to correct with


class Planning:
    """The requests of one navigation.

    An answer is taken a fixed number of ticks after its request, first its path and then its trajectory: a
    stepped world is then reproducible.
    """

    def __init__(
        self, client: PlanningClient, params: NavigationParams, world_map: LiveMap, pilot: Pilot
    ) -> None:
        self._client, self._params, self._map, self._pilot = client, params, world_map, pilot
        self.tick = 0  # how many there have been
        self._due_tick = 0
        self._deadline_s = 0.0
        self._waiting, self._starting = False, False
        self._answer: PlanAnswer | None = None  # its path has been taken, its trajectory has not
        self._allowed_s = params.planning_timeout_s + GRACE_S
        self.begin()

    def begin(self) -> None:
        """Forget what was planned before."""
        self.cancel()
        self.paths: list[Path] = []
        self.trajectories: list[Trajectory] = []
        self.timings_s: dict[str, float] = {}  # wall time of the stages of the first plan

    def ask(self, departure: Departure, goal: NavigationGoal) -> None:
        """Ask for a path and its trajectory; an earlier question is forgotten."""
        params = self._params
        request = PlanRequest(
            start=departure.motion,
            goal_xy=goal.xy,
            goal_yaw=goal.yaw,
            planner=params.planner,
            planner_options=params.planner_options,
            radius_m=params.radius_m,
            margin_m=params.margin_m,
            dynamics=eased(self._pilot.dynamics),
            timing=params.timing,
            timeout_s=params.planning_timeout_s,
            seed=params.seed,
        )
        field = self._map.field(self._pilot.now_s())
        self._due_tick, self._waiting, self._answer = self.tick + params.path_ticks, True, None
        self._starting = not self._client.ready
        self._deadline_s = time.perf_counter() + (START_UP_S if self._starting else self._allowed_s)
        self._client.submit(request, field, self._map.version)

    def path(self) -> Path | None:
        """Return the path if it has come and is due; never waits. NavigationFailure if there is none."""
        if not self._waiting or self.tick < self._due_tick:
            return None
        answer = self._client.poll()
        if answer is None:
            self._check_deadline()
            return None
        self._waiting = False
        path = answer.found_path()
        self._due_tick, self._answer = self.tick + self._params.trajectory_ticks, answer
        self.timings_s = self.timings_s if self.paths else answer.timings_s
        self.paths.append(path)
        return path

    def trajectory(self) -> Trajectory | None:
        """Return the trajectory of the path if it is due; NavigationFailure if there is none."""
        if self._answer is None or self.tick < self._due_tick:
            return None
        answer, self._answer = self._answer, None
        self.trajectories.append(answer.found_trajectory())
        return self.trajectories[-1]

    def _check_deadline(self) -> None:
        if self._starting and self._client.ready:  # only now does it begin to plan
            self._starting, self._deadline_s = False, time.perf_counter() + self._allowed_s
        elif time.perf_counter() > self._deadline_s:
            self._waiting = False
            self._client.close()  # the next question starts another one
            allowed_s = START_UP_S if self._starting else self._allowed_s
            raise NavigationFailure(Reason.PLANNING_TIMEOUT, f"no plan came within {allowed_s:.0f} s")

    def wait_if_due(self) -> None:
        """Wait for the answer that the next tick takes: what a stepped world does between ticks."""
        if self._waiting and self.tick + 1 >= self._due_tick:
            if not self._client.ready:
                self._client.wait_until_ready(START_UP_S)
            self._client.wait(self._allowed_s)

    def cancel(self) -> None:
        """Forget the question."""
        self._answer = None
        if self._waiting:
            self._waiting = False
            self._client.cancel()


def eased(limits: Dynamics) -> Dynamics:
    """Return the limits that trajectories use, which leave something to correct with."""
    return Dynamics(
        v_max=EASE * limits.v_max,
        omega_max=EASE * limits.omega_max,
        a_max=EASE * limits.a_max,
        alpha_max=EASE * limits.alpha_max,
        drive=limits.drive,
    )
