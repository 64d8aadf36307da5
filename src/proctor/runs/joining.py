"""Beginning, joining and ending a run in its folder, alone or together with other processes.

The process that begins or resumes a run writes its journal. Those that join it publish their records, and
end the run themselves if they find nobody who writes the journal when all is done.
"""

from __future__ import annotations

import errno
import math
import os
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from proctor import __version__
from proctor.core.addresses import TOKEN_VARIABLE, is_address
from proctor.core.documents import decode, read_bytes, write_atomically
from proctor.core.errors import InvalidFile, UserError
from proctor.core.options import secret_options
from proctor.exams.results import Results
from proctor.runs.agent_ids import keep_key
from proctor.runs.folder import MANIFEST, RESULTS
from proctor.runs.job import RunJob
from proctor.runs.journal import (
    Journal,
    JournalInUse,
    JournalTakenOver,
    check_unlocked,
    disk_errors,
    read_earlier_attempts,
)
from proctor.runs.ledger import Ledger
from proctor.runs.plan import (
    RunConfig,
    RunPlan,
    manifest_extras,
    size_of_journal,
    updated_plan,
    with_first_worker,
)
from proctor.runs.pool import START_DEADLINE_S
from proctor.runs.recordings import plain_name
from proctor.runs.sharing import (
    POLL_S,
    RUN_FILE,
    TELL_AFTER_S,
    WORK,
    NoHardLinks,
    SharedRun,
    SharingEnded,
    journal_holder,
    remove_ended,
)
from proctor.runs.summary import summarise

BEGIN_DEADLINE_S = START_DEADLINE_S + 60.0  # its agent may have to load first
SHARE_DEADLINE_S = 60.0  # for what a run that has begun writes for others; NFS may show it late
END_DEADLINE_S = 120.0
SECRET_TOKEN = "policy's option token"  # noqa: S105  (its name)
OnWait = Callable[[str], None]


class RunFile(msgspec.Struct, frozen=True, kw_only=True):
    """All that a process must know to help with a run: the content of `work/run.json`."""

    proctor: str
    folder: str  # the working directory of the command that began the run: paths are relative to it
    left_out: list[str] = []  # options that are secret
    config: dict[str, Any]


class BegunRun(NamedTuple):
    """A run folder that is open for writing."""

    plan: RunPlan  # as the journal is, now that nobody else writes it
    journal: Journal
    shared: SharedRun | None  # None if others cannot join


def begin_run(plan: RunPlan, stack: ExitStack, on_wait: OnWait, *, can_share: bool) -> BegunRun:
    """Open a run folder for writing, made if it is missing, so that other processes can join the run.

    A run is not shared if it has a budget or only one robot, or on a disk without hard links. `on_wait` is
    told for whom this process waits.
    """
    while True:
        try:
            return _begin_run(plan, stack, on_wait, can_share=can_share)
        except SharingEnded:  # by others, right now
            plan = updated_plan(plan)


def _begin_run(plan: RunPlan, stack: ExitStack, on_wait: OnWait, *, can_share: bool) -> BegunRun:
    can_share = can_share and bool(plan.left) and not plan.config.budget.has_limit
    can_share = can_share and not _has_one_robot(plan.config.job)
    shared = None
    with disk_errors(plan.out), suppress(NoHardLinks):
        plan.out.mkdir(parents=True, exist_ok=True)
        remove_ended(plan.out)
        if can_share:
            shared = SharedRun(plan.out, plan.config.lease_s, plan.workers)
            stack.callback(shared.close)
        elif (plan.out / WORK).is_dir():
            _stop_sharing(plan, on_wait)
    journal = stack.enter_context(_open_journal(plan, shared, on_wait))
    keep_key(plan.out, plan.config.job.agent_id_key)
    with disk_errors(plan.out):
        plan = updated_plan(plan)
        if shared:
            shared.reopen([episode.episode_id for episode in plan.left])
            _write_run_file(plan)
    return BegunRun(plan, journal, shared)


def _has_one_robot(job: RunJob) -> bool:
    """Tell whether all processes would drive the same robot, or the same engine."""
    return job.env == "o3de" or bool(job.env_options.get("attach"))


def _stop_sharing(plan: RunPlan, on_wait: OnWait) -> None:
    """Take in what others did for an earlier command, and let them stop."""
    with ExitStack() as stack:
        shared = SharedRun(plan.out, plan.config.lease_s)
        stack.callback(shared.close)
        journal = stack.enter_context(_open_journal(plan, shared, on_wait))
        for episode_id, holder in shared.holders(episode.episode_id for episode in plan.left).items():
            raise UserError(
                f"{plan.out}: {holder} is doing {episode_id} of this run, and a run with a budget or with "
                "one robot cannot be shared; end that process, or wait until it has ended"
            )
        ledger = Ledger(_reread(plan), journal, shared)
        ledger.collect()
        ledger.await_closed()
        shared.close(is_complete=True)


def check_folder(plan: RunPlan, *, join: bool = False) -> None:
    """Raise the UserError that `begin_run` would raise, as far as that can be known without writing."""
    out = plan.out
    with disk_errors(out):
        found = next(path for path in (out, *out.parents) if path.exists())
        if not found.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        if os.statvfs(found).f_flag & os.ST_RDONLY:
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))
        if not os.access(found, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        if not join:
            if (holder := journal_holder(out, plan.config.lease_s)) is not None:
                raise JournalInUse(out, str(holder))
            check_unlocked(out)


def _open_journal(plan: RunPlan, shared: SharedRun | None, on_wait: OnWait | None = None) -> Journal:
    extras = manifest_extras(plan)
    return Journal(plan.out, plan.identity, extras, shared=shared, on_wait=on_wait)


def end_run(
    journal: Journal, shared: SharedRun | None, results: Results, *, is_stopped: bool = False
) -> None:
    """Write the results of a run in which all was tried. If it has not stopped, nothing is left to share."""
    journal.save_results(results)
    if shared and not is_stopped:
        shared.close(is_complete=True)


def await_run(out: Path, on_wait: OnWait) -> None:
    """Wait until there is a run to join in a folder."""
    begun_s = time.monotonic()
    tell_at_s, manifest_at_s = begun_s + TELL_AFTER_S, math.inf
    while not ((out / WORK / RUN_FILE).exists() or (out / RESULTS).exists()):
        now_s = time.monotonic()
        if (out / MANIFEST).exists():
            manifest_at_s = min(manifest_at_s, now_s)
        if now_s > manifest_at_s + SHARE_DEADLINE_S:
            raise UserError(
                f"--join: the run in {out} cannot be shared: it has a budget or a single robot, or its disk "
                "has no hard links; or it has stopped, and goes on by the command without --join"
            )
        if now_s > begun_s + BEGIN_DEADLINE_S:
            raise UserError(
                f"--join: expected a run to help with in {out}, found none for {BEGIN_DEADLINE_S:g} s; begin "
                "it by the command without --join"
            )
        if now_s > tell_at_s:
            on_wait(
                f"waiting up to {BEGIN_DEADLINE_S:.0f} s for a run to begin in {out}, by the command without "
                "--join"
            )
            tell_at_s = math.inf  # once is enough
        time.sleep(POLL_S)


def join_run(plan: RunPlan, stack: ExitStack) -> tuple[RunPlan, SharedRun]:
    """Take part in a run whose journal another process writes; return the plan as its journal is now."""
    with disk_errors(plan.out):
        shared = SharedRun(plan.out, plan.config.lease_s, plan.workers)
        stack.callback(shared.close)
        return with_first_worker(updated_plan(plan), shared.first_worker), shared


def end_joined_run(plan: RunPlan, shared: SharedRun, ledger: Ledger) -> Ledger:
    """Wait until the run is complete, and complete it if nobody else does; return all its results."""
    patience_s = max(END_DEADLINE_S, 2 * plan.config.lease_s)
    written, deadline_s = 0, time.monotonic() + patience_s
    with disk_errors(plan.out):
        while shared.is_there and time.monotonic() < deadline_s:
            if (now_written := size_of_journal(plan.out)) != written:  # whoever writes it is not stopped
                written, deadline_s = now_written, time.monotonic() + patience_s
            if shared.journal_holder is None and _is_being_done(plan, shared):
                deadline_s = time.monotonic() + patience_s
            elif shared.journal_holder is None:
                # In use by a process that is stopped: it keeps the lock of the file. Or taken by another one.
                with suppress(JournalInUse, JournalTakenOver, SharingEnded):
                    _complete(plan, shared)
                    break
            time.sleep(POLL_S)
    whole = Ledger(_reread(plan), None, None)
    whole.done_here = ledger.done_here
    return whole


def _is_being_done(plan: RunPlan, shared: SharedRun) -> bool:
    """Tell whether a process that lives is doing an episode: another command may have opened it again."""
    done = shared.scored_names() | {plain_name(key) for key in plan.kept}
    return bool(shared.holders(e.episode_id for e in plan.episodes if plain_name(e.episode_id) not in done))


def _complete(plan: RunPlan, shared: SharedRun) -> None:
    with _open_journal(plan, shared) as journal:
        ledger = Ledger(_reread(plan), journal, shared)
        ledger.expect_later_attempts()
        ledger.collect()
        ledger.await_late_records()
        results = summarise(plan.dataset.exam, ledger.results, repeated=ledger.repeated)
        if results.total_episodes == len(plan.episodes):
            end_run(journal, shared, results)
        else:  # a journal that was damaged, or is not of the disk that keeps the marks
            shared.reopen([key for key, result in ledger.by_id.items() if result is None])
            shared.leave_journal()


def _reread(plan: RunPlan) -> RunPlan:
    """Return a plan as the journal is now, in which also attempts count that are not scored."""
    attempts = read_earlier_attempts(plan.out, plan.identity, plan.dataset.exam)
    last = {result.episode_id: result for result in attempts}
    thrown_away = [result for result in attempts if result is not last[result.episode_id]]
    return plan._replace(kept=last, left=[], thrown_away=thrown_away)


def _write_run_file(plan: RunPlan) -> None:
    """Write down how to help with a run. Secrets stay out of it."""
    config, dataset = plan.config, plan.dataset.path.resolve()
    left_out: list[str] = []
    job = msgspec.structs.replace(config.job, agent_id_key="", texts={})
    for part in ("policy", "env", "exam"):
        options = getattr(job, f"{part}_options")
        secret = secret_options(options)
        left_out += [f"{part}'s option {name}" for name in secret]
        kept = {name: value for name, value in options.items() if name not in secret}
        job = msgspec.structs.replace(job, **{f"{part}_options": kept})
    config = msgspec.structs.replace(
        config, job=job, dataset=None if config.suite else dataset, executor="", executor_options={}
    )
    file = RunFile(
        proctor=__version__,
        folder=os.getcwd(),  # noqa: PTH109  (a working directory, not a path to build on)
        left_out=left_out,
        config=msgspec.to_builtins(config, enc_hook=str),
    )
    content = msgspec.json.format(msgspec.json.encode(file), indent=1) + b"\n"
    write_atomically(plan.out / WORK / RUN_FILE, content, mode=0o600)


def read_run_file(out: Path) -> RunConfig:
    """Return what is run in a folder, and go to the working directory of the command that began it."""
    path = out / WORK / RUN_FILE
    if not path.exists():
        raise UserError(f"{out}: expected a run that is going on or has stopped, found no {WORK}/{RUN_FILE}")
    file = decode(read_bytes(path), RunFile, path)
    if file.proctor != __version__:
        raise UserError(f"{path}: the run is of Proctor {file.proctor}, and this is Proctor {__version__}")
    try:
        config = msgspec.convert(file.config, RunConfig, dec_hook=_decode_path)
    except msgspec.ValidationError as error:
        raise InvalidFile(path, f"config: {error}") from None
    takes_token = is_address(config.job.policy) and file.left_out == [SECRET_TOKEN]
    if file.left_out and not (takes_token and os.environ.get(TOKEN_VARIABLE)):
        how = f"put it into the environment variable {TOKEN_VARIABLE}, or " if takes_token else ""
        raise UserError(
            f"{path}: the run was begun with the {file.left_out[0]}, which is secret and not "
            f"written down; {how}give the run's own command with --join"
        )
    try:
        os.chdir(file.folder)
    except OSError as error:
        raise UserError(
            f"{path}: the run was begun in {file.folder}, which is not there on this host ({error.strerror})"
        ) from None
    return config


def _decode_path(kind: type, value: Any) -> Any:
    if kind is Path and isinstance(value, str):
        return Path(value)
    raise NotImplementedError(kind)
