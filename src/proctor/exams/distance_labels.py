"""What distances to a goal are called wherever a person reads one."""

from __future__ import annotations

from typing import NamedTuple

LABELS = {
    "geodesic": "path distance",
    "euclidean": "straight-line distance",
    "mixed": "path distance where the scene has a map, else straight-line distance",
}
"""By the word that results use. The path is the shortest one around obstacles."""


class GoalDistance(NamedTuple):
    """How far from its goal an episode ended."""

    metres: float
    label: str
    """By which distance, as people say it."""

    def __str__(self) -> str:
        return f"{self.metres:.1f} m from the goal ({self.label})"


def distance_label(kind: str) -> str:
    """Return what people call a distance; a kind that is not known is its own name."""
    return LABELS.get(kind, f"{kind} distance")
