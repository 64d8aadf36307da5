"""Three HTTP APIs of chat models: how a request is written, and what a reply says.

`chat` is OpenAI's /chat/completions, which vLLM, SGLang, Ollama, llama.cpp and OpenRouter speak, too;
`responses` is OpenAI's /responses, `anthropic` is Anthropic's /messages. As few parameters are sent as
possible: servers refuse what they do not know.
"""

from __future__ import annotations

import abc
import json
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import msgspec

from proctor.agents.chat.loose_json import as_count, as_dict, as_list, as_text, content_text
from proctor.agents.chat.prompt import Part, Picture
from proctor.agents.chat.task import Tool
from proctor.core.errors import UserError


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
    tools: Sequence[Tool]
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
    vendor_host: ClassVar[str]
    """Whose own key variable is used for this host alone."""
    vendor_key: ClassVar[str]
    droppable: ClassVar[Mapping[str, str]]
    """Parameters that a server may refuse -> what to send instead, or nothing."""
    unsupported: ClassVar[tuple[str, ...]] = ()
    """Fields of `Sampling` that the API does not have."""

    def headers(self, key: str | None) -> dict[str, str]:
        """Return the headers that let one in."""
        return {} if key is None else {"authorization": f"Bearer {key}"}

    def check(self, sampling: Sampling) -> None:
        """Refuse what this API does not have."""
        for name in self.unsupported:
            if getattr(sampling, name) is not None:
                raise UserError(f"{name}: the API of {self.path} has no such parameter; leave it out")

    @abc.abstractmethod
    def body(self, request: Request, *, is_record: bool = False) -> dict[str, Any]:
        """Return the body of a request; in a record, pictures are only named."""

    @abc.abstractmethod
    def reply(self, body: dict[str, Any]) -> ModelReply:
        """Read the body of a reply. Raises ServerError if it is not an answer."""


def _data(picture: Picture, *, is_record: bool) -> str:
    return picture.mark if is_record else picture.base64


def _url(picture: Picture, *, is_record: bool) -> str:
    return picture.mark if is_record else f"data:{picture.media_type};base64,{picture.base64}"


class ChatCompletions(Wire):
    """POST /chat/completions."""

    path = "/chat/completions"
    vendor_host, vendor_key = "api.openai.com", "OPENAI_API_KEY"
    droppable: ClassVar[Mapping[str, str]] = {
        "temperature": "",
        "seed": "",
        "reasoning_effort": "",
        "tool_choice": "",
        "max_tokens": "max_completion_tokens",  # OpenAI's reasoning models want this; Ollama ignores it
        "max_completion_tokens": "",
    }

    def body(self, request: Request, *, is_record: bool = False) -> dict[str, Any]:
        """Write a request."""
        sampling = request.sampling
        detail = {} if sampling.detail is None else {"detail": sampling.detail}
        content = [
            {"type": "text", "text": part}
            if isinstance(part, str)
            else {"type": "image_url", "image_url": {"url": _url(part, is_record=is_record), **detail}}
            for part in request.user
        ]
        system = [{"role": "system", "content": request.system}] if request.system else []
        messages = [*system, {"role": "user", "content": content}, *_repair_turn(request)]
        body: dict[str, Any] = {"model": request.model, "messages": messages}
        if sampling.tool_choice != "none":
            body["tools"] = [
                {
                    "type": "function",
                    "function": {
                        "name": tool.name,
                        "description": tool.description,
                        "parameters": tool.parameters,
                    },
                }
                for tool in request.tools
            ]
            choice = sampling.tool_choice
            named = {"type": "function", "function": {"name": choice}}
            body |= _if_set(tool_choice={"auto": None, "required": "required"}.get(choice, named))
        return body | _if_set(
            max_tokens=sampling.max_tokens,
            temperature=sampling.temperature,
            seed=sampling.seed,
            reasoning_effort=sampling.effort,
        )

    def reply(self, body: dict[str, Any]) -> ModelReply:
        """Read a reply. Its `finish_reason` says nothing about whether there are calls."""
        choices = as_list(body.get("choices"))
        if not choices:
            raise ServerError("a reply without choices")
        choice = as_dict(choices[0])
        message = as_dict(choice.get("message"))
        functions = [as_dict(as_dict(call).get("function")) for call in as_list(message.get("tool_calls"))]
        finish = as_text(choice.get("finish_reason"))
        usage = as_dict(body.get("usage"))
        is_filtered = finish == "content_filter"
        return ModelReply(
            calls=[RawCall(as_text(each.get("name")), each.get("arguments")) for each in functions],
            text=content_text(message.get("content")),
            refusal=as_text(message.get("refusal"))
            or ("a content filter cut the reply" if is_filtered else ""),
            is_truncated=finish == "length",
            tokens=Tokens(
                as_count(usage.get("prompt_tokens")),
                as_count(as_dict(usage.get("prompt_tokens_details")).get("cached_tokens")),
                as_count(usage.get("completion_tokens")),
            ),
        )


class Responses(Wire):
    """POST /responses. Nothing is stored at the provider."""

    path = "/responses"
    vendor_host, vendor_key = "api.openai.com", "OPENAI_API_KEY"
    droppable: ClassVar[Mapping[str, str]] = {
        "temperature": "",
        "reasoning": "",
        "tool_choice": "",
        "max_output_tokens": "",
    }
    unsupported = ("seed",)

    def body(self, request: Request, *, is_record: bool = False) -> dict[str, Any]:
        """Write a request."""
        sampling = request.sampling
        content = [
            {"type": "input_text", "text": part}
            if isinstance(part, str)
            else {
                "type": "input_image",
                "image_url": _url(part, is_record=is_record),
                "detail": sampling.detail or "auto",
            }
            for part in request.user
        ]
        body: dict[str, Any] = {
            "model": request.model,
            "store": False,
            "input": [{"role": "user", "content": content}, *_repair_turn(request)],
        }
        if sampling.tool_choice != "none":
            body["tools"] = [
                {
                    "type": "function",
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": tool.parameters,
                    "strict": False,
                }
                for tool in request.tools
            ]
            named = {"type": "function", "name": sampling.tool_choice}
            choices: dict[str, Any] = {"auto": None, "required": "required"}
            body |= _if_set(tool_choice=choices.get(sampling.tool_choice, named))
        return body | _if_set(
            instructions=request.system or None,
            max_output_tokens=sampling.max_tokens,
            temperature=sampling.temperature,
            reasoning=None if sampling.effort is None else {"effort": sampling.effort},
        )

    def reply(self, body: dict[str, Any]) -> ModelReply:
        """Read a reply. A 200 may be a failure."""
        status = as_text(body.get("status"))
        if status in ("failed", "cancelled"):
            error = as_dict(body.get("error"))
            raise ServerError(as_text(error.get("message")) or f"status {status}", as_text(error.get("code")))
        if not isinstance(body.get("output"), list):
            raise ServerError("a reply without output")
        output = [as_dict(item) for item in body["output"]]
        blocks = [
            as_dict(block)
            for item in output
            if item.get("type") == "message"
            for block in as_list(item.get("content"))
        ]
        reason = as_text(as_dict(body.get("incomplete_details")).get("reason"))
        usage = as_dict(body.get("usage"))
        refusal = "".join(as_text(block.get("refusal")) for block in blocks)
        return ModelReply(
            calls=[
                RawCall(as_text(item.get("name")), item.get("arguments"))
                for item in output
                if item.get("type") == "function_call"
            ],
            text="".join(as_text(block.get("text")) for block in blocks),
            refusal=refusal or ("a content filter cut the reply" if reason == "content_filter" else ""),
            is_truncated=reason == "max_output_tokens",
            tokens=Tokens(
                as_count(usage.get("input_tokens")),
                as_count(as_dict(usage.get("input_tokens_details")).get("cached_tokens")),
                as_count(usage.get("output_tokens")),
            ),
        )


class Messages(Wire):
    """POST /messages, Anthropic's."""

    path = "/messages"
    vendor_host, vendor_key = "api.anthropic.com", "ANTHROPIC_API_KEY"
    droppable: ClassVar[Mapping[str, str]] = {"temperature": "", "output_config": "", "tool_choice": ""}
    unsupported = ("seed", "detail")

    def headers(self, key: str | None) -> dict[str, str]:
        """Return the key and the version of the API, which is required."""
        return {"anthropic-version": "2023-06-01", **({} if key is None else {"x-api-key": key})}

    def body(self, request: Request, *, is_record: bool = False) -> dict[str, Any]:
        """Write a request."""
        sampling = request.sampling
        content = [
            {"type": "text", "text": part}
            if isinstance(part, str)
            else {
                "type": "image",
                "source": {
                    "type": "base64",
                    "media_type": part.media_type,
                    "data": _data(part, is_record=is_record),
                },
            }
            for part in request.user
        ]
        body: dict[str, Any] = {
            "model": request.model,
            "max_tokens": sampling.max_tokens,
            "messages": [{"role": "user", "content": content}, *_repair_turn(request)],
        }
        if sampling.tool_choice != "none":
            body["tools"] = [
                {"name": tool.name, "description": tool.description, "input_schema": tool.parameters}
                for tool in request.tools
            ]
            named = {"type": "tool", "name": sampling.tool_choice}
            choices: dict[str, Any] = {"auto": None, "required": {"type": "any"}}
            body |= _if_set(tool_choice=choices.get(sampling.tool_choice, named))
        return body | _if_set(
            system=request.system or None,
            temperature=sampling.temperature,
            output_config=None if sampling.effort is None else {"effort": sampling.effort},
        )

    def reply(self, body: dict[str, Any]) -> ModelReply:
        """Read a reply. Its `input_tokens` leave out cached ones."""
        if not isinstance(body.get("content"), list):
            raise ServerError("a reply without content")
        blocks = [as_dict(block) for block in body["content"]]
        stop, usage = as_text(body.get("stop_reason")), as_dict(body.get("usage"))
        cached = as_count(usage.get("cache_read_input_tokens"))
        written = as_count(usage.get("cache_creation_input_tokens"))
        category = as_text(as_dict(body.get("stop_details")).get("category"))
        text = "".join(as_text(block.get("text")) for block in blocks if block.get("type") == "text")
        return ModelReply(
            calls=[
                RawCall(as_text(block.get("name")), block.get("input"))
                for block in blocks
                if block.get("type") == "tool_use"
            ],
            text=text,
            refusal=(category or text or "no reason given") if stop == "refusal" else "",
            is_truncated=stop in ("max_tokens", "model_context_window_exceeded"),
            tokens=Tokens(
                as_count(usage.get("input_tokens")) + cached + written,
                cached,
                as_count(usage.get("output_tokens")),
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


def _repair_turn(request: Request) -> list[dict[str, Any]]:
    if request.repair is None:
        return []
    return [
        {"role": "assistant", "content": request.repair.said},
        {"role": "user", "content": request.repair.complaint},
    ]


def _if_set(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}
