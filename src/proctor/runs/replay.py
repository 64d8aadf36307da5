"""The policy `replay`, which repeats what was written down before."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, ClassVar

from proctor.core.errors import AgentFault, UserError
from proctor.core.interfaces import Policy
from proctor.core.types import EpisodeInfo, Observation
from proctor.exams.names import AnyExam, exam_named
from proctor.runs.folder import MANIFEST, RunFolder

END = object()


class ReplayPolicy(Policy):
    """Repeats the actions of a finished run, or the episode's own `reference_actions`, then idles.

    In navigation idling is STOP; in pick-and-place, where nothing means stop, it repeats the last action.
    """

    privileged: ClassVar[bool] = True

    def __init__(self, run: str | None = None) -> None:
        self._run = run
        self._recorded = {} if run is None else _actions_of_run(Path(str(run)))
        self._actions: Iterator[Any] = iter(())
        self._exam: AnyExam = exam_named("")()
        self._last: Any = None

    def reset(self, episode_info: EpisodeInfo) -> None:
        """Look up the episode's actions."""
        name = episode_info.episode_id
        actions: Iterable[Any] | None
        if self._run is None:
            actions = getattr(episode_info.episode, "reference_actions", None)
            missing = f"episode '{name}' has no actions to repeat; give a run: --policy-option run=DIR"
        else:
            actions = self._recorded.get(name)
            missing = f"the run {self._run} has no episode '{name}'"
        if actions is None:
            raise AgentFault("nothing_to_replay", missing)
        self._actions = iter(actions)
        self._exam, self._last = exam_named(episode_info.task)(), None

    def act(self, observation: Observation) -> Any:
        """Repeat the next action, as it was written down."""
        action = next(self._actions, END)
        self._last = self._exam.idle_action(observation, self._last) if action is END else action
        return self._last


def _actions_of_run(folder: Path) -> dict[str, list[Any]]:
    if not (folder / MANIFEST).is_file():
        raise UserError(f"{folder} is not the directory of a run: it has no {MANIFEST}")
    run = RunFolder.open(folder)
    if not run.episodes:
        raise UserError(f"{folder} has no finished episode")
    return {result.episode_id: result.actions for result in run.episodes}
