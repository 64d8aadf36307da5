"""A Ray cluster of several nodes on this machine, for the tests of the executor `ray`.

One cluster at a time: pytest may run the tests in several processes, and a lock file is between them.
"""

import fcntl
import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from served_agents import free_port

START_DEADLINE_S, END_DEADLINE_S = 120.0, 30.0
HEALTH_CHECKS = (
    '{"health_check_initial_delay_ms":1000,"health_check_period_ms":1000,'
    '"health_check_timeout_ms":2000,"health_check_failure_threshold":3}'
)


class RayNodes:
    """Nodes that are started and killed by name. `environ` is what drivers need in order to join."""

    def __init__(self, folder):
        self.folder, self.port = folder, free_port()
        self.address = f"127.0.0.1:{self.port}"
        self.environ = {
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN": secrets.token_hex(32),
            "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_worker_niceness": "0",
        }
        self._nodes = {}

    def start(self, *names, cpus=1, **environ):
        """Start nodes at once, the first one of all as the head, and wait until all of them are up."""
        for name in names:
            self._start(name, cpus, environ)
            if len(self._nodes) == 1:
                self._await("GCS", self._is_listening)
        for name in names:
            self._await(name, lambda name=name: "Ray runtime started" in self._log(name).read_text())

    def _start(self, name, cpus, environ):
        if self._nodes:
            role = [f"--address={self.address}"]
        else:
            role = ["--head", f"--port={self.port}", "--include-dashboard=false", f"--temp-dir={self.folder}"]
            role += [f"--ray-client-server-port={free_port()}", f"--system-config={HEALTH_CHECKS}"]
        ports = ["--min-worker-port=0", "--max-worker-port=0", "--dashboard-agent-listen-port=0"]
        size = [f"--num-cpus={cpus}", "--object-store-memory=80000000", "--disable-usage-stats"]
        command = [sys.executable, "-m", "ray.scripts.scripts", "start", *role, *ports, *size, "--block"]
        with self._log(name).open("wb") as log:
            self._nodes[name] = subprocess.Popen(
                command,
                env={**os.environ, **self.environ, "TEST_NODE": name, **environ},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def kill(self, name):
        """Kill all processes of a node at once, as if its plug was pulled."""
        process = self._nodes.pop(name)
        for pid in [process.pid, *descendants(process.pid)]:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.wait(END_DEADLINE_S)

    def freeze(self, name):
        """Let a node fall silent, as if its cable was pulled; return the processes that stand still."""
        frozen = [self._nodes[name].pid, *descendants(self._nodes[name].pid)]
        for pid in frozen:
            os.kill(pid, signal.SIGSTOP)
        return frozen

    def forget(self, name):
        """Wait for a node that ends by itself."""
        self._nodes.pop(name).wait(END_DEADLINE_S)

    def kill_worker(self, name):
        """Kill the processes of Ray on a node that do episodes; return how many there were."""
        return self._kill_by_command(name, b"ray::EpisodeActor")

    def kill_head_server(self, name):
        """Kill the process that keeps the state of the cluster."""
        assert self._kill_by_command(name, b"gcs_server") == 1

    def _kill_by_command(self, name, words):
        killed = 0
        for pid in descendants(self._nodes[name].pid):
            with suppress(OSError):
                if words in Path(f"/proc/{pid}/cmdline").read_bytes():
                    os.kill(pid, signal.SIGKILL)
                    killed += 1
        return killed

    def stop(self):
        for name in reversed([*self._nodes]):
            self.kill(name)

    def _log(self, name):
        return self.folder / f"{name}.log"

    def _is_listening(self):
        with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1.0):
            return True
        return False

    def _await(self, name, is_up):
        deadline_s = time.monotonic() + START_DEADLINE_S
        while not is_up():
            dead = [name for name, process in self._nodes.items() if process.poll() is not None]
            if dead or time.monotonic() > deadline_s:
                raise AssertionError(f"{name} is not up: {[self._log(name).read_text() for name in dead]}")
            time.sleep(0.05)


def descendants(pid):
    """Return all processes below one, of those that are alive now."""
    children = {}
    for entry in Path("/proc").iterdir():
        with suppress(OSError, ValueError, IndexError):
            parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            children.setdefault(parent, []).append(int(entry.name))
    found, waiting = [], [pid]
    while waiting:
        below = children.get(waiting.pop(), [])
        found += below
        waiting += below
    return found


def processes_of(folder):
    """Return the processes that have a folder in their command line or their environment."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            words = (entry / "cmdline").read_bytes() + (entry / "environ").read_bytes()
            if str(folder).encode() in words and int(entry.name) != os.getpid():
                found.append(int(entry.name))
    return found


@contextmanager
def one_cluster_at_a_time(folder):
    """Wait for the other processes of this test run to end their clusters."""
    with (folder / "ray.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextmanager
def ray_nodes(tmp_path_factory):
    """Yield a cluster without nodes."""
    base = tmp_path_factory.getbasetemp()
    is_worker = "PYTEST_XDIST_WORKER" in os.environ
    with ExitStack() as stack:
        stack.enter_context(one_cluster_at_a_time(base.parent if is_worker else base))
        # Short, as the paths of sockets have at most 107 characters.
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ray-test-", dir="/tmp")))
        nodes = RayNodes(folder)
        stack.callback(nodes.stop)
        yield nodes
