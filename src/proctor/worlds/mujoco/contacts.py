"""Collision groups: which geoms the cameras draw, the scanners see and other geoms can touch."""

from __future__ import annotations

import enum

# Contacts: the robot minds solid things, loose things mind both those and the floor.
SOLID, FLOOR = 1, 2


class Group(enum.IntEnum):
    """Geom groups: who sees what. MuJoCo draws the groups 0 to 2."""

    DRAWN = 0
    DRAWN_AND_SCANNED = 1
    SCANNED = 3
    UNSEEN = 4
