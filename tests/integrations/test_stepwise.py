import msgspec
import numpy as np
import pytest
from same_actions import DRIVING, REACHING, STEPS, own_results, short_suite

from proctor.core.errors import UserError
from proctor.integrations.stepwise import StepwiseExam

ROWS = {"houses-v1": [[float(action)] for action in DRIVING], "tabletop-v1": REACHING}
NEVER_SEEN = ("goal", "target", "position", "path", "scene", "truth", "reference")


@pytest.mark.parametrize("suite", ROWS)
def test_the_record_is_that_of_a_run_with_the_same_actions(suite, tmp_path):
    file = short_suite(suite, tmp_path)
    stepwise = StepwiseExam(file, "vla-eval")
    found = []
    for index in range(2):
        seen = stepwise.begin(index)
        assert not [key for key in seen for word in NEVER_SEEN if word in key]
        ends = [stepwise.step(np.array(row)) for row in ROWS[suite]]
        assert ends == [False] * (STEPS - 1) + [True]
        found.append(stepwise.result())
    stepwise.close()
    for mine, own in zip(found, own_results(file), strict=True):
        assert msgspec.structs.replace(mine, timing=own.timing) == own


@pytest.fixture(scope="module")
def stepwise(tmp_path_factory):
    stepwise = StepwiseExam(short_suite("houses-v1", tmp_path_factory.mktemp("suite")), "vla-eval")
    yield stepwise
    stepwise.close()


@pytest.mark.parametrize(
    ("row", "kind"),
    [
        ([np.nan], "action_not_finite"),
        ([7.0], "invalid_action"),
        ([], "wrong_action_length"),
        ([[1.0, 2.0]], "wrong_action_length"),
    ],
)
def test_what_is_no_action_ends_the_episode_as_the_agents_fault(stepwise, row, kind):
    stepwise.begin(0)
    assert not stepwise.step(np.array([1.0]))
    assert stepwise.step(np.array(row))
    result = stepwise.result()
    assert (result.status, result.error.side, result.error.kind) == ("error", "agent", kind)
    assert (result.steps, result.metrics["success"]) == (1, 0.0)
    with pytest.raises(UserError, match="the episode is over"):
        stepwise.step(np.array([1.0]))
    stepwise.begin(1)
    assert stepwise.result().status == "failure", "an episode that was cut short by the harness"


def test_what_fails_in_the_world_is_not_the_agents_fault(stepwise, monkeypatch):
    def step(_):
        raise RuntimeError("the engine broke")

    stepwise.begin(0)
    monkeypatch.setattr(stepwise._env, "step", step)
    with pytest.raises(RuntimeError, match="the engine broke"):
        stepwise.step(np.array([1.0]))


def test_a_suite_without_names_for_the_dialect(stepwise, tmp_path):
    other = StepwiseExam(short_suite("houses-v1", tmp_path), "nobody")
    with pytest.raises(UserError, match="has no defaults for nobody"):
        other.begin(0)
    with pytest.raises(UserError, match="none has begun"):
        other.step(np.array([1.0]))
    other.close()
