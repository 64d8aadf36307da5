"""The policy whose agent is served elsewhere, behind a WebSocket or, if it is GR00T's, a ZeroMQ socket.

An error in encoding is the evaluator's fault (`dialects/dialect.py`), one in sending, receiving or decoding
the agent's. The connection is dropped after either.
"""

from __future__ import annotations

import os
import ssl
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec

from proctor.agents.dialects.mapping import load_mapping
from proctor.agents.handshake import AUTO, LISTEN_S, Address, AgentSession, load_dialects, open_session
from proctor.agents.messages import AgentGone, WireFault
from proctor.core.addresses import (
    DEFAULT_PORTS,
    TOKEN_VARIABLE,
    agent_url,
    checked_token,
    is_address,
    is_chat,
    replicas,
)
from proctor.core.errors import AgentFault, AgentUnavailable, EvaluatorError, UserError
from proctor.core.interfaces import TRUTH, Policy
from proctor.core.types import EpisodeInfo, Observation, Outcome

LONGEST_WAIT_S = 600.0
"""For a connection or an action: a worker whose policy takes 900 s for a turn is given up."""
LONGEST_EPISODE_S = 7 * 24 * 3600.0
BRIEFING_S = 60.0
ALIVE_S = 3.0
EPISODE_END_S = 3.0
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.1, 2.0


class WebSocketPolicy(Policy):
    """Asks an agent over a WebSocket for each action.

    A connection serves many episodes. It is dropped when anything goes wrong on it, so that a late reply
    cannot arrive, and the next episode begins on a new one.

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
        dialect: What the agent speaks: a name that `proctor list` shows, or `module:Class`; `auto` finds out.
        mapping: A file that says what a policy server is sent and what its numbers mean.

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
        dialect: str = AUTO,
        mapping: str | None = None,
    ) -> None:
        several = isinstance(host, str) and port is None and is_address(host)
        urls = replicas(host) if several else [agent_url(host, port)]
        if is_chat(urls[0]):
            raise UserError(f"host: expected ws:// or wss://, found {urls[0]:.100}, which is for ChatPolicy")
        self._connect_timeout_s = _seconds("connect_timeout_s", connect_timeout_s, LONGEST_WAIT_S)
        self._action_timeout_s = _seconds("action_timeout_s", action_timeout_s, LONGEST_WAIT_S)
        self._episode_budget_s = _seconds("episode_budget_s", episode_budget_s, LONGEST_EPISODE_S)
        if not isinstance(tell_metrics, bool):
            raise UserError(f"tell_metrics: expected true or false, found {tell_metrics!r:.40}")
        self._tell_metrics = tell_metrics
        self._dialects = load_dialects(dialect)
        self._mapping = load_mapping(Path(mapping)) if mapping is not None else None
        self._is_dialect_detected = dialect == AUTO and self._mapping is None
        self._token = _token(token)
        self._addresses = deque(Address(url=url, token=self._token, tls=_tls(url, ca_file)) for url in urls)
        self._session: AgentSession | None = None
        self._listen_s = LISTEN_S
        self._is_replica_unavailable = False
        self._spent_s = 0.0

    @property
    def url(self) -> str:
        """Where the agent is looked for, or was found."""
        return self._addresses[0].url

    def reset(self, episode_info: EpisodeInfo) -> None:
        """Tell the agent that an episode begins, over the present connection or a new one."""
        self._spent_s = 0.0
        info = msgspec.structs.replace(episode_info, episode=None)  # the goal stays here
        with self._dropping_after_errors():
            if not self._is_usable():
                self._drop()
                self._connect(may_move=True)
            try:
                self._open_session().dialect.begin(info, time.monotonic() + BRIEFING_S)
            except AgentGone as fault:
                problem = f"{fault}, before it was told of the episode"
                raise AgentUnavailable(problem, kind=WireFault.UNAVAILABLE) from None

    def act(self, observation: Observation) -> Any:
        """Send the agent what it sees and return its answer, which the exam parses."""
        public = {name: value for name, value in observation.items() if name != TRUTH}
        left_s = self._episode_budget_s - self._spent_s
        begun_s = time.monotonic()
        try:
            with self._dropping_after_errors():
                session = self._open_session()
                answer = session.dialect.ask(public, begun_s + min(left_s, self._action_timeout_s))
                return _redacted(self._token, answer)
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
        """Tell the agent how the episode ended, if it is still connected."""
        if self._session is None:
            return
        if not self._tell_metrics:
            outcome = msgspec.structs.replace(outcome, metrics={})
        with suppress(AgentFault), self._dropping_after_errors():
            self._session.dialect.end(outcome, time.monotonic() + EPISODE_END_S)

    def check(self) -> None:
        """Reach the agent, of several replicas the first. The connection is kept for the first episode."""
        try:
            with self._dropping_after_errors():
                if not self._is_usable():
                    self._drop()
                    self._connect(may_move=False)
        except EvaluatorError as error:
            raise UserError(str(error)) from None
        except AgentFault as fault:
            help_ = ""
            if fault.kind == WireFault.UNREACHABLE:
                parts = urlsplit(self.url)
                port = parts.port or DEFAULT_PORTS[parts.scheme]
                help_ = (
                    f" (port {port}, tried for {self._connect_timeout_s:g} s). Is the address right, and has "
                    "the agent been started, for instance with `proctor serve-policy my_agent:Agent`? If it "
                    "takes longer to load, give a larger connect_timeout_s"
                )
            raise UserError(f"{fault}{help_}") from None

    def close(self) -> None:
        """Close the connection."""
        session, self._session = self._session, None
        if session is not None:
            session.connection.close()

    def _open_session(self) -> AgentSession:
        if self._session is None:
            raise EvaluatorError("act was called without reset, or after a fault")
        return self._session

    def _is_usable(self) -> bool:
        """Return whether the connection of the last episode is alive, with nothing unread on it."""
        if self._session is None:
            return False
        connection = self._session.connection
        try:
            return connection.is_alive(time.monotonic() + ALIVE_S) and connection.pending() is None
        except AgentFault:
            return False

    def _connect(self, *, may_move: bool) -> None:
        """Connect, trying again while nothing answers, at the next replica if `may_move`."""
        deadline_s = time.monotonic() + self._connect_timeout_s
        try_s = self._connect_timeout_s / (len(self._addresses) if may_move else 1)
        pause_s = FIRST_PAUSE_S
        self._addresses.rotate(-1 if may_move and self._is_replica_unavailable else 0)
        self._is_replica_unavailable = False
        while self._session is None:
            try:
                self._session = open_session(
                    self._addresses[0],
                    min(deadline_s, time.monotonic() + try_s),
                    self._listen_s,
                    dialects=self._dialects,
                    mapping=self._mapping,
                )
            except AgentUnavailable:
                if time.monotonic() + pause_s >= deadline_s:
                    raise
                time.sleep(pause_s)
                self._addresses.rotate(-1 if may_move else 0)
                pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
        if self._session.handshake.first_frame is None:
            self._listen_s = 0.0  # it does not speak first: no need to wait for that again

    def _drop(self) -> None:
        if self._session is not None:
            self._session.connection.drop()
        self._session = None

    @contextmanager
    def _dropping_after_errors(self) -> Iterator[None]:
        """Drop the connection after any error, and keep the token out of the error's message."""
        try:
            yield
        except AgentFault as fault:
            self._drop()
            self._listen_s = LISTEN_S  # it may be another agent next time
            self._is_replica_unavailable |= isinstance(fault, AgentUnavailable)
            if self._token is None or self._token not in str(fault):
                raise
            problem = _redacted(self._token, str(fault))
            if isinstance(fault, AgentUnavailable):
                raise AgentUnavailable(problem, kind=fault.kind) from None
            raise AgentFault(fault.kind, problem) from None
        except UserError as error:  # the mapping does not fit what is seen
            dialect = self._session.dialect.name if self._session is not None else "its dialect"
            self._drop()
            if self._is_dialect_detected:
                # The agent alone chose this dialect. Were it our fault, it could get rid of any episode.
                problem = f"in {dialect} the agent cannot be told what it sees: {error}"
                raise AgentFault(WireFault.MISMATCH, problem) from None
            raise EvaluatorError(str(error)) from None
        except BaseException:
            self._drop()
            raise


def _seconds(name: str, value: object, most_s: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= most_s:
        raise UserError(f"{name}: expected seconds above 0, up to {most_s:g}, found {value!r:.40}")
    return float(value)


def _token(given: object) -> str | None:
    name, token = ("token", given) if given is not None else (TOKEN_VARIABLE, os.environ.get(TOKEN_VARIABLE))
    return None if token in (None, "") else checked_token(name, token)


def _redacted(token: str | None, value: Any) -> Any:
    """Return an answer or a message without the token: the exam quotes answers that are not actions."""
    if token is None:
        return value
    if isinstance(value, str):
        return value.replace(token, "(token)")
    if isinstance(value, dict):
        return {_redacted(token, key): _redacted(token, item) for key, item in value.items()}
    return [_redacted(token, item) for item in value] if isinstance(value, list) else value


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
