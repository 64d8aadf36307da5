"""The card of tabletop-v1 says what is in the suite."""

import math
import re
from collections import Counter
from pathlib import Path
from statistics import mean

import pytest

from proctor.core.registry import suite_path
from proctor.core.types import Pose2
from proctor.exams.datasets import load_dataset
from proctor.robots.stretch import controls_of_qpos
from proctor.robots.stretch_kinematics import hand_in_world
from proctor.suites.tabletop_exam import SEEN, UNSEEN

CARD = Path(__file__).parents[2] / "docs" / "tabletop-v1.md"
SPLITS = ("val_seen", "val_unseen")


def rows():
    """Return the card's table of numbers: name -> a cell per split."""
    table = re.search(r"\| \| val_seen \| val_unseen \|\n\|.*\n((?:\|.*\n)+)", CARD.read_text())[1]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]
    return {name: values for name, *values in cells}


def spread(values):
    digits = 0 if all(isinstance(value, int) for value in values) else 2
    return f"{mean(values):.{max(1, digits)}f} ({min(values):.{digits}f} to {max(values):.{digits}f})"


def goal_of(episode):
    location = episode.task_goal.target_location
    return "none" if location is None else location.type


def away_m(episode):
    pose = episode.robot_config.init_pose
    hand, _ = hand_in_world(Pose2(*pose.base), *controls_of_qpos(pose.joint_positions)[3:6])
    return math.dist(hand, episode.task_goal.target_object.initial_position)


def around(episode):
    """Return how many things there are that do not matter."""
    return sum(not item.static for item in episode.scene_objects) - 1 - (goal_of(episode) == "container")


def facts(split):
    episodes = [e for e in load_dataset(suite_path("tabletop-v1")).episodes if e.split == split]
    goals = Counter(map(goal_of, episodes))
    return {
        "episodes": str(len(episodes)),
        "to a container, a surface, a position": ", ".join(
            str(goals[name]) for name in ("container", "surface", "position")
        ),
        "only to be lifted": str(goals["none"]),
        "base cannot move sideways": str(sum(e.robot_config.nonholonomic for e in episodes)),
        "things that do not matter": spread([around(e) for e in episodes]),
        "height of the furniture, m": spread([2 * e.scene_objects[0].position[2] for e in episodes]),
        "hand from object at the start, m": spread([away_m(e) for e in episodes]),
        "words": spread([len(e.instruction.tokens) for e in episodes]),
        "expert's steps": spread([len(e.reference_trajectory.qpos_sequence) for e in episodes]),
    }


@pytest.mark.parametrize("column", [0, 1], ids=SPLITS)
def test_the_numbers_are_those_of_the_suite(column):
    assert {name: cells[column] for name, cells in rows().items()} == facts(SPLITS[column])


def test_the_kinds_are_those_of_the_recipe():
    for split, own in zip(SPLITS, (SEEN, UNSEEN), strict=True):
        cells = [", ".join(kinds) for kinds in (own.objects, own.furniture, own.containers)]
        assert f"| `{split}` | {' | '.join(cells)} |" in CARD.read_text()


def test_the_instructions_shown_are_of_the_suite():
    told = {e.instruction.text for e in load_dataset(suite_path("tabletop-v1")).episodes}
    quoted = " ".join(line[2:] for line in CARD.read_text().splitlines() if line.startswith("> "))
    assert len(quoted.split(" · ")) >= 5
    assert {*quoted.split(" · ")} <= told
