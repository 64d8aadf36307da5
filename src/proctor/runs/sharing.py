"""Sharing a run: the folder `work` in a run folder, by which several processes and hosts do one run.

    work/run.json       what is run, for `proctor work FOLDER`
    work/hosts/N        the N-th process that took part, and the folder's clock as it reads it
    work/leases/ID.N    the N-th attempt at an episode (see `runs/leases.py`), and at writing the journal
    work/records/ID     the record of a scored episode: it appears whole and only once, whoever was first
    work/unscored/ID.*  the record of an attempt that is not scored

One process at a time writes the journal. The others publish records, and it takes them in: a record that is
in the journal is left empty. The folder is removed when the run is complete.
"""

from __future__ import annotations

import errno
import math
import os
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from proctor.core.documents import sync_folder, write_atomically
from proctor.core.errors import InvalidFile, UserError
from proctor.exams.results import EpisodeResult
from proctor.runs.folder import JOURNAL
from proctor.runs.leases import GONE, MAX_LOSSES, Holder, Lease, Leases, read_lease
from proctor.runs.recordings import plain_name

if TYPE_CHECKING:
    from proctor.runs.examiner import Finished

WORK = "work"
PARTS = ("hosts", "leases", "records", "unscored")
RUN_FILE = "run.json"
AGAIN = ".again"  # the end of the name of a record whose episode will be done again
DISK_PROBLEMS = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.ENOENT, errno.ESTALE)
"""Errors of a hard link that do not mean that there are none."""
JOURNAL_ITEM = "@journal"  # no episode's file has such a name
POLL_S = 0.2
REGISTER_TRIES = 10
TELL_AFTER_S = 2.0  # of waiting
CLOCK_MARGIN_S = 5.0
"""A holder is waited for no longer than its lease and this, also if its last sign is in the future."""
SHORTEST_LEASE_S, LONGEST_LEASE_S = 1.0, 86_400.0


class Claim(NamedTuple):
    """The answer to who may do an episode."""

    is_ours: bool = False
    is_held: bool = False  # by another process, which may yet die
    losses: int = 0  # how many holders of it were lost, if that is too many

    @property
    def is_hopeless(self) -> bool:
        """Whether it is ours only to be recorded as lost."""
        return self.losses >= MAX_LOSSES


class PublishedRecord(NamedTuple):
    """An episode that another process has done."""

    file: Path
    record: bytes
    trace: bytes
    transcript: bytes
    is_again: bool  # whether there will be, or is, another attempt


class SharedRun:
    """A run folder that other processes may work on at the same time. Call `close` at the end."""

    def __init__(self, out: Path, lease_s: float, workers: int = 1) -> None:
        self.out, self._work = out, out / WORK
        self._records, self._unscored = self._work / "records", self._work / "unscored"
        holder = msgspec.structs.replace(Holder.this(), workers=workers, unique=os.urandom(8).hex())
        self._this = msgspec.json.encode(holder)
        self.first_worker, self._host_file = self._register()
        self._leases = Leases(self._work / "leases", self._host_file, lease_s)
        self._journal: Lease | None = None
        self._taken_in: set[str] = set()

    def _register(self) -> tuple[int, Path]:
        """Take part, and make sure that records can be published.

        Return how many workers those have who took part before, and the file of this process.
        """
        for _ in range(REGISTER_TRIES - 1):
            # Others may end the run right now, and move the folder away.
            with suppress(FileNotFoundError, FileExistsError):
                return self._take_number()
        return self._take_number()

    def _take_number(self) -> tuple[int, Path]:
        hosts = self._work / "hosts"
        for part in PARTS:
            (self._work / part).mkdir(parents=True, exist_ok=True)
        for number in count(sum(1 for _ in hosts.iterdir())):
            file = hosts / str(number)
            with suppress(FileExistsError), file.open("xb") as stream:
                stream.write(self._this)
                stream.flush()
                os.fsync(stream.fileno())
                break
        self._check_links(file)
        others = (other for other in hosts.iterdir() if other.name.isdigit() and int(other.name) < number)
        return sum(read_lease(other)[0].workers for other in others), file

    def _check_links(self, file: Path) -> None:
        """Raise NoHardLinks if a file of this folder cannot have two names."""
        probe = file.with_name(f"{file.name}.link")
        try:
            with suppress(FileExistsError):  # it was made, and the server's answer was lost
                os.link(file, probe)
            probe.unlink()
        except OSError as error:
            file.unlink(missing_ok=True)
            if error.errno in DISK_PROBLEMS:
                raise
            with suppress(OSError):  # leave no empty folders, if all of them are
                for part in PARTS:
                    (self._work / part).rmdir()
                self._work.rmdir()
            raise NoHardLinks(self._work, error) from None

    @property
    def is_there(self) -> bool:
        """Whether the run is still shared: it is not complete. A folder of a later command is not ours."""
        try:
            return self._host_file.read_bytes() == self._this
        except OSError as error:
            if error.errno not in GONE:
                raise
            return False

    def take_journal(self, on_wait: Callable[[str], None] | None = None) -> Holder | None:
        """Become the one who writes the journal; return who is, if that is another process.

        With `on_wait`, wait until its lease has run out, or until it gives a sign of life, and tell that if
        it takes long. SharingEnded if there is nothing left to write: others have completed the run.
        """
        first = self._leases.sign_of_life(JOURNAL_ITEM)
        lease_s = (first[0].lease_s if first else None) or self._leases.lease_s
        begun_s = time.monotonic()
        deadline_s = begun_s + lease_s + CLOCK_MARGIN_S if on_wait else 0.0
        with self._until_complete():
            while not isinstance(claimed := self._leases.claim(JOURNAL_ITEM), Lease):
                has_moved = self._leases.sign_of_life(JOURNAL_ITEM) not in (first, None)
                if has_moved or time.monotonic() > deadline_s:
                    return claimed
                if on_wait and time.monotonic() > begun_s + TELL_AFTER_S:
                    wait_s = deadline_s - begun_s
                    on_wait(
                        f"waiting up to {wait_s:.0f} s for a sign of life of {claimed}, which writes the run"
                    )
                    begun_s = math.inf  # once is enough
                time.sleep(POLL_S)
            if self.is_there:
                self._journal = claimed
                return None
            self._leases.release(JOURNAL_ITEM)
        raise SharingEnded

    def leave_journal(self) -> None:
        """Let others write the journal."""
        self._leases.release(JOURNAL_ITEM)
        self._journal = None

    @property
    def journal_holder(self) -> Holder | None:
        """Who writes the journal."""
        found = self._leases.sign_of_life(JOURNAL_ITEM)
        return found[0] if found else None

    @property
    def holds_journal(self) -> bool:
        """Whether nobody else has begun to write the journal since this process took it."""
        return self._journal is not None and self._leases.is_ours(self._journal)

    def claim(self, episode_id: str) -> Claim:
        """Take an episode, if nobody has done it or is doing it."""
        name = plain_name(episode_id)
        if (self._records / name).exists():
            return Claim()
        with self._until_complete():
            claimed = self._leases.claim(name)
            if not isinstance(claimed, Lease):
                return Claim(is_held=claimed is not None)
            if claimed.losses and self._is_in_journal(episode_id):
                # Whoever wrote the journal died before it said so here: what crashed must not crash again.
                self.settle(episode_id, is_scored=True, is_again=False)
                return Claim()
            # Published between the two looks, or the run is another now.
            if not (self._records / name).exists() and self.is_there:
                return Claim(is_ours=True, losses=claimed.losses)
            self._leases.release(name)
        return Claim()

    def _is_in_journal(self, episode_id: str) -> bool:
        """Tell whether the journal has the score of an episode. Its other lines are not checked."""
        words = msgspec.json.encode(episode_id)
        for line in (self.out / JOURNAL).read_bytes().split(b"\n"):
            if words in line:
                with suppress(msgspec.MsgspecError):  # it is torn
                    result = msgspec.json.decode(line, type=EpisodeResult)
                    if result.episode_id == episode_id and result.is_scored:
                        return True
        return False

    @contextmanager
    def _until_complete(self) -> Iterator[None]:
        """Break off silently what fails because others have completed the run and removed the folder."""
        try:
            yield
        except OSError as error:
            if error.errno not in GONE or self.is_there:
                raise

    def give_way(self, episode_id: str) -> bool:
        """Give up an episode that another process has taken, while this one slept; tell whether one has."""
        name = plain_name(episode_id)
        lease = self._leases.held(name)
        is_taken_over = lease is not None and self.is_there and not self._leases.is_ours(lease)
        if is_taken_over:
            self._leases.release(name)
        return is_taken_over

    def publish(self, done: Finished, *, is_again: bool) -> None:
        """Let the record of an episode appear, whole and once. Nothing happens if another was faster."""
        name, unique = plain_name(done.result.episode_id), os.urandom(8).hex()
        content = msgspec.msgpack.encode((done.record, done.trace, done.transcript))
        with self._until_complete():
            if not self.is_there:
                return
            if not done.result.is_scored:
                # In the order of the attempts, whoever made them: what the last one says counts.
                lease, end = self._leases.held(name), AGAIN if is_again else ".ended"
                attempt = lease.attempt if lease else 0
                write_atomically(self._unscored / f"{name}.{attempt:06}.{unique}{end}", content)
                return
            draft = self._records / f".{name}.{unique}"
            try:
                with draft.open("xb") as stream:
                    stream.write(content)
                    stream.flush()
                    os.fsync(stream.fileno())
                with suppress(FileExistsError):
                    os.link(draft, self._records / name)
                sync_folder(self._records)
            finally:
                draft.unlink(missing_ok=True)

    def settle(self, episode_id: str, *, is_scored: bool, is_again: bool, is_loss: bool = False) -> None:
        """End our attempt at an episode, whose record is safe; a loss counts against the next attempts."""
        name, is_there = plain_name(episode_id), self.is_there
        if is_scored and is_there:
            with self._until_complete(), suppress(FileExistsError):
                (self._records / name).touch(exist_ok=False)
        if is_again and is_loss:
            self._leases.declare_lost(name)
        elif is_again or not is_there:
            self._leases.release(name)
        else:
            self._leases.close_item(name)

    def reopen(self, episode_ids: Sequence[str]) -> None:
        """Let episodes be done again of which the journal holds no score, whatever else says so."""
        names = {plain_name(episode_id) for episode_id in episode_ids}
        for name in names & self.scored_names():
            if not (self._records / name).stat().st_size:
                (self._records / name).unlink()
        self._leases.reopen(names)

    def new_records(self) -> Iterator[PublishedRecord]:
        """Yield what others have published. `take_in` is to be called with what is safe."""
        for folder in (self._unscored, self._records):
            names = set(_names(folder))
            for name in sorted(names - self._taken_in):
                try:
                    content = (folder / name).read_bytes()
                except OSError as error:  # its name is still listed, and it is in the journal
                    if error.errno not in GONE or not self.is_there:
                        raise
                    continue
                if not content:  # it is in the journal
                    self._taken_in.add(name)
                    continue
                try:
                    parts = msgspec.msgpack.decode(content, type=tuple[bytes, bytes, bytes])
                except msgspec.MsgspecError as error:
                    problem = (
                        f"not the record of an episode: {error}; delete it, and the episode is done again"
                    )
                    raise InvalidFile(folder / name, problem) from None
                is_again = folder == self._unscored and self._comes_again(name)
                yield PublishedRecord(folder / name, *parts, is_again)

    def _comes_again(self, unscored_name: str) -> bool:
        """Tell whether there is another attempt: announced, or allowed by a later command or by a death."""
        name, attempt, _, _ = unscored_name.rsplit(".", 3)
        return unscored_name.endswith(AGAIN) or self._leases.is_followed(name, int(attempt))

    def take_in(self, published: PublishedRecord) -> None:
        """Empty a file whose record is in the journal; its name goes on saying that the episode is done."""
        if published.file.parent == self._unscored:
            published.file.unlink(missing_ok=True)
        else:
            os.truncate(published.file, 0)
            self._taken_in.add(published.file.name)

    def scored_names(self) -> set[str]:
        """Return the files' names of the episodes that have been scored since the run was shared."""
        with self._until_complete():
            return set(_names(self._records))
        return set()

    def holders(self, episode_ids: Iterable[str]) -> dict[str, Holder]:
        """Return who is doing which of these episodes."""
        signs = {key: self._leases.sign_of_life(plain_name(key)) for key in episode_ids}
        return {key: sign[0] for key, sign in signs.items() if sign}

    def is_closed(self, episode_id: str) -> bool:
        """Tell whether an episode has ended, whether or not its record can be seen."""
        return self._leases.is_closed(plain_name(episode_id))

    def was_tried_again(self, episode_id: str) -> bool:
        """Tell whether there was more than one attempt at an episode."""
        return (self._work / "leases" / f"{plain_name(episode_id)}.1").exists()

    @contextmanager
    def holding(self, episode_id: str) -> Iterator[bool]:
        """Keep others from an episode for the time of a `with` block, unless one of them has or had it."""
        is_ours = self.claim(episode_id).is_ours
        try:
            yield is_ours
        finally:
            if is_ours:
                self._leases.release(plain_name(episode_id))

    def close(self, *, is_complete: bool = False) -> None:
        """Give back all that is held; remove the folder if the run is complete."""
        if is_complete:
            # At once for all who look, and for good: they might put new files into a folder that is emptied.
            # Before the leases are given back: nobody is to take the journal of a run that has ended.
            with suppress(OSError):
                if self.is_there:
                    self._work.rename(self.out / f".{WORK}.{os.urandom(8).hex()}.tmp")
        self._leases.close()
        if is_complete:
            remove_ended(self.out)


def _names(folder: Path) -> list[str]:
    return [entry.name for entry in os.scandir(folder) if not entry.name.startswith(".")]


def remove_ended(out: Path) -> None:
    """Remove what is left of the folders of runs that have ended, also if a process died while it did so."""
    for ended in out.glob(f".{WORK}.*.tmp"):
        shutil.rmtree(ended, ignore_errors=True)


def journal_holder(out: Path, lease_s: float) -> Holder | None:
    """Return who writes the journal of a shared run, as far as that can be known without writing.

    By the clock of this host: to read that of the folder, something must be written.
    """
    files = (out / WORK / "leases").glob(f"{JOURNAL_ITEM}.*")
    last = max(files, key=lambda file: int(file.suffix[1:]), default=None)
    if last is None:
        return None
    holder, changed_s = read_lease(last)
    age_s = datetime.now(UTC).timestamp() - changed_s
    is_late = age_s > (holder.lease_s or lease_s)  # so old is one that was released, too
    return None if is_late or holder.is_known_dead else holder


class SharingEnded(Exception):
    """Others have completed the run since this process registered for it."""


class NoHardLinks(UserError):
    """A run in this folder cannot be shared."""

    def __init__(self, folder: Path, error: OSError) -> None:
        super().__init__(
            f"{folder}: this file system has no hard links ({error.strerror}), by which several processes "
            "share a run; put the run on another disk, or do it with one command"
        )
