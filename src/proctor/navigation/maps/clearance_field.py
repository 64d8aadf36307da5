"""How much room there is at every place of a map."""

from __future__ import annotations

from typing import NamedTuple

from proctor.core.types import Array


class ClearanceField(NamedTuple):
    """A map's distances to the nearest obstacle. Compiled functions take it as it is."""

    cells: Array
    """Metres from each cell's centre to the border of the nearest occupied cell, negative inside; rows
    along y, columns along x."""
    resolution_m: float
    origin_x: float
    """The map's lower left corner, which is a corner of cell [0, 0]."""
    origin_y: float

    def covers(self, x: float, y: float) -> bool:
        """Tell whether a place lies on the map."""
        rows, columns = self.cells.shape
        column, row = (x - self.origin_x) / self.resolution_m, (y - self.origin_y) / self.resolution_m
        return bool(0 <= column < columns and 0 <= row < rows)
