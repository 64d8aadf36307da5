"""Put into `sitecustomize` of a command: it waits before it registers for a run, until a file is there."""

import os
import time
from pathlib import Path

if "LATE_HELPER" in os.environ:
    from proctor.runs import sharing

    gate, register = Path(os.environ["LATE_HELPER"]), sharing.SharedRun._register

    def register_late(shared):
        gate.with_suffix(".waiting").touch()
        deadline_s = time.monotonic() + 120
        while not gate.exists() and time.monotonic() < deadline_s:
            time.sleep(0.01)
        return register(shared)

    sharing.SharedRun._register = register_late
