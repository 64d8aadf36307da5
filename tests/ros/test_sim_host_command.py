"""`proctor sim-host` as a process: when it is ready, how it ends, and what it refuses."""

import os
import select
import signal
import subprocess
import sys

import msgspec
import pytest
from commands import command
from geometry_msgs.msg import Twist

from proctor.cli import main
from proctor.core.errors import SimulationError
from proctor.scenes.scene_config import SceneConfig
from proctor.worlds.ros2.host.hosted_robot import SimHostOptions
from proctor.worlds.ros2.host.sim_host import SimHost
from proctor.worlds.ros2.host.sim_host_process import SimHostProcess
from proctor.worlds.ros2.node.node import COMMANDS, RosNode

HEARD_S = 20.0


@pytest.fixture(scope="module")
def scene(tmp_path_factory):
    """An empty floor."""
    path = tmp_path_factory.mktemp("scene") / "scene.json"
    path.write_bytes(msgspec.json.encode(SceneConfig(scene_name="nothing")))
    return path


def test_the_command_says_when_it_is_ready_and_ends_on_a_signal(scene):
    arguments = ("--scene", str(scene), "--start", "-1,0,0.5", "--rtf", "0", "--camera-hz", "0")
    with command("sim-host", *arguments) as process, RosNode("driver") as node:
        mouth = node.create_publisher(Twist, "cmd_vel", COMMANDS)
        assert node.wait_until(lambda: mouth.get_subscription_count() == 1, HEARD_S)
        os.kill(process.pid, signal.SIGINT)
        assert process.close() == 130
        assert process.said() == "interrupted"


def test_a_simulator_ends_with_its_parent(scene):
    code = (
        "from proctor.worlds.ros2.host.hosted_robot import SimHostOptions\n"
        "from proctor.worlds.ros2.host.sim_host_process import SimHostProcess\n"
        f"process = SimHostProcess(SimHostOptions(camera_hz=0), {str(scene)!r})\n"
        "print(process.pid, flush=True)\n"
        "input()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as parent:
        child = os.pidfd_open(int(parent.stdout.readline()))
        parent.kill()
        assert select.select([child], [], [], HEARD_S)[0], "it lives on"
        os.close(child)


def test_a_command_that_cannot_start_says_why():
    with pytest.raises(SimulationError, match=r"ended with 2: error: nowhere.json: no such file"):
        command("sim-host", "--scene", "nowhere.json")


def test_a_simulator_that_cannot_start_says_why():
    with pytest.raises(SimulationError, match=r"simulator ended with 2: error: nowhere.json: no such file"):
        SimHostProcess(SimHostOptions(), "nowhere.json")


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ([], "no robot"),
        (["--robot", "turtle"], "unknown robot 'turtle'"),
        (["--start", "1"], "--start: expected X,Y or X,Y,YAW"),
        (["--start", "1,2", "--namespace", "a", "--namespace", "b"], "one --namespace for each robot"),
        (["--start", "1,2", "--namespace", "1a"], "is no namespace"),
        (["--start", "0,0", "--start", "1,1", "--namespace", "a", "--namespace", "a"], "already"),
        (["--episode", "e"], "--episode is for"),
        (["--size", "640"], "--size: expected WIDTHxHEIGHT"),
        (["--size", "0x1"], "1 to 4096 pixels"),
        (["--rtf", "fast"], "--rtf: expected a number or max"),
        (["--rtf", "-1"], "from 0 to 1000"),
        (["--camera-hz", "61"], "0 to 60 pictures"),
        (["--depth-encoding", "32fc1"], "did you mean '32FC1'"),
        (["--cmd-vel-timeout", "0"], "above 0 s"),
        (["--ros-args", "-r", "nonsense"], "--ros-args -r nonsense"),
    ],
)
def test_the_command_says_what_is_wrong(scene, capsys, monkeypatch, arguments, problem):
    monkeypatch.setattr(SimHost, "run", lambda _host, **_: None)
    code = main(["sim-host", "--scene", str(scene), "--camera-hz", "0", *arguments])
    said = capsys.readouterr()
    assert problem in said.out + said.err
    assert code == (2 if arguments else 0)


def test_without_a_scene_the_command_waits_for_a_world(capsys, monkeypatch):
    monkeypatch.setattr(SimHost, "run", lambda _host, **_: None)
    assert main(["sim-host"]) == 0
    assert "no world yet" in capsys.readouterr().out
    assert main(["sim-host", "--start", "1,2"]) == 2
    assert "--start needs a world" in capsys.readouterr().err
