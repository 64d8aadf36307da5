"""The production world: O3DE, reached over ROS 2."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from proctor.core.errors import MissingDependency, UserError
from proctor.core.interfaces import Env
from proctor.core.types import Info, Observation


class SensorQos(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Quality of service of the sensor topics, in ROS 2's words."""

    reliability: Literal["BEST_EFFORT", "RELIABLE"] = "BEST_EFFORT"
    durability: Literal["VOLATILE", "TRANSIENT_LOCAL"] = "VOLATILE"
    depth: int = 10


class O3DEConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How to reach O3DE, and how its robot moves."""

    mode: Literal["socket", "peb"] = "socket"
    socket_host: str = "127.0.0.1"
    socket_port: int = 8080
    sensor_qos: SensorQos = SensorQos()
    success_threshold: float = 0.2
    collision_threshold: float = 0.3
    linear_speed: float = 0.1
    angular_speed: float = 0.3
    robot_asset_path: str = "Assets/Models/robot/robot.gltf"
    robot_name: str = "robot"


O3DE_SIMULATOR_CONFIG: dict[str, Any] = msgspec.to_builtins(O3DEConfig())


class O3DEEnv(Env):
    """An env that needs a running O3DE and ROS 2.

    Args:
        simulator_config: Keys of `O3DE_SIMULATOR_CONFIG` that should differ from its defaults.

    Raises:
        UserError: A key or value of the configuration is wrong.
        MissingDependency: This version of Proctor has no O3DE connection.
    """

    tasks = ("vln",)
    needs_scene = True

    def __init__(self, simulator_config: Mapping[str, Any] | None = None) -> None:
        try:
            self.config = msgspec.convert(dict(simulator_config or {}), O3DEConfig)
        except msgspec.ValidationError as error:
            raise UserError(f"simulator_config: {error}; keys: {', '.join(O3DE_SIMULATOR_CONFIG)}") from None
        raise MissingDependency(
            "The O3DE backend",
            "It needs O3DE with its ROS 2 gems and a sourced ROS 2, and this version of Proctor does not "
            "connect to them yet; the same episodes run on the embedded world: env 'embedded'.",
        )

    def reset(self, episode: Any) -> Observation:
        """Not reached without a connection."""
        raise NotImplementedError

    def step(self, action: Any) -> tuple[Observation, float, bool, Info]:
        """Not reached without a connection."""
        raise NotImplementedError

    def close(self) -> None:
        """Nothing is open."""
