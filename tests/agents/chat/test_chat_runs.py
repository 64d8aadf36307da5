"""Whole runs with chat models: both exams, workers, outages, resuming, and keys that stay where they are."""

import json
import subprocess
import sys
from contextlib import contextmanager
from itertools import chain, repeat
from pathlib import Path

import pytest
from msgspec.structs import replace
from strict_servers import KEY, Said, StrictChat, StrictMessages, acts

from proctor.core.registry import suite_path
from proctor.core.types import Vector3
from proctor.exams.datasets import load_dataset, save_dataset
from proctor.exams.vln.episode import Episode

REPOSITORY = Path(__file__).parents[3]
BUSY = (503, {"error": {"message": "scaling up"}}, {})
IMPATIENT = ("--unavailable-pause", "0", "--policy-option", "max_retries=0")


@pytest.fixture(autouse=True)
def key(monkeypatch):
    monkeypatch.setenv("PROCTOR_CHAT_KEY", KEY)


@pytest.fixture
def dataset(tmp_path):
    """Two episodes on an empty plane: 1 m ahead."""
    episodes = [
        Episode(
            episode_id=name, scene_id="empty", goal_position=Vector3(1, 0, 0), instruction="Go.", max_steps=9
        )
        for name in ("a", "b")
    ]
    save_dataset(episodes, tmp_path / "episodes.json")
    return tmp_path / "episodes.json"


def endless(*script, then):
    return chain(script, repeat(then))


@contextmanager
def serving(script, server=StrictChat):
    with server() as found:
        found._script = iter(script)
        yield found


def run(proctor, dataset, server, *words, out="run"):
    return proctor(
        *("run", "--dataset", dataset, "--policy", server.address, "--policy-option", "model=gpt-x"),
        *("--env", "mock", "--out", dataset.parent / out, *words),
    )


def results(dataset, out="run"):
    return json.loads((dataset.parent / out / "results.json").read_text())["episodes"]


def journal(dataset, out="run"):
    lines = (dataset.parent / out / "episodes.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def test_an_outage_in_the_middle_of_an_episode_is_nobodys_fault(proctor, dataset):
    go = acts("FORWARD", "FORWARD")
    script = [go, BUSY, go, go, acts("STOP"), go, go, acts("STOP")]
    with serving(script) as server:
        code, out, _ = run(proctor, dataset, server, *IMPATIENT)
    assert code == 0, out
    assert [(each["status"], each["steps"]) for each in results(dataset)] == [("success", 5)] * 2
    lost = journal(dataset)[0]
    assert (lost["error"]["side"], lost["error"]["kind"], lost["steps"]) == (
        "unavailable",
        "model_overloaded",
        2,
    )
    assert "answered 503: scaling up" in lost["error"]["message"]


def test_a_key_that_is_refused_in_the_middle_stops_the_run(proctor, dataset):
    refused = (401, {"error": {"message": f"bad key {KEY}"}}, {})
    with serving(endless(acts("FORWARD"), then=refused)) as server:
        code, _, err = run(proctor, dataset, server, *IMPATIENT)
        assert code == 3
        assert len(server.seen) == 4  # one reply, and three attempts
    assert "the key is taken from PROCTOR_CHAT_KEY in the environment; it is refused" in err
    assert "go on with: proctor run" in err


def test_a_model_that_does_not_act_fails_its_episodes(proctor, dataset):
    with serving(repeat(Said("I would rather talk."))) as server:
        code, out, _ = run(proctor, dataset, server)
    assert code == 0
    assert {each["failure_reason"] for each in results(dataset)} == {"no_action"}
    assert {each["error"]["side"] for each in results(dataset)} == {"agent"}
    assert "no_action" in out


def test_a_policy_that_pretends_an_outage_is_not_believed(proctor, dataset):
    agent = dataset.parent / "sly.py"
    agent.write_text(
        "from proctor.core.errors import AgentUnavailable\n"
        "from proctor.core.interfaces import Policy\n"
        "class Sly(Policy):\n"
        "    def reset(self, info):\n"
        "        self.steps = 0\n"
        "    def act(self, observation):\n"
        "        self.steps += 1\n"
        "        if self.steps > 2:\n"
        "            raise AgentUnavailable('gone', is_outage=True)\n"
        "        return 1\n"
    )
    code, _, _ = proctor(
        *("run", "--dataset", dataset, "--policy", f"{agent}:Sly"),
        *("--env", "mock", "--out", dataset.parent / "run"),
    )
    assert code == 0
    assert {each["error"]["side"] for each in results(dataset)} == {"agent"}


def test_keys_are_written_nowhere(proctor, dataset):
    echo = (500, {"error": {"message": f"key {KEY} is slow"}}, {})
    with serving(endless(echo, Said(f"my key is {KEY}"), then=Said(f"my key is {KEY}"))) as server:
        _, out, err = run(proctor, dataset, server, "--save-steps", "full")
    written = [path for path in (dataset.parent / "run").rglob("*") if path.is_file()]
    assert written
    assert [path for path in written if KEY.encode() in path.read_bytes()] == []
    assert KEY not in out + err


def test_workers_share_replicas(proctor, dataset):
    script = [acts("FORWARD", "FORWARD", "FORWARD", "FORWARD"), acts("STOP")]
    with serving(script) as one, serving(script) as other:
        address = f"{one.address},{other.address}"
        code, out, _ = proctor(
            *("run", "--dataset", dataset, "--policy", address, "--policy-option", "model=gpt-x"),
            *("--env", "mock", "--out", dataset.parent / "run", "--workers", "2"),
        )
        assert code == 0, out
        assert (len(one.seen), len(other.seen)) == (2, 2)
    assert [each["success"] for each in results(dataset)] == [True, True]


def test_what_defines_a_run(proctor, dataset, tmp_path):
    template = tmp_path / "mine.md"
    template.write_text("## user\n{instruction}\n{pictures}\n")
    given = ("--policy-option", f"template={template}", "--policy-option", "pictures=0")
    with serving(repeat(acts("STOP"))) as server:
        assert run(proctor, dataset, server, *given)[0] == 0
        asked = len(server.seen)
        more = ("--policy-option", "wire=false", "--policy-option", "timeout_s=9")
        assert "nothing to do" in run(proctor, dataset, server, *given, *more)[1]
        assert len(server.seen) == asked
        template.write_text("## user\nOtherwise: {instruction}\n{pictures}\n")
        code, _, err = run(proctor, dataset, server, *given)
        assert code == 2
        assert "policy_sha256" in err or "another" in err
        code, _, err = run(proctor, dataset, server, "--policy-option", "temperature=1")
        assert code == 2


def test_a_wrong_model_is_named_before_anything_is_written(proctor, dataset):
    with serving([]) as server:
        code, _, err = run(proctor, dataset, server, "--policy-option", "model=gpt-z")
    assert code == 2
    assert "did you mean 'gpt-x'" in err
    assert not (dataset.parent / "run").exists()


def test_a_house_with_pictures(proctor, tmp_path):
    with serving(
        endless(acts("FORWARD", "LEFT"), acts("RIGHT"), then=acts("STOP")), StrictMessages
    ) as server:
        code, out, _ = proctor(
            *("run", "--suite", "houses-v1", "--policy", server.address, "--policy-option", "model=gpt-x"),
            *("--episodes", "1", "--out", tmp_path / "run"),
        )
        assert code == 0, out
        sent = [json.dumps(body) for body in server.seen]
    (episode,) = json.loads((tmp_path / "run" / "results.json").read_text())["episodes"]
    assert episode["actions"] == [1, 2, 3, 0]
    assert episode["instruction"][:40] in sent[0]
    assert "75 degrees wide and 60 degrees high" in sent[0]
    assert [text.count("/9j/") for text in sent] == [1, 2, 3]


def test_a_table_with_two_pictures(proctor, tmp_path):
    episode = load_dataset(suite_path("tabletop-v1")).episodes[0]
    short = replace(episode, sim_params=replace(episode.sim_params, max_steps=60))
    save_dataset([short], tmp_path / "episodes.json")
    up = {"x": 0.07, "y": -0.32, "z": 0.75, "yaw": -1.07, "gripper": "open", "note": "up"}
    joints = {"lift": 0.7, "gripper": "keep", "note": "down a bit"}
    script = [Said(calls=(("move", up),)), Said(calls=(("set_joints", joints),))]
    with serving(endless(*script, then=Said(calls=(("wait", {"steps": 40, "note": "."}),)))) as server:
        code, out, _ = proctor(
            *("run", "--dataset", tmp_path / "episodes.json", "--policy", server.address),
            *("--policy-option", "model=gpt-x", "--out", tmp_path / "run"),
        )
        assert code == 0, out
        first, second, *_ = (json.dumps(body) for body in server.seen)
    (found,) = json.loads((tmp_path / "run" / "results.json").read_text())["episodes"]
    assert (found["steps"], found["failure_reason"]) == (60, "timeout")
    kinds = [action["type"] for action in found["actions"]]
    assert kinds.index("joint_position") >= 20  # the move, and the gripper that opens
    assert set(kinds) == {"ee_pose_target", "joint_position"}
    assert "What you see now (head camera):" in first
    assert "What you see now (wrist camera):" in first
    assert first.count("/9j/") == 2
    assert "Your last move is 0.0" in second
    assert "gripper open by 0.04" in second
    assert "Put it down: container tray_white at x=0.247 y=-0.928 z=0.800" in first


def test_the_example_server(proctor, tmp_path):
    server = subprocess.Popen(
        [sys.executable, REPOSITORY / "examples" / "chat_server.py", "--port", "0"],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        url = server.stdout.readline().split()[-1]
        code, out, err = proctor(
            *("run", "--suite", "houses-v1", "--policy", f"chat+{url}", "--policy-option", "model=demo"),
            *("--episodes", "1", "--out", tmp_path / "run"),
        )
    finally:
        server.terminate()
        server.communicate(timeout=30)
    assert code == 0, out + err
    (episode,) = json.loads((tmp_path / "run" / "results.json").read_text())["episodes"]
    assert episode["error"] is None
    assert episode["actions"][-1] == 0
