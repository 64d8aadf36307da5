"""Proctor's exams as a benchmark of vla-eval.

    benchmarks:
      - benchmark: "proctor.integrations.vla_eval:ProctorBenchmark"
        episodes_per_task: 1
        params: {suite: houses-v1}

Each episode is a task. Tasks are sent to the agent, so they hold a number and nothing that leads to a goal.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from proctor.core.errors import MissingDependency, UserError
from proctor.exams.step_metrics import metrics_of
from proctor.integrations.stepwise import StepwiseExam

try:
    from vla_eval.benchmarks.base import StepBenchmark, StepResult
    from vla_eval.specs import DimSpec
except ModuleNotFoundError as error:
    raise MissingDependency("vla-eval", "Run: pip install vla-eval") from error


class ProctorBenchmark(StepBenchmark):
    """A suite of Proctor, or an episode file, of any exam that has defaults for vla-eval.

    The options are those of `StepwiseExam`.
    """

    render_backends: ClassVar[frozenset[str]] = frozenset({"gpu", "cpu"})

    def __init__(self, suite: str = "houses-v1", *, dataset: str | None = None, **options: Any) -> None:
        super().__init__()
        self._suite = suite if dataset is None else dataset
        self._stepwise = StepwiseExam(self._suite, "vla-eval", **options)

    @classmethod
    def configure_render(cls, mode: str) -> dict[str, str]:
        """Change nothing: Proctor finds out itself whether it can draw on a GPU."""
        del mode
        return {}

    def get_tasks(self) -> list[dict[str, Any]]:
        """Return one task per episode."""
        return [{"name": f"episode_{index:04d}"} for index in range(len(self._stepwise.episodes))]

    def reset(self, task: dict[str, Any]) -> dict[str, Any]:
        """Begin the episode of a task."""
        number = str(task.get("name", "")).removeprefix("episode_")
        if not (number.isascii() and number.isdigit() and int(number) < len(self._stepwise.episodes)):
            last = f"episode_{len(self._stepwise.episodes) - 1:04d}"
            raise UserError(f"task: expected episode_0000 to {last}, found {task.get('name')!r:.60}")
        return self._stepwise.begin(int(number))

    def step(self, action: dict[str, Any]) -> StepResult:
        """Do one action: a row of numbers, or the first row of several."""
        try:
            row = np.asarray(action.get("actions"), np.float64)
        except (TypeError, ValueError):
            row = np.empty(0)  # which is no action: the episode ends as a fault of the agent
        is_done = self._stepwise.step(row)
        return StepResult(obs=self._stepwise.seen(), reward=0.0, done=is_done, info={})

    def make_obs(self, raw_obs: dict[str, Any], task: dict[str, Any]) -> dict[str, Any]:
        """Return what the agent sees."""
        del task
        return raw_obs

    def get_step_result(self, step_result: StepResult) -> dict[str, Any]:
        """Return the scores of the episode and how it ended."""
        del step_result
        result = self._stepwise.result()
        ended = {"status": result.status, "failure_reason": result.failure_reason or ""}
        return {**result.metrics, "success": result.success, **ended}

    def get_metric_keys(self) -> dict[str, str]:
        """Return the metrics of the exam's table, all of which are averaged."""
        found = metrics_of(type(self._stepwise.exam))
        return {"success": "mean"} | {metric.name: "mean" for metric in found if metric.in_table}

    def get_action_spec(self) -> dict[str, DimSpec]:
        """Return what a row of numbers may be: one entry per kind of action of the exam."""
        defaults = self._stepwise.exam.dialects
        kinds = {defaults.default_kind} if defaults.default_kind else defaults.action_kinds.keys()
        formats = frozenset(f"proctor_{kind}" for kind in kinds if kind)
        dims = {defaults.action_kinds[kind][-1] for kind in kinds if kind}
        dim = dims.pop() if len(dims) == 1 else 0
        return {"actions": DimSpec("actions", dim, min(formats), accepts=formats)}

    def get_observation_spec(self) -> dict[str, DimSpec]:
        """Return which pictures and numbers the agent sees."""
        sent = self._stepwise.exam.dialects.observations["vla-eval"].entries
        images = sent.get("images", {})
        found = {name: DimSpec(name, 0, "rgb_hwc_uint8") for name in images}
        return found | {name: DimSpec(name, 0, "proctor") for name in sent if name == "states"}

    def get_metadata(self) -> dict[str, Any]:
        """Return how many actions the longest episode may have, and which exam this is."""
        limit = max(episode.step_limit for episode in self._stepwise.episodes)
        return {"max_steps": limit, "suite": self._suite, "exam": self._stepwise.exam.name}

    def render(self) -> np.ndarray[Any, Any] | None:
        """Return the first picture of the present observation."""
        seen = self._stepwise.seen() if self._stepwise.observation else {}
        return next(iter(seen.get("images", {}).values()), None)

    def cleanup(self) -> None:
        """Close the world."""
        self._stepwise.close()
