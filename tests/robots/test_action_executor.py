import itertools
import math

import numpy as np
import pytest

from proctor.core.errors import SimulationError
from proctor.core.geometry import wrap_angle
from proctor.core.types import Action, Pose2, Scan
from proctor.robots.landing import WITH_LATENCY
from proctor.robots.motion import ActionExecutor
from proctor.robots.spec import standard_robot
from proctor.scenes.scene import Scene
from proctor.scenes.scene_config import Part, SceneConfig, SceneObject
from proctor.worlds.mujoco.wheeled.robot import MujocoRobot
from proctor.worlds.mujoco.wheeled.world import World

FREE = Scan(np.full(360, np.inf), -math.pi, math.tau / 360, 0.02, 10.0)


class KinematicRobot:
    """A robot without physics: does at once what it is told. `commands` keeps what that was."""

    def __init__(self, yaw=0.0, scan=FREE):
        self.pose, self.scan_now, self.contact, self.time_s = Pose2(0.0, 0.0, yaw), scan, False, 0.0
        self.commands = []

    def odometry(self):
        return self.time_s, self.pose

    def scan(self):
        return self.scan_now

    def scanned_s(self):
        return self.time_s

    def in_contact(self):
        return self.contact

    def command(self, twist):
        self.commands.append((twist.vx, twist.omega))

    def now_s(self):
        return self.time_s

    def wait(self, duration_s, until=None):
        linear_mps, angular_radps = self.commands[-1]
        self.time_s += duration_s
        x, y, yaw = self.pose.x, self.pose.y, self.pose.yaw
        step = linear_mps * duration_s
        self.pose = Pose2(
            x + step * math.cos(yaw), y + step * math.sin(yaw), wrap_angle(yaw + angular_radps * duration_s)
        )


class BlockedRobot(KinematicRobot):
    """Does not move, whatever it is told."""

    def wait(self, duration_s, until=None):
        self.time_s += duration_s


def scan_with(angle_deg, range_m, *, beams=360, first_deg=-180.0):
    ranges = np.full(beams, np.inf)
    increment = math.tau / beams
    ranges[round(math.radians(angle_deg - first_deg) / increment) % beams] = range_m
    return Scan(ranges, math.radians(first_deg), increment, 0.02, 10.0)


def simulated(*objects, pose=(0.0, 0.0, 0.0), **options):
    world = World(Scene(SceneConfig(scene_name="test", objects=list(objects))), standard_robot())
    world.reset(Pose2(*pose))
    base = MujocoRobot(world, scan_reach_m=0.3)
    return world, base, ActionExecutor(base, **options)


def box(name, at, size):
    return SceneObject(name=name, parts=[Part(shape="box", size=size, translate=at)])


def test_200_actions_on_free_floor_land_where_they_should():
    world, _, executor = simulated()
    rng = np.random.default_rng(7)
    distance_errors_m, angle_errors_deg = [], []
    for action in rng.integers(1, 4, 200):
        before = world.pose()
        motion = executor.execute(Action(int(action)))
        after = world.pose()
        moved_m = math.hypot(after.x - before.x, after.y - before.y)
        turned_deg = math.degrees(wrap_angle(after.yaw - before.yaw))
        distance_errors_m.append(abs(moved_m - (0.25 if action == Action.FORWARD else 0.0)))
        angle_errors_deg.append(abs(turned_deg - {1: 0.0, 2: 15.0, 3: -15.0}[int(action)]))
        assert not motion.collided
    assert np.median(distance_errors_m) <= 0.002
    assert max(distance_errors_m) <= 0.005
    assert np.median(angle_errors_deg) <= 0.1
    assert max(angle_errors_deg) <= 0.3


@pytest.mark.parametrize(("linear_mps", "angular_radps"), [(0.3, 0.6), (1.0, 3.0)])
def test_fast_robots_slow_down_to_land_as_exactly(linear_mps, angular_radps):
    world, _, executor = simulated(linear_speed_mps=linear_mps, angular_speed_radps=angular_radps)
    executor.forward()
    assert world.pose().x == pytest.approx(0.25, abs=0.002)
    executor.rotate(math.radians(15))
    assert math.degrees(world.pose().yaw) == pytest.approx(15, abs=0.1)


def test_an_action_takes_the_robots_time_at_the_robots_speed():
    _, _, executor = simulated()
    assert executor.forward().duration_s == pytest.approx(2.5, abs=0.15)
    assert executor.rotate(math.radians(15)).duration_s == pytest.approx(math.radians(15) / 0.3, abs=0.15)
    assert executor.stop().duration_s == pytest.approx(0.05)


def test_speeds_are_kept_and_only_the_last_command_is_scaled():
    robot = KinematicRobot()
    ActionExecutor(robot, linear_speed_mps=0.07).forward()
    speeds = [linear for linear, _ in robot.commands]
    assert speeds[:-2] == [0.07] * (len(speeds) - 2)
    assert 0 < speeds[-2] <= 0.07
    assert speeds[-1] == 0.0
    assert robot.pose.x == pytest.approx(0.25)


def test_backwards_is_a_negative_distance():
    robot = KinematicRobot(scan=scan_with(0, 0.1))
    assert not ActionExecutor(robot).forward(-0.3).collided
    assert robot.pose.x == pytest.approx(-0.3)


@pytest.mark.parametrize("angle_deg", [15, -15, 179, -180, 270, 720])
@pytest.mark.parametrize("start_deg", [0, 175, -178])
def test_turns_may_cross_180_degrees_and_be_of_any_size(start_deg, angle_deg):
    robot = KinematicRobot(yaw=math.radians(start_deg))
    ActionExecutor(robot).rotate(math.radians(angle_deg))
    turned_rad = sum(angular for _, angular in robot.commands) * 0.05
    assert turned_rad == pytest.approx(math.radians(angle_deg), rel=0.002)


@pytest.mark.parametrize(
    ("angle_deg", "stops"), [(0, True), (29, True), (-29, True), (31, False), (-31, False)]
)
@pytest.mark.parametrize(("beams", "first_deg"), [(360, -180.0), (360, 0.0), (720, -180.0), (90, -180.0)])
def test_what_is_ahead_is_decided_by_angle_for_every_beam_order_and_count(angle_deg, stops, beams, first_deg):
    if beams == 90:  # one beam every four degrees
        angle_deg = 4 * round(angle_deg / 4 + (0.2 if not stops else -0.2) * np.sign(angle_deg))
    robot = KinematicRobot(scan=scan_with(angle_deg, 0.19, beams=beams, first_deg=first_deg))
    executor = ActionExecutor(robot)
    assert executor.forward().collided is stops
    assert executor.collision_detected is stops
    assert executor.collision_count == stops
    assert robot.pose.x == pytest.approx(0.0 if stops else 0.25)


@pytest.mark.parametrize("range_m", [math.nan, math.inf, -math.inf, 0.0, 0.02, 0.21])
def test_ranges_that_mean_nothing_or_enough_do_not_stop(range_m):
    robot = KinematicRobot(scan=scan_with(0, range_m))
    assert not ActionExecutor(robot).forward().collided


def test_turns_ignore_the_scan():
    robot = KinematicRobot(scan=scan_with(0, 0.1))
    executor = ActionExecutor(robot)
    assert not executor.execute(Action.LEFT).collided
    assert robot.pose.yaw == pytest.approx(math.radians(15), rel=0.002)
    assert executor.collision_count == 0


def test_an_obstacle_that_appears_stops_within_one_period():
    class Ambush(KinematicRobot):
        def wait(self, duration_s, until=None):
            super().wait(duration_s)
            if self.pose.x >= 0.1:
                self.scan_now = scan_with(10, 0.15)

    robot = Ambush()
    assert ActionExecutor(robot).forward().collided
    assert robot.pose.x < 0.1 + 0.1 * 0.05 + 1e-9
    assert robot.commands[-1] == (0.0, 0.0)


def test_a_wall_ahead_is_seen_before_it_is_touched():
    world, _, executor = simulated(box("wall", (0.6, 0.0, 0.5), (0.1, 2.0, 1.0)))
    collided = [executor.forward().collided for _ in range(3)]
    assert collided == [False, True, True]
    assert executor.collision_count == 2
    assert world.touched() is None
    assert world.pose().x == pytest.approx(0.35, abs=0.01)


def test_what_the_laser_does_not_see_stops_by_contact_and_the_robot_can_leave():
    # Lower than the laser's plane at 0.2 m.
    world, _, executor = simulated(box("step", (0.42, 0.0, 0.05), (0.2, 1.0, 0.1)))
    assert executor.forward().collided
    stopped = world.pose()
    assert stopped.x == pytest.approx(0.32 - 0.17, abs=0.006)
    assert executor.forward().collided, "still in the way"
    assert world.pose().x == pytest.approx(stopped.x, abs=0.006)
    assert executor.collision_count == 2
    for _ in range(6):
        assert not executor.execute(Action.LEFT).collided, "turning on the spot hits nothing new"
    before = world.pose()
    assert not executor.forward().collided, "sliding along it does not, either"
    assert world.pose().y - before.y == pytest.approx(0.25, abs=0.005)


@pytest.mark.parametrize("degrees", [15, 45, 75])
def test_rubbing_along_a_wall_is_a_collision_and_does_not_turn_the_robot(degrees):
    world, _, executor = simulated(box("wall", (1.0, 0.0, 0.5), (0.1, 9.0, 1.0)), collision_threshold_m=0.0)
    executor.rotate(math.radians(degrees))
    assert any(executor.forward().collided for _ in range(100))
    touched_at = world.pose()
    assert executor.forward().collided
    assert world.pose().yaw == pytest.approx(math.radians(degrees), abs=1e-6)
    assert math.dist((world.pose().x, world.pose().y), (touched_at.x, touched_at.y)) < 0.02


def test_grazing_something_with_the_side_is_a_collision():
    world, _, executor = simulated(box("post", (0.3, 0.2, 0.5), (0.1, 0.1, 1.0)), collision_threshold_m=0.1)
    assert executor.forward().collided
    assert world.pose().x < 0.25


def test_timed_moves_end_on_time_and_need_no_odometry():
    class NoOdometry(KinematicRobot):
        def odometry(self):
            raise AssertionError

    robot = NoOdometry()
    motion = ActionExecutor(robot).move_timed(0.2, 0.4, 0.93)
    assert not motion.collided
    assert sum(linear for linear, _ in robot.commands) * 0.05 == pytest.approx(0.2 * 0.93)
    assert sum(angular for _, angular in robot.commands) * 0.05 == pytest.approx(0.4 * 0.93)
    assert robot.time_s == pytest.approx(1.0, abs=0.051)


def test_timed_moves_stop_at_obstacles():
    robot = KinematicRobot(scan=scan_with(0, 0.1))
    executor = ActionExecutor(robot)
    assert executor.move_timed(0.1, 0.0, 1.0).collided
    assert not executor.move_timed(-0.1, 0.0, 1.0).collided
    assert not executor.move_timed(0.0, 1.0, 1.0).collided
    assert executor.collision_count == 1


@pytest.mark.parametrize("move", [lambda e: e.forward(), lambda e: e.rotate(0.2)])
def test_a_robot_that_does_not_move_raises_instead_of_looping_and_is_stopped(move):
    robot = BlockedRobot()
    executor = ActionExecutor(robot)
    with pytest.raises(SimulationError, match=r"covered 0\.000 of"):
        move(executor)
    assert robot.time_s < 3 * 2.5 + 3
    assert robot.commands[-1] == (0.0, 0.0)
    assert not executor.is_running


def test_a_robot_that_obeys_late_is_not_given_up_because_its_time_runs_fast(monkeypatch):
    real_s = [1000.0]
    monkeypatch.setattr("proctor.robots.motion.time.monotonic", lambda: real_s[0])

    class FastRobot(BlockedRobot):
        """Each of its periods takes a millisecond; it is known to be held after half a second."""

        def wait(self, duration_s, until=None):
            super().wait(duration_s)
            real_s[0] += 0.001
            self.contact = can_feel and real_s[0] > 1000.5

    can_feel = True
    assert ActionExecutor(FastRobot(), landing=WITH_LATENCY).rotate(0.26).collided
    can_feel, real_s[0] = False, 1000.0
    with pytest.raises(SimulationError, match="touches nothing"):
        ActionExecutor(FastRobot(), landing=WITH_LATENCY).rotate(0.26)
    assert 1000.0 + WITH_LATENCY.patience_s <= real_s[0] < 1000.1 + WITH_LATENCY.patience_s


def test_a_robot_held_by_contact_has_collided():
    robot = BlockedRobot()
    robot.contact = True
    executor = ActionExecutor(robot)
    assert executor.forward().collided
    assert robot.time_s < 0.2


def test_a_contact_from_before_does_not_hold_a_robot_that_moves():
    robot = KinematicRobot()
    robot.contact = True
    executor = ActionExecutor(robot)
    assert not executor.forward().collided
    assert not executor.rotate(0.3).collided
    assert not executor.move_timed(0.1, 0.0, 0.5).collided
    assert robot.pose.x > 0.25


def test_a_contact_that_is_new_ends_every_move():
    class Bumper(KinematicRobot):
        def command(self, twist):
            super().command(twist)
            self.contact = any(twist)

    for move in (ActionExecutor.forward, lambda e: e.rotate(0.3), lambda e: e.move_timed(0.1, 0.0, 1.0)):
        robot = Bumper()
        assert move(ActionExecutor(robot)).collided
        assert len(robot.commands) == 2, "one period, then the stop"


def test_it_is_running_only_while_it_moves():
    class Watcher(KinematicRobot):
        def wait(self, duration_s, until=None):
            super().wait(duration_s)
            if any(self.commands[-1]):
                seen.append(executor.is_running)

    seen = []
    executor = ActionExecutor(Watcher())
    executor.forward(0.02)
    assert seen
    assert all(seen)
    assert not executor.is_running


def test_collision_detected_is_about_the_last_move_and_the_count_about_all():
    robot = KinematicRobot(scan=scan_with(0, 0.1))
    executor = ActionExecutor(robot)
    executor.forward()
    executor.forward()
    assert (executor.collision_detected, executor.collision_count) == (True, 2)
    executor.rotate(0.1)
    assert (executor.collision_detected, executor.collision_count) == (False, 2)


def test_a_move_of_nothing_ends_at_once():
    robot = KinematicRobot()
    executor = ActionExecutor(robot)
    executor.forward(0.0)
    executor.rotate(0.0)
    executor.move_timed(0.1, 0.0, 0.0)
    assert robot.pose == Pose2(0.0, 0.0, 0.0)


@pytest.mark.parametrize("option", ["linear_speed_mps", "angular_speed_radps", "control_period_s"])
def test_speeds_and_period_must_be_positive(option):
    with pytest.raises(ValueError, match="above 0"):
        ActionExecutor(KinematicRobot(), **{option: 0.0})


class LateRobot(KinematicRobot):
    """Obeys late, tells late where it is, and gives notice of each tick. `drive_lag_s` may change."""

    TICK_S = 1 / 60

    def __init__(self, lag_s=0.0, **options):
        super().__init__(**options)
        self.drive_lag_s, self._poses = lag_s / 2, [(0.0, self.pose)] * (1 + round(lag_s / 2 / self.TICK_S))
        self.measured_s = 0.0
        self._underway, self.velocity, self.true_pose = [], (0.0, 0.0), self.pose

    def odometry(self):
        return self.measured_s, self.pose

    def command(self, twist):
        super().command(twist)
        self._underway.append((self.time_s + self.drive_lag_s, (twist.vx, twist.omega)))

    def wait(self, duration_s, until=None):
        end_s = self.time_s + duration_s - 1e-9
        while self.time_s < end_s and not (until is not None and until()):
            self.tick()

    def drive(self, told):
        """Return what it does when it is told so."""
        return told

    def tick(self):
        while self._underway and self._underway[0][0] <= self.time_s + 1e-9:
            self.velocity = self._underway.pop(0)[1]
        linear_mps, angular_radps = self.drive(self.velocity)
        x, y, yaw = self.true_pose.x, self.true_pose.y, self.true_pose.yaw
        step = linear_mps * self.TICK_S
        turned = wrap_angle(yaw + angular_radps * self.TICK_S)
        self.true_pose = Pose2(x + step * math.cos(yaw), y + step * math.sin(yaw), turned)
        self.time_s += self.TICK_S
        self._poses = [*self._poses[1:], (self.time_s, self.true_pose)]
        self.measured_s, self.pose = self._poses[0]


@pytest.mark.parametrize("lag_s", [0.0, 0.05, 0.1])
@pytest.mark.parametrize("speed", [1.0, 2.0])
def test_robots_with_latency_land_within_a_centimetre_and_half_a_degree(lag_s, speed):
    robot = LateRobot(lag_s)
    options = {"linear_speed_mps": 0.1 * speed, "angular_speed_radps": 0.3 * speed}
    executor = ActionExecutor(robot, landing=WITH_LATENCY, **options)
    for distance_m in (0.25, -0.25, 0.5):
        before = robot.true_pose
        executor.forward(distance_m)
        assert robot.true_pose.x - before.x == pytest.approx(distance_m, abs=0.007)
    for angle_deg in (15, -15, 90):
        before = robot.true_pose
        executor.rotate(math.radians(angle_deg))
        turned_deg = math.degrees(wrap_angle(robot.true_pose.yaw - before.yaw))
        assert turned_deg == pytest.approx(angle_deg, abs=0.35)
    assert robot.velocity == (0.0, 0.0)


@pytest.mark.parametrize("lag_s", [0.0, 0.02, 0.05])
def test_robots_with_latency_lose_little_time(lag_s):
    robot = LateRobot(lag_s)
    executor = ActionExecutor(robot, landing=WITH_LATENCY)
    for _ in range(3):
        before = robot.true_pose
        assert executor.forward().duration_s <= 1.15 * 2.5
        assert math.hypot(robot.true_pose.x - before.x, robot.true_pose.y - before.y) == pytest.approx(
            0.25, abs=0.001
        )
        before = robot.true_pose
        assert executor.rotate(math.radians(15)).duration_s <= 1.15 * 0.87
        assert math.degrees(robot.true_pose.yaw - before.yaw) == pytest.approx(15, abs=0.1)


class Sluggish(LateRobot):
    """Changes its speeds no faster than this, in m/s² and rad/s², and does a share of what it is told."""

    LIMITS = (1.0, 3.0)

    def __init__(self, share=1.0):
        super().__init__(0.03)
        self._share, self._has = share, (0.0, 0.0)

    def drive(self, told):
        changes = (limit * self.TICK_S for limit in self.LIMITS)
        self._has = tuple(
            has + max(-change, min(change, self._share * wanted - has))
            for has, wanted, change in zip(self._has, told, changes, strict=True)
        )
        return self._has


def test_commands_come_every_50_ms_also_if_the_driver_wakes_up_late():
    class Drowsy(LateRobot):
        """Its driver wakes up a tick late every time."""

        def wait(self, duration_s, until=None):
            super().wait(duration_s, until)
            self.tick()

        def command(self, twist):
            super().command(twist)
            sent_s.append(self.time_s)

    sent_s = []
    robot = Drowsy()
    ActionExecutor(robot, landing=WITH_LATENCY).forward()
    cruise_s = [
        time_s for time_s, (linear_mps, _) in zip(sent_s, robot.commands, strict=True) if linear_mps > 0.09
    ]
    assert np.mean(np.diff(cruise_s)) == pytest.approx(0.05, abs=0.001)
    assert max(np.diff(sent_s)) < 0.05 + 2 * robot.TICK_S


@pytest.mark.parametrize("share", [0.9, 1.0, 1.1])
def test_robots_that_slow_down_gradually_land_as_exactly(share):
    robot = Sluggish(share)
    executor = ActionExecutor(robot, landing=WITH_LATENCY)
    for sign in (1, -1):
        before = robot.true_pose
        executor.forward(sign * 0.25)
        moved_m = math.hypot(robot.true_pose.x - before.x, robot.true_pose.y - before.y)
        assert moved_m == pytest.approx(0.25, abs=0.003)
        before = robot.true_pose
        executor.rotate(sign * math.radians(15))
        turned_deg = math.degrees(robot.true_pose.yaw - before.yaw)
        assert turned_deg == pytest.approx(sign * 15, abs=0.2)


@pytest.mark.parametrize(("turns", "busy_until_s"), [(False, 2.8), (True, 0.9)])
def test_a_robot_that_hears_the_stop_far_too_late_comes_back(turns, busy_until_s):
    class Busy(LateRobot):
        def command(self, twist):
            super().command(twist)
            if self.pose.x > 0.2 or self.pose.yaw > math.radians(10):
                self.drive_lag_s = max(0.0, busy_until_s - self.time_s)

    robot, straight = Busy(0.05), LateRobot(0.05)
    for one in (robot, straight):
        executor = ActionExecutor(one, landing=WITH_LATENCY)
        motion = executor.rotate(math.radians(15)) if turns else executor.forward()
        assert not motion.collided
    assert robot.time_s > straight.time_s
    assert any(min(command) < 0 for command in robot.commands), "it was too far"
    assert robot.true_pose.x == pytest.approx(0.0 if turns else 0.25, abs=0.007)
    assert math.degrees(robot.true_pose.yaw) == pytest.approx(15 if turns else 0, abs=0.35)


def test_a_robot_that_comes_back_too_far_comes_again():
    class Twitchy(LateRobot):
        """Hears the stop, and the stop of the way back, half a second late."""

        def command(self, twist):
            stops = not any(twist) and any(self.commands[-1])
            self.stops += stops
            self.drive_lag_s = 0.5 if stops and self.stops <= 2 else 0.0
            super().command(twist)

    robot = Twitchy(0.0)
    robot.stops = 0
    ActionExecutor(robot, landing=WITH_LATENCY).rotate(math.radians(15))
    signs = [math.copysign(1, angular) for _, angular in robot.commands if angular]
    assert [sign for sign, _ in itertools.groupby(signs)] == [1, -1, 1]
    assert math.degrees(robot.true_pose.yaw) == pytest.approx(15, abs=0.3)


def test_a_robot_that_goes_on_after_the_stop_is_an_error():
    class Runaway(LateRobot):
        def tick(self):
            if not any(self.commands[-1]):
                self.velocity, self._underway = (0.1, 0.0), []
            super().tick()

    with pytest.raises(SimulationError, match=r"still moves, at 0\.1\d\d m/s"):
        ActionExecutor(Runaway(), landing=WITH_LATENCY).forward()


def test_a_stop_that_is_underway_while_a_simulation_runs_fast_is_waited_for():
    class Fast(LateRobot):
        """Hears the first stop after five seconds of its time, which are none of ours."""

        def command(self, twist):
            is_stop = not any(twist)
            self.drive_lag_s = 5.0 if is_stop and (0.0, 0.0) not in self.commands else 0.0
            super().command(twist)

    robot = Fast(0.0)
    ActionExecutor(robot, landing=WITH_LATENCY).forward()
    assert robot.time_s > 5.0
    assert robot.true_pose.x == pytest.approx(0.25, abs=0.007)


def test_news_of_an_obstacle_end_a_period_early():
    class Ambush(LateRobot):
        def tick(self):
            super().tick()
            if self.time_s > 1.0:
                self.scan_now = scan_with(10, 0.15)

    for move in (ActionExecutor.forward, lambda executor: executor.move_timed(0.1, 0.0, 5.0)):
        robot = Ambush()
        executor = ActionExecutor(robot, landing=WITH_LATENCY, control_period_s=0.4)
        assert move(executor).collided
        assert robot.true_pose.x == pytest.approx(0.1, abs=0.004), "a tick, not a period"
        assert executor.collision_count == 1


@pytest.mark.parametrize(("wall_m", "is_near"), [(0.42, True), (0.48, False)])
@pytest.mark.parametrize("late_s", [0.4, 2.0])  # the latter where time runs four times as fast
def test_a_scan_that_comes_after_the_drive_still_counts(wall_m, is_near, late_s):
    class LateScanner(LateRobot):
        """Scans ten times a second, and is heard late."""

        def tick(self):
            super().tick()
            if not ahead_m or self.time_s >= ahead_m[-1][0] + 0.1:
                ahead_m.append((self.time_s, wall_m - self.true_pose.x))

        def _heard(self):
            return [scan for scan in ahead_m if scan[0] <= self.time_s - late_s][-1:] or [(0.0, wall_m)]

        def scanned_s(self):
            return self._heard()[0][0]

        def scan(self):
            return scan_with(0, self._heard()[0][1])

    ahead_m = []
    robot = LateScanner(0.05)
    executor = ActionExecutor(robot, landing=WITH_LATENCY, linear_speed_mps=0.5)
    assert executor.forward().collided is is_near
    assert executor.collision_count == is_near
    assert robot.true_pose.x == pytest.approx(0.25, abs=0.007), "it was heard too late to end the drive"
    assert not executor.forward(-0.2).collided


@pytest.mark.parametrize(
    "move", [ActionExecutor.forward, lambda e: e.rotate(1.0), lambda e: e.move_timed(0.1)]
)
def test_a_move_may_be_halted(move):
    class Halted(LateRobot):
        def tick(self):
            super().tick()
            if self.time_s > 0.5:
                executor.halt()

    robot = Halted()
    executor = ActionExecutor(robot, landing=WITH_LATENCY)
    assert not move(executor).collided
    assert robot.time_s < 0.8
    assert robot.commands[-1] == (0.0, 0.0)
    assert not executor.is_running
