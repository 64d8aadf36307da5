"""How a person drives: arrow keys, and STOP after a second thought."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from proctor.core.types import Action, Observation
from proctor.exams.controls import Button, Controls


class DrivingControls(Controls):
    """One press is one of the four actions."""

    buttons: ClassVar[Sequence[Button]] = (
        Button(
            name="FORWARD",
            words={"en": "Forward", "zh": "前进"},
            sign="↑",
            keys=("ArrowUp", "KeyW"),
            place=(1, 2),
        ),
        Button(
            name="LEFT",
            words={"en": "Turn left", "zh": "左转"},
            sign="↺",
            keys=("ArrowLeft", "KeyA"),
            place=(2, 1),
        ),
        Button(
            name="RIGHT",
            words={"en": "Turn right", "zh": "右转"},
            sign="↻",
            keys=("ArrowRight", "KeyD"),
            place=(2, 3),
        ),
        Button(
            name="STOP",
            words={"en": "STOP", "zh": "停止"},
            sign="■",
            keys=("Enter", "NumpadEnter", "Space"),
            place=(2, 2),
            needs_confirmation=True,
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
