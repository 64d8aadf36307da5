"""The planner as the control loop sees it: a process that is asked and need not be waited for.

`multiprocessing.connection` carries the messages, as bytes: none of them is pickled. Three things it cannot
do. `multiprocessing.Process` imports the caller's main script again and cannot keep what the child printed
last, so `subprocess` starts the process. `multiprocessing.shared_memory` has names that outlive a killed
process, and in Python 3.11 the tracker of each process that opens one removes it, so a map is a file without
a name; as bytes on the connection, one of 2048 x 2048 cells would take twice as long. A connection blocks
while the other side stands still, so two threads read and write it.
"""

from __future__ import annotations

import multiprocessing
import os
import queue
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import suppress
from multiprocessing.connection import Connection
from multiprocessing.connection import wait as wait_for
from typing import IO, cast

import msgspec
import numpy as np

from proctor.core.registry import load
from proctor.core.types import Array
from proctor.kernels.clearance import ClearanceField
from proctor.maps.failure import NavigationFailure, Reason
from proctor.navigation.planner import planner_name, require_package
from proctor.navigation.process.plan import (
    MAX_MESSAGE_BYTES,
    MapLayout,
    PlanAnswer,
    PlanRequest,
    decode_answer,
    encode,
)

ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
"""The planner leaves the other cores to the loop."""


class PlanningClient:
    """Plans in a process of its own, so that no plan ever delays the caller.

    At most one request is under way. A newer one takes its place, and the older one's answer never comes.
    A process that died is replaced at the next request; the process ends with the caller's, also if that
    is killed.
    """

    def __init__(self) -> None:
        self._process: PlannerProcess | None = None
        self._ready = False
        self._last_id = 0
        self._awaited: int | None = None
        self._answer: PlanAnswer | None = None
        self._map: tuple[int, ClearanceField] | None = None  # the version and the map of the last request
        self._map_serial = 0

    def start(self) -> None:
        """Start the process, if it does not run yet. It warms up by itself: see `ready`."""
        self._started()

    @property
    def ready(self) -> bool:
        """Whether the process has compiled what it needs, so that a plan takes no longer than it must."""
        self._receive()
        return self._ready

    @property
    def busy(self) -> bool:
        """Whether a request is under way, or its answer has not been taken."""
        return self._awaited is not None or self._answer is not None

    @property
    def latest_id(self) -> int:
        """The id of the latest request, for those who share the planner; 0 if there was none."""
        return self._last_id

    @property
    def pid(self) -> int | None:
        """The id of the process, if there is one."""
        return None if self._process is None else self._process.pid

    def submit(self, request: PlanRequest, field: ClearanceField | None = None, map_version: int = 0) -> int:
        """Ask for a plan, on a map unless the request brings a path, and return the answer's id.

        The map is sent once per version. Its array must not be written to before the answer. Raises
        UnknownName, MissingDependency if a package is not installed, or UserError if a path is too long.
        """
        if request.path is None:
            planner = planner_name(request.planner)
            require_package(load("planner", planner).package, f"The planner '{planner}'")
        if request.timing == "toppra":
            require_package("toppra", "The timing 'toppra'")
        number, layout = self._last_id + 1, None if field is None else self._layout(field, map_version)
        body = encode(msgspec.structs.replace(request, id=number, map=layout))
        self._started().send(body, self._map_serial, None if field is None else field.cells)
        self._last_id = self._awaited = number
        self._answer = None
        return number

    def poll(self) -> PlanAnswer | None:
        """Return the answer if it has come; never blocks. PLANNER_LOST is the failure of a dead process."""
        self._receive()
        answer, self._answer = self._answer, None
        return answer

    def wait(self, timeout_s: float) -> bool:
        """Block until `poll` will return an answer, and tell whether it will."""
        self._receive_while(lambda: self._awaited is not None, timeout_s)
        return self._answer is not None

    def wait_until_ready(self, timeout_s: float) -> bool:
        """Block until the process is warm, or is found to be dead, and tell whether it is `ready`."""
        self._receive_while(lambda: not self._ready and self._process is not None, timeout_s)
        return self._ready

    def cancel(self) -> None:
        """Give up the request that is under way, if there is one; its answer never comes."""
        if self._awaited is not None and self._process is not None:
            self._process.send(encode(None))
        self._awaited = self._answer = None

    def close(self) -> None:
        """End the process. Closing twice is fine, and so is a request after it: it starts a new one."""
        self._awaited = self._answer = None
        self._drop_process()

    def __enter__(self) -> PlanningClient:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _started(self) -> PlannerProcess:
        self._receive()
        if self._process is None:
            self._process = PlannerProcess()
            self._closing = weakref.finalize(self, self._process.close)  # also when the interpreter ends
        return self._process

    def _layout(self, field: ClearanceField, version: int) -> MapLayout:
        """Return how a map is laid out, with another serial if it differs from the last: by its array."""
        before, last = self._map or (None, None)
        if last is None or before != version or last.cells is not field.cells or last[1:] != field[1:]:
            self._map, self._map_serial = (version, field), self._map_serial + 1
        rows, columns = field.cells.shape
        return MapLayout(self._map_serial, (rows, columns), field[1:])

    def _receive_while(self, waits: Callable[[], bool], timeout_s: float) -> None:
        deadline_s = time.monotonic() + timeout_s
        self._receive()
        while waits() and (left_s := deadline_s - time.monotonic()) > 0:
            self._receive(left_s)

    def _receive(self, timeout_s: float = 0.0) -> None:
        """Take in what has come, after waiting for the first of it, and notice if the process is gone."""
        if self._process is None:
            return
        for message in self._process.received(timeout_s):
            if message is None:
                self._ready = True
            elif isinstance(message, NavigationFailure):
                if self._awaited is not None:
                    self._answer = PlanAnswer(id=self._awaited, failure=message)
                self._awaited = None
                self._drop_process()
            elif message.id == self._awaited:
                self._awaited, self._answer = None, message

    def _drop_process(self) -> None:
        if self._process is not None:
            self._closing()
        self._process, self._ready = None, False


class PlannerProcess:
    """Starts a planning process and talks to it. Only `received` and `close` may block.

    Copying a large map takes longer than a tick of the loop: the thread that writes does it. It is given the
    newest message only, since that one supersedes all others.
    """

    def __init__(self) -> None:
        self._connection, theirs = multiprocessing.Pipe()
        with theirs:
            self._process = subprocess.Popen(  # noqa: S603 - nothing of it comes from outside
                [sys.executable, "-P", "-m", "proctor.navigation.process.worker", str(theirs.fileno())],
                pass_fds=(theirs.fileno(),),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env={**os.environ, **ONE_THREAD, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
                process_group=0,  # so that Ctrl-C is for the loop to handle
            )
        self.pid, self._output = self._process.pid, cast(IO[bytes], self._process.stdout)
        self._fault = ""  # why this side ended the process
        self._said = b""  # what it printed last
        self._inbox: queue.SimpleQueue[PlanAnswer | EOFError | None] = queue.SimpleQueue()
        self._outbox: queue.Queue[tuple[bytes | None, int, Array | None]] = queue.Queue(maxsize=1)
        self._reader = threading.Thread(target=self._read, name="planning-reader", daemon=True)
        self._writer = threading.Thread(target=self._write, name="planning-writer", daemon=True)
        self._reader.start()
        self._writer.start()

    def send(self, body: bytes | None, map_serial: int = 0, cells: Array | None = None) -> None:
        """Send a message, in place of any that still waits to be sent; None ends the thread that sends."""
        with suppress(queue.Empty):
            self._outbox.get_nowait()
        self._outbox.put_nowait((body, map_serial, cells))

    def received(self, timeout_s: float) -> Iterator[PlanAnswer | NavigationFailure | None]:
        """Return what has come: answers, None when it is warm, and at last how the process ended."""
        if self._process.poll() is not None:
            self._reader.join()  # so that what was said last is heard
        with suppress(queue.Empty):
            while True:
                message = self._inbox.get(timeout=timeout_s)
                yield self._loss() if isinstance(message, EOFError) else message
                timeout_s = 0.0

    def close(self) -> None:
        """End the process and leave nothing of it behind. Closing twice is fine."""
        self._process.kill()
        self._process.wait()
        self._reader.join()
        self.send(None)
        self._writer.join()
        self._connection.close()
        self._output.close()

    def _loss(self) -> NavigationFailure:
        """Return how the process ended: its exit code, why we ended it, and what it printed last."""
        code = self._process.wait()
        os.set_blocking(self._output.fileno(), False)
        said = (self._said + (self._output.read() or b""))[-2000:].decode(errors="replace").strip()
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
        why = self._fault or said.rpartition("\n")[2]
        message = f"the planning process {how}" + (f": {why}" if why else "")
        lost = NavigationFailure(Reason.PLANNER_LOST, message)
        if said:
            lost.add_note(f"the planning process said: {said}")
        return lost

    def _read(self) -> None:
        """Take in messages, and what the process prints, until it ends."""
        output = self._output.fileno()
        sources: list[Connection | int] = [self._connection, output]
        try:
            while True:
                for source in wait_for(sources):
                    if source is self._connection:
                        self._inbox.put(decode_answer(self._connection.recv_bytes(MAX_MESSAGE_BYTES)))
                    elif data := os.read(output, 1 << 16):
                        self._said = (self._said + data)[-2000:]
                    else:
                        sources.remove(output)
        except (EOFError, ConnectionError):
            pass  # the process is gone
        except (OSError, ValueError, msgspec.MsgspecError) as error:
            self._fault = f"its answer cannot be read: {error}"
            self._process.kill()
        # Only the caller's thread reaps the process: Popen.poll says "alive" while another thread waits.
        self._inbox.put(EOFError())

    def _write(self) -> None:
        """Send what is put into the outbox, and each map once, until the process is closed or gone."""
        known_serial = 0
        try:
            while True:
                body, map_serial, cells = self._outbox.get()
                if body is None:
                    return
                self._connection.send_bytes(body)
                if cells is not None and map_serial != known_serial:
                    self._send_map(cells)
                    known_serial = map_serial
        except ConnectionError:
            pass  # the process is gone, which the reader tells
        except OSError as error:
            self._fault = f"the map could not be sent to it: {error}"
        finally:
            self._process.kill()  # nobody would send to it

    def _send_map(self, cells: Array) -> None:
        connection = self._connection.fileno()
        with (
            shared_copy(cells) as shared,
            socket.fromfd(connection, socket.AF_UNIX, socket.SOCK_STREAM) as stream,
        ):
            socket.send_fds(stream, [b"m"], [shared.fileno()])


def shared_copy(cells: Array) -> IO[bytes]:
    """Return a file without a name that holds an array, in memory; OSError if that is full."""
    is_linux = hasattr(os, "memfd_create")
    file = os.fdopen(os.memfd_create("map"), "wb") if is_linux else tempfile.TemporaryFile()  # noqa: SIM115
    file.write(np.ascontiguousarray(cells, dtype=float).reshape(-1).view(np.uint8).data)
    file.flush()
    return file
