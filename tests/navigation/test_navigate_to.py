"""The skill navigate_to: results, feedback, pauses, pre-emption, obstacles, and all that can go wrong."""

import math
import os
import signal

import numpy as np
import pytest
from floor_robots import Floor, room

from proctor.core.errors import UserError
from proctor.navigation.process.client import PlanningClient
from proctor.navigation.skill.params import NavigationParams
from proctor.navigation.skill.states import SkillState
from proctor.robots.dynamics import Dynamics

GOAL = [4.0, 2.5, 0.0]


def _quat(yaw):
    return [0.0, 0.0, math.sin(yaw / 2), math.cos(yaw / 2)]


def test_arrives_and_says_so_as_the_spec_does(client):
    floor = Floor(client, room())
    result = floor.finish(goal_pos=GOAL, goal_quat=_quat(1.0), timeout=60.0)
    assert result["status"] == "succeeded"
    assert result["message"] == "Navigation completed successfully"
    assert result["final_distance"] == pytest.approx(math.dist(floor.robot.at[:2], GOAL[:2]))
    assert result["final_distance"] < 0.01
    assert result["final_yaw_error"] < math.radians(0.5)
    assert result["total_time"] == pytest.approx(floor.now_s(), abs=0.1)
    assert floor.stands


def test_feedback_of_each_tick(client):
    floor = Floor(client, room())
    floor.until(SkillState.EXECUTING, goal_pos=GOAL)
    progress, distances, remaining = [], [], []
    while floor.skill.state is SkillState.EXECUTING:
        result = floor.tick(goal_pos=GOAL)
        if floor.skill.state is SkillState.EXECUTING:
            progress.append(result["progress"])
            distances.append(result["distance_to_goal"])
            remaining.append(result["remaining_time"])
            assert result["status"] == "processing"
            assert result["message"] == "Navigating to goal"
            assert len(result["current_velocity"]) == 3
            assert result["recoveries"] == 0
    assert progress == sorted(progress)
    assert progress[0] < 5
    assert progress[-1] >= 95
    assert remaining[0] > 4
    assert remaining[-1] == 0
    assert distances[-1] < 0.02


@pytest.mark.parametrize(
    "goal", [{"goal_pos": GOAL}, {"goal_pos": [1.0]}, {"goal_pos": GOAL, "timeout": 2.0}]
)
def test_feedback_has_the_same_fields_in_every_tick_and_progress_never_goes_back(client, goal):
    floor, ticks = Floor(client, room()), []
    while not ticks or ticks[-1]["status"] == "processing":
        ticks.append(floor.tick(**goal))
    fields = {"status", "message", "state", "progress", "distance_to_goal", "current_velocity"}
    fields |= {"remaining_time", "elapsed_time", "replans", "recoveries", "paused"}
    assert all(set(tick) == fields for tick in ticks[:-1])
    progress = [tick["progress"] for tick in ticks[:-1]]
    assert progress == sorted(progress)
    assert ticks[-2]["distance_to_goal"] == ticks[-1]["final_distance"]


def test_feedback_speed_is_that_of_the_robot(client):
    floor = Floor(client, room())
    floor.until(SkillState.EXECUTING, goal_pos=GOAL)
    fastest = max(floor.tick(goal_pos=GOAL)["current_velocity"][0] for _ in range(240))
    assert 0.5 < fastest <= 1.0 + 1e-6


@pytest.mark.parametrize(
    ("goal", "reason"),
    [
        ({"goal_pos": [1.0, math.nan, 0.0]}, "invalid_goal"),
        ({"goal_pos": [1.0]}, "invalid_goal"),
        ({}, "invalid_goal"),
        ({"goal_pos": GOAL, "goal_quat": [0, 0, 0, 0]}, "invalid_goal"),
        ({"goal_pos": GOAL, "timeout": 0}, "invalid_goal"),
        ({"goal_pos": GOAL, "timeout": -1}, "invalid_goal"),
        ({"goal_pos": [0.02, 2.0, 0.0]}, "goal_occupied"),
        ({"goal_pos": [50.0, 2.0, 0.0]}, "goal_outside_map"),
        ({"goal_pos": GOAL, "timeout": 1.0}, "timeout"),
    ],
)
def test_bad_goals_fail_with_a_reason(client, goal, reason):
    floor = Floor(client, room())
    result = floor.finish(**goal)
    assert result["status"] == "failed"
    assert result["reason"] == reason
    assert result["message"].startswith("Navigation failed: ")
    assert result["elapsed_time"] >= 0
    assert floor.stands
    assert floor.skill.state is SkillState.IDLE


def test_no_way_no_room_no_map(client):
    walled = room()
    walled[:, 60] = True
    assert Floor(client, walled).finish(goal_pos=GOAL)["reason"] == "no_path"
    full = np.ones_like(room())
    assert Floor(client, full).finish(goal_pos=GOAL)["reason"] in ("no_free_space", "start_occupied")
    assert (
        Floor(client, room(), start=(-9.0, 1.0, 0.0)).finish(goal_pos=GOAL)["reason"] == "start_outside_map"
    )


def test_start_is_the_goal(client):
    floor = Floor(client, room())
    result = floor.finish(goal_pos=[1.0, 1.0, 0.0])
    assert result["status"] == "succeeded"
    assert floor.now_s() < 0.5
    result = floor.finish(goal_pos=[1.0, 1.0, 0.0], goal_quat=_quat(2.0))
    assert result["status"] == "succeeded"
    assert floor.robot.at[2] == pytest.approx(2.0, abs=0.01)


def test_leaves_an_obstacle_that_it_starts_in(client):
    occupied = room()
    occupied[18:22, 24:26] = True  # just ahead of the robot, within its radius
    floor = Floor(client, occupied, start=(1.1, 1.0, 0.0))
    result = floor.finish(goal_pos=GOAL)
    assert result["status"] == "succeeded"
    assert result["recoveries"] >= 1


def test_does_not_leave_an_obstacle_by_going_through_it(client):
    occupied = room()
    occupied[10:30, 14:26] = True
    floor = Floor(client, occupied)
    result = floor.finish(goal_pos=GOAL)
    assert result["reason"] == "start_occupied"
    assert floor.robot.at == pytest.approx([1, 1, 0])


@pytest.mark.parametrize("state", list(SkillState)[1:5])
def test_cancel_in_each_state(client, state):
    floor = Floor(client, room())
    floor.until(state, goal_pos=GOAL)
    floor.skills.cancel("navigate_to")
    assert floor.stands
    result = floor.tick(goal_pos=GOAL)
    assert (result["status"], result["reason"]) == ("failed", "cancelled")
    before = floor.robot.at.copy()
    for _ in range(30):
        floor.controller.clock_callback(floor.now_s())
        floor.robot.advance()
    assert floor.robot.at == pytest.approx(before)


def test_cancelling_nothing_does_nothing(client):
    floor = Floor(client, room())
    floor.skills.cancel("navigate_to")
    assert floor.skill.state is SkillState.IDLE
    assert floor.finish(goal_pos=GOAL)["status"] == "succeeded"


def test_pause_and_resume(client):
    floor = Floor(client, room())
    floor.until(SkillState.EXECUTING, goal_pos=GOAL)
    for _ in range(180):
        floor.tick(goal_pos=GOAL)
    speed = floor.robot.moves[0]
    assert speed > 0.4
    floor.skills.pause("navigate_to")
    for _ in range(180):
        result = floor.tick(goal_pos=GOAL)
    assert result["status"] == "processing"
    assert result["message"] == "Paused"
    assert result["paused"]
    assert abs(floor.robot.moves).max() < 1e-3
    elapsed = result["elapsed_time"]
    for _ in range(600):
        result = floor.tick(goal_pos=GOAL)
    assert result["elapsed_time"] == elapsed
    floor.skills.resume("navigate_to")
    assert floor.finish(goal_pos=GOAL)["status"] == "succeeded"


def test_another_goal_takes_over_without_a_stop(client):
    floor = Floor(client, room(9.0, 6.0))
    first, second = [7.5, 1.0, 0.0], [7.5, 4.0, 0.0]
    floor.until(SkillState.EXECUTING, goal_pos=first)
    for _ in range(150):
        floor.tick(goal_pos=first)
    speeds = []
    floor.tick(goal_pos=second)
    assert floor.skill.state in (SkillState.INITIALIZING, SkillState.PATH_PLANNING)
    for _ in range(60):
        floor.tick(goal_pos=second)
        speeds.append(floor.robot.moves[0])
    assert floor.skill.state is SkillState.EXECUTING
    assert min(speeds) > 0.3
    assert max(abs(np.diff(speeds))) < 0.5 / 60 * 1.1  # the limit of acceleration holds
    result = floor.finish(goal_pos=second)
    assert result["status"] == "succeeded"
    assert math.dist(floor.robot.at[:2], second[:2]) < 0.02


def test_a_goal_behind_is_reached_too(client):
    floor = Floor(client, room(9.0, 6.0), start=(1.0, 3.0, 0.0))
    floor.until(SkillState.EXECUTING, goal_pos=[7.5, 3.0, 0.0])
    for _ in range(180):
        floor.tick(goal_pos=[7.5, 3.0, 0.0])
    assert floor.finish(goal_pos=[1.0, 3.0, 0.0])["status"] == "succeeded"


def test_saved_and_restored_elsewhere(client):
    floor = Floor(client, room())
    floor.until(SkillState.EXECUTING, goal_pos=GOAL, goal_quat=_quat(0.5), timeout=50.0)
    for _ in range(100):
        floor.tick()
    saved = floor.skills.save()
    assert saved["navigate_to"]["state"] == "EXECUTING"
    other = Floor(client, room(), start=tuple(floor.robot.at))
    other.skills.restore(saved)
    assert other.skills.get_skill_state("navigate_to") == "INITIALIZING"
    result = other.finish()
    assert result["status"] == "succeeded"
    assert result["total_time"] == pytest.approx(other.now_s() + saved["navigate_to"]["elapsed_s"], abs=0.1)
    assert other.robot.at[2] == pytest.approx(0.5, abs=0.02)


@pytest.mark.parametrize(
    "saved",
    [
        [],
        {"navigate_to": {"state": "FLYING"}},
        {"navigate_to": {"state": "EXECUTING"}},
        {"navigate_to": {"state": "IDLE", "wings": 2}},
        {"fly_to": {"state": "IDLE"}},
    ],
)
def test_refuses_to_restore_what_was_not_saved(client, saved):
    with pytest.raises(UserError):
        Floor(client, room()).skills.restore(saved)


def _block(floor, x, y, half_m=0.2):
    xs, ys = np.meshgrid(np.arange(x - half_m, x + half_m, 0.04), np.arange(y - half_m, y + half_m, 0.04))
    points = np.stack([xs.ravel(), ys.ravel(), np.full(xs.size, 0.3)], axis=1)
    floor.live_map.mark_points(points, floor.now_s())


def test_goes_around_what_appears_on_the_path(client):
    floor = Floor(client, room(), start=(1.0, 2.0, 0.0))
    goal = [5.0, 2.0, 0.0]
    floor.until(SkillState.EXECUTING, goal_pos=goal)
    for _ in range(60):
        floor.tick(goal_pos=goal)
    nearest = math.inf
    for _ in range(3000):
        _block(floor, 3.5, 2.0)
        result = floor.tick(goal_pos=goal)
        nearest = min(nearest, math.dist(floor.robot.at[:2], (3.5, 2.0)))
        if result["status"] != "processing":
            break
    assert result["status"] == "succeeded"
    assert result["replans"] >= 1
    assert nearest > 0.2 + 0.17


def test_gives_up_on_what_stays_in_the_way_after_the_recoveries(client):
    occupied = room()
    occupied[:, 60] = True
    occupied[36:48, 60] = False  # a door
    floor = Floor(client, occupied, start=(1.0, 2.0, 0.0))
    messages = []
    for _ in range(6000):
        _block(floor, 3.0, 2.1, 0.35)
        result = floor.tick(goal_pos=[5.0, 2.0, 0.0], timeout=200.0)
        messages.append(result["message"])
        if result["status"] != "processing":
            break
    assert result["status"] == "failed"
    assert result["reason"] == "blocked"
    assert result["recoveries"] == NavigationParams().max_recoveries
    for words in (
        "Forgetting what was seen",
        "Waiting for the way to clear",
        "Turning to look around",
        "Backing out",
    ):
        assert words in messages
    assert floor.stands


def test_replans_after_collisions_and_then_gives_up(client):
    floor = Floor(client, room())
    collisions = 0
    for _ in range(6000):
        floor.robot.touching = floor.skill.state is SkillState.EXECUTING and floor.robot.moves[0] > 0.2
        collisions += floor.robot.touching
        result = floor.tick(goal_pos=GOAL)
        if result["status"] != "processing":
            break
    assert result["reason"] == "collision"
    assert collisions == NavigationParams().max_replans + 1
    assert floor.stands


def test_replans_when_it_is_off_its_trajectory(client):
    floor = Floor(client, room())
    floor.until(SkillState.EXECUTING, goal_pos=GOAL)
    for _ in range(120):
        floor.tick(goal_pos=GOAL)
    floor.robot.at[1] += 0.5
    result = floor.finish(goal_pos=GOAL)
    assert result["status"] == "succeeded"
    assert result["replans"] == 1


def test_a_robot_that_cannot_move_is_given_up(client):
    floor = Floor(client, room())
    floor.robot.stuck = True
    result = floor.finish(goal_pos=GOAL)
    assert result["status"] == "failed"
    assert result["reason"] in ("tracking_error", "no_progress")
    assert floor.stands


def test_a_pose_that_is_none(client):
    floor = Floor(client, room())
    floor.robot.at[0] = math.nan
    result = floor.tick(goal_pos=GOAL)
    result = floor.tick(goal_pos=GOAL)
    assert result["reason"] == "pose_unknown"
    assert floor.stands


def test_a_planner_that_is_killed():
    with PlanningClient() as client:
        floor = Floor(client, room())
        assert floor.finish(goal_pos=GOAL)["status"] == "succeeded"
        floor.until(SkillState.PATH_PLANNING, goal_pos=[1.0, 1.0, 0.0])
        os.kill(client.pid, signal.SIGKILL)
        result = floor.finish(goal_pos=[1.0, 1.0, 0.0])
        assert result["reason"] == "planner_lost"
        assert floor.stands
        assert floor.finish(goal_pos=[1.0, 1.0, 0.0])["status"] == "succeeded"  # with another process


def test_a_holonomic_base_takes_another_goal_while_it_moves_sideways(client):
    floor = Floor(client, room(), dynamics=Dynamics(drive="holonomic"))
    floor.until(SkillState.EXECUTING, goal_pos=GOAL, goal_quat=_quat(-1.5))
    for _ in range(150):
        floor.tick(goal_pos=GOAL, goal_quat=_quat(-1.5))
    assert abs(floor.robot.moves[1]) > 0.5
    other, changes_mps, errors_m = [4.5, 1.0, 0.0], [], []
    before = _world_velocity(floor.robot)
    for _ in range(90):
        floor.tick(goal_pos=other)
        now = _world_velocity(floor.robot)
        changes_mps.append(math.dist(now, before))
        errors_m.append(floor.controller.last.position_error_m)
        before = now
    assert max(changes_mps) < 0.5 / 60 + 1e-6
    assert max(errors_m) < 0.01
    assert floor.finish(goal_pos=other)["replans"] == 0


def test_a_holonomic_base_that_bumps_into_something_sideways_backs_off_sideways(client):
    goal = {"goal_pos": [4.0, 1.0, 0.0], "goal_quat": _quat(math.pi / 2)}
    floor = Floor(client, room(), start=(1.0, 1.0, math.pi / 2), dynamics=Dynamics(drive="holonomic"))
    floor.until(SkillState.EXECUTING, **goal)
    for _ in range(90):
        floor.tick(**goal)
    floor.robot.touching = True
    bumped_x = floor.robot.at[0]
    assert floor.tick(**goal)["message"] == "Collision detected, replanning"
    floor.robot.touching = False
    rows, columns = np.nonzero(floor.live_map.seen)
    assert min(columns) * 0.05 > bumped_x
    assert max(abs(rows * 0.05 - 1.0)) < 0.3
    assert floor.until(SkillState.PATH_PLANNING, **goal)["state"] == "PATH_PLANNING"
    assert floor.robot.at == pytest.approx([bumped_x - 0.3, 1.0, math.pi / 2], abs=0.05)


def _world_velocity(robot):
    (vx, vy, _), yaw = robot.moves, robot.at[2]
    return vx * math.cos(yaw) - vy * math.sin(yaw), vx * math.sin(yaw) + vy * math.cos(yaw)
