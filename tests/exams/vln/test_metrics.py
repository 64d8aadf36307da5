import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.core.geometry import distance as straight_m
from proctor.core.geometry import path_length
from proctor.core.types import Action, Vector3
from proctor.exams.driving import DrivingState
from proctor.exams.dtw import IncrementalDtw
from proctor.exams.trace import Trace
from proctor.exams.vln.episode import Episode
from proctor.exams.vln.metrics import DEFINITION, METRICS, cls_score, normalised_dtw

STOP, FORWARD, LEFT = Action.STOP, Action.FORWARD, Action.LEFT
NAMES = [metric.name for metric in METRICS]
SCORES = {metric.name: metric.score for metric in METRICS}


class Corridor:
    """A distance without a map that counts how often it is asked for one."""

    def __init__(self, an_episode, *, threshold_m=1.0, detour_m=0.0):
        self.success_threshold_m = an_episode.success_threshold or threshold_m
        self.detour_m = detour_m
        self.searches = 0
        self._episode = an_episode

    def __call__(self, a, b):
        self.searches += 1
        return straight_m(a, b) + self.detour_m

    @property
    def shortest_path_m(self):
        return self(self._episode.start_position, self._episode.goal)


def point(x, y=0.0, z=0.0):
    return Vector3(float(x), float(y), float(z))


def episode(*, start=0.0, goal=4.0, reference=None, threshold=None):
    return Episode(
        start_position=point(start),
        goal_position=point(goal),
        reference_path=None if reference is None else [point(*p) for p in reference],
        success_threshold=threshold,
    )


def step(position, action=FORWARD, *, collision=False):
    return action, DrivingState(position=position, collision=collision)


def walk(*xs, stop=True):
    """Drive along the x axis and, unless told otherwise, stop at the end."""
    steps = [step(point(x)) for x in xs]
    return [*steps, step(point(xs[-1]), STOP)] if stop else steps


def trace_of(an_episode, steps):
    trace = Trace(DrivingState(position=an_episode.start_position))
    for action, state in steps:
        trace.add(action, state)
    return trace


def measure(name, an_episode, steps, **task):
    return SCORES[name](an_episode, trace_of(an_episode, steps), Corridor(an_episode, **task))


# Success, oracle success, navigation error


def test_the_definitions_have_a_name():
    assert DEFINITION == "vln-ce"


def test_success_needs_a_stop_near_the_goal():
    assert measure("success", episode(), walk(1, 2, 3.5)) == 1.0
    assert measure("success", episode(), walk(1, 2, 3.5, stop=False)) == 0.0
    assert measure("success", episode(), walk(1, 2)) == 0.0


def test_a_stop_exactly_at_the_threshold_is_no_success():
    assert measure("success", episode(), walk(3.0)) == 0.0
    assert measure("success", episode(), walk(math.nextafter(3.0, 4.0))) == 1.0


def test_success_takes_the_threshold_of_the_episode_and_else_of_the_task():
    assert measure("success", episode(threshold=3.0), walk(2)) == 1.0
    assert measure("success", episode(), walk(2), threshold_m=3.0) == 1.0


def test_success_is_judged_by_the_distance_of_the_task():
    assert measure("success", episode(), walk(3.5), detour_m=2.0) == 0.0


def test_a_stop_given_as_a_plain_or_numpy_integer_counts():
    for stop in (0, np.int64(0)):
        assert measure("success", episode(), [step(point(4), stop)]) == 1.0


def test_strict_success_is_within_20_cm_whatever_the_episode_says():
    assert measure("success_at_0.2m", episode(threshold=3.0), walk(3.81)) == 1.0
    assert measure("success_at_0.2m", episode(threshold=3.0), walk(3.79)) == 0.0
    assert measure("success_at_0.2m", episode(threshold=0.01), walk(3.9)) == 1.0
    assert measure("success_at_0.2m", episode(), walk(3.9, stop=False)) == 0.0


def test_navigation_error_is_the_distance_left_in_three_dimensions():
    assert measure("navigation_error", episode(), [step(point(4, 3, 4))]) == 5.0
    assert measure("navigation_error", episode(), walk(1), detour_m=2.0) == 5.0


def test_oracle_success_needs_no_stop_and_remembers_a_visit():
    assert measure("oracle_success", episode(), walk(3.5, 9, stop=False)) == 1.0
    assert measure("oracle_success", episode(), walk(1, 2, stop=False)) == 0.0


def test_oracle_success_counts_the_start_and_is_strict_at_the_threshold():
    assert measure("oracle_success", episode(start=3.5), walk(-9)) == 1.0
    assert measure("oracle_success", episode(start=3.0), walk(-9)) == 0.0


def test_oracle_success_is_judged_by_the_distance_of_the_task():
    assert measure("oracle_success", episode(), walk(3.5), detour_m=2.0) == 0.0
    assert measure("oracle_success", episode(), walk(3.5), detour_m=0.5) == 0.0
    assert measure("oracle_success", episode(), walk(3.5), detour_m=0.25) == 1.0


# SPL, path length


def test_spl_of_the_shortest_path_is_one_and_of_twice_its_length_a_half():
    assert measure("spl", episode(), walk(2, 4)) == 1.0
    assert measure("spl", episode(), walk(-2, 4)) == 0.5
    assert measure("spl", episode(), walk(2)) == 0.0


def test_spl_of_a_stop_short_of_the_goal_is_not_above_one():
    assert measure("spl", episode(), walk(3.5)) == 1.0


def test_spl_measures_the_shortest_path_by_the_distance_of_the_task():
    value = measure("spl", episode(), walk(-4, 4), threshold_m=3.0, detour_m=2.0)
    assert value == pytest.approx(6 / 12)


def test_spl_where_start_is_goal_is_one_for_an_agent_that_stays_and_else_zero():
    there = episode(start=4.0)
    assert measure("spl", there, [step(point(4), LEFT), step(point(4), STOP)]) == 1.0
    assert measure("spl", there, walk(4.5, 4)) == 0.0
    assert measure("spl", there, walk(9)) == 0.0
    assert measure("spl", there, []) == 0.0


def test_path_length_sums_straight_lines_in_three_dimensions_from_the_start():
    assert measure("path_length", episode(), [step(point(3, 4)), step(point(3, 4, 2))]) == 7.0
    assert path_length(np.array([[0, 0, 0], [3, 4, 0], [3, 4, 2]])) == 7.0
    assert path_length(np.array([[1.0, 2.0, 3.0]])) == 0.0


# DTW, nDTW, SDTW


def manhattan(path, reference):
    """Shortest-path distances on a grid graph with unit edges."""
    return np.abs(np.array(path)[:, None] - np.array(reference)[None]).sum(axis=2).astype(float)


def incremental_dtw(costs):
    dtw = IncrementalDtw(costs.shape[1])
    for row in costs:
        dtw.add(row)
    return dtw.distance


def plain_dtw(costs):
    table = np.full((costs.shape[0] + 1, costs.shape[1] + 1), np.inf)
    table[0, 0] = 0.0
    for i, row in enumerate(costs, 1):
        for j, cost in enumerate(row, 1):
            table[i, j] = cost + min(table[i - 1, j], table[i, j - 1], table[i - 1, j - 1])
    return table[-1, -1]


coordinate = st.floats(-50, 50)
paths = st.lists(st.tuples(coordinate, coordinate, coordinate), min_size=1, max_size=12)


def test_dtw_and_ndtw_give_the_reference_values_of_their_authors():
    costs = manhattan([(0, 0), (1, 0), (2, 0), (3, 0)], [(0, 0), (1, 0), (2, 1), (3, 2)])
    assert incremental_dtw(costs) == 3.0
    value = normalised_dtw(incremental_dtw(costs), reference_points=4, threshold_m=3.0)
    assert value == pytest.approx(0.77880078307140488, abs=1e-15)


def test_the_ndtw_metric_gives_the_reference_value_of_its_authors():
    reference = [(0, 0), (1, 0), (2, 1), (3, 2)]
    value = measure("ndtw", episode(reference=reference, threshold=3.0), walk(1, 2, 3))
    assert value == pytest.approx(0.77880078307140488, abs=1e-15)


@given(paths, paths)
def test_incremental_dtw_is_the_plain_dtw(path, reference):
    costs = np.linalg.norm(np.array(path)[:, None] - np.array(reference)[None], axis=2)
    assert incremental_dtw(costs) == pytest.approx(plain_dtw(costs), rel=1e-12, abs=1e-10)


@given(paths, paths)
def test_the_ndtw_metric_is_the_formula_over_the_plain_dtw_at_every_step(path, reference):
    an_episode = Episode(
        start_position=path[0], reference_path=[point(*p) for p in reference], success_threshold=3.0
    )
    for taken in range(1, len(path) + 1):
        seen = [p for i, p in enumerate(path[:taken]) if i == 0 or p != path[i - 1]]
        costs = np.linalg.norm(np.array(seen)[:, None] - np.array(reference)[None], axis=2)
        expected = math.exp(-plain_dtw(costs) / (len(reference) * 3.0))
        value = measure("ndtw", an_episode, [step(point(*p)) for p in path[1:taken]])
        assert value == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_ndtw_is_one_on_the_reference_itself():
    an_episode = episode(reference=[(0,), (0.1,), (0.3,), (4,)])
    assert measure("ndtw", an_episode, walk(0.1, 0.3, 4)) == 1.0


def test_turning_on_the_spot_does_not_change_ndtw():
    an_episode = episode(reference=[(0, 1), (4, 1)])
    turning = [step(point(0), LEFT)] * 5 + [step(point(4)), step(point(4), LEFT)]
    assert measure("ndtw", an_episode, turning) == measure("ndtw", an_episode, [step(point(4))])


def test_coming_back_to_a_position_does_change_ndtw():
    an_episode = episode(reference=[(0, 1), (4, 1)])
    there_and_back = [step(point(4)), step(point(0)), step(point(4))]
    assert measure("ndtw", an_episode, there_and_back) < measure("ndtw", an_episode, there_and_back[:1])


def test_ndtw_of_an_agent_that_never_moves_is_not_one():
    # DTW 0 + 2 + 4, three points, 1 m.
    value = measure("ndtw", episode(reference=[(0,), (2,), (4,)]), [step(point(0), STOP)])
    assert value == pytest.approx(math.exp(-2))


def test_ndtw_takes_a_reference_of_one_point():
    assert measure("ndtw", episode(reference=[(0,)]), walk(1)) == pytest.approx(math.exp(-1))


def test_ndtw_of_a_path_very_far_away_is_zero():
    assert measure("ndtw", episode(reference=[(0,), (4,)]), walk(1e6)) == 0.0


def test_sdtw_is_ndtw_for_a_success_and_else_zero():
    an_episode = episode(reference=[(0, 1), (4, 1)])
    arrived = walk(4)
    assert measure("sdtw", an_episode, arrived) == measure("ndtw", an_episode, arrived) > 0.0
    assert measure("sdtw", an_episode, walk(4, stop=False)) == 0.0
    assert measure("sdtw", an_episode, walk(9)) == 0.0


# CLS


def graph_cls(prediction, reference):
    return cls_score(
        manhattan(prediction, reference).min(axis=0),
        travelled_m=float(len(prediction) - 1),
        reference_m=float(len(reference) - 1),
        threshold_m=3.0,
    )


CLS_LONG = [(0, 0), (1, 0), (1, 1), (2, 1), (2, 2), (3, 2)]


def test_cls_gives_the_reference_values_of_its_authors():
    # Their doctest hands over (reference, prediction) where the signature says (prediction, reference):
    # the path called `reference` there is the prediction that the values belong to.
    assert graph_cls(CLS_LONG, CLS_LONG) == pytest.approx(1.0, abs=1e-15)
    other = [(0, 0), (0, 1), (1, 1), (2, 1), (3, 1), (3, 2)]
    assert graph_cls(CLS_LONG, other) == pytest.approx(0.81994915125863865, abs=1e-15)
    short = [(0, 1), (1, 1), (2, 1), (3, 1)]
    assert graph_cls(CLS_LONG, short) == pytest.approx(0.44197196102702557, abs=1e-15)


def test_cls_is_not_symmetric():
    short = [(0, 1), (1, 1), (2, 1), (3, 1)]
    assert graph_cls(short, CLS_LONG) != pytest.approx(graph_cls(CLS_LONG, short), abs=1e-3)


@given(paths, paths)
def test_the_cls_metric_is_the_formula_over_whole_paths(path, reference):
    an_episode = Episode(
        start_position=path[0], reference_path=[point(*p) for p in reference], success_threshold=3.0
    )
    value = measure("cls", an_episode, [step(point(*p)) for p in path[1:]])
    covered = [math.exp(-min(math.dist(r, p) for p in path) / 3.0) for r in reference]
    coverage = sum(covered) / len(covered)
    expected = coverage * sum(math.dist(a, b) for a, b in pairwise(reference))
    travelled = sum(math.dist(a, b) for a, b in pairwise(path))
    whole = expected + abs(expected - travelled)
    by_hand = coverage * expected / whole if whole else coverage
    assert value == pytest.approx(by_hand, rel=1e-9, abs=1e-12)


def test_cls_is_one_on_the_reference_itself_and_less_for_a_detour():
    an_episode = episode(reference=[(0,), (2,), (4,)])
    assert measure("cls", an_episode, walk(2, 4)) == 1.0
    assert measure("cls", an_episode, walk(-2, 4)) < 0.8


@pytest.mark.parametrize("reference", [[(4,)], [(4,), (4,), (4,)]])
def test_cls_of_a_reference_without_length_is_the_coverage_if_the_agent_stays_and_else_zero(reference):
    assert measure("cls", episode(start=4, reference=reference), [step(point(4), STOP)]) == 1.0
    stays_apart = measure("cls", episode(start=3, reference=reference), [step(point(3), STOP)])
    assert stays_apart == pytest.approx(math.exp(-1))
    assert measure("cls", episode(start=3, reference=reference), walk(4)) == 0.0


def test_cls_of_a_path_very_far_away_is_zero():
    an_episode = episode(start=1e4, reference=[(0,), (4,)])
    assert measure("cls", an_episode, []) == 0.0


# Counts


def test_steps_count_every_action_with_turns_and_stop():
    assert measure("steps", episode(), [step(point(0), LEFT), *walk(1, 2)]) == 4.0


def test_collisions_count_steps_that_collided_and_the_rate_is_their_share():
    bumps = [step(point(1), collision=True), step(point(1), collision=True), *walk(2)]
    assert measure("collisions", episode(), bumps) == 2.0
    assert measure("collision_rate", episode(), bumps) == 0.5


def test_the_collision_rate_of_no_steps_is_zero():
    assert measure("collision_rate", episode(), []) == 0.0


# All of them


@pytest.mark.parametrize("name", ["ndtw", "sdtw", "cls"])
@pytest.mark.parametrize("steps", [[], walk(2, 4)], ids=["no steps", "success"])
def test_without_a_reference_path_its_metrics_do_not_apply(name, steps):
    assert math.isnan(measure(name, episode(), steps))


def test_before_the_first_step_every_metric_describes_the_start():
    an_episode = episode(reference=[(0,), (4,)])
    assert {name: measure(name, an_episode, []) for name in NAMES} == {
        "success": 0.0,
        "success_at_0.2m": 0.0,
        "spl": 0.0,
        "navigation_error": 4.0,
        "oracle_success": 0.0,
        "ndtw": pytest.approx(math.exp(-2)),
        "sdtw": 0.0,
        "cls": pytest.approx(0.5 * (1 + math.exp(-4)) * 0.5),
        "path_length": 0.0,
        "steps": 0.0,
        "collisions": 0.0,
        "collision_rate": 0.0,
    }


@pytest.mark.parametrize("name", NAMES)
def test_a_value_does_not_depend_on_what_was_measured_before(name):
    reference = [(0, 1), (2, 1), (4, 1)]
    cases = [
        (episode(reference=reference), walk(1, 2, 4)),
        (episode(reference=reference, threshold=5.0), walk(1, 2, 4)),
        (episode(reference=[*reference, (9, 9)]), walk(1, 2, 4)),
        (episode(reference=reference), [step(point(1), collision=True), *walk(3, 4)]),
        (episode(start=9, goal=20, reference=reference), walk(8, 7, stop=False)),
    ]
    values = [measure(name, *case) for case in cases]
    assert [measure(name, *case) for case in reversed(cases)] == values[::-1]
    assert len(set(values)) > 1


@given(path=paths, stops=st.booleans(), reference=paths)
def test_metrics_are_finite_and_in_range_on_any_path(path, stops, reference):
    an_episode = Episode(
        start_position=path[0],
        goal_position=path[-1],
        reference_path=[point(*p) for p in reference],
    )
    steps = [step(point(*p)) for p in path[1:]]
    if stops:
        steps.append(step(point(*path[-1]), STOP))
    for name in NAMES:
        value = measure(name, an_episode, steps)
        assert isinstance(value, float)
        assert math.isfinite(value)
        unbounded = name in ("navigation_error", "path_length", "steps", "collisions")
        assert 0.0 <= value <= (math.inf if unbounded else 1.0)


@given(path=paths, goal=st.tuples(coordinate, coordinate, coordinate))
def test_a_success_is_an_oracle_success(path, goal):
    an_episode = Episode(start_position=path[0], goal_position=goal)
    steps = [step(point(*p)) for p in path[1:]] + [step(point(*path[-1]), STOP)]
    task = {"threshold_m": 30.0, "detour_m": 5.0}
    oracle = measure("oracle_success", an_episode, steps, **task)
    assert measure("success", an_episode, steps, **task) <= oracle


@pytest.mark.parametrize("name", [name for name in NAMES if name != "navigation_error"])
def test_no_metric_searches_a_path_while_the_agent_is_far_from_the_goal(name):
    far = episode(goal=100, reference=[(0,), (100,)])
    distance = Corridor(far)
    SCORES[name](far, trace_of(far, walk(*range(50), stop=False)), distance)
    assert distance.searches == 0


def test_oracle_success_searches_no_path_again_once_the_goal_was_reached_or_on_the_spot():
    def searches(*xs):
        distance = Corridor(episode(), detour_m=0.8)
        reached = SCORES["oracle_success"](episode(), trace_of(episode(), walk(*xs)), distance)
        return distance.searches, reached

    assert searches(3.5, 3.5, 3.5) == (1, 0.0)
    assert searches(3.5, 3.5, 3.9, 3.95, 4.0) == (2, 1.0)


def test_sdtw_does_not_compute_ndtw_again(monkeypatch):
    an_episode, steps = episode(reference=[(0, 1), (4, 1), (5, 5)]), walk(1, 2, 4)
    value = measure("ndtw", an_episode, steps)
    monkeypatch.setattr(IncrementalDtw, "add", None)
    assert measure("sdtw", an_episode, steps) == value
    with pytest.raises(TypeError):
        measure("sdtw", an_episode, walk(1, 4))
