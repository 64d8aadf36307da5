"""In what simulators that offer simulation_interfaces differ."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from proctor.ros2.simulation_checks import scene_file

ROBOT_URI = "proctor://robots/wheeled"
SPAWNABLES = {ROBOT_URI: "a round differential drive with an RGB-D camera and a 2D lidar"}


@dataclass(frozen=True)
class SimulationRules:
    """What a simulator allows. These are those of `proctor sim-host`, which allows most."""

    name: str = "Proctor's sim-host"
    spawnables: Mapping[str, str] = field(default_factory=lambda: SPAWNABLES)
    """The addresses of what can be spawned, with descriptions. All are the same robot."""
    world_file: Callable[[str], Path] | None = scene_file
    """Returns the scene file of a world's address, or raises Refusal; None if worlds cannot be loaded."""
    can_stop: bool = True
    """Whether the simulation may be STOPPED, and reset as a whole, once it has begun."""
    adds_scopes: bool = True
    """Whether a reset may name several scopes at once."""
