"""What worker processes start from: a server that has imported most, and environment variables."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from multiprocessing.connection import wait
from typing import Any

import numpy as np


def worker_context(preloaded: str) -> Any:
    """Return how worker processes are started: on Linux, as copies of a server that has imported a module.

    Imports are most of a worker's start. A live OpenGL context does not survive a copy, so the module must
    not import MuJoCo. Elsewhere, system libraries do not survive one either: workers start from nothing.

    The process has one such server, started with the first worker. Limits and open files are those of that
    time. If the program that we are part of has started one of its own, workers are copies of that.

    Args:
        preloaded: The name of the module.
    """
    if sys.platform != "linux":
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([preloaded])
    return context


def worker_environ(workers: int) -> dict[str, str]:
    """Return the environment variables of worker processes: ours, and how many threads draw a picture.

    Mesa draws with as many threads as there are cores. Several workers share the cores; one thread beside the
    worker's own would be slower than none, which is what 0 means.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    threads = cores // workers
    return {"LP_NUM_THREADS": str(threads if threads > 1 else 0), **os.environ}


def begin_worker(environ: dict[str, str]) -> None:
    """Make this process a worker: with these environment variables, and no longer alive than its parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's business
    threading.Thread(target=_exit_with_parent, daemon=True).start()
    os.environ.clear()  # the server that this process is a copy of was started with other variables
    os.environ.update(environ)
    np.random.seed()  # noqa: NPY002, TID251  (of agents that use it: all copies begin with the same state)


def _exit_with_parent() -> None:
    """End this process when its parent is gone, even if an agent hangs in it."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)
