import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.core.geometry import distance, path_length
from proctor.core.registry import BUILT_IN, load
from proctor.core.types import Action, Vector3
from proctor.exams.dtw import IncrementalDtw
from proctor.exams.vln.episode import Episode
from proctor.exams.vln.metrics import (
    DEFINITION,
    Cls,
    CollisionRate,
    Collisions,
    NavigationError,
    Ndtw,
    OracleSuccess,
    PathLength,
    Sdtw,
    Spl,
    Steps,
    StrictSuccess,
    Success,
    cls_score,
    ndtw,
    spl,
)

STOP, FORWARD, LEFT = Action.STOP, Action.FORWARD, Action.LEFT
ALL = [load("metric", name) for name in BUILT_IN["metric"]]


class Corridor:
    """A task without a map that counts how often it is asked for a distance."""

    def __init__(self, *, threshold_m=1.0, detour_m=0.0):
        self.threshold_m = threshold_m
        self.detour_m = detour_m
        self.searches = 0

    def distance_m(self, a, b):
        self.searches += 1
        return distance(a, b) + self.detour_m

    def shortest_path_m(self, episode):
        return self.distance_m(episode.start_position, episode.goal)

    def success_threshold_m(self, episode):
        return episode.success_threshold or self.threshold_m


def point(x, y=0.0, z=0.0):
    return Vector3(float(x), float(y), float(z))


def episode(*, start=0.0, goal=4.0, reference=None, threshold=None):
    return Episode(
        start_position=point(start),
        goal_position=point(goal),
        reference_path=None if reference is None else [point(*p) for p in reference],
        success_threshold=threshold,
    )


def state(position, action=FORWARD, *, collision=False):
    return {"position": position, "action": action, "collision": collision}


def walk(*xs, stop=True):
    """Drive along the x axis and, unless told otherwise, stop at the end."""
    states = [state(point(x)) for x in xs]
    return [*states, state(point(xs[-1]), STOP)] if stop else states


def measure(metric_class, an_episode, states, task=None):
    metric = metric_class()
    metric.reset(an_episode, task or Corridor())
    for a_state in states:
        metric.update(a_state)
    return metric.get_metric()


# Success, oracle success, navigation error


def test_the_definitions_have_a_name():
    assert DEFINITION == "vln-ce"


def test_success_needs_a_stop_near_the_goal():
    assert measure(Success, episode(), walk(1, 2, 3.5)) == 1.0
    assert measure(Success, episode(), walk(1, 2, 3.5, stop=False)) == 0.0
    assert measure(Success, episode(), walk(1, 2)) == 0.0


def test_a_stop_exactly_at_the_threshold_is_no_success():
    assert measure(Success, episode(), walk(3.0)) == 0.0
    assert measure(Success, episode(), walk(math.nextafter(3.0, 4.0))) == 1.0


def test_success_takes_the_threshold_of_the_episode_and_else_of_the_task():
    assert measure(Success, episode(threshold=3.0), walk(2)) == 1.0
    assert measure(Success, episode(), walk(2), Corridor(threshold_m=3.0)) == 1.0


def test_success_is_judged_by_the_distance_of_the_task():
    assert measure(Success, episode(), walk(3.5), Corridor(detour_m=2.0)) == 0.0


def test_a_stop_given_as_a_plain_or_numpy_integer_counts():
    for stop in (0, np.int64(0)):
        assert measure(Success, episode(), [state(point(4), stop)]) == 1.0


def test_strict_success_is_within_20_cm_whatever_the_episode_says():
    assert measure(StrictSuccess, episode(threshold=3.0), walk(3.81)) == 1.0
    assert measure(StrictSuccess, episode(threshold=3.0), walk(3.79)) == 0.0
    assert measure(StrictSuccess, episode(threshold=0.01), walk(3.9)) == 1.0
    assert measure(StrictSuccess, episode(), walk(3.9, stop=False)) == 0.0


def test_navigation_error_is_the_distance_left_in_three_dimensions():
    assert measure(NavigationError, episode(), [state(point(4, 3, 4))]) == 5.0
    assert measure(NavigationError, episode(), walk(1), Corridor(detour_m=2.0)) == 5.0


def test_oracle_success_needs_no_stop_and_remembers_a_visit():
    assert measure(OracleSuccess, episode(), walk(3.5, 9, stop=False)) == 1.0
    assert measure(OracleSuccess, episode(), walk(1, 2, stop=False)) == 0.0


def test_oracle_success_counts_the_start_and_is_strict_at_the_threshold():
    assert measure(OracleSuccess, episode(start=3.5), walk(-9)) == 1.0
    assert measure(OracleSuccess, episode(start=3.0), walk(-9)) == 0.0


def test_oracle_success_is_judged_by_the_distance_of_the_task():
    assert measure(OracleSuccess, episode(), walk(3.5), Corridor(detour_m=2.0)) == 0.0
    assert measure(OracleSuccess, episode(), walk(3.5), Corridor(detour_m=0.5)) == 0.0
    assert measure(OracleSuccess, episode(), walk(3.5), Corridor(detour_m=0.25)) == 1.0


# SPL, path length


def test_spl_of_the_shortest_path_is_one_and_of_twice_its_length_a_half():
    assert measure(Spl, episode(), walk(2, 4)) == 1.0
    assert measure(Spl, episode(), walk(-2, 4)) == 0.5
    assert measure(Spl, episode(), walk(2)) == 0.0


def test_spl_of_a_stop_short_of_the_goal_is_not_above_one():
    assert measure(Spl, episode(), walk(3.5)) == 1.0


def test_spl_measures_the_shortest_path_by_the_distance_of_the_task():
    task = Corridor(threshold_m=3.0, detour_m=2.0)
    assert measure(Spl, episode(), walk(-4, 4), task) == pytest.approx(6 / 12)


def test_spl_where_start_is_goal_is_one_for_an_agent_that_stays_and_else_zero():
    there = episode(start=4.0)
    assert measure(Spl, there, [state(point(4), LEFT), state(point(4), STOP)]) == 1.0
    assert measure(Spl, there, walk(4.5, 4)) == 0.0
    assert measure(Spl, there, walk(9)) == 0.0
    assert spl(success=True, shortest_m=0.0, travelled_m=0.0) == 1.0
    assert spl(success=False, shortest_m=0.0, travelled_m=0.0) == 0.0


def test_path_length_sums_straight_lines_in_three_dimensions_from_the_start():
    assert measure(PathLength, episode(), [state(point(3, 4)), state(point(3, 4, 2))]) == 7.0
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
    value = ndtw(incremental_dtw(costs), reference_points=4, threshold_m=3.0)
    assert value == pytest.approx(0.77880078307140488, abs=1e-15)


def test_the_ndtw_metric_gives_the_reference_value_of_its_authors():
    reference = [(0, 0), (1, 0), (2, 1), (3, 2)]
    value = measure(Ndtw, episode(reference=reference, threshold=3.0), walk(1, 2, 3))
    assert value == pytest.approx(0.77880078307140488, abs=1e-15)


@given(paths, paths)
def test_incremental_dtw_is_the_plain_dtw(path, reference):
    costs = np.linalg.norm(np.array(path)[:, None] - np.array(reference)[None], axis=2)
    assert incremental_dtw(costs) == pytest.approx(plain_dtw(costs), rel=1e-12, abs=1e-10)


@given(paths, paths)
def test_the_ndtw_metric_is_the_formula_over_the_plain_dtw_at_every_step(path, reference):
    metric = Ndtw()
    an_episode = Episode(
        start_position=path[0], reference_path=[point(*p) for p in reference], success_threshold=3.0
    )
    metric.reset(an_episode, Corridor())
    for taken in range(1, len(path) + 1):
        if taken > 1:
            metric.update(state(point(*path[taken - 1])))
        seen = [p for i, p in enumerate(path[:taken]) if i == 0 or p != path[i - 1]]
        costs = np.linalg.norm(np.array(seen)[:, None] - np.array(reference)[None], axis=2)
        expected = math.exp(-plain_dtw(costs) / (len(reference) * 3.0))
        assert metric.get_metric() == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_ndtw_is_one_on_the_reference_itself():
    an_episode = episode(reference=[(0,), (0.1,), (0.3,), (4,)])
    assert measure(Ndtw, an_episode, walk(0.1, 0.3, 4)) == 1.0


def test_turning_on_the_spot_does_not_change_ndtw():
    an_episode = episode(reference=[(0, 1), (4, 1)])
    turning = [state(point(0), LEFT)] * 5 + [state(point(4)), state(point(4), LEFT)]
    assert measure(Ndtw, an_episode, turning) == measure(Ndtw, an_episode, [state(point(4))])


def test_coming_back_to_a_position_does_change_ndtw():
    an_episode = episode(reference=[(0, 1), (4, 1)])
    there_and_back = [state(point(4)), state(point(0)), state(point(4))]
    assert measure(Ndtw, an_episode, there_and_back) < measure(Ndtw, an_episode, there_and_back[:1])


def test_ndtw_of_an_agent_that_never_moves_is_not_one():
    # DTW 0 + 2 + 4, three points, 1 m.
    value = measure(Ndtw, episode(reference=[(0,), (2,), (4,)]), [state(point(0), STOP)])
    assert value == pytest.approx(math.exp(-2))


def test_ndtw_takes_a_reference_of_one_point():
    assert measure(Ndtw, episode(reference=[(0,)]), walk(1)) == pytest.approx(math.exp(-1))


def test_ndtw_of_a_path_very_far_away_is_zero():
    assert measure(Ndtw, episode(reference=[(0,), (4,)]), walk(1e6)) == 0.0


def test_sdtw_is_ndtw_for_a_success_and_else_zero():
    an_episode = episode(reference=[(0, 1), (4, 1)])
    arrived = walk(4)
    assert measure(Sdtw, an_episode, arrived) == measure(Ndtw, an_episode, arrived) > 0.0
    assert measure(Sdtw, an_episode, walk(4, stop=False)) == 0.0
    assert measure(Sdtw, an_episode, walk(9)) == 0.0


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
    value = measure(Cls, an_episode, [state(point(*p)) for p in path[1:]])
    covered = [math.exp(-min(math.dist(r, p) for p in path) / 3.0) for r in reference]
    coverage = sum(covered) / len(covered)
    expected = coverage * sum(math.dist(a, b) for a, b in pairwise(reference))
    travelled = sum(math.dist(a, b) for a, b in pairwise(path))
    whole = expected + abs(expected - travelled)
    by_hand = coverage * expected / whole if whole else coverage
    assert value == pytest.approx(by_hand, rel=1e-9, abs=1e-12)


def test_cls_is_one_on_the_reference_itself_and_less_for_a_detour():
    an_episode = episode(reference=[(0,), (2,), (4,)])
    assert measure(Cls, an_episode, walk(2, 4)) == 1.0
    assert measure(Cls, an_episode, walk(-2, 4)) < 0.8


@pytest.mark.parametrize("reference", [[(4,)], [(4,), (4,), (4,)]])
def test_cls_of_a_reference_without_length_is_the_coverage_if_the_agent_stays_and_else_zero(reference):
    assert measure(Cls, episode(start=4, reference=reference), [state(point(4), STOP)]) == 1.0
    stays_apart = measure(Cls, episode(start=3, reference=reference), [state(point(3), STOP)])
    assert stays_apart == pytest.approx(math.exp(-1))
    assert measure(Cls, episode(start=3, reference=reference), walk(4)) == 0.0


def test_cls_of_a_path_very_far_away_is_zero():
    an_episode = episode(start=1e4, reference=[(0,), (4,)])
    assert measure(Cls, an_episode, []) == 0.0


# Counts


def test_steps_count_every_action_with_turns_and_stop():
    assert measure(Steps, episode(), [state(point(0), LEFT), *walk(1, 2)]) == 4.0


def test_collisions_count_steps_that_collided_and_the_rate_is_their_share():
    bumps = [state(point(1), collision=True), state(point(1), collision=True), *walk(2)]
    assert measure(Collisions, episode(), bumps) == 2.0
    assert measure(CollisionRate, episode(), bumps) == 0.5


def test_the_collision_rate_of_no_steps_is_zero():
    assert measure(CollisionRate, episode(), []) == 0.0


# All of them


@pytest.mark.parametrize("metric_class", [Ndtw, Sdtw, Cls])
@pytest.mark.parametrize("states", [[], walk(2, 4)], ids=["no steps", "success"])
def test_without_a_reference_path_its_metrics_do_not_apply(metric_class, states):
    assert math.isnan(measure(metric_class, episode(), states))


def test_before_the_first_step_every_metric_describes_the_start():
    an_episode = episode(reference=[(0,), (4,)])
    values = {name: measure(load("metric", name), an_episode, []) for name in BUILT_IN["metric"]}
    assert values == {
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


@pytest.mark.parametrize("metric_class", ALL)
def test_a_metric_forgets_the_last_episode(metric_class):
    an_episode = episode(start=4, reference=[(0,), (2,), (4,)])
    metric = metric_class()
    metric.reset(episode(goal=2, reference=[(0,), (9,)]), Corridor(threshold_m=5.0))
    for a_state in [state(point(1), collision=True), *walk(3, 2)]:
        metric.update(a_state)
    metric.reset(an_episode, Corridor())
    assert metric.get_metric() == measure(metric_class, an_episode, [])
    for a_state in walk(1, 2, stop=False):
        metric.update(a_state)
    assert metric.get_metric() == measure(metric_class, an_episode, walk(1, 2, stop=False))


@given(path=paths, stops=st.booleans(), reference=paths)
def test_metrics_are_finite_and_in_range_on_any_path(path, stops, reference):
    an_episode = Episode(
        start_position=path[0],
        goal_position=path[-1],
        reference_path=[point(*p) for p in reference],
    )
    states = [state(point(*p)) for p in path[1:]]
    if stops:
        states.append(state(point(*path[-1]), STOP))
    for metric_class in ALL:
        value = measure(metric_class, an_episode, states)
        assert isinstance(value, float)
        assert math.isfinite(value)
        unbounded = metric_class in (NavigationError, PathLength, Steps, Collisions)
        assert 0.0 <= value <= (math.inf if unbounded else 1.0)


@given(path=paths, goal=st.tuples(coordinate, coordinate, coordinate))
def test_a_success_is_an_oracle_success(path, goal):
    an_episode = Episode(start_position=path[0], goal_position=goal)
    states = [state(point(*p)) for p in path[1:]] + [state(point(*path[-1]), STOP)]
    task = Corridor(threshold_m=30.0, detour_m=5.0)
    oracle = measure(OracleSuccess, an_episode, states, task)
    assert measure(Success, an_episode, states, task) <= oracle


@pytest.mark.parametrize("metric_class", ALL)
def test_no_metric_searches_a_path_while_the_agent_is_far_from_the_goal(metric_class):
    task = Corridor()
    metric = metric_class()
    metric.reset(episode(goal=100, reference=[(0,), (100,)]), task)
    for x in range(50):
        metric.update(state(point(x)))
    assert task.searches == 0


def test_oracle_success_searches_no_path_again_once_the_goal_was_reached_or_on_the_spot():
    task = Corridor(detour_m=0.8)
    metric = OracleSuccess()
    metric.reset(episode(), task)
    for x in (3.5, 3.5, 3.5):
        metric.update(state(point(x)))
    assert (task.searches, metric.get_metric()) == (1, 0.0)
    for x in (3.9, 3.95, 4.0):
        metric.update(state(point(x)))
    assert (task.searches, metric.get_metric()) == (2, 1.0)
