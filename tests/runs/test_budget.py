"""Runs that may not spend more than a budget: they stop in good order, and go on with a larger one."""

import json
import re
from collections import deque

import pytest
import talking_policy
from msgspec.structs import replace
from running import finished, run
from served_agents import episode
from test_accounting import SometimesAway, configured

from proctor.core.errors import UserError
from proctor.core.types import Usage
from proctor.exams.datasets import save_dataset
from proctor.exams.vln.exam import VlnExam
from proctor.runs.attempts import Attempts
from proctor.runs.budget import RunBudget, Spending
from proctor.runs.folder import RunFolder

IDS = [f"ep_{index}" for index in range(6)]
TALKING = f"{talking_policy.__file__}:TalkingPolicy"
"""An episode of it costs 0.75 dollars and takes 3150 tokens."""


@pytest.fixture
def dataset(tmp_path):
    save_dataset([episode(name) for name in IDS], tmp_path / "episodes.json")
    return tmp_path / "episodes.json"


@pytest.fixture
def command(dataset, tmp_path):
    return [
        "run",
        "--dataset",
        dataset,
        "--env",
        "mock",
        "--policy",
        TALKING,
        "--name",
        "talking",
        "--out",
        tmp_path / "run",
    ]


def spent_usd(folder):
    summary = RunFolder.open(folder).results.summary
    return summary.usage.cost_usd + (summary.usage_unscored.cost_usd if summary.usage_unscored else 0.0)


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_run_stops_before_it_exceeds_its_budget_and_a_larger_one_goes_on(
    workers, command, proctor, tmp_path
):
    command = [*command, "--workers", workers]
    code, _, said = proctor(*command, "--budget-usd", "2.5")
    assert code == 4
    assert "the budget does not allow another episode: $2.25 of $2.50 are spent" in said
    assert "an episode takes $0.75 on average; --budget-usd 4.95 should do for all" in said
    assert "3 of 6 episodes are done and kept" in said
    assert (len(finished(tmp_path / "run")), spent_usd(tmp_path / "run")) == (3, 2.25)
    assert not (tmp_path / "run/results.json").exists()
    assert proctor(*command, "--budget-usd", "2.5")[0] == 4  # what was spent before counts
    assert len(finished(tmp_path / "run")) == 3
    enough = re.search(r"--budget-usd ([\d.]+) should do", said)[1]
    code, told, _ = proctor(*command, "--budget-usd", enough)
    assert code == 0
    assert "went on after 3 finished episodes" in told
    assert json.loads((tmp_path / "run/results.json").read_text())["summary"]["usage"]["cost_usd"] == 4.5


def test_a_budget_of_exactly_what_is_needed_is_enough(command, proctor):
    assert proctor(*command, "--budget-usd", "4.5", "--budget-tokens", 6 * 3150)[0] == 0


def test_tokens_are_limited_in_the_same_way_and_the_first_limit_counts(command, proctor, tmp_path):
    code, _, said = proctor(*command, "--budget-tokens", "7000", "--budget-usd", "99")
    assert code == 4
    assert "$1.50 of $99.00 are spent" in said
    assert "6.3k tokens of 7.0k tokens are spent, an episode takes 3.1k tokens on average" in said
    assert "--budget-tokens 21000 should do" in said
    assert len(finished(tmp_path / "run")) == 2


def test_attempts_that_are_thrown_away_are_paid_for_as_well(dataset, tmp_path):
    SometimesAway.is_away = True
    config = configured(dataset, "test_accounting:SometimesAway")
    report = run(replace(config, budget=RunBudget(usd=1.6)), tmp_path / "run")
    assert "$1.00 of $1.60 are spent" in report.over_budget  # two episodes would have been 1.50
    assert [result.is_scored for result in finished(tmp_path / "run").values()] == [False, True]


def test_episodes_under_way_are_expected_to_cost_as_much_as_those_before():
    spending = Spending(RunBudget(usd=3.0), "me")
    attempts = Attempts([episode(name) for name in IDS], spending=spending)
    under_way = deque([attempts.take()])
    assert attempts.wait_s() is None  # nobody knows yet what an episode costs
    assert not attempts.is_over_budget
    attempts.note(under_way.popleft(), _result("ep_0", 0.75))
    under_way += [attempts.take(), attempts.take()]  # 0.75 spent, 1.5 under way, 0.75 for one more
    assert attempts.wait_s() == 0.0
    under_way.append(attempts.take())
    assert attempts.wait_s() is None
    attempts.note(under_way.popleft(), _result("ep_1", 1.5))  # dearer than expected
    assert attempts.wait_s() is None
    attempts.note(under_way.popleft(), _result("ep_2", 0.0))  # 2.25 spent, 0.75 on average, one under way
    assert attempts.wait_s() is None
    attempts.note(under_way.popleft(), _result("ep_3", 0.0))
    assert attempts.wait_s() == 0.0


def _result(name, cost_usd):
    return VlnExam.result(
        **{"episode_id": name, "scene_id": "", "instruction": "", "status": "failure", "success": False},
        **{"failure_reason": None, "error": None, "steps": 0, "actions": [], "metrics": {}, "seed": 0},
        usage=Usage(requests=1, cost_usd=cost_usd),
    )


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--budget-usd", "0"], "--budget-usd: expected dollars above 0, found 0"),
        (["--budget-usd", "nan"], "--budget-usd: expected dollars above 0, found nan"),
        (["--budget-usd", "inf"], "--budget-usd: expected dollars above 0, found inf"),
        (["--budget-tokens", "0"], "--budget-tokens: expected a number from 1 up, found 0"),
        (["--budget-usd", "1", "--policy", "forward"], "the policy 'talking' does not say what it uses"),
        (["--budget-tokens", "9", "--policy", "ws://127.0.0.1:1"], "does not say what it uses"),
        (["--no-wire", "--policy", "forward"], "--no-wire: the policy 'forward' keeps no transcripts"),
    ],
)
def test_what_cannot_be_kept_is_refused_before_anything_begins(words, expected, command, proctor, tmp_path):
    code, _, said = proctor(*command, *words)
    assert (code, expected in said) == (2, True), said
    assert not (tmp_path / "run").exists()


def test_a_budget_in_dollars_needs_a_price(command, proctor, tmp_path):
    no_price = ["--policy-option", "cost_usd=null"]
    code, _, said = proctor(*command, *no_price, "--budget-usd", "5")
    assert code == 2
    assert "does not know what its tokens cost; give it a price file with --policy-option prices=FILE" in said
    assert "the episodes that are done are kept" in said
    assert len(finished(tmp_path / "run")) == 1  # the first could be known only when it was over
    assert proctor(*command, *no_price, "--budget-usd", "5")[0] == 2
    assert len(finished(tmp_path / "run")) == 1
    assert proctor(*command, *no_price, "--budget-tokens", "99999")[0] == 0


def test_a_policy_with_a_price_option_is_refused_at_once_without_it():
    class Priced(talking_policy.TalkingPolicy):
        def __init__(self, *, prices=""):
            super().__init__()

    with pytest.raises(UserError, match=r"--budget-usd: the policy 'me' does not know .* prices=FILE"):
        RunBudget(usd=1.0).check(Priced, "me", {})
    RunBudget(usd=1.0).check(Priced, "me", {"prices": "prices.json"})
    RunBudget(tokens=5).check(Priced, "me", {})


def test_a_policy_that_falls_silent_cannot_be_kept_within_a_budget(dataset, tmp_path):
    config = configured(dataset, f"{__file__}:Silent")
    with pytest.raises(UserError, match=r"the budget cannot be kept: .* did not say what it used"):
        run(replace(config, budget=RunBudget(tokens=10)), tmp_path / "run")
    assert len(finished(tmp_path / "run")) == 1


class Silent(talking_policy.TalkingPolicy):
    """Has the method, but says nothing."""

    def usage(self):
        return None


def test_without_wire_nothing_is_kept_and_the_run_is_the_same(command, proctor, tmp_path):
    assert proctor(*command, "--no-wire", "--budget-usd", "1.5")[0] == 4
    assert not (tmp_path / "run/wire").exists()
    assert proctor(*command)[0] == 0  # neither is part of what defines the run
    assert len(list((tmp_path / "run/wire").iterdir())) == 4
    manifest = json.loads((tmp_path / "run/manifest.json").read_text())
    assert "wire" not in manifest["identity"]["policy_options"]
