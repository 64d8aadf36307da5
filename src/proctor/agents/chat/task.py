"""What a chat model is told about an exam, and what its tool calls mean.

An exam names a subclass of `ChatTask` in `Exam.chat`; `ChatTask` itself serves exams that name none.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from proctor.agents.arrays import colour_pictures
from proctor.agents.chat.faults import Unusable
from proctor.core.answers import WRONG_LENGTH
from proctor.core.errors import EvaluatorError
from proctor.core.interfaces import TRUTH
from proctor.core.types import EpisodeInfo, Observation

NOTE = {
    "type": "string",
    "description": "One sentence for your later self: what you see, what is done, what comes next.",
}
"""The argument that every tool has: the model's only memory beside its actions."""
LONGEST_NOTE = 300
LARGEST_ARRAY = 16
"""Of numbers that are told as text, such as joints."""


class ChatTool(msgspec.Struct, frozen=True, kw_only=True):
    """A function that the model can call."""

    name: str
    description: str
    properties: dict[str, Any]
    """The arguments beside `note`, as JSON schemas."""
    optional: tuple[str, ...] = ()

    @property
    def needed(self) -> list[str]:
        """The arguments without which a call means nothing."""
        return [name for name in self.properties if name not in self.optional]

    @property
    def parameters(self) -> dict[str, Any]:
        """The JSON schema of all arguments. A note is asked for, but a call without one counts."""
        return {
            "type": "object",
            "properties": {**self.properties, "note": NOTE},
            "required": [*self.needed, "note"],
            "additionalProperties": False,
        }


class ToolCall(NamedTuple):
    """A call of a tool that exists, with all arguments that it needs."""

    name: str
    arguments: dict[str, Any]


class Decision(NamedTuple):
    """What a model has decided."""

    steps: Sequence[Any]
    """One per action, in order. `ChatTask.action` makes an action of each when its turn has come."""
    names: Sequence[str]
    """For the model's history and for people: what was decided, in words."""


class ChatTask:
    """An episode as a chat model is told about it: the model gets one tool, whose argument is the action.

    `most_actions` is how many actions a reply may hold; None for the task's own number.
    """

    template: ClassVar[Path] = Path(__file__).with_name("general.md")
    """The prompt, unless the user gives another."""
    moments: ClassVar[int] = 2
    """Of how many decisions pictures are shown, the present one included."""
    actions_per_reply: ClassVar[int] = 1
    needs: ClassVar[tuple[str, ...]] = ()
    """Words of `--inform` without which its tools and texts cannot be made."""

    def __init__(self, info: EpisodeInfo, most_actions: int | None = None) -> None:
        self.info = info
        self.most_actions = most_actions or self.actions_per_reply

    def tools(self) -> Sequence[ChatTool]:
        """Return what the model can call."""
        names = ", ".join(self.info.actions)
        action = {"description": f"The action, as the exam takes it{f': one of {names}' if names else ''}."}
        return [ChatTool(name="act", description="Do an action.", properties={"action": action})]

    def robot(self) -> str:
        """Return what is true of the robot and its camera in this episode, as sentences."""
        return ""

    def details(self) -> str:
        """Return what else the exam tells every agent."""
        return json.dumps(self.info.details, ensure_ascii=False) if self.info.details else ""

    def state(self, observation: Observation) -> str:
        """Return what the robot senses beside pictures: one line per entry of the observation."""
        texts = {name: _text(value) for name, value in observation.items() if name != TRUTH}
        return "\n".join(f"{name}: {text}" for name, text in texts.items() if text and name != "instruction")

    def pictures(self, observation: Observation) -> list[tuple[str, NDArray[np.uint8]]]:
        """Return the pictures of an observation and what they are called; no name where there is one."""
        found = colour_pictures(observation)
        return list(found.items()) if len(found) > 1 else [("", picture) for picture in found.values()]

    def decide(self, calls: Sequence[ToolCall], observation: Observation) -> Decision:
        """Return what calls of tools mean; raise Unusable if they mean nothing."""
        del observation
        self.check_count(len(calls))
        steps = [call.arguments["action"] for call in calls]
        return Decision(steps, [step if isinstance(step, str) else json.dumps(step) for step in steps])

    def action(self, step: Any, observation: Observation) -> Any:
        """Return the action for a step of a decision, now that its turn has come."""
        del observation
        return step

    def check_count(self, count: int) -> None:
        """Refuse more actions than a reply may hold."""
        if count > self.most_actions:
            raise Unusable(WRONG_LENGTH, f"at most {self.most_actions} actions per reply, found {count}")


def load_task(info: EpisodeInfo, most_actions: int | None) -> ChatTask:
    """Return how the exam of an episode is put to chat models."""
    if not info.chat:
        return ChatTask(info, most_actions)
    module, _, name = info.chat.partition(":")
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise EvaluatorError(f"the exam '{info.task}' names the chat task {info.chat}: {error}") from None
    if not (isinstance(found, type) and issubclass(found, ChatTask)):
        raise EvaluatorError(f"the exam '{info.task}': {info.chat} must be a class that inherits ChatTask")
    return found(info, most_actions)


def _text(value: Any) -> str:
    """Return small values as text, and nothing for pictures and long arrays."""
    if isinstance(value, np.ndarray):
        return str(np.round(value.astype(float), 4).tolist()) if value.size <= LARGEST_ARRAY else ""
    if isinstance(value, tuple) and any(isinstance(part, np.ndarray) for part in value):
        return ""  # a scan
    try:
        return msgspec.json.encode(value).decode()[:500]
    except (TypeError, ValueError):
        return ""
