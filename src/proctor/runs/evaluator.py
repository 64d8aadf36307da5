"""The evaluator for people who write Python: bring an env and a policy, get results."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any, Self

from proctor.core.errors import UserError
from proctor.core.interfaces import Env, Policy
from proctor.core.registry import build, dataset_path
from proctor.exams.datasets import Dataset, check_before_run, check_in_env, load_dataset
from proctor.exams.names import AnyExam, check_fit
from proctor.exams.results import EpisodeResult, Results
from proctor.runs.agent_ids import draw_key
from proctor.runs.attempts import Attempts
from proctor.runs.examiner import Examiner
from proctor.runs.job import read_exam_options
from proctor.runs.summary import summarise


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
        self._examiner = Examiner(
            env, policy, exam, seed=seed, privileged=privileged, agent_id_key=draw_key()
        )

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
        results = [done.result for done in self._examiner.examine_all(attempts)]
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


def evaluate(
    dataset: str | Path,
    policy: str | Policy,
    *,
    env: str | Env = "",
    seed: int = 0,
    options: dict[str, Any] | None = None,
) -> Results:
    """Evaluate a policy on a dataset in one call, in this process.

    Args:
        dataset: An episode file, or the name of a suite.
        policy: A name such as `oracle`, `module:Class`, or a Policy.
        env: A name such as `embedded`, or an Env; the exam's own if it is missing.
        seed: All randomness of the run depends on it.
        options: Of the exam, such as `{"success_threshold_m": 1.0}`.
    """
    path = dataset_path(dataset)
    exam_class = load_dataset(path).exam
    exam = exam_class(read_exam_options(exam_class, options or {}))
    world: Env = env if isinstance(env, Env) else build("env", env or exam.envs[0], {})
    agent: Policy = policy if isinstance(policy, Policy) else build("policy", policy, {}, exam.baselines)
    with Evaluator(world, agent, exam, seed=seed) as evaluator:
        return evaluator.evaluate_dataset(path)
