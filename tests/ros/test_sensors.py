"""Observations from topics: of one moment, and after the last action."""

import math
import threading

import numpy as np
import pytest
from camera import MATCH_S, Camera
from picture_messages import image_message
from sensor_msgs.msg import Image, LaserScan

from proctor.core.errors import SimulationError
from proctor.worlds.ros2.node.convert import stamp
from proctor.worlds.ros2.node.node import RosNode
from proctor.worlds.ros2.robot.sensors import SensorSubscriber

SOON_S = 0.3


@pytest.fixture(scope="module")
def camera():
    with Camera() as node:
        yield node


@pytest.fixture
def sensors(camera):
    with RosNode("agent") as node:
        subscriber = SensorSubscriber(node=node)
        camera.wait_for(subscriber)
        yield subscriber


def hears(sensors, what):
    return sensors.node.wait_until(what, MATCH_S)


def shades(observation):
    return {name: int(picture.flat[0]) for name, picture in observation.items()}


def test_the_subscriptions_have_the_names_of_the_topics(camera, sensors):
    found = {name: getattr(sensors, f"{name}_sub") for name in ("rgb", "depth", "scan")}
    assert {name: (one.topic_name, one.msg_type) for name, one in found.items()} == {
        "rgb": ("/rgb", Image),
        "depth": ("/depth", Image),
        "scan": ("/scan", LaserScan),
    }
    assert SensorSubscriber(node=sensors.node, sensors=["rgb"]).depth_sub is None


def test_pictures_of_one_moment_after_the_last_action(camera, sensors):
    camera.look(1.0)
    observation = sensors.get_observation(MATCH_S)
    assert shades(observation) == {"rgb": 10, "depth": 10}
    assert (observation["rgb"].dtype, observation["rgb"].shape) == (np.uint8, (2, 3, 3))
    assert (observation["depth"].dtype, observation["depth"].shape) == (np.uint16, (2, 3))
    sensors.mark_action(1.2)
    camera.look(1.1)
    camera.look(1.2)
    assert hears(sensors, lambda: sensors.latest_depth is not None and sensors.latest_depth[0, 0] == 12)
    with pytest.raises(
        SimulationError, match=r"/rgb .* its newest is of 1\.200 s, expected one after 1\.200 s"
    ):
        sensors.get_observation(SOON_S)
    later = threading.Timer(0.1, camera.look, [1.3])
    later.start()
    assert shades(sensors.get_observation(MATCH_S)) == {"rgb": 13, "depth": 13}
    camera.look(1.4, names=["rgb"])
    assert hears(sensors, lambda: sensors.latest_rgb[0, 0, 0] == 14)
    assert shades(sensors.get_observation(MATCH_S)) == {"rgb": 13, "depth": 13}
    later.join()


def test_the_newest_picture_of_a_robot_that_sets_no_stamps(camera, sensors):
    camera.look(0.0)
    assert hears(sensors, lambda: sensors.latest_rgb is not None)
    for shade in (7, 8):
        rgb = image_message(np.full((2, 3, 3), shade, np.uint8), "rgb8", stamp(0.0))
        sensors.rgb_callback(rgb)
        assert sensors.latest_rgb[0, 0, 0] == shade
    assert shades(sensors.get_observation(MATCH_S))["rgb"] == 8


def test_a_scan_whose_angles_nobody_knows_is_an_error(camera):
    with RosNode("agent") as node:
        sensors = SensorSubscriber(node=node, sensors=["scan"])
        camera.wait_for(sensors)
        sensors.scan_callback(LaserScan(ranges=[0.1], range_max=10.0, angle_min=math.nan))
        with pytest.raises(SimulationError, match=r"/scan: the angles of the scan are not finite"):
            sensors.get_observation(SOON_S)


def test_pictures_that_are_stamped_apart(camera, sensors):
    for time_s in (1.0, 1.1):
        camera.look(time_s, depth_s=time_s + 0.01)
    assert shades(sensors.get_observation(MATCH_S)) == {"rgb": 10, "depth": 10}
    sensors.reset()
    camera.look(2.0, depth_s=2.05)
    assert hears(sensors, lambda: sensors.latest_rgb is not None and sensors.latest_depth is not None)
    with pytest.raises(
        SimulationError, match=r"/rgb of 2\.000 s and /depth of 2\.050 s do not belong together"
    ):
        sensors.get_observation(SOON_S)


def test_what_was_sent_before_time_was_set_back_never_counts(camera, sensors):
    camera.tell_time(50.0)
    assert hears(sensors, lambda: sensors._clock.now_s == 50.0)
    camera.look(20.0)
    assert shades(sensors.get_observation(MATCH_S)) == {"rgb": 200, "depth": 200}
    sensors.mark_action(20.0)
    camera.tell_time(1.0)
    assert hears(sensors, lambda: sensors._clock.jumps == 1)
    camera.look(21.0)  # a straggler
    with pytest.raises(
        SimulationError, match=r"/rgb: a message is stamped 21\.000 s, but /clock is at 1\.000 s"
    ):
        sensors.get_observation(SOON_S)
    camera.look(1.1)
    assert shades(sensors.get_observation(MATCH_S)) == {"rgb": 11, "depth": 11}


def test_time_that_goes_back_without_a_clock(camera, sensors):
    camera.look(20.0)
    sensors.get_observation(MATCH_S)
    sensors.mark_action(20.0)
    camera.look(1.0)
    assert shades(sensors.get_observation(MATCH_S)) == {"rgb": 10, "depth": 10}


def test_what_is_near_ahead_counts_once_until_it_is_gone(camera, sensors):
    ahead, side = [1.0] * 12, [1.0] * 12
    ahead[6], side[8] = 0.25, 0.25  # beams 30° apart: straight ahead, and 60° to the left
    for tenths, ranges in enumerate([side, ahead, ahead, side, ahead, [math.inf] * 12, [-math.inf] * 12]):
        camera.scan(tenths / 10, ranges)
    assert hears(sensors, lambda: sensors._topics["scan"].count == 7)
    assert (sensors.collision_detected, sensors.collision_count) == (True, 2)
    sensors.reset()
    assert (sensors.collision_detected, sensors.collision_count) == (False, 0)


def test_scans_are_part_of_it_if_asked_for(camera):
    subscriber = SensorSubscriber(sensors=("scan",))
    try:
        camera.wait_for(subscriber)
        camera.scan(1.0, [math.nan] * 4)
        with pytest.raises(SimulationError, match="/scan: all 4 ranges of the scan are NaN"):
            subscriber.get_observation(1.0)
        camera.scan(1.1, [math.inf] * 4)
        observation = subscriber.get_observation(MATCH_S)
        assert observation["scan"].ranges.tolist() == [math.inf] * 4
    finally:
        subscriber.close()
        subscriber.close()


def test_wrong_encodings_are_named(camera, sensors):
    camera.look(1.0, encodings=("bgra8", "16UC1"))
    assert shades(sensors.get_observation(MATCH_S)) == {"rgb": 10, "depth": 10}
    message = Image(encoding="mono8", width=1, height=1, step=1, data=[1])
    sensors.mark_action(1.0)
    sensors.rgb_callback(message)
    with pytest.raises(
        SimulationError, match=r"/rgb: the encoding is 'mono8', expected .*published by /camera"
    ):
        sensors.get_observation(SOON_S)


def test_wrong_options_are_refused():
    with pytest.raises(ValueError, match=r"some of rgb, depth, scan, found \['lidar'\]"):
        SensorSubscriber(sensors=["lidar"])
    with pytest.raises(ValueError, match=r"depth_far_m above 0, found 0\.3 and 0"):
        SensorSubscriber(depth_far_m=0)
