"""Under which conditions a run puts its episodes to the agent: what it is told, and what it is shown.

`Conditions` is what a run is asked for, `Presentation` does it for one episode: it changes the briefing and
each observation on their way to the agent. Traces and scores depend on neither. `delivered_texts` says which
text each episode's agent gets; texts depend on the dataset and the run's seed alone, not on workers,
`--episodes` or what was done before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

import msgspec
import numpy as np
from msgspec import UNSET, UnsetType
from msgspec.structs import replace
from numpy.typing import NDArray

from proctor.agents.arrays import is_picture
from proctor.core.errors import SimulationError, UserError
from proctor.core.interfaces import Env
from proctor.core.types import EpisodeInfo, Info, Observation
from proctor.exams.exam import sensors_of
from proctor.exams.names import AnyExam
from proctor.exams.offers import DEFAULT, NONE
from proctor.exams.results import Informed
from proctor.instructions.mirror import mirror

GREY = 128
FARTHEST_NOISE_MM = 10_000
MOST_NAMED = 5
NOTES = {
    "blank": "agents get no instruction",
    "shuffled": "agents get the instruction of another episode",
    "mirrored": "left and right are swapped in the instructions",
    "paraphrased": "the instructions are reworded",
    "pictures blank": "agents see only grey pictures",
    "pictures noise": "agents see noise instead of pictures",
    "pictures frozen": "agents see the first pictures of an episode throughout",
}
"""By the conditions' words."""


class Conditions(msgspec.Struct, frozen=True, kw_only=True):
    """What agents are told and shown in a run, and what their thinking costs. The defaults change nothing."""

    inform: tuple[str, ...] = (DEFAULT,)
    """What the agent gets beyond the instruction and its colour pictures: words of `Exam.offers`. `default`
    stands for what exam and env give by themselves, `none` for nothing."""
    instructions: Literal["original", "blank", "shuffled", "mirrored", "paraphrased"] = "original"
    pictures: Literal["original", "blank", "noise", "frozen"] = "original"
    charge_latency: str = ""
    """Simulated seconds that pass while the agent thinks, or `measured`; thinking is free if it is empty."""
    while_thinking: Literal["stop", "hold"] = "stop"
    """What the robot does meanwhile: it stands, or keeps its last command."""

    def identity(self) -> dict[str, Any]:
        """Return what differs from the defaults, as manifests hold it."""
        usual = type(self)()
        names = [name for name in self.__struct_fields__ if getattr(self, name) != getattr(usual, name)]
        plain = msgspec.json.decode(msgspec.json.encode(self))  # tuples as lists, as a manifest is read
        return {name: plain[name] for name in names}

    def notes(self) -> list[str]:
        """Return what a reader of the results must know."""
        notes = [NOTES.get(self.instructions, ""), NOTES.get(f"pictures {self.pictures}", "")]
        if self.inform != (DEFAULT,):
            given = ", ".join(word.replace(DEFAULT, "what is usual") for word in self.inform)
            notes.append(f"beyond the instruction and colour pictures, agents are given: {given}")
        return [note for note in notes if note]


class Presentation:
    """Puts one episode to the agent under the run's conditions.

    `text` is delivered instead of the episode's instruction, unless it is None.
    """

    def __init__(
        self,
        conditions: Conditions,
        exam: AnyExam,
        episode: Any,
        *,
        seed: int = 0,
        text: str | None = None,
    ) -> None:
        self._conditions, self._exam, self._episode = conditions, exam, episode
        self._text, self._seed, self._step = text, seed, 0
        self._frozen: dict[str, NDArray[Any]] = {}
        words = set(conditions.inform)
        self._is_plain = words == {DEFAULT} and conditions.pictures == "original" and text is None
        offers = exam.offers.items()
        self._made = [offer for word, offer in offers if word in words and offer.is_made]
        self._withheld = set() if DEFAULT in words else exam.offers.keys() - words
        self._named = words - {DEFAULT, NONE}
        self._informed: Informed | UnsetType = UNSET
        self._delivered_instruction: str | UnsetType = UNSET

    def delivered(self) -> dict[str, Any]:
        """Return the fields of the result that say what the agent got."""
        return {"informed": self._informed, "delivered_instruction": self._delivered_instruction}

    @property
    def needs_truth(self) -> bool:
        """Whether observations hold something that the env's ground truth tells."""
        return any(offer.observe is not None for offer in self._made)

    def brief(
        self, told: EpisodeInfo, view: Observation, env: Env, *, privileged: bool = False
    ) -> EpisodeInfo:
        """Return what the agent is told, given what it will see first; `privileged` is only taken down."""
        if not self._is_plain:
            details = self._without(told.details, "details")
            for offer in self._made:
                made = offer.brief(self._episode, env) if offer.brief is not None else {}
                details = made | details  # what the exam gives by itself may say more
            told = replace(told, details=details)
        if self._text is not None and self._text != told.instruction:
            told = replace(told, instruction=self._text)
            self._delivered_instruction = self._text
        given = self._exam.given_offers(told, view)
        if missing := sorted(self._named - given):
            words, name = ",".join(missing), type(env).__name__
            raise SimulationError(f"--inform {words}: {name} does not give it with its present options")
        self._informed = self._summary(told, view, given, has_truth=privileged)
        return told

    def view(self, observation: Observation, truth: Info) -> Observation:
        """Return what the agent sees of an observation; call it once for each, in order."""
        if self._is_plain:
            return observation
        view = self._without(observation, "entries")
        for offer in self._made:
            view = (offer.observe(self._episode, truth) if offer.observe is not None else {}) | view
        if self._text is not None and "instruction" in view:
            said = view["instruction"]
            view["instruction"] = {**said, "text": self._text} if isinstance(said, dict) else self._text
        if self._conditions.pictures != "original":
            view |= {name: self._picture(name, value) for name, value in view.items() if _is_picture(value)}
        self._step += 1
        return view

    def _without(self, given: dict[str, Any], part: Literal["entries", "details"]) -> dict[str, Any]:
        """Return a copy without what belongs to words that the run does not name."""
        hidden = {name for word in self._withheld for name in getattr(self._exam.offers[word], part)}
        return {name: value for name, value in given.items() if name not in hidden}

    def _picture(self, name: str, pixels: NDArray[Any]) -> NDArray[Any]:
        """Return what is shown instead of a picture; a new array, since agents may write into it."""
        is_colour = pixels.ndim == 3
        if self._conditions.pictures == "frozen":
            return self._frozen.setdefault(name, pixels.copy()).copy()
        if self._conditions.pictures == "blank":
            return np.full_like(pixels, GREY if is_colour else 0)
        rng = np.random.default_rng([self._seed, self._step, *name.encode()])
        return rng.integers(256 if is_colour else FARTHEST_NOISE_MM, size=pixels.shape, dtype=pixels.dtype)

    def _summary(self, told: EpisodeInfo, view: Observation, given: set[str], *, has_truth: bool) -> Informed:
        conditions = self._conditions
        return Informed(
            sensors={str(name): sensor for name, sensor in sensors_of(view).items()},
            resolution={
                str(name): (value.shape[1], value.shape[0])
                for name, value in view.items()
                if _is_picture(value)
            },
            entries=sorted(map(str, view)),
            details=sorted(map(str, told.details)),
            **{name: name in given for name in ("calibration", "odometry", "pose", "map", "goal")},
            truth=has_truth,
            inform=conditions.inform,
            instructions=conditions.instructions,
            pictures=conditions.pictures,
        )


def _is_picture(value: Any) -> bool:
    return isinstance(value, np.ndarray) and is_picture(value.dtype.name, value.shape)


def delivered_texts(
    conditions: Conditions, exam: AnyExam, dataset: Sequence[Any], episodes: Iterable[Any], *, seed: int
) -> dict[str, str]:
    """Return the text of each of these episodes of a dataset; nothing if their own are delivered.

    Raises:
        UserError: An episode has no such text.
    """
    kind = conditions.instructions
    if kind == "original":
        return {}
    if kind == "paraphrased":
        return _paraphrased(exam, episodes, seed)
    shuffled = shuffled_texts(exam, dataset, seed=seed) if kind == "shuffled" else {}
    text_of: Mapping[str, Callable[[Any], str]] = {
        "blank": lambda episode: "",
        "mirrored": lambda episode: mirror(exam.instruction(episode)),
        "shuffled": lambda episode: shuffled[episode.episode_id],
    }
    return {episode.episode_id: text_of[kind](episode) for episode in episodes}


def shuffled_texts(exam: AnyExam, dataset: Sequence[Any], *, seed: int) -> dict[str, str]:
    """Return for every episode of a dataset the text of another one, of its language and length class.

    Where all of those say the same, the text is of any episode of its language, and else of any.
    """
    order = sorted(dataset, key=lambda episode: str(episode.episode_id))
    order = [order[index] for index in np.random.default_rng(seed).permutation(len(order))]
    classes: tuple[Callable[[Any], tuple[str, ...]], ...] = (
        lambda episode: (_language(episode), exam.length_class(episode)),
        lambda episode: (_language(episode),),
        lambda episode: (),
    )
    found: dict[str, str] = {}
    for class_of in classes:
        members: dict[tuple[str, ...], list[Any]] = {}
        for episode in order:
            members.setdefault(class_of(episode), []).append(episode)
        for group in members.values():
            found = _next_texts(exam, group) | found
    if len(found) < len(dataset):
        raise UserError(
            "--instructions shuffled: expected episodes with different instructions, "
            f"found the same in all {len(dataset)} episodes of the dataset"
        )
    return found


def _next_texts(exam: AnyExam, group: Sequence[Any]) -> dict[str, str]:
    """Return for each episode the next different text in a circle; nothing if there is no other text."""
    texts = [exam.instruction(episode) for episode in group]
    if len(set(texts)) == 1:
        return {}
    following, other = [""] * len(texts), ""
    for index in range(2 * len(texts) - 1, -1, -1):  # backwards, and twice for the way round
        text, after = texts[index % len(texts)], texts[(index + 1) % len(texts)]
        other = after if after != text else other
        following[index % len(texts)] = other
    return {episode.episode_id: text for episode, text in zip(group, following, strict=True)}


def _language(episode: Any) -> str:
    return str(getattr(episode, "language", ""))


def _paraphrased(exam: AnyExam, episodes: Iterable[Any], seed: int) -> dict[str, str]:
    found, problems, count = {}, [], 0
    for count, episode in enumerate(episodes, 1):  # noqa: B007  (the count is needed below)
        try:
            found[episode.episode_id] = exam.reworded(episode, seed)
        except UserError as error:
            problems.append(str(error))
    if problems:
        some = "\n  ".join([*problems[:MOST_NAMED], *(["..."] if len(problems) > MOST_NAMED else [])])
        raise UserError(
            f"--instructions paraphrased: {len(problems)} of {count} episodes cannot be reworded:\n  {some}"
        )
    return found
