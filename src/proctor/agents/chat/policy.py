"""The policy whose agent is a chat model behind an HTTP API.

Each decision is one question: the instruction, what was done so far as text, and the last few pictures. The
model answers by calling a tool, which gives one action or several. Nothing else is remembered between two
questions, so that each can be asked again from its record.
"""

from __future__ import annotations

import json
from collections import deque
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

import msgspec

from proctor.agents.chat.api import ApiPatience, Exchange, ModelApi, endpoint_of, wire_of
from proctor.agents.chat.calls import read_calls, said_text
from proctor.agents.chat.faults import ChatFault, Unusable
from proctor.agents.chat.prompt import Part, Picture, encode_picture, load_template
from proctor.agents.chat.task import LONGEST_NOTE, ChatTask, Decision, ToolCall, load_task
from proctor.agents.chat.transcript import TranscriptWriter
from proctor.agents.chat.wires import Repair, Request, Sampling
from proctor.core.addresses import RIGHT, is_chat, replicas
from proctor.core.documents import convert, read_json
from proctor.core.errors import AgentFault, EvaluatorError, InvalidFile, UserError, did_you_mean
from proctor.core.interfaces import Policy
from proctor.core.options import checked_options, takes_options
from proctor.core.types import EpisodeInfo, Observation, Usage

LONGEST_DECISION_S = 840.0
"""A worker whose policy takes 900 s for a turn is given up."""
LONGEST_SAID = 2000
"""Of what the model said, in a repair turn."""
Count = Annotated[int, msgspec.Meta(ge=0, le=1000)]
Positive = Annotated[int, msgspec.Meta(ge=1, le=1_000_000)]
Seconds = Annotated[float, msgspec.Meta(gt=0, le=600)]
Dollars = Annotated[float, msgspec.Meta(ge=0, le=1e6)]
Text = Annotated[str, msgspec.Meta(min_length=1, max_length=500)]


class ChatOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The options of the policy. None: the server's own choice, or the exam's."""

    model: Text = ""  # the model's name, as the server knows it; it must be given
    template: Text | None = None  # a file with the prompt, instead of the exam's own
    history: Count = 40  # how many past decisions are told as text
    pictures: Annotated[int, msgspec.Meta(ge=0, le=50)] | None = None
    """Of how many decisions pictures are shown, the present one included."""
    picture_size: Annotated[int, msgspec.Meta(ge=16, le=4096)] = 640  # larger ones are made smaller
    picture_quality: Annotated[int, msgspec.Meta(ge=1, le=95)] = 85  # of JPEG
    detail: Literal["auto", "low", "high", "original"] | None = None  # how closely OpenAI's models look
    temperature: Annotated[float, msgspec.Meta(ge=0, le=2)] | None = None  # of sampling
    seed: int | None = None  # of sampling, sent as it is. Servers promise little about it.
    effort: Text | None = None  # how much a reasoning model thinks: low, medium, high, ...
    max_tokens: Positive = 2048  # the longest reply, thinking included
    actions_per_reply: Annotated[int, msgspec.Meta(ge=1, le=100)] | None = None  # at most
    tool_choice: Text = "auto"
    """auto, required, the name of a tool, or none: no tools, the model is asked for JSON."""
    timeout_s: Seconds = 120.0  # for one reply
    max_retries: Count = 6  # how often a busy server is asked again
    retry_for_s: Annotated[float, msgspec.Meta(ge=0, le=600)] = 120.0  # and for how long
    repairs: Annotated[int, msgspec.Meta(ge=0, le=5)] = 1
    """How often a model may repair a reply that is not an action."""
    max_decisions: Positive | None = None  # per episode; None: as many as there are steps
    prices: Text | None = None  # a JSON file with US dollars per million tokens by model
    wire: bool = True  # whether all requests and replies are recorded
    key_env: Text | None = None  # the environment variable with the key, instead of PROCTOR_CHAT_KEY

    def __post_init__(self) -> None:
        longest_s = (1 + self.repairs) * (self.timeout_s + self.retry_for_s)  # a repair may be retried, too
        if longest_s > LONGEST_DECISION_S:
            raise UserError(
                f"timeout_s, repairs, retry_for_s: a decision could take {longest_s:g} s; "
                f"expected at most {LONGEST_DECISION_S:g} s in all"
            )


class Price(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """US dollars per million tokens."""

    input: Dollars
    output: Dollars
    cached: Dollars | None = None
    """Of input that was cached; as other input if it is missing."""

    def cost_usd(self, *, input_tokens: int, cached_tokens: int, output_tokens: int) -> float:
        """Return what tokens cost. `input_tokens` includes cached ones."""
        cached_usd = self.input if self.cached is None else self.cached
        fresh = max(0, input_tokens - cached_tokens)
        return (fresh * self.input + cached_tokens * cached_usd + output_tokens * self.output) / 1e6


class Past(NamedTuple):
    """A decision that was made."""

    first_step: int
    last_step: int
    text: str
    note: str


class DecisionPictures(NamedTuple):
    """The pictures of one decision."""

    step: int
    pictures: list[tuple[str, Picture]]
    """What each is called, if there are several, and the picture."""


class ChatPolicy(Policy):
    """Asks a chat model for actions.

    Args:
        address: `chat+http://localhost:8000/v1` for /chat/completions, `chat+responses+https://...` for
            OpenAI's Responses, `chat+anthropic+https://...` for Anthropic's messages. Several with commas
            between are replicas: if one does not answer, the next is asked.
        options: Those of `ChatOptions`, by keyword. `model` must be given.

    Raises:
        UserError: An option is not what it should be.
    """

    uses_chat_task = True
    connection_options: ClassVar = ("timeout_s", "max_retries", "retry_for_s", "wire", "key_env")
    """Options that say how to reach the model, not what is examined: a run may go on with others."""
    option_files: ClassVar[tuple[str, ...]] = ("template", "prices")
    """Options that name files which make the agent what it is."""

    @takes_options(ChatOptions)
    def __init__(self, address: str, **options: Any) -> None:
        self.options = checked = _checked(options)
        if not (isinstance(address, str) and is_chat(address)):
            raise UserError(f"host: {RIGHT}, found {address!r:.100}")
        addresses = replicas(address)
        self._wire = wire_of(addresses[0])
        endpoints = [endpoint_of(each, self._wire, checked.key_env) for each in addresses]
        self._sampling = Sampling(**{name: getattr(checked, name) for name in Sampling._fields})
        self._wire.check(self._sampling)
        self._template = load_template(Path(checked.template)) if checked.template is not None else None
        if self._template is not None and not self._template.shows_pictures and checked.pictures != 0:
            raise UserError(
                f"template: {self._template.file} has no line {{pictures}}, so the model would see nothing; "
                "add it, or say pictures=0"
            )
        self._price = _load_price(Path(checked.prices), checked.model) if checked.prices is not None else None
        patience = ApiPatience(checked.timeout_s, checked.max_retries, checked.retry_for_s)
        self._secrets = {endpoint.secret for endpoint in endpoints if endpoint.secret is not None}
        self._api = ModelApi(endpoints, self._wire, patience, self._note_exchange)
        self._used: Usage | None = None
        self._task: ChatTask | None = None
        self._prompt = self._template or load_template(ChatTask.template)
        self._queue: deque[Any] = deque()  # what is left of the last decision
        self._past: list[Past] = []
        self._views: deque[DecisionPictures] = deque()
        self._lines: TranscriptWriter | None = None
        self._step = self._attempt = 0

    def check(self) -> None:
        """Find out whether key, model and server are right, at the least cost."""
        self._api.check(self.options.model)

    def reset(self, episode_info: EpisodeInfo) -> None:
        """Begin an episode."""
        self._forget()
        self._api.begin(episode_info.seed)
        self._task = load_task(episode_info, self.options.actions_per_reply)
        self._prompt = self._template or load_template(self._task.template)
        names = [tool.name for tool in self._task.tools()]
        if self.options.tool_choice not in ("auto", "required", "none", *names):
            raise EvaluatorError(
                f"tool_choice: expected auto, required, none or one of {', '.join(names)}, "
                f"found '{self.options.tool_choice}'"
            )

    def act(self, observation: Observation) -> Any:
        """Return the next action of the last decision, or ask the model for another one."""
        task = self._task
        if task is None:
            raise EvaluatorError("act was called without reset")
        if not self._queue:
            self._decide(task, observation)
        self._step += 1
        return task.action(self._queue.popleft(), observation)

    def usage(self) -> Usage | None:
        """Return what was used since the last call."""
        used, self._used = self._used, None
        return used

    def transcript(self) -> bytes:
        """Return all requests and replies of the episode, compressed; nothing without `wire`."""
        lines, self._lines = self._lines, None
        return lines.file() if lines is not None else b""

    def close(self) -> None:
        """Close the connection."""
        self._api.close()

    def _forget(self) -> None:
        self._task, self._step, self._attempt = None, 0, 0
        for memory in (self._queue, self._past, self._views):
            memory.clear()
        self._lines = TranscriptWriter(self._secrets) if self.options.wire else None

    # A decision

    def _decide(self, task: ChatTask, observation: Observation) -> None:
        number = len(self._past) + 1
        if number > (self.options.max_decisions or number):
            problem = f"the {self.options.max_decisions} decisions of this episode are made"
            raise AgentFault(ChatFault.DECISION_LIMIT, problem)
        request = self._request(task, observation, number)
        pictures = [part for part in request.user if isinstance(part, Picture)]
        if self._lines is not None:
            self._lines.add_pictures(pictures)
        decision, note, said = self._answer(task, observation, request)
        self._queue.extend(decision.steps)
        last_step = self._step + len(decision.steps)
        self._past.append(Past(self._step + 1, last_step, " ".join(decision.names), note))
        self._used = (self._used or Usage()) + Usage(decisions=1)
        if self._lines is not None:
            self._lines.add(
                "decision",
                step=self._step,
                actions=list(decision.names),
                note=note,
                prompt=_as_text(request),
                reply=said,
                pictures=[picture.sha256 for picture in pictures],
            )

    def _request(self, task: ChatTask, observation: Observation, number: int) -> Request:
        """Write the question, and keep the pictures for the next ones."""
        options, info = self.options, task.info
        moments = task.moments if options.pictures is None else options.pictures
        shown = task.pictures(observation) if moments else []
        encoded = [
            (name, encode_picture(pixels, options.picture_size, options.picture_quality))
            for name, pixels in shown
        ]
        self._views.append(DecisionPictures(self._step + 1, encoded))
        while len(self._views) > max(moments, 1):
            self._views.popleft()
        values = {
            "instruction": info.instruction,
            "language": info.language,
            "robot": task.robot(),
            "details": task.details(),
            "state": task.state(observation),
            "history": self._history(),
            "step": str(self._step + 1),
            "max_steps": str(info.max_steps),
            "decision": str(number),
            "max_decisions": str(options.max_decisions or info.max_steps),
            "actions_per_reply": str(task.most_actions),
        }
        system, user = self._prompt.render(values, self._labelled_pictures())
        tools = task.tools()
        if options.tool_choice == "none":
            described = json.dumps([{"name": t.name, "parameters": t.parameters} for t in tools])
            ask = 'Answer with one JSON object and nothing else: {"name": ..., "arguments": {...}}. Names: '
            user = [*user, ask + described]
        return Request(options.model, system, user, tools, self._sampling)

    def _answer(
        self, task: ChatTask, observation: Observation, request: Request
    ) -> tuple[Decision, str, str]:
        """Return decision, note and reply; ask until it is usable, or the model has had its chances."""
        self._attempt, repairs = 0, 0
        while True:
            try:
                reply = self._api.ask(request)
                calls, said = read_calls(reply, request.tools), said_text(reply)
                try:
                    decision = task.decide(calls, observation)
                    if not decision.steps:
                        raise Unusable(ChatFault.NO_ACTION, "the call has no action in it")
                except Unusable as problem:
                    raise Unusable(problem.kind, problem.problem, said) from None
                return decision, _note_of(calls), said
            except Unusable as problem:
                if repairs >= self.options.repairs:
                    after = f" (after {repairs} repair turn{'s'[: repairs != 1]})" if repairs else ""
                    raise AgentFault(problem.kind, f"{problem.problem}{after}") from None
                repairs += 1
                self._used = (self._used or Usage()) + Usage(repairs=1)
                request = request._replace(repair=_repair(problem, request))

    def _note_exchange(self, exchange: Exchange) -> None:
        """Count what a request has cost, and record it."""
        self._attempt += 1
        tokens = exchange.reply.tokens if exchange.reply is not None else None
        if not any(tokens or ()):
            tokens = None  # a server that does not count: the cost is not known
        used = Usage(requests=1)
        if tokens is not None:
            counts = {
                "input_tokens": tokens.input,
                "cached_tokens": min(tokens.cached, tokens.input),
                "output_tokens": tokens.output,
            }
            cost_usd = self._price.cost_usd(**counts) if self._price is not None else None
            used = Usage(requests=1, **counts, cost_usd=cost_usd)
        self._used = (self._used or Usage()) + used
        if self._lines is None or self._task is None:  # the latter before a run
            return
        place = {"step": self._step, "attempt": self._attempt}
        self._lines.add("request", **place, body=exchange.request)
        counted = {} if tokens is None else {"usage": msgspec.to_builtins(used)}
        said = {"status": exchange.status, "seconds": exchange.seconds, "body": exchange.body}
        self._lines.add("reply", **place, **said, **counted)

    def _history(self) -> str:
        """Return the last decisions as text, a line each."""
        kept = self._past[max(0, len(self._past) - self.options.history) :]
        lines = [f"({len(self._past) - len(kept)} earlier decisions)"] if len(kept) < len(self._past) else []
        for past in kept:
            last = f"-{past.last_step}" if past.last_step > past.first_step else ""
            lines.append(f"{past.first_step}{last}: {past.text}" + (f' "{past.note}"' if past.note else ""))
        return "\n".join(lines) or "(nothing yet)"

    def _labelled_pictures(self) -> list[tuple[str, Picture]]:
        found = []
        for view in self._views:
            is_now = view is self._views[-1]
            when = "What you see now" if is_now else f"What you saw before step {view.step}"
            found += [(f"{when}{f' ({name})' if name else ''}:", picture) for name, picture in view.pictures]
        return found


def _checked(given: dict[str, Any]) -> ChatOptions:
    """Return the options, or raise a UserError for one that makes no sense."""
    if given.get("model", "") == "":
        raise UserError("model: expected the model's name; give it with --policy-option model=NAME")
    return checked_options(ChatOptions, given)


def _load_price(file: Path, model: str) -> Price:
    prices = convert(read_json(file), dict[str, Price], file)
    if model not in prices:
        known = ", ".join(sorted(prices)[:25]) or "none"
        hint = did_you_mean(model, prices)
        raise InvalidFile(file, f"no price for the model '{model}'{hint}; models in it: {known}")
    return prices[model]


def _note_of(calls: list[ToolCall]) -> str:
    notes = [note for call in calls if isinstance(note := call.arguments.get("note"), str)]
    return " ".join(" ".join(notes).split())[:LONGEST_NOTE]


def _repair(problem: Unusable, request: Request) -> Repair:
    tools = " or ".join(tool.name for tool in request.tools)
    do = f"Call {tools}."
    if request.sampling.tool_choice == "none":
        do = f"Answer with one JSON object that calls {tools}."
    said = problem.said.strip()[:LONGEST_SAID] or "(nothing)"  # Anthropic refuses an empty text
    return Repair(said, f"That was not usable: {problem.problem}. {do}")


def _as_text(request: Request) -> str:
    """Return what the model was given, with a word for each picture."""

    def text_of(part: Part) -> str:
        return part if isinstance(part, str) else "(picture)"

    return "\n".join(part for part in (request.system, *map(text_of, request.user)) if part)
