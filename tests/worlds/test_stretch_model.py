"""The robot is the maker's: its joints, limits and reach; prepared once, also when two start at once."""

import os
import subprocess
import sys
from pathlib import Path

import mujoco
import numpy as np
import pytest

from proctor.core.errors import UserError
from proctor.robots.stretch import CONTROLS, JOINT_NAMES, STRETCH, StretchRobotConfig
from proctor.worlds.mujoco.tabletop import stretch_model
from proctor.worlds.mujoco.tabletop.stretch_model import FINGERS, finger_angle, opening_of, stretch_spec


@pytest.fixture(scope="module")
def robot():
    model = stretch_spec(drawn=False).compile()
    return model, mujoco.MjData(model)


def test_joints_are_those_of_the_documents(robot):
    model, _ = robot
    assert [model.joint(name).name for name in JOINT_NAMES] == list(JOINT_NAMES)
    assert [model.actuator(i).name for i in range(model.nu)] == [control.name for control in CONTROLS]
    for segment in JOINT_NAMES[4:8]:
        assert model.joint(segment).range.tolist() == pytest.approx(STRETCH.joint_limits[segment])
    assert model.joint("joint_lift").range.tolist() == pytest.approx(STRETCH.joint_limits["joint_lift"])
    low, high = model.joint("joint_wrist_yaw").range
    assert (
        low <= STRETCH.joint_limits["joint_wrist_yaw"][0] < STRETCH.joint_limits["joint_wrist_yaw"][1] <= high
    )


def test_what_a_configuration_says_is_its_own():
    with pytest.raises(AttributeError):
        STRETCH.total_dof = 8
    own = StretchRobotConfig()
    own.joint_limits["joint_lift"] = (0, 9)
    own.camera_config.clear()
    assert StretchRobotConfig() == STRETCH != own


def test_cameras_are_read_as_the_documents_write_them():
    head = STRETCH.camera_config["head"]
    assert (head["width"], head["height"], head["fov"]) == (640, 480, 60)
    assert head["position"] == head.position == (0.1, 0.0, 1.2)
    assert head.get("orientation") == (0, 0, 0, 1)
    with pytest.raises(KeyError):
        head["zoom"]


@pytest.mark.parametrize("opening_m", [0.0, 0.01, 0.02, 0.03, 0.04])
def test_the_pads_are_as_far_apart_as_commanded(robot, opening_m):
    model, data = robot
    for finger in FINGERS:
        data.joint(finger).qpos[0] = finger_angle(opening_m)
    mujoco.mj_kinematics(model, data)
    pads = [data.geom(f"#pad_{side}") for side in ("left", "right")]
    inner = 2 * 0.006  # half a pad's thickness on each side
    gap_m = np.linalg.norm(pads[0].xpos - pads[1].xpos) - inner
    assert gap_m == pytest.approx(2 * opening_m, abs=1e-3)
    assert opening_of(finger_angle(opening_m)) == pytest.approx(opening_m, abs=1e-12)


def test_the_hand_is_between_the_pads_and_points_ahead(robot):
    model, data = robot
    mujoco.mj_resetData(model, data)
    for finger in FINGERS:
        data.joint(finger).qpos[0] = 0.05
    mujoco.mj_kinematics(model, data)
    left, right = (data.geom(f"#pad_{side}").xpos for side in ("left", "right"))
    hand = data.site("hand")
    assert hand.xpos == pytest.approx((left + right) / 2, abs=1e-6)
    x, y, z = hand.xmat.reshape(3, 3).T
    assert y == pytest.approx((left - right) / np.linalg.norm(left - right), abs=1e-3)
    assert z[2] == pytest.approx(np.cos(np.radians(30)))
    assert x == pytest.approx([0, -np.cos(np.radians(30)), -0.5], abs=1e-6)


@pytest.mark.slow
def test_two_processes_prepare_at_once_and_both_get_it(tmp_path):
    command = "from proctor.worlds.mujoco.tabletop.stretch_model import prepared_urdf; print(prepared_urdf())"
    env = os.environ | {"XDG_CACHE_HOME": str(tmp_path)}
    running = [
        subprocess.Popen([sys.executable, "-c", command], env=env, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    said = {process.communicate(timeout=120)[0].strip() for process in running}
    assert len(said) == 1
    assert [process.returncode for process in running] == [0, 0]
    urdf = Path(said.pop())
    assert urdf.is_relative_to(tmp_path)
    assert [folder.name for folder in (tmp_path / "proctor").iterdir()] == [urdf.parent.name], "leftovers"


def test_a_cache_that_cannot_be_written_is_told(monkeypatch, tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setattr(stretch_model, "_cache_roots", lambda: iter([blocked / "proctor"]))
    with pytest.raises(UserError, match="XDG_CACHE_HOME"):
        stretch_model.prepared_urdf.__wrapped__()
