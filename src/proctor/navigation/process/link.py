"""The control loop's end of one planning process, from its start to its end."""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from typing import NamedTuple

import msgspec
import numpy as np

from proctor.core.types import Array
from proctor.maps.failure import NavigationFailure, Reason
from proctor.navigation.process.requests import Answer, Call, Frames, decode_answer, frame

CHUNK = 1 << 18
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
"""The planner leaves the other cores to the loop."""


class Parcel(NamedTuple):
    """A message to be sent, and the map that it needs."""

    frame: bytes
    map_serial: int  # 0 if no map is needed
    cells: Array | None


class PlanningLink:
    """Starts a planning process and talks to it. Only `wait` and `close` block.

    Copying a large map takes longer than a tick of the loop, and a socket can be full: a thread does both,
    outside of Python's lock. It is given the newest message only, since that one supersedes all others.
    """

    def __init__(self) -> None:
        self._socket, theirs = socket.socketpair()
        self._frames = Frames()
        self._parcel: Parcel | None = None
        self._closed = False
        self._mailbox = threading.Condition()
        self._fault = ""  # why this side ended the process
        self._stderr_tail = b""
        self._stderr, stderr = os.pipe()
        os.set_blocking(self._stderr, False)
        with theirs, os.fdopen(stderr, "wb") as error_pipe:
            self._process = subprocess.Popen(  # noqa: S603 - nothing of it comes from outside
                [sys.executable, "-P", "-m", "proctor.navigation.process.worker", str(theirs.fileno())],
                pass_fds=(theirs.fileno(),),
                stdin=subprocess.DEVNULL,
                stdout=error_pipe,
                stderr=error_pipe,
                env={**os.environ, **ONE_THREAD, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
                process_group=0,  # so that Ctrl-C is for the loop to handle
            )
        self._sender = threading.Thread(target=self._send_newest, name="planning-sender", daemon=True)
        self._sender.start()

    @property
    def pid(self) -> int:
        """The process's id."""
        return self._process.pid

    def send(self, call: Call, *, map_serial: int = 0, cells: Array | None = None) -> None:
        """Send a message, in place of any that still waits to be sent; UserError if it is too long."""
        parcel = Parcel(frame(call), map_serial, cells)
        with self._mailbox:
            self._parcel = parcel
            self._mailbox.notify()

    def receive(self) -> list[Answer]:
        """Return what has come."""
        answers: list[Answer] = []
        try:
            while data := self._socket.recv(CHUNK, socket.MSG_DONTWAIT):
                answers += [decode_answer(body) for body in self._frames.add(data)]
        except (BlockingIOError, ConnectionError):
            pass  # nothing yet, or the process is gone, which `end` tells
        except (ValueError, msgspec.MsgspecError) as error:
            self._fault = f"its answer cannot be read: {error}"
            self._process.kill()
        return answers

    def end(self) -> NavigationFailure | None:
        """Return how the process ended, or None while it lives."""
        self._read_stderr()
        code = self._process.poll()
        if code is None:
            return None
        self._read_stderr()
        said = self._stderr_tail.decode(errors="replace").strip()
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
        why = self._fault or said.rpartition("\n")[2]
        lost = NavigationFailure(
            Reason.PLANNER_LOST, f"the planning process {how}" + (f": {why}" if why else "")
        )
        if said:
            lost.add_note(f"the planning process said: {said}")
        return lost

    def wait(self, timeout_s: float) -> None:
        """Block until something came, the process ended, or the time is over."""
        readable, _, _ = select.select([self._socket], [], [], timeout_s)
        if readable and not self._has_data():
            self._process.wait()  # its end of the socket is closed, so this is a matter of moments

    def close(self) -> None:
        """End the process and leave nothing of it behind."""
        with self._mailbox:
            if self._closed:
                return
            self._closed = True
            self._mailbox.notify()
        self._process.kill()
        self._process.wait()
        self._socket.shutdown(socket.SHUT_RDWR)  # wakes the sender
        self._sender.join()
        self._socket.close()
        os.close(self._stderr)

    def _has_data(self) -> bool:
        try:
            return bool(self._socket.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT))
        except ConnectionError:
            return False

    def _read_stderr(self) -> None:
        try:
            while data := os.read(self._stderr, CHUNK):
                self._stderr_tail = (self._stderr_tail + data)[-2000:]
        except BlockingIOError:
            pass

    def _send_newest(self) -> None:
        """Send what is put into the mailbox, in a thread, until the link is closed."""
        known_serial = 0
        try:
            while (parcel := self._next_parcel()) is not None:
                self._send(parcel, with_map=parcel.map_serial not in (0, known_serial))
                known_serial = parcel.map_serial or known_serial
        except ConnectionError:
            pass  # the process is gone, which `end` tells
        except OSError as error:
            self._fault = f"the map could not be sent to it: {error}"
        finally:
            self._process.kill()  # nobody would send to it

    def _next_parcel(self) -> Parcel | None:
        with self._mailbox:
            self._mailbox.wait_for(lambda: self._closed or self._parcel is not None)
            parcel, self._parcel = self._parcel, None
            return None if self._closed else parcel

    def _send(self, parcel: Parcel, *, with_map: bool) -> None:
        sent = 0
        if with_map and parcel.cells is not None:
            shared = shared_copy(parcel.cells)
            try:
                sent = socket.send_fds(self._socket, [parcel.frame], [shared])
            finally:
                os.close(shared)
        self._socket.sendall(memoryview(parcel.frame)[sent:])


def shared_copy(cells: Array) -> int:
    """Return the descriptor of a file without a name that holds an array; OSError if memory is full."""
    data = np.ascontiguousarray(cells, dtype=float).reshape(-1).view(np.uint8).data
    if hasattr(os, "memfd_create"):
        shared = os.memfd_create("proctor-map")
    else:
        with tempfile.TemporaryFile() as file:
            shared = os.dup(file.fileno())
    try:
        written = 0
        while written < len(data):
            written += os.pwrite(shared, data[written:], written)
    except OSError:
        os.close(shared)
        raise
    return shared
