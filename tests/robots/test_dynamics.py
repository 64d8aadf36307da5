"""The limits of a base, as they are given."""

import math

import pytest

from proctor.core.errors import UserError
from proctor.robots.dynamics import Dynamics


def test_limits_come_as_a_dict():
    given = {"v_max": 1.5, "omega_max": 2, "a_max": 0.8, "alpha_max": 1.0, "drive": "holonomic"}
    assert Dynamics.of(given) == Dynamics(
        v_max=1.5, omega_max=2.0, a_max=0.8, alpha_max=1.0, drive="holonomic"
    )
    assert Dynamics.of({}) == Dynamics(
        v_max=1.0, omega_max=1.0, a_max=0.5, alpha_max=0.5, drive="differential"
    )
    own = Dynamics(v_max=0.3)
    assert Dynamics.of(own) is own


def test_it_stops_within_its_stopping_distance():
    assert Dynamics().stopping_distance_m(1.0) == 1.0
    assert Dynamics(a_max=2.0).stopping_distance_m(2.0) == 1.0
    assert Dynamics().stopping_distance_m(0.0) == 0.0


@pytest.mark.parametrize(
    ("limits", "problem"),
    [
        ({"vmax": 1.0}, "unknown limit 'vmax'; did you mean 'v_max'"),
        ({"jerk": 1.0}, "unknown limit 'jerk'; the limits are v_max, omega_max, a_max, alpha_max, drive"),
        ({"v_max": 0.0}, r"> 0.*v_max"),
        ({"a_max": -0.5}, r"> 0.*a_max"),
        ({"a_max": math.nan}, "a_max"),
        ({"alpha_max": math.inf}, "alpha_max"),
        ({"omega_max": "1"}, "omega_max"),
        ({"omega_max": None}, "omega_max"),
        ({"drive": "tracked"}, "drive"),
    ],
)
def test_limits_that_are_none_are_refused(limits, problem):
    with pytest.raises(UserError, match=problem):
        Dynamics.of(limits)
