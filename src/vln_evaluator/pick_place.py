"""All that the design document of pick-and-place names."""

from proctor.exams.pick_place.episode import PickAndPlaceEpisode
from proctor.exams.pick_place.metrics import (
    PickPlaceCompletionRate,
    PickPlaceSuccess,
    PickPlaceTrajectorySimilarity,
)
from proctor.robots.stretch import StretchRobotConfig
from proctor.robots.stretch_sensors import StretchSensorSuite
from proctor.runs.evaluator import PickPlaceEvaluator, evaluate_pick_place

__all__ = [
    "PickAndPlaceEpisode",
    "PickPlaceCompletionRate",
    "PickPlaceEvaluator",
    "PickPlaceSuccess",
    "PickPlaceTrajectorySimilarity",
    "StretchRobotConfig",
    "StretchSensorSuite",
    "evaluate_pick_place",
]
