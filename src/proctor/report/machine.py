"""What this machine has: rendering, packages, ROS 2."""

from __future__ import annotations

import importlib.util
import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Literal, NamedTuple

from proctor import __version__
from proctor.core.errors import ROS_PACKAGES, MissingDependency, install_command

OPTIONAL = {
    "gymnasium": ("Gymnasium adapter", install_command("gym")),
    "collada": ("COLLADA (.dae) meshes", "pip install pycollada"),
}


class MachineFinding(NamedTuple):
    """One thing that was looked for."""

    state: Literal["ok", "missing", "optional"]
    what: str
    found: str
    remedy: str = ""


def examine_machine() -> list[MachineFinding]:
    """Look for everything Proctor can use."""
    findings = [
        MachineFinding("ok", "Proctor", __version__),
        MachineFinding("ok", "Python", platform.python_version()),
        *(_package(name) for name in ("mujoco", "numpy", "scipy", "trimesh")),
        _rendering(),
    ]
    for module, (what, remedy) in OPTIONAL.items():
        there = importlib.util.find_spec(module) is not None
        findings.append(
            MachineFinding("ok", what, "installed")
            if there
            else MachineFinding("optional", what, "no", remedy)
        )
    return [*findings, _ros()]


def _ros() -> MachineFinding:
    if importlib.util.find_spec("rclpy") is None:
        remedy = "source /opt/ros/DISTRO/setup.bash, or `make ros` and .venv-ros/bin/proctor"
        return MachineFinding("optional", "ROS 2 (rclpy)", "no", remedy)
    lacking = [name for name in ROS_PACKAGES if importlib.util.find_spec(name) is None]
    if lacking:
        remedy = "cd ros2_ws && colcon build && source install/setup.bash"
        return MachineFinding("optional", "ROS 2 messages", f"no {', '.join(lacking)}", remedy)
    return MachineFinding("ok", "ROS 2", "yes")


def _package(name: str) -> MachineFinding:
    try:
        return MachineFinding("ok", name, version(name))
    except PackageNotFoundError:
        return MachineFinding(
            "missing", name, "no", f"{install_command('sim')} (to serve agents it is not needed)"
        )


def _rendering() -> MachineFinding:
    try:
        from proctor.worlds.mujoco.render.gl import renderer_name

        return MachineFinding("ok", "Rendering", renderer_name())
    except MissingDependency as error:
        return MachineFinding("missing", "Rendering", "no", str(error))
