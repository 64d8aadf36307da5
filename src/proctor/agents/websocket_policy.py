"""The policy whose agent is served elsewhere, behind a WebSocket."""

from __future__ import annotations

import os
import ssl
import time
from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, get_args
from urllib.parse import urlsplit

import msgspec

from proctor.agents.connection import Connection
from proctor.agents.dialects.dialect import Dialect
from proctor.agents.dialects.mapping import load_mapping
from proctor.agents.faults import Departed, WireFault
from proctor.agents.greeting import FIRST_WORD_S, Address, DialectName, meet
from proctor.core.addresses import TOKEN_VARIABLE, agent_url, checked_token, is_address, replicas
from proctor.core.errors import AgentFault, AgentUnavailable, EvaluatorError, UnknownName, UserError
from proctor.core.interfaces import TRUTH, Policy
from proctor.core.types import EpisodeInfo, Observation, Outcome

LONGEST_WAIT_S = 600.0
"""For a connection or an action: a worker whose policy takes 900 s for a turn is given up."""
LONGEST_EPISODE_S = 7 * 24 * 3600.0
BRIEFING_S = 60.0
ALIVE_S = 3.0
LEAVE_S = 3.0
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.1, 2.0
CANNOT_WRITE = (TypeError, ValueError, ArithmeticError, LookupError, RuntimeError, MemoryError, OSError)
"""What encoders raise."""


class WebSocketPolicy(Policy):
    """Asks an agent over a WebSocket for each action.

    A connection serves many episodes. It is cut when anything goes wrong on it, so that an answer which
    comes too late reaches nobody, and the next episode begins on a new one.

    Args:
        host: A host's name, or a whole address: `ws://localhost:8080`, `wss://agents.example.org/mine`.
            Several addresses with commas between are replicas: if one does not answer, the next is tried.
        port: Of a host that is only a name; 8080 if it is missing.
        connect_timeout_s: How long to try to reach the agent, which may still be loading.
        action_timeout_s: How long the agent may take for one action.
        episode_budget_s: How long it may take for all actions of an episode together.
        token: Sent as `Authorization: Bearer`. Better given as the environment variable
            PROCTOR_AGENT_TOKEN: the arguments of a command can be seen by others.
        ca_file: Certificates to trust with `wss://` instead of the system's.
        tell_metrics: Whether the agent is told its metrics when an episode is over.
        dialect: `proctor`, `openpi` or `vla-eval`; `auto` finds out.
        mapping: A file that says what a server of openpi or vla-eval is shown and how its answer is read.

    Raises:
        UserError: An option is not what it should be.
    """

    def __init__(  # noqa: PLR0913  (options of a command, each with a default)
        self,
        host: str,
        port: int | str | None = None,
        *,
        connect_timeout_s: float = 30.0,
        action_timeout_s: float = 60.0,
        episode_budget_s: float = 1800.0,
        token: str | None = None,
        ca_file: str | None = None,
        tell_metrics: bool = True,
        dialect: DialectName = "auto",
        mapping: str | None = None,
    ) -> None:
        several = isinstance(host, str) and port is None and is_address(host)
        urls = replicas(host) if several else [agent_url(host, port)]
        self._connect_timeout_s = _seconds("connect_timeout_s", connect_timeout_s, LONGEST_WAIT_S)
        self._action_timeout_s = _seconds("action_timeout_s", action_timeout_s, LONGEST_WAIT_S)
        self._episode_budget_s = _seconds("episode_budget_s", episode_budget_s, LONGEST_EPISODE_S)
        if not isinstance(tell_metrics, bool):
            raise UserError(f"tell_metrics: expected true or false, found {tell_metrics!r:.40}")
        self._tell_metrics = tell_metrics
        if dialect not in get_args(DialectName):
            raise UnknownName("dialect", str(dialect), get_args(DialectName))
        self._wanted: DialectName = dialect
        self._mapping = load_mapping(Path(mapping)) if mapping is not None else None
        self._token = _token(token)
        self._addresses = deque(Address(url=url, token=self._token, tls=_tls(url, ca_file)) for url in urls)
        self._connection: Connection | None = None
        self._dialect: Dialect | None = None
        self._first_word_s = FIRST_WORD_S
        self._try_next_first = False
        """Whether the replica that was asked last was unavailable."""
        self._spent_s = 0.0

    @property
    def url(self) -> str:
        """Where the agent is looked for, or was found."""
        return self._addresses[0].url

    def reset(self, episode_info: EpisodeInfo) -> None:
        """Tell the agent that an episode begins, over the line that is there or a new one.

        Raises:
            AgentUnavailable: It cannot be reached, or takes nothing at present.
            AgentFault: It speaks nothing that we know.
        """
        self._spent_s = 0.0
        info = msgspec.structs.replace(episode_info, episode=None)  # the goal is nobody's business out there
        with self._line_that_breaks():
            if not self._is_usable():
                self._drop()
                self._connect(may_move=True)
            with self._blaming_ourselves() as dialect, _unavailable_if_gone():
                dialect.begin(info, time.monotonic() + BRIEFING_S)

    def act(self, observation: Observation) -> Any:
        """Show the agent what it sees and return its answer.

        Raises:
            AgentFault: There is none in time, or none that can be understood.
        """
        public = {name: value for name, value in observation.items() if name != TRUTH}
        left_s = self._episode_budget_s - self._spent_s
        begun_s = time.monotonic()
        try:
            with self._line_that_breaks(), self._blaming_ourselves() as dialect:
                answer = dialect.ask(public, begun_s + min(left_s, self._action_timeout_s))
                return _without(self._token, answer)
        except AgentFault as fault:
            if fault.kind not in (WireFault.ACTION_TIMEOUT, WireFault.SLOW_REPLY):
                raise
            if left_s >= self._action_timeout_s:
                raise AgentFault(fault.kind, f"{fault} ({self._action_timeout_s:g} s)") from None
            problem = f"the actions of this episode took more than {self._episode_budget_s:g} s together"
            raise AgentFault(WireFault.EPISODE_BUDGET, problem) from None
        finally:
            self._spent_s += time.monotonic() - begun_s

    def episode_end(self, outcome: Outcome) -> None:
        """Tell the agent how it went, if it is still there."""
        if self._dialect is None:
            return
        if not self._tell_metrics:
            outcome = msgspec.structs.replace(outcome, metrics={})
        with suppress(AgentFault), self._line_that_breaks():
            self._dialect.end(outcome, time.monotonic() + LEAVE_S)

    def check(self) -> None:
        """Reach the agent, of several replicas the first. The connection is kept for the first episode.

        Raises:
            UserError: It does not answer, or speaks nothing that we know.
        """
        try:
            with self._line_that_breaks():
                if not self._is_usable():
                    self._drop()
                    self._connect(may_move=False)
        except EvaluatorError as error:
            raise UserError(str(error)) from None
        except AgentFault as fault:
            help_ = ""
            if fault.kind == WireFault.UNREACHABLE:
                parts = urlsplit(self.url)
                port = parts.port or {"ws": 80, "wss": 443}[parts.scheme]
                help_ = (
                    f" (port {port}, tried for {self._connect_timeout_s:g} s). Is the address right, and has "
                    "the agent been started, for instance with `proctor serve-policy my_agent:Agent`? If it "
                    "takes longer to load, give a larger connect_timeout_s"
                )
            raise UserError(f"{fault}{help_}") from None

    def close(self) -> None:
        """Hang up."""
        connection, self._connection, self._dialect = self._connection, None, None
        if connection is not None:
            connection.close()

    def _is_usable(self) -> bool:
        """Tell whether the line of the last episode still stands, with nothing unread on it."""
        connection = self._connection
        if connection is None:
            return False
        try:
            return connection.is_alive(time.monotonic() + ALIVE_S) and connection.pending() is None
        except AgentFault:
            return False

    def _connect(self, *, may_move: bool) -> None:
        """Meet the agent, trying again while nobody is there, at the next replica if it may."""
        deadline_s = time.monotonic() + self._connect_timeout_s
        try_s = self._connect_timeout_s / (len(self._addresses) if may_move else 1)
        pause_s = FIRST_PAUSE_S
        self._addresses.rotate(-1 if may_move and self._try_next_first else 0)
        self._try_next_first = False
        while self._connection is None:
            try:
                self._connection, self._dialect = meet(
                    self._addresses[0],
                    min(deadline_s, time.monotonic() + try_s),
                    self._first_word_s,
                    dialect=self._wanted,
                    mapping=self._mapping,
                )
            except AgentFault as fault:
                is_last = time.monotonic() + pause_s >= deadline_s
                if not isinstance(fault, AgentUnavailable) or is_last:
                    raise
                time.sleep(pause_s)
                self._addresses.rotate(-1 if may_move else 0)
                pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
        if self._connection.frames_received == 0:
            self._first_word_s = 0.0  # it says nothing first: no need to listen for that again

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.drop()
        self._connection = self._dialect = None

    @contextmanager
    def _line_that_breaks(self) -> Iterator[None]:
        """Cut the line if anything goes wrong, and keep the token out of what is written about it."""
        with ExitStack() as undo:
            undo.callback(self._drop)
            try:
                yield
            except AgentFault as fault:
                self._first_word_s = FIRST_WORD_S  # it may be another agent next time
                self._try_next_first |= isinstance(fault, AgentUnavailable)
                if self._token is None or self._token not in str(fault):
                    raise
                problem = str(fault).replace(self._token, "(token)")
                if isinstance(fault, AgentUnavailable):
                    raise AgentUnavailable(problem, kind=fault.kind) from None
                raise AgentFault(fault.kind, problem) from None
            undo.pop_all()

    @contextmanager
    def _blaming_ourselves(self) -> Iterator[Dialect]:
        """Lay at our own door what fails before a word goes out or comes in: one that cannot be written."""
        connection, dialect = self._connection, self._dialect
        if connection is None or dialect is None:
            raise EvaluatorError("act was called without reset, or after a fault")
        frames = connection.frames_sent + connection.frames_received
        try:
            yield dialect
        except UserError as error:
            if self._wanted == "auto" and self._mapping is None:
                # The agent alone chose this language. Were it our fault, it could get rid of any episode.
                problem = f"in {dialect.name} the agent cannot be told what it sees: {error}"
                raise AgentFault(WireFault.MISMATCH, problem) from None
            raise EvaluatorError(str(error)) from None  # of the user's mapping, not of the agent
        except CANNOT_WRITE as error:
            if connection.frames_sent + connection.frames_received > frames:
                raise
            problem = f"what the agent should be sent cannot be written: {type(error).__name__}: {error}"
            raise EvaluatorError(problem) from error


@contextmanager
def _unavailable_if_gone() -> Iterator[None]:
    """Report an agent that is gone before it was told of the episode as unavailable."""
    try:
        yield
    except Departed as fault:
        problem = f"{fault}, before it was told of the episode"
        raise AgentUnavailable(problem, kind=WireFault.UNAVAILABLE) from None


def _seconds(name: str, value: object, most_s: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= most_s:
        raise UserError(f"{name}: expected seconds above 0, up to {most_s:g}, found {value!r:.40}")
    return float(value)


def _token(given: object) -> str | None:
    """Return the token of the argument or the environment."""
    name, token = ("token", given) if given is not None else (TOKEN_VARIABLE, os.environ.get(TOKEN_VARIABLE))
    return None if token in (None, "") else checked_token(name, token)


def _without(token: str | None, answer: Any) -> Any:
    """Return an answer with the token taken out: one that is no action is quoted in the results."""
    if token is None:
        return answer
    if isinstance(answer, str):
        return answer.replace(token, "(token)")
    if isinstance(answer, dict):
        return {key: _without(token, value) for key, value in answer.items()}
    return [_without(token, value) for value in answer] if isinstance(answer, list) else answer


def _tls(url: str, ca_file: str | None) -> ssl.SSLContext | None:
    if not url.startswith("wss://"):
        if ca_file is not None:
            raise UserError(f"ca_file: expected only with wss://, found it with {url}")
        return None
    if ca_file is not None and not isinstance(ca_file, str | os.PathLike):
        raise UserError(f"ca_file: expected a path, found {type(ca_file).__name__}")
    try:
        return ssl.create_default_context(cafile=ca_file)
    except OSError as error:  # which an SSLError is, too
        problem = error.strerror or "no certificate in it"
        raise UserError(
            f"ca_file: expected a file with certificates (PEM), found {ca_file}: {problem}"
        ) from None
