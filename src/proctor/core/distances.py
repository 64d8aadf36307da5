"""What distances to a goal are called wherever a person reads one."""

from __future__ import annotations

LABELS = {
    "geodesic": "path distance",
    "euclidean": "straight-line distance",
    "mixed": "path distance or straight-line distance, by episode",
}
"""By the word that results use."""
EXPLANATIONS = {
    "geodesic": "Path distance: the length of the shortest path around obstacles.",
    "euclidean": "Straight-line distance: through walls, as no map or no path is known.",
}


def distance_label(kind: str) -> str:
    """Return what people call a distance; a kind that is not known is its own name."""
    return LABELS.get(kind, f"{kind} distance")
