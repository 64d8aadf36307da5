"""Synthetic files in the formats of R2R-CE and RxR-CE, with the properties that the real ones have.

Y up; quaternions xyzw and about y only; v1-3 headings are multiples of 30 degrees, those of v1-2 are not;
forward is (-sin, -cos) over (x, z); LEFT is +15 degrees (RxR: 30); the gt starts at the start, has one more
location than FORWARD actions, and ends with STOP near the goal; tokens are padded to 200.
"""

from __future__ import annotations

import copy
import gzip
import json
import math
from pathlib import Path

import numpy as np

STEP_M = 0.25
WORDS = [
    "<pad>",
    "<unk>",
    *[
        "walk",
        "past",
        "the",
        "table",
        "turn",
        "left",
        "right",
        "at",
        "stairs",
        "stop",
        "near",
        "sofa",
        "door",
        "kitchen",
    ],
]
SCENES = [f"scene{index:02}Ab" for index in range(11)]


def xyzw(heading_deg):
    half = math.radians(heading_deg) / 2
    return [0.0, math.sin(half), 0.0, math.cos(half)]


def drive(start, heading_deg, actions, turn_deg, climb_m=0.0):
    """Return the locations of a drive: the start and where each FORWARD led."""
    x, y, z = start
    locations = [[x, y, z]]
    moves = max(actions.count(1), 1)
    for action in actions:
        heading_deg += turn_deg * ((action == 2) - (action == 3))
        if action == 1:
            heading = math.radians(heading_deg)
            x, y, z = x - STEP_M * math.sin(heading), y + climb_m / moves, z - STEP_M * math.cos(heading)
            locations.append([x, y, z])
    return locations


def route(rng, trajectory, *, turn_deg, version, rxr):
    """Return what the episodes of one trajectory share, and their gt."""
    grid_deg = float(30 * rng.integers(12))
    heading_deg = grid_deg if version == "v1-3" else float(rng.uniform(0, 360))
    start = [float(rng.uniform(-10, 10)), float(rng.choice([0.1, 3.2])), float(rng.uniform(-10, 10))]
    actions = [int(rng.choice([2, 3]))] * int(rng.integers(1, 7)) + [1] * 4
    actions += [int(a) for a in rng.choice([1, 1, 1, 1, 2, 3], size=int(rng.integers(20, 90)))]
    actions += [4, 5, 0] if rxr else [0]
    climbs = rng.uniform() < 0.27
    locations = drive(start, heading_deg, actions, turn_deg, climb_m=2.5 if climbs else 0.0)
    goal = [locations[-1][0] + 0.1, locations[-1][1], locations[-1][2] - 0.1]
    middle = locations[len(locations) // 2]
    shared = {
        "trajectory_id": str(trajectory) if rxr else trajectory,
        "scene_id": f"mp3d/{SCENES[trajectory % 11]}/{SCENES[trajectory % 11]}.glb",
        "start_position": start,
        "start_rotation": xyzw(heading_deg),
        "info": {"geodesic_distance": STEP_M * actions.count(1)},
        "goals": [{"position": goal, "radius": 3.0}],
        "reference_path": [start, locations[len(locations) // 4], middle, goal],
    }
    gt = {"locations": locations, "actions": actions, "forward_steps": actions.count(1)}
    return shared, gt


def r2r(episodes=9, *, seed=0, version="v1-3"):
    """Return an R2R-CE document and its gt: three instructions per trajectory."""
    rng = np.random.default_rng(seed)
    records, gts = [], {}
    for index in range(episodes):
        if index % 3 == 0:
            shared, gt = route(rng, index // 3 + 1, turn_deg=15, version=version, rxr=False)
        text = " ".join(rng.choice(WORDS[2:], size=26)) + f" {index}."
        tokens = [int(t) for t in rng.integers(2, len(WORDS), size=27)] + [0] * 173
        instruction = {"instruction_text": text, "instruction_tokens": tokens}
        records.append({"episode_id": index + 1, **copy.deepcopy(shared), "instruction": instruction})
        gts[str(index + 1)] = copy.deepcopy(gt)
    vocabulary = {
        "word_list": WORDS,
        "word2idx_dict": {word: index for index, word in enumerate(WORDS)},
        "itos": WORDS,
        "num_vocab": len(WORDS),
        "UNK_INDEX": 1,
        "PAD_INDEX": 0,
    }
    return {"episodes": records, "instruction_vocab": vocabulary}, gts


def rxr(episodes=8, *, seed=0):
    """Return an RxR-CE document (guide) and its gt: ids are text, turns are 30 degrees."""
    rng = np.random.default_rng(seed)
    records, gts = [], {}
    for index in range(episodes):
        shared, gt = route(rng, index + 1, turn_deg=30, version="v1-3", rxr=True)
        language = ("en-US", "en-IN", "hi-IN", "te-IN")[index % 4]
        text = "सोफ़े के पास रुकें।" if language == "hi-IN" else f"You are facing a wall. Turn around, {index}."
        instruction = {
            "instruction_id": str(9900 + 10 * (episodes - index)),
            "instruction_text": text,
            "language": language,
            "annotator_id": "44",
            "edit_distance": 0.2,
            "timed_instruction": [{"end_time": 1.2, "start_time": 0.3, "word": "You"}],
            "instruction_tokens": ["You", "are"],
        }
        records.append({"episode_id": str(index + 1), **shared, "instruction": instruction})
        gts[str(index + 1)] = gt
    return {"episodes": records}, gts


def without_goals(document):
    """Return a document as a test split is: nothing that gives the goal away."""
    secret = ("goals", "info", "reference_path")
    records = [{k: v for k, v in e.items() if k not in secret} for e in document["episodes"]]
    return {**document, "episodes": records}


def write(path: Path, document) -> Path:
    """Write a document, packed if its name says so."""
    path.parent.mkdir(parents=True, exist_ok=True)
    raw = json.dumps(document).encode()
    path.write_bytes(gzip.compress(raw, 6) if path.suffix == ".gz" else raw)
    return path


def write_split(folder: Path, document, gt=None, *, split="val_unseen", role="") -> Path:
    """Write `{split}/{split}[_role].json.gz` and its gt, as the real datasets lie on the disk."""
    name = f"{split}_{role}" if role else split
    if gt is not None:
        write(folder / split / f"{name}_gt.json.gz", gt)
    return write(folder / split / f"{name}.json.gz", document)
