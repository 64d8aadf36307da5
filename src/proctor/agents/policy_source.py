"""Where the sessions of a server get their policies from."""

from __future__ import annotations

import contextlib
import inspect
import threading
from collections.abc import Callable, Iterator

from proctor import __version__
from proctor.agents.batcher import ActBatch
from proctor.core.errors import UserError
from proctor.core.interfaces import Policy

Source = Policy | Callable[[], Policy]
"""A policy's class or a function that makes one; or a policy, which then has one session at a time."""


class PolicySource:
    """Makes the sessions' policies, the first one ahead of time, or lends out the only one."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._only = source if isinstance(source, Policy) else None
        self._first: Policy | None = None
        self._lock = threading.Lock()

    @property
    def name(self) -> str:
        """What to call it."""
        if self._only is not None:
            return type(self._only).__name__
        return getattr(self._source, "__name__", "") or f"proctor {__version__}"

    def prepare(self) -> Policy:
        """Make the first policy ahead of time.

        Raises:
            UserError: It cannot be served.
        """
        self._first = policy = self._make()
        if type(policy).privileged:
            name = type(policy).__name__
            problem = "it needs the truth, which is never sent over the network; use proctor run"
            raise UserError(f"{name} is privileged: {problem}")
        return policy

    @contextlib.contextmanager
    def lend(self) -> Iterator[Policy]:
        """Lend a session its policy; one of its own is closed afterwards."""
        if self._only is not None:
            yield self._only
            return
        with self._lock:
            policy, self._first = self._first, None
        with contextlib.closing(self._make() if policy is None else policy) as lent:
            yield lent

    def close(self) -> None:
        """Close what nobody borrowed, or the only policy that there is."""
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
    """Return the `act_batch` of a policy's class.

    Raises:
        UserError: It has none that could be called without an object.
    """
    class_ = type(policy)
    found = inspect.getattr_static(class_, "act_batch", None)
    if not isinstance(found, classmethod | staticmethod):
        raise UserError(
            f"max_batch above 1 needs a classmethod or staticmethod act_batch(policies, observations) in "
            f"{class_.__name__}; there is {'none' if found is None else f'only a {type(found).__name__}'}"
        )
    act_batch: ActBatch = class_.act_batch  # type: ignore[attr-defined]
    return act_batch
