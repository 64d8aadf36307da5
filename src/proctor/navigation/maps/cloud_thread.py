"""A thread that works on point clouds, one at a time, while its owner goes on."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Generic, TypeVar

from numpy.typing import NDArray

Result = TypeVar("Result")
Cloud = tuple[NDArray[Any], float]
"""Points, and when they were seen."""


class CloudThread(Generic[Result]):
    """Applies a function to clouds. Of those that come while one is in work, only the newest is kept.

    All methods are for one thread, the owner's; only the function runs in another. It should spend its time
    without Python's global lock.

    Args:
        function: What to make of a cloud.
    """

    def __init__(self, function: Callable[[NDArray[Any]], Result]) -> None:
        self._function = function
        self._executor: ThreadPoolExecutor | None = None
        self._running: tuple[Future[Result], float] | None = None
        self._waiting: Cloud | None = None
        self._closed = False

    def submit(self, points: NDArray[Any], time_s: float) -> None:
        """Hand a cloud over; do not write to it any more.

        Raises:
            ValueError: The thread is closed.
        """
        if self._closed:
            raise ValueError("the thread for point clouds is closed")
        self._waiting = (points, time_s)
        self._begin()

    def poll(self) -> tuple[Result, float] | None:
        """Return a result that is ready and its cloud's time, without waiting.

        Raises what the function raised.
        """
        if self._running is None or not self._running[0].done():
            return None
        (future, time_s), self._running = self._running, None
        self._begin()
        return future.result(), time_s

    def wait(self) -> tuple[Result, float] | None:
        """Return the next result when it is ready, or None if there is no cloud."""
        if self._running is not None:
            self._running[0].exception()
        return self.poll()

    def discard(self) -> None:
        """Forget the clouds that were handed over."""
        self._waiting = None
        if self._running is not None:
            self._running[0].cancel()
            self._running = None

    def close(self) -> None:
        """End the thread. May be called twice."""
        self._closed = True
        self.discard()
        if self._executor is not None:
            self._executor.shutdown()

    def _begin(self) -> None:
        if self._running is None and self._waiting is not None:
            if self._executor is None:
                self._executor = ThreadPoolExecutor(1, "clouds")
            (points, time_s), self._waiting = self._waiting, None
            self._running = self._executor.submit(self._function, points), time_s
