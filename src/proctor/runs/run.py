"""Doing what is left of a planned run in its folder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing

import msgspec

from proctor.core.addresses import is_address, replicas
from proctor.core.errors import UserError
from proctor.core.interfaces import Policy
from proctor.core.options import checked_options
from proctor.core.registry import load
from proctor.exams.datasets import check_before_run, check_in_env
from proctor.exams.results import Results
from proctor.runs.attempts import Attempts
from proctor.runs.budget import Spending
from proctor.runs.examiner import policy_of
from proctor.runs.executors import Executor, InProcess
from proctor.runs.joining import begin_run, end_joined_run, end_run, join_run
from proctor.runs.journal import disk_errors
from proctor.runs.ledger import Ledger, Progress
from proctor.runs.plan import RunPlan, check_software, run_notes, text_notes
from proctor.runs.recorder import Recorders, discard_recordings
from proctor.runs.recordings import Recorded, recording_folder
from proctor.runs.resources import RunResources, resources_of
from proctor.runs.sharing import WORK
from proctor.runs.summary import summarise


class RunReport(msgspec.Struct, frozen=True):
    """A finished run."""

    results: Results
    done_before: int  # how many of its episodes had been done by an earlier call
    done_here: int = 0  # how many attempts this process has made; others may share the run
    recorded: Recorded | None = None  # how much was recorded by this call, if that was asked for
    unrecorded: int = 0  # how many episodes an earlier call had done without recording them
    warnings: Sequence[str] = ()
    """What went wrong without any influence on the results: an env or a policy that cannot be closed."""
    stopped: str = ""
    """Why the run stopped before its end, if it did: what an agent that is unavailable said last."""
    over_budget: str = ""
    """What was spent of which limit, if the run stopped because the next episode might exceed one."""
    total: int = 0  # how many episodes the whole run has
    resources: RunResources | None = None  # what all of its attempts took, if that was measured

    @property
    def unscored(self) -> int:
        """How many episodes have no score, or no result at all."""
        return self.total - sum(result.is_scored for result in self.results.episodes)


def run(
    plan: RunPlan,
    on_progress: Callable[[Progress], None],
    *,
    check_policy: bool = True,
    policy: Policy | None = None,
    join: bool = False,
) -> RunReport:
    """Do what is left of a run. The same plan on the same folder resumes.

    Everything is checked before anything is written. `on_progress` is called at the start and after each
    episode. A `policy` takes the exam in this process as it is; else one is made by the plan's name. With
    `join`, help the processes that are doing the run, and end it if they are gone.
    """
    warnings: list[str] = []
    with ExitStack() as stack:
        notes = _check(plan)
        shared = None
        if join and (plan.left or (plan.out / WORK).is_dir()):
            plan, shared = join_run(plan, stack)
        config = plan.config
        recorders = Recorders(plan.out, config.recording, plan.workers) if config.recording else None
        executor = None
        if plan.left:
            executor = _executor(plan, recorders, check_policy=check_policy, policy=policy, join=join)
            stack.callback(lambda: warnings.extend(executor.close()))
            notes += check_in_env(executor.check, plan.dataset, plan.left)
            executor.start()
        notes += [*run_notes(plan), *text_notes(plan), *_replica_notes(plan)]
        journal = None
        if not join:

            def tell(note: str) -> None:
                on_progress(Progress(len(plan.episodes), plan.kept.values(), [note]))

            plan, journal, shared = begin_run(plan, stack, tell, can_share=policy is None)
            with disk_errors(plan.out):
                discard_recordings(plan.out, [episode.episode_id for episode in plan.left], shared)
        if recorders:
            recorders.count_what_is_there()
        spending = Spending(config.budget, config.label, [*plan.kept.values(), *plan.thrown_away])
        attempts = Attempts(plan.left, config.patience, spending, shared)
        ledger = Ledger(plan, journal, shared)
        for progress in ledger.do_episodes(executor, attempts, notes):
            on_progress(progress)
        if shared and join and not attempts.is_stopped:
            ledger = end_joined_run(plan, shared, ledger)
            on_progress(ledger.progress())
            with disk_errors(plan.out):
                holder = shared.journal_holder if shared.is_there else None
            if holder:
                warnings.append(f"{holder} writes the journal, and has not ended the run; is it stopped?")
        results = summarise(plan.dataset.exam, ledger.results, repeated=ledger.repeated)
        if journal and results.total_episodes == len(plan.episodes):  # else it stopped, and goes on later
            end_run(journal, shared, results, is_stopped=attempts.is_stopped)
    return _report(plan, attempts, results, recorders, warnings, ledger)


def _report(
    plan: RunPlan,
    attempts: Attempts,
    results: Results,
    recorders: Recorders | None,
    warnings: Sequence[str],
    ledger: Ledger,
) -> RunReport:
    if attempts.spending.problem:
        kept = "the episodes that are done are kept" if results.total_episodes else "nothing was done"
        raise UserError(f"the budget cannot be kept: {attempts.spending.problem}; {kept}")
    scored = sum(result.is_scored for result in results.episodes)
    is_recorded = [recording_folder(plan.out, key).exists() for key in plan.kept] if recorders else []
    return RunReport(
        results=results,
        done_before=len(plan.kept),
        done_here=ledger.done_here,
        recorded=recorders.total() if recorders else None,
        unrecorded=is_recorded.count(False),
        warnings=list(dict.fromkeys(warnings)),
        stopped=attempts.problem if attempts.is_stopped else "",
        over_budget=attempts.spending.report(len(plan.episodes) - scored) if attempts.is_over_budget else "",
        total=len(plan.episodes),
        resources=resources_of([*ledger.results, *ledger.repeated]),
    )


def check_run(plan: RunPlan, *, start: bool) -> list[str]:
    """Check what `run` checks before it begins, and return what it would tell. Nothing is written.

    With `start`, also start the workers and end them again: only that shows whether a cluster is there.
    """
    notes = _check(plan)
    if plan.left:
        is_known = is_address(plan.config.job.policy)  # such agents are reached before
        executor = _executor(plan, None, check_policy=not is_known, policy=None, join=False)
        try:
            notes += check_in_env(executor.check, plan.dataset, plan.left)
            if start:
                executor.start()
        finally:
            executor.close()
    return [*notes, *run_notes(plan), *text_notes(plan), *_replica_notes(plan)]


def _check(plan: RunPlan) -> list[str]:
    job = plan.config.job
    if plan.left:
        check_software(plan.out)
    needs_scene = load("env", job.env).needs_scene
    found = check_before_run(
        job.make_exam(), plan.dataset, plan.episodes, needs_scene=needs_scene, left=plan.left
    )
    return [*plan.dataset.notes, *found]


def _executor(
    plan: RunPlan, recorders: Recorders | None, *, check_policy: bool, policy: Policy | None, join: bool
) -> Executor:
    if policy is not None:
        return InProcess(plan.config.job, recorders=recorders, policy=policy)
    config = plan.config
    # Who helps with a run of others has a pool: what a policy breaks then is its own process.
    name = config.executor or ("in-process" if plan.workers == 1 and not join else "workers")
    workers = None if config.workers is None else plan.workers
    class_ = load("executor", name)
    options = checked_options(class_.options_type, config.executor_options, f"executor {name}", strict=False)
    given = msgspec.structs.asdict(options)
    made: Executor = class_(config.job, workers, recorders, check=check_policy, **given)
    return made


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
