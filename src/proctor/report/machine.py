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


class Finding(NamedTuple):
    """One thing that was looked for."""

    state: Literal["ok", "missing", "optional"]
    what: str
    found: str
    remedy: str = ""


def examine_machine() -> list[Finding]:
    """Look for everything Proctor can use."""
    findings = [
        Finding("ok", "Proctor", __version__),
        Finding("ok", "Python", platform.python_version()),
        *(_package(name) for name in ("mujoco", "numpy", "scipy", "trimesh")),
        _rendering(),
    ]
    for module, (what, remedy) in OPTIONAL.items():
        there = importlib.util.find_spec(module) is not None
        findings.append(
            Finding("ok", what, "installed") if there else Finding("optional", what, "no", remedy)
        )
    return [*findings, _ros()]


def _ros() -> Finding:
    if importlib.util.find_spec("rclpy") is None:
        remedy = "source /opt/ros/DISTRO/setup.bash, or `make ros` and .venv-ros/bin/proctor"
        return Finding("optional", "ROS 2 (rclpy)", "no", remedy)
    lacking = [name for name in ROS_PACKAGES if importlib.util.find_spec(name) is None]
    if lacking:
        remedy = "cd ros2_ws && colcon build && source install/setup.bash"
        return Finding("optional", "ROS 2 messages", f"no {', '.join(lacking)}", remedy)
    return Finding("ok", "ROS 2", "yes")


def _package(name: str) -> Finding:
    try:
        return Finding("ok", name, version(name))
    except PackageNotFoundError:
        return Finding("missing", name, "no", f"{install_command('sim')} (to serve agents it is not needed)")


def _rendering() -> Finding:
    try:
        from proctor.worlds.mujoco.render.gl import renderer_name

        return Finding("ok", "Rendering", renderer_name())
    except MissingDependency as error:
        return Finding("missing", "Rendering", "no", str(error))
