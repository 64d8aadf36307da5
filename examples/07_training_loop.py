"""Evaluate a policy while it is being trained, after every epoch.

The exam is made here: "Go 2.50 m ahead and stop." The policy learns by imitation how many steps a metre has.
Run it from the repository: .venv/bin/python examples/07_training_loop.py
"""

import re
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import proctor
from proctor.core.interfaces import Policy
from proctor.core.types import Action, EpisodeInfo, Vector3
from proctor.exams.datasets import save_dataset
from proctor.exams.vln.episode import Episode
from proctor.scenes.scene_config import Part, SceneConfig, SceneObject, save_scene

LEARNING_RATE = 0.002


class Walker(Policy):
    """Drives as many steps as it believes the metres of its instruction to have, and stops."""

    def __init__(self) -> None:
        self.steps_per_metre = 1.0

    def reset(self, episode_info: EpisodeInfo) -> None:
        """Read the instruction."""
        self.left = round(self.steps_per_metre * metres_of(episode_info.instruction))

    def act(self, observation: dict[str, Any]) -> Action:
        """Go on, or stop."""
        self.left -= 1
        return Action.FORWARD if self.left >= 0 else Action.STOP

    def learn(self, instruction: str, steps: int) -> None:
        """Take one step of gradient descent towards what a demonstration did."""
        metres = metres_of(instruction)
        self.steps_per_metre -= LEARNING_RATE * (self.steps_per_metre * metres - steps) * metres


def metres_of(instruction: str) -> float:
    """Return the number in an instruction."""
    return float(re.findall(r"[\d.]+\d", instruction)[0])


def write_exam(folder: Path, split: str, counts: list[int]) -> list[Episode]:
    """Write a hall, and an episode for each number of steps."""
    wall = SceneObject(
        name="wall", parts=[Part(shape="box", size=Vector3(0.1, 3, 2), translate=Vector3(6, 0, 1))]
    )
    save_scene(SceneConfig(scene_name="hall", objects=[wall]), folder / f"{split}_hall.json")
    episodes = [
        Episode(
            episode_id=f"{split}_{number}",
            scene_id=f"{split}_hall",
            scene_config_path=str(folder / f"{split}_hall.json"),
            instruction=f"Go {0.25 * count:.2f} m ahead and stop.",
            goal_position=Vector3(0.25 * count, 0.0, 0.0),
            success_threshold=0.3,
            max_steps=40,
        )
        for number, count in enumerate(counts)
    ]
    save_dataset(episodes, folder / f"{split}.json")
    return episodes


rng = np.random.default_rng(0)
with tempfile.TemporaryDirectory() as name:
    counts = rng.integers(4, 17, 40).tolist()
    training = write_exam(Path(name), "train", counts)
    write_exam(Path(name), "val", rng.integers(4, 17, 20).tolist())
    policy = Walker()
    for epoch in range(5):
        for episode, count in zip(training, counts, strict=True) if epoch else ():
            policy.learn(episode.instruction, count)
        results = proctor.evaluate(
            policy, f"{name}/val.json", episodes=10, env_options={"width": 64, "height": 48}
        )
        spl = results.summary.metrics["spl"].mean
        print(f"epoch {epoch}: {policy.steps_per_metre:.2f} steps per metre, ", end="")
        print(f"success {results.success_rate:.0%}, SPL {spl:.2f}")
    proctor.close()  # before the scenes are gone
