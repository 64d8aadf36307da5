"""The kinds of exam, and which task, episodes, metrics and env belong to each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from proctor.core.errors import UserError
from proctor.exams.pick_place.episode import PickAndPlaceEpisode
from proctor.exams.vln.episode import DEFAULT_SUCCESS_THRESHOLD_M, Episode
from proctor.runs.job import Job
from proctor.exams.pick_place.exam import METRICS, PickPlaceTask
from proctor.runs.rollout import Task
from proctor.exams.vln.exam import VLNTask
from proctor.exams.vln.metrics import DEFINITION
from proctor.core.registry import ONLY_FOR, Kind, load, names


class Exam(NamedTuple):
    """One kind of exam."""

    episode: type[msgspec.Struct]
    make: Callable[[Job], Task]
    env: str
    """Where none is named."""
    metrics: Kind
    definition: str
    """Whose definitions of metrics."""


EXAMS: dict[str, Exam] = {
    "vln": Exam(
        episode=Episode,
        make=lambda job: VLNTask(success_threshold_m=job.success_threshold_m, agent_id_key=job.agent_id_key),
        env="embedded",
        metrics="metric",
        definition=DEFINITION,
    ),
    "pick_and_place": Exam(
        episode=PickAndPlaceEpisode,
        make=lambda job: PickPlaceTask(hide_goal=job.hide_goal, agent_id_key=job.agent_id_key),
        env="tabletop",
        metrics=METRICS,
        definition="pick-and-place v1",
    ),
}


def make_task(job: Job) -> Task:
    """Return the task of a job, ready for its first episode."""
    return EXAMS[job.task].make(job)


def fitted(job: Job, task: str) -> Job:
    """Return a job for a dataset of this task, with the task's env where it names none.

    Whether its policy is privileged is decided here, once: what the class says later changes nothing.

    Raises:
        UserError: Its env, its policy or an option is not for this task.
    """
    policy = load("policy", job.policy)
    job = msgspec.structs.replace(
        job,
        task=task,
        env=job.env or EXAMS[task].env,
        privileged=bool(policy.privileged) if job.privileged is None else job.privileged,
    )
    check_fit("env", job.env, load("env", job.env), task)
    check_fit("policy", job.policy, policy, task)
    if task == "vln":
        if job.hide_goal:
            raise UserError("hide_goal is for pick_and_place: in vln nobody is told the goal")
    elif job.success_threshold_m != DEFAULT_SUCCESS_THRESHOLD_M:
        raise UserError(
            f"a success threshold is for vln: in {task} the episodes' place_tolerance decides, "
            f"found {job.success_threshold_m} m"
        )
    if job.hide_goal and job.env_options.get("object_info"):
        raise UserError("hide_goal withholds what object_info shows; choose one of them")
    return job


def check_fit(kind: Kind, name: str, found: Any, task: str) -> None:
    """Refuse an env or a policy that is for another task.

    Args:
        kind: `env` or `policy`.
        name: Of the env or policy, for the message.
        found: Its class, or itself.
        task: What it should do.

    Raises:
        UserError: It cannot do this task.
    """
    if not found.tasks or task in found.tasks:
        return
    fitting = [other for other in names(kind) if ONLY_FOR[kind].get(other, task) == task]
    raise UserError(
        f"{kind} '{name}' is for {' and '.join(found.tasks)}, and these episodes are of {task}; "
        f"what fits: {', '.join(fitting)}"
    )
