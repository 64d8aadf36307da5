"""`proctor sim-host`, or a command like it, as a process of its own, for those who need a robot."""

from __future__ import annotations

import os
import selectors
import subprocess
import sys
import tempfile
import time
from types import TracebackType
from typing import Self

from proctor.core.errors import SimulationError

READY = b"ready"
STOP_S = 5.0
TAIL_CHARACTERS = 2000


class SimHostProcess:
    """Starts the command, and is there when its robots are. Ends it when closed, and it ends when we do.

    Args:
        arguments: Those of the command, such as `"--scene", "house.json", "--start", "1,2,0"`.
        command: What to start: `sim-host`, or another that says `ready` and takes `--parent`.
        timeout_s: How long it may take to start.

    Raises:
        SimulationError: It does not start; says what it has said.
    """

    def __init__(self, *arguments: str, command: str = "sim-host", timeout_s: float = 60.0) -> None:
        line = [sys.executable, "-m", "proctor.cli", command, "--parent", str(os.getpid()), *arguments]
        self._said = ""
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  (lives as long as the process)
        self._process = subprocess.Popen(  # noqa: S603  (our own command)
            line,
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
            raise SimulationError(f"proctor {command} {what}: {self.said() or 'it said nothing'}")

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
        self._errors.seek(max(0, size - TAIL_CHARACTERS))
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

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _hears_ready(self, deadline_s: float) -> bool:
        out, heard = self._process.stdout, b""
        if out is None:
            raise RuntimeError("its output is a pipe")
        with selectors.DefaultSelector() as selector:
            selector.register(out, selectors.EVENT_READ)
            while READY not in heard.splitlines():
                if not selector.select(max(0.0, deadline_s - time.monotonic())):
                    return False
                more = os.read(out.fileno(), 4096)
                if not more:
                    self._process.wait(STOP_S)
                    return False
                heard += more
        return True
