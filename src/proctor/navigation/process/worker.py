"""The process that plans beside a control loop: `python -m proctor.navigation.process.worker FD`.

It reads calls from a socket, answers them there, and ends when the other end is closed. Only this process
imports OMPL, which keeps Python's lock while it works.
"""

from __future__ import annotations

import mmap
import os
import socket
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from types import TracebackType
from typing import NamedTuple, NoReturn, TypeAlias

import numpy as np

from proctor.maps.clearance_field import ClearanceField
from proctor.maps.failure import NavigationFailure
from proctor.navigation.process.pipeline import compute_path, generate_trajectory
from proctor.navigation.process.requests import (
    Answer,
    Call,
    FailureAnswer,
    Frames,
    MapLayout,
    Motion,
    PathAnswer,
    PathCall,
    PathRequest,
    Ready,
    TrajectoryAnswer,
    TrajectoryCall,
    TrajectoryRequest,
    decode_call,
    frame,
)

COMPILING_S = 600.0  # compiling takes half a minute of an idle machine; do not give up meanwhile


class PathJob(NamedTuple):
    """A path to be planned, with its map."""

    id: int
    request: PathRequest
    field: ClearanceField


Job: TypeAlias = PathJob | TrajectoryCall


class Inbox:
    """Reads calls in a thread, also while the process is busy, and keeps the newest.

    When the other end is closed the thread ends the process, whatever it is doing.
    """

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._changed = threading.Condition()
        self._job: Job | None = None
        self._wanted_id = 0
        self._map: tuple[MapLayout, ClearanceField] | None = None
        threading.Thread(target=self._read, name="inbox", daemon=True).start()

    def next_job(self) -> Job:
        """Wait for something to do."""
        with self._changed:
            while self._job is None:
                self._changed.wait()
            job, self._job = self._job, None
            return job

    def gave_up(self, job: Job) -> bool:
        """Tell whether a newer call, or a cancellation, has come."""
        return self._wanted_id != job.id

    def _read(self) -> None:
        frames, descriptors = Frames(), deque[int]()
        while True:
            data, received, _, _ = socket.recv_fds(self._connection, 1 << 18, 4)
            if not data:
                leave(0)
            descriptors.extend(received)
            for body in frames.add(data):
                self._take(decode_call(body), descriptors)

    def _take(self, call: Call, descriptors: deque[int]) -> None:
        job: Job | None = None
        if isinstance(call, PathCall):
            if self._map is None or self._map[0] != call.map:
                self._map = call.map, opened_field(call.map, descriptors.popleft())
            job = PathJob(call.id, call.request, self._map[1])
        elif isinstance(call, TrajectoryCall):
            job = call
        with self._changed:
            self._job, self._wanted_id = job, 0 if job is None else job.id
            self._changed.notify()


def opened_field(layout: MapLayout, descriptor: int) -> ClearanceField:
    """Return the map that is in a file in memory, without copying it; ValueError if the file is too small."""
    shape = (layout.rows, layout.columns)
    try:
        # Mapped for writing as well, though nobody writes: compiled functions take no other arrays.
        memory = mmap.mmap(descriptor, layout.rows * layout.columns * np.dtype(float).itemsize)
    finally:
        os.close(descriptor)
    cells = np.ndarray(shape, dtype=float, buffer=memory)
    return ClearanceField(cells, layout.resolution_m, layout.origin_x, layout.origin_y)


def answer_to(job: Job, cancelled: Callable[[], bool]) -> Answer:
    """Do what is asked."""
    try:
        if isinstance(job, TrajectoryCall):
            began_s = time.perf_counter()
            trajectory = generate_trajectory(job.request)
            return TrajectoryAnswer(job.id, trajectory, time.perf_counter() - began_s)
        return PathAnswer(job.id, compute_path(job.field, job.request, cancelled))
    except NavigationFailure as failure:
        return FailureAnswer(job.id, failure.reason, str(failure))


def warm_up() -> None:
    """Plan around a block in each way there is, so that everything is compiled."""
    resolution_m = 0.05
    rows, columns = np.mgrid[0:60, 0:80]
    beyond_x, beyond_y = np.abs(columns - 40) - 5.0, np.abs(rows - 20) - 15.0
    outside = np.hypot(np.maximum(beyond_x, 0.0), np.maximum(beyond_y, 0.0))
    border = np.minimum.reduce([rows, columns, 59 - rows, 79 - columns])
    cells = resolution_m * np.minimum(np.where(outside > 0, outside, -0.5), border.astype(float))
    field = ClearanceField(np.ascontiguousarray(cells), resolution_m, 0.0, 0.0)
    for yaw, speed_mps in ((1.5, 0.0), (1.5, 0.3), (0.2, 0.2)):  # at rest, along the path, aside of it
        start = Motion(1.0, 0.6, yaw, speed_mps)
        request = PathRequest(start=start, goal_xy=(3.0, 0.6), timeout_s=COMPILING_S)
        path = compute_path(field, request)
        generate_trajectory(TrajectoryRequest(path=path, start=start, goal_yaw=0.5))


def leave(status: int) -> NoReturn:
    """End at once: no thread is waited for, and no library tells what it leaked."""
    sys.stderr.flush()
    os._exit(status)


def end_by_error(
    kind: type[BaseException], error: BaseException | None, trace: TracebackType | None
) -> NoReturn:
    """Say what went wrong, as Python does, and end."""
    sys.__excepthook__(kind, error or kind(), trace)
    leave(1)


def main() -> None:
    """Serve calls from the socket whose descriptor is the first argument."""
    sys.excepthook = end_by_error
    threading.excepthook = lambda args: end_by_error(args.exc_type, args.exc_value, args.exc_traceback)
    connection = socket.socket(fileno=int(sys.argv[1]))
    inbox = Inbox(connection)
    os.nice(5)  # where cores are few, the loop comes first
    warm_up()
    connection.sendall(frame(Ready()))
    while True:
        job = inbox.next_job()
        answer = answer_to(job, cancelled=partial(inbox.gave_up, job))
        if not inbox.gave_up(job):
            connection.sendall(frame(answer))


if __name__ == "__main__":
    main()
