"""Environments and the episode they take."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from proctor.core.interfaces import Env
from proctor.exams.vln.episode import Episode
from proctor.o3de.config import O3DE_SIMULATOR_CONFIG
from proctor.worlds.mock import MockEnv

if TYPE_CHECKING:
    from proctor.o3de.simulator import O3DEEnv as O3DEEnv  # noqa: PLC0414

__all__ = ["O3DE_SIMULATOR_CONFIG", "Env", "Episode", "MockEnv"]


def __getattr__(name: str) -> Any:
    """Return `O3DEEnv`, looked up when it is asked for: the other envs need no ROS 2."""
    if name != "O3DEEnv":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module("proctor.o3de.simulator").O3DEEnv
