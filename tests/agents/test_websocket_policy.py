"""Agents over the wire: addresses, tokens, TLS, runs by name, and the same scores as in process."""

import json
import logging
import multiprocessing
import ssl
import subprocess
import threading
from contextlib import closing
from pathlib import Path

import pytest
from running import run
from served_agents import HELLO, JSON, MSGPACK, RIGHT, Agent, episode, free_port, served

from proctor.agents import websocket_policy as websocket
from proctor.cli import main
from proctor.core.addresses import address_label, agent_url, replicas
from proctor.core.errors import UserError
from proctor.core.interfaces import TRUTH
from proctor.core.registry import build, load
from proctor.core.types import EpisodeInfo, Outcome
from proctor.exams.baselines import MockPolicy
from proctor.exams.vln.exam import DIALECTS
from proctor.runs import pool
from proctor.runs.attempts import Attempts
from proctor.runs.examiner import Examiner
from proctor.runs.job import RunJob
from proctor.runs.plan import RunConfig, plan_run
from proctor.runs.pool import WorkerPool
from proctor.runs.run import check_agents
from proctor.worlds.mock import MockEnv
from vln_evaluator import VLNEvaluator
from vln_evaluator.policy import WebSocketPolicy

SAMPLE = Path(__file__).parents[2] / "datasets" / "sample_r2r.json"
SECRET = "sesame-0123456789"


class Remote(Agent):
    """Serves a policy of this process, as simply as can be."""

    def __init__(self, policy_class=MockPolicy, **options):
        super().__init__(**options)
        self.policy_class = policy_class

    def __call__(self, connection):
        policy = self.policy_class()

        def answer(talk):
            if talk.step == 0:
                told = self.told("reset_episode")[-1]["episode"]
                policy.reset(
                    EpisodeInfo(
                        episode_id="", instruction="", max_steps=1, seed=told["seed"], task=told["task_type"]
                    )
                )
            talk.reply(int(policy.act({})))

        self.answer = answer
        super().__call__(connection)


@pytest.mark.parametrize(
    ("host", "port", "url"),
    [
        ("localhost", None, "ws://localhost:8080"),
        ("localhost", "8080", "ws://localhost:8080"),
        ("localhost", 9000, "ws://localhost:9000"),
        ("localhost:9000", None, "ws://localhost:9000"),
        ("::1", 9000, "ws://[::1]:9000"),
        ("ws://localhost:9000", None, "ws://localhost:9000"),
        ("ws://[::1]:9000/", None, "ws://[::1]:9000"),
        ("wss://agents.example.org/team/7", None, "wss://agents.example.org/team/7"),
        ("WS://LOCALHOST:80", None, "ws://localhost:80"),
    ],
)
def test_an_address_may_be_written_in_several_ways(host, port, url):
    assert agent_url(host, port) == url
    assert WebSocketPolicy(host, port).url == url


@pytest.mark.parametrize(
    ("host", "port", "problem"),
    [
        (
            "http://localhost:8080",
            None,
            "expected an address such as ws://localhost:8080.*found 'http://localhost",
        ),
        ("ws://", None, "found 'ws://'"),
        ("", None, "expected an address"),
        ("ws://localhost:99999", None, "out of range"),
        ("ws://localhost:0", None, "found 'ws://localhost:0'"),
        ("ws://a..b:8080", None, "found 'ws://a..b:8080'.*label"),
        ("ws://../../etc", None, "label"),
        (f"ws://{'a' * 64}", None, "label too long"),
        ("ws://local host", None, "found 'ws://local host'"),
        ("ws://a:1,b c", None, "found 'ws://b c:8080'"),
        ("ws://localhost:8080", 9000, "port: the address ws://localhost:8080 has its own place"),
        ("localhost:8080", 9000, "port: "),
        ("localhost", 0, "port: expected a number from 1 to 65535, found 0"),
        ("localhost", "http", "port: expected a number from 1 to 65535, found 'http'"),
        ("localhost", True, "port: "),
        ("localhost", 80.0, "port: "),
        (8080, None, "found int"),
    ],
)
def test_what_is_no_address_is_told(host, port, problem):
    with pytest.raises(UserError, match=problem):
        WebSocketPolicy(host, port)


@pytest.mark.parametrize(
    "url", [f"ws://me:{SECRET}@host:1", f"ws://host:1/?key={SECRET}", f"ws://host#{SECRET}"]
)
def test_an_address_with_a_secret_in_it_is_refused_without_repeating_it(url):
    with pytest.raises(UserError, match="PROCTOR_AGENT_TOKEN") as caught:
        load("policy", url)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"connect_timeout_s": 0}, "connect_timeout_s: expected seconds above 0, up to 600, found 0"),
        ({"action_timeout_s": 601}, "action_timeout_s: .* found 601"),
        ({"action_timeout_s": "5"}, "action_timeout_s: .* found '5'"),
        ({"action_timeout_s": True}, "action_timeout_s: .* found True"),
        ({"episode_budget_s": float("nan")}, "episode_budget_s: .* found nan"),
        ({"episode_budget_s": -1}, "episode_budget_s: .* found -1"),
        ({"tell_metrics": "no"}, "tell_metrics: expected true or false, found 'no'"),
        ({"token": 123456789}, "token: expected text, found int"),
        ({"token": f"{SECRET}\r\nX: y"}, "token: expected letters, digits and signs"),
        ({"ca_file": "ca.pem"}, "ca_file: expected only with wss://"),
    ],
)
def test_options_are_checked_and_no_token_is_repeated(options, problem):
    with pytest.raises(UserError, match=problem) as caught:
        WebSocketPolicy("localhost", **options)
    assert SECRET not in str(caught.value)
    assert "123456789" not in str(caught.value)


def test_a_file_that_holds_no_certificates_is_told(tmp_path):
    (tmp_path / "ca.pem").write_text("nothing")
    with pytest.raises(UserError, match=r"ca_file: .* certificates \(PEM\), found .*ca.pem"):
        WebSocketPolicy("wss://localhost:1", ca_file=str(tmp_path / "ca.pem"))
    with pytest.raises(UserError, match="No such file"):
        WebSocketPolicy("wss://localhost:1", ca_file=str(tmp_path / "none.pem"))


def test_no_turn_of_a_remote_agent_outlives_a_workers_patience():
    longest_s = websocket.LONGEST_WAIT_S + websocket.BRIEFING_S + websocket.ALIVE_S
    assert longest_s < pool.TURN_DEADLINE_S
    assert longest_s < pool.START_DEADLINE_S


def test_one_connection_serves_many_episodes_and_the_agent_hears_all_that_it_should():
    agent = Agent()
    with served(agent) as port, VLNEvaluator(MockEnv(), WebSocketPolicy("127.0.0.1", port)) as evaluator:
        results = [evaluator.evaluate_episode(episode(name)) for name in "ab"]
    assert [result.actions for result in results] == [RIGHT, RIGHT]
    assert agent.connections == 1
    kinds = [message["type"] for message in agent.messages]
    assert kinds == ["hello", *2 * (["reset_episode", *5 * ["get_action"], "episode_end"])]
    told = agent.told("reset_episode")[1]["episode"]
    assert told["episode_id"] != agent.told("reset_episode")[0]["episode"]["episode_id"]
    assert told["instruction"] == {"text": "Walk one metre.", "language": "en"}
    ended = agent.told("episode_end")[0]
    assert (ended["status"], ended["num_steps"]) == ("success", 5)
    assert ended["metrics"] == results[0].metrics


def test_an_agent_is_told_no_metrics_if_it_should_not_be():
    agent = Agent()
    with served(agent) as port:
        policy = WebSocketPolicy("127.0.0.1", port, tell_metrics=False)
        with VLNEvaluator(MockEnv(), policy) as evaluator:
            evaluator.evaluate_episode(episode())
    assert agent.told("episode_end")[0]["metrics"] == {}


@pytest.mark.parametrize("tell_metrics", [True, False])
def test_metrics_that_an_exam_always_names_are_null_where_they_were_not_measured(tell_metrics):
    agent = Agent()
    outcome = Outcome(
        status="failure", metrics={"success": 0.0}, num_steps=0, expected_metrics=("success", "similarity")
    )
    with (
        served(agent) as port,
        closing(WebSocketPolicy("127.0.0.1", port, tell_metrics=tell_metrics)) as policy,
    ):
        policy.reset(EpisodeInfo(episode_id="e", instruction="", max_steps=1, seed=0, dialects=DIALECTS))
        policy.episode_end(outcome)
    assert agent.told("episode_end")[0]["metrics"] == {
        "success": 0.0 if tell_metrics else None,
        "similarity": None,
    }
    assert "observation/image" not in json.dumps(agent.messages), "how other servers are asked is not sent"


def test_the_goal_and_the_truth_stay_here():
    class Privileged(WebSocketPolicy):
        privileged = True

    agent = Agent()
    with served(agent) as port:
        for policy in (WebSocketPolicy, Privileged):
            with VLNEvaluator(MockEnv(), policy("127.0.0.1", port)) as evaluator:
                assert evaluator.evaluate_episode(episode()).success
    for message in agent.messages:
        text = json.dumps(message)
        if message["type"] != "episode_end":
            assert not any(
                word in text for word in ("goal", "reference", "position", "trajectory", "distance")
            )
        assert TRUTH not in message.get("observation", {})


def test_a_world_that_does_not_start_costs_no_connection():
    class Moody(MockEnv):
        def reset(self, episode):
            if episode.episode_id == "second":
                raise RuntimeError("the engine did not start")
            return super().reset(episode)

    agent = Agent()
    with served(agent) as port, VLNEvaluator(Moody(), WebSocketPolicy("127.0.0.1", port)) as evaluator:
        results = [evaluator.evaluate_episode(episode(name)) for name in ("first", "second", "third")]
    assert [result.status for result in results] == ["success", "error", "success"]
    assert agent.connections == 1
    assert len(agent.told("reset_episode")) == len(agent.told("episode_end")) == 2


def test_a_worker_that_is_lost_while_an_agent_elsewhere_thinks_is_not_its_fault():
    def kill(talk):
        for process in multiprocessing.active_children():
            process.kill()

    with served(Agent(kill)) as port:
        job = RunJob(env="mock", policy=f"ws://127.0.0.1:{port}")
        with closing(WorkerPool(job, 1)) as workers:
            workers.start()
            attempts = [done.result for done in workers.run(Attempts([episode()]))]
    assert len(attempts) == 3  # what was killed from outside is tried again
    assert all(result.is_evaluator_fault for result in attempts)
    assert {result.error.kind for result in attempts} == {"worker_killed"}


def test_a_policy_is_closed_if_there_is_no_world_for_it(monkeypatch):
    closed = []
    monkeypatch.setattr(MockPolicy, "close", lambda _: closed.append(True))
    with pytest.raises(UserError, match="unexpected keyword"):
        Examiner.of(RunJob(env="mock", policy="proctor.exams.baselines:MockPolicy", env_options={"wind": 1}))
    assert closed == [True]


def test_an_agent_that_is_restarted_between_episodes_has_done_nothing_wrong():
    port = free_port()
    evaluator = VLNEvaluator(MockEnv(), WebSocketPolicy("127.0.0.1", port))
    for name in "abc":
        with served(Agent(), port=port):
            assert evaluator.evaluate_episode(episode(name)).actions == RIGHT
    evaluator.close()
    evaluator.close()


def test_an_agent_that_is_still_loading_is_waited_for():
    port = free_port()
    policy = WebSocketPolicy("127.0.0.1", port, connect_timeout_s=20)
    results = []
    with VLNEvaluator(MockEnv(), policy) as evaluator:
        waiting = threading.Thread(target=lambda: results.append(evaluator.evaluate_episode(episode())))
        waiting.start()
        waiting.join(0.3)
        assert waiting.is_alive()
        with served(Agent(), port=port):
            waiting.join(20)
    assert results[0].success


def test_a_silent_agent_is_listened_to_once():
    heard = []
    original = websocket.open_session

    def open_session(address, deadline_s, listen_s, **how):
        heard.append(listen_s)
        return original(address, deadline_s, listen_s, **how)

    port = free_port()
    policy = WebSocketPolicy("127.0.0.1", port)
    with pytest.MonkeyPatch.context() as patch, VLNEvaluator(MockEnv(), policy) as evaluator:
        patch.setattr(websocket, "open_session", open_session)
        for name in "ab":
            with served(Agent(hello=None), port=port):
                assert evaluator.evaluate_episode(episode(name)).success
    assert heard == [websocket.LISTEN_S, 0.0]


def test_check_says_what_to_do_and_keeps_the_connection():
    port = free_port()
    policy = WebSocketPolicy("127.0.0.1", port, connect_timeout_s=0.2)
    with pytest.raises(UserError, match=rf"nobody answers at ws://127.0.0.1:{port}: .*proctor serve-policy"):
        policy.check()
    agent = Agent()
    with served(agent, port=port):
        policy.check()
        with VLNEvaluator(MockEnv(), policy) as evaluator:
            assert evaluator.evaluate_episode(episode()).success
    assert agent.connections == 1
    other = pytest.raises(UserError, match="version 7 of the protocol")
    with served(Agent(hello=HELLO | {"version": 7}), port=port), other:
        WebSocketPolicy("127.0.0.1", port).check()


def bearer(token):
    def check(connection, request):
        if request.headers.get("Authorization") != f"Bearer {token}":
            return connection.respond(401, f"wrong: {request.headers.get('Authorization')}\n")
        return None

    return check


@pytest.mark.parametrize("by_variable", [True, False])
def test_a_token_opens_the_door(by_variable, monkeypatch):
    options = {} if by_variable else {"token": SECRET}
    if by_variable:
        monkeypatch.setenv("PROCTOR_AGENT_TOKEN", SECRET)
    with served(Agent(), process_request=bearer(SECRET)) as port:
        with VLNEvaluator(MockEnv(), WebSocketPolicy("127.0.0.1", port, **options)) as evaluator:
            assert evaluator.evaluate_episode(episode()).success
        monkeypatch.delenv("PROCTOR_AGENT_TOKEN", raising=False)
        with pytest.raises(UserError, match=r"wants a token.*401\): see PROCTOR") as caught:
            WebSocketPolicy("127.0.0.1", port, token="wrong-token").check()
    assert "wrong-token" not in str(caught.value)


def run_config(policy, **options):
    return RunConfig(job=RunJob(env="mock", policy=policy, policy_options=options), dataset=SAMPLE)


def test_a_token_is_written_nowhere_even_if_the_agent_repeats_it(tmp_path, caplog):
    caplog.set_level(logging.DEBUG)
    agent = Agent(lambda talk: talk.send({"type": "error", "message": f"who gave you {SECRET}?"}))
    with served(agent) as port:
        report = run(run_config(f"ws://127.0.0.1:{port}", token=SECRET), tmp_path, lambda state: None)
    assert report.results.summary.failure_reasons == {"agent_error": report.results.total_episodes}
    written = b"".join(file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())
    assert b"who gave you (token)?" in written
    assert SECRET.encode() not in written
    assert SECRET not in caplog.text


def escaped(text):
    return "".join(f"\\u{ord(letter):04x}" for letter in text)


QUOTING = {
    "as an error": lambda talk: talk.send({"type": "error", "kind": SECRET, "message": SECRET}),
    "as an action": lambda talk: talk.reply(SECRET),
    "as the name of an action": lambda talk: talk.reply({"type": SECRET, SECRET: SECRET}),
    "as a type": lambda talk: talk.send({"type": SECRET}),
    "as text": lambda talk: talk.connection.send(SECRET),
    "as the reason for closing": lambda talk: talk.connection.close(1011, SECRET),
    "in escapes": lambda talk: talk.connection.send(f'{{"type": "error", "message": "{escaped(SECRET)}"}}'),
}


@pytest.mark.parametrize("name", QUOTING)
def test_no_file_of_a_run_holds_a_token_that_the_agent_quotes(name, tmp_path, caplog):
    caplog.set_level(logging.DEBUG)
    with served(Agent(QUOTING[name])) as port:
        run(run_config(f"ws://127.0.0.1:{port}", token=SECRET), tmp_path, lambda state: None)
    written = b"".join(file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())
    assert b'"error"' in written
    assert SECRET.encode() not in written
    assert SECRET not in caplog.text


@pytest.mark.parametrize(
    "first",
    [SECRET, f"Traceback\n{SECRET}", json.dumps({"type": "hello", "protocol": SECRET, "version": 1})],
)
def test_a_token_in_the_first_frame_is_not_quoted(first):
    def handle(connection):
        connection.send(first)
        connection.recv()

    with served(handle) as port:
        policy = WebSocketPolicy("127.0.0.1", port, token=SECRET)
        with pytest.raises(UserError, match=r"\(token\)") as caught:
            policy.check()
        fault = VLNEvaluator(MockEnv(), policy).evaluate_episode(episode()).error
    assert SECRET not in str(caught.value) + fault.message + fault.traceback


@pytest.mark.parametrize("answer", [SECRET, [SECRET], {"action": [f"my {SECRET}"]}])
def test_a_token_that_is_given_for_an_action_is_not_quoted(answer):
    agent = Agent(lambda talk: talk.reply(answer))
    with served(agent) as port:
        policy = WebSocketPolicy("127.0.0.1", port, token=SECRET)
        with VLNEvaluator(MockEnv(), policy) as evaluator:
            fault = evaluator.evaluate_episode(episode()).error
    assert fault.kind == "invalid_action"
    assert "(token)" in fault.message
    assert SECRET not in fault.message + fault.traceback


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """A certificate for localhost that vouches for itself."""
    folder = tmp_path_factory.mktemp("tls")
    command = (
        "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -keyout key.pem -out ca.pem"
    )
    extensions = ["-addext", "subjectAltName=DNS:localhost"]
    subprocess.run([*command.split(), *extensions], cwd=folder, check=True, capture_output=True)
    return folder


def test_tls_with_a_certificate_of_ones_own(certificate):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate / "ca.pem", certificate / "key.pem")
    with served(Agent(), ssl=context) as port:
        trusting = WebSocketPolicy(f"wss://localhost:{port}", ca_file=str(certificate / "ca.pem"))
        with VLNEvaluator(MockEnv(), trusting) as evaluator:
            assert evaluator.evaluate_episode(episode()).success
        with VLNEvaluator(MockEnv(), WebSocketPolicy(f"wss://localhost:{port}")) as evaluator:
            result = evaluator.evaluate_episode(episode())
        elsewhere = WebSocketPolicy(f"wss://127.0.0.1:{port}", ca_file=str(certificate / "ca.pem"))
        with pytest.raises(UserError, match=r"certificate is not trusted here \(.*127\.0\.0\.1.*ca_file"):
            elsewhere.check()
    assert result.error.kind == "protocol_mismatch"
    assert "not trusted here (self-signed certificate): see ca_file" in result.error.message
    with served(Agent()) as port, pytest.raises(UserError, match="or a server for ws://"):
        WebSocketPolicy(f"wss://localhost:{port}", connect_timeout_s=0.3).check()


@pytest.mark.parametrize("subprotocol", [JSON, MSGPACK])
def test_a_policy_gets_the_same_scores_over_the_wire_as_in_process(subprotocol, tmp_path):
    with VLNEvaluator(MockEnv(), MockPolicy(), seed=3) as evaluator:
        evaluator.evaluate_dataset(SAMPLE).save(tmp_path / "here.json")
    with served(Remote(), subprotocol=subprotocol) as port:
        policy = WebSocketPolicy("127.0.0.1", port)
        with VLNEvaluator(MockEnv(), policy, seed=3) as evaluator:
            evaluator.evaluate_dataset(SAMPLE).save(tmp_path / "there.json")
    assert (tmp_path / "there.json").read_bytes() == (tmp_path / "here.json").read_bytes()


def test_the_registry_knows_addresses(monkeypatch):
    assert load("policy", "ws://localhost:1,wss://b.example.org/x") is WebSocketPolicy
    assert build("policy", "ws://localhost:1", {"action_timeout_s": 5}).url == "ws://localhost:1"
    with pytest.raises(UserError, match=r"keyword.*'action_timeout'; did you mean 'action_timeout_s'"):
        build("policy", "ws://localhost:1", {"action_timeout": 5})
    with pytest.raises(UserError, match="expected an address"):
        load("policy", "ws://localhost:1,http://b")
    assert replicas("ws://a:1,ws://b:2") == ["ws://a:1", "ws://b:2"]


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("ws://localhost:8080", "localhost-8080"),
        ("wss://agents.example.org/team/7", "agents.example.org-team-7"),
        ("ws://[::1]:80", "1-80"),
        ("ws://a:1,ws://b:2,ws://c:3", "a-1-and-2-more"),
        ("ws://a/../../etc", "a-..-..-etc"),
        ("ws://[::]", "agent"),
    ],
)
def test_an_address_has_a_clean_label(name, label):
    assert address_label(name) == label


def command(*words):
    return main(["run", "--dataset", str(SAMPLE), "--env", "mock", *map(str, words)])


def test_a_run_by_address_is_resumed_without_the_agent_when_all_is_done(tmp_path, capsys):
    with served(Agent(lambda talk: talk.reply("STOP"))) as port:
        words = ("--policy", f"ws://127.0.0.1:{port}", "random", "--out", tmp_path)
        assert command(*words) == 0
    manifest = json.loads((tmp_path / f"127.0.0.1-{port}" / "manifest.json").read_text())
    assert manifest["identity"]["policy"] == f"ws://127.0.0.1:{port}"
    assert manifest["identity"]["privileged"] is False
    assert command(*words) == 0
    assert "nothing to do" in capsys.readouterr().out


def test_unreachable_agents_are_told_before_any_policy_begins(tmp_path, capsys):
    address = f"ws://127.0.0.1:{free_port()}"
    quickly = ("--policy-option", "connect_timeout_s=0.2")
    assert command("--policy", "random", address, *quickly, "--out", tmp_path / "run") == 2
    assert f"nobody answers at {address}" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_replicas_are_shared_out_among_workers(tmp_path, capsys):
    agents = [Remote(), Remote()]
    with served(agents[0]) as first, served(agents[1]) as second:
        policy = f"ws://127.0.0.1:{first},ws://127.0.0.1:{second}"
        assert command("--policy", policy, "--workers", 2, "--out", tmp_path / "two") == 0
        counts = [len(agent.told("reset_episode")) for agent in agents]
        assert "addresses of the agent" not in capsys.readouterr().out
        assert command("--policy", policy, "--out", tmp_path / "one") == 0
    assert all(counts)
    assert [len(agent.told("reset_episode")) for agent in agents] == [sum(counts) + counts[0], counts[1]]
    assert "only 1 of 2 addresses of the agent will be used" in capsys.readouterr().out
    assert (tmp_path / "two" / "results.json").read_bytes() == (
        tmp_path / "one" / "results.json"
    ).read_bytes()


def test_where_a_replica_does_not_answer_the_next_one_is_asked():
    gone = free_port()
    with served(Agent()) as port:
        addresses = f"ws://127.0.0.1:{gone},ws://127.0.0.1:{port}"
        with VLNEvaluator(MockEnv(), WebSocketPolicy(addresses)) as evaluator:
            assert evaluator.evaluate_episode(episode()).success
        with pytest.raises(UserError, match=f"nobody answers at ws://127.0.0.1:{gone}.*port {gone}"):
            WebSocketPolicy(addresses, connect_timeout_s=0.2).check()  # before a run all should be there


def test_how_an_agent_is_reached_may_change_before_a_run_goes_on(tmp_path):
    with served(Remote()) as port:
        policy = f"ws://127.0.0.1:{port}"
        assert command("--policy", policy, "--episodes", 1, "--out", tmp_path / "run") == 0
        again = ("--policy-option", "connect_timeout_s=5", "--policy-option", "token=secret")
        assert command("--policy", policy, "--episodes", 1, *again, "--out", tmp_path / "run") == 0
        other = ("--policy-option", "action_timeout_s=5")
        assert command("--policy", policy, "--episodes", 1, *other, "--out", tmp_path / "run") == 2


def test_an_agent_for_one_connection_is_told_apart_from_none(tmp_path):
    alone = threading.Lock()

    def one_at_a_time(connection, request):
        return None if alone.acquire(blocking=False) else connection.respond(503, "busy\n")

    with served(Agent(), process_request=one_at_a_time) as port:
        config = run_config(f"ws://127.0.0.1:{port}", connect_timeout_s=0.5)
        config = RunConfig(job=config.job, dataset=SAMPLE, workers=2)
        with pytest.raises(UserError, match=r"fewer connections at once than --workers 2 needs: .*not ready"):
            check_agents(plan_run(config, tmp_path / "run"))
    assert not (tmp_path / "run").exists()


def test_closing_is_quick_though_the_agent_does_not_answer():
    stay = threading.Event()

    def deaf(connection):
        connection.send(json.dumps(HELLO))
        stay.wait(20)

    with served(deaf, close_timeout=0.1) as port:
        policy = WebSocketPolicy("127.0.0.1", port)
        policy.check()
        policy.close()
        policy.close()
        policy.episode_end(Outcome(status="failure", metrics={}, num_steps=0))
        stay.set()


def test_help_teaches_addresses(capsys):
    with pytest.raises(SystemExit):
        main(["run", "--help"])
    assert "--policy ws://localhost:8080" in capsys.readouterr().out
