"""`proctor skill-server`: what it refuses, what it prints, and how it ends."""

import importlib.util
import os
import re
import shlex
import signal
import subprocess
import sys

import pytest
import rclpy
import yaml
from skill_clients import room, skill_goal

from proctor.cli import main
from proctor.cli.skill_server import _command_to_try
from proctor.maps.map_files import save_map
from proctor.worlds.ros2.skill.skill_server import read_request


@pytest.fixture
def map_file(tmp_path):
    file = tmp_path / "room.yaml"
    save_map(room(), file)
    return file


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--planner", "gird"], "did you mean 'grid'"),
        (["--limit", "vmax=1"], "did you mean 'v_max'"),
        (["--odom-origin", "1"], "expected X,Y or X,Y,YAW"),
        (["--episode", "x"], "--episode is for"),
        (["--namespace", "a b"], "ROS 2 does not take the name"),
        (["--robot-namespace", "a b"], "'a b' is no namespace of a robot"),
    ],
)
def test_what_makes_no_sense_is_a_user_error(map_file, capsys, arguments, told):
    assert main(["skill-server", "--map", str(map_file), *arguments]) == 2
    assert told in " ".join(capsys.readouterr().err.split())


def test_the_command_to_try_is_one_that_exists(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    command = shlex.split(_command_to_try("/alice/skill_execution", -1.0, 2.0))
    assert command[2:] == ["-1.00", "2.00", "--action", "/alice/skill_execution"]
    spec = importlib.util.spec_from_file_location("navigate_example", command[1])
    spec.loader.exec_module(example := importlib.util.module_from_spec(spec))
    monkeypatch.setattr(sys, "argv", command[1:])
    monkeypatch.setattr(example.ActionClient, "wait_for_server", lambda *_, **__: False)
    with pytest.raises(SystemExit, match="nobody offers /alice/skill_execution"):
        example.main()
    rclpy.shutdown()
    (tmp_path / "ros2").touch(0o755)
    assert _command_to_try("/alice/skill_execution", 1.0, 2.0).startswith("ros2 action send_goal /alice/")


def test_it_prints_a_goal_to_try_and_ends_on_ctrl_c(map_file, tmp_path, monkeypatch):
    (tmp_path / "ros2").touch(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    command = [sys.executable, "-m", "proctor.cli", "skill-server", "--map", str(map_file)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        said = []
        while not said or said[-1] not in ("ready\n", ""):
            said.append(process.stdout.readline())
        process.send_signal(signal.SIGINT)
        try:
            _, errors = process.communicate(timeout=30)
        finally:
            process.kill()
    assert process.returncode == 130, errors
    line = re.fullmatch(
        r"ros2 action send_goal /robot_0/skill_execution plan_msgs/action/SkillExecution '(.*)' --feedback\n",
        said[-2],
    )
    asked = yaml.safe_load(line[1])["skill_request"]["skill_list"][0]
    params = {param["key"]: param["value"] for param in asked["params"]}
    (call,) = read_request(skill_goal((asked["skill"], params)).skill_request)
    assert set(params) == {"goal_pos", "timeout"}
    assert call.skill == "navigate_to"
