"""Records of pick-and-place episodes, for tests: the example of the design documents, with changes."""

import copy
import json
from pathlib import Path

from proctor.exams.datasets import load_dataset

EXAMPLE = Path(__file__).parents[2] / "data" / "stretch_pick_place_001.json"
"""As the design documents print it."""
TABLE = {"name": "table", "position": [0.5, 0.0, 0.4], "static": True}
CUP = {"name": "cup_red", "position": [0.5, 0.0, 0.8], "graspable": True}
BOWL = {"name": "bowl_blue", "position": [0.7, 0.2, 0.8]}


def record(**changes):
    """Return the example with changes at places such as `task_goal__target_location__type`; ... removes."""
    result = json.loads(EXAMPLE.read_text())
    for place, value in changes.items():
        *keys, last = [int(key) if key.isdigit() else key for key in place.split("__")]
        part = result
        for key in keys:
            part = part[key]
        if value is ...:
            del part[last]
        else:
            part[last] = copy.deepcopy(value)
    return result


def write(folder, *records, **top):
    path = folder / "episodes.json"
    path.write_text(json.dumps({"episodes": list(records), **top}))
    return path


def load(folder, *records, **top):
    return load_dataset(write(folder, *records, **top))
