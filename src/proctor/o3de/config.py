"""How to reach O3DE, and how its robot moves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec

from o3de_sim.constants import DEFAULT_HOST, DEFAULT_PORT, O3DE_AGENT_PEB_MODE, agent_port
from o3de_sim.errors import O3DEError
from o3de_sim.proctors_python import SIMULATOR_MODES
from proctor.core.errors import UserError, did_you_mean
from proctor.robots.spec import Camera

Positive = Annotated[float, msgspec.Meta(gt=0, le=100)]


class SensorQos(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Quality of service of the sensor topics, in ROS 2's words."""

    reliability: Literal["BEST_EFFORT", "RELIABLE"] = "BEST_EFFORT"
    durability: Literal["VOLATILE", "TRANSIENT_LOCAL"] = "VOLATILE"
    depth: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 10


class O3DEConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What an evaluation on O3DE can be told."""

    mode: Literal["socket"] = "socket"
    """The documents' other one, `peb`, is that of scripts inside the Editor: see `proctors_python`."""
    socket_host: str = DEFAULT_HOST
    socket_port: Annotated[int, msgspec.Meta(ge=1, le=65535)] = DEFAULT_PORT
    sensor_qos: SensorQos = SensorQos()
    success_threshold: Positive = 0.2
    """Metres from the goal within which a STOP counts, for episodes that do not say."""
    collision_threshold: Positive = 0.3
    """Forward moves stop when the laser sees something nearer than this, in metres."""
    linear_speed: Annotated[float, msgspec.Meta(ge=0.001, le=5)] = 0.1
    angular_speed: Annotated[float, msgspec.Meta(ge=0.001, le=10)] = 0.3
    robot_asset_path: str = "Assets/Models/robot/robot.gltf"
    """In the project. Beside it lies the robot's prefab, of the same name with `.prefab`."""
    robot_name: Annotated[str, msgspec.Meta(pattern="^[A-Za-z0-9_]{1,64}$")] = "robot"
    namespace: str = ""
    """Of the robot's topics."""
    token: str | None = None
    """What the agent in the Editor wants to hear; else it is read from where the agent left it."""
    depth_far_m: Positive = Camera().far_m
    """From here on depth tells nothing, and is 0, as in the embedded world."""
    timeout_s: Annotated[float, msgspec.Meta(gt=0, le=600)] = 20.0
    """How long a topic, a service or the agent may be silent, in real time."""

    @property
    def robot_prefab(self) -> str:
        """Return the robot's prefab, relative to the project."""
        return f"{self.robot_asset_path.rpartition('.')[0]}.prefab"

    @property
    def robot_uri(self) -> str:
        """Return what O3DE's spawn service calls the robot: the product of its prefab."""
        return f"product_asset:///{self.robot_asset_path.rpartition('.')[0].lower()}.spawnable"


O3DE_SIMULATOR_CONFIG: dict[str, Any] = msgspec.to_builtins(O3DEConfig())


def config_of(keys: Mapping[str, Any]) -> O3DEConfig:
    """Return a configuration that differs from the default in some keys; O3DE_AGENT_PORT may set the port."""
    unknown = next((key for key in keys if key not in O3DE_SIMULATOR_CONFIG), None)
    if unknown is not None:
        hint = did_you_mean(str(unknown), list(O3DE_SIMULATOR_CONFIG))
        raise UserError(
            f"simulator_config: there is no key '{unknown}'{hint}; keys: {', '.join(O3DE_SIMULATOR_CONFIG)}"
        )
    if keys.get("mode") == O3DE_AGENT_PEB_MODE:
        raise UserError(f"simulator_config: mode is 'peb', but {SIMULATOR_MODES}")
    try:
        config = msgspec.convert({"socket_port": agent_port(), **keys}, O3DEConfig)
    except O3DEError as error:
        raise UserError(error.message) from None
    except msgspec.ValidationError as error:
        raise UserError(f"simulator_config: {str(error).replace(' - at `$.', ' for `')}") from None
    if not config.robot_asset_path.rpartition(".")[0]:
        raise UserError(
            "simulator_config: robot_asset_path: expected a file such as Assets/Models/robot/robot.gltf, "
            f"found '{config.robot_asset_path}'"
        )
    return config
