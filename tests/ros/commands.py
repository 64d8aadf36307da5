"""Commands of `proctor` that print `ready`, as processes."""

import os

from proctor.worlds.ros2.host.sim_host_process import ReadyProcess


def command(name, *arguments):
    """Start `proctor NAME ARGUMENTS`, which ends with this process, and wait until it is ready."""
    return ReadyProcess(f"proctor {name}", "proctor.cli", name, "--parent", str(os.getpid()), *arguments)
