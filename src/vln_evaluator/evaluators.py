"""Evaluators under the names of the design documents."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from proctor.core.interfaces import Env, Policy
from proctor.core.registry import build
from proctor.exams.names import all_baselines
from proctor.exams.pick_place.exam import PickPlaceExam, PickPlaceOptions
from proctor.exams.results import Results
from proctor.exams.vln.episode import DEFAULT_SUCCESS_THRESHOLD_M
from proctor.exams.vln.exam import VlnExam, VlnOptions
from proctor.runs.evaluate import Evaluator


class VLNEvaluator(Evaluator):
    """Runs VLN episodes.

    `success_threshold` is how near to the goal a STOP counts, in metres, for episodes that do not say; the
    env's own, else 0.2 m, if missing.
    """

    def __init__(
        self, env: Env, policy: Policy, *, success_threshold: float | None = None, seed: int = 0
    ) -> None:
        given = (success_threshold, env.success_threshold_m, DEFAULT_SUCCESS_THRESHOLD_M)
        threshold_m = next(each for each in given if each is not None)
        super().__init__(env, policy, VlnExam(VlnOptions(success_threshold_m=threshold_m)), seed=seed)


class PickPlaceEvaluator(Evaluator):
    """Runs pick-and-place episodes; `hide_goal` keeps coordinates of objects and places from the agent."""

    def __init__(self, env: Env, policy: Policy, *, seed: int = 0, hide_goal: bool = False) -> None:
        super().__init__(env, policy, PickPlaceExam(PickPlaceOptions(hide_goal=hide_goal)), seed=seed)


def evaluate_vln(
    dataset: str | Path,
    *,
    env: str | Env = VlnExam.envs[0],
    policy: str | Policy = "random",
    seed: int = 0,
    **options: Any,
) -> Results:
    """Evaluate a policy on an episode file in one call.

    Env and policy may be objects or names: `embedded` or `mock`, and `oracle` or `module:Class`. `options`
    are further arguments of VLNEvaluator.
    """
    with VLNEvaluator(*_built(env, policy, VlnExam), seed=seed, **options) as evaluator:
        return evaluator.evaluate_dataset(dataset)


def evaluate_pick_place(
    dataset: str | Path,
    *,
    env: str | Env = PickPlaceExam.envs[0],
    policy: str | Policy = "expert",
    seed: int = 0,
    **options: Any,
) -> Results:
    """Evaluate a policy on an episode file in one call.

    Env and policy may be objects or names: `tabletop`, and `expert` or `module:Class`. `options` are further
    arguments of PickPlaceEvaluator.
    """
    with PickPlaceEvaluator(*_built(env, policy, PickPlaceExam), seed=seed, **options) as evaluator:
        return evaluator.evaluate_dataset(dataset)


def _built(
    env: str | Env, policy: str | Policy, exam: type[VlnExam] | type[PickPlaceExam]
) -> tuple[Env, Policy]:
    built_env: Env = build("env", env, {}) if isinstance(env, str) else env
    if not isinstance(policy, str):
        return built_env, policy
    return built_env, build("policy", policy, {}, all_baselines() | dict(exam.baselines))
