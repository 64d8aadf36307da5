"""The fastest motion along a curve as the toppra library finds it: slower to compute than ours."""

from __future__ import annotations

import logging

import numpy as np
import toppra
from toppra.algorithm import TOPPRA
from toppra.constraint import JointAccelerationConstraint, JointVelocityConstraint, SecondOrderConstraint

from proctor.core.types import Array
from proctor.navigation.timing.curve import Curve
from proctor.robots.dynamics import Dynamics

SIDES = 64  # of the polygon within the circle of allowed accelerations; toppra takes straight limits only
NO_LIMIT = 1e3

# What it warns of, a start that is too fast, is told by the caller.
logging.getLogger("toppra").setLevel(logging.ERROR)


def fastest_rates(curve: Curve, dynamics: Dynamics, start_rate: float) -> tuple[Array, float]:
    """Do what `curve.fastest_rates` does."""
    if dynamics.drive == "holonomic":
        constraints, coordinates = _holonomic(curve, dynamics)
    else:
        constraints = [
            JointVelocityConstraint([dynamics.v_max, dynamics.omega_max]),
            JointAccelerationConstraint([dynamics.a_max, dynamics.alpha_max]),
        ]
        coordinates = np.column_stack([curve.knots, curve.poses[:, 2]])
    path = toppra.SplineInterpolator(curve.knots, coordinates)
    solver = TOPPRA(constraints, path, gridpoints=curve.knots, solver_wrapper="seidel")
    highest = float(np.sqrt(solver.compute_controllable_sets(0.0, 0.0)[0, 1]))
    _, rates, _ = solver.compute_parameterization(min(start_rate, highest), 0.0)
    if rates is None or not np.isfinite(rates).all():
        return np.zeros_like(curve.knots), highest
    return np.asarray(rates), highest


def _holonomic(curve: Curve, dynamics: Dynamics) -> tuple[list[object], Array]:
    """Return the limits for the coordinates way, x, y, yaw, and these."""
    angles = np.arange(SIDES) * 2 * np.pi / SIDES
    rows, bounds = np.zeros((SIDES + 2, 4)), np.full(SIDES + 2, dynamics.a_max * np.cos(np.pi / SIDES))
    rows[:SIDES, 1], rows[:SIDES, 2] = np.cos(angles), np.sin(angles)
    rows[SIDES:, 3], bounds[SIDES:] = (1.0, -1.0), dynamics.alpha_max
    constraints = [
        JointVelocityConstraint([dynamics.v_max, NO_LIMIT, NO_LIMIT, dynamics.omega_max]),
        SecondOrderConstraint(lambda q, qd, qdd: qdd, lambda q: rows, lambda q: bounds, 4),
    ]
    return constraints, np.column_stack([curve.knots, curve.poses])
