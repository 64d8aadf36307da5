"""Several sessions, one call of the model."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence, Set
from concurrent.futures import Future
from types import TracebackType
from typing import Any, NamedTuple

from proctor.core.interfaces import Policy
from proctor.core.types import Observation

ActBatch = Callable[[Sequence[Policy], Sequence[Observation]], Sequence[Any]]


class _Request(NamedTuple):
    policy: Policy
    observation: Observation
    action: Future[Any]


class Batcher:
    """Collects what sessions ask at about the same time and asks the model once.

    A batch is begun by the first request. It is full when it holds `max_batch` requests, or one of every
    session that there is, and it waits for that no longer than `wait_s`. While the model works, requests
    pile up for the next batch. All batches run in one thread.

    Args:
        act_batch: Takes policies and their observations, returns one action for each, in the same order.
        max_batch: The largest batch.
        wait_s: How long the first request of a batch waits for others.
        sessions: Tells how many sessions there are.
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
        """Let the thread end when all that was asked is answered. May be called twice."""
        self._requests.put(None)

    def _run(self) -> None:
        while (first := self._requests.get()) is not None:
            batch, is_last = self._collect(first)
            with _Answering(batch):
                actions = self._act_batch(
                    [request.policy for request in batch], [request.observation for request in batch]
                )
                _check_length(actions, len(batch))
                for request, action in zip(batch, actions, strict=True):
                    request.action.set_result(action)
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


class _Answering:
    """A `with` block whose error goes to everybody in the batch who has no answer yet."""

    def __init__(self, batch: Sequence[_Request]) -> None:
        self._batch = batch

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        for request in self._batch:
            if error is not None and not request.action.done():
                request.action.set_exception(error)
        return True  # it is raised again where it was asked for


def _check_length(actions: Sequence[Any], expected: int) -> None:
    # A dict or a set would be gone through by its keys, or in any order; a text by its letters.
    if not hasattr(actions, "__len__") or isinstance(actions, Mapping | Set | str | bytes):
        raise TypeError(f"act_batch must return a list of {expected} actions, found {type(actions).__name__}")
    if len(actions) != expected:
        raise ValueError(f"act_batch must return {expected} actions, one per policy, found {len(actions)}")
