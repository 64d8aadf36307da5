"""The calls of `proctor mcp`: their arguments, as the client is told about them and as they are read.

Tools that move the robot come from the exam; `episode` and `expect_step` are added to their arguments.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, NamedTuple

import msgspec

from proctor.agents.chat.task import ChatTool
from proctor.exams.names import AnyExam

MAX_ACTIONS = 8

Handle = Annotated[str, msgspec.Meta(description="what begin_episode returned as `episode`")]


class BeginEpisode(msgspec.Struct, forbid_unknown_fields=True):
    """Begin the next episode. Returns its handle, the instruction, the limits and what the robot sees.

    Called again before the first action it returns the same episode.
    """


class Observe(msgspec.Struct, forbid_unknown_fields=True):
    """Return what the robot sees and senses now. Costs no step."""

    episode: Handle


class Move(msgspec.Struct, forbid_unknown_fields=True):
    """The arguments that all tools have that move the robot. Their own ones come from the exam."""

    episode: Handle
    expect_step: Annotated[
        int,
        msgspec.Meta(
            ge=0,
            description="the `step` of the last result. If the episode is at another step, for instance "
            "because this request was sent twice, nothing is done",
        ),
    ]


class Stop(msgspec.Struct, forbid_unknown_fields=True):
    """End the episode here: the robot stays as it is, and the episode is scored. There is no way back."""

    episode: Handle


class CheckPictures(msgspec.Struct, forbid_unknown_fields=True):
    """Return a picture that shows a code word. Read it and call confirm_pictures."""


class ConfirmPictures(msgspec.Struct, forbid_unknown_fields=True):
    """Prove that you see pictures, by the word that check_pictures has shown."""

    word: Annotated[str, msgspec.Meta(description="the word in the picture")]


TOOLS: Mapping[str, type[msgspec.Struct]] = {
    "begin_episode": BeginEpisode,
    "observe": Observe,
    "stop": Stop,
    "check_pictures": CheckPictures,
    "confirm_pictures": ConfirmPictures,
}


class Schema(NamedTuple):
    """A tool as a client is told about it."""

    description: str
    arguments: dict[str, Any]
    """JSON schema."""


def tool_schemas(moves: Iterable[ChatTool], *, check_pictures: bool) -> dict[str, Schema]:
    """Return all tools: begin, look, move, stop, and those that check pictures where that is wanted."""
    found = {}
    for name, type_ in TOOLS.items():
        if type_ is Stop:
            found.update({tool.name: _move_schema(tool) for tool in moves})
        if check_pictures or not name.endswith("_pictures"):
            schema = _schema(type_)
            found[name] = Schema(schema.pop("description"), schema)
    return found


def read_request(
    name: str, arguments: Mapping[str, Any], tool: ChatTool | None
) -> tuple[msgspec.Struct, dict[str, Any]]:
    """Return the arguments of a call, and apart from them those that the exam reads.

    Raises ValueError for arguments that are missing, unknown or of another type.
    """
    properties = tool.properties if tool is not None else {}
    own = {key: value for key, value in arguments.items() if key in properties}
    common = {key: value for key, value in arguments.items() if key not in own}
    try:
        request = msgspec.convert(common, TOOLS[name] if tool is None else Move, strict=False)
    except msgspec.ValidationError as error:
        raise ValueError(str(error).replace("`$.", "`")) from None
    missing = [key for key in properties if key not in own and tool is not None and key not in tool.optional]
    if missing:
        raise ValueError(f"Object missing required field `{missing[0]}`")
    return request, own


def _move_schema(tool: ChatTool) -> Schema:
    schema = _schema(Move)
    del schema["description"]
    schema["properties"] |= tool.properties
    schema["required"] += [name for name in tool.properties if name not in tool.optional]
    return Schema(tool.description, schema)


def _schema(type_: type[msgspec.Struct]) -> dict[str, Any]:
    schema: dict[str, Any] = msgspec.json.schema(type_)["$defs"][type_.__name__]
    del schema["title"]
    return schema


def message_tool(exam: AnyExam) -> ChatTool:
    """Return the tool for actions as the exam's protocol has them, for exams whose own tools are others."""
    schema: Any = {} if exam.action_type is Any else msgspec.json.schema(exam.action_type)
    parts = schema.pop("$defs", {})

    def resolved(part: Any) -> Any:
        """Put definitions in place of references: not all clients follow them."""
        if isinstance(part, list):
            return [resolved(item) for item in part]
        if not isinstance(part, dict):
            return part
        if "$ref" in part:
            return resolved(parts[part["$ref"].rpartition("/")[2]])
        return {key: resolved(value) for key, value in part.items() if key not in ("discriminator", "title")}

    actions = {"type": "array", "minItems": 1, "maxItems": MAX_ACTIONS, "items": resolved(schema)}
    description = "Do actions as the exam's protocol has them, one per control step."
    return ChatTool(name="act", description=description, properties={"actions": actions})
