"""From a model's reply to calls of tools that exist, with arguments that are objects."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from proctor.agents.chat.faults import ChatFault, Unusable
from proctor.agents.chat.task import ChatTool, ToolCall
from proctor.agents.chat.wires import ModelReply, RawCall, parsed_json, without_surrogates
from proctor.core.errors import did_you_mean

MOST_CALLS = 32
MOST_OPENINGS = 200
"""So many braces in a text are tried as the beginning of JSON."""


def read_calls(reply: ModelReply, tools: Sequence[ChatTool]) -> list[ToolCall]:
    """Return the calls in a reply, or raise Unusable.

    Where no tool was called, JSON in the text counts: servers without a parser for the model's calls pass
    them on as text, and models without tools are asked for JSON.
    """
    said = said_text(reply)
    known = {tool.name: tool for tool in tools}
    raw = list(reply.calls)[: MOST_CALLS + 1]
    if not raw and not reply.refusal:
        raw = list(_calls_in_text(reply.text, known))
    if len(raw) > MOST_CALLS:
        raise Unusable(ChatFault.CONTRADICTION, f"more than {MOST_CALLS} calls in one reply", said)
    if not raw:
        if reply.refusal:
            raise Unusable(ChatFault.REFUSAL, f"the model declined: {reply.refusal[:200]}", said)
        if reply.is_truncated:
            raise Unusable(ChatFault.TRUNCATED, "the reply was cut off before a tool was called", said)
        raise Unusable(ChatFault.NO_ACTION, "no tool was called", said)
    return [_checked(call, known, said, is_truncated=reply.is_truncated) for call in raw]


def said_text(reply: ModelReply) -> str:
    """Return a reply as plain text, for people and for the repair turn."""
    calls = [f"{call.name}({_written(call.arguments)})" for call in reply.calls[:MOST_CALLS]]
    return "\n".join(part for part in (reply.refusal, reply.text, *calls) if part)


def _checked(call: RawCall, known: Mapping[str, ChatTool], said: str, *, is_truncated: bool) -> ToolCall:
    if call.name not in known:
        hint = did_you_mean(call.name, known)
        problem = f"there is no tool '{call.name[:40]}'{hint}; tools: {', '.join(known)}"
        raise Unusable(ChatFault.UNKNOWN_TOOL, problem, said)
    arguments = call.arguments
    if isinstance(arguments, str):
        try:
            arguments = parsed_json(arguments.encode("utf-8", "replace"))
        except ValueError:
            # Cut off where the limit of tokens was, or by a server that does not say so.
            is_cut = is_truncated or not arguments.rstrip().endswith("}")
            kind = ChatFault.TRUNCATED if is_cut else ChatFault.BAD_ARGUMENTS
            how = "were cut off" if is_cut else "are not JSON"
            raise Unusable(kind, f"the arguments of {call.name} {how}", said) from None
    if not isinstance(arguments, dict):
        problem = f"the arguments of {call.name} are not an object"
        raise Unusable(ChatFault.BAD_ARGUMENTS, problem, said)
    for name in known[call.name].needed:
        if name not in arguments:
            raise Unusable(ChatFault.BAD_ARGUMENTS, f"{call.name} needs the argument '{name}'", said)
    return ToolCall(call.name, arguments)


def _calls_in_text(text: str, known: Mapping[str, ChatTool]) -> Iterator[RawCall]:
    decoder = json.JSONDecoder()
    place = text.find("{")
    for _ in range(MOST_OPENINGS):
        if place < 0:
            return
        try:
            value, end = decoder.raw_decode(text, place)
            value = without_surrogates(value)
        except (ValueError, RecursionError):
            end = place + 1
        else:
            call = _as_call(value, known)
            if call is not None:
                yield call
        place = text.find("{", end)


def _as_call(value: Any, known: Mapping[str, ChatTool]) -> RawCall | None:
    """Return the call that a JSON object means: a name with arguments, or arguments alone."""
    if not isinstance(value, dict):
        return None
    name = value.get("name", value.get("tool"))
    if isinstance(name, str) and name in known:
        arguments = next((value[key] for key in ("arguments", "parameters", "input") if key in value), None)
        return RawCall(
            name, {k: v for k, v in value.items() if k != "tool"} if arguments is None else arguments
        )
    for tool in known.values():
        if tool.needed and set(tool.needed) <= value.keys() <= {*tool.properties, "note"}:
            return RawCall(tool.name, value)
    return None


def _written(arguments: Any) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
