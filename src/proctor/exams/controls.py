"""The contract of controls: how a person takes an exam, with keys, buttons and sliders of a page.

An exam names its class in `Exam.controls`; `proctor play` shows what the class declares. Texts are given in
each language of the page, `en` and `zh`.
"""

from __future__ import annotations

import abc
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import msgspec

from proctor.core.types import Action, EpisodeInfo, Observation


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


def button(name: str, words: tuple[str, str], sign: str, keys: str, place: tuple[int, int]) -> Button:
    """Return a button with its label in English and Chinese; blanks separate its keys."""
    en, zh = words
    return Button(name=name, words={"en": en, "zh": zh}, sign=sign, keys=tuple(keys.split()), place=place)


class DrivingControls(Controls):
    """How a person drives: one press is one of the four actions. STOP is asked for twice."""

    buttons: ClassVar[Sequence[Button]] = (
        button("FORWARD", ("Forward", "前进"), "↑", "ArrowUp KeyW", (1, 2)),
        button("LEFT", ("Turn left", "左转"), "↺", "ArrowLeft KeyA", (2, 1)),
        button("RIGHT", ("Turn right", "右转"), "↻", "ArrowRight KeyD", (2, 3)),
        msgspec.structs.replace(
            button("STOP", ("STOP", "停止"), "■", "Enter NumpadEnter Space", (2, 2)), needs_confirmation=True
        ),
    )
    pictures = ("rgb",)
    how_to: ClassVar[Mapping[str, Sequence[str]]] = {
        "en": (
            "You see what a robot's camera sees. Do what the instruction says.",
            "Forward drives 25 cm. Turning turns 15° on the spot. There is no way back but to turn around.",
            "When you think you have arrived, press STOP: only a STOP near the goal is a success.",
            "Your steps are limited. Bumps are counted.",
        ),
        "zh": (
            "你看到的是机器人摄像头的画面。请按照指令行动。",
            "前进一次移动 25 厘米，转向一次原地转 15°。不能后退，只能掉头。",
            "认为到达目的地时，请按“停止”：只有在目标附近停止才算成功。",
            "步数有限，碰撞会被计数。",
        ),
    }

    def __init__(self) -> None:
        self._pressed: Action | None = None

    def press(self, name: str, value: float | None = None) -> None:
        """Take in the name of an action."""
        self._pressed = Action[name]

    def action(self, observation: Observation) -> Action | None:
        """Return what was pressed, once."""
        action, self._pressed = self._pressed, None
        return action
