"""Rates along curves: what the timing of paths is made of."""

import numpy as np
import pytest
from legs import arc_leg, winding_leg

from proctor.navigation.timing.curve import Curve, fastest_rates
from proctor.robots.dynamics import Dynamics


def test_an_arc_of_few_points_bends_evenly():
    curve = Curve.of_leg(arc_leg(0.5, 3.0, points=25))
    assert curve.length == pytest.approx(1.5)
    for bends in curve.bends(sideways=True):
        np.testing.assert_allclose(bends[:, 2:4], 2.0, rtol=2e-3)
        np.testing.assert_allclose(bends[:, [1, 4]], 0.0, atol=2e-3)


def test_more_knots_are_the_same_curve():
    curve = Curve.of_leg(winding_leg(np.random.default_rng(0), 2.0, 0.5))
    finer = curve.refined(0.004)
    assert np.diff(finer.knots).max() <= 0.004 + 1e-12
    at = np.linspace(0.0, curve.length, 333)
    for before, after in zip(curve.at(at), finer.at(at), strict=True):
        np.testing.assert_allclose(before, after, atol=1e-12)


def test_a_bend_that_is_hardly_resolved_does_not_stop_the_robot():
    # The highest rate in one of its sharp bends would leave nothing but to creep out of it, for days.
    curve = Curve.of_leg(winding_leg(np.random.default_rng(41), 10.0, 1.5))
    rates, _ = fastest_rates(curve, Dynamics(), 0.0)
    assert curve.timed(rates).duration_s < 60


def test_a_start_is_slowed_to_the_highest():
    curve = Curve.of_leg(arc_leg(0.5, 3.0)).in_steps()
    rates, highest = fastest_rates(curve, Dynamics(), 2.0)
    assert highest == pytest.approx(0.5, rel=1e-3)
    assert rates[0] == highest
    assert rates[-1] == 0.0
