"""Doing many episodes: the contract, and the executor that does them in this process.

Executors are registry names (`proctor.executors`); `proctor run --executor NAME` chooses one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Protocol

import msgspec

from proctor.core.interfaces import Env, Policy
from proctor.core.registry import build
from proctor.runs.attempts import Attempts
from proctor.runs.examiner import Examiner, Finished
from proctor.runs.job import RunJob
from proctor.runs.recorder import Recorders
from proctor.runs.turns import close_problems


class NoOptions(msgspec.Struct, frozen=True):
    """Of executors that have no options."""


class Executor(Protocol):
    """Does the episodes of a run. Made with (job, workers, recorders, check=..., **options).

    `workers` is None if the user did not say how many. The methods are called in this order.
    """

    options_type: ClassVar[type[msgspec.Struct]]
    """What `--executor-option` can set."""
    fills_cluster: ClassVar[bool]
    """Whether it has as many workers as there is room for if the user did not say how many, else 1."""

    def check(self, episodes: Sequence[Any]) -> list[str]:
        """Let an env check the episodes before anything is written; return what people should know."""

    def start(self) -> None:
        """Build env and policy wherever episodes will be done."""

    def run(self, attempts: Attempts) -> Iterator[Finished | None]:
        """Do the episodes; results come as they are ready.

        None comes now and then while the rest is in other hands: the caller looks for their results.
        """

    def close(self) -> list[str]:
        """End, whatever happened before, and return what went wrong with that."""


class InProcess:
    """Does episodes here, one after the other; `workers` is always 1.

    A policy that is given is used as it is, instead of one made by the job's name.
    """

    options_type: ClassVar[type[msgspec.Struct]] = NoOptions
    fills_cluster: ClassVar[bool] = False

    def __init__(
        self,
        job: RunJob,
        workers: int | None = None,
        recorders: Recorders | None = None,
        *,
        check: bool = True,
        policy: Policy | None = None,
    ) -> None:
        del workers
        self._job, self._check, self._policy = job, check, policy
        self._recorder = recorders.recorder(0) if recorders else None
        self._env: Env | None = None
        self._examiner: Examiner | None = None

    def check(self, episodes: Sequence[Any]) -> list[str]:
        """Let the env that will be used look at the episodes."""
        self._env = build("env", self._job.env, self._job.env_options)
        return list(self._env.check(episodes) or ())

    def start(self) -> None:
        """Build what is not built yet."""
        self._examiner = Examiner.of(
            self._job, self._recorder, check=self._check, env=self._env, policy=self._policy
        )

    def run(self, attempts: Attempts) -> Iterator[Finished | None]:
        """Do the episodes one after the other."""
        return iter(()) if self._examiner is None else self._examiner.examine_all(attempts)

    def close(self) -> list[str]:
        """Close policy and env."""
        examiner, env, self._examiner, self._env = self._examiner, self._env, None, None
        if examiner is not None:
            return examiner.close()
        return close_problems(env) if env is not None else []


def check_episodes(job: RunJob, episodes: Sequence[Any]) -> tuple[list[str], list[str]]:
    """Let an env of its own look at the episodes; return its notes, and what went wrong in closing it."""
    env: Env = build("env", job.env, job.env_options)
    try:
        notes = list(env.check(episodes) or ())
    finally:
        problems = close_problems(env)
    return notes, problems
