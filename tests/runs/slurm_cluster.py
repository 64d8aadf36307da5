"""A real SLURM cluster of two nodes on this machine, for tests: munged, slurmctld and two slurmd, as root.

All of it has a network of its own, so that ports never collide. Each node is a process namespace: when its
first process ends, the kernel kills all others in it, slurmd and jobs alike, as when a machine loses power.
The first processes wait for the end of their stdin, so that nothing outlives the tests, however they end.
"""

import os
import shutil
import socket
import subprocess
import time
from pathlib import Path

DEADLINE_S = 120.0
PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scancel", "unshare", "nsenter", "ip")
PACKAGES = "slurm-wlm munge iproute2"
NODES = ("n1", "n2")
CONF = """\
ClusterName=tests
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={dir}/munge.socket
CredType=cred/munge
StateSaveLocation={dir}/state
SlurmdSpoolDir={dir}/spool/%n
SlurmctldPidFile={dir}/slurmctld.pid
SlurmdPidFile={dir}/slurmd.%n.pid
SlurmctldLogFile={dir}/slurmctld.log
SlurmdLogFile={dir}/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
SlurmdParameters=config_overrides
SchedulerParameters=sched_min_interval=200000
ReturnToService=2
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
Epilog={dir}/epilog
SlurmdTimeout=10
MessageTimeout=5
KillWait=5
NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1 Port=6821 CPUs=1 RealMemory=4000
NodeName=n2 NodeHostname={host} NodeAddr=127.0.0.1 Port=6822 CPUs=1 RealMemory=4000
PartitionName=exam Nodes=n1,n2 Default=YES MaxTime=1:00:00 DefMemPerCPU=2000 State=UP
PartitionName=urgent Nodes=n1,n2 MaxTime=1:00:00 DefMemPerCPU=2000 PriorityTier=2 State=UP
PartitionName=closed Nodes=n1,n2 MaxTime=1:00:00 DefMemPerCPU=2000 State=DOWN
"""


def missing():
    """Say why there can be no cluster here; nothing if there can."""
    if os.geteuid() != 0:
        return "a SLURM cluster of one machine needs root: sudo make slow"
    if lacking := [name for name in PROGRAMS if not shutil.which(name)]:
        return f"{', '.join(lacking)} not found; please run: sudo apt-get install -y {PACKAGES}"
    return ""


class SlurmCluster:
    """The cluster, up and idle. Use as a context manager."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "state").mkdir(parents=True)
        (folder / "spool").mkdir()
        (folder / "slurm.conf").write_text(CONF.format(host=socket.gethostname().split(".")[0], dir=folder))
        self.slow_epilog = folder / "slow"  # while it exists, an ended task stays COMPLETING
        epilog = folder / "epilog"
        epilog.write_text(f"#!/bin/sh\nwhile [ -e {self.slow_epilog} ]; do sleep 0.2; done\n")
        epilog.chmod(0o755)
        (folder / "munge.key").write_bytes(os.urandom(1024))
        (folder / "munge.key").chmod(0o600)
        self.environ = {**os.environ, "SLURM_CONF": str(folder / "slurm.conf")}
        self.network: list[str] = []
        self._nodes: dict[str, subprocess.Popen] = {}

    def __enter__(self):
        script = "ip link set lo up && ip addr add 10.99.0.1/32 dev lo && echo ready && cat"
        words = ["unshare", "--net", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", script]
        self._namespace = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self._namespace.stdout.readline() == b"ready\n"
        own = f"/proc/{self._namespace.pid}/ns"
        self.network = ["nsenter", f"--net={own}/net"]
        self._inside = [*self.network, f"--pid={own}/pid_for_children", f"--mount={own}/mnt"]
        try:
            self._begin()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for name in list(self._nodes):
            self.kill_node(name)
        _end(self._namespace)
        self._namespace.stdout.close()

    def _begin(self):
        files = {"key": "munge.key", "socket": "munge.socket", "pid": "munged.pid", "log": "munged.log"}
        paths = {name: self.folder / file for name, file in files.items()}
        self._start(
            *("munged", "--force", f"--key-file={paths['key']}", f"--socket={paths['socket']}"),
            *(f"--pid-file={paths['pid']}", f"--log-file={paths['log']}"),
            f"--seed-file={self.folder / 'munge.seed'}",
        )
        self.start_controller()
        for name in NODES:
            self.start_node(name)
        self.wait_idle()

    def _start(self, *words):
        subprocess.run([*self._inside, *words], env=self.environ, check=True, timeout=DEADLINE_S)

    def start_controller(self):
        """Start slurmctld and wait until it answers."""
        self._start("slurmctld")
        self.wait_until(lambda: self.call("scontrol", "ping").returncode == 0, "slurmctld answers")

    def stop_controller(self):
        """End slurmctld; the nodes go on."""
        pid = self.folder / "slurmctld.pid"
        self.call("scontrol", "shutdown", "slurmctld")
        self.wait_until(lambda: not pid.exists(), "slurmctld has ended")

    def start_node(self, name):
        """Start a node: slurmd, in a process namespace that ends when stdin does."""
        alone = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
        words = [*self._inside, *alone, "sh", "-c", f"slurmd -N {name} && cat"]
        self._nodes[name] = subprocess.Popen(words, stdin=subprocess.PIPE, env=self.environ)

    def kill_node(self, name):
        """Kill all processes of a node at once."""
        _end(self._nodes.pop(name))

    def restart_node(self, name):
        """Start a node if it was killed."""
        if name not in self._nodes:
            self.start_node(name)

    def wait_idle(self):
        """Wait until no job is left and both nodes could take one."""
        query = ("sinfo", "-h", "-N", "-p", "exam", "-o", "%N %T")
        wanted = [f"{name} idle" for name in NODES]
        self.wait_until(lambda: self.call(*query).stdout.splitlines() == wanted, "all nodes are idle")

    def jobs(self):
        """Return a line for each task that is waiting or running."""
        return self.call("squeue", "-h", "-r", "-o", "%i %T %r %N").stdout.splitlines()

    def running(self):
        """Return the nodes of the tasks that run."""
        return self.call("squeue", "-h", "-r", "-t", "RUNNING", "-o", "%N").stdout.split()

    def call(self, *words):
        """Run a command in the network of the cluster."""
        return subprocess.run(
            [*self.network, *map(str, words)],
            env=self.environ,
            check=False,
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
        )

    def start(self, *words, **options):
        """Start a process in the network of the cluster; signals reach the process itself."""
        return subprocess.Popen([*self.network, *map(str, words)], env=self.environ, text=True, **options)

    def wait_until(self, condition, what):
        """Wait for something that a program of the cluster will do."""
        until_s = time.monotonic() + DEADLINE_S
        while not condition():
            assert time.monotonic() < until_s, f"not in {DEADLINE_S:.0f} s: {what}\n{self.logs()}"
            time.sleep(0.1)

    def logs(self):
        """Return the ends of the daemons' logs."""
        ends = {path.name: path.read_text(errors="replace")[-3000:] for path in self.folder.glob("*.log")}
        return "\n".join(f"--- {name}\n{text}" for name, text in ends.items())


def _end(process):
    process.stdin.close()
    process.wait(DEADLINE_S)
