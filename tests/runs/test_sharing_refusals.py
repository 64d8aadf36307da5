"""Runs that cannot be shared, broken folders, full disks: told clearly, and nothing is lost."""

import json
import os
import re
import shutil
import signal
import subprocess
from contextlib import ExitStack

import pytest
import talking_policy
from served_agents import Agent, served
from shared_runs import EPISODES, SharedTrial, until

from proctor.cli import main
from proctor.runs import joining

SECRET = "hunter2-hunter2"
WITHOUT_LINKS = """
import errno, os
def link(*_, **__):
    raise OSError(errno.EPERM, "Operation not permitted")
os.link = link
"""
AGENT = """
from proctor.core.interfaces import Policy
class Agent(Policy):
    def act(self, observation):
        return 1
"""


@pytest.fixture
def trial(tmp_path):
    trial = SharedTrial(tmp_path)
    yield trial
    trial.close()


def stopped(trial, *more, number=signal.SIGINT, **options):
    """Begin a run and interrupt it in its first episode."""
    trial.hold()
    leader = trial.begin(*more, **options)
    until((trial.out / "work" / "run.json").exists)
    trial.await_begun(leader)
    leader.send_signal(number)
    leader.wait()
    trial.let_go()


def on_one_line(said):
    return " ".join(said.split())


def test_an_interrupted_run_leaves_its_folder_to_others_and_goes_on(trial):
    stopped(trial)
    assert {file.name for file in trial.out.iterdir()} == {
        *("agent_ids.key", "episodes.jsonl", "manifest.json", "work"),
    }
    assert trial.end(trial.begin())[0][0] == 0
    trial.check_results()


def test_joining_where_nothing_runs_is_told_after_a_while(trial, monkeypatch, capsys):
    monkeypatch.setattr(joining, "BEGIN_DEADLINE_S", 0.3)
    assert main(list(map(str, trial.words("--join")))) == 2
    said = on_one_line(capsys.readouterr().err)
    assert (
        f"a run to help with in {trial.out}, found none for 0.3 s; begin it by the command without --join"
        in said
    )
    assert not trial.out.exists()


def test_work_needs_a_run(trial):
    assert "no such folder" in trial.done("work", trial.out, code=2)
    trial.out.mkdir()
    assert "is not a run" in trial.done("work", trial.out, code=2)


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("--budget-usd", "3"), "--join: a run with a budget cannot be shared; leave --join out"),
        (("--env", "ros2", "--attach"), "--attach: one robot can do one episode at a time; leave --join out"),
        (("--env", "o3de"), "--env o3de: one engine can do one episode at a time; leave --join out"),
        (("--executor", "slurm"), "--join: the jobs of --executor slurm join the run by themselves"),
        (("--lease", "0.5"), "--lease: expected seconds from 1 to 86400, found 0.5"),
        (("--lease", "nan"), "--lease: expected seconds from 1 to 86400, found nan"),
    ],
)
def test_requests_that_cannot_be_met_are_refused(trial, capsys, words, problem):
    command = ["run", "--dataset", str(trial.dataset), "--policy", "random", "--join", *words]
    assert main(command) == 2
    assert problem in on_one_line(capsys.readouterr().err)


@pytest.mark.parametrize("words", [("--env", "o3de"), ("--env", "ros2", "--attach")])
def test_one_robot_is_not_driven_by_a_cluster(trial, capsys, words):
    assert (
        main(["run", "--dataset", str(trial.dataset), "--policy", "random", "--executor", "ray", *words]) == 2
    )
    assert "one episode at a time; leave --executor out" in on_one_line(capsys.readouterr().err)


def test_a_run_with_a_budget_takes_in_what_helpers_did_and_is_not_shared(tmp_path):
    trial = SharedTrial(tmp_path, policy=(f"{talking_policy.__file__}:TalkingPolicy",))
    try:
        trial.hold()
        leader = trial.begin()
        until((trial.out / "work" / "run.json").exists)
        helper = trial.help()
        first, second = trial.await_begun(leader, helper)
        leader.kill()
        trial.let_go(second)
        until((trial.out / "work" / "records" / f"ep_{second}").exists)
        helper.kill()
        helper.wait()
        trial.let_go()
        trial.hold(first)
        leader = trial.begin("--budget-usd", 100)
        until(lambda: len(trial.begun(first)) == 2)
        assert not (trial.out / "work").exists()
        said = trial.done("work", trial.out, code=2)
        assert "expected a run that is going on or has stopped, found no work/run.json" in on_one_line(said)
        trial.let_go(first)
        assert trial.end(leader)[0][0] == 0
        assert len(trial.begun(second)) == 1  # what was paid for counts
        trial.check_results()
    finally:
        trial.close()


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ({"proctor": "0.0.1"}, "the run is of Proctor 0.0.1, and this is Proctor"),
        ({"config": {}}, "config: "),
        ({"config": {"job": {"policy": 3}}}, "config: "),
        ({"folder": "/nowhere/at/all"}, "was begun in /nowhere/at/all, which is not there on this host"),
        (b"", "run.json"),
        (b'{"proctor": "0.', "run.json"),
        (b"\xff\xfe", "run.json"),
    ],
)
def test_a_run_file_that_does_not_fit_or_is_broken_is_named(trial, content, problem):
    stopped(trial)
    file = trial.out / "work" / "run.json"
    if isinstance(content, dict):
        content = json.dumps({**json.loads(file.read_bytes()), **content}).encode()
    file.write_bytes(content)
    assert problem in on_one_line(trial.done("work", trial.out, code=2))
    assert trial.end(trial.begin())[0][0] == 0  # the run's own command does not need it
    trial.check_results()


def test_a_record_that_is_broken_is_named_and_done_again_when_it_is_deleted(trial):
    stopped(trial)
    record = trial.out / "work" / "records" / "ep_3"
    record.write_bytes(b"\xc1 not a record")
    said = on_one_line(trial.done(*trial.words(), code=2))
    assert f"{record}: not the record of an episode" in said
    assert "delete it, and the episode is done again" in said
    record.unlink()
    assert trial.end(trial.begin())[0][0] == 0
    trial.check_results()


def test_an_edited_agent_cannot_help(tmp_path):
    (tmp_path / "agents").mkdir()
    (tmp_path / "agents" / "mine.py").write_text(AGENT)
    trial = SharedTrial(tmp_path, policy=("./agents/mine.py:Agent",))
    try:
        stopped(trial)
        (tmp_path / "agents" / "mine.py").write_text(AGENT.replace("return 1", "return 2"))
        for words in (["work", trial.out], trial.words("--join")):
            said = on_one_line(trial.done(*words, code=2))
            assert "holds a different run: its policy_sha256 is" in said
        (tmp_path / "agents" / "mine.py").write_text(AGENT)
        elsewhere = tmp_path / "elsewhere"
        elsewhere.mkdir()
        trial.done("work", "../run", cwd=elsewhere)  # paths are those of the command that began the run
        trial.check_results()
    finally:
        trial.close()


def test_who_has_other_packages_can_neither_help_nor_go_on(trial):
    stopped(trial)
    file = trial.out / "manifest.json"
    manifest = json.loads(file.read_bytes())
    others = {"numpy": {"packages": {**manifest["packages"], "numpy": "0.9"}}, "Python": {"python": "0.9.1"}}
    for name, change in others.items():
        file.write_text(json.dumps({**manifest, **change}))
        for words in (["work", trial.out], trial.words("--join"), trial.words()):
            said = on_one_line(trial.done(*words, code=2))
            assert f"here is {name} " in said
            assert f", and the run is of {name} 0.9; install the same, or give --out another folder" in said
    file.write_text(json.dumps({**manifest, "packages": {**manifest["packages"], "websockets": "0.9"}}))
    trial.done("work", trial.out)
    trial.check_results()


def test_secret_options_are_written_nowhere_but_tell_runs_apart(tmp_path):
    (tmp_path / "mine.py").write_text(
        AGENT + "    def __init__(self, hf_token='', max_tokens=1):\n        self.limit = max_tokens\n"
    )
    trial = SharedTrial(tmp_path, policy=("./mine.py:Agent",))
    options = ("--policy-option", f"hf_token={SECRET}", "--policy-option", "max_tokens=7")
    options = (*options, "--env-option", f"api_key={SECRET}")
    try:
        stopped(trial, *options)
        files = [file for file in trial.out.rglob("*") if file.is_file()]
        assert not [file for file in files if SECRET.encode() in file.read_bytes()]
        said = on_one_line(trial.done("work", trial.out, code=2))
        assert "the policy's option hf_token, which is secret and not written down" in said
        assert trial.end(trial.join(*options))[0][0] == 0
        manifest = json.loads((trial.out / "manifest.json").read_bytes())
        hidden = manifest["identity"]["policy_options"].pop("hf_token")
        assert re.fullmatch(r"\(hidden, [0-9a-f]{4}\)", hidden)
        assert manifest["identity"]["policy_options"] == {"max_tokens": 7}
        assert manifest["identity"]["env_options"]["api_key"] == hidden
        assert len(trial.scored()) == EPISODES
        other = ("--policy-option", "hf_token=otherwise", *options[2:])
        said = on_one_line(trial.done(*trial.words(*other), code=2))
        assert "holds a different run: its policy_options" in said
        assert hidden in said
        assert "otherwise" not in said
    finally:
        trial.close()


def test_of_several_runs_those_that_can_be_helped_are_helped(trial):
    stopped(trial)
    broken = trial.folder / "a"
    shutil.copytree(trial.out, broken)
    shutil.rmtree(broken / "work")
    said = on_one_line(trial.done("work", trial.folder, code=2))
    assert f"{broken}: expected a run that is going on or has stopped" in said
    trial.check_results()


def test_a_token_is_not_written_down_and_asked_for(tmp_path):
    with ExitStack() as stack:
        port = stack.enter_context(served(Agent()))
        trial = SharedTrial(tmp_path, policy=(f"ws://127.0.0.1:{port}",))
        stack.callback(trial.close)
        stopped(trial, "--policy-option", f"token={SECRET}")
        files = [file for file in trial.out.rglob("*") if file.is_file()]
        assert len(files) > 5
        assert not [file for file in files if SECRET.encode() in file.read_bytes()]
        assert (trial.out / "work" / "run.json").stat().st_mode & 0o777 == 0o600
        said = on_one_line(trial.done("work", trial.out, code=2))
        assert "the policy's option token, which is secret and not written down" in said
        assert "put it into the environment variable PROCTOR_AGENT_TOKEN" in said
        trial.done("work", trial.out, environ={"PROCTOR_AGENT_TOKEN": SECRET})
        assert len(trial.scored()) == EPISODES


def test_without_hard_links_a_run_works_as_always_but_cannot_be_shared(trial):
    trial.site(WITHOUT_LINKS)
    trial.hold()
    leader = trial.begin()
    trial.await_begun(leader)
    assert not (trial.out / "work").exists()
    trial.done("work", trial.out, code=2)
    leader.kill()
    leader.wait()
    trial.let_go()
    assert trial.end(trial.begin())[0][0] == 0
    trial.check_results()


def test_a_helper_on_a_disk_without_hard_links_is_told(trial):
    stopped(trial)
    trial.site(WITHOUT_LINKS)
    said = on_one_line(trial.done("work", trial.out, code=2))
    assert "this file system has no hard links (Operation not permitted)" in said
    assert "put the run on another disk, or do it with one command" in said


@pytest.mark.skipif(os.geteuid() != 0, reason="a small disk can be made by root only")
@pytest.mark.parametrize("who", ["leader", "helper"])
def test_a_full_disk_is_told_and_loses_nothing(trial, who):
    trial.out.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=400k", "none", trial.out], check=True)
    try:
        trial.hold()
        leader = trial.begin()
        until((trial.out / "work" / "run.json").exists)
        helper = trial.help()
        trial.await_begun(leader, helper)
        unlucky, other = (leader, helper) if who == "leader" else (helper, leader)
        other.send_signal(signal.SIGSTOP)
        with pytest.raises(OSError, match="No space left"):
            (trial.out / ".ballast.tmp").write_bytes(bytes(2**20))
        trial.let_go()
        ((code, said),) = trial.end(unlucky)
        assert code == 2
        assert (
            f"cannot write to {trial.out}: No space left on device; finished episodes are kept"
            in on_one_line(said)
        )
        (trial.out / ".ballast.tmp").unlink()
        other.send_signal(signal.SIGCONT)
        again = trial.begin() if who == "leader" else trial.help()
        assert [code for code, _ in trial.end(other, again)] == [0, 0]
        trial.check_results()
    finally:
        trial.close()
        subprocess.run(["umount", trial.out], check=True)


@pytest.mark.skipif(shutil.which("setpriv") is None, reason="there is no setpriv")
def test_whoever_may_not_read_the_secrets_of_a_run_is_told(trial):
    stopped(trial)
    bound = ["setpriv", "--bounding-set", "-dac_override,-dac_read_search"] if os.geteuid() == 0 else []
    for file, words in (("work/run.json", ["work", trial.out]), ("agent_ids.key", trial.words("--join"))):
        (trial.out / file).chmod(0)
        said = on_one_line(trial.done(*words, code=2, prefix=bound))
        assert file in said
        assert "Permission denied" in said
        (trial.out / file).chmod(0o600)
    assert trial.end(trial.begin())[0][0] == 0
    trial.check_results()
