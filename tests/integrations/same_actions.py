"""Policies that always do the same, and what a run of Proctor itself says about them."""

import json
from pathlib import Path

import numpy as np

from proctor.core.interfaces import Policy
from proctor.core.registry import suite_path
from proctor.exams.datasets import episode_file
from proctor.runs.evaluate import evaluate

STEPS = 12
DRIVING = [1, 1, 2, 3, 1, 1, 1, 1, 1, 1, 2, 0]
REACHING = np.random.default_rng(5).uniform(0.0, 0.1, (STEPS, 10)).astype(np.float32).tolist()


class Driving(Policy):
    def reset(self, episode_info):
        self.left = list(DRIVING)

    def act(self, observation):
        return self.left.pop(0)


class Reaching(Policy):
    def reset(self, episode_info):
        self.left = list(REACHING)

    def act(self, observation):
        return {"type": "joint_position", "qpos": self.left.pop(0)}


def short_suite(name: str, folder: Path, count: int = 2) -> Path:
    """Write the first episodes of a suite with few steps. A STOP in the first one of navigation succeeds."""
    source, file = suite_path(name), folder / f"{name}.json"
    episodes = json.loads(episode_file(source).read_text())["episodes"][:count]
    for episode in episodes:
        if name == "tabletop-v1":
            episode["sim_params"] = {**episode.get("sim_params", {}), "max_steps": STEPS}
        else:
            episode["max_steps"] = STEPS
    if name == "houses-v1":
        episodes[0]["success_threshold"] = 100.0
        folder.joinpath("scenes").symlink_to(episode_file(source).with_name("scenes"))
    file.write_text(json.dumps({"episodes": episodes}))
    return file


def own_results(file: Path):
    """Return the records of a run of Proctor, by the number of the episode."""
    policy = Driving() if file.stem == "houses-v1" else Reaching()
    return evaluate(policy, file).episodes
