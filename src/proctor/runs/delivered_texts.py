"""Which text each episode's agent gets, where a run does not deliver the instruction itself.

Texts depend on the dataset and the run's seed alone, not on workers, `--episodes` or what was done before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from proctor.core.errors import UserError
from proctor.exams.names import AnyExam
from proctor.instructions.mirror import mirror
from proctor.runs.conditions import Conditions

MOST_NAMED = 5


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
