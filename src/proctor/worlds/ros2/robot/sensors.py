"""What a robot on ROS 2 senses, as an observation."""

from __future__ import annotations

import math
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from rclpy.qos import QoSProfile
from sensor_msgs.msg import Image, LaserScan

from proctor.core.errors import SimulationError
from proctor.core.types import Observation, Scan
from proctor.robots.motion import clearance_ahead_m
from proctor.worlds.ros2.node.convert import depth_of, rgb_of, scan_of, seconds
from proctor.worlds.ros2.node.node import SENSORS, RosNode
from proctor.worlds.ros2.node.topic import JUMP_S, RobotClock, Stamped, Topic

Value = TypeVar("Value")
Other = TypeVar("Other")

TOLERANCE_S = 0.02  # pictures of a robot that stamps them apart belong together if it is by no more than this
SENSOR_NAMES = ("rgb", "depth", "scan")


def newest_pair(
    ones: Sequence[Stamped[Value]], others: Sequence[Stamped[Other]], after_s: float
) -> tuple[Stamped[Value], Stamped[Other]] | None:
    """Return the newest pair of frames taken after a time, None if none yet. Both are in order of stamps.

    Frames of the same stamp are a pair. Frames that are a little apart are one as soon as neither can get a
    better partner, since the stamps of each kind rise.
    """
    ones = [frame for frame in ones if frame.stamp_s > after_s]
    others = [frame for frame in others if frame.stamp_s > after_s]
    if not ones or not others:
        return None
    complete_s = min(ones[-1].stamp_s, others[-1].stamp_s)  # up to here, all is there that will be
    for one in reversed(ones):
        other = min(others, key=lambda frame: abs(frame.stamp_s - one.stamp_s))
        apart_s = abs(other.stamp_s - one.stamp_s)
        if apart_s == 0 or (apart_s <= TOLERANCE_S and max(one.stamp_s, other.stamp_s) <= complete_s):
            return one, other
    return None


class SensorSubscriber:
    """Listens to `rgb`, `depth` and `scan` and returns what belongs together.

    Pictures of one stamp make an observation. What was sensed before the last action ended never does, nor
    what a simulator sent before its time was set back. `sensors` is what an observation holds: some of rgb,
    depth, scan. A range below `collision_threshold_m` within 30° of straight ahead is a collision:
    `collision_detected` stays True until it is set to False, and `collision_count` counts an obstacle once as
    long as it stays near. For `depth_far_m` see `depth_of`. `namespace` and `ros_args` are for a node that is
    made here.
    """

    def __init__(  # noqa: PLR0913  (all but one are named)
        self,
        qos_profile: QoSProfile | None = None,
        *,
        namespace: str = "",
        node: RosNode | None = None,
        clock: RobotClock | None = None,
        sensors: Sequence[str] = ("rgb", "depth"),
        collision_threshold_m: float = 0.3,
        depth_far_m: float | None = None,
        ros_args: Sequence[str] = (),
    ) -> None:
        if not sensors or not set(sensors) <= set(SENSOR_NAMES):
            raise ValueError(f"sensors are some of {', '.join(SENSOR_NAMES)}, found {list(sensors)}")
        if not collision_threshold_m >= 0 or (depth_far_m is not None and not depth_far_m > 0):
            raise ValueError(
                "collision_threshold_m is at least 0 and depth_far_m above 0, found "
                f"{collision_threshold_m} and {depth_far_m}"
            )
        if node is not None and (namespace or ros_args):
            raise ValueError("namespace and ros_args are for a node that is made here: give them to the node")
        self._sensors = tuple(name for name in SENSOR_NAMES if name in sensors)
        self._collision_threshold_m = collision_threshold_m
        self._owns_node = node is None
        self.node = node or RosNode("sensor_subscriber", namespace=namespace, ros_args=ros_args)
        self._clock = clock or RobotClock(self.node)
        self._lock = threading.RLock()
        self._jumps, self._after_s = self._clock.jumps, -math.inf
        # Those that may still find their partner.
        self._frames: dict[str, deque[Stamped[Any]]] = {name: deque(maxlen=10) for name in SENSOR_NAMES}
        self.collision_detected, self.collision_count, self._is_near = False, 0, False
        kinds: dict[str, tuple[Any, Callable[[Any], Any]]] = {
            "rgb": (Image, rgb_of),
            "depth": (Image, lambda message: depth_of(message, depth_far_m)),
            "scan": (LaserScan, scan_of),
        }
        self._topics = {
            name: self._topic(name, *kinds[name], qos_profile or SENSORS)
            for name in SENSOR_NAMES
            if name in sensors or name == "scan"  # which also shows collisions
        }

    @property
    def rgb_sub(self) -> Any:
        """The subscription of rclpy to `rgb`, None if it is not among the sensors."""
        return self._subscription("rgb")

    @property
    def depth_sub(self) -> Any:
        """The subscription of rclpy to `depth`, None if it is not among the sensors."""
        return self._subscription("depth")

    @property
    def scan_sub(self) -> Any:
        """The subscription of rclpy to `scan`."""
        return self._subscription("scan")

    @property
    def latest_rgb(self) -> Any:
        """The newest colour picture, uint8 (H, W, 3), or None."""
        return self._latest("rgb")

    @property
    def latest_depth(self) -> Any:
        """The newest depth picture, uint16 millimetres (H, W), or None."""
        return self._latest("depth")

    def rgb_callback(self, msg: Any) -> None:
        """Take a sensor_msgs/Image in as colour, as the subscription does."""
        self._topics["rgb"].hear(msg)

    def depth_callback(self, msg: Any) -> None:
        """Take a sensor_msgs/Image in as depth, as the subscription does."""
        self._topics["depth"].hear(msg)

    def scan_callback(self, msg: Any) -> None:
        """Take a sensor_msgs/LaserScan in, as the subscription does."""
        self._topics["scan"].hear(msg)

    def mark_action(self, stamp_s: float) -> None:
        """Let only what is sensed after this moment of the robot's time count: an action ended then."""
        with self._lock:
            self._notice_jump()
            self._after_s = stamp_s

    def reset(self) -> None:
        """Forget all that was sensed: another episode begins."""
        with self._lock:
            self._notice_jump()
            self._forget()
            self.collision_detected, self.collision_count, self._is_near = False, 0, False

    def get_observation(self, timeout_s: float = 5.0) -> Observation:
        """Return what is sensed after the last action.

        `rgb` is uint8 (H, W, 3), `depth` uint16 millimetres (H, W), and `scan` a `Scan`. The timeout is real
        time; the SimulationError after it says which topic is silent, and why.
        """
        found: Observation | None = None

        def is_there() -> bool:
            nonlocal found
            found = self._observation()
            return found is not None

        if not self.node.wait_until(is_there, timeout_s) or found is None:
            raise SimulationError(f"no new observation within {timeout_s:g} s: {self._reasons()}")
        return found

    def close(self) -> None:
        """Stop listening, if the node is this one's own. May be called twice."""
        if self._owns_node:
            self.node.close()

    def _topic(
        self, name: str, message_type: Any, decode: Callable[[Any], Any], qos: QoSProfile
    ) -> Topic[Any]:
        def read(message: Any) -> tuple[float, Any]:
            stamp_s = seconds(message.header.stamp)
            if self._clock.is_simulated and stamp_s > self._clock.now_s + JUMP_S:
                # Sent before the simulator's time was set back, or by a driver that goes by another clock.
                raise ValueError(
                    f"a message is stamped {stamp_s:.3f} s, but /clock is at {self._clock.now_s:.3f} s"
                )
            value = decode(message)
            self._keep(name, Stamped(stamp_s, value))
            return stamp_s, value

        return Topic(self.node, message_type, name, read, qos=qos)

    def _keep(self, name: str, frame: Stamped[Any]) -> None:
        with self._lock:
            self._notice_jump()
            frames = self._frames[name]
            went_back = bool(frames) and frame.stamp_s < frames[-1].stamp_s - JUMP_S
            if went_back and not self._clock.is_simulated:  # else the clock will tell
                self._forget()
            if frames and frame.stamp_s == frames[-1].stamp_s:
                frames.pop()  # a robot that never sets its stamps still shows what it sees now
            if not frames or frame.stamp_s > frames[-1].stamp_s:
                frames.append(frame)
            if name == "scan":
                self._watch(frame.value)

    def _watch(self, scan: Scan) -> None:
        was_near, self._is_near = self._is_near, clearance_ahead_m(scan) < self._collision_threshold_m
        if self._is_near and not was_near:
            self.collision_detected = True
            self.collision_count += 1

    def _notice_jump(self) -> None:
        if self._clock.jumps != self._jumps:
            self._jumps = self._clock.jumps
            self._forget()

    def _forget(self) -> None:
        self._after_s = -math.inf
        for frames in self._frames.values():
            frames.clear()

    def _observation(self) -> Observation | None:
        with self._lock:
            self._notice_jump()
            newest = {name: self._newest(name) for name in self._sensors}
            if None in newest.values():
                return None
            if "rgb" in newest and "depth" in newest:
                pair = newest_pair(self._frames["rgb"], self._frames["depth"], self._after_s)
                if pair is None:
                    return None
                newest["rgb"], newest["depth"] = pair
            return {name: frame.value for name, frame in newest.items() if frame is not None}

    def _subscription(self, name: str) -> Any:
        return self._topics[name].subscription if name in self._topics else None

    def _latest(self, name: str) -> Any:
        with self._lock:
            return self._frames[name][-1].value if self._frames[name] else None

    def _newest(self, name: str) -> Stamped[Any] | None:
        frames = self._frames[name]
        return frames[-1] if frames and frames[-1].stamp_s > self._after_s else None

    def _reasons(self) -> str:
        with self._lock:
            lacking = [name for name in self._sensors if self._newest(name) is None]
            last_s = {name: self._frames[name][-1].stamp_s for name in SENSOR_NAMES if self._frames[name]}
            after_s = self._after_s
        if not lacking:
            stamps = " and ".join(
                f"{self._topics[name].name} of {last_s[name]:.3f} s" for name in ("rgb", "depth")
            )
            return f"{stamps} do not belong together: their stamps are never within {TOLERANCE_S} s"
        reasons = []
        for name in lacking:
            reason = self._topics[name].diagnosis()
            if name in last_s:
                reason += f"; its newest is of {last_s[name]:.3f} s, expected one after {after_s:.3f} s"
            reasons.append(reason)
        return "; ".join(reasons)
