"""A whole run: which episodes, what is finished already, the rest, the results."""

from __future__ import annotations

import hashlib
import inspect
import math
import platform
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from proctor import __version__
from proctor.core.addresses import replicas
from proctor.core.errors import UserError
from proctor.runs.recordings import recording_folder
from proctor.exams.results import EpisodeResult, Results
from proctor.exams.datasets import Dataset, load_dataset
from proctor.exams.scenes_digest import scenes_digest
from proctor.runs.agent_ids import keep_key, key_of_run
from proctor.runs.attempts import Attempts, Patience
from proctor.runs.closing import close_problems
from proctor.runs.executors import InProcess, WorkerPool, policy_of
from proctor.runs.job import Job
from proctor.runs.journal import Journal, read_finished
from proctor.runs.preflight import check_episodes, check_scenes, job_notes, reach_notes, scene_notes
from proctor.runs.recorder import Recorded, Recorders, RecordingConfig, discard_recordings
from proctor.runs.summary import summarise
from proctor.runs.tasks import fitted
from proctor.core.registry import build, load, suite_path

RECORDED_PACKAGES = (
    *("mujoco", "numpy", "scipy", "trimesh", "msgspec", "websockets"),
    *("mink", "hello-robot-stretch-urdf"),  # a robot that picks depends on them, too
)
OPTIONS_OF_THE_LINE = ("token", "ca_file", "connect_timeout_s")
"""Options of served policies that say how to reach them, not what is examined; one of them is a secret."""


class RunConfig(msgspec.Struct, frozen=True, kw_only=True):
    """What to run. `suite` or `dataset` must be given."""

    job: Job
    name: str = ""
    """What to call the agent; by its policy if it is empty."""
    suite: str | None = None
    dataset: Path | None = None
    scenes: Path | None = None
    """The folder with the dataset's scenes, where they are not beside it."""
    split: str | None = None
    """Only this part of the dataset."""
    episodes: int | None = None
    """Only so many, taken from all scenes in turn."""
    episode: str | None = None
    """Only the one with this id."""
    workers: int = 1
    recording: RecordingConfig | None = None
    """What to record while episodes run. The results do not depend on it."""
    patience: Patience = Patience()
    """How long to wait for an agent that is unavailable. The results do not depend on it, either."""

    @property
    def label(self) -> str:
        """What people read: the agent's name, or else its policy."""
        return self.name or self.job.policy


class RunReport(msgspec.Struct, frozen=True):
    """A finished run."""

    results: Results
    done_before: int
    """How many of its episodes had been done by an earlier call."""
    recorded: Recorded | None = None
    """How much was recorded by this call, if that was asked for."""
    unrecorded: int = 0
    """How many episodes an earlier call had done without recording them."""
    warnings: Sequence[str] = ()
    """What went wrong without any influence on the results: an env or a policy that cannot be closed."""
    stopped: str = ""
    """Why the run stopped before its end, if it did: what an agent that is unavailable said last."""
    total: int = 0
    """How many episodes the whole run has."""


class Progress(msgspec.Struct, frozen=True):
    """Told to the caller when a run begins and after each episode."""

    total: int
    finished: Collection[EpisodeResult]
    notes: Sequence[str] = ()
    """At the beginning: what people should know about the data before they trust the numbers. Later: that
    the agent is unavailable."""


def run(
    config: RunConfig, out: Path, on_progress: Callable[[Progress], None], *, check_policy: bool = True
) -> RunReport:
    """Do what is left of a run in its directory. Everything is checked before anything is written.

    Args:
        config: What to run.
        out: The run directory. The same call on the same directory resumes.
        on_progress: Called at the start and after each episode.
        check_policy: Whether to find out first if the agent is there.

    Raises:
        UserError: Something about the request is wrong; nothing was written.
    """
    out = out.resolve()  # an agent may change the working directory
    config, dataset, episodes, identity, kept, left = _plan(config, out)
    check_scenes(dataset, left, needs_scene=load("env", config.job.env).needs_scene)
    found: list[str] = []
    warnings: list[str] = []
    if left:
        env = build("env", config.job.env, config.job.env_options)
        with _closed_with_warnings(partial(close_problems, env), warnings):
            found = check_episodes(env, dataset, left)
    workers = max(1, min(config.workers, len(left)))
    recorders = Recorders(out, config.recording, workers) if config.recording else None
    executor = _executor(config, workers, recorders, check_policy=check_policy) if left else _Idle()
    with (
        _closed_with_warnings(executor.close, warnings),
        Journal(out, identity, _record(config, dataset)) as journal,
    ):
        keep_key(out, config.job.agent_id_key)
        discard_recordings(out, [episode.episode_id for episode in left])
        if recorders:
            recorders.count_what_is_there()
        attempts = Attempts(left, config.patience)
        notes = [
            *dataset.notes,
            *scene_notes(episodes),
            *reach_notes(episodes),
            *found,
            *job_notes(config.job),
            *(_replica_notes(config, workers) if left else []),
        ]
        by_id = {episode.episode_id: kept.get(episode.episode_id) for episode in episodes}
        for progress in _do_episodes(executor, attempts, journal, by_id, notes):
            on_progress(progress)
        results = summarise([result for result in by_id.values() if result])
        if results.total_episodes == len(episodes):  # else it stopped, and goes on later
            journal.save_results(results)
    unrecorded = sum(not recording_folder(out, key).exists() for key in kept) if recorders else 0
    return RunReport(
        results=results,
        done_before=len(kept),
        recorded=recorders.total() if recorders else None,
        unrecorded=unrecorded,
        warnings=list(dict.fromkeys(warnings)),
        stopped=attempts.problem if attempts.is_stopped else "",
        total=len(episodes),
    )


def _do_episodes(
    executor: InProcess | WorkerPool | _Idle,
    attempts: Attempts,
    journal: Journal,
    by_id: dict[str, EpisodeResult | None],
    notes: Sequence[str],
) -> Iterator[Progress]:
    """Write each result into the journal and into `by_id` as it comes, and say how far the run is."""
    finished = {key: result for key, result in by_id.items() if result}
    yield Progress(len(by_id), finished.values(), notes)
    for result in executor.run(attempts):
        journal.append(result)
        by_id[result.episode_id] = result
        if not result.is_unavailable:
            finished[result.episode_id] = result
        news = attempts.note_to_reader()
        yield Progress(len(by_id), finished.values(), [news] if news else [])


@contextmanager
def _closed_with_warnings(close: Callable[[], list[str]], warnings: list[str]) -> Iterator[None]:
    try:
        yield
    finally:
        warnings += close()


def check_agents(config: RunConfig, out: Path) -> None:
    """Reach the agents of a run, as many connections at once as it will have; none if all of it is done.

    For callers that do several runs and want to know of all agents before the first one begins.

    Raises:
        UserError: An agent is not there, or something else about the request is wrong.
    """
    config, *_, left = _plan(config, out.resolve())
    addresses = replicas(config.job.policy)
    with ExitStack() as stack:
        for index in range(min(config.workers, len(left))):
            policy = stack.enter_context(closing(policy_of(config.job, index)))
            try:
                policy.check()
            except UserError as error:
                if index < len(addresses):
                    raise
                raise UserError(
                    f"an agent takes fewer connections at once than --workers {config.workers} needs: {error}"
                ) from None


def load_exam(config: RunConfig) -> Dataset:
    """Read the dataset of a run.

    Raises:
        UserError: There is no such suite, or the dataset is wrong.
    """
    path = suite_path(config.suite) if config.suite is not None else config.dataset
    if path is None:
        raise UserError("expected a suite or a dataset, found neither")
    return load_dataset(path, scenes=config.scenes)


class _Plan(NamedTuple):
    config: RunConfig
    """With what the dataset decides of the job."""
    dataset: Dataset
    episodes: Sequence[Any]
    identity: dict[str, Any]
    kept: dict[str, EpisodeResult]
    left: Sequence[Any]


def _plan(config: RunConfig, out: Path) -> _Plan:
    """Find out what a run consists of, and what of it is left to do."""
    if config.workers < 1:
        raise UserError(f"expected at least 1 worker, found {config.workers}")
    if not 0 < config.job.success_threshold_m < math.inf:
        raise UserError(f"expected a success threshold above 0 m, found {config.job.success_threshold_m}")
    config.patience.check()
    dataset = load_exam(config)
    job = msgspec.structs.replace(fitted(config.job, dataset.task), agent_id_key=key_of_run(out))
    config = msgspec.structs.replace(config, job=job)
    episodes = dataset.select(split=config.split, count=config.episodes, episode_id=config.episode)
    identity = _identity(config, dataset, episodes)
    kept = {key: r for key, r in read_finished(out, identity).items() if r.is_scored}
    left = [episode for episode in episodes if episode.episode_id not in kept]
    return _Plan(config, dataset, episodes, identity, kept, left)


class _Idle:
    """The executor for nothing to do: builds neither env nor policy."""

    def run(self, attempts: Attempts) -> Iterator[EpisodeResult]:
        return iter(())

    def close(self) -> list[str]:
        return []


def _executor(
    config: RunConfig, workers: int, recorders: Recorders | None, *, check_policy: bool
) -> InProcess | WorkerPool:
    if workers == 1:
        return InProcess(config.job, recorders, check=check_policy)
    return WorkerPool(config.job, workers, recorders, check=check_policy)


def _replica_notes(config: RunConfig, workers: int) -> list[str]:
    count = len(replicas(config.job.policy))
    if count <= workers:
        return []
    return [f"only {workers} of {count} addresses of the agent will be used: one for each of --workers"]


def _identity(config: RunConfig, dataset: Dataset, episodes: Sequence[Any]) -> dict[str, Any]:
    """Return what must be equal for two calls to be the same run. The number of workers is not in it."""
    policy = load("policy", config.job.policy)
    ids = "\n".join(episode.episode_id for episode in episodes)
    job = config.job.identity()
    job["policy_options"] = {k: v for k, v in job["policy_options"].items() if k not in OPTIONS_OF_THE_LINE}
    return {
        "proctor": __version__,
        "dataset": config.suite or dataset.path.name,
        "episodes": len(episodes),
        "scenes_sha256": scenes_digest(episodes),
        "dataset_sha256": dataset.digest,
        "episode_ids_sha256": hashlib.sha256(ids.encode()).hexdigest(),
        "policy_sha256": _agent_digest(policy, config.job.policy_options),
        **({"name": config.name} if config.name else {}),
        **job,
    }


def _agent_digest(policy: type, options: dict[str, Any]) -> str:
    """Return a hash of the files that make a policy what it is: an edited agent is another agent."""
    digest = hashlib.sha256()
    for file in (inspect.getsourcefile(policy), options.get("mapping")):
        if isinstance(file, str) and Path(file).is_file():
            digest.update(Path(file).read_bytes())
    return digest.hexdigest()


def _record(config: RunConfig, dataset: Dataset) -> dict[str, Any]:
    """Return what else the manifest says: where the exam lies, for the report, and what it was run with."""
    packages = {}
    for name in RECORDED_PACKAGES:
        try:
            packages[name] = version(name)
        except PackageNotFoundError:
            continue
    return {
        **({"notes": notes} if (notes := job_notes(config.job)) else {}),
        "source": {
            "dataset": str(dataset.path.resolve()),
            "scenes": str(config.scenes.resolve()) if config.scenes else None,
        },
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": packages,
    }
