"""Policies of navigation that do not look: the exam's lower bounds."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from proctor.core.errors import UserError
from proctor.core.interfaces import Policy
from proctor.core.types import STEP_M, TURN_RAD, Action, EpisodeInfo, Observation
from proctor.exams.baselines import whole_number
from proctor.instructions.clauses import Clause, Enter, Forward, GoTo, Stay, Turn
from proctor.instructions.phrasebook import read

LEG_M = 3.0  # how far it goes where no distance is given
TURNS_DEG = {"left": 90, "right": -90, "around": 180}
SHARE_OF_TURN = {"slightly": 0.4, "sharply": 1.5}
KEYWORDS = re.compile(r"\bleft\b|\bright\b|左|右", re.IGNORECASE)


class ForwardPolicy(Policy):
    """Goes straight ahead for some steps, then stops. 37 steps, 9.25 m, are the usual baseline's."""

    def __init__(self, steps: int = 37) -> None:
        self._steps = whole_number("steps", steps)
        self._taken = 0

    def reset(self, episode_info: EpisodeInfo) -> None:
        """Begin to count again."""
        self._taken = 0

    def act(self, observation: Observation) -> Action:
        """Go on, or stop after enough steps."""
        self._taken += 1
        return Action.FORWARD if self._taken <= self._steps else Action.STOP


class BlindPolicy(Policy):
    """Turns and drives as told and stops at the end.

    Text that the reader does not know is searched for left and right, in English and Chinese.
    """

    def __init__(self) -> None:
        self._plan: Iterator[Action] = iter(())

    def reset(self, episode_info: EpisodeInfo) -> None:
        """Read the instruction and plan all actions."""
        text = episode_info.instruction
        try:
            self._plan = iter(actions_of(read(text, episode_info.language)))
        except UserError:
            self._plan = iter(actions_of(_turns_in(text)))

    def act(self, observation: Observation) -> Action:
        """Do the next action of the plan."""
        return next(self._plan, Action.STOP)


def actions_of(clauses: list[Clause]) -> list[Action]:
    """Return the actions of somebody who does what is said with closed eyes.

    A turn ends a leg. A leg is as long as is said, else 3 m.
    """
    actions: list[Action] = []
    leg_m, is_said = 0.0, False
    for clause in clauses:
        if isinstance(clause, Forward):
            leg_m, is_said = (leg_m if is_said else 0.0) + clause.distance_m, True
        elif not is_said and not isinstance(clause, Turn | Stay):
            leg_m = 2 * LEG_M if isinstance(clause, GoTo) else max(leg_m, LEG_M)
        turn_deg = _turn_deg(clause)
        if turn_deg:
            actions += _drive(leg_m) + _turn(turn_deg)
            leg_m, is_said = 0.0, False
    return [*actions, *_drive(leg_m), Action.STOP]


def _turn_deg(clause: Clause) -> float:
    """Return how far to turn; left is positive."""
    if isinstance(clause, Turn):
        *manner, side = clause.direction.split()
        return TURNS_DEG[side] * (SHARE_OF_TURN[manner[0]] if manner else 1.0)
    return TURNS_DEG.get(clause.side, 0) if isinstance(clause, Enter) else 0


def _drive(distance_m: float) -> list[Action]:
    return [Action.FORWARD] * round(distance_m / STEP_M)


def _turn(turn_deg: float) -> list[Action]:
    count = round(abs(math.radians(turn_deg)) / TURN_RAD)
    return [Action.LEFT if turn_deg > 0 else Action.RIGHT] * count


def _turns_in(text: str) -> list[Clause]:
    """Return a leg, and one more after every left and right in a text."""
    clauses: list[Clause] = [Forward(round(LEG_M))]
    for word in KEYWORDS.findall(text)[:20]:
        turn = Turn("left") if word.lower() in ("left", "左") else Turn("right")
        clauses += [turn, Forward(round(LEG_M))]
    return clauses
