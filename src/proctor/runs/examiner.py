"""The episode boundary: whatever goes wrong inside of an episode ends up in its record, with its side.

Checking, grading and encoding of an episode happen here, in the process that ran it, for one worker or many.
"""

from __future__ import annotations

import hashlib
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Any, NamedTuple

from msgspec.structs import replace

from proctor.agents.websocket_policy import WebSocketPolicy
from proctor.core.addresses import replicas
from proctor.core.interfaces import Env, Policy
from proctor.core.registry import build
from proctor.core.types import Outcome, Vector3
from proctor.exams.names import AnyExam
from proctor.exams.results import EpisodeResult, Fault
from proctor.exams.trace import AnyTrace
from proctor.runs.agent_ids import agent_id
from proctor.runs.attempts import Attempts
from proctor.runs.grade import encode_result, grade
from proctor.runs.job import Job
from proctor.runs.recorder import Recorder
from proctor.runs.rollout import rollout
from proctor.runs.traces import encode_trace
from proctor.runs.turns import Turn, Turns, close_problems, no_forks


class Finished(NamedTuple):
    """A finished episode, ready to be written."""

    result: EpisodeResult
    record: bytes  # the result as JSON
    trace: bytes  # as a file holds it; empty if nothing was recorded


class Examiner:
    """An env, a policy and an exam, ready to do one episode after the other.

    `privileged` says whether the policy gets the ground truth, as its class said before the run.
    `agent_id_key` is the secret by which the ids are made that agents are told.
    """

    def __init__(
        self,
        env: Env,
        policy: Policy,
        exam: AnyExam,
        *,
        seed: int,
        privileged: bool,
        agent_id_key: str,
        recorder: Recorder | None = None,
    ) -> None:
        self.env, self.policy = env, policy
        self._exam, self._seed, self._privileged = exam, seed, privileged
        self._agent_id_key, self._recorder = agent_id_key, recorder

    @classmethod
    def of(
        cls,
        job: Job,
        recorder: Recorder | None = None,
        *,
        index: int = 0,
        check: bool = True,
        env: Env | None = None,
    ) -> Examiner:
        """Build env (unless one is given) and policy by name; `check` finds out if the agent is there."""
        with no_forks():
            policy = policy_of(job, index)
            try:
                if check:
                    policy.check()
                env = env or build("env", job.env, job.env_options)
            except BaseException:
                close_problems(policy)
                raise
        return cls(
            env,
            policy,
            job.make_exam(),
            seed=job.seed,
            privileged=bool(job.privileged),
            agent_id_key=job.agent_id_key,
            recorder=recorder,
        )

    def examine(self, episode: Any, announce: Callable[[Turn], None] | None = None) -> Finished:
        """Do one episode. Its seed depends on the run's seed and its id, not on what came before."""
        seed = episode_seed(self._seed, episode.episode_id)
        # Only our own class: one that an agent derives from it is the agent.
        turns, fault = Turns(announce, is_served=type(self.policy) is WebSocketPolicy), None
        with self._recorder.episode(episode.episode_id) if self._recorder else nullcontext() as watcher:
            try:
                rollout(
                    self.env,
                    self.policy,
                    episode,
                    self._exam,
                    seed=seed,
                    agent_id=agent_id(self._agent_id_key, episode.episode_id),
                    privileged=self._privileged,
                    turns=turns,
                    watch=[watcher] if watcher is not None else [],
                )
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # noqa: BLE001  the episode boundary: whatever it is, it is recorded
                fault = turns.fault_of(error)
            finished = finish(self._exam, episode, turns, seed, fault)
            self._notify_policy(turns, finished.result)
        return finished

    def _notify_policy(self, turns: Turns, result: EpisodeResult) -> None:
        """Tell the policy how the episode ended, if it was told of it. The result stands."""
        if not turns.is_briefed:
            return
        outcome = Outcome(
            status=result.status,
            metrics=result.metrics,
            num_steps=result.steps,
            expected_metrics=self._exam.expected_metrics,
        )
        try:
            with turns.of("policy"):
                self.policy.episode_end(outcome)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001  as above
            turns.fault_of(error)

    def examine_all(self, attempts: Attempts) -> Iterator[Finished]:
        """Do all episodes, waiting for an agent that is unavailable."""
        while (wait_s := attempts.wait_s()) is not None:
            time.sleep(wait_s)
            episode = attempts.take()
            finished = self.examine(episode)
            attempts.note(episode, finished.result)
            yield finished

    def close(self) -> list[str]:
        """Close policy and env, and return what went wrong with that."""
        return close_problems(self.policy, self.env)


def finish(exam: AnyExam, episode: Any, turns: Turns, seed: int, fault: Fault | None) -> Finished:
    """Grade and encode an episode; what fails there is a fault of the evaluator in this episode."""
    try:
        trace = turns.trace if turns.trace.states else exam.first_trace(episode)
        return _finished(exam, episode, trace, turns, seed, fault)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001  the episode boundary
        fault = turns.fault_of(error)
    try:
        return _finished(exam, episode, exam.first_trace(episode), turns, seed, fault)
    except KeyboardInterrupt:
        raise
    except BaseException:  # noqa: BLE001  an exam that cannot even grade an episode in which nothing happened
        result = _bare_result(exam, episode, seed, fault)
        return Finished(result, encode_result(exam, result), b"")


def lost(exam: AnyExam, episode: Any, seed: int, fault: Fault) -> Finished:
    """Return an episode of which nothing is known but its fault: an agent is judged by the start."""
    return finish(exam, episode, Turns(), seed, fault)


def _finished(
    exam: AnyExam, episode: Any, trace: AnyTrace, turns: Turns, seed: int, fault: Fault | None
) -> Finished:
    result = grade(exam, episode, trace, seed=seed, fault=fault)
    result = replace(result, timing=turns.timing)  # now: grading takes time, too
    record = encode_result(exam, result)
    return Finished(result, record, encode_trace(exam, episode.episode_id, trace) if trace.steps else b"")


def _bare_result(exam: AnyExam, episode: Any, seed: int, fault: Fault) -> EpisodeResult:
    return exam.result(
        episode_id=episode.episode_id,
        scene_id=str(getattr(episode, "scene_id", "")),
        instruction="",
        status="error",
        success=False,
        failure_reason=fault.kind,
        error=fault,
        steps=0,
        trajectory=[Vector3(0.0, 0.0, 0.0)],
        actions=[],
        metrics={},
        seed=seed,
    )


def policy_of(job: Job, index: int) -> Policy:
    """Build a worker's policy. Of several addresses of one agent, each worker begins with another."""
    addresses = deque(replicas(job.policy) or [job.policy])
    addresses.rotate(-index)
    policy: Policy = build("policy", ",".join(addresses), job.policy_options, job.exam_class.baselines)
    return policy


def episode_seed(run_seed: int, episode_id: str) -> int:
    """Return a seed of 48 bits that is the same for any number of workers and any order."""
    digest = hashlib.sha256(f"{run_seed}/{episode_id}".encode()).digest()
    return int.from_bytes(digest[:6], "big")
