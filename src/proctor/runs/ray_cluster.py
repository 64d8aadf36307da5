"""A Ray cluster: joining or starting one, its nodes, and actors on them. The only module that imports Ray."""

from __future__ import annotations

import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import msgspec

from proctor.core.errors import UserError
from proctor.runs.ray_actor import EpisodeActor

# Ray reads these when it is imported or started. What a user has set stays.
for _name, _value in {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_DEDUP_LOGS_SKIP_REGEX": "^",  # else some 25 lines of "(raylet)" are printed for each lost node
    "RAY_worker_niceness": "0",  # else 15: workers starve beside anything else
}.items():
    os.environ.setdefault(_name, _value)
TOKEN_FILE = Path(os.environ.get("RAY_AUTH_TOKEN_PATH") or Path.home() / ".ray" / "auth_token")
if "RAY_AUTH_TOKEN" in os.environ or TOKEN_FILE.is_file():
    # Else Ray does not send the token. A cluster without authentication accepts it as well.
    os.environ.setdefault("RAY_AUTH_MODE", "token")

import ray  # noqa: E402
from ray.exceptions import RayError, RayTaskError  # noqa: E402
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy  # noqa: E402

REACH_TIMEOUT_S = 5.0
JOIN_TIMEOUT_S = 30.0
GET_TIMEOUT_S = 60.0
HEAD_PATIENCE_S = 30.0  # a head that keeps its state elsewhere may be restarted
OBJECT_STORE_BYTES = 200 * 2**20
"""Of a Ray of our own. A trace has some 100 kB, and those that do not fit are written to the disk."""
LONGEST_TEMP_DIR = 40  # Ray adds up to 60 characters, and the path of a socket has at most 107
QUIET: dict[str, Any] = {"logging_level": "ERROR", "log_to_driver": False}
TRY_TO_JOIN = "import sys, ray; ray.init(sys.argv[1], logging_level='ERROR', log_to_driver=False)"


class RayOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of the executor `ray`."""

    address: str = ""
    """HOST:PORT of the cluster's head, or `auto` for the one that this machine is a node of. If it is empty,
    that of the variable RAY_ADDRESS, else a Ray is started here for the time of the run."""
    cpus_per_worker: float = 1.0
    gpus_per_worker: float = 0.0
    memory_gb_per_worker: float = 0.0
    """What each worker reserves. Ray places workers by these numbers, and does not enforce them."""
    start_timeout_s: float = 300.0
    """How long to wait for the first worker, and later, when all nodes are gone, for another node."""

    def check(self) -> None:
        """Raise a UserError if a number is out of range."""
        for name in ("cpus_per_worker", "start_timeout_s"):
            if not getattr(self, name) > 0:
                raise UserError(
                    f"executor-option {name}: expected a number above 0, found {getattr(self, name)}"
                )
        for name in ("gpus_per_worker", "memory_gb_per_worker"):
            if not getattr(self, name) >= 0:
                raise UserError(
                    f"executor-option {name}: expected a number from 0 up, found {getattr(self, name)}"
                )


class Node(NamedTuple):
    """A node that is alive."""

    id: str
    address: str
    hostname: str
    places: int  # how many workers it has room for, if nobody else uses it
    free: int  # how many it has room for now. Workers that have just ended may still be taken into account

    def __str__(self) -> str:
        return f"node {self.address} ({self.hostname})"


class Lost(Exception):
    """An actor or its node is gone."""


class NotImportable(Exception):
    """A node cannot import the actor: it has no Proctor, or one without this module."""


class RayCluster:
    """The connection to a cluster. Ray has one per process."""

    def __init__(self, options: RayOptions) -> None:
        options.check()
        self._options = options
        self._address = options.address
        if options.address in ("", "auto"):  # for Ray, too, `auto` is this variable if it is set
            self._address = os.environ.get("RAY_ADDRESS") or options.address
        if "://" in self._address:
            raise UserError(
                "executor-option address or RAY_ADDRESS: expected HOST:PORT or auto, found "
                f"'{self._address}'; run Proctor on a node of the cluster: Ray's client (ray://) is "
                "not supported"
            )
        self._is_joined = False
        self._temp_dir: Path | None = None
        self._head_silent_since_s: float | None = None

    @property
    def is_ours(self) -> bool:
        """Whether it was started here, for this run."""
        return self._temp_dir is not None

    @property
    def label(self) -> str:
        """What to call it."""
        return "the local Ray" if self.is_ours else f"the Ray cluster at {self._address or 'this machine'}"

    def join(self) -> None:
        """Join the cluster, or start one here. What the program has joined already is used."""
        if ray.is_initialized():
            return
        self._is_joined = True
        if self._address in ("", "local"):
            self._start_here()
        else:
            self._check_reachable()
            self._init(self._address)

    def leave(self) -> None:
        """End what `join` has begun: the connection, or a Ray of our own."""
        if self._is_joined:
            with _our_sigterm():
                ray.shutdown()
        if self._temp_dir is not None:
            shutil.rmtree(self._temp_dir, ignore_errors=True)
        self._is_joined, self._temp_dir = False, None

    def nodes(self) -> list[Node] | None:
        """Return the nodes that are alive; None while the head does not answer. A UserError if that lasts.

        Ray itself would wait for its head for a minute, and then end this process.
        """
        now_s = time.monotonic()
        host, _, port = ray.get_runtime_context().gcs_address.rpartition(":")
        try:
            socket.create_connection((host.strip("[]"), int(port)), REACH_TIMEOUT_S).close()
        except OSError as error:
            self._head_silent_since_s = self._head_silent_since_s or now_s
            if now_s - self._head_silent_since_s < HEAD_PATIENCE_S:
                return None
            raise UserError(
                f"{self.label}: its head has not answered for {HEAD_PATIENCE_S:g} s ({error}). What is done "
                "is kept: the same command goes on"
            ) from None
        self._head_silent_since_s = None
        free = ray._private.state.available_resources_per_node()  # noqa: SLF001  (the public ones sum them up)
        return [
            Node(
                id=node["NodeID"],
                address=node["NodeManagerAddress"],
                hostname=node["NodeManagerHostname"],
                places=self._places(node["Resources"]),
                free=self._places(free.get(node["NodeID"], node["Resources"])),
            )
            for node in ray.nodes()
            if node["Alive"]
        ]

    def no_room(self, nodes: int) -> str:
        """Say what a worker needs that none of the nodes has."""
        options = self._options
        needs = f"{options.cpus_per_worker:g} CPUs"
        needs += f", {options.gpus_per_worker:g} GPUs" if options.gpus_per_worker else ""
        needs += f", {options.memory_gb_per_worker:g} GB" if options.memory_gb_per_worker else ""
        return (
            f"{self.label}: a worker needs {needs}, and none of its {nodes} nodes has "
            "that; `ray status` tells what they have"
        )

    def own_address(self) -> str:
        """Return the address of this machine in the cluster."""
        return str(ray.util.get_node_ip_address())

    def hire(self, node: Node) -> Any:
        """Place an actor on a node. Ray does not restart it: an agent's crash must not be repeated."""
        options = self._options
        return (
            ray.remote(EpisodeActor)
            .options(
                num_cpus=options.cpus_per_worker,
                num_gpus=options.gpus_per_worker or None,
                memory=int(options.memory_gb_per_worker * 1e9) or None,
                max_restarts=0,
                max_task_retries=0,
                scheduling_strategy=NodeAffinitySchedulingStrategy(node.id, soft=False),
            )
            .remote()
        )

    def wait(self, calls: Sequence[Any], timeout_s: float) -> list[Any]:
        """Return the calls that have ended, of at least one; none after the time."""
        ready, _ = ray.wait(list(calls), num_returns=len(calls), timeout=0)
        if not ready:
            ready, _ = ray.wait(list(calls), num_returns=1, timeout=max(0.0, timeout_s))
        return list(ready)

    def answer(self, call: Any) -> Any:
        """Return what a call returned. Raises `Lost` if its actor is gone or failed, or `NotImportable`."""
        try:
            return ray.get(call, timeout=GET_TIMEOUT_S)
        except RayTaskError as error:
            raise Lost(_last_line(str(error))) from None  # what is above is a traceback
        except RayError as error:
            text = str(error)
            if "creation task" in text:  # the constructor does nothing that could fail
                found = re.findall(r"(?m)^\s*(\w*(?:Error|Exception): .*)", text)
                raise NotImportable(found[-1] if found else _first_line(error)) from None
            raise Lost(_first_line(error)) from None

    def dismiss(self, actor: Any) -> None:
        """End an actor. One that is unavailable must not come back beside the one that takes its place."""
        with suppress(RayError, ValueError):
            ray.kill(actor)

    def _places(self, has: dict[str, float]) -> int:
        options = self._options
        needs = {
            "CPU": options.cpus_per_worker,
            "GPU": options.gpus_per_worker,
            "memory": options.memory_gb_per_worker * 1e9,
        }
        return min(int(has.get(name, 0.0) / amount + 1e-9) for name, amount in needs.items() if amount)

    def _start_here(self) -> None:
        """Start a Ray on this machine. It listens on all interfaces, and lets in who knows its token.

        The token stays the same as long as this process lives: Ray reads it once. Without one, Ray would
        write one into the user's home.
        """
        os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
        base = tempfile.gettempdir()
        if len(base) > LONGEST_TEMP_DIR:
            base = "/tmp"  # noqa: S108  (a folder with a random name is made in it)
        folder = tempfile.mkdtemp(prefix="proctor-ray-", dir=base)
        self._temp_dir = Path(folder)
        self._init(
            "local",
            num_cpus=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
            include_dashboard=False,
            object_store_memory=OBJECT_STORE_BYTES,
            _temp_dir=folder,
        )

    def _check_reachable(self) -> None:
        """Refuse what cannot be joined. Ray itself would try for many minutes, so another process tries."""
        host, _, port = self._address.rpartition(":")
        if self._address != "auto":
            if not (host and port.isdigit()):
                raise UserError(
                    f"executor-option address: expected HOST:PORT or auto, found '{self._address}'"
                )
            try:
                socket.create_connection((host.strip("[]"), int(port)), REACH_TIMEOUT_S).close()
            except (OSError, OverflowError) as error:
                self._refuse(f"nothing answers there ({error})")
        command = [sys.executable, "-c", TRY_TO_JOIN, self._address]
        why = (
            f"it could not be joined within {JOIN_TIMEOUT_S:g} s. Is it Ray's port, and is this machine a "
            "node of the cluster? If not: ray start --address=HOST:PORT --num-cpus=0"
        )
        try:
            tried = subprocess.run(command, capture_output=True, timeout=JOIN_TIMEOUT_S, check=False)  # noqa: S603
            if not tried.returncode:
                return
            said = tried.stderr.decode(errors="replace")
            why = _last_line(said) or f"exit code {tried.returncode}"
        except subprocess.TimeoutExpired as error:
            said = (error.stderr or b"").decode(errors="replace")
        self._refuse(_known_reason(said) or why)

    def _refuse(self, why: str) -> NoReturn:
        name = "on this machine" if self._address == "auto" else f"at {self._address}"
        remedy = "`ray status` on its head tells whether it is up"
        raise UserError(f"cannot join the Ray cluster {name}: {why}; {remedy}")

    def _init(self, address: str, **options: Any) -> None:
        try:
            with _our_sigterm(), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                ray.init(address, **QUIET, **options)
        except (RayError, ConnectionError, RuntimeError, ValueError, OSError) as error:
            if address == "local":
                raise UserError(f"Ray could not be started on this machine: {_first_line(error)}") from None
            self._refuse(_first_line(error))


@contextmanager
def _our_sigterm() -> Iterator[None]:
    """Keep our handler of SIGTERM: Ray sets one that exits without a word, and takes it away at its end."""
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    except SystemExit:
        raise KeyboardInterrupt from None
    finally:
        if before is not None and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, before)


def _known_reason(said: str) -> str:
    """Say why a cluster could not be joined, by what Ray wrote to stderr; "" if that is not known."""
    if "AuthToken" in said:
        return f"it wants a token, and {_token_found()}"
    versions = re.findall(r"Ray: (\S+)\s+Python: (\S+)", said.partition("Version mismatch:")[2])
    if len(versions) < 2:
        return ""
    (ray_there, python_there), (ray_here, python_here) = versions[-2:]
    return (
        f"it has Ray {ray_there} and Python {python_there}, and this machine has Ray {ray_here} and Python "
        f"{python_here}; install the same on all nodes"
    )


def _token_found() -> str:
    """Say whether this machine would send a token to a cluster."""
    if os.environ.get("RAY_AUTH_MODE", "token") != "token":
        return "RAY_AUTH_MODE is not 'token' here"
    if "RAY_AUTH_TOKEN" in os.environ or TOKEN_FILE.is_file():
        return "the one that is here is another"
    return f"there is none here, neither in RAY_AUTH_TOKEN nor in {TOKEN_FILE}"


def _last_line(text: str) -> str:
    return text.strip().rpartition("\n")[2]


def _first_line(error: BaseException) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)
