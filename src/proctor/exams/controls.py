"""The contract of controls: how a person takes an exam, with keys, buttons and sliders of a page.

An exam names its class in `Exam.controls`; `proctor play` shows what the class declares. Texts are given in
each language of the page, `en` and `zh`.
"""

from __future__ import annotations

import abc
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import msgspec

from proctor.core.types import EpisodeInfo, Observation


class Button(msgspec.Struct, frozen=True, kw_only=True):
    """What one press of a key or a button does."""

    name: str
    """What `Controls.press` is given."""
    words: dict[str, str]
    """Its label by language."""
    sign: str
    """One or two characters that stand for it on a small button."""
    keys: tuple[str, ...]
    """Keys of the keyboard, as a browser's `KeyboardEvent.code` names them."""
    place: tuple[int, int]
    """Row and column of the button, from 1."""
    needs_confirmation: bool = False
    """Whether the person is asked again, since it cannot be undone."""


class Slider(msgspec.Struct, frozen=True, kw_only=True):
    """A value that the person may choose directly."""

    name: str
    words: dict[str, str]
    low: float
    high: float
    step: float
    unit: str = ""


class Controls(abc.ABC):
    """The controls of one person in one run. It turns what is pressed into the actions of an agent."""

    buttons: ClassVar[Sequence[Button]] = ()
    sliders: ClassVar[Sequence[Slider]] = ()
    pictures: ClassVar[Sequence[str]] = ()
    """Entries of the observation to show, the largest first; if empty, all that are colour pictures."""
    how_to: ClassVar[Mapping[str, Sequence[str]]] = {}
    """By language: the rules, shown before the first episode. One sentence each."""

    def begin(self, info: EpisodeInfo, observation: Observation) -> None:  # noqa: B027  (most need no memory)
        """Forget the last episode."""

    @abc.abstractmethod
    def press(self, name: str, value: float | None = None) -> None:
        """Take in a press of a button, or the new value of a slider, which lies within its limits."""

    @abc.abstractmethod
    def action(self, observation: Observation) -> Any | None:
        """Return the next action of what was pressed; None if that is done."""

    def values(self) -> dict[str, float]:
        """Return where the sliders stand."""
        return {}
