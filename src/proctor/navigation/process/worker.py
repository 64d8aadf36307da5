"""The process that plans beside a control loop: `python -m proctor.navigation.process.worker FD`.

It reads requests from a connection, answers them there, and ends when the other end is closed. Only this
process imports OMPL, which keeps Python's lock while it works.
"""

from __future__ import annotations

import mmap
import os
import socket
import sys
import threading
from functools import partial
from multiprocessing.connection import Connection
from types import TracebackType
from typing import NoReturn

import numpy as np

from proctor.kernels.clearance import ClearanceField
from proctor.navigation.process.pipeline import plan
from proctor.navigation.process.requests import (
    MAX_MESSAGE_BYTES,
    MapLayout,
    PlanRequest,
    decode_request,
    encode,
)
from proctor.navigation.warm_up import warm_up_planner


class Inbox:
    """Reads requests in a thread, also while the process is busy, and keeps the newest.

    When the other end is closed the thread ends the process, whatever it is doing.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._changed = threading.Condition()
        self._request: PlanRequest | None = None
        self._wanted_id = 0
        self._map: tuple[MapLayout, ClearanceField] | None = None
        threading.Thread(target=self._read, name="inbox", daemon=True).start()

    def next_request(self) -> tuple[PlanRequest, ClearanceField | None]:
        """Wait for something to do, and return it with its map."""
        with self._changed:
            while self._request is None:
                self._changed.wait()
            request, self._request = self._request, None
            return request, None if self._map is None else self._map[1]

    def gave_up(self, request: PlanRequest) -> bool:
        """Tell whether a newer request, or a cancellation, has come."""
        return self._wanted_id != request.id

    def _read(self) -> None:
        try:
            while True:
                self._take(decode_request(self._connection.recv_bytes(MAX_MESSAGE_BYTES)))
        except (EOFError, ConnectionError):
            leave(0)

    def _take(self, request: PlanRequest | None) -> None:
        layout, map_ = None if request is None else request.map, self._map
        if layout is not None and (map_ is None or map_[0] != layout):
            map_ = layout, received_field(layout, self._connection)
        with self._changed:
            self._request, self._wanted_id = request, 0 if request is None else request.id
            self._map = map_
            self._changed.notify()


def received_field(layout: MapLayout, connection: Connection) -> ClearanceField:
    """Return the map whose file in memory comes next, without copying it; ValueError if it is too small."""
    with socket.fromfd(connection.fileno(), socket.AF_UNIX, socket.SOCK_STREAM) as stream:
        _, descriptors, _, _ = socket.recv_fds(stream, 1, 1)
    if not descriptors:
        raise EOFError
    try:
        # Mapped for writing as well, though nobody writes: compiled functions take no other arrays.
        memory = mmap.mmap(descriptors[0], layout.rows * layout.columns * np.dtype(float).itemsize)
    finally:
        os.close(descriptors[0])
    cells = np.ndarray((layout.rows, layout.columns), dtype=float, buffer=memory)
    return ClearanceField(cells, layout.resolution_m, layout.origin_x, layout.origin_y)


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
    """Serve requests from the connection whose descriptor is the first argument."""
    sys.excepthook = end_by_error
    threading.excepthook = lambda args: end_by_error(args.exc_type, args.exc_value, args.exc_traceback)
    connection = Connection(int(sys.argv[1]))
    inbox = Inbox(connection)
    os.nice(5)  # where cores are few, the loop comes first
    warm_up_planner()
    connection.send_bytes(encode(None))
    while True:
        request, field = inbox.next_request()
        answer = plan(request, field, cancelled=partial(inbox.gave_up, request))
        if not inbox.gave_up(request):
            connection.send_bytes(encode(answer))


if __name__ == "__main__":
    main()
