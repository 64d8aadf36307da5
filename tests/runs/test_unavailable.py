"""Agents that are not there for a while: nobody's fault, tried again, and told how to go on."""

import json
import re
import shlex
import urllib.error
from contextlib import ExitStack
from http import HTTPStatus

import pytest
from running import examine, finished, run
from served_agents import Agent, episode, free_port, right, served

from proctor.agents.server import PolicyServer
from proctor.agents.websocket_policy import WebSocketPolicy
from proctor.cli import main
from proctor.core.errors import AgentFault, AgentUnavailable, EvaluatorError, UserError, is_unavailability
from proctor.core.interfaces import Policy
from proctor.exams.datasets import save_dataset
from proctor.runs.attempts import Attempts, Patience
from proctor.runs.job import RunJob
from proctor.runs.plan import RunConfig
from proctor.worlds.mock import MockEnv
from vln_evaluator import VLNEvaluator

IDS = [f"ep_{index}" for index in range(4)]
IMPATIENT = Patience(max_unavailable=2, pause_s=0.0)


@pytest.fixture
def dataset(tmp_path):
    save_dataset([episode(name) for name in IDS], tmp_path / "episodes.json")
    return tmp_path / "episodes.json"


def configured(dataset, port, *, workers=1, patience=IMPATIENT):
    options = {"connect_timeout_s": 0.3}
    job = RunJob(env="mock", policy=f"ws://127.0.0.1:{port}", policy_options=options)
    return RunConfig(job=job, dataset=dataset, workers=workers, patience=patience)


def sides(folder):
    lines = (folder / "episodes.jsonl").read_text().splitlines()
    errors = [json.loads(line)["error"] for line in lines]
    return [error and error["side"] for error in errors]


def test_a_server_that_is_stopped_and_started_again_in_the_middle_of_a_run_costs_nothing(dataset, tmp_path):
    with ExitStack() as first, ExitStack() as second:
        port = first.enter_context(served(Agent()))
        run(configured(dataset, port), tmp_path / "quiet", lambda state: None)
        said, restarted = [], []

        def stop_then_start(state):
            said.extend(state.notes)
            if len(state.finished) == 1 and not state.notes:
                first.close()
            elif state.finished and state.notes and not restarted:
                restarted.append(second.enter_context(served(Agent(), port=port)))

        patience = Patience(max_unavailable=50, pause_s=0.05)
        report = run(configured(dataset, port, patience=patience), tmp_path / "run", stop_then_start)
    assert restarted == [port]
    assert (report.stopped, report.results.success_count) == ("", 4)
    assert sides(tmp_path / "run")[:2] == [None, "unavailable"]
    assert any(re.search("nobody answers at .*; the next attempt is in 0 s", note) for note in said)
    ours, theirs = ((tmp_path / name / "results.json").read_bytes() for name in ("run", "quiet"))
    assert ours == theirs


def test_several_workers_wait_for_their_agent_together(dataset, tmp_path):
    port, server = free_port(), ExitStack()

    def start(state):
        if any("the agent is unavailable" in note for note in state.notes) and not started:
            started.append(server.enter_context(served(Agent(), port=port)))

    started = []
    patience = Patience(max_unavailable=50, pause_s=0.05)
    config = configured(dataset, port, workers=2, patience=patience)
    with server:
        report = run(config, tmp_path / "run", start, check_policy=False)
    assert started == [port]
    assert (report.stopped, report.results.success_count) == ("", 4)
    assert sides(tmp_path / "run")[0] == "unavailable"


def test_a_run_stops_when_its_agent_stays_away_and_the_same_command_goes_on(dataset, tmp_path, capsys):
    out = tmp_path / "run"
    with ExitStack() as server:
        port = server.enter_context(served(Agent()))

        def leave(state):
            if len(state.finished) == 1:
                server.close()

        report = run(configured(dataset, port), out, leave)
    assert report.stopped.startswith("nobody answers at ws://127.0.0.1:")
    assert sides(out) == [None, "unavailable", "unavailable"]  # each attempt is of another episode
    assert not (out / "results.json").exists()
    assert [result.is_scored for result in report.results.episodes] == [True, False, False]
    command = [
        *("run", "--dataset", str(dataset), "--env", "mock", "--policy", f"ws://127.0.0.1:{port}"),
        *("--policy-option", "connect_timeout_s=0.3", "--out", str(out)),
    ]
    assert main(command) == 2  # it is not there when a run begins
    assert len(sides(out)) == 3
    with served(Agent(), port=port):
        assert main(command) == 0
    assert "went on after 1 finished episodes" in capsys.readouterr().out
    assert [result.success for result in finished(out).values()] == [True] * 4


def test_the_command_says_how_to_go_on_and_exits_with_3(dataset, tmp_path, capsys):
    busy = Agent(lambda talk: talk.send({"type": "error", "kind": "overloaded", "message": "try later"}))
    with served(busy) as port:
        command = [
            *("run", "--dataset", str(dataset), "--env", "mock", "--policy", f"ws://127.0.0.1:{port}"),
            *("--max-unavailable", "2", "--unavailable-pause", "0"),
            *("--policy-option", "token=sesame", "--policy-option=token=sesame"),
            *("--out", str(tmp_path / "my runs")),
        ]
        assert main(command) == 3
    said = capsys.readouterr()
    assert "stopped: ws://127.0.0.1" in said.err
    assert "overloaded: try later" in said.err
    assert "0 of 4 episodes are done and kept" in said.err
    (again,) = re.findall("go on with: proctor (.*)", said.err)
    assert shlex.split(again) == [word.replace("sesame", "...") for word in command]
    assert "2 of 2 episodes lost because the agent was unavailable" in said.out


def test_an_agent_that_shuns_one_episode_does_not_get_rid_of_it(dataset, tmp_path):
    def shun(talk):
        if agent.told("reset_episode")[-1]["episode"]["seed"] == agent.shunned:
            talk.send({"type": "error", "kind": "unavailable", "message": "not this one"})
        else:
            right(talk)

    agent = Agent(shun)
    agent.shunned = None
    with served(agent) as port:
        config = configured(dataset, port)
        run(config, tmp_path / "all", lambda state: None)
        agent.shunned = finished(tmp_path / "all")["ep_1"].seed
        report = run(config, tmp_path / "run", lambda state: None)
    assert report.stopped == "unavailable: not this one"
    summary = json.loads((tmp_path / "run" / "results.json").read_text())["summary"]  # all were tried
    assert summary["error_counts"] == {"agent": 0, "evaluator": 0, "unavailable": 1}
    assert (summary["success_rate"], summary["success_rate_bounds"]) == (1.0, {"low": 0.75, "high": 1.0})
    assert sides(tmp_path / "run") == [None, "unavailable", None, None, "unavailable", "unavailable"]


def status(code):
    return {"process_request": lambda connection, request: connection.respond(code, "no\n")}


def closing(code):
    def handle(connection):
        connection.close(code)

    return handle


@pytest.mark.parametrize("code", [429, 500, 502, 503, 504])
def test_an_http_status_of_an_overloaded_server_is_nobodys_fault(code):
    with served(Agent(), **status(code)) as port:
        policy = WebSocketPolicy("127.0.0.1", port, connect_timeout_s=0.2)
        result = VLNEvaluator(MockEnv(), policy).evaluate_episode(episode())
    assert (result.error.side, result.error.kind) == ("unavailable", "agent_unreachable")
    assert re.search(f"HTTP status {code}|in time", result.error.message)  # the last attempt may be cut short


@pytest.mark.parametrize("code", [401, 403, 404])
def test_an_http_status_that_refuses_is_the_agents_fault(code):
    with served(Agent(), **status(code)) as port:
        policy = WebSocketPolicy("127.0.0.1", port)
        result = VLNEvaluator(MockEnv(), policy).evaluate_episode(episode())
    assert (result.error.side, result.error.kind) == ("agent", "protocol_mismatch")


@pytest.mark.parametrize("code", [1001, 1012, 1013])
def test_a_server_that_hangs_up_before_an_episode_begins_is_unavailable(code):
    with served(closing(code)) as port:
        policy = WebSocketPolicy("127.0.0.1", port, connect_timeout_s=0.2)
        result = VLNEvaluator(MockEnv(), policy).evaluate_episode(episode())
    assert result.is_unavailable
    assert result.error.kind in ("agent_unavailable", "agent_unreachable")  # if the last attempt is cut short


SAYS = {
    "error": lambda talk: talk.send({"type": "error", "kind": "unavailable", "message": "the API says 429"}),
    "1012": lambda talk: talk.connection.close(1012),
    "1013": lambda talk: talk.connection.close(1013),
}


@pytest.mark.parametrize("way", SAYS)
def test_the_line_is_the_first_action(way):
    agent = Agent(SAYS[way])
    with served(agent) as port, VLNEvaluator(MockEnv(), WebSocketPolicy("127.0.0.1", port)) as evaluator:
        before = evaluator.evaluate_episode(episode("a"))
        agent.answer = lambda talk: right(talk) if talk.step == 0 else SAYS[way](talk)
        after = evaluator.evaluate_episode(episode("b"))
        agent.answer = right
        assert evaluator.evaluate_episode(episode("c")).success
    assert (before.error.side, before.error.kind) == ("unavailable", "agent_unavailable")
    assert (after.error.side, after.error.kind) == ("agent", "agent_unavailable")
    assert (after.steps, after.metrics["success"]) == (1, 0.0)


def test_the_next_attempt_begins_with_another_replica():
    busy, ready = Agent(SAYS["error"]), Agent()
    with served(busy) as first, served(ready) as second:
        policy = WebSocketPolicy(f"ws://127.0.0.1:{first},ws://127.0.0.1:{second}")
        with VLNEvaluator(MockEnv(), policy) as evaluator:
            assert evaluator.evaluate_episode(episode("a")).is_unavailable
            assert evaluator.evaluate_episode(episode("b")).success


class Api(Policy):
    """Asks an API, which fails at the step it was told."""

    def __init__(self, error, step=0):
        self.error, self.step = error, step

    def reset(self, episode_info):
        self.steps = 0

    def act(self, observation):
        if self.steps == self.step:
            raise self.error
        self.steps += 1
        return 1


class ApiError(Exception):
    """As the clients of model APIs raise it."""

    def __init__(self, status_code):
        self.status_code = status_code


class HttpError(Exception):
    """As requests and httpx raise it."""

    def __init__(self, status_code):
        self.response = ApiError(status_code)


class PropertyError(Exception):
    """Has a property that raises, as the errors of client libraries may."""

    @property
    def status_code(self):
        raise RuntimeError("there is no response")


def wrapped(cause):
    error = ValueError("Connection error.")
    error.__cause__ = cause
    return error


UNAVAILABLE = [
    AgentUnavailable("the API is down"),
    ConnectionRefusedError(),
    wrapped(wrapped(ConnectionResetError())),
    urllib.error.HTTPError("http://api", 429, "Too Many Requests", {}, None),
    ApiError(503),
    ApiError(HTTPStatus.BAD_GATEWAY),
    HttpError(529),
]
FAILING = [
    *(ValueError("bug"), ApiError(404), HttpError(400), PropertyError("bug")),
    *(AgentFault("mine", "bug"), SystemExit(503)),
]


@pytest.mark.parametrize("error", UNAVAILABLE, ids=lambda error: type(error).__name__)
def test_an_api_that_is_down_before_the_first_action_is_not_the_policys_fault(error):
    assert is_unavailability(error)
    before = examine(MockEnv(), Api(error), episode())
    assert (before.error.side, before.error.kind) == ("unavailable", "agent_unavailable")
    after = examine(MockEnv(), Api(error, step=1), episode())
    assert after.error.side == "agent"


@pytest.mark.parametrize("error", FAILING, ids=lambda error: type(error).__name__)
def test_another_error_is_the_policys_fault_at_any_time(error):
    assert not is_unavailability(error)
    assert examine(MockEnv(), Api(error), episode()).error.side == "agent"


def test_an_error_of_ours_is_no_unavailability_though_a_connection_broke():
    error = EvaluatorError("cannot be written")
    error.__context__ = ConnectionResetError()
    assert not is_unavailability(error)


def test_a_served_policy_whose_api_is_down_says_so():
    with (
        PolicyServer(lambda: Api(ApiError(429)), port=0) as server,
        VLNEvaluator(MockEnv(), WebSocketPolicy(server.url)) as evaluator,
    ):
        result = evaluator.evaluate_episode(episode())
    assert (result.error.side, result.error.kind) == ("unavailable", "agent_unavailable")


def test_an_evaluator_in_python_waits_and_then_says_that_it_stopped(dataset, monkeypatch):
    monkeypatch.setattr("proctor.runs.attempts.Patience.pause_after_s", lambda self, failures: 0.0)
    evaluator = VLNEvaluator(MockEnv(), Api(AgentUnavailable("the API is down")))
    with pytest.warns(RuntimeWarning, match="stopped after 3 of 4 episodes: the agent is unavailable"):
        results = evaluator.evaluate_dataset(dataset)
    assert results.summary.error_counts["unavailable"] == 3


def result_of(name, error):
    policy = Api(error) if error else Api(None, step=99)
    return examine(MockEnv(), policy, episode(name))


def test_attempts_at_the_same_time_count_as_one_and_a_score_ends_the_count():
    attempts = Attempts([episode(name) for name in IDS], Patience(max_unavailable=2, pause_s=0.0))
    lost = {name: result_of(name, AgentUnavailable("away")) for name in IDS}
    taken = [attempts.take() for _ in range(3)]
    for each in taken[:2]:
        attempts.note(each, lost[each.episode_id])
    assert (attempts.failures, attempts.is_stopped) == (1, False)
    attempts.note(taken[2], result_of("ep_2", None))
    assert attempts.failures == 0
    order = [attempts.take().episode_id for _ in range(3)]
    assert order == ["ep_3", "ep_0", "ep_1"]
    assert attempts.wait_s() is None


def test_pauses_grow_up_to_a_minute():
    patience = Patience(pause_s=5.0)
    assert [patience.pause_after_s(count) for count in (1, 2, 3, 4, 5, 99)] == [5, 10, 20, 40, 60, 60]
    assert Patience(pause_s=0.0).pause_after_s(9) == 0.0
    assert Patience(pause_s=600.0).pause_after_s(3) == 600.0


@pytest.mark.parametrize("patience", [Patience(max_unavailable=0), Patience(pause_s=float("nan"))])
def test_patience_that_makes_no_sense_is_refused(dataset, tmp_path, patience):
    with pytest.raises(UserError, match="expected"):
        run(configured(dataset, 1, patience=patience), tmp_path / "run", lambda state: None)
    assert not (tmp_path / "run").exists()
