"""The process that plans beside a control loop: `python -m proctor.navigation.process.worker FD`.

It reads requests from a connection, answers them there, and ends when the other end is closed. Only this
process imports OMPL, which keeps Python's lock while it works.
"""

from __future__ import annotations

import math
import mmap
import os
import queue
import socket
import sys
import threading
import traceback
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from multiprocessing.connection import Connection

import numpy as np

from proctor.kernels.clearance import ClearanceField
from proctor.navigation.process.plan import (
    MAX_MESSAGE_BYTES,
    MapLayout,
    PlanRequest,
    decode_request,
    encode,
    plan,
)
from proctor.navigation.warm_up import warm_up_planner


class Worker:
    """Answers the newest request. A thread reads them, also while an older one is worked on."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._requests: queue.SimpleQueue[tuple[PlanRequest, ClearanceField | None]] = queue.SimpleQueue()
        self._wanted_id = 0  # of the newest request; 0 after a cancellation

    def read(self) -> None:
        """Take in requests and their maps until the other end is closed."""
        layout, field = None, None
        while True:
            try:
                request = decode_request(self._connection.recv_bytes(MAX_MESSAGE_BYTES))
                if request is not None and request.map is not None and request.map != layout:
                    layout, field = request.map, received_field(request.map, self._connection)
            except (EOFError, ConnectionError):
                return
            self._wanted_id = 0 if request is None else request.id
            with suppress(queue.Empty):
                self._requests.get_nowait()  # nobody wants the older one, and its map may be large
            if request is not None:
                self._requests.put((request, field))

    def answer(self) -> None:
        """Compile everything, say so, and answer requests for ever."""
        os.nice(5)  # where cores are few, the loop comes first
        warm_up_planner()
        self._connection.send_bytes(encode(None))
        while True:
            request, field = self._requests.get()
            if not self._gave_up(request):
                answer = plan(request, field, cancelled=partial(self._gave_up, request))
                if not self._gave_up(request):
                    self._connection.send_bytes(encode(answer))

    def _gave_up(self, request: PlanRequest) -> bool:
        """Tell whether a newer request, or a cancellation, has come."""
        return self._wanted_id != request.id


def received_field(layout: MapLayout, connection: Connection) -> ClearanceField:
    """Return the map whose file in memory comes next, without copying it; ValueError if it is too small."""
    with socket.fromfd(connection.fileno(), socket.AF_UNIX, socket.SOCK_STREAM) as stream:
        _, descriptors, _, _ = socket.recv_fds(stream, 1, 1)
    if not descriptors:
        raise EOFError
    try:
        # Mapped for writing as well, though nobody writes: compiled functions take no other arrays.
        memory = mmap.mmap(descriptors[0], math.prod(layout.shape) * np.dtype(float).itemsize)
    finally:
        os.close(descriptors[0])
    return ClearanceField(np.ndarray(layout.shape, dtype=float, buffer=memory), *layout.frame)


def end_with(work: Callable[[], None]) -> None:
    """Run one of the two threads, and end the process at once when it ends: no library reports leaks."""
    try:
        work()
    finally:
        failed = sys.exc_info()[0] is not None
        if failed:
            traceback.print_exc()
        sys.stderr.flush()
        os._exit(failed)


if __name__ == "__main__":
    worker = Worker(Connection(int(sys.argv[1])))
    threading.Thread(target=end_with, args=(worker.read,), name="inbox", daemon=True).start()
    end_with(worker.answer)
