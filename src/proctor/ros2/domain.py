"""ROS 2 domains: nodes of different ones do not hear each other."""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from proctor.core.errors import SimulationError

DOMAINS = range(1, 102)
"""Those whose ports lie below the range that the system hands out."""
LOCKS = Path(tempfile.gettempdir()) / f"proctor-ros-domains-{os.getuid()}"


class Domain:
    """A domain that no other of our processes on this machine has, and that stays on this machine.

    Raises:
        SimulationError: All of them are taken.
    """

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
        here = {
            "ROS_DOMAIN_ID": str(self.number),
            "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST",
        }
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
