"""The exam's loop: one policy, one episode, one result. Start reading here."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable
from typing import Any, Literal, Protocol

from proctor.core.errors import AgentFault
from proctor.core.interfaces import TRUTH, Env, Policy
from proctor.core.results import EpisodeResult, Fault, Timing
from proctor.core.types import EpisodeInfo, Info, Observation

Turn = Literal["env", "policy", "evaluator"]
LONGEST_TEXT = 4000


class Task(Protocol):
    """What the loop must know of the kind of exam: navigation, pick-and-place, ..."""

    def begin(self, episode: Any) -> None:
        """Get ready to measure an episode."""

    def briefing(self, episode: Any, *, seed: int, privileged: bool) -> EpisodeInfo:
        """Return what the policy is told at the start."""

    def parse_action(self, answer: Any) -> Any:
        """Return the action in the environment's terms, or raise AgentFault."""

    def update(self, action: Any, info: Info) -> None:
        """Take in what a step did."""

    def measure(self) -> dict[str, float]:
        """Return the metrics of the episode so far."""

    def result(self, episode: Any, log: EpisodeLog) -> EpisodeResult:
        """Write the episode's record."""


class Witness(Protocol):
    """Somebody who watches an episode, such as a recorder. It must not change what it is shown."""

    def see(self, observation: Observation) -> None:
        """Take in what the policy is about to see; at the end, what it would have seen next."""

    def step(self, action: Any, info: Info, *, policy_s: float, env_s: float) -> None:
        """Take in a step and how long the two sides took for it."""


class EpisodeLog:
    """What the loop itself knows of an episode: actions, whose turn it is, where the time went.

    Args:
        seed: The episode's.
        announce: Told whose turn it is, whenever that changes.
        witness: Shown all that happens.
    """

    def __init__(
        self, seed: int, announce: Callable[[Turn], None] | None = None, witness: Witness | None = None
    ) -> None:
        self.seed = seed
        self.actions: list[Any] = []
        self.metrics: dict[str, float] = {}
        self.fault: Fault | None = None
        self._announce, self._witness = announce, witness
        self._turn: Turn = "evaluator"
        self._since_s = time.perf_counter()
        self._spent_s: dict[Turn, float] = {"env": 0.0, "policy": 0.0, "evaluator": 0.0}
        self._spent_before_s = self._spent_s

    def see(self, observation: Observation) -> None:
        """Show the witness what the policy is about to see."""
        if self._witness is not None:
            self._spent_before_s = dict(self._spent_s)
            self._witness.see(observation)

    def step(self, action: Any, info: Info) -> None:
        """Note an action that was done."""
        self.actions.append(action)
        if self._witness is not None:
            took_s = {turn: self._spent_s[turn] - self._spent_before_s[turn] for turn in self._spent_s}
            self._witness.step(action, info, policy_s=took_s["policy"], env_s=took_s["env"])

    def turn(self, turn: Turn) -> EpisodeLog:
        """Charge the time of a `with` block, and the blame if it raises, to one side."""
        self._switch(turn)
        return self

    def __enter__(self) -> None:
        pass

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        if error is None:  # else it must still be known whose turn it was
            self._switch("evaluator")

    def record_fault(self, error: BaseException) -> None:
        """Note why the episode broke off. Copes with errors that cannot even be printed."""
        by_agent = isinstance(error, AgentFault) or self._turn == "policy"
        self.fault = Fault(
            side="agent" if by_agent else "evaluator",
            kind=error.kind if isinstance(error, AgentFault) else f"{self._turn}_exception",
            message=_printable(traceback.format_exception_only(error)),
            traceback=_printable(traceback.format_exception(error, limit=-6)),
        )
        self._switch("evaluator")

    @property
    def timing(self) -> Timing:
        """Where the time went so far."""
        self._switch(self._turn)
        return Timing(**{f"{turn}_s": round(spent, 6) for turn, spent in self._spent_s.items()})

    def _switch(self, turn: Turn) -> None:
        now_s = time.perf_counter()
        self._spent_s[self._turn] += now_s - self._since_s
        self._turn, self._since_s = turn, now_s
        if self._announce is not None:
            self._announce(turn)


def rollout(
    env: Env,
    policy: Policy,
    episode: Any,
    task: Task,
    *,
    seed: int,
    announce: Callable[[Turn], None] | None = None,
    witness: Witness | None = None,
) -> EpisodeResult:
    """Let a policy take one episode.

    Whatever goes wrong inside the episode ends up in the result, with the side that is to blame.
    """
    log = EpisodeLog(seed, announce, witness)
    for part in (_play, _judge):
        try:
            part(env, policy, episode, task, log)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001  the episode boundary: whatever it is, it is recorded
            log.record_fault(error)
    return task.result(episode, log)


def _play(env: Env, policy: Policy, episode: Any, task: Task, log: EpisodeLog) -> None:
    privileged = type(policy).privileged  # of the class, as the manifest says it; not what an agent sets
    task.begin(episode)
    with log.turn("env"):
        observation = env.reset(episode)
        info = env.info() if privileged else {}
    with log.turn("policy"):
        policy.reset(task.briefing(episode, seed=log.seed, privileged=privileged))
    log.see(observation)
    for _ in range(episode.step_limit):
        view = {**observation, TRUTH: info} if privileged else observation
        with log.turn("policy"):
            action = task.parse_action(policy.act(view))
        with log.turn("env"):
            observation, _, done, info = env.step(action)
        log.step(action, info)
        log.see(observation)
        task.update(action, info)
        if done:
            break


def _judge(env: Env, policy: Policy, episode: Any, task: Task, log: EpisodeLog) -> None:
    del env, policy, episode
    if log.fault is None or log.fault.side == "agent":  # what an evaluator fault cut short says nothing
        log.metrics = task.measure()


def _printable(lines: list[str]) -> str:
    """Join lines, without the surrogates that no file can hold, and no longer than anybody reads."""
    text = "".join(lines).strip()
    if len(text) > LONGEST_TEXT:
        text = f"{text[: LONGEST_TEXT // 2]} ... {text[-LONGEST_TEXT // 2 :]}"
    return text.encode("utf-8", "replace").decode()
