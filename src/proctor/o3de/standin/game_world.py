"""Game mode: the level as a running world with ROS 2, by the rules of O3DE."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from proctor.o3de.standin.asset_catalog import AssetCatalog
from proctor.o3de.standin.az_transform import Placement
from proctor.o3de.standin.level import Entities
from proctor.o3de.standin.level_scene import LevelScene, scene_of_level
from proctor.o3de.standin.prefab_files import load_entities
from proctor.o3de.standin.project_files import ROBOT_PRODUCT
from proctor.ros2.sim_host import SimHost, State
from proctor.ros2.simulation_checks import no_world
from proctor.ros2.simulation_rules import SimulationRules
from proctor.ros2.simulation_services import SimulationServices
from proctor.scenes.scene_config import save_scene

PRODUCT = "product_asset:///"
SPAWNABLES = {PRODUCT + ROBOT_PRODUCT: "the robot of the project"}
SCENE_FILE = ".standin_world.json"
"""In the project's folder, because what a scene shows lies below the folder of its file."""
EDITOR_RULES = SimulationRules(
    name="O3DE's Editor", spawnables=SPAWNABLES, world_file=None, can_stop=False, adds_scopes=False
)


@dataclass(frozen=True, kw_only=True)
class WorldSettings:
    """How the robots see, and how fast time passes."""

    real_time_factor: float | None = 1.0
    camera_hz: float = 5.0
    scan_hz: float = 30.0
    width: int = 640
    height: int = 480
    has_simulation_interfaces: bool = True
    """Whether the gem of this name is on. It begins STOPPED; without it, the game plays at once."""

    def check(self) -> None:
        """Find out before the first game mode whether there can be one.

        Raises:
            UserError: A setting makes no sense.
        """
        self.open(None).close()

    def open(self, scene: Path | None) -> SimHost:
        """Return a world with O3DE's encodings, at time 0."""
        return SimHost(
            scene,
            real_time_factor=self.real_time_factor,
            camera_hz=self.camera_hz,
            scan_hz=self.scan_hz,
            width=self.width,
            height=self.height,
            rgb_encoding="rgba8",
            depth_encoding="32FC1",
            name="o3de_ros2_node",
        )


class GameWorld:
    """The world of one game mode, from its beginning to its end.

    Args:
        level: Name of the level.
        entities: What is recorded of it.
        assets: Those of its project.
        settings: How robots see.

    Raises:
        InvalidFile: The level cannot be built.
    """

    def __init__(self, level: str, entities: Entities, assets: AssetCatalog, settings: WorldSettings) -> None:
        found = scene_of_level(level, entities, assets)
        self.host = settings.open(save_level_scene(found, assets))
        for index, (entity_name, pose) in enumerate(found.robots):
            name = robot_name(entity_name)
            self.host.spawn(name, "" if index == 0 else name, pose)
        if settings.has_simulation_interfaces:
            SimulationServices(self.host, rules=EDITOR_RULES)
            self.host.set_state(State.STOPPED)

    def placement(self, name: str) -> Placement | None:
        """Return where a robot is, if there is one of this name."""
        name = robot_name(name)
        if name not in self.host.entity_names():
            return None
        position, (x, y, z, w), _, _ = self.host.state_of(name)
        return Placement((position.x, position.y, position.z), (x, y, z, w))

    def close(self) -> None:
        """End it: ROS 2 is only there in game mode."""
        self.host.close()


def save_level_scene(found: LevelScene, assets: AssetCatalog) -> Path:
    """Write the scene of a level to where its assets are found, and return its file."""
    path = assets.project / SCENE_FILE
    save_scene(found.scene, path)
    return path


def robot_name(name: str) -> str:
    """Return an entity's name as ROS 2 can have it."""
    return re.sub(r"[^a-zA-Z0-9_]", "_", name) or "robot"


def launcher_rules(assets: AssetCatalog) -> SimulationRules:
    """Return the rules of the GameLauncher of a project, which loads its levels and nothing else."""

    def world_file(uri: str) -> Path:
        # A level is named by its path in the asset catalog, and not, as robots are, by an address.
        source = assets.source_of(uri) if uri.startswith("levels/") and uri == uri.lower() else None
        if source is None:
            raise no_world(uri, "a level such as levels/x/x.spawnable")
        return save_level_scene(scene_of_level(source.stem, load_entities(source), assets), assets)

    return SimulationRules(
        name="O3DE's GameLauncher", spawnables=SPAWNABLES, world_file=world_file, adds_scopes=False
    )
