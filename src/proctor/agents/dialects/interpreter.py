"""Between a policy server that knows numbers only and a task that knows actions."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping as Map
from typing import Any

import msgspec
import numpy as np

from proctor.agents.dialects.mapping import Foreign, Kind, Mapping
from proctor.agents.dialects.packed_arrays import read_numbers
from proctor.agents.faults import BadFrame, WireFault
from proctor.agents.handshake import one_line
from proctor.core.actions import NOT_FINITE, QPOS_LENGTHS, WRONG_LENGTH
from proctor.core.errors import AgentFault
from proctor.core.types import Action, Array, EpisodeInfo, Observation

WHOLE = 1e-6
"""How near to a whole number an action's number must be: networks count in floats."""
POSE_AND_GRIPPER = 8


class Interpreter:
    """Puts observations into a server's words, and rows of numbers into actions.

    A reply may hold a chunk: several rows, to be done one after the other. As many of them as the mapping
    says are done before the server is asked again.

    Args:
        dialect: Whose defaults to take for what the mapping leaves out.
        mapping: The user's, if any.
    """

    def __init__(self, dialect: Foreign, mapping: Mapping | None) -> None:
        self._dialect, self._given = dialect, mapping or Mapping()
        self._mapping, self._task, self._instruction = self._given, "", ""
        self._rows: deque[Array] = deque()

    def begin(self, info: EpisodeInfo) -> None:
        """Read the instruction; forget what is left of the last episode.

        Raises:
            UserError: The mapping does not fit the task.
        """
        self._mapping = self._given.completed(self._dialect, info.task)
        self._task, self._instruction = info.task, info.instruction
        self._rows.clear()

    def payload(self, observation: Observation) -> dict[str, Any]:
        """Return an observation in the server's words.

        Raises:
            UserError: The mapping names an entry that is not there.
        """
        return self._mapping.payload(observation, self._instruction)

    def waiting(self) -> Any | None:
        """Return the next action of a chunk that has come already, or None.

        Raises:
            AgentFault: It is no action.
        """
        return self._action(self._rows.popleft()) if self._rows else None

    def first_action(self, reply: Map[str, msgspec.Raw]) -> Any:
        """Take in a reply and return the first action of it.

        Raises:
            AgentFault: There is none.
        """
        key = self._mapping.action.key
        if key not in reply:
            found = one_line(", ".join(sorted(reply)) or "nothing")
            hint = "'action.key' in the mapping says where to look"
            raise AgentFault(WireFault.WRONG_MESSAGE, f"the reply has no '{key}', only {found}; {hint}")
        try:
            numbers = read_numbers(reply[key])
        except BadFrame as error:
            raise AgentFault(error.kind, f"{key}: {error}") from None
        rows = np.atleast_2d(numbers)
        if rows.ndim > 2 or not rows.size:
            problem = f"{key}: expected one row of numbers or several, found shape {numbers.shape}"
            raise AgentFault(WRONG_LENGTH, problem)
        self._rows.extend(rows[: self._mapping.action.chunk])
        return self._action(self._rows.popleft())

    def _action(self, row: Array) -> Any:
        kind = self._mapping.action.kind or _kind_by_length(row, self._task)
        # The score of what is forbidden may be minus infinity.
        if np.isnan(row).any() or (kind != "scores" and np.isinf(row).any()):
            raise AgentFault(NOT_FINITE, f"an action has numbers that are not finite: {row.tolist()!s:.100}")
        if kind == "index":
            return _index(row)
        if kind == "scores":
            _check_length(row, len(Action), "one score for each of the four actions")
            return int(np.argmax(row))
        if kind == "joint_position":
            return {"type": "joint_position", "qpos": row.tolist()}
        _check_length(row, POSE_AND_GRIPPER, "x, y, z, qw, qx, qy, qz and the gripper's opening")
        *pose, opening = row.tolist()
        return {"type": "ee_pose_target", "ee_pose_target": pose, "gripper_action": opening}


def _kind_by_length(row: Array, task: str) -> Kind:
    if task == "vln":
        return "index"
    if len(row) in QPOS_LENGTHS:
        return "joint_position"
    if len(row) == POSE_AND_GRIPPER:
        return "ee_pose_target"
    expected = "expected 7 or 10 joint positions, or 8 numbers: a pose and the gripper's opening"
    raise AgentFault(WRONG_LENGTH, f"{expected}; found {len(row)} numbers")


def _index(row: Array) -> int | float:
    """Return the action's number; what is none is left to the task to complain of."""
    if len(row) == len(Action):
        hint = "if these are scores, set 'action.kind' in the mapping to 'scores'"
        raise AgentFault(WRONG_LENGTH, f"expected the number of an action, found 4 numbers; {hint}")
    _check_length(row, 1, "the number of an action (several actions are an array of shape (n, 1))")
    number = float(row[0])
    return round(number) if abs(number - round(number)) <= WHOLE else number


def _check_length(row: Array, length: int, what: str) -> None:
    if len(row) != length:
        raise AgentFault(WRONG_LENGTH, f"expected {what}; found {len(row)} numbers")
