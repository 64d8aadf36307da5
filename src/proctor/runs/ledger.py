"""The results of a run while it goes on: where they are written, and what others have done."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Sequence

import msgspec

from proctor.core.errors import InvalidFile
from proctor.exams.results import EpisodeResult, Fault
from proctor.runs.attempts import WORKER_KILLED, Attempts
from proctor.runs.examiner import Finished, episode_seed, lost
from proctor.runs.executors import Executor
from proctor.runs.journal import Journal, JournalTakenOver, disk_errors
from proctor.runs.plan import RunPlan
from proctor.runs.recordings import plain_name
from proctor.runs.sharing import POLL_S, PublishedRecord, SharedRun

COLLECT_PAUSE_S = 1.0
LATE_NAMES_S = 65.0
"""How long to wait for records that others have published: NFS shows the names of new files up to a minute
late, but at once that the leases of their episodes are closed."""


class Progress(msgspec.Struct, frozen=True):
    """Told to the caller when a run begins and after each episode."""

    total: int
    finished: Collection[EpisodeResult]
    notes: Sequence[str] = ()
    """At the beginning: what people should know about the data before they trust the numbers. Later: that
    the agent is unavailable."""
    elsewhere: int = 0
    """How many more episodes others have done, whose results are not known here."""


class Ledger:
    """Keeps the results of a run by episode id, in the order of the exam.

    With a journal, this process writes all results, also those that others publish. Without, it publishes
    its own.
    """

    def __init__(self, plan: RunPlan, journal: Journal | None, shared: SharedRun | None) -> None:
        self._plan, self._journal, self._shared = plan, journal, shared
        self.by_id = {episode.episode_id: plan.kept.get(episode.episode_id) for episode in plan.episodes}
        self.repeated = list(plan.thrown_away)
        self.done_here = 0
        self._finished = {key: result for key, result in self.by_id.items() if result}
        self._collect_at_s = 0.0
        self._scored_names: set[str] = set()  # by anybody, as far as a process without the journal sees it
        self._awaited: set[str] = set()  # episodes whose last record says that they are tried once more

    @property
    def results(self) -> list[EpisodeResult]:
        """What is known, in the order of the exam."""
        return [result for result in self.by_id.values() if result]

    def do_episodes(
        self, executor: Executor | None, attempts: Attempts, notes: Sequence[str]
    ) -> Iterator[Progress]:
        """Write each result as it comes, ours and those of others, and say how far the run is."""
        self.collect(attempts)
        yield self.progress(notes)
        for done in executor.run(attempts) if executor is not None else ():
            for episode, losses in attempts.take_lost():
                self._add(self._lost(episode, losses), attempts)
            if done is not None:
                self._add(done, attempts)
            if time.monotonic() >= self._collect_at_s:
                self.collect(attempts)
            elif done is None:
                continue
            news = attempts.note_to_reader()
            yield self.progress([news] if news else [])
        for episode, losses in attempts.take_lost():
            self._add(self._lost(episode, losses), attempts)
        self.collect(attempts)
        if not attempts.is_stopped:
            self.await_late_records(attempts)

    def expect_later_attempts(self) -> None:
        """Wait for later records also where the journal has one without a score: they may be seen late."""
        unscored = [key for key, result in self.by_id.items() if result and not result.is_scored]
        self._awaited.update(key for key in unscored if self._shared and self._shared.was_tried_again(key))

    def await_late_records(self, attempts: Attempts | None = None) -> None:
        """Wait for what others have done, as long as an episode is missing that is not left to do."""
        deadline_s = time.monotonic() + LATE_NAMES_S
        while self._shared and self._journal and time.monotonic() < deadline_s:
            if not self._awaited and None not in self.by_id.values():
                return
            time.sleep(POLL_S)
            self.collect(attempts)

    def await_closed(self) -> None:
        """Wait for the records of episodes whose leases say that they have ended."""
        deadline_s = time.monotonic() + LATE_NAMES_S
        while self._shared and time.monotonic() < deadline_s:
            missing = [key for key, result in self.by_id.items() if result is None]
            if not any(map(self._shared.is_closed, missing)):
                return
            time.sleep(POLL_S)
            self.collect()

    def collect(self, attempts: Attempts | None = None) -> None:
        """Write into our journal what others have published."""
        self._collect_at_s = time.monotonic() + COLLECT_PAUSE_S
        if self._shared is None or self._journal is None:
            return
        with disk_errors(self._plan.out):
            self._journal.check_ours()
            for published in self._shared.new_records():
                result = self._read(published)
                if not self._is_written(result):
                    self._journal.append(
                        result.episode_id, published.record, published.trace, published.transcript
                    )
                    self._keep(result)
                self._shared.take_in(published)
                self._note_awaited(result.episode_id, is_again=published.is_again)
                if attempts is not None:
                    attempts.note_elsewhere(result, is_again=published.is_again)

    def _read(self, published: PublishedRecord) -> EpisodeResult:
        try:
            result: EpisodeResult = msgspec.json.decode(published.record, type=self._plan.dataset.exam.result)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            problem = f"not the record of an episode: {error}"
        else:
            if result.episode_id in self.by_id:
                return result
            problem = f"the record of {result.episode_id!r:.80}, which is not an episode of this run"
        raise InvalidFile(published.file, f"{problem}; delete it, and the episode is done again")

    def _is_written(self, result: EpisodeResult) -> bool:
        """Tell whether our journal needs no record of a result that another process has published.

        One that is not scored may be there already: whoever wrote it was killed before it removed the file.
        """
        known = self.by_id.get(result.episode_id)
        if known is not None and known.is_scored:
            return True
        return not result.is_scored and (result == known or result in self.repeated)

    def _add(self, done: Finished, attempts: Attempts) -> None:
        """Write a result of ours. Where another process was faster, its result stands."""
        result, is_again = done.result, attempts.comes_again(done.result)
        if attempts.is_elsewhere(result.episode_id):
            return
        known = self.by_id[result.episode_id]
        if known is None or not known.is_scored:
            self._write(done, is_again=is_again)
            self._keep(result)
            self.done_here += 1
        self._note_awaited(result.episode_id, is_again=is_again)
        if self._shared is not None:
            is_loss = result.error is not None and result.error.kind == WORKER_KILLED
            with disk_errors(self._plan.out):
                self._shared.settle(
                    result.episode_id, is_scored=result.is_scored, is_again=is_again, is_loss=is_loss
                )

    def _note_awaited(self, episode_id: str, *, is_again: bool) -> None:
        known = self.by_id[episode_id]
        if is_again and not (known and known.is_scored):  # another process may have been faster
            self._awaited.add(episode_id)
        else:
            self._awaited.discard(episode_id)

    def _write(self, done: Finished, *, is_again: bool) -> None:
        if self._journal is not None:
            try:
                self._journal.append(done.result.episode_id, done.record, done.trace, done.transcript)
            except JournalTakenOver:
                self._publish(done, is_again=is_again)
                raise
        else:
            self._publish(done, is_again=is_again)

    def _publish(self, done: Finished, *, is_again: bool) -> None:
        if self._shared is not None:
            with disk_errors(self._plan.out):
                self._shared.publish(done, is_again=is_again)

    def _keep(self, result: EpisodeResult) -> None:
        before = self.by_id[result.episode_id]
        if before is not None:
            self.repeated.append(before)
        self.by_id[result.episode_id] = result
        if not result.is_unavailable:
            self._finished[result.episode_id] = result

    def _lost(self, episode: object, losses: int) -> Finished:
        job = self._plan.config.job
        problem = f"the {losses} processes that had taken the episode, one after the other, were lost with it"
        fault = Fault(side="evaluator", kind="host_lost", message=problem)
        seed = episode_seed(job.seed, episode.episode_id)  # type: ignore[attr-defined]
        return lost(job.make_exam(), episode, seed, fault)

    def progress(self, notes: Sequence[str] = ()) -> Progress:
        """Return how far the run is."""
        if self._shared is not None and self._journal is None:
            with disk_errors(self._plan.out):
                self._scored_names |= self._shared.scored_names()  # none are left when the run has ended
        elsewhere = len(self._scored_names - {plain_name(key) for key in self._finished})
        return Progress(len(self.by_id), self._finished.values(), notes, elsewhere)
