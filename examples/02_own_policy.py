"""A policy of your own: go ahead where there is room, turn where there is none.

Run it from the repository: .venv/bin/python examples/02_own_policy.py
"""

from pathlib import Path

from proctor.core.interfaces import Policy
from proctor.core.types import Action, EpisodeInfo, Observation
from proctor.worlds.mujoco.wheeled.env import VLNEnv
from vln_evaluator.evaluators import VLNEvaluator

DATASET = Path(__file__).parent.parent / "datasets" / "sample_r2r.json"


class Wanderer(Policy):
    """Drives until something is nearer than 1.3 m, turns left, and stops after 40 actions.

    The camera is 1.25 m above the floor and looks straight ahead: low things that are nearer are out of view.
    """

    def reset(self, episode_info: EpisodeInfo) -> None:
        """Begin to count again."""
        self.actions_left = min(40, episode_info.max_steps) - 1

    def act(self, observation: Observation) -> Action:
        """Look at the lower half of the depth image."""
        self.actions_left -= 1
        if self.actions_left < 0:
            return Action.STOP
        depth_mm = observation["depth"]
        below_mm = depth_mm[len(depth_mm) // 2 :]
        nearest_mm = below_mm[below_mm > 0].min(initial=60_000)
        return Action.FORWARD if nearest_mm > 1300 else Action.LEFT


if __name__ == "__main__":
    with VLNEvaluator(env=VLNEnv(width=160, height=120), policy=Wanderer()) as evaluator:
        results = evaluator.evaluate_dataset(DATASET)
    for name, interval in results.summary.metrics.items():
        print(f"{name:<18} {interval.mean:8.3f}   95 % {interval.low:8.3f} to {interval.high:8.3f}")
