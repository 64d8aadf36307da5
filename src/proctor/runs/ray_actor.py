"""What runs on a node of a Ray cluster, an actor with one worker process below it, and what it is told.

Ray imports this module on the node, by its name, from the Proctor that is installed there. Only bytes and
numbers cross the network, so nothing is unpickled into a class of Proctor.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from multiprocessing.util import get_temp_dir
from pathlib import Path
from typing import Any

import msgspec

from proctor.core.addresses import KEY_VARIABLE, TOKEN_VARIABLE, is_chat, replicas
from proctor.core.errors import ProctorError, UserError
from proctor.runs.attempts import Attempts
from proctor.runs.job import RunJob
from proctor.runs.plan import software_versions
from proctor.runs.pool import WorkerPool
from proctor.runs.recorder import Recorders, RecordingConfig

OWN_HOSTS = ("localhost", "127.0.0.1", "[::1]")
KNOWN_ERRORS = (ProctorError, OSError, msgspec.MsgspecError)
"""What is wrong with a node is told in words. Any other error is raised, and the actor counts as lost."""


class ActorSetup(msgspec.Struct, frozen=True, kw_only=True):
    """What an actor has to know before it can do episodes."""

    job: RunJob
    check: bool  # whether to find out first if the agent is there
    folder: str  # the driver's working directory, where modules of the user's are looked for
    environ: dict[str, str]
    """Variables of the driver's environment that policies read, such as the token of a served agent."""
    files: list[tuple[str, str]] = []  # which must be here, with their SHA-256
    recording: RecordingConfig | None = None
    run_dir: str = ""
    shared_file: str = ""  # one that the driver has written into the run's folder, or above it


class EpisodeActor:
    """Does one episode after the other, in a process of its own below it.

    An agent that crashes ends that process, and is judged as it is without Ray. An actor that is gone was
    therefore lost by its node, never by the agent.
    """

    def __init__(self) -> None:
        self._pool: WorkerPool | None = None
        self._recorders: Recorders | None = None
        self._episode_type: type[Any] = object

    def describe(self) -> bytes:
        """Return the versions of what results depend on here."""
        return msgspec.json.encode(software_versions())

    def prepare(self, encoded: bytes) -> bytes:
        """Build env and policy; return why that is not possible, or nothing."""
        try:
            setup = msgspec.json.decode(encoded, type=ActorSetup)
            _check_files(setup.files)
            _use_folder(setup.folder)
            os.environ.update(setup.environ)
            if setup.recording is not None:
                _check_run_folder(setup)
                self._recorders = Recorders(Path(setup.run_dir), setup.recording, 1)
            self._episode_type = setup.job.exam_class.episode
            self._pool = WorkerPool(setup.job, 1, self._recorders, check=setup.check)
            self._pool.start()
        except KNOWN_ERRORS as error:
            return str(error).encode(errors="replace")
        return b""

    def examine(self, encoded: bytes, frames_budget_bytes: int) -> list[bytes]:
        """Do an episode; return why that is not possible, or nothing, then what there is to write.

        That is its record, trace and transcript, and what the recorder counted.
        """
        try:
            if self._pool is None:
                raise ProctorError("an episode was given to a worker that had not been prepared")
            episode = msgspec.json.decode(encoded, type=self._episode_type)
            if self._recorders is not None:
                self._recorders.begin_share(frames_budget_bytes)
            finished = next(filter(None, self._pool.run(Attempts([episode]))))
        except KNOWN_ERRORS as error:
            return [str(error).encode(errors="replace"), b"", b"", b"", b""]
        counted = self._recorders.share() if self._recorders is not None else []
        return [b"", finished.record, finished.trace, finished.transcript, msgspec.json.encode(counted)]

    def close(self) -> bytes:
        """End the worker process; return what went wrong with that."""
        problems = self._pool.close() if self._pool is not None else []
        # Ray will kill this process, which then cannot remove the folder with the sockets of its workers.
        shutil.rmtree(get_temp_dir(), ignore_errors=True)
        return msgspec.json.encode(problems)


def passed_on(job: RunJob) -> dict[str, str]:
    """Return what of the environment nodes get: the variables with an agent's token or a model's key."""
    names = [TOKEN_VARIABLE, KEY_VARIABLE]
    if is_chat(job.policy):
        from proctor.agents.chat.api import key_names  # noqa: PLC0415  (needs the extra `chat`)

        for address in replicas(job.policy):
            names += key_names(address, job.policy_options.get("key_env"))
    return {name: value for name, value in os.environ.items() if name in names}


def localhost_hint(policy: str) -> str:
    """Return what to add where a node does not reach an agent whose address says `localhost`."""
    hosts = [url.partition("://")[2] for url in replicas(policy)]
    if not any(host.startswith(OWN_HOSTS) for host in hosts):
        return ""
    return "; on a node, localhost is the node itself: give the agent's address as the nodes reach it"


@contextmanager
def shared_file(run_dir: Path) -> Iterator[str]:
    """Yield the path of a file that whoever sees the run's folder sees, too; "" if there cannot be one."""
    folder = next(parent for parent in (run_dir, *run_dir.parents) if parent.is_dir())
    try:
        file = tempfile.NamedTemporaryFile(dir=folder, prefix=".proctor-ray-", suffix=".tmp")  # noqa: SIM115
    except OSError:  # the journal will say what is wrong with the folder
        yield ""
        return
    with file:
        yield file.name


def file_digests(files: Iterable[Path]) -> list[tuple[str, str]]:
    """Return files with their SHA-256, for nodes to compare."""
    return [(str(file.resolve()), hashlib.sha256(file.read_bytes()).hexdigest()) for file in files]


def _check_files(files: Iterable[tuple[str, str]]) -> None:
    remedy = "scenes must be the same, at the same path, on all nodes: use a shared folder or copy them"
    for name, digest in files:
        try:
            found = hashlib.sha256(Path(name).read_bytes()).hexdigest()
        except OSError as error:
            raise UserError(f"cannot read {name}: {error.strerror}; {remedy}") from None
        if found != digest:
            raise UserError(f"{name} is another file here than on the machine of the run; {remedy}")


def _use_folder(folder: str) -> None:
    """Let `module:Class` and `file.py:Class` mean here what they mean where the run was started."""
    if Path(folder).is_dir():
        os.chdir(folder)
        if folder not in sys.path:
            sys.path.insert(0, folder)


def _check_run_folder(setup: ActorSetup) -> None:
    if setup.shared_file and not Path(setup.shared_file).is_file():
        raise UserError(
            f"the run's folder {setup.run_dir} is not the same here as on the machine of the run, and "
            "recordings are written where episodes are done: give --out a folder that all nodes share, or "
            "leave --record, --save-steps and --save-frames out"
        )
