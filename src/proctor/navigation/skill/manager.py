"""Runs skills by name, one tick at a time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from proctor.core.errors import UnknownName, UserError
from proctor.navigation.skill.navigate_to import NavigateTo
from proctor.navigation.skill.states import OVER, TRANSITIONS, Event, Result, SkillState


class SkillManager:
    """The skills of one robot.

    `execute_skill` is one tick: it never waits, and is called again, with the same arguments, until the
    status is no longer `processing`. All methods raise UnknownName if there is no such skill.
    """

    def __init__(self, skills: Iterable[NavigateTo]) -> None:
        self._skills = {skill.name: skill for skill in skills}

    def execute_skill(self, skill_name: str, **params: Any) -> Result:
        """Begin a skill, or continue it by one tick."""
        return self._skill(skill_name).tick(**params)

    def get_skill_state(self, skill_name: str) -> str:
        """Return the name of the state that a skill is in."""
        return self._skill(skill_name).state.value

    def set_skill_state(self, skill_name: str, state: str) -> None:
        """Put a skill into another state.

        `IDLE` stops the robot and forgets the goal, `FAILED` cancels it, `PATH_PLANNING` plans the
        path anew. All other states are the skill's own to enter: it would be in them without what
        belongs to them. Raises UserError if the state cannot be set from outside, or not now.
        """
        skill = self._skill(skill_name)
        if state not in SkillState.__members__:
            raise UnknownName("state", str(state), SkillState.__members__)
        new = SkillState(state)
        if new == SkillState.IDLE:
            skill.reset()
        elif new == SkillState.FAILED and skill.state not in OVER:
            skill.cancel()
        elif new == SkillState.PATH_PLANNING and (skill.state, Event.REPLAN) in TRANSITIONS:
            skill.replan()
        elif new != skill.state:
            raise UserError(
                f"'{skill_name}' cannot be put from {skill.state} into {new}; IDLE stops it and forgets the "
                "goal, FAILED cancels what is under way, PATH_PLANNING finds the way anew"
            )

    def get_skill_data(self, skill_name: str, key: str, default: Any = None) -> Any:
        """Return something that a skill has found out, such as `path`, or the default if it has not."""
        return self._skill(skill_name).data.get(key, default)

    def set_skill_data(self, skill_name: str, key: str, value: Any) -> None:
        """Keep something with a skill until its result has been returned."""
        self._skill(skill_name).data[key] = value

    def cancel(self, skill_name: str) -> None:
        """Stop the robot at once; the next tick returns the result, with the reason `cancelled`."""
        self._skill(skill_name).cancel()

    def pause(self, skill_name: str) -> None:
        """Let the robot come to rest. The time that a skill may take stands still, too."""
        self._skill(skill_name).pause()

    def resume(self, skill_name: str) -> None:
        """Go on after a pause."""
        self._skill(skill_name).resume()

    def save(self) -> dict[str, Any]:
        """Return what all skills are at, as JSON can hold it."""
        return {name: skill.saved() for name, skill in self._skills.items()}

    def restore(self, saved: Mapping[str, Any]) -> None:
        """Let skills go on from what `save` returned, in this or another process."""
        if not isinstance(saved, Mapping):
            raise UserError(f"expected what `save` returned, found {type(saved).__name__}")
        for name, part in saved.items():
            self._skill(name).restore(part)

    def _skill(self, name: str) -> NavigateTo:
        if name not in self._skills:
            raise UnknownName("skill", str(name), self._skills)
        return self._skills[name]
