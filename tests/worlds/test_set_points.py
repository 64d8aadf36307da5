"""Set points reach every target, within the drives' speeds and accelerations."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proctor.robots.stretch import CONTROLS
from proctor.worlds.mujoco.tabletop.set_points import SetPoints

DT_S = 0.01
SPEEDS = np.array([control.speed for control in CONTROLS])
ACCELERATIONS = np.array([control.acceleration for control in CONTROLS])
ranges = st.tuples(*(st.floats(control.low, control.high) for control in CONTROLS))


def path(start, *targets, steps=600, nonholonomic=False):
    points = SetPoints(np.array(start, float), nonholonomic=nonholonomic)
    walked = [points.position]
    for target in targets:
        walked += [points.move(np.array(target, float), DT_S) for _ in range(steps)]
    return np.array(walked)


@settings(max_examples=15)
@given(ranges, ranges, ranges)
def test_every_target_is_reached_within_the_limits(start, middle, end):
    # The first target is given up half way, at full speed.
    walked = np.concatenate([path(start, middle, steps=37)[:-1], path_on(start, middle, end)])
    velocity = np.diff(walked, axis=0) / DT_S
    speed = np.abs(velocity)
    speed[:, 0] = speed[:, 1] = np.hypot(velocity[:, 0], velocity[:, 1])
    assert (speed <= SPEEDS + 1e-9).all()
    change = np.diff(velocity, axis=0)
    change[:, 0] = change[:, 1] = np.hypot(change[:, 0], change[:, 1])
    assert (np.abs(change) <= ACCELERATIONS * DT_S + 1e-9).all()
    assert walked[-1] == pytest.approx(end, abs=1e-6)


def path_on(start, middle, end):
    points = SetPoints(np.array(start, float), nonholonomic=False)
    for _ in range(37):
        points.move(np.array(middle, float), DT_S)
    return np.array([points.position] + [points.move(np.array(end, float), DT_S) for _ in range(800)])


@settings(max_examples=15)
@given(ranges, ranges)
def test_nothing_overshoots(start, end):
    walked = path(start, end, steps=800)
    slack = ACCELERATIONS * DT_S**2  # what a step more or less makes
    low, high = np.minimum(start, end) - slack, np.maximum(start, end) + slack
    assert ((walked >= low) & (walked <= high)).all()


def test_a_nonholonomic_base_does_not_move_sideways():
    start = [0, 0, math.radians(30), 0.5, 0, 0, 0]
    walked = path(start, [0.3, 0.4, math.radians(30), 0.5, 0, 0, 0], nonholonomic=True)
    ahead = np.array([math.cos(start[2]), math.sin(start[2])])
    aside = walked[:, :2] @ [-ahead[1], ahead[0]]
    assert np.abs(aside).max() < 1e-12
    assert walked[-1, :2] @ ahead == pytest.approx(np.array([0.3, 0.4]) @ ahead, abs=1e-6)
