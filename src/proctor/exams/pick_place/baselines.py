"""Policies of pick-and-place that do not look."""

from __future__ import annotations

import numpy as np

from proctor.core.interfaces import Policy
from proctor.core.types import EpisodeInfo, Observation
from proctor.exams.pick_place.actions import JointPosition
from proctor.robots.stretch import CONTROLS, qpos_of_controls

NEAR_BASE = ((-0.2, 0.2), (-0.2, 0.2), (-0.5, 0.5))
"""How far chance sends a base from its start: x, y in metres and heading."""
LEG_STEPS = 10  # how many steps an arm that moves by chance keeps its target


class HoldPolicy(Policy):
    """Keeps all joints where they are at the start: what an exam gives for nothing."""

    def __init__(self) -> None:
        self._target: JointPosition | None = None

    def reset(self, episode_info: EpisodeInfo) -> None:
        """Forget where the joints were."""
        self._target = None

    def act(self, observation: Observation) -> JointPosition:
        """Stay."""
        if self._target is None:
            self._target = joints_as_they_are(observation)
        return self._target


def random_target(rng: np.random.Generator) -> JointPosition:
    """Return joint positions within the limits."""
    limits = [*NEAR_BASE, *((control.low, control.high) for control in CONTROLS[len(NEAR_BASE) :])]
    return JointPosition(qpos_of_controls(tuple(float(rng.uniform(low, high)) for low, high in limits)))


def joints_as_they_are(observation: Observation) -> JointPosition:
    """Return the joint positions of an observation."""
    return JointPosition(tuple(float(joint) for joint in observation["qpos"]))
