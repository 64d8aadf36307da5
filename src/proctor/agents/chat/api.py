"""Asking a model: keys, retries, parameters that a server refuses, and what its errors mean for a run."""

from __future__ import annotations

import os
import re
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import msgspec
import numpy as np

from proctor.agents.chat.client import TRANSIENT_STATUSES, Answer, HttpClient, NoAnswer
from proctor.agents.chat.faults import ChatFault, Unusable
from proctor.agents.chat.wires import WIRES, ModelReply, Request, Sampling, ServerError, Wire, parsed_json
from proctor.core.addresses import CHAT_PREFIX, KEY_VARIABLE, checked_token
from proctor.core.errors import AgentUnavailable, UserError, did_you_mean
from proctor.core.plain_text import plain

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 8.0
CHECK_TIMEOUT_S = 30.0
LONGEST_ERROR_TEXT = 400
SHORTEST_SECRET = 8
"""Shorter keys, such as `x` for a server that wants any, are words that occur by themselves."""
REFUSED_PARAMETER = re.compile(
    r"unsupported|not support|unrecognized|unknown|not permitted|unexpected|not allowed", re.IGNORECASE
)
SPENT = ("insufficient_quota", "enforced_spend_limit_reached", "billing_error", "billing_hard_limit_reached")
"""Codes of errors that do not go away by waiting, though their status may be 429."""
FILTERED = ("content_filter", "content_policy_violation", "refusal")


class Exchange(NamedTuple):
    """One request and what came back, for the transcript and the accounts."""

    request: dict[str, Any]
    """Pictures are only named."""
    status: int
    """0: nothing came back."""
    seconds: float
    body: Any
    reply: ModelReply | None


class Failure(Exception):
    """A request that the server did not answer as it should."""

    def __init__(
        self, kind: str, problem: str, *, is_transient: bool, wait_s: float | None = None, parameter: str = ""
    ) -> None:
        self.kind, self.is_transient, self.wait_s, self.parameter = str(kind), is_transient, wait_s, parameter
        super().__init__(problem)


class Endpoint(NamedTuple):
    """One address of a model's API."""

    url: str
    """Without what follows, such as /chat/completions."""
    key: str | None
    key_source: str
    """Where the key is from, or should be."""

    @property
    def secret(self) -> str | None:
        """The key, if it is to be cut out of what the server says."""
        return self.key if self.key is not None and len(self.key) >= SHORTEST_SECRET else None


class ApiPatience(NamedTuple):
    """How long to ask a server that does not answer."""

    timeout_s: float
    max_retries: int
    retry_for_s: float


def wire_of(address: str) -> Wire:
    """Return the API that an address names."""
    scheme = address.partition("://")[0].removeprefix(CHAT_PREFIX)
    return WIRES[re.sub("https?$", "", scheme)]()


def key_names(address: str, key_env: str | None) -> list[str]:
    """Return the environment variables that may hold the key for an address; the first that is set counts."""
    if key_env:
        return [key_env]
    wire = wire_of(address)
    is_vendor = urlsplit(_url_of(address)).hostname == wire.vendor_host
    return [KEY_VARIABLE, wire.vendor_key] if is_vendor else [KEY_VARIABLE]


def _url_of(address: str) -> str:
    scheme, _, rest = address.partition("://")
    return f"{re.sub('^.*[+]', '', scheme)}://{rest}"


def endpoint_of(address: str, wire: Wire, key_env: str | None) -> Endpoint:
    """Return where to ask and with which key; a vendor's key goes to the vendor's own host alone."""
    url = _url_of(address)
    if urlsplit(url).path.endswith(wire.path):
        raise UserError(f"host: leave out {wire.path} at the end of {address}: it is added")
    names = key_names(address, key_env)
    for name in names:
        if key := os.environ.get(name, "").strip():
            return Endpoint(url, checked_token(name, key), name)
    if key_env:
        raise UserError(f"key_env: the environment variable {key_env} is not set")
    return Endpoint(url, None, " or ".join(names))


class ModelApi:
    """A model behind an API, at one address or several: when one fails, the next is asked.

    `note` is called with each exchange.
    """

    def __init__(
        self,
        endpoints: Sequence[Endpoint],
        wire: Wire,
        patience: ApiPatience,
        note: Callable[[Exchange], None],
    ) -> None:
        self._endpoints, self._wire, self._patience, self._note = deque(endpoints), wire, patience, note
        self._http = HttpClient()
        self._dropped: dict[str, str] = {}  # what the server has refused -> what is sent instead
        self._known_models: tuple[str, ...] = ()
        self._rng = np.random.default_rng(0)

    def begin(self, seed: int) -> None:
        """Begin an episode: pauses between retries are jittered by its seed."""
        self._rng = np.random.default_rng(seed)

    def ask(self, request: Request) -> ModelReply:
        """Return the model's reply, asking again while the server is busy.

        Raises:
            Unusable: The reply is too large, has no end, or is a refusal.
            AgentUnavailable: The server cannot be asked, or not like this.
        """
        begun_s, pause_s, retries = time.monotonic(), FIRST_PAUSE_S, 0
        while True:
            try:
                return self._exchange(request, self._patience.timeout_s)
            except Failure as failure:
                if self._drop(failure, request):
                    continue
                wait_s = pause_s * self._rng.uniform(0.5, 1.0) if failure.wait_s is None else failure.wait_s
                left_s = begun_s + self._patience.retry_for_s - time.monotonic()
                if not failure.is_transient or retries >= self._patience.max_retries or wait_s > left_s:
                    raise self._unavailable(failure, retries) from None
            time.sleep(wait_s)
            self._endpoints.rotate(-1)
            pause_s, retries = min(2 * pause_s, LONGEST_PAUSE_S), retries + 1

    def check(self, model: str) -> None:
        """Raise a UserError if the model is not there: by a list of models, else by a tiny request."""
        endpoint = self._endpoints[0]
        try:
            if model not in self._listed_models(endpoint):
                self._try_out(model)
        except Failure as failure:
            if failure.kind == ChatFault.OVERLOADED and failure.is_transient:
                return  # it is there
            listed = ", ".join(self._known_models[:20])
            hint = did_you_mean(model, self._known_models)
            models = f"{hint}; models there: {listed}" if listed else ""
            raise UserError(f"{failure}{models}{self._fix(failure)}") from None

    def close(self) -> None:
        """Close the connection."""
        self._http.close()

    # One exchange

    def _exchange(self, request: Request, timeout_s: float) -> ModelReply:
        endpoint = self._endpoints[0]
        content = msgspec.json.encode(self._allowed(self._wire.body(request)))
        record = self._allowed(self._wire.body(request, is_record=True))
        begun_s, status, reply = time.monotonic(), 0, None
        body: Any = None
        try:
            answer = self._send(endpoint, "POST", self._wire.path, content, timeout_s)
            status, body = answer.status, answer.content.decode("utf-8", "replace")
            body = self._parsed(endpoint, answer)
            reply = self._reply(endpoint, body)
            return reply
        except (Failure, Unusable) as problem:
            body = str(problem) if body is None else body
            raise
        finally:
            seconds = round(time.monotonic() - begun_s, 4)
            self._note(Exchange(record, status, seconds, body, reply))

    def _send(
        self, endpoint: Endpoint, method: str, path: str, content: bytes | None, timeout_s: float
    ) -> Answer:
        try:
            return self._http.send(
                method, endpoint.url + path, self._wire.headers(endpoint.key), content, timeout_s
            )
        except NoAnswer as error:
            problem = self._redacted(endpoint, f"{endpoint.url}: {error}")
            raise Failure(ChatFault.UNREACHABLE, problem, is_transient=True) from None

    def _parsed(self, endpoint: Endpoint, answer: Answer) -> dict[str, Any]:
        """Return the body of a good answer; raise Failure for a bad one."""
        try:
            body = parsed_json(answer.content)
        except ValueError:
            body = None
        body = _without_secret(body, endpoint.secret)
        error = _error_of(body)
        if 200 <= answer.status < 300 and isinstance(body, dict) and error is None:
            return body
        if error is None:
            what = "an HTML page" if answer.is_html else "no JSON object"
            error = ErrorText("" if answer.status >= 400 and not answer.is_html else what)
            if answer.status < 400:
                problem = f"{endpoint.url} answered {answer.status} with {what}, not as a model's API does"
                # In the middle of a run it is a gateway that fails; before it, another protocol.
                raise Failure(ChatFault.UNREADABLE, problem, is_transient=answer.status < 300)
        raise self._failure(endpoint, answer, error)

    def _failure(self, endpoint: Endpoint, answer: Answer, error: ErrorText) -> Failure:
        status = answer.status
        if status < 300:  # OpenRouter reports a provider's errors like this
            status = int(error.code) if re.fullmatch("[0-9]{3}", error.code) else 502
        text = self._redacted(endpoint, error.text)
        problem = f"{endpoint.url} answered {status}{f': {text}' if text else ''}"
        if error.code in FILTERED:
            raise Unusable(ChatFault.REFUSAL, f"the request was filtered: {text}", "(a refusal)")
        if status == 402 or error.code in SPENT or error.kind in SPENT:
            return Failure(ChatFault.NO_CREDIT, problem, is_transient=False)
        if status in (401, 403):
            return Failure(ChatFault.KEY_REFUSED, problem, is_transient=False)
        if status in TRANSIENT_STATUSES or status >= 500:
            return Failure(ChatFault.OVERLOADED, problem, is_transient=True, wait_s=answer.retry_after_s)
        return Failure(
            ChatFault.REQUEST_REFUSED, problem, is_transient=False, parameter=self._refused(status, error)
        )

    def _reply(self, endpoint: Endpoint, body: dict[str, Any]) -> ModelReply:
        try:
            return self._wire.reply(body)
        except ServerError as error:
            text = self._redacted(endpoint, str(error))
            is_transient = error.code in ("", "server_error", "rate_limit_exceeded")
            kind = ChatFault.OVERLOADED if is_transient else ChatFault.REQUEST_REFUSED
            raise Failure(kind, f"{endpoint.url}: {text}", is_transient=is_transient) from None

    # Parameters that a server refuses

    def _refused(self, status: int, error: ErrorText) -> str:
        """Return the parameter that a server does not take, if the error names one."""
        if status not in (400, 422):
            return ""
        names = self._wire.droppable
        if error.parameter.partition(".")[0] in names:
            return error.parameter.partition(".")[0]
        if REFUSED_PARAMETER.search(error.text):
            return next((name for name in names if re.search(rf"\b{name}\b", error.text)), "")
        return ""

    def _drop(self, failure: Failure, request: Request) -> bool:
        """Leave a refused parameter out from now on; tell whether that changes the request."""
        name = failure.parameter
        if not name or name in self._dropped or name not in self._allowed(self._wire.body(request)):
            return False
        self._dropped[name] = self._wire.droppable[name]
        return True

    def _allowed(self, body: dict[str, Any]) -> dict[str, Any]:
        for name, instead in self._dropped.items():
            if name in body:
                value = body.pop(name)
                if instead:
                    body[instead] = value
        return body

    # Before a run

    def _listed_models(self, endpoint: Endpoint) -> tuple[str, ...]:
        """Return the models that the server lists; none if it has no list."""
        self._known_models = ()
        try:
            answer = self._send(endpoint, "GET", "/models", None, CHECK_TIMEOUT_S)
            body = self._parsed(endpoint, answer)
        except Failure as failure:
            if failure.kind in (ChatFault.REQUEST_REFUSED, ChatFault.UNREADABLE):
                return ()
            raise
        except Unusable:
            return ()
        listed = body.get("data")
        ids = (
            [item.get("id") for item in listed if isinstance(item, dict)] if isinstance(listed, list) else []
        )
        self._known_models = tuple(plain(name) for name in ids if isinstance(name, str))
        return self._known_models

    def _try_out(self, model: str) -> None:
        """Ask for a few tokens. 16 is the least that OpenAI's Responses take."""
        request = Request(model, "", ["Say OK."], [], Sampling(max_tokens=16, tool_choice="none"))
        while True:
            try:
                self._exchange(request, CHECK_TIMEOUT_S)
            except Failure as failure:
                if self._drop(failure, request):
                    continue
                if "max_tokens" in str(failure):  # a reasoning model that could not finish in 16: it is there
                    return
                raise
            except Unusable:
                return
            else:
                return

    # Messages

    def _unavailable(self, failure: Failure, retries: int) -> AgentUnavailable:
        tried = f" (asked {retries + 1} times)" if retries else ""
        if failure.wait_s is not None and failure.is_transient:
            tried += f"; it asks to wait {failure.wait_s:.0f} s"
        problem = f"{failure}{tried}{self._fix(failure)}"
        return AgentUnavailable(problem, kind=failure.kind, is_outage=True)

    def _fix(self, failure: Failure) -> str:
        endpoint = self._endpoints[0]
        if failure.kind == ChatFault.KEY_REFUSED:
            state = "it is refused" if endpoint.key else "none is set"
            return f". fix: the key is taken from {endpoint.key_source} in the environment; {state}"
        fixes: dict[str, str] = {
            ChatFault.NO_CREDIT: "the account has no credit left; add some, then run the same command again",
            ChatFault.UNREACHABLE: "is the server started, and are host and port right?",
            ChatFault.UNREADABLE: "is this the address of a model's API? It mostly ends with /v1",
            ChatFault.REQUEST_REFUSED: "is the model's name right, does the address end with /v1, and can "
            "the model take pictures and call tools (docs/chat-models.md)?",
        }
        fix = fixes.get(failure.kind)
        return f". fix: {fix}" if fix else ""

    def _redacted(self, endpoint: Endpoint, text: str) -> str:
        text = text.replace(endpoint.secret, "(key)") if endpoint.secret else text
        return plain(" ".join(text.split()))[:LONGEST_ERROR_TEXT]


def _without_secret(body: Any, secret: str | None) -> Any:
    """Cut a key out of a whole reply: what the model says ends up in messages and results, too."""
    if secret is None:
        return body
    content, written = msgspec.json.encode(body), msgspec.json.encode(secret)[1:-1]
    return msgspec.json.decode(content.replace(written, b"(key)")) if written in content else body


class ErrorText(NamedTuple):
    """What a server says about an error."""

    text: str
    code: str = ""
    parameter: str = ""
    kind: str = ""


def _error_of(body: Any) -> ErrorText | None:
    """Return the error in a body, in any of the shapes that servers give it; None if there is none."""
    if not isinstance(body, dict):
        return None
    error = body.get("error")
    if body.get("object") == "error" or (error is None and "detail" in body and "choices" not in body):
        error = body  # SGLang; FastAPI
    if error is None or error == {}:
        return None
    if not isinstance(error, dict):
        return ErrorText(str(error))
    message = error.get("message", error.get("detail", ""))
    code, parameter, kind = (
        "" if (value := error.get(name)) is None else str(value)[:80] for name in ("code", "param", "type")
    )
    return ErrorText(message if isinstance(message, str) else str(message), code, parameter, kind)
