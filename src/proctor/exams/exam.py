"""The contract of an exam: everything that is particular to one kind of task.

An exam is a folder (or a package of your own) with one subclass of `Exam`, registered under the entry-point
group `proctor.exams`. Running, resuming, workers, served agents, reports and comparisons follow from it.
docs/writing-an-exam.md builds one step by step; `proctor check-exam` tries one out.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Generic, Literal, NamedTuple, TypeVar

import msgspec
import numpy as np

from proctor.core.errors import UserError
from proctor.core.types import DialectDefaults, EpisodeInfo, Info, Observation, Sensor
from proctor.exams.episode_files import EpisodeFiles
from proctor.exams.fault_words import fault_verdict
from proctor.exams.findings import EpisodesToCheck, Finding
from proctor.exams.foreign_files import ForeignResults, PredictionFiles
from proctor.exams.offers import SENSOR_OFFERS, Offer
from proctor.exams.results import EpisodeResult, Summary, Verdict
from proctor.exams.trace import ActionT, StateT, Trace, plain_state

EpisodeT = TypeVar("EpisodeT")


class Metric(NamedTuple):
    """One number about one episode, and what people and programs must know about it.

    `score(episode, trace, distance)` is a pure function; `distance` is what `Exam.distance` returned. NaN
    means that the metric does not apply to the episode, which is then left out of the mean.
    """

    name: str
    score: Callable[[Any, Trace[Any, Any], Any], float]
    label: str
    """Its heading in tables, such as `SR`."""
    definition: str
    """One sentence for people."""
    unit: str = ""
    """`%` for shares and `cm` for metres, which are both shown times 100, else `m`, `s` or nothing."""
    digits: int = 2
    better: Literal["up", "down", "none"] = "none"
    is_rate: bool = False
    """Whether its values are 0 or 1, so that its mean is a rate and gets Wilson's interval."""
    is_score: bool = False
    """Whether the agent earns it, from 0 to 1: it is 0 for an episode that was not attempted."""
    in_table: bool = False
    """Whether the table of a run shows it."""

    @property
    def scale(self) -> float:
        """By what its values are multiplied where people read them."""
        return 100.0 if self.unit in ("%", "cm") else 1.0

    @property
    def heading(self) -> str:
        """The label with the unit; a label that ends in a unit, such as `0.2 m`, stays as it is."""
        has_unit = self.label.rpartition(" ")[2] in ("%", "m", "cm", "s")
        return f"{self.label} {self.unit}" if self.unit and not has_unit else self.label


class Column(NamedTuple):
    """A column in the table of a run that is not the mean of one metric."""

    heading: str
    cell: Callable[[Summary], str]


class ExamOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of an exam: each field is a flag of `proctor run`, `Meta(description=...)` its help."""


class Exam(EpisodeFiles[EpisodeT], abc.ABC, Generic[EpisodeT, ActionT, StateT]):
    """One kind of task. An object of it belongs to one run and holds the run's options."""

    title: ClassVar[str] = ""
    """For people: "navigation"."""
    state_type: ClassVar[type[Any]]
    """A msgspec struct: what is recorded after each step."""
    action_type: ClassVar[Any] = Any
    """What `parse_action` returns, in a form that msgspec reads back from JSON."""
    result: ClassVar[type[EpisodeResult]] = EpisodeResult
    """The record of an episode; a subclass may add fields with defaults."""
    options_type: ClassVar[type[ExamOptions]] = ExamOptions
    envs: ClassVar[tuple[str, ...]]
    """Names of the worlds in which it can be taken; the first is the default."""
    worker_modules: ClassVar[tuple[str, ...]] = ()
    """Modules that every worker needs and that take long to import. They must not import MuJoCo."""
    example_suite: ClassVar[str] = ""
    """A suite to try it with, for examples that people read."""
    baselines: ClassVar[Mapping[str, str]] = {}
    """Policies that come with the exam: name -> `module:Class`."""
    metrics: ClassVar[Sequence[Metric]]
    """One must be called `success`; it decides whether an episode succeeded."""
    metric_groups: ClassVar[tuple[str, ...]] = ()
    """Entry-point groups by which other packages add metrics: a `Metric` or a `StepMetric` class."""
    definition: ClassVar[str] = ""
    """Whose definitions of metrics these are."""
    actions: ClassVar[tuple[str, ...]] = ()
    """What agents are told of the actions that count."""
    dialects: ClassVar[DialectDefaults] = DialectDefaults()
    """How it is put to policy servers of other protocols."""
    chat: ClassVar[str] = ""
    """How it is put to chat models, as `module:Class` of a `ChatTask` (docs/chat-models.md).

    Without one, a model sees all pictures and gets one tool whose argument is the action."""
    expected_metrics: ClassVar[tuple[str, ...]] = ()
    """Metrics that served agents are told at the end in any case, null where they were not measured."""
    offers: ClassVar[Mapping[str, Offer]] = SENSOR_OFFERS
    """What agents may be given or not, by the words of `--inform`."""
    predictions: ClassVar[PredictionFiles | None] = None
    """Files of other evaluators that say what an agent did, for `proctor score` and `proctor predictions`."""

    def __init__(self, options: ExamOptions | None = None) -> None:
        self.options: Any = self.options_type() if options is None else options

    def check(self, given: EpisodesToCheck[EpisodeT]) -> Iterator[Finding]:
        """Look for what is wrong or odd with episodes that could be read.

        Errors keep a run from starting; everything else is printed before it. `proctor check-dataset` shows
        all findings. A broken scene may be raised as InvalidFile, which names the file.
        """
        return iter(())

    # One episode

    def brief(self, episode: EpisodeT, observation: Observation) -> EpisodeInfo:
        """Return what every agent may know. The loop fills in `episode_id`, `seed` and `episode`."""
        known: Any = episode
        return EpisodeInfo(
            episode_id="",
            instruction=self.instruction(episode),
            max_steps=known.step_limit,
            seed=0,
            language=known.language,
            task=self.name,
            sensors=sensors_of(observation),
            actions=self.actions,
            dialects=self.dialects,
            chat=self.chat,
        )

    def instruction(self, episode: EpisodeT) -> str:
        """Return the instruction as text."""
        return str(getattr(episode, "instruction", ""))

    def given_offers(self, told: EpisodeInfo, observation: Observation) -> set[str]:
        """Return which of `offers` an agent has got by a briefing and an observation."""
        return {
            word
            for word, offer in self.offers.items()
            if any(name in observation for name in offer.entries)
            or any(name in told.details for name in offer.details)
        }

    def reworded(self, episode: EpisodeT, seed: int) -> str:
        """Return another wording for `--instructions paraphrased`; UserError if none is known to be right."""
        raise UserError(f"the exam {self.name} cannot reword its instructions")

    def length_class(self, episode: EpisodeT) -> str:
        """Return a word that instructions of about the same length share, for `--instructions shuffled`."""
        level: str | None = getattr(episode, "level", None)
        return level or f"2**{len(self.instruction(episode)).bit_length()} characters"

    @abc.abstractmethod
    def parse_action(self, answer: Any) -> ActionT:
        """Return the action that an answer of an agent means; raise AgentFault if it means none."""

    def encode_action(self, action: ActionT) -> Any:
        """Return an action as results hold it: JSON that `parse_action` reads back."""
        return msgspec.to_builtins(action)

    def first_trace(
        self, episode: EpisodeT, info: Callable[[], Info] | None = None
    ) -> Trace[ActionT, StateT]:
        """Return a trace without steps: the state before the first, as far as it is known.

        `info` asks the env for its ground truth; it is None if the episode never began.
        """
        return Trace(None if info is None else self.state(info()))

    @abc.abstractmethod
    def state(self, info: Info) -> StateT:
        """Return what is recorded of the env's ground truth. Nothing else reads it.

        Raises SimulationError if a value is missing, not finite or of another type (see `exams/env_info.py`).
        """

    @classmethod
    def as_info(cls, episode: EpisodeT, trace: Trace[ActionT, StateT], index: int) -> Info:
        """Return the state of this index as the env's info, for metrics that are written step by step."""
        state: Any = trace.states[index]
        return plain_state(state)

    # Scores

    def distance(self, episode: EpisodeT) -> Any:
        """Return by what the episode is measured; `Metric.score` gets it as its third argument."""
        del episode

    @abc.abstractmethod
    def record(self, episode: EpisodeT, trace: Trace[ActionT, StateT], distance: Any) -> dict[str, Any]:
        """Return the fields of the result that only the exam can fill.

        These are `trajectory`, `final_distance_to_goal`, and where they are known `headings`,
        `collision_steps`, `collision_count`, `distance` and the exam's own. The trace may be empty.
        """

    def verdict(self, episode: EpisodeT | None, result: EpisodeResult) -> Verdict:
        """Return why the episode ended as it did; the episode is None if its dataset is gone."""
        last = max(len(result.trajectory) - 1, 0)
        if result.error is not None:
            return fault_verdict(result.error, last)
        if result.success:
            return Verdict("success", last, f"Succeeded after {result.steps} steps.")
        reason = result.failure_reason or "failure"
        words = reason.replace("_", " ")
        return Verdict(reason, last, f"Failed after {result.steps} steps: {words}.")

    def failure_reason(self, episode: EpisodeT, result: EpisodeResult) -> str:
        """Return one word for how a failure without a fault ended."""
        limit: int = getattr(episode, "step_limit", 0)
        return "timeout" if result.steps >= limit else "ended_early"

    def trace_of(self, result: EpisodeResult) -> Trace[ActionT, StateT] | None:
        """Return the trace that a record tells, for runs that kept no traces; None if it cannot."""
        return None

    # Runs

    @classmethod
    def completed_options(cls, given: Mapping[str, Any], env_options: Mapping[str, Any]) -> dict[str, Any]:
        """Return the given options with those that follow from the env's; a UserError if they contradict."""
        return dict(given)

    @classmethod
    def env_options(cls, options: Any, seed: int) -> dict[str, Any]:
        """Return the options of the env that follow from those of the exam."""
        return {}

    @classmethod
    def identity(cls, options: Any) -> dict[str, Any]:
        """Return what of the options makes another run."""
        found: dict[str, Any] = msgspec.to_builtins(options)
        return found

    @classmethod
    def notes(cls, options: Any, env_options: Mapping[str, Any]) -> list[str]:
        """Return what a reader of the results must know about how they were obtained."""
        return []

    @classmethod
    def read_foreign_results(cls, path: Path) -> ForeignResults | None:
        """Read a result file of another evaluator, for `proctor results`; None if there are none."""
        return None

    @classmethod
    def record_problems(cls, result: Any) -> Iterator[tuple[str, str]]:
        """Yield fields that no run of this exam could have written, and what is wrong with them."""
        return iter(())

    def sample_action(self, rng: np.random.Generator, step: int) -> Any:
        """Return an action by chance, for the policy `random`."""
        raise NotImplementedError(f"the exam {self.name} has no sample_action, which the policy random needs")

    def idle_action(self, observation: Observation, last: Any) -> Any:
        """Return what the policy `replay` does after its last action, which is `last`."""
        raise NotImplementedError(f"the exam {self.name} has no idle_action, which the policy replay needs")

    controls: ClassVar[str] = ""
    """How a person takes it, as `module:Class` of a `Controls`. Without it, people cannot."""

    # Reports and comparisons

    page: ClassVar[str] = "proctor.exams.page:Page"
    """What the report shows of its episodes, as `module:Class` of a `Page`. Runs do not import it."""
    more_columns: ClassVar[Sequence[Column]] = ()
    """Columns of the table of a run, right of those of metrics."""
    table_notes: ClassVar[tuple[str, ...]] = ()
    """Lines below the tables of runs and comparisons; `{distance}` stands for the distance measured by."""
    compared_options: ClassVar[Mapping[str, str]] = {}
    """Keys of `identity` that must be equal for a fair comparison, and their names in the plural."""

    backend_gap: ClassVar[str] = ""
    """A function, as `module:name`, that tells what two backends make of one agent's actions.

    It gets the agent's name, the names of the backends of the runs A and B, and the results of their common
    episodes in pairs, and returns a struct."""

    @classmethod
    def without_scene(cls, episode: EpisodeT) -> EpisodeT:
        """Return an episode whose scene has changed since the run, without what is no longer true of it."""
        return episode


def sensors_of(observation: Observation) -> dict[str, Sensor]:
    """Return what agents are told of the arrays that they will see."""
    return {
        name: Sensor(dtype=str(value.dtype), shape=value.shape)
        for name, value in observation.items()
        if isinstance(value, np.ndarray)
    }
