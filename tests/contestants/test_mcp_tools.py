"""The tools of `proctor mcp`, without the protocol: agents that repeat themselves, guess, dawdle or leave."""

import itertools
import json
import threading
from types import SimpleNamespace

import msgspec
import pytest
from mcp_exams import LONG_S, Scripted, exam, exam_config, exam_of
from running import run

from proctor.contestants import mcp_tools
from proctor.contestants.mcp_tools import Refused
from proctor.exams.vln.exam import VlnExam
from proctor.runs.job import RunJob
from proctor.runs.plan import RunConfig


def begin(tools):
    return tools.call("begin_episode", {}).report


def act(tools, handle, actions, step):
    return tools.call("act", {"episode": handle, "actions": actions, "expect_step": step})


def refusal(tools, name, **arguments):
    with pytest.raises(Refused) as refused:
        tools.call(name, arguments)
    return str(refused.value)


def let_time_pass(seat):
    """Let the time of the present episode be over, and wait for the next one."""
    info, number = seat.turn.info, seat.turn.number
    with seat._changed:
        seat._deadline_s = 0.0
        seat._changed.notify_all()
    while seat.turn.info is info:
        number = seat.wait(number, LONG_S).number


def take_all(tools, *chunks):
    """Take all episodes by the same chunks of actions; return all that the agent was told."""
    told = []
    while True:
        try:
            told.append(tools.call("begin_episode", {}))
        except Refused as refused:
            return told, str(refused)
        handle, step = told[-1].report["episode"], 0
        for chunk in chunks:
            told.append(act(tools, handle, chunk, step))
            step = told[-1].report["step"]


def test_an_agent_that_acts_in_chunks_gets_the_results_of_one_that_acts_here(tmp_path):
    with exam(tmp_path) as tools:
        told, end = take_all(tools, ["FORWARD", "LEFT"], ["RIGHT", "FORWARD", "FORWARD"], ["STOP"])
        tools.finish()
    script = ["FORWARD", "LEFT", "RIGHT", "FORWARD", "FORWARD", "STOP"]
    local = run(exam_config(tmp_path / "episodes.json"), tmp_path / "local", policy=Scripted(script))
    ours = [msgspec.json.encode((e.metrics, e.trajectory, e.actions)) for e in tools.report.results.episodes]
    assert ours == [msgspec.json.encode((e.metrics, e.trajectory, e.actions)) for e in local.results.episodes]
    assert end == "the exam is over: all 2 episodes are done"
    assert tools.end_told.is_set()
    assert [reply.report["done"] for reply in told] == [False, False, False, True] * 2
    assert [len(reply.pictures) for reply in told] == [1, 1, 1, 0] * 2


def test_nothing_that_is_told_leads_to_the_goal(tmp_path):
    with exam(tmp_path, names=("secret-name-1", "secret-name-2")) as tools:
        told, _ = take_all(tools, ["FORWARD"], ["STOP"])
    for reply in told:  # pictures of the mock are so small that depth is told as text
        assert reply.report.pop("state", "depth").startswith("depth")
    first, later, last = told[0].report, told[1].report, told[2].report
    assert set(first) == {
        *("episode", "instruction", "language", "robot", "episodes_after_this", "step", "steps_left"),
        *("seconds_left", "done", "pictures"),
    }
    assert set(later) == {"episode", "actions_done", "step", "steps_left", "seconds_left", "done", "pictures"}
    assert set(last) == {"episode", "actions_done", "step", "done", "next"}
    text = json.dumps([reply.report for reply in told])
    assert not [word for word in ("secret", "success", "distance", "collision", "scene") if word in text]
    assert first["steps_left"] == 10
    assert (first["episodes_after_this"], told[3].report["episodes_after_this"]) == (1, 0)
    assert last["next"] == "the episode is over: call begin_episode for the next one"


def test_calls_without_an_episode_or_for_another_one_are_refused(tmp_path):
    with exam(tmp_path) as tools:
        arguments = {"episode": "guess", "actions": ["FORWARD"], "expect_step": 0}
        assert "call begin_episode" in refusal(tools, "act", **arguments)
        handle = begin(tools)["episode"]
        assert "not the handle of the episode under way" in refusal(tools, "act", **arguments)
        assert "not the handle" in refusal(tools, "observe", episode="gästebuch")
        assert "not the handle" in refusal(tools, "observe", episode="\ud800")
        act(tools, handle, ["STOP"], 0)
        over = "the episode is over: call begin_episode"
        assert over in refusal(tools, "observe", episode=handle)
        assert over in refusal(tools, "act", **{**arguments, "episode": handle})
        assert over in refusal(tools, "stop", episode=handle)
        second = begin(tools)["episode"]
        assert second != handle
        assert "not the handle" in refusal(tools, "act", **{**arguments, "episode": handle})
        assert tools.call("observe", {"episode": second}).report["step"] == 0


def test_a_lost_reply_to_begin_episode_costs_nothing_and_a_second_agent_is_refused(tmp_path):
    with exam(tmp_path) as tools:
        first = begin(tools)
        assert begin(tools)["episode"] == first["episode"]
        act(tools, first["episode"], ["FORWARD"], 0)
        text = refusal(tools, "begin_episode")
        assert "an episode is under way, at step 1" in text
        assert first["episode"] not in text
        assert tools.call("observe", {"episode": first["episode"]}).report["step"] == 1


def test_a_repeated_request_is_refused_with_the_true_step(tmp_path):
    with exam(tmp_path) as tools:
        handle = begin(tools)["episode"]
        request = {"episode": handle, "actions": ["FORWARD", "LEFT"], "expect_step": 0}
        assert tools.call("act", request).report["step"] == 2
        assert "nothing was done: the episode is at step 2" in refusal(tools, "act", **request)
        seen = tools.call("observe", {"episode": handle})
        assert (seen.report["step"], seen.report["steps_left"]) == (2, 8)


@pytest.mark.parametrize(
    ("actions", "problem"),
    [
        (["FORWARD", "JUMP"], "unknown action 'JUMP'"),
        ([], "expected at least one action"),
        (["LEFT"] * 9, "at most 8 actions"),
        (3, "actions: expected a list of names"),
        ([{"type": "joint_position"}], "unknown action"),
        ([1e400], "unknown action 'inf'"),
    ],
)
def test_what_is_not_an_action_is_refused_and_nothing_is_done(tmp_path, actions, problem):
    with exam(tmp_path) as tools:
        handle = begin(tools)["episode"]
        text = refusal(tools, "act", episode=handle, actions=actions, expect_step=0)
        assert problem in text
        assert tools.call("observe", {"episode": handle}).report["step"] == 0


def test_unknown_tools_and_arguments_are_refused_with_a_hint(tmp_path):
    with exam(tmp_path) as tools:
        assert "did you mean 'begin_episode'" in refusal(tools, "begin_episodes")
        assert "missing required field `expect_step`" in refusal(tools, "act", episode="x", actions=["STOP"])
        assert "missing required field `actions`" in refusal(tools, "act", episode="x", expect_step=0)
        assert "unknown field `speed`" in refusal(tools, "observe", episode="x", speed=2)


def test_actions_after_the_end_of_an_episode_are_not_done(tmp_path):
    with exam(tmp_path) as tools:
        first = act(tools, begin(tools)["episode"], ["FORWARD", "STOP", "LEFT", "LEFT"], 0)
        second = act(tools, begin(tools)["episode"], ["LEFT"] * 8, 0)
        last = act(tools, second.report["episode"], ["LEFT"] * 8, 8)
        tools.finish()
    assert (first.report["actions_done"], first.report["done"]) == (2, True)
    assert (last.report["actions_done"], last.report["step"], last.report["done"]) == (2, 10, True)
    assert last.report["next"] == "the episode is over, and so is the exam: it was the last one"
    assert [len(e.actions) for e in tools.report.results.episodes] == [2, 10]


def test_stop_ends_the_episode_where_the_robot_is(tmp_path):
    with exam(tmp_path) as tools:
        for _ in range(2):
            handle = begin(tools)["episode"]
            act(tools, handle, ["FORWARD"], 0)
            assert tools.call("stop", {"episode": handle}).report["done"]
        tools.finish()
    assert [e.actions for e in tools.report.results.episodes] == [[1, 0], [1, 0]]


def test_an_agent_that_leaves_in_mid_episode_is_at_fault_and_before_its_first_step_is_not(tmp_path):
    with exam(tmp_path) as tools:
        begin(tools)  # and leave
        let_time_pass(tools.seat)
        second = begin(tools)["episode"]
        act(tools, second, ["FORWARD"], 0)  # and leave
        let_time_pass(tools.seat)
        assert "the episode is over: call begin_episode" in refusal(tools, "observe", episode=second)
        again = begin(tools)["episode"]  # the first one comes again
        tools.call("stop", {"episode": again})
        tools.finish()
    lines = [json.loads(line) for line in (tmp_path / "run/episodes.jsonl").read_text().splitlines()]
    faults = [
        (line["episode_id"], (line["error"] or {}).get("side"), line["failure_reason"]) for line in lines
    ]
    assert faults == [
        ("first", "unavailable", "episode_timeout"),
        ("second", "agent", "episode_timeout"),
        ("first", None, "stopped_far"),
    ]


def test_a_code_word_in_a_picture_opens_the_exam_where_that_is_asked_for(tmp_path, monkeypatch):
    monkeypatch.setattr(mcp_tools.secrets, "choice", lambda letters: letters[0])
    with exam(tmp_path, check_pictures=True) as tools:
        assert list(tools.schemas())[-2:] == ["check_pictures", "confirm_pictures"]
        assert "call check_pictures first" in refusal(tools, "begin_episode")
        assert "call check_pictures first" in refusal(tools, "confirm_pictures", word="AAAAAA")
        shown = tools.call("check_pictures", {})
        assert "AAAAAA" not in json.dumps(shown.report)
        assert len(shown.pictures) == 1
        assert "not the word" in refusal(tools, "confirm_pictures", word="BBBBBB")
        assert "no word to confirm" in refusal(tools, "confirm_pictures", word="AAAAAA")
        tools.call("check_pictures", {})
        assert tools.call("confirm_pictures", {"word": " aaaaaa"}).report["confirmed"]
        assert begin(tools)["step"] == 0
    manifest = json.loads((tmp_path / "run/manifest.json").read_text())
    assert manifest["notes"] == ["before its first episode the agent had to read a code word from a picture"]


def test_two_calls_at_once_are_done_one_after_the_other(tmp_path):
    with exam(tmp_path) as tools:
        handle = begin(tools)["episode"]
        told, refused = [], []

        def forward():
            try:
                told.append(act(tools, handle, ["FORWARD", "FORWARD"], 0).report["step"])
            except Refused as refusal:
                refused.append(str(refusal))

        threads = [threading.Thread(target=forward) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(LONG_S)
    assert told == [2]
    assert len(refused) == 3
    assert all("at step 2" in text for text in refused)


def test_a_run_that_stops_tells_the_agent_so(tmp_path):
    with exam(tmp_path) as tools:
        handle = begin(tools)["episode"]
        act(tools, handle, ["FORWARD"], 0)
        tools.seat.close()
        assert "the episode is over" in refusal(tools, "observe", episode=handle)
        assert "the evaluator has stopped after" in refusal(tools, "begin_episode")


def test_a_long_stop_comes_back_in_time_and_can_be_called_again(tmp_path, monkeypatch):
    class Patient(VlnExam):
        """An exam in which nothing means STOP, so that to stop is to wait for the last step."""

        def idle_action(self, observation, last):
            return "LEFT"

    clock = itertools.count()
    monkeypatch.setattr(mcp_tools, "WAIT_S", 4.5)
    monkeypatch.setattr(mcp_tools, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    with exam(tmp_path, exam_class=Patient) as tools:
        handle = begin(tools)["episode"]
        first = tools.call("stop", {"episode": handle}).report
        assert (first["step"], first["done"]) == (4, False)
        assert "call stop again" in first["next"]
        while not (last := tools.call("stop", {"episode": handle}).report)["done"]:
            pass
        assert last["step"] == 10


def test_an_exam_with_tools_of_its_own_takes_its_messages_as_well(tmp_path):
    job = RunJob(policy="mcp", env_options={"sensors": []})
    config = RunConfig(job=job, suite="tabletop-v1", episodes=1)
    with exam_of(config, tmp_path / "run") as tools:
        assert list(tools.schemas()) == [
            "begin_episode",
            "observe",
            "move",
            "set_joints",
            "wait",
            "act",
            "stop",
        ]
        told = begin(tools)
        handle = told["episode"]
        assert "Pick up: " in told["details"]
        target = {"x": 0.1, "y": -0.4, "z": 0.7, "yaw": -1.2, "gripper": "open"}
        moved = tools.call("move", {"episode": handle, "expect_step": 0, **target}).report
        assert moved["actions_done"] == moved["step"] > 1
        assert "gripper open by 0.04" in moved["state"]
        joints = {"type": "joint_position", "qpos": [0, 0, 0, 0.8, 0.1, 0, 0.03]}
        request = {"episode": handle, "expect_step": moved["step"], "actions": [joints, joints]}
        assert tools.call("act", request).report["step"] == moved["step"] + 2
        request["expect_step"] += 2
        short = [joints, {**joints, "qpos": [0]}]
        text = refusal(tools, "act", **{**request, "actions": short})
        assert "nothing was done: actions[1]: qpos: expected 7 or 10 numbers" in text
        assert "list of 1 to 8" in refusal(tools, "act", **{**request, "actions": []})
        assert "z: expected a number" in refusal(
            tools, "move", episode=handle, expect_step=moved["step"] + 2, **{**target, "z": "high"}
        )
