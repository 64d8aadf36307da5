"""Near-shortest paths on a grid: a search over cells, then the string is pulled taut."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from proctor.core.types import Array
from proctor.navigation.free_space import Mask
from proctor.navigation.line_of_sight import line_is_free


class AnyAnglePlanner:
    """The default planner."""

    def __init__(self, free: Mask, *, reach: int) -> None: ...

    def plan(
        self,
        free: Mask,
        start: Array,
        goal: Array,
        *,
        timeout_s: float,
        seed: int,
        cancelled: Callable[[], bool] | None,
    ) -> Array | None:
        """See `PlannerBackend`."""
        if line_is_free(free, start[0], start[1], goal[0], goal[1]):
            return np.stack([start, goal])
        raise NotImplementedError
