"""The agent's side of one connection: an evaluator asks, a policy answers."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import msgspec
import numpy as np
from websockets.exceptions import ConnectionClosed
from websockets.frames import CloseCode
from websockets.sync.server import ServerConnection

from proctor.agents import messages as wire
from proctor.agents.arrays import read_scan
from proctor.agents.codec import Codec, JsonCodec, MsgpackCodec
from proctor.agents.messages import MSGPACK, UNAVAILABLE_KINDS, BadFrame, WireFault, check_version
from proctor.core.errors import AgentFault, is_unavailability
from proctor.core.interfaces import Policy
from proctor.core.plain_text import plain
from proctor.core.types import EpisodeInfo, Observation, Outcome, Sensor

LONGEST_MESSAGE = 2000
CLOSE_CODES: dict[str, CloseCode] = {
    WireFault.MALFORMED: CloseCode.INVALID_DATA,
    WireFault.TOO_DEEP: CloseCode.INVALID_DATA,
    WireFault.WRONG_FRAME: CloseCode.UNSUPPORTED_DATA,
}
"""Close codes after a bad frame; 1002 for all other kinds."""
log = logging.getLogger("proctor.server")


class Session:
    """The policy's side of one connection.

    `hello` is sent first, if the evaluator has offered a subprotocol; one that has not knows only JSON and
    `reset_episode`, `get_action`, `episode_end`. `lend` gives the session its policy and takes it back; `act`
    asks the policy, alone or in a batch with others. `label` is the session's name in the log.
    """

    def __init__(
        self,
        connection: ServerConnection,
        *,
        hello: wire.Hello,
        lend: Callable[[], AbstractContextManager[Policy]],
        act: Callable[[Policy, Observation], Any],
        label: str,
    ) -> None:
        self._connection, self._hello, self._lend, self._act = connection, hello, lend, act
        self.label = label
        self._codec: Codec = MsgpackCodec() if connection.subprotocol == MSGPACK else JsonCodec()
        self._evaluator: wire.Hello | None = None
        self._policy: Policy | None = None
        self._episode: wire.ResetEpisode | None = None
        self._lock = threading.Lock()
        self._is_busy = self._is_ending = self._is_closing = False

    def run(self) -> None:
        """Answer until one side closes. What the policy raises is reported to the evaluator and raised."""
        if self._is_ending:
            return
        if self._connection.subprotocol is not None:
            self._send(self._hello)
        with contextlib.ExitStack() as stack:
            while (frame := self._receive()) is not None:
                try:
                    message = self._codec.read_evaluator(frame)
                    if self._is_wanted(message):
                        self._answer(stack, message)
                except BadFrame as error:
                    self._refuse(error)
                    return
                if self._is_time_to_close():
                    # Beside this thread, which goes on to read what was sent before the evaluator knew.
                    threading.Thread(target=self.close_connection, daemon=True).start()

    def end(self) -> None:
        """End the session: at once if nothing is asked at present, else after the answer.

        An `episode_end` that the evaluator had sent by then still reaches the policy.
        """
        with self._lock:
            self._is_ending = True
            if self._is_busy:
                return
            self._is_closing = True
        self.close_connection()

    def close_connection(self) -> None:
        """Close the connection. What comes in until the evaluator closes it, too, can still be read."""
        self._connection.close(CloseCode.GOING_AWAY, "the agent's server ends")

    def _receive(self) -> str | bytes | None:
        """Return the next frame, or None at the end of the session."""
        try:
            frame = self._connection.recv()
        except ConnectionClosed as closed:
            log.debug("%s: %s", self.label, closed)
            return None
        with self._lock:
            self._is_busy = True
        return frame

    def _is_wanted(self, message: wire.FromEvaluator) -> bool:
        """Return whether to process a message: while the session ends, only `episode_end`."""
        with self._lock:
            return not self._is_ending or (isinstance(message, wire.EpisodeEnd) and self._episode is not None)

    def _is_time_to_close(self) -> bool:
        """Return, after an answer, whether the session ends and the connection is not being closed yet."""
        with self._lock:
            self._is_busy = False
            is_time = self._is_ending and not self._is_closing
            self._is_closing |= is_time
            return is_time

    def _answer(self, stack: contextlib.ExitStack, message: wire.FromEvaluator) -> None:
        if isinstance(message, wire.Hello):
            check_version(message, "evaluator")
            self._evaluator = message
        elif isinstance(message, wire.ResetEpisode):
            info = _episode_info(message, self._evaluator)
            with self._policy_turn():
                if self._policy is None:  # an evaluator that only checks the connection gets none
                    self._policy = stack.enter_context(self._lend())
                self._policy.reset(info)
            self._episode = message
        elif isinstance(message, wire.GetAction):
            self._choose_action(*self._current_episode(message), message)
        elif isinstance(message, wire.EpisodeEnd):
            policy, episode = self._current_episode(message)
            self._episode = None
            self._log_end(episode, message)
            metrics = {name: value for name, value in message.metrics.items() if value is not None}
            outcome = Outcome(status=message.status, metrics=metrics, num_steps=message.num_steps)
            with self._policy_turn():
                policy.episode_end(outcome)
        else:
            self._episode = None
            log.warning(
                "%s: the evaluator reports: %s: %s", self.label, *_loggable(message.kind, message.message)
            )

    def _choose_action(self, policy: Policy, episode: wire.ResetEpisode, request: wire.GetAction) -> None:
        observation = self._codec.arrays(request.observation, episode.observation_format)
        if "scan" in observation:
            observation["scan"] = read_scan(observation["scan"])
        with self._policy_turn():
            action = self._act(policy, observation)
            reply = wire.ActionReply(
                session_id=request.session_id, request_id=request.request_id or None, action=_lists(action)
            )
            frame = self._encoded(reply, action)
        self._send_frame(frame)

    def _encoded(self, reply: wire.ActionReply, action: Any) -> str | bytes:
        try:
            return self._codec.encode(reply)
        except (NotImplementedError, TypeError, ValueError, OverflowError, RecursionError) as error:
            problem = f"act returned a {type(action).__name__} that cannot be sent: {error}"
            raise TypeError(problem) from error

    def _current_episode(self, message: wire.GetAction | wire.EpisodeEnd) -> tuple[Policy, wire.ResetEpisode]:
        if self._policy is None or self._episode is None:
            raise BadFrame(WireFault.WRONG_MESSAGE, "expected reset_episode first: no episode has begun")
        if message.session_id != self._episode.session_id:
            raise BadFrame(WireFault.WRONG_SESSION, "expected the session_id of reset_episode, found another")
        return self._policy, self._episode

    def _log_end(self, episode: wire.ResetEpisode, end: wire.EpisodeEnd) -> None:
        name = str(episode.episode.get("episode_id"))
        log.info("%s: episode %s: %s, %d steps", self.label, *_loggable(name, end.status), end.num_steps)

    def _refuse(self, error: BadFrame) -> None:
        log.warning("%s: refused a message: %s: %s", self.label, *_loggable(error.kind, str(error)))
        self._send(wire.ErrorMessage(kind=error.kind, message=_short(str(error))))
        self._connection.close(CLOSE_CODES.get(error.kind, CloseCode.PROTOCOL_ERROR), error.kind)

    @contextlib.contextmanager
    def _policy_turn(self) -> Iterator[None]:
        """Report what the policy raises to the evaluator, and raise it."""
        try:
            yield
        except BaseException as error:
            self._report(error)
            if isinstance(error, Exception):
                raise
            # Else its thread would die without a message.
            raise RuntimeError(f"the policy raised {type(error).__name__}") from error

    def _report(self, error: BaseException) -> None:
        kind = error.kind if isinstance(error, AgentFault) else "policy_exception"
        if is_unavailability(error):
            kind = UNAVAILABLE_KINDS[0]
        message = _short(str(error) if isinstance(error, AgentFault) else f"{type(error).__name__}: {error}")
        log.error("%s: the policy failed: %s", self.label, plain(message))
        session_id = self._episode.session_id if self._episode is not None else ""
        self._send(wire.ErrorMessage(session_id=session_id, kind=kind, message=message))

    def _send(self, message: wire.FromAgent) -> None:
        self._send_frame(self._codec.encode(message))

    def _send_frame(self, frame: str | bytes) -> None:
        try:
            self._connection.send(frame)
        except ConnectionClosed as closed:
            log.debug("%s: %s", self.label, closed)
            with self._lock:
                self._is_ending = True  # what it asked meanwhile is of no use to it


class _Instruction(msgspec.Struct):
    text: str
    language: str = "en"


class _Episode(msgspec.Struct):
    """The keys of `reset_episode` that every exam has; only the first two are required."""

    episode_id: str
    instruction: _Instruction
    task_type: str = ""
    max_steps: int = 500
    seed: int = 0


def _episode_info(message: wire.ResetEpisode, hello: wire.Hello | None) -> EpisodeInfo:
    try:
        episode = msgspec.convert(message.episode, _Episode)
    except msgspec.ValidationError as error:
        raise BadFrame(WireFault.WRONG_MESSAGE, f"reset_episode, in episode: {error}") from None
    formats = message.observation_format
    return EpisodeInfo(
        episode_id=episode.episode_id,
        instruction=episode.instruction.text,
        language=episode.instruction.language,
        task=episode.task_type,
        max_steps=episode.max_steps,
        seed=episode.seed,
        sensors={name: Sensor(dtype=found.dtype, shape=found.shape) for name, found in formats.items()},
        actions=tuple(hello.actions) if hello is not None else (),
        details={k: v for k, v in message.episode.items() if k not in _Episode.__struct_fields__},
    )


def _lists(action: Any) -> Any:
    """Return an action with lists for arrays: it is small, and every evaluator reads lists."""
    if isinstance(action, np.ndarray):
        return action.tolist()
    if isinstance(action, Mapping):
        return {key: _lists(value) for key, value in action.items()}
    if isinstance(action, Sequence) and not isinstance(action, str | bytes):
        return [_lists(value) for value in action]
    return action


def _short(text: str) -> str:
    """Return a text that can be sent, of bounded length."""
    return text[:LONGEST_MESSAGE].encode("utf-8", "replace").decode()


def _loggable(*texts: str) -> tuple[str, ...]:
    """Return texts of an evaluator as they may go into a log."""
    return tuple(plain(_short(text)) for text in texts)
