"""Doing what is left of a planned run in its folder."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, closing

import msgspec

from proctor.core.addresses import replicas
from proctor.core.errors import UserError
from proctor.core.interfaces import Policy
from proctor.core.options import checked_options
from proctor.core.registry import load
from proctor.exams.datasets import check_before_run, check_in_env
from proctor.exams.results import EpisodeResult, Results
from proctor.runs.agent_ids import keep_key
from proctor.runs.attempts import Attempts
from proctor.runs.budget import Spending
from proctor.runs.examiner import policy_of
from proctor.runs.executors import Executor, InProcess
from proctor.runs.journal import Journal
from proctor.runs.plan import RunPlan, manifest_extras, run_notes, text_notes
from proctor.runs.recorder import Recorded, Recorders, discard_recordings
from proctor.runs.recordings import recording_folder
from proctor.runs.summary import summarise


class RunReport(msgspec.Struct, frozen=True):
    """A finished run."""

    results: Results
    done_before: int  # how many of its episodes had been done by an earlier call
    recorded: Recorded | None = None  # how much was recorded by this call, if that was asked for
    unrecorded: int = 0  # how many episodes an earlier call had done without recording them
    warnings: Sequence[str] = ()
    """What went wrong without any influence on the results: an env or a policy that cannot be closed."""
    stopped: str = ""
    """Why the run stopped before its end, if it did: what an agent that is unavailable said last."""
    over_budget: str = ""
    """What was spent of which limit, if the run stopped because the next episode might exceed one."""
    total: int = 0  # how many episodes the whole run has


class Progress(msgspec.Struct, frozen=True):
    """Told to the caller when a run begins and after each episode."""

    total: int
    finished: Collection[EpisodeResult]
    notes: Sequence[str] = ()
    """At the beginning: what people should know about the data before they trust the numbers. Later: that
    the agent is unavailable."""


def run(
    plan: RunPlan,
    on_progress: Callable[[Progress], None],
    *,
    check_policy: bool = True,
    policy: Policy | None = None,
) -> RunReport:
    """Do what is left of a run. The same plan on the same folder resumes.

    Everything is checked before anything is written. `on_progress` is called at the start and after each
    episode. A `policy` takes the exam in this process as it is; else one is made by the plan's name.
    """
    config, out, exam = plan.config, plan.out, plan.dataset.exam
    warnings: list[str] = []
    recorders = Recorders(out, config.recording, plan.workers) if config.recording else None
    with ExitStack() as stack:
        notes = _check(plan)
        executor = None
        if plan.left:
            executor = _executor(plan, recorders, check_policy=check_policy, policy=policy)
            stack.callback(lambda: warnings.extend(executor.close()))
            notes += check_in_env(executor.check, plan.dataset, plan.left)
            executor.start()
        notes += [*run_notes(plan), *text_notes(plan), *_replica_notes(plan)]
        journal = stack.enter_context(Journal(out, plan.identity, manifest_extras(plan)))
        keep_key(out, config.job.agent_id_key)
        discard_recordings(out, [episode.episode_id for episode in plan.left])
        if recorders:
            recorders.count_what_is_there()
        spending = Spending(config.budget, config.label, [*plan.kept.values(), *plan.thrown_away])
        attempts = Attempts(plan.left, config.patience, spending)
        repeated = list(plan.thrown_away)
        by_id = {episode.episode_id: plan.kept.get(episode.episode_id) for episode in plan.episodes}
        for progress in _do_episodes(executor, attempts, journal, by_id, repeated, notes):
            on_progress(progress)
        results = summarise(exam, [result for result in by_id.values() if result], repeated=repeated)
        if results.total_episodes == len(plan.episodes):  # else it stopped, and goes on later
            journal.save_results(results)
    if attempts.spending.problem:
        kept = "the episodes that are done are kept" if results.total_episodes else "nothing was done"
        raise UserError(f"the budget cannot be kept: {attempts.spending.problem}; {kept}")
    scored = sum(result.is_scored for result in results.episodes)
    unrecorded = sum(not recording_folder(out, key).exists() for key in plan.kept) if recorders else 0
    return RunReport(
        results=results,
        done_before=len(plan.kept),
        recorded=recorders.total() if recorders else None,
        unrecorded=unrecorded,
        warnings=list(dict.fromkeys(warnings)),
        stopped=attempts.problem if attempts.is_stopped else "",
        over_budget=attempts.spending.report(len(plan.episodes) - scored) if attempts.is_over_budget else "",
        total=len(plan.episodes),
    )


def _check(plan: RunPlan) -> list[str]:
    job = plan.config.job
    needs_scene = load("env", job.env).needs_scene
    found = check_before_run(
        job.make_exam(), plan.dataset, plan.episodes, needs_scene=needs_scene, left=plan.left
    )
    return [*plan.dataset.notes, *found]


def _executor(
    plan: RunPlan, recorders: Recorders | None, *, check_policy: bool, policy: Policy | None
) -> Executor:
    if policy is not None:
        return InProcess(plan.config.job, recorders=recorders, policy=policy)
    config = plan.config
    name = config.executor or ("in-process" if plan.workers == 1 else "workers")
    workers = None if config.workers is None else plan.workers
    class_ = load("executor", name)
    options = checked_options(class_.options_type, config.executor_options, f"executor {name}", strict=False)
    given = msgspec.structs.asdict(options)
    made: Executor = class_(config.job, workers, recorders, check=check_policy, **given)
    return made


def _do_episodes(
    executor: Executor | None,
    attempts: Attempts,
    journal: Journal,
    by_id: dict[str, EpisodeResult | None],
    repeated: list[EpisodeResult],
    notes: Sequence[str],
) -> Iterator[Progress]:
    """Write each result into the journal and into `by_id` as it comes, and say how far the run is.

    What another attempt takes the place of in `by_id` goes to `repeated`.
    """
    finished = {key: result for key, result in by_id.items() if result}
    yield Progress(len(by_id), finished.values(), notes)
    for done in executor.run(attempts) if executor is not None else ():
        if done is None:
            continue
        result = done.result
        journal.append(result.episode_id, done.record, done.trace, done.transcript)
        if (before := by_id[result.episode_id]) is not None:
            repeated.append(before)
        by_id[result.episode_id] = result
        if not result.is_unavailable:
            finished[result.episode_id] = result
        news = attempts.note_to_reader()
        yield Progress(len(by_id), finished.values(), [news] if news else [])


def check_agents(plan: RunPlan) -> None:
    """Reach the agents of a run, as many connections at once as it will have; none if all of it is done.

    For callers that do several runs and want to know of all agents before the first one begins.
    """
    addresses = replicas(plan.config.job.policy)
    with ExitStack() as stack:
        for index in range(min(plan.workers, len(plan.left))):
            policy = stack.enter_context(closing(policy_of(plan.config.job, index)))
            try:
                policy.check()
            except UserError as error:
                if index < len(addresses):
                    raise
                raise UserError(
                    f"an agent takes fewer connections at once than --workers {plan.workers} needs: {error}"
                ) from None


def _replica_notes(plan: RunPlan) -> list[str]:
    count = len(replicas(plan.config.job.policy))
    if count <= plan.workers or not plan.left:
        return []
    return [f"only {plan.workers} of {count} addresses of the agent will be used: one for each of --workers"]
