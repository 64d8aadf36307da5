"""The exam's loop: one policy, one episode, one result. Start reading here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from proctor.core.interfaces import TRUTH, Env, Policy
from proctor.core.results import EpisodeResult
from proctor.core.types import EpisodeInfo, Info, Observation, Outcome
from proctor.evaluation.episode_log import EpisodeLog, Turn, Witness


class Task(Protocol):
    """What the loop must know of the kind of exam: navigation, pick-and-place, ..."""

    def begin(self, episode: Any) -> None:
        """Get ready to measure an episode."""

    def start(self, info: Callable[[], Info]) -> None:
        """Ask the env for the state before the first step, if that is measured."""

    def briefing(self, episode: Any, observation: Observation, *, seed: int, privileged: bool) -> EpisodeInfo:
        """Return what the policy is told at the start."""

    def parse_action(self, answer: Any) -> Any:
        """Return the action in the environment's terms, or raise AgentFault."""

    def update(self, action: Any, info: Info) -> None:
        """Take in what a step did."""

    def measure(self) -> dict[str, float]:
        """Return the metrics of the episode so far."""

    def result(self, episode: Any, log: EpisodeLog) -> EpisodeResult:
        """Write the episode's record."""


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
    for part in (_play, _judge, _take_leave):
        try:
            part(env, policy, episode, task, log)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001  the episode boundary: whatever it is, it is recorded
            log.record_fault(error)
    return log.result or task.result(episode, log)


def _play(env: Env, policy: Policy, episode: Any, task: Task, log: EpisodeLog) -> None:
    privileged = type(policy).privileged  # of the class, as the manifest says it; not what an agent sets
    task.begin(episode)
    with log.turn("env"):
        observation = env.reset(episode)
        info = env.info() if privileged else {}
        task.start(env.info)
    with log.turn("policy"):
        policy.reset(task.briefing(episode, observation, seed=log.seed, privileged=privileged))
    log.is_briefed = True
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


def _take_leave(env: Env, policy: Policy, episode: Any, task: Task, log: EpisodeLog) -> None:
    del env
    log.result = result = task.result(episode, log)  # it stands, whatever the policy does now
    if log.is_briefed:  # else it has never heard of this episode
        with log.turn("policy"):
            policy.episode_end(Outcome(status=result.status, metrics=result.metrics, num_steps=result.steps))
