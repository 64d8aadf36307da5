"""The stand-in: an Editor with the real agent in it, and the embedded world as its game mode."""

from __future__ import annotations

import os
import re
import select
import threading
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from o3de_sim.editor.azlmbr_calls import Engine
from o3de_sim.editor.operation_table import Dispatcher
from o3de_sim.editor.server import AgentServer
from proctor.o3de.standin.az_values import Placement
from proctor.o3de.standin.fake_editor import FRAME_S, FakeEditor
from proctor.o3de.standin.level_scene import LevelScene, scene_of_level
from proctor.o3de.standin.project_files import ROBOT_PRODUCT, AssetCatalog, load_entities, prepare_project
from proctor.robots.spec import standard_robot
from proctor.scenes.scene_config import save_scene
from proctor.worlds.ros2.host.hosted_robot import SimHostOptions
from proctor.worlds.ros2.host.sim_host import SimHost, State
from proctor.worlds.ros2.host.simulation_checks import SimulationRules, missing_world
from proctor.worlds.ros2.host.simulation_services import SimulationServices

SPAWNABLES = {"product_asset:///" + ROBOT_PRODUCT: "the robot of the project"}
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
        """Raise UserError before the first game mode if a setting is invalid."""
        self.open(None).close()

    def open(self, scene: Path | None) -> SimHost:
        """Return a world with O3DE's encodings, at time 0."""
        options = SimHostOptions(
            robot=standard_robot().with_camera(width=self.width, height=self.height),
            real_time_factor=self.real_time_factor,
            camera_hz=self.camera_hz,
            scan_hz=self.scan_hz,
            rgb_encoding="rgba8",
            depth_encoding="32FC1",
            name="o3de_ros2_node",
        )
        return SimHost(scene, options)


def save_level_scene(found: LevelScene, assets: AssetCatalog) -> Path:
    """Write the scene of a level to where its assets are found, and return its file."""
    # In the project: what a scene shows lies below its file's folder.
    path = assets.project / ".standin_world.json"
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
            raise missing_world(uri, "a level such as levels/x/x.spawnable")
        return save_level_scene(scene_of_level(source.stem, load_entities(source), assets), assets)

    return SimulationRules(
        name="O3DE's GameLauncher", spawnables=SPAWNABLES, world_file=world_file, adds_scopes=False
    )


class StandIn:
    """Editor frames, the agent and the world take turns in one thread, that of `run`.

    Only `stop` may be called from another one, or from a signal handler. Writes what is missing into the
    project. Port 0 is any free one.
    """

    def __init__(self, project: Path, *, port: int = 8080, settings: WorldSettings | None = None) -> None:
        prepare_project(project)
        self.editor = FakeEditor(project)
        self.editor.on_game_mode = self._switch_game_mode
        self.editor.game_transform = self._game_transform
        self.world: SimHost | None = None  # in game mode, without which there is no ROS 2
        self._settings = settings or WorldSettings()
        self._stopped = threading.Event()
        with ExitStack() as stack:
            stack.enter_context(self.editor.installed())
            engine = Engine()
            stack.callback(engine.close)
            self.server = AgentServer(Dispatcher(engine), port=port)
            stack.callback(self.server.close)
            self._stack = stack.pop_all()

    def run(self, *, parent_pid: int | None = None) -> None:
        """Run frames and answer until `stop` is called, or until `parent_pid` is not our parent any more."""
        while not self._stopped.is_set():
            if parent_pid is not None and os.getppid() != parent_pid:
                return
            self.turn()

    def turn(self) -> None:
        """Pass one frame. Waits for a part of one, if there is nothing to do."""
        self.editor.frame()
        self.server.pump()
        if self.world is not None:
            self.world.turn(0.0 if self.server.is_busy else FRAME_S)
        elif not self.server.is_busy:
            select.select(self.server.sockets(), [], [], FRAME_S)

    def stop(self) -> None:
        """Let `run` return soon."""
        self._stopped.set()

    def close(self) -> None:
        """Leave the network, in good order. May be called twice."""
        self._stopped.set()
        if self.world is not None:
            self.world.close()
            self.world = None
        self._stack.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _switch_game_mode(self, is_on: bool) -> None:  # noqa: FBT001
        if self.world is not None:
            self.world.close()
            self.world = None
        level, assets = self.editor.level, self.editor.assets
        if not is_on or level is None:
            return
        found = scene_of_level(level.name, level.template, assets)
        self.world = self._settings.open(save_level_scene(found, assets))
        for index, (entity_name, pose) in enumerate(found.robots):
            name = robot_name(entity_name)
            self.world.spawn(name, "" if index == 0 else name, pose)
        if self._settings.has_simulation_interfaces:
            SimulationServices(self.world, rules=EDITOR_RULES)
            self.world.set_state(State.STOPPED)

    def _game_transform(self, name: str) -> Placement | None:
        """Return where a robot is, if there is one of this name."""
        name = robot_name(name)
        if self.world is None or name not in self.world.entity_names():
            return None
        position, (x, y, z, w), _, _ = self.world.state_of(name)
        return Placement((position.x, position.y, position.z), (x, y, z, w))
