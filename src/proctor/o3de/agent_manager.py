"""The engine's side of an evaluation: levels, game mode and the robot, through the agent in the Editor."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Any

import msgspec

from o3de_sim.common.scene_builder import BasicSceneBuilder, entity_name, find_meshes
from o3de_sim.common.scene_file import check_scene
from o3de_sim.constants import GROUND, O3DE_AGENT_SOCKET_MODE, Mode
from o3de_sim.errors import O3DEError
from o3de_sim.o3de_api.interface.math import Quaternion, Vector3, euler_to_quaternion
from o3de_sim.o3de_api.interface.tools import EntityId
from o3de_sim.o3de_api.o3de_agent import O3DEAgent
from proctor.o3de.config import O3DEConfig, config_of
from proctor.o3de.solid_scene import shown_scene, solid_scene
from proctor.scenes.scene import Scene
from proctor.scenes.scene_config import SceneConfig

LEVEL_TIMEOUT_S = 300.0  # of making or opening a level, and of entering game mode in it
BUILT, BUILT_PLAIN = "proctor_built", "proctor_built_without_meshes"
"""The entity that is made last is one of these. A level without it was given up half-way."""
BUILD = 2
"""Counts up when scenes are built in another way, so that levels of before are not taken for new ones."""


class O3DEAgentManager:
    """Holds the connection to the Editor and does there what an episode needs.

    `robot_entity_id` is the robot that is there now: in game mode the live one, else the one in the level.
    """

    def __init__(self, mode: Mode = O3DE_AGENT_SOCKET_MODE, *, config: O3DEConfig | None = None) -> None:
        self._config = config or config_of({})
        self.agent = O3DEAgent(
            mode=mode,
            host=self._config.socket_host,
            port=self._config.socket_port,
            token=self._config.token,
            timeout_s=self._config.timeout_s,
        )
        self.robot_entity_id: EntityId | None = None
        self._placed: EntityId | None = None
        self._built: str | None = None

    def create_scene(self, scene_config_path: str | Path) -> str:
        """Open the level of a scene, or build and save it; return the level's name.

        The name depends on the scene's content, so a changed scene gets a new level.
        """
        scene = Scene.load(Path(scene_config_path))
        level, editor = level_of(scene.config), self.agent.editor_tool
        if self._built == level and editor.current_level() == level:
            return level
        if not self.open_level(level):
            editor.create_level(level, timeout_s=LEVEL_TIMEOUT_S)
        self.leave_game_mode()  # in which somebody may have left the Editor, and nothing can be looked at
        if not self._is_built(scene):
            self._build(solid_scene(scene).config)
        self._built = level
        return level

    def open_level(self, level: str) -> bool:
        """Open a level unless it is open, and return whether the project has it."""
        editor = self.agent.editor_tool
        if not editor.level_exists(level):
            self.leave_game_mode()
            return False
        if editor.current_level() != level:
            self.leave_game_mode()
            editor.open_level(level, timeout_s=LEVEL_TIMEOUT_S)
            self._placed = None
        return True

    def lacking_meshes(self, scene: Scene) -> list[str]:
        """Return the objects of a scene that the project has no meshes of, so that they look plain."""
        meshes = find_meshes(self.agent, check_scene(msgspec.to_builtins(shown_scene(scene).config)))
        return [item.name for item in scene.objects if item.name not in meshes]

    def _is_built(self, scene: Scene) -> bool:
        """Tell whether the open level is complete, and looks as good as it can now."""
        if self.agent.entity_tool.find(BUILT):
            return True
        return bool(self.agent.entity_tool.find(BUILT_PLAIN)) and bool(self.lacking_meshes(scene))

    def _build(self, scene: SceneConfig) -> None:
        """Fill the open level with a scene, from which an earlier attempt may have left something."""
        names = [item.name for item in scene.objects] + [light.name for light in scene.lights]
        taken = (BUILT, BUILT_PLAIN, self._config.robot_name)
        old = dict.fromkeys(entity_name(name, taken) for name in names)
        for name in (*old, GROUND, BUILT_PLAIN):
            for entity in self.agent.entity_tool.find(name):
                self.agent.entity_tool.delete(entity)
        report = BasicSceneBuilder(self.agent, taken=taken).build_scene(msgspec.to_builtins(scene))
        self.agent.entity_tool.create(BUILT_PLAIN if report.as_primitives or report.missing else BUILT)
        self.agent.editor_tool.save_level(timeout_s=LEVEL_TIMEOUT_S)

    def create_robot(self, position: Any, rotation: Any) -> EntityId:
        """Put the robot's prefab into the level; the rotation is a quaternion, or Euler degrees, Z·Y·X."""
        self.leave_game_mode()
        self._placed = self.robot_entity_id = self.agent.prefab_tool.instantiate(
            self._config.robot_prefab,
            Vector3.of(position),
            quaternion_of(rotation),
            name=self._config.robot_name,
        )
        return self._placed

    def set_robot_position(self, position: Any, rotation: Any) -> None:
        """Put the robot of the level elsewhere, or into it if it is not there.

        Game mode is left for it: a body that moves does not obey when its transform is set.
        """
        self.leave_game_mode()
        if self._placed is None or not self.agent.entity_tool.exists(self._placed):
            # Ids end with the level, and somebody else may have opened it anew.
            found = self.agent.entity_tool.find(self._config.robot_name)
            self._placed = found[0] if found else None
        if self._placed is None:
            self.create_robot(position, rotation)
        else:
            self.agent.tc.set_pose(self._placed, Vector3.of(position), quaternion_of(rotation))
            self.robot_entity_id = self._placed

    def get_robot_position(self) -> Vector3:
        """Return where the robot is in the world, in metres."""
        return self.agent.tc.get_position(self._robot())

    def get_robot_rotation(self) -> Quaternion:
        """Return how the robot stands in the world."""
        return self.agent.tc.get_rotation(self._robot())

    def enter_game_mode(self) -> None:
        """Let the level live."""
        if not self.agent.simulation_tool.is_in_game_mode():
            self.agent.simulation_tool.enter_game_mode(timeout_s=LEVEL_TIMEOUT_S)

    def leave_game_mode(self) -> None:
        """Go back to editing."""
        if self.agent.simulation_tool.is_in_game_mode():
            self.agent.simulation_tool.exit_game_mode(timeout_s=LEVEL_TIMEOUT_S)
            self.robot_entity_id = self._placed

    def find_robot(self) -> EntityId | None:
        """Look for the robot that lives in game mode; it is another entity than that in the level."""
        self.robot_entity_id = self.agent.entity_tool.find_game(self._config.robot_name)
        return self.robot_entity_id

    def close(self) -> None:
        """End the connection."""
        self.agent.close()

    def _robot(self) -> EntityId:
        if self.robot_entity_id is None:
            raise O3DEError("not_found", "there is no robot yet: create_robot() puts one into the level")
        return self.robot_entity_id


def level_of(scene: SceneConfig) -> str:
    """Return the name of the level that a scene becomes."""
    digest = hashlib.sha256(f"{BUILD}".encode() + msgspec.json.encode(scene)).hexdigest()[:8]
    name = re.sub("[^A-Za-z0-9_-]+", "_", scene.scene_name)[:48] or "scene"
    return f"{name}_{digest}"


def quaternion_of(rotation: Any) -> Quaternion:
    """Return a rotation that may also be Euler angles in degrees, applied Z·Y·X."""
    return rotation if isinstance(rotation, Quaternion) else euler_to_quaternion(rotation)
