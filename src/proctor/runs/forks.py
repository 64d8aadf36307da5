"""Copies of this process that a policy or an env makes with `os.fork`.

A copy that returns from the policy's code into ours would go on with the run as if it were the evaluator:
do the episodes a second time and write their results, too.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

FORKED_EXIT_CODE = 70


def leave_if_forked(process_id: int) -> None:
    """End this process at once if it is not the one with this id but a copy of it."""
    if os.getpid() != process_id:
        os._exit(FORKED_EXIT_CODE)


@contextmanager
def no_forks() -> Iterator[None]:
    """Let no copy of this process get out of a `with` block around code of a policy or an env."""
    process_id = os.getpid()
    try:
        yield
    finally:
        leave_if_forked(process_id)
