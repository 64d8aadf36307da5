"""The embedded world as ROS 2 robots, over real DDS: what they publish, obey and see."""

import math
import threading

import msgspec
import numpy as np
import pytest
from geometry_msgs.msg import Twist
from mesh_houses import Y_UP, two_storeys, write
from nav_msgs.msg import Odometry
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import CameraInfo, Image, LaserScan
from tf2_msgs.msg import TFMessage

from proctor.core.errors import UnknownName, UserError
from proctor.core.geometry import pose_out_of
from proctor.core.types import Pose2, Vector3
from proctor.robots.spec import standard_robot
from proctor.scenes.scene_config import Part, SceneConfig, SceneObject
from proctor.worlds.ros2.host.hosted_robot import SimHostOptions
from proctor.worlds.ros2.host.sim_host import LAG_S, Pacer, SimHost, State
from proctor.worlds.ros2.node.convert import pose2, quaternion, seconds, yaw_of
from proctor.worlds.ros2.node.node import CLOCK, COMMANDS, LATCHED, SENSORS, RosNode

WALL = SceneObject(
    name="wall",
    translate=Vector3(3.05, 0, 1.5),
    parts=[Part(shape="box", size=Vector3(0.1, 2.0, 3.0), color=(0.8, 0.2, 0.1))],
)
START = Pose2(1.0, 0.0, 0.0)
TOPICS = {"odom": Odometry, "scan": LaserScan, "rgb": Image, "depth": Image, "camera_info": CameraInfo}
HEARD_S = 20.0


@pytest.fixture(scope="module")
def scene(tmp_path_factory):
    """A wall 2 m in front of the start, and nothing else."""
    path = tmp_path_factory.mktemp("scene") / "scene.json"
    path.write_bytes(msgspec.json.encode(SceneConfig(scene_name="one wall", objects=[WALL])))
    return path


@pytest.fixture
def make(scene):
    """Makes hosts that pass no time by themselves."""
    hosts = []

    def make_host(**settings):
        robot = standard_robot().with_camera(
            width=settings.pop("width", 64), height=settings.pop("height", 48)
        )
        hosts.append(SimHost(scene, SimHostOptions(**{"robot": robot, "camera_hz": 0, **settings})))
        return hosts[-1]

    yield make_host
    for host in hosts:
        host.close()


class Ear(RosNode):
    """Hears topics, and keeps all that it hears; commands a robot."""

    def __init__(self, *topics, namespace=""):
        super().__init__("ear", namespace=namespace)
        self.heard = {topic: [] for topic in topics}
        self.readers = [
            self.create_subscription(TOPICS[topic], topic, self.heard[topic].append, SENSORS)
            for topic in topics
        ]
        self.mouth = self.create_publisher(Twist, "cmd_vel", COMMANDS)

    def wait_until_matched(self, host):
        """Until both sides know of each other."""
        robots = host._robots.values()
        publishers = [publisher for robot in robots for publisher in robot.node.publishers]
        (ear,) = [robot._commands for robot in robots if f"/{robot.namespace}" == self.get_namespace()]

        def is_matched():
            heard = {publisher.topic_name for publisher in publishers if publisher.get_subscription_count()}
            known = {reader.topic_name for reader in self.readers if reader.get_publisher_count()}
            return (
                self.mouth.get_subscription_count() == 1
                and ear.get_publisher_count() == 1
                and all(reader.topic_name in heard & known for reader in self.readers)
            )

        assert self.wait_until(is_matched, HEARD_S)

    def last(self, topic, host, period_s=0.0):
        """What the newest tick has brought, or one at most a period before."""

        def has_come():
            newest = self.heard[topic][-1:]
            return newest and seconds(newest[0].header.stamp) > host.time_s - period_s - 1e-6

        assert self.wait_until(has_come, HEARD_S), topic
        return self.heard[topic][-1]

    def drive(self, host, ahead=0.0, turn=0.0):
        """Command, and let time pass until the robot has the command."""
        command = Twist()
        command.linear.x, command.angular.z = ahead, turn
        name = next(
            name for name in host.entity_names() if f"/{host.namespace_of(name)}" == self.get_namespace()
        )
        base = host._robots[name].base
        for turn_taken in range(1000):
            if turn_taken % 100 == 0:
                self.mouth.publish(command)  # nobody promises that the first one arrives
            host.step()
            if (base.commanded.vx, base.commanded.omega) == (ahead, turn):
                return
            self.wait_until(lambda: False, 0.005)
        pytest.fail("the command did not arrive")


def _hear(node, kind, topic, qos):
    heard = []
    node.create_subscription(kind, topic, heard.append, qos)
    return heard


def test_a_robot_drives_and_tells_where_it_is(make):
    host = make()
    host.spawn("robot", "", Pose2(1.0, 0.5, math.pi / 2))
    with Ear("odom") as ear:
        clocks, moved, fixed = (
            _hear(ear, Clock, "/clock", CLOCK),
            _hear(ear, TFMessage, "/tf", COMMANDS),
            _hear(ear, TFMessage, "/tf_static", LATCHED),
        )
        ear.wait_until_matched(host)
        assert ear.wait_until(lambda: fixed, HEARD_S)
        ear.drive(host, ahead=0.5, turn=0.4)
        host.step(90)
        odom = ear.last("odom", host)
        position, xyzw, linear, angular = host.state_of("robot")
        world = pose_out_of(host._robots["robot"].start, pose2(odom.pose.pose))
        assert (world.x, world.y) == pytest.approx((position.x, position.y))
        assert world.yaw == pytest.approx(2 * math.atan2(xyzw[2], xyzw[3]))
        assert world.yaw > math.pi / 2 + 0.5, "it has turned to the left"
        assert odom.twist.twist.linear.x == pytest.approx(0.5, abs=0.01), "in its own frame"
        assert odom.twist.twist.linear.y == pytest.approx(0.0, abs=0.01)
        assert math.hypot(linear.x, linear.y) == pytest.approx(0.5, abs=0.01)
        assert linear.x < -0.2, "in the world's frame"
        assert angular.z == pytest.approx(0.4, abs=0.01) == odom.twist.twist.angular.z
        assert (odom.header.frame_id, odom.child_frame_id) == ("odom", "base_link")
        assert ear.wait_until(lambda: clocks and seconds(clocks[-1].clock) >= host.time_s - 1e-6, HEARD_S)
        assert ear.wait_until(
            lambda: moved and moved[-1].transforms[0].header.stamp == odom.header.stamp, HEARD_S
        )
        transform = moved[-1].transforms[0].transform
        assert transform.translation.x == odom.pose.pose.position.x
        assert yaw_of(transform.rotation) == pytest.approx(yaw_of(odom.pose.pose.orientation))
        frames = {item.child_frame_id: item for item in fixed[0].transforms}
        assert set(frames) == {"odom", "base_scan", "camera"}
        assert frames["odom"].header.frame_id == "map"
        assert frames["odom"].transform.translation.y == 0.5
        assert frames["odom"].transform.rotation == quaternion(math.pi / 2)


def test_odometry_begins_with_zero_frames(make):
    host = make()
    with Ear("odom") as ear:
        host.step(10)
        host.spawn("robot", "", START)
        ear.wait_until_matched(host)
        host.step(6)
        ear.last("odom", host)
    stamps = [seconds(message.header.stamp) for message in ear.heard["odom"]]
    assert stamps == pytest.approx([0, 0, 0, 14 / 60, 15 / 60, 16 / 60])
    assert ear.heard["odom"][0].pose.pose.orientation.w == 1.0


def test_the_scan_shows_the_wall_and_nothing_else(make):
    host = make(scan_hz=20)
    host.spawn("robot", "", START)
    with Ear("scan") as ear:
        ear.wait_until_matched(host)
        for _ in range(10):  # so few at once that none is lost
            host.step(6)
            scan = ear.last("scan", host)
        angles = scan.angle_min + scan.angle_increment * np.arange(len(scan.ranges))
        ranges = np.array(scan.ranges)
        assert angles[-1] == pytest.approx(scan.angle_max, abs=1e-5)
        seen = np.isfinite(ranges)
        assert ranges[seen] == pytest.approx(2.0 / np.cos(angles[seen]), abs=1e-4)
        assert np.isposinf(ranges[~seen]).all()
        assert len(ear.heard["scan"]) == 20
        assert scan.header.frame_id == "base_scan"
        host.place("robot", Vector3(2.995, 0, 0), (0, 0, 0, 1))  # nearer than the scanner can see
        host._robots["robot"]._publish_scan(scan.header.stamp)
        assert ear.wait_until(lambda: len(ear.heard["scan"]) == 21, HEARD_S)
        assert ear.heard["scan"][-1].ranges[180] == -math.inf


@pytest.mark.parametrize(
    ("rgb_encoding", "depth_encoding"), [("rgb8", "16UC1"), ("rgba8", "32FC1"), ("bgr8", "16UC1")]
)
def test_pictures_are_what_the_camera_sees(make, rgb_encoding, depth_encoding):
    host = make(camera_hz=30, rgb_encoding=rgb_encoding, depth_encoding=depth_encoding)
    host.spawn("robot", "", START)
    with Ear("rgb", "depth", "camera_info") as ear:
        ear.wait_until_matched(host)
        host.step(10)
        rgb, depth, info = (ear.last(topic, host) for topic in ("rgb", "depth", "camera_info"))
        assert len(ear.heard["rgb"]) == len(ear.heard["depth"]) == 5
    assert rgb.header == depth.header == info.header
    assert (rgb.encoding, depth.encoding) == (rgb_encoding, depth_encoding)
    pixels = np.frombuffer(rgb.data, np.uint8).reshape(48, 64, -1)
    assert rgb.step == 64 * pixels.shape[2]
    red, blue = (2, 0) if rgb_encoding == "bgr8" else (0, 2)
    assert pixels[24, 32, red] > 2 * pixels[24, 32, blue], "the wall is red"
    if rgb_encoding == "rgba8":
        assert (pixels[..., 3] == 255).all()
    in_metres = depth_encoding == "32FC1"
    distances = np.frombuffer(depth.data, np.float32 if in_metres else np.uint16).reshape(48, 64)
    assert depth.step == distances.strides[0]
    assert distances[24, 32] == pytest.approx(2.0 if in_metres else 2000, rel=2e-3)
    assert distances[0, 0] == (20.0 if in_metres else 0), "past the wall there is nothing"
    wall = np.flatnonzero((distances[24] > 0) & (distances[24] < (19 if in_metres else 19000)))
    half_px = info.k[0] * 1.0 / 2.0
    assert (wall[0], wall[-1] + 1) == pytest.approx((info.k[2] - half_px, info.k[2] + half_px), abs=1.0)


def test_each_robot_has_its_namespace_and_they_see_each_other(make):
    host = make(camera_hz=30)
    host.spawn("alice", "alice", Pose2(0, 0, 0))
    host.spawn("bob", "fleet/bob", Pose2(-2.0, 0, 0))
    with (
        Ear("odom", "scan", namespace="alice") as one,
        Ear("odom", "scan", "depth", namespace="fleet/bob") as two,
    ):
        one.wait_until_matched(host)
        two.wait_until_matched(host)
        two.drive(host, ahead=0.2)
        host.step(60)
        assert one.last("odom", host).pose.pose.position.x == 0.0
        assert two.last("odom", host).pose.pose.position.x == pytest.approx(0.2, abs=0.03)
        assert two.last("odom", host).header.frame_id == "fleet/bob/odom"
        gap_m = 2.0 - two.last("odom", host).pose.pose.position.x - 0.17
        assert two.last("scan", host).ranges[180] == pytest.approx(gap_m, abs=0.01)
        assert one.last("scan", host).ranges[0] == pytest.approx(gap_m, abs=0.01)
        depth = np.frombuffer(two.last("depth", host, 1 / 30).data, np.uint16).reshape(48, 64)
        assert depth[30, 32] == pytest.approx(1000 * gap_m, abs=10)
        host.delete("alice")
        host.step()
        assert two.last("scan", host).ranges[180] > 3.0, "through where she was"
        assert two.wait_until(lambda: not two.count_publishers("/alice/odom"), HEARD_S)


def test_the_watchdog_stops_a_robot_that_hears_nothing(make):
    host = make(cmd_vel_timeout_s=0.5)
    host.spawn("robot", "", START)
    with Ear() as ear:
        ear.wait_until_matched(host)
        ear.drive(host, ahead=0.3)
        host.step(28)
        assert host.state_of("robot")[2].x == pytest.approx(0.3, abs=0.01)
        host.step(10)
        assert host.state_of("robot")[2].x == pytest.approx(0.0, abs=1e-3)


def test_a_command_holds_without_the_watchdog_and_madness_stops(make):
    host = make()
    host.spawn("robot", "", Pose2(-50, 0, 0))
    with Ear() as ear:
        ear.wait_until_matched(host)
        ear.drive(host, ahead=0.3)
        host.step(600)
        assert host.state_of("robot")[2].x == pytest.approx(0.3, abs=0.01)
        command = Twist()
        command.linear.x = math.nan
        ear.mouth.publish(command)
        for _ in range(1000):
            host.step()
            if not any(host._robots["robot"].base.commanded[:2]):
                break
            ear.wait_until(lambda: False, 0.005)
        else:
            pytest.fail("it goes on")
        host.step(10)
        assert host.state_of("robot")[2].x == pytest.approx(0.0, abs=1e-3)


def test_the_wall_clock_changes_nothing(make):
    def trail(real_time_factor):
        host = make(real_time_factor=real_time_factor)
        host.spawn("robot", "", START)
        with Ear("odom") as ear:
            ear.wait_until_matched(host)
            ear.drive(host, ahead=0.4, turn=0.7)
            began_s, over = host.time_s, threading.Event()
            done = threading.Thread(
                target=lambda: (ear.wait_until(lambda: host.time_s > began_s + 1.0, HEARD_S), over.set())
            )
            done.start()
            host.run(over)
            done.join()
            ear.last("odom", host)
        host.close()
        return {
            round(60 * (seconds(m.header.stamp) - began_s)): (m.pose.pose.position.x, m.pose.pose.position.y)
            for m in ear.heard["odom"]
        }

    slow, fast = trail(2.0), trail(None)
    common = {tick for tick in slow.keys() & fast.keys() if tick > 0}
    assert len(common) > 20
    assert {tick: slow[tick] for tick in common} == {tick: fast[tick] for tick in common}


def test_time_and_places_are_set_back(make):
    host = make(real_time_factor=0)
    assert host.state is State.PAUSED
    host.spawn("robot", "", START)
    host.step(30)
    host.place("robot", Vector3(-1, -2, 0), (0, 0, 1, 0))
    position, xyzw, _, _ = host.state_of("robot")
    assert (position.x, position.y, abs(xyzw[2])) == pytest.approx((-1, -2, 1))
    host.reset_time()
    assert host.time_s == 0
    assert host.state_of("robot")[0].x == -1
    host.reset_state()
    assert host.state_of("robot")[0].x == START.x
    host.step(3)
    host.set_state(State.STOPPED)
    assert (host.state, host.time_s) == (State.STOPPED, 0)


def test_a_new_world_is_empty_and_wrong_requests_are_refused(make, scene):
    host = make()
    host.spawn("robot", "", START)
    with pytest.raises(UserError, match="already"):
        host.spawn("robot", "elsewhere", START)
    with pytest.raises(UserError, match="namespace"):
        host.spawn("other", "", START)
    with pytest.raises(UserError, match="namespace"):
        host.spawn("other", "1 2", START)
    with pytest.raises(UnknownName, match="did you mean 'robot'"):
        host.delete("robto")
    host.step(5)
    host.load_world(scene)
    assert (host.entity_names(), host.time_s) == ([], 0)
    with pytest.raises(UserError, match="did you mean 'rgba8'"):
        SimHost(scene, SimHostOptions(rgb_encoding="rgba"))
    empty = SimHost()
    with pytest.raises(UserError, match="no world"):
        empty.spawn("robot", "", START)
    empty.close()
    empty.close()


def test_a_house_has_one_floor_at_a_time(make, tmp_path):
    house = write(two_storeys(), tmp_path / "house.glb", turn=Y_UP)
    host = make()
    host.load_world(house)
    host.step(6)
    host.use_floor(Vector3(2.0, 2.0, 2.9))
    host.spawn("robot", "", Pose2(2.0, 2.0, 0.0))
    assert host.state_of("robot")[0].z == pytest.approx(2.8)
    assert host.time_s == pytest.approx(0.1), "it goes on"
    host.use_floor(Vector3(1.0, 2.0, 2.8))
    with pytest.raises(UserError, match=r"all robots are on one floor, at 2\.8 m, found one at 0 m"):
        host.use_floor(Vector3(2.0, 2.0, 0.0))


def test_a_long_step_ends_when_the_host_is_stopped(make):
    host = make()
    stopper = threading.Thread(target=lambda: (began.wait(), host.stop()))
    began = threading.Event()
    stopper.start()
    host._publish_clock, publish = lambda: (began.set(), publish())[1], host._publish_clock
    assert 0 < host.step(10**9) < 10**9
    stopper.join()


def test_the_pacer_keeps_its_pace_and_does_not_chase_lost_time(monkeypatch):
    now_s = [100.0]
    monkeypatch.setattr("proctor.worlds.ros2.host.sim_host.time.monotonic", lambda: now_s[0])
    pacer = Pacer(0.01, 2.0)
    for _ in range(100):
        now_s[0] += pacer.left_s() + 0.001  # each time a little late
        pacer.tick()
    assert now_s[0] == pytest.approx(100.0 + 99 * 0.005 + 0.001)
    assert pacer.real_time_factor == pytest.approx(2.0, rel=0.01)
    now_s[0] += 10.0
    late = 0
    while pacer.left_s() == 0:
        pacer.tick()
        late += 1
    assert late == pytest.approx(LAG_S / 0.005, abs=2)
