"""Policies for the tests of the executor `ray`: they wait, crash, or take their node's worker with them."""

import multiprocessing
import os
import signal
import time
from pathlib import Path

from proctor.core.interfaces import Policy

DEADLINE_S = 120.0


class Walker(Policy):
    """Walks by the episode's seed. In each episode it writes down where it is, and waits for the gate."""

    def __init__(self, folder, pause_s=0.0):
        self.folder, self.pause_s = Path(folder), pause_s

    def reset(self, episode_info):
        self.actions = [1 + (episode_info.seed >> shift) % 3 for shift in range(8)] + [0]
        node = os.environ.get("TEST_NODE", "here")
        (self.folder / f"at.{node}").touch()
        deadline_s = time.monotonic() + DEADLINE_S
        while not (self.folder / "gate").exists():
            assert time.monotonic() < deadline_s
            time.sleep(0.02)
        time.sleep(self.pause_s)

    def act(self, observation):
        return self.actions.pop(0)


class Crasher(Walker):
    """Crashes where the instruction says so, or kills the process that watches it."""

    def reset(self, episode_info):
        super().reset(episode_info)
        self.word = episode_info.instruction
        with (self.folder / "tries").open("a") as file:
            file.write(f"{self.word}\n")

    def act(self, observation):
        if self.word == "crash":
            os.kill(os.getpid(), signal.SIGSEGV)
        if self.word == "lose":
            os.kill(multiprocessing.parent_process().pid, signal.SIGKILL)
            time.sleep(DEADLINE_S)
        return super().act(observation)


class Broken(Policy):
    """Cannot be built on a node of this name."""

    def __init__(self, node):
        if os.environ.get("TEST_NODE") == node:
            raise ValueError("no weights here")

    def act(self, observation):
        return 0
