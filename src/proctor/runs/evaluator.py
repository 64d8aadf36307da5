"""The evaluator for people who write Python: bring an env and a policy, get results."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any, Self

from proctor.core.errors import UserError
from proctor.core.interfaces import Env, Policy
from proctor.exams.results import EpisodeResult, Results
from proctor.exams.datasets import load_dataset
from proctor.exams.vln.episode import DEFAULT_SUCCESS_THRESHOLD_M
from proctor.runs.attempts import Attempts
from proctor.runs.executors import Examiner
from proctor.runs.job import Job
from proctor.runs.preflight import check_episodes, check_scenes
from proctor.runs.summary import summarise
from proctor.runs.tasks import EXAMS, check_fit, make_task
from proctor.core.registry import build


class Evaluator:
    """Runs episodes of one task in this process. Use as a context manager, or call `close`.

    For runs that survive a crash, use several processes or are compared later, see `proctor run`.

    Args:
        env: The world.
        policy: The agent.
        job: The task and its options. Names of env and policy are for messages only.

    Raises:
        UserError: Env or policy are for another task.
    """

    def __init__(self, env: Env, policy: Policy, job: Job) -> None:
        check_fit("env", type(env).__name__, env, job.task)
        check_fit("policy", type(policy).__name__, policy, job.task)
        self._task = job.task
        privileged = bool(type(policy).privileged)  # now: what the class says later changes nothing
        self._examiner = Examiner(env, policy, make_task(job), seed=job.seed, privileged=privileged)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def evaluate_episode(self, episode: Any) -> EpisodeResult:
        """Let the policy take one episode."""
        return self._examiner.examine(episode)

    def evaluate_dataset(self, dataset: str | Path, *, episodes: int | None = None) -> Results:
        """Let the policy take all episodes of a file, or a few from all of its scenes.

        Raises:
            InvalidFile: The file is missing or wrong.
            UserError: Its episodes are of another task.
        """
        loaded = load_dataset(Path(dataset))
        if loaded.task != self._task:
            raise UserError(
                f"{loaded.path}: expected episodes of {self._task}, as {type(self).__name__} takes, "
                f"found {loaded.task}"
            )
        selected = loaded.select(count=episodes)
        check_scenes(loaded, selected, needs_scene=self._examiner.env.needs_scene)
        check_episodes(self._examiner.env, loaded, selected)
        attempts = Attempts(selected)
        found = {result.episode_id: result for result in self._examiner.examine_all(attempts)}
        if attempts.is_stopped:
            said = f"stopped after {len(found)} of {len(selected)} episodes: the agent is unavailable"
            warnings.warn(f"{said} ({attempts.problem})", RuntimeWarning, stacklevel=2)
        return summarise([found[e.episode_id] for e in selected if e.episode_id in found])

    def save_results(self, results: Results, path: str | Path) -> None:
        """Write results as JSON, making the folder if needed."""
        results.save(Path(path))

    def close(self) -> None:
        """Close the policy and the env; warn of what they raise. May be called twice."""
        for problem in self._examiner.close():
            warnings.warn(problem, RuntimeWarning, stacklevel=2)


class VLNEvaluator(Evaluator):
    """Runs VLN episodes.

    Args:
        env: The world.
        policy: The agent.
        success_threshold: Metres from the goal within which a STOP counts, for episodes that do not say;
            the env's own, else 0.2 m, if missing.
        seed: All randomness of the run depends on it.
    """

    def __init__(
        self,
        env: Env,
        policy: Policy,
        *,
        success_threshold: float | None = None,
        seed: int = 0,
    ) -> None:
        told = (success_threshold, env.success_threshold_m, DEFAULT_SUCCESS_THRESHOLD_M)
        threshold_m = next(each for each in told if each is not None)
        super().__init__(env, policy, Job(policy="", seed=seed, success_threshold_m=threshold_m))


class PickPlaceEvaluator(Evaluator):
    """Runs pick-and-place episodes.

    Args:
        env: The world.
        policy: The agent.
        seed: All randomness of the run depends on it.
        hide_goal: Whether to keep the coordinates of things and places from the agent.
    """

    def __init__(self, env: Env, policy: Policy, *, seed: int = 0, hide_goal: bool = False) -> None:
        super().__init__(env, policy, Job(policy="", task="pick_and_place", seed=seed, hide_goal=hide_goal))


def evaluate_vln(
    dataset: str | Path,
    *,
    env: str | Env = EXAMS["vln"].env,
    policy: str | Policy = "random",
    seed: int = 0,
    **options: Any,
) -> Results:
    """Evaluate a policy on a dataset in one call. Env and policy may be names or objects.

    Args:
        dataset: An episode file.
        env: A name such as `embedded` or `mock`, or an Env.
        policy: A name such as `oracle`, `module:Class`, or a Policy.
        seed: All randomness of the run depends on it.
        options: Further arguments of VLNEvaluator.
    """
    with VLNEvaluator(_env(env), _policy(policy), seed=seed, **options) as evaluator:
        return evaluator.evaluate_dataset(dataset)


def evaluate_pick_place(
    dataset: str | Path,
    *,
    env: str | Env = EXAMS["pick_and_place"].env,
    policy: str | Policy = "expert",
    seed: int = 0,
    **options: Any,
) -> Results:
    """Evaluate a policy on a dataset in one call. Env and policy may be names or objects.

    Args:
        dataset: An episode file.
        env: A name such as `tabletop`, or an Env.
        policy: A name such as `expert`, `module:Class`, or a Policy.
        seed: All randomness of the run depends on it.
        options: Further arguments of PickPlaceEvaluator.
    """
    with PickPlaceEvaluator(_env(env), _policy(policy), seed=seed, **options) as evaluator:
        return evaluator.evaluate_dataset(dataset)


def _env(env: str | Env) -> Env:
    found: Env = build("env", env, {}) if isinstance(env, str) else env
    return found


def _policy(policy: str | Policy) -> Policy:
    found: Policy = build("policy", policy, {}) if isinstance(policy, str) else policy
    return found
