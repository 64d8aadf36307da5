"""What this machine has: rendering, packages, ROS 2."""

from __future__ import annotations

import importlib.util
import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Literal, NamedTuple

from proctor import __version__
from proctor.core.errors import MissingDependency

OPTIONAL = {
    "gymnasium": ("Gymnasium adapter", "pip install 'proctor[gym]'"),
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
    ros = importlib.util.find_spec("rclpy") is not None
    remedy = "" if ros else "source /opt/ros/DISTRO/setup.bash before starting Proctor"
    findings.append(Finding("ok" if ros else "optional", "ROS 2 (rclpy)", "yes" if ros else "no", remedy))
    return findings


def _package(name: str) -> Finding:
    try:
        return Finding("ok", name, version(name))
    except PackageNotFoundError:
        return Finding("missing", name, "no", "pip install 'proctor[sim]' (to serve agents it is not needed)")


def _rendering() -> Finding:
    from proctor.sim.gl import renderer_name

    try:
        return Finding("ok", "Rendering", renderer_name())
    except MissingDependency as error:
        return Finding("missing", "Rendering", "no", str(error))
