"""An exam whose loop belongs to another harness: episodes, steps and grades are as in a run of Proctor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from proctor.agents.dialects.mapping import ActionMapping, Kind, RowTranslator
from proctor.agents.dialects.mapping import Mapping as RowMapping
from proctor.core.errors import UserError
from proctor.core.interfaces import Env
from proctor.core.registry import build, dataset_path
from proctor.core.types import Array, EpisodeInfo, Observation
from proctor.exams.datasets import check_before_run, check_in_env, load_dataset
from proctor.exams.results import EpisodeResult, Fault
from proctor.runs.conditions import Conditions, Presentation
from proctor.runs.examiner import episode_seed, finish
from proctor.runs.job import read_exam_options
from proctor.runs.turns import Turns, close_problems


class StepwiseExam:
    """The episodes of a suite in one world, each done step by step.

    Actions are rows of numbers. The exam's defaults for a dialect say what the agent sees. Ground truth stays
    in here.

    Args:
        suite: The name of a suite such as `houses-v1`, or an episode file.
        dialect: For whose names the exam has defaults.
        action_kinds: What a row of numbers is: the first of these kinds that the exam has, else its default.
        episodes: Only so many, taken from all scenes in turn, as `proctor run --episodes` does.
        env: The name of a world; the exam's own if it is missing.
        env_options: Of the world, such as `{"width": 320}`.
        options: Of the exam, such as `{"success_threshold_m": 1.0}`.
        seed: All randomness depends on it.

    Raises:
        UserError: The suite cannot be read, or cannot be done in this world.
    """

    def __init__(  # noqa: PLR0913  (options by keyword)
        self,
        suite: str | Path,
        dialect: str,
        *,
        action_kinds: Sequence[Kind] = (),
        episodes: int | None = None,
        env: str = "",
        env_options: Mapping[str, Any] | None = None,
        options: Mapping[str, Any] | None = None,
        seed: int = 0,
    ) -> None:
        dataset = load_dataset(dataset_path(suite))
        of_env = dict(env_options or {})
        given = dataset.exam.completed_options(dict(options or {}), of_env)
        self.exam = dataset.exam(read_exam_options(dataset.exam, given))
        self.episodes = dataset.select(count=episodes)
        of_env |= dataset.exam.env_options(self.exam.options, seed)
        self._env: Env = build("env", env or self.exam.envs[0], of_env)
        check_before_run(self.exam, dataset, self.episodes, needs_scene=self._env.needs_scene)
        check_in_env(self._env.check, dataset, self.episodes)
        known = self.exam.dialects.action_kinds
        self.action_kind = next((kind for kind in action_kinds if kind in known), None)
        mapping = RowMapping(action=ActionMapping(kind=self.action_kind))
        self._translator, self._seed = RowTranslator(dialect, mapping), seed
        self._episode: Any = None
        self._turns = Turns()
        self._fault: Fault | None = None
        self._result: EpisodeResult | None = None
        self.info = EpisodeInfo(episode_id="", instruction="", max_steps=0, seed=seed)
        self.observation: Observation = {}

    def begin(self, index: int) -> dict[str, Any]:
        """Begin an episode by its number, and return what the agent sees."""
        episode, self._episode = self.episodes[index], None
        self._turns, self._fault, self._result = Turns(), None, None
        with self._turns.of("env"):
            self.observation = self._env.reset(episode)
            self._turns.trace = self.exam.first_trace(episode, self._env.info)
        shown = Presentation(Conditions(), self.exam, episode)
        told = shown.brief(self.exam.brief(episode, self.observation), self.observation, self._env)
        self._turns.delivered = shown.delivered()
        self.info = replace(told, seed=self._seed_of(episode))
        self._translator.begin(self.info)
        self._episode = episode
        self._turns.step_s()
        return self.seen()

    def seen(self) -> dict[str, Any]:
        """Return what the agent sees now, under the names of the dialect."""
        return self._translator.payload(self.observation)

    def step(self, row: Array) -> bool:
        """Do an action and return whether the episode is over.

        An answer that is not an action ends it as a fault of the agent. What fails in the world is raised.
        """
        if self._episode is None or self._result is not None or self._fault is not None:
            raise UserError("step: the episode is over, or none has begun; begin one")
        trace = self._turns.trace
        try:
            with self._turns.of("policy"):
                action = self.exam.parse_action(self._translator.first_of_rows(row))
            with self._turns.of("env"):
                self.observation, _, is_done, truth = self._env.step(action)
            policy_s, _ = self._turns.step_s()
            trace.add(action, self.exam.state(truth), round(policy_s, 6))
        except Exception as error:
            self._fault = self._turns.fault_of(error)
            if self._fault.side == "agent":
                return True
            raise
        return is_done or trace.steps >= self._episode.step_limit

    def result(self) -> EpisodeResult:
        """Return the record of the episode, as far as it has come."""
        if self._episode is None:
            raise UserError("result: no episode has begun")
        if self._result is None:
            episode = self._episode
            self._result = finish(self.exam, episode, self._turns, self._seed_of(episode), self._fault).result
        return self._result

    def close(self) -> None:
        """Close the world. May be called twice."""
        close_problems(self._env)

    def _seed_of(self, episode: Any) -> int:
        return episode_seed(self._seed, episode.episode_id)
