"""All that the design document of pick-and-place names."""

from proctor.episodes.pick_place import PickAndPlaceEpisode
from proctor.evaluation.evaluator import PickPlaceEvaluator, evaluate_pick_place
from proctor.metrics.manipulation import (
    PickPlaceCompletionRate,
    PickPlaceSuccess,
    PickPlaceTrajectorySimilarity,
)
from proctor.robots.stretch import StretchRobotConfig
from proctor.robots.stretch_sensors import StretchSensorSuite

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
