"""Three HTTP APIs of chat models: how a request is written, and what a reply says.

`chat` is OpenAI's /chat/completions, which vLLM, SGLang, Ollama, llama.cpp and OpenRouter speak, too;
`responses` is OpenAI's /responses, `anthropic` is Anthropic's /messages. As few parameters are sent as
possible: servers refuse what they do not know.
"""

from __future__ import annotations

import abc
import json
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, TypeVar

import msgspec

from proctor.agents.chat.prompt import Part, Picture
from proctor.agents.chat.task import ChatTool
from proctor.core.errors import UserError

T = TypeVar("T", dict[str, Any], list[Any], str)
CUT_BY_FILTER = "a content filter cut the reply"


class Repair(NamedTuple):
    """A reply that was not usable, and what the model is told about it."""

    said: str
    complaint: str


class Sampling(NamedTuple):
    """How the model is to answer. None: as the server does by default."""

    max_tokens: int
    tool_choice: str = "auto"
    """auto, required, none (no tools are sent) or the name of a tool."""
    temperature: float | None = None
    seed: int | None = None
    effort: str | None = None
    detail: str | None = None


class Request(NamedTuple):
    """A question to a model."""

    model: str
    system: str
    user: Sequence[Part]
    tools: Sequence[ChatTool]
    sampling: Sampling
    repair: Repair | None = None


class RawCall(NamedTuple):
    """A call of a tool as the model wrote it."""

    name: str
    arguments: Any
    """A dict, or text that should be JSON."""


class Tokens(NamedTuple):
    """What a reply has cost."""

    input: int = 0
    """Cached ones included."""
    cached: int = 0
    output: int = 0


class ModelReply(NamedTuple):
    """What a model has answered."""

    calls: Sequence[RawCall] = ()
    text: str = ""
    refusal: str = ""
    """Why it declined, if it did."""
    is_truncated: bool = False
    tokens: Tokens = Tokens()


class ServerError(Exception):
    """A reply that reports an error instead of answering, though its status is 200. `code` is its word."""

    def __init__(self, message: str, code: str = "") -> None:
        self.code = code
        super().__init__(message)


class Wire(abc.ABC):
    """One of the APIs."""

    path: ClassVar[str]
    vendor_host: ClassVar[str] = "api.openai.com"
    """Whose own key variable is used for this host alone."""
    vendor_key: ClassVar[str] = "OPENAI_API_KEY"
    droppable: ClassVar[Mapping[str, str]]
    """Parameters that a server may refuse -> what to send instead, or nothing."""
    unsupported: ClassVar[tuple[str, ...]] = ()
    """Fields of `Sampling` that the API does not have."""
    text_type: ClassVar[str] = "text"
    """Of a text in the user's message."""
    any_tool: ClassVar[Any] = "required"
    """The tool choice that leaves it to the model which tool it calls."""

    def headers(self, key: str | None) -> dict[str, str]:
        """Return the headers that let one in."""
        return {} if key is None else {"authorization": f"Bearer {key}"}

    def check(self, sampling: Sampling) -> None:
        """Refuse what this API does not have."""
        for name in self.unsupported:
            if getattr(sampling, name) is not None:
                raise UserError(f"{name}: the API of {self.path} has no such parameter; leave it out")

    def body(self, request: Request, *, is_record: bool = False) -> dict[str, Any]:
        """Return the body of a request; in a record, pictures are only named."""
        sampling, choice = request.sampling, request.sampling.tool_choice
        content = [
            {"type": self.text_type, "text": part}
            if isinstance(part, str)
            else self._picture(part, sampling.detail, is_record=is_record)
            for part in request.user
        ]
        turns: list[dict[str, Any]] = [{"role": "user", "content": content}]
        if request.repair is not None:
            turns.append({"role": "assistant", "content": request.repair.said})
            turns.append({"role": "user", "content": request.repair.complaint})
        body = {"model": request.model, **self._conversation(request, turns)}
        if choice != "none":
            body["tools"] = [self._tool(tool) for tool in request.tools]
        if choice not in ("auto", "none"):
            body["tool_choice"] = self.any_tool if choice == "required" else self._named_tool(choice)
        return body | {name: v for name, v in self._parameters(request).items() if v is not None}

    @abc.abstractmethod
    def _picture(self, picture: Picture, detail: str | None, *, is_record: bool) -> dict[str, Any]: ...

    @abc.abstractmethod
    def _conversation(self, request: Request, turns: list[dict[str, Any]]) -> dict[str, Any]: ...

    @abc.abstractmethod
    def _tool(self, tool: ChatTool) -> dict[str, Any]: ...

    @abc.abstractmethod
    def _named_tool(self, name: str) -> dict[str, Any]: ...

    @abc.abstractmethod
    def _parameters(self, request: Request) -> dict[str, Any]:
        """Return what else is sent; what is None is left to the server."""

    @abc.abstractmethod
    def reply(self, body: dict[str, Any]) -> ModelReply:
        """Read the body of a reply. Raises ServerError if it is not an answer."""


class ChatCompletions(Wire):
    """POST /chat/completions."""

    path = "/chat/completions"
    droppable: ClassVar[Mapping[str, str]] = {
        "temperature": "",
        "seed": "",
        "reasoning_effort": "",
        "tool_choice": "",
        "max_tokens": "max_completion_tokens",  # OpenAI's reasoning models want this; Ollama ignores it
        "max_completion_tokens": "",
    }

    def _picture(self, picture: Picture, detail: str | None, *, is_record: bool) -> dict[str, Any]:
        details = {} if detail is None else {"detail": detail}
        return {"type": "image_url", "image_url": {"url": _url(picture, is_record=is_record), **details}}

    def _conversation(self, request: Request, turns: list[dict[str, Any]]) -> dict[str, Any]:
        system = [{"role": "system", "content": request.system}] if request.system else []
        return {"messages": [*system, *turns]}

    def _tool(self, tool: ChatTool) -> dict[str, Any]:
        described = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
        return {"type": "function", "function": described}

    def _named_tool(self, name: str) -> dict[str, Any]:
        return {"type": "function", "function": {"name": name}}

    def _parameters(self, request: Request) -> dict[str, Any]:
        sampling = request.sampling
        return {
            "max_tokens": sampling.max_tokens,
            "temperature": sampling.temperature,
            "seed": sampling.seed,
            "reasoning_effort": sampling.effort,
        }

    def reply(self, body: dict[str, Any]) -> ModelReply:
        """Read a reply. Its `finish_reason` says nothing about whether there are calls."""
        choices = _get(body, "choices", list)
        if not choices:
            raise ServerError("a reply without choices")
        choice = _as(choices[0], dict)
        message, finish = _get(choice, "message", dict), _get(choice, "finish_reason", str)
        functions = [_get(_as(call, dict), "function", dict) for call in _get(message, "tool_calls", list)]
        parts = [_get(_as(part, dict), "text", str) for part in _get(message, "content", list)]
        return ModelReply(
            calls=[RawCall(_get(each, "name", str), each.get("arguments")) for each in functions],
            text=_get(message, "content", str) or "".join(parts),  # some servers write a list of parts
            refusal=_get(message, "refusal", str) or (CUT_BY_FILTER if finish == "content_filter" else ""),
            is_truncated=finish == "length",
            tokens=_openai_tokens(body, "prompt_tokens", "completion_tokens"),
        )


class Responses(Wire):
    """POST /responses. Nothing is stored at the provider."""

    path = "/responses"
    droppable: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("temperature", "reasoning", "tool_choice", "max_output_tokens"), ""
    )
    unsupported = ("seed",)
    text_type = "input_text"

    def _picture(self, picture: Picture, detail: str | None, *, is_record: bool) -> dict[str, Any]:
        url = _url(picture, is_record=is_record)
        return {"type": "input_image", "image_url": url, "detail": detail or "auto"}

    def _conversation(self, request: Request, turns: list[dict[str, Any]]) -> dict[str, Any]:
        del request
        return {"store": False, "input": turns}

    def _tool(self, tool: ChatTool) -> dict[str, Any]:
        described = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
        return {"type": "function", **described, "strict": False}

    def _named_tool(self, name: str) -> dict[str, Any]:
        return {"type": "function", "name": name}

    def _parameters(self, request: Request) -> dict[str, Any]:
        sampling = request.sampling
        return {
            "instructions": request.system or None,
            "max_output_tokens": sampling.max_tokens,
            "temperature": sampling.temperature,
            "reasoning": None if sampling.effort is None else {"effort": sampling.effort},
        }

    def reply(self, body: dict[str, Any]) -> ModelReply:
        """Read a reply. A 200 may be a failure."""
        status = _get(body, "status", str)
        if status in ("failed", "cancelled"):
            error = _get(body, "error", dict)
            raise ServerError(_get(error, "message", str) or f"status {status}", _get(error, "code", str))
        if not isinstance(body.get("output"), list):
            raise ServerError("a reply without output")
        output = [_as(item, dict) for item in body["output"]]
        messages = [item for item in output if item.get("type") == "message"]
        calls = [item for item in output if item.get("type") == "function_call"]
        blocks = [_as(block, dict) for item in messages for block in _get(item, "content", list)]
        reason = _get(_get(body, "incomplete_details", dict), "reason", str)
        refusal = "".join(_get(block, "refusal", str) for block in blocks)
        return ModelReply(
            calls=[RawCall(_get(item, "name", str), item.get("arguments")) for item in calls],
            text="".join(_get(block, "text", str) for block in blocks),
            refusal=refusal or (CUT_BY_FILTER if reason == "content_filter" else ""),
            is_truncated=reason == "max_output_tokens",
            tokens=_openai_tokens(body, "input_tokens", "output_tokens"),
        )


class Messages(Wire):
    """POST /messages, Anthropic's."""

    path = "/messages"
    vendor_host, vendor_key = "api.anthropic.com", "ANTHROPIC_API_KEY"
    droppable: ClassVar[Mapping[str, str]] = {"temperature": "", "output_config": "", "tool_choice": ""}
    unsupported = ("seed", "detail")
    any_tool: ClassVar[Any] = {"type": "any"}

    def headers(self, key: str | None) -> dict[str, str]:
        """Return the key and the version of the API, which is required."""
        return {"anthropic-version": "2023-06-01", **({} if key is None else {"x-api-key": key})}

    def _picture(self, picture: Picture, detail: str | None, *, is_record: bool) -> dict[str, Any]:
        del detail
        data = picture.mark if is_record else picture.base64
        return {"type": "image", "source": {"type": "base64", "media_type": picture.media_type, "data": data}}

    def _conversation(self, request: Request, turns: list[dict[str, Any]]) -> dict[str, Any]:
        return {"max_tokens": request.sampling.max_tokens, "messages": turns}

    def _tool(self, tool: ChatTool) -> dict[str, Any]:
        return {"name": tool.name, "description": tool.description, "input_schema": tool.parameters}

    def _named_tool(self, name: str) -> dict[str, Any]:
        return {"type": "tool", "name": name}

    def _parameters(self, request: Request) -> dict[str, Any]:
        effort = request.sampling.effort
        return {
            "system": request.system or None,
            "temperature": request.sampling.temperature,
            "output_config": None if effort is None else {"effort": effort},
        }

    def reply(self, body: dict[str, Any]) -> ModelReply:
        """Read a reply. Its `input_tokens` leave out cached ones."""
        if not isinstance(body.get("content"), list):
            raise ServerError("a reply without content")
        blocks = [_as(block, dict) for block in body["content"]]
        calls = [block for block in blocks if block.get("type") == "tool_use"]
        stop, usage = _get(body, "stop_reason", str), _get(body, "usage", dict)
        cached, written = (
            _count(usage, "cache_read_input_tokens"),
            _count(usage, "cache_creation_input_tokens"),
        )
        category = _get(_get(body, "stop_details", dict), "category", str)
        text = "".join(_get(block, "text", str) for block in blocks if block.get("type") == "text")
        return ModelReply(
            calls=[RawCall(_get(block, "name", str), block.get("input")) for block in calls],
            text=text,
            refusal=(category or text or "no reason given") if stop == "refusal" else "",
            is_truncated=stop in ("max_tokens", "model_context_window_exceeded"),
            tokens=Tokens(
                _count(usage, "input_tokens") + cached + written, cached, _count(usage, "output_tokens")
            ),
        )


WIRES: Mapping[str, type[Wire]] = {"": ChatCompletions, "responses+": Responses, "anthropic+": Messages}
"""By what stands between `chat+` and `http` in an address."""


def parsed_json(content: bytes) -> Any:
    """Return what JSON says; halves of characters in it, as from emoji that a model cut, become `?`.

    Raises:
        ValueError: It is not JSON.
    """
    try:
        return msgspec.json.decode(content)
    except (ValueError, RecursionError):  # msgspec's errors are ValueErrors
        pass
    try:
        return without_surrogates(json.loads(content.decode("utf-8-sig", "replace")))
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def without_surrogates(value: Any) -> Any:
    """Return a value of JSON that can be written as UTF-8. Raises ValueError if it holds a NaN."""
    return msgspec.json.decode(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))


def _url(picture: Picture, *, is_record: bool) -> str:
    return picture.mark if is_record else f"data:{picture.media_type};base64,{picture.base64}"


# Servers need not keep to their own API: what is of another type counts as missing.


def _as(value: Any, type_: type[T]) -> T:
    return value if isinstance(value, type_) else type_()


def _get(fields: dict[str, Any], name: str, type_: type[T]) -> T:
    return _as(fields.get(name), type_)


def _count(fields: dict[str, Any], name: str) -> int:
    value = fields.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53 else 0


def _openai_tokens(body: dict[str, Any], sent: str, received: str) -> Tokens:
    usage = _get(body, "usage", dict)
    cached = _count(_get(usage, f"{sent}_details", dict), "cached_tokens")
    return Tokens(_count(usage, sent), cached, _count(usage, received))
