"""The embedded world as an environment: MuJoCo physics and pictures, no GPU, no ROS, no O3DE."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
import numpy as np

from proctor.core.errors import LEAVE_OUT, SimulationError, UserError
from proctor.core.interfaces import DrivingEpisode, Env
from proctor.core.options import checked_options, takes_options
from proctor.core.types import Action, Info, Observation, Pose2, Scan, Vector3, checked_action
from proctor.robots.motion import ActionExecutor, Motion
from proctor.robots.spec import STANDARD, RobotSpec, load_robot, robot_identity
from proctor.scenes.scene import Scene
from proctor.worlds.episode_state import EpisodeState, running, started, velocities_of_actions
from proctor.worlds.mujoco.render.gl import check_drawing
from proctor.worlds.mujoco.render.renderer import calibration_of
from proctor.worlds.mujoco.wheeled.camera import RgbdCamera
from proctor.worlds.mujoco.wheeled.model import TIMESTEP_S
from proctor.worlds.mujoco.wheeled.robot import FreeBase, MujocoRobot, NotFreeError, can_be_free
from proctor.worlds.mujoco.wheeled.world import InsideHull, World

_StageKey: TypeAlias = tuple[Scene, float]
"""A scene and the floor in it."""
NAMED = 5
"""So many bad starts are told one by one."""
_FREE_STARTS: set[tuple[Any, ...]] = set()
"""Starts where the robot was seen to stand: the next policies of a command build no worlds for them."""


class ExamMotion:
    """Does the four actions with the robot of a world.

    Ranges below `collision_threshold_m`, measured from the scanner, end a FORWARD.
    """

    def __init__(
        self,
        world: World,
        *,
        linear_speed_mps: float,
        angular_speed_radps: float,
        collision_threshold_m: float,
    ) -> None:
        self.robot = MujocoRobot(world, scan_reach_m=collision_threshold_m)
        self._executor = ActionExecutor(
            self.robot,
            linear_speed_mps=linear_speed_mps,
            angular_speed_radps=angular_speed_radps,
            collision_threshold_m=collision_threshold_m,
        )
        self._velocities = velocities_of_actions(linear_speed_mps, angular_speed_radps)
        self._in_force = Action.STOP
        """The last action, if nothing has stopped the robot since."""
        self.free_base = FreeBase(world) if can_be_free(world) else None
        """Does moves without physics. With None, physics does all."""
        self._scan_gap_m = max(0.0, collision_threshold_m - world.robot.radius_m)

    def reset(self) -> None:
        """Stand still where the robot was put."""
        self.robot.reset()
        self._in_force = Action.STOP

    def execute(self, action: Action) -> Motion:
        """Do one of the four actions."""
        motion = self._do(action, lambda: self._executor.execute(action))
        self._in_force = Action.STOP if motion.collided else action
        return motion

    def wait(self, duration_s: float, *, keep: bool) -> bool:
        """Let time pass, at the velocity of the last action if `keep`; return whether the robot collided.

        A collision stops the robot, as in an action. At the end of the wait it stops as well.
        """
        action = self._in_force if keep else Action.STOP
        return self._do(action, lambda: self._go_on(action, duration_s)).collided

    def _go_on(self, action: Action, duration_s: float) -> Motion:
        start_s, collided = self.robot.now_s(), False
        if action is not Action.STOP:
            collided = self._executor.move_timed(*self._velocities[action], duration_s).collided
        left_steps = round((start_s + duration_s - self.robot.now_s()) / TIMESTEP_S)
        if left_steps > 0:
            self.robot.wait(left_steps * TIMESTEP_S)
        return Motion(collided, self.robot.now_s() - start_s)

    def _do(self, action: Action, move: Callable[[], Motion]) -> Motion:
        return self._do_freely(action, move) or move()

    def _do_freely(self, action: Action, move: Callable[[], Motion]) -> Motion | None:
        """Move as in an action, without physics; do nothing and return None where physics could matter."""
        base = self.free_base
        # Only FORWARD looks at the scan. No beam is shorter than the radius plus the gap.
        # A free move keeps 1 cm beyond the gap at which something would happen: a contact, or a short range.
        kept_gap_m = 0.01 + (self._scan_gap_m if action is Action.FORWARD else 0.0)
        if base is None or not base.try_start(kept_gap_m):
            return None
        try:
            with self.robot.driving(base):
                motion = move()
        except NotFreeError:
            return None
        base.finish()
        return motion


class DrivingOptions(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The options of every env with a robot on wheels. None: as the robot's spec has it."""

    robot: str = STANDARD
    """What the robot is like: a name of the registry or a spec file."""
    width: Annotated[int, msgspec.Meta(ge=1, le=4096)] | None = None
    """Of pictures, in pixels."""
    height: Annotated[int, msgspec.Meta(ge=1, le=4096)] | None = None
    sensors: tuple[Literal["rgb", "depth", "scan", "odom"], ...] = ("rgb", "depth")
    """What observations hold."""
    linear_speed_mps: Annotated[float, msgspec.Meta(ge=0.001, le=5)] | None = None
    """Of FORWARD."""
    angular_speed_radps: Annotated[float, msgspec.Meta(ge=0.001, le=10)] | None = None
    """Of LEFT and RIGHT."""
    end_on_collision: bool = False
    """Whether the first collision ends the episode."""

    @property
    def has_camera(self) -> bool:
        """Whether anything is to be drawn."""
        return "rgb" in self.sensors or "depth" in self.sensors


class _Options(DrivingOptions, kw_only=True):
    fov_deg: Annotated[float, msgspec.Meta(gt=0, lt=180)] | None = None
    """Vertical field of view."""
    collision_threshold_m: Annotated[float, msgspec.Meta(ge=0, le=10)] | None = None
    """FORWARD stops when the laser sees something nearer than this."""

    def spec(self) -> RobotSpec:
        """Return the robot with the camera that was asked for."""
        return load_robot(self.robot).with_camera(width=self.width, height=self.height, fov_deg=self.fov_deg)


class VLNEnv(Env):
    """A wheeled robot in a scene.

    Observations hold what `sensors` names: `rgb` (H, W, 3) uint8, `depth` (H, W) uint16 millimetres with
    0 for no return, `scan` (a `Scan` of a full turn) and `odom` (a `Pose2` relative to the start). FORWARD
    drives at the linear speed, and stops when the laser sees something nearer than `collision_threshold_m`;
    LEFT and RIGHT turn at the angular speed. `DrivingOptions` has most options.
    """

    needs_scene = True

    @takes_options(_Options)
    def __init__(self, **options: Any) -> None:
        self._options = checked_options(_Options, options)
        self._robot = self._options.spec()
        if self._options.has_camera:
            check_drawing()  # before the first episode
        self.looking = True
        """Set to False to skip rendering, for example between the steps that you want to see."""
        self._stages: dict[_StageKey, _Stage] = {}  # the one that was used last comes last
        self._stage: _Stage | None = None
        self._state: EpisodeState | None = None

    @classmethod
    def example_observation(cls, episode: Any, options: Mapping[str, Any]) -> Observation:
        """Return zeros in the shapes of what the sensors show."""
        chosen = checked_options(_Options, options)
        robot = chosen.spec()
        lidar, size_px = robot.lidar, (robot.camera.height, robot.camera.width)
        zeros = np.zeros(lidar.beams), lidar.angle_min, lidar.angle_increment
        found = {
            "rgb": np.zeros((*size_px, 3), np.uint8),
            "depth": np.zeros(size_px, np.uint16),
            "scan": Scan(*zeros, lidar.range_min_m, lidar.range_max_m),
            "odom": Pose2(0.0, 0.0, 0.0),
        }
        return {name: found[name] for name in chosen.sensors}

    @classmethod
    def identity(cls, options: Mapping[str, Any]) -> dict[str, Any]:
        """Return the spec of the robot, unless it is the standard one."""
        return robot_identity(options)

    def reset(self, episode: DrivingEpisode) -> Observation:
        """Put the scene and the robot into the episode's first state."""
        self._state = None
        stage = self._stage_of(*_floor_of(episode))
        pose = _place(stage.world, episode)
        stage.motion.reset()
        self._state = EpisodeState(episode, episode.start_position, pose.yaw)
        return self._observe(stage)

    def check(self, episodes: Sequence[DrivingEpisode]) -> None:
        """Build every scene and put the robot at every start, unless this process has done so before.

        A UserError names episodes without a scene, or that start inside of something or on another floor.
        """
        errors = [error for _, error in self.refused(episodes)]
        problems = list(map(str, errors))
        remedy = "" if all(isinstance(error, InsideHull) for error in errors) else LEAVE_OUT
        if len(problems) == 1:
            raise UserError("; ".join(filter(None, [problems[0], remedy])))
        if problems:
            some = "\n  ".join(problems[:NAMED] + ["..."] * (len(problems) > NAMED))
            count = f"{len(problems)} of {len(episodes)} episodes cannot start"
            raise UserError(f"{count}:\n  {some}\n{remedy}".rstrip())

    def refused(self, episodes: Sequence[DrivingEpisode]) -> list[tuple[DrivingEpisode, UserError]]:
        """Return the episodes that start where the robot cannot stand, and why."""
        found = []
        for (scene_path, floor_z), group in groupby(sorted(episodes, key=_floor_of), key=_floor_of):
            scene, world = Scene.load(scene_path), None
            for episode in group:
                start = (scene.digest, floor_z, self._robot, episode.start_position, episode.start_rotation)
                if start in _FREE_STARTS:
                    continue
                world = world or World(scene, self._robot, floor_z=floor_z, drawn=False)
                try:
                    _place(world, episode)
                    _FREE_STARTS.add(start)
                except UserError as error:
                    found.append((episode, error))
        return found

    def step(self, action: Any) -> tuple[Observation, float, bool, Info]:
        """Do one action, an integer from 0 to 3, by driving the robot."""
        state, action = running(self._state), checked_action(action)
        if self._stage is None:
            raise SimulationError("step() was called after close()")
        motion = self._stage.motion.execute(action)
        pose = self._stage.world.pose()
        state.record(action, Vector3(pose.x, pose.y, state.position.z), pose.yaw, collision=motion.collided)
        state.done = state.done or (self._options.end_on_collision and state.collision)
        return self._observe(self._stage), 0.0, state.done, state.info()

    def wait(self, duration_s: float, *, keep: bool) -> None:
        """Drive or turn on at the speed of the last action until something is in the way, or stand."""
        state = running(self._state)
        if self._stage is None:
            raise SimulationError("wait() was called after close()")
        state.has_bumped_since |= self._stage.motion.wait(duration_s, keep=keep)

    def time_s(self) -> float:
        """Return the simulated seconds since `reset`."""
        if self._stage is None:
            raise SimulationError("time_s() was called before reset()")
        return self._stage.world.time_s

    def info(self) -> Info:
        """Return the ground truth of the present state."""
        return started(self._state).info()

    def cameras(self) -> dict[str, Any]:
        """Return the calibration of the one camera, for each kind of its pictures."""
        if self._stage is None:
            raise SimulationError("cameras() was called before reset()")
        world, camera = self._stage.world, self._robot.camera
        found = calibration_of(world.model, world.body.camera_name, camera.width, camera.height)
        return {name: found for name in self._options.sensors if name in ("rgb", "depth")}

    def close(self) -> None:
        """Free the scene and its pictures' memory."""
        self._state = self._stage = None
        while self._stages:
            self._stages.popitem()[1].close()

    def _stage_of(self, scene_path: Path, floor_z: float) -> _Stage:
        key, self._stage = (Scene.load(scene_path), floor_z), None
        stage = self._stages.pop(key, None)
        if stage is None:
            # The newest makes way: if the same scenes come in turn again, the others will be used before it.
            while len(self._stages) >= max(1, self.max_open_scenes):
                self._stages.popitem()[1].close()
            stage = _Stage(*key, self._robot, self._options)
        self._stages[key] = self._stage = stage
        return stage

    def _observe(self, stage: _Stage) -> Observation:
        observation: Observation = {}
        if stage.camera is not None and self.looking:
            rgb, depth = stage.camera.render()
            observation = {"rgb": rgb, "depth": depth}
        if "scan" in self._options.sensors:
            observation["scan"] = stage.motion.robot.scanner.scan()
        if "odom" in self._options.sensors:
            observation["odom"] = stage.motion.robot.odometry()[1]
        return {name: observation[name] for name in self._options.sensors if name in observation}


def _floor_of(episode: DrivingEpisode) -> tuple[Path, float]:
    """Return an episode's scene and the height of the floor in it that it starts on."""
    if not episode.scene_config_path:
        name = episode.episode_id
        raise UserError(f"episode '{name}': the embedded world needs a scene; set scene_config_path")
    scene_path = Path(episode.scene_config_path)
    return scene_path, Scene.load(scene_path).floor_near(episode.start_position)


def _place(world: World, episode: DrivingEpisode) -> Pose2:
    """Put the robot at the start of an episode, if it can stand there."""
    start, who = episode.start_position, f"episode '{episode.episode_id}'"
    # A start this far from z = 0 is on another floor, and a scene of parts has one.
    if world.house is None and abs(start.z) > 0.5:
        floor = "the floor of the embedded world is at 0 (Y-up data?)"
        raise UserError(f"{who}: start_position.z is {start.z}, but {floor}")
    world.begin(Pose2(start.x, start.y, episode.start_yaw), who=who, z=start.z)
    return world.pose()


class _Stage:
    """A scene with everything that is built for it; kept as long as episodes use it."""

    def __init__(self, scene: Scene, floor_z: float, robot: RobotSpec, options: _Options) -> None:
        self.world = World(scene, robot, floor_z=floor_z, drawn=options.has_camera)
        threshold_m = options.collision_threshold_m
        self.motion = ExamMotion(
            self.world,
            linear_speed_mps=options.linear_speed_mps or robot.action_speed_mps,
            angular_speed_radps=options.angular_speed_radps or robot.action_speed_radps,
            collision_threshold_m=robot.collision_threshold_m if threshold_m is None else threshold_m,
        )
        self.camera = RgbdCamera(self.world) if options.has_camera else None

    def close(self) -> None:
        if self.camera is not None:
            self.camera.close()
