"""The exam's loop: one policy, one episode, one result. Start reading here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from proctor.core.interfaces import TRUTH, Env, Policy
from proctor.exams.results import EpisodeResult
from proctor.core.types import EpisodeInfo, Info, Observation, Outcome
from proctor.exams.env_info import checked_info, checked_observation
from proctor.runs.episode_log import EpisodeLog, Turn, Witness
from proctor.runs.writable import check_writable
from proctor.agents.websocket_policy import WebSocketPolicy


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


def rollout(  # noqa: PLR0913  (four that take part, and how)
    env: Env,
    policy: Policy,
    episode: Any,
    task: Task,
    *,
    seed: int,
    privileged: bool | None = None,
    announce: Callable[[Turn], None] | None = None,
    witness: Witness | None = None,
) -> EpisodeResult:
    """Let a policy take one episode.

    Whatever goes wrong inside the episode ends up in the result, with the side that is to blame. The result
    can be written as JSON and read again.

    Args:
        env: The world.
        policy: The agent.
        episode: What is asked.
        task: The kind of exam.
        seed: Of the episode.
        privileged: Whether the policy gets the episode and the ground truth, as a run decides it before its
            first episode; as the policy's class says if None.
        announce: Told whose turn it is, whenever that changes.
        witness: Shown all that happens.
    """
    if privileged is None:
        privileged = bool(type(policy).privileged)
    is_served = type(policy) is WebSocketPolicy  # not a class of the agent's that is derived from it
    log = EpisodeLog(seed, announce, witness, privileged=privileged, is_served=is_served)
    for part in (_play, _judge, _write, _write_fault_only, _notify_policy):
        try:
            part(env, policy, episode, task, log)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001  the episode boundary: whatever it is, it is recorded
            log.record_fault(error)
    return log.result or task.result(episode, log)


def _play(env: Env, policy: Policy, episode: Any, task: Task, log: EpisodeLog) -> None:
    task.begin(episode)
    with log.turn("env"):
        observation = checked_observation(env, "reset", env.reset(episode))
        info = env.info() if log.privileged else {}
        task.start(env.info)
    briefing = task.briefing(episode, observation, seed=log.seed, privileged=log.privileged)
    with log.turn("policy"):
        policy.reset(briefing)
    log.is_briefed = True
    log.see(observation)
    for _ in range(episode.step_limit):
        view = {**observation, TRUTH: info} if log.privileged else observation
        with log.turn("policy"):
            action = task.parse_action(policy.act(view))
        with log.turn("env"):
            observation, _, done, info = env.step(action)
            observation, info = checked_observation(env, "step", observation), checked_info(env, info)
        task.update(action, info)
        log.step(action, info)
        log.see(observation)
        if done:
            break


def _judge(env: Env, policy: Policy, episode: Any, task: Task, log: EpisodeLog) -> None:
    del env, policy, episode
    if log.fault is None or log.fault.side == "agent":  # what an evaluator fault cut short says nothing
        log.metrics = task.measure()


def _write(env: Env, policy: Policy, episode: Any, task: Task, log: EpisodeLog) -> None:
    del env, policy
    result = task.result(episode, log)
    check_writable(result)
    log.result = result  # it stands, whatever the policy does now


def _write_fault_only(env: Env, policy: Policy, episode: Any, task: Task, log: EpisodeLog) -> None:
    """Write the record of an episode of which nothing is known but its fault."""
    del env, policy
    if log.result is None:
        log.actions, log.metrics = [], {}
        task.begin(episode)
        log.result = task.result(episode, log)


def _notify_policy(env: Env, policy: Policy, episode: Any, task: Task, log: EpisodeLog) -> None:
    del env, episode, task
    result = log.result
    if log.is_briefed and result is not None:  # else it has never heard of this episode
        with log.turn("policy"):
            policy.episode_end(Outcome(status=result.status, metrics=result.metrics, num_steps=result.steps))
