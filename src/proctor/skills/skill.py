"""What a skill offers to the manager that runs it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from proctor.skills.states import State

Result = dict[str, Any]
"""`status` is `processing`, `succeeded` or `failed`, `message` is for people; the rest is the skill's."""


class Skill(Protocol):
    """Something a robot can do that takes many ticks of the clock."""

    name: str
    state: State
    data: dict[str, Any]
    """What the present execution has found out, for whoever wants to look at it."""

    def tick(self, **params: Any) -> Result:
        """Go on by one tick, without waiting for anything."""

    def cancel(self) -> None:
        """Stop at once; the next tick tells so."""

    def pause(self) -> None:
        """Come to rest and stay there."""

    def resume(self) -> None:
        """Go on after a pause."""

    def replan(self) -> None:
        """Find the way anew."""

    def reset(self) -> None:
        """Stop at once and forget everything."""

    def saved(self) -> dict[str, Any]:
        """Return what is needed to go on later, in another process, as JSON can hold it."""

    def restore(self, saved: Mapping[str, Any]) -> None:
        """Go on from what was saved.

        Raises:
            UserError: It is not what `saved` returns.
        """
