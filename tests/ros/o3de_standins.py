"""An Editor without the engine, as a process, and where to find it."""

from contextlib import contextmanager

import pytest
from commands import command
from served_agents import free_port

FAST = {"linear_speed": 0.5, "angular_speed": 1.5, "timeout_s": 15.0}
"""For tests of what is not about speed."""


@contextmanager
def standin(project, *options, rtf="4"):
    """Start one, of a speed at which messages still are in time, and yield the process.

    Within, O3DE_AGENT_PORT and O3DE_AGENT_TOKEN lead to it.
    """
    port = free_port()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("O3DE_AGENT_PORT", str(port))
        patch.setenv("O3DE_AGENT_TOKEN", "as-only-this-test-knows")
        words = ("--project", str(project), "--port", str(port), "--rtf", rtf, "--size", "64x48")
        with command("o3de-standin", *words, *options) as process:
            yield process
