"""A stranger's package with a plug-in of each kind, installed, chosen by name, and driven with."""

import json
import math
import re
from importlib.metadata import entry_points

import numpy as np
import pytest
from floor_robots import Floor, room

from proctor.core import registry
from proctor.core.errors import UnknownName, UserError
from proctor.core.registry import PLURAL, names
from proctor.maps.failure import NavigationFailure
from proctor.maps.grid_map import GridMap
from proctor.navigation.planner import find_path, planner_name
from proctor.navigation.process.client import PlanningClient
from proctor.navigation.skill.params import NavigationParams
from proctor.navigation.skill.states import SkillState
from proctor.robots.robot import Twist

STRANGER = '''
import math

import numpy as np

from proctor.robots.robot import STILL, Twist
from proctor.navigation.plugins import (
    Controller,
    FoundPath,
    GoalChecker,
    PathPlanner,
    PluginOptions,
    ProgressChecker,
    Recovery,
)
from proctor.navigation.timing.moves import turn


class ViaOptions(PluginOptions, frozen=True):
    x: float = 2.0
    y: float = 3.0


class Via(PathPlanner):
    """Goes by a place, whatever stands there."""

    options_type = ViaOptions

    def find_path(self, query):
        via = (self.options.x, self.options.y)
        return FoundPath(np.array([query.start_xy, via, query.goal_xy]))


class Astray(PathPlanner):
    def find_path(self, query):
        return FoundPath(np.array([query.start_xy, query.start_xy + 0.5]))


class GainOptions(PluginOptions, frozen=True):
    gain: float = 1.0


class FeedForward(Controller):
    """Repeats the velocities of the trajectory."""

    options_type = GainOptions
    commands = 0
    course = None

    def set_reference_trajectory(self, trajectory, start_time_s):
        self.course = trajectory, start_time_s

    def clock_callback(self, time_s):
        if self.course is None:
            return
        trajectory, begun_s = self.course
        (_, _, yaw), (vx, vy, omega) = trajectory.at(time_s - begun_s)
        ahead = self.options.gain * (math.cos(yaw) * vx + math.sin(yaw) * vy)
        self.robot.command(Twist(ahead, 0.0, omega))
        self.commands += 1

    def stop(self):
        self.course = None
        self.robot.command(STILL)


class NearOptions(PluginOptions, frozen=True):
    within_m: float = 0.5


class Near(GoalChecker):
    """Does not wait for the robot to rest."""

    options_type = NearOptions

    def has_arrived(self, goal, pose, velocity, overtime_s):
        return goal.distance_m(pose) < self.options.within_m


class Impatient(ProgressChecker):
    since_s = None

    def restart(self):
        self.since_s = None

    def find_problem(self, pose, now_s):
        self.since_s = now_s if self.since_s is None else self.since_s
        return "this takes too long" if now_s - self.since_s > 0.5 else None


class Nod(Recovery):
    message = "Nodding"

    def trajectory(self, situation):
        return turn(situation.pose, 0.3, situation.dynamics)
'''
BROKEN = """
from strange_plugins import *


class FaultOptions(PluginOptions, frozen=True):
    fault: str = "raises"


class Faulty:
    options_type = FaultOptions

    def misbehave(self, *_):
        if self.options.fault == "raises":
            raise RuntimeError("it broke")
        if self.options.fault == "exits":
            raise SystemExit(0)
        paths = {"path": "abc", "flat": [1.0, 2.0], "single": [[1.0, 1.0]], "nan": [[1.0, math.nan]] * 2}
        if self.options.fault in paths:
            return FoundPath(paths[self.options.fault])
        return {"none": None, "words": "no", "number": 1, "no": False}[self.options.fault]


class Planner(Faulty, PathPlanner):
    find_path = Faulty.misbehave


class Fickle(Via):
    calls = 0

    def find_path(self, query):
        self.calls += 1
        if self.calls == 2:
            raise RuntimeError("it broke")
        return super().find_path(query)


class Driver(Faulty, Controller):
    twists = {"nan": Twist(math.nan), "inf": Twist(0.0, 0.0, -math.inf), "hasty": Twist(1e9, 0.0, -1e9)}

    def set_reference_trajectory(self, trajectory, start_time_s):
        if self.options.fault == "late" and any(self.robot.commanded):
            raise RuntimeError("it broke")
        self.robot.command(Twist(0.5))

    def clock_callback(self, time_s):
        if self.options.fault == "late":
            return
        twist = self.twists.get(self.options.fault)
        self.misbehave() if twist is None else self.robot.command(twist)

    def stop(self):
        raise RuntimeError("it does not stop")


class Judge(Faulty, GoalChecker):
    has_arrived = Faulty.misbehave


class Watcher(Faulty, ProgressChecker):
    restart = find_problem = Faulty.misbehave


class Helper(Faulty, Recovery):
    message = "Helping"
    trajectory = Faulty.misbehave


class Unmade(Judge):
    def __init__(self, options):
        raise RuntimeError("it cannot be made")
"""
POINTS = {
    "planners": {"via": "Via", "astray": "Astray"},
    "controllers": {"feed_forward": "FeedForward"},
    "goal_checkers": {"near": "Near"},
    "progress_checkers": {"impatient": "Impatient"},
    "recoveries": {"nod": "Nod"},
}
GOAL = [4.0, 1.5, 0.0]


@pytest.fixture(scope="module", autouse=True)
def stranger(tmp_path_factory):
    """Install a package, as pip does: its module, and its entry points."""
    site = tmp_path_factory.mktemp("site")
    (site / "strange_plugins.py").write_text(STRANGER)
    (site / "broken_plugins.py").write_text(BROKEN)
    info = site / "strange_plugins-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: strange-plugins\nVersion: 1.0\n")
    groups = (
        f"[proctor.{group}]\n" + "".join(f"{name} = strange_plugins:{kind}\n" for name, kind in of.items())
        for group, of in POINTS.items()
    )
    (info / "entry_points.txt").write_text("\n".join(groups))
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(site)
        patch.setattr(registry, "entry_points", lambda group: entry_points(group=group))  # read once more
        yield


@pytest.fixture(scope="module")
def strange_client(stranger):
    """A planning process that was started after the package was installed."""
    with PlanningClient() as client:
        yield client


def test_ours_and_theirs_are_found_in_the_same_way():
    for kind in ("planner", "controller", "goal_checker", "progress_checker", "recovery"):
        assert set(POINTS[PLURAL[kind]]) < set(names(kind))
        assert not registry.BUILT_IN[kind]


def test_a_strangers_planner_is_driven_along(strange_client):
    occupied = room()
    occupied[20:50, 50:60] = True  # the shorter way leads below it
    farthest_y = {}
    for planner, options in (("grid", {}), ("via", {"x": 2.75})):
        params = NavigationParams(planner=planner, planner_options=options)
        floor = Floor(strange_client, occupied, params=params)
        farthest_y[planner] = 0.0
        while (result := floor.tick(goal_pos=GOAL))["status"] == "processing":
            farthest_y[planner] = max(farthest_y[planner], floor.robot.pose().y)
        assert result["status"] == "succeeded"
        assert floor.skill.planning.paths[0].planner == planner
    assert floor.skill.planning.paths[0].raw[1].tolist() == [2.75, 3.0]
    assert farthest_y["grid"] < 1.6
    assert farthest_y["via"] > 2.6


@pytest.mark.parametrize(
    ("planner", "options", "words"),
    [
        ("via", {"x": 3.0, "y": 2.0}, "returned a path that comes within 0.00 m of an obstacle"),
        ("via", {"x": 30.0}, "returned a path that leaves the map"),
        ("astray", {}, "returned a path that ends at"),
    ],
)
def test_a_path_that_cannot_be_driven_is_refused(planner, options, words):
    occupied = room()
    occupied[36:44, 56:64] = True
    field = GridMap(occupied, resolution_m=0.05).field
    with pytest.raises(NavigationFailure, match=words):
        find_path(field, (1.0, 1.0), (5.0, 3.0), planner=planner, planner_options=options, radius_m=0.17)


def test_a_strangers_controller_and_goal_checker_bring_the_robot_there(client):
    params = NavigationParams(
        controller="feed_forward", goal_checker="near", goal_checker_options={"within_m": 0.4}
    )
    floor = Floor(client, room(), params=params)
    result = floor.finish(goal_pos=GOAL)
    assert result["status"] == "succeeded"
    assert 0.2 < result["final_distance"] < 0.4  # it was still moving
    assert floor.controller.commands > 60
    assert floor.stands


def test_a_strangers_progress_checker_ends_a_drive(client):
    floor = Floor(client, room(), params=NavigationParams(progress_checker="impatient", max_replans=0))
    result = floor.finish(goal_pos=GOAL)
    assert (result["status"], result["reason"]) == ("failed", "no_progress")
    assert "this takes too long" in result["message"]


def test_a_strangers_recovery_is_tried(client):
    occupied = room()
    occupied[:, 60] = True
    occupied[36:48, 60] = False  # a door
    params = NavigationParams(recoveries=("nod",), max_recoveries=2)
    floor = Floor(client, occupied, start=(1.0, 2.0, 0.0), params=params)
    circle = np.linspace(0, math.tau, 60)
    person = np.stack([3.0 + 0.3 * np.cos(circle), 2.1 + 0.3 * np.sin(circle), np.full(60, 0.3)], axis=1)
    messages, turned_rad = set(), 0.0
    while True:
        floor.live_map.mark_points(person, floor.now_s())
        result = floor.tick(goal_pos=[5.0, 2.0, 0.0])
        messages.add(result["message"])
        turned_rad = max(turned_rad, floor.robot.pose().yaw)
        if result["status"] != "processing":
            break
    assert (result["status"], result["reason"], result["recoveries"]) == ("failed", "blocked", 2)
    assert "Nodding" in messages
    assert "Forgetting what was seen" not in messages
    assert turned_rad == pytest.approx(0.6, abs=0.05)


FAULTS = {
    ("planner", "Planner", "raises"): r"failed \(broken_plugins.py, line \d+\): RuntimeError: it broke",
    ("planner", "Planner", "exits"): r"failed \(broken_plugins.py, line \d+\): SystemExit: 0",
    ("planner", "Planner", "words"): r"returned 'no'; expected FoundPath\(points\), or None",
    ("planner", "Planner", "path"): "failed: ValueError: could not convert",
    ("planner", "Planner", "flat"): r"returned an array \(2,\); expected \(N, 2\) corners, N at least 2",
    ("planner", "Planner", "single"): r"returned an array \(1, 2\); expected",
    ("planner", "Planner", "nan"): "returned corners that are not finite",
    ("controller", "Driver", "raises"): r"failed \(broken_plugins.py, line \d+\): RuntimeError: it broke",
    ("controller", "Driver", "exits"): "SystemExit: 0",
    ("controller", "Driver", "nan"): r"commanded a velocity that is not finite: Twist\(vx=nan",
    ("controller", "Driver", "inf"): "commanded a velocity that is not finite",
    ("goal_checker", "Judge", "raises"): "RuntimeError: it broke",
    ("goal_checker", "Judge", "words"): "returned 'no'; expected True or False",
    ("goal_checker", "Judge", "none"): "returned None; expected True or False",
    ("goal_checker", "Unmade", "none"): "RuntimeError: it cannot be made",
    ("progress_checker", "Watcher", "raises"): "RuntimeError: it broke",
    ("progress_checker", "Watcher", "number"): "returned 1; expected what is wrong, or None",
    ("recovery", "Helper", "raises"): "RuntimeError: it broke",
    ("recovery", "Helper", "none"): "returned None; expected a Trajectory",
}


@pytest.mark.parametrize(
    ("fault", "words"), FAULTS.items(), ids=lambda part: part if str(part) == part else "-".join(part)
)
def test_a_plugin_that_breaks_stops_the_robot_and_is_named(strange_client, fault, words):
    kind, name, option = fault
    name, options = f"broken_plugins:{name}", {"fault": option}
    if kind == "recovery":
        given = {"recoveries": (name,), "recovery_options": {name: options}}
    else:
        given = {kind: name, f"{kind}_options": options}
    occupied = room()
    if kind == "recovery":
        occupied[:, 60] = True
    floor = Floor(strange_client, occupied, params=NavigationParams(**given))
    floor.live_map.mark_points(np.array([[2.5, 3.0, 0.3]]), 0.0)  # else nothing could pass
    result = floor.finish(goal_pos=GOAL)
    assert (result["status"], result["reason"]) == ("failed", "plugin_failed")
    assert re.search(f"the {kind.replace('_', ' ')} '{name}' .*{words}", result["message"])
    assert floor.stands
    assert np.abs(floor.robot.moves).max() <= 1.0
    for _ in range(5):
        floor.skill.control()
    assert floor.stands


def test_a_planner_that_breaks_while_the_robot_moves_ends_the_goal(strange_client):
    floor = Floor(strange_client, room(), params=NavigationParams(planner="broken_plugins:Fickle"))
    floor.until(SkillState.EXECUTING, goal_pos=GOAL)
    while np.hypot(*floor.robot.moves[:2]) < 0.3:
        floor.tick(goal_pos=GOAL)
    floor.skill.replan()
    result = floor.finish(goal_pos=GOAL)
    assert (result["status"], result["reason"]) == ("failed", "plugin_failed")
    assert floor.stands


def test_an_error_of_the_robot_is_not_blamed_on_the_goal_checker(client, monkeypatch):
    floor = Floor(client, room(), params=NavigationParams(controller="feed_forward"))
    floor.until(SkillState.EXECUTING, goal_pos=GOAL)
    monkeypatch.setattr(floor.robot, "velocity", lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        floor.tick(goal_pos=GOAL)


@pytest.mark.parametrize("call", ["pause", "replan"])
def test_a_controller_that_takes_no_other_course_stops_at_a_call_from_outside(client, call):
    params = NavigationParams(controller="broken_plugins:Driver", controller_options={"fault": "late"})
    floor = Floor(client, room(), params=params)
    floor.until(SkillState.EXECUTING, goal_pos=GOAL)
    floor.until(SkillState.EXECUTING, goal_pos=GOAL)
    assert not floor.stands
    getattr(floor.skill, call)()
    assert floor.stands
    assert floor.tick(goal_pos=GOAL)["reason"] == "plugin_failed"


def test_what_a_controller_commands_is_cut_down_to_the_limits(client):
    params = NavigationParams(controller="broken_plugins:Driver", controller_options={"fault": "hasty"})
    floor = Floor(client, room(), params=params)
    floor.until(SkillState.EXECUTING, goal_pos=GOAL)
    assert floor.robot.commanded == Twist(1.0, 0.0, -1.0)
    assert floor.finish(goal_pos=GOAL)["reason"] in ("tracking_error", "plugin_failed")
    assert floor.stands


def test_a_robot_at_the_goal_that_is_not_accepted_fails_with_the_checkers_name(client):
    params = NavigationParams(
        goal_checker="broken_plugins:Judge", goal_checker_options={"fault": "no"}, max_replans=1
    )
    result = Floor(client, room(), params=params).finish(goal_pos=GOAL)
    assert result["reason"] == "not_accepted"
    refusal = (
        "the goal checker 'broken_plugins:Judge' did not accept the arrival, 0.00 m from the goal, 2 times"
    )
    assert refusal in result["message"]


def test_a_planner_that_finds_nothing_does_not_speak_for_the_map():
    words = "the planner 'broken_plugins:Planner' returned None: it found no way from"
    field, options = GridMap(room(), resolution_m=0.05).field, {"fault": "none"}
    with pytest.raises(NavigationFailure, match=words) as caught:
        find_path(
            field, (1, 1), (5, 3), planner="broken_plugins:Planner", planner_options=options, radius_m=0.17
        )
    assert caught.value.reason == "no_path"


def test_a_class_of_ones_own_needs_no_entry_point(strange_client):
    assert planner_name("strange_plugins:Via") == "strange_plugins:Via"
    floor = Floor(strange_client, room(), params=NavigationParams(planner="strange_plugins:Via"))
    floor.until(SkillState.EXECUTING, goal_pos=GOAL)
    assert floor.skill.planning.paths[0].planner == "strange_plugins:Via"


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"controller": "mcp"}, "unknown controller 'mcp'; did you mean 'mpc'"),
        ({"goal_checker": "at_res"}, "did you mean 'at_rest'"),
        ({"recoveries": ("wiat",)}, "unknown recovery 'wiat'; did you mean 'wait'"),
        ({"planner": "strange_plugins:Np"}, "has no 'Np'$"),
        ({"planner": "strange_plugins:Viaa"}, "has no 'Viaa'; did you mean 'Via'"),
        ({"planner": "strange_plugins:Nod"}, "must be a class that inherits .*PathPlanner"),
        ({"planner_options": {"x": 1.0}}, "planner 'grid' has no option 'x'; options: none"),
        (
            {"goal_checker_options": {"position_tolerance": 0.2}},
            "goal checker 'at_rest' has no option 'position_tolerance'; did you mean 'position_tolerance_m'",
        ),
        (
            {"progress_checker_options": {"progress_m": "far"}},
            "option progress_m of the progress checker",
        ),
        ({"controller_options": {"horizon_s": -1.0}}, "horizon_s"),
        ({"recovery_options": {"wait": {"wait_s": 0.0}}}, "option wait_s of the recovery 'wait'"),
        (
            {"recovery_options": {"wat": {"wait_s": 1.0}}},
            "recovery 'wat' that is not tried; did you mean 'wait'",
        ),
    ],
)
def test_what_does_not_exist_is_refused_with_what_does(params, words):
    with pytest.raises((UserError, UnknownName), match=words):
        NavigationParams(**params).checked()


def test_the_command_takes_names_and_options(proctor, tmp_path):
    words = ("navigate", "--suite", "houses-v1", "--episode", "house_64959_0", "--goal-checker", "near")
    file = tmp_path / "drive.json"
    code, said, _ = proctor(*words, "--goal-checker-option", "within_m=0.3", "--json", file)
    assert code == 0, said
    assert 0.2 < json.loads(file.read_bytes())["final_distance"] < 0.3
    code, _, told = proctor(*words, "--goal-checker-option", "within=0.3")
    assert code == 2
    assert "the goal checker 'near' has no option 'within'; did you mean 'within_m'?" in told
    code, _, told = proctor(*words, "--recovery-option", "wait_s=2")
    assert code == 2
    assert "expected NAME.KEY=VALUE such as wait.wait_s=2, found 'wait_s'" in told
