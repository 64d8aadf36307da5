"""The embedded world as a ROS 2 simulator with robots in it."""

from __future__ import annotations

import enum
import os
import threading
import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Self

import numpy as np
from builtin_interfaces.msg import Time
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rosgraph_msgs.msg import Clock

from proctor.core.errors import UnknownName, UserError
from proctor.core.geometry import yaw_of_quaternion
from proctor.core.types import Pose2, Vector3
from proctor.scenes.scene import Scene
from proctor.worlds.mujoco.wheeled.camera import RgbdCamera
from proctor.worlds.mujoco.wheeled.robot import TICK_S, TICK_STEP_S, advance_together
from proctor.worlds.mujoco.wheeled.world import World
from proctor.worlds.ros2.host.hosted_robot import HostedRobot, SimHostOptions, check_name
from proctor.worlds.ros2.node.convert import stamp
from proctor.worlds.ros2.node.node import CLOCK, open_context

LAG_S = 0.25
"""A world that is late by more than this does not hurry to catch up: it would only be late elsewhere."""
TICKS_PER_S = round(1 / TICK_S)
NAP_S = 0.05  # no wait is longer than this, so that signals are answered


class Pacer:
    """Says when the next tick is due, None for as fast as possible. Never decides what happens in it."""

    def __init__(self, tick_s: float, real_time_factor: float | None) -> None:
        self._tick_s = tick_s
        self._period_s = 0.0 if real_time_factor is None else tick_s / real_time_factor
        self._due_s = time.monotonic()
        self._ticks: deque[float] = deque()
        self.real_time_factor = 0.0  # what was reached in the last seconds

    def left_s(self) -> float:
        """Return the seconds until the next tick is due, or 0."""
        return max(0.0, self._due_s - time.monotonic())

    def tick(self) -> None:
        """Note that a tick has begun."""
        now_s = time.monotonic()
        # Due times do not drift: being late once is made up for.
        self._due_s = max(self._due_s + self._period_s, now_s - LAG_S)
        self._ticks.append(now_s)
        while self._ticks[0] < now_s - 2.0:  # seconds over which the real-time factor is measured
            self._ticks.popleft()
        passed_s = now_s - self._ticks[0]
        if passed_s > 0:
            self.real_time_factor = (len(self._ticks) - 1) * self._tick_s / passed_s

    def restart(self) -> None:
        """Begin anew: the world has stood still."""
        self._due_s = time.monotonic()
        self._ticks.clear()
        self.real_time_factor = 0.0


class State(enum.IntEnum):
    """Of the simulation, as simulation_interfaces/SimulationState counts them."""

    STOPPED = 0
    PLAYING = 1
    PAUSED = 2


class SimHost:
    """A world whose robots are driven and sensed over ROS 2.

    Physics, publishing and callbacks take turns in one thread, that of `run`. Simulated time goes in ticks of
    1/60 s, and what happens in a tick depends on the commands that came before it, never on the wall clock.
    Because of OpenGL, it must also be made in that thread; only `stop` may be called from another one, or
    from a signal handler. Without a scene the world is empty until `load_world`. `floor_z` is a height on the
    floor to use, in a house that is a mesh; by default its lowest.
    """

    def __init__(
        self,
        scene_path: Path | None = None,
        options: SimHostOptions | None = None,
        *,
        floor_z: float | None = None,
    ) -> None:
        self._options = options = (options or SimHostOptions()).checked()
        self.robot, real_time_factor = options.robot, options.real_time_factor
        self.scene: Scene | None = None  # what stands in the world, if there is one
        self.state = State.PAUSED if real_time_factor == 0 else State.PLAYING
        self._pacer = Pacer(TICK_S, 1.0 if real_time_factor == 0 else real_time_factor)
        self._robots: dict[str, HostedRobot] = {}
        self._world: World | None = None
        self._cameras: RgbdCamera | None = None
        self._ticks = 0
        self._stopped = threading.Event()
        self._until: threading.Event | None = None
        self._parent_pid: int | None = None
        if scene_path is not None:
            self.load_world(scene_path, floor_z=floor_z)
        self._context = open_context(options.ros_args)
        try:
            self.node = Node(
                options.name, context=self._context, start_parameter_services=False, enable_rosout=False
            )
            """Whose services are answered between ticks."""
        except RuntimeError as error:  # for names in ros_args
            self._context.try_shutdown()
            raise UserError(f"ROS 2 does not take the name: {error}") from None
        self._spinner = SingleThreadedExecutor(context=self._context)
        self._spinner.add_node(self.node)
        self._clock_publisher = self.node.create_publisher(Clock, "/clock", CLOCK)

    # What is in the world

    def load_world(self, scene_path: Path, *, floor_z: float | None = None) -> None:
        """Start again in a scene without robots, at time 0. If the scene is invalid, the old world stays."""
        scene = Scene.load(scene_path)
        world = World(
            scene,
            self.robot,
            floor_z=scene.floor_near(floor_z),
            timestep_s=TICK_STEP_S,
            drawn=self._options.camera_hz > 0,
            robots=(),
            is_open=True,
        )
        for name in self.entity_names():
            self.delete(name)
        self._world, self.scene = world, scene
        self.reset_time()

    def use_floor(self, at: Vector3) -> None:
        """Use the floor that a point lies on; a house that is a mesh may have several.

        UserError: there is no world, or there are robots on another floor of it.
        """
        world, ticks = self._loaded_world(), self._ticks
        if world.scene.file is None or (floor_z := world.scene.floor_near(at)) == world.floor_z:
            return
        if self._robots:
            raise UserError(f"all robots are on one floor, at {world.floor_z:g} m, found one at {at.z:g} m")
        self.load_world(world.scene.file, floor_z=floor_z)
        self._ticks = ticks  # for those who listen it is the same world

    def spawn(self, name: str, namespace: str, pose: Pose2) -> None:
        """Put a robot into the world. Its topics are below the namespace, which may be empty."""
        world = self._loaded_world()
        namespace = namespace.strip("/")
        if name in self._robots:
            raise UserError(f"there is a robot '{name}' already")
        for other in self._robots.values():
            if other.namespace == namespace:
                raise UserError(f"the robot '{other.name}' has the namespace '{namespace}' already")
        check_name(name, namespace)
        body = world.add_robot(name, pose)
        self._robots[name] = HostedRobot(self._context, world, body, namespace, self._options)
        if (touched := body.touched()) is not None:
            self.node.get_logger().warning(f"{name} stands in {touched} at {pose.x:g},{pose.y:g}")
        self._renew_cameras()

    def delete(self, name: str) -> None:
        """Take a robot out of the world."""
        self._robot_called(name).close()
        del self._robots[name]
        self._loaded_world().remove_robot(name)
        self._renew_cameras()

    def entity_names(self) -> list[str]:
        """Return the names of the robots."""
        return list(self._robots)

    def namespace_of(self, name: str) -> str:
        """Return the namespace of a robot."""
        return self._robot_called(name).namespace

    def state_of(self, name: str) -> tuple[Vector3, tuple[float, ...], Vector3, Vector3]:
        """Return position, quaternion xyzw, linear and angular velocity, all in the world frame."""
        return self._robot_called(name).state()

    def place(self, name: str, position: Vector3, quaternion_xyzw: Sequence[float]) -> None:
        """Put a robot elsewhere on its floor, at rest. Its odometry still begins where it was spawned."""
        x, y, z, w = quaternion_xyzw
        robot = self._robot_called(name)
        robot.put(Pose2(position.x, position.y, yaw_of_quaternion(np.array([w, x, y, z]))))

    @property
    def topics(self) -> tuple[str, ...]:
        """What each robot publishes below its namespace."""
        topics = ("odom", *(("scan",) if self._options.scan_hz else ()))
        return (*topics, *(("rgb", "depth", "camera_info") if self._options.camera_hz else ()))

    # Time

    @property
    def time_s(self) -> float:
        """Simulated seconds."""
        return self._ticks / TICKS_PER_S

    @property
    def real_time_factor(self) -> float:
        """What was reached in the last seconds."""
        return self._pacer.real_time_factor

    def set_state(self, state: State) -> None:
        """Play, pause or stop. To stop is to pause with time and poses set back."""
        if state is State.STOPPED:
            self.reset_time()
            self.reset_state()
        self.state = state
        self._pacer.restart()

    def reset_time(self) -> None:
        """Set the clock to 0."""
        self._ticks = 0
        for robot in self._robots.values():
            robot.hear_of_reset()

    def reset_state(self) -> None:
        """Put everything back to where it was at first, and each robot to where it was spawned, at rest."""
        if self._world is None:
            return
        self._world.reset(*(robot.start for robot in self._robots.values()))
        for robot in self._robots.values():
            robot.base.rest()

    def step(self, ticks: int = 1) -> int:
        """Simulate ticks as fast as possible in any state; return how many. What ends `run` ends it early."""
        for done in range(ticks):
            if self._is_over():
                return done
            self._tick()
        return ticks

    def run(self, until: threading.Event | None = None, *, parent_pid: int | None = None) -> None:
        """Simulate and answer until `until` is set, `stop` is called, or `parent_pid` is not our parent."""
        self._until, self._parent_pid = until, parent_pid
        self._pacer.restart()
        while not self._is_over():
            self.turn()
        self._until = self._parent_pid = None

    def turn(self, nap_s: float = NAP_S) -> None:
        """Answer or wait for a request (at most `nap_s`), and simulate a tick if due: one round of `run`."""
        is_due = self._answer(nap_s)
        if self.state is not State.PLAYING:
            self._publish_clock()
        elif is_due:
            self._pacer.tick()
            self._tick()

    def _is_over(self) -> bool:
        return (
            self._stopped.is_set()
            or (self._until is not None and self._until.is_set())
            or (self._parent_pid is not None and os.getppid() != self._parent_pid)
        )

    def stop(self) -> None:
        """Let `run` and `step` return soon."""
        self._stopped.set()

    def close(self) -> None:
        """Leave the graph. May be called twice, and always returns."""
        self._stopped.set()
        if not self._context.ok():
            return
        if self._cameras is not None:
            self._cameras.close()
        for robot in self._robots.values():
            robot.close()
        self._spinner.remove_node(self.node)
        self.node.destroy_node()
        self._spinner.shutdown(timeout_sec=NAP_S)
        self._context.try_shutdown()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _answer(self, nap_s: float) -> bool:
        """Answer requests until the next tick is due, at most for a nap. Returns whether it is due."""
        wait_s = nap_s if self.state is not State.PLAYING else min(nap_s, self._pacer.left_s())
        self._spinner.spin_once(timeout_sec=wait_s)
        return self._pacer.left_s() == 0

    def _tick(self) -> None:
        robots = list(self._robots.values())
        for robot in robots:
            robot.obey(self.time_s)
        if self._world is not None:
            advance_together(self._world, [robot.base for robot in robots])
        self._ticks += 1
        now = self._publish_clock()
        for robot in robots:
            robot.publish(self._ticks, now, self._cameras)

    def _publish_clock(self) -> Time:
        now = stamp(self.time_s)
        self._clock_publisher.publish(Clock(clock=now))
        return now

    def _renew_cameras(self) -> None:
        if self._cameras is not None:
            self._cameras.close()
            self._cameras = None
        if self._world is not None and self._world.bodies and self._options.camera_hz > 0:
            self._cameras = RgbdCamera(self._world)

    def _loaded_world(self) -> World:
        if self._world is None:
            raise UserError("there is no world: load one first")
        return self._world

    def _robot_called(self, name: str) -> HostedRobot:
        if name not in self._robots:
            raise UnknownName("robot", name, self._robots)
        return self._robots[name]
