"""What can be found wrong with episodes by looking at them alone, without a map."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping
from statistics import median
from typing import TypeVar

import numpy as np

from proctor.core.geometry import distance
from proctor.core.types import Vector3
from proctor.exams.findings import Findings
from proctor.exams.vln.episode import Episode

T = TypeVar("T")
Episodes = Mapping[int, Episode]
"""By index in their file; broken ones are missing."""

LEVEL_M = 0.3
"""More up or down is a change of floor level, for a wheeled robot."""
HIGH_M = 1.0
SPARSE_M = 1.0
"""A wider gap in a reference path spoils nDTW."""
FAR_M = 1.0
NEAR_M = 0.1


def check_episodes(episodes: Episodes, findings: Findings, *, shortest_m: Callable[[Episode], float]) -> None:
    """Write down all that is odd.

    Args:
        episodes: The episodes.
        findings: Where to.
        shortest_m: Returns how far it is from an episode's start to its goal, as well as it is known.
    """
    _check_goals(episodes, findings, shortest_m)
    _check_up_axis(episodes, findings)
    _check_levels(episodes, findings)
    _check_references(episodes, findings)
    _check_instructions(episodes, findings)
    _check_routes(episodes, findings)


def _check_goals(episodes: Episodes, findings: Findings, shortest_m: Callable[[Episode], float]) -> None:
    goals = {index: e.goal_position for index, e in episodes.items()}
    without = [index for index, goal in goals.items() if goal is None]
    findings.add("warning", "no-goal", "the goal is withheld: it cannot be scored", episodes=without)
    inside = []
    for index, e in episodes.items():
        if e.goal_position is not None:
            threshold_m = e.success_threshold or NEAR_M
            # No path is shorter than the straight line, so most episodes need no path search.
            if distance(e.start_position, e.goal_position) < threshold_m and shortest_m(e) < threshold_m:
                inside.append(index)
    findings.add("warning", "start-at-goal", "a STOP at once may be a success", episodes=inside)


def _check_up_axis(episodes: Episodes, findings: Findings) -> None:
    """Complain if goals are typically far above or below their starts, and hardly ever beside them."""
    ways = [
        (abs(e.goal_position.y - e.start_position.y), abs(e.goal_position.z - e.start_position.z))
        for e in episodes.values()
        if e.goal_position is not None
    ]
    if ways and median(up for _, up in ways) > HIGH_M and median(aside for aside, _ in ways) < LEVEL_M:
        text = "goals are high above or deep below their starts, but not beside them: is another axis up?"
        findings.add("warning", "up-axis", text, episodes=episodes)


def _check_levels(episodes: Episodes, findings: Findings) -> None:
    changing = []
    for index, e in episodes.items():
        waypoints = e.origin.waypoints if e.origin is not None else None
        points = [e.start_position, *(e.reference_path or []), *(waypoints or [])]
        heights = [point.z for point in points] + ([e.goal_position.z] if e.goal_position else [])
        if max(heights) - min(heights) > LEVEL_M:
            changing.append(index)
    text = f"the way goes more than {LEVEL_M} m up or down: a wheeled robot cannot do it"
    findings.add("warning", "level-change", text, episodes=changing)


def _check_references(episodes: Episodes, findings: Findings) -> None:
    sparse, astray, elsewhere = [], [], []
    for index, e in episodes.items():
        if e.reference_path:
            if e.goal_position and distance(e.reference_path[-1], e.goal_position) > FAR_M:
                astray.append(index)
            if _widest_gap_m(e.reference_path) > SPARSE_M:
                sparse.append(index)
        if e.origin and e.origin.waypoints and e.goal_position:
            ends = (e.origin.waypoints[0], e.start_position), (e.origin.waypoints[-1], e.goal_position)
            if any(distance(a, b) > NEAR_M for a, b in ends):
                elsewhere.append(index)
    text = "the reference path has gaps of more than 1 m: even a perfect agent would have a low nDTW"
    findings.add("warning", "sparse-reference", text, episodes=sparse)
    findings.add(
        "warning", "reference-end", "the dense path ends more than 1 m from the goal", episodes=astray
    )
    text = "the waypoints (`reference_path`) do not run from the start to the goal"
    findings.add("warning", "waypoints", text, episodes=elsewhere)


def _check_instructions(episodes: Episodes, findings: Findings) -> None:
    empty = [index for index, e in episodes.items() if not says_something(e.instruction)]
    findings.add("error", "empty-instruction", "nothing is said", episodes=empty, remedy="dropped")
    said = {
        i: e for i, e in episodes.items() if says_something(e.instruction) and e.goal_position is not None
    }
    same_words = groups(said, lambda e: (e.scene_id, " ".join(e.instruction.lower().split())))
    equal = []
    for indices in same_words:
        if len({said[index].goal_position for index in indices}) > 1:
            equal += indices
    text = "the same words for different goals in one scene"
    findings.add("warning", "equal-instruction", text, episodes=sorted(equal))


def says_something(text: str) -> bool:
    """Tell whether there is anything to see: blanks of no width are no blanks to Python."""
    return any(character.isprintable() and not character.isspace() for character in text)


def _check_routes(episodes: Episodes, findings: Findings) -> None:
    twins = groups(
        episodes, lambda e: (e.scene_id, e.start_position, e.start_rotation, e.goal_position, e.instruction)
    )
    repeated = sorted(index for indices in twins for index in indices[1:])
    text = "the same scene, start, goal and words as an episode before: it counts twice"
    findings.add("warning", "duplicate", text, episodes=repeated)
    routes = {(e.scene_id, e.start_position, e.goal_position) for e in episodes.values()}
    shared = groups(episodes, lambda e: (e.scene_id, e.start_position, e.goal_position))
    text = f"{len(episodes)} episodes on {len(routes)} routes: some differ only in words or heading"
    findings.add("note", "shared-route", text, episodes=sorted(i for group in shared for i in group))


def groups(episodes: Mapping[int, T], key: Callable[[T], Hashable]) -> list[list[int]]:
    """Return the indices of episodes with the same key, where there are two or more of them."""
    found: dict[Hashable, list[int]] = defaultdict(list)
    for index, episode in episodes.items():
        found[key(episode)].append(index)
    return [indices for indices in found.values() if len(indices) > 1]


def _widest_gap_m(path: list[Vector3]) -> float:
    points = np.array([(p.x, p.y, p.z) for p in path])
    return float(np.linalg.norm(np.diff(points, axis=0), axis=1).max()) if len(points) > 1 else -math.inf
