"""From many episodes to one number with its 95 % interval.

Results do not depend on the order of the episodes: sums are exact (fsum) and scenes are sorted.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet

import numpy as np

from proctor.exams.results import Interval

Z_95 = 1.959963984540054
"""The 97.5 % point of the normal distribution."""


def wilson(successes: float, n: int) -> Interval:
    """Return a success rate with Wilson's score interval.

    Raises:
        ValueError: There is no episode.
    """
    if n < 1:
        raise ValueError(f"expected at least one episode, found {n}")
    rate = successes / n
    spread = Z_95**2 / n
    centre = (rate + spread / 2) / (1 + spread)
    half_width = math.sqrt(spread * (rate * (1 - rate) + spread / 4)) / (1 + spread)
    # At a rate of 1 the upper bound is 1 but for rounding; at 0 the lower one is exactly 0.
    high = max(rate, min(1.0, centre + half_width))
    return Interval(rate, centre - half_width, high, n)


def clustered_bootstrap(
    values: Sequence[float], clusters: Sequence[str], *, seed: int, resamples: int = 5000
) -> Interval:
    """Return a mean with a percentile bootstrap interval that resamples whole clusters.

    Episodes of one scene resemble each other, so resampling them one by one would give too narrow
    an interval. With a single cluster there is no choice: its episodes are resampled.

    Raises:
        ValueError: There is no value, or not one cluster per value.
    """
    if not values:
        raise ValueError("expected at least one value, found none")
    members: defaultdict[str, list[float]] = defaultdict(list)
    for value, cluster in zip(values, clusters, strict=True):
        members[cluster].append(value)
    groups = [members[name] for name in sorted(members)]
    if len(groups) == 1:
        groups = [[value] for value in sorted(groups[0])]
    sums = np.array([math.fsum(group) for group in groups])
    sizes = np.array([len(group) for group in groups])
    drawn = np.random.default_rng(seed).integers(len(groups), size=(resamples, len(groups)))
    means = sums[drawn].sum(axis=1) / sizes[drawn].sum(axis=1)
    low, high = np.percentile(means, [2.5, 97.5])
    mean = math.fsum(values) / len(values)
    return Interval(mean, min(mean, float(low)), max(mean, float(high)), len(values))


def aggregate_metrics(
    rows: Sequence[Mapping[str, float]],
    scenes: Sequence[str],
    *,
    rates: AbstractSet[str],
    seed: int = 0,
) -> dict[str, Interval]:
    """Return the mean and interval of every metric that applied to at least one episode.

    Args:
        rows: Per episode, metric names and values. A metric that is missing or not finite there is
            left out of the mean; `n` says how many remained.
        scenes: Per episode, its scene.
        rates: Names of metrics that are 0 or 1: they get Wilson's interval, others the bootstrap.
        seed: For the bootstrap.
    """
    result = {}
    for name in sorted({name for row in rows for name in row}):
        pairs = [(row.get(name, math.nan), scene) for row, scene in zip(rows, scenes, strict=True)]
        values = [value for value, _ in pairs if math.isfinite(value)]
        if not values:
            continue
        if name in rates:
            result[name] = wilson(math.fsum(values), len(values))
        else:
            clusters = [scene for value, scene in pairs if math.isfinite(value)]
            result[name] = clustered_bootstrap(values, clusters, seed=seed)
    return result
