"""A planned run: which episodes of which dataset, what defines it, and what of it is left to do.

A dataset is read once per command, however many policies take it; each of them gets a plan.
"""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from proctor import __version__
from proctor.core.errors import UserError
from proctor.core.options import hide_secrets
from proctor.core.registry import load, suite_path
from proctor.exams.datasets import Dataset, load_dataset, scenes_digest
from proctor.exams.results import EpisodeResult
from proctor.exams.step_metrics import metrics_of
from proctor.runs.agent_ids import key_of_run
from proctor.runs.attempts import Patience
from proctor.runs.budget import RunBudget
from proctor.runs.conditions import delivered_texts
from proctor.runs.folder import JOURNAL, MANIFEST, read_manifest
from proctor.runs.job import RunJob, agent_digest, fit_job
from proctor.runs.journal import read_earlier_attempts
from proctor.runs.latency import latency_notes
from proctor.runs.recorder import RecordingConfig
from proctor.runs.sharing import LONGEST_LEASE_S, SHORTEST_LEASE_S

RECORDED_PACKAGES = (
    *("mujoco", "numpy", "scipy", "trimesh", "msgspec", "websockets"),
    *("mink", "hello-robot-stretch-urdf"),  # a robot that picks depends on them, too
)
WITHOUT_INFLUENCE = ("msgspec", "websockets")  # on results: other versions may go on with a run
CONNECTION_OPTIONS = ("token", "ca_file", "connect_timeout_s", "wire")
"""Options of served policies that say how to reach them, or what to keep of what was exchanged with them, not
what is examined; one of them is a secret."""


class RunConfig(msgspec.Struct, frozen=True, kw_only=True):
    """What to run. `suite` or `dataset` must be given."""

    job: RunJob
    name: str = ""  # what to call the agent; by its policy if it is empty
    suite: str | None = None
    dataset: Path | None = None
    scenes: Path | None = None  # the folder with the dataset's scenes, where they are not beside it
    split: str | None = None  # only this part of the dataset
    episodes: int | None = None  # only so many, taken from all scenes in turn
    episode: str | None = None  # only the one with this id
    workers: int | None = None  # processes; if nobody said how many, one here, or all of a cluster
    executor: str = ""  # a name of the registry; by the number of workers if it is empty
    executor_options: dict[str, Any] = {}
    lease_s: float = (
        60.0  # who gives no sign of life for so long is taken for dead by others who share the run
    )
    recording: RecordingConfig | None = None
    """What to record while episodes run. The results do not depend on it."""
    patience: Patience = Patience()
    """How long to wait for an agent that is unavailable. The results do not depend on it, either."""
    budget: RunBudget = RunBudget()
    """What all attempts of the run together may use."""

    @property
    def label(self) -> str:
        """What people read: the agent's name, or else its policy."""
        return self.name or self.job.policy


class RunPlan(NamedTuple):
    """A run that is ready to begin, or to go on."""

    config: RunConfig  # with what the dataset decides of the job
    out: Path  # the run's folder, absolute: an agent may change the working directory
    dataset: Dataset
    episodes: Sequence[Any]
    identity: dict[str, Any]
    """What must be equal for two calls to be the same run. The number of workers is not in it."""
    kept: dict[str, EpisodeResult]
    """What an earlier call has finished and need not be done again, by episode id."""
    left: Sequence[Any]  # what is left to do
    thrown_away: Sequence[EpisodeResult] = ()  # earlier attempts that do not count
    journal_bytes: int = 0  # how long the journal was when it was read

    @property
    def workers(self) -> int:
        """How many processes there is something to do for."""
        return max(1, min(self.config.workers or 1, len(self.left)))


def load_run_dataset(config: RunConfig) -> Dataset:
    """Read the dataset of a run."""
    path = suite_path(config.suite) if config.suite is not None else config.dataset
    if path is None:
        raise UserError("expected a suite or a dataset, found neither")
    return load_dataset(path, scenes=config.scenes)


def plan_run(config: RunConfig, out: Path, dataset: Dataset | None = None) -> RunPlan:
    """Find out what a run consists of, and what of it is left to do. Nothing is written."""
    if config.workers is not None and config.workers < 1:
        raise UserError(f"expected at least 1 worker, found {config.workers}")
    if not SHORTEST_LEASE_S <= config.lease_s <= LONGEST_LEASE_S:  # nor NaN
        limits = f"seconds from {SHORTEST_LEASE_S:g} to {LONGEST_LEASE_S:g}"
        raise UserError(f"--lease: expected {limits}, found {config.lease_s:g}")
    config.patience.check()
    out = out.resolve()
    dataset = load_run_dataset(config) if dataset is None else dataset
    metrics_of(dataset.exam)  # one of another package that is broken is refused here
    job = msgspec.structs.replace(fit_job(config.job, dataset.exam), agent_id_key=key_of_run(out))
    config.budget.check(load("policy", job.policy, dataset.exam.baselines), config.label, job.policy_options)
    config = msgspec.structs.replace(config, job=job)
    episodes = dataset.select(split=config.split, count=config.episodes, episode_id=config.episode)
    identity = _identity(config, dataset, episodes)
    plan = _with_what_is_left(RunPlan(config, out, dataset, episodes, identity, {}, []))
    texts = delivered_texts(job.conditions, job.make_exam(), dataset.episodes, plan.left, seed=job.seed)
    config = msgspec.structs.replace(config, job=msgspec.structs.replace(job, texts=texts))
    return plan._replace(config=config)


def _with_what_is_left(plan: RunPlan) -> RunPlan:
    journal_bytes = size_of_journal(plan.out)
    attempts = read_earlier_attempts(plan.out, plan.identity, plan.dataset.exam)
    finished = {result.episode_id: result for result in attempts}
    kept = {key: result for key, result in finished.items() if result.is_scored}
    thrown_away = [result for result in attempts if kept.get(result.episode_id) is not result]
    left = [episode for episode in plan.episodes if episode.episode_id not in kept]
    return plan._replace(kept=kept, left=left, thrown_away=thrown_away, journal_bytes=journal_bytes)


def size_of_journal(out: Path) -> int:
    """Return how long the journal of a run is; 0 if there is none yet."""
    journal = out / JOURNAL
    return journal.stat().st_size if journal.is_file() else 0


def updated_plan(plan: RunPlan) -> RunPlan:
    """Return a plan as the journal is now: others may have done episodes since it was made."""
    return plan if size_of_journal(plan.out) == plan.journal_bytes else _with_what_is_left(plan)


def with_first_worker(plan: RunPlan, number: int) -> RunPlan:
    """Return a plan whose workers are numbered from here, so that they use other addresses of the agent."""
    job = msgspec.structs.replace(plan.config.job, first_worker=number)
    return plan._replace(config=msgspec.structs.replace(plan.config, job=job))


def identity_of(dataset: Dataset, episodes: Sequence[Any], name: str) -> dict[str, Any]:
    """Return what of a dataset defines a run on some of its episodes."""
    ids = "\n".join(episode.episode_id for episode in episodes)
    return {
        "proctor": __version__,
        "dataset": name,
        "episodes": len(episodes),
        "scenes_sha256": scenes_digest(dataset.exam, episodes),
        "dataset_sha256": dataset.digest,
        "episode_ids_sha256": hashlib.sha256(ids.encode()).hexdigest(),
    }


def _identity(config: RunConfig, dataset: Dataset, episodes: Sequence[Any]) -> dict[str, Any]:
    policy = load("policy", config.job.policy, dataset.exam.baselines)
    job = config.job.identity()
    left_out = getattr(policy, "connection_options", CONNECTION_OPTIONS)
    job["policy_options"] = {k: v for k, v in job["policy_options"].items() if k not in left_out}
    return {
        **identity_of(dataset, episodes, config.suite or dataset.path.name),
        **({"name": config.name} if config.name else {}),
        **hide_secrets(job),
        "policy_sha256": agent_digest(config.job),
    }


def run_notes(plan: RunPlan) -> list[str]:
    """Return what a reader of the results must know about how they were obtained."""
    job, exam = plan.config.job, plan.dataset.exam
    policy = load("policy", job.policy, exam.baselines)
    robot = f"driven by the robot {job.env_options.get('robot')}; distances are the standard base's"
    return [
        *([robot] if "robot" in plan.identity else []),
        *exam.notes(job.make_exam().options, job.env_options),
        *policy.result_notes(job.policy_options),
        *job.conditions.notes(),
        *latency_notes(job.conditions),
    ]


def text_notes(plan: RunPlan) -> list[str]:
    """Return how many of the episodes that are left get another text than their own."""
    job = plan.config.job
    if not job.texts:
        return []
    exam = job.make_exam()
    changed = sum(job.texts[episode.episode_id] != exam.instruction(episode) for episode in plan.left)
    return [f"{job.conditions.instructions} instructions: {changed} of {len(plan.left)} are not as stored"]


def manifest_extras(plan: RunPlan) -> dict[str, Any]:
    """Return what else the manifest says: where the dataset lies, and what it was run with."""
    scenes = plan.config.scenes
    return {
        **({"notes": notes} if (notes := run_notes(plan)) else {}),
        "source": {
            "dataset": str(plan.dataset.path.resolve()),
            "scenes": str(scenes.resolve()) if scenes else None,
        },
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": package_versions(),
    }


def software_versions() -> dict[str, str]:
    """Return the versions on which results depend: they are to be the same wherever a run is done."""
    return _software(__version__, platform.python_version(), package_versions())


def software_difference(there: Mapping[str, str], of_run: Mapping[str, str]) -> str:
    """Return what differs of the software of a host; empty if it is that of the run."""
    for name in {**of_run, **there}:
        found, expected = there.get(name, "none"), of_run.get(name, "none")
        if found != expected:
            return f"{name} {found}, and the run is of {name} {expected}"
    return ""


def check_software(out: Path) -> None:
    """Raise a UserError if a run was begun with other software than that of this process."""
    if not (out / MANIFEST).exists():
        return
    begun = read_manifest(out / MANIFEST)
    of_run = _software(begun["identity"].get("proctor"), begun.get("python"), begun.get("packages", {}))
    difference = software_difference(software_versions(), of_run)
    if difference and "packages" in begun:  # not a run of an early version
        raise UserError(f"{out}: here is {difference}; install the same, or give --out another folder")


def _software(proctor: Any, python: Any, packages: Mapping[str, str]) -> dict[str, str]:
    kept = {name: version for name, version in packages.items() if name not in WITHOUT_INFLUENCE}
    return {"Proctor": str(proctor), "Python": ".".join(str(python).split(".")[:2]), **kept}


def package_versions() -> dict[str, str]:
    """Return the versions of the packages that results may depend on, as far as they are installed."""
    packages = {}
    for name in RECORDED_PACKAGES:
        try:
            packages[name] = version(name)
        except PackageNotFoundError:
            continue
    return packages
