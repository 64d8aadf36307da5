"""Thinking time that costs: simulated time goes on while the agent chooses its next action."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from msgspec.structs import replace

from proctor.core.errors import UserError
from proctor.core.interfaces import Env
from proctor.core.registry import load
from proctor.exams.names import AnyExam, fitting_names
from proctor.runs.conditions import Conditions

MEASURED = "measured"
HOLD: Literal["hold"] = "hold"
STOP: Literal["stop"] = "stop"
MAX_CHARGE_S = 600.0
"""More than this is never charged for one action: simulating it takes time as well."""


class ThinkingCost(NamedTuple):
    """What the agent's thinking time costs in the world."""

    seconds: float | None
    """Charged for every action; None: as long as the agent really took."""
    keeps_command: bool
    """Whether the robot goes on with its last command meanwhile, or stands."""

    def charge(self, env: Env, policy_s: float, *, is_queued: bool = False) -> float:
        """Let the time of one action pass in a world, and return how long that was.

        An action that was decided before is free. A measured time is true, whatever the agent says of that.
        """
        if is_queued and self.seconds is not None:
            return 0.0
        charged_s = round(min(policy_s if self.seconds is None else self.seconds, MAX_CHARGE_S), 6)
        env.wait(charged_s, keep=self.keeps_command)
        return charged_s


def checked_thinking(conditions: Conditions) -> Conditions:
    """Return conditions whose thinking time is spelt in one way: equal runs have equal conditions."""
    if conditions.while_thinking not in (HOLD, STOP):
        raise UserError(
            f"--while-thinking: expected {HOLD} or {STOP}, found {conditions.while_thinking!r:.40}"
        )
    charge_latency = checked_charge(conditions.charge_latency)
    return replace(
        conditions,
        charge_latency=charge_latency,
        while_thinking=conditions.while_thinking if charge_latency else STOP,
    )


def checked_charge(text: str) -> str:
    """Return what `--charge-latency` says, in one spelling; empty if nothing is charged."""
    if text in ("", MEASURED):
        return text
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds <= MAX_CHARGE_S:
        raise UserError(
            f"--charge-latency: expected {MEASURED} or seconds from 0 to {MAX_CHARGE_S:g}, found {text!r:.40}"
        )
    return f"{seconds:.6f}".rstrip("0").rstrip(".") if seconds >= 1e-6 else ""


def thinking_cost(conditions: Conditions) -> ThinkingCost | None:
    """Return what thinking costs in a run; None where it is free."""
    charge_latency = conditions.charge_latency
    if not charge_latency:
        return None
    seconds = None if charge_latency == MEASURED else float(charge_latency)
    return ThinkingCost(seconds, conditions.while_thinking == HOLD)


def charged_cost(identity: Mapping[str, Any]) -> ThinkingCost | None:
    """Return what thinking cost in a run with this identity; None where it was free."""
    named = identity.get("conditions") or {}
    given = {name: named[name] for name in ("charge_latency", "while_thinking") if name in named}
    return thinking_cost(Conditions(**given))


def check_env_can_wait(exam: type[AnyExam], env: str) -> None:
    """Refuse an env that cannot let time pass while the agent thinks."""
    if _can_wait(env):
        return
    able = ", ".join(sorted(name for name in fitting_names(exam, "env") if _can_wait(name)))
    raise UserError(
        f"--charge-latency: the env '{env}' cannot let simulated time pass while the agent thinks; "
        f"envs that can: {able or 'none'}"
    )


def latency_notes(conditions: Conditions) -> list[str]:
    """Return what a reader of the results must know of it; nothing if thinking is free."""
    cost = thinking_cost(conditions)
    if cost is None:
        return []
    robot = "keeps its last command" if cost.keeps_command else "stands"
    amount = "as measured" if cost.seconds is None else f"{cost.seconds:g} s for every action"
    return [f"thinking time is charged, {amount}: the robot {robot} meanwhile"]


def _can_wait(env: str) -> bool:
    try:
        found: type[Env] = load("env", env)
    except UserError:  # needs something that is not installed
        return False
    return found.wait is not Env.wait
