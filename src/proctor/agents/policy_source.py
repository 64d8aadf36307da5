"""The policies of a server's sessions: one each, a single one that is lent out, or one call for a batch."""

from __future__ import annotations

import contextlib
import inspect
import queue
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from concurrent.futures import Future
from typing import Any, NamedTuple

from proctor import __version__
from proctor.core.errors import UserError
from proctor.core.interfaces import Policy
from proctor.core.types import Observation

Source = Policy | Callable[[], Policy]
"""A policy's class, a function that makes one, or a single policy for one session at a time."""
ActBatch = Callable[[Sequence[Policy], Sequence[Observation]], Sequence[Any]]


class PolicySource:
    """Makes the sessions' policies, the first one ahead of time, or lends the only one."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._only = source if isinstance(source, Policy) else None
        self._first: Policy | None = None
        self._lock = threading.Lock()

    @property
    def name(self) -> str:
        """The policy's name for people."""
        if self._only is not None:
            return type(self._only).__name__
        return getattr(self._source, "__name__", "") or f"proctor {__version__}"

    def prepare(self) -> Policy:
        """Make the first policy ahead of time, or raise UserError if it cannot be served."""
        self._first = policy = self._make()
        if type(policy).privileged:
            name = type(policy).__name__
            problem = "it needs the truth, which is never sent over the network; use proctor run"
            raise UserError(f"{name} is privileged: {problem}")
        return policy

    @contextlib.contextmanager
    def lend(self) -> Iterator[Policy]:
        """Lend a session its policy. One that was made for the session is closed afterwards."""
        if self._only is not None:
            yield self._only
            return
        with self._lock:
            policy, self._first = self._first, None
        with contextlib.closing(self._make() if policy is None else policy) as lent:
            yield lent

    def close(self) -> None:
        """Close a policy that was made ahead of time and never lent."""
        with self._lock:
            policy, self._first = self._first, None
        if policy is not None:
            policy.close()

    def _make(self) -> Policy:
        policy = self._source() if not isinstance(self._source, Policy) else self._source
        if not isinstance(policy, Policy):
            raise UserError(f"expected a Policy to serve, found {type(policy).__name__}")
        return policy


def act_batch_of(policy: Policy) -> ActBatch:
    """Return the `act_batch` of a policy's class, or raise UserError if it needs an object."""
    class_ = type(policy)
    found = inspect.getattr_static(class_, "act_batch", None)
    if not isinstance(found, classmethod | staticmethod):
        raise UserError(
            f"max_batch above 1 needs a classmethod or staticmethod act_batch(policies, observations) in "
            f"{class_.__name__}; there is {'none' if found is None else f'only a {type(found).__name__}'}"
        )
    act_batch: ActBatch = class_.act_batch  # type: ignore[attr-defined]
    return act_batch


class _Request(NamedTuple):
    policy: Policy
    observation: Observation
    action: Future[Any]


class Batcher:
    """Collects requests and calls `act_batch` in one thread.

    A batch is full when it holds `max_batch` requests, or one of every session; it waits for that no longer
    than `wait_s` after its first request. While the model works, requests queue up for the next batch.
    """

    def __init__(
        self, act_batch: ActBatch, *, max_batch: int, wait_s: float, sessions: Callable[[], int]
    ) -> None:
        self._act_batch, self._max_batch, self._wait_s = act_batch, max_batch, wait_s
        self._sessions = sessions
        self._requests: queue.SimpleQueue[_Request | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="batcher", daemon=True)
        self._thread.start()

    def act(self, policy: Policy, observation: Observation) -> Any:
        """Return the action of one session, or raise what its batch raised."""
        request = _Request(policy, observation, Future())
        self._requests.put(request)
        return request.action.result()

    def close(self) -> None:
        """End the thread when all requests are answered. May be called twice."""
        self._requests.put(None)

    def _run(self) -> None:
        while (first := self._requests.get()) is not None:
            batch, is_last = self._collect(first)
            try:
                actions = self._act_batch(
                    [request.policy for request in batch], [request.observation for request in batch]
                )
                _check_length(actions, len(batch))
                for request, action in zip(batch, actions, strict=True):
                    request.action.set_result(action)
            except BaseException as error:  # noqa: BLE001  it is raised again in each session
                for request in batch:
                    if not request.action.done():
                        request.action.set_exception(error)
            if is_last:
                return

    def _collect(self, first: _Request) -> tuple[list[_Request], bool]:
        """Return a batch, and whether it is the last one."""
        batch, deadline_s = [first], time.monotonic() + self._wait_s
        while len(batch) < min(self._max_batch, self._sessions()):
            try:
                request = self._requests.get(timeout=max(0.0, deadline_s - time.monotonic()))
            except queue.Empty:
                break
            if request is None:
                return batch, True
            batch.append(request)
        return batch, False


def _check_length(actions: Sequence[Any], expected: int) -> None:
    # Iterating over a dict, a set or a text would give keys, any order, or letters.
    if not hasattr(actions, "__len__") or isinstance(actions, Mapping | Set | str | bytes):
        raise TypeError(f"act_batch must return a list of {expected} actions, found {type(actions).__name__}")
    if len(actions) != expected:
        raise ValueError(f"act_batch must return {expected} actions, one per policy, found {len(actions)}")
