"""Actions of a robot with physics, in another process, over real DDS: where they land and when they stop."""

import math
from contextlib import contextmanager

import msgspec
import numpy as np
import pytest
from commands import command
from nav_msgs.msg import Odometry
from sensor_msgs.msg import LaserScan

from proctor.core.geometry import wrap_angle
from proctor.core.types import Vector3
from proctor.robots.motion import clearance_ahead_m
from proctor.scenes.scene_config import Part, SceneConfig, SceneObject
from proctor.worlds.ros2.node.convert import scan_of, seconds
from proctor.worlds.ros2.node.node import RosNode
from proctor.worlds.ros2.node.topic import Topic
from proctor.worlds.ros2.robot.action_executor import VLNActionExecutor
from proctor.worlds.ros2.robot.simulation_client import SimulationClient

WALL_X_M = 20.0

pytestmark = pytest.mark.slow


@contextmanager
def driven(tmp_path, factor, *, start="0,0,0"):
    """A robot of the embedded world, who drives it, and who asks the simulator where it truly is."""
    part = Part(shape="box", size=Vector3(0.1, 40.0, 2.0))
    wall = SceneObject(name="wall", translate=Vector3(WALL_X_M + 0.05, 0.0, 1.0), parts=[part])
    scene = tmp_path / "scene.json"
    scene.write_bytes(msgspec.json.encode(SceneConfig(scene_name="a wall far away", objects=[wall])))
    options = ["--scene", str(scene), "--start", start, "--rtf", str(factor), "--camera-hz", "0"]
    with command("sim-host", *options), VLNActionExecutor() as executor, RosNode("referee") as referee:
        assert executor.wait_for_odom(20.0)
        yield executor, SimulationClient(referee)


def misses(executor, simulator, actions):
    """Return by how many metres and degrees actions missed, and how long drives and turns took."""
    misses_m, misses_deg, drives_s, turns_s = [], [], [], []
    for action in actions:
        at, yaw = simulator.position("robot")
        motion = (
            executor.execute_forward_25cm() if action == "forward" else executor.execute_rotate_15deg(action)
        )
        assert not motion.collided
        now_at, now_yaw = simulator.position("robot")
        (drives_s if action == "forward" else turns_s).append(motion.duration_s)
        if action == "forward":
            misses_m.append(abs(math.hypot(now_at.x - at.x, now_at.y - at.y) - 0.25))
        else:
            wanted = math.radians(15) if action == "left" else -math.radians(15)
            misses_deg.append(math.degrees(abs(wrap_angle(now_yaw - yaw - wanted))))
    print(  # noqa: T201
        f"missed by {1e3 * np.median(misses_m):.2f} mm, {1e3 * max(misses_m):.2f} at most,"
        f" {np.median(misses_deg):.3f}°, {max(misses_deg):.3f}° at most; took {np.median(drives_s):.3f} s,"
        f" {max(drives_s):.3f} at most, {np.median(turns_s):.3f} s, {max(turns_s):.3f} at most"
    )
    return misses_m, misses_deg, drives_s, turns_s


def check_stop(executor, node):
    """Drive to the wall; the robot slows down within 50 ms of the first scan that shows it."""
    seen_s, slowed_s = [], []

    def read_scan(message):
        if clearance_ahead_m(scan_of(message)) < executor.COLLISION_THRESHOLD:
            seen_s.append(seconds(message.header.stamp))
        return seconds(message.header.stamp), True

    def read_speed(message):
        if seen_s and message.twist.twist.linear.x < 0.9 * executor.LINEAR_SPEED:
            slowed_s.append(seconds(message.header.stamp))
        return seconds(message.header.stamp), True

    scans = Topic(node, LaserScan, "scan", read_scan)
    Topic(node, Odometry, "odom", read_speed)
    assert node.wait_until(lambda: scans.count > 0, 10.0)
    assert executor.execute_forward_25cm().collided
    assert node.wait_until(lambda: bool(slowed_s), 10.0)
    print(f"stopped {1e3 * (slowed_s[0] - seen_s[0]):.0f} ms after the scan")  # noqa: T201
    return slowed_s[0] - seen_s[0]


def test_a_robot_with_physics_stops_at_a_wall(tmp_path):
    # At a quarter of real speed a busy machine does not count.
    with driven(tmp_path, 0.25, start=f"{WALL_X_M - 0.23},0,0") as (executor, simulator):
        assert check_stop(executor, simulator._node) <= 0.05 + 1e-6


def test_a_hundred_of_each_land_where_they_should(tmp_path):
    with driven(tmp_path, 3.0) as (executor, simulator):
        actions = (["forward", "left"] * 25 + ["forward", "right"] * 25) * 2
        misses_m, misses_deg, drives_s, turns_s = misses(executor, simulator, actions)
        assert np.median(misses_m) <= 0.002
        assert np.quantile(misses_m, 0.95) <= 0.005  # a busy machine may obey late at any one moment
        assert np.median(misses_deg) <= 0.1
        assert np.quantile(misses_deg, 0.95) <= 0.3
        # What is over that was brought to its goal after a busy machine had stopped it late.
        assert np.median(drives_s) <= 1.15 * 2.5
        assert np.median(turns_s) <= 1.15 * 0.87


@pytest.mark.parametrize("factor", [0.2, 1.0, 5.0])
def test_the_speed_of_time_does_not_matter(tmp_path, factor):
    with driven(tmp_path, factor) as (executor, simulator):
        misses_m, misses_deg, drives_s, turns_s = misses(executor, simulator, ["forward", "left"] * 5)
        assert max(misses_m) <= 0.01
        assert max(misses_deg) <= 0.5
        if factor < 1.0:  # else a busy machine, which sends its commands late, would be measured
            assert np.median(drives_s) <= 1.15 * 2.5
            assert np.median(turns_s) <= 1.15 * 0.87
