"""What chat models cost and what was said, in whole runs against a strict server."""

import gzip
import json
from itertools import repeat

import pytest
from strict_servers import KEY, Said, StrictChat, StrictMessages, StrictResponses, acts
from test_chat_runs import IMPATIENT, dataset, run, serving  # noqa: F401  (a fixture)

from proctor.runs.folder import RunFolder, wire_file
from proctor.runs.transcripts import Transcript

GO, STOP = acts("FORWARD", "FORWARD", "FORWARD", "FORWARD"), acts("STOP")
BUSY = (503, {"error": {"message": "scaling up"}}, {})


@pytest.fixture(autouse=True)
def key(monkeypatch):
    monkeypatch.setenv("PROCTOR_CHAT_KEY", KEY)


@pytest.fixture
def prices(tmp_path):
    (tmp_path / "prices.json").write_text('{"gpt-x": {"input": 1000, "output": 1000}}')
    return "--policy-option", f"prices={tmp_path / 'prices.json'}"


@pytest.mark.parametrize("wire", [StrictChat, StrictResponses, StrictMessages])
def test_every_token_of_a_run_is_counted_once(wire, proctor, dataset, prices):  # noqa: F811
    with serving([GO, BUSY, *[GO, STOP] * 2], wire) as server:
        code, out, _ = run(proctor, dataset, server, *prices, *IMPATIENT)
    assert code == 0, out
    summary = RunFolder.open(dataset.parent / "run").results.summary
    assert (summary.usage.decisions, summary.usage.requests) == (4, 4)
    assert (summary.usage_unscored.decisions, summary.usage_unscored.requests) == (1, 2)
    assert summary.usage_unscored.input_tokens * 4 == summary.usage.input_tokens > 0
    assert summary.usage.cost_usd == pytest.approx(summary.usage.tokens / 1000)
    assert "4 decisions" in out
    assert "attempts that do not count used 1 decision" in out


def test_a_budget_holds_for_chat_models(proctor, dataset, prices):  # noqa: F811
    with serving([GO, STOP, GO, STOP]) as server:
        code, _, said = run(proctor, dataset, server, "--budget-usd", "5")
        assert code == 2
        assert "--policy-option prices=FILE" in said
        assert not (dataset.parent / "run").exists()
        code, _, said = run(proctor, dataset, server, "--budget-tokens", "10")
        assert (code, len(server.seen)) == (4, 2)
        assert "1 of 2 episodes are done and kept" in said
        assert run(proctor, dataset, server, "--budget-tokens", "100000", "--no-wire")[0] == 0
    assert wire_file(dataset.parent / "run", "a").exists() != wire_file(dataset.parent / "run", "b").exists()


def test_a_budget_with_a_server_that_does_not_count(proctor, dataset, prices):  # noqa: F811
    call = {"function": {"name": "act", "arguments": '{"actions": ["STOP"]}'}}
    silent = (200, {"choices": [{"message": {"tool_calls": [call]}}], "usage": None}, {})
    with serving(repeat(silent)) as server:
        code, _, said = run(proctor, dataset, server, *prices, "--budget-usd", "5")
        assert (code, len(server.seen)) == (2, 1)
        assert "did not say what its decisions used" in said
        code, out, _ = run(proctor, dataset, server, *prices)
        assert code == 0
        assert "$" not in out


def test_the_transcript_tells_what_was_said_without_the_key(proctor, dataset):  # noqa: F811
    with serving([Said(f"Is {KEY} your key?"), GO, STOP, *repeat(Said("I would rather talk."), 2)]) as server:
        assert run(proctor, dataset, server)[0] == 0
    first, second = (wire_file(dataset.parent / "run", name) for name in ("a", "b"))
    assert KEY not in gzip.decompress(first.read_bytes()).decode()
    went = Transcript(first)
    assert went.problems == []
    assert [(each.step, each.actions, each.attempts) for each in went.decisions] == [
        *((0, ["FORWARD"] * 4, 2), (4, ["STOP"], 1))
    ]
    assert set(went.decisions[0].pictures) <= set(went.pictures)
    assert "Go." in went.decisions[0].prompt
    (failed,) = Transcript(second).decisions
    assert (failed.actions, failed.attempts) == ([], 2)
    assert "I would rather talk." in failed.reply
    assert json.loads(failed.prompt)["model"] == "gpt-x"
