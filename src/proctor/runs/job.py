"""What a process must know in order to do episodes."""

from __future__ import annotations

import hashlib
import inspect
from contextlib import suppress
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import msgspec

from proctor.core.errors import UserError
from proctor.core.options import checked_options
from proctor.core.registry import load
from proctor.exams.exam import ExamOptions
from proctor.exams.names import AnyExam, all_baselines, check_fit, exam_named
from proctor.exams.offers import DEFAULT, NONE, check_inform, sensing_options
from proctor.runs.conditions import Conditions
from proctor.runs.latency import check_env_can_wait, checked_thinking


class RunJob(msgspec.Struct, frozen=True, kw_only=True):
    """All that a process needs to know to do episodes: names and options, no objects."""

    policy: str
    privileged: bool | None = None
    """Whether the policy gets the ground truth, as its class said before the run; `fit_job` fills it in."""
    env: str = ""  # the exam's own, if it is empty
    task: str = ""  # the name of the exam, as the dataset says; `fit_job` fills it in
    env_options: dict[str, Any] = {}
    policy_options: dict[str, Any] = {}
    exam_options: dict[str, Any] = {}
    seed: int = 0
    conditions: Conditions = Conditions()
    first_worker: int = 0
    """The number of the first worker of this process, where other processes have workers, too."""
    agent_id_key: str = ""  # the run's secret, by which the ids are made that agents are told
    policy_sha256: str = ""
    """The `agent_digest` where the run began. Workers on other machines compare it; empty: they need not."""
    texts: dict[str, str] = {}
    """What is delivered instead of the instruction, by episode id; `plan_run` fills it in."""

    @property
    def exam_class(self) -> type[AnyExam]:
        """The exam."""
        return exam_named(self.task)

    def make_exam(self) -> AnyExam:
        """Return the exam with its options."""
        exam = self.exam_class
        return exam(read_exam_options(exam, self.exam_options))

    def identity(self) -> dict[str, Any]:
        """Return what of it defines a run."""
        found: dict[str, Any] = msgspec.to_builtins(self)
        for key in ("agent_id_key", "policy_sha256", "exam_options", "texts", "conditions", "first_worker"):
            del found[key]
        if conditions := self.conditions.identity():
            found["conditions"] = conditions
        found |= load("env", self.env).identity(self.env_options)
        return {**found, **self.exam_class.identity(self.make_exam().options)}


def fit_job(job: RunJob, exam: type[AnyExam]) -> RunJob:
    """Return a job for an exam, with the exam's env where it names none; a UserError if a part does not fit.

    Whether its policy is privileged is decided here, once: what the class says later changes nothing.
    """
    policy = load("policy", job.policy, all_baselines() | dict(exam.baselines))
    given = exam.completed_options(job.exam_options, job.env_options)
    options = read_exam_options(exam, given)
    job = msgspec.structs.replace(
        job,
        task=exam.name,
        exam_options=given,
        env=job.env or exam.envs[0],
        env_options={**job.env_options, **exam.env_options(options, job.seed)},
        conditions=checked_thinking(job.conditions),
        privileged=bool(policy.privileged) if job.privileged is None else job.privileged,
    )
    env = load("env", job.env)
    check_fit(exam, "env", job.env, env)
    check_fit(exam, "policy", job.policy, policy)
    if job.conditions.charge_latency:
        check_env_can_wait(exam, job.env)
    words = job.conditions.inform
    check_inform(words, exam.name, exam.offers, env)
    if getattr(policy, "uses_chat_task", False):
        _check_chat_task(exam, words)
    env_options = sensing_options(words, exam.offers, env, job.env_options)
    return msgspec.structs.replace(job, env_options=env_options)


def _check_chat_task(exam: type[AnyExam], words: tuple[str, ...]) -> None:
    """Refuse to withhold what the tools of chat models and of MCP are made from."""
    needs: tuple[str, ...] = ()
    with suppress(ImportError, AttributeError):  # a task that cannot be loaded is reported where it is used
        needs = resolve_name(exam.chat).needs if exam.chat else ()
    missing = [word for word in needs if word not in words and DEFAULT not in words]
    if missing:
        given = ",".join(dict.fromkeys([*(word for word in words if word != NONE), *needs]))
        raise UserError(
            f"--inform: the tools of {exam.name} for chat models and MCP need {' and '.join(missing)}; "
            f"try --inform {given}"
        )


def agent_digest(job: RunJob) -> str:
    """Return a hash of the files that make a policy what it is: an edited agent is another agent.

    These are the file with its class, and those that its options name, but no other modules and no weights.
    """
    policy = load("policy", job.policy, job.exam_class.baselines)
    digest = hashlib.sha256()
    named = [job.policy_options.get(name) for name in getattr(policy, "option_files", ("mapping",))]
    for file in (inspect.getsourcefile(policy), *named):
        if isinstance(file, str) and Path(file).is_file():
            digest.update(Path(file).read_bytes())
    return digest.hexdigest()


def read_exam_options(exam: type[AnyExam], given: dict[str, Any]) -> ExamOptions:
    """Return the options of an exam, checked."""
    return checked_options(exam.options_type, given, f"exam {exam.name}", strict=False)
