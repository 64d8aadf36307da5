"""The loop of an exam: one policy, one episode, one trace. Start reading here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from msgspec.structs import replace

from proctor.core.errors import SimulationError
from proctor.core.interfaces import TRUTH, Env, Policy
from proctor.core.types import Info, Observation
from proctor.exams.names import AnyExam
from proctor.exams.trace import AnyTrace
from proctor.runs.conditions import Conditions, Presentation
from proctor.runs.latency import ThinkingCost
from proctor.runs.turns import Turns


class Watcher(Protocol):
    """Somebody who watches an episode, such as a recorder. It must not change what it is shown."""

    def see(self, observation: Observation, state: Any) -> None:
        """Take in what the policy is about to see, at the end what it would have seen next.

        `state` is the trace's last, None if it is not known.
        """

    def step(self, action: Any, info: Info, *, policy_s: float, env_s: float) -> None:
        """Take in a step and how long the two sides took for it. The action is as results hold it."""


def rollout(  # noqa: PLR0913  (four that take part, and how)
    env: Env,
    policy: Policy,
    episode: Any,
    exam: AnyExam,
    *,
    seed: int,
    agent_id: str = "",
    privileged: bool = False,
    thinking: ThinkingCost | None = None,
    turns: Turns | None = None,
    presentation: Presentation | None = None,
    watch: Sequence[Watcher] = (),
) -> AnyTrace:
    """Let a policy take one episode, and return what was done and what was true after each step.

    The agent is told `agent_id`, unless it is `privileged`: then it gets the stored id, the episode and the
    ground truth. `thinking` says what its thinking time costs in the world, `presentation` what it is told
    and shown. `turns` measures the time of each side and keeps the trace if an error ends the episode.
    `watch` is shown all that happens, as the agent sees it.
    """
    turns = turns or Turns()
    shown = presentation or Presentation(Conditions(), exam, episode)
    with turns.of("env"):
        observation = _checked_observation(env, "reset", env.reset(episode))
        truth = env.info() if privileged or shown.needs_truth else {}
        trace = turns.trace = exam.first_trace(episode, env.info)
        camera = env.camera_facts() if getattr(type(policy), "uses_chat_task", False) else None
    view = shown.view(observation, truth)
    told = shown.brief(exam.brief(episode, view), view, env, privileged=privileged)
    told = replace(told, episode_id=agent_id, seed=seed, camera=camera)
    if privileged:
        told = replace(told, episode_id=episode.episode_id, episode=episode)
    with turns.of("policy"):
        policy.reset(told)
    turns.is_briefed = True
    turns.step_s()
    for watcher in watch:
        watcher.see(view, trace.states[-1] if trace.states else None)
    for _ in range(episode.step_limit):
        with turns.of("policy"):
            answer = policy.act({**view, TRUTH: truth} if privileged else view)
            usage = turns.count_usage(policy)
            action = exam.parse_action(answer)
        with turns.of("env"):
            is_queued = not turns.has_decided(usage)
            charged_s = thinking.charge(env, turns.thought_s, is_queued=is_queued) if thinking else 0.0
            observation, _, is_done, truth = env.step(action)
            observation = _checked_observation(env, "step", observation)
        policy_s, env_s = turns.step_s()
        trace.add(action, exam.state(_checked_info(env, truth)), round(policy_s, 6), usage)
        if thinking:
            trace.charge(charged_s, env.time_s())
        view = shown.view(observation, truth)
        for watcher in watch:
            watcher.step(exam.encode_action(action), truth, policy_s=policy_s, env_s=env_s)
            watcher.see(view, trace.states[-1])
        if is_done:
            break
    return trace


def _checked_observation(env: Env, method: str, observation: Any) -> Observation:
    """Return an observation if it is one; else the policy would stumble over it, and be blamed."""
    if isinstance(observation, Mapping):
        return observation  # type: ignore[return-value]  # a Mapping of another kind serves as well
    found = type(observation).__name__
    raise SimulationError(
        f"{type(env).__name__}.{method}() returned {found}, expected a dict of observations"
    )


def _checked_info(env: Env, info: Any) -> Info:
    if isinstance(info, Mapping):
        return info  # type: ignore[return-value]
    found = type(info).__name__
    raise SimulationError(f"{type(env).__name__}.step() returned {found} for info, expected a dict")
