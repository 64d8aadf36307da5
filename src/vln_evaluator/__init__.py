"""Proctor's VLN evaluator under the name that the design documents use."""

from proctor.core.results import EpisodeResult, Results
from proctor.evaluation.evaluator import VLNEvaluator, evaluate_vln

__all__ = ["EpisodeResult", "Results", "VLNEvaluator", "evaluate_vln"]
