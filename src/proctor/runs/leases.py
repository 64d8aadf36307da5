"""Leases: processes on several hosts take items from one shared folder, and any of them may die.

An attempt at an item is a file that only one process can make (O_EXCL) and that is never removed. Its
modification time is the last sign of life of the process that holds it. Whoever finds it too old makes the
file of the next attempt. So an item may be worked on twice, by a host that slept and by the one that took
over; what comes of it is published once (see `runs/sharing.py`).

Ages are differences of times that the folder's file server has set: the clocks of the hosts do not matter.
"""

from __future__ import annotations

import enum
import errno
import os
import socket
import threading
import time
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import NamedTuple

import msgspec

RELEASED_AT_S, LOST_AT_S, CLOSED_AT_S = 1_000_000_000, 1_050_000_000, 1_100_000_000
"""Modification times that mean something else than a sign of life. All are long past, and every file system
can store them. An attempt that its holder declares lost is judged like any other that is too old."""
GONE = (errno.ENOENT, errno.ESTALE)
"""Errors that mean that a file is gone; ESTALE on NFS, if another host has removed it while it was open."""
MAX_LOSSES = 3
"""An item whose holders were lost so many times in a row is not given out again."""


class Standing(enum.Enum):
    """What can be said of an attempt that somebody has made."""

    HELD = "held"  # somebody is working on it
    LOST = "lost"  # its holder is dead, or has slept for too long
    RELEASED = "released"  # its holder has given it back: the next attempt may begin
    CLOSED = "closed"  # it has ended, and there is to be no other attempt for now


class Holder(msgspec.Struct, frozen=True, kw_only=True):
    """Who holds a lease: the content of its file, and who shares a run."""

    host: str
    system: str = ""
    """Equal for processes that can look each other up: one boot, one process namespace."""
    process: int = 0
    started: str = ""  # when the process did, by the kernel's count: process ids are used again
    lease_s: float | None = None  # after so long without a sign of life it wants to be taken for dead
    workers: int = 1  # of one who shares a run
    unique: str = ""  # tells the files of one command from those of the next

    @classmethod
    def this(cls) -> Holder:
        """Return this process."""
        holder = cls(host=socket.gethostname(), process=os.getpid())
        try:
            boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
            system = f"{boot} {Path('/proc/self/ns/pid').readlink()}"
        except OSError:  # not Linux
            return holder
        return msgspec.structs.replace(holder, system=system, started=_started(holder.process))

    @property
    def is_known_dead(self) -> bool:
        """Whether it was a process of this system that is no more. Copies of a machine differ by name."""
        this = Holder.this()
        if not self.system or (self.system, self.host) != (this.system, this.host):
            return False
        started = _started(self.process)
        if not started:
            return not _is_there(self.process)
        return started != self.started

    def __str__(self) -> str:
        return f"process {self.process} on {self.host}"


def _started(process: int) -> str:
    """Return when a process of this system started; empty if there is none, or it may not be seen."""
    try:
        stat = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    fields = stat.rpartition(")")[2].split()  # what follows the process's name
    return "a zombie" if fields[0] in "ZX" else fields[19]


def _is_there(process: int) -> bool:
    """Tell whether a process exists, also where /proc hides those of other users (`hidepid`)."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # it is of another user
        return True
    return True


def read_lease(path: Path) -> tuple[Holder, float]:
    """Return who made an attempt, and when its file was last changed.

    The file is opened each time: NFS asks its server for new times only then.
    """
    with path.open("rb") as stream:
        content, changed_s = stream.read(4096), os.fstat(stream.fileno()).st_mtime
    try:
        return msgspec.json.decode(content, type=Holder), changed_s
    except (msgspec.MsgspecError, UnicodeDecodeError):  # cut off, or not yet written
        return Holder(host="an unknown host"), changed_s


def _give_sign_of_life(path: Path) -> None:
    """Write the first byte of a lease once more: the server sets the time then, as it may not for `utime`."""
    with suppress(OSError):
        try:
            with path.open("r+b") as stream:
                stream.write(b"{")
        except OSError:  # a full disk may have no room to write the same again
            os.utime(path)


class Lease(NamedTuple):
    """An attempt that this process holds."""

    item: str
    attempt: int
    path: Path
    losses: int  # how many attempts right before it were lost


class Leases:
    """The leases of a folder. Those that this process holds are kept alive by a thread until `close`."""

    def __init__(self, folder: Path, clock_file: Path, lease_s: float) -> None:
        self._folder, self._clock_file, self.lease_s = folder, clock_file, lease_s
        holder = msgspec.structs.replace(Holder.this(), lease_s=lease_s, unique=os.urandom(8).hex())
        self._content = msgspec.json.encode(holder)
        self._process = os.getpid()
        self._held: dict[str, Lease] = {}
        self._passed: dict[str, tuple[int, int]] = {}  # by item: the first attempt that may be open, losses
        self._read_clock_at_s, self._clock_s = -1e9, 0.0
        self._lock, self._is_closed = threading.Lock(), threading.Event()
        threading.Thread(target=self._keep_alive, name="leases", daemon=True).start()

    def claim(self, item: str) -> Lease | Holder | None:
        """Take an item. If that cannot be: return who holds it, or None if its last attempt is closed."""
        attempt, losses = self._passed.get(item, (0, 0))
        while True:
            path = self._folder / f"{item}.{attempt}"
            try:
                file = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644)
            except FileExistsError:
                standing, holder = self._judge(path)
                if standing is Standing.HELD:
                    return holder
                if standing is Standing.CLOSED:
                    return None
                losses = losses + 1 if standing is Standing.LOST else 0
                attempt += 1
                self._passed[item] = attempt, losses
                continue
            lease = Lease(item, attempt, path, losses)
            with self._lock:
                self._held[item] = lease
            try:
                os.write(file, self._content)  # if the disk is full, an empty file holds as well
            finally:
                os.close(file)
            return lease

    def held(self, item: str) -> Lease | None:
        """Return the lease of this process on an item, whether or not it has been taken over."""
        return self._held.get(item)

    def sign_of_life(self, item: str) -> tuple[Holder, float] | None:
        """Return who holds an item, and when it gave its last sign of life; None if nobody does."""
        attempt, _ = self._passed.get(item, (0, 0))
        while True:
            path = self._folder / f"{item}.{attempt}"
            try:
                standing, holder = self._judge(path)
                changed_s = path.stat().st_mtime
            except OSError as error:
                if error.errno not in GONE:
                    raise
                return None
            if standing is Standing.HELD:
                return holder, changed_s
            attempt += 1

    def is_closed(self, item: str) -> bool:
        """Tell whether an attempt at an item has ended, and none may follow."""
        with suppress(FileNotFoundError):
            for attempt in count():
                if self._judge(self._folder / f"{item}.{attempt}")[0] is Standing.CLOSED:
                    return True
        return False

    def is_followed(self, item: str, attempt: int) -> bool:
        """Tell whether another attempt at an item has begun, or may begin at once."""
        if (self._folder / f"{item}.{attempt + 1}").exists():
            return True
        try:
            return self._judge(self._folder / f"{item}.{attempt}")[0] is Standing.RELEASED
        except FileNotFoundError:
            return False

    def _judge(self, path: Path) -> tuple[Standing, Holder]:
        """Judge an attempt by its age.

        The clock is read first. If this process is stopped between the two, the attempt only seems younger.
        """
        now_s = self.folder_time_s()
        holder, changed_s = read_lease(path)
        if changed_s == RELEASED_AT_S:
            return Standing.RELEASED, holder
        if changed_s == CLOSED_AT_S:
            return Standing.CLOSED, holder
        is_late = now_s - changed_s > (holder.lease_s or self.lease_s)
        return Standing.LOST if is_late or holder.is_known_dead else Standing.HELD, holder

    def folder_time_s(self) -> float:
        """Return what time it is on the folder's server; asked at most once a second."""
        now_s = time.monotonic()
        if now_s - self._read_clock_at_s > 1.0:
            with self._clock_file.open("r+b") as stream:
                stream.write(b"{")  # the server sets the time of a file that is written
                stream.flush()
                os.fsync(stream.fileno())
                self._clock_s, self._read_clock_at_s = os.fstat(stream.fileno()).st_mtime, now_s
        return self._clock_s + now_s - self._read_clock_at_s

    def is_ours(self, lease: Lease) -> bool:
        """Tell whether nobody has taken a lease over, or ended the run, while this process slept."""
        is_taken_over = lease.path.with_name(f"{lease.item}.{lease.attempt + 1}").exists()
        return not is_taken_over and self._is_mine(lease)

    def _is_mine(self, lease: Lease) -> bool:
        """Tell whether the file of a lease is the one that we made, and not that of a later command."""
        try:
            return self._content.startswith(lease.path.read_bytes())  # cut off if the disk was full
        except OSError as error:
            if error.errno not in GONE:
                raise
            return False

    def release(self, item: str) -> None:
        """Give an item back, so that anybody may begin another attempt at once."""
        self._end(item, RELEASED_AT_S)

    def declare_lost(self, item: str) -> None:
        """Give an item back as if its holder had died, so that the loss counts."""
        self._end(item, LOST_AT_S)

    def close_item(self, item: str) -> None:
        """End an item: no other attempt, until somebody reopens it."""
        self._end(item, CLOSED_AT_S)

    def _end(self, item: str, time_s: int) -> None:
        if os.getpid() != self._process:  # a copy made with os.fork holds nothing
            return
        with self._lock:
            lease = self._held.pop(item, None)
            if lease is not None:
                with suppress(OSError):  # the folder is gone, or its server: the lease runs out
                    if self._is_mine(lease):
                        os.utime(lease.path, (time_s, time_s))

    def reopen(self, items: set[str]) -> None:
        """Let there be other attempts at items that are closed or were lost, as if nothing had been lost."""
        for entry in os.scandir(self._folder):
            changed_s = entry.stat().st_mtime
            if changed_s == RELEASED_AT_S or entry.name.rpartition(".")[0] not in items:
                continue
            if changed_s == CLOSED_AT_S or self._judge(Path(entry.path))[0] is Standing.LOST:
                os.utime(entry.path, (RELEASED_AT_S, RELEASED_AT_S))

    def _keep_alive(self) -> None:
        while not self._is_closed.wait(self.lease_s / 4):
            with self._lock:
                for lease in self._held.values():
                    with suppress(OSError):
                        if self._is_mine(lease):
                            _give_sign_of_life(lease.path)

    def close(self) -> None:
        """Give back all that is held."""
        self._is_closed.set()
        for item in list(self._held):
            self.release(item)
