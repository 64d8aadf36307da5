"""From a request to a path and to a trajectory, in this process."""

import numpy as np
import pytest
from nav_fields import rooms

from proctor.kernels.clearance import least_clearance
from proctor.maps.failure import NavigationFailure, Reason
from proctor.navigation.path import RobotMotion
from proctor.navigation.process.plan import PlanRequest, plan

GOAL = (7.4, 1.0)


@pytest.fixture(scope="module")
def field():
    return rooms()


@pytest.mark.parametrize("planner", ["grid", "rrt", "prm"])
def test_a_path_is_smooth_and_keeps_clear(field, planner):
    answer = plan(PlanRequest(start=RobotMotion(0.6, 5.0, 0.0), goal_xy=GOAL, planner=planner), field)
    path = answer.found_path()
    assert path.planner == planner
    assert path.points[0].tolist() == pytest.approx([0.6, 5.0])
    assert path.points[-1].tolist() == pytest.approx(GOAL)
    assert path.clearance_m == pytest.approx(least_clearance(field, path.points))
    assert path.clearance_m > 0.17
    assert answer.timings_s["planning"] > 0
    assert answer.timings_s["smoothing"] > 0


def test_a_path_goes_on_as_the_robot_moves(field):
    start = RobotMotion(0.6, 4.0, -1.4, v=0.4, omega=0.08, curvature=0.2)
    answer = plan(PlanRequest(start=start, goal_xy=GOAL), field)
    path, trajectory = answer.found_path(), answer.found_trajectory()
    assert path.legs[0].yaw[0] == pytest.approx(start.yaw, abs=0.01)
    assert path.legs[0].curvature[0] == pytest.approx(start.curvature, abs=0.02)
    assert np.hypot(*trajectory.velocities[0, :2]) == pytest.approx(start.v, abs=0.01)

    resting = plan(PlanRequest(start=RobotMotion(0.6, 4.0, 1.4), goal_xy=GOAL), field).found_path()
    assert abs(resting.legs[0].yaw[0] - 1.4) > 0.5  # it may turn first


@pytest.mark.parametrize("timing", ["fast", "toppra"])
def test_a_trajectory_ends_at_the_goal_as_asked(field, timing):
    start = RobotMotion(0.6, 5.0, 0.0)
    request = PlanRequest(start=start, goal_xy=GOAL, goal_yaw=2.0, timing=timing)
    trajectory = plan(request, field).found_trajectory()
    x, y, yaw = trajectory.poses[-1]
    assert (x, y) == pytest.approx(GOAL)
    assert np.cos(yaw - 2.0) == pytest.approx(1.0)
    assert trajectory.velocities[-1].tolist() == pytest.approx([0.0, 0.0, 0.0], abs=1e-9)


def test_nothing_is_planned_for_whom_nobody_waits(field):
    request = PlanRequest(start=RobotMotion(0.6, 5.0, 0.0), goal_xy=GOAL, planner="rrt_star")
    answer = plan(request, field, cancelled=lambda: True)
    with pytest.raises(NavigationFailure) as failure:
        answer.found_path()
    assert failure.value.reason == Reason.CANCELLED


def test_a_path_that_cannot_be_timed_comes_with_the_failure(field):
    answer = plan(PlanRequest(start=RobotMotion(0.6, 4.0, -1.4, v=-0.4), goal_xy=GOAL), field)
    assert answer.found_path().length_m > 1
    with pytest.raises(NavigationFailure) as failure:
        answer.found_trajectory()
    assert failure.value.reason == Reason.INFEASIBLE_TRAJECTORY
