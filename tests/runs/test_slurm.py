"""Runs on a real SLURM cluster of two nodes, which may lose a node, its controller or the command itself."""

import json
import os
import shutil
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest
from slurm_cluster import NODES, SlurmCluster, missing

from proctor.runs.leases import RELEASED_AT_S

pytestmark = pytest.mark.slow

DEADLINE_S = 300.0
EXAM = ("--suite", "houses-v1", "--episodes", "16", "--policy", "blind")
HANGING = ("--executor-option", "command=sleep 300;")
SBATCH = shutil.which("sbatch")
SMALL = ("--env-option", "width=64", "--env-option", "height=48")
PROCTOR = (sys.executable, "-m", "proctor.cli")
IMPATIENT = (
    "from proctor import cli; from proctor.runs import slurm_executor as executor; executor.SETTLE_S = 3; "
    "raise SystemExit(cli.main())"
)
GATED = """
import time
from pathlib import Path

from proctor.core.interfaces import Policy

class Gated(Policy):
    def __init__(self, gate):
        self.gate = Path(gate)

    def reset(self, briefing):
        while not self.gate.exists():
            time.sleep(0.1)

    def act(self, observation):
        return 0
"""
SLURM = ("--executor", "slurm", "--workers", "2", "--lease", "5")


@pytest.fixture(scope="module")
def machine(tmp_path_factory):
    if problem := missing():
        pytest.skip(problem)
    with SlurmCluster(tmp_path_factory.mktemp("slurm") / "c") as cluster:
        yield cluster


@pytest.fixture
def cluster(machine):
    """The cluster with both nodes up and no job; what a test leaves behind is cancelled."""
    yield machine
    machine.slow_epilog.unlink(missing_ok=True)
    machine.call("scancel", "-u", "root")
    for name in NODES:
        machine.restart_node(name)
    machine.wait_idle()


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    """The results of one process."""
    out = tmp_path_factory.mktemp("alone") / "run"
    subprocess.run([*PROCTOR, "run", *EXAM, *SMALL, "--out", out], check=True, timeout=DEADLINE_S)
    return (out / "results.json").read_bytes()


@contextmanager
def started(cluster, out, *options, program=PROCTOR, **more):
    """Start a run on the cluster; it is ended with the block."""
    words = [*program, "run", *EXAM, *SMALL, *SLURM, "--out", out, *options]
    with (
        Path(f"{out}.txt").open("a+") as log,
        cluster.start(*words, stdout=log, stderr=log, **more) as driver,
    ):
        try:
            yield driver
        finally:
            driver.kill()


def finish(driver, out):
    """Wait for a command to end; return its exit code and what it wrote."""
    code = driver.wait(DEADLINE_S)
    return code, Path(f"{out}.txt").read_text()


def run(cluster, out, *options):
    with started(cluster, out, *options) as driver:
        return finish(driver, out)


def replace_sbatch(cluster, tmp_path, monkeypatch, body):
    """Put a script before sbatch, as some sites do."""
    script = tmp_path / "bin" / "sbatch"
    script.parent.mkdir()
    script.write_text(f"#!/bin/sh\n{body}\n")
    script.chmod(0o755)
    monkeypatch.setitem(cluster.environ, "PATH", f"{script.parent}:{os.environ['PATH']}")


def done(out):
    """Return how many episodes the journal of a run has."""
    journal = out / "episodes.jsonl"
    return journal.read_bytes().count(b"\n") if journal.exists() else 0


def wait_for_episodes(cluster, out, count):
    cluster.wait_until(lambda: done(out) >= count, f"{count} episodes are done in {out}")


def wait_for_tasks(cluster):
    cluster.wait_until(lambda: sorted(cluster.running()) == list(NODES), "a task runs on each node")


def test_two_nodes_give_the_results_of_one_process(cluster, expected, tmp_path):
    out = tmp_path / 'it\'s 100% "odd"'
    code, told = run(cluster, out)
    assert code == 0, told
    assert (out / "results.json").read_bytes() == expected
    assert "SLURM job" in told
    assert "warning" not in told
    logs = sorted(path.name.partition("_")[2] for path in (out / "slurm").glob("*.log"))
    assert logs == ["1.log", "2.log"]
    assert cluster.jobs() == []


def test_workers_of_one_task_share_it(cluster, expected, tmp_path):
    out = tmp_path / "run"
    per_task = ("--executor-option", "workers_per_task=2", "--executor-option", "cpus_per_task=1")
    code, told = run(cluster, out, *per_task)
    assert code == 0, told
    assert (out / "results.json").read_bytes() == expected
    assert [path.name.partition("_")[2] for path in (out / "slurm").glob("*.log")] == ["1.log"]


def test_a_node_that_dies_costs_nothing(cluster, expected, tmp_path):
    out = tmp_path / "run"
    with started(cluster, out) as driver:
        wait_for_episodes(cluster, out, 2)
        wait_for_tasks(cluster)
        cluster.kill_node("n1")
        code, told = finish(driver, out)
    assert code == 0, told
    assert (out / "results.json").read_bytes() == expected
    assert cluster.jobs() == []


def test_if_all_nodes_die_the_array_is_submitted_again(cluster, expected, tmp_path):
    out = tmp_path / "run"
    extra = ("--executor-option", 'extra=["--no-requeue"]')
    with started(cluster, out, *extra) as driver:
        wait_for_episodes(cluster, out, 2)
        for name in NODES:
            cluster.kill_node(name)
        cluster.wait_until(lambda: not cluster.running(), "SLURM has missed the nodes")
        for name in NODES:
            cluster.start_node(name)
        code, told = finish(driver, out)
    assert code == 0, told
    assert (out / "results.json").read_bytes() == expected
    assert told.count("is submitted") == 2
    assert "NODE_FAIL) and episodes are left" in told


@pytest.mark.parametrize("how", ["a time limit", "an urgent job"])
def test_tasks_that_slurm_ends_give_their_episodes_back_at_once(cluster, tmp_path, how):
    """They have half an hour to do so: their leases would run out long after the test has given up."""
    out, gate, told = tmp_path / "run", tmp_path / "gate", Path(f"{tmp_path / 'run'}.txt")
    (tmp_path / "agent.py").write_text(GATED)
    agent = ("--policy", f"{tmp_path / 'agent.py'}:Gated", "--policy-option", f"gate={gate}")
    limit = ("--executor-option", "time=1") if how == "a time limit" else ()
    with started(cluster, out, *agent, *limit, "--lease", "1800") as driver:
        leases = out / "work" / "leases"
        cluster.wait_until(lambda: len(episodes_of(leases)) == 2, "each task has an episode")
        if how == "an urgent job":
            urgent = ("--partition=urgent", "--nodelist=n1", "--output=/dev/null", "--wrap=exit 0")
            cluster.call("sbatch", *urgent)
        cluster.wait_until(lambda: is_given_back(leases), "a task has given its episode back")
        gate.touch()
        code, _ = finish(driver, out)
    assert code == 0, told.read_text()
    assert "evaluator" not in told.read_text()
    subprocess.run(
        [*PROCTOR, "run", *EXAM, *SMALL, *agent, "--out", tmp_path / "alone"], check=True, timeout=DEADLINE_S
    )
    assert (out / "results.json").read_bytes() == (tmp_path / "alone" / "results.json").read_bytes()


def episodes_of(leases):
    return [file for file in leases.glob("*.0") if not file.name.startswith("@")]


def is_given_back(leases):
    return any(file.stat().st_mtime == RELEASED_AT_S for file in episodes_of(leases))


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM], ids=lambda one: one.name)
def test_a_command_that_is_ended_leaves_no_job_and_goes_on_later(cluster, expected, tmp_path, ending):
    out = tmp_path / "run"
    with started(cluster, out) as driver:
        wait_for_episodes(cluster, out, 2)
        driver.send_signal(ending)
        code, told = finish(driver, out)
    assert code == 130, told
    assert "the same command goes on from what is finished" in told
    assert cluster.jobs() == []
    assert not (out / "results.json").exists()
    code, told = run(cluster, out)
    assert code == 0, told
    assert (out / "results.json").read_bytes() == expected


def test_ctrl_c_during_sbatch_leaves_no_job(cluster, tmp_path, monkeypatch):
    """Ctrl-C comes after SLURM has taken the job, and before its id is known here."""
    begun = tmp_path / "begun"
    replace_sbatch(cluster, tmp_path, monkeypatch, f'{SBATCH} "$@"\ntouch {begun}\nsleep 3')
    out = tmp_path / "run"
    with started(cluster, out, *HANGING, start_new_session=True) as driver:
        cluster.wait_until(begun.exists, "sbatch has been called")
        os.killpg(driver.pid, signal.SIGINT)
        code, told = finish(driver, out)
    assert code == 130, told
    cluster.wait_until(lambda: cluster.jobs() == [], "the job is cancelled")


def test_a_job_that_sbatch_gave_up_too_early_is_cancelled(cluster, tmp_path, monkeypatch):
    """The controller takes the job, but too late for sbatch."""
    begun = tmp_path / "begun"
    timeout = "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation"
    body = f'{SBATCH} "$@" >/dev/null\ntouch {begun}\necho "{timeout}" >&2\nexit 1'
    replace_sbatch(cluster, tmp_path, monkeypatch, body)
    out = tmp_path / "run"
    with started(cluster, out, *HANGING) as driver:
        cluster.wait_until(begun.exists, "sbatch has been called")
        driver.send_signal(signal.SIGINT)
        code, told = finish(driver, out)
    assert code == 130, told
    assert cluster.jobs() == []


def test_a_job_that_sbatch_gave_up_too_early_is_watched(cluster, expected, tmp_path, monkeypatch):
    body = f'{SBATCH} "$@" >/dev/null\necho "sbatch: error: Socket timed out on send/recv" >&2\nexit 1'
    replace_sbatch(cluster, tmp_path, monkeypatch, body)
    out = tmp_path / "run"
    code, told = run(cluster, out)
    assert code == 0, told
    assert "is submitted after all" in told
    assert (out / "results.json").read_bytes() == expected
    assert len({log.name.partition("_")[0] for log in (out / "slurm").glob("*.log")}) == 1


def test_an_sbatch_that_says_more_than_the_id_is_understood(cluster, tmp_path, monkeypatch):
    replace_sbatch(cluster, tmp_path, monkeypatch, f'{SBATCH} "$@"\necho "Maintenance on Monday"')
    out = tmp_path / "run"
    with started(cluster, out, *HANGING) as driver:
        text = Path(f"{out}.txt")
        cluster.wait_until(lambda: "SLURM job" in text.read_text(), "the job is told")
        driver.send_signal(signal.SIGINT)
        code, told = finish(driver, out)
    assert code == 130, told
    assert told.count("is submitted") == 1
    assert cluster.jobs() == []


def test_variables_of_the_user_neither_change_nor_hide_the_jobs(cluster, expected, tmp_path, monkeypatch):
    given = {
        **{"SBATCH_PARTITION": "closed", "SBATCH_ARRAY_INX": "1-9", "SBATCH_OUTPUT": "/dev/null"},
        **{"SBATCH_WAIT": "1", "SQUEUE_PARTITION": "closed", "SQUEUE_STATES": "SUSPENDED"},
        **{"SQUEUE_NAMES": "mine", "SCANCEL_NAME": "mine", "SBATCH_JOB_NAME": "mine"},
    }
    for name, value in given.items():
        monkeypatch.setitem(cluster.environ, name, value)
    out = tmp_path / "run"
    with started(cluster, out, "--executor-option", "partition=exam") as driver:
        wait_for_episodes(cluster, out, 2)
        driver.send_signal(signal.SIGINT)
        assert finish(driver, out)[0] == 130
    for name in given:
        monkeypatch.delitem(cluster.environ, name)
    assert cluster.jobs() == []
    assert len(list((out / "slurm").glob("*.log"))) == 2
    code, told = run(cluster, out)
    assert code == 0, told
    assert (out / "results.json").read_bytes() == expected


def test_tasks_that_are_requeued_while_another_array_is_there_are_cancelled_as_well(cluster, tmp_path):
    """SLURM pre-empts all tasks, and the nodes take long to end what is left of them."""
    out = tmp_path / "run"
    with started(cluster, out, *HANGING, program=(sys.executable, "-c", IMPATIENT)) as driver:
        wait_for_tasks(cluster)
        cluster.slow_epilog.touch()
        cluster.call("scontrol", "requeue", cluster.jobs()[0].partition("_")[0])
        text = Path(f"{out}.txt")
        cluster.wait_until(lambda: text.read_text().count("is submitted") == 2, "another is submitted")
        cluster.slow_epilog.unlink()
        cluster.wait_until(lambda: len(cluster.running()) == 2, "the other array runs")
        assert len({job.partition("_")[0] for job in cluster.jobs()}) == 2
        driver.send_signal(signal.SIGINT)
        code, told = finish(driver, out)
    assert code == 130, told
    assert cluster.jobs() == []


def test_tasks_that_slurm_is_about_to_requeue_are_cancelled_as_well(cluster, tmp_path):
    out = tmp_path / "run"
    with started(cluster, out, *HANGING) as driver:
        wait_for_tasks(cluster)
        cluster.slow_epilog.touch()
        cluster.call("scontrol", "requeue", cluster.jobs()[0].partition("_")[0])
        cluster.wait_until(lambda: "RUNNING" not in str(cluster.jobs()), "the tasks have ended")
        driver.send_signal(signal.SIGINT)
        code, told = finish(driver, out)
    assert code == 130, told
    cluster.slow_epilog.unlink()
    cluster.wait_until(lambda: cluster.jobs() == [], "the tasks do not come back")


def test_workers_finish_without_the_command_that_submitted_them(cluster, expected, tmp_path):
    out = tmp_path / "run"
    with started(cluster, out) as driver:
        wait_for_episodes(cluster, out, 2)
        driver.kill()
        driver.wait(DEADLINE_S)
    before = done(out)
    cluster.wait_until(lambda: cluster.jobs() == [], "the workers have ended by themselves")
    code, told = run(cluster, out)
    assert code == 0, told
    assert before < 16
    assert "is submitted" not in told.partition("episodes were done before")[2]
    assert (out / "results.json").read_bytes() == expected


def test_a_second_command_watches_the_jobs_of_the_first(cluster, expected, tmp_path):
    out = tmp_path / "run"
    with started(cluster, out) as driver:
        wait_for_tasks(cluster)  # to build their worlds takes them longer than another command needs to begin
        driver.kill()
        driver.wait(DEADLINE_S)
    code, told = run(cluster, out)
    assert code == 0, told
    assert "of an earlier call is still there" in told
    assert told.count("is submitted") == 1
    assert (out / "results.json").read_bytes() == expected
    assert cluster.jobs() == []


def test_a_controller_that_restarts_is_waited_for(cluster, expected, tmp_path):
    out = tmp_path / "run"
    with started(cluster, out) as driver:
        wait_for_episodes(cluster, out, 2)
        cluster.stop_controller()
        wait_for_episodes(cluster, out, 6)
        cluster.start_controller()
        code, told = finish(driver, out)
    assert code == 0, told
    assert (out / "results.json").read_bytes() == expected
    assert cluster.jobs() == []


def test_a_controller_that_is_down_is_named_before_anything_is_written(cluster, tmp_path):
    out = tmp_path / "run"
    cluster.stop_controller()
    try:
        code, told = run(cluster, out)
    finally:
        cluster.start_controller()
    assert code == 2
    assert "error: SLURM's controller does not answer: " in told
    assert "Unable to contact slurm controller (connect failure)" in told
    assert not out.exists()


def test_a_controller_that_stays_away_ends_the_command(cluster, tmp_path):
    out = tmp_path / "run"
    patience = ("--executor-option", "max_unreachable_s=1", *HANGING)
    with started(cluster, out, *patience) as driver:
        wait_for_tasks(cluster)
        cluster.stop_controller()
        try:
            code, told = finish(driver, out)
        finally:
            cluster.start_controller()
    assert code == 2, told
    assert "SLURM's controller has not answered for" in told


def test_what_sbatch_says_about_a_partition_is_passed_on(cluster, expected, tmp_path):
    out = tmp_path / "run"
    code, told = run(cluster, out, "--executor-option", "partition=nope")
    assert code == 2
    assert "error: sbatch refused the job: invalid partition specified: nope; " in told
    assert f"{out}/slurm/worker.sh" in told
    code, told = run(cluster, out, "--executor-option", "partition=exam", "--executor-option", "time=30")
    assert code == 0, told
    assert (out / "results.json").read_bytes() == expected


def test_tasks_that_fail_at_once_are_not_repeated_and_their_log_is_shown(cluster, tmp_path):
    out = tmp_path / "run"
    code, told = run(cluster, out, "--executor-option", "command=/nowhere/bin/proctor")
    assert code == 2
    assert "has ended (2 FAILED) without finishing an episode. The end of " in told
    assert "/nowhere/bin/proctor: No such file or directory" in told
    assert told.count("is submitted") == 1
    assert cluster.jobs() == []


def test_a_folder_that_the_nodes_do_not_have_is_suspected(cluster, tmp_path):
    out = tmp_path / "run"
    code, told = run(cluster, out, "--executor-option", 'extra=["--output=/nowhere/%A_%a.log"]')
    assert code == 2
    assert "A run must be in a folder that all of them share" in told


def test_an_array_that_somebody_cancels_is_not_submitted_again(cluster, tmp_path):
    out = tmp_path / "run"
    with started(cluster, out) as driver:
        wait_for_tasks(cluster)
        cluster.call("scancel", "-u", "root")
        code, told = finish(driver, out)
    assert code == 2, told
    assert "was cancelled. What is done is kept, and the same command goes on" in told
    assert told.count("is submitted") == 1


def test_the_reason_why_nothing_starts_is_told(cluster, tmp_path):
    out = tmp_path / "run"
    reason = "is waiting for SLURM to start it (PartitionDown: "
    with started(cluster, out, "--executor-option", "partition=closed") as driver:
        cluster.wait_until(lambda: reason in Path(f"{out}.txt").read_text(), "the reason is told")
        driver.send_signal(signal.SIGINT)
        assert finish(driver, out)[0] == 130
    assert cluster.jobs() == []
    assert json.loads((out / "manifest.json").read_text())["identity"]["policy"] == "blind"


@pytest.mark.parametrize("state", [(), ("State=SpecialExit",)])
def test_tasks_that_somebody_holds_are_told(cluster, tmp_path, state):
    out = tmp_path / "run"
    with started(cluster, out, *HANGING) as driver:
        wait_for_tasks(cluster)
        cluster.call("scontrol", "requeuehold", *state, cluster.jobs()[0].partition("_")[0])
        held = "scontrol release lets it go on"
        cluster.wait_until(lambda: held in Path(f"{out}.txt").read_text(), "the reason is told")
        driver.send_signal(signal.SIGINT)
        assert finish(driver, out)[0] == 130
    assert cluster.jobs() == []


def test_an_agent_that_goes_away_stops_the_run_with_its_own_exit_code(cluster, tmp_path):
    out = tmp_path / "run"
    serve = (*PROCTOR, "serve-policy", "random", "--port", "9000")
    with cluster.start(*serve, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as agent:
        try:
            assert "9000" in agent.stdout.readline()
            patience = ("--unavailable-pause", "0.5", "--policy-option", "connect_timeout_s=2")
            with started(cluster, out, *patience, "--policy", "ws://127.0.0.1:9000") as driver:
                wait_for_episodes(cluster, out, 2)
                agent.kill()
                code, told = finish(driver, out)
        finally:
            agent.kill()
    assert code == 3, told
    assert "the agent is unavailable" in told
    assert "warning" not in told
    assert told.count("is submitted") == 1
    assert cluster.jobs() == []
