"""Evaluate a policy from Python: the mock world needs nothing but this package.

Run it from the repository: .venv/bin/python examples/01_evaluate_in_python.py
"""

from pathlib import Path

from vln_evaluator import VLNEvaluator
from vln_evaluator.env import MockEnv
from vln_evaluator.policy import MockPolicy

DATASET = Path(__file__).parent.parent / "datasets" / "sample_r2r.json"

with VLNEvaluator(env=MockEnv(), policy=MockPolicy()) as evaluator:
    results = evaluator.evaluate_dataset(DATASET)

print(f"Success rate: {results.success_rate:.2%}")
for episode in results.episodes:
    print(f"{episode.episode_id}: {episode.failure_reason or 'success'} after {episode.steps} steps")
