import math
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest

from proctor.exams.results import Interval
from proctor.runs.summary import aggregate_metrics, clustered_bootstrap, wilson

# Wilson


@pytest.mark.parametrize(("successes", "n"), [(0, 1), (1, 1), (0, 10), (6, 10), (10, 10), (1103, 1839)])
def test_wilson_is_scipys_interval(successes, n):
    expected = binomtest(successes, n).proportion_ci(method="wilson")
    found = wilson(successes, n)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=1e-12)
    assert (found.mean, found.n) == (successes / n, n)


def test_wilson_stays_between_zero_and_one_and_around_the_rate():
    for n in range(1, 1000):
        for successes in (0, n // 2, n):
            found = wilson(successes, n)
            assert 0.0 <= found.low <= found.mean <= found.high <= 1.0


def test_wilson_of_no_episodes_is_refused():
    with pytest.raises(ValueError, match="at least one episode, found 0"):
        wilson(0, 0)


# Clustered bootstrap


def test_the_bootstrap_interval_of_independent_values_is_the_normal_one():
    values = np.random.default_rng(1).normal(5.0, 2.0, size=400)
    found = clustered_bootstrap(list(values), [f"scene {i}" for i in range(400)], seed=0)
    half_width = 1.96 * values.std() / math.sqrt(400)
    assert found.mean == pytest.approx(values.mean())
    assert found.low == pytest.approx(values.mean() - half_width, abs=0.1 * half_width)
    assert found.high == pytest.approx(values.mean() + half_width, abs=0.1 * half_width)


def test_copies_of_an_episode_within_a_scene_do_not_narrow_the_interval():
    values = list(np.random.default_rng(2).normal(size=20))
    scenes = [f"scene {i}" for i in range(20)]
    once = clustered_bootstrap(values, scenes, seed=0)
    tenfold = clustered_bootstrap(values * 10, scenes * 10, seed=0)
    assert (tenfold.low, tenfold.high) == pytest.approx((once.low, once.high))
    apart = clustered_bootstrap(values * 10, [str(i) for i in range(200)], seed=0)
    assert apart.high - apart.low < 0.5 * (once.high - once.low)


def test_two_scenes_that_disagree_give_an_interval_from_one_to_the_other():
    found = clustered_bootstrap([0.0] * 5 + [1.0] * 15, ["a"] * 5 + ["b"] * 15, seed=0)
    assert found == Interval(mean=0.75, low=0.0, high=1.0, n=20)


def test_with_one_scene_its_episodes_are_resampled():
    values = list(np.random.default_rng(3).normal(size=50))
    one_scene = clustered_bootstrap(values, ["a"] * 50, seed=0)
    assert one_scene.high - one_scene.low > 0.3
    assert one_scene.low < one_scene.mean < one_scene.high


def test_one_episode_gives_an_interval_without_width():
    assert clustered_bootstrap([0.3], ["a"], seed=0) == Interval(mean=0.3, low=0.3, high=0.3, n=1)


def test_the_same_seed_gives_the_same_interval_and_another_seed_another():
    values = list(np.random.default_rng(4).normal(size=30))
    scenes = [str(i) for i in range(30)]
    first = clustered_bootstrap(values, scenes, seed=7)
    assert clustered_bootstrap(values, scenes, seed=7) == first
    assert clustered_bootstrap(values, scenes, seed=8) != first


def test_bad_bootstrap_input_is_refused():
    with pytest.raises(ValueError, match="at least one value"):
        clustered_bootstrap([], [], seed=0)
    with pytest.raises(ValueError, match="shorter"):
        clustered_bootstrap([1.0, 2.0], ["a"], seed=0)


@pytest.mark.parametrize("scenes", [1, 12], ids=["one scene", "many scenes"])
def test_the_interval_does_not_depend_on_the_order_of_values_and_scenes(scenes):
    rng = np.random.default_rng(5)
    # Sums of these depend on the order of summation, unless they are exact.
    values = list(rng.normal(size=60) * 10.0 ** rng.integers(0, 12, size=60))
    pairs = [(value, f"scene {i % scenes}") for i, value in enumerate(values)]
    first = clustered_bootstrap(*zip(*pairs, strict=True), seed=0)
    for _ in range(5):
        rng.shuffle(order := np.arange(60))
        shuffled = [pairs[i] for i in order]
        assert clustered_bootstrap(*zip(*shuffled, strict=True), seed=0) == first


@pytest.mark.parametrize("value", [0.1, 0.7, 1 / 3])
def test_rounding_does_not_push_the_mean_of_equal_values_out_of_its_interval(value):
    for n in range(1, 40):
        found = clustered_bootstrap([value] * n, [str(i) for i in range(n)], seed=0, resamples=20)
        assert found.low <= found.mean <= found.high
        assert (found.low, found.high) == pytest.approx((value, value), rel=1e-14)


# Aggregation

values = st.floats(-1e6, 1e6)
episodes = st.lists(
    st.tuples(
        st.fixed_dictionaries({"success": st.sampled_from([0.0, 1.0])}, optional={"ndtw": values}),
        st.sampled_from(["a", "b", "c"]),
    ),
    max_size=12,
)


def aggregated(pairs):
    return aggregate_metrics([row for row, _ in pairs], [scene for _, scene in pairs], rates={"success"})


@settings(max_examples=50)
@given(episodes, st.randoms(use_true_random=False))
def test_the_order_of_the_episodes_does_not_matter(pairs, shuffler):
    shuffled = list(pairs)
    shuffler.shuffle(shuffled)
    assert aggregated(shuffled) == aggregated(pairs)


@settings(max_examples=50)
@given(episodes)
def test_every_interval_is_finite_and_contains_its_mean(pairs):
    for found in aggregated(pairs).values():
        assert all(map(math.isfinite, (found.mean, found.low, found.high)))
        assert found.low <= found.mean <= found.high


def test_rates_get_wilsons_interval_and_the_others_the_bootstrap():
    spl = list(np.random.default_rng(6).random(20))
    rows = [{"success": float(value > 0.5), "spl": value} for value in spl]
    scenes = [str(i) for i in range(20)]
    found = aggregate_metrics(rows, scenes, rates={"success"}, seed=5)
    assert found == {
        "success": wilson(sum(value > 0.5 for value in spl), 20),
        "spl": clustered_bootstrap(spl, scenes, seed=5),
    }


def test_an_episode_without_a_metric_is_left_out_of_its_mean():
    rows = [{"spl": 1.0, "ndtw": 0.5}, {"spl": 0.0}, {"spl": 0.5, "ndtw": 0.9}]
    found = aggregate_metrics(rows, ["a", "a", "b"], rates=set())
    assert (found["spl"].n, found["spl"].mean) == (3, 0.5)
    assert (found["ndtw"].n, found["ndtw"].mean) == (2, 0.7)
    assert found["ndtw"] == clustered_bootstrap([0.5, 0.9], ["a", "b"], seed=0)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_value_that_is_no_number_is_left_out(bad):
    found = aggregate_metrics([{"ndtw": bad}, {"ndtw": 0.5}], ["a", "b"], rates=set())
    assert found == {"ndtw": Interval(mean=0.5, low=0.5, high=0.5, n=1)}
    assert aggregate_metrics([{"ndtw": bad, "success": bad}], ["a"], rates={"success"}) == {}


def test_no_episodes_give_no_metrics():
    assert aggregate_metrics([], [], rates={"success"}) == {}


def test_sums_are_exact_so_that_large_and_small_values_may_come_in_any_order():
    numbers = [1e16, 1.0, -1e16, 1.0] * 3
    rows = [{"x": number} for number in numbers]
    random.Random(0).shuffle(rows)
    assert aggregate_metrics(rows, ["a"] * 12, rates=set())["x"].mean == 0.5


def test_rows_and_scenes_must_have_the_same_length():
    with pytest.raises(ValueError, match="shorter"):
        aggregate_metrics([{"spl": 1.0}, {"spl": 1.0}], ["a"], rates=set())
