"""What a client of the skill server asks for: skills with parameters that are JSON."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import msgspec

from proctor.core.errors import UnknownName, UserError
from proctor.skills.goal import asked_for

MOST_SKILLS, MOST_PARAMS, LONGEST_KEY, LONGEST_VALUE = 100, 50, 60, 10_000


class SkillCall(NamedTuple):
    """One skill and what it is told."""

    skill: str
    params: dict[str, Any]


def _check_navigate_to(params: dict[str, Any]) -> None:
    asked = asked_for(params)
    if isinstance(asked, str):
        raise UserError(f"navigate_to: {asked}")


SKILLS: Mapping[str, Callable[[dict[str, Any]], None]] = {"navigate_to": _check_navigate_to}
"""The skills there are, and what raises UserError if their parameters make no sense."""


def read_request(request: Any) -> list[SkillCall]:
    """Read a plan_msgs/SkillRequest.

    Raises:
        UserError: There is no such skill or parameter, or a value is not what it should be; says what would
            be right.
    """
    count = len(request.skill_list)
    if not 0 < count <= MOST_SKILLS:
        raise UserError(f"skill_list: expected 1 to {MOST_SKILLS} skills, found {count}")
    return [_read_call(call, f"skill_list[{index}]") for index, call in enumerate(request.skill_list)]


def _read_call(call: Any, place: str) -> SkillCall:
    if call.skill not in SKILLS:
        raise UnknownName("skill", _shown(call.skill), SKILLS)
    if len(call.params) > MOST_PARAMS:
        raise UserError(
            f"{place}.params: expected at most {MOST_PARAMS} parameters, found {len(call.params)}"
        )
    params: dict[str, Any] = {}
    for param in call.params:
        if len(param.key) > LONGEST_KEY:
            raise UserError(f"{place}: there is no parameter '{_shown(param.key)}'")
        if param.key in params:
            raise UserError(f"{place}: the parameter '{param.key}' is given twice")
        params[param.key] = _read_value(param.value, f"{place}: the parameter '{param.key}'")
    try:
        SKILLS[call.skill](params)
    except UserError as error:
        raise UserError(f"{place}: {error}") from None
    except RecursionError:  # to show a value that could just be read
        raise UserError(f"{place}: a value has too many brackets in brackets") from None
    return SkillCall(call.skill, params)


def _read_value(text: str, what: str) -> Any:
    if len(text) > LONGEST_VALUE:
        raise UserError(f"{what} has {len(text)} characters, expected at most {LONGEST_VALUE}")
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:  # the latter for brackets in brackets in brackets
        raise UserError(
            f"{what} is not JSON: '{_shown(text)}' ({error}); expected a value such as [10, 20, 0] or 60.0"
        ) from None


def _shown(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}..."
