"""Robots as data: spec files, their names, and what is wrong with bad ones."""

import copy
import json
import math
import types

import msgspec
import pytest
from floor_robots import FloorRobot

from proctor.core import registry
from proctor.core.errors import InvalidFile, UserError
from proctor.robots.dynamics import Dynamics
from proctor.robots.robot import LimitedRobot, Twist
from proctor.robots.spec import RobotSpec, load_robot, robot_identity, standard_robot
from proctor.worlds.mujoco.wheeled.env import VLNEnv

STANDARD = msgspec.to_builtins(standard_robot())


def _written(tmp_path, changes, *, without=()):
    spec = {key: value for key, value in {**STANDARD, **changes}.items() if key not in without}
    file = tmp_path / "robot.json"
    file.write_text(json.dumps(spec))
    return str(file)


@pytest.mark.parametrize("name", registry.BUILT_IN["robot"])
def test_each_name_stands_for_a_valid_spec(name):
    robot = load_robot(name)
    assert isinstance(robot, RobotSpec)
    assert robot.description


def test_another_base_is_one_file(tmp_path):
    robot = load_robot(_written(tmp_path, {"radius_m": 0.21, "dynamics": {"v_max": 0.4}}))
    assert (robot.radius_m, robot.dynamics.v_max) == (0.21, 0.4)
    assert robot.height_band_m == (0.05, 1.3)


def test_a_package_adds_a_robot_by_an_entry_point(tmp_path, monkeypatch):
    _written(tmp_path, {"radius_m": 0.31})
    package = types.ModuleType("makers_robots")
    package.__file__ = str(tmp_path / "__init__.py")
    monkeypatch.setitem(registry.sys.modules, "makers_robots", package)
    point = registry.EntryPoint("makers-bot", "makers_robots:robot.json", "proctor.robots")
    monkeypatch.setattr(registry, "entry_points", lambda group: [point] if group == point.group else [])
    assert "makers-bot" in registry.names("robot")
    assert load_robot("makers-bot").radius_m == 0.31


@pytest.mark.parametrize(
    ("changes", "place", "words"),
    [
        ({"radius_m": -0.1}, "radius_m", "> 0.0, found -0.1"),
        (
            {"dynamics": {"drive": "tank"}},
            "dynamics.drive",
            "'tank', expected 'differential' or 'holonomic'",
        ),
        ({"height_m": math.nan}, "height_m", "nan is not allowed"),
        ({"radius": 0.2}, "", "unknown key 'radius'; did you mean 'radius_m'"),
        ({"dynamics": {"vmax": 1.0}}, "dynamics", "unknown key 'vmax'; did you mean 'v_max'"),
        ({"lidar": {"beams": "many"}}, "lidar.beams", "got `str`"),
        ({"lidar": {"range_max_m": 0.01}}, "lidar.range_max_m", "more than range_min_m, 0.02"),
        ({"height_m": 0.02}, "height_m", "more than ground_clearance_m, 0.05, found 0.02"),
        ({"action_speed_mps": 2.0}, "action_speed_mps", "at most dynamics.v_max, 1, found 2"),
    ],
)
def test_what_is_wrong_is_told_with_file_and_place(tmp_path, changes, place, words):
    file = _written(tmp_path, changes)
    with pytest.raises(InvalidFile, match=words) as caught:
        load_robot(file)
    assert (str(caught.value.file), caught.value.place) == (file, place)


def test_a_robot_needs_a_scanner(tmp_path):
    with pytest.raises(InvalidFile, match=r"robot\.json: .*missing required field `lidar`"):
        load_robot(_written(tmp_path, {}, without=["lidar"]))


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("nowhere.json", r"nowhere\.json: no such file"),
        ("widee", "unknown robot 'widee'; did you mean 'wide'.*path/to/robot.json"),
    ],
)
def test_a_robot_that_is_not_there(name, words):
    with pytest.raises(UserError, match=words):
        load_robot(name)


def test_only_another_robot_makes_another_run(tmp_path):
    assert robot_identity({}) == robot_identity({"robot": "standard"}) == {}
    assert VLNEnv.identity({"width": 64}) == {}
    file = _written(tmp_path, {"radius_m": 0.22})
    assert VLNEnv.identity({"robot": file})["robot"]["radius_m"] == 0.22


def test_the_env_takes_the_camera_of_its_robot(tmp_path):
    file = _written(tmp_path, {"camera": {"width": 32, "height": 24, "height_m": 0.4}})
    seen = VLNEnv.example_observation(None, {"robot": file})
    assert seen["rgb"].shape == (24, 32, 3)
    assert VLNEnv.example_observation(None, {"robot": file, "width": 16})["rgb"].shape == (24, 16, 3)
    with pytest.raises(UserError, match="unknown robot 'turtle'"):
        VLNEnv(sensors=[], robot="turtle")


@pytest.mark.parametrize(
    ("asked", "done"),
    [
        (Twist(0.3, 0.4, -0.9), Twist(0.3, 0.4, -0.9)),
        (
            Twist(1.0000000000000002, 0.0, 1.0000000000000002),
            Twist(1.0000000000000002, 0.0, 1.0000000000000002),
        ),
        (Twist(-1e9, 0.0, 0.0), Twist(-1.0, 0.0, 0.0)),
        (Twist(3.0, 4.0, 7.0), Twist(0.6, 0.8, 1.0)),
        (Twist(0.5, 0.0, -7.0), Twist(0.5, 0.0, -1.0)),
    ],
)
def test_a_velocity_is_cut_down_to_the_limits_and_else_kept_to_the_bit(asked, done):
    found = asked.limited(Dynamics())
    assert found == (done if found == asked else pytest.approx(done))


@pytest.mark.parametrize("twist", [Twist(math.nan), Twist(0.0, -math.inf), Twist(0.0, 0.0, math.nan)])
def test_a_velocity_that_is_not_finite_is_refused(twist):
    with pytest.raises(ValueError, match="commanded a velocity that is not finite"):
        twist.limited(Dynamics())


def test_what_a_controller_sets_is_set_on_the_robot():
    robot = FloorRobot()
    limited = LimitedRobot(robot)
    limited.stuck = True
    limited._own = 1
    assert robot.stuck
    assert limited._own == 1
    assert not hasattr(robot, "_own")


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
def test_a_limited_robot_can_be_copied(copied):
    assert copied(LimitedRobot(FloorRobot(2.0))).pose().x == 2.0
