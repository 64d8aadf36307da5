"""A ROS 2 node that lives on its own: its context, and a thread that runs its callbacks; QoS profiles."""

from __future__ import annotations

import atexit
import os
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import rclpy
from rclpy.context import Context
from rclpy.exceptions import InvalidHandle, NameValidationException
from rclpy.executors import Executor, ExternalShutdownException, SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile, ReliabilityPolicy

from proctor.core.errors import SimulationError, UserError

PROFILE_VARIABLES = ("FASTRTPS_DEFAULT_PROFILES_FILE", "FASTDDS_DEFAULT_PROFILES_FILE")
"""The names in Fast DDS 2 and 3."""
PROFILE_FILE = Path(__file__).with_name("fastdds.xml")
LAST_DOMAIN = 232  # those above have no ports; Fast DDS ends the process then, without a word to Python
JOIN_S = 5.0


def sensor_qos(reliability: str, durability: str, depth: int) -> QoSProfile:
    """Return a profile that keeps the last messages, by ROS 2's names: `BEST_EFFORT`, `VOLATILE`."""
    return QoSProfile(
        reliability=ReliabilityPolicy[reliability],
        durability=DurabilityPolicy[durability],
        history=HistoryPolicy.KEEP_LAST,
        depth=depth,
    )


SENSORS = sensor_qos("BEST_EFFORT", "VOLATILE", 10)
"""What simulators and drivers publish sensors with. A reader like this hears reliable writers, too."""
COMMANDS = sensor_qos("RELIABLE", "VOLATILE", 10)
CLOCK = sensor_qos("BEST_EFFORT", "VOLATILE", 1)
LATCHED = sensor_qos("RELIABLE", "TRANSIENT_LOCAL", 1)
"""For maps and static transforms: late subscribers still get the last one."""


def use_profile() -> None:
    """Let Fast DDS read our profile, unless the user has one. Comes before the process's first context."""
    if not any(os.environ.get(variable) for variable in PROFILE_VARIABLES):
        os.environ.update(dict.fromkeys(PROFILE_VARIABLES, str(PROFILE_FILE)))


def open_context(ros_args: Sequence[str] = ()) -> Context:
    """Return a new context, so that one process can open and close any number of them."""
    domain = os.environ.get("ROS_DOMAIN_ID", "")
    if domain and not (domain.isdecimal() and int(domain) <= LAST_DOMAIN):
        raise UserError(f"ROS_DOMAIN_ID: expected a number from 0 to {LAST_DOMAIN}, found '{domain}'")
    use_profile()
    context = Context()
    try:
        rclpy.init(args=["--ros-args", *ros_args] if ros_args else [], context=context)
    except RuntimeError as error:
        if not ros_args:
            raise
        raise UserError(f"ROS 2 does not take --ros-args {' '.join(ros_args)}: {error}") from None
    return context


class RosNode(Node):
    """A node with a context of its own, so that one process can open and close any number of them.

    Callbacks run one after the other in a thread of the node's; whoever waits for what they bring calls
    `wait_until`. The domain is that of the environment variable ROS_DOMAIN_ID. Topics are below the
    namespace: `robot_0` makes `rgb` to `/robot_0/rgb`. `ros_args` is what follows `--ros-args`, such as `-r`,
    `rgb:=/camera/image`. Without `starts`, callbacks run from `start` on, when everything they need exists.
    """

    def __init__(
        self, name: str, *, namespace: str = "", ros_args: Sequence[str] = (), starts: bool = True
    ) -> None:
        self._own_context = own = open_context(ros_args)
        try:
            super().__init__(
                name, namespace=namespace, context=own, start_parameter_services=False, enable_rosout=False
            )
        except (NameValidationException, RuntimeError) as error:  # the latter for names in ros_args
            own.try_shutdown()
            raise UserError(f"ROS 2 does not take the name: {error}") from None
        self._news = threading.Condition()
        self._closing, self._deaf = False, False
        self._visited: Executor | None = None  # of the user's, waits for a callback of this node
        self._spinner = SingleThreadedExecutor(context=self._own_context)
        self._spinner.add_node(self)
        self._thread = threading.Thread(target=self._spin, name=name, daemon=True)
        if starts:
            self.start()

    def start(self) -> None:
        """Let callbacks run."""
        self._thread.start()
        # A thread that is in the middle of C++ when Python ends takes the process down.
        atexit.register(self.close)

    def wait_until(self, happened: Callable[[], bool], timeout_s: float) -> bool:
        """Wait until a condition holds, checked after each callback; return whether it holds.

        SimulationError: the node was closed, or one of its callbacks failed.
        """
        if threading.current_thread() is self._thread:
            raise RuntimeError("a callback that waits for callbacks would wait for ever")
        deadline_s = time.monotonic() + timeout_s
        with self._news:
            while not happened():
                if self._deaf or self._closing:
                    raise SimulationError(f"the ROS 2 node {self._thread.name} no longer listens")
                left_s = deadline_s - time.monotonic()
                if left_s <= 0 or not self._news.wait(left_s):
                    return happened()
            return True

    @property
    def is_listening(self) -> bool:
        """Whether callbacks still run: not after `close`, nor after one has failed."""
        return not (self._deaf or self._closing)

    @property
    def executor(self) -> Any:
        """What runs the callbacks. `rclpy.spin_once(node)` and its like leave it so, and wait for one."""
        return Node.executor.fget(self)

    @executor.setter
    def executor(self, wanted: Executor | None) -> None:
        if wanted is None or wanted is self._spinner:
            Node.executor.fset(self, wanted)
        else:  # it would take the node from its own thread, and leave it deaf
            wanted.remove_node(self)
            self._visited = wanted

    def destroy_node(self) -> None:
        """Do the same as `close`, for those who end their nodes as is usual in ROS 2."""
        if self._closing:
            super().destroy_node()
        else:
            self.close()

    def close(self) -> None:
        """Leave the graph. May be called twice, and always returns."""
        if self._closing:
            return
        self._closing = True
        atexit.unregister(self.close)
        self._spinner.wake()
        if self._thread.ident is not None:
            self._thread.join(JOIN_S)
        self._spinner.remove_node(self)
        self.destroy_node()
        self._spinner.shutdown(timeout_sec=JOIN_S)
        self._own_context.try_shutdown()
        with self._news:
            self._news.notify_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _spin(self) -> None:
        try:
            while not self._closing:
                # Publishers and subscribers change without a message.
                self._spinner.spin_once(timeout_sec=0.1)
                visited, self._visited = self._visited, None
                if visited is not None:
                    with suppress(AttributeError, InvalidHandle):  # rclpy.shutdown has ended it meanwhile
                        visited.create_task(_nothing)
                with self._news:
                    self._news.notify_all()
        except ExternalShutdownException:
            pass  # the process ends
        except RuntimeError:  # rclpy's, if the process ends between its look at the context and its use
            if self._own_context.ok():
                raise
        finally:  # also when a callback has raised: nobody is to wait for the rest of the time
            self._deaf = True
            with self._news:
                self._news.notify_all()


def _nothing() -> None:
    """Give an executor that waits something to do."""
