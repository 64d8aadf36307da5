"""One step of an agent at the other end of a wire: observation out, arrays made of it, action back.

RGB-D at 640x480 as the embedded world renders it, on loopback; see `wire_pairs.py` for who talks to whom.
"""

import contextlib

import numpy as np

from benchmarks.rows import Row
from benchmarks.wire_pairs import Pair
from proctor.core.registry import suite_path
from proctor.core.types import Action, Observation
from proctor.exams.datasets import load_dataset
from proctor.worlds.mujoco.wheeled.env import VLNEnv

HOUSES, LOOKS, TURNS_PER_LOOK = 3, 4, 6
WARM_UP, TRIES = 2, 8
JSON_BUDGET_S = 25e-3
"""What JSON with PNGs may cost more than msgpack."""


def bench() -> list[Row]:
    observations = rendered()
    ours, openpi = np.median(side_by_side("msgpack", "openpi", observations, rounds=100, starts=4), axis=0)
    fast, lists = np.median(side_by_side("msgpack", "list", observations, rounds=6), axis=0)
    return [
        Row("RGB-D to an agent and back, msgpack (vs openpi)", ours, openpi, 0.8),
        Row("RGB-D to an agent and back, msgpack (vs JSON lists)", fast, lists, 0.1),
        Row("JSON with PNGs minus msgpack (vs its budget)", json_extra_s(observations), JSON_BUDGET_S, 1.0),
    ]


def json_extra_s(observations: list[Observation]) -> float:
    """Return by how much a step takes longer with JSON and PNGs.

    This is a time, not a ratio, and a busy machine can only add to it: of a few tries with the same
    observation the quickest counts.
    """
    times_s = side_by_side("msgpack", "png", observations, rounds=TRIES * len(observations))
    quickest_s = times_s.reshape(TRIES, len(observations), 2).min(axis=0)
    fast, pictures = np.median(quickest_s, axis=0)
    return pictures - fast


def rendered() -> list[Observation]:
    """Look around in some houses."""
    episodes = load_dataset(suite_path("houses-v1")).episodes
    houses = list({episode.scene_config_path: episode for episode in episodes}.values())[:HOUSES]
    env, observations = VLNEnv(), []
    for house in houses:
        observation = env.reset(house)
        for _ in range(LOOKS):
            observations.append({name: observation[name] for name in ("rgb", "depth")})
            for _ in range(TURNS_PER_LOOK):
                observation, *_ = env.step(Action.LEFT)
    env.close()
    return observations


def side_by_side(a: str, b: str, observations: list[Observation], *, rounds: int, starts: int = 1):
    """Return the times of a step of two pairs that take turns, in changing order: one row per round.

    They may be started anew a few times: where a process comes to lie is a matter of luck, too.
    """
    times_s = []
    for _ in range(starts):
        with contextlib.ExitStack() as stack:
            pairs = [stack.enter_context(contextlib.closing(Pair(kind, observations))) for kind in (a, b)]
            for index in range(-WARM_UP, rounds):
                first = index % 2
                step_s = {which: pairs[which].step_s(index) for which in (first, 1 - first)}
                if index >= 0:
                    times_s.append((step_s[0], step_s[1]))
    return np.array(times_s)
