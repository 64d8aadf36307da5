"""`navigate_to` in the embedded world: physics, sensors, planner and controller, tick by tick."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path as FilePath
from typing import Any

import numpy as np

from proctor.core.errors import UserError
from proctor.core.types import Pose2
from proctor.maps.grid_map import GridMap
from proctor.maps.live_map import LiveMap
from proctor.maps.point_cloud import Pinhole, camera_frame, points_of_depth
from proctor.navigation.process.client import PlanningClient
from proctor.navigation.skill.drive import Drive, DriveLog
from proctor.navigation.skill.goal import NavigationGoal, asked_for
from proctor.navigation.skill.manager import SkillManager
from proctor.navigation.skill.navigate_to import NavigateTo
from proctor.navigation.skill.params import NavigationParams
from proctor.navigation.skill.states import TERMINAL, Result
from proctor.robots.spec import RobotSpec, standard_robot
from proctor.scenes.scene import Scene
from proctor.scenes.scene_config import SceneConfig
from proctor.worlds.mujoco.wheeled.camera import RgbdCamera
from proctor.worlds.mujoco.wheeled.robot import TICK_S, TICK_STEP_S, MujocoRobot
from proctor.worlds.mujoco.wheeled.world import World

DEPTH_TICKS, DEPTH_STRIDE = 6, 4  # the depth image is used at 10 Hz, every fourth row and column


class EmbeddedNavigator:
    """A robot in a scene that can be sent to goals.

    `navigate` does it all. To do it tick by tick, call `skills.execute_skill("navigate_to", ...)` and `step`
    in turns, until the status is no longer `processing`. Same input, same drive: the world waits for plans.
    """

    def __init__(  # noqa: PLR0913  (what a drive is made of, all by keyword)
        self,
        scene_path: FilePath,
        start: Pose2,
        *,
        scene: SceneConfig | None = None,
        grid: GridMap | None = None,
        params: NavigationParams | None = None,
        robot: RobotSpec | None = None,
        client: PlanningClient | None = None,
        depth: bool = False,
        floor_z: float | None = None,
        goals: Sequence[tuple[float, float]] = (),
    ) -> None:
        if not all(map(math.isfinite, (start.x, start.y, start.yaw))):
            raise UserError(f"expected a start of finite numbers, found {start}")
        robot = robot or standard_robot()
        self.params = (params or NavigationParams(radius_m=robot.radius_m)).checked()
        if grid is None:
            known = Scene.load(scene_path)
            floor_z = known.floor_near(floor_z)
            grid = known.map(floor_z, height_band_m=robot.height_band_m).covering((start.x, start.y), *goals)
        floor_z = floor_z or 0.0
        self.grid = grid
        self.live_map = LiveMap(self.grid, floor_z=floor_z, height_band_m=robot.height_band_m)
        self.world = World(
            Scene.load(scene_path) if scene is None else Scene(scene, scene_path),
            robot.with_camera(pitch_deg=-30.0),  # level, it sees no floor nearer than 2 m
            floor_z=floor_z,
            timestep_s=TICK_STEP_S,
        )
        self.world.begin(start, who="the robot", z=floor_z)
        self.robot = MujocoRobot(self.world)
        self.controller = self.params.make_controller(
            self.robot,
            now_s=self.now_s,
            field=lambda: self.live_map.field(self.now_s()),
            period_s=TICK_S,
        )
        self._client = client or PlanningClient()
        self._owns_client = client is None
        self._client.start()
        self.navigate_to = NavigateTo(
            self.robot, self.controller, self.live_map, self._client, self.now_s, self.params
        )
        self.skills = SkillManager([self.navigate_to])
        self._camera = RgbdCamera(self.world) if depth else None
        self._ticks = 0
        self._seen = self.live_map.seen.copy()  # what was seen on the way to the latest goal
        self._look()

    def now_s(self) -> float:
        """Return the simulated time."""
        return self._ticks * TICK_S

    def wait_until_ready(self, timeout_s: float = 600.0) -> bool:
        """Wait until the planner is warm; its code is compiled once per machine, for half a minute."""
        return self._client.wait_until_ready(timeout_s)

    def step(self) -> None:
        """Let one tick of the clock pass: the controller commands, the robot moves, the scanner looks."""
        self.navigate_to.control()
        self.robot.wait(TICK_S)
        self._ticks += 1
        if self._ticks % 3 == 0:  # the laser scanner turns at 20 Hz
            self._look()
        if self._camera is not None and self._ticks % DEPTH_TICKS == 0:
            self._look_deep(self._camera)
        self.navigate_to.planning.wait_if_due()

    def navigate(
        self,
        goal_pos: Sequence[float] | NavigationGoal,
        goal_quat: Sequence[float] | None = None,
        timeout: float | None = None,
        on_tick: Callable[[Result], None] | None = None,
    ) -> Drive:
        """Go to a goal and return what happened; `on_tick` receives the feedback of each tick.

        The goal is [x, y, z] and, if a heading is wanted, [qx, qy, qz, qw]; `timeout` is simulated seconds.
        A NavigationGoal says all of it.
        """
        params: dict[str, Any] = {"goal_pos": goal_pos, "goal_quat": goal_quat, "timeout": timeout}
        goal = goal_pos if isinstance(goal_pos, NavigationGoal) else asked_for(params)
        if isinstance(goal, NavigationGoal):  # else the skill says what is wrong
            params = {"goal": goal}
        if self.navigate_to.state in TERMINAL:
            self.skills.execute_skill("navigate_to")  # the result of an earlier goal
        start = self.robot.pose()
        rows: list[list[float]] = []
        self._seen = self.live_map.seen.copy()
        while True:
            result = self.skills.execute_skill("navigate_to", **params)
            if result["status"] != "processing":
                return self._drive(result, start, goal, DriveLog.of(rows))
            if on_tick is not None:
                on_tick(result)
            self.step()
            rows.append(self._row())

    def close(self) -> None:
        """Stop the planner, unless it is shared."""
        self.navigate_to.reset()
        if self._camera is not None:
            self._camera.close()
        self.live_map.close()
        if self._owns_client:
            self._client.close()

    def __enter__(self) -> EmbeddedNavigator:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _look(self) -> None:
        self.live_map.mark_scan(self.robot.scan(), self.robot.pose(), self.now_s())
        self._seen |= self.live_map.seen

    def _look_deep(self, camera: RgbdCamera) -> None:
        _, depth_mm = camera.render()
        spec = self.world.robot.camera
        frame = camera_frame(spec, self.robot.pose(), self.world.floor_z)
        points_world = points_of_depth(depth_mm, Pinhole.of(spec), frame, stride=DEPTH_STRIDE)
        self.live_map.mark_points(points_world, self.now_s())

    def _row(self) -> list[float]:
        pose, target = self.robot.pose(), self.navigate_to.target() or [math.nan] * 3
        moves = [*self.robot.velocity(), *target, *self.robot.commanded]
        return [self.now_s(), pose.x, pose.y, pose.yaw, *moves]

    def _drive(self, result: Result, start: Pose2, goal: NavigationGoal | str, log: DriveLog) -> Drive:
        plans = self.navigate_to.planning
        rows, columns = np.nonzero(self._seen)
        centres = (np.stack([columns, rows], axis=1).astype(float) + 0.5) * self.grid.resolution_m
        return Drive(
            result=result,
            start=start,
            goal=goal.xy if isinstance(goal, NavigationGoal) else (math.nan, math.nan),
            goal_yaw=goal.yaw if isinstance(goal, NavigationGoal) else None,
            grid=self.grid,
            path=plans.paths[0] if plans.paths else None,
            trajectory=plans.trajectories[0] if plans.trajectories else None,
            replanned=tuple(plans.paths[1:]),
            log=log,
            timings_s=plans.timings_s,
            recoveries=result["recoveries"],
            planner=self.params.planner,
            seen=centres + np.array(self.grid.origin_world),
            dynamics=self.robot.spec.dynamics,
            radius_m=self.params.radius_m,
        )
