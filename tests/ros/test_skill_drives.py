"""Drives through houses over the action `skill_execution`, in physics, against a sim-host of its own."""

import math
from pathlib import Path

import numpy as np
import pytest
from action_msgs.msg import GoalStatus
from commands import command
from geometry_msgs.msg import Twist
from nav_msgs.msg import Odometry
from skill_clients import Client, navigate

from proctor.core.registry import suite_path
from proctor.core.types import Pose2
from proctor.exams.datasets import load_dataset
from proctor.navigation.process.client import PlanningClient
from proctor.scenes.scene import Scene
from proctor.worlds.ros2.node.node import COMMANDS, SENSORS
from proctor.worlds.ros2.node.topic import RobotClock
from proctor.worlds.ros2.robot.odometry import read_odometry
from proctor.worlds.ros2.skill.navigator import NavigatorOptions
from proctor.worlds.ros2.skill.skill_server import SkillServer

HOUSES, GOALS = 4, 5
TICKS_HZ, A_MAX = 60, 0.5
RADIUS_M = 0.25


@pytest.fixture(scope="module")
def planner():
    with PlanningClient() as planner:
        assert planner.wait_until_ready(300.0)
        yield planner


class Witness(Client):
    """Hears the robot beside the server: when it was told what, and what it did."""

    def __init__(self):
        super().__init__("witness")
        self.clock = RobotClock(self)
        self.told, self.moved = [], []
        self.create_subscription(Twist, "/cmd_vel", self._hear_command, COMMANDS)
        self.create_subscription(Odometry, "/odom", self._hear_odometry, SENSORS)

    def _hear_command(self, message):
        self.told.append((self.clock.now_s, message.linear.x, message.angular.z))

    def _hear_odometry(self, message):
        read = read_odometry(message, 0.0)
        if read is not None:
            self.moved.append(read)


def houses():
    """Return an episode of each of some houses."""
    episodes = {}
    for episode in load_dataset(suite_path("houses-v1")).episodes:
        episodes.setdefault(episode.scene_config_path, episode)
    return list(episodes.values())[:HOUSES]


def somewhere(grid, start, generator):
    """Return a place that can be reached from another one, and is not next to it."""
    while True:
        row, column = (int(generator.integers(size)) for size in grid.occupied.shape)
        place = np.array(grid.origin_world) + grid.resolution_m * (np.array([column, row]) + 0.5)
        far = math.dist(place, start) > 2.0
        if far and grid.clearance_at(*place) > RADIUS_M and grid.connects(start, place, radius_m=RADIUS_M):
            return tuple(place.tolist())


@pytest.mark.slow
@pytest.mark.parametrize("episode", houses(), ids=lambda episode: episode.episode_id)
def test_goals_in_houses_are_reached_and_cancelling_stops_the_robot(episode, planner, ros_domain):
    at = episode.start_position
    grid = Scene.load(Path(episode.scene_config_path)).map_at(at)
    generator, here = np.random.default_rng(7), (at.x, at.y)
    options = NavigatorOptions(robot_namespace="", odom_origin=Pose2(math.nan, 0.0, 0.0))  # /tf is to tell
    arguments = ("--suite", "houses-v1", "--episode", episode.episode_id, "--camera-hz", "0", "--rtf", "1")
    with (
        command("sim-host", *arguments),
        SkillServer(grid, options=options, client=planner) as server,
        Witness() as witness,
    ):
        assert server.wait_until(lambda: server.navigator.problem() is None, 30.0)
        for _ in range(GOALS):
            goal = somewhere(grid, here, generator)
            asked = witness.ask(navigate(*goal, timeout=120.0))
            status, result = asked.end(150.0)
            rate_hz = len(asked.feedback) / result.total_time
            print(f"{math.dist(here, goal):.1f} m: {result}, {rate_hz:.1f} feedbacks in a second")  # noqa: T201
            messages = dict.fromkeys(one.message for one in asked.feedback)
            assert status == GoalStatus.STATUS_SUCCEEDED, (result, *messages)
            assert result.final_distance < 0.1
            assert rate_hz > 0.5 * TICKS_HZ  # a busy machine misses some
            here = goal
        check_cancel(witness, somewhere(grid, here, generator))


def check_cancel(witness, goal):
    """Cancel a drive at speed."""
    asked = witness.ask(navigate(*goal, timeout=120.0))
    assert asked.wait_for(lambda feedback: feedback.velocity[0] > 0.4)
    asked_s, speed_mps = witness.clock.now_s, asked.feedback[-1].velocity[0]
    asked.cancel()
    assert asked.end()[0] == GoalStatus.STATUS_CANCELED

    def rested():
        return [s for s, one in witness.moved if s > asked_s and np.abs(one.velocity).max() < 0.01]

    assert witness.wait_until(lambda: bool(rested()), 10.0)
    stops = [time_s for time_s, *told in witness.told if time_s >= asked_s and told == [0.0, 0.0]]
    print(f"from {speed_mps:.2f} m/s: told {stops[0] - asked_s:.3f} s, at rest {rested()[0] - asked_s:.3f} s")  # noqa: T201
    assert stops[0] - asked_s <= 0.1
    assert rested()[0] - asked_s <= speed_mps / A_MAX
