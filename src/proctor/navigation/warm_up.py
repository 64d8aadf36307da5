"""Runs the compiled functions once, so that no plan and no tick waits until one is compiled or loaded."""

from __future__ import annotations

from functools import cache

import numpy as np

from proctor.core.types import Pose2, Scan
from proctor.kernels.clearance import least_clearance
from proctor.kernels.tracking import STAGE_S
from proctor.maps.grid_map import GridMap
from proctor.maps.live_map import LiveMap
from proctor.navigation.path import RobotMotion
from proctor.navigation.process.plan import PlanRequest, plan
from proctor.navigation.timing.moves import brake, straight
from proctor.navigation.tracking.drive_models import MODELS, Horizon, TrackingState
from proctor.robots.dynamics import Drive, Dynamics

COMPILING_S = 600.0  # compiling takes half a minute of an idle machine; do not give up meanwhile


@cache
def warm_up_planner() -> None:
    """Plan around a block: at rest, along the path, and aside of it."""
    occupied = np.ones((60, 80), dtype=bool)
    occupied[1:-1, 1:-1] = False
    occupied[5:36, 35:46] = True
    field = GridMap(occupied).field
    for yaw, speed_mps in ((1.5, 0.0), (1.5, 0.3), (0.2, 0.2)):
        start = RobotMotion(1.0, 0.6, yaw, speed_mps)
        request = PlanRequest(start=start, goal_xy=(3.0, 0.6), goal_yaw=0.5, timeout_s=COMPILING_S)
        plan(request, field).found_trajectory()


@cache
def warm_up_control(drive: Drive) -> None:
    """Do once what a tick of the control loop may do: mark a scan, plan accelerations, look ahead, brake."""
    here, dynamics = Pose2(0.0, 0.0, 0.0), Dynamics(drive=drive)
    live_map = LiveMap(GridMap(np.zeros((2, 2), dtype=bool)))
    live_map.mark_scan(Scan(np.full(4, np.nan), 0.0, 0.1, 0.0, 1.0), here, 0.0)
    field, trajectory = live_map.field(0.0), straight(here, 0.5, dynamics)
    horizon = Horizon.of(4)
    rows = trajectory.sampled(np.linspace(0.0, STAGE_S * horizon.stages, horizon.stages + 1))
    model = MODELS[drive](horizon)
    for _ in range(2):  # the second goes on from the plan of the first
        model.plan(TrackingState(np.zeros(3), np.zeros(3), rows, dynamics, STAGE_S, field, 0.1))
    least_clearance(field, trajectory.remaining(0.0))
    brake(trajectory, 0.5, dynamics)
