"""The skill navigate_to in the hands of careless callers: odd orders, odd clocks, odd numbers."""

import math

import numpy as np
import pytest
from floor_robots import Floor, room

from proctor.core.errors import UnknownName, UserError
from proctor.navigation.process.client import PlanningClient
from proctor.navigation.skill.goal import NavigationGoal
from proctor.navigation.skill.params import NavigationParams
from proctor.navigation.skill.states import SkillState

GOAL, OTHER = [4.0, 2.5, 0.0], [4.0, 1.0, 0.0]


@pytest.fixture(scope="module")
def client():
    with PlanningClient() as client:
        yield client


def _underway(client, **options):
    """Return a floor whose robot is in full motion."""
    floor = Floor(client, room(), **options)
    floor.until(SkillState.EXECUTING, goal_pos=GOAL)
    for _ in range(150):
        floor.tick(goal_pos=GOAL)
    assert floor.robot.moves[0] > 0.2
    return floor


@pytest.mark.parametrize("state", list(SkillState)[1:5])
def test_pause_cancel_resume_is_cancelled_once(client, state):
    floor = Floor(client, room())
    floor.until(state, goal_pos=GOAL)
    for word in ("pause", "pause", "cancel", "resume", "pause", "cancel", "resume"):
        getattr(floor.skills, word)("navigate_to")
    assert floor.stands
    assert floor.tick(goal_pos=GOAL)["reason"] == "cancelled"
    assert floor.skill.state is SkillState.IDLE
    assert floor.finish(goal_pos=GOAL)["status"] == "succeeded"


def test_another_goal_does_not_end_a_pause(client):
    floor = _underway(client)
    floor.skills.pause("navigate_to")
    for _ in range(300):
        result = floor.tick(goal_pos=OTHER)
    assert (result["message"], result["paused"]) == ("Paused", True)
    assert not floor.robot.moves.any()
    floor.skills.resume("navigate_to")
    assert floor.finish(goal_pos=OTHER)["status"] == "succeeded"
    assert math.dist(floor.robot.at[:2], OTHER[:2]) < 0.02


def test_another_time_limit_is_not_another_goal(client):
    floor = Floor(client, room())
    for _ in range(1200):
        result = floor.tick(goal_pos=GOAL, timeout=60.0 - floor.now_s())
        if result["status"] != "processing":
            break
    assert result["status"] == "succeeded"
    floor.until(SkillState.EXECUTING, goal_pos=OTHER)
    result = floor.finish(goal_pos=OTHER, timeout=0.5)
    assert result["message"] == "Navigation failed: timeout after 0.5 s"


def test_goals_that_come_at_every_tick_do_not_make_it_blind(client):
    floor = _underway(client)
    ahead = floor.robot.at[:2] + 0.6 * np.array([math.cos(floor.robot.at[2]), math.sin(floor.robot.at[2])])
    offsets = np.stack(np.meshgrid(np.linspace(-0.1, 0.1, 9), np.linspace(-0.1, 0.1, 9)), axis=-1).reshape(
        -1, 2
    )
    points = np.column_stack([ahead + offsets, np.full(len(offsets), 0.3)])
    for number in range(300):
        floor.live_map.mark_points(points, floor.now_s())
        floor.tick(goal_pos=GOAL if number % 2 else OTHER)
    assert np.linalg.norm(points[:, :2] - floor.robot.at[:2], axis=1).min() > floor.skill.params.radius_m
    assert not floor.robot.moves.any()


def test_a_clock_that_goes_back_stops_the_robot(client):
    floor = _underway(client)
    floor.ticks -= 100
    with pytest.raises(ValueError, match="expected a time not before"):
        floor.finish(goal_pos=GOAL)
    assert floor.stands
    assert floor.skill.state is SkillState.IDLE
    floor.live_map.clear()
    assert floor.finish(goal_pos=GOAL)["status"] == "succeeded"


def test_a_clock_that_goes_back_stops_the_robot_though_only_the_controller_sees_it(client):
    floor = _underway(client)
    floor.ticks -= 100
    with pytest.raises(ValueError, match="expected a time not before"):
        floor.controller.clock_callback(floor.now_s())
    assert floor.stands


@pytest.mark.parametrize(
    "saved",
    [
        {"state": "FAILED"},
        {"state": "SUCCEEDED", "result": {}},
        {"state": "EXECUTING", "goal": {"position": [math.nan, 0, 0], "yaw": None, "timeout_s": 60}},
        {"state": "EXECUTING", "goal": {"position": [2, 2, 0], "yaw": math.inf, "timeout_s": 60}},
        {"state": "EXECUTING", "goal": {"position": [2, 2, 0], "yaw": None, "timeout_s": 0}},
        {
            "state": "EXECUTING",
            "goal": {"position": [2, 2, 0], "yaw": None, "timeout_s": 60},
            "elapsed_s": math.nan,
        },
    ],
)
def test_a_saved_navigation_must_make_sense(client, saved):
    floor = _underway(client)
    with pytest.raises(UserError, match="not a saved navigation"):
        floor.skills.restore({"navigate_to": saved})
    assert floor.skill.state is SkillState.EXECUTING


def test_a_goal_must_make_sense():
    with pytest.raises(ValueError, match="finite"):
        NavigationGoal((0.0, math.nan, 0.0), None, 60.0)


@pytest.mark.parametrize(
    "params",
    [
        {"radius_m": -1.0},
        {"radius_m": math.nan},
        {"max_replans": -1},
        {"timing": "slow"},
        {"planning_timeout_s": 0.0},
        {"path_ticks": -4},
        {"seed": -1},
        {"seed": 1.5},
        {"seed": 2**70},
    ],
)
def test_params_that_make_no_sense(client, params):
    with pytest.raises(UserError, match=f"navigation params: .*{next(iter(params))}"):
        Floor(client, room(), params=NavigationParams(**params))


def test_a_planner_that_does_not_exist(client):
    with pytest.raises(UnknownName, match="unknown planner 'rrtstar'; did you mean 'rrt_star'"):
        Floor(client, room(), params=NavigationParams(planner="rrtstar"))
