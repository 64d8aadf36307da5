"""Whether a policy keeps its contract: `check_policy`."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

from msgspec.structs import replace

from proctor.core.interfaces import TRUTH, Env, Policy
from proctor.core.types import EpisodeInfo, Outcome
from proctor.exams.names import AnyExam
from proctor.runs.conformance.checks import TRIED_STEPS, Check, Checks, difference, expect
from proctor.runs.examiner import episode_seed

FAILED = Outcome(status="failure", metrics={"success": 0.0}, num_steps=TRIED_STEPS)


def check_policy(policy: Policy, exam: AnyExam, env: Env, episodes: Sequence[Any]) -> list[Check]:
    """Try out whether a policy keeps its contract. Policy and env are closed afterwards.

    The env must keep its own contract: `check_env` finds that out. The first two episodes are tried.
    """
    checks, trial = Checks(), _Trial(policy, exam, env)
    first, last = episodes[0], episodes[min(1, len(episodes) - 1)]
    try:
        with checks.rule("check() finds the agent", "start the agent, or let check() return"):
            policy.check()
        with checks.rule(
            "reset() reads a briefing, and act() answers with actions", "see docs/writing-a-policy.md"
        ):
            actions = trial.drive(first)
        if not checks.is_last_ok:
            return checks.items
        with checks.rule("episode_end() hears how it went", "let episode_end() return"):
            policy.episode_end(FAILED)
        with checks.rule("act() does not change what it was shown", "change a copy of the observation"):
            expect(holds=not trial.changed, found=trial.changed)
        with checks.rule("an episode that broke off is forgotten", "forget everything in reset()"):
            trial.drive(last, steps=1)
            policy.episode_end(replace(FAILED, status="error", num_steps=1))
        remedy = "take all chance from episode_info.seed, and forget the last episode in reset()"
        with checks.rule("the same seed leads to the same actions", remedy, severity="warning"):
            changed = difference(actions, trial.drive(first), "actions")
            expect(holds=not changed, found=changed)
            policy.episode_end(FAILED)
        remedy = "ask for what is not in episode_info.sensors with observation.get()"
        with checks.rule("the sensors of the briefing are enough", remedy):
            trial.drive(first, steps=1, only_promised=True)
            policy.episode_end(replace(FAILED, num_steps=1))
    finally:
        with checks.rule(
            "close() may be called twice", "let close() return where there is nothing to release"
        ):
            policy.close()
            policy.close()
        env.close()
    return checks.items


class _Trial:
    """Lets a policy act for some steps, as the loop of a run does."""

    def __init__(self, policy: Policy, exam: AnyExam, env: Env) -> None:
        self._policy, self._exam, self._env = policy, exam, env
        self.changed = ""  # what of an observation the policy has changed first

    def drive(self, episode: Any, *, steps: int = TRIED_STEPS, only_promised: bool = False) -> list[Any]:
        """Return the first actions of an episode, as results hold them."""
        is_privileged = bool(self._policy.privileged)
        observation = self._env.reset(episode)
        truth = self._env.info() if is_privileged else {}
        told = self._told(episode, observation, is_privileged=is_privileged)
        self._policy.reset(told)
        actions: list[Any] = []
        for _ in range(min(steps, episode.step_limit)):
            view = {key: v for key, v in observation.items() if not only_promised or key in told.sensors}
            view = {**view, TRUTH: truth} if is_privileged else view
            before = deepcopy(view)
            action = self._exam.parse_action(self._policy.act(view))
            self.changed = self.changed or difference(before, view, "observation")
            actions.append(self._exam.encode_action(action))
            observation, _, is_done, truth = self._env.step(action)
            if is_done:
                break
        return actions

    def _told(self, episode: Any, observation: Any, *, is_privileged: bool) -> EpisodeInfo:
        seed = episode_seed(0, episode.episode_id)
        told = replace(self._exam.brief(episode, observation), episode_id=f"{seed:x}", seed=seed)
        return replace(told, episode_id=episode.episode_id, episode=episode) if is_privileged else told
