"""The server of `proctor play` without a browser: who is let in, what is refused, and what is scored."""

import http.client
import json
import threading
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from fetch_exam import FetchExam
from play_pages import Player, served
from running import run
from served_agents import episode
from websockets.exceptions import ConnectionClosed, InvalidStatus

from proctor.contestants.play import PlayServer, page_of
from proctor.contestants.play_session import PlaySession
from proctor.core.errors import UserError
from proctor.exams.controls import DrivingControls
from proctor.exams.datasets import save_dataset
from proctor.exams.vln.exam import VlnExam
from proctor.runs import run as runs
from proctor.runs.attempts import Patience
from proctor.runs.job import RunJob
from proctor.runs.plan import RunConfig, plan_run

OWN_EXAM = Path(__file__).parents[2] / "examples" / "own_exam"
TOKEN = "secret-of-the-test"


@pytest.fixture
def page(tmp_path):
    with served(tmp_path, name="Anna") as found:
        yield found


def get(url, path="/", **headers):
    address = urlsplit(url)
    connection = http.client.HTTPConnection("127.0.0.1", address.port, timeout=30)
    connection.request("GET", path, headers={"Host": address.netloc, **headers})
    answer = connection.getresponse()
    return answer.status, dict(answer.getheaders()), answer.read().decode()


def test_the_page_is_one_document_that_may_load_nothing_else(page):
    status, headers, text = get(page.url)
    assert status == 200
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
    assert "unsafe" not in headers["Content-Security-Policy"]
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "no-referrer"
    assert " src=" not in text
    assert get(page.url, "/play.js")[0] == 404


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8765", "127.0.0.1.evil.example", "[::", "192.0.2.7"]
)
def test_names_of_other_machines_are_refused(page, host):
    assert get(page.url, Host=host)[0] == 403
    assert get(page.url, "/ws", Host=host)[0] == 403


def test_names_of_this_machine_are_taken_through_any_port(page):
    for host in ("localhost:9000", "127.0.0.1", "[::1]:80"):
        assert get(page.url, Host=host)[0] == 200


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:1", "http://localhost"])
def test_web_pages_of_others_cannot_connect(page, origin):
    with pytest.raises(InvalidStatus, match="403"), Player(page.url, origin=origin):
        pass


def test_the_page_itself_can_connect(page):
    with Player(page.url, origin=page.url.rstrip("/")) as player:
        assert player.receive()["phase"] in ("wait", "play")


@pytest.mark.parametrize(
    "query", ["", "?token=", "?token=wrong", f"?token={TOKEN}&token={TOKEN}", "?token=%ff"]
)
def test_without_the_right_token_nobody_gets_in(tmp_path, query):
    with served(tmp_path, token=TOKEN) as page:
        assert get(page.url, f"/{query}")[0] == 401
        assert get(page.url, f"/ws{query}")[0] == 401
        assert get(page.url, f"/?token={TOKEN}")[0] == 200
        with Player(page.url) as player:
            assert player.receive()["phase"] == "name"


def test_beyond_this_machine_a_token_is_drawn():
    session = PlaySession(VlnExam)
    first, second = (PlayServer(session, title="", host="0.0.0.0", port=0) for _ in range(2))
    tokens = [parse_qs(urlsplit(server.url).query)["token"][0] for server in (first, second)]
    assert min(map(len, tokens)) >= 24
    assert tokens[0] != tokens[1]
    assert "token" not in PlayServer(session, title="", host="::1").url


def test_addresses_of_this_machine_are_known_where_others_can_connect(tmp_path):
    with served(tmp_path, host="0.0.0.0", token=TOKEN) as page:
        assert (
            get(page.url, f"/?token={TOKEN}", Host="192.0.2.7:8765")[0] == 200
        )  # no name could be ours falsely
        assert get(page.url, f"/?token={TOKEN}", Host="evil.example")[0] == 403


@pytest.mark.parametrize(
    "text",
    [
        "no JSON",
        "[]",
        '{"type": "shutdown"}',
        '{"type": "press", "turn": "1", "name": "STOP"}',
        '{"type": "press", "turn": 1, "name": "FLY"}',
        json.dumps({"type": "name", "name": "x" * 1000}),
        "x" * 10_000,
    ],
)
def test_messages_that_make_no_sense_end_the_connection_and_nothing_else(page, text):
    with Player(page.url) as player:
        turn = player.wait_for("play")["turn"]
        player.connection.send(text)
        with pytest.raises(ConnectionClosed) as closed:
            player.wait_for("never")
        assert closed.value.rcvd.code == (1009 if len(text) > 4096 else 1008)
    with Player(page.url) as player:
        assert player.wait_for("play")["turn"] == turn


def test_an_answer_counts_once_and_only_in_its_turn(page):
    with Player(page.url) as player:
        first = player.wait_for("play", is_open=True)["turn"]
        for _ in range(5):
            player.send("press", turn=first, name="FORWARD")
        player.wait_for("play", is_open=True, step=1)
        player.send("press", turn=first, name="STOP")
        player.send("press", turn=first + 7, name="STOP")
        player.press("LEFT")
        assert player.view["step"] == 2
        player.press("STOP")
        number = player.wait_for("score")["score"]["number"]
        for _ in range(3):
            player.send("next", number=number)
        player.send("next", number=99)
        player.wait_for("play", step=0, episode=2)
        player.press("STOP")
        assert player.wait_for("score")["score"]["number"] == number + 1
    assert [result.actions for result in page.results("Anna")] == [[1, 2, 0], [0]]


def test_the_same_actions_of_a_local_policy_give_the_same_result(page, tmp_path):
    keys = ["FORWARD", "LEFT", "RIGHT", "FORWARD", "FORWARD", "FORWARD", "STOP"]
    with Player(page.url) as player:
        for number in (1, 2):
            for key in keys:
                player.press(key)
            player.wait_for("score")
            player.send("next", number=number)
        player.wait_for("done")
    replay = RunJob(env="mock", policy="replay", policy_options={"run": str(page.out / "Anna")})
    again = run(RunConfig(job=replay, dataset=page.dataset), tmp_path / "again").results
    untimed = [
        [(r.episode_id, r.actions, r.metrics, r.trajectory, r.verdict, r.seed) for r in results]
        for results in (page.reports[0].results.episodes, again.episodes)
    ]
    assert untimed[0] == untimed[1]
    assert again.success_count == 2


def test_a_run_is_marked_as_a_persons(page):
    with Player(page.url) as player:
        for number in (1, 2):
            player.press("STOP")
            player.wait_for("score")
            player.send("next", number=number)
        player.wait_for("done")
    manifest = json.loads((page.out / "Anna/manifest.json").read_text())
    assert manifest["notes"] == ["human: a person took the exam at a page in a browser"]
    assert "Anna (human)" in json.dumps(manifest)


def test_a_session_belongs_to_one_browser_at_a_time(page):
    with Player(page.url, "one") as first:
        turn = first.wait_for("play", is_open=True)["turn"]
        with Player(page.url, "two") as second:
            assert second.wait_for("taken")["instruction"] == ""
            second.send("press", turn=turn, name="FORWARD")
            second.send("take_over")
            second.wait_for("play", turn=turn, step=0)
            first.wait_for("taken")
            first.send("press", turn=turn, name="STOP")
            second.press("FORWARD")
            assert second.view["step"] == 1
            with Player(page.url, "two") as again:  # after its connection was lost without a word
                again.wait_for("play", step=1)


def test_the_session_of_a_browser_that_has_left_is_free(page):
    with Player(page.url, "one") as first:
        first.press("FORWARD")
    with Player(page.url, "two") as second:
        assert second.wait_for("play", step=1)["is_open"]


def test_a_name_that_cannot_be_one_is_refused_with_the_reason(tmp_path):
    with served(tmp_path) as page, Player(page.url) as player:
        for name, reason in (("...", "a letter or digit"), ("x" * 61, "1 to 60"), ("a\u202eb", "printable")):
            player.wait_for("name")
            player.send("name", name=name)
            player.view = {}
            while reason not in player.receive()["problem"]:
                pass
        player.send("name", name="Ånna 安娜")
        player.wait_for("play")
        assert player.view["player"] == "Ånna 安娜"


def test_names_that_would_share_a_folder_are_told_apart(tmp_path):
    with served(tmp_path) as page, Player(page.url) as player:
        player.send("name", name="Anna B")
        for number in (1, 2):
            player.press("STOP")
            player.wait_for("score")
            player.send("next", number=number)
        player.wait_for("done")
        player.send("new_player")
        player.wait_for("name")
        player.send("name", name="Anna_B")
        player.view = {}
        while not player.receive()["problem"]:
            pass
        assert player.view["phase"] == "name"
        assert "Anna_B" in player.view["problem"]


def test_an_exam_without_controls_cannot_be_played():
    with pytest.raises(UserError, match="it has no controls"):
        PlaySession(FetchExam)


def test_to_give_up_ends_the_episode_as_a_failure(page):
    with Player(page.url) as player:
        turn = player.wait_for("play", is_open=True)["turn"]
        player.send("give_up", turn=turn)
        score = player.wait_for("score")["score"]
        assert not score["success"]
        assert "gave up" in score["sentence"]
    assert [result.error.kind for result in page.results("Anna")] == ["gave_up"]


def test_a_driving_exam_of_another_package_can_be_played_as_it_is(monkeypatch):
    monkeypatch.syspath_prepend(OWN_EXAM)
    from pointgoal.exam import PointGoalExam  # noqa: PLC0415 - it is found only now

    page, _ = page_of(PlaySession(PointGoalExam), "point-goal-v1")
    assert b"point-goal navigation" in page
    assert b"FORWARD" in page


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_controls_that_fail_end_the_run_instead_of_letting_it_wait(tmp_path, monkeypatch):
    def fail(controls, info, observation):
        raise RuntimeError("a mistake in somebody's controls")

    monkeypatch.setattr(DrivingControls, "begin", fail)
    save_dataset([episode("a")], tmp_path / "episodes.json")
    config = RunConfig(
        job=RunJob(env="mock", policy="human"),
        dataset=tmp_path / "episodes.json",
        patience=Patience(max_unavailable=1, pause_s=0.0),
    )
    plan = plan_run(config, tmp_path / "run")
    before = set(threading.enumerate())
    session = PlaySession(VlnExam)
    report = runs.run(plan, session.on_progress, policy=session.begin("Anna", plan))
    assert "nobody can answer any more" in report.stopped
    for thread in set(threading.enumerate()) - before:  # its error must not be found by the next test
        thread.join(10)
