"""Proctor's VLN evaluator under the name that the design documents use."""

from o3de_sim.proctors_python import require_proctors_python

require_proctors_python()  # a script in O3DE's Editor may follow the documents, too

from proctor.exams.results import EpisodeResult, Results  # noqa: E402
from vln_evaluator.evaluators import VLNEvaluator, evaluate_vln  # noqa: E402

__all__ = ["EpisodeResult", "Results", "VLNEvaluator", "evaluate_vln"]
