"""The evaluator for people who write Python: bring an env and a policy, get results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from proctor.core.interfaces import Env, Policy
from proctor.core.results import EpisodeResult, Results
from proctor.episodes.datasets import load_dataset
from proctor.episodes.vln import DEFAULT_SUCCESS_THRESHOLD_M, Episode
from proctor.evaluation.executors import Examiner
from proctor.evaluation.preflight import check_scenes
from proctor.evaluation.summary import summarise
from proctor.evaluation.vln_task import VLNTask
from proctor.registry import build


class VLNEvaluator:
    """Runs VLN episodes in this process. Use as a context manager, or call `close`.

    For runs that survive a crash, use several processes or are compared later, see `proctor run`.

    Args:
        env: The world.
        policy: The agent.
        success_threshold: Metres from the goal within which a STOP counts, for episodes that do not say.
        seed: All randomness of the run depends on it.
    """

    def __init__(
        self,
        env: Env,
        policy: Policy,
        *,
        success_threshold: float = DEFAULT_SUCCESS_THRESHOLD_M,
        seed: int = 0,
    ) -> None:
        task = VLNTask(success_threshold_m=success_threshold)
        self._examiner = Examiner(env, policy, task, seed=seed)

    def __enter__(self) -> VLNEvaluator:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def evaluate_episode(self, episode: Episode) -> EpisodeResult:
        """Let the policy take one episode."""
        return self._examiner.examine(episode)

    def evaluate_dataset(self, dataset: str | Path, *, episodes: int | None = None) -> Results:
        """Let the policy take all episodes of a file, or the first few.

        Raises:
            InvalidFile: The file is missing or wrong.
        """
        loaded = load_dataset(Path(dataset))
        selected = loaded.select(count=episodes)
        check_scenes(loaded, selected, needs_scene=self._examiner.env.needs_scene)
        self._examiner.env.check(selected)
        return summarise([self.evaluate_episode(episode) for episode in selected])

    def save_results(self, results: Results, path: str | Path) -> None:
        """Write results as JSON, making the folder if needed."""
        results.save(Path(path))

    def close(self) -> None:
        """Close the policy and the env. May be called twice."""
        self._examiner.close()


def evaluate_vln(
    dataset: str | Path,
    *,
    env: str | Env = "embedded",
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
    world = build("env", env, {}) if isinstance(env, str) else env
    agent = build("policy", policy, {}) if isinstance(policy, str) else policy
    with VLNEvaluator(world, agent, seed=seed, **options) as evaluator:
        return evaluator.evaluate_dataset(dataset)
