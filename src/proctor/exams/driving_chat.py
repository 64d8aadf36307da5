"""Exams with the four actions as chat models are told about them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from proctor.agents.chat.faults import ChatFault, Unusable
from proctor.agents.chat.task import ChatTask, ChatTool, Decision, ToolCall
from proctor.core.answers import INVALID_ACTION
from proctor.core.errors import did_you_mean
from proctor.core.types import STEP_M, TURN_RAD, Action, Observation

TURNS = {"LEFT", "RIGHT"}


class DrivingChat(ChatTask):
    """The tool `act` takes up to four of STOP, FORWARD, LEFT and RIGHT, which are done without looking.

    STOP ends the episode, so what follows it is not done. Calls in one reply are done in order, unless they
    contradict each other: one turns left and another one right, or a call follows one with STOP.
    """

    template = Path(__file__).with_name("driving_chat.md")
    moments: ClassVar[int] = 3
    actions_per_reply: ClassVar[int] = 4

    def tools(self) -> Sequence[ChatTool]:
        """Return the only tool."""
        actions = {
            "type": "array",
            "items": {"type": "string", "enum": list(Action.__members__)},
            "minItems": 1,
            "maxItems": self.most_actions,
            "description": "The next actions, done in order without looking in between.",
        }
        return [ChatTool(name="act", description="Move the robot, or stop.", properties={"actions": actions})]

    def robot(self) -> str:
        """Return what the actions do, and what the camera sees as far as the env says so."""
        turn_deg = math.degrees(TURN_RAD)
        moves = f"FORWARD drives {STEP_M:g} m, LEFT and RIGHT turn {turn_deg:.0f} degrees on the spot."
        camera, size = self.info.camera, self.info.sensors.get("rgb")
        if camera is None or size is None:
            return moves
        height, width = size.shape[:2]
        half_rad = math.radians(camera.fov_deg / 2)
        wide_deg = math.degrees(2 * math.atan(math.tan(half_rad) * width / height))
        place = "" if camera.height_m is None else f" from {camera.height_m:g} m above the floor"
        text = (
            f"{moves} Your camera looks ahead{place}. The picture is {wide_deg:.0f} degrees wide and"
            f" {camera.fov_deg:.0f} degrees high."
        )
        down_rad = half_rad - math.radians(camera.pitch_deg)
        if camera.height_m is not None and 0 < down_rad < math.pi / 2:
            hidden_m = camera.height_m / math.tan(down_rad)
            text += f" The floor nearer than {hidden_m:.1f} m is below the picture."
        return text

    def pictures(self, observation: Observation) -> list[tuple[str, NDArray[np.uint8]]]:
        """Return the colour picture."""
        return [("", observation["rgb"])] if "rgb" in observation else []

    def decide(self, calls: Sequence[ToolCall], observation: Observation) -> Decision:
        """Return the actions of all calls, up to the first STOP."""
        del observation
        chunks = [_actions(call) for call in calls]
        _check_contradictions(chunks)
        names = [name for chunk in chunks for name in chunk]
        if "STOP" in names:
            names = names[: names.index("STOP") + 1]
        self.check_count(len(names))
        return Decision([int(Action[name]) for name in names], names)


def _actions(call: ToolCall) -> list[str]:
    given: Any = call.arguments["actions"]
    words = [given] if isinstance(given, str) else given
    if not isinstance(words, list):
        raise Unusable(ChatFault.BAD_ARGUMENTS, "act: actions: expected a list of names")
    names = [word.strip().upper() if isinstance(word, str) else "" for word in words]
    for word, name in zip(words, names, strict=True):
        if name not in Action.__members__:
            known = f"actions: {', '.join(Action.__members__)}"
            hint = did_you_mean(str(word)[:40], Action.__members__)
            raise Unusable(INVALID_ACTION, f"unknown action {str(word)[:40]!r}{hint}; {known}")
    return names


def _check_contradictions(chunks: Sequence[Sequence[str]]) -> None:
    if any("STOP" in chunk for chunk in chunks[:-1]):
        raise Unusable(ChatFault.CONTRADICTION, "a call follows one with STOP")
    turns = [TURNS & set(chunk) for chunk in chunks]
    if any(one == {"LEFT"} for one in turns) and any(one == {"RIGHT"} for one in turns):
        raise Unusable(ChatFault.CONTRADICTION, "one call turns LEFT and another one RIGHT")
