"""Whether an env keeps its contract: `check_env`, in the manner of Gymnasium's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any

import numpy as np

from proctor.core.interfaces import Env
from proctor.exams.names import AnyExam
from proctor.runs.conformance.checks import (
    TRIED_STEPS,
    Check,
    Checks,
    attempt,
    difference,
    expect,
    shortened,
    tried_actions,
)


def check_env(env: Env, exam: AnyExam, episodes: Sequence[Any]) -> list[Check]:
    """Try out whether an env keeps its contract. It is closed afterwards.

    `reset` was not called on it yet. The first two episodes are tried.
    """
    checks = Checks()
    first, last = episodes[0], episodes[min(1, len(episodes) - 1)]
    try:
        with checks.rule("the exam can draw actions by chance", "write sample_action of the exam"):
            actions = tried_actions(exam)
        if not checks.is_last_ok:
            return checks.items
        _check_start(checks, env, exam, episodes, actions)
        if checks.is_last_ok:
            _check_steps(checks, env, exam, first, actions)
            _check_same_again(checks, env, first, last, actions)
            _check_ends(checks, env, exam, first, actions)
            _check_wait(checks, env, first, actions)
    finally:
        remedy = "let close() return where there is nothing to release"
        with checks.rule("close() may be called twice", remedy):
            env.close()
            env.close()
    return checks.items


def _check_start(
    checks: Checks, env: Env, exam: AnyExam, episodes: Sequence[Any], actions: list[Any]
) -> None:
    with checks.rule(
        "step() before reset() raises an error", "raise SimulationError until reset() was called"
    ):
        _expect_refusal(env, actions[0])
    with checks.rule("check(episodes) accepts the episodes", "raise UserError only for what cannot be done"):
        notes = env.check(episodes)
        expect(holds=notes is None or not isinstance(notes, str), found=f"returned the text {notes!r:.60}")
    with checks.rule("info() right after reset() has what the exam reads", severity="warning"):
        env.reset(episodes[0])
        _check_state(exam, env.info())
    with checks.rule("reset() returns a dict of finite values", "return {'rgb': ..., 'depth': ...}"):
        _check_observation(env.reset(episodes[0]))


def _check_steps(checks: Checks, env: Env, exam: AnyExam, episode: Any, actions: list[Any]) -> None:
    """Look at some steps: what they return, and whether what was returned before stays as it was."""
    answers, copies = [], []
    observation = env.reset(episode)
    with checks.rule("step() returns (observation, reward, done, info)", "return four values, in this order"):
        for action in actions:
            answer = env.step(action)
            expect(holds=isinstance(answer, tuple) and len(answer) == 4, found=f"returned {answer!r:.60}")
            answers.append(answer)
            copies.append(deepcopy(answer[0]))
            if answer[2]:
                break
    if not answers:
        return
    with checks.rule("done is true or false"):
        wrong = next((done for _, _, done, _ in answers if not isinstance(done, bool | np.bool_)), None)
        expect(holds=wrong is None, found=f"found {wrong!r:.60}")
    with checks.rule("the reward is 0.0: the exam scores", "return 0.0", severity="warning"):
        reward = next((reward for _, reward, _, _ in answers if reward != 0.0), 0.0)
        expect(holds=reward == 0.0, found=f"found {reward!r:.60}")
    with checks.rule("info has what the exam reads, finite", "fill info as docs/writing-an-env.md says"):
        for _, _, _, info in answers:
            _check_state(exam, info)
    with checks.rule(
        "observations keep their keys, dtypes and shapes", "return the same sensors in every step"
    ):
        expected = _layout(observation)
        for seen, _, _, _ in answers:
            _check_observation(seen)
            found = _layout(seen)
            expect(holds=found == expected, found=f"reset() gave {expected}, a step {found}")
    with checks.rule("an observation does not change after it was returned", "return a copy of the array"):
        for (seen, _, _, _), copied in zip(answers, copies, strict=True):
            changed = difference(copied, seen, "observation")
            expect(holds=not changed, found=changed)


def _check_same_again(checks: Checks, env: Env, first: Any, last: Any, actions: list[Any]) -> None:
    remedy = "begin each reset() from the same state; take chance from the episode, not from the clock"
    with checks.rule("the same actions lead to the same observations and infos", remedy):
        before = _history(env, first, actions)
        _history(env, last, actions[:2])  # what was in between must leave no trace
        for step, (one, other) in enumerate(zip(before, _history(env, first, actions), strict=False)):
            changed = difference(one, other, "answer")
            expect(holds=not changed, found=f"step {step}: {changed}")


def _history(env: Env, episode: Any, actions: list[Any]) -> list[Any]:
    found: list[Any] = [{"observation": deepcopy(env.reset(episode))}]
    for action in actions:
        observation, _, done, info = env.step(action)
        found.append({"observation": deepcopy(observation), "info": deepcopy(info)})
        if done:
            break
    return found


def _check_ends(checks: Checks, env: Env, exam: AnyExam, episode: Any, actions: list[Any]) -> None:
    if "STOP" in exam.actions:
        with checks.rule("STOP ends the episode", "return done = True for STOP"):
            env.reset(episode)
            _, _, done, info = env.step(exam.parse_action("STOP"))
            expect(holds=bool(done), found="done was False")
            _check_state(exam, info)
    limit = TRIED_STEPS // 2
    short = shortened(episode, limit)
    if short is not None:
        with checks.rule("the step limit ends the episode", "return done = True at episode.step_limit"):
            env.reset(short)
            dones = [bool(env.step(action)[2]) for action in actions[:limit]]
            found = f"with a limit of {limit} steps, done was {dones}"
            expect(holds=dones[-1] and not any(dones[:-1]), found=found)
        with checks.rule("step() after the end raises an error", "raise SimulationError after done"):
            _expect_refusal(env, actions[0])
    with checks.rule("reset() after the end begins a new episode"):
        _check_observation(env.reset(episode))
        expect(holds=not env.step(actions[0])[2], found="done was True after one step")


def _check_wait(checks: Checks, env: Env, episode: Any, actions: list[Any]) -> None:
    """Try the optional `wait`, if the env has one."""
    if type(env).wait is Env.wait:
        return
    with checks.rule("wait() lets simulated time pass", "advance the world, and what time_s() returns"):
        for keep in (True, False):
            env.reset(episode)
            env.step(actions[0])
            before_s = env.time_s()
            env.wait(0.5, keep=keep)
            passed_s = env.time_s() - before_s
            # A robot that stops at the end may take a little longer.
            expect(holds=0.4 < passed_s < 0.8, found=f"in wait(0.5, keep={keep}) {passed_s:.3f} s passed")
            env.step(actions[-1])


def _expect_refusal(env: Env, action: Any) -> None:
    answer, error = attempt(env.step, action)
    expect(holds=bool(error), found=f"returned {type(answer).__name__}")


def _check_state(exam: AnyExam, info: Any) -> None:
    expect(holds=isinstance(info, Mapping), found=f"info is {type(info).__name__}, not a dict")
    state, error = attempt(exam.state, info)
    expect(holds=not error, found=error)
    expect(holds=isinstance(state, exam.state_type), found=f"state() returned {type(state).__name__}")


def _check_observation(observation: Any) -> None:
    expect(holds=isinstance(observation, Mapping), found=f"returned {type(observation).__name__}")
    for name, value in observation.items():
        expect(holds=isinstance(name, str), found=f"the key {name!r:.40} is not text")
        if isinstance(value, np.ndarray):
            expect(holds=value.dtype.kind in "biuf", found=f"'{name}' has the dtype {value.dtype}")
            is_finite = value.dtype.kind != "f" or bool(np.isfinite(value).all())
            expect(holds=is_finite, found=f"'{name}' holds NaN or infinity")


def _layout(observation: Mapping[str, Any]) -> dict[str, str]:
    return {
        name: f"{value.dtype}{list(value.shape)}" if isinstance(value, np.ndarray) else type(value).__name__
        for name, value in observation.items()
    }
