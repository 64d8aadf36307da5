"""For people who write Python: `proctor.evaluate`, as often as a training loop asks for it, and `Evaluator`.

Worlds stay open between calls, and so do the scenes in them: an epoch does not build them again.
"""

from __future__ import annotations

import atexit
import os
import warnings
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any, Self

import msgspec

from proctor.core.errors import UserError
from proctor.core.interfaces import Env, Policy
from proctor.core.registry import build, dataset_path
from proctor.exams.datasets import Dataset, check_before_run, check_in_env, load_dataset
from proctor.exams.names import AnyExam, check_fit
from proctor.exams.results import EpisodeResult, Results
from proctor.runs.agent_ids import draw_key
from proctor.runs.attempts import Attempts
from proctor.runs.examiner import Examiner
from proctor.runs.job import RunJob, read_exam_options
from proctor.runs.summary import summarise
from proctor.runs.turns import close_problems

MAX_OPEN_SCENES = 16
"""A house takes 60 MB."""
_OPEN_ENVS: dict[bytes, Env] = {}
"""Those that no call is using now, by name and options."""


class Evaluator:
    """Runs episodes of one exam in this process. Use as a context manager, or call `close`.

    All randomness depends on `seed`. For runs that survive a crash, use several processes or are compared
    later, see `proctor run`.
    """

    def __init__(self, env: Env, policy: Policy, exam: AnyExam, *, seed: int = 0) -> None:
        check_fit(type(exam), "env", type(env).__name__, type(env))
        check_fit(type(exam), "policy", type(policy).__name__, type(policy))
        self._exam = exam
        privileged = bool(type(policy).privileged)  # now: what the class says later changes nothing
        job = RunJob(policy="", seed=seed, privileged=privileged, agent_id_key=draw_key())
        self._examiner = Examiner(env, policy, exam, job)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def evaluate_episode(self, episode: Any) -> EpisodeResult:
        """Let the policy take one episode."""
        return self._examiner.examine(episode).result

    def evaluate_dataset(self, dataset: str | Path, *, episodes: int | None = None) -> Results:
        """Let the policy take all episodes of a file, or a few from all of its scenes."""
        loaded = load_dataset(Path(dataset))
        if loaded.exam is not type(self._exam):
            raise UserError(
                f"{loaded.path}: expected episodes of {self._exam.name}, as {type(self).__name__} takes, "
                f"found {loaded.task}"
            )
        return self.evaluate(loaded, episodes=episodes)

    def evaluate(self, dataset: Dataset, *, episodes: int | None = None, split: str | None = None) -> Results:
        """Let the policy take the episodes of a dataset of this exam, or a few from all of its scenes."""
        selected = dataset.select(split=split, count=episodes)
        env = self._examiner.env
        check_before_run(self._exam, dataset, selected, needs_scene=env.needs_scene)
        check_in_env(env.check, dataset, selected)
        attempts = Attempts(selected)
        results = [done.result for done in self._examiner.examine_all(attempts) if done]
        found = {result.episode_id: result for result in results}
        repeated = [result for result in results if result is not found[result.episode_id]]
        if attempts.is_stopped:
            said = f"stopped after {len(found)} of {len(selected)} episodes: the agent is unavailable"
            warnings.warn(f"{said} ({attempts.problem})", RuntimeWarning, stacklevel=2)
        last = [found[episode.episode_id] for episode in selected if episode.episode_id in found]
        return summarise(type(self._exam), last, repeated=repeated)

    def save_results(self, results: Results, path: str | Path) -> None:
        """Write results as JSON, making the folder if needed."""
        results.save(Path(path))

    def close(self) -> None:
        """Close the policy and the env; warn of what they raise. May be called twice."""
        for problem in self._examiner.close():
            warnings.warn(problem, RuntimeWarning, stacklevel=2)


def evaluate(  # noqa: PLR0913  (two that matter, and options by keyword)
    policy: str | Policy,
    suite: str | Path,
    *,
    episodes: int | None = None,
    split: str | None = None,
    seed: int = 0,
    env: str | Env = "",
    env_options: Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
) -> Results:
    """Let a policy take an exam, and return its scores. The same call takes the same episodes again.

    A policy or an env that is given as an object is not closed and may be used on. An env that is given by
    name stays open for the next call with the same options, until `proctor.close()` or the end of the
    process. For runs that survive a crash, use several processes or are compared later, see `proctor run`.

    Args:
        policy: A `Policy`, such as the one being trained, or a name such as `oracle` or `module:Class`.
        suite: The name of a suite such as `houses-v1`, or an episode file.
        episodes: Only so many, taken from all scenes in turn, as `proctor run --episodes` does.
        split: Only this part of the dataset, such as `val_unseen`.
        seed: All randomness of policy and episodes depends on it.
        env: An `Env`, or a name such as `embedded`; the exam's own if it is missing.
        env_options: Of an env that is given by name, such as `{"width": 320}`.
        options: Of the exam, such as `{"success_threshold_m": 1.0}`.
    """
    if not isinstance(policy, str | Policy):
        raise UserError(
            f"evaluate: expected a Policy or the name of one first, found {type(policy).__name__}"
        )
    if not isinstance(suite, str | Path):
        raise UserError(f"evaluate: expected a suite or an episode file, found {type(suite).__name__}")
    if isinstance(env, Env) and env_options:
        raise UserError("evaluate: env_options are for an env that is given by name; give yours its own")
    dataset = load_dataset(dataset_path(suite))
    exam_class, of_env = dataset.exam, dict(env_options or {})
    exam = exam_class(read_exam_options(exam_class, exam_class.completed_options(options or {}, of_env)))
    of_env |= exam_class.env_options(exam.options, seed)
    with ExitStack() as stack:
        world = env if isinstance(env, Env) else stack.enter_context(_open_env(env or exam.envs[0], of_env))
        agent = policy
        if isinstance(agent, str):
            agent = stack.enter_context(closing(build("policy", agent, {}, exam.baselines)))
        return Evaluator(world, agent, exam, seed=seed).evaluate(dataset, episodes=episodes, split=split)


def close() -> None:
    """Close the worlds that `evaluate` keeps open."""
    while _OPEN_ENVS:
        _, env = _OPEN_ENVS.popitem()
        for problem in close_problems(env):
            warnings.warn(problem, RuntimeWarning, stacklevel=2)


@contextmanager
def _open_env(name: str, options: Mapping[str, Any]) -> Iterator[Env]:
    """Lend an env that is open already, else a new one. No two calls have the same at the same time."""
    key = msgspec.json.encode([name, options], order="deterministic", enc_hook=repr)
    env = _OPEN_ENVS.pop(key, None)
    if env is None:
        env = build("env", name, options)
        env.max_open_scenes = MAX_OPEN_SCENES
    try:
        yield env
    except BaseException:
        close_problems(env)  # nobody knows in which state it is
        raise
    if _OPEN_ENVS.setdefault(key, env) is not env:
        close_problems(env)
    # What is registered last is called first: before the modules that env has imported close OpenGL.
    atexit.unregister(close)
    atexit.register(close)


os.register_at_fork(after_in_child=_OPEN_ENVS.clear)  # OpenGL does not survive a fork
