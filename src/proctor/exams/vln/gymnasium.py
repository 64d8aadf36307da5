"""Any VLN environment as a Gymnasium one, registered as `proctor/VLN-v0`.

`gymnasium.make("proctor.worlds.gymnasium:proctor/VLN-v0", dataset="houses-v1")` needs no other import.
"""

from __future__ import annotations

from typing import Any

from proctor.core.types import Action, Info
from proctor.exams.gymnasium_env import ExamGym, spaces
from proctor.exams.path_distance import PathDistance
from proctor.exams.vln.episode import Episode
from proctor.exams.vln.exam import VlnExam


class ProctorGym(ExamGym):
    """Navigation. STOP terminates, as does a collision if the world ends on it; the step limit truncates.

    The reward `progress` goes by the path distance on the scene's map, else by the straight line; `success`
    is 1.0 for a STOP within the episode's threshold.
    """

    env_id = "proctor/VLN-v0"
    exam_type = VlnExam
    _distance: tuple[Episode, PathDistance] | None = None

    def new_action_space(self) -> spaces.Discrete:
        """Return the four actions."""
        return spaces.Discrete(len(Action))

    def has_ended(self, action: Any, info: Info, *, is_done: bool) -> tuple[bool, bool]:
        """Tell a STOP from the limit."""
        is_cut = is_done and int(action) != Action.STOP and info["step"] >= self._episode.step_limit
        return is_done and not is_cut, is_cut

    def is_solved(self, action: Any, info: Info) -> bool:
        """Tell whether it stopped near enough to the goal."""
        near_m = self._distance_of(self._episode).success_threshold_m
        return int(action) == Action.STOP and self.left_m(self._episode, info) < near_m

    def left_m(self, episode: Episode, info: Info) -> float:
        """Return the distance from the robot to the goal."""
        return self._distance_of(episode)(info["position"], episode.goal)

    def _distance_of(self, episode: Episode) -> PathDistance:
        """Return how an episode is judged; its map is drawn once."""
        if self._distance is None or self._distance[0] is not episode:
            self._distance = episode, self.exam.distance(episode)
        return self._distance[1]


ENV_ID, make_vln, register = ProctorGym.env_id, ProctorGym.make, ProctorGym.register
register()
