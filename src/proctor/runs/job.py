"""What a process must know in order to do episodes."""

from __future__ import annotations

from typing import Any

import msgspec

from proctor.exams.vln.episode import DEFAULT_SUCCESS_THRESHOLD_M


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """All that a process needs to know to do episodes: names and options, no objects."""

    policy: str
    privileged: bool | None = None
    """Whether the policy gets the ground truth, as its class said before the run; a run fills it in."""
    env: str = ""
    """The task's own, if it is empty."""
    task: str = "vln"
    """As the dataset says; a run fills it in."""
    env_options: dict[str, Any] = {}
    policy_options: dict[str, Any] = {}
    seed: int = 0
    success_threshold_m: float = DEFAULT_SUCCESS_THRESHOLD_M
    """Of navigation only."""
    hide_goal: bool = False
    """Of pick-and-place only: whether the policy is told no coordinates of things and places."""
    agent_id_key: str = ""
    """The run's secret, by which the ids that agents are told are made; one is drawn if it is empty."""

    def identity(self) -> dict[str, Any]:
        """Return what of it defines a run."""
        found: dict[str, Any] = msgspec.to_builtins(self)
        del found["agent_id_key"]
        del found["hide_goal" if self.task == "vln" else "success_threshold_m"]
        return found
