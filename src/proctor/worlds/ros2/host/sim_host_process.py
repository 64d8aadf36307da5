"""A simulator as a process of its own, and the ROS 2 domain that it runs in."""

from __future__ import annotations

import fcntl
import os
import selectors
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Self

import msgspec

from proctor.core.errors import SimulationError
from proctor.worlds.ros2.host.hosted_robot import SimHostOptions

DOMAINS = range(1, 102)  # those whose ports lie below the range that the system hands out
LOCKS = Path(tempfile.gettempdir()) / f"proctor-ros-domains-{os.getuid()}"
STOP_S = 5.0


class Domain:
    """A domain that no other of our processes on this machine has, and that stays on this machine."""

    def __init__(self) -> None:
        LOCKS.mkdir(mode=0o700, exist_ok=True)
        first = os.getpid() % len(DOMAINS)
        for number in [*DOMAINS[first:], *DOMAINS[:first]]:
            lock = (LOCKS / str(number)).open("w")
            if _taken(lock):
                self.number = number
                self._lock = lock
                return
            lock.close()
        raise SimulationError(f"all ROS 2 domains from {DOMAINS[0]} to {DOMAINS[-1]} are in use")

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Nodes and processes that are started within are in this domain, for as long as they live."""
        here = {"ROS_DOMAIN_ID": str(self.number), "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST"}
        before = {name: os.environ.get(name) for name in here}
        os.environ.update(here)
        try:
            yield
        finally:
            for name, value in before.items():
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value

    def close(self) -> None:
        """Let others have it."""
        self._lock.close()


def _taken(lock: IO[str]) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


class ReadyProcess:
    """Starts a module of ours that prints `ready`, and waits for that. `name` is for messages.

    It ends when closed; the module sees to it that it ends with this process, too. SimulationError shows what
    a module printed that does not start within the timeout.
    """

    def __init__(self, name: str, module: str, *arguments: str, timeout_s: float = 60.0) -> None:
        self._said = ""
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  (lives as long as the process)
        self._process = subprocess.Popen(  # noqa: S603  (our own module)
            [sys.executable, "-m", module, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            # Ctrl-C is for us, and we are still to say goodbye to its robots.
            start_new_session=True,
        )
        if not self._hears_ready(time.monotonic() + timeout_s):
            has_ended = not self.is_running
            code = self.close()
            what = f"ended with {code}" if has_ended else f"did not start within {timeout_s:g} s"
            raise SimulationError(f"{name} {what}: {self.said() or 'it said nothing'}")

    @property
    def pid(self) -> int:
        """Of the process."""
        return self._process.pid

    @property
    def is_running(self) -> bool:
        """Whether it has not ended yet."""
        return self._process.poll() is None

    def said(self) -> str:
        """Return the end of what it has written about errors."""
        if self._errors.closed:
            return self._said
        size = self._errors.seek(0, os.SEEK_END)
        self._errors.seek(max(0, size - 2000))
        return self._errors.read().decode(errors="replace").strip()

    def close(self) -> int:
        """End it, and return its exit code. May be called twice."""
        if self.is_running:
            self._process.terminate()
            try:
                self._process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
        code = self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._said = self.said()
        self._errors.close()
        return code

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _hears_ready(self, deadline_s: float) -> bool:
        out, heard = self._process.stdout, b""
        if out is None:
            raise RuntimeError("its output is a pipe")
        with selectors.DefaultSelector() as selector:
            selector.register(out, selectors.EVENT_READ)
            while b"ready" not in heard.splitlines():
                if not selector.select(max(0.0, deadline_s - time.monotonic())):
                    return False
                more = os.read(out.fileno(), 4096)
                if not more:
                    self._process.wait(STOP_S)
                    return False
                heard += more
        return True


class HostTask(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The document that the process of a simulator is given."""

    scene: str | None
    options: SimHostOptions
    parent_pid: int  # it ends with this process


class SimHostProcess(ReadyProcess):
    """A `SimHost` with the services of `simulation_interfaces` in a process of its own."""

    def __init__(self, options: SimHostOptions, scene: Path | None = None) -> None:
        task = HostTask(scene=None if scene is None else str(scene), options=options, parent_pid=os.getpid())
        super().__init__(
            "the simulator", "proctor.worlds.ros2.host.serve", msgspec.json.encode(task).decode()
        )
