"""What a `SimHostProcess` runs: a simulator by the options of one JSON document, its only argument."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import msgspec

from proctor.core.errors import ProctorError
from proctor.worlds.ros2.host.sim_host import SimHost
from proctor.worlds.ros2.host.sim_host_process import HostTask
from proctor.worlds.ros2.host.simulation_services import SimulationServices


def main(document: str) -> int:
    """Print `ready`, and simulate until a signal comes or the parent has ended; return the exit code."""
    task = msgspec.json.decode(document, type=HostTask)
    try:
        with SimHost(None if task.scene is None else Path(task.scene), task.options) as host:
            SimulationServices(host)
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, lambda *_: host.stop())
            sys.stdout.write("ready\n")
            sys.stdout.flush()
            host.run(parent_pid=task.parent_pid)
    except ProctorError as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
