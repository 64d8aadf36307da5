"""All that the design document of pick-and-place names."""

from proctor.exams.pick_place.documented_metrics import (
    PickPlaceCompletionRate,
    PickPlaceSuccess,
    PickPlaceTrajectorySimilarity,
)
from proctor.exams.pick_place.episode import PickAndPlaceEpisode
from proctor.robots.stretch import StretchRobotConfig, StretchSensorSuite
from vln_evaluator.evaluators import PickPlaceEvaluator, evaluate_pick_place

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
