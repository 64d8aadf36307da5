"""The embedded world as an environment: MuJoCo physics and pictures, no GPU, no ROS, no O3DE."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from proctor.control.action_executor import ActionExecutor
from proctor.core.errors import SimulationError, UserError
from proctor.core.interfaces import Env
from proctor.core.types import Info, Observation, Pose2, Vector3
from proctor.envs.episode_state import EpisodeState, checked_action, running, start_yaw, started
from proctor.episodes.vln import Episode
from proctor.robots.wheeled import WheeledRobot
from proctor.scenes.scene_config import load_scene, scene_version
from proctor.sim.base_drive import BaseDrive
from proctor.sim.camera import RgbdCamera
from proctor.sim.lidar import LaserScanner
from proctor.sim.world import World

SENSORS = ("rgb", "depth", "scan", "odom")
STORY_M = 0.5
"""A start this far from z = 0 is on another floor, and the embedded world has one."""


class VLNEnv(Env):
    """A wheeled robot in a scene.

    Observations hold what `sensors` names: `rgb` (H, W, 3) uint8, `depth` (H, W) uint16 millimetres with
    0 for no return, `scan` (a `Scan` of a full turn) and `odom` (a `Pose2` relative to the start).

    Args:
        width: Of the pictures, in pixels.
        height: Of the pictures, in pixels.
        fov_deg: Vertical field of view.
        sensors: Out of rgb, depth, scan and odom.
        collision_threshold_m: Forward moves stop when the laser sees something nearer than this.
        linear_speed_mps: Speed of FORWARD.
        angular_speed_radps: Speed of LEFT and RIGHT.
        end_on_collision: Whether the first collision ends the episode.

    Raises:
        UserError: An option makes no sense.
    """

    needs_scene = True

    def __init__(  # noqa: PLR0913  (the options of the exam, all by keyword)
        self,
        *,
        width: int = 640,
        height: int = 480,
        fov_deg: float = 60.0,
        sensors: Sequence[str] = ("rgb", "depth"),
        collision_threshold_m: float = 0.2,
        linear_speed_mps: float = 0.1,
        angular_speed_radps: float = 0.3,
        end_on_collision: bool = False,
    ) -> None:
        unknown = sorted(set(sensors) - set(SENSORS))
        if unknown:
            raise UserError(f"unknown sensor '{unknown[0]}'; available: {', '.join(SENSORS)}")
        if not (width > 0 and height > 0 and 0 < fov_deg < 180):
            raise UserError(f"a picture of {width}x{height} pixels over {fov_deg}° cannot be taken")
        if not (linear_speed_mps > 0 and angular_speed_radps > 0):
            raise UserError("linear_speed_mps and angular_speed_radps must be above 0")
        if not collision_threshold_m >= 0:
            raise UserError(f"collision_threshold_m must be at least 0, found {collision_threshold_m}")
        camera = msgspec.structs.replace(WheeledRobot().camera, width=width, height=height, fov_deg=fov_deg)
        self._robot = WheeledRobot(camera=camera)
        self._sensors = tuple(sensors)
        self._motion = {
            "collision_threshold_m": collision_threshold_m,
            "linear_speed_mps": linear_speed_mps,
            "angular_speed_radps": angular_speed_radps,
        }
        self._end_on_collision = end_on_collision
        self._stage: _Stage | None = None
        self._state: EpisodeState | None = None

    def reset(self, episode: Episode) -> Observation:
        """Put the scene and the robot into the episode's first state.

        Raises:
            UserError: The episode has no scene, or starts above or below the floor.
            InvalidFile: The scene is broken.
            SimulationError: The robot would start inside of something.
        """
        self._state = None
        if not episode.scene_config_path:
            raise UserError(
                f"episode '{episode.episode_id}': the embedded world needs a scene; set scene_config_path"
            )
        start = Vector3.of(episode.start_position)
        if abs(start.z) > STORY_M:
            raise UserError(
                f"episode '{episode.episode_id}': start_position.z is {start.z}, but the floor of the"
                " embedded world is at 0 (Y-up data?)"
            )
        stage = self._stage_of(Path(episode.scene_config_path))
        stage.world.reset(Pose2(start.x, start.y, start_yaw(episode)))
        stage.drive.reset()
        obstacle = stage.world.touched()
        if obstacle is not None:
            raise SimulationError(
                f"episode '{episode.episode_id}' starts inside of '{obstacle}' at x={start.x}, y={start.y}"
            )
        self._state = EpisodeState(episode, Vector3(start.x, start.y, 0.0), stage.world.pose().yaw)
        return self._observe(stage)

    def step(self, action: Any) -> tuple[Observation, float, bool, Info]:
        """Do one action by driving the robot.

        Raises:
            SimulationError: There was no reset, or the episode is over.
            ValueError: The action is not an integer from 0 to 3.
        """
        state, action = running(self._state), checked_action(action)
        if self._stage is None:
            raise SimulationError("step() was called after close()")
        motion = self._stage.executor.execute(action)
        pose = self._stage.world.pose()
        state.record(action, Vector3(pose.x, pose.y, 0.0), pose.yaw, collision=motion.collided)
        state.done = state.done or (self._end_on_collision and motion.collided)
        return self._observe(self._stage), 0.0, state.done, state.info()

    def info(self) -> Info:
        """Return the ground truth of the present state."""
        return started(self._state).info()

    def close(self) -> None:
        """Free the scene and its pictures' memory."""
        self._state = None
        if self._stage is not None:
            self._stage.close()
            self._stage = None

    def _stage_of(self, scene_path: Path) -> _Stage:
        if self._stage is None or self._stage.made_of != (scene_path, scene_version(scene_path)):
            if self._stage is not None:
                self._stage.close()
                self._stage = None
            self._stage = _Stage(scene_path, self._robot, self._sensors, self._motion)
        return self._stage

    def _observe(self, stage: _Stage) -> Observation:
        observation: Observation = {}
        if stage.camera is not None:
            rgb, depth = stage.camera.render()
            observation = {"rgb": rgb, "depth": depth}
        if "scan" in self._sensors:
            observation["scan"] = stage.scanner.scan()
        if "odom" in self._sensors:
            observation["odom"] = stage.drive.odometry()
        return {name: observation[name] for name in self._sensors}


class _Stage:
    """A scene with everything that is built for it; kept as long as episodes use it."""

    def __init__(
        self, scene_path: Path, robot: WheeledRobot, sensors: Sequence[str], motion: dict[str, float]
    ) -> None:
        self.made_of = (scene_path, scene_version(scene_path))
        self.world = World(load_scene(scene_path), scene_path, robot)
        self.scanner = LaserScanner(self.world)
        self.drive = BaseDrive(self.world, self.scanner, scan_reach_m=motion["collision_threshold_m"])
        self.executor = ActionExecutor(self.drive, **motion)
        self.camera = RgbdCamera(self.world) if {"rgb", "depth"} & set(sensors) else None

    def close(self) -> None:
        if self.camera is not None:
            self.camera.close()
