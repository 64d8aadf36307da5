"""Model servers on loopback that refuse what real ones refuse.

Requests are judged by the types of the packages `openai` and `anthropic`, replies as well, so that a server
here cannot be wrong in the same way as our client. A script says what each request is answered: a `Said`, a
`(status, body, headers)`, or a function that gets the request handler and does as it likes.
"""

from __future__ import annotations

import base64
import io
import json
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

from anthropic.types import Message
from anthropic.types.message_create_params import MessageCreateParamsNonStreaming
from openai.types.chat import ChatCompletion
from openai.types.chat.completion_create_params import CompletionCreateParamsNonStreaming
from openai.types.responses import Response
from openai.types.responses.response_create_params import ResponseCreateParamsNonStreaming
from PIL import Image
from pydantic import ConfigDict, TypeAdapter, ValidationError, with_config

KEY = "sk-secret-0123456789"
PROFILES = ("openai", "vllm", "sglang", "ollama", "llamacpp")


class Said(NamedTuple):
    """What the model says, on any wire."""

    text: str | None = None
    calls: tuple[tuple[str, Any], ...] = ()
    """Names and arguments; arguments that are text are sent as they are."""
    refusal: str | None = None
    stop: str | None = None
    """Of the wire; by default what fits."""


def acts(*names: str, note: str = "going on") -> Said:
    return Said(calls=(("act", {"actions": list(names), "note": note}),))


class Refused(Exception):
    def __init__(self, status: int, message: str, code: Any = None, param: str | None = None) -> None:
        self.status, self.message, self.code, self.param = status, message, code, param
        super().__init__(message)


def adapter(params: Any, extra: str) -> TypeAdapter[Any]:
    return TypeAdapter(with_config(ConfigDict(extra=extra))(params))  # type: ignore[typeddict-item]


def walked(value: Any) -> Any:
    """Walk through a value: pydantic validates what is Iterable only then."""
    if isinstance(value, dict):
        return {key: walked(item) for key, item in value.items()}
    if value is None or isinstance(value, str | int | float):
        return value
    return [walked(item) for item in value]


def check_picture(data: str) -> None:
    try:
        Image.open(io.BytesIO(base64.b64decode(data, validate=True))).verify()
    except (ValueError, OSError, SyntaxError) as error:
        raise Refused(400, f"an unsupported image: {error}", "invalid_image_format", "messages") from None


class StrictServer:
    """The base: a script, a key, a model."""

    paths = "/v1"
    path: str
    params: Any

    def __init__(self, *script: Any, model: str = "gpt-x", key: str | None = KEY) -> None:
        self._script, self.model, self.key = iter(script), model, key
        self.seen: list[dict[str, Any]] = []
        self.raw: list[bytes] = []
        self.asked: list[str] = []
        self.lists_models = True
        self.forbidden: tuple[str, ...] = ()
        self.lock = threading.Lock()
        self._types = adapter(self.params, "forbid")
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            timeout = 30

            def do_GET(self):
                outer.answer_get(self)

            def do_POST(self):
                outer.answer_post(self)

            def log_message(self, *_):
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_):
                pass  # a client that has gone away

        self._http = Server(("127.0.0.1", 0), Handler)
        self.base = f"http://127.0.0.1:{self._http.server_port}/v1"
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    @property
    def address(self) -> str:
        return f"{self.scheme}{self.base}"

    scheme = "chat+"

    def answer_get(self, handler: Any) -> None:
        self.asked.append(f"GET {handler.path}")
        try:
            self.check_key(handler)
            if handler.path != "/v1/models" or not self.lists_models:
                raise Refused(404, f"Invalid URL (GET {handler.path})")
            say(handler, 200, {"object": "list", "data": [{"id": self.model, "object": "model"}]})
        except Refused as refused:
            say(handler, refused.status, self.error(refused))

    def answer_post(self, handler: Any) -> None:
        raw = handler.rfile.read(int(handler.headers["content-length"]))
        with self.lock:
            self.asked.append(f"POST {handler.path}")
            self.raw.append(raw)
        try:
            self.check_key(handler)
            if handler.path != f"/v1{self.path}":
                raise Refused(404, f"Invalid URL (POST {handler.path})")
            body = json.loads(raw)
            if body.get("model") != self.model:
                message = f"The model `{body.get('model')}` does not exist or you do not have access to it."
                raise Refused(404, message, "model_not_found")
            self.judge(body)
            with self.lock:
                self.seen.append(body)
                reply = next(self._script)
            if callable(reply):
                with suppress(OSError):
                    reply(handler)
            elif isinstance(reply, Said):
                say(handler, 200, self.reply(body, reply))
            else:
                say(handler, *reply)
        except Refused as refused:
            say(handler, refused.status, self.error(refused))

    def check_key(self, handler: Any) -> None:
        if self.key is not None and handler.headers.get("authorization") != f"Bearer {self.key}":
            given = handler.headers.get("authorization", "").removeprefix("Bearer ")
            raise Refused(401, f"Incorrect API key provided: {given}", "invalid_api_key")

    def judge(self, body: dict[str, Any]) -> None:
        for name in self.forbidden:
            if name in body:
                message = f"Unsupported parameter: '{name}' is not supported with this model."
                raise Refused(400, message, "unsupported_parameter", name)
        try:
            walked(self._types.validate_python(body))
        except ValidationError as error:
            found = error.errors()[0]
            place = ".".join(map(str, found["loc"]))
            raise Refused(400, f"{place}: {found['msg']}") from None

    def error(self, refused: Refused) -> dict[str, Any]:
        return {
            "error": {
                "message": refused.message,
                "type": "invalid_request_error",
                "param": refused.param,
                "code": refused.code,
            }
        }

    def reply(self, body: dict[str, Any], said: Said) -> dict[str, Any]:
        raise NotImplementedError


def say(handler: Any, status: int, body: Any, headers: dict[str, str] | None = None) -> None:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    kind = {"content-type": "text/html" if content.startswith(b"<") else "application/json"}
    handler.send_response(status)
    for name, value in {**kind, "content-length": str(len(content)), **(headers or {})}.items():
        handler.send_header(name, value)
    handler.end_headers()
    with suppress(OSError):
        handler.wfile.write(content)


def written(arguments: Any) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments)


class StrictChat(StrictServer):
    """/chat/completions as one of several servers speaks it."""

    path = "/chat/completions"
    params = CompletionCreateParamsNonStreaming

    def __init__(self, *script: Any, profile: str = "openai", **options: Any) -> None:
        super().__init__(*script, **options)
        self.profile = profile
        if profile == "ollama":
            self.key = None
        if profile != "openai":
            self._types = adapter(self.params, "allow")

    def judge(self, body: dict[str, Any]) -> None:
        if self.profile == "openai" and body["model"].startswith(("gpt-5", "o3")):
            self.judge_reasoner(body)
        super().judge(body)
        if body.get("tools") == [] and self.profile in ("openai", "vllm"):
            raise Refused(400, "Invalid 'tools': empty array.", "empty_array", "tools")
        if "tools" not in body and "tool_choice" in body and self.profile != "ollama":
            raise Refused(
                400, "'tool_choice' is only allowed when 'tools' are specified.", None, "tool_choice"
            )
        pictures = sum(self.judge_message(message) for message in body["messages"])
        if pictures > 4 and self.profile == "vllm":
            raise Refused(400, "At most 4 image(s) may be provided in one prompt.", 400, "image")

    @staticmethod
    def judge_reasoner(body: dict[str, Any]) -> None:
        if "max_tokens" in body:
            message = "'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
            raise Refused(400, f"Unsupported parameter: {message}", "unsupported_parameter", "max_tokens")
        if body.get("temperature", 1) != 1:
            message = "Unsupported value: 'temperature' does not support 0 with this model."
            raise Refused(400, message, "unsupported_value", "temperature")

    @staticmethod
    def judge_message(message: dict[str, Any]) -> int:
        """Return how many pictures a message has."""
        if message.get("tool_calls") or message["role"] == "tool":
            raise Refused(400, "no calls are open")
        parts = message["content"] if isinstance(message["content"], list) else []
        pictures = [part["image_url"]["url"] for part in parts if part["type"] == "image_url"]
        if pictures and message["role"] != "user":
            raise Refused(400, "Image URLs are only allowed for messages with role 'user'")
        for url in pictures:
            head, _, data = url.partition(";base64,")
            if head != "data:image/jpeg":
                raise Refused(400, f"unsupported image {head[:40]}")
            check_picture(data)
        return len(pictures)

    def error(self, refused: Refused) -> dict[str, Any]:
        if self.profile in ("vllm", "sglang") and refused.status == 401:
            return {"error": "Unauthorized"}
        whole = super().error(refused)
        if self.profile == "sglang":
            flat = {**whole["error"], "code": refused.status, "type": "BadRequestError"}
            return {"object": "error", **flat}
        if self.profile in ("vllm", "llamacpp"):
            whole["error"]["code"] = refused.status
        return whole

    def reply(self, body: dict[str, Any], said: Said) -> dict[str, Any]:
        calls = [
            {"id": f"call_{i}", "type": "function", "function": {"name": name, "arguments": written(args)}}
            for i, (name, args) in enumerate(said.calls)
        ]
        message = {"role": "assistant", "content": said.text, "refusal": said.refusal}
        if calls:
            message["tool_calls"] = calls
        reason = said.stop or ("tool_calls" if calls else "stop")
        usage: dict[str, Any] = {"prompt_tokens": 1200, "completion_tokens": 20, "total_tokens": 1220}
        if self.profile in ("openai", "llamacpp"):
            usage["prompt_tokens_details"] = {"cached_tokens": 1000}
        whole = {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1,
            "model": self.model,
            "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": reason}],
            "usage": usage,
        }
        ChatCompletion.model_validate(whole, strict=True)
        return whole


class StrictResponses(StrictServer):
    """OpenAI's /responses."""

    path, scheme = "/responses", "chat+responses+"
    params = ResponseCreateParamsNonStreaming

    def judge(self, body: dict[str, Any]) -> None:
        super().judge(body)
        if body.get("store") is not False:
            raise Refused(400, "this test stores nothing", None, "store")
        if body.get("max_output_tokens", 16) < 16:
            raise Refused(400, "Invalid 'max_output_tokens': at least 16", None, "max_output_tokens")
        for item in body["input"]:
            for part in item["content"] if isinstance(item["content"], list) else []:
                if part["type"] == "input_image":
                    check_picture(part["image_url"].removeprefix("data:image/jpeg;base64,"))

    def reply(self, body: dict[str, Any], said: Said) -> dict[str, Any]:
        output: list[dict[str, Any]] = [{"type": "reasoning", "id": "rs_1", "summary": []}]
        if said.text is not None or said.refusal is not None:
            block = (
                {"type": "output_text", "text": said.text, "annotations": []}
                if said.refusal is None
                else {"type": "refusal", "refusal": said.refusal}
            )
            message = {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed"}
            output.append({**message, "content": [block]})
        output += [
            {
                "type": "function_call",
                "id": f"fc_{i}",
                "call_id": f"call_{i}",
                "name": name,
                "arguments": written(args),
                "status": "completed",
            }
            for i, (name, args) in enumerate(said.calls)
        ]
        whole = {
            "id": "resp_1",
            "object": "response",
            "created_at": 1.0,
            "status": "incomplete" if said.stop else "completed",
            "error": None,
            "incomplete_details": {"reason": said.stop} if said.stop else None,
            "model": self.model,
            "output": output,
            "parallel_tool_calls": True,
            "tool_choice": body.get("tool_choice", "auto"),
            "tools": body.get("tools", []),
            "usage": {
                "input_tokens": 1200,
                "input_tokens_details": {"cached_tokens": 1000, "cache_write_tokens": 0},
                "output_tokens": 20,
                "output_tokens_details": {"reasoning_tokens": 5},
                "total_tokens": 1220,
            },
        }
        Response.model_validate(whole, strict=True)
        return whole


class StrictMessages(StrictServer):
    """Anthropic's /messages."""

    path, scheme = "/messages", "chat+anthropic+"
    params = MessageCreateParamsNonStreaming

    def check_key(self, handler: Any) -> None:
        bearer = handler.headers.get("authorization", "").removeprefix("Bearer ")  # as the SDK does
        if handler.headers.get("x-api-key", bearer) != self.key:
            raise Refused(401, "invalid x-api-key", "authentication_error")
        if not handler.headers.get("anthropic-version"):
            raise Refused(400, "anthropic-version: header is required")

    def judge(self, body: dict[str, Any]) -> None:
        super().judge(body)
        for message in body["messages"]:
            content = message["content"]
            parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
            if not parts:
                raise Refused(400, "messages: content must not be empty")
            for part in parts:
                if part["type"] == "text" and not part["text"].strip():
                    raise Refused(400, "messages: text content blocks must be non-empty")
                if part["type"] == "image":
                    check_picture(part["source"]["data"])
        if [message["role"] for message in body["messages"]][::2][0] != "user":
            raise Refused(400, "messages: first message must use the user role")

    def error(self, refused: Refused) -> dict[str, Any]:
        kinds = {401: "authentication_error", 404: "not_found_error"}
        kind = kinds.get(refused.status, "invalid_request_error")
        return {"type": "error", "error": {"type": kind, "message": refused.message}, "request_id": "r1"}

    def reply(self, body: dict[str, Any], said: Said) -> dict[str, Any]:
        content: list[dict[str, Any]] = []
        if said.text:
            content.append({"type": "text", "text": said.text, "citations": None})
        content += [
            {"type": "tool_use", "id": f"toolu_{i}", "name": name, "input": args}
            for i, (name, args) in enumerate(said.calls)
        ]
        stop = said.stop or ("refusal" if said.refusal else "tool_use" if said.calls else "end_turn")
        whole = {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": self.model,
            "content": content,
            "stop_reason": stop,
            "stop_sequence": None,
            "usage": {
                "input_tokens": 100,
                "output_tokens": 20,
                "cache_creation_input_tokens": 100,
                "cache_read_input_tokens": 1000,
            },
        }
        Message.model_validate(whole, strict=True)
        return whole


WIRES: tuple[type[StrictServer], ...] = (StrictChat, StrictResponses, StrictMessages)
