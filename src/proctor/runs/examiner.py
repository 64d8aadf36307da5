"""The episode boundary: whatever goes wrong inside of an episode ends up in its record, with its side.

Checking, grading and encoding of an episode happen here, in the process that ran it, for one worker or many.
"""

from __future__ import annotations

import hashlib
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from proctor.core.addresses import replicas
from proctor.core.errors import UserError
from proctor.core.interfaces import Env, Policy
from proctor.core.registry import build, is_served
from proctor.core.types import Outcome, Usage, Vector3
from proctor.exams.names import AnyExam
from proctor.exams.results import EpisodeResult, Fault
from proctor.exams.trace import AnyTrace
from proctor.records.episode_file import Subject
from proctor.runs.accounting import transcript_note, transcript_of
from proctor.runs.agent_ids import agent_id
from proctor.runs.attempts import Attempts
from proctor.runs.conditions import Presentation
from proctor.runs.grade import encode_result, grade
from proctor.runs.job import RunJob, agent_digest
from proctor.runs.latency import thinking_cost
from proctor.runs.recorder import EpisodeRecorder, Recorder
from proctor.runs.resources import METER, Moment
from proctor.runs.rollout import rollout
from proctor.runs.traces import encode_trace
from proctor.runs.turns import Turn, Turns, close_problems, no_forks


class Finished(NamedTuple):
    """A finished episode, ready to be written."""

    result: EpisodeResult
    record: bytes  # the result as JSON
    trace: bytes  # as a file holds it; empty if nothing was recorded
    transcript: bytes = b""  # what was exchanged with the agent, as a file holds it; empty if not kept


class Examiner:
    """An env, a policy and an exam, ready to do one episode after the other as the job says.

    Env, policy and exam are used as they are, whatever the job names. `Examiner.of` makes them by the job.
    """

    def __init__(
        self, env: Env, policy: Policy, exam: AnyExam, job: RunJob, recorder: Recorder | None = None
    ) -> None:
        self.env, self.policy = env, policy
        self._exam, self._job, self._recorder = exam, job, recorder
        self._thinking = thinking_cost(job.conditions)

    @classmethod
    def of(
        cls,
        job: RunJob,
        recorder: Recorder | None = None,
        *,
        index: int = 0,
        check: bool = True,
        env: Env | None = None,
        policy: Policy | None = None,
    ) -> Examiner:
        """Build env and policy by name where none is given; `check` finds out if the agent is there."""
        with no_forks():
            is_given = policy is not None
            policy = policy_of(job, index) if policy is None else policy
            try:
                if check and not is_given:
                    policy.check()
                env = env or build("env", job.env, job.env_options)
            except BaseException:
                close_problems(policy)
                raise
        return cls(env, policy, job.make_exam(), job, recorder)

    def examine(
        self,
        episode: Any,
        announce: Callable[[Turn], None] | None = None,
        announce_usage: Callable[[Usage], None] | None = None,
    ) -> Finished:
        """Do one episode. Its seed depends on the run's seed and its id, not on what came before."""
        seed = episode_seed(self._job.seed, episode.episode_id)
        shown = self._presentation(episode, seed)
        turns = Turns(announce, announce_usage, is_served=is_served(self.policy), meter=METER)
        fault = None
        with self._recording(episode) as watcher:
            try:
                rollout(
                    self.env,
                    self.policy,
                    episode,
                    self._exam,
                    seed=seed,
                    agent_id=agent_id(self._job.agent_id_key, episode.episode_id),
                    privileged=bool(self._job.privileged),
                    thinking=self._thinking,
                    turns=turns,
                    presentation=shown,
                    watch=[watcher] if watcher is not None else [],
                )
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # noqa: BLE001  the episode boundary: whatever it is, it is recorded
                fault = turns.fault_of(error)
                self._ask_policy(turns, lambda: turns.count_usage(self.policy))  # nothing used is lost
            turns.delivered = shown.delivered()
            finished = finish(self._exam, episode, turns, seed, fault)
            if watcher is not None:
                watcher.end(finished.result)
            if finished.result.timing:
                METER.charge(finished.result.timing)
            if turns.is_briefed:
                finished = finished._replace(transcript=self._transcript(turns))
                self._notify_policy(turns, finished.result)
        return finished

    def _presentation(self, episode: Any, seed: int) -> Presentation:
        text = self._text(episode)
        return Presentation(self._job.conditions, self._exam, episode, seed=seed, text=text)

    def _text(self, episode: Any) -> str | None:
        """Return what is delivered instead of the episode's instruction."""
        is_own = self._job.conditions.instructions == "original"
        return None if is_own else self._job.texts[episode.episode_id]

    def _recording(self, episode: Any) -> AbstractContextManager[EpisodeRecorder | None]:
        if self._recorder is None:
            return nullcontext()
        instruction = self._text(episode) or self._exam.instruction(episode)
        return self._recorder.episode(episode.episode_id, Subject(self._exam, episode, instruction))

    def _transcript(self, turns: Turns) -> bytes:
        """Return the transcript of the episode; where there is none by an error, one that says so."""
        found: list[bytes] = []
        fault = self._ask_policy(turns, lambda: found.append(transcript_of(self.policy)))
        if fault is not None:
            return transcript_note(f"{type(self.policy).__name__}.transcript() failed: {fault.message}")
        return found[0]

    def _notify_policy(self, turns: Turns, result: EpisodeResult) -> None:
        outcome = Outcome(
            status=result.status,
            metrics=result.metrics,
            num_steps=result.steps,
            expected_metrics=self._exam.expected_metrics,
        )
        self._ask_policy(turns, lambda: self.policy.episode_end(outcome))

    def _ask_policy(self, turns: Turns, call: Callable[[], object]) -> Fault | None:
        """Call the policy after the end of an episode. The result stands, whatever fault this returns."""
        try:
            with turns.of("policy"):
                call()
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001  as above
            return turns.fault_of(error)
        return None

    def examine_all(self, attempts: Attempts) -> Iterator[Finished | None]:
        """Do all episodes, waiting for an agent that is unavailable."""
        while (wait_s := attempts.wait_s()) is not None:
            time.sleep(wait_s)
            episode = attempts.take()
            if episode is None:
                yield None
                continue
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
        result = replace(_bare_result(exam, episode, seed, fault), usage=_usage_field(turns))
        return Finished(result, encode_result(exam, result), b"")


def lost(
    exam: AnyExam,
    episode: Any,
    seed: int,
    fault: Fault,
    usage: Usage | None = None,
    begun: Moment | None = None,
) -> Finished:
    """Return an episode of which only these are known: an agent is judged by the start."""
    turns = Turns(begun=begun)
    turns.usage = usage
    return finish(exam, episode, turns, seed, fault)


def _finished(
    exam: AnyExam, episode: Any, trace: AnyTrace, turns: Turns, seed: int, fault: Fault | None
) -> Finished:
    result = grade(exam, episode, trace, seed=seed, fault=fault)
    result = replace(result, **turns.delivered, usage=_usage_field(turns))
    result = replace(result, timing=turns.timing)  # last: grading takes time, too
    record = encode_result(exam, result)
    return Finished(result, record, encode_trace(exam, episode.episode_id, trace) if trace.steps else b"")


def _usage_field(turns: Turns) -> Usage | UnsetType:
    return UNSET if turns.usage is None else turns.usage


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


def policy_of(job: RunJob, index: int) -> Policy:
    """Build a worker's policy. Of several addresses of one agent, each worker begins with another."""
    if job.policy_sha256 and agent_digest(job) != job.policy_sha256:
        raise UserError(
            f"the files of policy '{job.policy}' are not the same here as when the run began; copy them "
            "to all nodes, or use a shared folder"
        )
    addresses = deque(replicas(job.policy) or [job.policy])
    addresses.rotate(-job.first_worker - index)
    policy: Policy = build("policy", ",".join(addresses), job.policy_options, job.exam_class.baselines)
    return policy


def episode_seed(run_seed: int, episode_id: str) -> int:
    """Return a seed of 48 bits that is the same for any number of workers and any order."""
    digest = hashlib.sha256(f"{run_seed}/{episode_id}".encode()).digest()
    return int.from_bytes(digest[:6], "big")
